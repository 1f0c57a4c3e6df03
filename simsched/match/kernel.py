"""`Kernel`: copies of all requests on all targets, where one is placed, and when it could start.

The definition:

- A machine is targets with leaf pools. A demand is what one copy takes of one target: units of some types, or
  all that is on it. A kind of request is so many copies of a demand, at most `most` of them on one target.
- How many copies a target hosts follows from its free units, and from whether other claims touch it.
- A demand may also take vertices within a target, such as sockets, and units of each of them. One that is
  taken alone has to be idle, and the claim has all of its units.
- A kind fits if the copies of its demand on all targets are enough. It takes the first targets in the order
  of the match policy, and on each the first units.
- Its earliest start, the shadow time of EASY, is the first expected end after which it fits, since a release
  never takes a copy away. Another job may run beyond that time if the first one still fits beside it then.

The arrays of the present state are those of the `Availability`, so they are never out of date. Nothing is
remembered from pass to pass but the claims of the running jobs.

This file is plain Python. Where there is a compiler, the build compiles it with the types in
``kernel.pxd``, and then it is about a hundred times as fast. So the loops here are over single numbers in
arrays of one dimension: entry (a, b) of a table with n columns is number ``a * n + b``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from simsched.arrays import Integers

    Bytes = npt.NDArray[np.uint8]
    Words = npt.NDArray[np.uint64]

UP, OPEN, IDLE = 0, 1, 2
"""Gates: targets that are up, that are not claimed whole, that no claim touches."""

NOW, THEN, REST = 0, 1, 2
"""States: the present one, that of the shadow time, and what the first job leaves of the present one."""

NEVER = float("inf")

NOT_FREE = "a selection has units that are not free (expected what fit returns after the last start)"

ROOM = 1024
"""The least lengths of the row of jobs and of the store of claims."""

ABSENT, SHARED = -1, -2
"""The place of a claim that a job does not have, and of one with shared units, which no numbers describe."""

HEAD = 4
"""Numbers at the begin of a claim: its length, its targets, those that it takes whole, and its leaf pools."""

BLOCK = 64
"""Targets that are skipped together if none of them hosts a copy."""


class Within(NamedTuple):
    """The vertices within targets that demands take, level by level (such as sockets and NUMA domains).

    Attributes
    ----------
    numbers : level and target → its vertices that can serve.
    of : level, target and column → the vertex of the target that the leaf pool is in, by its place; or -1.
    full : target and column → the units of the leaf pool when nothing is claimed.
    demands : for each demand None, or the level, how many different vertices a copy takes, whether alone, how
        many such copies one copy of the demand takes, and the (type, units) pairs of each vertex.
    """

    numbers: Integers
    of: Integers
    full: Integers
    demands: Sequence[tuple[int, int, bool, int, Sequence[tuple[int, int]]] | None]


class Kernel:
    """The demands and kinds of a run on the targets of one state.

    Parameters
    ----------
    leaves : target and column → place of a leaf pool in `units`, or -1. Columns are grouped by type.
    columns : the first column of each type, and behind the last one their number.
    demands : for each demand its gate, the most copies on a target, and whether it takes all of the target.
    draws : for each demand its (type, units) pairs.
    may : demand and target → whether the target may host it: it passes the constraint and is up.
    order : the targets in the order of the match policy.
    last : whether units are taken from the last leaf pool of a target on.
    written : selection → its claim as numbers, for a selection that was not placed here.
    owned : whether the state belongs to the kernel: claims change it here, and not elsewhere before.
    within : the vertices within targets that demands take; None: they take none.
    kinds : for each kind its demand (-1: it is not counted here) and the copies.
    units, use, held, words : the state: free units of each leaf pool, claims that touch each target, whether
        one takes it whole, and the masks of units that no claim has (`masks.WordTables`).
    word : the last part of the state: the first word of each leaf pool, and behind the last one their number.

    Attributes
    ----------
    table : demand and target → copies that it can host now.
    totals : the sum of the copies of each demand.
    """

    def __init__(
        self,
        leaves: Integers,
        columns: Sequence[int],
        demands: Sequence[tuple[int, int, bool]],
        draws: Sequence[Sequence[tuple[int, int]]],
        may: Bytes,
        order: Integers,
        kinds: Sequence[tuple[int, int]],
        state: tuple[Integers, Integers, Bytes, Words, Integers],
        *,
        last: bool,
        written: Callable[[Any], Integers],
        owned: bool = False,
        within: Within | None = None,
    ) -> None:
        self.written, self.owned = written, owned
        self.targets, self.width = leaves.shape
        self.leaf = integers(leaves)
        self.column = integers(columns)
        self.shut = integers([gate != UP for gate, _, _ in demands])
        self.idle = integers([gate == IDLE for gate, _, _ in demands])
        self.most = integers([most for _, most, _ in demands])
        self.whole = integers([whole for _, _, whole in demands])
        self.begin = integers(np.cumsum([0, *map(len, draws)]))
        self.type = integers([type_ for each in draws for type_, _ in each])
        self.per = integers([units for each in draws for _, units in each])
        self.divided = within is not None
        none = np.zeros(0, dtype=np.int64)
        within = within or Within(none, none, none, [None] * len(demands))
        inner = [each or (-1, 1, False, 1, ()) for each in within.demands]
        self.level, self.distinct, self.alone, self.times = (
            integers([each[i] for each in inner]) for i in range(4)
        )
        self.inner = integers(np.cumsum([0, *(len(each[4]) for each in inner)]))
        self.inner_type = integers([type_ for each in inner for type_, _ in each[4]])
        self.inner_per = integers([units for each in inner for _, units in each[4]])
        self.vertices, self.vertex = integers(within.numbers), integers(within.of)
        self.full = integers(within.full)
        self.told, self.column_units = False, zeros(self.targets * self.width if self.divided else 0)
        """Whether a placement is told how many units it draws of each column of its targets, and how many."""
        self.row_of, self.hosted = zeros(self.width), zeros(int(within.numbers.max(initial=0)))
        """The free units of a target, and the copies that each of its vertices hosts, while it is counted."""
        self.may = view(np.ascontiguousarray(may).reshape(-1))
        self.order = integers(order)
        self.last = last
        self.demands = len(demands)
        self.demand = integers([demand for demand, _ in kinds])
        self.amount = integers([amount for _, amount in kinds])
        units, use, held, words, word = state
        self.units, self.use, self.held = view(units), view(use), view(held)
        self.words, self.word = view(words), integers(word)
        self.all_bits, self.chosen = np.zeros(len(words), dtype=np.uint64), 0
        self.bits = view(self.all_bits)
        """The units of the last placement, as masks: the first `chosen` words, leaf pool by leaf pool."""
        self.number, self.given = zeros(self.targets), zeros(self.targets * self.width)
        self.table = np.zeros((self.demands, self.targets), dtype=np.int64)
        self.copies = view(self.table.reshape(-1))
        self.rank = integers(np.argsort(self.order))
        """Target → its place in the order."""
        self.blocks = (self.targets + BLOCK - 1) // BLOCK
        self.hosting = zeros(self.demands * self.blocks)
        """For each demand, how many targets of each block of the order host a copy now."""
        self.totals = np.zeros(self.demands + 1, dtype=np.int64)
        self.totals[self.demands] = 1 << 62  # of the demand -1: the kinds that are not counted always fit
        self.total = view(self.totals)
        self.part, self.sum = zeros(len(columns) + 1), zeros(len(columns))
        """Of the last placement, the leaf pools of draw i of its demand are those from `part[i]` on, and
        `sum[i]` units of them are drawn."""
        self.claims = view(np.full(ROOM, ABSENT, dtype=np.int64))
        """Job number → the place of its claim in `store`, `SHARED` or `ABSENT`; as long as needed so far."""
        self.shared = 0
        """How many claims have shared units."""
        self.all_claims, self.top = np.zeros(ROOM, dtype=np.int64), 0
        self.store = view(self.all_claims)
        """Claims, one behind the other, and the place behind the last one, where the next one is written: the
        numbers that `HEAD` tells, these targets, those taken whole, leaf pools, and the units of each."""
        self.draft: object = None
        """The selection that was made of the claim at `top`; None: there is no such claim."""
        self.first = self.spare = 0
        """The kind of the first job, and by how much its copies at the shadow time exceed those it needs."""
        self.then, self.use_then = zeros(len(units)), zeros(self.targets)
        self.held_then = view(np.zeros(self.targets, dtype=np.uint8))
        self.row = zeros(self.targets)
        """The copies of the first job's demand on each target at the shadow time."""
        self.mine, self.mark = zeros(len(units)), zeros(self.targets)
        """The units of the first job at the shadow time, and its targets (1; 2: it takes them whole)."""
        self.no_units, self.no_targets = zeros(len(units)), zeros(self.targets)
        self.bare = False
        """Whether the first job takes no units."""
        self.epoch = 1
        """The number of changes: claims, releases, and claims at the shadow time."""
        self.left = 0
        """The epoch for which `mine` and `mark` hold."""
        self.kinds = self.seconds = None
        """The arrays of `next`: the kind and the seconds of each job."""
        self.refused = zeros(len(kinds))
        """The epoch in which each kind was in the first job's way."""
        self.recount(integers(range(self.targets)))

    # --- copies ---------------------------------------------------------------------------------

    def _free(self, cell: int, state: int) -> int:
        """Return the free units of a leaf pool."""
        if state == NOW:
            return self.units[cell]
        if state == THEN:
            return self.then[cell]
        left = self.then[cell] - self.mine[cell]
        have = self.units[cell]
        return min(left, have)

    def _passes(self, n: int, idle: int, state: int) -> bool:
        """Whether a target is not claimed whole; with `idle`, whether no claim touches it."""
        if state == THEN:
            return not (self.held_then[n] or (idle and self.use_then[n]))
        if self.held[n] or (idle and self.use[n]):
            return False
        if state == NOW:
            return True
        if self.mark[n] == 2:
            return False
        if idle:
            # A target of which anything is kept for the first job is not idle.
            if self.mark[n] and self.bare:
                return False
            for at in range(n * self.width, (n + 1) * self.width):
                cell = self.leaf[at]
                if cell >= 0 and self.then[cell] - self.mine[cell] < self.units[cell]:
                    return False
        return True

    def _host(self, d: int, n: int, state: int) -> int:
        """Return how many copies of a demand a target hosts."""
        if not self.may[d * self.targets + n]:
            return 0
        if self.shut[d] and not self._passes(n, self.idle[d], state):
            return 0
        copies = self.most[d]
        base = n * self.width
        for i in range(self.begin[d], self.begin[d + 1]):
            per = self.per[i]
            if per == 0:
                continue
            have = 0
            t = self.type[i]
            for at in range(base + self.column[t], base + self.column[t + 1]):
                cell = self.leaf[at]
                if cell >= 0:
                    have += self._free(cell, state)
            have //= per
            copies = min(copies, have)
        if copies and self.level[d] >= 0:
            for at in range(self.width):
                cell = self.leaf[base + at]
                self.row_of[at] = self._free(cell, state) if cell >= 0 else 0
            copies = min(copies, self.host_within(d, n, self.row_of, 0))
        return copies

    def host_within(self, d: int, n: int, free: Any, base: int) -> int:
        """Return how many copies of a demand the vertices within a target host.

        The free units of the columns of the target are numbers of `free`, from `base` on. What each vertex
        hosts is in `hosted`.
        """
        level = self.level[d]
        of = (level * self.targets + n) * self.width
        count = self.vertices[level * self.targets + n]
        total = 0
        for v in range(count):
            copies = 1 if self.alone[d] else 1 << 62
            for i in range(self.inner[d], self.inner[d + 1]):
                t, have = self.inner_type[i], 0
                for at in range(self.column[t], self.column[t + 1]):
                    if self.vertex[of + at] == v and free[base + at] > 0:
                        have += free[base + at]
                have //= self.inner_per[i]
                copies = min(copies, have)
            if self.alone[d]:
                for at in range(self.width):
                    if self.vertex[of + at] == v and free[base + at] < self.full[n * self.width + at]:
                        copies = 0
            self.hosted[v] = copies
            total += copies
        distinct = self.distinct[d]
        if self.alone[d] or distinct == 1:
            return total // distinct // self.times[d]
        # Each copy takes different vertices: the most with sum(min(hosted, most)) >= distinct * most.
        number = 0
        while True:
            total = 0
            for v in range(count):
                total += min(self.hosted[v], number + 1)
            if total < distinct * (number + 1):
                return number // self.times[d]
            number += 1

    def recount(self, targets: Any) -> None:
        """Count the copies on some targets again: they were touched by a claim, a release or a new status."""
        for i in range(len(targets)):
            self._count(targets[i])
        self.epoch += 1

    def _count(self, n: int) -> None:
        """Count the copies on a target again."""
        for d in range(self.demands):
            at = d * self.targets + n
            copies = self._host(d, n, NOW)
            before = self.copies[at]
            if copies != before:
                self.total[d] += copies - before
                self.copies[at] = copies
                block = d * self.blocks + self.rank[n] // BLOCK
                self.hosting[block] += (copies > 0) - (before > 0)

    def check(self) -> None:
        """Assert that the blocks agree with the copies."""
        hosts = self.table[:, np.asarray(self.order)] > 0
        blocks = np.add.reduceat(hosts, np.arange(0, self.targets, BLOCK), axis=1, dtype=np.int64)
        assert (blocks.reshape(-1) == np.asarray(self.hosting)).all()

    def permit(self, may: Any) -> None:
        """Take over which targets may host each demand; those for which that changes are to be recounted."""
        self.may[:] = may

    def fits(self, kind: int) -> bool:
        """Whether a kind that is counted fits now."""
        return self.total[self.demand[kind]] >= self.amount[kind]

    # --- places ---------------------------------------------------------------------------------

    def place(self, kind: int) -> bool:
        """Place a kind on the first targets with copies now; return whether it fits."""
        d = self.demand[kind]
        if self.total[d] < self.amount[kind]:
            return False
        return self._place(d, self.amount[kind], NOW)

    def _place(self, d: int, left: int, state: int) -> bool:
        """Take the first targets with copies in a state, and draw the units; return whether they suffice."""
        self.draft = None
        wanted = min(self.targets, left)
        self._make_room(HEAD + 2 * wanted * (1 + self.width))
        top = self.top
        to = top + HEAD
        base = d * self.targets
        i = 0
        while i < self.targets:
            # What hosts no copy now hosts none beside the first job either, but perhaps at the shadow time.
            if state != THEN and i % BLOCK == 0 and self.hosting[d * self.blocks + i // BLOCK] == 0:
                i += BLOCK
                continue
            n = self.order[i]
            i += 1
            if state == THEN:
                copies = self.row[n]
            else:
                copies = self.copies[base + n]
                if copies and state == REST:
                    copies = self._host(d, n, REST)
            if copies > 0:
                copies = min(copies, left)
                self.store[to] = n
                self.number[to - top - HEAD] = copies
                to += 1
                left -= copies
                if left == 0:
                    break
        if left > 0:
            return False
        self._finish(d, to - top - HEAD, state)
        return True

    def place_on(self, kind: int, targets: Any, numbers: Any, units: Any) -> bool:
        """Place a kind on some targets, so many copies on each; return whether they host these now.

        `units` are those of each column of these targets, if demands tell these apart.
        """
        d = self.demand[kind]
        self.draft = None
        self._make_room(HEAD + 2 * len(targets) * (1 + self.width))
        for i in range(len(targets)):
            if self.copies[d * self.targets + targets[i]] < numbers[i]:
                return False
            self.store[self.top + HEAD + i] = targets[i]
            self.number[i] = numbers[i]
        self.told = self.divided and not self.whole[d]
        if self.told:
            for i in range(len(units)):
                cell = self.leaf[targets[i // self.width] * self.width + i % self.width]
                if cell >= 0 and units[i] > self.units[cell]:
                    self.told = False
                    return False
                self.column_units[i] = units[i]
        self._finish(d, len(targets), NOW)
        self.told = False
        return True

    def _finish(self, d: int, count: int, state: int) -> None:
        """Write the rest of a claim of which the targets, and the copies on each, are chosen."""
        top = self.top
        to = top + HEAD + count
        self.store[top + 1], self.store[top + 2] = count, 0
        if self.whole[d]:
            self.store[top + 2] = count
            for i in range(count):
                self.store[to + i] = self.store[top + HEAD + i]
            to += count
        count = self._draw(d, count, to, state)
        self.store[top + 3] = count
        for i in range(count):
            self.store[to + count + i] = self.given[i]
        self.store[top] = to + 2 * count - top

    def placement(self, draws: int) -> tuple[Integers, Words, Integers, list[int], list[int]]:
        """Return the last placement, of a demand with some draws.

        The claim in numbers, its units as masks, its targets, and `part` and `sum` as lists.
        """
        claim = self.all_claims[self.top : self.top + self.store[self.top]].copy()
        targets = claim[HEAD : HEAD + self.store[self.top + 1]]
        parts = [self.part[i] for i in range(draws + 1)]
        sums = [self.sum[i] for i in range(draws)]
        return claim, self.all_bits[: self.chosen].copy(), targets, parts, sums

    def _draw(self, d: int, count: int, begin: int, state: int) -> int:
        """Draw the units of a placement on `count` targets; return the number of leaf pools.

        They are written to `store` from a place on, and the units of each to `given`.
        """
        to = 0
        self.chosen = 0
        first = self.begin[d]
        for i in range(first, self.begin[d + 1]):
            t, per = self.type[i], self.per[i]
            self.part[i - first] = to
            drawn = 0
            for place in range(count):
                base = self.store[self.top + HEAD + place] * self.width
                low, high = base + self.column[t], base + self.column[t + 1]
                left = per * self.number[place]
                if self.last:  # what the leaf pools behind do not give
                    for at in range(low, high):
                        if self.leaf[at] >= 0:
                            left -= self._free(self.leaf[at], state)
                for at in range(low, high):
                    cell = self.leaf[at]
                    if cell < 0:
                        continue
                    have = self._free(cell, state)
                    if self.last:
                        left += have
                    units = have if self.whole[d] or left > have else left
                    if self.told:
                        units = self.column_units[place * self.width + at - base]
                    if units > 0:
                        self.store[begin + to], self.given[to] = cell, units
                        to += 1
                        drawn += units
                        if state != THEN and self.word[cell] < self.word[cell + 1]:
                            low_word, high_word = self.word[cell], self.word[cell + 1]
                            choose(self.words, low_word, high_word, units, self.last, self.bits, self.chosen)
                            self.chosen += high_word - low_word
                    if not self.last:
                        left -= have
            self.sum[i - first] = drawn
        self.part[self.begin[d + 1] - first] = to
        return to

    def _make_room(self, size: int) -> None:
        """See that a claim of a length can be written behind the others; they are moved together for it."""
        if self.top + size <= len(self.store):
            return
        old = self.store
        running = self.running().tolist()
        used = size + sum([old[self.claims[job]] for job in running if self.claims[job] >= 0])
        # At least as long as the row of jobs: the search for the running ones then costs little per claim.
        self.all_claims, self.top = np.zeros(max(2 * used, len(self.claims)), dtype=np.int64), 0
        self.store = view(self.all_claims)
        for job in running:
            at = self.claims[job]
            if at >= 0:
                self.claims[job] = self.top
                self.top = self._move(old, at, at + old[at], self.top)

    def _move(self, old: memoryview[int], begin: int, stop: int, to: int) -> int:
        for i in range(begin, stop):
            self.store[to] = old[i]
            to += 1
        return to

    # --- running jobs ---------------------------------------------------------------------------

    def start(self, job: int, selection: Any) -> None:
        """Note the claim of a job that starts."""
        if job >= len(self.claims):
            more = np.full(job + 1, ABSENT, dtype=np.int64)
            self.claims = view(np.concatenate((np.asarray(self.claims), more)))
        if selection.shared:
            self.claims[job] = SHARED
            self.shared += 1
        else:
            if selection is not self.draft:
                self._write(selection)
            self.claims[job] = self.top
            if self.owned:
                self.apply(self.store[self.top : self.top + self.store[self.top]], self.bits, -1)
            self.top += self.store[self.top]
        self.draft = None
        self.epoch += 1

    def _write(self, selection: Any) -> None:
        """Write the claim of a selection behind the others."""
        claim = self.written(selection)
        self.draft = None
        self._make_room(len(claim))
        self._move(view(claim), 0, len(claim), self.top)

    def running(self) -> Integers:
        """Return the jobs that have claims."""
        found: Integers = np.flatnonzero(np.asarray(self.claims) != ABSENT)
        return found

    def end(self, job: int) -> None:
        """Forget the claim of a job that ends."""
        at = self._place_of(job)
        if at != ABSENT:
            self.claims[job] = ABSENT
        if at == SHARED:
            self.shared -= 1
        elif self.owned and at >= 0:
            self.apply(self.store[at : at + self.store[at]], self.bits, 1)
        self.epoch += 1

    def _place_of(self, job: int) -> int:
        """Return the place of a job's claim, `SHARED`, or `ABSENT`; compiled code reads without bounds."""
        return self.claims[job] if 0 <= job < len(self.claims) else ABSENT

    def apply(self, claim: Any, bits: Any, sign: int) -> int:
        """Release (1) or make (-1) a claim in the state; return how many targets have no other one.

        `bits` are its units as masks.
        """
        alone = change(self.units, self.use, self.words, self.word, claim, bits, sign)
        whole = HEAD + claim[1]
        for i in range(whole, whole + claim[2]):
            self.held[claim[i]] = sign < 0
        for i in range(HEAD, whole):
            self._count(claim[i])
        self.epoch += 1
        return alone

    def set_free(self, cell: int, target: int, units: int) -> None:
        """Take over the free units of a leaf pool of a target, which not only claims have changed."""
        self.units[cell] = units
        self._count(target)
        self.epoch += 1

    def claim(self, job: int) -> tuple[int, int, int, int, int]:
        """Return where the claim of a running job is in `store`.

        There begin its targets, those taken whole, its leaf pools, the units of each, and what follows.
        KeyError without one; ValueError if it shares units, which no numbers describe.
        """
        at = self._place_of(job)
        if at == ABSENT:
            raise KeyError(job)
        if at == SHARED:
            raise ValueError(f"the claim of job {job} shares units (expected one that numbers describe)")
        targets = at + HEAD
        whole = targets + self.store[at + 1]
        cells = whole + self.store[at + 2]
        units = cells + self.store[at + 3]
        return targets, whole, cells, units, units + self.store[at + 3]

    # --- the shadow time ------------------------------------------------------------------------

    def shadow(self, kind: int, now: float, ends: list[float], jobs: list[int]) -> int:
        """Return how many jobs have ended at the earliest start of a kind that does not fit now.

        `ends` are the expected ends of the running jobs in order; one that has passed counts as now. -1: the
        kind does not fit even when all have ended; -2: numbers do not tell.
        """
        d = self.demand[kind]
        self.first = kind
        self.then[:] = self.units
        self.use_then[:] = self.use
        self.held_then[:] = self.held
        self.row[:] = self.copies[d * self.targets : (d + 1) * self.targets]
        self.spare = self.total[d] - self.amount[kind]
        self.epoch += 1
        time = now
        r = 0
        while r < len(ends):
            end = ends[r]
            if self.spare < 0:
                time = max(time, end)
            elif r == 0 or end > time:
                break  # all that has ended by that time is free then
            at = self.claims[jobs[r]]
            if at < 0:
                return -2
            self._shift(at, 1)
            r += 1
        return r if self.spare >= 0 else -1

    def _shift(self, at: int, sign: int) -> None:
        """Release (1) or make (-1) a claim at the shadow time."""
        d = self.demand[self.first]
        targets = at + HEAD
        whole = targets + self.store[at + 1]
        cells = whole + self.store[at + 2]
        pools = self.store[at + 3]
        for i in range(cells, cells + pools):
            self.then[self.store[i]] += sign * self.store[i + pools]
        for i in range(whole, cells):
            self.held_then[self.store[i]] = sign < 0
        for i in range(targets, whole):
            self.use_then[self.store[i]] -= sign
        for i in range(targets, cells):
            n = self.store[i]
            copies = self._host(d, n, THEN)
            self.spare += copies - self.row[n]
            self.row[n] = copies

    def beside(self, kind: int) -> bool:
        """Place a kind now and claim the place at the shadow time, if the first job still fits then.

        If the first choice is in its way, the units that the first job leaves are tried.
        """
        d = self.demand[kind]
        if not self.place(kind):
            return False
        if self._lets():
            return True
        if self.left != self.epoch:
            self._set_aside()
        if self._place(d, self.amount[kind], REST) and self._lets():
            return True
        self.refused[kind] = self.epoch
        return False

    def lets(self, selection: Any) -> bool:
        """Claim a selection at the shadow time if the first job still fits then; return whether it does."""
        self._write(selection)
        return self._lets()

    def _lets(self) -> bool:
        """Make the claim that is written last at the shadow time, if the first job still fits then."""
        self._shift(self.top, -1)
        if self.spare >= 0:
            self.epoch += 1
            return True
        self._shift(self.top, 1)
        return False

    def _set_aside(self) -> None:
        """Choose the units of the first job at the shadow time."""
        d = self.demand[self.first]
        self.mine[:] = self.no_units
        self.mark[:] = self.no_targets
        self._place(d, self.amount[self.first], THEN)
        targets = self.top + HEAD
        whole = targets + self.store[self.top + 1]
        cells = whole + self.store[self.top + 2]
        pools = self.store[self.top + 3]
        for i in range(targets, whole):
            self.mark[self.store[i]] = 2 if self.whole[d] else 1
        for i in range(cells, cells + pools):
            self.mine[self.store[i]] = self.store[i + pools]
        self.bare = pools == 0
        self.left = self.epoch

    def is_refused(self, kind: int) -> bool:
        """Whether a kind is known to be in the first job's way."""
        return self.refused[kind] == self.epoch

    def refuse(self, kind: int) -> None:
        """Note that a kind is in the first job's way, until something changes."""
        self.refused[kind] = self.epoch

    # --- many jobs ------------------------------------------------------------------------------

    def next(self, jobs: Any, at: int, kinds: Any, judged: Any, now: float, time: float, most: int) -> int:
        """Return the place of the first of some jobs, from a place on, that may start now.

        Its kind fits, or is not counted. It ends by the shadow time, or it has at most `most` copies and its
        kind is not known to be in the way. `kinds` and `judged` are the kind and the seconds of each job.
        Without such a job: their number.  IndexError for a place or a job that there is not: a policy of
        another package may ask for one, and compiled code reads arrays without bounds.
        """
        if at < 0:
            raise IndexError(f"{at} is not a place of the queue")
        if kinds is not self.kinds or judged is not self.seconds:  # else the arrays of the last call
            self.kinds, self.seconds = kinds, judged
            self.kind_of, self.judged = kinds, judged
        count, known = len(jobs), len(self.kind_of)
        while at < count:
            job = jobs[at]
            if not 0 <= job < known:
                raise IndexError("a job that does not exist")
            kind = self.kind_of[job]
            d = self.demand[kind]
            amount = self.amount[kind]
            if (d < 0 or self.total[d] >= amount) and (
                now + self.judged[job] <= time or (amount <= most and self.refused[kind] != self.epoch)
            ):
                break
            at += 1
        return at


def ones(word: int) -> int:
    """Return how many bits of a word are set."""
    count = 0
    while word:
        word &= word - 1
        count += 1
    return count


def without_lowest(word: int, count: int) -> int:
    """Return a word without its lowest `count` set bits."""
    while count:
        word &= word - 1
        count -= 1
    return word


def choose(words: Any, low: int, high: int, units: int, last: bool, bits: Any, to: int) -> None:
    """Write the lowest (`last`: the highest) units of a leaf pool to `bits`, from a place on.

    Its free units are the words from `low` to `high`.
    """
    skipped = 0
    if last:
        skipped = -units
        for at in range(low, high):
            skipped += ones(words[at])
        skipped = max(skipped, 0)
    for at in range(low, high):
        rest = words[at]
        have = ones(rest)
        few = min(have, skipped)
        skipped -= few
        have -= few
        rest = without_lowest(rest, few)
        few = min(have, units)
        units -= few
        bits[to] = rest if few == have else rest ^ without_lowest(rest, few)
        to += 1


def choose_rows(words: Any, width: int, numbers: Any, last: bool) -> None:
    """Leave the lowest (`last`: the highest) `numbers[i]` units of leaf pool i; in place."""
    for i in range(len(numbers)):
        choose(words, i * width, (i + 1) * width, numbers[i], last, words, i * width)


def change(units: Any, use: Any, words: Any, word: Any, claim: Any, bits: Any, sign: int) -> int:
    """Make (-1) or release (1) a claim in a state; return how many of its targets have no other one.

    `word` and `bits` are as in `Kernel`; without words no masks change. ValueError for a claim of units that
    are not free: a policy started two jobs that it had asked for in one state.
    """
    whole = HEAD + claim[1]
    cells = whole + claim[2]
    pools = claim[3]
    named = len(words) > 0
    at = 0
    for i in range(cells, cells + pools):
        cell = claim[i]
        units[cell] += sign * claim[i + pools]
        if units[cell] < 0:
            raise ValueError(NOT_FREE)
        if named:
            for w in range(word[cell], word[cell + 1]):
                if sign > 0:
                    words[w] |= bits[at]
                elif (bits[at] & words[w]) != bits[at]:
                    raise ValueError(NOT_FREE)
                else:
                    words[w] &= ~bits[at]
                at += 1
    return touch(use, claim[HEAD:whole], -sign)


def touch(use: Any, targets: Any, sign: int) -> int:
    """Count one claim more (1) or less (-1) on some targets; return how many of them have no other one."""
    alone = 0
    for i in range(len(targets)):
        use[targets[i]] += sign
        if use[targets[i]] == (1 if sign > 0 else 0):
            alone += 1
    return alone


def shift(numbers: Any, places: Any, amounts: Any, sign: int) -> None:
    """Add amounts to some of the numbers of an array, or with sign -1 take them away.

    ValueError if fewer than none would be left.
    """
    for i in range(len(places)):
        numbers[places[i]] += sign * amounts[i]
        if numbers[places[i]] < 0:
            raise ValueError(NOT_FREE)


def view(array: Any) -> memoryview[int]:
    """Return an array as single numbers of Python."""
    return memoryview(array)


def integers(numbers: Any) -> memoryview[int]:
    """Return numbers as one row of integers."""
    return view(np.array(numbers, dtype=np.int64).reshape(-1))


def zeros(size: int) -> memoryview[int]:
    """Return a row of zeros."""
    return view(np.zeros(size, dtype=np.int64))
