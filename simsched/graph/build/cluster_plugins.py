"""Readers of descriptions of clusters from other packages: as objects, or because they know their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from simsched.plugins.plugin_errors import failed, name_of
from simsched.plugins.plugin_kind import PluginKind

if TYPE_CHECKING:
    from simsched.graph.resource_graph import ResourceGraph


class ClusterReader(Protocol):
    """Reads a description of a cluster."""

    def recognises(self, text: str) -> bool:
        """Return whether this reader reads the text of a file."""

    def __call__(self, text: str, name: str) -> Any:
        """Return the cluster of a text as a networkx graph, or as a document: R, JGF, a recipe."""


KIND = PluginKind("cluster reader", "simsched.cluster_readers", ClusterReader)


def read_by_plugin(
    text: str, name: str, reader: ClusterReader | None = None
) -> ResourceGraph | dict[str, Any] | None:
    """Return the graph or the document of a text by `reader`, or by the installed one that recognises it.

    None if none does.

    Raises
    ------
    PluginError
        If a reader fails, or returns neither a graph nor a document.
    """
    if reader is not None:
        return _read(KIND.checked(reader), name_of(reader), text, name)
    for known in KIND.names():
        found = KIND.installed(known)
        assert found is not None
        with KIND.named(found, known):
            is_its = found.recognises(text)
        if is_its:
            return _read(found, known, text, name)
    return None


def _read(reader: ClusterReader, reader_name: str, text: str, name: str) -> ResourceGraph | dict[str, Any]:
    with KIND.named(reader, reader_name):
        found = reader(text, name)
    import networkx as nx

    if not isinstance(found, dict | nx.Graph):
        problem = f"returned {type(found).__name__}, not a networkx graph or a document"
        raise failed(KIND.word, reader, problem, reader_name)
    return found  # type: ignore[return-value]  # any graph: `from_networkx` reads it
