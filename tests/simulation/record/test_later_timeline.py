"""The timeline that follows from the jobs of a flat run is that whose rows are noted during the run."""

from __future__ import annotations

import numpy as np
import pytest

import simsched as ss
from simsched.simulation.record import later_timeline
from simsched.simulation.simulate import simulate
from tests.simulation.simworld import machine

LIMITS = {
    "none": [],
    "running jobs": [{"each": "user", "running-jobs": 2}],
    "cores": [{"each": "user", "cores": 12}, {"running-jobs": 9}],
    "that block": [{"each": "user", "nodes": 3, "blocks": True}],
    "hours": [{"each": "user", "node-hours": 2}, {"duration": 500}],
    "submitted jobs": [{"each": "user", "submitted-jobs": 4, "over": "hold"}],
    "submitted jobs that are rejected": [{"each": "user", "submitted-jobs": 4}],
}
SHAPES = {1: "slot={}/core", 4: "slot={}/node"}
"""Cores of a node → a request for whole nodes."""


def some_jobs(seed, cores=1, **of_the_twentieth):
    """Jobs at equal and at different times, of no length, too large, and of few users."""
    rng = np.random.default_rng(seed)
    submits = np.sort(rng.integers(0, 900, 80))
    shape = SHAPES[cores]
    return ss.Workload(
        tuple(
            ss.Job(
                id=at, submit=int(submit), runtime=int(rng.choice([0, 1, 40, 200, 700])), duration=500,
                user="abc"[rng.integers(3)],
                jobspec=ss.Jobspec.from_shape(shape.format(rng.choice([1, 1, 2, 3, 9])), duration=500),
                **(of_the_twentieth if at == 20 else {}),
            )
            for at, submit in enumerate(submits)
        )
    )  # fmt: skip


@pytest.fixture
def computed(monkeypatch):
    """The runs whose timeline was computed after them."""
    made = []
    rows = later_timeline.later_rows
    monkeypatch.setattr(later_timeline, "later_rows", lambda *given: made.append(1) or rows(*given))
    return made


def noted(*given, **options):
    """Return a run whose rows are noted, since something watches it."""
    return simulate(*given, progress=lambda *_: None, **options)


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", range(6))
def test_rows_are_those_that_are_noted(policy, limits, seed, computed):
    options = {
        "limits": LIMITS[limits],
        "until": (None, 600, 0, 5000)[seed % 4],
        "order": ("fifo", "sjf")[seed % 3 > 1],
    }
    given = machine(12, 1), some_jobs(seed), policy
    later = ss.simulate(*given, **options).timeline
    assert computed
    assert later.equals(ss.simulate(*given, progress=lambda *_: None, **options).timeline)
    assert len(computed) == 1


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("cores", SHAPES)
def test_records_are_the_same_with_and_without_allocations(policy, cores, computed):
    given = machine(8, cores), some_jobs(1, cores), policy
    plain, later = simulate(*given, allocations=False), simulate(*given)
    assert len(computed) == 2
    whole = noted(*given)
    assert later.log.text() == whole.log.text()
    for table in ("jobs", "timeline"):
        for name, expected in getattr(whole, table).items():
            for found in (plain, later):
                assert np.array_equal(
                    getattr(found, table)[name], expected, equal_nan=expected.dtype.kind == "f"
                )


@pytest.mark.parametrize("change", [{"cancel_at": 400.0}, {"hold": True}])
def test_rows_are_noted_where_more_than_jobs_changes_them(change, computed):
    simulate(machine(12, 1), some_jobs(3, **change))
    assert not computed
