"""GRUG → resource graph: the recipe is walked depth first, as Fluxion does."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from simsched.errors import ClusterError, LimitError
from simsched.formats.cluster.grug import ASSOCIATE_BY_PATH_IN, MULTIPLY
from simsched.garbage import collector_paused
from simsched.graph.build.assemble import add_edge, add_vertices, finish, new_graph
from simsched.graph.pool import numbered
from simsched.graph.resource_graph import ResourceGraph, pool_of

if TYPE_CHECKING:
    from simsched.formats.cluster.grug import Grug, GrugEdge, GrugVertex

MAX_GENERATED = 5_000_000
"""The most vertices, and the most edges, that a recipe may generate."""


def from_grug(grug: Grug, *, name: str = "cluster") -> ResourceGraph:
    """Return the graph that a GRUG recipe generates; keys are paths of names.

    Raises
    ------
    LimitError
        if it would have more than 5,000,000 vertices or edges; counted before they are made.
    ClusterError
        if the recipe is not a forest, has two roots of one subsystem, or does not make a cluster.
    """
    with collector_paused():
        graph = new_graph(name, source="GRUG")
        generator = _Generator(grug, graph)
        generator.run()
        return finish(graph)


class _Generator:
    """One walk over the recipe; `made` maps each recipe vertex to the vertices made from it."""

    def __init__(self, grug: Grug, graph: ResourceGraph) -> None:
        self.grug = grug
        self.graph = graph
        self.made: dict[str, list[str]] = {}
        self.paths: dict[str, dict[str, str]] = defaultdict(dict)
        self.out: dict[str, list[GrugEdge]] = defaultdict(list)
        self.edges_made = 0
        for edge in grug.edges:
            self.out[edge.source].append(edge)

    def run(self) -> None:
        """Generate from each root in turn."""
        roots: dict[str, str] = {}
        for vertex in self.grug.vertices.values():
            if vertex.root:
                if vertex.subsystem in roots:
                    raise self._fault(vertex.line, f"a second root of subsystem {vertex.subsystem!r}")
                roots[vertex.subsystem] = vertex.name
                self.made[vertex.name] = [self._make(vertex, "", 0)]
                self._descend(vertex.name)
        for vertex in self.grug.vertices.values():
            if vertex.name not in self.made:
                raise self._fault(vertex.line, f"no root reaches vertex {vertex.name!r}")

    def _descend(self, root: str) -> None:
        """Follow the recipe's edges depth first; `scales` are the multipliers above, nearest first."""
        stack: list[tuple[GrugEdge, tuple[int, ...]]] = [(edge, ()) for edge in reversed(self.out[root])]
        while stack:
            edge, scales = stack.pop()
            if edge.target in self.made:
                raise self._fault(edge.line, f"a second path to vertex {edge.target!r}")
            if edge.method == MULTIPLY:
                self._multiply(edge, scales)
                scales = (edge.scale, *scales)
            else:
                self._associate(edge)
            stack.extend((below, scales) for below in reversed(self.out[edge.target]))

    def _multiply(self, edge: GrugEdge, scales: tuple[int, ...]) -> None:
        """Make `scale` new vertices in each source."""
        sources = self.made[edge.source]
        self._check_limit(len(self.graph) + len(sources) * edge.scale, edge, "vertices")
        vertex = self.grug.vertices[edge.target]
        wrap = 1
        for scale in scales[: edge.id_scope]:
            wrap *= scale
        found = []
        for place, source in enumerate(sources):
            for turn in range(edge.scale):
                key = self._make(
                    vertex, self.paths[vertex.subsystem].get(source, ""), _id(edge, place, turn, wrap)
                )
                self._join(edge, source, key)
                found.append(key)
        self.made[edge.target] = found

    def _make(self, vertex: GrugVertex, above: str, number: int | None) -> str:
        pool = numbered(vertex.type, number, basename=vertex.basename, size=vertex.size, unit=vertex.unit)
        path = f"{above}/{pool.name}"
        key = path
        if key in self.graph:
            key = f"{path}#{len(self.graph)}"
        add_vertices(self.graph, [(key, pool)])
        self.paths[vertex.subsystem][key] = path
        return key

    def _associate(self, edge: GrugEdge) -> None:
        """Join each source with vertices that exist in another subsystem."""
        wanted = self.grug.vertices[edge.target].type
        among = [key for key in self.paths[edge.among] if pool_of(self.graph, key).type == wanted]
        by_path = edge.method == ASSOCIATE_BY_PATH_IN
        near: dict[str | None, list[str]] = defaultdict(list)
        for key in among:
            near[self._prefix(edge, key, edge.target_up) if by_path else ""].append(key)
        # source and target share a prefix of their paths; a path that is too short has none
        marks = {
            source: self._prefix(edge, source, edge.source_up) if by_path else ""
            for source in self.made[edge.source]
        }
        pairs = [(source, near.get(mark, ()) if mark is not None else ()) for source, mark in marks.items()]
        self._check_limit(self.edges_made + sum(len(targets) for _, targets in pairs), edge, "edges")
        found: dict[str, None] = {}
        for source, targets in pairs:
            for target in targets:
                self._join(edge, source, target)
                found[target] = None
        self.made[edge.target] = list(found)

    def _prefix(self, edge: GrugEdge, key: str, up: int) -> str | None:
        """Return the path of a vertex in the other subsystem without its last `up` names."""
        names = self.paths[edge.among].get(key, "").split("/")[1:]
        return "/".join(names[: len(names) - up]) if up < len(names) else None

    def _join(self, edge: GrugEdge, source: str, target: str) -> None:
        self.edges_made += 1
        extra = {} if edge.reverse in ("", "in") else {"more": {"reverse": edge.reverse}}
        add_edge(self.graph, source, target, edge.subsystem, edge.relation, **extra)
        above = self.paths[edge.subsystem].get(source, "")
        self.paths[edge.subsystem][target] = f"{above}/{pool_of(self.graph, target).name}"

    def _check_limit(self, count: int, edge: GrugEdge, what: str) -> None:
        if count > MAX_GENERATED:
            raise LimitError(
                f"the recipe makes {count:,} {what} or more",
                where=f"line {edge.line}",
                expected=f"at most {MAX_GENERATED:,}",
            )

    def _fault(self, line: int, message: str) -> ClusterError:
        return ClusterError(message, where=f"line {line}", expected="a forest, one tree per subsystem")


def _id(edge: GrugEdge, place: int, turn: int, wrap: int) -> int | None:
    """Return the number of a new vertex: the `turn`-th in the `place`-th source.

    ``id_scope`` 0 numbers within the parent, n within the n-th ancestor above it; a
    negative scope gives no number.
    """
    if edge.id_scope < 0:
        return None
    if edge.id_scope == 0:
        return edge.id_start + turn
    return edge.id_start + (place % wrap * edge.scale + turn) * edge.id_stride
