"""GRUG: Fluxion's GraphML recipe for generating a resource graph.

A small directed graph: a vertex describes resources to make, an edge states how many of them are made in
its source or with which existing vertices they are associated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError
from simsched.formats.text.xml_tree import parse_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from simsched.formats.text.xml_tree import Element

MULTIPLY, ASSOCIATE_IN, ASSOCIATE_BY_PATH_IN = "MULTIPLY", "ASSOCIATE_IN", "ASSOCIATE_BY_PATH_IN"
METHODS = (MULTIPLY, ASSOCIATE_IN, ASSOCIATE_BY_PATH_IN)
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
        for XML nested deeper than 50 levels, or more than 100,000 vertices and edges.
    """
    elements = list(_elements(parse_xml(text, where)))
    if not any(tag == "graphml" for tag, _ in elements):
        raise FormatError("XML, but not GraphML", where=where, expected="a <graphml> element")
    read = _Reader(where, [element for tag, element in elements if tag == "key"])
    made = [(tag, element) for tag, element in elements if tag in _FIELDS]
    if len(made) > MAX_ELEMENTS:
        raise LimitError(f"more than {MAX_ELEMENTS:,} vertices and edges", where=where)
    vertices: dict[str, GrugVertex] = {}
    for values in (read.values(tag, element) for tag, element in made if tag == "node"):
        vertex = GrugVertex(
            **{**values, "basename": values["basename"] or values["type"], "root": values["root"] != 0}
        )
        if vertex.name in vertices:
            message = f"two vertices have the name {vertex.name!r}"
            raise FormatError(message, where=_at(where, vertex.line))
        vertices[vertex.name] = vertex
    edges = [GrugEdge(**read.values(tag, element)) for tag, element in made if tag == "edge"]
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in vertices:
                raise FormatError(f"no vertex has the name {end!r}", where=_at(where, edge.line))
    if not any(vertex.root for vertex in vertices.values()):
        raise FormatError("the recipe has no root", where=where, expected="a vertex with root 1")
    names = (element.attribute("id", "") for tag, element in elements if tag == "graph")
    return Grug(next(filter(None, names), ""), vertices, tuple(edges))


def _elements(element: Element) -> Iterator[tuple[str, Element]]:
    """Yield an element and all in it, each with its name without a prefix."""
    yield element.name.rpartition(":")[2], element
    for child in element.children:
        yield from _elements(child)


class _Reader:
    """Reads nodes and edges: their data over the defaults of the keys that the document declares."""

    def __init__(self, where: str | None, keys: Iterable[Element]) -> None:
        self.where = where
        self.names: dict[str, str] = {}
        self.defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        for key in keys:
            id_ = key.attribute("id", "") or ""
            name = self.names[id_] = key.attribute("attr.name", id_) or ""
            for tag, inner in _elements(key):
                for kind in self.defaults if tag == "default" else ():
                    if key.attribute("for", "all") in (kind, "all"):
                        self.defaults[kind][name] = inner.text.strip()

    def values(self, kind: str, element: Element) -> dict[str, Any]:
        """Return field → value of a node or edge."""
        data = dict(self.defaults[kind])
        for inner in element.children:
            key = inner.attribute("key", "") or ""
            if inner.name.rpartition(":")[2] == "data":
                if key not in self.names:
                    place, expected = _at(self.where, inner.line), "one of the <key> ids"
                    raise FormatError(f"data key {key!r} is not declared", where=place, expected=expected)
                data[self.names[key]] = inner.text.strip()
        found: dict[str, Any] = {"line": element.line}
        for name, (key, default, read) in _FIELDS[kind].items():
            text = (dict(element.attributes) if key in _ATTRIBUTES else data).get(key, default)
            found[name] = read(kind, key, text, _at(self.where, element.line))
        return found


def _at(where: str | None, line: int) -> str:
    return f"{where}:{line}" if where else f"line {line}"
