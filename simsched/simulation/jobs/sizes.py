"""The size of a job on a cluster: the one definition for orders, fair share, limits of queues and counts.

`Sizes` counts the least that a compiled request takes, whole nodes included.  Two other rooms count
other things: `workload.flat_counts` the units in a request without a cluster, for formats that
have no more than counts, and `report.metrics` the units that a job was allocated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.graph.index.types import BELOW, TARGET
from simsched.match.requests.request import POOL, SLOT, VERTEX

if TYPE_CHECKING:
    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Need, Request


class Sizes:
    """Counts the units that requests take at least; each type of vertex is counted once."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._fewest: dict[tuple[str, str, int], int] = {}

    def size(self, request: Request) -> int:
        """Return the cores that the request takes; without cores its requested units, or its nodes."""
        units = self.units(request, "core")
        return units or next(iter(request.demand.values()), 0) or max(1, request.nodes)

    def counts(self, request: Request) -> dict[str, int]:
        """Return the nodes, cores and GPUs that the request takes at least, by RFC 33's names of limits."""
        nodes = sum(_whole_targets(need, 1) for need in request.needs)
        return {
            "nnodes": max(nodes, request.nodes),
            "ncores": self.units(request, "core"),
            "ngpus": self.units(request, "gpu"),
        }

    def units(self, request: Request, type_: str) -> int:
        """Return how many units of a type any match takes at least, those in whole vertices included."""
        return sum(self._units(need, 1, type_) for need in request.needs)

    def _units(self, need: Need, times: int, type_: str) -> int:
        times *= need.amount
        if need.type == type_ and need.exclusive and need.kind in (POOL, VERTEX):
            return times
        if need.kind == VERTEX and need.exclusive and need.whole:
            return times * self._in_a_vertex(need, type_)
        return sum(self._units(child, times, type_) for child in need.children)

    def _in_a_vertex(self, need: Need, type_: str) -> int:
        """Return the fewest units in a vertex that may serve and has some."""
        key = (need.type, type_, 0 if need.every else id(need.eligible))
        if key not in self._fewest:
            self._fewest[key] = self._count(need, type_)
        return self._fewest[key]

    def _count(self, need: Need, type_: str) -> int:
        pool = self._index.pool_types.get(type_)
        if pool is None:
            return 0
        counts = self._index.beneath(need.type, type_).sum(pool.size)
        targets = self._index.vertex_types[need.type].target
        serving = counts[((targets < 0) | need.eligible[targets]) & (counts > 0)]
        return int(serving.min()) if len(serving) else 0


def _whole_targets(need: Need, times: int) -> int:
    """Return how many targets a need takes for itself alone."""
    times *= need.amount
    if need.kind == VERTEX and need.level == TARGET:
        return times if need.exclusive else 0
    return sum(_whole_targets(child, times) for child in need.children)


def plain_units(request: Request, *, whole: bool = False) -> tuple[str, int] | None:
    """Return type and number if the request is a plain number of units that may be anywhere.

    Such a request fits if and only if that many units are free: ``slot=N/core`` (N units of
    a pool, each from anywhere) and ``slot=N/node`` (N whole targets), without a constraint.
    Under a policy that gives `whole` targets only the second is plain.
    """
    if len(request.needs) != 1 or request.ranged or not request.every:
        return None
    slot = request.needs[0]
    if slot.kind != SLOT or len(slot.children) != 1:
        return None
    asked = slot.children[0]
    if not asked.exclusive or asked.ids is not None or asked.names is not None or asked.children:
        return None
    if (
        not whole
        and asked.kind == POOL
        and asked.level == BELOW
        and asked.amount == 1
        and slot.content is not None
    ):
        return asked.type, slot.amount
    if asked.kind == VERTEX and asked.level == TARGET:
        return asked.type, slot.amount * asked.amount
    return None
