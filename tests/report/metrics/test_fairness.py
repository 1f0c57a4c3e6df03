"""Fairness: indices by hand, inversion counts against all pairs."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.report.metrics.fairness import fair_start_miss, jain, jain_of_users, overtaken


def test_jain_by_hand():
    assert jain(pd.Series([1.0, 2.0, 3.0])) == pytest.approx(36 / (3 * 14))
    assert math.isnan(jain(pd.Series([], dtype=float)))


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=20), st.floats(0.1, 100))
def test_jain_is_between_one_over_n_and_one_and_has_no_scale(values, factor):
    index = jain(pd.Series(values))
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert jain(pd.Series(values) * factor) == pytest.approx(index)


def test_jain_of_users_takes_the_mean_of_each_user(story):
    # ann: 1; bob: (10 + 3) / 2 = 6.5
    assert jain_of_users(story) == pytest.approx(7.5**2 / (2 * (1 + 6.5**2)))
    assert math.isnan(jain_of_users(story.assign(user=None)))


def test_fair_start_miss_by_hand(story):
    fair = story.assign(start=[0, 40, 100, math.nan, math.nan], end=[100, 50, 140, math.nan, math.nan])
    found = fair_start_miss(story, fair)
    assert (found.jobs, found.missed, found.total_miss, found.mean_miss) == (3, 1, 60, 20)
    assert found.share == pytest.approx(1 / 3)


def test_nobody_is_missed_by_the_run_that_sets_the_measure(story):
    assert fair_start_miss(story, story).missed == 0


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_overtaken_equals_counting_all_pairs(make_schedule, seed, count):
    jobs = make_schedule(seed, count=count)
    starts = jobs.sort_values("submit", kind="stable")["start"].tolist()
    expected = [sum(later < mine for later in starts[i + 1 :]) for i, mine in enumerate(starts)]
    assert overtaken(jobs).tolist() == expected
