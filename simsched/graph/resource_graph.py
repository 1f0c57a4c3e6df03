"""The resource graph: RFC 4 pools as a networkx MultiDiGraph, one edge key per subsystem.

``graph.nodes[v]["pool"]`` is a `Pool`; an edge is ``(u, v, subsystem)`` with ``relationship``.
Vertices stand in the order in which they were added (*graph order*).  Containment is a
tree; other subsystems are directed graphs over the same vertices.  A graph is frozen by
`finish`, which checks all that; the functions here take the graph first and change nothing.
"""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import networkx as nx

from simsched.errors import ClusterError
from simsched.formats.units import is_unit, unit_of
from simsched.graph import tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from simsched.graph.pool import Pool

ResourceGraph: TypeAlias = "nx.MultiDiGraph[str]"

CONTAINMENT = "containment"
CONTAINS = "contains"
MAX_TOTAL = 2**61

REVERSED = frozenset({"in", "draws_from", "drawn-from", "part-of"})
"""Relationships that point from the part to the whole; a tree is walked along the others."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector while millions of long-lived objects are made.

    What was made counts as old afterwards, so that the next collection does not walk it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


# --- building ------------------------------------------------------------------------


def new_graph(name: str, **facts: Any) -> ResourceGraph:
    """Return an empty graph; `facts` about the whole land in ``graph.graph``."""
    graph: ResourceGraph = nx.MultiDiGraph(name=name)
    graph.graph.update(facts)
    return graph


def add_vertices(graph: ResourceGraph, pools: Iterable[tuple[str, Pool]]) -> None:
    """Add vertices in this order.

    Raises
    ------
    ClusterError
        if a key is already taken.
    """
    nodes, after, before = tables(graph)
    for key, pool in pools:
        if key in nodes:
            raise ClusterError("two vertices have this id", where=f"vertex {key!r}")
        nodes[key] = {"pool": pool}
        after[key] = {}
        before[key] = {}


def add_tree(graph: ResourceGraph, rows: Iterable[tuple[str, Pool, str]]) -> None:
    """Add vertices (key, pool, key of what contains it), each behind its container.

    Raises
    ------
    ClusterError
        if a key is already taken.
    """
    nodes, after, before = tables(graph)
    for key, pool, above in rows:
        if key in nodes:
            raise ClusterError("two vertices have this id", where=f"vertex {key!r}")
        nodes[key] = {"pool": pool}
        after[key] = {}
        edge = after[above][key] = {CONTAINMENT: {"relationship": CONTAINS}}
        before[key] = {above: edge}


def add_contained(graph: ResourceGraph, edges: Iterable[tuple[str, str]]) -> None:
    """Add containment edges (parent, child) between vertices that exist."""
    _, after, before = tables(graph)
    for above, child in edges:
        after[above][child] = before[child][above] = {CONTAINMENT: {"relationship": CONTAINS}}


def add_edge(
    graph: ResourceGraph, source: str, target: str, subsystem: str, relationship: str, **extra: Any
) -> None:
    """Add one edge between vertices that exist.

    Raises
    ------
    ClusterError
        if an end does not exist, or the subsystem already joins the two in this direction.
    """
    add_edges(graph, [(source, target, subsystem, {"relationship": relationship, **extra})])


def add_edges(graph: ResourceGraph, edges: Iterable[tuple[str, str, str, dict[str, Any]]]) -> None:
    """Add edges (source, target, subsystem, attributes); errors as `add_edge`."""
    _, after, before = tables(graph)
    for source, target, subsystem, attributes in edges:
        if source not in after or target not in after:
            lost = target if source in after else source
            raise ClusterError(f"no vertex has the id {lost!r}", where=f"edge {source!r} -> {target!r}")
        joined = after[source].get(target)
        if joined is None:
            after[source][target] = before[target][source] = {subsystem: attributes}
        elif subsystem in joined:
            raise ClusterError(
                f"two edges of subsystem {subsystem!r}", where=f"edge {source!r} -> {target!r}"
            )
        else:
            joined[subsystem] = attributes


def tables(graph: ResourceGraph) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return networkx's own tables: attributes by vertex, successors, predecessors.

    Filling them directly makes a million vertices in 2 s instead of 7 (docs/decisions.md);
    a test holds the result against the same graph made by `add_node` and `add_edge`.
    """
    inner: Any = graph
    return inner._node, inner._succ, inner._pred


def finish(graph: ResourceGraph) -> ResourceGraph:
    """Check the graph, give its targets ranks if they have none, freeze and return it.

    Raises
    ------
    ClusterError
        if containment is no tree over its vertices, if another subsystem has a cycle, if
        there is no execution target, or if two targets carry one rank.
    """
    survey = _survey(graph)
    _settle(graph, survey)
    return _frozen(graph, survey)


def finish_tree(graph: ResourceGraph, root: str) -> ResourceGraph:
    """Do what `finish` does for a root with all that `add_tree` put below it, which is a tree."""
    below = {vertex: list(row) for vertex, row in graph.adjacency() if row}
    survey = Survey(below, [CONTAINMENT] if below else [])
    graph.graph["root"] = root
    _check_totals(graph)
    _give_ranks(graph, below)
    return _frozen(graph, survey)


class Survey(NamedTuple):
    """What one walk over all edges finds: the `children_map` of containment, and `subsystems`."""

    below: dict[str, list[str]]
    names: list[str]


_KEPT = "_survey"
"""Attribute of a frozen graph: its survey.  A copy does not have it."""


def _survey(graph: ResourceGraph) -> Survey:
    kept: Survey | None = vars(graph).get(_KEPT)
    if kept is not None:
        return kept
    below: dict[str, list[str]] = {}
    names: set[str] = set()
    for above, neighbours in graph.adjacency():
        row = []
        for child, keys in neighbours.items():
            edge = keys.get(CONTAINMENT)
            if edge is not None and edge["relationship"] not in REVERSED:
                row.append(child)
                if len(keys) == 1:
                    continue
            names.update(keys)
        if row:
            below[above] = row
    inside = [CONTAINMENT] if below or CONTAINMENT in names else []
    return Survey(below, inside + sorted(names - {CONTAINMENT}))


def _frozen(graph: ResourceGraph, survey: Survey) -> ResourceGraph:
    frozen = nx.freeze(graph)
    vars(frozen)[_KEPT] = survey
    return frozen  # type: ignore[no-any-return,unused-ignore]


def settle(graph: ResourceGraph) -> list[str]:
    """Do what `finish` does short of freezing, and return the execution targets."""
    return _settle(graph, _survey(graph))


def _settle(graph: ResourceGraph, survey: Survey) -> list[str]:
    _note_root(graph, survey.below)
    for subsystem in survey.names:
        if subsystem != CONTAINMENT:
            tree.check_acyclic(children_map(graph, subsystem), subsystem)
    _check_totals(graph)
    return _give_ranks(graph, survey.below)


def set_pool(graph: ResourceGraph, vertex: str, pool: Pool) -> None:
    """Put another pool at a vertex of a graph that is still being built."""
    graph.nodes[vertex]["pool"] = pool


# --- looking -------------------------------------------------------------------------


def pool_of(graph: ResourceGraph, vertex: str) -> Pool:
    """Return the pool at a vertex."""
    pool: Pool = graph.nodes[vertex]["pool"]
    return pool


def pools(graph: ResourceGraph) -> Iterator[tuple[str, Pool]]:
    """Yield (vertex key, pool) in graph order."""
    return ((key, data["pool"]) for key, data in graph.nodes(data=True))


def subsystems(graph: ResourceGraph) -> list[str]:
    """Return the names of the subsystems, containment first, the others by name.

    O(edges); O(1) for a graph that `finish` made.
    """
    return _survey(graph).names


def children(graph: ResourceGraph, vertex: str, subsystem: str = CONTAINMENT) -> list[str]:
    """Return what `vertex` dominates directly in a subsystem, in graph order of its edges."""
    return [child for child, keys in graph.adj[vertex].items() if _points_down(keys.get(subsystem))]


def parents(graph: ResourceGraph, vertex: str, subsystem: str = CONTAINMENT) -> list[str]:
    """Return what dominates `vertex` directly in a subsystem."""
    return [above for above, keys in graph.pred[vertex].items() if _points_down(keys.get(subsystem))]


def dominated(graph: ResourceGraph, vertex: str) -> list[str]:
    """Return what a vertex dominates directly in any subsystem."""
    return [below for below, keys in graph.adj[vertex].items() if any(map(_points_down, keys.values()))]


def dominating(graph: ResourceGraph, vertex: str) -> list[str]:
    """Return what dominates a vertex directly in any subsystem."""
    return [above for above, keys in graph.pred[vertex].items() if any(map(_points_down, keys.values()))]


def children_map(graph: ResourceGraph, subsystem: str = CONTAINMENT) -> dict[str, list[str]]:
    """Return vertex → its direct children, only for vertices that have some.  Never change it.

    O(edges); O(1) for containment of a graph that `finish` made.
    """
    if subsystem == CONTAINMENT:
        return _survey(graph).below
    found: dict[str, list[str]] = {}
    for above, neighbours in graph.adjacency():
        if not neighbours:
            continue
        below = [
            child
            for child, keys in neighbours.items()
            if (edge := keys.get(subsystem)) is not None and edge["relationship"] not in REVERSED
        ]
        if below:
            found[above] = below
    return found


def _points_down(attributes: Mapping[str, Any] | None) -> bool:
    return attributes is not None and attributes["relationship"] not in REVERSED


def containment_root(graph: ResourceGraph) -> str:
    """Return the one vertex that contains all the others."""
    root: str = graph.graph["root"]
    return root


def walk(graph: ResourceGraph, start: str | None = None) -> Iterator[tuple[str, int]]:
    """Yield (vertex, depth) in containment preorder, from the root or from `start`."""
    stack = [(containment_root(graph) if start is None else start, 0)]
    while stack:
        vertex, depth = stack.pop()
        yield vertex, depth
        stack.extend((child, depth + 1) for child in reversed(children(graph, vertex)))


def edge_rows(graph: ResourceGraph) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield (source, target, subsystem, attributes) by source in graph order."""
    for source, neighbours in graph.adjacency():
        for target, keys in neighbours.items():
            for subsystem, attributes in keys.items():
                yield source, target, subsystem, attributes


def paths_by_subsystem(graph: ResourceGraph) -> dict[str, dict[str, str]]:
    """Return, for each subsystem, vertex → path of names from its root.

    Where several vertices dominate one, its path goes through the first that is met.
    """
    found = {name: subsystem_paths(graph, name) for name in subsystems(graph)}
    return found or {CONTAINMENT: containment_paths(graph)}


def subsystem_paths(graph: ResourceGraph, subsystem: str) -> dict[str, str]:
    """Return vertex → path in a subsystem, walking from its roots in graph order."""
    if subsystem == CONTAINMENT:
        return containment_paths(graph)
    below = children_map(graph, subsystem)
    inner = {child for row in below.values() for child in row}
    names = {key: pool.name for key, pool in pools(graph)}
    paths: dict[str, str] = {}
    stack = [(root, "") for root in reversed(list(below)) if root not in inner]
    while stack:
        vertex, prefix = stack.pop()
        if vertex not in paths:
            paths[vertex] = path = f"{prefix}/{names[vertex]}"
            stack.extend((child, path) for child in reversed(below.get(vertex, ())))
    return paths


def containment_paths(graph: ResourceGraph) -> dict[str, str]:
    """Return vertex → its path of names from the root.

    Fluxion's ``paths.containment``: ``/cluster0/rack1/node17/core3``.
    """
    below = children_map(graph)
    names = {key: pool.name for key, pool in pools(graph)}
    root = containment_root(graph)
    paths = {root: f"/{names[root]}"}
    stack = [root]
    while stack:
        vertex = stack.pop()
        prefix = paths[vertex]
        inside = below.get(vertex, [])
        for child in inside:
            paths[child] = f"{prefix}/{names[child]}"
        stack.extend(child for child in reversed(inside) if child in below)
    return paths


def execution_targets(graph: ResourceGraph, below: Mapping[str, list[str]] | None = None) -> list[str]:
    """Return the execution targets in containment preorder.

    They are the vertices of type node; in a graph without nodes, the topmost vertices that
    carry a rank.  What lies below a target is never one itself.  `below` is the graph's
    `children_map`, if it is at hand.
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


# --- checking ------------------------------------------------------------------------


def _note_root(graph: ResourceGraph, below: Mapping[str, list[str]]) -> None:
    """Check that containment is a tree over its vertices, and note its root."""
    if not len(graph):
        raise ClusterError("the cluster is empty: it has no vertices", expected="an execution target")
    contained = set(chain.from_iterable(below.values()))
    roots = [v for v in graph if v not in contained and _belongs(graph, v, below)]
    tree.check_tree(below, contained, roots)
    graph.graph["root"] = roots[0]


def _check_totals(graph: ResourceGraph) -> None:
    """Check that what there is of a type can be added up in 64 bits, in bytes if units differ."""
    large = [pool for _, pool in pools(graph) if pool.size != 1 or pool.unit]
    alike = dict(zip(map(id, large), large, strict=True))
    sizes: Counter[tuple[str, str]] = Counter()
    for number, times in Counter(map(id, large)).items():
        pool = alike[number]
        sizes[pool.type, pool.unit] += pool.size * times
    units = Counter(kind for kind, _ in sizes)
    for (kind, unit), size in sizes.items():
        factor = 1 if units[kind] == 1 or not is_unit(unit) else unit_of(unit).factor
        if size * factor > MAX_TOTAL:
            raise ClusterError(f"{size:,} {unit or 'units'} of type {kind!r} are too many to add up")


def _belongs(graph: ResourceGraph, vertex: str, below: Mapping[str, list[str]]) -> bool:
    """Say whether a vertex without parent is part of containment: yes, unless it serves elsewhere."""
    return vertex in below or not (graph.adj[vertex] or graph.pred[vertex])


def _give_ranks(graph: ResourceGraph, below: Mapping[str, list[str]]) -> list[str]:
    """Give targets without a rank the next free ones, in containment order; return the targets."""
    targets = execution_targets(graph, below)
    if not targets:
        raise ClusterError(
            "the cluster is empty: it has no execution target",
            expected="a vertex of type node, or one with a rank",
        )
    taken: dict[int, str] = {}
    for vertex in targets:
        rank = pool_of(graph, vertex).rank
        if rank is None:
            continue
        if rank in taken:
            raise ClusterError(f"rank {rank} is also that of {taken[rank]!r}", where=f"vertex {vertex!r}")
        taken[rank] = vertex
    free = max(taken, default=-1) + 1
    missing = [vertex for vertex in targets if pool_of(graph, vertex).rank is None]
    for rank, vertex in enumerate(missing, start=free):
        set_pool(graph, vertex, pool_of(graph, vertex).replace(rank=rank))
    if missing:
        graph.graph["assigned_ranks"] = frozenset(missing)
    return targets
