"""`Room`: the resources of a cluster over time as a step function of vectors, changed by differences.

The vector of one step has a column for each leaf pool (units that no claim takes), for each execution
target (claims on it), and for each vertex (exclusive and shared claims). Claims are counted as negative
numbers, so that the least vector of a window is the state in which a job could run through all of it. A
claim changes a few columns of the steps that it lasts; states are never copied. Beside the vectors the
totals of the `Gauges` are kept for each step.
"""

from __future__ import annotations

from copy import copy
from math import nextafter
from typing import TYPE_CHECKING

import numpy as np

from simsched.schedule.lasting.gains import Gains
from simsched.schedule.lasting.owned_times import OwnedTimes
from simsched.schedule.lasting.room_change import Claim, RoomChange
from simsched.schedule.lasting.tried_windows import REFUSED, UNKNOWN, Added, TriedWindows
from simsched.schedule.lasting.window_minima import (
    distinct,
    least_in_windows,
    padded,
    smallest,
    sums_of_least,
)
from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from simsched.graph.index.types import Bools, Ints
    from simsched.match.state.availability import Availability
    from simsched.schedule.lasting.footprint import Columns, Footprint
    from simsched.schedule.lasting.gauges import Gauges
    from simsched.schedule.lasting.tried_windows import Windows

    Floats = npt.NDArray[np.float64]

DENSE = 16
"""From a part of 1/16 of a vector on, whole rows are read: each cell by itself takes many times as long."""

NEVER_LESS = 1e9
"""More copies than any request needs."""


class Room:
    """The vectors of the steps between now and the last change that is planned.

    Attributes
    ----------
    up : which targets are up; the vectors hold as long as that does not change.
    gains : before which times more may be free than at the last compression.
    owned : the times of steps that are kept, since a claim or reservation begins or ends then.
    tried : the windows of which is known that a reservation could not begin with them.
    """

    def __init__(
        self, columns: Columns, gauges: Gauges, state: Availability, now: float, claims: int
    ) -> None:
        self._columns, self._gauges = columns, gauges
        self.up = state.up.copy()
        self._spans: dict[int, tuple[int, int, Ints]] = {}
        small = smallest(max(columns.most, claims))  # the rows are read many times
        self._rows = np.empty((64, columns.width), dtype=small)
        self._spare = list(range(63, 0, -1))
        self._rows[0] = columns.vector(state)
        self._shares = bool(self._rows[0, columns.outer :].any())
        """Whether any vertex is, or was, claimed shared."""
        self._time = np.empty(64)
        self._slot = np.zeros(64, dtype=np.int64)
        self._total = np.empty((len(gauges) + 1, 64))
        self._total[-1] = 0.0  # of the gauge that rules nothing out
        self.steps = 1
        self._time[0] = now
        self._marked = np.zeros(len(self.up), dtype=np.bool_)
        self._may = (gauges.eligible & self.up).astype(np.float64)
        self._total[:-1, 0] = gauges.totals(self._cells(0, 1, np.arange(len(self.up))), self._may)[:, 0]
        self._best: Floats | None = None
        totals = [state.total.get(type_, 0) for type_ in columns.types]
        self._sum = np.repeat(np.array(totals, dtype=np.int64)[:, None], 64, axis=1)
        """The free units of each type, step by step."""
        self._most: Ints | None = None
        self.owned = OwnedTimes()
        self.gains = Gains(len(gauges))
        self.tried = TriedWindows(len(self._time), len(self.up))

    def copy(self) -> Room:
        """Return the same steps, to be changed apart; steps of the copy have no owners."""
        twin = copy(self)
        steps, size = self.steps, len(self._time)
        while size < 2 * steps:
            size *= 2
        twin._rows = np.empty((size, self._rows.shape[1]), dtype=self._rows.dtype)
        twin._rows[:steps] = self._rows[self._slot[:steps]]
        twin._slot = np.arange(size)
        twin._spare = list(range(size - 1, steps - 1, -1))
        twin._time, twin._total = padded(self._time, size), padded(self._total, size)
        twin._sum = padded(self._sum, size)
        twin.owned = OwnedTimes()
        twin.gains = self.gains.copy()
        twin.tried = TriedWindows(size, len(self.up))
        return twin

    @property
    def times(self) -> Floats:
        """The beginnings of the steps, in seconds; callers must not change them."""
        return self._time[: self.steps]

    @property
    def slots(self) -> Ints:
        """The slots of the steps, by which `tried` knows them; callers must not change them."""
        return self._slot[: self.steps]

    @property
    def now(self) -> float:
        """The beginning of the first step, in seconds."""
        return float(self._time[0])

    def best(self) -> Floats:
        """Return for each gauge and step the greatest total up to that step."""
        if self._best is None:
            self._best = np.maximum.accumulate(self._total[:, : self.steps], axis=1)
        return self._best

    def most(self) -> Ints:
        """Return for each type and step the most free units up to that step."""
        if self._most is None:
            self._most = np.maximum.accumulate(self._sum[:, : self.steps], axis=1)
        return self._most

    # -- steps -----------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Forget the time before now."""
        past = int(self.times.searchsorted(now, "right")) - 1
        if past:
            self._spare.extend(self._slot[:past].tolist())
            self._move(past, 0)
            self._best = self._most = None
        self._time[0] = now

    def at(self, time: float) -> int:
        """Return the first step that does not begin before a time."""
        return int(self.times.searchsorted(time))

    def step(self, time: float) -> int:
        """Return the step that begins at a time from now on; insert it if it does not exist."""
        if time == NEVER:
            return self.steps
        at = self.at(time)
        if at < self.steps and self._time[at] == time:
            return at
        if not self._spare or self.steps == len(self._time):
            self._grow()
        slot = self._spare.pop()
        self._rows[slot] = self._rows[self._slot[at - 1]]
        self._move(at, at + 1)
        self._time[at], self._slot[at] = time, slot
        self._total[:, at], self._sum[:, at] = self._total[:, at - 1], self._sum[:, at - 1]
        self._best = self._most = None
        self.tried.split(slot, int(self._slot[at - 1]), first=at == 1)
        if at == 1:
            # At the first step a search uses the units of now by id, and avoids more than at later steps. So
            # a request that did not fit at the first step may fit at this one, although nothing changes.
            self.gains.note_all(nextafter(time, NEVER))
        return at

    def purge(self) -> None:
        """Remove the steps that nothing owns any more: nothing changes at them."""
        for time in self.owned.drop():
            at = self.at(time)
            if 0 < at < self.steps and self._time[at] == time:
                self._spare.append(int(self._slot[at]))
                self._move(at + 1, at)
                self._best = self._most = None

    def _move(self, begin: int, to: int) -> None:
        """Move the steps from `begin` on to another place."""
        steps, end = self.steps, self.steps + to - begin
        self._time[to:end] = self._time[begin:steps]
        self._slot[to:end] = self._slot[begin:steps]
        self._total[:, to:end] = self._total[:, begin:steps]
        self._sum[:, to:end] = self._sum[:, begin:steps]
        self.steps = end

    def _grow(self) -> None:
        size = len(self._time)
        self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._time = np.concatenate([self._time, np.empty_like(self._time)])
        self._slot = np.concatenate([self._slot, np.empty_like(self._slot)])
        self._total = np.concatenate([self._total, np.empty_like(self._total)], axis=1)
        self._total[-1] = 0.0
        self._sum = np.concatenate([self._sum, np.empty_like(self._sum)], axis=1)
        self._spare.extend(range(2 * size - 1, size - 1, -1))
        self.tried.grow()

    # -- claims ----------------------------------------------------------------------------------

    def take(self, footprint: Footprint, begin: float, end: float) -> None:
        """Take resources from `begin`, or now, until `end` seconds."""
        self._change(Claim(footprint, self.step(max(begin, self.now)), self.step(end), -1))

    def free(self, footprint: Footprint, begin: float, end: float) -> None:
        """Free resources from `begin`, or now, until `end` seconds."""
        if end <= self.now:
            return
        change = self._change(Claim(footprint, self.step(max(begin, self.now)), self.step(end), 1))
        self._open(change, footprint, end)

    def move(
        self, job: int, old: tuple[Footprint, float, float], new: tuple[Footprint, float, float]
    ) -> None:
        """Free a job's reservation (footprint, begin and end in seconds), and take another.

        For the job that is no news: its own reservation counted as free for it.
        """
        for _, begin, end in (old, new):
            self.step(max(begin, self.now))
            self.step(end)
        claims = [
            Claim(footprint, self.at(max(begin, self.now)), self.at(end), sign)
            for (footprint, begin, end), sign in ((old, 1), (new, -1))
        ]
        self._open(self._change(*claims), old[0], old[2], job)

    def _open(self, change: RoomChange, freed: Footprint, end: float, job: int = -1) -> None:
        """Open the windows in which enough may be free after a release until `end`, but not of the `job`."""
        gauges, tried = self._gauges, self.tried
        concerned = np.logical_or.reduce(gauges.eligible[:, freed.targets], axis=1) | freed.above
        self.gains.note(concerned, end)
        if not tried:
            return
        gain = change.gain(self._may, gauges)
        if freed.above:
            gain += NEVER_LESS
        owners = tried.owners(change.targets)
        added = tried.of_gauges(gain)
        if owners.any():
            most = gauges.most_added(freed.on_targets, freed.targets).sum(axis=1)
            added[owners] = np.maximum(added, tried.of_gauges(most))[owners]
        stop = change.stop
        opened = tried.gain(self._slot[:stop], self.times[:stop], change.begin, Added(added, concerned, job))
        if len(opened.steps) and not freed.above:
            self._close(opened, change, owners, len(freed.targets))

    def _close(self, opened: Windows, change: RoomChange, owners: Bools, freed: int) -> None:
        """Note what is still missing in windows that a release may open.

        The totals of the steps rule most of them out; of the others, the targets that changed are counted.
        """
        owned, stops = owners[opened.columns], self.stops(opened.steps, opened.durations)
        until = np.minimum(stops, self.times.searchsorted(opened.starts))  # then its own resources count
        low, high = int(opened.steps[0]), int(until.max())  # steps ascend
        gauges, which = distinct(opened.gauges, len(self._gauges))
        totals = self._total[gauges, low:high]
        missing = opened.wanted - least_in_windows(totals, which, opened.steps - low, until - low)
        enough = missing <= 0
        missing[enough & owned] = UNKNOWN
        count = (enough & ~owned).nonzero()[0]
        if len(count):
            missing[count] = self._missing(opened.part(count), stops[count], change, freed)
        self.tried.put(self._slot, opened, missing)

    def _missing(self, opened: Windows, stops: Ints, change: RoomChange, freed: int) -> Floats:
        """Return how many copies are missing at least in some windows after a change.

        The first `freed` targets of the change are those of its release: only there may the matcher find
        what it did not find before.
        """
        low, high = int(opened.steps[0]), int(stops.max())
        some, which = distinct(self._gauges.demand[opened.gauges], len(change.more))
        now = self._gauges.rooms(self._cells(low, high, change.targets), some)
        least = change.least(now, some, low, (which, opened.steps, stops))
        may = self._may[opened.gauges[:, None], change.targets]
        more = np.einsum("ij,ij->i", least[:, 1] - least[:, 0], may)
        again = np.einsum("ij,ij->i", least[:, 1, :freed], may[:, :freed]) > 0
        missing = opened.missing - more
        return np.where(opened.missing == REFUSED, np.where(again, UNKNOWN, REFUSED), missing)

    def _cells(self, begin: int, stop: int, targets: Ints) -> Ints:
        """Return the free units of each type of the gauges, and last the claims, by (type, step, target)."""
        found: Ints = self._rows[self._slot[begin:stop, None], self._columns.by_target[:, :, targets]]
        return found

    def note_first(self) -> None:
        """Note that the matcher may refuse less at the first step than before."""
        self.tried.reopen(int(self.slots[0]))
        self.gains.note_all(nextafter(self.now, NEVER))

    def note_counted(self, footprint: Footprint) -> None:
        """Note that the leaf pools of a claim are not avoided any more: the ids of its units are chosen now.

        Gauges do not see that: a request for which they lack copies still lacks them.
        """
        self.tried.reopen(int(self.slots[0]))
        on_them = np.logical_or.reduce(self._gauges.eligible[:, footprint.targets], axis=1)
        self.gains.note(on_them | np.bool_(footprint.above), NEVER)

    def _change(self, *claims: Claim) -> RoomChange:
        """Take and free claims, and return the rooms before and after."""
        begin, stop = min(claim.begin for claim in claims), max(claim.stop for claim in claims)
        targets = claims[0].footprint.targets
        for claim in claims[1:]:
            more = claim.footprint.targets
            self._marked[targets] = True
            others = more[~self._marked[more]]
            self._marked[targets] = False
            targets = np.concatenate([targets, others])
        cells = self._cells(begin, stop, targets)
        for footprint, first, last, sign in claims:
            where = self._slot[first:last, None], footprint.columns
            self._rows[where] += sign * footprint.amounts.astype(self._rows.dtype)
            self._sum[:, first:last] += sign * footprint.sums[:, None]
            self._shares = self._shares or bool(footprint.columns[-1] >= self._columns.outer)
        rooms = self._gauges.rooms(np.concatenate([cells, self._cells(begin, stop, targets)], axis=1))
        before, after = rooms[:, : stop - begin], rooms[:, stop - begin :]
        change = RoomChange(targets, begin, stop, before, after - before)
        self._total[:-1, begin:stop] += self._gauges.sums(change.more, self._may[:, targets])
        self._best = self._most = None
        return change

    # -- windows ---------------------------------------------------------------------------------

    def stop(self, step: int, duration: float) -> int:
        """Return the first step behind the window of `duration` seconds that begins with a step."""
        return max(self.at(float(self._time[step]) + duration), step + 1)

    def stops(self, steps: Ints, duration: float | Floats) -> Ints:
        """Return for each step the first one behind the window of `duration` seconds that begins with it."""
        return np.maximum(self.times.searchsorted(self.times[steps] + duration), steps + 1)

    def fitting(
        self,
        gauges: Sequence[tuple[int, int]],
        duration: float,
        begin: int,
        end: int,
        own: tuple[Footprint, int, int] | None = None,
    ) -> Iterator[int]:
        """Yield the steps from `begin` until `end` from which the gauges suffice for `duration` seconds.

        `gauges` are numbers of gauges and the copies that are needed. The footprint `own` counts as free
        from its first step until its stop.
        """
        steps = self._enough(gauges, duration, begin, end, self.steps if own is None else own[1])
        size = 1 if own is None else 8
        while len(steps):
            some, steps = steps[:size], steps[size:]
            for gauge, copies in gauges:
                if len(some):
                    some = some[self._copies(gauge, some, self.stops(some, duration), own) >= copies]
            yield from some.tolist()
            size *= 4  # often the first will do

    def _enough(
        self, gauges: Sequence[tuple[int, int]], duration: float, begin: int, end: int, open_: int
    ) -> Ints:
        """Return the steps as `fitting`, but judged by the totals of each step alone.

        From the step `open_` on, anything counts as free.
        """
        low = np.zeros(open_, dtype=np.bool_)
        for gauge, copies in gauges:
            low |= self._total[gauge, :open_] < copies
        steps = begin + (~low[begin:end]).nonzero()[0]
        bad = low.nonzero()[0]
        if not len(bad) or not len(steps):
            return steps
        following = np.concatenate([bad, (self.steps,)])[bad.searchsorted(steps)]
        return steps[following >= np.minimum(self.stops(steps, duration), open_)]

    def try_windows(
        self, job: int, gauge: int, copies: int, duration: float, own: tuple[Footprint, int, int]
    ) -> Ints:
        """Return the steps before a reservation from which its gauge may suffice for `duration` seconds.

        Of the windows that are open the missing copies are counted and noted. The footprint `own` counts as
        free from its first step, where the reservation begins, until its stop.
        """
        steps = self.tried.open_steps(job, self._slot[: own[1]])
        if not len(steps):
            return steps
        stops = self.stops(steps, duration)
        low = (self._total[gauge, : own[1]] < copies).nonzero()[0]
        # The first step with too few copies in all is in the window, or not.
        following = np.concatenate([low, (self.steps,)])[low.searchsorted(steps)]
        beyond = following >= np.minimum(stops, own[1])
        missing = np.empty(len(steps))
        few = following[~beyond]
        missing[~beyond] = copies - self._total[gauge, few]
        if beyond.any():
            missing[beyond] = copies - self._copies(gauge, steps[beyond], stops[beyond], own)
        self.tried.note(job, self._slot[steps], missing)
        return steps[missing <= 0]

    def _copies(self, gauge: int, steps: Ints, stops: Ints, own: tuple[Footprint, int, int] | None) -> Floats:
        """Return for how many copies of a gauge windows (from `steps` until `stops`) have room.

        Each target counts with the least copies of the window.
        """
        low, high = int(steps[0]), int(stops[-1])
        first, last, others = self._span(gauge)
        slots, types = self._slot[low:high], self._gauges.types
        units = self._gauges.parts[gauge].units
        starts = [self._columns.on_target[types.index(type_)].start for type_, _ in units]
        starts.append(self._columns.use.start)
        parts = [self._rows[slots, start + first : start + last] for start in starts]
        if own is not None:
            footprint, begin, end = own
            mine = np.zeros(self._columns.width, dtype=self._rows.dtype)
            mine[footprint.columns] = footprint.amounts
            for part, start in zip(parts, starts, strict=True):
                part[max(begin - low, 0) : max(end - low, 0)] += mine[start + first : start + last]
        table = self._gauges.copies(gauge, parts[:-1], parts[-1])
        if len(others):
            table[:, others] = 0
        return sums_of_least(table, steps - low, stops - low)

    def _span(self, gauge: int) -> tuple[int, int, Ints]:
        """Return the first target of a gauge, that behind its last, and the places of others in between."""
        found = self._spans.get(gauge)
        if found is None:
            eligible = self._gauges.eligible[gauge] & self.up
            targets = eligible.nonzero()[0]
            first, last = (int(targets[0]), int(targets[-1]) + 1) if len(targets) else (0, 0)
            found = self._spans[gauge] = first, last, (~eligible[first:last]).nonzero()[0]
        return found

    def least(
        self, begin: int, stop: int, taken: Sequence[Footprint], own: tuple[Footprint, int, int] | None = None
    ) -> Ints:
        """Return the least vector of the steps from `begin` until `stop`, without sums over targets.

        `taken` are the footprints of all claims that begin within: only these can make a vector smaller
        than the first one. The footprint `own` counts as free from its first step until its stop.
        """
        row = self._least_row(begin, stop, taken)
        if own is not None:
            footprint, first, behind = own
            part = self._rows[self._slot[begin:stop, None], footprint.columns]
            part[max(first - begin, 0) : max(behind - begin, 0)] += footprint.amounts.astype(part.dtype)
            row[footprint.columns] = np.minimum.reduce(part, axis=0)
        return row

    def _least_row(self, begin: int, stop: int, taken: Sequence[Footprint]) -> Ints:
        """Return `least` without a footprint of its own."""
        row: Ints = self._rows[self._slot[begin]].astype(np.int64)
        if taken and stop > begin + 1:
            slots = self._slot[begin:stop]
            if sum(len(some.columns) for some in taken) > len(row) // DENSE:
                inner, outer = self._columns.inner, self._columns.outer
                row[:inner] = np.minimum.reduce(self._rows[slots, :inner], axis=0)
                if self._shares:
                    row[outer:] = np.minimum.reduce(self._rows[slots, outer:], axis=0)
                return row
            columns = np.concatenate([some.columns for some in taken])
            row[columns] = np.minimum.reduce(self._rows[slots[:, None], columns], axis=0)
        return row

    def sums(self, begin: int, stop: int) -> Ints:
        """Return the least free units of each type in the steps from `begin` until `stop`."""
        found: Ints = np.minimum.reduce(self._sum[:, begin:stop], axis=1)
        return found

    def units(self, begin: int, stop: int) -> Ints:
        """Return the free units of each leaf pool in the steps from `begin` until `stop`."""
        found: Ints = self._rows[self._slot[begin:stop], : self._columns.use.start]
        return found

    def covers(self, footprint: Footprint, begin: int, stop: int) -> bool:
        """Whether the units of a footprint are free from one step until another."""
        slots, number = self._slot[begin:stop], footprint.units
        least = self._rows[slots[:, None], footprint.columns[:number]].min(axis=0)
        return bool((least >= footprint.amounts[:number]).all())

    def is_short(self) -> bool:
        """Whether more units are taken at some time than there are."""
        last = max((part.stop for part in self._columns.pools.values()), default=0)
        return bool((self._rows[self._slot[: self.steps], :last] < 0).any())

    def equals(self, other: Room) -> bool:
        """Whether the vectors are the same at all times."""
        times = np.union1d(self.times, other.times)
        mine, theirs = (
            room._rows[room._slot[room.times.searchsorted(times, "right") - 1]] for room in (self, other)
        )
        return np.array_equal(mine, theirs)

    def check(self) -> None:
        """Assert that the totals are those of the vectors."""
        assert (np.diff(self.times) > 0).all()
        every = self._gauges.totals(self._cells(0, self.steps, np.arange(len(self.up))), self._may)
        assert np.array_equal(every, self._total[:-1, : self.steps])
        for at, type_ in enumerate(self._columns.types):
            if type_ in self._columns.pools and self.up.all():
                rows = self._rows[self._slot[: self.steps], self._columns.pools[type_]]
                assert np.array_equal(rows.sum(axis=1), self._sum[at, : self.steps]), type_
        assert sorted({*self._spare, *self._slot[: self.steps].tolist()}) == list(range(len(self._rows)))
