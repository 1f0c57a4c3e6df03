"""`Dependencies`: lets jobs become eligible in a run when their conditions are met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.simulation.environment import SUBMISSION
from simsched.simulation.jobs.lifecycle import JobState
from simsched.simulation.listeners import Listener
from simsched.simulation.record.recorder import CANCELED, FAILED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.simulation.engine import Engine
    from simsched.simulation.jobs.conditions import Conditions, Met


class Dependencies(Listener):
    """The conditions of the jobs of a run; they are asked when jobs are submitted, start and end."""

    def __init__(self, engine: Engine, conditions: Conditions) -> None:
        self._engine, self._conditions = engine, conditions
        engine.future.handle("timer", self._on_timer)
        engine.future.handle("started", self._on_started)

    def may_queue(self, job: int, now: float) -> bool:
        """Whether a job waits for nothing but resources; otherwise it waits, or is given up."""
        met = self._conditions.arrive(job, now)
        self._enter_timers()
        if met is None or met.reason is None:
            return met is not None
        self._meet((met,), now)
        return False

    def runs(self, job: int, now: float) -> None:
        """Enter an event if others wait for this start: they do not start in the pass of it."""
        if self._conditions.start(job, now):
            self._engine.future.at(now, SUBMISSION, "started", job)

    def occupied(self, job: int, end: float | None) -> None:
        """Note that a job runs from the beginning."""
        self._conditions.start(job, self._engine.now)

    def ended(self, job: int, now: float, result: int, reason: str | None) -> None:
        """Release the jobs that waited for this end."""
        if result == CANCELED:
            self._conditions.forget(job)
        self._meet(self._conditions.ended(job, now, result), now)
        self._enter_timers()

    def _on_started(self, job: int) -> None:
        self._meet(self._conditions.started(job, self._engine.now), self._engine.now)
        self._enter_timers()
        self._engine.settle()

    def _on_timer(self, job: int) -> None:
        self._engine.progress.timers -= 1
        self._meet(self._conditions.elapsed(job), self._engine.now)
        self._engine.settle()

    def _meet(self, met: Iterable[Met], now: float) -> None:
        """Queue jobs whose dependencies are met, and end those whose dependencies never will be."""
        engine = self._engine
        for job, reason in met:
            if engine.progress.states[job] is not JobState.DEPEND:
                continue
            if reason is None:
                engine.make_eligible(job, now)
            else:
                engine.give_up(job, now, FAILED, reason)

    def _enter_timers(self) -> None:
        for time, job in self._conditions.take_timers():
            self._engine.progress.timers += 1
            self._engine.future.at(time, SUBMISSION, "timer", job)

    def state(self) -> dict[str, Any]:
        """Return the jobs that started or ended, and the open conditions."""
        return self._conditions.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of equal conditions."""
        self._conditions.restore(state)
