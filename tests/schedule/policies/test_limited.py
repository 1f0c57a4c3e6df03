"""``queue-depth``: only the first waiting jobs are considered, whatever the policy."""

from __future__ import annotations

import random

import pytest

from simsched.errors import ConfigError
from simsched.schedule.policies.limited import Limited
from simsched.schedule.policies.registry import POLICIES, queue_policy
from tests.simulation.simworld import job, machine, run, starts

POLICY_NAMES = ("fcfs", "easy", "conservative", "hybrid")


def random_jobs(rng, number=60):
    shapes = ("slot=1/core", "slot=2/core=2", "slot=3/core", "slot=1/[core=1;gpu]", "slot=2/node")
    return [
        job(n, rng.randint(0, 60), rng.choice(shapes), rng.randint(0, 15), rng.choice([15, 20, 40]))
        for n in range(number)
    ]


def test_a_job_beyond_the_depth_does_not_pass():
    """B waits for A.  C and D could pass; with a depth of 2 only B and C are looked at, and C is too long."""
    queue = (
        job("A", 0, "slot=3/core", 6),
        job("B", 1, "slot=4/core", 4),
        job("C", 2, "slot=1/core", 9),
        job("D", 3, "slot=1/core", 2),
    )
    assert starts(run(machine(4), *queue)) == {"A": 0, "B": 6, "C": 10, "D": 3}
    limited = run(machine(4), *queue, queue_options={"queue_depth": 2})
    assert starts(limited) == {"A": 0, "B": 6, "C": 10, "D": 10}


def test_who_moves_up_when_something_starts_is_considered_in_the_same_pass():
    """At 5 all nodes come free: one job a cycle, and a cycle for each, until all four have started."""
    queue = (job("X", 0, "slot=4/core", 5), *(job(name, 1, "slot=1/core", 3) for name in "ABCD"))
    found = run(machine(4), *queue, queue_options={"queue_depth": 1})
    assert starts(found) == {"X": 0, "A": 5, "B": 5, "C": 5, "D": 5}


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_a_depth_of_one_is_fcfs_and_a_great_one_is_none(policy):
    for seed in range(8):
        jobs = random_jobs(random.Random(seed))
        cluster = machine(4, cores=3, gpus=1)
        plain = {name: starts(run(cluster, *jobs, policy=name)) for name in ("fcfs", policy)}
        one = run(cluster, *jobs, policy=policy, queue_options={"queue_depth": 1})
        many = run(cluster, *jobs, policy=policy, queue_options={"queue_depth": 1000})
        assert starts(one) == plain["fcfs"]
        assert starts(many) == plain[policy]


@pytest.mark.quick(2)
@pytest.mark.parametrize("policy", POLICY_NAMES)
@pytest.mark.parametrize("shapes", ["cores", "mixed"])
def test_what_the_policy_remembers_changes_nothing(policy, shapes, monkeypatch):
    """Law: a limited policy that is new at every pass starts the same jobs at the same times."""

    rule = {"compress": "replan"} if policy in ("conservative", "hybrid") else {}

    class Forgetful:
        def __init__(self, queue_depth=3):
            self.depth = queue_depth

        def run_pass(self, context):
            context.released = context.moved = True
            Limited(queue_policy(policy, rule), self.depth).run_pass(context)

    for seed in range(8):
        rng = random.Random(f"{policy} {shapes} {seed}")
        jobs = random_jobs(rng)
        if shapes == "cores":
            jobs = [
                job(j.id, j.submit, f"slot={1 + n % 5}/core", j.runtime, j.duration)
                for n, j in enumerate(jobs)
            ]
        cluster = machine(4, cores=3, gpus=1)
        for order in ("fifo", "sjf", "wfp3"):
            monkeypatch.setitem(POLICIES, "forgetful", Forgetful)
            options = {"queue_depth": 3, **rule}
            found = run(cluster, *jobs, policy=policy, order=order, queue_options=options)
            expected = run(cluster, *jobs, policy="forgetful", order=order)
            assert starts(found) == starts(expected), (seed, order)


@pytest.mark.parametrize("depth", [0, -1, "many", True, 2.5])
def test_depths_that_are_none(depth):
    with pytest.raises(ConfigError, match=r"queue.depth"):
        run(machine(1), queue_options={"queue_depth": depth})


def test_any_policy_takes_it_and_says_so():
    with pytest.raises(ConfigError, match=r"queue.depth"):
        queue_policy("fcfs", {"queue_dept": 3})
    assert isinstance(queue_policy("fcfs", {"queue_depth": 3}), Limited)
