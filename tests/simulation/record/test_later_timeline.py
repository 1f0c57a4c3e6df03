"""The timeline that follows from the jobs of a flat run is that whose rows are noted during the run."""

from __future__ import annotations

import numpy as np
import pytest

import simsched as ss
from simsched.simulation.record import later_timeline
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


def some_jobs(seed):
    """Jobs at equal and at different times, of no length, too large, and of few users."""
    rng = np.random.default_rng(seed)
    submits = np.sort(rng.integers(0, 900, 80))
    return ss.Workload(
        tuple(
            ss.Job(
                id=at, submit=int(submit), runtime=int(rng.choice([0, 1, 40, 200, 700])), duration=500,
                user="abc"[rng.integers(3)],
                jobspec=ss.Jobspec.from_shape(f"slot={rng.choice([1, 1, 2, 3, 9])}/node", duration=500),
            )
            for at, submit in enumerate(submits)
        )
    )  # fmt: skip


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", range(6))
def test_rows_are_those_that_are_noted(policy, limits, seed, monkeypatch):
    made = []
    rows = later_timeline.later_rows
    monkeypatch.setattr(later_timeline, "later_rows", lambda *given: made.append(1) or rows(*given))
    options = {
        "limits": LIMITS[limits],
        "until": (None, 600)[seed % 2],
        "order": ("fifo", "sjf")[seed % 3 > 1],
    }
    later = ss.simulate(machine(12, 1), some_jobs(seed), policy, **options).timeline
    assert made  # not noted
    noted = ss.simulate(machine(12, 1), some_jobs(seed), policy, progress=lambda *_: None, **options).timeline
    assert len(made) == 1
    assert later.equals(noted)
