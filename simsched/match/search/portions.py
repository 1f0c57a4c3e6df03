"""Portions: copies and units taken from candidates one after the other, until the wanted number is met."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.match.search.counts import MANY

if TYPE_CHECKING:
    from simsched.arrays import Integers
    from simsched.graph.index.reach import View

BLOCK = 512
"""Candidates in the first block that is read in a fixed order; each further block is twice as long."""


def first_copies(
    fits: Integers, wanted: int, among: Integers | None, most: int = MANY, *, total: int = MANY
) -> tuple[Integers, Integers | int]:
    """Take `wanted` copies from candidates in a fixed order (None: all, in graph order).

    Returns the candidates and how many copies of each (one number: the same of all).  Reads one
    block of candidates at a time, so that a mostly idle cluster is not read to its end.  The first
    block would suffice if the `total` of all copies were spread evenly.
    """
    size = len(fits) if among is None else len(among)
    if among is None and size <= BLOCK:  # one block of a small machine
        found = fits.nonzero()[0][:wanted].copy()  # a copy, so that the selection does not keep the block
        return (found, 1) if wanted == 1 or most == 1 else counted(found, fits[found], wanted, most)
    # wanted / total of all copies should be in wanted / total of all candidates
    low, block, left = 0, max(BLOCK, wanted * size // total), wanted
    parts: list[Integers] = []
    numbers: list[Integers] = []
    while True:
        high = low + block
        if among is None:
            found = fits[low:high].nonzero()[0]
            if low:
                found += low
        else:
            found = among[low:high]
            found = found[fits[found] > 0]
        if (
            len(found) > left
        ):  # each hosts at least one; a copy, so that the selection does not keep the block
            found = found[:left].copy()
        parts.append(found)
        if most != 1:
            numbers.append(fits[found] if most == MANY else np.minimum(fits[found], most))
        if high >= size or len(found) == left:
            break
        left -= len(found) if most == 1 else int(np.add.reduce(numbers[-1]))
        if left <= 0:
            break
        low, block = high, 2 * block
    found = _joined(parts)
    return (found, 1) if most == 1 else _cut(found, _joined(numbers), wanted)


def counted(found: Integers, numbers: Integers, wanted: int, most: int) -> tuple[Integers, Integers | int]:
    """Return the first candidates that make up `wanted` copies, at most `most` each, and how many of each."""
    if most == 1:
        return found, 1
    return _cut(found, numbers if most == MANY else np.minimum(numbers, most), wanted)


def _cut(found: Integers, numbers: Integers, wanted: int) -> tuple[Integers, Integers | int]:
    """Return the first candidates that make up `wanted` copies, the last of them in part."""
    if wanted == 1:
        return found, 1
    sums = np.add.accumulate(numbers[:wanted])  # each candidate hosts at least one copy
    last = int(np.count_nonzero(sums < wanted))
    if last + 1 == wanted:  # one copy from each: no array of numbers is needed
        return found[:wanted], 1
    numbers = numbers[: last + 1].copy()
    numbers[last] -= sums.item(last) - wanted
    return found[: last + 1], numbers


def _joined(parts: list[Integers]) -> Integers:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def portions(values: Integers, view: View, wanted: Integers, *, last: bool = False) -> Integers:
    """Return how much of each value is taken so that each vertex of a view gets `wanted` of its own.

    Values are taken from the first on (or from the `last` back), the final one in part; a vertex
    whose values do not suffice gets them all.
    """
    # `before` is the sum of the values in front of each one, within its vertex: the value gives the wanted
    # units that those do not cover.
    if view.fan is not None:
        rows = values.reshape(-1, view.fan)
        before = rows.cumsum(axis=1) - rows
        if last:
            before = rows.sum(axis=1, keepdims=True) - rows - before
        taken: Integers = np.minimum(np.maximum(wanted[:, None] - before, 0), rows).reshape(-1)
        return taken
    before = np.cumsum(values) - values
    sizes = view.high - view.low
    starts = np.repeat(before[np.minimum(view.low, len(before) - 1)], sizes) if len(before) else before
    before = before - starts
    if last:
        before = np.repeat(view.sum(values), sizes) - values - before
    found: Integers = np.clip(np.repeat(wanted, sizes) - before, 0, values)
    return found
