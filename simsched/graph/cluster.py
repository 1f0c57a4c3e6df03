"""A cluster: a name, its frozen resource graph, and the index compiled from it on first use."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from simsched import bundled
from simsched.arguments import check, check_path
from simsched.errors import ClusterError, InputWarning, SimschedError
from simsched.graph.build.cluster_files import read_graph
from simsched.graph.build.rset import from_rset
from simsched.graph.resource_graph import ResourceGraph, is_finished

if TYPE_CHECKING:
    from simsched.formats.cluster.rset import ResourceSet
    from simsched.formats.machines.description import Note
    from simsched.graph.build.cluster_plugins import ClusterReader
    from simsched.graph.index.index import Index


class Cluster:
    """Hardware as a value: it never changes, and what-if edits return a new one.

    It is made of a `networkx.MultiDiGraph`: each vertex has a `Pool` as its attribute ``pool`` (or the
    plain attributes of `to_networkx`), and the key of an edge is its subsystem.  An edge of a
    `networkx.DiGraph` is containment unless its attribute ``subsystem`` names another subsystem.  The
    graph is checked, copied and frozen, so that later edits of it do not change the cluster.

    Attributes
    ----------
    name : its name in reports.
    graph : the frozen `networkx.MultiDiGraph` of `Pool` vertices; ``graph.copy()`` can be edited.
    source : the file or bundled name it came from, or None.
    notes : assumptions and omissions of the reader of a site's own file (`Note`).

    Raises
    ------
    ClusterError
        if the graph is not a possible cluster; the message names the vertex or edge.

    >>> import networkx as nx
    >>> from simsched import Pool
    >>> graph = nx.MultiDiGraph(name="two")
    >>> graph.add_node("cluster0", type="cluster")
    >>> for host in ("n0", "n1"):
    ...     graph.add_node(host, pool=Pool(type="node", name=host, basename="n", id=int(host[1:])))
    ...     graph.add_node(f"{host}/core", type="core", ids="0-3")
    ...     for edge in (("cluster0", host), (host, f"{host}/core")):
    ...         _ = graph.add_edge(*edge, key="containment", relationship="contains")
    >>> cluster = Cluster(graph)
    >>> cluster, cluster.index.totals["core"]
    (<Cluster 'two': 5 vertices>, 8)
    """

    def __init__(self, graph: ResourceGraph, *, name: str | None = None, source: str | None = None) -> None:
        if not is_finished(graph):  # a user's own, which is checked and copied
            from simsched.graph.build.networkx_graph import from_networkx

            graph = from_networkx(graph)
        self.graph = graph
        facts = self.graph.graph
        self.name = name or str(facts.get("name") or "cluster")
        self.source = source
        self.notes: tuple[Note, ...] = facts.get("notes", ())

    @classmethod
    def from_rset(cls, rset: ResourceSet, *, name: str = "cluster", source: str | None = None) -> Cluster:
        """Return the cluster of a resource set's R_lite.

        Raises
        ------
        ClusterError
            if the set has no ranks.
        """
        from simsched.formats.cluster.rset import ResourceSet

        check("rset", rset, ResourceSet, "a resource set")
        return cls(from_rset(rset, name=name), name=name, source=source)

    @cached_property
    def index(self) -> Index:
        """The compiled arrays for matching, made on first use."""
        from simsched.graph.index.index import Index

        return Index(self.graph)

    def to_networkx(self) -> ResourceGraph:
        """Return an editable copy of the graph with plain attributes (str and int) on vertices and edges.

        networkx writes it as GraphML, GEXF or JSON, and `Cluster` accepts it, also as read from these files.
        """
        from simsched.graph.write.plain_graph import plain_graph

        return plain_graph(self.graph)

    def to_dict(self, form: str = "r", *, dialect: str = "as-read") -> dict[str, Any]:
        """Return the cluster as a document: ``r``, ``r+jgf``, ``jgf`` or ``treepool``.

        `simsched.graph.write.losses.losses` lists the facts of this cluster that a form cannot hold.

        Raises
        ------
        ConfigError
            for an unknown form or dialect.
        """
        from simsched.graph.write.documents_of import to_document

        return to_document(self.graph, form, dialect=dialect)

    def save(self, path: str | Path, form: str = "r", *, dialect: str = "fluxion") -> None:
        """Write the cluster as JSON, or as ``graphml``.

        Errors as `to_dict`, and ClusterError if the file cannot be written.
        """
        from simsched.files import write_file
        from simsched.graph.write.documents_of import to_bytes

        check_path("path", path)
        write_file(path, to_bytes(self.graph, form, dialect=dialect), ClusterError)

    def __repr__(self) -> str:
        return f"<Cluster {self.name!r}: {len(self.graph)} vertices>"

    def _repr_html_(self) -> str:
        """Return the units of each resource type as a table, for a notebook."""
        from simsched.text_table import html_table

        return html_table(self.name, [(name, f"{units:,}") for name, units in self.index.totals.items()])


SITE_FILES = ("cluster.yaml", "cluster.json")
SITE_QUEUES = "queues.toml"
"""The files of the folder of a site: that of the machine has one of the two names; and the configuration."""


class HasCluster(Protocol):
    """A value with a machine, such as a site."""

    @property
    def cluster(self) -> Cluster:
        """The machine."""


ClusterLike: TypeAlias = "Cluster | ResourceGraph | HasCluster | str | Path"
"""A cluster as an argument: the value, a networkx graph, a site, a file or a bundled name."""


def as_cluster(value: ClusterLike) -> Cluster:
    """Return a cluster as it is, or the one of this graph, site, file or name; errors as `load_cluster`."""
    machine = value if isinstance(value, Cluster) else getattr(value, "cluster", None)
    if isinstance(machine, Cluster):
        return machine
    if isinstance(value, str | Path) and Path(value).is_dir():  # of a site
        value = next((file for name in SITE_FILES if (file := Path(value) / name).is_file()), value)
    return load_cluster(value)  # type: ignore[arg-type]


def load_cluster(path_or_name: str | Path | ResourceGraph, *, reader: ClusterReader | None = None) -> Cluster:
    """Read a cluster from a file, or a bundled one by name; ``-`` is standard input.

    The kind of file (R, R with a graph, JGF, TreePool, GRUG, GraphML, recipe, or a site's own file such as
    slurm.conf, a Flux configuration, pbsnodes -a, hwloc XML) is detected by content.  An `InputWarning`
    lists the parts of a site's file that are assumed, left out or not understood; `Cluster.notes` keeps
    them.  A networkx graph is accepted as by `Cluster`.  `reader` reads the file instead of ours.

    Raises
    ------
    ConfigError
        if there is neither such a file nor a bundled cluster of that name.
    FormatError, ClusterError
        if the file is not one of these kinds, or the cluster it describes is impossible.
    """
    if not isinstance(path_or_name, str | Path):
        import networkx as nx

        if isinstance(path_or_name, nx.Graph):
            return Cluster(path_or_name)
    path = bundled.resolve("clusters", path_or_name)
    name = "stdin" if str(path) == "-" else bundled.plain_name(Path(path))
    try:
        graph = read_graph(path, name=name, reader=reader)
    except SimschedError as error:
        if error.where and str(path) in error.where:
            raise
        raise error.at(str(path_or_name)) from None
    cluster = Cluster(graph, name=str(graph.graph.get("name") or name), source=str(path_or_name))
    if cluster.notes:
        faults_first = sorted(cluster.notes, key=lambda note: note.kind != "fault")
        warnings.warn(InputWarning(str(path_or_name), map(str, faults_first)), stacklevel=2)
    return cluster
