"""Differences between two clusters, target by target and in their totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.formats.rfc.hostlist import encode_hosts
from simsched.graph.cluster import as_cluster
from simsched.graph.holdings import holdings
from simsched.graph.inspect.view import summary, units_of
from simsched.graph.resource_graph import CONTAINMENT, children_map, inside, pool_of, subsystems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.graph.cluster import ClusterLike
    from simsched.graph.resource_graph import ResourceGraph


@dataclass(frozen=True, slots=True)
class GraphDifference:
    """One difference: its subject `what`, and as text its two sides, or the one that has it."""

    what: str
    left: str | None
    right: str | None

    def __str__(self) -> str:
        return f"{self.what}: {self.left or 'none'} -> {self.right or 'none'}"


Differences = list[GraphDifference]


def diff(left: ClusterLike, right: ClusterLike) -> list[GraphDifference]:
    """Return the differences of two clusters; none if they are equal for a scheduler.

    Targets are compared by host: rank, status, properties, ids of units, amounts, localities.
    A difference that several targets share is listed once.
    """
    one, other = as_cluster(left).graph, as_cluster(right).graph
    return [*_of_totals(one, other), *_of_targets(one, other)]


def _of_totals(left: ResourceGraph, right: ResourceGraph) -> Iterator[GraphDifference]:
    one, other = summary(left), summary(right)
    for kind in dict.fromkeys((*one.units, *other.units)):
        before, after = one.units.get(kind), other.units.get(kind)
        if before != after:
            yield GraphDifference(f"total of {kind}", before, after)
    for name in dict.fromkeys((*one.subsystems, *other.subsystems)):
        if name == CONTAINMENT:
            continue
        sides = [str(_edges(graph, name)) if name in subsystems(graph) else None for graph in (left, right)]
        if sides[0] != sides[1]:
            yield GraphDifference(f"edges of {name}", *sides)


def _edges(graph: ResourceGraph, subsystem: str) -> int:
    return sum(len(row) for row in children_map(graph, subsystem).values())


def _of_targets(left: ResourceGraph, right: ResourceGraph) -> Iterator[GraphDifference]:
    one, other = _targets(left), _targets(right)
    for what, hosts in (("only left", one.keys() - other.keys()), ("only right", other.keys() - one.keys())):
        if hosts:
            ordered = [host for host in (*one, *other) if host in hosts]
            names = f"{encode_hosts(ordered)} ({len(hosts):,})"
            yield GraphDifference("targets", *((names, None) if what == "only left" else (None, names)))
    alike: dict[tuple[str, str | None, str | None], list[str]] = {}
    for host, facts in one.items():
        for change in _changes(facts, other.get(host, facts)):
            alike.setdefault(change, []).append(host)
    for (what, before, after), found in alike.items():
        yield GraphDifference(f"{encode_hosts(found)} {what}", before, after)


def _changes(
    before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[tuple[str, str | None, str | None]]:
    if before is after or before == after:
        return
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) != after.get(key):
            yield key, before.get(key), after.get(key)


def _targets(graph: ResourceGraph) -> dict[str, dict[str, str]]:
    """Return host → the facts about the target that a scheduler sees, as text by topic."""
    below = children_map(graph)
    found = {}
    for target in holdings(graph).targets:
        facts = {"rank": str(target.pool.rank), "status": target.pool.status}
        for name, value in target.pool.properties.items():
            facts[f"property {name}"] = value or "set"
        facts.update({kind: f"[{target.ids(kind)}]" for kind in target.leaves})
        within = (pool_of(graph, key) for key in inside(below, target.vertex))
        facts.update(units_of(pool for pool in within if pool.type not in target.leaves))
        found[target.pool.name] = facts
    return found
