"""What-if edits: pure functions that return another cluster.

The new graph shares all that did not change with the old one, which is frozen: an edit costs
a copy of the table of vertices and not of the graph.

`where` names execution targets: a hostlist (``"node[0-3]"``), an `Idset` of ranks, or an
RFC 31 constraint value.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import networkx as nx

from simsched.arguments import check
from simsched.errors import ClusterError, ConfigError
from simsched.formats.collector import collector_paused
from simsched.formats.hostlist import Hostlist
from simsched.formats.idset import Idset
from simsched.formats.rset_read import check_property
from simsched.graph.assemble import settle
from simsched.graph.cluster import Cluster
from simsched.graph.pool import NOTHING, STATUSES, Pool, split_name
from simsched.graph.resource_graph import (
    ResourceGraph,
    children,
    dominated,
    dominating,
    edge_rows,
    execution_targets,
    pool_of,
    tables,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from simsched.formats.constraint import Constraint

    Where: TypeAlias = str | Idset | Constraint

MAX_ADDED = 1_000_000


def targets_where(cluster: Cluster, where: Where) -> list[str]:
    """Return the execution targets that `where` names, in containment order.

    Raises
    ------
    ClusterError
        if it names a host or rank that is not there, or no target at all.
    """
    check("cluster", cluster, Cluster, "a cluster, as load_cluster gives it")
    targets = execution_targets(cluster.graph)
    if isinstance(where, str):
        wanted = dict.fromkeys(Hostlist.parse(where).expand())
        found = [key for key in targets if pool_of(cluster.graph, key).name in wanted]
        lost = [host for host in wanted if host not in {pool_of(cluster.graph, key).name for key in found}]
        if lost:
            raise ClusterError(f"no execution target is called {lost[0]!r}")
    elif isinstance(where, Idset):
        found = [key for key in targets if pool_of(cluster.graph, key).rank in where]
        if len(found) != len(where):
            known = Idset.from_ids(int(pool_of(cluster.graph, key).rank or 0) for key in targets)
            raise ClusterError(f"no execution target has rank {(where - known).first}")
    else:
        matching = cluster.index.targets_matching(where)
        found = [key for key, fits in zip(cluster.index.targets, matching, strict=True) if fits]
    if not found:
        raise ClusterError(f"no execution target matches {where}")
    return found


# --- vertices stay, pools change -----------------------------------------------------


def set_status(cluster: Cluster, where: Where, status: str) -> Cluster:
    """Return the cluster with targets up, down or drained.

    >>> from simsched.formats.rset import ResourceSet
    >>> small = Cluster.from_rset(ResourceSet.of([("0-3", {"core": "0-3"})], "n[0-3]"))
    >>> [pool_of(set_status(small, "n[1-2]", "down").graph, key).status for key in ("n0", "n1")]
    ['up', 'down']
    """
    check("status", status, str, " or ".join(STATUSES))
    if status not in STATUSES:
        raise ConfigError(f"unknown status {status!r}", expected=" or ".join(STATUSES))
    return _changed(cluster, where, lambda pool: pool.replace(status=status, extra=_without(pool, "status")))


def add_properties(cluster: Cluster, where: Where, *names: str) -> Cluster:
    """Return the cluster with properties added to targets; ``p@gpu`` reaches their gpus as ``p``."""
    for name in names:
        check_property(name)
    edited = _changed(
        cluster, where, lambda pool: _relabelled(pool, {**dict.fromkeys(names, ""), **pool.properties})
    )
    return _on_children(edited, where, names, add=True)


def drop_properties(cluster: Cluster, where: Where, *names: str) -> Cluster:
    """Return the cluster without these properties on targets (and, by suffix, within them)."""
    for name in names:
        check("names", name, str, "the names of properties")
    edited = _changed(
        cluster,
        where,
        lambda pool: _relabelled(pool, {n: v for n, v in pool.properties.items() if n not in names}),
    )
    return _on_children(edited, where, names, add=False)


def _relabelled(pool: Pool, properties: dict[str, str]) -> Pool:
    return pool.replace(properties=properties or NOTHING, extra=_without(pool, "properties"))


def _without(pool: Pool, *keys: str) -> Any:
    """Return the pool's unknown keys but for some that told how a changed value was written."""
    if pool.extra.keys().isdisjoint(keys):
        return pool.extra
    return {key: value for key, value in pool.extra.items() if key not in keys} or NOTHING


def _changed(cluster: Cluster, where: Where, change: Callable[[Pool], Pool]) -> Cluster:
    targets = targets_where(cluster, where)
    graph = cluster.graph
    return _with_pools(cluster, ((key, change(pool_of(graph, key))) for key in targets))


def _on_children(cluster: Cluster, where: Where, names: Sequence[str], *, add: bool) -> Cluster:
    """Put properties with a suffix on what lies within the targets, or take them off."""
    suffixed = [(plain, kind) for plain, _, kind in (name.rpartition("@") for name in names) if plain]
    if not suffixed:
        return cluster
    graph = cluster.graph
    changes = []
    for key in _inside(graph, targets_where(cluster, where)):
        pool = pool_of(graph, key)
        mine = [plain for plain, kind in suffixed if kind == pool.type]
        if mine:
            kept = {name: value for name, value in pool.properties.items() if name not in mine}
            changes.append((key, _relabelled(pool, {**kept, **dict.fromkeys(mine, "")} if add else kept)))
    return _with_pools(cluster, changes)


def _with_pools(cluster: Cluster, changes: Iterable[tuple[str, Pool]]) -> Cluster:
    nodes, after, before = tables(cluster.graph)
    nodes = {**nodes, **{key: {"pool": pool} for key, pool in changes}}
    return _cluster(cluster, _shared(cluster.graph, nodes, after, before))


# --- vertices come and go ------------------------------------------------------------


def restrict(cluster: Cluster, where: Where) -> Cluster:
    """Return the cluster with only these targets; levels above them stay."""
    kept = set(targets_where(cluster, where))
    return _without_targets(cluster, [key for key in execution_targets(cluster.graph) if key not in kept])


def remove_nodes(cluster: Cluster, where: Where) -> Cluster:
    """Return the cluster without these targets and all that is in them.

    Raises
    ------
    ClusterError
        if nothing would be left.
    """
    return _without_targets(cluster, targets_where(cluster, where))


def add_nodes(cluster: Cluster, hosts: str, *, like: str) -> Cluster:
    """Return the cluster with new targets that look like one it has, beside it.

    `like` is a host; the new ones have its inside, properties, status and place (rack, switch,
    distribution unit), and the next free ranks.

    Raises
    ------
    ClusterError
        if `like` is no target, or a new host is there already.
    """
    check("cluster", cluster, Cluster, "a cluster, as load_cluster gives it")
    names = Hostlist.parse(hosts).expand(MAX_ADDED)
    if not names:
        raise ClusterError("no hosts to add")
    return _with_copies(cluster, names, targets_where(cluster, like)[0])


def scale_group(cluster: Cluster, where: Where, count: int) -> Cluster:
    """Return the cluster with exactly `count` targets in a group of like ones.

    Surplus ones go from the end; missing ones are made like the last, in turn beside each
    of the group, and named on from the highest number.
    """
    group = targets_where(cluster, where)
    check("count", count, Integral, "a whole number")
    if count < 0:
        raise ConfigError(f"a group of {count} targets", expected="0 or more")
    if count <= len(group):
        return _without_targets(cluster, group[count:]) if count < len(group) else cluster
    if count - len(group) > MAX_ADDED:
        raise ConfigError(f"{count - len(group):,} new targets", expected=f"at most {MAX_ADDED:,}")
    names = _next_names(cluster.graph, group[-1], count - len(group))
    return _with_copies(cluster, names, *group)


def set_units(cluster: Cluster, where: Where, kind: str, count: int) -> Cluster:
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
    check("cluster", cluster, Cluster, "a cluster, as load_cluster gives it")
    graph = cluster.graph
    ids = Idset.from_range(0, count - 1)
    changes = []
    for key in targets_where(cluster, where):
        found = [(inner, pool_of(graph, inner)) for inner in _inside(graph, [key])]
        mine = [(inner, pool) for inner, pool in found if pool.type == kind]
        if len(mine) != 1 or mine[0][1].ids is None:
            host = pool_of(graph, key).name
            raise ClusterError(f"{host} has {len(mine)} vertices of type {kind}", expected="one, with ids")
        changes.append((mine[0][0], mine[0][1].replace(ids=ids, size=count)))
    return _with_pools(cluster, changes)


def _next_names(graph: ResourceGraph, last: str, count: int) -> list[str]:
    """Return names on from the highest number of the last target's basename."""
    stem, _ = split_name(pool_of(graph, last).name)
    numbers = (split_name(pool_of(graph, key).name) for key in execution_targets(graph))
    first = max((number + 1 for base, number in numbers if base == stem and number is not None), default=0)
    return [f"{stem}{first + turn}" for turn in range(count)]


def _without_targets(cluster: Cluster, targets: Sequence[str]) -> Cluster:
    graph = cluster.graph
    gone = _belonging(graph, targets)
    nodes, after, before = tables(graph)
    with collector_paused():
        return _cluster(
            cluster,
            _shared(
                graph,
                {key: value for key, value in nodes.items() if key not in gone},
                _pruned(after, gone),
                _pruned(before, gone),
                settled=False,
            ),
        )


def _pruned(table: dict[str, Any], gone: set[str]) -> dict[str, Any]:
    """Return a table of neighbours without some vertices; rows that name none of them are shared."""
    return {
        key: row
        if gone.isdisjoint(row)
        else {neighbour: keys for neighbour, keys in row.items() if neighbour not in gone}
        for key, row in table.items()
        if key not in gone
    }


def _inside(graph: ResourceGraph, targets: Iterable[str]) -> Iterator[str]:
    """Yield what lies within the targets."""
    layer = [child for key in targets for child in children(graph, key)]
    while layer:
        yield from layer
        layer = [child for key in layer for child in children(graph, key)]


def _belonging(graph: ResourceGraph, targets: Sequence[str]) -> set[str]:
    """Return targets, what lies in them, and what of other subsystems serves nothing else."""
    found = {*targets, *_inside(graph, targets)}
    layer = list(found)
    while layer:
        layer = [
            vertex
            for vertex in dict.fromkeys(child for key in layer for child in dominated(graph, key))
            if vertex not in found and found.issuperset(dominating(graph, vertex))
        ]
        found.update(layer)
    return found


def _with_copies(cluster: Cluster, names: Sequence[str], *models: str) -> Cluster:
    """Return the cluster with copies of the models, in turn, under new names."""
    graph = cluster.graph
    taken = {pool_of(graph, key).name for key in execution_targets(graph)}
    for name in names:
        if name in taken:
            raise ClusterError(f"there is a target called {name!r} already")
        taken.add(name)
    nodes, after, before = (dict(table) for table in tables(graph))
    keys = _Keys(graph)
    rank = max(int(pool_of(graph, key).rank or 0) for key in execution_targets(graph)) + 1
    parts = {model: _belonging(graph, [model]) for model in models}
    edges = _edges_by_part(graph, parts)
    fresh: set[int] = set()
    with collector_paused():
        for turn, name in enumerate(names):
            model = models[turn % len(models)]
            renamed = keys.of(model, name, parts[model])
            for old, new in renamed.items():
                pool = _copied(pool_of(graph, old))
                if old == model:
                    basename, number = split_name(name)
                    pool = pool.replace(name=name, basename=basename, id=number, rank=rank + turn)
                elif pool.rank is not None:
                    pool = pool.replace(rank=rank + turn)
                nodes[new], after[new], before[new] = {"pool": pool}, {}, {}
            for source, target, subsystem, data in edges[model]:
                ends = renamed.get(source, source), renamed.get(target, target)
                _join((after, before), fresh, ends, {subsystem: dict(data)})
        return _cluster(cluster, _shared(graph, nodes, after, before, settled=False))


def _copied(pool: Pool) -> Pool:
    """Return the pool without what is true of one vertex alone."""
    return pool.replace(uuid="", extra=_without(pool, "uniq_id", "paths", "uuid", "id"))


def _edges_by_part(graph: ResourceGraph, parts: dict[str, set[str]]) -> dict[str, list[Any]]:
    owner: dict[str, str] = {key: model for model, part in parts.items() for key in part}
    found: dict[str, list[Any]] = {model: [] for model in parts}
    for row in edge_rows(graph):
        owners = {owner[end] for end in row[:2] if end in owner}
        for model in owners:
            found[model].append(row)
    return found


def _join(
    both: tuple[dict[str, Any], dict[str, Any]], fresh: set[int], ends: tuple[str, str], edge: dict[str, Any]
) -> None:
    """Add an edge to tables whose rows may still be shared with the old graph."""
    (after, before), (source, target) = both, ends
    for table, key in ((after, source), (before, target)):
        if id(table[key]) not in fresh:
            table[key] = dict(table[key])
            fresh.add(id(table[key]))
    after[source][target] = before[target][source] = {**after[source].get(target, {}), **edge}


class _Keys:
    """Keys for copies: numbers where all keys are numbers (JGF), else by the new name."""

    def __init__(self, graph: ResourceGraph) -> None:
        self.graph = graph
        self.numeric = all(key.isascii() and key.isdigit() for key in graph)
        self._next = max((int(key) for key in graph), default=0) + 1 if self.numeric else 0

    def of(self, model: str, name: str, part: set[str]) -> dict[str, str]:
        """Return old key → new key for a model and what belongs to it, in graph order."""
        ordered = list(self._ordered(model, part))
        if self.numeric:
            renamed = {key: str(self._next + turn) for turn, key in enumerate(ordered)}
            self._next += len(ordered)
            return renamed
        return {key: self._by_name(key, model, name) for key in ordered}

    def _ordered(self, model: str, part: set[str]) -> Iterator[str]:
        inside = [model, *_inside(self.graph, [model])]
        yield from inside
        yield from sorted(part.difference(inside))

    def _by_name(self, key: str, model: str, name: str) -> str:
        if key == model:
            new = f"{model.rpartition('/')[0]}/{name}" if "/" in model else name
        elif key.startswith(f"{model}/"):
            new = (
                f"{model.rpartition('/')[0]}/{name}{key[len(model) :]}"
                if "/" in model
                else name + key[len(model) :]
            )
        else:
            new = f"{name}/{key}"
        if new in self.graph:
            raise ClusterError(f"there is a vertex with the key {new!r} already")
        return new


# --- the new graph -------------------------------------------------------------------


def _shared(
    graph: ResourceGraph,
    nodes: dict[str, Any],
    after: dict[str, Any],
    before: dict[str, Any],
    *,
    settled: bool = True,
) -> ResourceGraph:
    """Return a frozen graph made of these tables, which may be shared with another frozen graph."""
    edited: ResourceGraph = nx.MultiDiGraph()
    edited.graph.update(graph.graph)
    inner: Any = edited
    inner._node, inner._adj, inner._pred = nodes, after, before
    if not settled:
        edited.graph.pop("edge_order", None)
        settle(edited)
    return nx.freeze(edited)  # type: ignore[no-any-return,unused-ignore]


def _cluster(cluster: Cluster, graph: ResourceGraph) -> Cluster:
    return Cluster(graph, name=cluster.name, source=cluster.source)
