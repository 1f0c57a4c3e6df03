"""A Gantt chart without allocations: jobs packed into as many rows as they held units.

Each job takes the lowest free rows while it runs.  The rows are not the cores or nodes that
it had; how many were in use and by whom is true, where they lay is not said.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    import numpy.typing as npt

Ranges = list[tuple[int, int]]


class Lanes:
    """Rows 0, 1, 2 … without end; free ones are disjoint ascending half-open ranges, the last one endless.

    >>> lanes = Lanes()
    >>> a, b = lanes.take(2), lanes.take(3)
    >>> lanes.give(a)
    >>> lanes.take(4)
    [(0, 2), (5, 7)]
    """

    ENDLESS = 2**62

    def __init__(self) -> None:
        self._free: Ranges = [(0, self.ENDLESS)]

    def take(self, count: int) -> Ranges:
        """Take the lowest `count` free rows; O(ranges taken)."""
        free, taken, at = self._free, [], 0
        while count:
            low, high = free[at]
            until = min(high, low + count)
            taken.append((low, until))
            count -= until - low
            at += 1
        low, high = taken[-1][1], free[at - 1][1]
        free[:at] = [(low, high)] if low < high else []
        return taken

    def give(self, ranges: Ranges) -> None:
        """Give rows back; O(log n) a range, and the shift of a list."""
        free = self._free
        for low, high in ranges:
            at = bisect_left(free, (low, high))
            begin, end = at, at
            if at and free[at - 1][1] == low:
                low, begin = free[at - 1][0], at - 1  # noqa: PLW2901 - the range grows
            if at < len(free) and free[at][0] == high:
                high, end = free[at][1], at + 1  # noqa: PLW2901 - the range grows
            free[begin:end] = [(low, high)]

    def _check(self) -> None:
        """Assert that free ranges ascend, do not touch, and end endless."""
        assert all(low < high for low, high in self._free)
        assert all(a[1] < b[0] for a, b in zip(self._free, self._free[1:], strict=False))
        assert self._free[-1][1] == self.ENDLESS


def packed(
    start: npt.NDArray[np.float64], end: npt.NDArray[np.float64], units: npt.NDArray[np.int64]
) -> pd.DataFrame:
    """Return one row a rectangle: job (its position), start, end (s), low, high (rows, half open).

    Jobs take their rows in the order of their starts, and rows that are given back at an
    instant can be had at that instant.  Jobs of no units have none.  Ordered by start.
    """
    lanes, rows = Lanes(), []
    ends: list[tuple[float, int, Ranges]] = []
    order = np.flatnonzero(units > 0)[np.argsort(start[units > 0], kind="stable")]
    for job, begin, until, count in zip(
        order.tolist(), start[order].tolist(), end[order].tolist(), units[order].tolist(), strict=True
    ):
        while ends and ends[0][0] <= begin:
            lanes.give(heappop(ends)[2])
        taken = lanes.take(count)
        heappush(ends, (until, job, taken))
        rows += [(job, begin, until, low, high) for low, high in taken]
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return pd.DataFrame(table, columns=["job", "start", "end", "low", "high"])
