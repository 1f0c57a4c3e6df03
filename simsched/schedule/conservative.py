"""Conservative backfilling, and hybrid: every waiting job, or the first few, get reservations.

Mu'alem & Feitelson 2001 (conservative); the depth of the hybrid is what Flux's queue manager
calls reservation-depth (for its queue-depth see `limited`).  Every job in order gets the
earliest start that moves no earlier job's.
The plan is made anew in queue order at each pass, so that what ends early moves everybody up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.schedule.profile import Hole, profile_of

if TYPE_CHECKING:
    from simsched.schedule.desk import Desk
    from simsched.schedule.profile import Profile


class Reserving:
    """Reserve for the first `depth` jobs that cannot start (None: for all); backfill the rest."""

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth

    def run_pass(self, desk: Desk) -> None:
        """Plan in order, as far as a job lies that could start now, and start those that may."""
        jobs = self._considered(desk)
        if not jobs:
            return
        profile = profile_of(desk)
        reserved = 0
        fits = desk.could_start
        for job in jobs:
            if self.depth is not None and reserved >= self.depth:
                if fits(job):
                    self._try(desk, profile, job, profile.now(job), backfilled=True)
                continue
            hole = profile.earliest(job)
            if not self._try(desk, profile, job, hole, backfilled=reserved > 0):
                reserved += 1
                if hole.start != float("inf"):
                    profile.book(job, hole)

    def _considered(self, desk: Desk) -> list[int]:
        """Return the queue up to the last job that the free units of now would hold.

        What lies behind it cannot start now, and its reservations move nobody.  When nothing
        was released, nothing runs beyond its expected end and only jobs at the end of the queue
        are new, nobody else can start.
        """
        waiting = desk.waiting
        if not waiting.ranks:
            return []
        settled = not desk.released and waiting.only_appended() and not desk.plan.overrun(desk.now)
        if settled and not any(desk.could_start(job) for job in waiting.new_jobs()):
            return []
        jobs = waiting.jobs()
        could = np.flatnonzero(desk.fits_now(jobs))
        considered: list[int] = jobs[: int(could[-1]) + 1].tolist() if len(could) else []
        return considered

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
