"""What-if edits: pure functions that return another cluster.

`cluster` is a cluster or anything that `as_cluster` takes: a networkx graph, a file, a bundled name.
`where` names execution targets: a hostlist (``"node[0-3]"``), an `Idset` of ranks, or an
RFC 31 constraint value.

A cluster with more nodes keeps its ranks, paths and places, and new targets get the next free ranks, in their
order.  What contains the new nodes (a rack, a switch) is that of the cluster if both have the same path of
names, and joins it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

from simsched.arguments import check, check_whole
from simsched.errors import ClusterError, ConfigError, did_you_mean
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_property
from simsched.garbage import collector_paused
from simsched.graph import resource_graph as rg
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.cluster import Cluster, as_cluster
from simsched.graph.pool import NOTHING, STATUSES, Pool, split_name
from simsched.graph.sharing import (
    EditedGraph,
    NewKeys,
    extra_without,
    new_names,
    with_copies,
    with_pools,
    without_targets,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.formats.rfc.constraint import Constraint
    from simsched.graph.cluster import ClusterLike

    Where: TypeAlias = str | Idset | Constraint

MAX_ADDED = 1_000_000


def targets_where(cluster: ClusterLike, where: Where) -> list[str]:
    """Return the execution targets that `where` names, in containment order.

    Raises
    ------
    ClusterError
        if it names a host or rank that does not exist, or no target.
    """
    cluster = as_cluster(cluster)
    targets = rg.execution_targets(cluster.graph)
    if isinstance(where, str):
        wanted = dict.fromkeys(Hostlist.parse(where).expand())
        found = [key for key in targets if rg.pool_of(cluster.graph, key).name in wanted]
        lost = [host for host in wanted if host not in {rg.pool_of(cluster.graph, key).name for key in found}]
        if lost:
            raise ClusterError(f"no execution target is called {lost[0]!r}")
    elif isinstance(where, Idset):
        found = [key for key in targets if rg.pool_of(cluster.graph, key).rank in where]
        if len(found) != len(where):
            known = Idset.from_ids(int(rg.pool_of(cluster.graph, key).rank or 0) for key in targets)
            raise ClusterError(f"no execution target has rank {(where - known).first}")
    else:
        matching = cluster.index.targets_matching(where)
        found = [key for key, fits in zip(cluster.index.targets, matching, strict=True) if fits]
    if not found:
        raise ClusterError(f"no execution target matches {where}")
    return found


# --- other pools at the same vertices -----------------------------------------------------


def set_status(cluster: ClusterLike, where: Where, status: str) -> Cluster:
    """Return the cluster with targets up, down or drained.

    >>> from simsched.formats.cluster.rset import ResourceSet
    >>> small = Cluster.from_rset(ResourceSet.of([("0-3", {"core": "0-3"})], "n[0-3]"))
    >>> [rg.pool_of(set_status(small, "n[1-2]", "down").graph, key).status for key in ("n0", "n1")]
    ['up', 'down']
    """
    check("status", status, str, " or ".join(STATUSES))
    if status not in STATUSES:
        raise ConfigError(f"unknown status {status!r}", expected=" or ".join(STATUSES))
    cluster = as_cluster(cluster)
    pools = ((key, rg.pool_of(cluster.graph, key)) for key in targets_where(cluster, where))
    return with_pools(
        cluster,
        [(key, pool.replace(status=status, extra=extra_without(pool, "status"))) for key, pool in pools],
    )


def add_properties(cluster: ClusterLike, where: Where, *names: str) -> Cluster:
    """Return the cluster with properties added to targets; ``p@gpu`` reaches their gpus as ``p``."""
    for name in names:
        check_property(name)
    return _labelled(as_cluster(cluster), where, names, add=True)


def drop_properties(cluster: ClusterLike, where: Where, *names: str) -> Cluster:
    """Return the cluster without these properties on targets (and, by suffix, within them)."""
    for name in names:
        check("names", name, str, "the names of properties")
    return _labelled(as_cluster(cluster), where, names, add=False)


def _labelled(cluster: Cluster, where: Where, names: Sequence[str], *, add: bool) -> Cluster:
    """Add properties to targets, and those with a suffix to the vertices within them, or remove them."""
    graph, targets = cluster.graph, targets_where(cluster, where)
    suffixed = [(plain, kind) for plain, _, kind in (name.rpartition("@") for name in names) if plain]
    found: dict[str, dict[str, str]] = {}
    for key in targets:
        own = rg.pool_of(graph, key).properties
        kept = {name: value for name, value in own.items() if name not in names}
        found[key] = {**dict.fromkeys(names, ""), **own} if add else kept
    for key in rg.inside(rg.children_map(graph), *targets) if suffixed else ():
        pool = rg.pool_of(graph, key)
        mine = [plain for plain, kind in suffixed if kind == pool.type]
        if mine:
            kept = {name: value for name, value in pool.properties.items() if name not in mine}
            found[key] = {**kept, **dict.fromkeys(mine, "")} if add else kept
    pools = ((rg.pool_of(graph, key), key, properties or NOTHING) for key, properties in found.items())
    return with_pools(
        cluster,
        [
            (key, pool.replace(properties=properties, extra=extra_without(pool, "properties")))
            for pool, key, properties in pools
        ],
    )


# --- other vertices ------------------------------------------------------------


def restrict(cluster: ClusterLike, where: Where) -> Cluster:
    """Return the cluster with only these targets; levels above them stay."""
    cluster = as_cluster(cluster)
    kept = set(targets_where(cluster, where))
    return without_targets(cluster, [key for key in rg.execution_targets(cluster.graph) if key not in kept])


def remove_nodes(cluster: ClusterLike, where: Where) -> Cluster:
    """Return the cluster without these targets and their contents.

    Raises
    ------
    ClusterError
        if nothing would be left.
    """
    cluster = as_cluster(cluster)
    return without_targets(cluster, targets_where(cluster, where))


def add_nodes(
    cluster: ClusterLike, hosts: str | int, *, like: str | int, under: str | None = None
) -> Cluster:
    """Return the cluster with new targets that are copies of an existing one.

    `like` is a host or a rank; the new ones have its contents, properties, status and place (rack, switch,
    distribution unit), and the next free ranks.  `hosts` is a hostlist, or a number of nodes, whose names
    then continue those of `like`.  `under` is the vertex that contains them, as a path or a name.

    Raises
    ------
    ClusterError
        if `like` is not a target, a new host exists already, or `under` does not exist.
    """
    cluster = as_cluster(cluster)
    check("like", like, str | int, "a host or a rank")
    if not isinstance(like, str):
        check_whole("like", like)
    model = targets_where(cluster, like if isinstance(like, str) else Idset.from_ids([like]))[0]
    if isinstance(hosts, int):
        check_whole("hosts", hosts, 1, MAX_ADDED)
        names = _next_names(cluster.graph, model, hosts)
    else:
        check("hosts", hosts, str, "a hostlist or a number of nodes")
        names = Hostlist.parse(hosts).expand(MAX_ADDED)
    if not names:
        raise ClusterError("no hosts to add")
    return with_copies(cluster, names, model, under=None if under is None else vertex_at(cluster, under))


def join_nodes(
    cluster: ClusterLike, part: ClusterLike | Mapping[str, Any], *, under: str | None = None
) -> Cluster:
    """Return the cluster with the nodes of another description, which may be a document (R, JGF, a recipe).

    The root of `part` is the root of the cluster, or the vertex `under` (a path or a name).  Racks, switches
    and the like join those with the same path of names.  The nodes get the next free ranks.

    Raises
    ------
    ClusterError
        if a node has the name of one of the cluster, or `under` does not exist.
    """
    cluster = as_cluster(cluster)
    return joined(cluster, as_part(part), None if under is None else vertex_at(cluster, under))


def scale_group(cluster: ClusterLike, where: Where, count: int) -> Cluster:
    """Return the cluster with exactly `count` targets in a group of equal ones.

    Surplus ones are removed from the end.  Missing ones are copies of the targets of the group in
    turn, and their names continue from the highest number.
    """
    cluster = as_cluster(cluster)
    group = targets_where(cluster, where)
    check("count", count, Integral, "a whole number")
    if count < 0:
        raise ConfigError(f"a group of {count} targets", expected="0 or more")
    if count <= len(group):
        return without_targets(cluster, group[count:]) if count < len(group) else cluster
    if count - len(group) > MAX_ADDED:
        raise ConfigError(f"{count - len(group):,} new targets", expected=f"at most {MAX_ADDED:,}")
    names = _next_names(cluster.graph, group[-1], count - len(group))
    return with_copies(cluster, names, *group)


def set_units(cluster: ClusterLike, where: Where, kind: str, count: int) -> Cluster:
    """Return the cluster with exactly `count` units of a type in each of these targets.

    The units have to be one vertex of the target, with ids (as an R document has them).  Other
    properties of the vertex stay.

    Raises
    ------
    ClusterError
        if a target has no such vertex, or several.
    """
    check("count", count, Integral, "a whole number")
    if not 1 <= count <= MAX_ADDED:
        raise ConfigError(f"{count:,} units of {kind}", expected=f"1 to {MAX_ADDED:,}")
    cluster = as_cluster(cluster)
    graph = cluster.graph
    ids = Idset.from_range(0, count - 1)
    changes = []
    for key in targets_where(cluster, where):
        found = [(inner, rg.pool_of(graph, inner)) for inner in rg.inside(rg.children_map(graph), key)]
        mine = [(inner, pool) for inner, pool in found if pool.type == kind]
        if len(mine) != 1 or mine[0][1].ids is None:
            host = rg.pool_of(graph, key).name
            raise ClusterError(f"{host} has {len(mine)} vertices of type {kind}", expected="one, with ids")
        changes.append((mine[0][0], mine[0][1].replace(ids=ids, size=count)))
    return with_pools(cluster, changes)


def _next_names(graph: rg.ResourceGraph, last: str, count: int) -> list[str]:
    """Return names that continue from the highest number of the last target's basename."""
    stem, _ = split_name(rg.pool_of(graph, last).name)
    numbers = (split_name(rg.pool_of(graph, key).name) for key in rg.execution_targets(graph))
    first = max((number + 1 for base, number in numbers if base == stem and number is not None), default=0)
    return [f"{stem}{first + turn}" for turn in range(count)]


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
    targets = rg.execution_targets(graph)
    within = {*targets, *rg.inside(rg.children_map(graph), *targets)}
    paths = {key: where for key, where in rg.subsystem_paths(graph).items() if key not in within}
    found = [key for key, where in paths.items() if path in (where, rg.pool_of(graph, key).name)]
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
    kinds = [rg.pool_of(one, rg.execution_targets(one)[0]).type for one in (graph, more)]
    if kinds[0] != kinds[1]:
        raise ClusterError(f"execution targets of type {kinds[1]!r}", expected=f"type {kinds[0]!r}")
    targets = rg.execution_targets(more)
    first = new_names(graph, [rg.pool_of(more, key).name for key in targets])
    ranks = {rg.pool_of(more, key).rank: first + turn for turn, key in enumerate(targets)}
    known = _shared_vertices(graph, more, rg.containment_root(graph) if under is None else under)
    new_keys = NewKeys(graph)
    keys = {key: known.get(key) or new_keys.of(key) for key in more}
    edited = EditedGraph(cluster)
    with collector_paused():
        for old, new in keys.items():
            if old not in known:
                edited.add(new, _ranked(rg.pool_of(more, old), ranks))
        for source, target, subsystem, data in rg.edge_rows(more):
            if source not in known or target not in known:
                edited.join(keys[source], keys[target], {subsystem: dict(data)})
        return edited.finish()


def _ranked(pool: Pool, ranks: Mapping[int | None, int]) -> Pool:
    """Return a pool with the rank of its target in the whole, without its place in its document."""
    extra = extra_without(pool, "uniq_id", "paths", "id")
    return pool.replace(rank=None if pool.rank is None else ranks.get(pool.rank, pool.rank), extra=extra)


def _shared_vertices(graph: rg.ResourceGraph, more: rg.ResourceGraph, under: str) -> dict[str, str]:
    """Return vertex of the part → vertex of the cluster, for what is outside of nodes and is in both."""
    root = rg.containment_root(more)
    targets = rg.execution_targets(more)
    own = {*targets, *rg.inside(rg.children_map(more), *targets)}
    stem, cut = rg.subsystem_paths(graph)[under], len(rg.subsystem_paths(more)[root])
    found = {root: under}
    places = rg.paths_by_subsystem(graph)
    holders = {rg.pool_of(one, key).type for one in (graph, more) for key in one if one.adj[key]}
    for subsystem, paths in rg.paths_by_subsystem(more).items():
        there = {path: key for key, path in places.get(subsystem, {}).items()}
        for key, path in paths.items():
            meets = there.get(stem + path[cut:] if subsystem == rg.CONTAINMENT else path)
            if meets is None or key in own or key in found:
                continue
            kind = rg.pool_of(more, key).type
            if rg.pool_of(graph, meets).type != kind or kind not in holders:  # another pool of units, say
                raise ClusterError(f"there is already a vertex {path!r}", expected="another name")
            found[key] = meets
    return found
