"""The least values over windows of a table of rows."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.schedule.lasting import window_minima
from simsched.schedule.lasting.window_minima import least_in_windows, sums_of_least


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
    some = rng.permutation(len(steps))
    lows, highs = steps[some], stops[some]
    lines = np.concatenate([table.T, np.zeros((5, 1))], axis=1)  # a window may end behind the last row
    for low, high, least in zip(
        lows.tolist(), highs.tolist(), least_in_windows(lines, lows, highs).T, strict=True
    ):
        assert least.tolist() == table[low:high].min(axis=0).tolist()
