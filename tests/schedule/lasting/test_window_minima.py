"""The least values over windows of a table of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.schedule.lasting import window_minima
from simsched.schedule.lasting.window_minima import distinct, least_in_windows, sums_of_least


@pytest.mark.parametrize("cells", [1 << 22, 100])  # at once, and in parts
@pytest.mark.parametrize("seed", range(20))
def test_least_values_of_windows_are_those_of_each_window_by_itself(seed, cells, monkeypatch):
    monkeypatch.setattr(window_minima, "CELLS", cells)
    rng = np.random.default_rng(seed)
    rows, count = int(rng.integers(1, 40)), int(rng.integers(0, 20))
    table = rng.integers(0, 9, (rows, 5)).astype(np.int16)
    steps = np.unique(rng.integers(0, rows, count))
    stops = np.maximum.accumulate(np.minimum(steps + rng.integers(1, 12, len(steps)), rows))
    found = sums_of_least(table, steps, stops)
    assert found.tolist() == [
        table[low:high].min(axis=0).sum() for low, high in zip(steps.tolist(), stops.tolist(), strict=True)
    ]


@pytest.mark.parametrize("cells", [1 << 22, 100])
@pytest.mark.parametrize("seed", range(20))
def test_least_values_in_windows_of_several_tables(seed, cells, monkeypatch):
    monkeypatch.setattr(window_minima, "CELLS", cells)
    rng = np.random.default_rng(seed)
    rows, count, number = int(rng.integers(1, 40)), int(rng.integers(0, 20)), int(rng.integers(1, 4))
    tables = rng.integers(0, 99, (number, rows, 2, 3))
    begins = np.sort(rng.integers(0, rows, count))
    stops = rng.integers(begins + 1, rows + 1)
    which = rng.integers(0, number, count)
    found = least_in_windows(tables, which, begins, stops)
    assert found.shape == (count, 2, 3)
    for at, least in enumerate(found):
        assert np.array_equal(least, tables[which[at], begins[at] : stops[at]].min(axis=0))
    lines = least_in_windows(tables[:, :, 0, 0], which, begins, stops)
    assert np.array_equal(lines, found[:, 0, 0])


@given(st.lists(st.integers(0, 9)))
def test_distinct_numbers_and_their_places(numbers):
    found, places = distinct(np.array(numbers, dtype=np.int64), 10)
    assert found.tolist() == sorted(set(numbers))
    assert found[places].tolist() == numbers
