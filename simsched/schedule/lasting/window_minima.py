"""Arithmetic of tables of steps: the least values of columns in windows of rows, and types and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.graph.index.types import Ints

    Floats = npt.NDArray[np.float64]

CELLS = 1 << 22
"""Cells (length, table, row, column) of least values that are kept at a time."""

Number = TypeVar("Number", bound=np.generic)


def least_in_windows(
    tables: npt.NDArray[Number], which: Ints, begins: Ints, stops: Ints
) -> npt.NDArray[Number]:
    """Return the least values in windows of rows: shape (windows, …); the begins of the windows ascend.

    `tables` has the shape (tables, rows, …). Of each window its table is given, its first row, and the row
    behind its last. The minima over windows of 1, 2, 4 … rows are computed one after the other, and two of
    them cover any window.
    """
    count, (number, rows, *cells) = len(begins), tables.shape
    if not count:
        return np.empty((0, *cells), dtype=tables.dtype)
    if count == 1:
        window = tables[which[0], begins[0] : stops[0]]
        return np.minimum.reduce(window, axis=0, keepdims=True)
    level = np.frexp(stops - begins)[1] - 1  # the logarithm of the length, rounded down
    most = int(level.max())
    if (most + 1) * tables.size > CELLS:
        halves = slice(count // 2), slice(count // 2, None)
        return np.concatenate([_of_part(tables, which[some], begins[some], stops[some]) for some in halves])
    minima = np.empty((most + 1, *tables.shape), dtype=tables.dtype)
    minima[0] = tables
    for span in (1 << at for at in range(most)):
        at, left = span.bit_length(), rows - 2 * span + 1
        one, other = minima[at - 1, :, :left], minima[at - 1, :, span : span + left]
        np.minimum(one, other, out=minima[at, :, :left])
    lines = minima.reshape(-1, *cells)
    first = (level * number + which) * rows + begins
    last = first + (stops - begins) - (1 << level)
    found: npt.NDArray[Number] = np.minimum(lines.take(first, axis=0), lines.take(last, axis=0))
    return found


def _of_part(tables: npt.NDArray[Number], which: Ints, begins: Ints, stops: Ints) -> npt.NDArray[Number]:
    """Return `least_in_windows`, of the rows that the windows reach."""
    low, high = int(begins[0]), int(stops.max())
    return least_in_windows(tables[:, low:high], which, begins - low, stops - low)


def sums_of_least(table: Ints, begins: Ints, stops: Ints) -> Floats:
    """Return for each window of rows the sum of the least values of the columns; begins ascend."""
    least = least_in_windows(table[None], np.zeros(len(begins), dtype=np.int64), begins, stops)
    # the product takes a third of the time of a sum of short integers
    found: Floats = least.astype(np.float64) @ np.ones(table.shape[1])
    return found


def distinct(numbers: Ints, stop: int) -> tuple[Ints, Ints]:
    """Return the different ones of some numbers below `stop`, and of each number its place in them."""
    place = np.zeros(stop, dtype=np.int64)
    place[numbers] = 1
    found = place.nonzero()[0]
    place[found] = np.arange(len(found))
    return found, place[numbers]


def smallest(most: int) -> type[np.signedinteger[Any]]:
    """Return the smallest type of integers for numbers up to `most`."""
    return np.int16 if most < 1 << 14 else np.int32 if most < 1 << 30 else np.int64


def padded(some: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return a copy whose last axis has another length."""
    found = np.zeros((*some.shape[:-1], size), dtype=some.dtype)
    length = min(size, some.shape[-1])
    found[..., :length] = some[..., :length]
    return found
