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
from simsched.schedule.profiles.gap import NEVER, Gap, end_of
from simsched.schedule.profiles.graph_reservations import GraphReservations

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import PassContext

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

    def run_pass(self, context: PassContext) -> None:
        """Compress if something was given back early, place the new jobs, and start what is due."""
        for job in context.queue.gone:  # cancelled, or its queue stopped
            if job in self.starts:
                self._withdraw(context.reservations, job)
        profile = self.profile(context)
        jobs, early = self._visits(context), context.moved
        for job in jobs:
            self._visit(context, profile, job, early=early)
        if early:
            profile.compressed()
        for job in self._due(end_of(context.now, 0)):  # behind a job of zero seconds, which may be done
            self._start(context, profile, job, fresh=False)
        if self.next_start <= context.now or early:
            self.next_start = min(self.starts.values(), default=NEVER)
        context.wake = self.next_start
        profile.close(context)

    def profile(self, context: PassContext) -> Reservations:
        """Return what is free over time beside all reservations, brought to the present."""
        profile = context.reservations
        if (
            profile is None
            or self.next_start < context.now
            or not profile.follow(context, self._due(context.now))
        ):
            counted = context.table.single is not None
            profile = context.reservations = (
                CountReservations(context) if counted else GraphReservations(context)
            )
            self._lay_down(context, profile)
        return profile

    def _withdraw(self, profile: Reservations | None, job: int) -> None:
        gap = Gap(self.starts.pop(job), self.selections.pop(job, None))
        if profile is not None:
            profile.withdraw(job, gap)

    def _lay_down(self, context: PassContext, profile: Reservations) -> None:
        """Book the reservations that still hold, in the order of their starts; the others are lost."""
        known = sorted(self.starts.items(), key=lambda item: item[1])
        for job, start in known:
            gap = Gap(max(start, context.now), self.selections.get(job))
            if profile.fits(job, gap):
                self.starts[job] = gap.start
                profile.lay(job, gap)
            else:
                del self.starts[job]
                self.selections.pop(job, None)

    def _due(self, now: float) -> list[int]:
        """Return the jobs whose reservations begin now or have begun."""
        return [job for job, start in self.starts.items() if start <= now] if self.next_start <= now else []

    def _visits(self, context: PassContext) -> list[int]:
        """Return the jobs to look at in turn: all, or as few as can change anything."""
        queue, new = context.queue, context.queue.new_jobs()
        due = self.next_start <= context.now
        moves = context.moved and self.compress != "none"
        if not moves and len(self.starts) + len(new) == len(queue):  # the others have reservations
            return [job for job in queue if self.starts.get(job, context.now) <= context.now] if due else new
        full = self.depth is not None and len(self.starts) >= self.depth
        if full and not (due or context.moved or context.released or context.plan.overrun(context.now)):
            return new  # what found no room beside the reservations finds none now
        jobs = queue.listed()
        if self.compress == "start":
            jobs.sort(key=lambda job: self.starts.get(job, NEVER))
        return jobs

    def _visit(self, context: PassContext, profile: Reservations, job: int, *, early: bool) -> None:
        """Plan a job that has no reservation, try to move one that has, and start it if it is due."""
        start, fresh = self.starts.get(job), True
        if start is None:
            if self.depth is not None and len(self.starts) >= self.depth:
                self._backfill(context, profile, job)
            else:
                self._reserve(context, profile, job)
        elif start > context.now and early and self.compress != "none":
            self._move(profile, job)
        else:
            fresh = False
        if self.starts.get(job, NEVER) > context.now or self._start(context, profile, job, fresh=fresh):
            return
        if not context.plan.overrun(
            context.now
        ):  # its units are not free, for a reason that the plan did not know
            self._withdraw(profile, job)
            self._reserve(context, profile, job)

    def _reserve(self, context: PassContext, profile: Reservations, job: int) -> None:
        """Promise a job the earliest start that moves no other reservation, if it has one."""
        gap = profile.earliest(job)
        if gap.start != NEVER:
            self._book(profile, job, gap)
            context.promised.append((job, gap.start))

    def _book(self, profile: Reservations, job: int, gap: Gap) -> None:
        profile.book(job, gap)
        self.starts[job] = gap.start
        self.next_start = min(self.next_start, gap.start)
        if gap.selection is not None:
            self.selections[job] = gap.selection

    def _move(self, profile: Reservations, job: int) -> None:
        """Move a reservation to an earlier start, if there is one beside all the others."""
        gap = profile.earlier(job, Gap(self.starts[job], self.selections.get(job)))
        if gap is not None:
            self._book(profile, job, gap)

    def _backfill(self, context: PassContext, profile: Reservations, job: int) -> None:
        """Start a job without a reservation if it delays none of those that have one."""
        if not context.could_start(job):
            return
        gap = profile.now(job)
        if gap.start == NEVER:
            return
        self._book(profile, job, gap)
        if not self._start(context, profile, job, fresh=True):
            self._withdraw(profile, job)

    def _start(self, context: PassContext, profile: Reservations, job: int, *, fresh: bool) -> bool:
        """Start a job whose reservation begins now, unless a job that overruns is still in its way."""
        gap = Gap(self.starts[job], self.selections.get(job))
        selection = profile.due(job, gap, fresh=fresh)
        if selection is None:
            return False
        context.start(job, selection, backfilled=context.queue.first != job)
        del self.starts[job]
        self.selections.pop(job, None)
        return True
