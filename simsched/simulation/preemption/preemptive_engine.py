"""`PreemptiveEngine`: an engine whose jobs may be suspended, and go on from checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from simsched.simulation.engine import Engine
from simsched.simulation.limits.limited_engine import LimitedEngine

if TYPE_CHECKING:
    from simsched.graph.index.index import Index
    from simsched.schedule.pass_context import Start
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.preemption.job_attempts import JobAttempts
    from simsched.simulation.record.recorder import Recorder


class Preempts(Protocol):
    """Preempts running jobs by the rules of a run."""

    @property
    def suspends_now(self) -> bool:
        """Whether jobs are suspended at present."""

    def begin_pass(self, now: float) -> None:
        """Let jobs that preempt start, and suspended jobs go on."""

    def drop(self, job: int, now: float) -> None:
        """Treat a job as running without resources, if it is suspended."""


class PreemptiveEngine(Engine):
    """The engine with the attempts of jobs, and with preemption by the rules of a run.

    Attributes
    ----------
    attempts : the work that jobs keep and lose over several attempts.
    victims : what becomes of preempted jobs; None without rules for preemption.
    """

    def __init__(
        self,
        prepared: Prepared,
        index: Index,
        config: RunConfig,
        recorder: Recorder,
        *,
        attempts: JobAttempts,
        **more: Any,
    ) -> None:
        super().__init__(prepared, index, config, recorder, **more)
        self.attempts = attempts
        self.victims: Preempts | None = None
        self.parts["attempts"] = attempts

    @property
    def is_over(self) -> bool:
        """Whether no job runs, is suspended, waits for resources or for a time, or is still to come."""
        return super().is_over and not (self.victims is not None and self.victims.suspends_now)

    def interrupt(self, job: int, now: float, result: int, reason: str) -> None:
        """End a running job before its time, or a suspended one."""
        self._wake(job, now)
        super().interrupt(job, now, result, reason)

    def requeue(self, job: int, now: float, reason: str) -> None:
        """Release the resources of a job and queue it again, to go on from its last checkpoint."""
        self._wake(job, now)
        self.attempts.lose(job, self.ran(job, now))
        super().requeue(job, now, reason)

    def began(self, job: int) -> float:
        """Return the start of a running job, later by the seconds for which it was suspended."""
        return self.recorder.start[job] + self.attempts.suspended.get(job, 0)

    def ran(self, job: int, now: float) -> float:
        """Return the seconds for which the present attempt of a job has run, suspensions left out."""
        return now - self.began(job)

    def go_on(self, job: int, end: float) -> None:
        """Let a suspended job, whose claim is in the plan again, run until `end`."""
        self._enter_end(job, end)
        if self.expected is not None:
            self.expected.enter(job)

    def begin(self, started: list[Start], now: float) -> None:
        """Let jobs run that started before the policies start others."""
        self._start(started, now)

    def _wake(self, job: int, now: float) -> None:
        if self.victims is not None:
            self.victims.drop(job, now)

    def _pass(self, now: float) -> None:
        if self.victims is not None:
            self.victims.begin_pass(now)
        super()._pass(now)


class PreemptiveLimitedEngine(PreemptiveEngine, LimitedEngine):
    """The same with limits."""
