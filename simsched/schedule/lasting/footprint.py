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
        firsts = [part.start for part in (*self.on_target, self.use)]
        self.by_target = np.add.outer(np.array(firsts), np.arange(len(index)))[:, None]
        """For each type of the gauges, and last for the claims, the column of each target."""
        self.outer = self.width
        """The first of the columns of shared claims."""
        for name, vertices in index.vertex_types.items():
            self.shared[name] = self._next(len(vertices))
        self._inside = {name: bool((pool.target >= 0).all()) for name, pool in index.pool_types.items()}
        """Pool type → whether all of its leaf pools are on execution targets."""
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
        above, targets, all_up = False, selection.targets, bool(up.all())
        sums = dict.fromkeys(self.types, 0)
        taken: dict[str, Ints] = {}
        columns: list[Ints] = []
        amounts: list[Ints | int] = []
        for draw in selection.held:
            columns.append(draw.pools + self.pools[draw.type].start)
            amounts.append(draw.units)
            target, units = self.index.pool_types[draw.type].target[draw.pools], draw.units
            on = None if self._inside[draw.type] else target >= 0
            if draw.type in sums:
                visible = None if all_up else up[target] if on is None else ~on | up[target]
                sums[draw.type] += _visible(draw, visible)
            if on is not None and not on.all():
                above = True
                target, units = target[on], units if isinstance(units, int) else units[on]
            taken[draw.type] = _by_target(target, units, targets, len(self.index))
        columns.append(targets + self.use.start)
        amounts.append(1)
        for hold in sorted(selection.holds, key=lambda hold: not hold.exclusive):
            above = above or self.index.vertex_types[hold.type].level == ABOVE
            part = (self.held if hold.exclusive else self.shared)[hold.type]
            columns.append(hold.ordinals + part.start)
            amounts.append(1)
        for type_, part in self._sums.items():
            if type_ in taken:
                columns.append(targets + part.start)
                amounts.append(taken[type_])
        merged = _merged(columns, amounts, self.use.start)
        on_targets = np.zeros((len(self._gauged), len(targets)), dtype=np.int64)
        for at, type_ in enumerate(self._gauged):
            if type_ in taken:
                on_targets[at] = taken[type_]
        return Footprint(*merged, np.array([*sums.values()], dtype=np.int64), targets, on_targets, above)


def _by_target(target: Ints, units: Ints | int, targets: Ints, size: int) -> Ints:
    """Return the units on each of some targets; `target` is that of each leaf pool."""
    if isinstance(units, int):
        found: Ints = np.bincount(target, minlength=size)[targets] * units
        return found
    return np.bincount(target, units, size)[targets].astype(np.int64)


def _visible(draw: Draw, up: Bools | None) -> int:
    """Return the units of a draw from the leaf pools that are up; None: all are."""
    if up is None or up.all():
        return draw.amount
    return int(np.broadcast_to(draw.units, len(draw.pools))[up].sum())


def _merged(columns: Sequence[Ints], amounts: Sequence[Ints | int], pools: int) -> tuple[Ints, Ints, int]:
    """Return each column once, in ascending order, and how many of them are before the column `pools`."""
    every = np.concatenate(columns)
    number = np.empty(len(every), dtype=np.int64)
    begin = 0
    for some, amount in zip(columns, amounts, strict=True):
        number[begin : begin + len(some)] = amount
        begin += len(some)
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
