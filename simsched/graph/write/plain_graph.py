"""Resource graph → a networkx graph of plain attributes, which networkx's own writers take.

GraphML, GEXF and strict JSON hold texts and numbers and nothing else: a pool becomes one attribute
per field, fields at their defaults are left out, and mappings become JSON.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import networkx as nx

from simsched.formats.text.json_text import json_text
from simsched.graph.pool import UP
from simsched.graph.resource_graph import edge_rows, pools

if TYPE_CHECKING:
    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph

PLAIN_TEXTS = {field: field for field in ("type", "name", "basename", "uuid", "unit", "status")}
PLAIN_NUMBERS = {"logical_id": "id", "size": "size", "rank": "rank"}
"""Attribute → field of a pool.  ``id`` is not free: networkx's formats use it for the vertex itself."""

PLAIN_JSON = ("properties", "extra", "given")
"""Attributes that are JSON texts."""

_DEFAULTS: dict[str, Any] = {"uuid": "", "unit": "", "size": 1, "status": UP}


def plain_graph(graph: ResourceGraph) -> ResourceGraph:
    """Return a new, editable `networkx.MultiDiGraph` with attributes of type str and int only.

    Vertices have ``type``, ``name`` and ``basename`` and, where the pool has them, ``logical_id``,
    ``size``, ``unit``, ``rank``, ``status``, ``uuid``, ``ids`` (an idset), ``properties``, ``extra`` and
    ``given`` (JSON); edges ``subsystem`` (also their key), ``relationship`` and ``extra`` (JSON).
    """
    found: ResourceGraph = nx.MultiDiGraph(name=str(graph.graph.get("name", "cluster")))
    found.add_nodes_from((key, _attributes(pool)) for key, pool in pools(graph))
    for source, target, subsystem, data in edge_rows(graph):
        found.add_edge(source, target, key=subsystem, **_edge_attributes(subsystem, dict(data)))
    return found


def rows_of(graph: ResourceGraph) -> dict[str, Any]:
    """Return the graph of `plain_graph` as lists that JSON can hold, for `build.networkx_graph.from_rows`."""
    plain = plain_graph(graph)
    return {
        "name": plain.graph["name"],
        "vertices": [[key, data] for key, data in plain.nodes(data=True)],
        "edges": [list(edge) for edge in plain.edges(keys=True, data=True)],
    }


def to_graphml(graph: ResourceGraph) -> bytes:
    """Return the graph of `plain_graph` as GraphML, each edge with an id of its own.

    Other programs require different ids of edges.  The subsystem of an edge is its attribute.
    """
    plain = plain_graph(graph)
    numbered: ResourceGraph = nx.MultiDiGraph(**plain.graph)
    numbered.add_nodes_from(plain.nodes(data=True))
    for number, (source, target, data) in enumerate(plain.edges(data=True)):
        numbered.add_edge(source, target, key=f"edge{number}", **data)
    out = BytesIO()
    nx.readwrite.graphml.write_graphml_xml(numbered, out, prettyprint=True)
    return out.getvalue()


def _attributes(pool: Pool) -> dict[str, str | int]:
    values: dict[str, Any] = {
        attribute: getattr(pool, field) for attribute, field in (PLAIN_TEXTS | PLAIN_NUMBERS).items()
    }
    found = {
        name: value
        for name, value in values.items()
        if value is not None and not (name in _DEFAULTS and value == _DEFAULTS[name])
    }
    if pool.ids is not None:
        found["ids"] = str(pool.ids)
    if pool.properties:
        found["properties"] = json_text(dict(pool.properties))
    if pool.extra:
        found["extra"] = json_text(dict(pool.extra))
    if pool.given is not None:
        found["given"] = json_text(sorted(pool.given))
    return found


def _edge_attributes(subsystem: str, data: dict[str, Any]) -> dict[str, str]:
    found = {"subsystem": subsystem, "relationship": str(data.pop("relationship"))}
    return {**found, "extra": json_text(data)} if data else found
