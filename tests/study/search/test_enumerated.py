"""Answers of `size` and `headroom` against every size and load of small cases, simulated one by one.

The enumeration knows nothing of the search: it resamples, scales, simulates and computes figures
on its own.  Half of the bounds are put where one node more (or a load less) makes the figure worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

import simsched as ss
from simsched.workload.job import Job, Workload
from simsched.workload.transforms.resample import resample
from simsched.workload.transforms.transforms import scale_arrivals

if TYPE_CHECKING:
    from simsched.study.search.answer import Answer

SIZES, LOADS = 24, 8
QUICK = 4
LARGEST = 30
STEP, LEAST, MOST = 0.05, 0.5, 1.8
POLICIES = ("easy", "conservative", "fcfs", "easy")
FIGURES = ("p95_wait", "mean_wait", "p80_wait", "mean_bounded_slowdown", "max_wait")
SHAPES = {n: ss.Jobspec.from_shape(f"slot={n}/core") for n in range(1, 16)}


@dataclass(frozen=True)
class Case:
    workload: Workload
    policy: str
    figure: str
    seeds: int
    today: int


@cache
def case_of(number: int) -> Case:
    """A few wide and many narrow jobs that come at random, on a machine of up to 30 nodes."""
    rng = np.random.default_rng(20_000 + number)
    count, wide = int(rng.integers(25, 90)), int(rng.integers(5, 15))
    is_wide = rng.random(count) < rng.uniform(0.1, 0.5)
    widths = np.where(is_wide, rng.integers(wide // 2 + 1, wide + 1, count), rng.integers(1, 4, count))
    lengths = np.maximum(1, rng.lognormal(6, 1.3, count)).astype(int)
    gap = float((widths * lengths).sum()) / count / rng.uniform(7, 16)
    submits = np.cumsum(rng.exponential(gap, count)).astype(int)
    limits = (lengths * rng.choice([1, 1.5, 3, 10], count)).astype(int) + 1
    jobs = [
        Job(id=n + 1, submit=submit, runtime=length, duration=limit, jobspec=SHAPES[width])
        for n, (submit, length, limit, width) in enumerate(
            zip(submits.tolist(), lengths.tolist(), limits.tolist(), widths.tolist(), strict=True)
        )
    ]
    seeds = (1, 1, 2, 3)[number // 2 % 4]
    name = f"case {number}"
    policy, figure = POLICIES[number % 4], FIGURES[number % 5]
    return Case(Workload(tuple(jobs), name=name), policy, figure, seeds, int(rng.integers(8, LARGEST + 1)))


def machine(nodes: int) -> ss.Cluster:
    ranks = f"0-{nodes - 1}" if nodes > 1 else "0"
    return ss.Cluster.from_rset(ss.ResourceSet.of([(ranks, {"core": "0"})], f"n[{ranks}]"))


def worst(case: Case, nodes: int, load: float = 1.0) -> float:
    """The largest value of the figure over the seeds; infinite if some job can never run."""
    found = []
    for seed in range(case.seeds):
        demand = resample(case.workload, np.random.default_rng(seed)) if seed else case.workload
        demand = scale_arrivals(demand, load) if load != 1 else demand
        jobs = ss.simulate(machine(nodes), demand, queue_policy=case.policy, allocations=False).jobs
        if jobs["start"].isna().any():
            return float("inf")
        wait, run = jobs["start"] - jobs["submit"], jobs["end"] - jobs["start"]
        slowdown = np.maximum((wait + run) / np.maximum(run, 10), 1)
        found.append({
            "p95_wait": np.percentile(wait, 95), "p80_wait": np.percentile(wait, 80),
            "mean_wait": wait.mean(), "max_wait": wait.max(), "mean_bounded_slowdown": slowdown.mean(),
        }[case.figure])  # fmt: skip
    return float(max(found))


def bound_of(number: int, values: list[float]) -> float:
    """A bound between two neighbours: of even cases two that are the wrong way round, if there are any."""
    rng = np.random.default_rng(number)
    known = [value for value in values if 0 < value < float("inf")]
    pairs = list(pairwise(known))
    wrong = [(a, b) for a, b in pairs if b > a]
    a, b = rng.permutation(wrong if wrong and number % 2 == 0 else pairs[: 3 * len(pairs) // 4])[0]
    return float(f"{(a + b) / 2:.6g}")


@cache
def sizes_of(number: int) -> tuple[Answer, dict[int, bool]]:
    """The answer of one case, and whether each size meets."""
    case = case_of(number)
    values = [worst(case, nodes) for nodes in range(1, LARGEST + 1)]
    bound = bound_of(number, values)
    answer = ss.size(machine(case.today), case.workload, f"{case.figure}<={bound}", seeds=case.seeds,
                     most=LARGEST, queue_policy=case.policy, workers=0)  # fmt: skip
    return answer, {nodes: value <= bound for nodes, value in enumerate(values, start=1)}


@cache
def loads_of(number: int) -> tuple[Answer, dict[int, bool]]:
    """The answer of one case, and whether each step of load meets."""
    case = case_of(number)
    nodes = 12 + number % 9
    steps = range(round((LEAST - 1) / STEP), round((MOST - 1) / STEP) + 1)
    values = [worst(case, nodes, float(f"{1 + step * STEP:.9g}")) for step in steps]
    bound = bound_of(number, values[::-1])
    answer = ss.headroom(machine(nodes), case.workload, f"{case.figure}<={bound}", seeds=case.seeds,
                         step=STEP, least=LEAST, most=MOST, queue_policy=case.policy, workers=0)  # fmt: skip
    return answer, {step: value <= bound for step, value in zip(steps, values, strict=True)}


def numbers(count: int, quick: int = QUICK) -> list[object]:
    """The numbers of cases; those beyond the first are slow."""
    return [pytest.param(n, marks=[pytest.mark.slow] if n >= quick else []) for n in range(count)]


def check_data(answer, truth) -> None:
    """Law: the data say of each value that was tried what the enumeration says of it."""
    data, coverage = answer.to_dict(), answer.coverage
    assert data["tried"] == [answer.axis.number(value) for value in coverage.tried]
    assert data["met"] == [answer.axis.number(value) for value in coverage.tried if truth[value]]
    met = [answer.trials[value].met for value in coverage.tried]
    assert met == [truth[value] for value in coverage.tried]


@pytest.mark.parametrize("number", numbers(SIZES))
def test_nothing_is_claimed_of_sizes_that_were_not_tried(number):
    answer, truth = sizes_of(number)
    check_data(answer, truth)
    said, tried = answer.sentence, set(answer.coverage.tried)
    if answer.value is None:
        whole = tried == set(truth)
        assert said.startswith(
            "No size from 1 node to 30 nodes, all tried," if whole else "None of the sizes tried ("
        )
        return
    assert truth[answer.value]
    assert answer.value == 1 or (answer.value - 1 in tried and not truth[answer.value - 1])
    smallest = min(size for size, met in truth.items() if met)
    assert smallest in (answer.value, *(set(truth) - tried))
    assert ("is the smallest size that meets every target" in said) == (
        answer.value > 1 and set(range(1, answer.value)) <= tried
    )
    assert ("is a threshold" in said) == (not set(range(1, answer.value)) <= tried)
    failing = [size for size in sorted(tried) if size > answer.value and not truth[size]]
    assert ("the answer is not stable" in said) == bool(failing)
    assert answer.to_dict()["stable"] == (not failing)
    assert answer.to_dict()["worse"] == failing


@pytest.mark.parametrize("number", numbers(LOADS, 2))
def test_nothing_is_claimed_of_loads_that_were_not_tried(number):
    answer, truth = loads_of(number)
    check_data(answer, truth)
    said, tried = answer.sentence, answer.coverage.tried
    if answer.value is None:
        assert said.startswith("None of the loads tried (")
        return
    assert truth[answer.value]
    assert answer.beyond is None or not truth[answer.beyond]
    more = [step for step in tried if step > answer.value and truth[step]]
    less = [step for step in tried if step < answer.value and not truth[step]]
    assert ("the answer is not stable" in said) == bool(more or less)
    assert (answer.to_dict()["better"], answer.to_dict()["worse"]) == tuple(
        [answer.axis.number(step) for step in steps] for steps in (more, less)
    )
    every = set(range(min(0, answer.value), max(0, answer.value) + 1)) <= set(tried)
    assert ("every step between it and today's load was tried" in said and "not every" not in said) == every


@pytest.mark.slow
def test_most_answers_are_the_smallest_and_most_that_are_not_stable_say_so():
    """The scan is wide enough: of the cases with bounds in the worst places, few are missed."""
    exact = unstable = seen = 0
    for number in range(SIZES):
        answer, truth = sizes_of(number)
        meeting = [size for size, met in truth.items() if met]
        exact += answer.value == min(meeting, default=None)
        if answer.value is not None and not all(truth[n] for n in range(answer.value, LARGEST + 1)):
            unstable += 1
            seen += not answer.coverage.stable
    assert exact >= 0.9 * SIZES
    assert unstable >= 4
    assert seen >= 0.8 * unstable
