"""GRUG: Fluxion's GraphML recipe for generating a resource graph.

A small directed graph: a vertex describes resources to make, an edge states how many of them are made in
its source or with which existing vertices they are associated.  The text is read with expat in one pass that
refuses document types (and with them entities), deep nesting and unknown keys by line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simsched.errors import FormatError, LimitError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from xml.parsers.expat import XMLParserType

MULTIPLY, ASSOCIATE_IN, ASSOCIATE_BY_PATH_IN = "MULTIPLY", "ASSOCIATE_IN", "ASSOCIATE_BY_PATH_IN"
METHODS = (MULTIPLY, ASSOCIATE_IN, ASSOCIATE_BY_PATH_IN)
MAX_DEPTH = 16
MAX_ELEMENTS = 100_000
"""The most vertices and edges of one recipe; the graph that it generates may have millions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrugVertex:
    """The resources to make at one place of the recipe; `line` is its line in the document."""

    name: str
    type: str
    basename: str
    size: int
    unit: str
    subsystem: str
    root: bool
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrugEdge:
    """How many of `target` each `source` has and how they are numbered, or the vertices to associate with."""

    source: str
    target: str
    subsystem: str
    relation: str
    reverse: str
    method: str
    scale: int
    id_scope: int
    id_start: int
    id_stride: int
    among: str
    target_up: int
    source_up: int
    line: int


@dataclass(frozen=True, slots=True)
class Grug:
    """A recipe: vertices by name and edges, both in the order of the document."""

    name: str
    vertices: Mapping[str, GrugVertex]
    edges: tuple[GrugEdge, ...]


_DEFAULTS = {
    "node": {"root": "0", "size": "1", "unit": "", "subsystem": "containment"},
    "edge": {
        "e_subsystem": "containment",
        "relation": "contains",
        "rrelation": "in",
        "gen_method": MULTIPLY,
        "multi_scale": "1",
        "id_scope": "0",
        "id_start": "0",
        "id_stride": "1",
        "as_tgt_subsystem": "containment",
        "as_tgt_uplvl": "1",
        "as_src_uplvl": "1",
    },
}


def parse_grug(text: str, *, where: str | None = None) -> Grug:
    """Read a GRUG document.

    Raises
    ------
    FormatError
        with the line: not XML, a document type, a value that is not a number, an unknown
        generation method, an edge to an unknown vertex, two vertices of one name, no root.
    LimitError
        for XML nested deeper than 16 levels, or more than 100,000 elements.
    """
    from xml.parsers.expat import ExpatError, ParserCreate

    parser = ParserCreate()
    handler = _Handler(parser, where)
    try:
        parser.Parse(text, True)
    except ExpatError as error:
        raise FormatError(f"not XML: {error}", where=_at(where, error.lineno)) from None
    if not handler.seen_graphml:
        raise FormatError("XML, but not GraphML", where=where, expected="a <graphml> element")
    return _recipe(handler, where)


@dataclass
class _Element:
    """A <node> or <edge> while it is read."""

    kind: str
    attributes: dict[str, str]
    line: int
    data: dict[str, str] = field(default_factory=dict)


class _Handler:
    """Collects the events of expat: keys with their defaults, nodes and edges with their data."""

    def __init__(self, parser: XMLParserType, where: str | None) -> None:
        self.parser = parser
        self.where = where
        self.seen_graphml = False
        self.graph_name = ""
        self.keys: dict[str, tuple[str, str]] = {}
        self.defaults: dict[str, dict[str, str]] = {kind: dict(row) for kind, row in _DEFAULTS.items()}
        self.elements: list[_Element] = []
        self._open: _Element | None = None
        self._key = ""
        self._text: list[str] | None = None
        self._depth = 0
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype

    def fault(self, message: str, expected: str | None = None) -> FormatError:
        """Return an error at the current line."""
        return FormatError(message, where=_at(self.where, self.parser.CurrentLineNumber), expected=expected)

    def _doctype(self, *_: object) -> None:
        raise self.fault("the XML declares a document type", "GraphML without <!DOCTYPE>")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitError(
                "the XML is nested too deeply", where=_at(self.where, self.parser.CurrentLineNumber)
            )
        match tag.rpartition(":")[2]:
            case "graphml":
                self.seen_graphml = True
            case "graph":
                self.graph_name = self.graph_name or attributes.get("id", "")
            case "key":
                self._key = attributes.get("id", "")
                self.keys[self._key] = attributes.get("for", "all"), attributes.get("attr.name", self._key)
            case "default":
                self._text = []
            case "node" | "edge" as kind:
                self._open = _Element(kind, attributes, self.parser.CurrentLineNumber)
                self.elements.append(self._open)
                if len(self.elements) > MAX_ELEMENTS:
                    raise LimitError(f"more than {MAX_ELEMENTS:,} vertices and edges", where=self.where)
            case "data":
                self._key = attributes.get("key", "")
                self._text = []

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        match tag.rpartition(":")[2]:
            case "node" | "edge":
                self._open = None
            case "default":
                self._take_default("".join(self._text or ()).strip())
                self._text = None
            case "data":
                self._take_data("".join(self._text or ()).strip())
                self._text = None

    def _take_default(self, text: str) -> None:
        domain, name = self.keys.get(self._key, ("", ""))
        for kind in ("node", "edge"):
            if domain in (kind, "all"):
                self.defaults[kind][name] = text

    def _take_data(self, text: str) -> None:
        if self._open is None:
            return
        if self._key not in self.keys:
            raise self.fault(f"data key {self._key!r} is not declared", "one of the <key> ids")
        self._open.data[self.keys[self._key][1]] = text


def _at(where: str | None, line: int) -> str:
    return f"{where}:{line}" if where else f"line {line}"


def _recipe(handler: _Handler, where: str | None) -> Grug:
    """Return the recipe of the collected elements, after the checks that need no generation."""
    vertices: dict[str, GrugVertex] = {}
    for element in handler.elements:
        if element.kind == "node":
            vertex = _vertex(element, handler.defaults["node"], where)
            if vertex.name in vertices:
                raise FormatError(
                    f"two vertices have the name {vertex.name!r}", where=_at(where, vertex.line)
                )
            vertices[vertex.name] = vertex
    edges = [_edge(e, handler.defaults["edge"], where) for e in handler.elements if e.kind == "edge"]
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in vertices:
                raise FormatError(f"no vertex has the name {end!r}", where=_at(where, edge.line))
    if not any(vertex.root for vertex in vertices.values()):
        raise FormatError("the recipe has no root", where=where, expected="a vertex with root 1")
    return Grug(handler.graph_name, vertices, tuple(edges))


def _vertex(element: _Element, defaults: Mapping[str, str], where: str | None) -> GrugVertex:
    values = _Values(element, defaults, where)
    type_ = values.text("type")
    return GrugVertex(
        name=values.attribute("id"),
        type=type_,
        basename=values.optional("basename") or type_,
        size=values.number("size", lowest=0),
        unit=values.optional("unit"),
        subsystem=values.text("subsystem"),
        root=values.number("root") != 0,
        line=element.line,
    )


def _edge(element: _Element, defaults: Mapping[str, str], where: str | None) -> GrugEdge:
    values = _Values(element, defaults, where)
    method = values.text("gen_method").upper()
    if method not in METHODS:
        raise FormatError(
            f"unknown generation method {method!r}",
            where=_at(where, element.line),
            expected=" or ".join(METHODS),
        )
    return GrugEdge(
        source=values.attribute("source"),
        target=values.attribute("target"),
        subsystem=values.text("e_subsystem"),
        relation=values.text("relation"),
        reverse=values.optional("rrelation"),
        method=method,
        scale=values.number("multi_scale", lowest=0),
        id_scope=values.number("id_scope"),
        id_start=values.number("id_start", lowest=0),
        id_stride=values.number("id_stride", lowest=0),
        among=values.text("as_tgt_subsystem"),
        target_up=values.number("as_tgt_uplvl", lowest=0),
        source_up=values.number("as_src_uplvl", lowest=0),
        line=element.line,
    )


class _Values:
    """The data of one element over the declared defaults."""

    def __init__(self, element: _Element, defaults: Mapping[str, str], where: str | None) -> None:
        self.found = {**defaults, **element.data}
        self.element = element
        self.where = _at(where, element.line)

    def attribute(self, name: str) -> str:
        """Return an attribute of the element itself."""
        value = self.element.attributes.get(name, "")
        if not value:
            raise FormatError(f"<{self.element.kind}> has no {name!r}", where=self.where)
        return value

    def text(self, name: str) -> str:
        """Return a required value."""
        value = self.found.get(name, "")
        if not value:
            raise FormatError(f"<{self.element.kind}> has no {name!r}", where=self.where)
        return value

    def optional(self, name: str) -> str:
        """Return an optional value, or the empty text."""
        return self.found.get(name, "")

    def number(self, name: str, *, lowest: int | None = None) -> int:
        """Return an integer of at most 18 digits."""
        text = self.text(name)
        try:
            value = int(text) if len(text) <= 18 else None
        except ValueError:
            value = None
        if value is None or (lowest is not None and value < lowest):
            expected = "an integer" if lowest is None else f"an integer of at least {lowest}"
            raise FormatError(f"{name} is {text[:40]!r}", where=self.where, expected=expected)
        return value
