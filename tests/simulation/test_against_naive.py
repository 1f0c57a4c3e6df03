"""Start times against the naive scheduler of tests/reference, job by job.

The oracle shares no code with the engine and reads the traces itself.
"""

from __future__ import annotations

import math
import random

import pytest

import simsched as ss
from tests.reference.naive import Job, read_swf, schedule

TRACES = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
    "HPC2N": ("HPC2N-2002-2.2-cln.swf.gz", 240),
}
NEVER = {"INFEASIBLE", "DROPPED"}


def cluster_of(nodes):
    """A cluster of (cores, gpus) nodes, from R."""
    lite = []
    for rank, (cores, gpus) in enumerate(nodes):
        children = {"core": f"0-{cores - 1}"} | ({"gpu": f"0-{gpus - 1}"} if gpus else {})
        lite.append({"rank": str(rank), "children": children})
    execution = {"R_lite": lite, "nodelist": [f"n[0-{len(nodes) - 1}]"], "starttime": 0, "expiration": 0}
    return ss.Cluster.from_rset(ss.ResourceSet.from_dict({"version": 1, "execution": execution}))


def workload_of(jobs):
    """The oracle's jobs as a workload; equal requests share one jobspec."""
    specs = {}
    made = []
    for job in jobs:
        shape = f"slot={job.copies}/[core={job.cores};gpu={job.gpus}]" if job.gpus else ""
        shape = shape or f"slot={job.copies}/core={job.cores}"
        duration = None if job.requested == math.inf else job.requested
        jobspec = specs.setdefault((shape, duration), ss.Jobspec.from_shape(shape, duration=duration))
        made.append(
            ss.Job(id=job.id, submit=job.submit, runtime=job.runtime, duration=duration, jobspec=jobspec)
        )
    return ss.Workload(jobs=tuple(sorted(made, key=lambda job: job.submit)), name="made")


def rule_of(policy):
    """The policy as the oracle has it: its conservative plans anew at each pass."""
    return {
        "queue_policy": policy,
        "queue_options": {"compress": "replan"} if policy == "conservative" else {},
    }


def spans(run):
    """{job id: (start, end)}, None for a job that never ran."""
    rows = zip(run.jobs["id"], run.jobs["start"], run.jobs["end"], run.jobs["result"], strict=True)
    return {int(number): None if result in NEVER else (start, end) for number, start, end, result in rows}


def assert_same(run, expected, jobs):
    found = {number: span for number, span in spans(run).items() if number in expected}
    assert len(found) == len(expected)
    differ = [job for job in jobs if found[job.id] != expected[job.id]]
    first = [(job, found[job.id], expected[job.id]) for job in differ[:3]]
    assert not differ, f"{len(differ)} of {len(jobs)} jobs differ, first (job, ours, naive): {first}"


# --- real traces -----------------------------------------------------------------------------------------


def compare_trace(traces, name, policy, limit=None):
    file, processors = TRACES[name]
    jobs, dropped = read_swf(traces / file, limit)
    cluster = cluster_of([(1, 0)] * processors)
    workload = ss.load_workload(traces / file, map="slot={procs}/core", limit=limit and limit + dropped)
    run = ss.simulate(cluster, workload, **rule_of(policy))
    oracle = policy if policy == "fcfs" else f"textbook-{policy}"
    assert_same(run, schedule(jobs, [(processors, 0)], oracle), jobs)
    return len(jobs)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_the_first_5000_jobs_of_kth_sp2(traces, policy):
    assert compare_trace(traces, "KTH-SP2", policy, 5000) == 5000


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_kth_sp2_whole(traces, policy):
    assert compare_trace(traces, "KTH-SP2", policy) == 27_992


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("name", ["SDSC-SP2", "HPC2N"])
def test_10000_jobs_of_the_others(traces, name, policy):
    assert compare_trace(traces, name, policy, 10_000) == 10_000


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_the_definition_on_a_trace(traces, policy):
    """The textbook rule and the definition agree on real jobs, too (not only on made ones)."""
    file, processors = TRACES["KTH-SP2"]
    jobs, _ = read_swf(traces / file, 1500)
    machine = [(processors, 0)]
    assert schedule(jobs, machine, policy) == schedule(jobs, machine, f"textbook-{policy}")


# --- made workloads --------------------------------------------------------------------------------------


def random_jobs(rng, *, most_copies, cores=1, gpus=0):
    """Up to 25 jobs that crowd: ties of submit times, overruns, instant and unlimited jobs."""
    jobs = []
    for number in range(1, rng.randint(2, 25)):
        runtime = rng.choice([0, 1, rng.randint(1, 10), rng.randint(1, 40)])
        requested = rng.choice(
            [math.inf, runtime + 1, rng.randint(1, 50), rng.randint(1, 50), max(1, runtime)]
        )
        jobs.append(
            Job(
                number,
                rng.choice([0, rng.randint(0, 20), rng.randint(0, 80)]),
                runtime,
                requested,
                rng.randint(1, most_copies),
                rng.randint(1, cores),
                rng.randint(0, gpus),
            )
        )
    return jobs


def compare_made(seed, policy, nodes, overrun="timeout", **shape):
    jobs = random_jobs(random.Random(f"{policy} {seed} {nodes}"), **shape)
    jobs = [job._replace(overruns=overrun == "allow") for job in jobs]
    run = ss.simulate(cluster_of(nodes), workload_of(jobs), overrun=overrun, **rule_of(policy))
    expected = schedule(jobs, nodes, policy)
    try:
        assert_same(run, expected, jobs)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(map(str, jobs))) from None


FLAT = [(8, 0)]
NODES = [(4, 1), (4, 0), (2, 2)]
MANY_NODES = [(4, 2), (9, 1), (4, 0), (2, 2), (5, 4)]


@pytest.mark.quick(1)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_flat_processors(policy):
    for seed in range(150):
        compare_made(seed, policy, FLAT, most_copies=9)


@pytest.mark.quick(1)
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_cores_and_gpus_of_nodes(policy):
    for seed in range(150):
        compare_made(seed, policy, NODES, most_copies=4, cores=3, gpus=1)


@pytest.mark.quick(1)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_copies_of_one_slot_are_a_count_wherever_they_are(policy):
    """The nodes are a machine of so many copies, and no node matters."""
    cores, gpus = 2, 1
    room = sum(min(c // cores, g // gpus) for c, g in MANY_NODES)
    for seed in range(100):
        flat = random_jobs(random.Random(f"{policy} {seed}"), most_copies=room + 1)
        jobs = [job._replace(cores=cores, gpus=gpus) for job in flat]
        run = ss.simulate(cluster_of(MANY_NODES), workload_of(jobs), **rule_of(policy))
        assert_same(run, schedule(flat, [(room, 0)], policy), jobs)
        if policy != "conservative":
            assert_same(run, schedule(jobs, MANY_NODES, policy), jobs)


@pytest.mark.quick(1)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_jobs_that_overrun(policy):
    """An expected end that has passed counts as now."""
    for seed in range(100):
        compare_made(seed, policy, FLAT, overrun="allow", most_copies=9)


@pytest.mark.slow
def test_jobs_that_overrun_on_nodes():
    for seed in range(100):
        compare_made(seed, "easy", NODES, overrun="allow", most_copies=4, cores=3, gpus=1)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_flat_processors_for_long(policy):
    for seed in range(1000, 1500):
        compare_made(seed, policy, FLAT, most_copies=9)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_cores_and_gpus_of_nodes_for_long(policy):
    for seed in range(1000, 1500):
        compare_made(seed, policy, NODES, most_copies=4, cores=3, gpus=1)
