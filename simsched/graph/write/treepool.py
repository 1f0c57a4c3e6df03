"""Resource graph → R with a TreePool topology (RFC 49)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.errors import RequestError
from simsched.formats.cluster.treepool import (
    MEMORY_UNIT,
    Domain,
    RankTopology,
    Storage,
    TreePool,
    to_scheduling,
)
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.units import convert
from simsched.graph.holdings import Holdings, TargetHoldings, holdings
from simsched.graph.resource_graph import children_map, pool_of
from simsched.graph.write.rset import to_rset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph


def to_treepool(graph: ResourceGraph) -> dict[str, Any]:
    """Return an R document with ``scheduling.writer`` TreePool.

    Localities, cores, gpus, memory (whole GiB) and storage keep their places; other units
    are in R_lite alone.
    """
    found = holdings(graph)
    rset = to_rset(graph, found=found)
    return replace(rset, scheduling=to_scheduling(topology(graph, found=found))).to_dict()


def topology(graph: ResourceGraph, *, found: Holdings | None = None) -> TreePool:
    """Return the places of the units on each target; `found` are the holdings, if they are known already."""
    found = found or holdings(graph)
    below = children_map(graph)
    ranks_with: dict[Domain, list[int]] = {}
    for target in found.targets:
        topo = _domain(graph, target.vertex, below, target)
        ranks_with.setdefault(topo, []).append(target.rank)
    groups = tuple(RankTopology(Idset.from_ids(ranks), topo) for topo, ranks in ranks_with.items())
    return TreePool(groups, graph.graph.get("treepool", ()))


def _domain(
    graph: ResourceGraph, vertex: str, below: Mapping[str, list[str]], target: TargetHoldings
) -> Domain:
    """Return the contents of a vertex as a locality domain."""
    inside = [(key, pool_of(graph, key)) for key in below.get(vertex, ())]
    localities: dict[str, list[Domain]] = {}
    for key, pool in inside:
        if key in below or (pool.type not in target.leaves and not pool.unit):
            localities.setdefault(pool.type, []).append(_domain(graph, key, below, target))
    memory = [int(amount) for _, pool in inside if (amount := memory_in_gib(pool)) is not None]
    return Domain(
        cores=_ids(inside, target, "core"),
        gpus=_ids(inside, target, "gpu"),
        memory=sum(memory) if memory else None,
        storage=tuple(_storage(pool) for _, pool in inside if is_storage(pool)),
        children=tuple((kind, tuple(domains)) for kind, domains in localities.items()),
    )


def _ids(inside: Sequence[tuple[str, Pool]], target: TargetHoldings, kind: str) -> Idset | None:
    held = target.leaves.get(kind, {})
    sets = [held[key] for key, pool in inside if pool.type == kind and key in held]
    return Idset.from_ranges(span for ids in sets for span in ids.ranges) if sets else None


def memory_in_gib(pool: Pool) -> int | Fraction | None:
    """Return a memory pool's size in GiB, or None if it is not memory with a unit."""
    if pool.type != "memory" or not pool.unit:
        return None
    try:
        return convert(pool.size, pool.unit, MEMORY_UNIT)
    except RequestError:
        return None


def is_storage(pool: Pool) -> bool:
    """Whether TreePool can hold the pool as storage: it has a unit, and a path or that type."""
    return bool(pool.unit) and (pool.type == "storage" or "path" in pool.extra)


def _storage(pool: Pool) -> Storage:
    return Storage(str(pool.extra.get("path", "")), pool.size, pool.unit)
