"""Reservations on the graph that are kept from pass to pass, as changes of one `Room`.

The answers are those of `GraphReservations`, which is built again at each pass and searches with the matcher
alone. Here the matcher only confirms: a start is tried where the `Gauges` suffice in the whole window. And
a reservation is tried at an earlier start only if something that it could use was freed before its start
since the last try, and only with the windows in which enough may be free now (`tried_windows`). For both,
equal states must give equal answers (`Supply.is_steady`), and whether a request fits must not depend on which
units are free (`Plan.counts_only`).

While a job overruns (or its epilog lasts beyond its requested end) its claim counts as free in the plan, but
not for a job that starts. A reservation that cannot begin for that reason is postponed from pass to pass.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from operator import is_
from typing import TYPE_CHECKING

import numpy as np

from simsched.schedule.lasting.room import Room
from simsched.schedule.lasting.tried_windows import REFUSED
from simsched.schedule.profiles.gap import NEVER, Bounds, Gap, end_of
from simsched.schedule.profiles.graph_reservations import GraphReservations
from simsched.schedule.profiles.remainder import is_free

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from simsched.graph.index.types import Ints
    from simsched.match.state.selection import Selection
    from simsched.schedule.lasting.footprint import Columns, Footprint
    from simsched.schedule.lasting.gauges import Gauges
    from simsched.schedule.profiles.protocols import Present

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]


class LastingReservations:
    """The free resources over time beside the running jobs and all reservations."""

    def __init__(self, present: Present, gauges: Gauges, columns: Columns) -> None:
        self._present, self._gauges, self._columns = present, gauges, columns
        plan, now = present.plan, present.now
        self._room = Room(columns, gauges, plan.available, now, present.table.capacity)
        self._soonest = Bounds()
        self._footprints: dict[int, Footprint] = {}
        """Job → the footprint of its reservation, or of its claim while it runs."""
        self._ends: dict[int, float] = {}
        """Job → the end of its reservation, or the expected end of its claim, in seconds."""
        self._begins: list[tuple[float, int]] = []
        """Start and job of each reservation, sorted."""
        self._selections: dict[int, Selection] = {}
        """Job → its reserved resources."""
        self._counted: list[Footprint] = []
        """The claims of this pass that were reserved without ids of units."""
        self._held: dict[int, Selection] = {}
        for job, end in plan.expected_ends().items():
            self._run(job, end)
            self._room.free(self._footprints[job], end, NEVER)
        self._room.gains.before[:] = NEVER

    def _run(self, job: int, end: float) -> None:
        """Note a job that runs until its expected end."""
        self._held[job] = self._present.plan.held[job]
        self._footprints[job] = self._columns.footprint(self._held[job], self._room.up)
        self._ends[job] = end
        self._room.owned.own(end)

    # -- from pass to pass --------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Forget the time before now."""
        self._room.advance(now)

    def follow(self, due: Iterable[int], *, moved: bool) -> bool:  # noqa: ARG002
        """Advance to the present; return False if it must be built again.

        That is so if targets went up or down, part of a claim was released, or a job that was started
        otherwise is in the way of a reservation.
        """
        plan, room, now = self._present.plan, self._room, self._present.now
        if not np.array_equal(room.up, plan.available.up):
            return False
        room.advance(now)
        if self._held.keys() != plan.held.keys() and not self._update():
            return False
        for footprint in self._counted:
            room.note_counted(footprint)
        self._counted.clear()
        room.gains.begin()
        room.purge()
        if plan.overrun(now):
            room.note_first()
        self._soonest = Bounds()
        # The values of both in the order of one: a part of a claim may have been released.
        return all(map(is_, map(self._held.__getitem__, plan.held), plan.held.values()))

    def _update(self) -> bool:
        """Follow the jobs that ended or started; return False if one is in the way of a reservation."""
        plan, room = self._present.plan, self._room
        for job in self._held.keys() - plan.held.keys():
            del self._held[job]
            end = self._ends.pop(job)
            room.free(self._footprints.pop(job), room.now, end)
            room.owned.disown(end)
        others = plan.held.keys() - self._held.keys()
        for job in others:
            self._run(job, plan.expected_end(job))
            room.take(self._footprints[job], room.now, self._ends[job])
        return not others or not room.is_short()

    def postpone(self, jobs: Iterable[int]) -> bool:
        """Let missed reservations begin now instead; return False if they leave another one too little."""
        room, durations = self._room, self._present.table.durations
        starts = {job: start for start, job in self._begins}
        for job in jobs:
            start, end = starts[job], self._ends[job]
            until = end_of(room.now, durations[job])
            self._begins.remove((start, job))
            insort(self._begins, (room.now, job))
            self._ends[job] = until
            room.take(self._footprints[job], end, until)
            room.owned.disown(start, end)
            room.owned.own(room.now, until)
            self._note_windows(job, room.now, self._footprints[job])
        room.purge()
        return not room.is_short()

    def close(self, *, changed: bool) -> None:
        """Note the running jobs at the end of a pass, if they have changed."""
        if changed:
            self._held = self._present.plan.held.copy()

    def compressed(self) -> None:
        """Note that each waiting job was tried; gains from jobs behind it count at the next compression."""
        self._room.gains.end()

    # -- which jobs -----------------------------------------------------------------------------

    def turns(self, jobs: Sequence[int], starts: Mapping[int, float]) -> Iterator[int]:
        """Yield in turn the jobs without a reservation, those that are due, and those that may move."""
        room, at = self._room, 0
        every = np.array(jobs, dtype=np.int64)
        begins = np.array([starts.get(job, -NEVER) for job in jobs])
        columns = room.tried.columns(jobs)
        while at < len(jobs):
            # Those that had their turn are behind; a reservation of another job moves only in its turn.
            gains, done = room.gains.number, 0
            tried = self._would_try(every[at:], begins[at:])
            looked_at = self._looked_at(every[at:], begins[at:], columns[at:], tried)
            for place in looked_at.nonzero()[0].tolist():
                if tried[done:place].any():
                    self._soonest = Bounds()
                yield jobs[at + place]
                done = place + 1
                if room.gains.number != gains:  # it moved, so that jobs behind it may move to its old place
                    break
            else:
                return
            at += done

    def _looked_at(self, jobs: Integers, starts: Floats, columns: Ints, tried: Bools) -> Bools:
        """Return which reservations, with these starts, are due or not ruled out at an earlier start.

        `columns` are those of `TriedWindows`, and `tried` is the answer of `_would_try`.
        """
        room, gauges = self._room, self._gauges
        kinds = self._present.table.kinds_array[jobs]
        before = np.minimum(starts, room.gains.before[gauges.concerns[kinds]])
        last = room.times.searchsorted(before) - 1
        known = columns >= 0
        enough = room.tried.first_open(room.slots)[columns] <= last
        if not known.all():
            first = gauges.first[kinds]
            enough[~known] = (room.best()[first, last] >= gauges.wanted[kinds])[~known]
        found: Bools = (last >= 0) & enough & tried | (starts <= room.now)
        return found

    def _would_try(self, jobs: Integers, starts: Floats) -> Bools:
        """Return which reservations the sums of free units do not rule out at an earlier start.

        A try of one of these may move its reservation, so the bounds of starts are forgotten.
        """
        room, demand = self._room, self._present.table.demand[:, jobs]
        last = room.times.searchsorted(starts) - 1
        found: Bools = (last >= 0) & (room.most()[:, last] >= demand).all(axis=0)
        return found

    # -- questions --------------------------------------------------------------------------------

    def earliest(self, job: int, before: float = NEVER) -> Gap:  # noqa: ARG002
        """Return the first time from which the job could run to its requested end."""
        table = self._present.table
        kind, duration = table.kinds[job], table.durations[job]
        begin = self._room.at(self._soonest.of(kind, duration))
        gap = self._first_gap(job, begin, self._room.steps) or Gap(NEVER, None)
        self._soonest.note(kind, duration, gap.start)
        return gap

    def now(self, job: int) -> Gap:
        """Return a gap that begins now, or one that never begins."""
        table = self._present.table
        if self._soonest.of(table.kinds[job], table.durations[job]) > self._room.now:
            return Gap(NEVER, None)
        return self._first_gap(job, 0, 1) or Gap(NEVER, None)

    def move(self, job: int, gap: Gap) -> Gap | None:
        """Move a job's reservation to an earlier gap and return that; without one, change nothing."""
        room, table = self._room, self._present.table
        self._soonest = Bounds()
        start = room.at(gap.start)
        own = self._footprints[job], start, room.at(self._ends[job])
        for at in self._earlier_steps(job, own):
            selection = self._seek(job, at, room.stop(at, table.durations[job]), own)
            if selection is not None:
                found = Gap(self._time(at), selection)
                self._replace(job, gap.start, found)
                return found
            room.tried.refuse(job, int(room.slots[at]))
        return None

    def _earlier_steps(self, job: int, own: tuple[Footprint, int, int]) -> Iterable[int]:
        """Return the steps before a job's reservation from which nothing but the matcher may refuse it."""
        room, table = self._room, self._present.table
        duration, gauges = table.durations[job], self._gauges.of[table.kinds[job]]
        if job not in room.tried:
            return room.fitting(gauges, duration, 0, own[1], own)
        ((gauge, copies),) = gauges
        found: list[int] = room.try_windows(job, gauge, copies, duration, own).tolist()
        return found

    def _first_gap(self, job: int, begin: int, end: int) -> Gap | None:
        """Return the first gap that begins with a step from `begin` until `end`, if there is one."""
        room, table = self._room, self._present.table
        duration = table.durations[job]
        gauges = self._gauges.of[table.kinds[job]]
        for at in room.fitting(gauges, duration, begin, end):
            selection = self._seek(job, at, room.stop(at, duration), None)
            if selection is not None:
                return Gap(self._time(at), selection)
        return None

    def _time(self, at: int) -> float:
        """Return the beginning of a step in seconds, as it was given first."""
        if not at:
            return self._present.now
        time, (ends, _) = float(self._room.times[at]), self._present.plan.ends()
        place = bisect_left(ends, time)
        same = place < len(ends) and ends[place] == time
        return ends[place] if same else self._room.owned.as_given(time)

    def _seek(
        self,
        job: int,
        at: int,
        stop: int,
        own: tuple[Footprint, int, int] | None,
        *,
        really: bool = False,
    ) -> Selection | None:
        """Match a job on the least of the steps from `at` until `stop`.

        The footprint `own`, that of its reservation, counts as free from its first step until its stop.
        With `really` only what is free now counts, also while a job overruns.
        """
        present, room = self._present, self._room
        time = float(room.times[at])
        begins = self._begins
        first, behind = bisect_right(begins, (time, NEVER)), self._first_behind(stop)
        inside = [other for _, other in begins[first:behind] if other != job]
        # The state of now has the claims of this pass by id. But while a job overruns it still has that job's
        # claim, which the plan takes as released.
        overrun = not at and present.plan.overrun(time)
        as_it_is = not at and (really or not overrun)
        if as_it_is:
            begun = [other for _, other in begins[:first]]
            others = inside + [other for other in begun if other != job]
            if not others and not self._counted:
                return present.seek_at(job, present.plan.available, time)
            if any(self._names_units(other) for other in others):
                return self._seek_by_ids(job, others)
        least = room.least(at, stop, [self._footprints[other] for other in inside], own)
        if as_it_is:
            if overrun:
                np.minimum(least, self._columns.vector(present.plan.available), out=least)
            self._avoid(least, [*(self._footprints[other] for other in others), *self._counted])
        state = self._columns.state(present.plan.available, least, counts_only=not as_it_is)
        return present.seek_at(job, state, time)

    def _first_behind(self, stop: int) -> int:
        """Return the place of the first reservation that does not begin before a step."""
        room, begins = self._room, self._begins
        return bisect_left(begins, (float(room.times[stop]),)) if stop < room.steps else len(begins)

    def _avoid(self, least: Ints, footprints: Iterable[Footprint]) -> None:
        """Set all units with ids aside of leaf pools from which units are reserved.

        The ids of the units that a reservation will get are not chosen yet, so among the units of now none
        of these leaf pools' is surely left.
        """
        columns = np.concatenate([some.columns[: some.units] for some in footprints])
        least[columns[self._columns.named[columns]]] = 0

    def _names_units(self, job: int) -> bool:
        """Whether a job's reservation is for units by id."""
        return any(draw.masks is not None for draw in self._selections[job].held)

    def _seek_by_ids(self, job: int, others: Iterable[int]) -> Selection | None:
        """Match a job on the units of now that are not reserved by id."""
        starts = {other: start for start, other in self._begins}
        slow = GraphReservations(self._present)
        for other in others:
            slow.restore(other, Gap(starts[other], self._selections[other]))
        return slow.fit_now(job)

    def fit_now(self, job: int) -> Selection | None:
        """Return resources that are actually free, and not reserved until the job's requested end."""
        return self._fit_now(job, None)

    def fits(self, job: int, gap: Gap) -> bool:
        """Whether the units of an old reservation are free over all its time, and its targets are up."""
        assert gap.selection is not None
        room = self._room
        footprint = self._columns.footprint(gap.selection, room.up)
        if not room.up[self._drawn_on(gap.selection)].all():
            return False
        begin = int(room.times.searchsorted(gap.start, "right")) - 1
        stop = room.at(end_of(gap.start, self._present.table.durations[job]))
        return room.covers(footprint, begin, stop)

    def _drawn_on(self, selection: Selection) -> Ints:
        """Return the targets from which a selection draws units."""
        pools = self._columns.index.pool_types
        targets = [pools[draw.type].target[draw.pools] for draw in selection.held if draw.amount]
        every = np.concatenate([np.empty(0, dtype=np.int64), *targets])
        return every[every >= 0]

    # -- reservations -----------------------------------------------------------------------------

    def reserve(self, job: int, gap: Gap) -> None:
        """Reserve the gap for the job."""
        if gap.selection is None:
            return
        end = end_of(gap.start, self._present.table.durations[job])
        footprint = self._columns.footprint(gap.selection, self._room.up)
        self._footprints[job], self._ends[job] = footprint, end
        self._selections[job] = gap.selection
        self._note_windows(job, gap.start, footprint)
        insort(self._begins, (gap.start, job))
        self._room.take(footprint, gap.start, end)
        self._room.owned.own(gap.start, end)

    def _note_windows(self, job: int, start: float, footprint: Footprint) -> None:
        """Note why a job does not start earlier, if one gauge decides whether a release can help it."""
        table, gauges, tried = self._present.table, self._gauges, self._room.tried
        gauge = gauges.concerns.item(table.kinds[job])
        if gauge < len(gauges):
            if job not in tried:
                tried.add(job, gauge, int(gauges.wanted[table.kinds[job]]), table.durations[job])
            tried.place(job, start, footprint.targets)

    def _replace(self, job: int, old: float, gap: Gap) -> None:
        """Move a reservation that begins at `old` seconds to a gap."""
        assert gap.selection is not None
        room, was, until = self._room, self._footprints[job], self._ends[job]
        end = end_of(gap.start, self._present.table.durations[job])
        footprint = self._columns.footprint(gap.selection, room.up)
        room.move(job, (was, old, until), (footprint, gap.start, end))
        self._footprints[job], self._ends[job], self._selections[job] = footprint, end, gap.selection
        self._note_windows(job, gap.start, footprint)
        self._begins.remove((old, job))
        insort(self._begins, (gap.start, job))
        room.owned.disown(old, until)
        room.owned.own(gap.start, end)
        self._soonest = Bounds()

    def restore(self, job: int, gap: Gap) -> None:
        """Reserve again a gap that need not begin at a step."""
        self.reserve(job, gap)

    def withdraw(self, job: int, gap: Gap) -> None:
        """Take back a reservation."""
        self._room.tried.drop(job)
        end = self._ends.pop(job)
        del self._selections[job]
        self._begins.remove((gap.start, job))
        self._room.free(self._footprints.pop(job), gap.start, end)
        self._room.owned.disown(gap.start, end)
        self._soonest = Bounds()

    def due(self, job: int, gap: Gap, *, fresh: bool) -> Selection | None:
        """Return resources for a job whose reservation begins now; None if they are not actually free.

        The matcher is run again, since more may be free than the plan expected. If it finds nothing,
        the reserved resources are taken.
        """
        present, reserved, now = self._present, gap.selection, self._present.now
        assert reserved is not None
        found: Selection | None = reserved
        if not fresh or present.plan.overrun(now):
            found = self._fit_now(job, gap)
            if found is None and is_free(present.plan.available, reserved):
                found = reserved
        if not fresh or found is None:
            # It was avoided at the first step, and its units are other ones, or free, from now on.
            self._room.tried.reopen(int(self._room.slots[0]))
        if found is None:
            return None
        new = was = self._footprints[job]
        if found is not reserved:
            new = self._columns.footprint(found, self._room.up)
        if gap.start != now or (new is not was and not _equal(was, new)):
            self.withdraw(job, gap)
            self.reserve(job, Gap(now, found))
        # From now on it is the claim of a job that runs.
        self._begins.remove((now, job))
        self._room.owned.disown(now)
        del self._selections[job]
        self._room.tried.drop(job)
        self._soonest = self._soonest if fresh else Bounds()
        if found.counted:
            self._counted.append(new)
        return found

    def _fit_now(self, job: int, own: Gap | None) -> Selection | None:
        """Return resources that are free now; those of the job's `own` reservation are free for it."""
        room = self._room
        if own is not None and own.start > room.now:  # it begins a moment after now
            gains = room.gains.copy()
            self.withdraw(job, own)
            found = self._fit_now(job, None)
            self.reserve(job, own)
            room.gains = gains  # what was freed has been taken again
            return found
        stop = room.stop(0, self._present.table.durations[job])
        mine = None if own is None else (self._footprints[job], 0, room.steps)
        return self._seek(job, 0, stop, mine, really=True)

    # -- invariants -------------------------------------------------------------------------------

    def check(self) -> None:
        """Assert that all that is counted agrees."""
        self._room.check()
        assert self._begins == sorted(self._begins)
        assert {job for _, job in self._begins} == self._selections.keys()
        for job in self._selections:
            if job in self._room.tried:
                self._check_windows(job)

    def _check_windows(self, job: int) -> None:
        """Assert that a job could not start with any window in which something is noted to be missing."""
        room, duration = self._room, self._present.table.durations[job]
        ((gauge, copies),) = self._gauges.of[self._present.table.kinds[job]]
        start = int(room.times.searchsorted(next(at for at, other in self._begins if other == job)))
        own = self._footprints[job], start, room.at(self._ends[job])
        for at in range(start):
            noted = room.tried.missing(job, int(room.slots[at]))
            if noted == REFUSED:
                assert self._seek(job, at, room.stop(at, duration), own) is None
            elif noted > 0:
                assert next(room.fitting([(gauge, copies)], duration, at, at + 1, own), None) is None

    def equals(self, other: LastingReservations) -> bool:
        """Whether the free resources are the same at all times."""
        return self._room.equals(other._room)


def _equal(one: Footprint, other: Footprint) -> bool:
    """Whether two footprints change the same columns alike."""
    return np.array_equal(one.columns, other.columns) and np.array_equal(one.amounts, other.amounts)
