"""R with a TreePool topology → resource graph: nodes, localities within them, pools in those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.errors import ClusterError
from simsched.formats.cluster.treepool import MEMORY_UNIT
from simsched.formats.rfc.idset import Idset
from simsched.garbage import collector_paused
from simsched.graph.build.assemble import add_tree, add_vertices, finish, new_graph
from simsched.graph.build.rset import RsetFrame, suffix_properties
from simsched.graph.pool import Pool, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.formats.cluster.rset import RankGroup, ResourceSet
    from simsched.formats.cluster.treepool import Domain, TreePool
    from simsched.graph.resource_graph import ResourceGraph


def from_treepool(rset: ResourceSet, topology: TreePool, *, name: str = "cluster") -> ResourceGraph:
    """Return the graph of a resource set whose ``scheduling`` is a TreePool topology.

    R_lite has the units, and the topology their places on each rank.  Units that only R_lite names are
    put directly in the node.  The R of an allocation has the topology of whole nodes (RFC 49): ids that
    R_lite does not have are left out, and so are domains without any of its ids.  Memory and storage are
    in the topology alone.

    Raises
    ------
    ClusterError
        if the topology has a rank that R_lite does not have, or names an id twice.
    """
    with collector_paused():
        frame = RsetFrame(rset)
        graph = new_graph(name, source="TreePool", document=frame.facts, treepool=topology.extra)
        add_vertices(graph, [(frame.root, numbered("cluster", 0))])
        add_tree(graph, _vertices(frame, topology))
        return finish(graph)


@dataclass(frozen=True, slots=True)
class _Part:
    """One vertex within a node: the suffixes of its key and of its parent's key, and its pool."""

    suffix: str
    parent: str
    pool: Pool


def _vertices(frame: RsetFrame, topology: TreePool) -> Iterator[tuple[str, Pool, str]]:
    """Yield (key, pool, container) of nodes by rank, each followed by the vertices within it."""
    known = Idset.from_ids(frame.group_of)
    for described in topology.children:  # before any rank of it is written out
        if strange := described.ranks - known:
            raise ClusterError(f"the topology has rank {strange.first}", expected="only ranks of R_lite")
    topo_of = {rank: group.topo for group in topology.children for rank in group.ranks}
    shared: dict[tuple[int, int, frozenset[str]], list[tuple[str, str, Pool]]] = {}
    for rank, key, node in frame.nodes():
        yield key, node, frame.root
        group, topo, names = frame.group_of[rank], topo_of.get(rank), frame.property_names(rank)
        mark = (id(group), id(topo), names)
        if mark not in shared:
            parts = _inside(group, topo, names, f"rank {rank}")
            shared[mark] = [(part.suffix, part.parent, part.pool) for part in parts]
        for suffix, parent, pool in shared[mark]:
            yield key + suffix, pool, key + parent


def _inside(group: RankGroup, topo: Domain | None, names: frozenset[str], where: str) -> Iterator[_Part]:
    """Yield the vertices in a node: the topology's domains and pools, then the other units of R_lite."""
    placed: dict[str, Idset] = {}
    measured: set[str] = set()
    if topo is not None:
        yield from _domain(topo, "", _Numbering(names, group.children, placed, where))
        measured = {kind for domain in topo.walk() for kind in _amounts(domain)}
    for kind, ids in group.children.items():
        rest = ids - placed.get(kind, Idset())
        if rest and kind not in measured:
            yield _Part(f"/{kind}", "", _pool(kind, rest, names))


def _amounts(domain: Domain) -> Iterator[str]:
    """Yield the types for which a domain has an amount of its own."""
    if domain.memory is not None:
        yield "memory"
    if domain.storage:
        yield "storage"


class _Numbering:
    """The running numbers of domains within one node, and the ids that are already placed."""

    def __init__(
        self, names: frozenset[str], held: Mapping[str, Idset], placed: dict[str, Idset], where: str
    ) -> None:
        self.names = names
        self.held = held
        self.placed = placed
        self.where = where
        self._next: dict[str, int] = {}

    def number(self, kind: str) -> int:
        """Return the next number of this type within the node."""
        found = self._next.get(kind, 0)
        self._next[kind] = found + 1
        return found

    def skip(self, domain: Domain) -> None:
        """Skip the numbers of the domains within an omitted one, so that the others keep theirs."""
        for inner in domain.walk():
            for kind, domains in inner.children:
                self._next[kind] = self._next.get(kind, 0) + len(domains)

    def place(self, kind: str, ids: Idset) -> Idset:
        """Note that these ids are placed; return those of them that R_lite has."""
        before = self.placed.get(kind, Idset())
        if not before.isdisjoint(ids):
            raise ClusterError(f"the topology of {self.where} names {kind} {before & ids} twice")
        self.placed[kind] = before | ids
        return ids & self.held.get(kind, Idset())

    def is_absent(self, domain: Domain) -> bool:
        """Whether R_lite has none of the units that the topology places in a domain."""
        units = [
            (kind, ids)
            for inner in domain.walk()
            for kind, ids in (("core", inner.cores), ("gpu", inner.gpus))
            if ids
        ]
        return bool(units) and all(ids.isdisjoint(self.held.get(kind, Idset())) for kind, ids in units)


def _domain(domain: Domain, parent: str, numbering: _Numbering) -> Iterator[_Part]:
    """Yield the parts of one domain, depth first."""
    for kind, ids in (("core", domain.cores), ("gpu", domain.gpus)):
        mine = numbering.place(kind, ids) if ids else None
        if mine:
            yield _Part(f"{parent}/{kind}", parent, _pool(kind, mine, numbering.names))
    if domain.memory is not None:
        memory = numbered("memory", size=domain.memory, unit=MEMORY_UNIT)
        yield _Part(f"{parent}/memory", parent, memory)
    for number, device in enumerate(domain.storage):
        extra: Mapping[str, str] = {"path": device.path}
        pool = numbered("storage", number, size=device.capacity, unit=device.unit, extra=extra)
        yield _Part(f"{parent}/storage{number}", parent, pool)
    for kind, domains in domain.children:
        for inner in domains:
            number = numbering.number(kind)
            if numbering.is_absent(inner):
                numbering.skip(inner)
                continue
            suffix = f"{parent}/{kind}{number}"
            yield _Part(suffix, parent, numbered(kind, number))
            yield from _domain(inner, suffix, numbering)


def _pool(kind: str, ids: Idset, names: frozenset[str]) -> Pool:
    return numbered(kind, size=len(ids), ids=ids, properties=suffix_properties(names, kind))
