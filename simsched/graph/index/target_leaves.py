"""The leaf pools of one type on each execution target, as one table."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from simsched.arrays import Bools, Integers
    from simsched.graph.index.index import Index

WIDEST = 64
"""Types with more leaf pools on one target than this have no table."""


class TargetLeaves(NamedTuple):
    """The leaf pools of one type on each target.

    Attributes
    ----------
    type : the pool type.
    pools : the leaf pools of each target, one row a target; None: target and leaf pool have one number.
    within : which entries of `pools` stand for a leaf pool; None: all do.
    loose : whether there are leaf pools of the type outside the targets, too.
    """

    type: str
    pools: Integers | None
    within: Bools | None
    loose: bool

    def free(self, free: Integers, targets: Integers | slice) -> Integers:
        """Return the free units of each leaf pool on some targets, one row a target; only with `pools`."""
        assert self.pools is not None
        units = free[self.pools[targets]]
        if self.within is not None:
            units *= self.within[targets]
        return units

    def sums(self, free: Integers, targets: Integers | slice) -> Integers:
        """Return the free units on some targets."""
        if self.pools is None:
            return free[targets]
        found: Integers = np.add.reduce(self.free(free, targets), axis=1)
        return found

    def on(self, targets: Integers | slice) -> list[list[int]]:
        """Return the leaf pools of each of some targets; only with `pools`."""
        assert self.pools is not None
        rows: list[list[int]] = self.pools[targets].tolist()
        if self.within is None:
            return rows
        within = self.within[targets].tolist()
        return [list(compress(row, which)) for row, which in zip(rows, within, strict=True)]


def leaves_on_targets(index: Index, type_: str) -> TargetLeaves | None:
    """Return the leaf pools of a type by target; None if no target has any, or one has too many."""
    known: dict[str, TargetLeaves | None] = index.memo.setdefault("leaves on targets", {})
    if type_ not in known:
        known[type_] = _leaves(index, type_)
    return known[type_]


def _leaves(index: Index, type_: str) -> TargetLeaves | None:
    pool = index.pool_types.get(type_)
    if pool is None:
        return None
    if pool.aligned:
        return TargetLeaves(type_, None, None, loose=False)
    view = index.beneath(index.target_type, type_)
    counts = view.high - view.low
    width = int(counts.max(initial=0))
    if not 0 < width <= WIDEST:
        return None
    pools = view.low[:, None] + np.arange(width)
    within = pools < view.high[:, None]
    pools[~within] = 0
    if view.ordinals is not None:
        pools = view.ordinals[pools]
    loose = bool((pool.target < 0).any())
    return TargetLeaves(type_, pools, None if within.all() else within, loose=loose)
