"""What a job counts with: the one definition for orders, fair share, limits of queues and `[[limits]]`.

A job counts with its allocation, not with its request: a node that is claimed exclusively counts with all its
units, and under a match policy of whole nodes every node does.  Before the start the allocation may depend on
the placement, so `Sizes` finds the least that any placement on the idle cluster gives, and whether that is
what every placement gives.  `workload.job.demand` counts the units in a request without a cluster, for
formats that have no more than counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.graph.index.types import ABOVE, BELOW, TARGET
from simsched.match.requests.compile import compile_request
from simsched.match.requests.request import POOL, SLOT, VERTEX
from simsched.match.search.counts import capacity, hosts
from simsched.match.state.availability import idle_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Need, Request

STEPS = 100_000
"""Copies up to which the least that different targets give together is exact; beyond it is a lower bound."""


class Extent(NamedTuple):
    """The least of something that a match gives, and whether every match gives the same."""

    least: int
    fixed: bool


NONE = Extent(0, fixed=True)


class Sizes:
    """Counts what requests are allocated; `whole`: each target of a job is given to it whole."""

    def __init__(self, index: Index, *, whole: bool = False) -> None:
        self._index = index
        self._whole = whole
        self._each: dict[tuple[str, str], Integers] = {}

    def size(self, request: Request) -> int:
        """Return the cores that the request takes; without cores its requested units, or its nodes."""
        units = self.units(request, "core").least
        return units or next(iter(request.demand.values()), 0) or max(1, request.nodes)

    def counts(self, request: Request) -> dict[str, int]:
        """Return the nodes, cores and GPUs that the request takes at least, by RFC 33's names of limits.

        As in Flux, a request of cores alone counts as one node, unless whole nodes are given.
        """
        return {
            "nnodes": self.nodes(request).least if self._whole else self.named_nodes(request),
            "ncores": self.units(request, "core").least,
            "ngpus": self.units(request, "gpu").least,
        }

    def named_nodes(self, request: Request) -> int:
        """Return the execution targets that the request names; 1 if it names none."""
        return max(sum(_whole_targets(need, 1) for need in request.needs), request.nodes)

    def extent(self, request: Request, unit: str) -> Extent:
        """Return the nodes, cores, gpus or memory of the request, as `[[limits]]` count them."""
        return self.nodes(request) if unit == "nodes" else self.units(request, unit.removesuffix("s"))

    def units(self, request: Request, type_: str) -> Extent:
        """Return how many units of a type the request takes, those in whole vertices included."""
        needs = self._as_given(request).needs
        parts = [self._units(need, 1, type_) for need in needs]
        if self._whole and len(parts) > 1:  # parts may be on one target
            return Extent(max(part.least for part in parts), fixed=all(part == (0, True) for part in parts))
        return _sum(parts, fixed=not request.ranged)

    def nodes(self, request: Request) -> Extent:
        """Return how many execution targets the request touches."""
        own, shared, fixed = self._nodes(self._as_given(request).needs, 1)
        return Extent(max(1, own + shared), fixed and not request.ranged)

    def _as_given(self, request: Request) -> Request:
        if not self._whole or request.alone:
            return request
        return compile_request(request.jobspec, self._index, request.dialect, alone=True)

    def _units(self, need: Need, times: int, type_: str) -> Extent:
        copies = times * need.amount
        if need.type == type_ and need.kind in (POOL, VERTEX):
            return Extent(copies if need.exclusive else 0, fixed=True)
        if need.content is not None and (need.content.alone or (need.kind == VERTEX and need.exclusive)):
            loose = [self._units(child, copies, type_) for child in need.loose]
            return _sum([self._least(copies, self._fits(need, times), need.type, type_), *loose])
        if need.kind == VERTEX and need.exclusive:
            serves = hosts(need, None, idle_cluster(self._index))
            return self._least(copies, np.minimum(serves, 1), need.type, type_)
        return _sum([self._units(child, copies, type_) for child in need.children])

    def _nodes(self, needs: Sequence[Need], times: int) -> tuple[int, int, bool]:
        """Return the targets that needs take alone, those that they may share, and whether both are fixed."""
        own = shared = 0
        fixed = len(needs) == 1
        for need in needs:
            copies = times * need.amount
            if need.content is not None:
                fits = self._fits(need, times)
                found = _cover(copies, fits, np.ones_like(fits))
                if need.kind == VERTEX and need.exclusive and not need.content.alone:
                    own += found.least
                    continue
                if need.kind == VERTEX:
                    found = Extent(max(found.least, need.amount), found.fixed)
                shared = max(shared, found.least)
                # Copies may be on one target each, unless targets are given whole: those are filled.
                most = min(copies, int(np.count_nonzero(fits)))
                fixed = fixed and (found.fixed if need.content.alone else found.least == most)
            elif need.kind == VERTEX and need.level == ABOVE and need.exclusive and not need.children:
                serves = np.minimum(hosts(need, None, idle_cluster(self._index)), 1)
                found = self._least(copies, serves, need.type, self._index.target_type)
                own, fixed = own + found.least, fixed and found.fixed
            elif need.level == ABOVE and need.children:
                inner = self._nodes(need.children, copies)
                own, shared, fixed = own + inner[0], max(shared, inner[1]), fixed and inner[2]
            elif need.level != ABOVE:  # units or sockets, of one target or several
                shared, fixed = max(shared, 1), fixed and copies == 1
        return own, shared, fixed

    def _fits(self, need: Need, times: int) -> Integers:
        """Return how many copies of a need at the targets each target can host."""
        assert need.content is not None
        fits = capacity(need.content, idle_cluster(self._index)).fits
        return fits if need.kind == SLOT else np.minimum(fits, 1 if need.exclusive else times)

    def _least(self, copies: int, fits: Integers, above: str, type_: str) -> Extent:
        """Return the units of a type in the vertices (of type `above`) that host copies."""
        if above == "slot":
            above = self._index.target_type
        each = self._each.get((above, type_))
        if each is None:
            each = self._each[above, type_] = self._units_in(above, type_)
        return _cover(copies, fits, each)

    def _units_in(self, above: str, type_: str) -> Integers:
        """Return how many units or vertices of a type each vertex of the type `above` has."""
        index = self._index
        pool = index.pool_types.get(type_)
        if pool is None and type_ not in index.vertex_types:
            return np.zeros(len(index.vertex_types[above].ids), dtype=np.int64)
        view = index.beneath(above, type_)
        if pool is None:
            return view.high - view.low
        return view.sum(pool.size if view.ordinals is None else pool.size[view.ordinals])


def _cover(copies: int, fits: Integers, each: Integers) -> Extent:
    """Return the least sum of `each` over vertices that host copies, of which each hosts at most `fits`."""
    serving = fits > 0
    pairs = np.column_stack((np.minimum(fits[serving], copies), each[serving]))
    if not pairs[:, 1].any():
        return NONE
    if (pairs == pairs[0]).all():
        return Extent(-(-copies // int(pairs[0, 0])) * int(pairs[0, 1]), fixed=True)
    kinds, numbers = np.unique(pairs, axis=0, return_counts=True)
    if (kinds[:, 0] == 1).all():
        costs = np.sort(pairs[:, 1])
        least = int(costs[:copies].sum())
        return Extent(least, fixed=least == int(costs[-copies:].sum()))
    # The least cost of j copies at least, kind of vertex by kind, whose number is split into powers of two.
    step = int(np.gcd.reduce(kinds[:, 0]))
    exact = copies <= STEPS * step
    step = step if exact else copies // STEPS
    wanted = -(-copies // step) if exact else copies // step
    places = np.arange(wanted + 1)
    best = np.where(places, np.inf, 0.0)
    for (hosted, cost), number in zip(kinds.tolist(), numbers.tolist(), strict=True):
        reach, left, part = -(-hosted // step), min(number, wanted), 1
        while left:
            part = min(part, left)
            best = np.minimum(best, best[np.maximum(places - part * reach, 0)] + part * cost)
            left, part = left - part, 2 * part
    return Extent(0 if np.isinf(best[-1]) else int(best[-1]), fixed=False)


def _sum(parts: Sequence[Extent], *, fixed: bool = True) -> Extent:
    return Extent(sum(part.least for part in parts), fixed and all(part.fixed for part in parts))


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
