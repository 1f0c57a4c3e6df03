"""A user's networkx graph, also as GraphML → resource graph: checked, copied and frozen.

A vertex has a `Pool` as its attribute ``pool``, or the plain attributes that `write.plain_graph` writes
(``type`` at least).  The subsystem of an edge is its attribute ``subsystem``, or else its key.

GRUG is GraphML as well, but a recipe: its edges have the keys ``e_subsystem`` and ``relation``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import networkx as nx

from simsched.errors import ClusterError, FormatError, LimitError, SimschedError, clip
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_host
from simsched.formats.text.excerpts import has_control
from simsched.formats.text.json_text import load_json
from simsched.formats.text.xml_tree import MAX_BYTES
from simsched.garbage import collector_paused
from simsched.graph import resource_graph as rg
from simsched.graph.build.assemble import add_edges, add_vertices, finish, new_graph
from simsched.graph.pool import NOTHING, STATUSES, UP, Pool, check_pool, split_name
from simsched.graph.write.plain_graph import PLAIN_JSON, PLAIN_NUMBERS, PLAIN_TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator

_FACTS: dict[str, type] = {
    "source": str, "document": dict, "jgf": dict, "treepool": tuple,
    "edge_form": str, "edges_given": bool, "assigned_ranks": frozenset,
}  # fmt: skip
"""Facts about the whole in graphs of our own, with their types; other values of these names are foreign."""

_OF_A_VERSION = frozenset({"name", "root", "edge_order", "given_paths"})
"""Facts that an edit may invalidate; they are worked out again."""

_POOL_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("type", "name", "basename", "uuid", "unit", "status"), (str,)),
    "size": (int,),
    **dict.fromkeys(("id", "rank"), (int, type(None))),
    **dict.fromkeys(("properties", "extra"), (Mapping,)),
    "ids": (Idset, type(None)),
    "given": (frozenset, type(None)),
}
_A_POOL = "a simsched.Pool as the attribute 'pool', or plain attributes, 'type' at least"


def from_networkx(graph: object) -> rg.ResourceGraph:
    """Return a frozen resource graph that is a copy of a user's graph.

    O(vertices + edges).  Targets without ranks get them in containment order.

    Raises
    ------
    ClusterError
        with the vertex or edge: no `Pool`, an edge key that is not a text, a value that a pool cannot
        have, ids that do not add up to the size, two parents, a cycle, a vertex that nothing contains,
        a rank or a host twice; or with the graph: not directed, no vertices, no execution target.
    """
    if not isinstance(graph, nx.DiGraph):  # the base class of MultiDiGraph
        raise ClusterError(
            f"the graph is a {type(graph).__name__}",
            expected="a networkx MultiDiGraph with subsystems as keys of edges, or a DiGraph",
        )
    given: rg.ResourceGraph = graph if isinstance(graph, nx.MultiDiGraph) else _with_keys(graph)
    with collector_paused():
        name = given.graph.get("name")
        found = new_graph(name if isinstance(name, str) and name else "cluster")
        found.graph.update(
            (key, value)
            for key, value in given.graph.items()
            if key not in _OF_A_VERSION and isinstance(value, _FACTS.get(key, object))
        )
        add_vertices(found, _vertices(given))
        add_edges(found, _edges(given))
        finished = finish(found)
        _check_hosts(finished)
        return finished


def from_rows(document: Mapping[str, Any]) -> rg.ResourceGraph:
    """Return the graph of the rows of `write.plain_graph.rows_of`; errors as `from_networkx`."""
    found: rg.ResourceGraph = nx.MultiDiGraph(name=document["name"])
    found.add_nodes_from((key, data) for key, data in document["vertices"])
    for source, target, key, data in document["edges"]:
        found.add_edge(source, target, key=key, **data)
    return from_networkx(found)


def _with_keys(graph: nx.DiGraph[str]) -> rg.ResourceGraph:
    """Return a DiGraph as a MultiDiGraph; an edge without the attribute ``subsystem`` is containment.

    networkx reads GraphML and GEXF without parallel edges as a DiGraph, and the ids of GraphML's edges as
    an attribute, which says nothing about the cluster.
    """
    is_graphml = "edge_default" in graph.graph
    found: rg.ResourceGraph = nx.MultiDiGraph(**graph.graph)
    found.add_nodes_from(graph.nodes(data=True))
    for source, target, data in graph.edges(data=True):
        more = {name: value for name, value in data.items() if name != "id"} if is_graphml else data
        found.add_edge(source, target, key=rg.CONTAINMENT, **more)
    return found


def _check_hosts(graph: rg.ResourceGraph) -> None:
    """Check that every execution target has a distinct name that a hostlist can hold.

    R may name a host for several ranks.  In a graph, two vertices of one host are one that was added twice.
    """
    known: dict[str, str] = {}
    for vertex in rg.execution_targets(graph):
        host = rg.pool_of(graph, vertex).name
        check_host(host, f"vertex {vertex!r}")
        if host in known:
            raise ClusterError(f"the host {host!r} is taken by {known[host]!r}", where=f"vertex {vertex!r}")
        known[host] = vertex


# --- GraphML -------------------------------------------------------------------------

_KEY = re.compile(r"<(?:\w+:)?key\b[^>]*>")
_GRAPH = re.compile(r"<(?:\w+:)?graph\b")
_OF_AN_EDGE = re.compile(r"""\bfor\s*=\s*["']edge["']""")
_OURS = re.compile(r"""\battr\.name\s*=\s*["'](?:relationship|subsystem)["']""")


def is_graph_of_cluster(text: str) -> bool:
    """Whether a text is GraphML whose edges state a relationship or a subsystem, as those of a cluster do.

    >>> is_graph_of_cluster('<graphml><key id="d1" for="edge" attr.name="subsystem"/><graph>')
    True
    >>> is_graph_of_cluster('<graphml><key id="d1" for="edge" attr.name="e_subsystem"/><graph>')
    False
    """
    graph = _GRAPH.search(text)
    head = text[: graph.start()] if graph else text[:65536]
    return "graphml" in head and any(
        _OF_AN_EDGE.search(key) and _OURS.search(key) for key in _KEY.findall(head)
    )


def from_graphml(text: str, *, name: str = "cluster", where: str | None = None) -> rg.ResourceGraph:
    """Build the graph of GraphML with the plain attributes of `write.plain_graph`.

    Raises
    ------
    FormatError
        for a text that is not GraphML, a document type, or a value of another type than its key declares.
    LimitError
        for a text of more than `xml_tree.MAX_BYTES`.
    ClusterError
        as `from_networkx`.
    """
    if len(text) > MAX_BYTES:
        raise LimitError(f"the XML has more than {MAX_BYTES:,} characters", where=where)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise FormatError(
            "the XML declares a document type", where=where, expected="GraphML without <!DOCTYPE>"
        )
    try:
        with catch_warnings():  # parts of GraphML that networkx leaves out say nothing about a cluster
            simplefilter("ignore")
            graph = nx.parse_graphml(text)
    except SyntaxError as error:  # that of the parser; its message has the line
        raise FormatError(f"not XML: {error}", where=where) from None
    except (nx.NetworkXError, KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise FormatError(f"not GraphML: {error}", where=where, expected="GraphML of a cluster") from None
    graph.graph.setdefault("name", name)
    return from_networkx(graph)


# --- vertices ------------------------------------------------------------------------


def _vertices(graph: rg.ResourceGraph) -> Iterator[tuple[str, Pool]]:
    """Yield keys and checked pools; mappings that several pools share are copied once."""
    copies: dict[int, tuple[object, Mapping[str, Any]]] = {}

    def kept(values: Mapping[str, Any]) -> Mapping[str, Any]:
        if not values:
            return NOTHING
        known = copies.get(id(values))
        if known is None:
            known = copies[id(values)] = (values, dict(values))  # held, so that the id stays taken
        return known[1]

    for key, data in graph.nodes(data=True):
        if not isinstance(key, str) or not key or has_control(key):
            raise ClusterError(
                f"{clip(repr(key))} is not the key of a vertex", expected="a text of printable characters"
            )
        pool = data.get("pool")
        if pool is None and "type" in data:
            pool = _plain_pool(key, data)
        if not isinstance(pool, Pool):
            said = "no pool" if pool is None else f"the pool is a {type(pool).__name__}"
            raise ClusterError(said, where=f"vertex {key!r}", expected=_A_POOL)
        _check_kinds(pool, key)
        check_pool(pool, key)
        if pool.properties or pool.extra:
            pool = pool.replace(properties=kept(pool.properties), extra=kept(pool.extra))
        yield key, pool


def _check_kinds(pool: Pool, key: str) -> None:
    """Check the types of all fields, which a `Pool` does not do when it is made."""
    for field, kinds in _POOL_KINDS.items():
        value = getattr(pool, field)
        if not isinstance(value, kinds) or isinstance(value, bool):
            wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
            raise _fault(key, field, value, wanted)
    if pool.status not in STATUSES:
        raise _fault(key, "status", pool.status, ", ".join(STATUSES))
    for name, value in pool.properties.items():
        if not isinstance(name, str) or not name or not isinstance(value, str):
            raise _fault(key, "properties", {name: value}, "names with texts")


def _fault(key: str, field: str, value: object, expected: str) -> ClusterError:
    return ClusterError(f"{field} is {clip(repr(value))}", where=f"vertex {key!r}", expected=expected)


def _plain_pool(key: str, data: Mapping[str, Any]) -> Pool:
    """Return the pool of plain attributes; the name is the vertex's key unless it is given."""
    given: dict[str, Any] = {field: data[name] for name, field in PLAIN_TEXTS.items() if name in data}
    given |= {field: data[name] for name, field in PLAIN_NUMBERS.items() if name in data}
    name = given.setdefault("name", key)
    if not isinstance(name, str):
        raise _fault(key, "name", name, "str")
    basename, number = split_name(name)
    given.setdefault("basename", basename)
    if "basename" not in data and "logical_id" not in data:
        given["id"] = number
    given.setdefault("status", UP)
    if "ids" in data:
        given["ids"] = _idset(key, data["ids"])
        given.setdefault("size", len(given["ids"]))
    for attribute in PLAIN_JSON:
        if attribute in data:
            value = data[attribute]
            try:
                given[attribute] = load_json(value) if isinstance(value, str) else value
            except SimschedError:
                raise _fault(key, attribute, value, "JSON") from None
    if _are_texts(given.get("given")):
        given["given"] = frozenset(given["given"])
    if _are_texts(given.get("properties")):
        given["properties"] = dict.fromkeys(given["properties"], "")
    return Pool(**given)


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _idset(key: str, value: object) -> Idset:
    if isinstance(value, Idset):
        return value
    if not isinstance(value, str):
        raise _fault(key, "ids", value, "an idset such as 0-3")
    try:
        return Idset.parse(value, where=f"vertex {key!r}: ids")
    except SimschedError as error:
        raise ClusterError(error.message, where=error.where, expected=error.expected) from None


# --- edges ---------------------------------------------------------------------------


def _edges(graph: rg.ResourceGraph) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield (source, target, subsystem, attributes), checked and copied."""
    for source, target, key, data in rg.edge_rows(graph):
        subsystem = data.get("subsystem", key)
        relationship = data.get("relationship", rg.CONTAINS)
        for value, what in ((subsystem, "the key"), (relationship, "the relationship")):
            if not isinstance(value, str) or not value:
                raise ClusterError(
                    f"{what} is {clip(repr(value))}",
                    where=f"edge {source!r} -> {target!r}",
                    expected="a subsystem such as 'containment'"
                    if value is subsystem
                    else "a text such as 'contains'",
                )
        more = {name: value for name, value in data.items() if name != "subsystem"}
        if isinstance(text := more.get("extra"), str):
            try:
                extra = load_json(more.pop("extra"))
            except SimschedError:
                extra = None
            if not isinstance(extra, dict):
                where = f"edge {source!r} -> {target!r}"
                raise ClusterError(f"extra is {clip(repr(text))}", where=where, expected="a JSON object")
            more |= extra
        yield source, target, subsystem, {**more, "relationship": relationship}
