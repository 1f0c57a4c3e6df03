"""`PassRoom`: the availability profile of one pass; its running jobs are kept from pass to pass in a `Room`.

The answers are those of `GraphProfile`, which is built again at each pass and asks the matcher at each step
that sums do not rule out. Here the pass begins with a copy of a matrix, a start is tried where the
`Gauges` suffice in the whole window, and the matcher gets the least vector of the window as its state. For
that, equal states must give equal answers, and counts must decide for every request (`GraphSupply.profile`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING

import numpy as np

from simsched.schedule.profiles.gap import NEVER, Bounds, Gap, end_of
from simsched.schedule.profiles.graph_profile import Booking, has_room, overlapping, whole_targets
from simsched.schedule.profiles.remainder import set_aside

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.lasting.footprint import Columns, Footprint
    from simsched.schedule.lasting.gauges import Gauges
    from simsched.schedule.lasting.room import Room
    from simsched.schedule.profiles.protocols import Known, Present


class PassRoom:
    """The free resources over time beside the running jobs and the reservations of one pass.

    `room` is changed, so it is a copy of the one that is kept.
    """

    follows = True

    def __init__(self, present: Present, gauges: Gauges, columns: Columns, room: Room) -> None:
        self._present, self._gauges, self._columns, self._room = present, gauges, columns, room
        self._soonest = Bounds()
        self._bookings: list[Booking] = []
        self._begins: list[tuple[float, int]] = []
        """Start and number of each reservation, sorted."""
        self._footprints: list[Footprint] = []
        self._fits_now: int | None = None
        """The job of which `could_now` was last found true."""
        self._since = NEVER
        """The earliest start of the reservations that were made since then."""

    def advance(self, now: float) -> None:
        """Forget the time before now; jobs of which the gap began before it run now."""
        self._room.advance(now)
        self._bookings = [booking for booking in self._bookings if booking.start >= now]
        self._fits_now = None

    def settle(self, known: Known) -> int:  # noqa: ARG002
        """Reserve for none of the known jobs: the changes since are not known by leaf pool."""
        return 0

    # -- questions --------------------------------------------------------------------------------

    def earliest(self, job: int) -> Gap:
        """Return the first time from which the job could run to its requested end."""
        table = self._present.table
        kind, duration = table.kinds[job], table.durations[job]
        begin = self._room.at(self._soonest.of(kind, duration))
        gap = self._first_gap(job, begin, self._room.steps)
        self._soonest.note(kind, duration, gap.start)
        return gap

    def now(self, job: int) -> Gap:
        """Return a gap that begins now, or one that never begins."""
        return self._first_gap(job, 0, 1) if self.could_now(job) else Gap(NEVER, None)

    def could_now(self, job: int) -> bool:
        """Whether gauges do not rule out a gap that begins now."""
        room, table = self._room, self._present.table
        kind, duration = table.kinds[job], table.durations[job]
        if job == self._fits_now and self._since >= room.now + duration:
            return True
        if self._soonest.of(kind, duration) > room.now:
            return False
        if next(room.fitting(self._gauges.of[kind], duration, 0, 1), None) is None:
            self._soonest.note(kind, duration, float(room.times[1]) if room.steps > 1 else NEVER)
            return False
        self._fits_now, self._since = job, NEVER
        return True

    def fit_now(self, job: int) -> Selection | None:
        """Return resources that are free now, and not reserved until the job's requested end."""
        return self._seek(job, 0, self._room.stop(0, self._present.table.durations[job]))

    def _first_gap(self, job: int, begin: int, end: int) -> Gap:
        """Return the first gap that begins with a step from `begin` until `end`."""
        room, table = self._room, self._present.table
        duration = table.durations[job]
        for at in room.fitting(self._gauges.of[table.kinds[job]], duration, begin, end):
            selection = self._seek(job, at, room.stop(at, duration))
            if selection is not None:
                return Gap(float(room.times[at]) if at else self._present.now, selection)
        return Gap(NEVER, None)

    def _seek(self, job: int, at: int, stop: int) -> Selection | None:
        """Match a job on the least of the steps from `at` until `stop`."""
        present, room, begins = self._present, self._room, self._begins
        time = float(room.times[at])
        first = bisect_right(begins, (time, len(begins)))
        behind = bisect_left(begins, (float(room.times[stop]),)) if stop < room.steps else len(begins)
        least = room.least(at, stop, [self._footprints[number] for _, number in begins[first:behind]])
        units = {name: least[part] for name, part in self._columns.pools.items()}
        # A reservation may be longer than its job, so that more may be reserved than there is. The matcher
        # does not see that, but sums do.
        if (room.sums(at, stop) < present.table.demand[:, job]).any():
            return None
        if not has_room(present.request(job), units, self._columns.index):
            return None
        available = present.plan.available
        if at:
            every = least[: self._columns.use.start]
            np.maximum(every, 0, out=every)
            return present.seek_at(job, self._columns.state(available, least, counts_only=True), time)
        # The state of now has the claims of this pass by id.
        within = overlapping(self._bookings, time, time + present.table.durations[job])
        if not within:
            return present.seek_at(job, available, time)
        selections = [booking.selection for booking in within]
        left = set_aside(available, selections, units, counts_only=present.plan.counts_only)
        return present.seek_at(job, left, time)

    # -- reservations -----------------------------------------------------------------------------

    def reserve(self, job: int, gap: Gap) -> None:
        """Reserve the gap for the job, to its requested end."""
        if gap.selection is None:
            return
        end = end_of(gap.start, self._present.table.durations[job])
        self._book(gap.selection, gap.start, end)

    def reserve_targets(self, job: int, gap: Gap, until: float) -> None:  # noqa: ARG002
        """Reserve the targets of a gap as a whole until a time: no other job may use them then."""
        if gap.selection is None:
            return
        room, columns = self._room, self._columns
        at, stop = room.step(gap.start), room.step(until)
        times = [*room.times[at:stop].tolist(), until]
        rows = room.units(at, stop)
        for first, behind, claim in whole_targets(gap.selection, rows, columns.pools, columns.index):
            self._book(claim, times[first], times[behind])

    def _book(self, selection: Selection, begin: float, end: float) -> None:
        footprint = self._columns.footprint(selection, self._room.up)
        insort(self._begins, (begin, len(self._footprints)))
        self._bookings.append(Booking(begin, end, selection))
        self._footprints.append(footprint)
        self._room.take(footprint, begin, end)
        self._since = min(self._since, begin)
