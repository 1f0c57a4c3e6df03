"""Conservative backfilling with compression: a promised start only moves earlier.

Mu'alem & Feitelson 2001. A pass goes through the waiting jobs in order:

1. A job without a reservation gets the earliest start that moves no other reservation.
2. If a job ended before its expected end, or a waiting job was cancelled, each reservation is tried in turn.
   It moves if the job can start earlier beside all the others.
3. A job whose reservation begins now starts.

The job order decides which job is tried first; it never withdraws a promised start. With a `depth`, at
most `depth` jobs have reservations at a time (the policy ``hybrid``), and other jobs start if they delay none
of these.

A reservation is so many copies on each target. Where a job runs is decided when it starts, since more may be
free then.

Announced maintenance is planned around. A failure, a drain, an overrun, a preemption or a stopped queue may
break a promise. Then the reservations that still hold are kept, the oldest first, and the others
are made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.schedule.profile import end_of
from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.reservations import Reservations


class Conservative:
    """Keep a reservation for each waiting job, or for at most `depth` of them.

    Attributes
    ----------
    starts : waiting job → start of its reservation in seconds. A job without a known earliest start has none.
    next_start : a lower bound of `starts`, in seconds.
    """

    def __init__(self, compress: str = "queue", depth: int | None = None) -> None:
        self.compress = compress
        self.depth = depth
        self.starts: dict[int, float] = {}
        self.next_start = NEVER
        self._places: dict[int, Any] = {}
        """Job → its reserved resources, until there are `_reservations`."""
        self._reservations: Reservations | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the memory as plain values; the reservations can be made again."""
        return {**self.__dict__, "_places": self.places(), "_reservations": None}

    def places(self) -> dict[int, Any]:
        """Return job → its reserved resources, as plain values."""
        return self._places if self._reservations is None else self._reservations.places()

    def run_pass(self, context: PassContext) -> None:
        """Reserve for new jobs, compress after early releases, and start the jobs that are due."""
        early = context.moved
        profile = self.profile(context)
        for job in self._turns(context, profile):
            self._visit(context, profile, job)
        if early or self.next_start <= context.now:
            self.next_start = _first(self.starts)
        # A reservation behind a job of zero seconds begins a moment after now. The job may have ended.
        for job in self._due(_soon(context)):
            if job not in context.barred:
                self._start(context, profile, job)
        if self.next_start <= _soon(context):
            self.next_start = _first(self.starts)
        context.wake = self._next_wake(context)

    def profile(self, context: PassContext) -> Reservations:
        """Return the availability over time beside all reservations, brought to the present."""
        profile, holds = context.reservations, True
        # cancelled, or its queue stopped
        gone = {job for job in context.queue.gone if job in self.starts}
        if profile is None:
            places, profile = self.places(), context.supply.reservations()
            for job, place in places.items():
                if job not in gone:
                    holds = profile.put(job, self.starts[job], place) and holds
            context.reservations = self._reservations = profile
            self._places = {}
        else:
            for job in sorted(gone):
                profile.withdraw(job)
        for job in gone:
            del self.starts[job]
        if not (profile.open(context.now) and holds) or self.next_start < context.now:
            self.starts = profile.restore(self.starts)
            self.next_start = _first(self.starts)
        return profile

    def renew(self, *, forget: bool) -> None:
        """Continue on another supply; with `forget` all reservations are made again, in queue order."""
        if forget:
            self.starts, self.next_start = {}, NEVER
            self._places, self._reservations = {}, None

    def _next_wake(self, context: PassContext) -> float:
        """Return when the next reservation begins; those of jobs that this pass barred are withdrawn.

        A reservation behind a moment waits for the end of a job: one of zero seconds, or one that overruns.
        """
        moment = _soon(context)
        if self.next_start > moment and self.starts.keys().isdisjoint(context.barred):
            return self.next_start
        later = (start for job, start in self.starts.items() if start > moment and job not in context.barred)
        return min(later, default=NEVER)

    # -- which jobs -------------------------------------------------------------------------------

    def _due(self, now: float) -> list[int]:
        """Return the jobs whose reservations begin now or have begun."""
        return [job for job, start in self.starts.items() if start <= now] if self.next_start <= now else []

    def _turns(self, context: PassContext, profile: Reservations) -> Iterable[int]:
        """Yield, in turn, the jobs that are due or have no reservation; after early releases others move."""
        queue, now = context.queue, context.now
        compresses = context.moved and self.compress != "none"
        jobs, due = queue.new_jobs(), self.next_start <= now
        reserved = len(self.starts) + len(jobs) == len(queue)  # every job but the new ones
        full = self.depth is not None and len(self.starts) >= self.depth
        # Without a change a job that did not fit then does not fit now.
        settled = full and not (context.moved or context.released or context.plan.overrun(now))
        if compresses or due or not (reserved or settled):
            jobs = queue.listed()
        if self.compress == "start" and (compresses or not reserved):
            jobs.sort(key=lambda job: self.starts.get(job, NEVER))
        jobs = self._arranged(context, jobs)
        return profile.turns(jobs, context.barred, self.starts if compresses else None)

    def _arranged(self, context: PassContext, jobs: list[int]) -> list[int]:  # noqa: ARG002
        """Return the jobs to look at in the order in which they get their turns."""
        return jobs

    def _may_reserve(self, context: PassContext, job: int) -> bool:  # noqa: ARG002
        """Whether a job without a reservation may get one."""
        return self.depth is None or len(self.starts) < self.depth

    # -- one job --------------------------------------------------------------------------------

    def _visit(self, context: PassContext, profile: Reservations, job: int) -> None:
        """Reserve for a job without a reservation, and start it if it is due."""
        if job not in self.starts:
            if self._may_reserve(context, job):
                self._reserve(context, profile, job)
            elif profile.earliest(job, end_of(context.now, 0)) < NEVER:
                self._start(context, profile, job)
                return
        if self.starts.get(job, NEVER) <= context.now:
            self._start(context, profile, job)

    def _reserve(self, context: PassContext, profile: Reservations, job: int) -> None:
        """Promise a job the earliest start that moves no other reservation, if it has one."""
        start = profile.earliest(job)
        if start < NEVER:
            profile.reserve(job, start)
            self.starts[job] = start
            self.next_start = min(self.next_start, start)
            self._promise(context, job, start)

    def _promise(self, context: PassContext, job: int, start: float) -> None:
        """Promise a job to start by a time, in seconds; a plan by predictions promises nothing."""
        if not context.predicts:
            context.promised.append((job, start))

    def _start(self, context: PassContext, profile: Reservations, job: int) -> None:
        """Start a job for which there are resources now, in the present beside all reservations.

        If they are not actually free, for a reason that the plan did not know, it gets another reservation.
        One that is still behind a moment stays.
        """
        selection = profile.begin(job)
        if selection is None and self.starts.get(job, NEVER) > context.now:
            return
        reserved = self.starts.pop(job, None) is not None
        if selection is None:
            if reserved:
                self._reserve(context, profile, job)
        elif context.start(job, selection, backfilled=context.queue.first != job):
            profile.started(job)


def _first(starts: dict[int, float]) -> float:
    """Return the first of some starts."""
    first = NEVER
    for start in starts.values():
        first = min(first, start)
    return first


def _soon(context: PassContext) -> float:
    """Return the time up to which a reservation is behind a moment, and not behind an event of its own.

    Behind a job that overruns, jobs of zero seconds may wait for one another, moment by moment.
    """
    return context.now + 1e-6 if context.plan.overrun(context.now) else end_of(context.now, 0)
