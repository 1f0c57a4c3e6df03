"""The availability profile where the matcher decides: free units of each leaf pool over time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from simsched.match.search.counts import beneath
from simsched.match.state.masks import listed
from simsched.match.state.selection import Draw, Selection, changed
from simsched.schedule.profile import end_of
from simsched.schedule.profiles.free_steps import FreeSteps
from simsched.schedule.profiles.gap import NEVER, Bounds, Gap
from simsched.schedule.profiles.remainder import is_free, set_aside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Ints
    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.maintenance import Calendar
    from simsched.schedule.profiles.plan import Moment, Plan


class Booking(NamedTuple):
    """A reservation: its time in seconds and its resources."""

    start: float
    end: float
    selection: Selection


def overlapping(bookings: Iterable[Booking], begin: float, end: float) -> list[Booking]:
    """Return the reservations that overlap a window in seconds."""
    return [b for b in bookings if (b.start < end and begin < b.end) or b.start == begin < b.end]


def has_room(request: Request, units: Mapping[str, Ints], index: Index) -> bool:
    """Whether free units (pool type → those of each leaf pool) do not rule out copies, or whole targets.

    Only copies of plain units are counted, target by target.
    """
    each = index.on_each_target
    if request.plain is not None and request.plain.flat:
        flat, wanted = request.plain.flat, request.slots
    elif request.whole and each:
        flat, wanted = tuple(each.items()), request.whole
    elif request.simple is not None and request.simple[0].content is not None:
        flat, wanted = request.simple[0].content.flat or (), request.simple[1]
    else:
        return True
    if not flat:
        return True
    copies = np.minimum.reduce([_on_targets(type_, units[type_], index) // number for type_, number in flat])
    return int(np.maximum(copies, 0).sum(where=request.eligible, dtype=np.int64)) >= wanted


def _on_targets(type_: str, units: Ints, index: Index) -> Ints:
    """Return the units of a type on each target, from those of each leaf pool."""
    if index.pool_types[type_].aligned:
        return units
    view = beneath(index.target_type, type_, None, index)
    wide = units.astype(np.int64)  # a sum may be beyond the rows' short integers
    return view.sum(wide if view.ordinals is None else wide[view.ordinals])


def whole_targets(
    selection: Selection, rows: Ints, banks: Mapping[str, slice], index: Index
) -> Iterator[tuple[int, int, Selection]]:
    """Yield the first step, the step behind the last, and the claim that leaves nothing on the targets.

    The claim takes the units that are free on the targets of the selection, which `rows` has for each step:
    the free units of each leaf pool. Beside the targets it is that of the selection.
    """
    mine = np.zeros(len(index), dtype=np.bool_)
    mine[selection.targets] = True
    inside = {
        type_: np.flatnonzero(mine[pool.target] & (pool.target >= 0))
        for type_, pool in index.pool_types.items()
    }
    free = {type_: np.maximum(rows[:, pools + banks[type_].start], 0) for type_, pools in inside.items()}
    beyond = {draw.type: index.pool_types[draw.type].target[draw.pools] < 0 for draw in selection.held}
    changes = np.zeros(len(rows), dtype=np.bool_)
    for units in free.values():
        changes[1:] |= (units[1:] != units[:-1]).any(axis=1)
    for first, behind in pairwise([0, *changes.nonzero()[0].tolist(), len(rows)]):
        draws = []
        for type_, pools in inside.items():
            units = free[type_][first].astype(np.int64)
            some = units.nonzero()[0]
            if len(some):
                draws.append(Draw(type_, pools[some], units[some], int(units.sum())))
        for draw in selection.held:
            out = beyond[draw.type]
            if out.any():
                units = np.broadcast_to(draw.units, len(draw.pools))[out]
                draws.append(Draw(draw.type, draw.pools[out], units, int(units.sum())))
        yield first, behind, changed(selection, held=tuple(draws))


class Present(Protocol):
    """The cluster at the present instant, from which a profile begins; a `Supply` is one."""

    table: JobTable
    plan: Plan
    calendar: Calendar
    now: float

    def request(self, job: int) -> Request:
        """Return the compiled request of a job."""

    def could_start(self, job: int) -> bool:
        """Whether sums do not rule out that a job starts now."""

    def fit(self, job: int) -> Selection | None:
        """Return free resources on which the job may start now, or None."""

    def seek_at(self, job: int, available: Availability, time: float) -> Selection | None:
        """Match a job that would start at a time (seconds) on the state of that time."""


class GraphProfile:
    """The free units of every leaf pool as a step function: row i from `times[i]` to `times[i + 1]`.

    A row is the free units of all leaf pools, one pool type after the other. A start is searched in three
    steps, the cheap ones first. None of them rules out a start that the next would find:

    1. the sums of each type must suffice over the whole window;
    2. where a request is copies of plain units, or whole targets, the least rows of the window must have
       room for it, target by target;
    3. the matcher decides, on the state at the start with the reservations of the window set aside.

    A reservation is for leaf pools and numbers of units. Only where a request or the match policy needs units
    by id is it for these units. Then two reservations that overlap never need the same one.
    """

    def __init__(self, present: Present) -> None:
        plan = present.plan
        self._present = present
        self._now = present.now
        self._moments = [moment for moment in plan.moments(present.now) if moment[0] != NEVER]
        base = plan.available.copy(counts_only=plan.counts_only)  # before this pass starts a job
        self._states = {0: base}
        """Number of moments that have passed → the state then, without reservations."""
        self._bookings: list[Booking] = []
        self._soonest = Bounds()
        self._banks: dict[str, slice] = {}
        """Pool type → the part of a row that belongs to it."""
        for name, free in base.free.items():
            begin = sum(len(base.free[before]) for before in self._banks)
            self._banks[name] = slice(begin, begin + len(free))
        self.times: list[float] = []
        self._rows: list[Ints] = []
        self._sums = [FreeSteps([], []) for _ in present.table.types]
        self._make_steps(base.copy(counts_only=plan.counts_only))

    def _make_steps(self, state: Availability) -> None:
        """Make a step at each time at which a job ends or a target opens again."""
        present = self._present
        most = max((int(pool.size.max(initial=0)) for pool in state.index.pool_types.values()), default=0)
        small = np.int16 if most < 1 << 15 else np.int64  # rows are read many times
        openings: list[Moment] = [(time, []) for time in present.calendar.reopenings(self._now)]
        moments = sorted([(self._now, []), *self._moments, *openings], key=itemgetter(0))
        for moment, (following, _) in pairwise([*moments, (NEVER, [])]):
            time = moment[0]
            present.plan.release_moments(state, [moment])
            if time == following:
                continue
            state = present.calendar.opened(state, self._now, time, present.plan.outages)
            self.times.append(time)
            self._rows.append(np.concatenate([*state.free.values()], dtype=small, casting="same_kind"))
            for type_, sums in zip(present.table.types, self._sums, strict=True):
                sums.times.append(time)
                sums.free.append(state.total.get(type_, 0))

    # -- questions --------------------------------------------------------------------------

    def earliest(self, job: int, before: float) -> Gap:
        """Return the first time before another one from which the job could run to its requested end."""
        table = self._present.table
        kind, duration = table.kinds[job], table.durations[job]
        begin = bisect_left(self.times, self._soonest.of(kind, duration))
        gap = self._first_gap(job, begin, before)
        self._soonest.note(kind, duration, before if gap is None else gap.start)
        return gap or Gap(NEVER, None)

    def _first_gap(self, job: int, begin: int, before: float) -> Gap | None:
        """Return the first gap from the step `begin` on that starts before a time, if there is one."""
        at = self._fitting(job, begin)
        while at is not None and self.times[at] < before:
            gap = self._at(job, self.times[at])
            if gap is not None:
                return gap
            at = self._fitting(job, at + 1)
        return None

    def now(self, job: int) -> Gap:
        """Return a gap that begins now, or one that never begins."""
        table = self._present.table
        if self._soonest.of(table.kinds[job], table.durations[job]) > self._now or self._fitting(job, 0) != 0:
            return Gap(NEVER, None)
        return self._at(job, self._now) or Gap(NEVER, None)

    def could_now(self, job: int) -> bool:
        """Whether sums, and room on targets, do not rule out a gap that begins now."""
        table, now = self._present.table, self._now
        kind, duration = table.kinds[job], table.durations[job]
        if self._soonest.of(kind, duration) > now or self._fitting(job, 0) != 0:
            return False
        return self._has_room(job, self._least(now, duration))

    def fit_now(self, job: int) -> Selection | None:
        """Return resources that are actually free, and not reserved until the job's requested end."""
        present, now = self._present, self._now
        duration = present.table.durations[job]
        least = self._least(now, duration)
        return present.seek_at(job, self.left_of(present.plan.available, now, now + duration, least), now)

    def _fitting(self, job: int, begin: int) -> int | None:
        """Return the first step from `begin` on from which the sums suffice for the job's requested time."""
        table = self._present.table
        needs = table.demand[:, table.kinds[job]].tolist()
        at = -1
        while at != begin:
            at = begin
            for sums, need in zip(self._sums, needs, strict=True):
                found = sums.find(need, table.durations[job], begin)
                if found is None:
                    return None
                begin = found
        return at if at < len(self.times) else None

    def _at(self, job: int, time: float) -> Gap | None:
        """Return the gap at one of the times, or None if the job could not run from then to its end."""
        present = self._present
        end = time + present.table.durations[job]
        least = self._least(time, present.table.durations[job])
        if not self._has_room(job, least):
            return None
        # The state of now has the claims of this pass by id.
        state = present.plan.available if time == self._now else self.state_at(time)
        selection = present.seek_at(job, self.left_of(state, time, end, least), time)
        return None if selection is None else Gap(time, selection)

    def _least(self, begin: float, duration: float) -> Ints:
        """Return the least free units of each leaf pool in the window from `begin` on."""
        at = bisect_left(self.times, begin)
        least: Ints = np.minimum.reduce(self._rows[at : self._stop(at, duration)])
        return least

    def _stop(self, begin: int, duration: float) -> int:
        """Return the first step behind the window that begins with a step."""
        return max(begin + 1, bisect_left(self.times, self.times[begin] + duration))

    def _has_room(self, job: int, least: Ints) -> bool:
        """Whether the free units of each target do not rule out copies of plain units, or whole targets."""
        units = {type_: least[banks] for type_, banks in self._banks.items()}
        return has_room(self._present.request(job), units, self._present.plan.available.index)

    def left_of(self, state: Availability, begin: float, end: float, least: Ints) -> Availability:
        """Return the part of a state that reservations leave; by ids of units if the state has them."""
        reserved = [booking.selection for booking in overlapping(self._bookings, begin, end)]
        if not reserved:
            return state
        keep = {name: least[banks] for name, banks in self._banks.items()}
        if self._present.plan.counts_only:
            left = set_aside(state, reserved, keep, counts_only=True)
        else:
            left = set_aside(state, reserved, keep, units=self._units(reserved))
        for selection in reserved:
            self._unshare(left, selection)
        return left

    def _units(self, reserved: Iterable[Selection]) -> dict[str, dict[int, int]]:
        """Return pool type → leaf pool → mask of the units that selections name."""
        units: dict[str, dict[int, int]] = {}
        for selection in reserved:
            for draw in (*selection.held, *selection.shared):
                masks = units.setdefault(draw.type, {})
                for bank, mask in self._masks(draw):
                    masks[bank] = masks.get(bank, 0) | mask
        return units

    def _unshare(self, left: Availability, selection: Selection) -> None:
        """Keep a reservation apart from claims that are shared.

        A unit that running jobs share is not free, but another job could share it, also beyond the start of
        a reservation that takes it. A vertex that a reservation shares looks idle, and another job could
        claim it alone.
        """
        if left.sharers:
            for draw in selection.held:
                for bank, mask in self._masks(draw):
                    for key in [k for k in left.sharers if k[:2] == (draw.type, bank) and mask >> k[2] & 1]:
                        del left.sharers[key]
        for hold in selection.holds:
            if not hold.exclusive:
                left.shared[hold.type][hold.ordinals] += 1

    def _masks(self, draw: Draw) -> Iterator[tuple[int, int]]:
        """Yield leaf pool and mask of the units of a draw, where units have ids."""
        pool = self._present.plan.available.index.pool_types[draw.type]
        if pool.named:
            banks = draw.pools.tolist()
            masks = [pool.full[bank] for bank in banks] if draw.masks is None else listed(draw.masks)
            yield from zip(banks, masks, strict=True)

    def state_at(self, time: float) -> Availability:
        """Return the state at a time without the reservations; maintenance that has ended is over.

        A reservation does not share units with a running job: reservations are kept as numbers of free
        units, and these do not show whether that job still has its units.
        """
        plan = self._present.plan
        number = bisect_right(self._moments, time, key=itemgetter(0))
        if number not in self._states:
            nearest = max(known for known in self._states if known < number)
            state = self._states[nearest].copy(counts_only=plan.counts_only)
            plan.release_moments(state, self._moments[nearest:number])
            self._states[number] = state
        state = self._present.calendar.opened(self._states[number], self._now, time, plan.outages)
        if state.sharers:
            state = state.copy(counts_only=plan.counts_only)
            state.sharers.clear()
        return state

    # -- one reservation --------------------------------------------------------------------------------

    def move(self, job: int, gap: Gap) -> Gap | None:
        """Move a job's reservation to an earlier gap and return that; without one, change nothing."""
        if not self._may_be_earlier(job, gap.start):
            return None
        self.withdraw(job, gap)
        found = self._first_gap(job, 0, gap.start)
        # Without one, the old reservation again, with its very units: at its start the matcher could choose
        # others.
        self.reserve(job, gap if found is None else found)
        return found

    def _may_be_earlier(self, job: int, start: float) -> bool:
        """Whether the sums of free units do not rule out a start before the present one."""
        table = self._present.table
        demand = table.demand[:, table.kinds[job]].tolist()
        stop = bisect_left(self.times, start)
        return all(
            max(sums.free[:stop], default=0) >= need for sums, need in zip(self._sums, demand, strict=True)
        )

    def due(self, job: int, gap: Gap, *, fresh: bool) -> Selection | None:
        """Return resources for a job whose reservation begins now; None if they are not actually free.

        The matcher is run again, since more may be free than the plan expected. If it finds nothing,
        the reserved resources are taken.
        """
        present, reserved = self._present, gap.selection
        assert reserved is not None
        if fresh:
            return reserved
        self.withdraw(job, gap)
        found = self.fit_now(job)
        available, until = present.plan.available, present.now + present.table.limits[job]
        if found is None and is_free(available, reserved):
            closes = present.calendar.closes(reserved, present.now, until, available.free)
            found = None if closes else reserved
        self.reserve(job, gap if found is None else Gap(present.now, found))
        return found

    def fits(self, job: int, gap: Gap) -> bool:
        """Whether the units of an old reservation are free over all its time, and no target of it closes."""
        selection = gap.selection
        assert selection is not None
        duration, limit = self._present.table.durations[job], self._present.table.limits[job]
        at = bisect_right(self.times, gap.start) - 1
        stop = bisect_left(self.times, end_of(gap.start, duration))
        least = np.minimum.reduce(self._rows[at:stop])
        free = {type_: least[banks] for type_, banks in self._banks.items()}
        if self._present.calendar.closes(selection, gap.start, gap.start + limit, free):
            return False
        return all(
            bool((free[type_][banks] >= units).all()) for type_, banks, units in self.units_of(selection)
        )

    def restore(self, job: int, gap: Gap) -> None:
        """Reserve again a gap that need not begin at a step."""
        self._step(gap.start)
        self.reserve(job, gap)

    def withdraw(self, job: int, gap: Gap) -> None:
        """Take back a reservation."""
        assert gap.selection is not None
        end = end_of(gap.start, self._present.table.durations[job])
        self._bookings.remove(Booking(gap.start, end, gap.selection))
        self._shift(gap.selection, gap.start, end, 1)
        self._soonest = Bounds()

    # -- reservations -----------------------------------------------------------------------

    def reserve(self, job: int, gap: Gap) -> None:
        """Reserve the gap for the job, to its requested end."""
        if gap.selection is None:
            return
        end = end_of(gap.start, self._present.table.durations[job])
        self._bookings.append(Booking(gap.start, end, gap.selection))
        self._shift(gap.selection, gap.start, end, -1)

    def reserve_targets(self, job: int, gap: Gap, until: float) -> None:  # noqa: ARG002
        """Reserve the targets of a gap as a whole until a time: no other job may use them then."""
        if gap.selection is None:
            return
        at, stop = self._step(gap.start), self._step(until)
        times, index = [*self.times, NEVER], self._present.plan.available.index
        rows = np.array(self._rows[at:stop])
        for first, behind, claim in whole_targets(gap.selection, rows, self._banks, index):
            begin, end = times[at + first], times[at + behind]
            self._bookings.append(Booking(begin, end, claim))
            self._shift(claim, begin, end, -1)

    def _shift(self, selection: Selection, begin: float, end: float, sign: int) -> None:
        """Take (-1) or free (1) the units of a selection from `begin`, which is a step, until `end`."""
        at, stop = bisect_left(self.times, begin), self._step(end)
        totals = dict.fromkeys(self._present.table.types, 0)
        for type_, found, units in self.units_of(selection):
            banks, change = found + self._banks[type_].start, sign * units
            for row in self._rows[at:stop]:
                row[banks] += change
            if type_ in totals:
                totals[type_] += units * len(found) if isinstance(units, int) else int(units.sum())
        for sums, total in zip(self._sums, totals.values(), strict=True):
            for step in range(at, stop):
                sums.free[step] += sign * total

    def units_of(self, selection: Selection) -> Iterator[tuple[str, Ints, Ints | int]]:
        """Yield pool type, leaf pools and units that a selection takes from other jobs.

        In the plan a shared unit is taken as if claimed alone.
        """
        for draw in selection.held:
            yield draw.type, draw.pools, draw.units
        for draw in selection.shared:
            if draw.masks is not None:
                yield draw.type, draw.pools, np.array([mask.bit_count() for mask in listed(draw.masks)])

    def _step(self, time: float) -> int:
        """Return the step that begins at a time; insert it if it does not exist."""
        at = bisect_left(self.times, time)
        if at == len(self.times) or self.times[at] != time:
            self.times.insert(at, time)
            self._rows.insert(at, self._rows[at - 1].copy())
            for sums in self._sums:
                sums.step_at(time)
        return at

    def check(self) -> None:
        """Assert that the sums are those of the rows."""
        assert self.times == sorted(set(self.times))
        for type_, sums in zip(self._present.table.types, self._sums, strict=True):
            assert sums.times == self.times
            banks = self._banks.get(type_, slice(0, 0))
            assert sums.free == [int(row[banks].sum()) for row in self._rows]
