"""R → resource graph: a root, one node per rank, one pool per child type (ids are kept).

A TreePool topology beside R_lite places the units in localities within the nodes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from simsched.errors import ClusterError, LimitError
from simsched.formats.rfc.idset import Idset
from simsched.formats.text.excerpts import has_control
from simsched.garbage import collector_paused
from simsched.graph.build.assemble import add_tree, add_vertices, finish, new_graph
from simsched.graph.pool import NOTHING, Pool, numbered, split_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.formats.cluster.rset import RankGroup, ResourceSet
    from simsched.formats.cluster.treepool import Domain, TreePool
    from simsched.graph.resource_graph import ResourceGraph

ROOT_KEY = "cluster0"
MAX_TARGETS = 1_000_000
"""The most ranks that a cluster may have; R itself may name more."""

_NONE = Idset()


def from_rset(rset: ResourceSet, topology: TreePool | None = None, *, name: str = "cluster") -> ResourceGraph:
    """Return the graph of a resource set's R_lite (RFC 20, readings R9 and R10).

    A node's key is its host (``host@rank`` where brokers share a host); a pool's key is
    ``host/type``.  Pools of one group share one `Pool` value.  A property ``p@gpu`` is on
    the node unchanged and on the node's gpu pools as ``p``.

    R_lite has the units, and a `topology` their places on each rank (RFC 49).  Units that only R_lite names
    are put directly in the node.  The R of an allocation has the topology of whole nodes: ids that
    R_lite does not have are left out, and so are domains without any of its ids.  Memory and storage are
    in the topology alone.

    Raises
    ------
    ClusterError
        if the set has no ranks, or the topology has a rank that R_lite does not have or names an id twice.
    """
    with collector_paused():
        frame = RsetFrame(rset)
        if topology is not None:
            graph = new_graph(name, source="TreePool", document=frame.facts, treepool=topology.extra)
        else:
            kept = {"scheduling": rset.scheduling} if rset.scheduling else {}
            graph = new_graph(name, source="R", document={**frame.facts, **kept})
        add_vertices(graph, [(frame.root, numbered("cluster", 0))])
        add_tree(graph, _vertices(frame, topology))
        return finish(graph)


class RsetFrame:
    """The ranks of a resource set as keys, nodes and properties, which builders extend.

    Attributes
    ----------
    root : the key of the cluster's vertex.
    group_of : rank → its group of R_lite.
    names_of : rank → the names of its properties as R writes them, for ranks that have some.
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
        rows: dict[int, list[str]] = {}
        for name, ranks in rset.properties.items():
            for rank in ranks:
                rows.setdefault(rank, []).append(name)
        # equal rows share one value
        distinct = {row: frozenset(row) for row in dict.fromkeys(map(tuple, rows.values()))}
        self.names_of = {rank: distinct[tuple(row)] for rank, row in rows.items()}
        self._properties: dict[frozenset[str], Mapping[str, str]] = {
            names: dict.fromkeys(row, "") for row, names in distinct.items()
        }
        facts = {key: getattr(rset, key) for key in _FACTS}
        self.facts = {key: value for key, value in facts.items() if value not in (None, {})}

    def nodes(self) -> Iterator[tuple[int, str, Pool]]:
        """Yield (rank, vertex key, pool) of each node by ascending rank (R10)."""
        repeated = {host for host, times in Counter(self._hosts).items() if times > 1}
        for rank, host in zip(sorted(self.group_of), self._hosts, strict=True):
            basename, number = split_name(host)
            properties = self._properties.get(self.property_names(rank), NOTHING)
            key = f"{host}@{rank}" if host in repeated else host
            yield (
                rank,
                key,
                Pool(type="node", name=host, basename=basename, id=number, rank=rank, properties=properties),
            )

    def property_names(self, rank: int) -> frozenset[str]:
        """Return the names of the rank's properties as R writes them."""
        return self.names_of.get(rank, frozenset())


_FACTS = ("starttime", "expiration", "nslots", "attributes", "extra")


def _vertices(frame: RsetFrame, topology: TreePool | None) -> Iterator[tuple[str, Pool, str]]:
    """Yield (key, pool, container) of nodes by rank, each followed by the vertices within it."""
    described = () if topology is None else topology.children
    known = Idset.from_ids(frame.group_of) if described else _NONE
    for part in described:  # before any rank of it is written out
        if strange := part.ranks - known:
            raise ClusterError(f"the topology has rank {strange.first}", expected="only ranks of R_lite")
    topo_of = {rank: part.topo for part in described for rank in part.ranks}
    shared: dict[tuple[int, int, frozenset[str]], list[tuple[str, str, Pool]]] = {}
    for rank, key, node in frame.nodes():
        yield key, node, frame.root
        group, topo, names = frame.group_of[rank], topo_of.get(rank), frame.property_names(rank)
        if topology is None and group.children.get("node"):
            message = f"ranks {group.ranks} have children of type node"
            raise ClusterError(message, expected="types within a node, such as core")
        mark = (id(group), id(topo), names)
        if mark not in shared:
            shared[mark] = list(_inside(group, topo, names, f"rank {rank}"))
        for suffix, parent, pool in shared[mark]:
            yield key + suffix, pool, key + parent


def suffix_properties(names: frozenset[str] | Mapping[str, str], kind: str) -> Mapping[str, str]:
    """Return the properties that the names ending in ``@kind`` give to children of that type.

    >>> suffix_properties({"amd-mi50@gpu": "", "fast": ""}, "gpu")
    {'amd-mi50': ''}
    """
    ending = f"@{kind}"
    found = {name.removesuffix(ending): "" for name in sorted(names) if name.endswith(ending)}
    found.pop("", None)
    return found or NOTHING


def _inside(
    group: RankGroup, topo: Domain | None, names: frozenset[str], where: str
) -> Iterator[tuple[str, str, Pool]]:
    """Yield the vertices in a node: the topology's domains and pools, then the other units of R_lite.

    Each is (suffix of its key, suffix of its parent's key, pool).
    """
    placed: dict[str, Idset] = {}
    measured: set[str] = set()
    if topo is not None:
        yield from _domain(topo, "", _Numbering(names, group.children, placed, where))
        domains = list(topo.walk())
        measured = {"memory"} if any(domain.memory is not None for domain in domains) else set()
        measured |= {"storage"} if any(domain.storage for domain in domains) else set()
    for kind, ids in group.children.items():
        rest = ids - placed.get(kind, _NONE)
        if rest and kind not in measured:
            yield f"/{kind}", "", _pool(kind, rest, names)


class _Numbering:
    """The running numbers of domains within one node, and the ids that are already placed."""

    def __init__(
        self, names: frozenset[str], held: Mapping[str, Idset], placed: dict[str, Idset], where: str
    ) -> None:
        self.names = names
        self.held = held
        self.placed = placed
        self.where = where
        self.next = Counter[str]()  # the next number of each type within the node

    def place(self, kind: str, ids: Idset) -> Idset:
        """Note that these ids are placed; return those of them that R_lite has."""
        before = self.placed.get(kind, _NONE)
        if not before.isdisjoint(ids):
            raise ClusterError(f"the topology of {self.where} names {kind} {before & ids} twice")
        self.placed[kind] = before | ids
        return ids & self.held.get(kind, _NONE)

    def is_absent(self, domain: Domain) -> bool:
        """Whether R_lite has none of the units that the topology places in a domain."""
        units = [
            (kind, ids)
            for inner in domain.walk()
            for kind, ids in (("core", inner.cores), ("gpu", inner.gpus))
            if ids
        ]
        return bool(units) and all(ids.isdisjoint(self.held.get(kind, _NONE)) for kind, ids in units)


def _domain(domain: Domain, parent: str, numbering: _Numbering) -> Iterator[tuple[str, str, Pool]]:
    """Yield the parts of one domain, depth first."""
    for kind, ids in (("core", domain.cores), ("gpu", domain.gpus)):
        mine = numbering.place(kind, ids) if ids else None
        if mine:
            yield f"{parent}/{kind}", parent, _pool(kind, mine, numbering.names)
    if domain.memory is not None:
        from simsched.formats.cluster.treepool import MEMORY_UNIT

        memory = numbered("memory", size=domain.memory, unit=MEMORY_UNIT)
        yield f"{parent}/memory", parent, memory
    for number, device in enumerate(domain.storage):
        extra: Mapping[str, str] = {"path": device.path}
        pool = numbered("storage", number, size=device.capacity, unit=device.unit, extra=extra)
        yield f"{parent}/storage{number}", parent, pool
    for kind, domains in domain.children:
        for inner in domains:
            number = numbering.next[kind]
            numbering.next[kind] += 1
            if numbering.is_absent(inner):  # the numbers within it are skipped, so that others keep theirs
                numbering.next.update(
                    kind for part in inner.walk() for kind, row in part.children for _ in row
                )
                continue
            suffix = f"{parent}/{kind}{number}"
            yield suffix, parent, numbered(kind, number)
            yield from _domain(inner, suffix, numbering)


def _pool(kind: str, ids: Idset, names: frozenset[str]) -> Pool:
    return numbered(kind, size=len(ids), ids=ids, properties=suffix_properties(names, kind))
