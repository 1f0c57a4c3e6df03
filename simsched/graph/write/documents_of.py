"""Resource graph → a document of the chosen kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.graph.write.jgf import AS_READ, to_jgf
from simsched.graph.write.losses import FORMATS, GRAPHML, JGF, R_JGF, TREEPOOL, R
from simsched.graph.write.rset import to_rset, to_rset_with_graph
from simsched.graph.write.treepool import to_treepool

if TYPE_CHECKING:
    from simsched.graph.resource_graph import ResourceGraph


def to_document(
    graph: ResourceGraph, form: str = R, *, dialect: str = AS_READ, expand: bool | None = None
) -> dict[str, Any]:
    """Return the graph as a document of JSON values: ``r``, ``r+jgf``, ``jgf`` or ``treepool``.

    Raises
    ------
    ConfigError
        for an unknown form or dialect.
    """
    if form == R:
        return to_rset(graph).to_dict()
    if form == R_JGF:
        return to_rset_with_graph(graph, dialect=dialect, expand=expand)
    if form == TREEPOOL:
        return to_treepool(graph)
    if form == JGF:
        from simsched.formats.cluster.jgf import to_object

        return to_object(to_jgf(graph, dialect=dialect, expand=expand))
    message = "GraphML is not a document of JSON values" if form == GRAPHML else f"unknown format {form!r}"
    raise ConfigError(message, expected=", ".join(FORMATS))


def to_bytes(
    graph: ResourceGraph, form: str = R, *, dialect: str = AS_READ, expand: bool | None = None
) -> bytes:
    """Return the document of `to_document` as JSON text, JGF on one line, for its size; or GraphML."""
    if form == GRAPHML:
        from simsched.graph.write.plain_graph import to_graphml

        return to_graphml(graph)
    if form == JGF:
        from simsched.formats.cluster.jgf import encode_document

        return encode_document(to_jgf(graph, dialect=dialect, expand=expand)) + b"\n"
    from simsched.formats.text.json_text import encode_json

    document = to_document(graph, form, dialect=dialect, expand=expand)
    return encode_json(document, indent=0 if form == R_JGF else 2)
