"""Forecasts of the past leave the run as it is, and are those that `forecast` gives at the same time."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.simulation.forecast.past_forecasts import ForecastSampler, predicted
from simsched.simulation.forecast.start_times import forecast, forecast_with_past
from simsched.simulation.options.run_config import make_config
from simsched.simulation.simulate import engine_of
from tests.simulation.simworld import job, machine, workload
from tests.study.search.loglab import machine_and_log

RULES = (
    {"queue_policy": "fcfs"},
    {"queue_policy": "easy"},
    {"queue_policy": "easy", "order": "wfp3"},
    {"queue_policy": "easy", "queue_options": {"queue_depth": 3}},
    {"queue_policy": "easy", "predictor": "last-two"},
    {"queue_policy": "conservative"},
    {"queue_policy": "conservative", "order": "sjf", "queue_options": {"compress": "start"}},
    {"queue_policy": "conservative", "queue_options": {"compress": "replan"}},
    {"queue_policy": "hybrid", "queue_options": {"depth": 2}},
    {"queue_policy": "selective"},
    {"queue_policy": "slack"},
    {"queue_policy": "slurm"},
    {"queue_policy": "easy", "limits": [{"each": "user", "running-jobs": 2}]},
    {"queue_policy": "easy", "epilog": "5m"},
)


def played(rules, *, sampled, jobs=250):
    cluster, log = machine_and_log(jobs=jobs, days=6)
    engine, _, _ = engine_of(cluster, log, make_config(**rules), allocations=False)
    sampler = ForecastSampler(engine, *log.span) if sampled else None
    engine.run()
    return engine.recorder.start, sampler


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_forecasts_do_not_change_the_run(rules):
    plain, _ = played(rules, sampled=False)
    starts, sampler = played(rules, sampled=True)
    assert starts == plain
    found = sampler.found()
    assert len(found) > 50
    assert (found.waits >= 0).all()
    assert found.started.all()


@pytest.mark.parametrize("policy", ["easy", "conservative", "hybrid"])
def test_they_are_the_forecasts_of_that_time(policy):
    cluster, log = machine_and_log(jobs=250, days=6)
    config = make_config(queue_policy=policy)
    for at in (100_000, 250_000, 400_000):
        engine, _, _ = engine_of(cluster, log, config, allocations=False)
        engine.run(until=at)
        (group,) = engine.queues
        mine = [(str(log.jobs[n].id), place, start) for n, place, start in predicted(group, at)]
        found = forecast(cluster, log, at, queue_policy=policy)
        assert mine == [(item.id, item.place, item.start) for item in found]


def test_exact_requests_under_conservative_have_no_error():
    jobs = [job(n, 0, f"slot={1 + n * 7 % 4}/core", 3600 * (1 + n * 5 % 9)) for n in range(40)]
    late = job("late", 20 * 86_400, "slot=1/core", 5)
    _, _, past = forecast_with_past(machine(4), workload(*jobs, late), queue_policy="conservative")
    assert len(past) > 100
    assert np.abs(past.waits - past.horizons).max() == 0


def test_many_forecasts_are_thinned_out(monkeypatch):
    from simsched.simulation.forecast import past_forecasts

    whole = played({}, sampled=True)[1].found()
    monkeypatch.setattr(past_forecasts, "MOST_FORECASTS", len(whole) // 2)
    starts, sampler = played({}, sampled=True)
    found = sampler.found()
    assert starts == played({}, sampled=False)[0]
    assert 0 < len(found) <= len(whole) // 2
    rows = {(t, h, w) for t, h, w in zip(whole.times, whole.horizons, whole.waits, strict=True)}
    assert rows.issuperset(zip(found.times, found.horizons, found.waits, strict=True))
    assert np.ptp(found.times) > 0.8 * np.ptp(whole.times)


def test_what_was_known_at_a_time():
    cluster, log = machine_and_log(jobs=250, days=6)
    _, _, past = forecast_with_past(cluster, log)
    at = 300_000.0
    early = past.known_at(at)
    assert (early.times < at).all()
    assert (early.times + early.waits <= at).all()
    rows = past.times < at
    later = past.times[rows] + past.waits[rows] > at
    assert ((~early.started) == later).all()
    assert later.any()
