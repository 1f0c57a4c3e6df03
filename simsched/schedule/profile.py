"""Availability over time: what is free between now and the last expected end.

Two profiles with one interface.  `CountProfile` knows one number a segment of time and is
exact where every request of the workload is a number of units of one type.  `GraphProfile`
knows who holds what from when to when, asks the sums first and the matcher second.
Both start from the running jobs' expected ends; `book` adds a reservation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from math import nextafter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from simsched.schedule.plan import set_aside

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.match.allocate import Availability
    from simsched.match.selection import Selection
    from simsched.schedule.desk import Desk
    from simsched.schedule.outlook import Known

NEVER = float("inf")


def _end(start: float, duration: float) -> float:
    """Return the end of a reservation; a job of zero seconds needs its resources when it starts, too."""
    return start + duration if duration else nextafter(start, NEVER)


class Hole(NamedTuple):
    """The earliest start of a job: when, and on what (None where counts decide or there is none)."""

    start: float
    selection: Selection | None


class Profile(Protocol):
    """Availability over time, with reservations."""

    def advance(self, now: float) -> None:
        """Forget what lies before now."""

    def settle(self, known: Known) -> int:
        """Reserve what is known in front of the first job that could start sooner, or now; say how many."""

    def earliest(self, job: int) -> Hole:
        """Return the first time from which the job could run to its requested end."""

    def now(self, job: int) -> Hole:
        """Return a hole that begins now, or one that never begins."""

    def real(self, job: int) -> Selection | None:
        """Return what a job with a hole now may start on in fact, while another runs on beyond its end."""

    def book(self, job: int, hole: Hole) -> None:
        """Reserve the hole for the job, from its start to its requested end."""


def profile_of(desk: Desk) -> Profile:
    """Return the profile of the running jobs at this instant."""
    return CountProfile(desk) if desk.book.single is not None else GraphProfile(desk)


class CountProfile:
    """Free units of one type as a step function: `free[i]` from `times[i]` to `times[i + 1]`.

    >>> profile = CountProfile.of([0, 10, 20], [2, 3, 8])
    >>> profile.find(3, 15), profile.find(9, 1)
    (1, None)
    >>> profile.reserve(1, 3, 15)
    >>> profile.times, profile.free
    ([0, 10, 20, 25], [2, 0, 5, 8])
    """

    __slots__ = ("_durations", "_fit", "_found", "_units", "free", "times")

    def __init__(self, desk: Desk) -> None:
        plan, book = desk.plan, desk.book
        self._units, self._durations, self._fit = book.units, book.durations, desk.fit
        ends, jobs = plan.ends()
        sums = list(accumulate(map(self._units.__getitem__, jobs), initial=desk.free_units()))
        past = bisect_right(ends, desk.now)  # an expected end that has passed counts as now
        steps = {desk.now: sums[past], **dict(zip(ends[past:], sums[past + 1 :], strict=True))}
        self.times: list[float] = list(steps)
        self.free: list[int] = list(steps.values())
        self._found: dict[int, tuple[list[float], list[float]]] = {}
        """Units → durations, growing, and the earliest starts found for them, which grow along."""

    @classmethod
    def of(cls, times: list[float], free: list[int]) -> CountProfile:
        """Return a profile of these steps, for no jobs in particular."""
        profile = cls.__new__(cls)
        profile.times, profile.free = times, free
        return profile

    def advance(self, now: float) -> None:
        """Forget what lies before now."""
        past = bisect_right(self.times, now) - 1
        del self.times[:past], self.free[:past]
        self.times[0] = now

    def settle(self, known: Known) -> int:
        """Reserve what is known in front of the first job that could start sooner, or now; say how many."""
        times, until, stand = self.times, known.until, 0
        now = times[0]
        for job, start in zip(known.jobs, known.starts, strict=True):
            units, duration = self._units[job], self._durations[job]
            last = bisect_left(times, min(start, until)) - 1
            if start <= now or self.find(units, duration, last=last) is not None:
                break
            if start != NEVER:
                self.reserve(bisect_left(times, start), units, duration)
            stand += 1
        for job, start in zip(known.jobs[:stand], known.starts, strict=False):
            self._note(self._units[job], self._durations[job], start)
        return stand

    def earliest(self, job: int) -> Hole:
        """Return the first time from which the job's units are free for its requested time.

        It is no sooner than that of a job before it that needs as many for no longer.
        """
        units, duration = self._units[job], self._durations[job]
        at = self.find(units, duration, self._bound(units, duration))
        start = NEVER if at is None else self.times[at]
        self._note(units, duration, start)
        return Hole(start, None)

    def _bound(self, units: int, duration: float) -> int:
        """Return the step of the latest start found for so many units and no longer."""
        durations, starts = self._found.get(units, ((), ()))
        place = bisect_right(durations, duration)
        return bisect_left(self.times, starts[place - 1]) if place else 0

    def _note(self, units: int, duration: float, start: float) -> None:
        """Note a start, and forget those for a longer time that are no later."""
        durations, starts = self._found.setdefault(units, ([], []))
        place = bisect_left(durations, duration)
        stop = bisect_right(starts, start, place)
        durations[place:stop], starts[place:stop] = [duration], [start]

    def now(self, job: int) -> Hole:
        """Return now if the job's units are free from now for its requested time."""
        at = self.find(self._units[job], self._durations[job], last=0)
        return Hole(NEVER if at is None else self.times[0], None)

    def real(self, job: int) -> Selection | None:
        """Return what is free now, wherever it is."""
        return self._fit(job)

    def book(self, job: int, hole: Hole) -> None:
        """Reserve the job's units from the hole's start to its requested end."""
        if hole.start == NEVER:
            return
        at = bisect_left(self.times, hole.start)
        self.reserve(at, self._units[job], self._durations[job])

    def find(self, units: int, duration: float, begin: int = 0, last: int | None = None) -> int | None:
        """Return the first step from `begin` to `last` from which `units` are free for `duration` seconds.

        O(steps).
        """
        times, free = self.times, self.free
        steps = len(free)
        stop = steps - 1 if last is None else last
        while begin <= stop:
            if free[begin] < units:
                begin += 1
                continue
            end = times[begin] + duration
            at = begin + 1
            while at < steps and times[at] < end and free[at] >= units:
                at += 1
            if at == steps or times[at] >= end:
                return begin
            begin = at + 1
        return None

    def reserve(self, begin: int, units: int, duration: float) -> None:
        """Take `units` from step `begin` on, for `duration` seconds."""
        times, free = self.times, self.free
        end = _end(times[begin], duration)
        stop = bisect_left(times, end)
        if stop == len(times) or times[stop] != end:
            times.insert(stop, end)
            free.insert(stop, free[stop - 1])
        for at in range(begin, stop):
            free[at] -= units

    def _check(self) -> None:
        assert self.times == sorted(set(self.times))
        assert len(self.times) == len(self.free)


class _Booking(NamedTuple):
    start: float
    end: float
    selection: Selection


class GraphProfile:
    """Who holds what from when to when, on the real graph.

    A window's availability is that of now, with what ends before it released and what is
    reserved within it set aside.  The sums of free units rule most windows out.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._now = desk.now
        self._moments = desk.plan.moments(desk.now)
        self._base = desk.plan.available.copy(
            counts_only=desk.plan.counts_only
        )  # before this pass starts anything
        self._bookings: list[_Booking] = []
        self._free: dict[float, Availability] = {}

    def advance(self, now: float) -> None:
        """Forget what lies before now."""

    def settle(self, known: Known) -> int:  # noqa: ARG002
        """Reserve what is known in front of the first job that could start sooner, or now; say how many."""
        return 0

    def earliest(self, job: int) -> Hole:
        """Return the first time from which the job could run to its requested end."""
        for time in self._times():
            hole = self._at(job, time)
            if hole is not None:
                return hole
        return Hole(NEVER, None)

    def now(self, job: int) -> Hole:
        """Return a hole that begins now, or one that never begins."""
        return self._at(job, self._now) or Hole(NEVER, None)

    def real(self, job: int) -> Selection | None:
        """Return what the job may start on now: free in fact, and in nobody's way until its requested end."""
        desk = self._desk
        window = self._beside(desk.plan.available, self._now, self._now + desk.book.durations[job])
        return desk.seek_at(job, window, self._now)

    def book(self, job: int, hole: Hole) -> None:
        """Reserve the hole for the job."""
        if hole.selection is not None:
            end = _end(hole.start, self._desk.book.durations[job])
            self._bookings.append(_Booking(hole.start, end, hole.selection))

    def _times(self) -> list[float]:
        """Return the times at which something becomes free, from now on."""
        ends = {end for end, _ in self._moments} | {booking.end for booking in self._bookings}
        ends.update(self._desk.calendar.reopenings(self._now))
        return sorted({self._now} | {end for end in ends if end > self._now and end != NEVER})

    def _at(self, job: int, time: float) -> Hole | None:
        desk = self._desk
        state = self._released(time)
        if (desk.book.demand[:, job] > self._sums(state)).any():
            return None
        window = self._window(state, time, time + desk.book.durations[job])
        selection = desk.seek_at(job, window, time)
        return None if selection is None else Hole(time, selection)

    def _window(self, state: Availability, begin: float, end: float) -> Availability:
        """Return what is available from `begin` to `end`: the least that is free of each bank.

        Free units only shrink where a reservation begins.
        """
        if begin == self._now and not self._desk.plan.overrun(begin):
            state = self._desk.plan.available  # the units that this pass has given away are known by id
        return self._beside(state, begin, end)

    def _beside(self, state: Availability, begin: float, end: float) -> Availability:
        """Return what the reservations leave of a state from `begin` to `end`."""
        within = [b for b in self._bookings if (b.start < end and begin < b.end) or b.start == begin < b.end]
        if not within:
            return state
        keep = {type_: free.copy() for type_, free in state.free.items()}
        for moment in {begin, *(booking.start for booking in within if begin < booking.start)}:
            then = {type_: free.copy() for type_, free in self._released(moment).free.items()}
            for booking in within:
                if booking.start <= moment < booking.end:
                    for draw in booking.selection.held:
                        then[draw.type][draw.banks] -= draw.units
            for type_, free in then.items():
                np.minimum(keep[type_], free, out=keep[type_])
        return set_aside(
            state, [booking.selection for booking in within], keep, counts_only=self._desk.plan.counts_only
        )

    def _sums(self, state: Availability) -> npt.NDArray[np.int64]:
        return np.array([state.total.get(type_, 0) for type_ in self._desk.book.types], dtype=np.int64)

    def _released(self, time: float) -> Availability:
        """Return what is available at `time` but for the reservations; made once a time."""
        known = self._free.get(time)
        if known is None:
            plan = self._desk.plan
            known = self._base.copy(counts_only=plan.counts_only)
            for end, jobs in self._moments:
                if end <= time:
                    for job in jobs:
                        known.release(plan.held[job])
            self._free[time] = known
        return known
