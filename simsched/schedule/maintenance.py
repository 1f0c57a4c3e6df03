"""`Calendar`: execution targets that will be closed for a known time, such as a day of maintenance.

A job may not start on a target that closes before the job's requested end. A shorter job may still run there
before, so the answer depends on the job and on the time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.graph.index.types import Ints
    from simsched.match.state.availability import Availability


class Closure(NamedTuple):
    """Targets, as ordinals, that are closed from `start` until `end` seconds; `down`: to all jobs."""

    start: float
    end: float
    targets: Ints
    down: bool = True


class Calendar:
    """The closures that are known in advance; true if there are any, or `always` because some may come."""

    def __init__(self, closures: Sequence[Closure] = (), *, always: bool = False) -> None:
        self._always = always
        self._closures = sorted(closures, key=lambda closure: (closure.start, closure.end))
        self._starts = [closure.start for closure in self._closures]

    def __bool__(self) -> bool:
        return bool(self._closures) or self._always

    def closed(self, begin: float, end: float) -> Ints | None:
        """Return the targets that are closed at some time from `begin` until `end` seconds; None if none are.

        A window of zero seconds is the moment at which it begins.
        """
        begun = max(bisect_left(self._starts, end), bisect_right(self._starts, begin))
        found = [c.targets for c in self._closures[:begun] if begin < c.end]
        return np.unique(np.concatenate(found)) if found else None

    def reopenings(self, after: float) -> list[float]:
        """Return the times in seconds after `after` at which targets open again."""
        return [closure.end for closure in self._closures if after < closure.end < float("inf")]

    def ending(self, now: float, time: float) -> Iterator[Ints]:
        """Yield the targets of each closure that has begun by `now` and will have ended by `time`."""
        for closure in self._closures:
            if closure.down and closure.start <= now < closure.end <= time:
                yield closure.targets

    def within(self, state: Availability, begin: float, end: float) -> Availability:
        """Return `state` without the targets that close at some time from `begin` until `end` seconds."""
        closed = self.closed(begin, end)
        if closed is None:
            return state
        left = state.copy(counts_only=state.partial is None)
        left.set_status(closed, up=False)
        return left
