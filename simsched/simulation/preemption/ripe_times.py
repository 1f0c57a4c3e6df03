"""`RipeTimes`: the passes at which running jobs may be preempted that could not before."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from simsched.simulation.environment import SUBMISSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.simulation.engine import Engine


class RipeTimes:
    """Enters a pass for the next time from which a running job may be preempted.

    Attributes
    ----------
    entered : the times (s) at which a pass is entered already; a part of the state of a run.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.entered: set[float] = set()
        engine.future.handle("ripe", self._on_ripe)

    def expect(self, times: Iterable[float], now: float) -> None:
        """Enter a pass for the first of some times (s) that are still to come, if there is one."""
        ripe = min((time for time in times if now < time < inf), default=now)
        if ripe > now and ripe not in self.entered:
            self.entered.add(ripe)
            self._engine.future.at(ripe, SUBMISSION, "ripe")

    def _on_ripe(self, _: None) -> None:
        self.entered.discard(self._engine.now)
        self._engine.settle()
