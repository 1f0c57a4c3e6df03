"""Reservations that last where no count decides: on leaf pools, by the matcher.

They answer the questions of `schedule.reservations` for requests above targets, for ranges, licences and
shared claims, under random match policies, and beside closures of units.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.match.search.select import could_fit
from simsched.match.state.masks import listed
from simsched.match.state.selection import Draw, LazySelection, Selection, changed, with_arrays
from simsched.schedule.profile import end_of
from simsched.schedule.profiles.gap import NEVER, Gap
from simsched.schedule.profiles.remainder import is_free, set_aside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.match.state.availability import Availability
    from simsched.schedule.profiles.plan import Moment
    from simsched.schedule.reservations import Reservations
    from simsched.schedule.supply import Supply


class Booking(NamedTuple):
    """A reservation: its time in seconds and its resources."""

    start: float
    end: float
    selection: Selection


def first_window(
    times: Sequence[float], free: Sequence[int], units: int, duration: float, begin: int
) -> int | None:
    """Return the first step from `begin` on from which `units` are free for `duration` seconds, or None.

    ``free[i]`` units are free from ``times[i]`` to ``times[i + 1]``; the last step has no end.

    >>> times, free = [0.0, 10.0, 20.0], [2, 3, 8]
    >>> first_window(times, free, 3, 15.0, 0), first_window(times, free, 9, 1.0, 0)
    (1, None)
    """
    steps = len(free)
    while begin < steps:
        if free[begin] < units:
            begin += 1
            continue
        end = times[begin] + duration
        at = begin + 1
        while at < steps and times[at] < end and free[at] >= units:
            at += 1
        if at == steps or times[at] >= end:
            return begin
        # No start up to the step that is too low can work: its window would contain that step.
        begin = at + 1
    return None


def whole_targets(
    selection: Selection, rows: Integers, banks: Mapping[str, slice], index: Index
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


class GeneralReservations:
    """Reservations as units of leaf pools, on a step function of free units that is made anew at each pass.

    Row i, from `times[i]` to `times[i + 1]`, is the free units of all leaf pools, one pool type after the
    other. A start is searched in three steps, the cheap ones first. None of them rules out a start that the
    next would find:

    1. the sums of each type must suffice over the whole window;
    2. counts on the least row of the window must suffice;
    3. the matcher decides, on the state at the start with the reservations of the window set aside.

    A reservation is for leaf pools and numbers of units. Only where a request or the match policy needs units
    by id is it for these units. Then two reservations that overlap never need the same one.
    """

    def __init__(self, supply: Supply) -> None:
        self._supply = supply
        self._gaps: dict[int, Gap] = {}
        """Job → its reservation."""
        self._found = Gap(NEVER, None)
        self._begin()

    def _begin(self) -> None:
        """Begin from the present, without reservations."""
        supply = self._supply
        plan = supply.plan
        self._moments = [moment for moment in plan.moments(supply.now) if moment[0] != NEVER]
        base = plan.available.copy(counts_only=plan.counts_only)  # before this pass starts a job
        self._states = {0: base}
        """Number of moments that have passed → the state then, without reservations."""
        self._bookings: list[Booking] = []
        self._banks: dict[str, slice] = {}
        """Pool type → the part of a row that belongs to it."""
        for name, free in base.free.items():
            begin = sum(len(base.free[before]) for before in self._banks)
            self._banks[name] = slice(begin, begin + len(free))
        self.times: list[float] = []
        self._rows: list[Integers] = []
        self._sums: list[list[int]] = [[] for _ in supply.table.types]
        """The free units of each type that jobs request, step by step."""
        self._make_steps(base.copy(counts_only=plan.counts_only))

    def _make_steps(self, state: Availability) -> None:
        """Make a step at each time at which a job ends or a target opens again."""
        supply = self._supply
        most = max((int(pool.size.max(initial=0)) for pool in state.index.pool_types.values()), default=0)
        small = np.int16 if most < 1 << 15 else np.int64  # rows are read many times
        openings: list[Moment] = [(time, []) for time in supply.calendar.reopenings(supply.now)]
        moments = sorted([(supply.now, []), *self._moments, *openings], key=itemgetter(0))
        for moment, (following, _) in pairwise([*moments, (NEVER, [])]):
            time = moment[0]
            supply.plan.release_moments(state, [moment])
            if time == following:
                continue
            state = supply.calendar.opened(state, supply.now, time, supply.plan.outages)
            self.times.append(time)
            self._rows.append(np.concatenate([*state.free.values()], dtype=small, casting="same_kind"))
            for type_, sums in zip(supply.table.types, self._sums, strict=True):
                sums.append(state.total.get(type_, 0))

    # -- questions and reservations of a policy -----------------------------------------------------

    def open(self, now: float) -> bool:  # noqa: ARG002
        """Begin from the present; the reservations have to be made again."""
        self._begin()
        return False

    def restore(self, starts: dict[int, float]) -> dict[int, float]:
        """Keep the reservations of which the resources are still free over all their time."""
        before, self._gaps, now = self._gaps, {}, self._supply.now
        for job, start in starts.items():
            if job in before:
                gap = Gap(max(start, now), before[job].selection)
                if self._fits(job, gap):
                    self._put(job, gap)
        return {job: gap.start for job, gap in self._gaps.items()}

    def earliest(self, job: int, before: float = NEVER) -> float:
        """Return the first start before a time, or `NEVER`."""
        supply, now = self._supply, self._supply.now
        if before <= end_of(now, 0):
            may = supply.could_start(job) and self._fitting(job, 0) == 0
            gap = self._at(job, now) if may else None
        else:
            gap = self._first_gap(job, 0, before)
        self._found = gap or Gap(NEVER, None)
        return self._found.start

    def reserve(self, job: int, start: float) -> None:
        """Reserve the resources that were found last, to the requested end of the job."""
        self._gaps[job] = Gap(start, self._found.selection)
        self._book(job, self._gaps[job])

    def reserve_targets(self, job: int, start: float, until: float) -> None:  # noqa: ARG002
        """Reserve the targets that were found last as a whole: no other job may use them until then."""
        if self._found.selection is None:
            return
        at, stop = self._step(start), self._step(until)
        times, index = [*self.times, NEVER], self._supply.plan.available.index
        rows = np.array(self._rows[at:stop])
        for first, behind, claim in whole_targets(self._found.selection, rows, self._banks, index):
            begin, end = times[at + first], times[at + behind]
            self._bookings.append(Booking(begin, end, claim))
            self._shift(claim, begin, end, -1)

    def withdraw(self, job: int) -> None:
        """Take back a reservation."""
        self._unbook(job, self._gaps.pop(job))

    def turns(self, jobs: list[int], barred: set[int], starts: dict[int, float] | None) -> Iterator[int]:
        """Yield jobs that are due or have no reservation, in turn; with `starts` reservations move."""
        now = self._supply.now
        for job in jobs:
            if job in barred:
                continue
            gap = self._gaps.get(job)
            if starts is not None and gap is not None and gap.start > now and self._move(job, gap):
                starts[job] = self._gaps[job].start
            if gap is None or self._gaps[job].start <= now:
                yield job

    def _move(self, job: int, gap: Gap) -> bool:
        """Move a reservation to an earlier gap, if there is one."""
        if not self._may_be_earlier(job, gap.start):
            return False
        self._unbook(job, gap)
        found = self._first_gap(job, 0, gap.start)
        # Without one, the old reservation again, with its very units: at its start the matcher could choose
        # others.
        self._gaps[job] = found or gap
        self._book(job, self._gaps[job])
        return found is not None

    def start_of(self, job: int) -> float:
        """Return the start of a reservation."""
        return self._gaps[job].start

    def could_now(self, job: int) -> bool:
        """Whether counts, sums, and room on targets do not rule out that a job starts now."""
        supply = self._supply
        if not supply.could_start(job) or self._fitting(job, 0) != 0:
            return False
        return self._has_room(job, supply.now, self._least(supply.now, supply.table.durations[job]))

    def begin(self, job: int) -> Selection | None:
        """Take what was found last; of a reservation, match again, since more may be free than was expected.

        If the matcher finds nothing, the reserved resources are taken, if they are actually free.
        """
        supply, now, gap = self._supply, self._supply.now, self._gaps.get(job)
        if gap is None:
            found = self._found.selection
        else:
            reserved = gap.selection
            assert reserved is not None
            self._unbook(job, gap)
            # on what is actually free, and not reserved until the requested end
            duration = supply.table.durations[job]
            least = self._least(now, duration)
            left = self._left_of(supply.plan.available, now, now + duration, least)
            found = supply.seek_at(job, left, now)
            available, until = supply.plan.available, now + supply.table.limits[job]
            if found is None and is_free(available, reserved):
                closes = supply.calendar.closes(reserved, now, until, available.free)
                found = None if closes else reserved
            if found is None and gap.start > now:
                self._book(job, gap)
                return None
            del self._gaps[job]
        if found is not None:  # else the job may still reserve what was found
            self._found = Gap(now, found)
        return found

    def started(self, job: int) -> None:
        """Take the resources until the pass is over; then the running jobs are looked at anew."""
        self._book(job, self._found)

    def places(self) -> dict[int, Any]:
        """Return job → the selection that is reserved."""
        return {job: gap.selection for job, gap in self._gaps.items()}

    def put(self, job: int, start: float, place: Any) -> bool:
        """Reserve a selection, which may not be free any more."""
        if not isinstance(place, Selection | LazySelection):
            return False
        self._put(job, Gap(start, with_arrays(place)))
        return True

    def adopt(self, plan: Reservations) -> None:
        """Go on with a plan."""
        assert isinstance(plan, GeneralReservations)
        vars(self).update(vars(plan))

    # -- gaps -----------------------------------------------------------------------------------------

    def _first_gap(self, job: int, begin: int, before: float) -> Gap | None:
        """Return the first gap from the step `begin` on that starts before a time, if there is one."""
        at = self._fitting(job, begin)
        while at is not None and self.times[at] < before:
            gap = self._at(job, self.times[at])
            if gap is not None:
                return gap
            at = self._fitting(job, at + 1)
        return None

    def _fitting(self, job: int, begin: int) -> int | None:
        """Return the first step from `begin` on from which the sums suffice for the job's requested time."""
        table = self._supply.table
        needs = table.demand[:, table.kinds[job]].tolist()
        at = -1
        while at != begin:
            at = begin
            for sums, need in zip(self._sums, needs, strict=True):
                found = first_window(self.times, sums, need, table.durations[job], begin)
                if found is None:
                    return None
                begin = found
        return at if at < len(self.times) else None

    def _at(self, job: int, time: float) -> Gap | None:
        """Return the gap at one of the times, or None if the job could not run from then to its end."""
        supply = self._supply
        end = time + supply.table.durations[job]
        least = self._least(time, supply.table.durations[job])
        if not self._has_room(job, time, least):
            return None
        # The state of now has the claims of this pass by id.
        state = supply.plan.available if time == self._supply.now else self._state_at(time)
        selection = supply.seek_at(job, self._left_of(state, time, end, least), time)
        return None if selection is None else Gap(time, selection)

    def _least(self, begin: float, duration: float) -> Integers:
        """Return the least free units of each leaf pool in the window from `begin` on."""
        at = bisect_left(self.times, begin)
        behind = max(at + 1, bisect_left(self.times, self.times[at] + duration))
        least: Integers = np.minimum.reduce(self._rows[at:behind])
        return least

    def _has_room(self, job: int, time: float, least: Integers) -> bool:
        """Whether counts by the least that is free, without the vertices of reservations, allow a match."""
        request = self._supply.request(job)
        if request.names_units:
            return True
        state = self._state_at(time).copy(counts_only=True)
        np.maximum(least, 0, out=state.units, casting="unsafe")
        state.total = {name: int(free.sum()) for name, free in state.free.items()}
        return could_fit(request, state)

    def _left_of(self, state: Availability, begin: float, end: float, least: Integers) -> Availability:
        """Return the part of a state that reservations leave; by ids of units if the state has them."""
        reserved = [
            booking.selection
            for booking in self._bookings
            if (booking.start < end and begin < booking.end) or booking.start == begin < booking.end
        ]
        if not reserved:
            return state
        keep = {name: least[banks] for name, banks in self._banks.items()}
        if self._supply.plan.counts_only:
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
        pool = self._supply.plan.available.index.pool_types[draw.type]
        if pool.named:
            banks = draw.pools.tolist()
            masks = [pool.full[bank] for bank in banks] if draw.masks is None else listed(draw.masks)
            yield from zip(banks, masks, strict=True)

    def _state_at(self, time: float) -> Availability:
        """Return the state at a time without the reservations; maintenance that has ended is over.

        A reservation does not share units with a running job: reservations are kept as numbers of free
        units, and these do not show whether that job still has its units.
        """
        plan = self._supply.plan
        number = bisect_right(self._moments, time, key=itemgetter(0))
        if number not in self._states:
            nearest = max(known for known in self._states if known < number)
            state = self._states[nearest].copy(counts_only=plan.counts_only)
            plan.release_moments(state, self._moments[nearest:number])
            self._states[number] = state
        state = self._supply.calendar.opened(self._states[number], self._supply.now, time, plan.outages)
        if state.sharers:
            state = state.copy(counts_only=plan.counts_only)
            state.sharers.clear()
        return state

    def _may_be_earlier(self, job: int, start: float) -> bool:
        """Whether the sums of free units do not rule out a start before the present one."""
        table = self._supply.table
        demand = table.demand[:, table.kinds[job]].tolist()
        stop = bisect_left(self.times, start)
        return all(max(sums[:stop], default=0) >= need for sums, need in zip(self._sums, demand, strict=True))

    def _fits(self, job: int, gap: Gap) -> bool:
        """Whether the units of an old reservation are free over all its time, and no target of it closes."""
        selection = gap.selection
        assert selection is not None
        duration, limit = self._supply.table.durations[job], self._supply.table.limits[job]
        at = bisect_right(self.times, gap.start) - 1
        stop = bisect_left(self.times, end_of(gap.start, duration))
        least = np.minimum.reduce(self._rows[at:stop])
        free = {type_: least[banks] for type_, banks in self._banks.items()}
        if self._supply.calendar.closes(selection, gap.start, gap.start + limit, free):
            return False
        return all(
            bool((free[type_][banks] >= units).all()) for type_, banks, units in self._units_of(selection)
        )

    # -- reservations as steps --------------------------------------------------------------------------

    def _put(self, job: int, gap: Gap) -> None:
        """Reserve a gap that need not begin at a step."""
        self._gaps[job] = gap
        self._step(gap.start)
        self._book(job, gap)

    def _book(self, job: int, gap: Gap) -> None:
        """Take the resources of a gap, to the requested end of the job."""
        if gap.selection is not None:
            end = end_of(gap.start, self._supply.table.durations[job])
            self._bookings.append(Booking(gap.start, end, gap.selection))
            self._shift(gap.selection, gap.start, end, -1)

    def _unbook(self, job: int, gap: Gap) -> None:
        """Free the resources of a gap."""
        assert gap.selection is not None
        end = end_of(gap.start, self._supply.table.durations[job])
        self._bookings.remove(Booking(gap.start, end, gap.selection))
        self._shift(gap.selection, gap.start, end, 1)

    def _shift(self, selection: Selection, begin: float, end: float, sign: int) -> None:
        """Take (-1) or free (1) the units of a selection from `begin`, which is a step, until `end`."""
        at, stop = bisect_left(self.times, begin), self._step(end)
        totals = dict.fromkeys(self._supply.table.types, 0)
        for type_, found, units in self._units_of(selection):
            banks, change = found + self._banks[type_].start, sign * units
            for row in self._rows[at:stop]:
                row[banks] += change
            if type_ in totals:
                totals[type_] += units * len(found) if isinstance(units, int) else int(units.sum())
        for sums, total in zip(self._sums, totals.values(), strict=True):
            for step in range(at, stop):
                sums[step] += sign * total

    def _units_of(self, selection: Selection) -> Iterator[tuple[str, Integers, Integers | int]]:
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
                sums.insert(at, sums[at - 1])
        return at

    def check(self) -> None:
        """Assert that the sums are those of the rows."""
        assert self.times == sorted(set(self.times))
        for type_, sums in zip(self._supply.table.types, self._sums, strict=True):
            banks = self._banks.get(type_, slice(0, 0))
            assert sums == [int(row[banks].sum()) for row in self._rows]
