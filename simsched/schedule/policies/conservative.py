"""Conservative backfilling, and hybrid: every waiting job, or the first few, get reservations.

Mu'alem & Feitelson 2001 (conservative); the depth of the hybrid is what Flux's queue manager
calls reservation-depth (for its queue-depth see `limited`).  Every job in order gets the
earliest start that moves no earlier job's.
The plan is made anew in queue order at each pass, so that what ends early moves everybody up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.profiles.kept_plan import outlook_on
from simsched.schedule.profiles.profile import Hole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from simsched.schedule.pass_context import Desk
    from simsched.schedule.profiles.profile import Profile

    Integers = npt.NDArray[np.int64]


class Reserving:
    """Reserve for the first `depth` jobs that cannot start (None: for all); backfill the rest."""

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth

    def run_pass(self, desk: Desk) -> None:
        """Plan in order, as far as a job lies that could start now, and start those that may."""
        if not self._may_start(desk):
            return
        queue = desk.waiting.jobs()
        jobs: list[int] = queue[: _reach(desk, queue)].tolist()
        if not jobs:
            return
        outlook = outlook_on(desk, jobs)
        profile, reserved = outlook.profile, outlook.jobs
        reach = len(jobs)
        for at in range(len(reserved), len(jobs)):
            if at >= reach:
                break
            job = jobs[at]
            free = self.depth is not None and len(reserved) >= self.depth
            if free and not desk.could_start(job):
                continue
            hole = profile.now(job) if free else profile.earliest(job)
            if self._try(desk, profile, job, hole, backfilled=bool(reserved)):
                reach = _reach(desk, queue[:reach])
            elif not free:
                reserved.append(job)
                outlook.starts.append(hole.start)
                profile.book(job, hole)
        outlook.close(desk)

    def _may_start(self, desk: Desk) -> bool:
        """Whether anybody could start who could not at the last pass.

        When nothing was released, nothing runs beyond its expected end and only jobs at the end
        of the queue are new, nobody else can start.
        """
        waiting = desk.waiting
        settled = not desk.released and waiting.only_appended() and not desk.plan.overrun(desk.now)
        return not settled or any(desk.could_start(job) for job in waiting.new_jobs())

    def _try(self, desk: Desk, profile: Profile, job: int, hole: Hole, *, backfilled: bool) -> bool:
        """Start the job if its hole begins now and it fits (an overrunning job may still be in it)."""
        if hole.start != desk.now:
            return False
        selection = hole.selection
        if selection is None or desk.plan.overrun(desk.now):
            selection = profile.real(job)
        if selection is None:
            return False
        desk.start(job, selection, backfilled=backfilled)
        profile.book(job, Hole(hole.start, selection))
        return True


def _reach(desk: Desk, queue: Integers) -> int:
    """Return how far into the queue lies the last job that the free units of now would hold.

    What lies behind it cannot start now, and its reservations move nobody.
    """
    could = desk.fits_now(queue).nonzero()[0]
    return could.item(-1) + 1 if len(could) else 0
