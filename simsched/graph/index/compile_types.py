"""Preorder → vertex types and pool types, the arrays of the index.

Leaves of one unit, one parent and one status fold into one leaf pool, their ids in ascending order; a leaf
that represents several units is a leaf pool of its own.  All leaf pools of a type are counted in one unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ClusterError, FormatError
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_property
from simsched.formats.rfc.units import UNITS, convert, same_dimension, unit_of
from simsched.graph.index.reach import Spans, dominated_spans
from simsched.graph.index.types import ABOVE, BELOW, MAX_NAMED_UNITS, TARGET, PoolType, VertexType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.arrays import Bools, Integers
    from simsched.graph.index.preorder import Tree
    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph


def target_type_of(tree: Tree) -> str:
    """Return the one type of the execution targets.

    Raises
    ------
    ClusterError
        if they are of several types.
    """
    names: set[str] = {tree.pools[i].type for i in tree.targets.tolist()}
    if len(names) != 1:
        raise ClusterError(
            f"execution targets are of several types: {', '.join(sorted(names))}",
            expected="one type with ranks",
        )
    return names.pop()


def types_of(
    tree: Tree, target_type: str, dominators: set[str]
) -> tuple[dict[str, VertexType], dict[str, PoolType]]:
    """Return the arrays of every type: a vertex type if any of its vertices contains or dominates others.

    Raises
    ------
    ClusterError
        if pools of one type are measured in different dimensions, or if a vertex of the type of the
        execution targets is not one of them.
    """
    is_inner = {tree.pools[place].type for place in tree.inner.tolist()} | {target_type}
    if dominators:
        is_inner |= {pool.type for key, pool in zip(tree.keys, tree.pools, strict=True) if key in dominators}
    vertices: dict[str, VertexType] = {}
    pools: dict[str, PoolType] = {}
    for name, places in _places_by_type(tree):
        if name in is_inner:
            vertices[name] = _vertex_type(name, places, tree, target_type)
        else:
            pools[name] = pool_type(name, places, tree)
    return vertices, pools


def _places_by_type(tree: Tree) -> list[tuple[str, Integers]]:
    """Return the places of each type, ascending; types by their first place."""
    types = [pool.type for pool in tree.pools]
    codes = {name: code for code, name in enumerate(dict.fromkeys(types))}
    of_place = np.fromiter(map(codes.__getitem__, types), dtype=np.int64, count=len(types))
    order = np.argsort(of_place, kind="stable")
    ends = np.cumsum(np.bincount(of_place))
    return list(zip(codes, np.split(order, ends[:-1]), strict=True))


def _vertex_type(name: str, places: Integers, tree: Tree, target_type: str) -> VertexType:
    rows = places.tolist()
    target = tree.target[places]
    if name == target_type and len(places) != len(tree.targets):
        raise _not_a_target(places, tree)
    pools = [tree.pools[i] for i in rows]
    level = TARGET if name == target_type else BELOW if (target >= 0).all() else ABOVE
    return VertexType(
        name=name,
        level=level,
        keys=tuple([tree.keys[i] for i in rows]),
        names=tuple([pool.name for pool in pools]),
        pos=2 * places,  # even places; the odd ones are free for empty leaf pools (see `_align`)
        end=2 * tree.end[places],
        target=target,
        ids=np.array([-1 if pool.id is None else pool.id for pool in pools], dtype=np.int64),
        up=tree.up[places],
        sound=tree.sound[places],
    )


def _not_a_target(places: Integers, tree: Tree) -> ClusterError:
    """Return the error about the first vertex of the targets' type that is not an execution target."""
    place = np.setdiff1d(places, tree.targets).item(0)
    where, owner = f"vertex {tree.keys[place]!r}", tree.target.item(place)
    kind = tree.pools[place].type
    if owner < 0:
        return ClusterError(
            f"the {kind} is not an execution target, but others of its type are",
            where=where,
            expected=f"a rank for each {kind}, all in containment",
        )
    outer = tree.keys[tree.targets.item(owner)]
    return ClusterError(
        f"the {kind} is inside the execution target {outer!r}",
        where=where,
        expected=f"no {kind} inside another",
    )


def check_properties(tree: Tree) -> None:
    """Check the names of the properties of execution targets, which R carries.

    Raises
    ------
    ClusterError
        with the vertex, if RFC 20 forbids a name.
    """
    known: set[str] = set()
    for place in tree.targets.tolist():
        for name in tree.pools[place].properties.keys() - known:
            try:
                check_property(name)
            except FormatError as error:
                where = f"vertex {tree.keys[place]!r}"
                raise ClusterError(error.message, where=where, expected=error.expected) from None
            known.add(name)


def wide_spans(graph: ResourceGraph, tree: Tree, others: list[str]) -> dict[str, Spans]:
    """Return the spans of the vertices that dominate others outside containment."""
    if not others:
        return {}
    spans = zip(range(0, 2 * len(tree.keys), 2), (2 * tree.end).tolist(), strict=True)
    return dominated_spans(graph, dict(zip(tree.keys, spans, strict=True)), others)


_NO_IDS = Idset.from_ids(())


@dataclass(slots=True)
class LeafPools:
    """Leaf pools under construction, by place.

    `ids` is None for a leaf pool that is too large for its units to have ids.
    """

    pos: Integers
    size: Integers
    target: Integers
    up: Bools
    sound: Bools
    ids: list[Idset | None]
    keys: list[tuple[str, ...]]


def pool_type(name: str, places: Integers, tree: Tree) -> PoolType:
    """Return the leaf pools of the leaves of one type, which are at these places of preorder.

    Raises
    ------
    ClusterError
        if the leaves are measured in units that do not convert.
    """
    pools = [tree.pools[place] for place in places.tolist()]
    unit = common_unit(name, {pool.unit for pool in pools})
    found = _fold(places, pools, unit, tree)
    _number_within_targets(found)
    # every leaf pool is on a target, and no two are on the same one
    aligned = bool((found.target >= 0).all() and (np.diff(found.target) > 0).all())
    if aligned and len(found.pos) < len(tree.targets):
        found = _align(found, tree.targets)
    on = (found.target >= 0) & found.up
    per_target = np.zeros(len(tree.targets), dtype=np.int64)
    np.add.at(per_target, found.target[on], found.size[on])
    masks = {size: (1 << size) - 1 if size <= MAX_NAMED_UNITS else 0 for size in found.size.tolist()}
    named = max(masks) <= MAX_NAMED_UNITS
    ids = tuple(units or _NO_IDS for units in found.ids)
    distinct = set({id(units): units for units in ids}.values())
    return PoolType(
        name=name,
        unit=unit,
        aligned=aligned,
        named=named,
        pos=found.pos,
        size=found.size,
        target=found.target,
        up=found.up,
        sound=found.sound,
        ids=ids,
        keys=tuple(found.keys),
        per_target=per_target,
        total=int(found.size[found.up].sum()),
        uniform=next(iter(masks)) if len(masks) == 1 else None,
        full=[masks[size] for size in found.size.tolist()] if named else [],
        uniform_ids=ids[0] if len(distinct) == 1 else None,
    )


# --- units of measure ------------------------------------------------------------------


def common_unit(name: str, units: set[str]) -> str:
    """Return the unit that all pools of a type are counted in: their own, or the base of its dimension.

    Raises
    ------
    ClusterError
        if they do not convert into each other.

    >>> common_unit("memory", {"GB", "GiB"}), common_unit("power", {"W", "kW"}), common_unit("x", {"boxes"})
    ('B', 'W', 'boxes')
    """
    if len(units) == 1:
        return next(iter(units))
    if "" in units:
        raise ClusterError(
            f"some pools of type {name!r} have a unit and some have none", expected="one dimension"
        )
    one, *others = sorted(units)
    for other in others:
        if not same_dimension(one, other):
            raise ClusterError(
                f"some pools of type {name!r} are counted in {one!r} and some in {other!r}",
                expected="one dimension: units that convert, such as W and kW",
            )
    dimension = unit_of(one).dimension
    whole = all(unit_of(unit).factor.denominator == 1 for unit in units)
    return next(
        unit.name
        for unit in UNITS.values()
        if unit.dimension == dimension and (unit.factor == 1 if whole else unit.factor < 1)
    )


# --- folding ---------------------------------------------------------------------------


def _fold(places: Integers, pools: Sequence[Pool], unit: str, tree: Tree) -> LeafPools:
    """Fold single units of one parent, unit and status, in the order of their ids; others stay alone."""
    factor = {name: int(convert(1, name, unit)) for name in {pool.unit for pool in pools}}
    sizes = np.array([pool.size * factor[pool.unit] for pool in pools], dtype=np.int64)
    single = np.array(
        [pool.size == 1 and pool.ids is None and factor[pool.unit] == 1 for pool in pools], dtype=np.bool_
    )
    group, counts = _groups(places, pools, single, tree)
    given = np.array([-1 if pool.id is None else pool.id for pool in pools], dtype=np.int64)
    by_place = np.argsort(group, kind="stable")
    by_id = np.lexsort((given, group))
    starts = np.cumsum(counts) - counts
    # Where all leaves of a group have distinct ids, unit i is the i-th id; else ids are made up, and
    # the leaves stay in graph order.
    ascending, groups = given[by_id], group[by_id]
    twice = np.zeros(len(given), dtype=np.bool_)
    twice[1:] = (ascending[1:] == ascending[:-1]) & (groups[1:] == groups[:-1])
    known = (ascending[starts] >= 0) & ~np.logical_or.reduceat(twice, starts)
    order = np.where(np.repeat(known, counts), by_id, by_place)
    in_order, size = given[order].tolist(), np.add.reduceat(sizes[order], starts)
    keys = [tree.keys[place] for place in places[order].tolist()]
    first, ends = by_place[starts], starts + counts
    folded = single[first]
    ids = [
        _first_ids(units) if made else _unit_ids(pools[leaf], units)
        for leaf, units, made in zip(first.tolist(), size.tolist(), folded.tolist(), strict=True)
    ]
    for row in np.flatnonzero(known & folded).tolist():
        ids[row] = _ids_of(tuple(in_order[starts[row] : ends[row]]))
    at = places[first]
    leaves = [tuple(keys[low:high]) for low, high in zip(starts.tolist(), ends.tolist(), strict=True)]
    return LeafPools(2 * at, size, tree.target[at], tree.up[at], tree.sound[at], ids, leaves)


def _unit_ids(pool: Pool, units: int) -> Idset | None:
    """Return the ids of the units of a pool that stays alone; None if they are too many to have any."""
    if units > MAX_NAMED_UNITS:
        return None
    return pool.ids if pool.ids is not None and pool.size == units else _first_ids(units)


def _groups(places: Integers, pools: Sequence[Pool], single: Bools, tree: Tree) -> tuple[Integers, Integers]:
    """Return the group of each leaf and the size of each group, by place.

    A leaf without parent is a group, and so is one that is not `single`.
    """
    if not single.any():
        return np.arange(len(pools)), np.ones(len(pools), dtype=np.int64)
    codes = {name: code for code, name in enumerate({pool.unit for pool in pools})}
    unit = np.array([codes[pool.unit] for pool in pools], dtype=np.int64) if len(codes) > 1 else 0
    parent = tree.parent[places]
    alone = -1 - places  # a number of its own for each leaf
    parent = np.where(single & (parent >= 0), parent, alone)
    status = 2 * tree.up[places].astype(np.int64) + tree.sound[places]
    _, first, group, counts = np.unique(
        (parent * len(codes) + unit) * 4 + status, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return number[group.reshape(-1)], counts[order]


@lru_cache(maxsize=1024)
def _first_ids(size: int) -> Idset:
    return Idset.from_range(0, size - 1) if size else _NO_IDS


@lru_cache(maxsize=1024)
def _ids_of(ids: tuple[int, ...]) -> Idset:
    return Idset.from_ids(ids)


# --- within targets --------------------------------------------------------------------


def _number_within_targets(leaf_pools: LeafPools) -> None:
    """Renumber units on targets where two leaf pools of the type share an id (ids local to sockets)."""
    named = [row for row, ids in enumerate(leaf_pools.ids) if ids is not None]
    target = leaf_pools.target[named]
    edges = np.flatnonzero(np.diff(target, prepend=-2, append=-2)).tolist()
    known: dict[tuple[int, ...], tuple[list[Idset], list[Idset]]] = {}
    for low, high in pairwise(edges):
        if high - low == 1 or target[low] < 0:
            continue
        rows = named[low:high]
        sets = [ids for row in rows if (ids := leaf_pools.ids[row]) is not None]
        mark = tuple(map(id, sets))
        if mark not in known:
            # the old sets are kept, so that no two of them get one id()
            known[mark] = (sets, _numbered(sets))
        for row, ids in zip(rows, known[mark][1], strict=True):
            leaf_pools.ids[row] = ids


def _numbered(sets: list[Idset]) -> list[Idset]:
    """Return the sets as they are if they are disjoint, else with consecutive ids from 0 on."""
    ranges = sorted(span for ids in sets for span in ids.ranges)
    if all(before[1] < after[0] for before, after in pairwise(ranges)):
        return sets
    found, start = [], 0
    for ids in sets:
        found.append(Idset.from_range(start, start + len(ids) - 1) if ids else ids)
        start += len(ids)
    return found


def _align(leaf_pools: LeafPools, targets: Integers) -> LeafPools:
    """Put one leaf pool on every target that has none: an empty one, right after the target."""
    here = leaf_pools.target
    found = LeafPools(
        pos=2 * targets + 1,
        size=np.zeros(len(targets), dtype=np.int64),
        target=np.arange(len(targets)),
        up=np.ones(len(targets), dtype=np.bool_),
        sound=np.ones(len(targets), dtype=np.bool_),
        ids=[_NO_IDS] * len(targets),
        keys=[()] * len(targets),
    )
    # An aligned type has at most one leaf pool per target, so `here` is a distinct row for each
    found.pos[here], found.size[here] = leaf_pools.pos, leaf_pools.size
    found.up[here], found.sound[here] = leaf_pools.up, leaf_pools.sound
    for row, ordinal in enumerate(here.tolist()):
        found.ids[ordinal], found.keys[ordinal] = leaf_pools.ids[row], leaf_pools.keys[row]
    return found
