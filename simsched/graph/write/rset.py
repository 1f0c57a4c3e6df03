"""Resource graph → R: R_lite alone, with the graph beside it, or with a TreePool topology."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_host, check_property
from simsched.graph.holdings import Holdings, TargetHoldings, holdings
from simsched.graph.resource_graph import pool_of
from simsched.graph.write.jgf import FLUXION, to_jgf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.graph.resource_graph import ResourceGraph


def to_rset(graph: ResourceGraph, *, found: Holdings | None = None) -> ResourceSet:
    """Return R of a graph: ranks, hosts, unit ids, properties; levels and amounts are left out.

    `write.losses` lists the facts that are left out.  `found` are the graph's holdings,
    if they are known already.

    Raises
    ------
    FormatError
        if a property's name has a character that RFC 20 forbids.
    ClusterError
        if a hostlist cannot hold the name of a target.
    """
    found = found or holdings(graph)
    ranks_with: dict[tuple[tuple[str, Idset], ...], list[int]] = {}
    for target in found.targets:
        check_host(target.pool.name, f"vertex {target.vertex!r}")
        children = tuple((kind, target.ids(kind)) for kind in target.leaves)
        ranks_with.setdefault(children, []).append(target.rank)
    # the facts about the whole set of the R document that the graph came from
    source = graph.graph.get("source")
    facts: Mapping[str, Any] = graph.graph.get("document", {}) if source != "JGF" else {}
    if source != "R":  # otherwise scheduling is the graph or the topology
        facts = {key: value for key, value in facts.items() if key != "scheduling"}
    return ResourceSet.of(
        [(Idset.from_ids(ranks), dict(children)) for children, ranks in ranks_with.items()],
        Hostlist.from_hosts(target.pool.name for target in found.targets),
        properties=_properties(graph, found),
        **facts,
    )


def _properties(graph: ResourceGraph, found: Holdings) -> dict[str, Idset]:
    ranks: dict[str, list[int]] = {}
    for target in found.targets:
        for name in (*target.pool.properties, *_of_children(graph, target)):
            ranks.setdefault(name, []).append(target.rank)
    for name in ranks:
        check_property(name, "properties")
    return {name: Idset.from_ids(having) for name, having in ranks.items()}


def _of_children(graph: ResourceGraph, target: TargetHoldings) -> Iterator[str]:
    """Yield ``p@type`` for properties that all leaves of a type have and the target does not list yet."""
    for kind, leaves in target.leaves.items():
        pools = [pool_of(graph, key) for key in leaves]
        if not any(pool.properties for pool in pools):
            continue
        for name in pools[0].properties:
            suffixed = f"{name}@{kind}"
            if suffixed not in target.pool.properties and all(name in pool.properties for pool in pools):
                yield suffixed


def to_rset_with_graph(
    graph: ResourceGraph, *, dialect: str = FLUXION, expand: bool | None = None
) -> dict[str, Any]:
    """Return an R document whose ``scheduling.graph`` is the graph's JGF; nothing is left out."""
    from simsched.formats.cluster.jgf import to_object

    rset = to_rset(graph)
    kept = graph.graph.get("document", {}).get("scheduling", {}) if graph.graph.get("source") != "JGF" else {}
    scheduling = {key: value for key, value in kept.items() if not str(value).endswith("shorthand")}
    inner = to_object(replace(to_jgf(graph, dialect=dialect, expand=expand), document_keys={}))
    return replace(rset, scheduling={**scheduling, **inner}).to_dict()
