"""The parts of a machine as the audit sees them: racks, switches, sockets, and what lies in each.

A region is what is beneath one vertex that is neither an execution target nor a unit: rank →
type → bit mask of units.  Like the rest of the inventory it is read from the resource graph
and not from the compiled index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from simsched.graph.resource_graph import CONTAINMENT, children_map, pool_of, subsystems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph

#: rank → type → units, as bit masks
Region: TypeAlias = "Mapping[int, Mapping[str, int]]"
Below: TypeAlias = "Mapping[str, list[str]]"


def regions_of(
    graph: ResourceGraph,
    below: Below,
    ranks: Mapping[str, int],
    units: Mapping[int, Mapping[str, int]],
) -> tuple[dict[str, tuple[Region, ...]], frozenset[str]]:
    """Return the regions of every type that divides the machine or a target, and which contain targets.

    `below` is containment, `ranks` the rank of each target, `units` what each rank has.
    """
    found: dict[str, list[Region]] = {}
    others = [children_map(graph, name) for name in subsystems(graph) if name != CONTAINMENT]
    inside = _closure(ranks, below)
    empty: list[str] = []
    for key in graph.nodes:
        if key in inside:
            continue
        mine = {ranks[vertex] for vertex in _reached(key, below, others) if vertex in ranks}
        if mine:
            found.setdefault(pool_of(graph, key).type, []).append({rank: units[rank] for rank in mine})
        else:
            empty.append(pool_of(graph, key).type)
    above = frozenset(found)
    for type_ in empty:  # a rack without a node: it can be had, and R says nothing of it
        if type_ in above:
            found[type_].append({})
    for key, rank in ranks.items():
        inner = list(_inner(below, key))
        leaves = [leaf for leaf in leaves_of(graph, below, key) if leaf.up] if inner else []
        for vertex in inner:
            part = together(leaf for leaf in leaves if vertex in leaf.path)
            if not part:
                continue  # it is down
            found.setdefault(pool_of(graph, vertex).type, []).append({rank: part})
    return {type_: tuple(regions) for type_, regions in found.items()}, above


def touches(held: Region, region: Region) -> bool:
    """Whether anything that is held lies in a region.

    >>> touches({0: {"core": 3}}, {0: {"core": 12}}), touches({0: {"core": 3}}, {0: {"core": 14}})
    (False, True)
    """
    return any(
        rank in held and any(mask & held[rank].get(type_, 0) for type_, mask in masks.items())
        for rank, masks in region.items()
    )


def _reached(vertex: str, below: Below, others: list[dict[str, list[str]]]) -> set[str]:
    """Return what a vertex contains, or dominates in one other subsystem with all that this contains."""
    found = _closure([vertex], below)
    for other in others:
        found |= _closure(_closure([vertex], other), below)
    return found


def _closure(begin: Iterable[str], below: Below) -> set[str]:
    found = set(begin)
    stack = list(found)
    while stack:
        for child in below.get(stack.pop(), ()):
            if child not in found:
                found.add(child)
                stack.append(child)
    return found


def _inner(below: Below, target: str) -> Iterator[str]:
    """Yield what lies within a target and has something beneath it."""
    stack = list(below.get(target, ()))
    while stack:
        key = stack.pop()
        if below.get(key):
            yield key
            stack.extend(below[key])


class Leaf(NamedTuple):
    """Units of one type at one vertex within a target; `path` are the vertices from the target down to it."""

    type: str
    mask: int
    up: bool
    path: tuple[str, ...]


def leaves_of(graph: ResourceGraph, below: Below, target: str) -> list[Leaf]:
    """Return the leaves of a target; units count on from 0 where their ids do not tell them apart."""
    found: list[tuple[Pool, bool, tuple[str, ...]]] = []
    stack: list[tuple[tuple[str, ...], bool]] = [((target,), True)]
    while stack:
        path, up = stack.pop()
        pool, children = pool_of(graph, path[-1]), below.get(path[-1])
        up = up and pool.status == "up"
        if children:
            stack.extend(((*path, child), up) for child in reversed(children))
        elif len(path) > 1:
            found.append((pool, up, path))
    clash = _clashing(pool for pool, _, _ in found)
    first: dict[str, int] = {}
    leaves = []
    for pool, up, path in found:
        mask = _own_mask(pool)
        if pool.type in clash:
            begin = first.get(pool.type, 0)
            first[pool.type] = begin + pool.size
            mask = ((1 << pool.size) - 1) << begin
        leaves.append(Leaf(pool.type, mask, up, path))
    return leaves


def _clashing(pools: Iterable[Pool]) -> set[str]:
    """Return the types of which two pools have a unit id in common."""
    taken: dict[str, int] = {}
    clash = set()
    for pool in pools:
        mask = _own_mask(pool)
        if taken.get(pool.type, 0) & mask:
            clash.add(pool.type)
        taken[pool.type] = taken.get(pool.type, 0) | mask
    return clash


def _own_mask(pool: Pool) -> int:
    if pool.ids is not None:
        return pool.ids.to_mask()
    if pool.size == 1:
        return 1 << (pool.id or 0)
    return (1 << pool.size) - 1


def together(leaves: Iterable[Leaf]) -> dict[str, int]:
    """Return the units of some leaves by type."""
    found: dict[str, int] = {}
    for leaf in leaves:
        found[leaf.type] = found.get(leaf.type, 0) | leaf.mask
    return found
