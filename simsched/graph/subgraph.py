"""Part of a graph: some vertices with their containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

from simsched.errors import ClusterError
from simsched.graph.build.assemble import add_contained, add_vertices, finish, new_graph
from simsched.graph.resource_graph import ResourceGraph, containment_root, parents, pool_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.graph.pool import Pool


def part_of(graph: ResourceGraph, wanted: Mapping[str, Pool]) -> ResourceGraph:
    """Return the containment graph of some vertices, and of the vertices that contain them.

    `wanted` maps keys, in containment order, to the pools that represent them: a pool may be
    smaller than the graph's own.  Vertices of other subsystems only are left out; the root is always in.
    O(vertices wanted × depth).
    """
    found = new_graph(str(graph.graph.get("name") or "part"), source="part")
    root = containment_root(graph)
    above: dict[str, str | None] = {root: None}
    for key in wanted:
        way = _way_up(graph, key)
        if way[-1][0] == root:
            above.update(reversed(way))
    add_vertices(found, ((key, wanted.get(key) or pool_of(graph, key)) for key in above))
    add_contained(found, ((parent, key) for key, parent in above.items() if parent is not None))
    try:
        return finish(found)
    except ClusterError:  # without an execution target it is a graph but not a cluster
        return nx.freeze(found)  # type: ignore[no-any-return,unused-ignore]


def _way_up(graph: ResourceGraph, key: str) -> list[tuple[str, str | None]]:
    """Return (vertex, what contains it) from a vertex up to the root."""
    found: list[tuple[str, str | None]] = []
    here: str | None = key
    while here is not None:
        up = parents(graph, here)
        found.append((here, up[0] if up else None))
        here = found[-1][1]
    return found
