"""Slack-based backfilling: a job may be delayed, but by no more than its slack.

After Talby & Feitelson 1999. When a job is first planned, its planned start plus its slack is promised as its
latest start. The slack is a factor times the requested duration. Each pass begins as conservative
backfilling. Then each waiting job that fits beside the running jobs is tried, in order: it starts now if all
other jobs, planned again in order behind it, still start by their latest starts. With a factor of 0 no job is
delayed.

The paper chooses among plans by a cost function; this policy takes the first plan that keeps all promises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.policies.conservative import Conservative
from simsched.schedule.profile import end_of
from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from simsched.schedule.pass_context import PassContext


class Slack(Conservative):
    """Keep a reservation for each waiting job, which may move up to a latest start.

    Attributes
    ----------
    factor : the slack of a job, in units of its requested duration.
    latest : waiting job → its latest start in seconds; a job that a limit barred gets another one.
    """

    def __init__(self, factor: float = 1.0, compress: str = "queue") -> None:
        super().__init__(compress)
        self.factor = factor
        self.latest: dict[int, float] = {}

    def run_pass(self, context: PassContext) -> None:
        """Make a conservative pass, and then start jobs that delay others only within their slack."""
        may_start = context.released or context.moved or bool(context.queue.fresh) or bool(context.queue.gone)
        for job in context.queue.gone:  # its reservation is withdrawn now
            self.latest.pop(job, None)
        super().run_pass(context)
        if may_start and not context.plan.overrun(context.now):
            for job in context.queue.listed():
                if job in context.queue and self.starts.get(job, 0) > context.now:
                    self._try_first(context, job)
            self.next_start = min(self.starts.values(), default=NEVER)
            context.wake = self._next_wake(context)
        # A job that a limit takes out of view keeps its reservation and latest start until the next pass.
        waiting = [job for job in self.latest if job in context.queue or job in self.starts]
        self.latest = {job: self.latest[job] for job in waiting}

    def _promise(self, context: PassContext, job: int, start: float) -> None:
        """Promise the latest start to a job that has none yet."""
        if job not in self.latest:
            # A job without a limit has endless slack.
            self.latest[job] = start + self.factor * context.table.durations[job] if self.factor else start
            if self.latest[job] < NEVER:
                super()._promise(context, job, self.latest[job])

    def _try_first(self, context: PassContext, job: int) -> None:
        """Start a job now if all others, planned again behind it, keep their latest starts."""
        profile = context.reservations
        if profile is None or not context.supply.could_start(job):
            return
        trial = context.supply.ahead()
        now = context.now
        if trial.earliest(job, end_of(now, 0)) > now:
            return
        trial.reserve(job, now)
        plan = {job: now}
        for other in self._others(context, job):
            start = trial.earliest(other)
            if start > self.latest[other] or start == NEVER:
                return
            trial.reserve(other, start)
            plan[other] = start
        profile.adopt(trial)
        self.starts = plan
        for other in [other for other, start in plan.items() if start <= now]:
            if other not in context.barred:
                self._start(context, profile, other)

    def _others(self, context: PassContext, job: int) -> list[int]:
        """Return the other jobs with reservations, in order; one that this pass barred keeps its place."""
        queue = context.queue
        barred = [other for other in self.starts if other in queue.barred] if queue.barred else []
        jobs = queue.with_barred(barred) if barred else queue.listed()
        return [other for other in jobs if other != job and other in self.starts]
