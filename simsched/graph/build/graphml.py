"""GraphML of a cluster, as `write.plain_graph` and networkx write it → resource graph.

GRUG is GraphML as well, but a recipe: its edges have the keys ``e_subsystem`` and ``relation``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

import networkx as nx

from simsched.errors import FormatError, LimitError
from simsched.formats.text.xml_tree import MAX_BYTES
from simsched.graph.build.networkx_graph import from_networkx

if TYPE_CHECKING:
    from simsched.graph.resource_graph import ResourceGraph

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


def from_graphml(text: str, *, name: str = "cluster", where: str | None = None) -> ResourceGraph:
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
