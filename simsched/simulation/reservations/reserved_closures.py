"""`ReservedClosures`: what advance reservations close to which jobs, by their windows.

For jobs of no reservation, the windows are closed.  For those of a reservation, everything is closed but its
targets in its windows; if it is flexible, only the windows of the others are.  Runs plan by these closures,
and `why` finds with them which jobs they kept waiting.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.schedule.kept_units import KeptIds, KeptNumber
from simsched.schedule.maintenance import Closure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.simulation.reservations.reservation_rules import AdvanceReservation

CORE = "core"
Cores = tuple[tuple[int, int], ...]
"""(leaf pool of cores, mask over its units) of each leaf pool."""


class Window(NamedTuple):
    """One time (s) in which targets are reserved, or only some of their `cores`.

    That of a start that moves with the time is the time in which it keeps longer jobs away.
    """

    start: float
    end: float
    targets: Integers
    cores: Cores | None = None


NO_TARGETS = np.empty(0, dtype=np.int64)


class ReservedClosures:
    """The closures of the reservations of one run.

    `used` returns how many units of a licence the running jobs of the reservation with a number have at a
    time (s).
    """

    def __init__(
        self,
        index: Index,
        reservations: Sequence[AdvanceReservation],
        used: Callable[[int, str, float], int],
    ) -> None:
        self._index, self._reservations, self._used = index, reservations, used

    def to(self, at: int | None, windows: Mapping[int, Sequence[Window]]) -> Iterator[Closure]:
        """Yield the closures for the jobs of a reservation, or of none; `windows` are by its number."""
        if at is None:
            for other, found in windows.items():
                for window in found:
                    yield from self._kept(other, window)
        elif self._reservations[at].flex:
            yield from self.beside(at, windows)
        else:
            yield from self._outside(at, windows)

    def _kept(self, at: int, window: Window) -> Iterator[Closure]:
        """Yield the closures for other jobs in a window: of targets or cores, and of licences."""
        start, end, targets, cores = window
        ahead = self._reservations[at].ahead
        if cores is not None:
            units = (KeptIds(CORE, dict(cores)),)
            yield Closure(start, end, NO_TARGETS, down=False, units=units)
        elif len(targets):
            yield Closure(start, end, targets, down=False, longer=-1 if ahead is None else ahead)
        yield from self._kept_licences(at, window)

    def _kept_licences(self, at: int, window: Window) -> Iterator[Closure]:
        pools = self._index.pool_types
        for name, number in self._reservations[at].licenses:
            leaf = int(np.flatnonzero(pools[name].target < 0)[0])
            units = (KeptNumber(name, leaf, number, partial(self._used, at)),)
            yield Closure(window.start, window.end, NO_TARGETS, down=False, units=units)

    def _outside(self, at: int, lasting: Mapping[int, Sequence[Window]]) -> Iterator[Closure]:
        """Yield the closures for the jobs of a reservation: all times but its windows.

        The windows of reservations that overlap it are closed, too, unless it overlaps others itself. One of
        licences alone may use all nodes that no other one has.
        """
        everything = np.arange(len(self._index), dtype=np.int64)
        windows = lasting.get(at)
        if not windows:
            yield Closure(-inf, inf, everything, down=False)
            return
        one = self._reservations[at]
        others = np.setdiff1d(everything, windows[0].targets)
        if one.has_nodes and len(others):
            yield Closure(-inf, inf, others, down=False)
        if windows[0].cores is not None:
            units = (KeptIds(CORE, self._other_cores(windows[0])),)
            yield Closure(-inf, inf, NO_TARGETS, down=False, units=units)
        begin = -inf
        for window in windows:
            if begin < window.start:
                yield Closure(begin, window.start, everything, down=False)
            begin = window.end
        yield Closure(begin, inf, everything, down=False)
        if not one.has_nodes:
            yield from self.beside(at, lasting)
            return
        for other, found in lasting.items():
            if other != at:
                over = not one.overlaps and self._reservations[other].overlaps
                kept = self._kept if over else self._kept_licences
                yield from (closure for window in found for closure in kept(other, window))

    def _other_cores(self, window: Window) -> dict[int, int]:
        """Return the cores of the targets of a window that are not reserved: leaf pool → mask."""
        pool = self._index.pool_types[CORE]
        leaves = np.flatnonzero(np.isin(pool.target, window.targets)).tolist()
        mine = dict(window.cores or ())
        return {leaf: pool.full[leaf] & ~mine.get(leaf, 0) for leaf in leaves}

    def beside(self, at: int, lasting: Mapping[int, Sequence[Window]]) -> Iterator[Closure]:
        """Yield the closures for the jobs of a flexible reservation: the windows of the others.

        Within its own windows it has those of its nodes that others have, too, if it overlaps them.
        """
        own = lasting.get(at, []) if self._reservations[at].overlaps else []
        for other, windows in lasting.items():
            for window in windows if other != at else ():
                if not own or window.cores is not None:
                    yield from self._kept(other, window)
                    continue
                yield from self._kept_licences(other, window)
                yield from self._beside_own(own, other, window)

    def _beside_own(self, own: Sequence[Window], other: int, window: Window) -> Iterator[Closure]:
        """Yield the closures of another window but for targets that a reservation has in its `own` ones."""
        start, end, targets, _ = window
        ahead = self._reservations[other].ahead
        longer = -1 if ahead is None else ahead
        yield Closure(start, end, np.setdiff1d(targets, own[0].targets), down=False, longer=longer)
        shared, begin = np.intersect1d(targets, own[0].targets), start
        for mine in own:
            if begin < min(mine.start, end):
                yield Closure(begin, min(mine.start, end), shared, down=False, longer=longer)
            begin = max(begin, mine.end)
        if begin < end:
            yield Closure(begin, end, shared, down=False, longer=longer)
