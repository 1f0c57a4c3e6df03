"""GRUG: Fluxion's GraphML recipe for generating a resource graph.

A small directed graph: a vertex describes resources to make, an edge states how many of them are made in
its source or with which existing vertices they are associated.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError
from simsched.formats.text.xml_tree import local_name, parse_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        with the place: not XML, a document type, a value that is not a number, an unknown
        generation method, an edge to an unknown vertex, two vertices of one name, no root.
    LimitError
        for XML nested too deeply, or more than 100,000 elements.
    """
    # The recipes of Fluxion have the `>` of <graphml> before its last attributes, which are text then.
    root = parse_xml(text, where, stray_text=True)
    if local_name(root.name) != "graphml":
        raise FormatError("XML, but not GraphML", where=where, expected="a <graphml> element")
    found: dict[str, list[Element]] = defaultdict(list)
    for element in root.walk():
        found[local_name(element.name)].append(element)
    if len(found["node"]) + len(found["edge"]) > MAX_ELEMENTS:
        raise LimitError(f"more than {MAX_ELEMENTS:,} vertices and edges", where=where)
    names = {key.attribute("id"): key.attribute("attr.name", key.attribute("id")) for key in found["key"]}
    defaults = {kind: _defaults(kind, found["key"]) for kind in _FIELDS}

    def values_of(kind: str, element: Element) -> dict[str, Any]:
        """Return field → value of a node or edge: its data over the declared defaults."""
        data = defaults[kind] | {key: element.attribute(key, "") for key in _ATTRIBUTES}
        for child in element.children:
            if local_name(child.name) == "data":
                key = child.attribute("key", "")
                if key not in names:
                    message = f"data key {key!r} is not declared"
                    raise FormatError(message, where=child.at(where), expected="one of the <key> ids")
                data[names[key]] = child.text.strip()
        place = element.at(where)
        found = {name: read(kind, key, data[key], place) for name, (key, _, read) in _FIELDS[kind].items()}
        return {**found, "line": element.line}

    vertices: dict[str, GrugVertex] = {}
    for element in found["node"]:
        values = values_of("node", element)
        vertex = GrugVertex(
            **{**values, "basename": values["basename"] or values["type"], "root": values["root"] != 0}
        )
        if vertex.name in vertices:
            raise FormatError(f"two vertices have the name {vertex.name!r}", where=element.at(where))
        vertices[vertex.name] = vertex
    edges = []
    for element in found["edge"]:
        edge = GrugEdge(**values_of("edge", element))
        for end in (edge.source, edge.target):
            if end not in vertices:
                raise FormatError(f"no vertex has the name {end!r}", where=element.at(where))
        edges.append(edge)
    if not any(vertex.root for vertex in vertices.values()):
        raise FormatError("the recipe has no root", where=where, expected="a vertex with root 1")
    name = next((name for graph in found["graph"] if (name := graph.attribute("id"))), "")
    return Grug(name, vertices, tuple(edges))


def _defaults(kind: str, keys: Sequence[Element]) -> dict[str | None, str | None]:
    """Return key → its value in elements of a kind that have no data for it."""
    found: dict[str | None, str | None] = {key: default for key, default, _ in _FIELDS[kind].values()}
    for key in keys:
        default = next((child for child in key.children if local_name(child.name) == "default"), None)
        if default is not None and key.attribute("for", "all") in (kind, "all"):
            found[key.attribute("attr.name", key.attribute("id"))] = default.text.strip()
    return found
