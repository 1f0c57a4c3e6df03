"""Availability over time on the real graph."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.schedule.profiles.count_profile import CountProfile
from simsched.schedule.profiles.gap import NEVER, Bounds, Gap, end_of
from simsched.schedule.profiles.plan import set_aside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.graph.index.types import Ints
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.kept_plan import Known


class Booking(NamedTuple):
    """A reservation: from when until when, and for what."""

    start: float
    end: float
    selection: Selection


class GraphProfile:
    """What is free of each pool as a step function: row i from `times[i]` to `times[i + 1]`.

    A row is the free units of all banks, one pool type after the other.  A start is sought by
    the sums of each type first; then by what the least rows of a window leave on each target,
    where a request is copies of plain units; and only then by the matcher, on what is available
    at the start with the reservations of the window set aside.
    """

    def __init__(self, context: PassContext) -> None:
        plan = context.plan
        self._context = context
        self._now = context.now
        self._moments = [moment for moment in plan.moments(context.now) if moment[0] != NEVER]
        base = plan.available.copy(counts_only=plan.counts_only)  # before this pass starts anything
        self._states = {0: base}
        self._bookings: list[Booking] = []
        self._soonest = Bounds()
        self._banks: dict[str, slice] = {}
        for name, free in base.free.items():
            begin = sum(len(base.free[before]) for before in self._banks)
            self._banks[name] = slice(begin, begin + len(free))
        self.times: list[float] = []
        self._rows: list[Ints] = []
        self._sums = [CountProfile.of([], []) for _ in context.table.types]
        self._foresee(base.copy(counts_only=plan.counts_only))

    def _foresee(self, state: Availability) -> None:
        """Make a step of every moment at which something ends or opens again."""
        context = self._context
        most = max((int(pool.size.max(initial=0)) for pool in state.index.pool_types.values()), default=0)
        small = np.int16 if most < 1 << 15 else np.int64  # rows are read many times
        openings: list[tuple[float, list[int]]] = [
            (time, []) for time in context.calendar.reopenings(self._now)
        ]
        moments = sorted([(self._now, []), *self._moments, *openings], key=itemgetter(0))
        for (end, jobs), (following, _) in pairwise([*moments, (NEVER, [])]):
            for job in jobs:
                state.release(context.plan.held[job])
            if end == following:
                continue
            self._open(state, end)
            self.times.append(end)
            self._rows.append(np.concatenate([*state.free.values()], dtype=small, casting="same_kind"))
            for type_, sums in zip(context.table.types, self._sums, strict=True):
                sums.times.append(end)
                sums.free.append(state.total.get(type_, 0))

    def _open(self, state: Availability, time: float) -> None:
        """Open nothing: what is down now stays down in this plan."""

    def advance(self, now: float) -> None:
        """Forget what lies before now."""

    def settle(self, known: Known) -> int:  # noqa: ARG002
        """Reserve what is known in front of the first job that could start sooner, or now; say how many."""
        return 0

    # -- questions --------------------------------------------------------------------------

    def earliest(self, job: int) -> Gap:
        """Return the first time from which the job could run to its requested end."""
        table = self._context.table
        kind, duration = table.kinds[job], table.durations[job]
        at = self._fitting(job, bisect_left(self.times, self._soonest.of(kind, duration)))
        gap = Gap(NEVER, None)
        while at is not None and self.times[at] != NEVER:
            found = self._at(job, self.times[at])
            if found is not None:
                gap = found
                break
            at = self._fitting(job, at + 1)
        self._soonest.note(kind, duration, gap.start)
        return gap

    def now(self, job: int) -> Gap:
        """Return a hole that begins now, or one that never begins."""
        table = self._context.table
        if self._soonest.of(table.kinds[job], table.durations[job]) > self._now or self._fitting(job, 0) != 0:
            return Gap(NEVER, None)
        return self._at(job, self._now) or Gap(NEVER, None)

    def real(self, job: int) -> Selection | None:
        """Return what the job may start on now: free in fact, and in nobody's way until its requested end."""
        context, now = self._context, self._now
        end = now + context.table.durations[job]
        window = self._beside(
            context.plan.available, now, end, self._least(now, context.table.durations[job])
        )
        return context.seek_at(job, window, now)

    def _fitting(self, job: int, begin: int) -> int | None:
        """Return the first step, `begin` at the soonest, from which the sums suffice for the job's time."""
        table = self._context.table
        needs = table.demand[:, job].tolist()
        at = -1
        while at != begin:
            at = begin
            for sums, need in zip(self._sums, needs, strict=True):
                found = sums.find(need, table.durations[job], begin)
                if found is None:
                    return None
                begin = found
        return at

    def _at(self, job: int, time: float) -> Gap | None:
        """Return the hole at one of the times, or None if the job could not run from then to its end."""
        context = self._context
        end = time + context.table.durations[job]
        least = self._least(time, context.table.durations[job])
        if not self._has_room(job, least):
            return None
        # What this pass has given away is known by id; an overrunning job may hold what is expected back.
        as_it_is = time == self._now and not context.plan.overrun(time)
        state = context.plan.available if as_it_is else self._released(time)
        selection = context.seek_at(job, self._beside(state, time, end, least), time)
        return None if selection is None else Gap(time, selection)

    def _least(self, begin: float, duration: float) -> Ints:
        """Return the least that is free of each bank for some time from `begin` on."""
        at = bisect_left(self.times, begin)
        least: Ints = np.minimum.reduce(self._rows[at : self._stop(at, duration)])
        return least

    def _stop(self, begin: int, duration: float) -> int:
        """Return the step behind the last that a window from a step on takes in."""
        return max(begin + 1, bisect_left(self.times, self.times[begin] + duration))

    def _has_room(self, job: int, least: Ints) -> bool:
        """Whether what is free on each target does not rule out copies of plain units, or whole targets."""
        request = self._context.request(job)
        each = self._context.plan.available.index.on_each_target
        if request.plain is not None and request.plain.flat:
            flat, wanted = request.plain.flat, request.slots
        elif request.whole and each:
            flat, wanted = tuple(each.items()), request.whole
        else:
            return True
        copies = np.minimum.reduce([least[self._banks[type_]] // units for type_, units in flat])
        return int(np.maximum(copies, 0).sum(where=request.eligible, dtype=np.int64)) >= wanted

    def _beside(self, state: Availability, begin: float, end: float, least: Ints) -> Availability:
        """Return what the reservations leave of a state from `begin` to `end`."""
        within = self._within(begin, end)
        if not within:
            return state
        keep = {name: least[banks] for name, banks in self._banks.items()}
        counts_only = self._context.plan.counts_only
        return set_aside(state, [booking.selection for booking in within], keep, counts_only=counts_only)

    def _within(self, begin: float, end: float) -> list[Booking]:
        """Return the reservations that overlap a window."""
        return [b for b in self._bookings if (b.start < end and begin < b.end) or b.start == begin < b.end]

    def _released(self, time: float) -> Availability:
        """Return what is available at `time` but for the reservations; made once between two ends."""
        number = bisect_right(self._moments, time, key=itemgetter(0))
        if number not in self._states:
            nearest = max(known for known in self._states if known < number)
            state = self._states[nearest].copy(counts_only=self._context.plan.counts_only)
            for _, jobs in self._moments[nearest:number]:
                for job in jobs:
                    state.release(self._context.plan.held[job])
            self._states[number] = state
        return self._states[number]

    # -- reservations -----------------------------------------------------------------------

    def book(self, job: int, gap: Gap) -> None:
        """Reserve the hole for the job."""
        if gap.selection is None:
            return
        end = end_of(gap.start, self._context.table.durations[job])
        self._bookings.append(Booking(gap.start, end, gap.selection))
        self._shift(gap.selection, gap.start, end, -1)

    def _shift(self, selection: Selection, begin: float, end: float, sign: int) -> None:
        """Take (-1) or give back (1) what a selection holds from `begin`, which is a step, until `end`."""
        at, stop = bisect_left(self.times, begin), self._step(end)
        totals = dict.fromkeys(self._context.table.types, 0)
        for type_, found, units in self._taken(selection):
            banks, change = found + self._banks[type_].start, sign * units
            for row in self._rows[at:stop]:
                row[banks] += change
            if type_ in totals:
                totals[type_] += units * len(found) if isinstance(units, int) else int(units.sum())
        for sums, total in zip(self._sums, totals.values(), strict=True):
            for step in range(at, stop):
                sums.free[step] += sign * total

    def _taken(self, selection: Selection) -> Iterator[tuple[str, Ints, Ints | int]]:
        """Yield type, banks and units of what a selection takes from others."""
        for draw in selection.held:
            yield draw.type, draw.pools, draw.units

    def _step(self, time: float) -> int:
        """Return the step that begins at a time, made if there is none."""
        at = bisect_left(self.times, time)
        if at == len(self.times) or self.times[at] != time:
            self.times.insert(at, time)
            self._rows.insert(at, self._rows[at - 1].copy())
            for sums in self._sums:
                sums.times.insert(at, time)
                sums.free.insert(at, sums.free[at - 1])
        return at

    def _check(self) -> None:
        assert self.times == sorted(set(self.times))
        for type_, sums in zip(self._context.table.types, self._sums, strict=True):
            assert sums.times == self.times
            banks = self._banks.get(type_, slice(0, 0))
            assert sums.free == [int(row[banks].sum()) for row in self._rows]
