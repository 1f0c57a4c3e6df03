"""The hardware as the audit reads it: ranks, hosts, properties, units, and regions such as racks and sockets.

It is read from the resource graph and not from the compiled index, so that the audit finds a fault in
the index.  A region contains all units below one vertex that is neither an execution target nor a unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.idset import Idset
from simsched.graph.resource_graph import (
    CONTAINMENT,
    children_map,
    children_maps,
    containment_root,
    execution_targets,
    inside,
    pools,
    subsystem_paths,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from simsched.formats.rfc.constraint import Constraint
    from simsched.graph.cluster import Cluster
    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph

#: rank → type → units, as bit masks
Region: TypeAlias = "Mapping[int, Mapping[str, int]]"
Below: TypeAlias = "Mapping[str, list[str]]"


@dataclass(frozen=True, slots=True)
class ExecutionTarget:
    """One execution target: its host, its properties, and the ids of its units by type, as bit masks.

    `usable` are its units that are up at the beginning; `up` is whether the target itself is.
    """

    host: str
    properties: frozenset[str]
    units: Mapping[str, int]
    usable: Mapping[str, int]
    up: bool = True


@dataclass(frozen=True, slots=True)
class Inventory:
    """All execution targets by rank; `type` is their type, mostly ``node``.

    `kinds` is (type, kind) → rank → the units of that kind, where a target has units of several kinds.
    `written` are the properties that R lists, as the cluster spells them.  `regions` are the parts of
    the machine and of targets by type: racks, switches, sockets.  `above` are the types of regions
    that contain targets.  `memory` is the unit of memory ("" for none), None without memory.
    `pools` are the pools on targets by their containment paths, as rank, type and units: R names an amount of
    those with very many units.
    """

    targets: Mapping[int, ExecutionTarget]
    type: str
    unit_types: frozenset[str]
    regions: Mapping[str, tuple[Region, ...]]
    above: frozenset[str]
    written: frozenset[str] = frozenset()
    memory: str | None = None
    pools: Mapping[str, tuple[int, str, int]] = field(default_factory=dict)
    kinds: Mapping[tuple[str, str], Mapping[int, int]] = field(default_factory=dict)
    alike: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster) -> Inventory:
        """Read a cluster's graph: everything below each execution target."""
        graph = cluster.graph
        below, every, root = children_map(graph), dict(pools(graph)), containment_root(graph)
        is_up = {root: every[root].status == "up"}  # with all that contains it
        for key, _ in walk(graph):
            for child in below.get(key, ()):
                is_up[child] = is_up[key] and every[child].status == "up"
        wide = {pool.type for pool in every.values() if pool.size >= WIDE}
        paths = subsystem_paths(graph) if wide else {}
        targets: dict[int, ExecutionTarget] = {}
        ranks: dict[str, int] = {}
        amounts: dict[str, tuple[int, str, int]] = {}
        typed: dict[tuple[str, str], dict[int, int]] = {}
        classes: dict[Any, int] = {}
        alike: dict[int, int] = {}
        within: dict[str, list[Region]] = {}
        keys = execution_targets(graph, below)
        for number, key in enumerate(keys):
            pool = every[key]
            rank = ranks[key] = number if pool.rank is None else pool.rank
            leaves = leaves_of(every, below, key)
            for leaf in leaves:
                for name in every[leaf.path[-1]].properties:
                    if f"{name}@{leaf.type}" in pool.properties:
                        masks = typed.setdefault((leaf.type, name), {})
                        masks[rank] = masks.get(rank, 0) | leaf.mask
                if leaf.type in wide:
                    amounts[paths[leaf.path[-1]]] = rank, leaf.type, leaf.mask
            working = [leaf for leaf in leaves if is_up[leaf.path[-1]]]
            units, usable = together(leaves), together(working)
            targets[rank] = ExecutionTarget(pool.name, frozenset(_spelled(pool)), units, usable, is_up[key])
            alike[rank] = classes.setdefault((_counts(units), _counts(usable)), len(classes))
            for vertex in inside(below, key):
                part = together(leaf for leaf in working if vertex in leaf.path) if vertex in below else {}
                # if all its units are down, it can be allocated all the same, and R does not list it
                if part or (vertex in below and is_up[vertex]):
                    within.setdefault(every[vertex].type, []).append({rank: part} if part else {})
        regions = _regions_above(graph, ranks, targets)
        return cls(
            targets,
            every[keys[0] if keys else root].type,
            frozenset(type_ for target in targets.values() for type_ in target.units),
            {type_: (*regions.get(type_, ()), *within.get(type_, ())) for type_ in {**regions, **within}},
            frozenset(regions),
            frozenset(name for key in keys for name in every[key].properties if not name.startswith("+")),
            next((pool.unit or "" for pool in every.values() if pool.type == "memory"), None),
            amounts,
            typed,
            alike,
        )

    def matching(self, constraint: Constraint) -> frozenset[int]:
        """Return the ranks that satisfy an RFC 31 constraint."""
        every = frozenset(self.targets)
        match constraint:
            case rfc31.And():
                return every.intersection(*map(self.matching, constraint.args))
            case rfc31.Or():
                return frozenset().union(*map(self.matching, constraint.args)) if constraint.args else every
            case rfc31.Not():
                return every - self.matching(constraint.arg)
            case rfc31.Properties():
                wanted = frozenset(constraint.names)
                return frozenset(rank for rank in every if wanted <= self.targets[rank].properties)
            case rfc31.Hosts():
                hosts = frozenset(constraint.hostlist) or {target.host for target in self.targets.values()}
                return frozenset(rank for rank in every if self.targets[rank].host in hosts)
            case rfc31.Ranks():
                return frozenset(rank for rank in every if not constraint.idset or rank in constraint.idset)
        return every if constraint.value else frozenset()


def _spelled(pool: Pool) -> Iterator[str]:
    """Yield a target's properties in every spelling: ``amd@gpu`` is also ``amd`` (RFC 20)."""
    for name, value in pool.properties.items():
        yield name
        yield name.partition("@")[0]
        if value:
            yield f"{name}={value}"


def _counts(units: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return (type, number) of the units of a target, by type."""
    return tuple(sorted((type_, mask.bit_count()) for type_, mask in units.items() if mask))


def lowest(mask: int, count: int) -> int:
    """Return the lowest bits of a mask, at most `count` of them."""
    ids = WideMask.of(mask).ids
    return WideMask(ids.take(min(count, len(ids))))


class WideMask(int):
    """A bit mask held as ranges of bits, with the operations that the audit uses: memory has many units.

    >>> some = WideMask(Idset.parse("0-9999999999"))
    >>> (some & ~WideMask(Idset.parse("5-9999999998"))).bit_count(), bool(3 & ~some), (1 | some) == some
    (6, False, True)
    """

    ids: Idset
    inverted: bool

    def __new__(cls, ids: Idset, *, inverted: bool = False) -> WideMask:
        """Make a mask of these bits, or of all others."""
        made = super().__new__(cls)
        made.ids, made.inverted = ids, inverted
        return made

    @classmethod
    def of(cls, mask: int) -> WideMask:
        """Return any mask as one of ranges."""
        if isinstance(mask, WideMask):
            return mask
        return cls(Idset.from_mask(mask if mask >= 0 else ~mask), inverted=mask < 0)

    def __and__(self, other: int) -> WideMask:
        left, right = self, WideMask.of(other)
        if left.inverted:
            left, right = right, left
        return WideMask(left.ids - right.ids if right.inverted else left.ids & right.ids)

    def __or__(self, other: int) -> WideMask:
        return WideMask(self.ids | WideMask.of(other).ids)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> WideMask:
        return WideMask(self.ids, inverted=not self.inverted)

    def __bool__(self) -> bool:
        return self.inverted or bool(self.ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and WideMask.of(other).ids == self.ids

    def __hash__(self) -> int:
        return hash(self.ids)

    def bit_count(self) -> int:
        """Return the number of bits."""
        return len(self.ids)


WIDE = 2**16
"""Bits from which on a mask is held as ranges."""


def _mask(ids: Idset) -> int:
    return WideMask(ids) if ids and ids.last >= WIDE else ids.to_mask()


@lru_cache(maxsize=65_536)
def mask_of(text: str) -> int:
    """Return an idset's text as a bit mask."""
    return _mask(Idset.parse(text))


@lru_cache(maxsize=65_536)
def ids_of(text: str) -> tuple[int, ...]:
    """Return an idset's text as numbers."""
    return tuple(Idset.parse(text))


# --- regions -------------------------------------------------------------------------


def _regions_above(
    graph: ResourceGraph, ranks: Mapping[str, int], targets: Mapping[int, ExecutionTarget]
) -> dict[str, list[Region]]:
    """Return the regions that contain targets, directly or through one other subsystem, by type."""
    others = dict(children_maps(graph))
    below = others.pop(CONTAINMENT, {})
    in_targets = _closure(ranks, below)
    found: dict[str, list[Region]] = {}
    empty: list[str] = []
    for key, pool in pools(graph):
        if key not in in_targets:
            reached = _closure([key], below)
            for other in others.values():
                reached |= _closure(_closure([key], other), below)
            mine = {ranks[vertex] for vertex in reached if vertex in ranks}
            if mine:
                found.setdefault(pool.type, []).append({rank: targets[rank].usable for rank in mine})
            else:
                empty.append(pool.type)
    for type_ in empty:  # an empty rack can be allocated, and R does not list it
        if type_ in found:
            found[type_].append({})
    return found


def touches(held: Region, region: Region) -> bool:
    """Whether any held unit is in a region.

    >>> touches({0: {"core": 3}}, {0: {"core": 12}}), touches({0: {"core": 3}}, {0: {"core": 14}})
    (False, True)
    """
    return any(
        rank in held and any(mask & held[rank].get(type_, 0) for type_, mask in masks.items())
        for rank, masks in region.items()
    )


def _closure(begin: Iterable[str], below: Below) -> set[str]:
    found = set(begin)
    stack = list(found)
    while stack:
        for child in below.get(stack.pop(), ()):
            if child not in found:
                found.add(child)
                stack.append(child)
    return found


class LeafUnits(NamedTuple):
    """Units of one type at one vertex within a target; `path` are the vertices from the target down to it."""

    type: str
    mask: int
    path: tuple[str, ...]


def leaves_of(every: Mapping[str, Pool], below: Below, target: str) -> list[LeafUnits]:
    """Return the leaves of a target; units are numbered from 0 if their ids are not distinct."""
    leaves: list[LeafUnits] = []
    stack: list[tuple[str, ...]] = [(target,)]
    taken: dict[str, int] = {}
    clash = set()
    while stack:
        path = stack.pop()
        pool, children = every[path[-1]], below.get(path[-1])
        if children:
            stack.extend((*path, child) for child in reversed(children))
        elif len(path) > 1:
            begin = (pool.id or 0) if pool.size == 1 else 0
            mask = _range(begin, pool.size) if pool.ids is None else _mask(pool.ids)
            if taken.get(pool.type, 0) & mask:
                clash.add(pool.type)
            taken[pool.type] = taken.get(pool.type, 0) | mask
            leaves.append(LeafUnits(pool.type, mask, path))
    first = dict.fromkeys(clash, 0)
    for at, leaf in enumerate(leaves):
        if leaf.type in clash:
            size = every[leaf.path[-1]].size
            leaves[at] = leaf._replace(mask=_range(first[leaf.type], size))
            first[leaf.type] += size
    return leaves


def _range(begin: int, size: int) -> int:
    return _mask(Idset.from_range(begin, begin + size - 1)) if size else 0


def together(leaves: Iterable[LeafUnits]) -> dict[str, int]:
    """Return the units of some leaves by type."""
    found: dict[str, int] = {}
    for leaf in leaves:
        found[leaf.type] = found.get(leaf.type, 0) | leaf.mask
    return found
