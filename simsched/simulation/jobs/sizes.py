"""The size of a job as one number: orders by size, fair share and limits of queues use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.match.requests.request import POOL, VERTEX

if TYPE_CHECKING:
    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Need, Request


class Sizes:
    """Counts the units that requests take at least; each type of vertex is counted once."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._fewest: dict[tuple[str, str, int], int] = {}

    def size(self, request: Request) -> int:
        """Return the cores that the request takes; without any, the units it asks for, or its nodes."""
        units = self.units(request, "core")
        return units or next(iter(request.demand.values()), 0) or max(1, request.nodes)

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
