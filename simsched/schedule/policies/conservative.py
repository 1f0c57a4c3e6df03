"""Conservative backfilling with compression: a promised start only moves earlier.

Mu'alem & Feitelson 2001. A pass has three steps:

1. Compress: if a job ended before its expected end, or a waiting job was cancelled, each waiting job is
   tried in turn, and its reservation moves if it can start earlier beside all the others.
2. Reserve: a new job gets a reservation at the earliest start that moves no other reservation.
3. Start the jobs whose reservations begin now.

The job order decides which job is tried first; it never withdraws a promised start. With a `depth`, at
most `depth` jobs have reservations at a time (the policy ``hybrid``), and other jobs start if they delay none
of these.

Announced maintenance is planned around. A failure, a drain, an overrun, a preemption or a stopped queue may
break a promise. Then the reservations that still hold are kept in the order of their starts, and the others
are made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.profiles.gap import NEVER, Gap, end_of

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.protocols import Reservations

COMPRESS = ("queue", "start", "none")
"""The order in which waiting jobs are tried when a job ended early; ``none``: they are not tried."""


class Conservative:
    """Keep a reservation for each waiting job, or for at most `depth` of them.

    Attributes
    ----------
    starts : waiting job → start of its reservation in seconds. A job without a known earliest start has none.
    selections : waiting job → reserved resources, where counts do not decide.
    next_start : a lower bound of `starts`, in seconds.
    """

    def __init__(self, compress: str = "queue", depth: int | None = None) -> None:
        self.compress = compress
        self.depth = depth
        self.starts: dict[int, float] = {}
        self.selections: dict[int, Selection] = {}
        self.next_start = NEVER

    def run_pass(self, context: PassContext) -> None:
        """Compress after early releases, reserve for new jobs, and start the jobs that are due."""
        for job in context.queue.gone:  # cancelled, or its queue stopped
            if job in self.starts:
                self._withdraw(context.reservations, job)
        if self.next_start < context.now:  # the reservation of a job that a limit barred
            self.next_start = min(self.starts.values(), default=NEVER)
        profile = self.profile(context)
        jobs, early = self._arranged(context, self._visits(context)), context.moved
        compresses = early and self.compress != "none"
        for job in profile.turns(jobs, self.starts) if compresses else jobs:
            self._visit(context, profile, job, early=early)
        if early:
            profile.compressed()
        # A reservation behind a job of zero seconds begins a moment after now. The job may have ended.
        for job in self._due(end_of(context.now, 0)):
            if job in context.barred:
                continue
            self._start(context, profile, job, fresh=False)
        if self.next_start <= context.now or early:
            self.next_start = min(self.starts.values(), default=NEVER)
        context.wake = self._next_wake(context)
        profile.close(changed=bool(context.started) or context.moved)

    def profile(self, context: PassContext) -> Reservations:
        """Return the availability over time beside all reservations, brought to the present.

        It is followed from pass to pass while only early ends happen, and rebuilt otherwise.
        """
        profile, now = context.reservations, context.now
        if (
            profile is None
            or not profile.follow(self._due(now), moved=context.moved)
            or (self.next_start < now and not self._postpone(profile, now))
        ):
            profile = context.reservations = context.supply.reservations()
            self._restore(context, profile)
        return profile

    def _postpone(self, profile: Reservations, now: float) -> bool:
        """Let missed reservations begin now; return False if the profile must be built again for that."""
        missed = [job for job, start in self.starts.items() if start < now]
        kept = profile.postpone(missed)
        if kept:
            self.starts.update(dict.fromkeys(missed, now))
        return kept

    def _restore(self, context: PassContext, profile: Reservations) -> None:
        """Keep the reservations that still hold, in the order of their starts, and drop the others."""
        for job, start in sorted(self.starts.items(), key=lambda item: item[1]):
            gap = Gap(max(start, context.now), self.selections.get(job))
            if profile.fits(job, gap):
                self.starts[job] = gap.start
                profile.restore(job, gap)
            else:
                del self.starts[job]
                self.selections.pop(job, None)

    def renew(self, *, forget: bool) -> None:
        """Continue on another supply; with `forget` all reservations are made again, in queue order."""
        if forget:
            self.starts.clear()
            self.selections.clear()
            self.next_start = NEVER

    def _next_wake(self, context: PassContext) -> float:
        """Return when the next reservation begins; those of jobs that this pass barred are withdrawn."""
        if not context.barred or self.starts.keys().isdisjoint(context.barred):
            return self.next_start
        kept = (start for job, start in self.starts.items() if job not in context.barred)
        return min(kept, default=NEVER)

    # -- which jobs -------------------------------------------------------------------------------

    def _due(self, now: float) -> list[int]:
        """Return the jobs whose reservations begin now or have begun."""
        return [job for job, start in self.starts.items() if start <= now] if self.next_start <= now else []

    def _visits(self, context: PassContext) -> list[int]:
        """Return the jobs to look at, in turn: all of them, or only those for which something changed."""
        queue, now = context.queue, context.now
        new, due = queue.new_jobs(), self.next_start <= now
        compresses = context.moved and self.compress != "none"
        if not compresses and len(self.starts) + len(new) == len(queue):
            # Every job but the new ones has a reservation, and none of these moves.
            return [job for job in queue if self.starts.get(job, now) <= now] if due else new
        full = self.depth is not None and len(self.starts) >= self.depth
        if full and not (due or context.moved or context.released or context.plan.overrun(now)):
            return new  # a job that did not fit beside the reservations then does not fit now
        jobs = queue.listed()
        if self.compress == "start":
            jobs.sort(key=lambda job: self.starts.get(job, NEVER))
        return jobs

    def _arranged(self, context: PassContext, jobs: list[int]) -> list[int]:  # noqa: ARG002
        """Return the jobs to look at in the order in which they get their turns."""
        return jobs

    def _may_reserve(self, context: PassContext, job: int) -> bool:  # noqa: ARG002
        """Whether a job without a reservation may get one."""
        return self.depth is None or len(self.starts) < self.depth

    def _visit(self, context: PassContext, profile: Reservations, job: int, *, early: bool) -> None:
        """Reserve for a job without a reservation, try to move another, and start the job if it is due."""
        if job in context.barred:  # its reservation, if it has one, is withdrawn at the next pass
            return
        start, fresh = self.starts.get(job), True
        if start is None:
            if self._may_reserve(context, job):
                self._reserve(context, profile, job)
            else:
                self._backfill(context, profile, job)
        elif start > context.now and early and self.compress != "none":
            self._move(profile, job)
        else:
            fresh = False
        if self.starts.get(job, NEVER) > context.now or self._start(context, profile, job, fresh=fresh):
            return
        if not context.plan.overrun(context.now):
            # Its resources are not free, for a reason that the plan did not know: reserve again. While a
            # job overruns, the reservation waits for its end.
            self._withdraw(profile, job)
            self._reserve(context, profile, job)

    # -- one job --------------------------------------------------------------------------------

    def _reserve(self, context: PassContext, profile: Reservations, job: int) -> None:
        """Promise a job the earliest start that moves no other reservation, if it has one."""
        gap = profile.earliest(job)
        if gap.start != NEVER:
            self._keep(profile, job, gap)
            self._promise(context, job, gap.start)

    def _promise(self, context: PassContext, job: int, start: float) -> None:
        """Promise a job to start by a time, in seconds; a plan by predictions promises nothing."""
        if not context.predicts:
            context.promised.append((job, start))

    def _keep(self, profile: Reservations, job: int, gap: Gap) -> None:
        profile.reserve(job, gap)
        self._note(job, gap)

    def _note(self, job: int, gap: Gap) -> None:
        self.starts[job] = gap.start
        self.next_start = min(self.next_start, gap.start)
        if gap.selection is not None:
            self.selections[job] = gap.selection

    def _withdraw(self, profile: Reservations | None, job: int) -> None:
        gap = Gap(self.starts.pop(job), self.selections.pop(job, None))
        if profile is not None:
            profile.withdraw(job, gap)

    def _move(self, profile: Reservations, job: int) -> None:
        """Move a reservation to an earlier start, if there is one beside all the others."""
        gap = profile.move(job, Gap(self.starts[job], self.selections.get(job)))
        if gap is not None:
            self._note(job, gap)

    def _backfill(self, context: PassContext, profile: Reservations, job: int) -> None:
        """Start a job without a reservation if it delays no job that has one."""
        if not context.supply.could_start(job):
            return
        gap = profile.now(job)
        if gap.start == NEVER:
            return
        self._keep(profile, job, gap)
        if not self._start(context, profile, job, fresh=True):
            self._withdraw(profile, job)

    def _start(self, context: PassContext, profile: Reservations, job: int, *, fresh: bool) -> bool:
        """Start a job whose reservation begins now; return False if its resources are not actually free."""
        gap = Gap(self.starts[job], self.selections.get(job))
        if fresh and gap.selection is not None and not context.allows(job, gap.selection):
            self._withdraw(profile, job)
            return True
        selection = profile.due(job, gap, fresh=fresh)
        if selection is None:
            return False
        if not context.start(job, selection, backfilled=context.queue.first != job):
            context.reservations = None  # a limit does not allow it, and it counts as running there
        del self.starts[job]
        self.selections.pop(job, None)
        return True
