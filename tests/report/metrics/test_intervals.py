"""Intervals of means over jobs that wait together, and the blocks that they are from."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.report.compare import compare
from simsched.report.metrics.intervals import (
    ENOUGH,
    FEWEST,
    WEEK,
    _standard_error,
    _turned,
    block_length,
    block_of,
    interval_of_periods,
    mean_interval,
    periods_of,
    student_quantile,
)

DAY = 86_400.0


def autoregressive(rng, count, by):
    """A series of which each value is `by` times the one before, and normal noise."""
    noise = rng.normal(size=count)
    series = np.zeros(count)
    for place in range(count):
        series[place] = (by * series[place - 1] if place else 0) + noise[place]
    return series


def days_of_jobs(rng, days, by=0.5, skew=0.8):
    """(waits, days) of 20 jobs a day: days follow each other, waits are log-normal; their mean."""
    level = autoregressive(rng, days + 50, by)[50:] * skew
    values = np.exp(np.repeat(level, 20) + rng.normal(0, 0.3, 20 * days))
    mean = math.exp(skew**2 / (1 - by**2) / 2 + 0.3**2 / 2)
    return pd.Series(values), pd.Series(np.repeat(np.arange(days), 20)), mean


# --- how long blocks are


def test_the_block_length_is_that_of_another_implementation():
    """Circular block lengths by the package arch 7.2 (`optimal_block_length`), of series made the same way.

    It drops one lag more than the paper before the correlations count as gone, hence the tolerance.
    """
    rng = np.random.default_rng(1)
    for count, by, theirs in ((30, 0.5, 1.772), (60, 0.8, 14.745), (365, 0.6, 9.826), (200, 0.95, 22.684)):
        series = autoregressive(rng, count, by)
        if count == 365:
            independent = block_length(autoregressive(rng, count, 0.0))
            assert independent == pytest.approx(2.442, rel=0.3)
        assert block_length(series) == pytest.approx(theirs, rel=0.3)


def test_the_block_length_of_a_long_series_is_the_one_of_theory():
    """[Politis04] 3.2 with [Patton09]: (3/2 (2 r / (1 - r²))² n)^(1/3) for an autoregression of order 1."""
    rng = np.random.default_rng(3)
    for by in (0.3, 0.6):
        theory = (1.5 * (2 * by / (1 - by**2)) ** 2 * 20_000) ** (1 / 3)
        found = [block_length(autoregressive(rng, 20_000, by)) for _ in range(5)]
        assert np.mean(found) == pytest.approx(theory, rel=0.15)


@given(st.integers(1, 400), st.integers(0, 5))
def test_blocks_are_runs_of_whole_periods_of_about_one_length(number, seed):
    rng = np.random.default_rng(seed)
    periods = pd.Series(np.sort(rng.integers(0, number, 600)))
    labels = block_of(rng.exponential(1, 600), periods)
    assert labels[0] == 0
    assert set(np.diff(labels).tolist()) <= {0, 1}
    assert pd.Series(labels).groupby(periods).nunique().max() == 1
    held = periods.groupby(labels).nunique()
    assert held.max() - held.min() <= 1
    present = periods.nunique()
    assert labels.max() + 1 >= min(present, FEWEST)
    if present >= ENOUGH * WEEK and labels.max() + 1 > FEWEST:
        assert held.min() >= WEEK


def test_days_that_follow_each_other_make_longer_blocks():
    rng = np.random.default_rng(5)
    days = pd.Series(np.arange(300))
    alone = block_of(rng.normal(0, 1, 300), days).max() + 1
    together = block_of(autoregressive(rng, 300, 0.95), days).max() + 1
    assert alone == 300 // WEEK
    assert together < alone / 1.5


# --- how often they hold the truth


@pytest.mark.parametrize(("days", "by"), [(28, 0.0), (28, 0.5), (70, 0.5), (140, 0.3)])
def test_intervals_hold_the_truth_nearly_as_often_as_they_say(days, by):
    """Skewed days that follow each other: a percentile bootstrap of days covers 70 to 85 % of the cases."""
    rng = np.random.default_rng(days)
    held = []
    for _ in range(300):
        values, periods, mean = days_of_jobs(rng, days, by)
        held.append(mean_interval(values, periods).holds(mean))
    assert np.mean(held) >= 0.91


def test_the_interval_of_normal_values_is_not_needlessly_wide():
    """A hundred weeks of independent days: wider than the normal interval by a tenth at most."""
    rng = np.random.default_rng(2)
    values = pd.Series(rng.normal(5, 2, 700))
    found = mean_interval(values, pd.Series(np.arange(700)))
    half = 1.96 * 2 / math.sqrt(700)
    assert found.estimate == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2 * half, rel=0.35)


def test_the_correction_for_skewness_undoes_halls_cubic():
    for skew in (-0.5, -1e-9, 0.0, 0.2, 0.7):
        for t in (-3.0, -1.0, 0.0, 2.0):
            x = _turned(t, skew)
            assert x + skew * x**2 / 3 + skew**2 * x**3 / 27 + skew / 6 == pytest.approx(t, abs=1e-6)


@given(st.integers(0, 1000))
def test_an_interval_turns_round_with_its_values(seed):
    values, periods, _ = days_of_jobs(np.random.default_rng(seed), 30)
    there, back = mean_interval(values, periods), mean_interval(-values, periods)
    assert (back.low, back.high) == (pytest.approx(-there.high), pytest.approx(-there.low))
    assert there.low <= there.estimate <= there.high


def test_a_difference_of_zero_is_rarely_shown():
    """Symmetric differences around zero of days that follow each other: at most 11 of 100 are shown."""
    rng = np.random.default_rng(11)
    shown = []
    for _ in range(400):
        series = autoregressive(rng, 60, 0.4)[30:]
        shown.append(interval_of_periods(series * 20, np.full(30, 20)).excludes(0.0))
    assert np.mean(shown) <= 0.11


def test_the_standard_error_of_slow_waves_is_that_of_theory():
    """An autoregression of order 1 has a long-run variance of 1 / (1 - by)^2; days alone see far less."""
    rng = np.random.default_rng(12)
    for by in (0.0, 0.5):
        found = [_standard_error(autoregressive(rng, 450, by)[50:], 8) ** 2 * 400 for _ in range(300)]
        assert np.mean(found) == pytest.approx(1 / (1 - by) ** 2, rel=0.12)


def test_the_end_far_from_zero_is_that_of_usual_waits():
    """Days without any skewness: the interval still reaches farther away from zero than towards it."""
    days = np.tile([90.0, 110.0, 110.0, 90.0, 100.0], 8)
    found = interval_of_periods(days + np.linspace(-5, 5, 40), np.ones(40))
    assert found.high - found.estimate > 1.1 * (found.estimate - found.low)
    assert found.estimate == pytest.approx(100)


def test_the_bound_of_the_skewness_follows_students_t():
    """One busy day is as skewed as days can be: the far end is where the cubic is nearly vertical."""
    for days, waves in ((60, 3), (120, 5), (1000, 20)):
        series = np.ones(days)
        series[days // 3] = 1000.0
        found = interval_of_periods(series, np.ones(days))
        error = _standard_error(series - series.mean(), waves)
        t = student_quantile(0.95, waves)
        bound = 0.3 * student_quantile(0.95, 3) / t
        assert 0.9 < bound * t < 1
        assert found.high == pytest.approx(found.estimate - error * _turned(-t, bound))


# --- what is not known


def test_values_of_one_period_have_no_interval():
    found = mean_interval(pd.Series([1.0, 2.0, 4.0]), pd.Series([3, 3, 3]))
    assert (found.estimate, math.isnan(found.low), math.isnan(found.high)) == (7 / 3, True, True)
    assert not found.excludes(0.0)
    assert mean_interval(pd.Series([2.0, 2.0]), pd.Series([3, 3])).low == 2.0
    assert math.isnan(mean_interval(pd.Series([math.nan]), pd.Series([1])).estimate)
    assert interval_of_periods(np.array([2.0, 4.0]), np.array([1, 2])).low == 2.0


@pytest.mark.parametrize("span", [1.0, 3600.0, 2 * DAY, 27.9 * DAY, 28.1 * DAY, 400 * DAY])
def test_a_run_of_any_length_has_periods(span):
    submit = pd.Series(np.linspace(0, span, 2000))
    periods = periods_of(submit)
    assert periods.is_monotonic_increasing
    assert 28 <= periods.nunique() <= max(30, span / DAY + 1)
    assert set(periods_of(pd.Series([5.0, 5.0])).tolist()) == {0}


def test_jobs_submitted_at_one_time_show_no_difference(make_schedule):
    """Before, the one day of such a run was drawn again and again: an interval of length 0, and a verdict."""
    a = make_schedule(2, count=60).assign(submit=0.0)
    a = a.assign(start=1000.0, end=2000.0)
    b = a.assign(start=a["start"] - np.arange(60), end=a["end"] - np.arange(60))
    found = compare(a, b)
    assert found.wait.estimate == pytest.approx(-29.5)
    assert found.verdict == "within noise"
    assert found.certainty(str) == "interval not known"
    assert found.periods == 1


def test_a_comparison_says_what_its_interval_is_from(make_schedule):
    rng = np.random.default_rng(4)
    a = make_schedule(2, count=600).assign(submit=np.linspace(0, 30 * DAY, 600))
    a = a.assign(start=a["submit"] + 9000.0, end=a["submit"] + 9900.0)
    gain = rng.exponential(600, 600)
    found = compare(a, a.assign(start=a["start"] - gain, end=a["end"] - gain))
    assert found.verdict == "waits less"
    assert (found.periods, found.period) == (31, DAY)
    words = found.certainty(lambda seconds: f"{seconds:.0f} s")
    assert words == f"95 % between {found.wait.low:.0f} s and {found.wait.high:.0f} s, from 31 periods of 1 d"
