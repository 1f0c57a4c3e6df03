"""A run on a flat machine adds up its timeline at the end: it is the same as noted pass by pass."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from simsched.simulation.engine import Engine
from tests.simulation.simworld import job, machine, run

NODES = 8


def jobs_of(seed, shape):
    rng = np.random.default_rng(seed)
    now = np.cumsum(rng.integers(0, 30, 80))
    return [
        job(f"j{number}", int(submit), shape.format(rng.integers(1, NODES + 1)), int(run_time), int(limit))
        for number, (submit, run_time, limit) in enumerate(
            zip(now, rng.integers(0, 120, 80), rng.integers(1, 150, 80), strict=True)
        )
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize(("cores", "shape"), [(1, "slot={}/core"), (4, "slot={}/node")])
def test_same_records_with_and_without_allocations(seed, policy, cores, shape):
    jobs = jobs_of(seed, shape)
    plain = run(machine(NODES, cores), *jobs, policy=policy, allocations=False)
    later = run(machine(NODES, cores), *jobs, policy=policy)
    whole = run(machine(NODES, cores), *jobs, policy=policy, progress=lambda engine: None)
    assert later.log.text() == whole.log.text()
    assert len(later.log.text().splitlines()) == 2 * len(jobs)
    for table in ("jobs", "timeline"):
        expected = getattr(whole, table)
        for found in (getattr(plain, table), getattr(later, table)):
            assert list(found) == list(expected)
            for name, values in expected.items():
                same = found[name] == values
                assert (same | ((values != values) & (found[name] != found[name]))).all(), name


def odd_jobs(kind):
    """Jobs of which one never fits, and one may be cancelled or held."""
    jobs = jobs_of(3, "slot={}/core")
    changed = {
        "plain": {},
        "cancelled": {"cancel_at": jobs[20].submit + 7},
        "held": {"hold": True},
    }[kind]
    jobs[20] = msgspec.structs.replace(jobs[20], **changed)
    return [*jobs[:40], job("large", int(jobs[40].submit), f"slot={NODES + 1}/core", 5, 5), *jobs[40:]]


@pytest.mark.parametrize("until", [None, 0, 200, 700, 5000])
@pytest.mark.parametrize(("kind", "later"), [("plain", True), ("cancelled", False), ("held", False)])
def test_the_timeline_computed_later_is_that_of_the_passes(kind, later, until, monkeypatch):
    kept = []
    begin = Engine.run
    monkeypatch.setattr(
        Engine, "run", lambda engine, until: (kept.append(engine.recorder.later), begin(engine, until))[1]
    )
    found = run(machine(NODES), *odd_jobs(kind), until=until).timeline
    noted = run(machine(NODES), *odd_jobs(kind), until=until, progress=lambda engine: None).timeline
    assert [each is not None for each in kept] == [later, False]
    assert list(found) == list(noted)
    for name, values in noted.items():
        assert found[name].dtype == values.dtype
        assert found[name].tolist() == values.tolist(), name


def test_a_corrected_prediction_leaves_the_runs_as_they_are(monkeypatch):
    """Each job of ann runs longer than the two before it, so each is corrected while it runs."""
    kept = []
    release = Engine._free
    monkeypatch.setattr(
        Engine, "_free", lambda engine, *ended: (kept.append(engine.plan.runs), release(engine, *ended))[1]
    )
    jobs = [job(f"j{n}", 3 * n, "slot=1/core", 9 + n, 200, user="ann") for n in range(12)]
    found = run(machine(2, 4), *jobs, predictor="last-two")
    assert (found.jobs["result"] == "COMPLETED").all()
    assert len(kept) == 12
    assert None not in kept
