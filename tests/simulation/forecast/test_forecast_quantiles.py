"""Quantiles of starts: their arithmetic, their coverage, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.errors import ConfigError
from simsched.simulation.forecast.forecast_quantiles import (
    DAY,
    WEEK,
    censored_quantiles,
    learn,
    read_levels,
)
from simsched.simulation.forecast.horizon_errors import horizon_errors
from simsched.simulation.forecast.past_forecasts import PastForecasts
from simsched.simulation.forecast.start_times import forecast_with_past
from tests.simulation.simworld import job, machine, workload

LEVELS = (0.1, 0.5, 0.9)


def past_of(rng, weeks=40, each=200, drift=0.0, unit=WEEK):
    """Forecasts whose real waits are horizons times a factor, which may drift from week to week."""
    times = np.sort(rng.uniform(0, weeks * unit, weeks * each))
    horizons = rng.lognormal(9, 1, len(times))
    factor = rng.lognormal(-0.5 + drift * times / unit, 0.6)
    places, sizes = rng.integers(1, 40, len(times)), 2.0 ** rng.integers(0, 6, len(times))
    started = np.ones(len(times), dtype=bool)
    waits = horizons * factor
    return PastForecasts(times, horizons, waits, started, places, sizes, 0.0, weeks * unit)


@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_coverage_on_weeks_that_had_no_part(drift):
    rng = np.random.default_rng(5)
    shares = [learn(past_of(rng, drift=drift), LEVELS).check.coverage for _ in range(3)]
    assert np.abs(np.mean(shares, axis=0) - LEVELS).max() < 0.03


def test_a_check_that_uses_the_future_would_be_seen():
    """The forecasts of a week after which everything changes are not covered by earlier quantiles."""
    past = past_of(np.random.default_rng(1), weeks=20)
    after = past.times >= 19 * WEEK
    past.waits[after] *= 100
    shares = learn(past, LEVELS).check.shares
    assert shares[-1].max() < 0.1
    assert shares[:-1, 1].mean() > 0.4


def test_quantiles_of_censored_values():
    rng = np.random.default_rng(2)
    values, levels = rng.integers(0, 50, 300).astype(float), np.array([0.05, 0.3, 0.5, 0.95])
    known = np.ones(300, dtype=bool)
    exact = np.quantile(values, levels, method="inverted_cdf")
    assert censored_quantiles(values, known, levels).tolist() == exact.tolist()
    hidden = rng.integers(0, 50, 300).astype(float)
    observed = np.minimum(values, hidden)
    found = censored_quantiles(observed, values <= hidden, levels)
    survival, times = 1.0, []
    for time in np.unique(observed):  # the estimator as the paper has it
        ends = int(((observed == time) & (values <= hidden)).sum())
        survival *= 1 - ends / int((observed >= time).sum())
        times.append((time, survival))
    assert found.tolist() == [
        next((time for time, left in times if left <= 1 - level + 1e-12), np.inf) for level in levels
    ]


def test_quantiles_do_not_cross_and_are_after_now():
    learnt = learn(past_of(np.random.default_rng(3)), LEVELS)
    found = learnt.of(np.array([0.0, 60.0, 1e5]), np.array([1, 3, 90]), np.array([1.0, 4.0, 32.0]))
    assert (found >= 0).all()
    assert (np.diff(found, axis=1) >= 0).all()


def test_a_queue_without_errors_has_quantiles_at_its_forecast():
    jobs = [job(n, n * 20_000, f"slot={1 + n * 7 % 4}/core", 7200 * (1 + n * 5 % 9)) for n in range(60)]
    at, found, past = forecast_with_past(machine(4), workload(*jobs), 13 * DAY, queue_policy="conservative")
    done = learn(past, LEVELS).added_to(found, at)
    assert done
    for item in done:
        assert item.quantiles == pytest.approx([item.start] * 3, abs=1e-3)
    assert learn(past, LEVELS).check.coverage.min() > 0.98  # jobs that have not started count as late


def test_errors_by_horizon():
    zeros = np.zeros(4)
    horizons, waits = np.array([300.0, 500.0, 4000.0, 5000.0]), np.array([900.0, 100.0, 4000.0, 20_000.0])
    known = np.array([True, True, True, False])
    past = PastForecasts(zeros, horizons, waits, known, np.ones(4, dtype=int), zeros + 1, 0.0, 1e6)
    first, second = horizon_errors(past)
    assert (first.least, first.most, first.forecasts) == (0, 600, 2)
    assert (first.bias, first.absolute, first.median, first.earlier) == (100, 500, 100, 0.5)
    assert (second.forecasts, second.bias, second.within_twofold) == (1, 0, 1)


@pytest.mark.parametrize("text", ["", "0.1,", "1", "0", "nan", "0.1;0.9", "-5%", "101%"])
def test_levels_that_are_none(text):
    with pytest.raises(ConfigError, match="is not the level of a quantile"):
        read_levels(text, "--quantiles")


def test_levels():
    assert read_levels("90%, 0.1,0.1", "here") == (0.1, 0.9)


def test_a_short_past_is_refused():
    with pytest.raises(ConfigError, match="too little to learn from"):
        learn(past_of(np.random.default_rng(1), weeks=5, unit=DAY), LEVELS)
    quiet = [job(n, n * DAY, "slot=1/core", 60) for n in range(30)]
    with pytest.raises(ConfigError, match="0 forecasts of waiting jobs"):
        learn(forecast_with_past(machine(2), workload(*quiet))[2], LEVELS)
