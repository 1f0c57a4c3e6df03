"""`Calendar`: execution targets that will be closed for a known time, such as a day of maintenance.

A job may not start on a target that closes before the job's requested end. A shorter job may still run there
before, so the answer depends on the job and on the time. A closure may keep some units instead of targets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.schedule.kept_units import set_units_aside

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.arrays import Integers
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.kept_units import KeptUnits

_ROUNDING = 1e-6
"""Seconds by which a window may seem longer than it is."""


class Closure(NamedTuple):
    """Targets, as ordinals, that are closed from `start` until `end` seconds; `down`: to all jobs.

    With `longer`, only for windows of more than this number of seconds. With `units`, these are closed and
    the targets are open.
    """

    start: float
    end: float
    targets: Integers
    down: bool = True
    longer: float = -1
    units: tuple[KeptUnits, ...] = ()


class Calendar:
    """The closures that are known in advance; true if there are any, or `always` because some may come."""

    def __init__(self, closures: Sequence[Closure] = (), *, always: bool = False) -> None:
        self._always = always
        self._closures = sorted(closures, key=itemgetter(0, 1))
        self._starts = [closure.start for closure in self._closures]

    def __bool__(self) -> bool:
        return bool(self._closures) or self._always

    @property
    def of_targets(self) -> bool:
        """Whether only targets close, and to all windows that meet a closure."""
        return all(not closure.units and closure.longer < 0 for closure in self._closures)

    def lasting(self, now: float) -> Iterator[Closure]:
        """Yield the closures that end after now (seconds)."""
        return (closure for closure in self._closures if now < closure.end)

    def closed(self, begin: float, end: float) -> Integers | None:
        """Return the targets that are closed at some time from `begin` until `end` seconds; None if none are.

        A window of zero seconds is the moment at which it begins.
        """
        found = [c.targets for c in self._ahead(begin, end) if not c.units]
        return np.unique(np.concatenate(found)) if found else None

    def kept(self, begin: float, end: float) -> list[KeptUnits]:
        """Return the units that are closed at some time from `begin` until `end` seconds."""
        return [units for c in self._ahead(begin, end) if c.units for units in c.units]

    def _ahead(self, begin: float, end: float) -> Iterator[Closure]:
        """Yield the closures that concern a job from `begin` until `end` seconds."""
        begun = max(bisect_left(self._starts, end), bisect_right(self._starts, begin))
        length = end - begin - _ROUNDING
        for closure in self._closures[:begun]:
            if begin < closure.end and (closure.longer < 0 or closure.longer < length):
                yield closure

    def closes(self, selection: Selection, begin: float, end: float, free: Mapping[str, Integers]) -> bool:
        """Whether a selection could not be kept from `begin` until `end` seconds.

        `free` are the free units of each leaf pool beside other jobs.
        """
        closed = self.closed(begin, end)
        if closed is not None and np.isin(selection.targets, closed).any():
            return True
        kept = self.kept(begin, end)
        return any(units.hits(draw, free, begin) for units in kept for draw in selection.held)

    def reopenings(self, after: float) -> list[float]:
        """Return the times in seconds after `after` at which targets open again."""
        return [closure.end for closure in self._closures if after < closure.end < float("inf")]

    def back(self, state: Availability, now: float, time: float, outages: Integers) -> Integers:
        """Return the targets that are down, and whose maintenance has begun by `now` and is over by `time`.

        `outages` is how many outages each target is in now. The end of a failure or a drain is not announced:
        a target that is also in one of these stays down.
        """
        over = np.zeros_like(outages)
        for closure in self._closures:
            if closure.down and closure.start <= now < closure.end <= time:
                over[closure.targets] += 1
        return np.flatnonzero((over > 0) & (over >= outages) & state.index.up & ~state.up)

    def opened(self, state: Availability, now: float, time: float, outages: Integers) -> Availability:
        """Return `state` with the targets up that are down now and will be up by `time`."""
        back = self.back(state, now, time, outages)
        if not len(back):
            return state
        state = state.copy(counts_only=state.partial is None)
        state.set_status(back, up=True)
        return state

    def within(self, state: Availability, begin: float, end: float) -> Availability:
        """Return `state` without targets and units that close at a time from `begin` until `end` seconds."""
        closed, kept = self.closed(begin, end), self.kept(begin, end)
        if closed is None and not kept:
            return state
        left = state.copy(counts_only=state.partial is None)
        if closed is not None:
            left.set_status(closed, up=False)
        for units in kept:
            set_units_aside(left, units, begin)
        return left
