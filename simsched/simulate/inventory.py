"""The hardware as the audit sees it: ranks, hosts, properties, units.  Nothing of the matcher's.

It is read from the resource graph itself (or from an R document), not from the compiled
index, so that a fault in the index cannot hide itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from simsched.formats.idset import Idset
from simsched.graph.resource_graph import children_map, containment_root, execution_targets, pool_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from simsched.formats.constraint import Constraint
    from simsched.graph.cluster import Cluster
    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph


@dataclass(frozen=True, slots=True)
class Target:
    """One execution target: its host, its properties, and the ids of its units by type, as bit masks."""

    host: str
    properties: frozenset[str]
    units: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Inventory:
    """All execution targets by rank; `type` is what they are called (mostly ``node``)."""

    targets: Mapping[int, Target]
    type: str
    unit_types: frozenset[str]

    @classmethod
    def of(cls, cluster: Cluster) -> Inventory:
        """Read a cluster's graph: everything beneath each execution target."""
        graph = cluster.graph
        below = children_map(graph)
        keys = execution_targets(graph, below)
        targets: dict[int, Target] = {}
        for number, key in enumerate(keys):
            pool = pool_of(graph, key)
            rank = number if pool.rank is None else pool.rank
            names = frozenset(_spelled(pool))
            targets[rank] = Target(pool.name, names, _units(graph, below, key))
        kinds = {type_ for target in targets.values() for type_ in target.units}
        kind = pool_of(graph, keys[0]).type if keys else pool_of(graph, containment_root(graph)).type
        return cls(targets, kind, frozenset(kinds))

    def matching(self, constraint: Constraint) -> frozenset[int]:
        """Return the ranks that satisfy an RFC 31 constraint."""
        holds = _judge(constraint)
        return frozenset(rank for rank, target in self.targets.items() if holds(rank, target))


def _spelled(pool: Pool) -> Iterator[str]:
    """Yield a target's properties in every spelling: ``amd@gpu`` is also ``amd`` (RFC 20)."""
    for name, value in pool.properties.items():
        yield name
        yield name.partition("@")[0]
        if value:
            yield f"{name}={value}"


def _units(graph: ResourceGraph, below: Mapping[str, list[str]], target: str) -> dict[str, int]:
    """Return the ids of the leaf units beneath a target, by type, as bit masks."""
    leaves: dict[str, list[Pool]] = {}
    stack = list(below.get(target, ()))
    while stack:
        key = stack.pop()
        children = below.get(key, ())
        if children:
            stack.extend(children)
        else:
            pool = pool_of(graph, key)
            leaves.setdefault(pool.type, []).append(pool)
    return {type_: _mask(pools) for type_, pools in leaves.items()}


def _mask(pools: list[Pool]) -> int:
    """Return the unit ids of pools of one type; they count from 0 where ids do not tell them apart."""
    total = sum(pool.size for pool in pools)
    masks = [_own_mask(pool) for pool in pools]
    together = 0
    for mask in masks:
        together |= mask
    return together if together.bit_count() == total else (1 << total) - 1


def _own_mask(pool: Pool) -> int:
    if pool.ids is not None:
        return pool.ids.to_mask()
    if pool.size == 1:
        return 1 << (pool.id or 0)
    return (1 << pool.size) - 1


@lru_cache(maxsize=65_536)
def mask_of(text: str) -> int:
    """Return an idset's text as a bit mask."""
    return Idset.parse(text).to_mask()


@lru_cache(maxsize=65_536)
def ids_of(text: str) -> tuple[int, ...]:
    """Return an idset's text as numbers."""
    return tuple(Idset.parse(text))


def _judge(constraint: Constraint) -> Callable[[int, Target], bool]:
    """Return the predicate of a constraint over (rank, target)."""
    from simsched.formats import constraint as rfc31

    if isinstance(constraint, rfc31.And | rfc31.Or):
        return _judge_all(constraint)
    match constraint:
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
            inner = _judge(constraint.arg)
            return lambda rank, target: not inner(rank, target)
    value: bool = constraint.value
    return lambda _rank, _target: value


def _judge_all(constraint: Any) -> Callable[[int, Target], bool]:
    from simsched.formats.constraint import And

    parts = [_judge(part) for part in constraint.args]
    join = all if isinstance(constraint, And) else any
    return lambda rank, target: not parts or join(part(rank, target) for part in parts)
