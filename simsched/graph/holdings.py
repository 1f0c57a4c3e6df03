"""The units of each execution target as R_lite writes them: idsets by type.

Ids that occur twice on a target (GRUG numbers the cores of each socket from 0) and units of pools
without ids are numbered from 0 in containment order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simsched.formats.rfc.idset import Idset
from simsched.graph.resource_graph import children_map, execution_targets, pool_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph


@dataclass(frozen=True, slots=True)
class TargetHoldings:
    """One target: its vertex and pool, and for each type the ids at each leaf vertex."""

    vertex: str
    pool: Pool
    leaves: Mapping[str, Mapping[str, Idset]]

    @property
    def rank(self) -> int:
        """The rank of the target."""
        return int(self.pool.rank or 0)

    def ids(self, kind: str) -> Idset:
        """Return all ids of a type on this target."""
        sets = self.leaves[kind].values()
        return Idset.from_ranges(span for ids in sets for span in ids.ranges)


@dataclass(slots=True)
class Holdings:
    """All targets by rank, and the types that R_lite cannot write as they are.

    `renumbered` are types whose ids are not those of the graph, `uncounted` types of pools
    with a unit (memory in GB), which have no ids at all.
    """

    targets: list[TargetHoldings] = field(default_factory=list)
    renumbered: set[str] = field(default_factory=set)
    uncounted: set[str] = field(default_factory=set)


def holdings(graph: ResourceGraph) -> Holdings:
    """Return the units of each target of the graph, by ascending rank.  O(vertices)."""
    below = children_map(graph)
    inner = {pool_of(graph, key).type for key in below}
    found = Holdings()
    for vertex in execution_targets(graph, below):
        leaves = _leaves(graph, vertex, below, inner)
        numbered = {kind: _ids(kind, rows, found) for kind, rows in leaves.items()}
        kept = {kind: ids for kind, ids in numbered.items() if ids is not None}
        found.targets.append(TargetHoldings(vertex, pool_of(graph, vertex), kept))
    found.targets.sort(key=lambda target: target.rank)
    return found


def _leaves(
    graph: ResourceGraph, vertex: str, below: Mapping[str, list[str]], inner: Iterable[str]
) -> dict[str, list[tuple[str, Pool]]]:
    """Return the pools within a target, by type, in containment order."""
    found: dict[str, list[tuple[str, Pool]]] = {}
    stack = list(reversed(below.get(vertex, ())))
    while stack:
        key = stack.pop()
        pool = pool_of(graph, key)
        if pool.type not in inner:
            found.setdefault(pool.type, []).append((key, pool))
        stack.extend(reversed(below.get(key, ())))
    return found


def _ids(kind: str, rows: Sequence[tuple[str, Pool]], found: Holdings) -> dict[str, Idset] | None:
    """Return the unit ids at each leaf; None for pools that are measured, not counted."""
    if any(pool.unit for _, pool in rows):
        found.uncounted.add(kind)
        return None
    if own_ids([pool for _, pool in rows]) is not None:
        return {key: ids for key, pool in rows if (ids := _own_ids(pool)) is not None}
    found.renumbered.add(kind)
    return _afresh(rows)


def own_ids(pools: Sequence[Pool]) -> Idset | None:
    """Return the ids of all units of these pools; None unless each unit has one and all are distinct."""
    sets = [ids for pool in pools if (ids := _own_ids(pool)) is not None]
    whole = Idset.from_ranges(span for ids in sets for span in ids.ranges)
    complete = len(sets) == len(pools) and len(whole) == sum(pool.size for pool in pools)
    return whole if complete else None


def _own_ids(pool: Pool) -> Idset | None:
    if pool.ids is not None:
        return pool.ids
    return Idset(((pool.id, pool.id),)) if pool.size == 1 and pool.id is not None else None


def _afresh(rows: Sequence[tuple[str, Pool]]) -> dict[str, Idset]:
    numbered: dict[str, Idset] = {}
    first = 0
    for key, pool in rows:
        if pool.size:
            numbered[key] = Idset.from_range(first, first + pool.size - 1)
        first += pool.size
    return numbered
