"""Counts of many contents at once: one matrix of copies per target that follows one state.

A site has a few dozen contents: a core with 2 GB in the partition `long`, a whole node, and so on. Most of
them draw units of pools, so that the copies on a target follow from its *row*: the free units of each type,
the number of claims, and whether it is claimed exclusively. After a claim or a release the rows of the
targets that it touched are read again, and all contents are counted on them in one go. The rows of another
time are the rows of now and the changes that claims make to them; no state is copied.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy import ndarray

from simsched.graph.index.target_leaves import leaves_on_targets
from simsched.graph.index.types import TARGET
from simsched.match.policies.policy import fixed_order
from simsched.match.requests.request import SLOT, VERTEX
from simsched.match.search.count_columns import (
    IDLE,
    MASK,
    OPEN,
    UP,
    WORD,
    CountColumn,
    CountColumns,
    gate,
    most_copies,
    packed,
    units_of,
    unpacked,
)
from simsched.match.search.counts import MANY
from simsched.match.search.placements import Change, RowDemand, RowPlacement
from simsched.match.search.portions import first_copies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.graph.index.index import Index
    from simsched.graph.index.target_leaves import TargetLeaves
    from simsched.graph.index.types import Bools, Ints
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Content, Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection

MAX_ENTRIES = 1 << 22
"""Contents times targets that a table has at most; further contents are counted one by one."""

FEW = 64
"""Up to this many touched targets are counted one by one, each by its column if its state is known."""

MAX_COLUMN = 128
"""With more contents than this, vectors are faster than columns of single targets."""


class Counted(NamedTuple):
    """A request whose fit follows from one count: `amount` copies, or that number of targets with any."""

    content: Content
    amount: int
    copies: bool


class Spot(NamedTuple):
    """A counted request under a policy with a fixed order of targets: it takes the first ones with copies.

    Attributes
    ----------
    content : the number of its content.
    wanted, most : the copies in all, and on one target.
    among : the targets in the order of the policy; None: graph order.
    """

    content: int
    wanted: int
    among: Ints | None
    most: int


def counted_request(request: Request) -> Counted | None:
    """Return the count that alone decides whether a request fits; None if there is no such count."""
    need, times = request.needs[0], 1
    if len(request.needs) > 1 or request.ranged or not request.separable:
        return None
    if need.kind == SLOT and need.content is None and len(need.children) == 1 and need.children[0].exclusive:
        need, times = need.children[0], need.amount  # slots of whole targets: the same number of targets
    content = need.content
    if content is None or content.flat is None or need.level != TARGET:
        return None
    if need.kind == SLOT and not need.loose:
        return Counted(content, need.amount, copies=True)
    return Counted(content, need.amount * times, copies=False) if need.kind == VERTEX else None


class CountTable:
    """The copies of each content that each target of a state can host.

    Attributes
    ----------
    types : the pool types of the rows.
    fits : copies per content and target.
    rows : free units per type and target; below them there is place for the claims that touch each target,
        and whether it is claimed exclusively (`rows_now`). Rows of targets that are down do not count.
    packed : the sum of the copies of each content, and behind them the number of targets with any, as one
        number (see `count_columns.packed`).
    demands : the demand of each content in terms of the rows.
    most_on_a_target : a number of copies of each content that no target exceeds, even if all of it is free.
    pending : the targets that each change of the state touched since it was last followed.
    grew : whether any of these changes may have freed something; if not, no count is greater than it was.
    seen : how often the table has followed a change.
    """

    def __init__(self, avail: Availability, contents: Iterable[Content]) -> None:
        index = avail.index
        width = len(index)
        self._avail = avail
        self._leaves: dict[str, TargetLeaves] = {}
        chosen = [content for content in dict.fromkeys(contents) if self._has_leaves(content, index)]
        chosen = chosen[: MAX_ENTRIES // max(1, width)]
        self._number = {content: at for at, content in enumerate(chosen)}
        self.types = tuple(self._leaves)
        self._at = {type_: at for at, type_ in enumerate(self.types)}
        self._use, self._held = len(self.types), len(self.types) + 1
        units, beyond = units_of(chosen, self._at)
        self._units, self._beyond = units.T[:, :, None], beyond.T[:, :, None]
        self._most = np.array([most_copies(content) for content in chosen], dtype=np.int64).reshape(-1, 1)
        self._gates = np.array([gate(content) for content in chosen], dtype=np.int64)
        self._eligible = np.array([c.eligible for c in chosen], dtype=np.bool_).reshape(-1, width)
        cells: Ints = np.zeros((len(chosen) + len(self.types) + 2, width), dtype=np.int64)
        self.fits, self.rows = cells[: len(chosen)], cells[len(chosen) :]
        self._cells = cells[:-2].T
        """The lines of `fits` and `rows` that columns have, by target."""
        self.packed = 0
        self.pending: list[Ints] = [np.arange(width)]
        self.grew = True
        self.seen = 0
        self.demands = [RowDemand.of(content, self._at, width) for content in chosen]
        self._up, self._all_up = avail.up, bool(avail.up.all())
        self._may_serve: dict[int, Ints] = {}
        """Content → 1 for each target that is up and passes its constraint."""
        self._taken: dict[tuple[int, int, int], tuple[Ints | None, tuple[Ints, Ints | int]]] = {}
        self._few = FEW if len(chosen) <= MAX_COLUMN else 0
        sizes = [self._sizes(leaves, index) for leaves in self._leaves.values()]
        present = np.array([size > 0 for size in sizes], dtype=np.bool_).reshape(-1, width)
        largest = [int(size.max(initial=0)) for size in sizes]
        self.most_on_a_target = [
            min([demand.most, *(largest[at] // units for at, units in demand.draws)])
            for demand in self.demands
        ]
        self._columns = CountColumns(chosen if self._few else (), self.types, self._eligible, present)
        self._column: list[CountColumn | None] = [None] * width
        """The column of each target; None: it was counted with many others."""
        some: list[list[CountColumn | None]] = [[None] * width for _ in (UP, OPEN, IDLE)]
        self._constant = some
        """For each gate the columns of the targets that are up and pass it and no further one, where these do
        not depend on the state: all is free on idle targets, and nothing on those claimed exclusively."""
        # Single numbers of an array are read in half the time through a view of its memory.
        free = [
            (avail.free[type_].data, None if leaves.pools is None else leaves.on(slice(None)))
            for type_, leaves in self._leaves.items()
        ]
        self._claims = avail.use.data, avail.held[index.target_type].data
        """For each target the claims that touch it, and whether it is claimed exclusively."""
        self._free = self._columns.of_each([[free[at] for at in some] for some in self._columns.present])
        """For each target and each type that it has, the free units by leaf pool, and the leaf pools of each
        target; None: the targets and the leaf pools have the same numbers."""

    @staticmethod
    def _sizes(leaves: TargetLeaves, index: Index) -> Ints:
        """Return the units of a type on each target, free or not."""
        return leaves.sums(index.pool_types[leaves.type].size, np.arange(len(index)))

    def _has_leaves(self, content: Content, index: Index) -> bool:
        """Whether all that a content draws is summed on each target."""
        for type_, _ in content.flat or ():
            if type_ not in self._leaves:
                leaves = leaves_on_targets(index, type_)
                if leaves is None:
                    return False
                self._leaves[type_] = leaves
        return content.flat is not None

    def number_of(self, content: Content) -> int | None:
        """Return the number of a content among the rows of `fits`; None if it is not counted here."""
        return self._number.get(content)

    # --- the state that is followed -------------------------------------------------------------

    def follow(self) -> None:
        """Count the targets again that were touched since the last time."""
        pending = self.pending
        if not pending:
            return
        self.seen += 1
        self._taken.clear()
        if len(pending) == 1:
            dirty = pending[0].tolist()
        else:
            dirty = list(dict.fromkeys(chain.from_iterable(map(ndarray.tolist, pending))))
        pending.clear()
        self.grew = False
        if len(dirty) <= self._few:
            self._count_few(dirty)
        else:
            self._count_many(np.array(dirty, dtype=np.int64))

    def _count_few(self, targets: list[int]) -> None:
        """Count some targets again, one by one."""
        avail, columns, known, constant = self._avail, self._column, self._columns.known, self._constant
        used, whole = self._claims
        free, sums, cells = self._free, self.packed, self._cells
        if avail.up is not self._up:
            self._up_now()
        all_up = self._all_up
        for target in targets:
            gate_ = UP if whole[target] else OPEN if used[target] else IDLE
            column, old = constant[gate_][target] if all_up else None, columns[target]
            if column is None:
                numbers = [gate_ if all_up or avail.up[target] else -1]
                for units, pools in free[target]:
                    if pools is None:
                        numbers.append(units[target])
                    else:
                        on_target = 0
                        for pool in pools[target]:
                            on_target += units[pool]
                        numbers.append(on_target)
                state = tuple(numbers)
                column = known[target].get(state) or self._columns.add(target, state)
                if all_up and gate_ != OPEN:
                    constant[gate_][target] = column
            if column is not old:
                columns[target] = column
                sums += column.packed - (self._packed_at(target) if old is None else old.packed)
                cells[target] = column.cells
        self.packed = sums

    def _packed_at(self, target: int) -> int:
        """Return the counts of a target that was counted with many others."""
        fits = self.fits[:, target]
        return packed(np.concatenate([fits, np.minimum(fits, 1)]))

    def _count_many(self, targets: Ints) -> None:
        """Count many targets again at once."""
        self._read(targets)
        fresh, stale = self._count(targets), self.fits[:, targets]
        self.fits[:, targets] = fresh
        more = np.add.reduce(fresh - stale, axis=1)
        np.minimum(fresh, 1, out=fresh)
        fresh -= np.minimum(stale, 1)
        self.packed = packed(self.joined() + np.concatenate([more, np.add.reduce(fresh, axis=1)]))
        for target in targets.tolist():
            self._column[target] = None

    def joined(self) -> Ints:
        """Return the sum of the copies of each content, and behind them the number of targets with any."""
        return unpacked(self.packed, 2 * len(self.fits))

    def sums_of(self, content: int) -> tuple[int, int]:
        """Return the sum of the copies of a content, and the number of targets with any."""
        return self.sum_at(content), self.sum_at(content + len(self.fits))

    def count(self, content: int, *, targets: bool) -> int:
        """Return the sum of the copies of a content now, or with `targets` the number of targets with any."""
        if self.pending:
            self.follow()
        return self.sum_at(content + len(self.fits) if targets else content)

    def sum_at(self, place: int) -> int:
        """Return one of the `joined` sums."""
        return self.packed >> place * WORD & MASK

    def _read(self, targets: Ints) -> None:
        """Read the rows of some targets from the state."""
        avail, rows = self._avail, self.rows
        for at, leaves in enumerate(self._leaves.values()):
            rows[at, targets] = leaves.sums(avail.free[leaves.type], targets)
        rows[self._use, targets] = avail.use[targets]
        rows[self._held, targets] = avail.held[avail.index.target_type][targets]

    def _count(self, targets: Ints) -> Ints:
        """Return the copies of each content on some targets, from their rows."""
        rows = self.rows[:, targets]
        shares = rows[: self._use] // self._units
        np.maximum(shares, self._beyond, out=shares)
        found: Ints = np.minimum.reduce(shares, axis=1, initial=MANY)
        np.minimum(found, self._most, out=found)
        found *= self._serving(rows, targets)[self._gates]
        found *= self._eligible[:, targets]
        return found

    def _serving(self, rows: Ints, targets: Ints | slice) -> Bools:
        """Return which targets pass each gate, of `UP`, `OPEN` and `IDLE`."""
        found = np.empty((3, rows.shape[1]), dtype=np.bool_)
        found[UP] = self._avail.up[targets]
        np.logical_and(found[UP], rows[self._held] == 0, out=found[OPEN])
        np.logical_and(found[OPEN], rows[self._use] == 0, out=found[IDLE])
        return found

    # --- states of other times -------------------------------------------------------------------

    def change(self, selection: Selection) -> Change | None:
        """Return the difference that a release makes to the rows; None if units are shared."""
        if selection.shared:
            return None
        index, width = self._avail.index, len(self._up)
        targets = selection.targets
        places, amounts = [targets + self._use * width], [np.full(len(targets), -1)]
        for hold in selection.holds:
            if hold.type == index.target_type and hold.exclusive:
                places.append(hold.ordinals + self._held * width)
                amounts.append(np.full(len(hold.ordinals), -1))
        for draw in selection.held:
            at = self._at.get(draw.type)
            if at is not None:
                target = index.pool_types[draw.type].target[draw.pools]
                units = draw.units
                if self._leaves[draw.type].loose:
                    within = target >= 0
                    target, units = target[within], units if isinstance(units, int) else units[within]
                places.append(target + at * width)
                amounts.append(np.full(len(target), units) if isinstance(units, int) else units)
        return Change(np.concatenate(places), np.concatenate(amounts))

    def first(self, content: int, wanted: int, among: Ints | None, most: int) -> tuple[Ints, Ints | int]:
        """Return the first targets that host copies of a content now, in a fixed order, and how many each.

        The copies suffice, and the table follows the state. The answer is kept until the state changes.
        """
        key = content, wanted, most
        found = self._taken.get(key)
        if found is None or found[0] is not among:
            found = self._taken[key] = among, first_copies(self.fits[content], wanted, among, most)
        return found[1]

    def spot(self, counted: Counted, policy: MatchPolicy) -> Spot | None:
        """Return the facts that decide a placement; None if not only the cluster and the counts do."""
        if not policy.static or counted.content.alone:
            return None
        among = fixed_order(policy, self._avail.index.target_type, self._avail)
        most = MANY if counted.copies else 1
        return Spot(self._number[counted.content], counted.amount, among, most)

    def placed_now(self, spot: Spot) -> RowPlacement:
        """Return where a request that fits now would be placed."""
        return RowPlacement(*self.first(*spot), self.demands[spot.content])

    def placed(self, spot: Spot, copies: Ints) -> RowPlacement:
        """Return where a request would be placed in a state in which targets host these copies.

        The copies suffice.
        """
        content, wanted, among, most = spot
        return RowPlacement(*first_copies(copies, wanted, among, most), self.demands[content])

    def rows_now(self) -> Ints:
        """Return the rows now, to be changed by the caller."""
        self.follow()
        avail, rows = self._avail, self.rows.copy()
        rows[self._use] = avail.use
        rows[self._held] = avail.held[avail.index.target_type]
        return rows

    def sums(self, rows: Ints) -> dict[str, int]:
        """Return the free units of each type of which all are on targets, in a state of these rows."""
        up = self._up_now()
        units = rows[: self._use] if self._all_up else rows[: self._use] * up
        sums = np.add.reduce(units, axis=1).tolist()
        named = zip(self._leaves.values(), sums, strict=True)
        return {leaves.type: units for leaves, units in named if not leaves.loose}

    def copies_in(self, number: int, rows: Ints) -> Ints:
        """Return the copies of one content on each target, in a state of these rows."""
        draws, gate_, most, *_ = self.demands[number]
        may = self._may(number)
        if gate_ != UP:
            may = may * (rows[self._held] == 0)
        if gate_ == IDLE:
            may *= rows[self._use] == 0
        if not draws:
            return may * most
        least: Ints | None = None
        for at, units in draws:
            share = rows[at] if units == 1 else rows[at] // units
            least = share if least is None else np.minimum(least, share)
        assert least is not None
        return (np.minimum(least, 1) if most == 1 else least) * may

    def _up_now(self) -> Bools:
        """Return which targets are up."""
        up = self._avail.up
        if up is not self._up:  # targets went down or came up
            self._up, self._all_up = up, bool(up.all())
            self._may_serve.clear()
        return up

    def _may(self, number: int) -> Ints:
        """Return 1 for each target that is up and passes the constraint of a content, else 0."""
        up = self._up_now()
        may = self._may_serve.get(number)
        if may is None:
            may = self._may_serve[number] = (self._eligible[number] & up).astype(np.int64)
        return may
