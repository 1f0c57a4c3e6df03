"""Backfilling with a plan that is computed again at each pass: ``compress=replan``.

In the order of the queue, every job gets the earliest start that moves no earlier job's, as in conservative
backfilling (Mu'alem & Feitelson 2001). But reservations do not last: when a job ends early, all jobs move
up in the order of the queue, and a planned start may become later. `depth` is the reservation-depth of Flux's
queue manager (for its queue-depth see `limited`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.profiles.gap import Gap

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.profile import Profile

    Integers = npt.NDArray[np.int64]


class Replanning:
    """Reserve for the first `depth` jobs that cannot start (None: for all), and backfill the others."""

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth

    def run_pass(self, context: PassContext) -> None:
        """Plan in order, up to the last job that could start now, and start the jobs that may."""
        if not self._may_start(context):
            return
        supply = context.supply
        queue = context.queue.jobs()
        jobs: list[int] = queue[: _reach(context, queue)].tolist()
        if not jobs:
            return
        plan = supply.plan_ahead(jobs)
        profile, reserved = plan.profile, plan.jobs
        reach = len(jobs)
        for at in range(len(reserved), len(jobs)):
            if at >= reach:
                break
            job = jobs[at]
            if job in context.barred:
                continue
            unreserved = self.depth is not None and len(reserved) >= self.depth
            if unreserved and not supply.could_start(job):
                continue
            gap = profile.now(job) if unreserved else profile.earliest(job)
            if self._try(context, profile, job, gap, backfilled=bool(reserved)):
                reach = _reach(context, queue[:reach])
            elif not unreserved:
                reserved.append(job)
                plan.starts.append(gap.start)
                profile.reserve(job, gap)
        plan.close(context.plan, supply.free_units())

    def _may_start(self, context: PassContext) -> bool:
        """Whether a job could start that could not at the last pass.

        If nothing was released, no job overruns and the new jobs are all at the end of the queue, only
        these can start.
        """
        queue = context.queue
        settled = not context.released and queue.only_appended() and not context.plan.overrun(context.now)
        return not settled or any(map(context.supply.could_start, queue.new_jobs()))

    def _try(self, context: PassContext, profile: Profile, job: int, gap: Gap, *, backfilled: bool) -> bool:
        """Start the job if its gap begins now and its resources are actually free (a job may overrun)."""
        if gap.start != context.now:
            return False
        selection = gap.selection
        if selection is None or context.plan.overrun(context.now):
            selection = profile.fit_now(job)
        if selection is None:
            return False
        context.start(job, selection, backfilled=backfilled)
        profile.reserve(job, Gap(gap.start, selection))
        return True


def _reach(context: PassContext, queue: Integers) -> int:
    """Return the number of jobs up to the last that the free units of now do not rule out.

    The jobs behind it cannot start now, and their reservations do not move another job.
    """
    could = context.supply.could_start_each(queue).nonzero()[0]
    return could.item(-1) + 1 if len(could) else 0
