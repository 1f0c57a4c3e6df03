"""A run that is cut off, and what can be said of those who wait then."""

from __future__ import annotations

import pytest

from simsched.errors import ConfigError
from simsched.simulation.forecast.start_times import forecast
from tests.simulation.simworld import job, machine, results, run, starts, workload

QUEUE = (
    job("A", 0, "slot=3/core", 2, 6, user="ann"),
    job("B", 1, "slot=4/core", 4),
    job("C", 1, "slot=2/core", 9),
    job("D", 2, "slot=2/core", 3),
    job("E", 9, "slot=1/core", 3),
)


def test_a_run_until_a_time_includes_everything_that_happens_at_it():
    found = run(machine(4), *QUEUE, until=2)
    assert starts(found) == {"A": 0, "B": 2}
    assert results(found) == {
        "A": "COMPLETED",
        "B": "RUNNING",
        "C": "PENDING",
        "D": "PENDING",
        "E": "PENDING",
    }
    assert found.meta["complete"]
    assert found.meta["until"] == 2
    assert starts(run(machine(4), *QUEUE, until=100)) == starts(run(machine(4), *QUEUE))


def test_forecasts_go_by_what_was_asked_for():
    """At 1 nobody knows that A will end at 2: B is promised 6, C and D come after it side by side."""
    found = forecast(machine(4), workload(*QUEUE), 1)
    assert [(x.id, x.place, x.start) for x in found] == [("B", 1, 6), ("C", 2, 10)]
    found = forecast(machine(4), workload(*QUEUE), 2)
    assert [(x.id, x.place, x.start) for x in found] == [("C", 1, 6), ("D", 2, 6)]


def test_behind_a_job_without_a_limit_nobody_knows():
    found = forecast(machine(1), workload(job("A", 0, "slot=1/core", 9, float("inf")), *QUEUE[4:]), 9)
    assert [(x.id, x.start) for x in found] == []
    queue = (job("A", 0, "slot=1/core", 20, float("inf")), *QUEUE[4:])
    assert [(x.id, x.start) for x in forecast(machine(1), workload(*queue), 9)] == [("E", float("inf"))]


def test_where_all_requests_are_exact_conservative_keeps_its_forecast():
    """Law: with exact estimates and nobody new, conservative starts every job when it was forecast."""
    jobs = [job(n, 0, f"slot={1 + n * 7 % 4}/core", 1 + n * 5 % 9) for n in range(30)]
    real = starts(run(machine(4), *jobs, policy="conservative"))
    for at in (0, 5, 17):
        for found in forecast(machine(4), workload(*jobs), at, queue_policy="conservative"):
            assert found.start == real[found.id]


def test_options_are_checked():
    with pytest.raises(ConfigError):
        forecast(machine(1), workload(), 0, queue_policy="esay")
