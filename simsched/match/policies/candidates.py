"""Candidates: the vertices among which a match policy chooses, and the numbers that policies order by."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.errors import ConfigError
from simsched.match.requests.request import POOL
from simsched.match.state.masks import set_units

if TYPE_CHECKING:
    from simsched.arrays import Integers
    from simsched.formats.rfc.idset import Idset
    from simsched.graph.index.index import Index
    from simsched.graph.index.types import PoolType
    from simsched.match.requests.request import Content
    from simsched.match.state.availability import Availability


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The vertices that a policy orders.

    Attributes
    ----------
    kind : the vertex type, usually the target type.
    ordinals : the vertices that can host at least one copy, ascending (graph order).
    fits : how many copies each can host.
    avail : the state that is matched against.
    rng : the generator of the run, for policies that choose at random; None if there is no generator.
    wanted : copies that will be taken, from the first candidates on.
    most : copies that are taken from one candidate at most.
    content : the demand of one copy on an execution target; None above and below the targets.
    copy : with `MatchPolicy.each_copy`, the number of each entry among the copies of its candidate.
    """

    kind: str
    ordinals: Integers
    fits: Integers
    avail: Availability
    rng: np.random.Generator | None
    wanted: int = 1
    most: int = 1
    content: Content | None = None
    copy: Integers | None = None

    def ids(self) -> Integers:
        """Return the logical ids (a vertex without one counts as its ordinal)."""
        index = self.avail.index
        known: Integers | None = index.memo.get(f"ids of {self.kind}")
        if known is None:
            ids = index.vertex_types[self.kind].ids
            known = index.memo[f"ids of {self.kind}"] = np.where(ids >= 0, ids, np.arange(len(ids)))
        return known[self.ordinals]

    def free(self, type_: str) -> Integers:
        """Return the free units of a pool type on or below each candidate: ``free("core")``.

        They are zeros if the cluster has no pools of that type.  A policy that uses them is not static.
        """
        free = self.avail.free.get(type_)
        if free is None:
            return np.zeros(len(self.ordinals), dtype=np.int64)
        below = self.avail.index.beneath(self.kind, type_, self.ordinals)
        return below.sum(free[below.ordinals])

    def unit_ids(self, *, highest: bool = False) -> Integers:
        """Return the id of the first unit that each copy would get; a whole vertex's own id."""
        content = self.content
        if content is None or content.node or content.alone:
            return self.ids()
        return free_unit_ids(content, self.ordinals, self.copy, self.avail, highest=highest)

    def classes(self) -> Integers:
        """Return the performance classes (the property ``perf_class``); the last one without the property."""
        return performance_classes(self.kind, self.avail.index)[self.ordinals]

    def lots(self) -> Integers:
        """Return a random permutation of the positions."""
        if self.rng is None:
            raise ConfigError("the match policy 'random' needs a random generator", expected="a seed")
        return self.rng.permutation(len(self.ordinals))


PERF_CLASS = "perf_class"
"""The property with a node's performance class: an integer, the lowest is the best."""

NO_CLASS = (1 << 15) - 1


def free_unit_ids(
    content: Content, targets: Integers, copy: Integers | None, avail: Availability, *, highest: bool = False
) -> Integers:
    """Return the id of the first unit that copy number `copy[i]` of `content` gets on ``targets[i]``.

    The first type of units (by name) in the content counts; without units, the target's ordinal.
    """
    first = _first_units(content, avail.index)
    if first is None:
        return targets
    type_, units = first
    once, where = np.unique(targets, return_inverse=True)
    rows, longest = _free_rows(avail.index.pool_types[type_], once, avail, highest=highest)
    table = np.full((len(rows.lists), longest), NO_CLASS, dtype=np.int64)
    for number, ids in enumerate(rows.lists):
        table[number, : len(ids)] = ids
    at = np.zeros(len(targets), dtype=np.int64) if copy is None else copy * units
    found: Integers = table[rows.which[where], np.minimum(at, longest - 1)]
    return found


class _Rows(NamedTuple):
    """Distinct lists of free unit ids, and the number of each target's list."""

    lists: list[tuple[int, ...]]
    which: Integers


def _free_rows(pool: PoolType, targets: Integers, avail: Availability, *, highest: bool) -> tuple[_Rows, int]:
    """Return the free unit ids of each target, in the order they are taken, and the longest's length."""
    low, high = avail.index.interval(avail.index.target_type, pool.name)
    some, place = _alike(pool, targets, avail)
    lists: dict[tuple[int, ...], int] = {}
    which = []
    for target in some.tolist():
        pools = (target,) if pool.aligned else range(int(low[target]), int(high[target]))
        free = [unit for leaf in pools for _, unit in set_units(pool.ids[leaf], avail.free_mask(pool, leaf))]
        which.append(lists.setdefault(tuple(sorted(free, reverse=highest)), len(lists)))
    longest = max(map(len, lists), default=0) or 1
    return _Rows(list(lists), np.array(which, dtype=np.int64)[place]), longest


def _alike(pool: PoolType, targets: Integers, avail: Availability) -> tuple[Integers, Integers]:
    """Return one target for each set of free units, and the position of each target's representative."""
    index = avail.index
    assert avail.partial is not None
    store = avail.partial[pool.name]
    view = index.beneath(index.target_type, pool.name, targets)
    if isinstance(store, dict) or not (pool.aligned or view.fan):
        return targets, np.arange(len(targets))
    pools = (
        targets[:, None]
        if pool.aligned or view.ordinals is None
        else view.ordinals.reshape(-1, view.fan or 1)
    )
    # Targets with the same free units (mask) of the same ids, pool by pool, get the same number.
    number = np.zeros(len(targets), dtype=np.int64)
    for column, word in product(pools.T, range(store.shape[1])):
        free = np.where(avail.free[pool.name][column] > 0, store[column, word], np.uint64(0))
        state = np.unique(free, return_inverse=True)[1]
        kinds = _id_kinds(pool, index)
        state = state * (int(kinds.max()) + 1) + kinds[column]
        number = np.unique(number * (int(state.max()) + 1) + state, return_inverse=True)[1]
    _, first, place = np.unique(number, return_index=True, return_inverse=True)
    return targets[first], place


def _id_kinds(pool: PoolType, index: Index) -> Integers:
    """Return a number for each leaf pool, equal if the unit ids are equal."""
    key = f"kinds of ids of {pool.name}"
    found: Integers | None = index.memo.get(key)
    if found is None:
        known: dict[Idset, int] = {}
        kinds = [known.setdefault(ids, len(known)) for ids in pool.ids]
        found = index.memo[key] = np.array(kinds, dtype=np.int64)
    return found


def _first_units(content: Content, index: Index) -> tuple[str, int] | None:
    """Return the first pool type by name that a content draws units of, and the units per copy."""
    found = content.flat or sorted(
        (need.type, need.amount) for top in content.needs for need in top.walk() if need.kind == POOL
    )
    return next(((type_, units) for type_, units in found if index.pool_types[type_].named), None)


def performance_classes(kind: str, index: Index) -> Integers:
    """Return the performance class of each vertex of a type; a vertex without one comes last.

    A target's class is its property ``perf_class`` (``perf_class=2`` in an R); a vertex above
    the targets has the best class below it.
    """
    found: Integers | None = index.memo.get(f"classes of {kind}")
    if found is None:
        classes = np.full(len(index), NO_CLASS, dtype=np.int64)
        for name, row in index.property_rows.items():
            number = name.removeprefix(f"{PERF_CLASS}=")
            if number != name and number.isascii() and number.isdigit():
                classes[row] = np.minimum(classes[row], int(number))
        found = classes if kind == index.target_type else _best_beneath(kind, classes, index)
        index.memo[f"classes of {kind}"] = found
    return found


def _best_beneath(kind: str, classes: Integers, index: Index) -> Integers:
    low, high = index.interval(kind, index.target_type)
    best = [
        int(classes[a:b].min()) if b > a else NO_CLASS
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]
    return np.array(best, dtype=np.int64)
