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
from simsched.schedule.profiles.gap import NEVER, Gap

if TYPE_CHECKING:
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.protocols import Reservations


class Slack(Conservative):
    """Keep a reservation for each waiting job, which may move up to a latest start.

    Attributes
    ----------
    factor : the slack of a job, in units of its requested duration.
    latest : waiting job → its latest start in seconds.
    """

    def __init__(self, factor: float = 1.0, compress: str = "queue") -> None:
        super().__init__(compress)
        self.factor = factor
        self.latest: dict[int, float] = {}

    def run_pass(self, context: PassContext) -> None:
        """Make a conservative pass, and then start jobs that delay others only within their slack."""
        may_start = context.released or context.moved or bool(context.queue.fresh) or bool(context.queue.gone)
        super().run_pass(context)
        if may_start and not context.plan.overrun(context.now):
            for job in context.queue.listed():
                if job in context.queue and self.starts.get(job, 0) > context.now:
                    self._try_first(context, job)
            if context.reservations is not None:
                context.reservations.close(changed=True)
            self.next_start = min(self.starts.values(), default=NEVER)
            context.wake = self._next_wake(context)
        self.latest = {job: latest for job, latest in self.latest.items() if job in context.queue}

    def _promise(self, context: PassContext, job: int, start: float) -> None:
        """Promise the latest start to a job that has none yet."""
        if job not in self.latest:
            # A job without a limit has endless slack.
            self.latest[job] = start + self.factor * context.table.durations[job] if self.factor else start
            if self.latest[job] < NEVER:
                super()._promise(context, job, self.latest[job])

    def _try_first(self, context: PassContext, job: int) -> None:
        """Start a job now if all others, planned again behind it, keep their latest starts."""
        if not context.supply.could_start(job):
            return
        profile = context.supply.reservations()
        gap = profile.now(job)
        if gap.start == NEVER:
            return
        profile.reserve(job, gap)
        plan = self._plan_behind(context, profile, job)
        if plan is None:
            return
        before = dict(self.starts), dict(self.selections)
        self.starts = {job: gap.start} | {other: found.start for other, found in plan.items()}
        found = {job: gap} | plan
        self.selections = {other: g.selection for other, g in found.items() if g.selection is not None}
        if not self._start(context, profile, job, fresh=True) or job in context.barred:
            self.starts, self.selections = before
            return
        context.reservations = profile
        for other in [other for other, start in self.starts.items() if start <= context.now]:
            if other not in context.barred:
                self._start(context, profile, other, fresh=True)

    def _plan_behind(self, context: PassContext, profile: Reservations, job: int) -> dict[int, Gap] | None:
        """Return the gaps of the other jobs in order; None if one would start after its latest start."""
        plan: dict[int, Gap] = {}
        queue = context.queue
        # A job that this pass barred keeps its place in the plan until the pass is over.
        barred = [other for other in self.starts if other in queue.barred] if queue.barred else []
        for other in queue.with_barred(barred) if barred else queue.listed():
            if other != job and other in self.starts:
                gap = profile.earliest(other)
                if gap.start > self.latest[other]:
                    return None
                profile.reserve(other, gap)
                plan[other] = gap
        return plan
