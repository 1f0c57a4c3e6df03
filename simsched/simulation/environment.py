"""`Clock`: simulated time, and the one total order of events.

Events are ordered by (time, class, sequence).  The classes are the order of what happens
at one instant: ends, then disruptions, then submissions and met dependencies; the
scheduling pass comes after the last of them.  (`EARLY_END` is where one of EASY's variations
has the ends that come before their time; `WAKE` is a reservation that begins.)
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from simpy import Environment
from simpy.core import EmptySchedule
from simpy.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST, END, DISRUPTION, SUBMISSION, EARLY_END, WAKE, LAST = 0, 1, 2, 3, 4, 5, 9


class Call(Event):
    """An event that is only a call at a time: `callback(event)` with `event.value`."""

    _ok = True

    def __init__(self, callback: Callable[[Event], None], value: Any) -> None:
        self.callbacks = [callback]
        self._value = value


class Clock(Environment):
    """A simpy environment that takes absolute times, so that no sum is rounded twice."""

    def at(self, time: float, order: int, callback: Callable[[Event], None], value: Any = None) -> None:
        """Call `callback(event)` at `time` (seconds), with `event.value` = `value`."""
        heappush(self._queue, (time, order, next(self._eid), Call(callback, value)))  # type: ignore[misc]

    def step(self) -> None:
        """Process the next event; each is one call, and none fails."""
        try:
            self._now, _, _, event = heappop(self._queue)
        except IndexError:
            raise EmptySchedule from None
        event.callbacks[0](event)

    def last_of_instant(self) -> bool:
        """Whether no further event waits at the present time."""
        queue = self._queue
        return not queue or queue[0][0] > self._now
