"""R_lite → resource graph: a root, one node per rank, one pool per child type (ids are kept)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from simsched.errors import ClusterError, LimitError
from simsched.formats.text.excerpts import has_control
from simsched.garbage import collector_paused
from simsched.graph.build.assemble import add_tree, add_vertices, finish, new_graph
from simsched.graph.pool import NOTHING, Pool, numbered, split_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.formats.cluster.rset import RankGroup, ResourceSet
    from simsched.formats.rfc.idset import Idset
    from simsched.graph.resource_graph import ResourceGraph

ROOT_KEY = "cluster0"
MAX_TARGETS = 1_000_000
"""The most ranks that a cluster may have; R itself may name more."""


def from_rset(rset: ResourceSet, *, name: str = "cluster") -> ResourceGraph:
    """Return the graph of a resource set's R_lite (RFC 20, readings R9 and R10).

    A node's key is its host (``host@rank`` where brokers share a host); a pool's key is
    ``host/type``.  Pools of one group share one `Pool` value.  A property ``p@gpu`` is on
    the node unchanged and on the node's gpu pools as ``p``.

    Raises
    ------
    ClusterError
        if the set has no ranks.
    """
    with collector_paused():
        frame = RsetFrame(rset)
        kept = {"scheduling": rset.scheduling} if rset.scheduling else {}
        graph = new_graph(name, source="R", document={**frame.facts, **kept})
        add_vertices(graph, [(frame.root, numbered("cluster", 0))])
        add_tree(graph, _vertices(frame))
        return finish(graph)


class RsetFrame:
    """The ranks of a resource set as keys, nodes and properties, which builders extend.

    Attributes
    ----------
    root : the key of the cluster's vertex.
    group_of : rank → its group of R_lite.
    facts : the parts of R about the whole set, so that it can be written again.
    """

    def __init__(self, rset: ResourceSet) -> None:
        if not rset.groups:
            raise ClusterError("the cluster is empty: R_lite names no ranks", expected="at least one rank")
        count = len(rset.ranks)
        if count > MAX_TARGETS:
            raise LimitError(f"{count:,} execution targets", expected=f"at most {MAX_TARGETS:,}")
        self.group_of: dict[int, RankGroup] = {rank: group for group in rset.groups for rank in group.ranks}
        self._hosts = list(rset.hosts)
        if len(self._hosts) != len(self.group_of):
            raise ClusterError(
                f"{len(self.group_of)} ranks and {len(self._hosts)} hosts",
                expected="one host per rank in nodelist",
            )
        bad = next((host for host in self._hosts if has_control(host)), None)
        if bad is not None:
            raise ClusterError(
                f"the host {bad[:40]!r} has control characters", expected="names of printable characters"
            )
        self.root = f"/{ROOT_KEY}" if ROOT_KEY in self._hosts else ROOT_KEY
        self._labels = _PropertiesByRank(rset.properties)
        self.facts = {key: value for key, value in _document_facts(rset).items() if value not in (None, {})}

    def nodes(self) -> Iterator[tuple[int, str, Pool]]:
        """Yield (rank, vertex key, pool) of each node by ascending rank (R10)."""
        repeated = {host for host, times in Counter(self._hosts).items() if times > 1}
        for rank, host in zip(sorted(self.group_of), self._hosts, strict=True):
            basename, number = split_name(host)
            properties = self._labels.mapping(self._labels.at(rank))
            key = f"{host}@{rank}" if host in repeated else host
            yield (
                rank,
                key,
                Pool(type="node", name=host, basename=basename, id=number, rank=rank, properties=properties),
            )

    def property_names(self, rank: int) -> frozenset[str]:
        """Return the names of the rank's properties as R writes them."""
        return self._labels.at(rank)


def _document_facts(rset: ResourceSet) -> dict[str, object]:
    return {
        "starttime": rset.starttime,
        "expiration": rset.expiration,
        "nslots": rset.nslots,
        "attributes": rset.attributes,
        "extra": rset.extra,
    }


def _vertices(frame: RsetFrame) -> Iterator[tuple[str, Pool, str]]:
    """Yield (key, pool, container) of nodes by rank, each followed by its pools."""
    shared: dict[tuple[int, frozenset[str]], list[tuple[str, Pool]]] = {}
    for rank, key, node in frame.nodes():
        yield key, node, frame.root
        group, names = frame.group_of[rank], frame.property_names(rank)
        mark = (id(group), names)
        if mark not in shared:
            shared[mark] = [(f"/{pool.type}", pool) for pool in _pools(group, names)]
        for suffix, pool in shared[mark]:
            yield key + suffix, pool, key


def _pools(group: RankGroup, names: frozenset[str]) -> Sequence[Pool]:
    """Return one pool per child type; properties of the rank reach it by their ``@`` suffix."""
    if group.children.get("node"):
        raise ClusterError(
            f"ranks {group.ranks} have children of type node", expected="types within a node, such as core"
        )
    return [
        numbered(kind, size=len(ids), ids=ids, properties=suffix_properties(names, kind))
        for kind, ids in group.children.items()
        if ids
    ]


def suffix_properties(names: frozenset[str] | Mapping[str, str], kind: str) -> Mapping[str, str]:
    """Return the properties that the names ending in ``@kind`` give to children of that type.

    >>> suffix_properties({"amd-mi50@gpu": "", "fast": ""}, "gpu")
    {'amd-mi50': ''}
    """
    ending = f"@{kind}"
    found = {name.removesuffix(ending): "" for name in sorted(names) if name.endswith(ending)}
    found.pop("", None)
    return found or NOTHING


class _PropertiesByRank:
    """Which property names each rank has; equal rows share one mapping."""

    def __init__(self, properties: Mapping[str, Idset]) -> None:
        rows: dict[int, list[str]] = {}
        for name, ranks in properties.items():
            for rank in ranks:
                rows.setdefault(rank, []).append(name)
        distinct: dict[tuple[str, ...], frozenset[str]] = {}
        self._rows = {
            rank: distinct.setdefault(tuple(names), frozenset(names)) for rank, names in rows.items()
        }
        self._mappings = {names: dict.fromkeys(order, "") for order, names in distinct.items()}

    def at(self, rank: int) -> frozenset[str]:
        return self._rows.get(rank, frozenset())

    def mapping(self, names: frozenset[str]) -> Mapping[str, str]:
        return self._mappings.get(names, NOTHING)
