"""Conservative backfilling, and hybrid: every waiting job, or the first few, get reservations.

Mu'alem & Feitelson 2001 (conservative); the depth of the hybrid is what Flux's queue manager
calls reservation-depth (for its queue-depth see `limited`).  Every job in order gets the
earliest start that moves no earlier job's.
The plan is made anew in queue order at each pass, so that what ends early moves everybody up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.profiles.kept_plan import kept_plan_on
from simsched.schedule.profiles.profile import Gap

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.profile import Profile

    Integers = npt.NDArray[np.int64]


class Reserving:
    """Reserve for the first `depth` jobs that cannot start (None: for all); backfill the rest."""

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth

    def run_pass(self, context: PassContext) -> None:
        """Plan in order, as far as a job lies that could start now, and start those that may."""
        if not self._may_start(context):
            return
        queue = context.queue.jobs()
        jobs: list[int] = queue[: _reach(context, queue)].tolist()
        if not jobs:
            return
        kept_plan = kept_plan_on(context, jobs)
        profile, reserved = kept_plan.profile, kept_plan.jobs
        reach = len(jobs)
        for at in range(len(reserved), len(jobs)):
            if at >= reach:
                break
            job = jobs[at]
            free = self.depth is not None and len(reserved) >= self.depth
            if free and not context.could_start(job):
                continue
            gap = profile.now(job) if free else profile.earliest(job)
            if self._try(context, profile, job, gap, backfilled=bool(reserved)):
                reach = _reach(context, queue[:reach])
            elif not free:
                reserved.append(job)
                kept_plan.starts.append(gap.start)
                profile.book(job, gap)
        kept_plan.close(context)

    def _may_start(self, context: PassContext) -> bool:
        """Whether anybody could start who could not at the last pass.

        When nothing was released, nothing runs beyond its expected end and only jobs at the end
        of the queue are new, nobody else can start.
        """
        queue = context.queue
        settled = not context.released and queue.only_appended() and not context.plan.overrun(context.now)
        return not settled or any(context.could_start(job) for job in queue.new_jobs())

    def _try(self, context: PassContext, profile: Profile, job: int, gap: Gap, *, backfilled: bool) -> bool:
        """Start the job if its hole begins now and it fits (an overrunning job may still be in it)."""
        if gap.start != context.now:
            return False
        selection = gap.selection
        if selection is None or context.plan.overrun(context.now):
            selection = profile.real(job)
        if selection is None:
            return False
        context.start(job, selection, backfilled=backfilled)
        profile.book(job, Gap(gap.start, selection))
        return True


def _reach(context: PassContext, queue: Integers) -> int:
    """Return how far into the queue lies the last job that the free units of now would hold.

    What lies behind it cannot start now, and its reservations move nobody.
    """
    could = context.fits_now(queue).nonzero()[0]
    return could.item(-1) + 1 if len(could) else 0
