"""`Calendar`: targets that will be closed for a known time, such as a day of maintenance.

A job may not start on a target that closes before its requested end.  The question is asked
job by job and time by time, so that a short job still runs there beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.graph.index.types import Ints
    from simsched.match.state.availability import Availability


class Closure(NamedTuple):
    """Targets (ordinals) that are closed from `start` until `end`, in seconds."""

    start: float
    end: float
    targets: Ints


class Calendar:
    """The closures that are known beforehand; true if there are any."""

    def __init__(self, closures: Sequence[Closure] = ()) -> None:
        self._closures = sorted(closures, key=lambda closure: (closure.start, closure.end))

    def __bool__(self) -> bool:
        return bool(self._closures)

    def closed(self, begin: float, end: float) -> Ints | None:
        """Return the targets that are closed at any time from `begin` until `end`; None if none are.

        Zero seconds are the moment at which they begin.
        """
        found = [c.targets for c in self._closures if (c.start < end or c.start <= begin) and begin < c.end]
        return np.unique(np.concatenate(found)) if found else None

    def reopenings(self, after: float) -> list[float]:
        """Return the times after `after` at which something opens again."""
        return [closure.end for closure in self._closures if after < closure.end < float("inf")]

    def ending(self, now: float, time: float) -> Iterator[Ints]:
        """Yield the targets of each closure that is going on now and has ended by `time`."""
        for closure in self._closures:
            if closure.start <= now < closure.end <= time:
                yield closure.targets

    def within(self, state: Availability, begin: float, end: float) -> Availability:
        """Return what of `state` may be used from `begin` until `end`."""
        closed = self.closed(begin, end)
        if closed is None:
            return state
        left = state.copy(counts_only=state.partial is None)
        left.set_status(closed, up=False)
        return left
