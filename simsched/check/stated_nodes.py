"""A description of the machine as a list of nodes, the same for R, JGF and every other format.

R that holds a graph is two descriptions, which may contradict each other: each is read by itself, where
`graph.build.r_with_graph` would refuse the document.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simsched.formats.rfc.units import is_unit, unit_of
from simsched.graph.cluster import Cluster
from simsched.graph.resource_graph import children_map, containment_root, execution_targets, pool_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.formats.cluster.rset import ResourceSet
    from simsched.graph.resource_graph import ResourceGraph

R, GRAPH = "R", "graph"

COUNTED = ("core", "gpu")
"""Types that every description counts, also where they have parts (hardware threads)."""


@dataclass(frozen=True, slots=True)
class StatedNode:
    """One node as a description states it.

    `rank` is None where the description has no ranks.  `units` are those of each type below it, in bytes
    and other base units where a graph has units.  `kind` is its type, which is not ``node`` for the storage
    servers of a graph.
    """

    host: str
    rank: int | None
    properties: frozenset[str]
    units: Mapping[str, int]
    kind: str = "node"


@dataclass(frozen=True)
class StatedMachine:
    """One description: its place, its kind (``R``, ``graph``, ``recipe`` …), its nodes, and its cluster."""

    where: str
    kind: str
    nodes: tuple[StatedNode, ...]
    cluster: Cluster

    @cached_property
    def by_host(self) -> Mapping[str, StatedNode]:
        """The nodes by host; of several on one host, the first."""
        found: dict[str, StatedNode] = {}
        for node in self.nodes:
            found.setdefault(node.host, node)
        return found

    @cached_property
    def totals(self) -> Mapping[str, int]:
        """The units of each type on all nodes."""
        found: Counter[str] = Counter()
        for node in self.nodes:
            found.update(node.units)
        return found


def machine_of_r(rset: ResourceSet, where: str, name: str) -> StatedMachine:
    """Return R_lite as a description of its own."""
    hosts = iter(rset.hosts)
    names: dict[int, list[str]] = {}
    for label, ranks in rset.properties.items():
        for rank in ranks:
            names.setdefault(rank, []).append(label)
    units = {
        rank: {kind: len(ids) for kind, ids in group.children.items()}
        for group in rset.groups
        for rank in group.ranks
    }
    nodes = tuple(
        StatedNode(next(hosts), rank, frozenset(names.get(rank, ())), units[rank]) for rank in sorted(units)
    )
    return StatedMachine(where, R, nodes, Cluster.from_rset(rset, name=name))


def machine_of_graph(graph: ResourceGraph, where: str, kind: str, *, ranked: bool) -> StatedMachine:
    """Return a graph as a description; `ranked` if its format states ranks at all."""
    nodes = tuple(_nodes(graph, ranked=ranked))
    return StatedMachine(where, kind, nodes, Cluster(graph))


def _nodes(graph: ResourceGraph, *, ranked: bool) -> Iterator[StatedNode]:
    below = children_map(graph)
    assigned = graph.graph.get("assigned_ranks", frozenset())
    for vertex in _with_servers(graph, below):
        pool = pool_of(graph, vertex)
        rank = pool.rank if ranked and vertex not in assigned else None
        names = frozenset(_property_names(pool.properties))
        yield StatedNode(pool.name, rank, names, _units(graph, vertex, below), pool.type)


def _with_servers(graph: ResourceGraph, below: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the execution targets, and the vertices with a rank of their own that are outside of them."""
    targets = set(execution_targets(graph, below))
    stack = [containment_root(graph)]
    while stack:
        vertex = stack.pop()
        if vertex in targets or pool_of(graph, vertex).rank is not None:
            yield vertex
        else:
            stack.extend(reversed(below.get(vertex, ())))


def _property_names(properties: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names as R writes them: without those that Fluxion makes itself, which begin with ``+``."""
    return (name for name in properties if not name.startswith("+"))


def _units(graph: ResourceGraph, vertex: str, below: Mapping[str, Sequence[str]]) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    stack = list(below.get(vertex, ()))
    while stack:
        inner = stack.pop()
        pool = pool_of(graph, inner)
        stack.extend(below.get(inner, ()))
        if inner not in below or pool.type in COUNTED:
            factor = int(unit_of(pool.unit).factor) if is_unit(pool.unit) else 1
            found[pool.type] += pool.size * factor
    return found
