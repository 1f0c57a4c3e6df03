"""GRUG: Fluxion's GraphML recipe for generating a resource graph.

A small directed graph: a vertex describes resources to make, an edge states how many of them are made in
its source or with which existing vertices they are associated.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import field

from simsched.declare.kinds import HIDDEN, ValueKind, text
from simsched.declare.table import Declared, fields_of
from simsched.errors import FormatError, LimitError, SimschedError
from simsched.formats.text.xml_tree import local_name, parse_xml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.text.xml_tree import Element

MULTIPLY, ASSOCIATE_IN, ASSOCIATE_BY_PATH_IN = "MULTIPLY", "ASSOCIATE_IN", "ASSOCIATE_BY_PATH_IN"
METHODS = (MULTIPLY, ASSOCIATE_IN, ASSOCIATE_BY_PATH_IN)
MAX_ELEMENTS = 100_000
"""The most vertices and edges of one recipe; the graph that it generates may have millions."""

_ATTRIBUTES = frozenset({"id", "source", "target"})
"""The keys that are attributes of the element itself; the others are its data."""


def _method(value: str, where: str) -> str:
    method = value.upper()
    if method not in METHODS:
        message = f"unknown generation method {method!r}"
        raise FormatError(message, where=where, expected=" or ".join(METHODS))
    return method


def _signed(value: str, where: str, expected: str = "an integer") -> int:
    """Return an integer of at most 18 digits."""
    try:
        number = int(value)
    except ValueError:
        number = None
    if number is None or len(value) > 18:
        raise FormatError(f"found {value[:40]!r}", where=where, expected=expected)
    return number


def _number(value: str, where: str) -> int:
    expected = "an integer of at least 0"
    number = _signed(value, where, expected)
    if number < 0:
        raise FormatError(f"found {value!r}", where=where, expected=expected)
    return number


class _Described(Declared, frozen=True, kw_only=True, rename=None):
    """An element of a recipe: its attributes and its data are the keys of a table."""

    join = ": "


Name = Annotated[str, text()]
Words = Annotated[str, text(empty=True)]
Number = Annotated[int, ValueKind(_number)]
Signed = Annotated[int, ValueKind(_signed)]


class GrugVertex(_Described, frozen=True, kw_only=True):
    """The resources to make at one place of the recipe; `line` is its line in the document."""

    type: Name
    name: Name = field(name="id")
    basename: Words = ""
    size: Number = 1
    unit: Words = ""
    subsystem: Name = "containment"
    root: Signed = 0
    line: Annotated[int, HIDDEN] = 0


class GrugEdge(_Described, frozen=True, kw_only=True):
    """How many of `target` each `source` has and how they are numbered, or the vertices to associate with."""

    method: Annotated[str, ValueKind(_method)] = field(name="gen_method", default=MULTIPLY)
    source: Name
    target: Name
    subsystem: Name = field(name="e_subsystem", default="containment")
    relation: Name = "contains"
    reverse: Words = field(name="rrelation", default="in")
    scale: Number = field(name="multi_scale", default=1)
    id_scope: Signed = 0
    id_start: Number = 0
    id_stride: Number = 1
    among: Name = field(name="as_tgt_subsystem", default="containment")
    target_up: Number = field(name="as_tgt_uplvl", default=1)
    source_up: Number = field(name="as_src_uplvl", default=1)
    line: Annotated[int, HIDDEN] = 0


@dataclass(frozen=True, slots=True)
class Grug:
    """A recipe: vertices by name and edges, both in the order of the document."""

    name: str
    vertices: Mapping[str, GrugVertex]
    edges: tuple[GrugEdge, ...]


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

    def read(kind: type[_Described], element: Element, defaults: Mapping[str, str]) -> Any:
        """Return a node or edge: its data over the declared defaults."""
        data = dict(defaults)
        for child in element.children:
            if local_name(child.name) == "data":
                key = child.attribute("key", "")
                if key not in names:
                    message = f"data key {key!r} is not declared"
                    raise FormatError(message, where=child.at(where), expected="one of the <key> ids")
                data[str(names[key])] = child.text.strip()
        own = dict(element.attributes)
        given = {key: (own if key in _ATTRIBUTES else data).get(key) for key in fields_of(kind)}
        known = {key: value for key, value in given.items() if value is not None}
        try:
            return kind.read(known, element.at(where)).replace(line=element.line)
        except SimschedError as error:
            raise FormatError(error.message, where=error.where, expected=error.expected) from None

    vertices: dict[str, GrugVertex] = {}
    defaults = _defaults("node", found["key"])
    for element in found["node"]:
        vertex: GrugVertex = read(GrugVertex, element, defaults)
        if vertex.name in vertices:
            raise FormatError(f"two vertices have the name {vertex.name!r}", where=element.at(where))
        vertices[vertex.name] = vertex.replace(basename=vertex.basename or vertex.type)
    edges = []
    defaults = _defaults("edge", found["key"])
    for element in found["edge"]:
        edge: GrugEdge = read(GrugEdge, element, defaults)
        for end in (edge.source, edge.target):
            if end not in vertices:
                raise FormatError(f"no vertex has the name {end!r}", where=element.at(where))
        edges.append(edge)
    if not any(vertex.root for vertex in vertices.values()):
        raise FormatError("the recipe has no root", where=where, expected="a vertex with root 1")
    name = next((name for graph in found["graph"] if (name := graph.attribute("id"))), "")
    return Grug(name, vertices, tuple(edges))


def _defaults(kind: str, keys: Sequence[Element]) -> dict[str, str]:
    """Return key → its value in elements of a kind that have no data for it, where the document has one."""
    found = {}
    for key in keys:
        default = next((child for child in key.children if local_name(child.name) == "default"), None)
        if default is not None and key.attribute("for", "all") in (kind, "all"):
            found[str(key.attribute("attr.name", key.attribute("id")))] = default.text.strip()
    return found
