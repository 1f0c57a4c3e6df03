"""The waiting jobs in order while their keys stand."""

from __future__ import annotations

import random
from math import nan

import numpy as np
import pytest

from simsched.schedule.orders import present_order
from simsched.schedule.orders.standing_order import standing_order
from tests.simulation.simworld import job, machine, run, starts


def test_jobs_come_and_go():
    found = standing_order(np.array([1, 2, 5]), np.array([3.0, 1.0, 3.0]))
    assert found.jobs == [2, 1, 5]
    found.remove(2)
    found.add(7)
    found.add(6)
    found.add(4)
    found.remove(6)
    assert found.settle(lambda jobs: [{4: 3.0, 7: 2.0}[job] for job in jobs])
    assert found.jobs == [7, 1, 4, 5]


def test_a_key_that_is_not_a_number():
    assert standing_order(np.array([1, 2]), np.array([nan, 1.0])) is None
    found = standing_order(np.array([1]), np.array([1.0]))
    found.add(2)
    assert not found.settle(lambda jobs: [nan] * len(jobs))


@pytest.mark.parametrize("seed", range(20))
def test_random_changes_give_the_sorted_order(seed):
    rng = random.Random(seed)
    keys = [float(rng.randint(0, 5)) for _ in range(60)]
    waiting = set(range(0, 60, 3))
    first = np.array(sorted(waiting))
    found = standing_order(first, np.array(keys)[first])
    for _ in range(100):
        job = rng.randrange(60)
        if job in waiting:
            waiting.remove(job)
            found.remove(job)
        else:
            waiting.add(job)
            found.add(job)
        if rng.random() < 0.4:
            assert found.settle(lambda jobs: [keys[job] for job in jobs])
            assert found.jobs == sorted(waiting, key=lambda job: (keys[job], job))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_jobs_that_become_too_many_keep_their_order(monkeypatch, policy, seed):
    """The first job is found in several ways; each knows the jobs that came since it was last found."""
    rng = random.Random(seed)
    jobs = [
        job(f"j{n}", rng.randint(0, 500), f"slot={rng.randint(1, 16)}/core", rng.randint(1, 60), 100)
        for n in range(80)
    ]
    rules = {"factors": {"size": 300}, "period": "1h"}
    found = []
    for most in (0, 12, 256):
        monkeypatch.setattr(present_order, "MOST", most)
        found.append(starts(run(machine(1, 16), *jobs, policy=policy, priority=rules)))
    assert found[0] == found[1] == found[2]
