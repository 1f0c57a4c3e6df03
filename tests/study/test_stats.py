"""Intervals and paired differences over seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ConfigError
from simsched.study.stats import (
    interval,
    paired_difference,
    prediction,
    student_quantile,
)

numbers = st.floats(-1e6, 1e6)
samples = st.lists(numbers, min_size=10, max_size=14)


@given(samples)
@settings(max_examples=40)
def test_an_interval_holds_its_mean(values):
    found = interval(values)
    assert found.low <= found.estimate <= found.high
    assert found.estimate == pytest.approx(np.mean(values))


@given(samples, st.floats(-100, 100).filter(lambda factor: abs(factor) > 0.01))
@settings(max_examples=40)
def test_an_interval_scales_and_turns_round_with_its_values(values, factor):
    before, after = interval(values), interval([value * factor for value in values])
    ends = sorted((before.low * factor, before.high * factor))
    size = abs(before.high - before.low) * abs(factor) + 1e-6
    assert (after.low, after.high) == (
        pytest.approx(ends[0], abs=1e-6 * size),
        pytest.approx(ends[1], abs=1e-6 * size),
    )


@pytest.mark.parametrize("count", [3, 5, 10, 20])
def test_intervals_of_skewed_values_cover_the_mean(count):
    """Means of months are about log-normal with a deviation of a half; Student alone covers 90 to 93 %."""
    rng = np.random.default_rng(count)
    mean = math.exp(0.5**2 / 2)
    for sign in (1, -1):
        covered = [interval(sign * rng.lognormal(0, 0.5, count)).holds(sign * mean) for _ in range(1500)]
        assert 0.925 <= np.mean(covered) <= 0.98


def test_more_confidence_is_a_wider_interval():
    values = np.random.default_rng(1).normal(0, 1, 12)
    narrow, wide = interval(values, 0.8), interval(values, 0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("count", "least"), [(2, 0.93), (3, 0.93), (4, 0.93), (5, 0.93), (9, 0.93), (10, 0.93), (20, 0.93)]
)
def test_intervals_of_small_samples_cover_the_mean_nearly_as_often_as_they_say(count, least):
    """Of five values a percentile interval of a bootstrap would cover 84 %."""
    rng = np.random.default_rng(7)
    covered = [interval(rng.normal(3, 2, count)).holds(3) for _ in range(800)]
    assert least <= np.mean(covered) <= 0.98


@pytest.mark.parametrize(
    ("confidence", "freedom", "tabled"),
    [
        (0.95, 1, 12.706),
        (0.95, 2, 4.303),
        (0.95, 3, 3.182),
        (0.9, 4, 2.132),
        (0.95, 5, 2.571),
        (0.99, 10, 3.169),
        (0.95, 30, 2.042),
        (0.95, 120, 1.980),
    ],
)
def test_the_quantiles_of_student_are_those_of_the_tables(confidence, freedom, tabled):
    assert student_quantile(confidence, freedom) == pytest.approx(tabled, abs=6e-4)


def test_what_is_not_known_is_said_so():
    assert math.isnan(interval([]).estimate)
    one = interval([4.0, math.nan])
    assert (one.estimate, math.isnan(one.low), math.isnan(one.high)) == (4.0, True, True)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=10))
@settings(max_examples=40)
def test_swapping_the_two_turns_the_difference_round(pairs):
    a, b = zip(*pairs, strict=True)
    there, back = paired_difference(a, b), paired_difference(b, a)
    assert there.interval.estimate == pytest.approx(-back.interval.estimate)
    assert (there.lower, there.equal, there.higher) == (back.higher, back.equal, back.lower)
    assert there.pairs == len(pairs) == there.lower + there.equal + there.higher


def test_pairs_show_what_means_cannot():
    """Common random numbers: seeds differ by hours, the two by a minute in every one of them."""
    rng = np.random.default_rng(3)
    a = rng.uniform(1, 10, 8) * 3600
    b = a - 60 + rng.normal(0, 5, 8)
    found = paired_difference(a, b)
    assert found.verdict == "lower"
    assert found.interval.estimate == pytest.approx(-60, abs=8)
    assert found.relative == pytest.approx(found.interval.estimate / a.mean())
    assert paired_difference(a, rng.permutation(b)).verdict == "within noise"


def test_two_seeds_of_one_sign_are_no_verdict():
    """By chance alone two pairs differ in the same sense in half of the cases; the paired t says so."""
    found = paired_difference([100, 200], [90, 195])
    assert found.verdict == "within noise"
    assert found.interval.estimate == pytest.approx(-7.5)
    assert found.interval.high == pytest.approx(-7.5 + 12.706 * 2.5, abs=0.01)  # s / sqrt(2) = 2.5
    assert found.interval.low < -7.5 - 12.706 * 2.5
    assert paired_difference([100, 200], [90, 190.2]).verdict == "lower"


def test_verdicts():
    assert paired_difference([1, 2, 3], [1, 2, 3]).verdict == "same"
    assert paired_difference([1, 2, 3, 4], [3, 4, 5.5, 6]).verdict == "higher"
    assert paired_difference([1, 2, 3, 4], [3, 0, 5, 1]).verdict == "within noise"
    assert paired_difference([1], [2]).verdict == "within noise"
    left = paired_difference([1, math.nan, 3, 4], [0, 5, 2, math.inf])
    assert (left.pairs, left.lower) == (2, 2)


def test_the_same_values_give_the_same_interval():
    assert interval([1, 5, 2, 8]) == interval([1, 5, 2, 8])


def test_what_is_no_sample_is_refused():
    with pytest.raises(ConfigError, match=r"a confidence of 1\.5"):
        interval([1, 2], 1.5)
    with pytest.raises(ConfigError, match="a has 2 values and b has 3"):
        paired_difference([1, 2], [1, 2, 3])


def test_one_further_value_is_predicted_as_often_as_promised():
    rng = np.random.default_rng(5)
    draws = rng.normal(3, 2, (2000, 6))
    held = [prediction(row[:5], 0.9).holds(row[5]) for row in draws]
    assert np.mean(held) == pytest.approx(0.9, abs=0.02)
    assert math.isnan(prediction([1.0]).low)


def test_a_difference_without_values_is_unknown():
    nothing = float("nan")
    assert paired_difference([nothing, nothing], [1, 2]).verdict == "unknown"
    assert paired_difference([1, nothing], [2, nothing]).verdict == "within noise"
