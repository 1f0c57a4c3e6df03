"""The hardware as the audit sees it: ranks, hosts, properties, units.  Nothing of the matcher's.

It is read from the resource graph itself (or from an R document), not from the compiled
index, so that a fault in the index cannot hide itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from simsched.formats.rfc.idset import Idset
from simsched.graph.resource_graph import children_map, containment_root, execution_targets, pool_of
from simsched.simulation.audit.regions import leaves_of, regions_of, together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from simsched.formats.rfc.constraint import Constraint
    from simsched.graph.cluster import Cluster
    from simsched.graph.pool import Pool
    from simsched.simulation.audit.regions import Region


@dataclass(frozen=True, slots=True)
class Target:
    """One execution target: its host, its properties, and the ids of its units by type, as bit masks.

    `usable` are those of its units that are not down from the beginning.
    """

    host: str
    properties: frozenset[str]
    units: Mapping[str, int]
    usable: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Inventory:
    """All execution targets by rank; `type` is what they are called (mostly ``node``).

    `written` are the properties that R names, as the cluster spells them.
    `regions` are the parts of the machine and of targets by type: racks, switches, sockets;
    `above` says which of these types contain targets.
    """

    targets: Mapping[int, Target]
    type: str
    unit_types: frozenset[str]
    regions: Mapping[str, tuple[Region, ...]]
    above: frozenset[str]
    written: frozenset[str] = frozenset()

    @classmethod
    def of(cls, cluster: Cluster) -> Inventory:
        """Read a cluster's graph: everything beneath each execution target."""
        graph = cluster.graph
        below = children_map(graph)
        keys = execution_targets(graph, below)
        targets: dict[int, Target] = {}
        ranks: dict[str, int] = {}
        given: set[str] = set()
        for number, key in enumerate(keys):
            pool = pool_of(graph, key)
            rank = ranks[key] = number if pool.rank is None else pool.rank
            given.update(pool.properties)
            leaves = leaves_of(graph, below, key)
            units, usable = together(leaves), together(leaf for leaf in leaves if leaf.up)
            targets[rank] = Target(pool.name, frozenset(_spelled(pool)), units, usable)
        kinds = {type_ for target in targets.values() for type_ in target.units}
        kind = pool_of(graph, keys[0]).type if keys else pool_of(graph, containment_root(graph)).type
        regions, above = regions_of(graph, below, ranks, {r: t.usable for r, t in targets.items()})
        written = frozenset(name for name in given if not name.startswith("+"))
        return cls(targets, kind, frozenset(kinds), regions, above, written)

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
    from simsched.formats.rfc import constraint as rfc31

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
    from simsched.formats.rfc.constraint import And

    parts = [_judge(part) for part in constraint.args]
    join = all if isinstance(constraint, And) else any
    return lambda rank, target: not parts or join(part(rank, target) for part in parts)
