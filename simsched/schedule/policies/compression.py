"""Conservative backfilling with schedule compression: a promised start only moves earlier.

Mu'alem & Feitelson 2001.  A job gets a reservation at the earliest start that moves no other
reservation, as soon as it waits.  When a job ends before its expected end, or a waiting job is
cancelled, the reservations are compressed: each waiting job is tried in turn, and moved if it can
start earlier beside all the others.  The job order decides which job is tried first, and never
takes a start away.  With a `depth` only so many jobs hold reservations at a time (the policy
``hybrid``), and the others start where they delay none of them.

Maintenance that is announced is planned around.  A failure, a drain, a job that runs beyond its
expected end, a preemption or a queue that stops may break a promise: the reservations that
still hold are kept in the order of their starts, and the others are planned again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.profiles.count_reservations import CountReservations
from simsched.schedule.profiles.gap import NEVER, Hole, end_of
from simsched.schedule.profiles.graph_reservations import GraphReservations

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import Desk

    Reservations = CountReservations | GraphReservations

#: The order in which waiting jobs are tried when something ended early; ``none``: they are not.
COMPRESS = ("queue", "start", "none")


class Compressing:
    """Keep a reservation for each waiting job, or for at most `depth` of them.

    Attributes
    ----------
    starts : waiting job → start of its reservation (seconds); a job without an earliest start has none.
    selections : what a reservation is for, where counts do not decide.
    next_start : no start is before it.
    """

    def __init__(self, compress: str = "queue", depth: int | None = None) -> None:
        self.compress = compress
        self.depth = depth
        self.starts: dict[int, float] = {}
        self.selections: dict[int, Selection] = {}
        self.next_start = NEVER

    def run_pass(self, desk: Desk) -> None:
        """Compress if something was given back early, place the new jobs, and start what is due."""
        for job in desk.waiting.gone:  # cancelled, or its queue stopped
            if job in self.starts:
                self._withdraw(desk.reservations, job)
        profile = self.profile(desk)
        jobs, early = self._visits(desk), desk.moved
        for job in jobs:
            self._visit(desk, profile, job, early=early)
        if early:
            profile.compressed()
        for job in self._due(end_of(desk.now, 0)):  # behind a job of zero seconds, which may be done
            self._start(desk, profile, job, fresh=False)
        if self.next_start <= desk.now or early:
            self.next_start = min(self.starts.values(), default=NEVER)
        desk.wake = self.next_start
        profile.close(desk)

    def profile(self, desk: Desk) -> Reservations:
        """Return what is free over time beside all reservations, brought to the present."""
        profile = desk.reservations
        if profile is None or self.next_start < desk.now or not profile.follow(desk, self._due(desk.now)):
            counted = desk.book.single is not None
            profile = desk.reservations = CountReservations(desk) if counted else GraphReservations(desk)
            self._lay_down(desk, profile)
        return profile

    def _withdraw(self, profile: Reservations | None, job: int) -> None:
        hole = Hole(self.starts.pop(job), self.selections.pop(job, None))
        if profile is not None:
            profile.withdraw(job, hole)

    def _lay_down(self, desk: Desk, profile: Reservations) -> None:
        """Book the reservations that still hold, in the order of their starts; the others are lost."""
        known = sorted(self.starts.items(), key=lambda item: item[1])
        for job, start in known:
            hole = Hole(max(start, desk.now), self.selections.get(job))
            if profile.fits(job, hole):
                self.starts[job] = hole.start
                profile.lay(job, hole)
            else:
                del self.starts[job]
                self.selections.pop(job, None)

    def _due(self, now: float) -> list[int]:
        """Return the jobs whose reservations begin now or have begun."""
        return [job for job, start in self.starts.items() if start <= now] if self.next_start <= now else []

    def _visits(self, desk: Desk) -> list[int]:
        """Return the jobs to look at in turn: all, or as few as can change anything."""
        waiting, new = desk.waiting, desk.waiting.new_jobs()
        due = self.next_start <= desk.now
        moves = desk.moved and self.compress != "none"
        if not moves and len(self.starts) + len(new) == len(waiting):  # the others have reservations
            return [job for job in waiting if self.starts.get(job, desk.now) <= desk.now] if due else new
        full = self.depth is not None and len(self.starts) >= self.depth
        if full and not (due or desk.moved or desk.released or desk.plan.overrun(desk.now)):
            return new  # what found no room beside the reservations finds none now
        jobs = waiting.listed()
        if self.compress == "start":
            jobs.sort(key=lambda job: self.starts.get(job, NEVER))
        return jobs

    def _visit(self, desk: Desk, profile: Reservations, job: int, *, early: bool) -> None:
        """Plan a job that has no reservation, try to move one that has, and start it if it is due."""
        start, fresh = self.starts.get(job), True
        if start is None:
            if self.depth is not None and len(self.starts) >= self.depth:
                self._backfill(desk, profile, job)
            else:
                self._reserve(desk, profile, job)
        elif start > desk.now and early and self.compress != "none":
            self._move(profile, job)
        else:
            fresh = False
        if self.starts.get(job, NEVER) > desk.now or self._start(desk, profile, job, fresh=fresh):
            return
        if not desk.plan.overrun(desk.now):  # its units are not free, for a reason that the plan did not know
            self._withdraw(profile, job)
            self._reserve(desk, profile, job)

    def _reserve(self, desk: Desk, profile: Reservations, job: int) -> None:
        """Promise a job the earliest start that moves no other reservation, if it has one."""
        hole = profile.earliest(job)
        if hole.start != NEVER:
            self._book(profile, job, hole)
            desk.promised.append((job, hole.start))

    def _book(self, profile: Reservations, job: int, hole: Hole) -> None:
        profile.book(job, hole)
        self.starts[job] = hole.start
        self.next_start = min(self.next_start, hole.start)
        if hole.selection is not None:
            self.selections[job] = hole.selection

    def _move(self, profile: Reservations, job: int) -> None:
        """Move a reservation to an earlier start, if there is one beside all the others."""
        hole = profile.earlier(job, Hole(self.starts[job], self.selections.get(job)))
        if hole is not None:
            self._book(profile, job, hole)

    def _backfill(self, desk: Desk, profile: Reservations, job: int) -> None:
        """Start a job without a reservation if it delays none of those that have one."""
        if not desk.could_start(job):
            return
        hole = profile.now(job)
        if hole.start == NEVER:
            return
        self._book(profile, job, hole)
        if not self._start(desk, profile, job, fresh=True):
            self._withdraw(profile, job)

    def _start(self, desk: Desk, profile: Reservations, job: int, *, fresh: bool) -> bool:
        """Start a job whose reservation begins now, unless a job that overruns is still in its way."""
        hole = Hole(self.starts[job], self.selections.get(job))
        selection = profile.due(job, hole, fresh=fresh)
        if selection is None:
            return False
        desk.start(job, selection, backfilled=desk.waiting.first != job)
        del self.starts[job]
        self.selections.pop(job, None)
        return True
