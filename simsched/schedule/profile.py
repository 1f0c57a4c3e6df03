"""`Profile`: the copies of each demand that targets can host over time, beside all claims and reservations.

The definition, on the demands, kinds and targets of a `Kernel`:

- Free at a time are the units of a target, type by type, less those of the running jobs that are expected
  to run then, and less those of reservations for then. Less than nothing is nothing. The leaf pools of a
  type on a target are one pool here, since a demand asks only for sums on a target. Where a demand of the run
  takes vertices within targets, each is a pool of its own.
- A target that a claim takes whole, or that is closed, is shut: it hosts nothing then. A target that any
  claim touches is not idle.
- A kind fits at a time s for d seconds if the copies that the targets host by the least free units of each
  pool within [s, s + d), on each at most so many as it may host, are enough in sum. Its earliest start is the
  first such s. It takes the first targets in the order of the match policy, and on each the first units.
- A job that overruns has its claim until a moment after now, again and again.

What is kept, and nothing else is remembered:

- segments: for each target a list in the order of time of its free numbers, and the copies of each demand.
  So a claim touches only the few segments of its targets.
- steps: for each demand a list of the times at which its copies change on any target, with their sum from
  then on (the total), by how much they rise there, target by target (the rise), and a row of bits: the
  targets that host a copy from then on. If a demand draws from several pools of a target, a rise of any is
  one of all the copies there: the pools need not be least at the same time.

Targets are numbered by their place in the order of the match policy. As in the kernel, the loops are over
single numbers in arrays of one dimension.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import nextafter
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.match.kernel import integers, view, zeros

if TYPE_CHECKING:
    from simsched.arrays import Integers
    from simsched.match.kernel import Kernel


NEVER = float("inf")


FULL = 0xFFFFFFFFFFFFFFFF
"""A word with all of its 64 bits."""

BIT = view(np.array([1 << place for place in range(64)], dtype=np.uint64))
PLACE = view(np.zeros(67, dtype=np.int64))
"""The place of the one bit of a word, by the remainder of the word modulo 67, which differs for all."""
for _place in range(64):
    PLACE[(1 << _place) % 67] = _place

STEPS = 16
"""Steps of each demand for which there is room at first."""


class TimedClaim:
    """What a running job or a reservation takes, and when (in seconds).

    `rows` is row behind row: a target, its units of each pool, whether the claim touches it (1), and whether
    it shuts the target. `copies` are those of a reservation on each of its targets.
    """

    begin: float
    end: float
    rows: Any
    copies: Any


def _timed(begin: float, end: float, rows: Any, copies: Any) -> TimedClaim:
    """Return a claim; a call of its class would make objects of the arrays."""
    claim = TimedClaim.__new__(TimedClaim)
    claim.begin, claim.end, claim.rows, claim.copies = begin, end, rows, copies
    return claim


class Profile:
    """Free units over time on the targets of a kernel, with its running jobs and with reservations.

    Attributes
    ----------
    now : the time before which nothing is known, in seconds.
    kernel : the demands, kinds and targets, as of when the profile is made. After a change of the status of
        targets another one is to be made.
    running : the claims of the running jobs.
    reserved : the claims of the jobs with reservations.

    Where targets that are down come back, `may` and `units` are given: which targets may host each demand
    then, and the units of each leaf pool that no claim has.
    """

    def __init__(self, kernel: Kernel, may: Any = None, units: Any = None) -> None:
        self.kernel = kernel
        self.now = -NEVER
        self.targets, self.demands = kernel.targets, kernel.demands
        self.words = (self.targets + 63) // 64
        columns, self.order = np.asarray(kernel.column), kernel.order
        order = np.asarray(kernel.order)
        rank = np.empty(self.targets, dtype=np.int64)
        rank[order] = np.arange(self.targets)
        self.rank = view(rank)
        self.types = len(columns) - 1
        self.column = kernel.column if kernel.divided else integers(range(self.types + 1))
        """The first pool of each type on a target, and behind the last one their number, `pools`."""
        self.pools = self.column[self.types]
        self.width = self.pools + 2
        """Behind the pools are the claims that touch a target, and those that shut it."""
        self.need = zeros(self.demands * self.types)
        for d in range(self.demands):
            for i in range(kernel.begin[d], kernel.begin[d + 1]):
                self.need[d * self.types + kernel.type[i]] += kernel.per[i]
        self.idle, self.whole, self.most = kernel.idle, kernel.whole, kernel.most
        self.several, self.uses = zeros(self.demands), zeros(self.demands * self.width)
        """Whether a demand draws from several pools of a target, and on which numbers its copies depend."""
        for d in range(self.demands):
            self._note_uses(d)
        self.demand, self.amount = kernel.demand, kernel.amount
        may = kernel.may if may is None else may
        may = np.asarray(may).reshape(self.demands, self.targets)[:, order] > 0
        self.by = integers(np.concatenate([[0], may.sum(axis=0).cumsum()]))
        self.users = integers(may.T.nonzero()[1])
        """The demands that target n may host: from `by[n]` to `by[n + 1]`."""
        some = [row.nonzero()[0] for row in may]
        self.low = integers([row[0] // 64 if len(row) else 0 for row in some])
        self.high = integers([row.max() // 64 + 1 if len(row) else 0 for row in some])
        """The words of the rows of bits that may have any."""
        self.home = integers(np.full(len(kernel.units), -1))
        """Leaf pool → number of its target and its pool (`target * pools + pool`); -1: on no target."""
        leaf = np.asarray(kernel.leaf).reshape(self.targets, -1)
        sums = np.zeros((self.targets, self.width), dtype=np.int64)
        units = np.asarray(kernel.units if units is None else units)
        for t in range(self.types):
            for column in range(columns[t], columns[t + 1]):
                here = (leaf[order, column] >= 0).nonzero()[0]
                cells, pool = leaf[order[here], column], column if kernel.divided else t
                sums[here, pool] += units[cells]
                np.asarray(self.home)[cells] = here * self.pools + pool
        self.running: dict[int, TimedClaim] = {}
        self.reserved: dict[int, TimedClaim] = {}
        self.ends: list[tuple[float, int]] = []
        """A heap of the expected ends of the running jobs; also those that have been moved."""
        self.slot = zeros(self.targets)
        for job in kernel.running().tolist():  # their units are free later
            rows = np.asarray(self._rows_of(job)).reshape(-1, 1 + self.width)
            sums[rows[:, 0], : self.pools] += rows[:, 1 : self.pools + 1]

        # Segments: a list for each target; those that no list has are a list, too, from `spare` on. Segment
        # `targets` is in none: the least free numbers of a window are written there.
        size = 4 * self.targets + 64
        self.first = integers(range(self.targets))
        self.next = integers(np.full(size, -1))
        self.time = _times(size, -NEVER)
        self.free = zeros(size * self.width)
        """What is free of each pool; less one for each claim that touches the target, and that shuts it."""
        np.asarray(self.free)[: sums.size] = sums.reshape(-1)
        self.copies = zeros(size * self.demands)
        self.spare = -1
        for a in range(size - 1, self.targets, -1):
            self._give_back(a)
        for n in range(self.targets):
            for i in range(self.by[n], self.by[n + 1]):
                self.copies[n * self.demands + self.users[i]] = self._hosts(n, self.users[i], n)

        # Steps: those of demand d are from `begin[d]` to `stop[d]` of its `room` places.
        self.room = STEPS
        self.begin, self.stop = zeros(self.demands), integers(np.ones(self.demands))
        self.at = _times(self.demands * self.room, -NEVER)
        self.total, self.rise = zeros(self.demands * self.room), zeros(self.demands * self.room)
        self.change = zeros(self.demands * self.room)
        """By how much the total rises more at a step than it did, until the totals are summed up again."""
        self.since, self.until = _times(self.demands, NEVER), _times(self.demands, -NEVER)
        """The times between which there are such changes."""
        self.row = zeros(self.demands * self.room)
        """The row of bits of each step."""
        self.bits = view(np.zeros((2 * self.demands + 64) * self.words, dtype=np.uint64))
        self.unused = integers(range(2 * self.demands + 63, -1, -1))
        self.left = self.demands + 64
        """How many of the rows in `unused` are free."""
        copies = np.asarray(self.copies)[: self.targets * self.demands].reshape(self.targets, self.demands)
        for d in range(self.demands):
            self.total[d * self.room] = int(copies[:, d].sum())
            self.row[d * self.room] = d
            for n in copies[:, d].nonzero()[0].tolist():
                self.bits[d * self.words + (n >> 6)] |= BIT[n & 63]

        self.word = view(np.zeros(self.words, dtype=np.uint64))
        self.found, self.number, self.count = zeros(self.targets), zeros(self.targets), 0
        """Of the last search: targets, the copies on each, and the number of targets; without: all copies."""
        self.draft = zeros(self.targets * (1 + self.width))
        self.placed = zeros(self.targets * (1 + self.pools))
        self.was, self.new = zeros(self.demands), zeros(self.demands)
        self.rose, self.climbs = zeros(self.demands), zeros(self.demands)
        self.turned = zeros(self.demands)
        self.own: TimedClaim | None = None
        """The reservation that the search takes as free, since it is to be moved."""
        self.mine = view(np.zeros(self.words, dtype=np.uint64))
        """The bits of its targets."""
        self.short = False
        """Whether something took more than was free, until that is set back."""

    def _note_uses(self, d: int) -> None:
        """Note on which numbers of a target the copies of a demand depend."""
        kernel = self.kernel
        uses = np.asarray(self.uses)[d * self.width : (d + 1) * self.width]
        inner = np.asarray(kernel.inner_type)[kernel.inner[d] : kernel.inner[d + 1]].tolist()
        for t in range(self.types):
            if self.need[d * self.types + t] or t in inner:
                uses[self.column[t] : self.column[t + 1]] = 1
                self.several[d] |= self.column[t + 1] - self.column[t] > 1
        if kernel.level[d] >= 0:
            self.several[d] = 1
            if kernel.alone[d]:
                of = np.asarray(kernel.vertex).reshape(-1, self.targets, kernel.width)[kernel.level[d]]
                uses[: self.pools] |= (of >= 0).any(axis=0)
        uses[self.pools], uses[self.pools + 1] = self.idle[d], 1

    # --- storage --------------------------------------------------------------------------------

    def _give_back(self, a: int) -> None:
        self.next[a] = self.spare
        self.spare = a

    def _split(self, a: int, time: float) -> int:
        """Begin a segment at a time within another one; return it."""
        if self.spare < 0:
            size = len(self.time)
            self.time, self.next = _longer(self.time), _longer(self.next)
            self.free, self.copies = _longer(self.free), _longer(self.copies)
            for i in range(2 * size - 1, size - 1, -1):
                self._give_back(i)
        b = self.spare
        self.spare = self.next[b]
        self.next[b] = self.next[a]
        self.next[a] = b
        self.time[b] = time
        for i in range(self.width):
            self.free[b * self.width + i] = self.free[a * self.width + i]
        for i in range(self.demands):
            self.copies[b * self.demands + i] = self.copies[a * self.demands + i]
        return b

    def _join(self, a: int, b: int) -> None:
        """Make segments one if they are equal; b follows a."""
        for i in range(self.width):
            if self.free[a * self.width + i] != self.free[b * self.width + i]:
                return
        self.next[a] = self.next[b]
        self._give_back(b)

    def _head(self, n: int) -> int:
        """Return the present segment of a target, and forget those before it."""
        a = self.first[n]
        b = self.next[a]
        while b >= 0 and self.time[b] <= self.now:
            self._give_back(a)
            a = b
            b = self.next[a]
        self.first[n] = a
        return a

    def _step(self, d: int, time: float) -> int:
        """Return the first step of a demand at a time or behind it."""
        base = d * self.room
        low, high = self.begin[d], self.stop[d]
        while low < high:
            middle = (low + high) >> 1
            if self.at[base + middle] < time:
                low = middle + 1
            else:
                high = middle
        return low

    def become(self, other: Profile) -> None:
        """Become a copy of another profile of the same kernel, without the names of its claims."""
        if len(self.time) != len(other.time):
            self.next, self.time = _like(other.next), _like(other.time)
            self.free, self.copies = _like(other.free), _like(other.copies)
        if self.room != other.room:
            self.room = other.room
            self.at, self.total, self.rise = _like(other.at), _like(other.total), _like(other.rise)
            self.change, self.row = _like(other.change), _like(other.row)
        if len(self.bits) != len(other.bits):
            self.bits, self.unused = _like(other.bits), _like(other.unused)
        self.now, self.spare, self.left = other.now, other.spare, other.left
        self.first[:], self.next[:], self.time[:] = other.first, other.next, other.time
        self.free[:], self.copies[:] = other.free, other.copies
        self.begin[:], self.stop[:] = other.begin, other.stop
        self.at[:], self.total[:], self.rise[:] = other.at, other.total, other.rise
        self.row[:], self.bits[:], self.unused[:] = other.row, other.bits, other.unused
        self.running, self.reserved, self.ends = {}, {}, []

    # --- claims ---------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Forget the time before now; claims of jobs that overrun last until a moment after now."""
        self.now = now
        for d in range(self.demands):
            base = d * self.room
            while self.begin[d] + 1 < self.stop[d] and self.at[base + self.begin[d] + 1] <= now:
                self.unused[self.left] = self.row[base + self.begin[d]]
                self.left += 1
                self.begin[d] += 1
        while self.ends and self.ends[0][0] <= now:
            end, job = heappop(self.ends)
            claim = self.running.get(job)
            if claim is not None and claim.end == end:
                self.move_end(job, end)

    def start(self, job: int, end: float) -> None:
        """Follow a claim of the kernel from now until the expected end of its job, in seconds.

        A reservation of the job has to be withdrawn before, since it would be counted, too.
        """
        rows = self._rows_of(job)
        claim = _timed(self.now, self._later(end), rows, rows[:0])
        self.running[job] = claim
        self._shift(claim.rows, claim.begin, claim.end, -1)
        self._note_end(job, claim.end)

    def _later(self, end: float) -> float:
        """Return an expected end; if it has passed, a moment after now."""
        return end if end > self.now else nextafter(self.now, NEVER)

    def _note_end(self, job: int, end: float) -> None:
        if len(self.ends) > 64 and len(self.ends) > 2 * len(self.running):
            self.ends = [(claim.end, job) for job, claim in self.running.items()]
            heapify(self.ends)
        else:
            heappush(self.ends, (end, job))

    def end(self, job: int) -> None:
        """Free the claim of a running job from now on."""
        claim = self.running.pop(job)
        self._shift(claim.rows, self.now, claim.end, 1)

    def move_end(self, job: int, end: float) -> None:
        """Follow a new expected end of a running job, in seconds."""
        claim = self.running[job]
        end, before = self._later(end), claim.end
        claim.end = end
        self._note_end(job, end)
        if end > before:
            self._shift(claim.rows, before, end, -1)
        else:
            self._shift(claim.rows, end, before, 1)

    def _rows_of(self, job: int) -> Any:
        """Return the rows of a claim of the kernel."""
        store = self.kernel.store
        targets, whole, cells, units, _ = self.kernel.claim(job)
        size = 1 + self.width
        rows = zeros((cells - targets) * size)
        to = 0
        for i in range(targets, cells):
            n = self.rank[store[i]]
            if self.slot[n] == 0:
                rows[to] = n
                self.slot[n] = to + 1
                to += size
            rows[self.slot[n] + self.pools + (0 if i < whole else 1)] = 1
        for i in range(units - cells):
            home = self.home[store[cells + i]]
            if home >= 0 and self.slot[home // self.pools]:
                rows[self.slot[home // self.pools] + home % self.pools] += store[units + i]
        for i in range(to // size):
            self.slot[rows[i * size]] = 0
        return rows[:to]

    def reserve(self, job: int, begin: float, end: float) -> None:
        """Book the placement that was found last for a job, from `begin` until `end` (seconds)."""
        claim = self.reserved[job] = _timed(NEVER, NEVER, self.draft[:0], self.number[:0])
        self._book(claim, begin, end)

    def _book(self, claim: TimedClaim, begin: float, end: float) -> None:
        """Let a reservation be the placement that was found last; `begin` is not after its own (seconds)."""
        rows, size = claim.rows, self.count * (1 + self.width)
        same = len(rows) == size
        for i in range(len(rows)):
            same = same and rows[i] == self.draft[i]
        if not same:
            self._shift(rows, claim.begin, claim.end, 1)
            numbers = zeros(size + self.count)
            rows = claim.rows = numbers[:size]
            claim.copies = numbers[size:]
            rows[:], claim.copies[:] = self.draft[:size], self.number[: self.count]
            claim.begin = claim.end = NEVER
        # What it takes before and after stays taken.
        self._shift(rows, max(end, claim.begin), claim.end, 1)
        self._shift(rows, begin, min(end, claim.begin), -1)
        self._shift(rows, claim.end, end, -1)
        claim.begin, claim.end = begin, end

    def withdraw(self, job: int) -> None:
        """Take back the reservation of a job."""
        claim = self.reserved.pop(job)
        self._shift(claim.rows, claim.begin, claim.end, 1)

    def take(self, begin: float, end: float) -> None:
        """Book the placement that was found last for good, from `begin` until `end` (seconds)."""
        self._shift(self.draft[: self.count * (1 + self.width)], begin, end, -1)

    def take_targets(self, begin: float, end: float) -> None:
        """Shut the targets of the placement that was found last, from `begin` until `end` (seconds)."""
        size = 1 + self.width
        for i in range(self.count):
            for k in range(i * size, (i + 1) * size):
                self.draft[k] = 0
            self.draft[i * size], self.draft[(i + 1) * size - 1] = self.found[i], 1
        self.take(begin, end)

    def shut(self, targets: Integers, begin: float, end: float) -> None:
        """Shut some targets to all jobs from `begin` until `end` (seconds)."""
        rows = np.zeros((len(targets), 1 + self.width), dtype=np.int64)
        rows[:, 0], rows[:, self.width] = np.asarray(self.rank)[targets], 1
        self._shift(view(rows.reshape(-1)), begin, end, -1)

    def _write(self, d: int, start: float, end: float) -> None:
        """Write the rows of a placement in a window to `draft`."""
        size, to = 1 + self.width, 0
        for i in range(self.count):
            n, number = self.found[i], self.number[i]
            for k in range(to, to + size):
                self.draft[k] = 0
            self.draft[to] = n
            if self.several[d]:
                self._gather(n, start, end)
            for t in range(self.types):
                self._draw(to + 1, t, number * self.need[d * self.types + t], -1, 0)
            if self.several[d] and self.kernel.level[d] >= 0 and not self.whole[d]:
                self._draw_within(d, n, number, to + 1)
            self.draft[to + size - 2] = 1
            self.draft[to + size - 1] = 1 if self.whole[d] else 0
            to += size

    def _draw(self, to: int, t: int, units: int, v: int, of: int) -> None:
        """Take units of a type from the first pools on (or from the last): of all, or of one vertex."""
        low, high = self.column[t], self.column[t + 1]
        if high - low == 1:
            self.draft[to + low] += units
            return
        base = self.targets * self.width
        for i in range(high - low):
            pool = high - 1 - i if self.kernel.last else low + i
            if v < 0 or self.kernel.vertex[of + pool] == v:
                taken = max(0, min(units, self.free[base + pool]))
                self.draft[to + pool] += taken
                units -= taken

    def _draw_within(self, d: int, n: int, number: int, to: int) -> None:
        """Take copies of what a demand takes of the vertices within a target, from the first vertex on."""
        kernel, target = self.kernel, self.order[n]
        kernel.host_within(d, target, self.free, self.targets * self.width)
        at = kernel.level[d] * self.targets + target
        of = at * kernel.width
        most = 1 if kernel.alone[d] else number * kernel.times[d]
        left = number * kernel.times[d] * kernel.distinct[d]
        for v in range(kernel.vertices[at]):
            copies = min(left, most, kernel.hosted[v])
            left -= copies
            if kernel.alone[d]:
                for pool in range(self.pools):
                    if copies and kernel.vertex[of + pool] == v:
                        self.draft[to + pool] += kernel.full[target * kernel.width + pool]
                continue
            for i in range(kernel.inner[d], kernel.inner[d + 1]):
                self._draw(to, kernel.inner_type[i], copies * kernel.inner_per[i], v, of)

    def _shift(self, rows: Any, begin: float, end: float, sign: int) -> None:
        """Take (-1) or free (1) the rows of a claim from `begin` until `end`."""
        if end <= begin or end <= self.now:
            return
        size = 1 + self.width
        for i in range(len(rows) // size):
            self._shift_target(rows, i * size, begin, end, sign)
        for d in range(self.demands):
            if self.since[d] <= self.until[d]:
                self._settle(d)

    def _shift_target(self, rows: Any, at: int, begin: float, end: float, sign: int) -> None:
        n = rows[at]
        low, high = self.by[n], self.by[n + 1]
        a = self._head(n)
        before = -1
        if begin > self.now:
            b = self.next[a]
            while b >= 0 and self.time[b] < begin:
                a = b
                b = self.next[a]
            before = a
            if b < 0 or self.time[b] > begin:
                b = self._split(a, begin)
            a = b
            for i in range(low, high):
                d = self.users[i]
                self.was[d] = self.new[d] = self.copies[before * self.demands + d]
                self.climbs[d] = self.several[d] and self._climbs(d, before, a)
        start = last = a
        turned = False
        while a == start or self.time[a] < end:
            b = self.next[a]
            if b < 0 or self.time[b] > end:
                b = self._split(a, end)
            for i in range(low, high if self.kernel.divided else low):
                d = self.users[i]
                if self.several[d]:
                    self.rose[d] = self.copies[a * self.demands + d] if self.climbs[d] else 0
                    self.climbs[d] = self._climbs(d, a, b)
            for i in range(self.width):
                self.free[a * self.width + i] += sign * rows[at + 1 + i]
            if sign < 0 and self._lacks(a):
                self.short = True
            for i in range(low, high):
                d = self.users[i]
                was = self.copies[a * self.demands + d]
                # Taking never adds a copy.
                new = 0 if was == 0 and sign < 0 else self._hosts(a, d, n)
                self.copies[a * self.demands + d] = new
                if before < 0 and a == start:
                    if new != was:
                        self._add(d, self.begin[d], new - was)
                else:
                    if self.several[d]:
                        rises = new if self._climbs(d, before if a == start else last, a) else 0
                        rises -= self.rose[d]
                    else:
                        rises = max(0, new - self.new[d]) - max(0, was - self.was[d])
                    self._note(d, self.time[a], rises, new - self.new[d] - was + self.was[d])
                self.was[d] = was
                self.new[d] = new
                if (was > 0) != (new > 0):
                    self.turned[d] = turned = True
            last = a
            a = b
        for i in range(low, high):
            d = self.users[i]
            copies = self.copies[a * self.demands + d]
            if self.several[d]:
                rises = (copies if self._climbs(d, last, a) else 0) - (copies if self.climbs[d] else 0)
            else:
                rises = max(0, copies - self.new[d]) - max(0, copies - self.was[d])
            self._note(d, end, rises, self.was[d] - self.new[d])
        if turned:
            for i in range(low, high):
                d = self.users[i]
                if self.turned[d]:
                    self.turned[d] = 0
                    self._turn(n, d, start, begin, end)
        # The segments of the claim all change alike, so only at its ends two may have become equal.
        self._join(last, a)
        if before >= 0:
            self._join(before, start)

    def _lacks(self, a: int) -> bool:
        """Whether less than nothing is free in a segment, or a target is shut beside other claims."""
        base = a * self.width
        for pool in range(self.pools):
            if self.free[base + pool] < 0:
                return True
        shut = self.free[base + self.pools + 1]
        return shut < -1 or (shut < 0 and self.free[base + self.pools] < -1)

    def _climbs(self, d: int, a: int, b: int) -> bool:
        """Whether more is free, in a pool that a demand uses, in segment b than in segment a before it."""
        for i in range(self.width):
            if (
                self.uses[d * self.width + i]
                and self.free[b * self.width + i] > self.free[a * self.width + i]
            ):
                return True
        return False

    def _hosts(self, a: int, d: int, n: int) -> int:
        """Return the copies of a demand that a target hosts in a segment."""
        base = a * self.width
        if self.free[base + self.pools + 1] < 0 or (self.idle[d] and self.free[base + self.pools] < 0):
            return 0
        copies, several = self.most[d], self.several[d]
        for t in range(self.types):
            per = self.need[d * self.types + t]
            if per:
                units = self.free[base + self.column[t]]
                if several:
                    units = 0
                    for pool in range(self.column[t], self.column[t + 1]):
                        units += max(0, self.free[base + pool])
                if units < per:  # a rounded end of one reservation may be beyond the begin of another
                    return 0
                if per > 1:
                    units //= per
                copies = min(copies, units)
        if several and copies and self.kernel.level[d] >= 0:
            copies = min(copies, self.kernel.host_within(d, self.order[n], self.free, base))
        return copies

    def _note(self, d: int, time: float, rises: int, more: int) -> None:
        """Note by how much more the copies on a target rise at a time, and by how much more they are then."""
        if rises == 0 and more == 0:
            return
        i = self._step(d, time)
        if i == self.stop[d] or self.at[d * self.room + i] != time:
            i = self._insert(d, i, time)
        self.rise[d * self.room + i] += rises
        self._add(d, i, more)

    def _add(self, d: int, i: int, more: int) -> None:
        at = d * self.room + i
        self.change[at] += more
        self.since[d] = min(self.since[d], self.at[at])
        self.until[d] = max(self.until[d], self.at[at])

    def _insert(self, d: int, i: int, time: float) -> int:
        """Insert a step at which nothing changes yet; return its place."""
        if self.stop[d] == self.room:
            i -= self._make_room(d)
        if self.left == 0:
            size = len(self.unused)
            self.bits, self.unused = _longer(self.bits), _longer(self.unused)
            for k in range(size):
                self.unused[k] = size + k
            self.left = size
        base = d * self.room
        for k in range(base + self.stop[d], base + i, -1):
            self.at[k], self.total[k], self.rise[k] = self.at[k - 1], self.total[k - 1], self.rise[k - 1]
            self.change[k], self.row[k] = self.change[k - 1], self.row[k - 1]
        self.stop[d] += 1
        self.left -= 1
        at, row = base + i, self.unused[self.left]
        self.at[at], self.total[at], self.rise[at], self.change[at] = time, self.total[at - 1], 0, 0
        self.row[at] = row
        old = self.row[at - 1]
        for w in range(self.words):
            self.bits[row * self.words + w] = self.bits[old * self.words + w]
        return i

    def _make_room(self, d: int) -> int:
        """Make room behind the steps of a demand; return by how many places they moved to the front."""
        back, room = self.begin[d], self.room
        if 2 * back < room:
            self.at, self.total = _wider(self.at, room), _wider(self.total, room)
            self.rise, self.change = _wider(self.rise, room), _wider(self.change, room)
            self.row = _wider(self.row, room)
            self.room = 2 * room
            return 0
        for k in range(d * room, (d + 1) * room - back):
            self.at[k], self.total[k], self.rise[k] = (
                self.at[k + back],
                self.total[k + back],
                self.rise[k + back],
            )
            self.change[k], self.row[k] = self.change[k + back], self.row[k + back]
            self.change[k + back] = 0
        self.begin[d] = 0
        self.stop[d] -= back
        return back

    def _settle(self, d: int) -> None:
        """Sum up the changes of a demand, and drop steps at which nothing changes any more."""
        base = d * self.room
        i = self._step(d, self.since[d])
        stop, last = self.stop[d], self.until[d]
        more, to = 0, i
        while i < stop and (to < i or self.at[base + i] <= last):
            k = base + i
            if self.at[k] <= last:
                more += self.change[k]
                self.change[k] = 0
                self.total[k] += more
                drop = i > self.begin[d] and self.rise[k] == 0 and self.total[k] == self.total[base + to - 1]
            else:
                drop = False
            if drop:
                self.unused[self.left] = self.row[k]
                self.left += 1
            else:
                if to < i:
                    j = base + to
                    self.at[j], self.total[j], self.rise[j], self.row[j] = (
                        self.at[k],
                        self.total[k],
                        self.rise[k],
                        self.row[k],
                    )
                to += 1
            i += 1
        if to < i:
            self.stop[d] = to
        self.since[d], self.until[d] = NEVER, -NEVER

    def _turn(self, n: int, d: int, a: int, begin: float, end: float) -> None:
        """Set the bits of a target in the steps of a claim, which begins with segment a."""
        base = d * self.room
        i = self.begin[d] if begin <= self.now else self._step(d, begin)
        word, bit = n >> 6, BIT[n & 63]
        while i < self.stop[d] and self.at[base + i] < end:
            while self.next[a] >= 0 and self.time[self.next[a]] <= self.at[base + i]:
                a = self.next[a]
            cell = self.row[base + i] * self.words + word
            if self.copies[a * self.demands + d] > 0:
                self.bits[cell] |= bit
            else:
                self.bits[cell] &= FULL ^ bit
            i += 1

    # --- searches -------------------------------------------------------------------------------

    def may_now(self, kind: int, seconds: float) -> bool:
        """Whether totals do not rule out that a kind fits from now on for some seconds."""
        d, amount = self.demand[kind], self.amount[kind]
        base, i, end = d * self.room, self.begin[d], self.now + seconds
        while True:
            if self.total[base + i] < amount:
                return False
            i += 1
            if i == self.stop[d] or self.at[base + i] >= end:
                return True

    def earliest(self, kind: int, seconds: float, begin: float, before: float) -> float:
        """Return the first time in [begin, before) from which a kind fits for some seconds, or `NEVER`.

        The placement is kept until the next search. A kind of zero seconds needs its resources for a moment.
        """
        return self._search(self.demand[kind], self.amount[kind], seconds, begin, before)

    def _search(self, d: int, amount: int, seconds: float, begin: float, before: float) -> float:
        base, stop = d * self.room, self.stop[d]
        start = max(begin, self.now)
        owned = NEVER if self.own is None else self.own.begin
        i = self.begin[d]
        if start > self.now:
            i = self._step(d, start)
            if i == stop or self.at[base + i] > start:
                i -= 1
        j = i  # no step of the window before j has too few copies in total
        while start < before:
            end = end_of(start, seconds)
            # A target hosts at most what it hosts at any time of the window, so no total may be too small.
            limit = min(end, owned)
            while j < stop and self.at[base + j] < limit and self.total[base + j] >= amount:
                j += 1
            missing = 0
            if j < stop and self.at[base + j] < limit:
                i = j  # no window may have this step
            elif self._fits(d, amount, i, start, end):
                return start
            else:
                # A window that begins later gains no copy but where copies rise, and no more than that.
                missing = amount - self.count
            i += 1
            while i < stop:
                missing -= self.rise[base + i]
                if missing <= 0 and self.rise[base + i] > 0:
                    break
                i += 1
            if i == stop:
                break
            start = self.at[base + i]
            j = max(i, j)
        return NEVER

    def _fits(self, d: int, amount: int, i: int, start: float, end: float) -> bool:
        """Whether a window, which begins in step i, has copies enough; if not, `count` is their sum."""
        base, low, high = d * self.room, self.low[d], self.high[d]
        owned = NEVER if self.own is None else self.own.begin
        # Only bits set in all steps matter: a target that once hosts nothing hosts nothing in the window.
        row = self.row[base + i] * self.words
        for w in range(low, high):
            self.word[w] = self.bits[row + w]
        i += 1
        while i < self.stop[d] and self.at[base + i] < end:
            row = self.row[base + i] * self.words
            if self.at[base + i] < owned:
                for w in range(low, high):
                    self.word[w] &= self.bits[row + w]
            else:
                for w in range(low, high):
                    self.word[w] &= self.bits[row + w] | self.mine[w]
            i += 1
        left, to = amount, 0
        for w in range(low, high):
            word = self.word[w]
            while word:
                bit = word & ((FULL ^ word) + 1)  # the last one that is set
                word ^= bit
                n = 64 * w + PLACE[bit % 67]
                copies = self._least(n, d, left, start, end)
                if copies > 0:
                    self.found[to], self.number[to] = n, copies
                    to += 1
                    left -= copies
                    if left == 0:
                        self.count = to
                        self._write(d, start, end)
                        return True
        self.count = amount - left
        return False

    def _least(self, n: int, d: int, most: int, start: float, end: float) -> int:
        """Return the copies, up to some number, that a target hosts by the least that is free in a window."""
        a = self._head(n)
        b = self.next[a]
        while b >= 0 and self.time[b] <= start:
            a = b
            b = self.next[a]
        copies = self.copies[a * self.demands + d]
        if copies and self.several[d]:
            self._gather(n, start, end)
            return min(most, self._hosts(self.targets, d, n))
        copies = min(most, copies)
        mine = self.own is not None and self.mine[n >> 6] & BIT[n & 63] != 0
        while b >= 0 and self.time[b] < end and copies > 0:
            a = b
            b = self.next[a]
            here = self.copies[a * self.demands + d]
            if mine and here < copies and self._is_own(a, end):
                assert self.own is not None
                at, rows = self.slot[n], self.own.rows
                for i in range(self.width):
                    self.free[a * self.width + i] += rows[at + i]
                here = self._hosts(a, d, n)
                for i in range(self.width):
                    self.free[a * self.width + i] -= rows[at + i]
            copies = min(copies, here)
        return copies

    def _gather(self, n: int, start: float, end: float) -> None:
        """Write the least free numbers of a target in a window to segment `targets`."""
        a = self._head(n)
        b = self.next[a]
        while b >= 0 and self.time[b] <= start:
            a = b
            b = self.next[a]
        to = self.targets * self.width
        for i in range(self.width):
            self.free[to + i] = self.free[a * self.width + i]
        own, at = self.own, self.slot[n]
        while b >= 0 and self.time[b] < end:
            a = b
            b = self.next[a]
            beside = own is not None and at > 0 and self._is_own(a, end)
            for i in range(self.width):
                units = self.free[a * self.width + i]
                if own is not None and beside:
                    units += own.rows[at + i]
                self.free[to + i] = min(self.free[to + i], units)

    def _is_own(self, a: int, end: float) -> bool:
        """Whether the reservation to be moved is in all of a segment up to the end of a window."""
        own, b = self.own, self.next[a]
        assert own is not None
        if b >= 0 and self.time[b] < end:
            end = self.time[b]
        # A segment that begins before the reservation, or ends behind it, has a time without it.
        return self.time[a] >= own.begin and end <= own.end

    def move(self, claim: TimedClaim, kind: int, seconds: float, before: float) -> float:
        """Move a reservation to the earliest start before a time (and its own), or change nothing.

        Return the new start, or `NEVER`. What the reservation takes counts as free.
        """
        before = min(before, claim.begin)
        rows, size = claim.rows, 1 + self.width
        self.own = claim
        for i in range(len(claim.copies)):
            n = rows[i * size]
            self.slot[n] = i * size + 1
            self.mine[n >> 6] |= BIT[n & 63]
        start = self._search(self.demand[kind], self.amount[kind], seconds, self.now, before)
        for i in range(len(claim.copies)):
            n = rows[i * size]
            self.slot[n] = 0
            self.mine[n >> 6] = 0
        self.own = None
        if start < NEVER:
            self._book(claim, start, end_of(start, seconds))
        return start

    def least(self, begin: float, end: float) -> Integers:
        """Return for each target of the kernel the least free numbers in a window.

        These are the units of each pool, and then less one for each claim that touches the target, and that
        shuts it.
        """
        found = np.empty((self.targets, self.width), dtype=np.int64)
        for n in range(self.targets):
            self._gather(n, begin, end)
            found[self.order[n]] = self.free[self.targets * self.width : (self.targets + 1) * self.width]
        return found

    def next_now(self, jobs: Any, at: int, kinds: Any, seconds: Any) -> int:
        """Return the place of the first of some jobs, from a place on, that fits now, or their number."""
        before = end_of(self.now, 0)
        while at < len(jobs):
            job = jobs[at]
            kind = kinds[job]
            if self._search(self.demand[kind], self.amount[kind], seconds[job], self.now, before) < NEVER:
                break
            at += 1
        return at

    def place(self, kind: int) -> bool:
        """Place a kind in the kernel as it was found last; return whether the targets host its copies now."""
        size, pools = 1 + self.width, self.pools
        targets, units = self.placed[: self.count], self.placed[self.count : self.count * (1 + pools)]
        for i in range(self.count):
            targets[i] = self.order[self.found[i]]
            for pool in range(pools):
                units[i * pools + pool] = self.draft[i * size + 1 + pool]
        return self.kernel.place_on(kind, targets, self.number[: self.count], units)

    def place_of(self, job: int) -> tuple[list[int], list[int], list[int]]:
        """Return the targets of a reservation, the copies on each, and the units of each of its pools."""
        claim = self.reserved[job]
        rows = np.asarray(claim.rows).reshape(-1, 1 + self.width)
        targets = np.asarray(self.order)[rows[:, 0]]
        return targets.tolist(), list(claim.copies), rows[:, 1 : 1 + self.pools].reshape(-1).tolist()

    def has(self, kind: int, place: tuple[Any, Any, Any], begin: float, end: float) -> bool:
        """Whether targets have the copies and units of a place from `begin` until `end` (seconds)."""
        d, (targets, copies, units) = self.demand[kind], place
        if len(units) != len(targets) * self.pools:
            return False  # pools were told apart, and are not any more, or the other way round
        for i in range(len(targets)):
            if self._least(self.rank[targets[i]], d, copies[i], begin, end) < copies[i]:
                return False
            if self.several[d]:  # what is free is gathered
                for pool in range(self.pools):
                    if units[i * self.pools + pool] > max(0, self.free[self.targets * self.width + pool]):
                        return False
        return True

    def put(self, kind: int, place: tuple[Any, Any, Any]) -> bool:
        """Take a place as the placement that was found last; return whether it is one in these pools."""
        targets, copies, units = place
        if len(units) != len(targets) * self.pools:
            return False
        self.count, size = len(targets), 1 + self.width
        whole = self.whole[self.demand[kind]]
        for i in range(self.count):
            self.found[i], self.number[i] = self.rank[targets[i]], copies[i]
            self.draft[i * size] = self.found[i]
            for pool in range(self.pools):
                self.draft[i * size + 1 + pool] = units[i * self.pools + pool]
            self.draft[(i + 1) * size - 2], self.draft[(i + 1) * size - 1] = 1, 1 if whole else 0
        return True

    # --- checks ---------------------------------------------------------------------------------

    def placement(self) -> tuple[Integers, Integers, Integers]:
        """Return the targets of the placement that was found last, the copies, and the units of each pool."""
        found: Integers = np.asarray(self.order)[np.asarray(self.found)[: self.count]]
        size = 1 + self.width
        rows = np.asarray(self.draft)[: self.count * size].reshape(-1, size)
        return found, np.asarray(self.number)[: self.count].copy(), rows[:, 1 : 1 + self.pools].flatten()

    def segments(self, target: int) -> list[tuple[float, list[int], list[int]]]:
        """Return for a target of the kernel, from now on: a time, the free numbers, and the copies."""
        found, a = [], self._head(self.rank[target])
        while a >= 0:
            free = self.free[a * self.width : (a + 1) * self.width]
            copies = self.copies[a * self.demands : (a + 1) * self.demands]
            found.append((max(self.now, self.time[a]), list(free), list(copies)))
            a = self.next[a]
        return found

    def check(self) -> None:
        """Assert that copies, totals, rises and bits are those of the free numbers."""
        lists = [self.segments(self.order[n]) for n in range(self.targets)]
        cells: list[list[int]] = []
        for n, each in enumerate(lists):
            a = self.first[n]
            users = set(self.users[self.by[n] : self.by[n + 1]])
            cells.append([])
            for time, _, copies in each:
                assert [self._hosts(a, d, n) if d in users else 0 for d in range(self.demands)] == copies
                cells[n].append(a)
                a = self.next[a]
                assert a < 0 or self.time[a] > time
            assert all(x[1] != y[1] for x, y in pairwise(each))
        used = [0] * len(self.unused)
        for row in self.unused[: self.left]:
            used[row] += 1
        times = sorted({time for each in lists for time, _, _ in each})
        for d in range(self.demands):
            base, i = d * self.room, self.begin[d]
            places = [0] * self.targets
            before: list[int] | None = None
            for time in times:
                rise = 0
                for n, each in enumerate(lists):
                    was = each[places[n]][2][d]
                    while places[n] + 1 < len(each) and each[places[n] + 1][0] <= time:
                        places[n] += 1
                        new, a = each[places[n]][2][d], cells[n][places[n]]
                        if not self.several[d]:
                            rise += max(0, new - was)
                        elif self._climbs(d, cells[n][places[n] - 1], a):
                            rise += new
                copies = [each[place][2][d] for each, place in zip(lists, places, strict=True)]
                if before is not None and copies == before and not rise:
                    continue
                assert i < self.stop[d]
                assert self.at[base + i] == time or (before is None and self.at[base + i] <= time)
                assert self.total[base + i] == sum(copies)
                assert self.change[base + i] == 0
                assert before is None or self.rise[base + i] == rise
                cell = self.row[base + i]
                used[cell] += 1
                bits = self.bits[cell * self.words : (cell + 1) * self.words]
                assert [bits[n >> 6] >> (n & 63) & 1 for n in range(self.targets)] == [c > 0 for c in copies]
                before = copies
                i += 1
            assert i == self.stop[d]
        assert used == [1] * len(self.unused)


def end_of(start: float, seconds: float) -> float:
    """Return the end of a window; a job of zero seconds needs its resources for a moment."""
    end = float(start + seconds)  # as it is where this is compiled, so that the same bytes are written
    return end if end > start else nextafter(start, NEVER)


def _times(size: int, time: float) -> Any:
    return view(np.full(size, time))


def _like(row: Any) -> Any:
    return view(np.zeros_like(np.asarray(row)))


def _longer(row: Any) -> Any:
    """Return a row of twice the length that begins with these numbers."""
    return view(np.concatenate([np.asarray(row), np.zeros_like(np.asarray(row))]))


def _wider(table: Any, room: int) -> Any:
    """Return a table with rows of twice the length, which was `room`."""
    found = np.asarray(table).reshape(-1, room)
    return view(np.concatenate([found, np.zeros_like(found)], axis=1).reshape(-1))
