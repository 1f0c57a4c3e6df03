"""Arithmetic of tables of steps: the least values of columns in windows of rows, and types and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.graph.index.types import Ints

    Floats = npt.NDArray[np.float64]

CELLS = 1 << 22
"""Cells (length, row, column) of least values that are kept at a time."""


def least_in_windows(lines: Floats, begins: Ints, stops: Ints) -> Floats:
    """Return the least value of each line (last axis) in each window; no window ends at the last value.

    The time it takes grows with the lengths of the windows: it is for few lines.
    """
    places = np.empty(2 * len(begins), dtype=np.int64)
    places[::2], places[1::2] = begins, stops
    found: Floats = np.minimum.reduceat(lines, places, axis=-1)[..., ::2]
    return found


def sums_of_least(table: Ints | Floats, steps: Ints, stops: Ints) -> Floats:
    """Return for each window of rows the sum of the least values of the columns; windows ascend.

    The minima over windows of 1, 2, 4 … rows are computed one after the other, and two of them cover
    any window.
    """
    count, (rows, width) = len(steps), table.shape
    if not count:
        return np.zeros(0)
    if count == 1:
        return np.array([np.add.reduce(np.minimum.reduce(table[steps[0] : stops[0]]), dtype=np.float64)])
    level = np.frexp(stops - steps)[1] - 1  # the logarithm of the length, rounded down
    most = int(level.max())
    if (most + 1) * table.size > CELLS:
        half = count // 2
        low, high = int(stops[half - 1]), int(steps[half])
        first = sums_of_least(table[:low], steps[:half], stops[:half])
        return np.concatenate([first, sums_of_least(table[high:], steps[half:] - high, stops[half:] - high)])
    minima = np.empty((most + 1, rows, width), dtype=table.dtype)
    minima[0] = table
    for span in (1 << at for at in range(most)):
        at, left = span.bit_length(), rows - 2 * span + 1
        np.minimum(minima[at - 1, :left], minima[at - 1, span : span + left], out=minima[at, :left])
    least = np.minimum(minima[level, steps], minima[level, stops - (1 << level)])
    # the product takes a third of the time of a sum of short integers
    found: Floats = least.astype(np.float64) @ np.ones(width)
    return found


def smallest(most: int) -> type[np.signedinteger[Any]]:
    """Return the smallest type of integers for numbers up to `most`."""
    return np.int16 if most < 1 << 14 else np.int32 if most < 1 << 30 else np.int64


def padded(some: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return a copy whose last axis has another length."""
    found = np.zeros((*some.shape[:-1], size), dtype=some.dtype)
    length = min(size, some.shape[-1])
    found[..., :length] = some[..., :length]
    return found
