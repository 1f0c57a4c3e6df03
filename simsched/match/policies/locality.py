"""The policy ``locality``: fewest and narrowest common ancestors, then the shortest run of neighbours.

Of the vertices that contain candidates (racks, switches, the whole cluster) it takes the
narrowest kind in which one vertex holds all wanted copies, and of those vertices the one with the
fewest copies to spare.  If several racks are needed, it takes the fewest possible.  Within a rack it
takes the shortest run in graph order that suffices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.match.policies.candidates import Candidates

STARTS = 512
"""Starts of a run that are tried at a time; the first block mostly contains the best one."""


class _Group(NamedTuple):
    """The candidates below one vertex: positions [low, high), and the copies that they hold."""

    low: int
    high: int
    held: int


def nearest_together(candidates: Candidates) -> Integers:
    """Return the positions of the candidates, those first that are closest together.

    The copies that are taken are below one vertex of the narrowest kind that can hold them.
    """
    if len(candidates.fits) < 2:
        return np.arange(len(candidates.fits))
    found = _Search(candidates).gather(len(_levels(candidates)), candidates.wanted, 0, len(candidates.fits))
    first = _once(np.concatenate([np.arange(low, high) for low, high in found]))
    left = np.ones(len(candidates.fits), dtype=np.bool_)
    left[first] = False
    return np.concatenate([first, np.flatnonzero(left)])


def _once(positions: Integers) -> Integers:
    """Return the positions without repetitions, in their order: two switches may reach the same nodes."""
    where: Integers = np.unique(positions, return_index=True)[1]
    return positions[np.sort(where)]


def _levels(candidates: Candidates) -> list[tuple[Integers, Integers]]:
    """Return the intervals of the candidates' kind below each kind of ancestor, narrowest first."""
    index: Index = candidates.avail.index
    key = f"levels above {candidates.kind}"
    found: list[tuple[Integers, Integers]] | None = index.memo.get(key)
    if found is None:
        kinds = [name for name in index.vertex_types if name != candidates.kind]
        found = [pair for pair in (_intervals(index, name, candidates.kind) for name in kinds) if pair]
        found.sort(key=lambda pair: float((pair[1] - pair[0]).mean()))
        index.memo[key] = found
    return found


def _intervals(index: Index, above: str, kind: str) -> tuple[Integers, Integers] | None:
    """Return [low, high) of the vertices below each ancestor; None if they are not an interval, or empty.

    A switch reaches its nodes over another subsystem, but they are usually neighbours in graph order too.
    """
    view = index.beneath(above, kind)
    if view.ordinals is None:
        low, high = view.low, view.high
    else:
        rows = [view.ordinals[a:b] for a, b in zip(view.low.tolist(), view.high.tolist(), strict=True)]
        if any(len(row) and int(row[-1] - row[0]) + 1 != len(row) for row in rows):
            return None
        low = np.array([int(row[0]) if len(row) else 0 for row in rows], dtype=np.int64)
        high = low + np.array([len(row) for row in rows], dtype=np.int64)
    return (low, high) if (high > low).any() else None


class _Search:
    """The candidates as prefix sums, level by level."""

    def __init__(self, candidates: Candidates) -> None:
        self.ordinals = candidates.ordinals
        fits = np.minimum(candidates.fits, candidates.most)
        self.sums = np.concatenate(([0], np.cumsum(fits)))
        self.most = int(fits.max())
        self.levels = [
            (np.searchsorted(self.ordinals, low), np.searchsorted(self.ordinals, high))
            for low, high in _levels(candidates)
        ]

    def gather(self, depth: int, wanted: int, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the runs to take for `wanted` copies from [start, stop), by the `depth` narrowest levels."""
        for level in range(depth):
            group = _tightest(self._groups(level, start, stop), wanted)
            if group is not None:
                return self._divided(level, wanted, group.low, group.high)
        return self._divided(depth, wanted, start, stop)

    def _divided(self, depth: int, wanted: int, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the runs to take if no vertex of the `depth` narrowest levels suffices alone."""
        if not depth:
            return [self._run(wanted, start, stop)]
        groups = sorted(self._groups(depth - 1, start, stop), key=lambda group: -group.held)
        taken: list[tuple[int, int]] = []
        for number, group in enumerate(groups):
            if group.held >= wanted:
                last = _tightest(groups[number:], wanted) or group
                return [*taken, *self.gather(depth - 1, wanted, last.low, last.high)]
            taken.append((group.low, group.high))
            wanted -= group.held
        return taken or [self._run(wanted, start, stop)]

    def _groups(self, level: int, start: int, stop: int) -> list[_Group]:
        """Return the vertices of a level within [start, stop) that hold candidates."""
        low, high = self.levels[level]
        here = (low >= start) & (high <= stop) & (high > low)
        low, high = low[here], high[here]
        return list(map(_Group, low.tolist(), high.tolist(), (self.sums[high] - self.sums[low]).tolist()))

    def _run(self, wanted: int, start: int, stop: int) -> tuple[int, int]:
        """Return the shortest run within [start, stop) that holds `wanted`, the first of equals."""
        fewest = -(-wanted // self.most)
        best, found = 1 << 62, (start, stop)
        for first, last, length in self._runs(wanted, start, stop):
            at = int(np.argmin(length))
            if length[at] < best:
                best, found = int(length[at]), (int(first[at]), int(last[at]))
            if best <= fewest:
                break
        return found

    def _runs(self, wanted: int, start: int, stop: int) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield blocks of runs that hold `wanted`: first position, position after, places spanned."""
        for block in range(start, stop, STARTS):
            first = np.arange(block, min(block + STARTS, stop))
            last = np.searchsorted(self.sums, self.sums[first] + wanted)
            first, last = first[last <= stop], last[last <= stop]
            if not len(first):
                return
            yield first, last, self.ordinals[last - 1] - self.ordinals[first] + 1


def _tightest(groups: Sequence[_Group], wanted: int) -> _Group | None:
    """Return the group that holds `wanted` with the fewest copies to spare, the first of equals."""
    return min(
        (group for group in groups if group.held >= wanted),
        key=lambda group: (group.held, group.low),
        default=None,
    )
