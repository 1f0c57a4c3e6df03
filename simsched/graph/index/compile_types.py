"""Preorder → vertex types and pool types, the arrays of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ClusterError, FormatError
from simsched.formats.rfc.names import check_property
from simsched.graph.index.leaf_pools import pool_type
from simsched.graph.index.reach import Spans, dominated_spans
from simsched.graph.index.types import ABOVE, BELOW, TARGET, PoolType, VertexType

if TYPE_CHECKING:
    from simsched.graph.index.preorder import Tree
    from simsched.graph.index.types import Ints
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


def _places_by_type(tree: Tree) -> list[tuple[str, Ints]]:
    """Return the places of each type, ascending; types by their first place."""
    types = [pool.type for pool in tree.pools]
    codes = {name: code for code, name in enumerate(dict.fromkeys(types))}
    of_place = np.fromiter(map(codes.__getitem__, types), dtype=np.int64, count=len(types))
    order = np.argsort(of_place, kind="stable")
    ends = np.cumsum(np.bincount(of_place))
    return list(zip(codes, np.split(order, ends[:-1]), strict=True))


def _vertex_type(name: str, places: Ints, tree: Tree, target_type: str) -> VertexType:
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
        pos=2 * places,  # even places; the odd ones are free for empty leaf pools (see `leaf_pools`)
        end=2 * tree.end[places],
        target=target,
        ids=np.array([-1 if pool.id is None else pool.id for pool in pools], dtype=np.int64),
        up=tree.up[places],
        sound=tree.sound[places],
    )


def _not_a_target(places: Ints, tree: Tree) -> ClusterError:
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
