"""JGF → resource graph: every vertex stays the vertex that it was.

Values in a form that the writer would not choose (a status as text, an id of null, paths that do
not follow from the names) are kept in ``Pool.extra`` under their own keys, so that
JGF → graph → JGF is the identity up to the order of keys in an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from simsched.errors import ClusterError, FormatError
from simsched.formats.cluster.jgf import OddEdge, OddVertex
from simsched.formats.rfc.idset import Idset
from simsched.garbage import collector_paused
from simsched.graph import resource_graph as rg
from simsched.graph.build.assemble import add_edges, add_vertices, finish, new_graph, set_pool
from simsched.graph.pool import DOWN, DRAINED, NOTHING, OUTER, STATUSES, UP, Pool, check_pool, split_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.cluster.jgf import Edge, Jgf, Metadata, Vertex

_OPTIONAL = (
    "basename", "name", "id", "uniq_id", "rank", "exclusive", "unit",
    "size", "status", "drained", "properties", "uuid", "ids", "paths",
)  # fmt: skip
_NULLABLE = ("id", "rank", "unit", "uuid", "properties")


def from_jgf(jgf: Jgf, *, name: str = "cluster", where: str | None = None) -> rg.ResourceGraph:
    """Return the resource graph of a JGF document; vertex keys are its ids.

    Raises
    ------
    FormatError, ClusterError
        with the vertex or edge: a duplicate id, an edge to an unknown vertex, a negative size,
        containment that is not a tree, ids that are not an idset …
    """
    with collector_paused():
        graph = new_graph(name, source="JGF", document=dict(jgf.document_keys), jgf=dict(jgf.graph_keys))
        return keep_odd_paths(finish(fill(graph, jgf, where)))


def fill(graph: rg.ResourceGraph, jgf: Jgf, where: str | None) -> rg.ResourceGraph:
    """Add a document's vertices and edges to an unfinished graph.

    The lists of `jgf` are emptied as they are read, so that a million vertices are not in memory twice.
    """
    reader = _PoolReader(where)
    add_vertices(graph, reader.pools(jgf.vertices))
    graph.graph["given_paths"] = reader.paths
    _add_edges(graph, jgf.edges, where)
    return graph


class _PoolReader:
    """Makes pools of JGF metadata; texts and mappings that occur often are kept once."""

    def __init__(self, where: str | None) -> None:
        self.where = where
        self.paths: dict[str, str | dict[str, str]] = {}
        self._text: dict[str, str] = {}
        self._given: dict[tuple[bool, ...], frozenset[str]] = {}
        self._properties: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}

    def pools(self, vertices: list[Vertex]) -> Iterator[tuple[str, Pool]]:
        """Yield (key, pool), taking the vertices out of the list."""
        vertices.reverse()
        while vertices:
            vertex = vertices.pop()
            yield vertex.id, self._pool(vertex)

    def _pool(self, vertex: Vertex) -> Pool:
        m = vertex.metadata
        share = self._text.setdefault
        type_ = share(m.type, m.type)
        basename = type_ if m.basename is UNSET else share(m.basename, m.basename)
        id_, name = _id_and_name(vertex, basename)
        ids = None if m.ids is UNSET else Idset.parse(m.ids, where=f"vertex {vertex.id!r}: ids")
        pool = Pool(
            type=type_,
            name=share(name, name),
            basename=basename,
            id=id_,
            uuid=m.uuid or "",
            size=(len(ids) if ids is not None else 1) if m.size is UNSET else m.size,
            unit=share(m.unit, m.unit) if m.unit else "",
            rank=None if m.rank is UNSET or m.rank is None or m.rank == -1 else m.rank,
            status=_status(m, vertex),
            properties=self._mapping(m) if m.properties else NOTHING,
            ids=ids,
            extra=_extra(vertex),
            given=self._given_keys(m),
        )
        if m.paths is not UNSET:
            alone = m.paths.get(rg.CONTAINMENT) if len(m.paths) == 1 else None
            self.paths[vertex.id] = m.paths if alone is None else alone
        check_pool(pool, vertex.id)
        return pool

    def _mapping(self, m: Metadata) -> dict[str, str]:
        found = m.properties
        pairs = tuple(found.items()) if isinstance(found, dict) else tuple((n, "") for n in found or ())
        return self._properties.setdefault(pairs, dict(pairs))

    def _given_keys(self, m: Metadata) -> frozenset[str]:
        mark = (
            m.basename is UNSET, m.name is UNSET, m.id is UNSET, m.uniq_id is UNSET, m.rank is UNSET,
            m.exclusive is UNSET, m.unit is UNSET, m.size is UNSET, m.status is UNSET, m.drained is UNSET,
            m.properties is UNSET, m.uuid is UNSET, m.ids is UNSET, m.paths is UNSET,
        )  # fmt: skip
        found = self._given.get(mark)
        if found is None:
            found = frozenset(key for key, unset in zip(_OPTIONAL, mark, strict=True) if not unset)
            self._given[mark] = found
        return found


def _id_and_name(vertex: Vertex, basename: str) -> tuple[int | None, str]:
    """Return a vertex's id and name; an id that Fluxion's writer left out is inferred as its reader does.

    That is the number that the name (or the last name of its path) ends in, or ``uniq_id``.
    A vertex without paths was not written by Fluxion, so its id is not inferred.
    """
    m = vertex.metadata
    if m.id is not UNSET or m.paths is UNSET:
        id_ = None if m.id is UNSET or m.id is None or m.id == -1 else m.id
        return id_, m.name if m.name is not UNSET else (basename if id_ is None else f"{basename}{id_}")
    path = m.paths.get(rg.CONTAINMENT) or next(iter(m.paths.values()), "")
    name = path.rpartition("/")[2] if m.name is UNSET else m.name
    stem, number = split_name(name)
    if stem == basename or (m.name is not UNSET and m.type == "node" and number is not None):
        return number, name
    if name == basename:
        return None, name
    own = vertex.id
    unique: int | None
    if type(m.uniq_id) is int:
        unique = m.uniq_id if m.uniq_id >= 0 else None
    else:  # the vertex's own id, if that is a number
        unique = int(own) if own.isascii() and own.isdigit() and len(own) <= 15 else None
    if m.name is not UNSET:
        return unique, name
    return unique, basename if unique is None else f"{basename}{unique}"


def _status(m: Metadata, vertex: Vertex) -> str:
    status = m.status
    if status is UNSET or status == 0:
        return UP
    if status == 1:
        return DRAINED if m.drained is True else DOWN
    if status in STATUSES:
        return str(status)
    raise FormatError(
        f"status {status!r}",
        where=f"vertex {vertex.id!r}",
        expected="0 (up), 1 (down), 'up', 'down' or 'drained'",
    )


def _extra(vertex: Vertex) -> dict[str, Any]:
    """Return the keys that the writer cannot derive: unknown ones, and known ones in an unusual form."""
    m = vertex.metadata
    extra: dict[str, Any] = {}
    if m.id is None or m.rank is None or m.unit is None or m.uuid is None or m.properties is None:
        extra = {key: None for key in _NULLABLE if getattr(m, key) is None}
    if m.exclusive is True:
        extra["exclusive"] = True
    if type(m.status) is str:
        extra["status"] = m.status
    if type(m.properties) is list:
        extra["properties"] = m.properties
    if m.uniq_id is not UNSET and not (type(m.uniq_id) is int and str(m.uniq_id) == vertex.id):
        extra["uniq_id"] = m.uniq_id
    if type(vertex) is OddVertex:
        extra.update(vertex.more)
        if vertex.outer:
            extra[OUTER] = vertex.outer
    return extra or NOTHING  # type: ignore[return-value]


# --- edges ---------------------------------------------------------------------------


def _add_edges(graph: rg.ResourceGraph, edges: list[Edge] | None, where: str | None) -> None:
    """Add the edges; how most of them were written is noted once, exceptions on the edge."""
    if edges is None:
        graph.graph["edges_given"] = False
        return
    order: list[tuple[str, str, str]] = []
    add_edges(graph, _edges(graph, edges, order, where))
    if any(one != two[:3] for one, two in zip(order, rg.edge_rows(graph), strict=True)):
        graph.graph["edge_order"] = order


def _edges(
    graph: rg.ResourceGraph, edges: list[Edge], order: list[tuple[str, str, str]], where: str | None
) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield (source, target, subsystem, attributes), and note the order of the document."""
    own = {key: key for key in graph}
    common: str | None = None
    for number, edge in enumerate(edges):
        source, target = own.get(edge.source), own.get(edge.target)
        if source is None or target is None:
            lost = edge.source if source is None else edge.target
            raise ClusterError(f"no vertex has the id {lost!r}", where=_place(where, edge, number))
        form, found = _subsystems(edge, where, number)
        if common is None:
            common = graph.graph["edge_form"] = form
        extra: dict[str, Any] = {} if form == common else {"form": form}
        if type(edge) is OddEdge:
            extra |= {key: value for key, value in (("more", edge.more), ("outer", edge.outer)) if value}
        for subsystem, relationship in found:
            order.append((source, target, subsystem))
            yield source, target, subsystem, {"relationship": relationship, **extra}


_PLAIN = [(rg.CONTAINMENT, rg.CONTAINS)]
_USUAL: dict[Any, str] = {UNSET: "subsystem", rg.CONTAINS: "pair"}


def _subsystems(edge: Edge, where: str | None, number: int) -> tuple[str, list[tuple[str, str]]]:
    """Return how an edge's metadata is written, and its (subsystem, relationship) pairs."""
    m = edge.metadata
    if m is UNSET:
        return "absent", _PLAIN
    if m.subsystem == rg.CONTAINMENT and m.name is UNSET and m.relationship in _USUAL:
        return _USUAL[m.relationship], _PLAIN
    if m.name is not UNSET:
        if m.subsystem is not UNSET or m.relationship is not UNSET or not m.name:
            place = _place(where, edge, number)
            raise FormatError(
                "'name' beside or without a subsystem", where=place, expected="{subsystem: relationship}"
            )
        return "name", list(m.name.items())
    forms = {(True, True): "empty", (True, False): "relationship", (False, True): "subsystem"}
    form = forms.get((m.subsystem is UNSET, m.relationship is UNSET), "pair")
    subsystem = rg.CONTAINMENT if m.subsystem is UNSET else m.subsystem
    return form, [(subsystem, rg.CONTAINS if m.relationship is UNSET else m.relationship)]


def _place(where: str | None, edge: Edge, number: int) -> str:
    place = f"edges[{number}] ({edge.source!r} -> {edge.target!r})"
    return f"{where}.{place}" if where else place


def keep_odd_paths(graph: rg.ResourceGraph) -> rg.ResourceGraph:
    """Keep the given paths that do not follow from names and edges; the others can be derived again."""
    given = graph.graph.pop("given_paths", None)
    if not given:
        return graph
    made = rg.paths_by_subsystem(graph)
    contained = made.pop(rg.CONTAINMENT)
    for key, paths in given.items():
        elsewhere = {name: found[key] for name, found in made.items() if key in found}
        if type(paths) is str and not elsewhere and contained.get(key) == paths:
            continue
        whole = {rg.CONTAINMENT: paths} if type(paths) is str else paths
        if key in contained:
            elsewhere[rg.CONTAINMENT] = contained[key]
        if whole != elsewhere:
            pool = rg.pool_of(graph, key)
            set_pool(graph, key, pool.replace(extra={**pool.extra, "paths": whole}))
    return graph
