"""Backfilling with a plan that is computed again at each pass: ``compress=replan``.

In the order of the queue, every job gets the earliest start that moves no earlier job's, as in conservative
backfilling (Mu'alem & Feitelson 2001). But reservations do not last: when a job ends early, all jobs move
up in the order of the queue, and a planned start may become later. `depth` is the reservation-depth of Flux's
queue manager (for its queue-depth see `limited`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.schedule.profiles.gap import Gap

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.protocols import PassProfile

    Integers = npt.NDArray[np.int64]


class Replanning:
    """Reserve for the first `depth` jobs that cannot start (None: for all), and backfill the others."""

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth

    def run_pass(self, context: PassContext) -> None:
        """Plan in order, up to the last job that could start now, and start the jobs that may."""
        if not self._may_start(context):
            return
        supply, reserved = context.supply, 0
        jobs = context.queue.jobs()
        reach = Reach(context, jobs, apart=self.depth is None)
        profile: PassProfile | None = None
        for at, job in enumerate(jobs[: len(reach)].tolist()):
            if job in context.barred:
                continue
            if not reach.includes(at, profile):
                reserved += 1
                continue
            unreserved = self.depth is not None and reserved >= self.depth
            if unreserved and not supply.could_start(job):
                continue
            profile = profile or supply.profile()
            gap = profile.now(job) if unreserved else profile.earliest(job)
            started = self._try(context, profile, job, gap, backfilled=reserved > 0)
            if not started and not unreserved and job not in context.barred:
                reserved += 1
                profile.reserve(job, gap)

    def _may_start(self, context: PassContext) -> bool:
        """Whether a job could start that could not at the last pass.

        If nothing was released, no job overruns and the new jobs are all at the end of the queue, only
        these can start.
        """
        queue = context.queue
        settled = not context.released and queue.only_appended() and not context.plan.overrun(context.now)
        return not settled or any(map(context.supply.could_start, queue.new_jobs()))

    def _try(
        self, context: PassContext, profile: PassProfile, job: int, gap: Gap, *, backfilled: bool
    ) -> bool:
        """Start the job if its gap begins now and its resources are actually free (a job may overrun)."""
        if gap.start != context.now:
            return False
        selection = gap.selection
        if selection is None or context.plan.overrun(context.now):
            selection = profile.fit_now(job)
        if selection is None or not context.start(job, selection, backfilled=backfilled):
            return False
        profile.reserve(job, Gap(gap.start, selection))
        return True


class Reach:
    """How far a pass must plan: up to the last job that may still start now.

    The reservations last for one pass, so those of the jobs behind it do not matter. Nor do those of jobs
    that share no targets with it, not even through others (`apart`). Within a pass resources are only taken:
    a job that the reservations so far keep from starting now is not asked again.
    """

    def __init__(self, context: PassContext, jobs: Integers, *, apart: bool) -> None:
        self._context = context
        # A match policy that chooses at random must be asked for each job, or it would choose otherwise.
        self._asks_all = not context.supply.is_steady
        components = context.supply.components(jobs) if apart else np.zeros(len(jobs), dtype=np.int64)
        self._components: list[int] = components.tolist()
        self._left: dict[int, list[tuple[int, int]]] = {component: [] for component in self._components}
        """Component → the places and jobs that nothing has ruled out so far."""
        could = context.supply.could_start_each(jobs).nonzero()[0]
        for place, job in zip(could.tolist(), jobs[could].tolist(), strict=True):
            self._left[self._components[place]].append((place, job))

    def __len__(self) -> int:
        return max((left[-1][0] + 1 for left in self._left.values() if left), default=0)

    def includes(self, place: int, profile: PassProfile | None) -> bool:
        """Whether the job at a place, or one behind it that it could delay, may still start now."""
        left = self._left[self._components[place]]
        while left and left[-1][0] >= place:
            if self._may_start(left[-1][1], profile):
                return True
            left.pop()
        return False

    def _may_start(self, job: int, profile: PassProfile | None) -> bool:
        if profile is None or self._asks_all:
            return self._context.supply.could_start(job)
        return job not in self._context.barred and profile.could_now(job)
