"""Edited graphs that share every unchanged part with the old one, which is safe since that is frozen.

An edit costs a copy of the table of vertices and not of the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx

from simsched.errors import ClusterError
from simsched.garbage import collector_paused
from simsched.graph import resource_graph as rg
from simsched.graph.build.assemble import finish
from simsched.graph.cluster import Cluster
from simsched.graph.pool import NOTHING, Pool, split_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def with_pools(cluster: Cluster, changes: Iterable[tuple[str, Pool]]) -> Cluster:
    """Return the cluster with other pools at some vertices."""
    graph = cluster.graph
    nodes, after, before = rg.tables(graph)
    edited = _sharing(graph, {**nodes, **{key: {"pool": pool} for key, pool in changes}}, after, before)
    edited = rg.frozen(edited, rg.children_maps(graph))
    return Cluster(edited, name=cluster.name, source=cluster.source)


def without_targets(cluster: Cluster, targets: Sequence[str]) -> Cluster:
    """Return the cluster without targets and the vertices that belong to them alone."""
    graph = cluster.graph
    gone = _belonging(graph, targets)
    nodes, after, before = rg.tables(graph)
    with collector_paused():
        kept = {key: value for key, value in nodes.items() if key not in gone}
        edited = _sharing(graph, kept, _pruned(after, gone), _pruned(before, gone))
        return _edited(cluster, edited)


def _pruned(table: dict[str, Any], gone: set[str]) -> dict[str, Any]:
    """Return a table of neighbours without some vertices; rows that name none of them are shared."""
    return {
        key: row
        if gone.isdisjoint(row)
        else {neighbour: keys for neighbour, keys in row.items() if neighbour not in gone}
        for key, row in table.items()
        if key not in gone
    }


def with_copies(cluster: Cluster, names: Sequence[str], *models: str, under: str | None = None) -> Cluster:
    """Return the cluster with copies of the models, in turn, under new names.

    Each copy is beside its model, or contained in the vertex `under`.
    """
    graph = cluster.graph
    rank = new_names(graph, names)
    keys = NewKeys(graph)
    parts = {model: _belonging(graph, [model]) for model in models}
    edges = _edges_by_part(graph, parts)
    ordered = {}
    for model, part in parts.items():
        within = [model, *rg.inside(rg.children_map(graph), model)]
        ordered[model] = [*within, *sorted(part.difference(within))]
    edited = EditedGraph(cluster)
    with collector_paused():
        for turn, name in enumerate(names):
            model = models[turn % len(models)]
            renamed = {key: keys.of(_key_of_copy(key, model, name)) for key in ordered[model]}
            for old, new in renamed.items():
                pool = _copied(rg.pool_of(graph, old))
                if old == model:
                    basename, number = split_name(name)
                    pool = pool.replace(name=name, basename=basename, id=number, rank=rank + turn)
                elif pool.rank is not None:
                    pool = pool.replace(rank=rank + turn)
                edited.add(new, pool)
            for source, target, subsystem, data in edges[model]:
                ends = (source, target)
                above = under if subsystem == rg.CONTAINMENT and model in ends else None
                first, second = (renamed.get(end, above or end) for end in ends)
                edited.join(first, second, {subsystem: dict(data)})
        return edited.finish()


def new_names(graph: rg.ResourceGraph, names: Iterable[str]) -> int:
    """Return the next free rank for targets of new names; ClusterError for a name that is taken."""
    targets = [rg.pool_of(graph, key) for key in rg.execution_targets(graph)]
    taken = {pool.name for pool in targets}
    for name in names:
        if name in taken:
            raise ClusterError(f"there is already a target called {name!r}")
        taken.add(name)
    return max(int(pool.rank or 0) for pool in targets) + 1


class EditedGraph:
    """The tables of a graph to which vertices and edges are added; the old graph shares their other rows."""

    def __init__(self, old: Cluster) -> None:
        self._old = old
        self._nodes, self._after, self._before = (dict(table) for table in rg.tables(old.graph))
        self._fresh: set[int] = set()

    def add(self, key: str, pool: Pool) -> None:
        """Add a vertex."""
        self._nodes[key], self._after[key], self._before[key] = {"pool": pool}, {}, {}

    def join(self, source: str, target: str, edge: dict[str, Any]) -> None:
        """Add an edge (subsystem → its attributes) between vertices that exist."""
        after, before = self._after, self._before
        for table, key in ((after, source), (before, target)):
            if id(table[key]) not in self._fresh:  # the row may still be that of the old graph
                table[key] = dict(table[key])
                self._fresh.add(id(table[key]))
        after[source][target] = before[target][source] = {**after[source].get(target, {}), **edge}

    def finish(self) -> Cluster:
        """Return the cluster of the graph, which is checked and frozen."""
        edited = _sharing(self._old.graph, self._nodes, self._after, self._before)
        return _edited(self._old, edited)


def _copied(pool: Pool) -> Pool:
    """Return the pool without the facts that identify one vertex."""
    return pool.replace(uuid="", extra=extra_without(pool, "uniq_id", "paths", "uuid", "id"))


def extra_without(pool: Pool, *keys: str) -> Any:
    """Return the pool's unknown keys without those that hold the original form of a changed value."""
    if pool.extra.keys().isdisjoint(keys):
        return pool.extra
    return {key: value for key, value in pool.extra.items() if key not in keys} or NOTHING


def _edges_by_part(graph: rg.ResourceGraph, parts: dict[str, set[str]]) -> dict[str, list[Any]]:
    owner: dict[str, str] = {key: model for model, part in parts.items() for key in part}
    found: dict[str, list[Any]] = {model: [] for model in parts}
    for row in rg.edge_rows(graph):
        owners = {owner[end] for end in row[:2] if end in owner}
        for model in owners:
            found[model].append(row)
    return found


class NewKeys:
    """Keys for new vertices: numbers if all keys are numbers (JGF), else the wanted ones, made distinct."""

    def __init__(self, graph: rg.ResourceGraph) -> None:
        self._taken = set(graph)
        self._numeric = all(key.isascii() and key.isdigit() for key in graph)
        self._next = max(map(int, graph), default=0) + 1 if self._numeric else 0

    def of(self, wanted: str) -> str:
        """Return a key that no vertex has."""
        if self._numeric:
            self._next += 1
            return str(self._next - 1)
        new, turn = wanted, 1
        while new in self._taken:
            turn += 1
            new = f"{wanted}+{turn}"
        self._taken.add(new)
        return new


def _key_of_copy(key: str, model: str, name: str) -> str:
    """Return the key of the copy of a vertex that belongs to `model`, whose copy is called `name`."""
    if key != model and not key.startswith(f"{model}/"):
        return f"{name}/{key}"
    above, slash, _ = model.rpartition("/")
    return f"{above}{slash}{name}{key[len(model) :]}"


def _belonging(graph: rg.ResourceGraph, targets: Sequence[str]) -> set[str]:
    """Return targets, the vertices in them, and those of other subsystems that serve nothing else."""
    found = {*targets, *rg.inside(rg.children_map(graph), *targets)}
    layer = list(found)
    while layer:
        layer = [
            vertex
            for vertex in dict.fromkeys(child for key in layer for child in rg.dominated(graph, key))
            if vertex not in found and found.issuperset(rg.dominating(graph, vertex))
        ]
        found.update(layer)
    return found


def _sharing(
    graph: rg.ResourceGraph, nodes: dict[str, Any], after: dict[str, Any], before: dict[str, Any]
) -> rg.ResourceGraph:
    """Return a graph made of these tables, which may be shared with another frozen graph."""
    edited: rg.ResourceGraph = nx.MultiDiGraph()
    edited.graph.update(graph.graph)
    inner: Any = edited
    inner._node, inner._adj, inner._pred = nodes, after, before
    return edited


def _edited(cluster: Cluster, graph: rg.ResourceGraph) -> Cluster:
    """Return the cluster of a graph with other vertices, which is checked."""
    graph.graph.pop("edge_order", None)
    return Cluster(finish(graph), name=cluster.name, source=cluster.source)
