"""Backfilling with a plan that is computed again at each pass: ``compress=replan``.

In the order of the queue, every job gets the earliest start that moves no earlier job's, as in conservative
backfilling (Mu'alem & Feitelson 2001). But reservations do not last: when a job ends early, all jobs move
up in the order of the queue, and a planned start may become later. `depth` is the reservation-depth of Flux's
queue manager (for its queue-depth see `limited`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.schedule.profile import end_of
from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from simsched.arrays import Integers
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.reservations import Reservations


class Replanning:
    """Reserve for the first `depth` jobs that cannot start (None: for all), and backfill the others."""

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth

    def run_pass(self, context: PassContext) -> None:
        """Plan in order, up to the last job that could start now, and start the jobs that may."""
        if not self._may_start(context):
            return
        now, jobs = context.now, context.queue.jobs()
        reach = Reach(context, jobs, apart=self.depth is None)
        if not len(reach):
            return
        plan, reserved = context.supply.ahead(), 0
        for at, job in enumerate(jobs[: len(reach)].tolist()):
            if job in context.barred:
                continue
            if not reach.includes(at, plan):
                reserved += 1
                continue
            plans = self.depth is None or reserved < self.depth
            start = plan.earliest(job, NEVER if plans else end_of(now, 0))
            if start <= now and self._start(context, plan, job, backfilled=reserved > 0):
                continue
            if plans and job not in context.barred:
                reserved += 1
                if start < NEVER:
                    plan.reserve(job, start)

    def _start(self, context: PassContext, plan: Reservations, job: int, *, backfilled: bool) -> bool:
        """Start a job if its resources are actually free (a job may overrun), and limits allow them."""
        selection = plan.begin(job)
        if selection is None or not context.start(job, selection, backfilled=backfilled):
            return False
        plan.started(job)
        return True

    def _may_start(self, context: PassContext) -> bool:
        """Whether a job could start that could not at the last pass.

        If nothing was released, no job overruns and the new jobs are all at the end of the queue, only
        these can start.
        """
        queue = context.queue
        settled = not context.released and queue.only_appended() and not context.plan.overrun(context.now)
        return not settled or any(map(context.supply.could_start, queue.new_jobs()))


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

    def includes(self, place: int, plan: Reservations | None) -> bool:
        """Whether the job at a place, or one behind it that it could delay, may still start now."""
        left = self._left[self._components[place]]
        while left and left[-1][0] >= place:
            if self._may_start(left[-1][1], plan):
                return True
            left.pop()
        return False

    def _may_start(self, job: int, plan: Reservations | None) -> bool:
        if plan is None or self._asks_all:
            return self._context.supply.could_start(job)
        return job not in self._context.barred and plan.could_now(job)
