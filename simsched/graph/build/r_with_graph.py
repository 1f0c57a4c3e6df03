"""R with ``scheduling.graph`` → resource graph: vertices from the JGF, hosts and ranks from R_lite.

The graph's vertices are kept as they are.  R's nodelist and ranks are put on its targets
(a nested instance has ranks of its own beside its parent's graph), and R's properties are added.  A
shorthand graph leaves out the inside of exclusively allocated vertices; it is filled in from R_lite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.errors import ClusterError
from simsched.formats.rfc.idset import Idset
from simsched.garbage import collector_paused
from simsched.graph.build.assemble import add_contained, add_vertices, finish, new_graph, set_pool, settle
from simsched.graph.build.jgf import fill, keep_odd_paths
from simsched.graph.build.rset import RsetFrame, suffix_properties
from simsched.graph.holdings import own_ids
from simsched.graph.pool import numbered
from simsched.graph.resource_graph import ResourceGraph, children_map, inside, pool_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.cluster.jgf import Jgf
    from simsched.formats.cluster.rset import ResourceSet

SHORTHAND = "fluxion:jgf_shorthand"


def from_rset_with_jgf(
    rset: ResourceSet, jgf: Jgf, *, name: str = "cluster", where: str | None = None
) -> ResourceGraph:
    """Return the graph of an R document whose ``scheduling`` holds JGF.

    Raises
    ------
    FormatError, ClusterError
        as for R and JGF alone, and if the two have different targets.
    """
    with collector_paused():
        frame = RsetFrame(rset)
        scheduling = {key: value for key, value in (rset.scheduling or {}).items() if key != "graph"}
        facts = {**frame.facts, "scheduling": scheduling} if scheduling else frame.facts
        graph = new_graph(name, source="R+JGF", document=facts, jgf=dict(jgf.graph_keys))
        targets = settle(fill(graph, jgf, where))
        ranks = _ranks(graph, targets, frame)
        below = children_map(graph)
        shorthand = scheduling.get("writer") == SHORTHAND
        for vertex, rank in zip(targets, ranks, strict=True):
            within = list(inside(below, vertex))
            for key in (vertex, *within):
                pool = pool_of(graph, key)
                if pool.rank != rank and (key == vertex or pool.rank is not None):
                    set_pool(graph, key, pool.replace(rank=rank))
            names = frame.property_names(rank)  # those with a suffix are of the vertices within the target
            _label(graph, vertex, dict.fromkeys(sorted(names), ""))
            for key in within if any("@" in name for name in names) else ():
                _label(graph, key, suffix_properties(names, pool_of(graph, key).type))
            if shorthand or not within:
                _complete(graph, vertex, within, below, frame.group_of[rank].children)
            else:
                _refuse_lacking(graph, vertex, within, rank, frame.group_of[rank].children)
        return keep_odd_paths(finish(graph))


def _ranks(graph: ResourceGraph, targets: Sequence[str], frame: RsetFrame) -> list[int]:
    """Return R's rank of each target: by host if all names are hosts, else by rank."""
    nodes = [(rank, pool.name) for rank, _, pool in frame.nodes()]
    by_host = {host: rank for rank, host in nodes}
    names = [pool_of(graph, vertex).name for vertex in targets]
    if len(by_host) == len(nodes) and len(set(names)) == len(names) and by_host.keys() >= set(names):
        ranks = [by_host[name] for name in names]
    else:
        ranks = [int(pool_of(graph, vertex).rank or 0) for vertex in targets]
    for vertex, rank in zip(targets, ranks, strict=True):
        if rank not in frame.group_of:
            raise ClusterError(
                f"rank {rank} ({pool_of(graph, vertex).name}) is not in R_lite",
                where=f"scheduling.graph: vertex {vertex!r}",
            )
    lost = sorted(frame.group_of.keys() - set(ranks))
    if lost:
        host = dict(nodes)[lost[0]]
        raise ClusterError(f"no vertex has rank {lost[0]} ({host})", where="scheduling.graph")
    return ranks


def _label(graph: ResourceGraph, vertex: str, found: Mapping[str, str]) -> None:
    pool = pool_of(graph, vertex)
    if not found.keys() <= pool.properties.keys():
        extra = {key: value for key, value in pool.extra.items() if key != "properties"}
        set_pool(graph, vertex, pool.replace(properties={**found, **pool.properties}, extra=extra))


def _refuse_lacking(
    graph: ResourceGraph, vertex: str, within: Sequence[str], rank: int, children: Mapping[str, Idset]
) -> None:
    """Raise ClusterError if R_lite names units of a target that the graph does not have.

    They are compared by id, or by number if the graph has no ids of its own for them (GRUG numbers the
    cores of each socket from 0, and pools may have no ids).
    """
    for kind, ids in children.items():
        pools = [pool for key in (vertex, *within) if (pool := pool_of(graph, key)).type == kind]
        own = own_ids(pools)
        there = sum(pool.size for pool in pools)
        lacking = f"{kind} {ids - own}" if own is not None else f"{len(ids)} {kind} where there are {there}"
        if len(ids) > there if own is None else ids - own:
            raise ClusterError(
                f"R_lite names {lacking} on rank {rank} ({pool_of(graph, vertex).name})",
                where=f"scheduling.graph: vertex {vertex!r}",
                expected=f"the units of the graph: {kind} {own}"
                if own
                else f"no more {kind} than the graph has",
            )


# --- shorthand -----------------------------------------------------------------------


def _complete(
    graph: ResourceGraph,
    vertex: str,
    within: Sequence[str],
    below: Mapping[str, list[str]],
    children: Mapping[str, Idset],
) -> None:
    """Add pools for the units that are in R_lite but not in the graph.

    They go into the one vertex of the target whose inside was left out, or, if there are
    several such, into the target itself.
    """
    pools = [pool_of(graph, key) for key in within]
    for kind, ids in children.items():
        there = [pool for pool in pools if pool.type == kind]
        single = [pool.id for pool in there if pool.ids is None and pool.id is not None]
        missing = ids - Idset.from_ids(single)
        for pool in there:
            missing -= pool.ids or Idset()
        if not missing:
            continue
        bare = [key for key in within if key not in below and pool_of(graph, key).type not in children]
        parent = bare[0] if len(bare) == 1 else vertex
        key = f"{parent}/{kind}"
        add_vertices(graph, [(key, numbered(kind, size=len(missing), ids=missing))])
        add_contained(graph, [(parent, key)])
