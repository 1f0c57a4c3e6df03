"""The resource graph: RFC 4 pools as a networkx MultiDiGraph, one edge key per subsystem.

``graph.nodes[v]["pool"]`` is a `Pool`; an edge is ``(u, v, subsystem)`` with ``relationship``.
Vertices are in the order in which they were added (*graph order*).  Containment is a
tree; other subsystems are directed graphs over the same vertices.  Graphs are made by
`build.assemble`, which checks all that and freezes them (`build.networkx_graph` does so with a user's
graph); the functions here take the graph first and do not change it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import networkx as nx

    from simsched.graph.pool import Pool

ResourceGraph: TypeAlias = "nx.MultiDiGraph[str]"


CONTAINMENT = "containment"
CONTAINS = "contains"

REVERSED = frozenset({"in", "draws_from", "drawn-from", "part-of"})
"""Relationships that point from the part to the whole; a tree is walked along the others."""


def tables(graph: ResourceGraph) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return networkx's own tables: attributes by vertex, successors, predecessors.

    Filling them directly makes a million vertices in 2 s instead of 7 (docs/decisions.md);
    a test compares the result with the same graph made by `add_node` and `add_edge`.
    """
    inner: Any = graph
    return inner._node, inner._succ, inner._pred


_BELOW = "_below"
"""Attribute of a frozen graph: its `children_maps`.  A copy does not have it."""

_FINISHED = "_finished_as"
"""Attribute of a graph that was checked and frozen: its id(), which differs from that of a copy."""


def frozen(graph: ResourceGraph, below: Mapping[str, dict[str, list[str]]]) -> ResourceGraph:
    """Freeze and return a graph that was checked and need not be copied; `below` is its `children_maps`."""
    import networkx as nx

    vars(graph).update({_BELOW: below, _FINISHED: id(graph)})
    return nx.freeze(graph)  # type: ignore[no-any-return,unused-ignore]


def is_finished(graph: object) -> bool:
    """Whether this very graph was checked and frozen, and is not a copy of one that was."""
    return getattr(graph, _FINISHED, None) == id(graph)


def children_maps(graph: ResourceGraph) -> dict[str, dict[str, list[str]]]:
    """Return the `children_map` of each subsystem, containment first, the others by name.

    O(edges); O(1) for a graph that `frozen` made.
    """
    kept: dict[str, dict[str, list[str]]] | None = vars(graph).get(_BELOW)
    if kept is not None:
        return kept
    found: dict[str, dict[str, list[str]]] = {}
    for above, neighbours in tables(graph)[1].items():
        for child, keys in neighbours.items():
            for subsystem, edge in keys.items():
                below = found.setdefault(subsystem, {})
                if edge["relationship"] not in REVERSED:
                    below.setdefault(above, []).append(child)
    return dict(sorted(found.items(), key=lambda item: (item[0] != CONTAINMENT, item[0])))


def pool_of(graph: ResourceGraph, vertex: str) -> Pool:
    """Return the pool at a vertex."""
    pool: Pool = tables(graph)[0][vertex]["pool"]
    return pool


def pools(graph: ResourceGraph) -> Iterator[tuple[str, Pool]]:
    """Yield (vertex key, pool) in graph order."""
    return ((key, data["pool"]) for key, data in tables(graph)[0].items())


def subsystems(graph: ResourceGraph) -> list[str]:
    """Return the names of the subsystems, containment first, the others by name; as `children_maps`."""
    return list(children_maps(graph))


def children(graph: ResourceGraph, vertex: str, subsystem: str = CONTAINMENT) -> list[str]:
    """Return the vertices that `vertex` dominates directly in a subsystem, in graph order of its edges."""
    return [child for child, keys in graph.adj[vertex].items() if _points_down(keys.get(subsystem))]


def parents(graph: ResourceGraph, vertex: str, subsystem: str = CONTAINMENT) -> list[str]:
    """Return the vertices that dominate `vertex` directly in a subsystem."""
    return [above for above, keys in tables(graph)[2][vertex].items() if _points_down(keys.get(subsystem))]


def dominated(graph: ResourceGraph, vertex: str) -> list[str]:
    """Return the vertices that `vertex` dominates directly in any subsystem."""
    return [below for below, keys in graph.adj[vertex].items() if any(map(_points_down, keys.values()))]


def dominating(graph: ResourceGraph, vertex: str) -> list[str]:
    """Return the vertices that dominate `vertex` directly in any subsystem."""
    return [above for above, keys in graph.pred[vertex].items() if any(map(_points_down, keys.values()))]


def children_map(graph: ResourceGraph, subsystem: str = CONTAINMENT) -> dict[str, list[str]]:
    """Return vertex → its direct children, for vertices that have some.  Never change it."""
    return children_maps(graph).get(subsystem, {})


def _points_down(attributes: Mapping[str, Any] | None) -> bool:
    return attributes is not None and attributes["relationship"] not in REVERSED


def containment_root(graph: ResourceGraph) -> str:
    """Return the vertex that contains all the others."""
    root: str = graph.graph["root"]
    return root


def walk(graph: ResourceGraph, start: str | None = None) -> Iterator[tuple[str, int]]:
    """Yield (vertex, depth) in containment preorder, from the root or from `start`."""
    stack = [(containment_root(graph) if start is None else start, 0)]
    while stack:
        vertex, depth = stack.pop()
        yield vertex, depth
        stack.extend((child, depth + 1) for child in reversed(children(graph, vertex)))


def inside(below: Mapping[str, list[str]], *vertices: str) -> Iterator[str]:
    """Yield the vertices within some vertices, level by level; `below` is the graph's `children_map`."""
    layer = [child for vertex in vertices for child in below.get(vertex, ())]
    while layer:
        yield from layer
        layer = [child for vertex in layer if vertex in below for child in below[vertex]]


def edge_rows(graph: ResourceGraph) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield (source, target, subsystem, attributes) by source in graph order."""
    for source, neighbours in graph.adjacency():
        for target, keys in neighbours.items():
            for subsystem, attributes in keys.items():
                yield source, target, subsystem, attributes


def paths_by_subsystem(graph: ResourceGraph) -> dict[str, dict[str, str]]:
    """Return, for each subsystem, vertex → path of names from its root."""
    return {name: subsystem_paths(graph, name) for name in subsystems(graph) or [CONTAINMENT]}


def subsystem_paths(graph: ResourceGraph, subsystem: str = CONTAINMENT) -> dict[str, str]:
    """Return vertex → path of names from its root in a subsystem, in preorder.

    In containment it is Fluxion's ``paths.containment``: ``/cluster0/rack1/node17/core3``.  If several
    vertices dominate one, its path goes through the first of them.
    """
    below = children_map(graph, subsystem)
    names = {key: pool.name for key, pool in pools(graph)}
    found: dict[str, str] = {}
    tops = [containment_root(graph)] if subsystem == CONTAINMENT else roots(below)
    stack = [(root, "") for root in reversed(tops)]
    while stack:
        vertex, prefix = stack.pop()
        if vertex not in found:
            found[vertex] = path = f"{prefix}/{names[vertex]}"
            stack.extend((child, path) for child in reversed(below.get(vertex, ())))
    return found


def roots(below: Mapping[str, list[str]]) -> list[str]:
    """Return the vertices with children that are nobody's child, in the order of a `children_map`."""
    inner = {child for row in below.values() for child in row}
    return [vertex for vertex in below if vertex not in inner]


def execution_targets(graph: ResourceGraph, below: Mapping[str, list[str]] | None = None) -> list[str]:
    """Return the execution targets in containment preorder.

    They are the vertices of type node; in a graph without nodes, the topmost vertices that
    have a rank.  Vertices below a target are never targets themselves.  `below` is the graph's
    `children_map`, if it is known already.
    """
    has_nodes = any(pool.type == "node" for _, pool in pools(graph))
    below = children_map(graph) if below is None else below
    found = []
    stack = [containment_root(graph)]
    while stack:
        vertex = stack.pop()
        pool = pool_of(graph, vertex)
        if pool.type == "node" if has_nodes else pool.rank is not None:
            found.append(vertex)
        else:
            stack.extend(reversed(below.get(vertex, ())))
    return found
