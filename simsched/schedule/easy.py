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

from simsched.schedule.plan import beside, units_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from simsched.match.selection import Selection
    from simsched.schedule.desk import Desk
    from simsched.schedule.plan import Shadow

    Integers = npt.NDArray[np.int64]

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

    def run_pass(self, desk: Desk) -> None:
        """Start in order, reserve for the first that cannot start, then backfill."""
        waiting = desk.waiting
        if not len(waiting):
            return
        kept = self._kept
        if kept is not None and self._still_blocked(desk, kept):
            self._backfill(desk, kept, waiting.new_jobs())
        elif start_in_order(desk):
            reservation = self._kept = self._reserve(desk, waiting.first)
            self._backfill(desk, reservation, reservation.filter(desk, waiting.jobs(1)))
        else:
            self._kept = None

    def _still_blocked(self, desk: Desk, kept: Reservation) -> bool:
        """Whether the first job is the one of the last pass, and only new jobs need a look.

        Nothing was given back, so that what failed then fails now; and a candidate that
        ended too late then ends too late now.  Only a start may give a candidate that was in
        the way another choice of vertices.
        """
        if desk.released or kept.unsettled or not desk.waiting.static or desk.waiting.first != kept.job:
            return False
        return kept.start >= desk.now or self.options.refresh != "always"

    def _reserve(self, desk: Desk, job: int) -> Reservation:
        """Return the reservation of the first job, computed only if it could have moved."""
        kept = self._kept
        if kept is not None and kept.job == job:
            if self.options.refresh == "when-blocked":
                return kept
            if not desk.moved and kept.start >= desk.now:
                return kept
        if self.options.reservation == "none":
            return NoReservation(job)
        if desk.book.single is not None:
            return CountReservation(desk, job, extra=self.options.extra)
        shadow = desk.plan.shadow(desk.request(job), desk.now, desk.seek)
        return (
            NoReservation(job) if shadow is None else GraphReservation(job, shadow, extra=self.options.extra)
        )

    def _backfill(self, desk: Desk, reservation: Reservation, jobs: Iterable[int]) -> None:
        """Start each of the candidates, in order, that fits and does not delay the first job."""
        for job in jobs:
            selection = reservation.place(desk, job)
            if selection is not None:
                desk.start(job, selection, backfilled=True)


def start_in_order(desk: Desk) -> bool:
    """Start jobs in order until one does not fit; return whether one is left."""
    waiting = desk.waiting
    while len(waiting):
        job = waiting.first
        selection = desk.fit(job)
        if selection is None:
            return True
        desk.start(job, selection)
    return False


def listed(jobs: Integers, chosen: npt.NDArray[np.bool_]) -> list[int]:
    """Return the chosen jobs, in order."""
    found: list[int] = jobs[chosen].tolist()
    return found


class Reservation(Protocol):
    """What a pass promises to the first job that cannot start."""

    job: int
    start: float
    unsettled: bool
    """Whether a candidate that the last scan refused could be admitted now, without any release."""

    def filter(self, desk: Desk, jobs: Integers) -> list[int]:
        """Return the candidates that the sums of free units do not rule out, in order."""

    def place(self, desk: Desk, job: int) -> Selection | None:
        """Return what a candidate may start on now, or None; the reservation notes what it gave away."""


class NoReservation:
    """The first job cannot start on any release, or nobody wants it protected."""

    unsettled = False

    def __init__(self, job: int) -> None:
        self.job = job
        self.start = float("inf")

    def filter(self, desk: Desk, jobs: Integers) -> list[int]:
        """Return what the free units of now allow."""
        return listed(jobs, desk.fits_now(jobs))

    def place(self, desk: Desk, job: int) -> Selection | None:
        """Whatever fits may start."""
        return desk.fit(job)


class CountReservation:
    """A reservation where every request is a number of units of one type.

    `left` is how many units are left over at the shadow time (the "extra nodes" of the
    literature); nothing else need be known.
    """

    unsettled = False

    def __init__(self, desk: Desk, job: int, *, extra: bool) -> None:
        units = desk.book.units
        free = desk.free_units()
        self.job = job
        self.start, left = desk.plan.earliest_count(units, free, units[job], desk.now)
        self.left = left if extra else 0

    def filter(self, desk: Desk, jobs: Integers) -> list[int]:
        """Free now, and ended by the shadow time or among what is left over."""
        book = desk.book
        need = book.demand[0][jobs]
        by_then = book.judged_array[jobs] <= self.start - desk.now
        free = desk.free_units()
        return listed(jobs, (need <= free) & (by_then | (need <= self.left)))

    def place(self, desk: Desk, job: int) -> Selection | None:
        """The classical rule."""
        need = desk.book.units[job]
        if need > desk.free_units():
            return None
        if desk.now + desk.book.judged[job] <= self.start:
            return desk.fit(job)
        if need > self.left:
            return None
        self.left -= need
        return desk.fit(job)


class GraphReservation:
    """A reservation on the real graph: the shadow time, and what is available then."""

    def __init__(self, job: int, shadow: Shadow, *, extra: bool) -> None:
        self.job = job
        self.start = shadow.start
        self._then = shadow.available
        self._chosen = shadow.selection
        self._extra = extra
        self.unsettled = False

    def filter(self, desk: Desk, jobs: Integers) -> list[int]:
        """Free now, and ended by the shadow time or, by the sums, small enough to stand beside."""
        book = desk.book
        self.unsettled = False
        allowed = book.judged_array[jobs] <= self.start - desk.now
        if self._extra:
            spare = np.array([units_in(self._then, type_) for type_ in book.types]) - book.demand[:, self.job]
            allowed |= np.logical_and.reduce(book.demand[:, jobs] <= spare[:, None], axis=0)
        return listed(jobs, desk.fits_now(jobs) & allowed)

    def place(self, desk: Desk, job: int) -> Selection | None:
        """What the candidate's policy chooses, or else what the reservation leaves."""
        selection = self._placed(desk, job)
        if selection is not None:
            self.unsettled = True
        return selection

    def _placed(self, desk: Desk, job: int) -> Selection | None:
        selection = desk.fit(job)
        if selection is None or desk.now + desk.book.judged[job] <= self.start:
            return selection
        if not self._extra:
            return None
        if self._stands_beside(desk, selection):
            return selection
        left = beside(desk.plan.available, self._then, self._chosen)
        second = desk.seek(desk.request(job), left)
        return second if second is not None and self._stands_beside(desk, second) else None

    def _stands_beside(self, desk: Desk, selection: Selection) -> bool:
        """Note the candidate's claim at the shadow time if the first job still fits then."""
        self._then.claim(selection)
        chosen = desk.seek(desk.request(self.job), self._then)
        if chosen is None:
            self._then.release(selection)
            return False
        self._chosen = chosen
        return True
