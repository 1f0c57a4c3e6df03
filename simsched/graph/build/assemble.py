"""Construction of a resource graph: vertices and edges are added; `finish` checks, ranks and freezes it."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

from simsched.cycles import find_cycle
from simsched.errors import ClusterError
from simsched.formats.rfc.units import is_unit, unit_of
from simsched.graph import resource_graph as rg

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from simsched.graph.pool import Pool

MAX_TOTAL = 2**61
_CONTAINED = {"relationship": rg.CONTAINS}
"""The attributes of a containment edge; all edges share them, since networkx copies them with a graph."""


def new_graph(name: str, **facts: Any) -> rg.ResourceGraph:
    """Return an empty graph; `facts` about the whole are kept in ``graph.graph``."""
    import networkx as nx

    graph: rg.ResourceGraph = nx.MultiDiGraph(name=name)
    graph.graph.update(facts)
    return graph


def add_vertices(graph: rg.ResourceGraph, rows: Iterable[tuple[str, Pool]]) -> None:
    """Add vertices in this order.

    Raises
    ------
    ClusterError
        if a key is already taken.
    """
    nodes, after, before = rg.tables(graph)
    for key, pool in rows:
        if key in nodes:
            raise ClusterError("two vertices have this id", where=f"vertex {key!r}")
        nodes[key], after[key], before[key] = {"pool": pool}, {}, {}


def add_tree(graph: rg.ResourceGraph, rows: Iterable[tuple[str, Pool, str]]) -> None:
    """Add vertices (key, pool, key of what contains it), each after its container.

    Raises
    ------
    ClusterError
        if a key is already taken.
    """
    nodes, after, before = rg.tables(graph)
    for key, pool, above in rows:
        if key in nodes:
            raise ClusterError("two vertices have this id", where=f"vertex {key!r}")
        nodes[key] = {"pool": pool}
        after[key] = {}
        edge = after[above][key] = {rg.CONTAINMENT: _CONTAINED}
        before[key] = {above: edge}


def add_contained(graph: rg.ResourceGraph, edges: Iterable[tuple[str, str]]) -> None:
    """Add containment edges (parent, child) between vertices that exist."""
    _, after, before = rg.tables(graph)
    for above, child in edges:
        after[above][child] = before[child][above] = {rg.CONTAINMENT: _CONTAINED}


def add_edge(
    graph: rg.ResourceGraph, source: str, target: str, subsystem: str, relationship: str, **extra: Any
) -> None:
    """Add one edge between vertices that exist.

    Raises
    ------
    ClusterError
        if an end does not exist, or the subsystem already joins the two in this direction.
    """
    add_edges(graph, [(source, target, subsystem, {"relationship": relationship, **extra})])


def add_edges(graph: rg.ResourceGraph, edges: Iterable[tuple[str, str, str, dict[str, Any]]]) -> None:
    """Add edges (source, target, subsystem, attributes); errors as `add_edge`."""
    _, after, before = rg.tables(graph)
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


def set_pool(graph: rg.ResourceGraph, vertex: str, pool: Pool) -> None:
    """Put another pool at a vertex of a graph that is still being built."""
    rg.tables(graph)[0][vertex]["pool"] = pool


def finish(graph: rg.ResourceGraph) -> rg.ResourceGraph:
    """Check the graph, give its targets ranks if they have none, freeze and return it.

    Raises
    ------
    ClusterError
        if containment is not a tree over its vertices, if another subsystem has a cycle, if
        there is no execution target, or if two targets have one rank.
    """
    below = rg.children_maps(graph)
    settle(graph, below)
    return rg.frozen(graph, below)


def settle(graph: rg.ResourceGraph, below: Mapping[str, dict[str, list[str]]] | None = None) -> list[str]:
    """Do the work of `finish` except for freezing; return the execution targets."""
    below = rg.children_maps(graph) if below is None else below
    contained = below.get(rg.CONTAINMENT, {})
    _note_root(graph, contained)
    for subsystem, links in below.items():
        if subsystem != rg.CONTAINMENT and (cycle := find_cycle(links)):
            raise ClusterError(f"a cycle in subsystem {subsystem!r}: {_text_of(cycle)}")
    _check_totals(graph)
    return _give_ranks(graph, contained)


# --- checking ------------------------------------------------------------------------


def _note_root(graph: rg.ResourceGraph, below: Mapping[str, list[str]]) -> None:
    """Check that containment is a tree over its vertices, and note its root."""
    if not len(graph):
        raise ClusterError("the cluster is empty: it has no vertices", expected="an execution target")
    contained = set(chain.from_iterable(below.values()))
    # a vertex without parent is part of containment unless another subsystem alone has it
    roots = [v for v in graph if v not in contained and (v in below or not (graph.adj[v] or graph.pred[v]))]
    check_tree(below, contained, roots)
    graph.graph["root"] = roots[0]


def _check_totals(graph: rg.ResourceGraph) -> None:
    """Check that the total of each type fits in 64 bits, in bytes if units differ."""
    # Pools are shared between vertices: adding up by identity costs one step per distinct pool.  Single
    # units cannot exceed the limit, as there are fewer vertices than 2**63.
    large = [pool for _, pool in rg.pools(graph) if pool.size != 1 or pool.unit]
    alike = dict(zip(map(id, large), large, strict=True))
    sizes: Counter[tuple[str, str]] = Counter()
    for number, times in Counter(map(id, large)).items():
        pool = alike[number]
        sizes[pool.type, pool.unit] += pool.size * times
    units = Counter(kind for kind, _ in sizes)
    for (kind, unit), size in sizes.items():
        factor = 1 if units[kind] == 1 or not is_unit(unit) else unit_of(unit).factor
        if size * factor > MAX_TOTAL:
            raise ClusterError(
                f"{size:,} {unit or 'units'} of type {kind!r} exceed the largest possible total"
            )


def _give_ranks(graph: rg.ResourceGraph, below: Mapping[str, list[str]]) -> list[str]:
    """Give targets without a rank the next free ones, in containment order; return the targets."""
    targets = rg.execution_targets(graph, below)
    if not targets:
        raise ClusterError(
            "the cluster is empty: it has no execution target",
            expected="a vertex of type node or with a rank",
        )
    taken: dict[int, str] = {}
    for vertex in targets:
        rank = rg.pool_of(graph, vertex).rank
        if rank is None:
            continue
        if rank in taken:
            raise ClusterError(f"rank {rank} is taken by {taken[rank]!r}", where=f"vertex {vertex!r}")
        taken[rank] = vertex
    free = max(taken, default=-1) + 1
    missing = [vertex for vertex in targets if rg.pool_of(graph, vertex).rank is None]
    for rank, vertex in enumerate(missing, start=free):
        set_pool(graph, vertex, rg.pool_of(graph, vertex).replace(rank=rank))
    if missing:
        graph.graph["assigned_ranks"] = frozenset(missing)
    return targets


def check_tree(below: Mapping[str, list[str]], contained: Set[str], roots: Sequence[str]) -> None:
    """Check that one root contains every contained vertex once.

    Raises
    ------
    ClusterError
        for a vertex with two parents, for no root or several, and for a cycle.
    """
    # More edges than contained vertices: one of them has two parents.  After that, every contained
    # vertex has one parent, so those that the root does not reach are on a cycle or below one.
    if len(contained) < sum(map(len, below.values())):
        _refuse_two_parents(below)
    if not roots:
        cycle = _text_of(find_cycle(below)) or "no containment edges"
        raise ClusterError(f"containment has no root: {cycle}", expected="one root above all others")
    if len(roots) > 1:
        named = ", ".join(repr(root) for root in roots[:3]) + (", …" if len(roots) > 3 else "")
        raise ClusterError(
            f"containment has {len(roots)} roots: {named}", expected="one root above all others"
        )
    if sum(1 for _ in rg.inside(below, roots[0])) < len(contained):
        raise ClusterError(f"a cycle in containment: {_text_of(find_cycle(below))}")


def _refuse_two_parents(below: Mapping[str, list[str]]) -> None:
    parent: dict[str, str] = {}
    for above, row in below.items():
        for child in row:
            if child in parent:
                raise ClusterError(
                    f"two parents in containment: {parent[child]!r} and {above!r}", where=f"vertex {child!r}"
                )
            parent[child] = above


def _text_of(cycle: list[str]) -> str:
    """Return a cycle as text, a long one without its middle."""
    return " -> ".join(cycle if len(cycle) <= 8 else [*cycle[:4], "…", *cycle[-2:]])


def part_of(graph: rg.ResourceGraph, wanted: Mapping[str, Pool]) -> rg.ResourceGraph:
    """Return the containment graph of some vertices, and of the vertices that contain them.

    `wanted` maps keys, in containment order, to the pools that represent them: a pool may be
    smaller than the graph's own.  Vertices of other subsystems only are left out; the root is always in.
    O(vertices wanted × depth).
    """
    import networkx as nx

    found = new_graph(str(graph.graph.get("name") or "part"), source="part")
    root = rg.containment_root(graph)
    above: dict[str, str | None] = {root: None}
    for key in wanted:
        way, here = [], key
        while up := rg.parents(graph, here):
            way.append((here, up[0]))
            here = up[0]
        if here == root:
            above.update(reversed(way))
    add_vertices(found, ((key, wanted.get(key) or rg.pool_of(graph, key)) for key in above))
    add_contained(found, ((parent, key) for key, parent in above.items() if parent is not None))
    try:
        return finish(found)
    except ClusterError:  # without an execution target it is a graph but not a cluster
        return nx.freeze(found)  # type: ignore[no-any-return,unused-ignore]
