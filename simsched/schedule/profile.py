"""`Profile`: the copies of each demand that targets can host over time, beside all claims and reservations.

The definition, on the demands, kinds and targets of a `Kernel`:

- Free at a time are the units of a target, type by type, less those of the running jobs that are expected
  to run then, and less those of reservations for then. Less than nothing is nothing. The leaf pools of a
  target are one pool here, since a demand asks only for sums on a target.
- A target that a claim takes whole, or that is closed, is shut: it hosts nothing then. A target that any
  claim touches is not idle.
- A kind fits at a time s for d seconds if the least copies that each target hosts within [s, s + d), at most
  so many as a target may host, are enough in sum. Its earliest start is the first such s. It takes the first
  targets in the order of the match policy.
- A job that overruns has its claim until a moment after now, again and again.

What is kept, and nothing else is remembered:

- segments: for each target a list in the order of time of its free numbers, and the copies of each demand.
  So a claim touches only the few segments of its targets.
- steps: for each demand a list of the times at which its copies change on any target, with their sum from
  then on (the total), by how much they rise there, target by target (the rise), and a row of bits: the
  targets that host a copy from then on.

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
    import numpy.typing as npt

    from simsched.match.kernel import Kernel

    Integers = npt.NDArray[np.int64]

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

    `rows` is row behind row: a target, its units of each type, whether the claim touches it (1), and whether
    it shuts the target.
    """

    def __init__(self, begin: float, end: float, rows: Any) -> None:
        self.begin, self.end, self.rows = begin, end, rows


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
        self.width = self.types + 2
        """Behind the types are the claims that touch a target, and those that shut it."""
        self.need = zeros(self.demands * self.types)
        for d in range(self.demands):
            for i in range(kernel.begin[d], kernel.begin[d + 1]):
                self.need[d * self.types + kernel.type[i]] += kernel.per[i]
        self.idle, self.whole, self.most = kernel.idle, kernel.whole, kernel.most
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
        """Leaf pool → number of its target and its type (`target * types + type`); -1: on no target."""
        leaf = np.asarray(kernel.leaf).reshape(self.targets, -1)
        sums = np.zeros((self.targets, self.width), dtype=np.int64)
        units = np.asarray(kernel.units if units is None else units)
        for t in range(self.types):
            for column in range(columns[t], columns[t + 1]):
                here = (leaf[order, column] >= 0).nonzero()[0]
                cells = leaf[order[here], column]
                sums[here, t] += units[cells]
                np.asarray(self.home)[cells] = here * self.types + t
        self.running: dict[int, TimedClaim] = {}
        self.reserved: dict[int, TimedClaim] = {}
        self.ends: list[tuple[float, int]] = []
        """A heap of the expected ends of the running jobs; also those that have been moved."""
        self.slot = zeros(self.targets)
        for job in kernel.claims:  # their units are free later
            rows = np.asarray(self._rows_of(job)).reshape(-1, 1 + self.width)
            sums[rows[:, 0], : self.types] += rows[:, 1 : self.types + 1]

        # Segments: a list for each target; those that no list has are a list, too, from `spare` on.
        size = 4 * self.targets + 64
        self.first = integers(range(self.targets))
        self.next = integers(np.full(size, -1))
        self.time = _times(size, -NEVER)
        self.free = zeros(size * self.width)
        """What is free of each type; less one for each claim that touches the target, and that shuts it."""
        np.asarray(self.free)[: sums.size] = sums.reshape(-1)
        self.copies = zeros(size * self.demands)
        self.spare = -1
        for a in range(size - 1, self.targets - 1, -1):
            self._give_back(a)
        for n in range(self.targets):
            for i in range(self.by[n], self.by[n + 1]):
                self.copies[n * self.demands + self.users[i]] = self._hosts(n, self.users[i])

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
        self.was, self.new = zeros(self.demands), zeros(self.demands)
        self.turned = zeros(self.demands)
        self.own: TimedClaim | None = None
        """The reservation that the search takes as free, since it is to be moved."""
        self.mine = view(np.zeros(self.words, dtype=np.uint64))
        """The bits of its targets."""
        self.short = False
        """Whether something took more than was free, until that is set back."""

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
        claim = TimedClaim(self.now, self._later(end), self._rows_of(job))
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
        targets, whole, cells, units = self.kernel.claim(job)
        size = 1 + self.width
        rows = zeros((len(targets) + len(whole)) * size)
        to = 0
        for i in range(len(targets) + len(whole)):
            touches = i < len(targets)
            n = self.rank[targets[i] if touches else whole[i - len(targets)]]
            if self.slot[n] == 0:
                rows[to] = n
                self.slot[n] = to + 1
                to += size
            rows[self.slot[n] + self.types + (0 if touches else 1)] = 1
        for i in range(len(cells)):
            home = self.home[cells[i]]
            if home >= 0 and self.slot[home // self.types]:
                rows[self.slot[home // self.types] + home % self.types] += units[i]
        for i in range(0, to, size):
            self.slot[rows[i]] = 0
        return rows[:to]

    def reserve(self, job: int, kind: int, begin: float, end: float) -> None:
        """Book the placement that was found last for a job, from `begin` until `end` (seconds)."""
        self._write(self.demand[kind])
        rows = zeros(self.count * (1 + self.width))
        rows[:] = self.draft[: len(rows)]
        self.reserved[job] = TimedClaim(begin, end, rows)
        self._shift(rows, begin, end, -1)

    def withdraw(self, job: int) -> None:
        """Take back the reservation of a job."""
        claim = self.reserved.pop(job)
        self._shift(claim.rows, claim.begin, claim.end, 1)

    def take(self, kind: int, begin: float, end: float) -> None:
        """Book the placement that was found last for good, from `begin` until `end` (seconds)."""
        self._write(self.demand[kind])
        self._shift(self.draft[: self.count * (1 + self.width)], begin, end, -1)

    def take_targets(self, begin: float, end: float) -> None:
        """Shut the targets of the placement that was found last, from `begin` until `end` (seconds)."""
        self._write(-1)
        self._shift(self.draft[: self.count * (1 + self.width)], begin, end, -1)

    def shut(self, targets: Integers, begin: float, end: float) -> None:
        """Shut some targets to all jobs from `begin` until `end` (seconds)."""
        rows = np.zeros((len(targets), 1 + self.width), dtype=np.int64)
        rows[:, 0], rows[:, self.width] = np.asarray(self.rank)[targets], 1
        self._shift(view(rows.reshape(-1)), begin, end, -1)

    def _write(self, d: int) -> None:
        """Write the rows of the last placement to `draft`; of demand -1 they shut the targets."""
        to = 0
        for i in range(self.count):
            self.draft[to] = self.found[i]
            to += 1
            for t in range(self.types):
                self.draft[to] = 0 if d < 0 else self.number[i] * self.need[d * self.types + t]
                to += 1
            self.draft[to] = 1 if d >= 0 else 0
            self.draft[to + 1] = 1 if d < 0 or self.whole[d] else 0
            to += 2

    def _shift(self, rows: Any, begin: float, end: float, sign: int) -> None:
        """Take (-1) or free (1) the rows of a claim from `begin` until `end`."""
        if end <= begin or end <= self.now:
            return
        for at in range(0, len(rows), 1 + self.width):
            self._shift_target(rows, at, begin, end, sign)
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
        start = last = a
        turned = False
        while a == start or self.time[a] < end:
            b = self.next[a]
            if b < 0 or self.time[b] > end:
                b = self._split(a, end)
            for i in range(self.width):
                self.free[a * self.width + i] += sign * rows[at + 1 + i]
            if sign < 0 and self._lacks(a):
                self.short = True
            for i in range(low, high):
                d = self.users[i]
                was = self.copies[a * self.demands + d]
                # Taking never adds a copy.
                new = 0 if was == 0 and sign < 0 else self._hosts(a, d)
                self.copies[a * self.demands + d] = new
                if before >= 0 or a != start:
                    self._note(d, self.time[a], was - self.was[d], new - self.new[d])
                elif new != was:
                    self._add(d, self.begin[d], new - was)
                self.was[d] = was
                self.new[d] = new
                if (was > 0) != (new > 0):
                    self.turned[d] = turned = True
            last = a
            a = b
        for i in range(low, high):
            d = self.users[i]
            copies = self.copies[a * self.demands + d]
            self._note(d, end, copies - self.was[d], copies - self.new[d])
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
        for t in range(self.types):
            if self.free[base + t] < 0:
                return True
        shut = self.free[base + self.types + 1]
        return shut < -1 or (shut < 0 and self.free[base + self.types] < -1)

    def _hosts(self, a: int, d: int) -> int:
        """Return the copies of a demand that a target hosts in a segment."""
        base = a * self.width
        if self.free[base + self.types + 1] < 0 or (self.idle[d] and self.free[base + self.types] < 0):
            return 0
        copies = self.most[d]
        for t in range(self.types):
            per = self.need[d * self.types + t]
            if per:
                units = self.free[base + t]
                if units < per:  # a rounded end of one reservation may be beyond the begin of another
                    return 0
                if per > 1:
                    units //= per
                copies = min(copies, units)
        return copies

    def _note(self, d: int, time: float, was: int, new: int) -> None:
        """Note by how much the copies on a target rise at a time, and rose there before."""
        if was == new:
            return
        i = self._step(d, time)
        if i == self.stop[d] or self.at[d * self.room + i] != time:
            i = self._insert(d, i, time)
        rises, rose = max(0, new), max(0, was)
        self.rise[d * self.room + i] += rises - rose
        self._add(d, i, new - was)

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
                copies = self._least(n, d, start, end)
                if copies > 0:
                    copies = min(copies, left)
                    self.found[to], self.number[to] = n, copies
                    to += 1
                    left -= copies
                    if left == 0:
                        self.count = to
                        return True
        self.count = amount - left
        return False

    def _least(self, n: int, d: int, start: float, end: float) -> int:
        """Return the least copies that a target hosts in a window."""
        a = self._head(n)
        b = self.next[a]
        while b >= 0 and self.time[b] <= start:
            a = b
            b = self.next[a]
        copies = self.copies[a * self.demands + d]
        mine = self.own is not None and self.mine[n >> 6] & BIT[n & 63] != 0
        while b >= 0 and self.time[b] < end and copies > 0:
            a = b
            b = self.next[a]
            here = self.copies[a * self.demands + d]
            if mine:
                here = self._hosts_beside(a, d, n, end)
            copies = min(copies, here)
        return copies

    def _hosts_beside(self, a: int, d: int, n: int, end: float) -> int:
        """Return the copies in a segment up to the end of a window if the reservation to be moved is free."""
        own = self.own
        assert own is not None
        b = self.next[a]
        if b >= 0 and self.time[b] < end:
            end = self.time[b]
        # A segment that begins before the reservation, or ends behind it, has a time without it.
        if self.time[a] < own.begin or end > own.end:
            return self.copies[a * self.demands + d]
        at, rows = self.slot[n], own.rows
        for i in range(self.width):
            self.free[a * self.width + i] += rows[at + i]
        copies = self._hosts(a, d)
        for i in range(self.width):
            self.free[a * self.width + i] -= rows[at + i]
        return copies

    def move(self, job: int, kind: int, seconds: float, before: float) -> float:
        """Move a reservation to the earliest start before a time (and its own), or change nothing.

        Return the new start, or `NEVER`. What the reservation takes counts as free.
        """
        claim = self.reserved[job]
        before = min(before, claim.begin)
        rows, size = claim.rows, 1 + self.width
        self.own = claim
        for at in range(0, len(rows), size):
            n = rows[at]
            self.slot[n] = at + 1
            self.mine[n >> 6] |= BIT[n & 63]
        start = self._search(self.demand[kind], self.amount[kind], seconds, self.now, before)
        for at in range(0, len(rows), size):
            n = rows[at]
            self.slot[n] = 0
            self.mine[n >> 6] = 0
        self.own = None
        if start < NEVER:
            self.withdraw(job)
            self.reserve(job, kind, start, end_of(start, seconds))
        return start

    def least(self, begin: float, end: float) -> Integers:
        """Return for each target of the kernel the least free numbers in a window.

        These are the units of each type, and then less one for each claim that touches the target, and that
        shuts it.
        """
        found = np.empty((self.targets, self.width), dtype=np.int64)
        for n in range(self.targets):
            a = self._head(n)
            rows: list[Integers] = []
            while a >= 0 and (not rows or self.time[a] < end):
                b = self.next[a]
                if b < 0 or self.time[b] > begin:
                    rows.append(np.asarray(self.free)[a * self.width : (a + 1) * self.width])
                a = b
            found[self.order[n]] = np.min(rows, axis=0)
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

    def next_turn(self, jobs: Any, at: int, kinds: Any, seconds: Any, barred: set[int]) -> int:
        """Return the place of the first job, from a place on, that moves, is due, or has no reservation.

        Without such a job: their number. `kinds` and `seconds` are those of each job by its number; `barred`
        jobs do not get a turn.
        """
        while at < len(jobs):
            job = jobs[at]
            if job not in barred:
                claim = self.reserved.get(job)
                if claim is None or claim.begin <= self.now:
                    return at
                if self.move(job, kinds[job], seconds[job], NEVER) < NEVER:
                    return at
            at += 1
        return at

    def placement(self) -> tuple[Integers, Integers]:
        """Return the targets of the placement that was found last, and the copies on each."""
        found: Integers = np.asarray(self.order)[np.asarray(self.found)[: self.count]]
        return found, np.asarray(self.number)[: self.count].copy()

    def place_of(self, job: int, kind: int) -> tuple[list[int], list[int]]:
        """Return the targets of a reservation, and the copies on each."""
        d = self.demand[kind]
        rows = np.asarray(self.reserved[job].rows).reshape(-1, 1 + self.width)
        need = np.asarray(self.need).reshape(self.demands, self.types)[d]
        t = int(need.argmax())
        copies = rows[:, 1 + t] // need[t] if need[t] and not self.whole[d] else np.ones(len(rows), np.int64)
        return np.asarray(self.order)[rows[:, 0]].tolist(), copies.tolist()

    def has(self, kind: int, place: tuple[Any, Any], begin: float, end: float) -> bool:
        """Whether targets have these copies of a kind from `begin` until `end` (seconds)."""
        d = self.demand[kind]
        for target, copies in zip(*place, strict=True):
            if self._least(self.rank[target], d, begin, end) < copies:
                return False
        return True

    def put(self, targets: Any, copies: Any) -> None:
        """Take copies on some targets as the placement that was found last."""
        self.count = len(targets)
        for i in range(self.count):
            self.found[i], self.number[i] = self.rank[targets[i]], copies[i]

    # --- checks ---------------------------------------------------------------------------------

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
        for n, each in enumerate(lists):
            a = self.first[n]
            users = set(self.users[self.by[n] : self.by[n + 1]])
            for time, _, copies in each:
                assert [self._hosts(a, d) if d in users else 0 for d in range(self.demands)] == copies
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
                for n, each in enumerate(lists):
                    while places[n] + 1 < len(each) and each[places[n] + 1][0] <= time:
                        places[n] += 1
                copies = [each[place][2][d] for each, place in zip(lists, places, strict=True)]
                if before is not None and copies == before:
                    continue
                assert i < self.stop[d]
                assert self.at[base + i] == time or (before is None and self.at[base + i] <= time)
                assert self.total[base + i] == sum(copies)
                assert self.change[base + i] == 0
                if before is not None:
                    assert self.rise[base + i] == sum(
                        max(0, new - was) for new, was in zip(copies, before, strict=True)
                    )
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
