"""GRUG: Fluxion's GraphML recipe for generating a resource graph.

A small directed graph: a vertex describes resources to make, an edge states how many of them are made in
its source or with which existing vertices they are associated.  The text is read with expat in one pass that
refuses document types (and with them entities), deep nesting and unknown keys by line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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


def _text(kind: str, key: str, text: str, where: str) -> str:
    if not text:
        raise FormatError(f"<{kind}> has no {key!r}", where=where)
    return text


def _any_text(_kind: str, _key: str, text: str, _where: str) -> str:
    return text


def _method(kind: str, key: str, text: str, where: str) -> str:
    method = _text(kind, key, text, where).upper()
    if method not in METHODS:
        message = f"unknown generation method {method!r}"
        raise FormatError(message, where=where, expected=" or ".join(METHODS))
    return method


def _number(kind: str, key: str, text: str, where: str) -> int:
    """Return an integer of at most 18 digits."""
    try:
        value = int(text) if len(_text(kind, key, text, where)) <= 18 else None
    except ValueError:
        value = None
    if value is None or (value < 0 and key not in _SIGNED):
        expected = "an integer" if key in _SIGNED else "an integer of at least 0"
        raise FormatError(f"{key} is {text[:40]!r}", where=where, expected=expected)
    return value


_SIGNED = ("root", "id_scope")
"""The keys of numbers that may be negative."""

_ATTRIBUTES = frozenset({"id", "source", "target"})
"""The keys that are attributes of the element itself; the others are its data."""

#: Element → field: its key, its default, and how it is read, in the order in which faults are told.
_FIELDS: dict[str, dict[str, tuple[str, str, Callable[[str, str, str, str], Any]]]] = {
    "node": {
        "type": ("type", "", _text),
        "name": ("id", "", _text),
        "basename": ("basename", "", _any_text),
        "size": ("size", "1", _number),
        "unit": ("unit", "", _any_text),
        "subsystem": ("subsystem", "containment", _text),
        "root": ("root", "0", _number),
    },
    "edge": {
        "method": ("gen_method", MULTIPLY, _method),
        "source": ("source", "", _text),
        "target": ("target", "", _text),
        "subsystem": ("e_subsystem", "containment", _text),
        "relation": ("relation", "contains", _text),
        "reverse": ("rrelation", "in", _any_text),
        "scale": ("multi_scale", "1", _number),
        "id_scope": ("id_scope", "0", _number),
        "id_start": ("id_start", "0", _number),
        "id_stride": ("id_stride", "1", _number),
        "among": ("as_tgt_subsystem", "containment", _text),
        "target_up": ("as_tgt_uplvl", "1", _number),
        "source_up": ("as_src_uplvl", "1", _number),
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
    vertices: dict[str, GrugVertex] = {}
    for element in handler.elements:
        if element.kind == "node":
            values = handler.values(element)
            vertex = GrugVertex(
                **{**values, "basename": values["basename"] or values["type"], "root": values["root"] != 0}
            )
            if vertex.name in vertices:
                message = f"two vertices have the name {vertex.name!r}"
                raise FormatError(message, where=_at(where, vertex.line))
            vertices[vertex.name] = vertex
    edges = [GrugEdge(**handler.values(element)) for element in handler.elements if element.kind == "edge"]
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in vertices:
                raise FormatError(f"no vertex has the name {end!r}", where=_at(where, edge.line))
    if not any(vertex.root for vertex in vertices.values()):
        raise FormatError("the recipe has no root", where=where, expected="a vertex with root 1")
    return Grug(handler.graph_name, vertices, tuple(edges))


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
        self.defaults = {
            kind: {key: default for key, default, _ in fields.values() if key not in _ATTRIBUTES}
            for kind, fields in _FIELDS.items()
        }
        self.elements: list[_Element] = []
        self._open: _Element | None = None
        self._key = ""
        self._text: list[str] | None = None
        self._depth = 0
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype

    def values(self, element: _Element) -> dict[str, Any]:
        """Return field → value of a node or edge: its data over the declared defaults."""
        data = {**self.defaults[element.kind], **element.data}
        place = _at(self.where, element.line)
        found: dict[str, Any] = {"line": element.line}
        for name, (key, _, read) in _FIELDS[element.kind].items():
            text = (element.attributes if key in _ATTRIBUTES else data).get(key, "")
            found[name] = read(element.kind, key, text, place)
        return found

    def _here(self) -> str:
        return _at(self.where, self.parser.CurrentLineNumber)

    def _doctype(self, *_: object) -> None:
        message = "the XML declares a document type"
        raise FormatError(message, where=self._here(), expected="GraphML without <!DOCTYPE>")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitError("the XML is nested too deeply", where=self._here())
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
                domain, name = self.keys.get(self._key, ("", ""))
                for kind in ("node", "edge"):
                    if domain in (kind, "all"):
                        self.defaults[kind][name] = "".join(self._text or ()).strip()
                self._text = None
            case "data":
                if self._open is not None:
                    if self._key not in self.keys:
                        message = f"data key {self._key!r} is not declared"
                        raise FormatError(message, where=self._here(), expected="one of the <key> ids")
                    self._open.data[self.keys[self._key][1]] = "".join(self._text or ()).strip()
                self._text = None


def _at(where: str | None, line: int) -> str:
    return f"{where}:{line}" if where else f"line {line}"
