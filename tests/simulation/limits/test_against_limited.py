"""Starts under limits against the simple scheduler of tests/reference, job by job."""

from __future__ import annotations

import math

import numpy as np
import pytest

import simsched as ss
from tests.reference import limited
from tests.reference.naive import read_swf
from tests.simulation.simworld import machine

# Of a few random jobs, none may be of the user or QoS that a limit is about.
pytestmark = pytest.mark.filterwarnings("ignore::simsched.errors.InputWarning")

SCOPES = {
    "each user": ({"each": "user"}, lambda job: job.user),
    "each account": ({"each": "account"}, lambda job: job.account),
    "all": ({}, lambda job: "all"),
    "one qos": ({"qos": "high"}, lambda job: "high" if job.qos == "high" else None),
    "each user of a qos": (
        {"qos": "low", "each": "user"},
        lambda job: job.user if job.qos == "low" else None,
    ),
    "user and account": ({"each": ["user", "account"]}, lambda job: (job.user, job.account)),
}
QUANTITIES = {
    "running-jobs": "jobs",
    "cores": "procs",
    "core-hours": "spent-seconds",
    "running-core-hours": "run-seconds",
}


def workload_of(jobs):
    specs = {}
    made = []
    for job in jobs:
        duration = None if job.requested == math.inf else job.requested
        spec = specs.setdefault(
            (job.procs, duration), ss.Jobspec.from_shape(f"slot={job.procs}/core", duration=duration)
        )
        more = {"user": job.user, "bank": job.account or None, "qos": job.qos or None}
        made.append(
            ss.Job(id=job.id, submit=job.submit, runtime=job.runtime, duration=duration, jobspec=spec, **more)
        )
    return ss.Workload(jobs=tuple(sorted(made, key=lambda job: job.submit)), name="made")


def starts_of(run):
    rows = zip(run.jobs["id"], run.jobs["start"], strict=True)
    return {int(name): None if start != start else start for name, start in rows}


def some_jobs(rng, count=40):
    submits = np.sort(rng.integers(0, 120, count)).tolist()
    jobs = []
    for at, submit in enumerate(submits):
        runtime = int(rng.integers(1, 30))
        jobs.append(
            limited.Job(
                at,
                submit,
                runtime,
                runtime + int(rng.integers(0, 20)),
                int(rng.integers(1, 9)),
                f"u{rng.integers(3)}",
                f"a{rng.integers(2)}",
                str(rng.choice(["high", "low"])),
            )
        )
    return jobs


def some_limits(rng):
    """Rules of a configuration and the same limits for the simple scheduler."""
    rules, limits = [], []
    scopes = [str(name) for name in rng.choice(list(SCOPES), int(rng.integers(1, 4)), replace=False)]
    for name in scopes:
        table, scope = SCOPES[name]
        quantity = str(rng.choice(list(QUANTITIES)))
        if quantity == "running-jobs":
            most = int(rng.integers(1, 5))
        elif quantity == "cores":
            most = int(rng.integers(8, 14))
        else:
            most = int(rng.integers(450, 1500))  # core-seconds: more than any job asks for
        given = most / 3600 if quantity.endswith("hours") else most
        rules.append({**table, quantity: given})
        limits.append(limited.Limit(scope, QUANTITIES[quantity], most))
    return rules, limits


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("seed", range(40))
def test_small_workloads_start_as_in_the_simple_scheduler(policy, seed):
    rng = np.random.default_rng(seed)
    jobs = some_jobs(rng)
    rules, limits = some_limits(rng)
    expected = limited.schedule(jobs, 12, limits, policy)
    run = ss.simulate(machine(12), workload_of(jobs), policy, limits=rules, allocations=False)
    found = starts_of(run)
    assert found == expected, rules


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("seed", range(12))
def test_levels_start_as_in_the_simple_scheduler(policy, seed):
    """Level 1 takes the place of level 2 for the jobs of one QoS, which level 2 counts all the same."""
    rng = np.random.default_rng(2000 + seed)
    jobs, (quantity, of) = some_jobs(rng), list(QUANTITIES.items())[seed % 4]
    low, high = sorted(int(value) for value in rng.choice(np.arange(9, 14), 2, replace=False))
    low, high = (
        most * 50 if "hours" in quantity else most - 8 * (quantity == "running-jobs") for most in (low, high)
    )
    given = {most: most / 3600 if "hours" in quantity else most for most in (low, high)}
    rules = [
        {"qos": "high", "each": "user", "level": 1, quantity: given[high]},
        {"each": "user", "level": 2, quantity: given[low], "running-jobs" if of != "jobs" else "cores": 99},
    ]
    limits = [
        limited.Limit(lambda job: job.user if job.qos == "high" else None, of, high),
        limited.Limit(lambda job: job.user, of, low, lambda job: job.qos != "high"),
    ]
    expected = limited.schedule(jobs, 12, limits, policy)
    run = ss.simulate(machine(12), workload_of(jobs), policy, limits=rules, allocations=False)
    assert starts_of(run) == expected, rules


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("seed", range(8))
def test_jobs_beyond_the_submitted_ones_are_rejected_as_in_the_simple_scheduler(policy, seed):
    rng = np.random.default_rng(1000 + seed)
    jobs = some_jobs(rng, 60)
    submitted = limited.Limit(lambda job: job.user, "jobs", 4)
    rules = [{"each": "user", "submitted-jobs": 4}, {"running-jobs": 3}]
    expected = limited.schedule(jobs, 12, [limited.Limit(lambda _: 0, "jobs", 3)], policy, submitted)
    run = ss.simulate(machine(12), workload_of(jobs), policy, limits=rules, allocations=False)
    assert starts_of(run) == expected
    assert None in expected.values()


# --- real traces ---------------------------------------------------------------------------------------

TRACES = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
}


def of_user(job):
    return job.user


def limits_of(case, processors):
    """Rules of a configuration, the same limits for the simple scheduler, and that on submitted jobs."""
    most = processors * 3 // 4
    if case == "jobs and cores":
        rules = [{"each": "user", "running-jobs": 3, "cores": most, "over": "hold"}, {"running-jobs": 25}]
        each = [limited.Limit(of_user, "jobs", 3), limited.Limit(of_user, "procs", most)]
        return rules, [*each, limited.Limit(lambda _: 0, "jobs", 25)], None
    if case == "hours":
        ahead = 12 * processors
        rules = [{"each": "user", "core-hours": 30_000}, {"each": "user", "running-core-hours": ahead}]
        spent = limited.Limit(of_user, "spent-seconds", 30_000 * 3600)
        return rules, [spent, limited.Limit(of_user, "run-seconds", ahead * 3600)], None
    rules = [{"each": "user", "submitted-jobs": 6, "running-jobs": 2}]
    return rules, [limited.Limit(of_user, "jobs", 2)], limited.Limit(of_user, "jobs", 6)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("case", ["jobs and cores", "hours", "submitted jobs"])
@pytest.mark.parametrize("name", TRACES)
def test_five_thousand_jobs_of_a_trace_start_as_in_the_simple_scheduler(traces, name, case, policy):
    file, processors = TRACES[name]
    plain, dropped = read_swf(traces / file, 5000)
    workload = ss.load_workload(traces / file, map="slot={procs}/core", limit=5000 + dropped)
    users = {int(job.id): job.user for job in workload.jobs}
    jobs = [
        limited.Job(job.id, job.submit, job.runtime, job.requested, job.copies, users[job.id])
        for job in plain
        if job.id in users
    ]
    assert len(jobs) == len(workload.jobs) == 5000
    rules, limits, submitted = limits_of(case, processors)
    expected = limited.schedule(jobs, processors, limits, policy, submitted)
    run = ss.simulate(machine(processors), workload, policy, limits=rules, allocations=False)
    found = starts_of(run)
    differ = [job.id for job in jobs if found[job.id] != expected[job.id]]
    assert not differ, differ[:5]
    free = starts_of(ss.simulate(machine(processors), workload, policy, allocations=False))
    assert sum(found[job.id] != free[job.id] for job in jobs) > 100, "the limits hold no job back"
