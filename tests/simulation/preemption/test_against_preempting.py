"""Preemption and checkpoints against a scheduler that shares no code with the engine."""

from __future__ import annotations

import random

import pytest

from tests.reference.preempting import PlainJob, schedule
from tests.simulation.simworld import job, machine, results, run, spans

QUEUES = {"batch": {"hosts": "all"}, "urgent": {"hosts": "all", "priority": 9, "preempts": True}}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("mode", ["requeue", "cancel"])
def test_fcfs(mode, seed):
    rng = random.Random(seed)
    interval, cost, restart = rng.choice([3, 7, 500]), rng.randint(0, 3), rng.randint(0, 4)
    rows = sorted((rng.randint(0, 150), n) for n in range(40))
    plain = [
        PlainJob(number, submit, rng.randint(1, 4), rng.randint(1, 25), rng.random() < 0.3)
        for number, (submit, _) in enumerate(rows)
    ]
    jobs = [
        job(
            one.number,
            one.submit,
            f"slot={one.units}/core",
            one.work,
            10_000,
            queue="urgent" if one.urgent else "batch",
        )
        for one in plain
    ]
    found = run(
        machine(6),
        *jobs,
        policy="fcfs",
        queues=QUEUES,
        preemption={"mode": mode},
        job_checkpoints={"interval": interval, "cost": cost, "restart": restart},
    )
    expected = schedule(plain, 6, cancel=mode == "cancel", interval=interval, cost=cost, restart=restart)
    assert spans(found) == {str(one.number): (one.start, one.end) for one in expected}
    assert [result == "CANCELED" for result in results(found).values()] == [one.canceled for one in expected]
    if mode == "requeue":
        assert found.jobs["saved"].tolist() == [one.saved for one in expected]
        assert sum(found.jobs["interruptions"]) > 0
