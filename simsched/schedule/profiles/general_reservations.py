"""Reservations that last where no count decides: on leaf pools, by the matcher.

They answer the questions of `schedule.reservations` for requests within sockets and above targets, for
ranges, licences and shared claims, under match policies whose order changes with each placement, and beside
closures.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.match.state.masks import listed
from simsched.match.state.selection import Selection
from simsched.schedule.profiles.gap import NEVER, Bounds, Gap, end_of
from simsched.schedule.profiles.graph_profile import Booking, GraphProfile
from simsched.schedule.profiles.remainder import is_free, set_aside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.graph.index.types import Ints
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Draw
    from simsched.schedule.reservations import Reservations


class GeneralReservations:
    """Reservations as units of leaf pools, on a profile that is made anew at each pass."""

    def __init__(self, supply: Any) -> None:
        self._supply = supply
        self._gaps: dict[int, Gap] = {}
        """Job → its reservation."""
        self._found = Gap(NEVER, None)
        self._profile = GraphRows(supply)

    def open(self, now: float) -> bool:  # noqa: ARG002
        """Begin from the present; the reservations have to be made again."""
        self._profile = GraphRows(self._supply)
        return False

    def restore(self, starts: dict[int, float]) -> dict[int, float]:
        """Keep the reservations of which the resources are still free over all their time."""
        before, self._gaps = self._gaps, {}
        for job, start in sorted(starts.items(), key=lambda item: item[1]):
            if job not in before:
                continue
            gap = Gap(max(start, self._supply.now), before[job].selection)
            if self._profile.fits(job, gap):
                self._profile.restore(job, gap)
                self._gaps[job] = gap
        return {job: gap.start for job, gap in self._gaps.items()}

    def earliest(self, job: int, before: float = NEVER) -> float:
        """Return the first start before a time, or `NEVER`."""
        if before < NEVER:
            could = self._supply.could_start(job)
            self._found = self._profile.now(job) if could else Gap(NEVER, None)
        else:
            self._found = self._profile.earliest(job)
        return self._found.start

    def reserve(self, job: int, start: float) -> None:
        """Reserve the resources that were found last."""
        gap = self._gaps[job] = Gap(start, self._found.selection)
        self._profile.reserve(job, gap)

    def reserve_targets(self, job: int, start: float, until: float) -> None:
        """Reserve the targets that were found last as a whole."""
        self._profile.reserve_targets(job, Gap(start, self._found.selection), until)

    def withdraw(self, job: int) -> None:
        """Take back a reservation."""
        self._profile.withdraw(job, self._gaps.pop(job))

    def compress(self, jobs: list[int], barred: set[int]) -> Iterator[int]:
        """Move reservations, in turn; yield jobs that have moved, are due, or have none."""
        for job in jobs:
            if job in barred:
                continue
            gap = self._gaps.get(job)
            if gap is not None and gap.start > self._supply.now:
                found = self._profile.move(job, gap)
                if found is None:
                    continue
                self._gaps[job] = found
            yield job

    def start_of(self, job: int) -> float:
        """Return the start of a reservation."""
        return self._gaps[job].start

    def could_now(self, job: int) -> bool:
        """Whether counts, sums, and room on targets do not rule out that a job starts now."""
        return self._supply.could_start(job) and self._profile.could_now(job)

    def begin(self, job: int) -> Selection | None:
        """Match again if there was a reservation, or if a job overruns; else take what was reserved."""
        own = self._gaps.get(job)
        if own is None:
            self.reserve(job, self._supply.now)
        gap = self._gaps[job]
        found = self._profile.due(job, gap, fresh=own is None)
        if found is not None:
            self._gaps[job] = Gap(self._supply.now, found)
        self.withdraw(job)
        self._found = Gap(self._supply.now, found)
        return found

    def started(self, job: int) -> None:
        """Take the resources until the pass is over; then the running jobs are looked at anew."""
        self._profile.reserve(job, self._found)

    def places(self) -> dict[int, Any]:
        """Return job → the selection that is reserved."""
        return {job: gap.selection for job, gap in self._gaps.items()}

    def put(self, job: int, start: float, place: Any) -> bool:
        """Reserve a selection, which may not be free any more."""
        if not isinstance(place, Selection):
            return False
        self._gaps[job] = Gap(start, place)
        self._profile.restore(job, self._gaps[job])
        return True

    def adopt(self, plan: Reservations) -> None:
        """Go on with a plan."""
        assert isinstance(plan, GeneralReservations)
        self._profile, self._gaps = plan._profile, plan._gaps


class GraphRows(GraphProfile):
    """The free units of each leaf pool over time, beside the running jobs and all reservations, of one pass.

    A reservation is for leaf pools and numbers of units. Only where a request or the match policy needs units
    by id is it for these units. Then two reservations that overlap never need the same one.
    """

    # -- one job --------------------------------------------------------------------------------

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
        demand = self._present.table.demand[:, job].tolist()
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
        if fresh and not present.plan.overrun(present.now):
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

    # -- free resources -------------------------------------------------------------------------

    def left_of(self, state: Availability, begin: float, end: float, least: Ints) -> Availability:
        """Return the part of a state that reservations leave; by ids of units if the state has them."""
        reserved = [booking.selection for booking in self._within(begin, end)]
        if not reserved:
            return state
        if self._present.plan.counts_only:
            left = super().left_of(state, begin, end, least)
        else:
            keep = {name: least[banks] for name, banks in self._banks.items()}
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

    def units_of(self, selection: Selection) -> Iterator[tuple[str, Ints, Ints | int]]:
        """Yield pool type, leaf pools and units; in the plan a shared unit is taken as if claimed alone."""
        yield from super().units_of(selection)
        for draw in selection.shared:
            if draw.masks is not None:
                yield draw.type, draw.pools, np.array([mask.bit_count() for mask in listed(draw.masks)])

    def state_at(self, time: float) -> Availability:
        """Return the state at a time without the reservations; maintenance that has ended is over.

        A reservation does not share units with a running job: reservations are kept as numbers of free
        units, and these do not show whether that job still has its units.
        """
        state = super().state_at(time)
        if state.sharers:
            state = state.copy(counts_only=self._present.plan.counts_only)
            state.sharers.clear()
        return state
