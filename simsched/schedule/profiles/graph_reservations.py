"""Reservations for the vertices that the matcher chose, where counts do not decide."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np

from simsched.match.state.masks import listed
from simsched.schedule.profiles.gap import Bounds, Gap, end_of
from simsched.schedule.profiles.graph_profile import Booking, GraphProfile
from simsched.schedule.profiles.plan import set_aside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.graph.index.types import Ints
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Draw, Selection
    from simsched.schedule.pass_context import PassContext


class GraphReservations(GraphProfile):
    """What is free of each pool over time beside the running jobs and all reservations.

    It is built again at each pass.  A reservation is for banks and numbers of units.  Only where
    the state knows the units by id (a request or the match policy does) is it for these units, so
    that two reservations that overlap never need the same one.
    """

    # -- from pass to pass --------------------------------------------------------------------

    def follow(self, context: PassContext, due: Iterable[int]) -> bool:  # noqa: ARG002
        """Return False: it is of one pass."""
        return False

    def close(self, context: PassContext) -> None:
        """Do nothing at the end of a pass."""

    def compressed(self) -> None:
        """Do nothing when each waiting job was tried."""

    # -- one job --------------------------------------------------------------------------------

    def earlier(self, job: int, gap: Gap) -> Gap | None:
        """Take a job's reservation away if it can start earlier, and return where; else None.

        Where the matcher finds no earlier start, the reservation stays as it was, units and all.
        """
        if not self._may_be_earlier(job, gap.start):
            return None
        self.withdraw(job, gap)
        at = self._fitting(job, 0)
        while at is not None and self.times[at] < gap.start:
            found = self._at(job, self.times[at])
            if found is not None:
                return found
            at = self._fitting(job, at + 1)
        self.book(job, gap)
        return None

    def _may_be_earlier(self, job: int, start: float) -> bool:
        """Whether the sums of free units allow it to begin before its present start."""
        demand = self._context.table.demand[:, job].tolist()
        stop = bisect_left(self.times, start)
        return all(
            max(sums.free[:stop], default=0) >= need for sums, need in zip(self._sums, demand, strict=True)
        )

    def due(self, job: int, gap: Gap, *, fresh: bool) -> Selection | None:
        """Return what a job whose reservation begins now starts on, or None if it is not free in fact.

        The matcher is asked again, since more may be free than was foreseen; what was reserved does
        if it finds nothing.
        """
        context, reserved = self._context, gap.selection
        assert reserved is not None
        if fresh and not context.plan.overrun(context.now):
            return reserved
        self.withdraw(job, gap)
        found = self.real(job)
        if found is None and is_free(reserved, context.plan.available):
            found = reserved
        self.book(job, gap if found is None else Gap(context.now, found))
        return found

    def fits(self, job: int, gap: Gap) -> bool:
        """Whether a reservation still holds: its units are free, and nothing is closed in between."""
        selection = gap.selection
        assert selection is not None
        duration = self._context.table.durations[job]
        closed = self._context.calendar.closed(gap.start, gap.start + duration)
        if closed is not None and np.isin(selection.targets, closed).any():
            return False
        at = bisect_right(self.times, gap.start) - 1
        stop = bisect_left(self.times, end_of(gap.start, duration))
        least = np.minimum.reduce(self._rows[at:stop])
        return all(
            bool((least[banks + self._banks[type_].start] >= units).all())
            for type_, banks, units in self._taken(selection)
        )

    def lay(self, job: int, gap: Gap) -> None:
        """Book a reservation that begins at any time."""
        self._step(gap.start)
        self.book(job, gap)

    def withdraw(self, job: int, gap: Gap) -> None:
        """Take back a reservation."""
        assert gap.selection is not None
        end = end_of(gap.start, self._context.table.durations[job])
        self._bookings.remove(Booking(gap.start, end, gap.selection))
        self._shift(gap.selection, gap.start, end, 1)
        self._soonest = Bounds()

    # -- what is free ---------------------------------------------------------------------------

    def _beside(self, state: Availability, begin: float, end: float, least: Ints) -> Availability:
        """Return what the reservations leave of a state; where it knows units by id, by their ids."""
        reserved = [booking.selection for booking in self._within(begin, end)]
        if not reserved:
            return state
        if state.partial is None:
            left = super()._beside(state, begin, end, least)
        else:
            keep = {name: least[banks] for name, banks in self._banks.items()}
            left = set_aside(state, reserved, keep, units=self._units(reserved))
        for selection in reserved:
            self._unshare(left, selection)
        return left

    def _units(self, reserved: Iterable[Selection]) -> dict[str, dict[int, int]]:
        """Return pool type -> bank -> mask of the units that selections name."""
        units: dict[str, dict[int, int]] = {}
        for selection in reserved:
            for draw in (*selection.held, *selection.shared):
                masks = units.setdefault(draw.type, {})
                for bank, mask in self._masks(draw):
                    masks[bank] = masks.get(bank, 0) | mask
        return units

    def _unshare(self, left: Availability, selection: Selection) -> None:
        """Keep a reservation apart from claims that are shared.

        A unit that running jobs share until a reservation takes it is not free, and could be shared
        once more, beyond the start of the reservation.  A vertex that a reservation shares looks
        idle, and could be held alone.
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
        """Yield bank and units of a draw, where its pool's units have ids; all of a bank taken whole."""
        pool = self._context.plan.available.index.pool_types[draw.type]
        if pool.named:
            banks = draw.pools.tolist()
            masks = [pool.full[bank] for bank in banks] if draw.masks is None else listed(draw.masks)
            yield from zip(banks, masks, strict=True)

    def _taken(self, selection: Selection) -> Iterator[tuple[str, Ints, Ints | int]]:
        """Yield type, banks and units of a selection; a unit that is shared is nobody else's in the plan."""
        yield from super()._taken(selection)
        for draw in selection.shared:
            if draw.masks is not None:
                yield draw.type, draw.pools, np.array([mask.bit_count() for mask in listed(draw.masks)])

    def _open(self, state: Availability, time: float) -> None:
        """Open the targets of maintenance that is going on and ends by a time."""
        context = self._context
        for targets in context.calendar.ending(self._now, time):
            state.set_status(targets[state.index.up[targets]], up=True)

    def _released(self, time: float) -> Availability:
        """Return what is available at `time` but for the reservations, after the maintenance of now.

        A reservation does not count on sharing units with a running job: whether that job still has
        them is not known from the numbers of free units, by which reservations are kept.
        """
        state = super()._released(time)
        opens = any(True for _ in self._context.calendar.ending(self._now, time))
        if opens or state.sharers:
            state = state.copy(counts_only=self._context.plan.counts_only)
            state.sharers.clear()
            self._open(state, time)
        return state


def is_free(selection: Selection, available: Availability) -> bool:
    """Whether all that a selection takes is free: its targets are up, its units and vertices idle."""
    if not available.up[selection.targets].all():
        return False
    for draw in selection.held:
        if not (available.free[draw.type][draw.pools] >= draw.units).all():
            return False
    for hold in selection.holds:
        busy = available.held[hold.type][hold.ordinals].any()
        if busy or (hold.exclusive and available.shared[hold.type][hold.ordinals].any()):
            return False
    return all(_has_units(draw, available) for draw in (*selection.held, *selection.shared))


def _has_units(draw: Draw, available: Availability) -> bool:
    """Whether the units that a draw names are free."""
    pool = available.index.pool_types[draw.type]
    if draw.masks is None or available.partial is None:
        return True
    masks = zip(draw.pools.tolist(), listed(draw.masks), strict=True)
    return all(mask & ~available.free_mask(pool, bank) == 0 for bank, mask in masks)
