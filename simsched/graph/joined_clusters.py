"""A cluster with the nodes of another description.

The old cluster is not changed.  New targets get the next free ranks, in their order.  What contains the nodes
of a description (a rack, a switch) is that of the cluster if both have the same path of names, and joins it
otherwise; so ranks, paths and places of what is there stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simsched.arguments import check
from simsched.errors import ClusterError, did_you_mean
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.cluster import Cluster, as_cluster
from simsched.graph.resource_graph import (
    CONTAINMENT,
    containment_paths,
    containment_root,
    edge_rows,
    execution_targets,
    paths_by_subsystem,
    pool_of,
)
from simsched.graph.sharing import edited_graph, extra_without, inside, new_names

if TYPE_CHECKING:
    from simsched.graph.cluster import ClusterLike
    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph


def as_part(described: ClusterLike | Mapping[str, Any]) -> Cluster:
    """Return the cluster of a value, a graph, a file, a bundled name, or a document (R, JGF, a recipe)."""
    if isinstance(described, Mapping):
        return Cluster(graph_from_document(dict(described), name="part"))
    return as_cluster(described)


def vertex_at(cluster: Cluster, path: str) -> str:
    """Return the key of the vertex with a path of names, or with a name that only one vertex has.

    Raises
    ------
    ClusterError
        If there is no such vertex, or several, or it is an execution target or in one.
    ConfigError
        If the path is not a text.
    """
    check("under", path, str, "the path or the name of a vertex")
    graph = cluster.graph
    targets = execution_targets(graph)
    within = {*targets, *inside(graph, targets)}
    paths = {key: where for key, where in containment_paths(graph).items() if key not in within}
    found = [key for key, where in paths.items() if path in (where, pool_of(graph, key).name)]
    if len(found) != 1:
        problem = f"no vertex above the nodes is called {path!r}" if not found else f"{path!r} is ambiguous"
        meant = did_you_mean(path, [*paths.values()]) if not found else ""
        known = [paths[key] for key in found or paths]
        raise ClusterError(problem + meant, expected=", ".join(known[:5]) + (" …" if len(known) > 5 else ""))
    return found[0]


def joined(cluster: Cluster, part: Cluster, under: str | None = None) -> Cluster:
    """Return the cluster with the nodes of another one, whose root is the vertex `under` (default: the root).

    Raises
    ------
    ClusterError
        If a node has the name of one of the cluster, the nodes are of another type, or a resource outside of
        nodes has the path of one of the cluster.
    """
    graph, more = cluster.graph, part.graph
    kinds = [pool_of(one, execution_targets(one)[0]).type for one in (graph, more)]
    if kinds[0] != kinds[1]:
        raise ClusterError(f"execution targets of type {kinds[1]!r}", expected=f"type {kinds[0]!r}")
    targets = execution_targets(more)
    first = new_names(graph, [pool_of(more, key).name for key in targets])
    ranks = {pool_of(more, key).rank: first + turn for turn, key in enumerate(targets)}
    known = _shared_vertices(graph, more, containment_root(graph) if under is None else under)
    keys = _keys(graph, more, known)
    with edited_graph(cluster) as edited:
        for old, new in keys.items():
            if old not in known:
                edited.add(new, _ranked(pool_of(more, old), ranks))
        for source, target, subsystem, data in edge_rows(more):
            if source not in known or target not in known:
                edited.join(keys[source], keys[target], {subsystem: dict(data)})
    return edited.cluster


def _ranked(pool: Pool, ranks: Mapping[int | None, int]) -> Pool:
    """Return a pool with the rank of its target in the whole, without its place in its document."""
    extra = extra_without(pool, "uniq_id", "paths", "id")
    return pool.replace(rank=None if pool.rank is None else ranks.get(pool.rank, pool.rank), extra=extra)


def _shared_vertices(graph: ResourceGraph, more: ResourceGraph, under: str) -> dict[str, str]:
    """Return vertex of the part → vertex of the cluster, for what is outside of nodes and is in both."""
    root = containment_root(more)
    targets = execution_targets(more)
    own = {*targets, *inside(more, targets)}
    stem, cut = containment_paths(graph)[under], len(containment_paths(more)[root])
    found = {root: under}
    places = paths_by_subsystem(graph)
    holders = {pool_of(one, key).type for one in (graph, more) for key in one if one.adj[key]}
    for subsystem, paths in paths_by_subsystem(more).items():
        there = {path: key for key, path in places.get(subsystem, {}).items()}
        for key, path in paths.items():
            meets = there.get(stem + path[cut:] if subsystem == CONTAINMENT else path)
            if meets is None or key in own or key in found:
                continue
            kind = pool_of(more, key).type
            if pool_of(graph, meets).type != kind or kind not in holders:  # another pool of units, say
                raise ClusterError(f"there is already a vertex {path!r}", expected="another name")
            found[key] = meets
    return found


def _keys(graph: ResourceGraph, more: ResourceGraph, known: Mapping[str, str]) -> dict[str, str]:
    """Return vertex of the part → its key in the whole: its own, numbers, or with a number behind it."""
    numeric = all(key.isascii() and key.isdigit() for key in graph)
    after = max(map(int, graph), default=0) + 1 if numeric else 0
    keys = dict(known)
    taken = set(graph)
    for key in more:
        if key in keys:
            continue
        new, turn = key, 1
        if numeric:
            new, after = str(after), after + 1
        while new in taken:
            turn += 1
            new = f"{key}+{turn}"
        keys[key] = new
        taken.add(new)
    return keys
