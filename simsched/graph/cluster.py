"""A cluster: a name, its frozen resource graph, and the index compiled from it on first use."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched import bundled
from simsched.arguments import check, check_path
from simsched.errors import ClusterError, SimschedError
from simsched.graph.build_rset import from_rset
from simsched.graph.read import read_graph

if TYPE_CHECKING:
    from simsched.formats.rset import ResourceSet
    from simsched.graph.index import Index
    from simsched.graph.resource_graph import ResourceGraph


class Cluster:
    """Hardware as a value: it never changes, and what-if edits return a new one.

    Attributes
    ----------
    name : how reports call it.
    graph : the frozen `networkx.MultiDiGraph` of `Pool` vertices.
    source : the file or bundled name it came from, or None.
    """

    def __init__(self, graph: ResourceGraph, *, name: str | None = None, source: str | None = None) -> None:
        self.name = name or str(graph.graph.get("name") or "cluster")
        self.graph = graph
        self.source = source

    @classmethod
    def from_rset(cls, rset: ResourceSet, *, name: str = "cluster", source: str | None = None) -> Cluster:
        """Return the cluster of a resource set's R_lite.

        Raises
        ------
        ClusterError
            if the set has no ranks.
        """
        from simsched.formats.rset import ResourceSet

        check("rset", rset, ResourceSet, "a resource set")
        return cls(from_rset(rset, name=name), name=name, source=source)

    @cached_property
    def index(self) -> Index:
        """The compiled arrays that matching runs on; made once."""
        from simsched.graph.index import Index

        return Index(self.graph)

    def to_dict(self, form: str = "r", *, dialect: str = "as-read") -> dict[str, Any]:
        """Return the cluster as a document: ``r``, ``r+jgf``, ``jgf`` or ``treepool``.

        `simsched.graph.losses.losses` says what a form cannot hold of this cluster.

        Raises
        ------
        ConfigError
            for an unknown form or dialect.
        """
        from simsched.graph.write import to_document

        return to_document(self.graph, form, dialect=dialect)

    def save(self, path: str | Path, form: str = "r", *, dialect: str = "fluxion") -> None:
        """Write the cluster as JSON; errors as `to_dict`, and ClusterError where nothing can be written."""
        from simsched.files import write_file
        from simsched.graph.write import to_bytes

        check_path("path", path)
        write_file(path, to_bytes(self.graph, form, dialect=dialect), ClusterError)

    def __repr__(self) -> str:
        return f"<Cluster {self.name!r}: {len(self.graph)} vertices>"


def as_cluster(value: Cluster | str | Path) -> Cluster:
    """Return a cluster as it is, or the one of this file or bundled name; errors as `load_cluster`."""
    return value if isinstance(value, Cluster) else load_cluster(value)


def load_cluster(path_or_name: str | Path) -> Cluster:
    """Read a cluster from a file, or a bundled one by name; ``-`` is standard input.

    The kind of file (R, R with a graph, JGF, TreePool, GRUG, recipe) is found by content.

    Raises
    ------
    ConfigError
        if there is no such file and no bundled cluster of that name.
    FormatError, ClusterError
        if the file is not one of these kinds, or describes no possible cluster.
    """
    path = bundled.resolve("clusters", path_or_name)
    name = "stdin" if str(path) == "-" else bundled.plain_name(Path(path))
    try:
        graph = read_graph(path, name=name)
    except SimschedError as error:
        if error.where and str(path) in error.where:
            raise
        raise error.at(str(path_or_name)) from None
    return Cluster(graph, name=str(graph.graph["name"]), source=str(path_or_name))
