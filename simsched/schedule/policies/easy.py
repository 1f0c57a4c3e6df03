"""EASY backfilling: the first job that cannot start gets a reservation, later ones may pass it.

Lifka 1995; Mu'alem & Feitelson 2001.  Jobs start in order.  The first that cannot gets its
earliest start computed from the requested durations of what runs (the *shadow time*).  A
later job starts now if it fits now and, running to its requested end, would not move that
earliest start: it ends by the shadow time, or what is left at the shadow time still holds
the first job.  The reservation is a time, not a set of vertices: whether a candidate is in
the way is asked of the matcher.  Only where the candidate's first choice of vertices is in
the way is it tried once more, on what the reservation leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simsched.schedule.profiles.plan import beside, units_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.plan import Shadow

    Integers = npt.NDArray[np.int64]

LONG = 48
"""A queue of so many jobs is looked at as one vector."""

REFRESH = ("always", "when-blocked")
RESERVATION = ("hard", "none")


@dataclass(frozen=True, slots=True)
class EasyOptions:
    """The known variations of EASY.

    Attributes
    ----------
    extra : whether a candidate that ends after the shadow time may use what is left over then.
    refresh : when the reservation is computed: ``always`` when it could have moved, or once,
        ``when-blocked``, and kept until the job starts.
    reservation : ``hard`` binds; ``none`` lets every job start that fits.
    """

    extra: bool = True
    refresh: str = "always"
    reservation: str = "hard"


class Easy:
    """The policy; it keeps the reservation from pass to pass until something may move it."""

    def __init__(self, options: EasyOptions | None = None) -> None:
        self.options = options or EasyOptions()
        self._kept: Reservation | None = None

    def run_pass(self, context: PassContext) -> None:
        """Start in order, reserve for the first that cannot start, then backfill."""
        queue = context.queue
        if not queue.ranks:
            return
        kept = self._kept
        if kept is not None and self._still_blocked(context, kept):
            kept.backfill(context, queue.new_jobs())
        elif start_in_order(context):
            reservation = self._kept = self._reserve(context, queue.first)
            reservation.backfill(context, reservation.candidates(context))
        else:
            self._kept = None

    def _still_blocked(self, context: PassContext, kept: Reservation) -> bool:
        """Whether the first job is the one of the last pass, and only new jobs need a look.

        Nothing was given back, so that what failed then fails now; and a candidate that
        ended too late then ends too late now.  Only a start may give a candidate that was in
        the way another choice of vertices.
        """
        queue = context.queue
        if context.released or context.moved or kept.unsettled:
            return False
        if not queue.static or queue.first != kept.job:
            return False
        return self.options.refresh != "always" or not kept.is_past(context.now)

    def _reserve(self, context: PassContext, job: int) -> Reservation:
        """Return the reservation of the first job, computed only if it could have moved."""
        kept = self._kept
        if kept is not None and kept.job == job:
            if self.options.refresh == "when-blocked":
                return kept
            passed = bool(context.started)  # by others that came later and stand before it
            if not (context.moved or passed or kept.is_past(context.now)):
                return kept
        if self.options.reservation == "none":
            return NoReservation(job)
        if context.table.single is not None:
            counted = CountReservation(job, extra=self.options.extra)
            if self.options.refresh != "always":
                counted.settle(context)
            return counted
        shadow = _shadow(context, job)
        if shadow is None:
            return NoReservation(job)
        stays = self.options.refresh != "always"
        return GraphReservation(job, shadow, extra=self.options.extra, stays=stays)


def start_in_order(context: PassContext) -> bool:
    """Start jobs in order until one does not fit; return whether one is left."""
    if context.table.single is not None:
        return _start_counted(context)
    queue = context.queue
    while queue.ranks:
        job = queue.first
        selection = context.fit(job)
        if selection is None:
            return True
        context.start(job, selection)
    return False


def _start_counted(context: PassContext) -> bool:
    """Do the same where counts decide."""
    queue, units = context.queue, context.table.units
    free = context.free_units()
    while queue.ranks:
        job = queue.first
        if units[job] > free:
            return True
        free -= units[job]
        context.start(job, context.matched(job))
    return False


def listed(jobs: Integers, chosen: npt.NDArray[np.bool_]) -> list[int]:
    """Return the chosen jobs, in order."""
    found: list[int] = jobs[chosen].tolist()
    return found


def _shadow(context: PassContext, job: int) -> Shadow | None:
    """Return the earliest start of a job if nothing else starts before it."""
    plan, calendar = context.plan, context.calendar
    if not calendar:
        return plan.shadow(context.request(job), context.now, context.seek)

    def seek(state: Availability, time: float) -> Selection | None:
        return context.seek_at(job, state, time)

    return plan.shadow_in_turn(context.now, calendar.reopenings(context.now), seek)


class Reservation(Protocol):
    """What a pass promises to the first job that cannot start."""

    job: int
    unsettled: bool
    """Whether a candidate that the last scan refused could be admitted now, without any release."""

    def is_past(self, now: float) -> bool:
        """Whether the reserved start has passed, because something overruns."""

    def candidates(self, context: PassContext) -> Sequence[int]:
        """Return the jobs behind the first that the sums of free units do not rule out, in order."""

    def backfill(self, context: PassContext, jobs: Sequence[int]) -> None:
        """Start each of the candidates, in order, that fits and does not delay the first job."""


class NoReservation:
    """The first job cannot start on any release, or nobody wants it protected."""

    unsettled = False

    def __init__(self, job: int) -> None:
        self.job = job

    def is_past(self, now: float) -> bool:  # noqa: ARG002 (there is no start)
        """Never."""
        return False

    def candidates(self, context: PassContext) -> Sequence[int]:
        """Return what the free units of now allow."""
        jobs = context.queue.jobs(1)
        return listed(jobs, context.fits_now(jobs))

    def backfill(self, context: PassContext, jobs: Sequence[int]) -> None:
        """Start whatever fits."""
        for job in jobs:
            selection = context.fit(job)
            if selection is not None:
                context.start(job, selection, backfilled=True)


class CountReservation:
    """A reservation where every request is a number of units of one type: the classical rule.

    `left` is how many units are left over at the shadow time (the "extra nodes" of the
    literature); nothing else need be known.  Both are worked out when a candidate first fits:
    on a full machine nobody asks.
    """

    __slots__ = ("_extra", "_start", "job", "left", "unsettled")

    def __init__(self, job: int, *, extra: bool) -> None:
        self.job = job
        self.unsettled = False
        self.left = 0
        self._start: float | None = None
        self._extra = extra

    def is_past(self, now: float) -> bool:
        """Whether the shadow time has passed."""
        return self._start is not None and self._start < now

    def candidates(self, context: PassContext) -> Sequence[int]:
        """Return those that fit now: in a long queue by one vector operation, in a short one later."""
        free = context.free_units()
        queue = context.queue
        if not free:
            return ()
        if len(queue.ranks) < LONG:
            return queue.listed(1)
        jobs = queue.jobs(1)
        jobs = jobs[context.table.demand[0][jobs] <= free]
        if not len(jobs):
            return ()
        start = self.settle(context) if self._start is None else self._start
        small = context.table.demand[0][jobs] <= self.left
        return listed(jobs, small | (context.table.judged_array[jobs] <= start - context.now))

    def backfill(self, context: PassContext, jobs: Sequence[int]) -> None:
        """Start those that end by the shadow time, or are among what is left over then."""
        free = context.free_units()
        now, units, judged = context.now, context.table.units, context.table.judged
        for job in jobs:
            need = units[job]
            if need > free:
                continue
            start = self._start
            if start is None:
                start = self.settle(context)
            if now + judged[job] > start:
                if need > self.left:
                    continue
                self.left -= need
            free -= need
            context.start(job, context.matched(job), backfilled=True)

    def settle(self, context: PassContext) -> float:
        """Work out the shadow time and what is left over then."""
        units = context.table.units
        found = context.plan.earliest_count(units, context.free_units(), units[self.job], context.now)
        self._start, left = found
        self.left = left if self._extra else 0
        return self._start


class GraphReservation:
    """A reservation on the real graph: the shadow time, and what is available then.

    One that `stays` keeps what candidates took of that, whenever they end.
    """

    def __init__(self, job: int, shadow: Shadow, *, extra: bool, stays: bool = False) -> None:
        self.job = job
        self.start = shadow.start
        self._then = shadow.available
        self._chosen = shadow.selection
        self._extra = extra
        self._stays = stays
        self.unsettled = False
        self._left: Availability | None = None  # what the reservation leaves
        self._refused: set[int] = set()  # kinds of requests that are in the way

    def is_past(self, now: float) -> bool:
        """Whether the shadow time has passed."""
        return self.start < now

    def _look_again(self) -> None:
        """Forget what was found out: something was given back, or started."""
        self._left = None
        self._refused.clear()

    def candidates(self, context: PassContext) -> Sequence[int]:
        """Free now, and ended by the shadow time or, by the sums, small enough to stand beside."""
        table = context.table
        jobs = context.queue.jobs(1)
        self.unsettled = False
        self._look_again()
        allowed = table.judged_array[jobs] <= self.start - context.now
        if self._extra:
            spare = (
                np.array([units_in(self._then, type_) for type_ in table.types]) - table.demand[:, self.job]
            )
            allowed |= np.logical_and.reduce(table.demand[:, jobs] <= spare[:, None], axis=0)
        return listed(jobs, context.fits_now(jobs) & allowed)

    def backfill(self, context: PassContext, jobs: Sequence[int]) -> None:
        """Start each on what its policy chooses, or else on what the reservation leaves."""
        for job in jobs:
            selection = self._placed(context, job)
            if selection is not None:
                self.unsettled = True
                context.start(job, selection, backfilled=True)
                self._look_again()

    def _placed(self, context: PassContext, job: int) -> Selection | None:
        """Return what a candidate may start on, or None.

        Requests of one kind that would all run beyond the shadow time share one answer.
        """
        if context.now + context.table.judged[job] <= self.start:
            return context.fit(job)
        kind = context.table.kinds[job]
        if not self._extra or kind in self._refused:
            return None
        selection = context.fit(job)
        if selection is None or self._stands_beside(context, selection):
            return selection
        if self._left is None or context.calendar:
            self._left = beside(context.plan.available, self._then, self._chosen)
        second = context.seek_at(job, self._left, context.now)
        if second is not None and self._stands_beside(context, second):
            return second
        if context.is_steady:
            self._refused.add(kind)
        return None

    def _stands_beside(self, context: PassContext, selection: Selection) -> bool:
        """Note the candidate's claim at the shadow time if the first job still fits then."""
        if self._stays and not _is_free(self._then, selection):
            return False
        self._then.claim(selection)
        chosen = context.seek_at(self.job, self._then, self.start)
        if chosen is None:
            self._then.release(selection)
            return False
        self._chosen = chosen
        return True


def _is_free(state: Availability, selection: Selection) -> bool:
    """Whether a state has free what a selection takes; it may have been selected on another."""
    return all((state.free[draw.type][draw.pools] >= draw.units).all() for draw in selection.held)
