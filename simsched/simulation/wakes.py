"""`Wakes`: passes for reservations that begin at an instant at which nothing else may happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.simulation.environment import WAKE

if TYPE_CHECKING:
    from simpy.events import Event

    from simsched.simulation.engine import Engine

NEVER = float("inf")


class Wakes:
    """Enters a pass for the next reservation that begins; `time` (seconds) is when."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.time = NEVER

    def enter(self, time: float) -> None:
        """Enter a pass for a time to come, unless there is one before it."""
        if self._engine.now < time < self.time:
            self.time = time
            self._engine.clock.at(time, WAKE, self.on_wake)

    def on_wake(self, _: Event) -> None:
        """Run the pass if a reservation begins now; what was to begin may have moved."""
        engine = self._engine
        now = engine.now
        if self.time <= now:
            self.time = NEVER
        wakes = [lane.context.wake for lane in engine.lanes if lane.waiting.ranks]
        first = min(wakes, default=NEVER)
        if engine.due is not None or first <= now:
            engine.settle()
        else:
            self.enter(first)
