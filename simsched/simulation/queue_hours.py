"""The hours of queues in a run: times at which nothing of a queue starts, once or every week.

Windows are pairs (stop, start) in seconds of the run, and `WeeklyHours`.  `QueueHours` stops and starts
the queues of a running engine.
"""

from __future__ import annotations

from heapq import merge
from itertools import takewhile
from math import inf
from typing import TYPE_CHECKING, Any

from simsched.simulation.environment import DISRUPTION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.simulation.engine import Engine
    from simsched.simulation.queues import Queue, Queues

DAY = 86400
PATIENCE = 15 * DAY
"""Seconds after which weekly hours end if nothing but they happened: no job can start any more."""

_STOP, _START = "hours-stop", "hours-start"
_QUIET = (_STOP, _START, "failure", "repair")
"""Kinds of events by which alone no job ever starts, when they recur for long."""


def windows_of(queue: Queue, after: float) -> Iterator[tuple[float, float]]:
    """Yield the times (stop, start) of a queue that end after `after`, in order and joined.

    They have no end if there are weekly hours.  Hours that leave no gap are one window without an end.
    """
    last = max((start for _, start in queue.windows), default=after)
    stop: float | None = None
    start = after
    for begin, end in merge(sorted(queue.windows), *(hours.windows(after) for hours in queue.weekly)):
        if end <= after:
            continue
        if stop is not None and begin > start:
            yield stop, start
            stop = None
        if stop is None:
            stop, start = begin, end
        start = max(start, end)
        if start - max(stop, last) > 8 * DAY:  # longer than a week without a gap
            yield stop, inf
            return
    if stop is not None:
        yield stop, start


def stops_until(queue: Queue, end: float) -> list[tuple[float, float | None]]:
    """Return the windows of a queue for ``run.json``: weekly hours only up to the `end` (s).

    A window without an end has None in its place.
    """
    found: Iterable[tuple[float, float]] = queue.windows
    if queue.weekly:
        began = takewhile(lambda window: window[0] < end or end <= 0, windows_of(queue, 0))
        found = ((max(stop, 0), start) for stop, start in began)
    return [(stop, start if start < inf else None) for stop, start in found]


class QueueHours:
    """Stops and starts queues at the times in their configuration."""

    def __init__(self, engine: Engine, queues: Queues) -> None:
        self._engine = engine
        self._queues = queues
        handle = engine.future.handle
        handle("queue-stop", self._on_stop)
        handle("queue-start", self._on_start)
        handle(_STOP, self._on_weekly_stop)
        handle(_START, self._on_weekly_start)
        future = engine.future
        for name, queue in queues.queues.items():
            if queue.weekly:  # each window enters the next one
                self._enter_next(name, 0, (0, -1))
                continue
            for stop, start in queue.windows:
                future.at(stop, DISRUPTION, "queue-stop", name)
                if start != inf:
                    future.at(start, DISRUPTION, "queue-start", name)

    def _on_stop(self, name: str) -> None:
        self._engine.queues.stop(name)
        self._engine.settle()

    def _on_start(self, name: str) -> None:
        self._engine.queues.resume(name)
        self._engine.settle()

    # --- every week: each event enters the next one, with the time and the number of the last change

    def _enter_next(self, name: str, after: float, change: tuple[float, int]) -> None:
        window = next(windows_of(self._queues.queues[name], after), None)
        if window is not None:
            stop, start = window
            payload = [name, None if start == inf else start, *change]
            self._engine.future.at(max(stop, after), DISRUPTION, _STOP, payload)

    def _on_weekly_stop(self, payload: list[Any]) -> None:
        name, start, *change = payload
        now = self._change(change)
        if now is None:
            return  # the queue stays open: there is nothing to stop
        if start is not None:
            self._engine.future.at(start, DISRUPTION, _START, [name, *now])
        self._on_stop(name)

    def _on_weekly_start(self, payload: list[Any]) -> None:
        name, *change = payload
        now = self._change(change)
        if now is not None:
            self._enter_next(name, self._engine.now, now)
        self._on_start(name)

    def _change(self, last: Iterable[Any]) -> tuple[float, int] | None:
        """Return the time of the last change and the jobs that had ended then; None if nothing is to come.

        Hours would otherwise recur for ever, after the last job or before one that can never start.
        """
        engine = self._engine
        since, done = last
        if len(engine.plan) or not engine.future.only(*_QUIET):
            return engine.now, engine.done
        if not (engine.queued or any(engine.queues.parked.values())):
            return None
        if engine.done != done:
            return engine.now, engine.done
        return (since, done) if engine.now - since < PATIENCE else None
