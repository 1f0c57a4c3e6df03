"""`LimitedEngine`: an engine whose jobs are submitted, start and end under limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.simulation.engine import Engine
from simsched.simulation.environment import SUBMISSION
from simsched.simulation.limits.limit_keeper import LimitKeeper
from simsched.simulation.record.recorder import FAILED

if TYPE_CHECKING:
    from simsched.graph.index.index import Index
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.limits.limited_jobs import LimitedJobs
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.record.recorder import Recorder


class LimitedEngine(Engine):
    """The engine with the limits of a run, which are one of its `parts`."""

    def __init__(
        self,
        prepared: Prepared,
        index: Index,
        config: RunConfig,
        recorder: Recorder,
        *,
        limited: LimitedJobs,
        **more: Any,
    ) -> None:
        super().__init__(prepared, index, config, recorder, **more)
        self.limits = LimitKeeper(self, limited)
        self.parts["limits"] = self.limits
        self.queues.limit(self.limits)

    def occupy(self, job: int, end: float | None) -> None:
        """Let a job run that was claimed in the plan from outside, until `end`; None: for ever."""
        super().occupy(job, end)
        self.limits.occupy(job, end)

    def requeue(self, job: int, now: float, reason: str) -> None:
        """Release the resources of a running job and queue it again, to run from its start."""
        self.limits.ended(job, now)
        super().requeue(job, now, reason)

    def _admit(self, job: int, now: float) -> None:
        too_many = self.limits.submit(job)
        if too_many is not None:
            self._give_up(job, now, FAILED, too_many)
        elif not self.limits.is_outside(job):
            super()._admit(job, now)
        elif job in self.prepared.cancels:
            self.future.at(max(self.prepared.cancels[job], now), SUBMISSION, "cancel", job)

    def _become_eligible(self, job: int, now: float) -> None:
        super()._become_eligible(job, now)
        held = self.limits.held_reason(job)
        if held is not None:
            self.recorder.reasons[job] = held

    def _finish(self, job: int, now: float, result: int, reason: str | None = None) -> None:
        self.limits.ended(job, now)
        Engine._finish(self, job, now, result, reason)
        if self.limits.inside:
            self._let_in(job, now)

    def _give_up(self, job: int, now: float, result: int, reason: str) -> None:
        super()._give_up(job, now, result, reason)
        self._let_in(job, now)

    def _let_in(self, job: int, now: float) -> None:
        """Admit jobs that waited until fewer jobs are submitted: this one has left."""
        for other in self.limits.leave(job):
            super()._admit(other, now)
