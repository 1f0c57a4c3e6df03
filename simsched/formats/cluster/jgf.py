"""JSON Graph Format as RFC 20 and RFC 40 use it, and as Fluxion writes it.

Text is read into a `Jgf` and written from it; only the structure of the document is interpreted here.
Unknown keys of a vertex or an edge are kept in an `OddVertex` or an `OddEdge`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from simsched.errors import FormatError, LimitError
from simsched.formats.text.diagnostics import typed
from simsched.formats.text.json_text import decode_json_bulk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Metadata(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """RFC 4 base data of a vertex, with the keys that Fluxion adds; absent keys are UNSET."""

    type: str
    basename: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    id: int | UnsetType | None = UNSET
    uniq_id: int | str | UnsetType = UNSET
    rank: int | UnsetType | None = UNSET
    exclusive: bool | UnsetType = UNSET
    unit: str | UnsetType | None = UNSET
    size: int | UnsetType = UNSET
    status: int | str | UnsetType = UNSET
    drained: bool | UnsetType = UNSET
    properties: dict[str, str] | list[str] | UnsetType | None = UNSET
    uuid: str | UnsetType | None = UNSET
    ids: str | UnsetType = UNSET
    paths: dict[str, str] | UnsetType = UNSET


class Vertex(Struct, gc=False, forbid_unknown_fields=True):
    """One entry of ``nodes``."""

    id: str
    metadata: Metadata


class OddVertex(Vertex, gc=False):
    """A vertex with keys that neither RFC 20 nor Fluxion knows; they are kept."""

    more: dict[str, Any] = {}
    outer: dict[str, Any] = {}


class EdgeMetadata(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """RFC 20's pair, Fluxion's ``subsystem`` alone, or the older ``name`` object."""

    subsystem: str | UnsetType = UNSET
    relationship: str | UnsetType = UNSET
    name: dict[str, str] | UnsetType = UNSET


class Edge(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of ``edges``; without metadata it is one of containment."""

    source: str
    target: str
    metadata: EdgeMetadata | UnsetType = UNSET


class OddEdge(Edge, gc=False):
    """An edge with unknown keys."""

    more: dict[str, Any] = {}
    outer: dict[str, Any] = {}


class Body(Struct, gc=False, forbid_unknown_fields=True):
    """The value of ``graph``."""

    nodes: list[Vertex]
    edges: list[Edge] | UnsetType = UNSET


_MISMATCH = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<found>[^`]+)`")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]+)`")
_PLACE = re.compile(r" - at `\$?\.?(?P<place>[^`]*)`$")


@dataclass(frozen=True, slots=True)
class Jgf:
    """One graph: vertices and edges in the order of the document, and its other keys.

    `graph_keys` are the unknown keys beside ``nodes`` and ``edges``, `document_keys` those
    beside ``graph``.  `edges` is None where the document had no such key.
    """

    vertices: list[Vertex]
    edges: list[Edge] | None
    graph_keys: Mapping[str, Any] = field(default_factory=dict)
    document_keys: Mapping[str, Any] = field(default_factory=dict)


def jgf_from_bytes(data: Any, *, where: str | None = None) -> Jgf:
    """Decode the value of ``graph`` from JSON bytes; the fast path for large documents.

    Raises
    ------
    FormatError
        at the first vertex or edge that breaks RFC 20, with its place in the document.
    """
    try:
        return _whole(msgspec.json.decode(data, type=Body))
    except msgspec.ValidationError as error:
        if "unknown field" not in str(error):
            raise explain(error, where) from None
    except RecursionError:
        raise LimitError("the JSON is nested too deeply", where=where) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"not JSON: {error}", where=where) from None
    return jgf_from_object(msgspec.json.decode(data), where=where)


def take_apart(box: list[bytes], *, where: str | None = None) -> tuple[dict[str, Any], Jgf | None]:
    """Decode a large R or JGF document: return it without its graph, and the graph if it has one.

    `box` holds the text alone and is emptied: a document of gigabytes is freed before its graph is used.
    Of a duplicate key the last one counts.
    """
    top: dict[str, msgspec.Raw] = decode_json_bulk(box[0], where, kind=dict[str, msgspec.Raw])
    place = f"{where}: graph" if where else "graph"
    holder = top
    if "graph" not in top and "scheduling" in top and bytes(top["scheduling"])[:1] == b"{":
        place = f"{where}: scheduling.graph" if where else "scheduling.graph"
        holder = decode_json_bulk(bytes(top.pop("scheduling")), where, kind=dict[str, msgspec.Raw])
    graph = holder.pop("graph", None)
    jgf = None if graph is None else jgf_from_bytes(graph, where=place)
    document = {key: decode_json_bulk(bytes(value), where) for key, value in top.items()}
    if holder is not top:
        document["scheduling"] = {key: decode_json_bulk(bytes(value), where) for key, value in holder.items()}
    box.clear()
    return document, jgf


def jgf_from_object(graph: Any, *, where: str | None = None) -> Jgf:
    """Return the graph of a decoded JSON value (the value of ``graph``).

    >>> one = {"nodes": [{"id": "0", "metadata": {"type": "core", "colour": "red"}}]}
    >>> jgf_from_object(one).vertices[0].more
    {'colour': 'red'}
    """
    try:
        return _whole(msgspec.convert(graph, Body))
    except msgspec.ValidationError as error:
        if "unknown field" not in str(error):
            raise explain(error, where) from None
    known, graph_keys = _split(graph, {"nodes", "edges"})
    vertices = list(_odd(known.get("nodes"), where, "nodes", Vertex, Metadata))
    edges = list(_odd(known["edges"], where, "edges", Edge, EdgeMetadata)) if "edges" in known else None
    return Jgf(vertices, edges, graph_keys)


def _whole(body: Body) -> Jgf:
    return Jgf(body.nodes, None if body.edges is UNSET else body.edges)


def _odd(
    rows: Any, where: str | None, name: str, kind: type[Vertex] | type[Edge], metadata: type[Struct]
) -> Iterator[Any]:
    """Convert vertices or edges one by one; the keys of each are split into known and unknown ones."""
    for number, row in enumerate(typed(rows, list, _join(where, name))):
        place = _join(where, f"{name}[{number}]")
        inner, outer = _split(typed(row, dict, place), kind.__struct_fields__)
        more: dict[str, Any] = {}
        if "metadata" in inner:
            given = typed(inner["metadata"], dict, place)
            inner["metadata"], more = _split(given, metadata.__struct_fields__)
        try:
            item = msgspec.convert(inner, kind)
        except msgspec.ValidationError as error:
            raise explain(error, place) from None
        odd: Any = OddVertex if kind is Vertex else OddEdge
        yield odd(*msgspec.structs.astuple(item), more, outer) if more or outer else item


def _split(mapping: Mapping[str, Any], known: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the mapping's known part and the rest."""
    return (
        {key: value for key, value in mapping.items() if key in known},
        {key: value for key, value in mapping.items() if key not in known},
    )


def _join(where: str | None, place: str) -> str:
    return f"{where}.{place}" if where and place else (where or place)


def explain(error: msgspec.ValidationError, where: str | None) -> FormatError:
    """Return an error of msgspec in our wording, with the place in the document."""
    text = str(error)
    found = _PLACE.search(text)
    place = _join(where, found["place"] if found else "")
    text = _PLACE.sub("", text)
    if mismatch := _MISMATCH.match(text):
        return FormatError(f"found {mismatch['found']}", where=place, expected=mismatch["wanted"])
    if missing := _MISSING.match(text):
        return FormatError(f"the key {missing['key']!r} is missing", where=place)
    return FormatError(text[:1].lower() + text[1:], where=place)


# --- writing -------------------------------------------------------------------------


def encode_graph(jgf: Jgf) -> bytes:
    """Return the value of ``graph`` as JSON bytes on one line."""
    vertices: list[Any] = jgf.vertices
    if any(type(vertex) is OddVertex for vertex in vertices):
        vertices = [_plain(vertex, ("id",)) for vertex in vertices]
    edges: list[Any] | None = jgf.edges
    if edges and any(type(edge) is OddEdge for edge in edges):
        edges = [_plain(edge, ("source", "target")) for edge in edges]
    body: dict[str, Any] = {"nodes": vertices}
    if edges is not None:
        body["edges"] = edges
    return msgspec.json.encode({**body, **jgf.graph_keys})


def _plain(item: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return a vertex or edge as a dictionary, with its unknown keys back in place."""
    plain = {key: getattr(item, key) for key in keys}
    if item.metadata is not msgspec.UNSET:
        plain["metadata"] = {**msgspec.to_builtins(item.metadata), **getattr(item, "more", {})}
    return {**plain, **getattr(item, "outer", {})}


def encode_document(jgf: Jgf) -> bytes:
    """Return the document ``{"graph": …}`` as JSON bytes on one line."""
    return msgspec.json.encode({**jgf.document_keys, "graph": msgspec.Raw(encode_graph(jgf))})


def to_object(jgf: Jgf) -> dict[str, Any]:
    """Return the document ``{"graph": …}`` as plain JSON values."""
    graph: dict[str, Any] = msgspec.json.decode(encode_graph(jgf))
    return {**jgf.document_keys, "graph": graph}
