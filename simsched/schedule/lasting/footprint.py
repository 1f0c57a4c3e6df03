"""`Footprint`: the columns of a `Room` that a selection changes while it is claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.graph.index.types import ABOVE
from simsched.match.state.with_claims import with_claims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Bools, Ints
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Draw, Selection
    from simsched.schedule.lasting.gauges import Gauges


class Footprint(NamedTuple):
    """The columns that a selection changes while it is claimed, by how much, and its targets.

    `units` is the number of the columns that count units of leaf pools; they come first. `sums` are the
    units by type, without those on targets that are down.
    """

    columns: Ints
    amounts: Ints
    units: int
    sums: Ints
    targets: Ints
    on_targets: Ints
    """For each type of the gauges and each of the targets, the units that it takes there."""
    above: bool
    """Whether it claims anything outside of execution targets."""


class Columns:
    """Where each leaf pool, target and vertex of a cluster is in the vectors."""

    def __init__(self, index: Index, gauges: Gauges, types: Sequence[str]) -> None:
        self.index = index
        self.types = types
        self.pools: dict[str, slice] = {}
        self.held: dict[str, slice] = {}
        self.shared: dict[str, slice] = {}
        self.width = 0
        for name, pool in index.pool_types.items():
            self.pools[name] = self._next(len(pool))
        self.use = self._next(len(index))
        for name, vertices in index.vertex_types.items():
            self.held[name] = self._next(len(vertices))
        self.inner = self.width
        """The end of the columns of units, claims and exclusive claims, which change most often."""
        self.on_target: list[slice] = []
        """For each type of the gauges, the columns with its units on each target."""
        self._sums: dict[str, slice] = {}
        self._gauged = gauges.types
        for name in gauges.types:
            aligned = index.pool_types[name].aligned
            if not aligned:
                self._sums[name] = self._next(len(index))
            self.on_target.append(self.pools[name] if aligned else self._sums[name])

        self.outer = self.width
        """The first of the columns of shared claims."""
        for name, vertices in index.vertex_types.items():
            self.shared[name] = self._next(len(vertices))
        self.named = np.zeros(self.width, dtype=np.bool_)
        """Which columns count units that have ids."""
        for name, part in self.pools.items():
            self.named[part] = index.pool_types[name].named

        self.most = max((self._most(name) for name in index.pool_types), default=0)
        """The most units of one type in a leaf pool, or on one target."""

    def _most(self, name: str) -> int:
        pool = self.index.pool_types[name]
        inside = pool.target >= 0
        on_targets = np.bincount(pool.target[inside], pool.size[inside], minlength=1)
        return max(int(on_targets.max()), int(pool.size.max(initial=0)))

    def _next(self, length: int) -> slice:
        self.width += length
        return slice(self.width - length, self.width)

    def vector(self, state: Availability) -> Ints:
        """Return the vector of a state; units that are hidden on targets that are down count as free."""
        found = np.zeros(self.width, dtype=np.int64)
        for name, part in self.pools.items():
            pool = self.index.pool_types[name]
            found[part] = state.free[name]
            if name in state.hidden:
                found[part] += np.where(pool.sound, state.hidden[name], 0)
        found[self.use] = -state.use
        for name, part in self.held.items():
            found[part] = -state.held[name].astype(np.int64)
            found[self.shared[name]] = -state.shared[name]
        for name, part in self._sums.items():
            pool = self.index.pool_types[name]
            inside = pool.target >= 0
            units = found[self.pools[name]][inside]
            found[part] = np.bincount(pool.target[inside], units, minlength=len(self.index))
        return found

    def state(self, available: Availability, least: Ints, *, counts_only: bool) -> Availability:
        """Return the state of a vector of the same cluster, to match on and not to change."""
        return with_claims(
            available,
            {name: least[part] for name, part in self.pools.items()},
            -least[self.use],
            {name: least[part] < 0 for name, part in self.held.items()},
            {name: -least[part] for name, part in self.shared.items()},
            counts_only=counts_only,
        )

    def footprint(self, selection: Selection, up: Bools) -> Footprint:
        """Return the columns that a selection changes while these targets are up."""
        columns: list[Ints] = []
        amounts: list[Ints] = []

        def note(part: slice, ordinals: Ints, number: Ints | int) -> None:
            columns.append(ordinals + part.start)
            amounts.append(np.full(len(ordinals), number) if isinstance(number, int) else number)

        above, targets, size = False, selection.targets, len(self.index)
        sums = dict.fromkeys(self.types, 0)
        taken: dict[str, Ints] = {}
        for draw in selection.held:
            note(self.pools[draw.type], draw.pools, draw.units)
            target, units = self.index.pool_types[draw.type].target[draw.pools], draw.units
            on = target >= 0
            if draw.type in sums:
                sums[draw.type] += _visible(draw, ~on | up[target])
            if not on.all():
                above = True
                target, units = target[on], units if isinstance(units, int) else units[on]
            weights = np.full(len(target), units) if isinstance(units, int) else units
            taken[draw.type] = np.bincount(target, weights, size)[targets].astype(np.int64)
        for type_, units_on in taken.items():
            if type_ in self._sums:
                note(self._sums[type_], targets, units_on)
        note(self.use, targets, 1)
        for hold in selection.holds:
            above = above or self.index.vertex_types[hold.type].level == ABOVE
            note((self.held if hold.exclusive else self.shared)[hold.type], hold.ordinals, 1)
        merged = _merged(columns, amounts, self.use.start)
        none = np.zeros(len(targets), dtype=np.int64)
        on_targets = np.array([taken.get(type_, none) for type_ in self._gauged], dtype=np.int64)
        return Footprint(*merged, np.array([*sums.values()], dtype=np.int64), targets, on_targets, above)


def _visible(draw: Draw, up: Bools) -> int:
    """Return the units of a draw from the leaf pools that are up."""
    if up.all():
        return draw.amount
    return int(np.broadcast_to(draw.units, len(draw.pools))[up].sum())


def _merged(columns: Sequence[Ints], amounts: Sequence[Ints], pools: int) -> tuple[Ints, Ints, int]:
    """Return each column once, in ascending order, and how many of them are before the column `pools`."""
    every, number = np.concatenate(columns), np.concatenate(amounts)
    if (every[1:] > every[:-1]).all():
        return every, number, int(every.searchsorted(pools))
    order = every.argsort(kind="stable")
    every, number = every[order], number[order]
    first = np.ones(len(every), dtype=np.bool_)
    np.not_equal(every[1:], every[:-1], out=first[1:])
    if not first.all():
        begins = first.nonzero()[0]
        every, number = every[begins], np.add.reduceat(number, begins)
    return every, number, int(every.searchsorted(pools))
