"""Answers on a real trace, checked by runs that know nothing of the search."""

from __future__ import annotations

import numpy as np
import pytest

import simsched as ss
from simsched.workload.transforms.resample import resample
from simsched.workload.transforms.transforms import first, scale_arrivals

NODES = 100


def machine(nodes: int) -> ss.Cluster:
    return ss.Cluster.from_rset(ss.ResourceSet.of([(f"0-{nodes - 1}", {"core": "0"})], f"n[0-{nodes - 1}]"))


def p95_waits(nodes: int, jobs, seeds: int, load: float = 1.0) -> list[float]:
    """The 95th percentile of the wait for each seed, from scratch: no task, no cache, no edit."""
    found = []
    for seed in range(seeds):
        demand = resample(jobs, np.random.default_rng(seed)) if seed else jobs
        demand = scale_arrivals(demand, load) if load != 1 else demand
        run = ss.simulate(machine(nodes), demand, seed=seed, allocations=False)
        wait = run.jobs["start"] - run.jobs["submit"]
        assert wait.notna().all()
        found.append(float(np.percentile(wait, 95)))
    return found


@pytest.fixture(scope="module")
def kth(traces):
    return ss.load_workload(traces / "KTH-SP2-1996-2.1-cln.swf.gz")


def check_size(jobs, seeds: int, target: float):
    answer = ss.size(machine(NODES), jobs, f"p95_wait<={target:g}", seeds=seeds, workers=0, checks=0)
    here, below = (p95_waits(n, jobs, seeds) for n in (answer.value, answer.value - 1))
    assert max(here) <= target
    assert max(below) > target
    figures = next(iter(answer.trials[answer.value].figures.values()))
    assert figures == pytest.approx(here)
    return answer


def test_the_machine_found_meets_the_target_and_one_node_less_does_not(kth):
    answer = check_size(first(kth, 600), 2, 2 * 3600.0)
    assert answer.value > NODES
    assert len(set(answer.trials[answer.value].figures[answer.rule.targets[0]])) == 2


@pytest.mark.slow
def test_the_same_with_more_jobs_and_seeds(kth):
    check_size(first(kth, 4000), 5, 2 * 3600.0)


def check_headroom(jobs, seeds: int, nodes: int, target: float) -> None:
    answer = ss.headroom(
        machine(nodes), jobs, f"p95_wait<={target:g}", seeds=seeds, workers=0, checks=0, step=0.02
    )
    assert answer.found
    assert max(p95_waits(nodes, jobs, seeds, answer.number)) <= target
    assert max(p95_waits(nodes, jobs, seeds, round(answer.number + 0.02, 9))) > target


def test_the_machine_takes_the_load_found_and_not_a_step_more(kth):
    check_headroom(first(kth, 600), 2, 200, 2 * 3600.0)


@pytest.mark.slow
def test_headroom_of_more_jobs_and_seeds(kth):
    check_headroom(first(kth, 4000), 5, 250, 2 * 3600.0)
