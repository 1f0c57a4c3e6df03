"""The hardware as the audit reads it: ranks, hosts, properties, units, and regions such as racks and sockets.

It is read from the resource graph and not from the compiled index, so that the audit finds a fault in
the index.  A region contains all units below one vertex that is neither an execution target nor a unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from simsched.formats.rfc.idset import Idset
from simsched.graph.resource_graph import (
    CONTAINMENT,
    children_map,
    containment_root,
    execution_targets,
    pool_of,
    subsystems,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

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
        below = children_map(graph)
        keys = execution_targets(graph, below)
        targets: dict[int, ExecutionTarget] = {}
        ranks: dict[str, int] = {}
        given: set[str] = set()
        pools: dict[str, tuple[int, str, int]] = {}
        above = {child: key for key, children in below.items() for child in children}
        sizes = (pool_of(graph, key) for key in graph.nodes)
        wide = {pool.type for pool in sizes if pool.size >= WIDE}
        typed: dict[tuple[str, str], dict[int, int]] = {}
        for number, key in enumerate(keys):
            pool = pool_of(graph, key)
            rank = ranks[key] = number if pool.rank is None else pool.rank
            given.update(pool.properties)
            leaves = leaves_of(graph, below, key)
            for leaf in leaves:
                for name in pool_of(graph, leaf.path[-1]).properties:
                    if f"{name}@{leaf.type}" in pool.properties:
                        masks = typed.setdefault((leaf.type, name), {})
                        masks[rank] = masks.get(rank, 0) | leaf.mask
            up = all(pool_of(graph, one).status == "up" for one in (*_ancestors(key, above), key))
            units, usable = together(leaves), together(leaf for leaf in leaves if leaf.up and up)
            for leaf in leaves:
                if leaf.type in wide:
                    names = [pool_of(graph, vertex).name for vertex in (*_ancestors(key, above), *leaf.path)]
                    pools["/" + "/".join(names)] = rank, leaf.type, leaf.mask
            targets[rank] = ExecutionTarget(pool.name, frozenset(_spelled(pool)), units, usable, up)
        kinds = {type_ for target in targets.values() for type_ in target.units}
        kind = pool_of(graph, keys[0]).type if keys else pool_of(graph, containment_root(graph)).type
        regions, outer = regions_of(graph, below, ranks, {r: t.usable for r, t in targets.items()})
        written = frozenset(name for name in given if not name.startswith("+"))
        units_of = (pool_of(graph, key) for key in graph.nodes)
        memory = next((pool.unit or "" for pool in units_of if pool.type == "memory"), None)
        classes: dict[Any, int] = {}
        alike = {
            rank: classes.setdefault((counts_of(target.units), counts_of(target.usable)), len(classes))
            for rank, target in targets.items()
        }
        return cls(
            *(targets, kind, frozenset(kinds), regions, outer, written, memory, pools, typed),
            alike,
        )

    def matching(self, constraint: Constraint) -> frozenset[int]:
        """Return the ranks that satisfy an RFC 31 constraint."""
        holds = _predicate(constraint)
        return frozenset(rank for rank, target in self.targets.items() if holds(rank, target))


def _ancestors(key: str, above: Mapping[str, str]) -> list[str]:
    """Return the vertices that contain a vertex, the outermost first."""
    found: list[str] = []
    while (key := above.get(key, "")) and key not in found:
        found.append(key)
    return found[::-1]


def _spelled(pool: Pool) -> Iterator[str]:
    """Yield a target's properties in every spelling: ``amd@gpu`` is also ``amd`` (RFC 20)."""
    for name, value in pool.properties.items():
        yield name
        yield name.partition("@")[0]
        if value:
            yield f"{name}={value}"


def counts_of(units: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
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


def _predicate(constraint: Constraint) -> Callable[[int, ExecutionTarget], bool]:
    """Return the predicate of a constraint over (rank, target)."""
    from simsched.formats.rfc import constraint as rfc31

    match constraint:
        case rfc31.And() | rfc31.Or():
            parts = [_predicate(part) for part in constraint.args]
            join = all if isinstance(constraint, rfc31.And) else any
            return lambda rank, target: not parts or join(part(rank, target) for part in parts)
        case rfc31.Properties():
            wanted = frozenset(constraint.names)
            return lambda _rank, target: wanted <= target.properties
        case rfc31.Hosts():
            hosts = frozenset(constraint.hostlist)
            return lambda _rank, target: not hosts or target.host in hosts
        case rfc31.Ranks():
            ranks = constraint.idset
            return lambda rank, _target: not ranks or rank in ranks
        case rfc31.Not():
            inner = _predicate(constraint.arg)
            return lambda rank, target: not inner(rank, target)
    value: bool = constraint.value
    return lambda _rank, _target: value


# --- regions -------------------------------------------------------------------------


def regions_of(
    graph: ResourceGraph,
    below: Below,
    ranks: Mapping[str, int],
    units: Mapping[int, Mapping[str, int]],
) -> tuple[dict[str, tuple[Region, ...]], frozenset[str]]:
    """Return the regions by type, and the types whose regions contain targets.

    `below` is containment, `ranks` the rank of each target, `units` the usable units of each rank.
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
    for type_ in empty:  # an empty rack can be allocated, and R does not list it
        if type_ in above:
            found[type_].append({})
    for key, rank in ranks.items():
        inner = list(_inner(below, key))
        leaves = list(leaves_of(graph, below, key)) if inner else []
        for vertex in inner:
            inside_it = [leaf for leaf in leaves if vertex in leaf.path]
            part = together(leaf for leaf in inside_it if leaf.up)
            way = inside_it[0].path[: inside_it[0].path.index(vertex) + 1]
            # if all its units are down, it can be allocated all the same, and R does not list it
            if part or all(pool_of(graph, one).status == "up" for one in way):
                found.setdefault(pool_of(graph, vertex).type, []).append({rank: part} if part else {})
    return {type_: tuple(regions) for type_, regions in found.items()}, above


def touches(held: Region, region: Region) -> bool:
    """Whether any held unit is in a region.

    >>> touches({0: {"core": 3}}, {0: {"core": 12}}), touches({0: {"core": 3}}, {0: {"core": 14}})
    (False, True)
    """
    return any(
        rank in held and any(mask & held[rank].get(type_, 0) for type_, mask in masks.items())
        for rank, masks in region.items()
    )


def _reached(vertex: str, below: Below, others: list[dict[str, list[str]]]) -> set[str]:
    """Return the vertices that a vertex contains, directly or through one other subsystem."""
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
    """Yield the inner vertices of a target, which have vertices below them."""
    stack = list(below.get(target, ()))
    while stack:
        key = stack.pop()
        if below.get(key):
            yield key
            stack.extend(below[key])


class LeafUnits(NamedTuple):
    """Units of one type at one vertex within a target; `path` are the vertices from the target down to it."""

    type: str
    mask: int
    up: bool
    path: tuple[str, ...]


def leaves_of(graph: ResourceGraph, below: Below, target: str) -> list[LeafUnits]:
    """Return the leaves of a target; units are numbered from 0 if their ids are not distinct."""
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
            mask = _range(begin, pool.size)
        leaves.append(LeafUnits(pool.type, mask, up, path))
    return leaves


def _clashing(pools: Iterable[Pool]) -> set[str]:
    """Return the types in which two pools share a unit id."""
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
        return _mask(pool.ids)
    return _range(pool.id or 0, 1) if pool.size == 1 else _range(0, pool.size)


def _range(begin: int, size: int) -> int:
    return _mask(Idset.from_range(begin, begin + size - 1)) if size else 0


def together(leaves: Iterable[LeafUnits]) -> dict[str, int]:
    """Return the units of some leaves by type."""
    found: dict[str, int] = {}
    for leaf in leaves:
        found[leaf.type] = found.get(leaf.type, 0) | leaf.mask
    return found
