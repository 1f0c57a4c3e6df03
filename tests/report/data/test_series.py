"""Binned step functions against summing by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.report.data.series import binned, busiest
from simsched.report.metrics.metrics import time_average


def test_means_over_bins_by_hand():
    timeline = pd.DataFrame({"time": [0.0, 5.0, 20.0], "used_core": [4, 8, 0]})
    edges, means = binned(timeline, "used_core", 2)
    assert edges.tolist() == [0, 10, 20]
    assert means.tolist() == [(4 * 5 + 8 * 5) / 10, 8]
    assert busiest(timeline, "used_core", edges).tolist() == [8, 8]


@given(
    st.lists(st.tuples(st.floats(0.1, 50), st.integers(0, 9)), min_size=2, max_size=30), st.integers(1, 50)
)
def test_nothing_is_lost_whatever_the_bins(steps, bins):
    """The mean of the bins' means is the time average: thinning keeps the integral."""
    times = np.cumsum([s[0] for s in steps])
    timeline = pd.DataFrame({"time": times, "x": [s[1] for s in steps]})
    edges, means = binned(timeline, "x", bins)
    assert means.mean() == pytest.approx(time_average(timeline, "x"), abs=1e-9)
    assert busiest(timeline, "x", edges).max() == timeline["x"][:-1].max()


def test_bins_before_the_first_row_are_unknown_and_the_last_row_holds_on():
    timeline = pd.DataFrame({"time": [10.0, 20.0], "x": [1, 3]})
    _, means = binned(timeline, "x", 4, (0, 40))
    assert np.isnan(means[0])
    assert means[1:].tolist() == [1, 3, 3]


def test_an_empty_timeline():
    edges, means = binned(pd.DataFrame({"time": [], "x": []}), "x", 3)
    assert len(edges) == 4
    assert np.isnan(means).all()
    assert np.isnan(busiest(pd.DataFrame({"time": [], "x": []}), "x", edges)).all()
