"""Resource graph → JGF, as it was read or as Fluxion loads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from simsched.errors import ConfigError
from simsched.formats.cluster.jgf import (
    Edge,
    EdgeMetadata,
    Jgf,
    Metadata,
    OddEdge,
    OddVertex,
    Vertex,
)
from simsched.garbage import collector_paused
from simsched.graph import resource_graph as rg
from simsched.graph.pool import DRAINED, NOTHING, OUTER, UP, Pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

AS_READ, FLUXION = "as-read", "fluxion"
DIALECTS = (AS_READ, FLUXION)

_KNOWN = frozenset(Metadata.__struct_fields__)


def to_jgf(graph: rg.ResourceGraph, *, dialect: str = AS_READ, expand: bool | None = None) -> Jgf:
    """Return the JGF of a graph, vertices in graph order.

    Dialect ``as-read`` writes a vertex that came from JGF with the keys it had, and every
    other one in full.  ``fluxion`` gives every vertex numeric ids, ``uniq_id``, ``rank`` and
    ``paths``, which Fluxion's reader needs.  `expand` (default: in dialect fluxion) turns a
    pool with unit ids (R_lite's ``core: 0-47``) into one vertex per unit.

    Raises
    ------
    ConfigError
        for an unknown dialect.
    """
    if dialect not in DIALECTS:
        raise ConfigError(f"unknown dialect {dialect!r}", expected=" or ".join(DIALECTS))
    with collector_paused():
        writer = _Writer(graph, fluxion=dialect == FLUXION)
        vertices, edges = writer.vertices(), writer.edges()
        if expand or (expand is None and dialect == FLUXION):
            vertices, edges = _expanded(vertices, edges)
        given = graph.graph.get("edges_given", True) or bool(edges)
        facts = graph.graph
        document = facts.get("document", {}) if facts.get("source") == "JGF" else {}
        return Jgf(vertices, edges if given else None, facts.get("jgf", {}), document)


class _Writer:
    """The facts about the whole graph that writing one vertex needs."""

    def __init__(self, graph: rg.ResourceGraph, *, fluxion: bool) -> None:
        self.graph = graph
        self.fluxion = fluxion
        self.names = self._ids()
        self.paths = rg.paths_by_subsystem(graph)
        self.ranks = _inherited_ranks(graph)
        self.our_ranks = graph.graph.get("assigned_ranks", frozenset())

    def _ids(self) -> dict[str, str]:
        """Return vertex key → JGF id: the key itself if it came from JGF, else numbers."""
        numeric = all(key.isascii() and key.isdigit() and str(int(key)) == key for key in self.graph)
        if numeric or (not self.fluxion and any(pool.given is not None for _, pool in rg.pools(self.graph))):
            return {key: key for key in self.graph}
        return {key: str(number) for number, key in enumerate(self.graph)}

    def vertices(self) -> list[Vertex]:
        return [self._vertex(key, pool) for key, pool in rg.pools(self.graph)]

    def _vertex(self, key: str, pool: Pool) -> Vertex:
        full = self.fluxion or pool.given is None
        given: frozenset[str] = _WHOLE if full else pool.given  # type: ignore[assignment]
        metadata = self._metadata(key, pool, given, full=full)
        if pool.extra is NOTHING:
            return Vertex(self.names[key], metadata)
        return self._with_extra(key, pool, metadata)

    def _metadata(self, key: str, pool: Pool, given: frozenset[str], *, full: bool) -> Metadata:
        number = int(name) if (name := self.names[key]).isascii() and name.isdigit() else name
        own_rank = -1 if pool.rank is None or key in self.our_ranks else pool.rank
        rank = self.ranks.get(key, -1) if full else own_rank
        size = 1 if pool.ids is None else len(pool.ids)
        return Metadata(
            type=pool.type,
            basename=pool.basename if "basename" in given or pool.basename != pool.type else UNSET,
            name=pool.name if "name" in given or pool.name != _default_name(pool, given) else UNSET,
            id=(-1 if pool.id is None else pool.id) if "id" in given else UNSET,
            uniq_id=number if "uniq_id" in given else UNSET,
            rank=rank if "rank" in given or rank >= 0 else UNSET,
            exclusive=False if "exclusive" in given else UNSET,
            unit=pool.unit if "unit" in given or pool.unit else UNSET,
            size=pool.size if "size" in given or pool.size != size else UNSET,
            status=(0 if pool.status == UP else 1) if "status" in given or pool.status != UP else UNSET,
            drained=pool.status == DRAINED if "drained" in given or pool.status == DRAINED else UNSET,
            properties=dict(pool.properties) if "properties" in given or pool.properties else UNSET,
            uuid=pool.uuid if "uuid" in given or pool.uuid else UNSET,
            ids=str(pool.ids) if pool.ids is not None else UNSET,
            paths=self._paths(key) if "paths" in given else UNSET,
        )

    def _paths(self, key: str) -> dict[str, str]:
        return {name: found[key] for name, found in self.paths.items() if key in found}

    def _with_extra(self, key: str, pool: Pool, metadata: Metadata) -> Vertex:
        """Put back the unusual keys; in dialect fluxion only those that Fluxion accepts."""
        for name, value in pool.extra.items():
            if name in _KNOWN and not (self.fluxion and name in _NEEDED):
                setattr(metadata, name, value)
        more = {name: value for name, value in pool.extra.items() if name not in _KNOWN and name != OUTER}
        outer = pool.extra.get(OUTER, {})
        if more or outer:
            return OddVertex(self.names[key], metadata, more, dict(outer))
        return Vertex(self.names[key], metadata)

    # --- edges

    def edges(self) -> list[Edge]:
        form = self.graph.graph.get("edge_form", "pair")
        joined: dict[tuple[str, str], Edge] = {}
        found = []
        for source, target, subsystem, data in self._order():
            edge = self._edge(source, target, subsystem, data, data.get("form", form))
            if edge.metadata is not UNSET and edge.metadata.name is not UNSET:
                first = joined.setdefault((source, target), edge)
                if first is not edge:
                    first.metadata.name.update(edge.metadata.name)  # type: ignore[union-attr]
                    continue
            found.append(edge)
        return found

    def _order(self) -> Iterable[tuple[str, str, str, Mapping[str, Any]]]:
        """Return the edges in the order in which they were read; new ones come last."""
        order = self.graph.graph.get("edge_order")
        if order is None:
            return rg.edge_rows(self.graph)
        left = {row[:3]: row for row in rg.edge_rows(self.graph)}
        kept = [row for triple in order if (row := left.pop(triple, None)) is not None]
        return [*kept, *left.values()]

    def _edge(self, source: str, target: str, subsystem: str, data: Mapping[str, Any], form: str) -> Edge:
        ends = self.names[source], self.names[target]
        metadata = _edge_metadata(subsystem, data["relationship"], "pair" if self.fluxion else form)
        more, outer = data.get("more", {}), data.get("outer", {})
        if more or outer:
            return OddEdge(*ends, metadata, dict(more), dict(outer))
        return Edge(*ends, metadata)


_WHOLE = frozenset(
    {"basename", "name", "id", "uniq_id", "rank", "exclusive", "unit", "size", "uuid", "paths", "properties"}
)
_NEEDED = frozenset({"id", "rank", "uniq_id", "paths", "properties", "status", "unit", "uuid"})


def _default_name(pool: Pool, given: frozenset[str]) -> str:
    """Return the name that a reader derives by itself: from basename and id, or from the path."""
    if "id" in given:
        return pool.basename if pool.id is None else f"{pool.basename}{pool.id}"
    return pool.name if "paths" in given else pool.basename


def _edge_metadata(subsystem: str, relationship: str, form: str) -> Any:
    if form == "name":
        return EdgeMetadata(name={subsystem: relationship})
    usual = relationship == rg.CONTAINS
    if usual and subsystem == rg.CONTAINMENT and form in ("absent", "empty"):
        return UNSET if form == "absent" else EdgeMetadata()
    if usual and form == "subsystem":
        return EdgeMetadata(subsystem=subsystem)
    if subsystem == rg.CONTAINMENT and form == "relationship":
        return EdgeMetadata(relationship=relationship)
    return EdgeMetadata(subsystem=subsystem, relationship=relationship)


def _inherited_ranks(graph: rg.ResourceGraph) -> dict[str, int]:
    """Return vertex → the rank of the target that it is or is in; vertices above have none."""
    below = rg.children_map(graph)
    ranks: dict[str, int] = {}
    for target in rg.execution_targets(graph, below):
        rank = rg.pool_of(graph, target).rank
        if rank is not None:
            ranks.update(dict.fromkeys((target, *rg.inside(below, target)), rank))
    return ranks


# --- one vertex per unit ---------------------------------------------------------------


def _expanded(vertices: list[Vertex], edges: list[Edge]) -> tuple[list[Vertex], list[Edge]]:
    """Replace each vertex that names its units by one vertex per unit; ids are numbered from 0 again."""
    if not any(vertex.metadata.ids is not UNSET for vertex in vertices):
        return vertices, edges
    numbers: dict[str, list[str]] = {}
    found: list[Vertex] = []
    for vertex in vertices:
        units = list(_units(vertex))
        numbers[vertex.id] = [str(len(found) + n) for n in range(len(units))]
        for number, unit in zip(numbers[vertex.id], units, strict=True):
            unit.id = number
            unit.metadata.uniq_id = int(number)
        found.extend(units)
    return found, [
        replace(edge, source=source, target=target)
        for edge in edges
        for source in numbers[edge.source]
        for target in numbers[edge.target]
    ]


def _units(vertex: Vertex) -> Iterator[Vertex]:
    """Yield a vertex for each unit of a pool that names them; the vertex itself if it names none."""
    from simsched.formats.rfc.idset import Idset

    pool = vertex.metadata
    if pool.ids is UNSET:
        yield vertex
        return
    for number in Idset.parse(pool.ids).expand():
        name = f"{pool.basename}{number}"
        paths: dict[str, str] | UnsetType = UNSET
        if pool.paths is not UNSET:
            paths = {system: f"{path.rpartition('/')[0]}/{name}" for system, path in pool.paths.items()}
        yield replace(vertex, metadata=replace(pool, name=name, id=number, size=1, ids=UNSET, paths=paths))
