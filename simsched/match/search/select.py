"""Matching: request + availability → selection, top-down over the counts of `capacity`.

`could_fit` answers from counts alone.  `select` takes candidates in the policy's order until
the count is met, descends into each, and ends with the lowest free units of the leaf pools.
Neither changes a state: only `Availability.claim` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from simsched.graph.index.types import TARGET
from simsched.match.policies.policy import MatchPolicy, find_policy, fixed_order
from simsched.match.requests.compile import compile_request, with_amount
from simsched.match.requests.request import SLOT, VERTEX
from simsched.match.search import exact
from simsched.match.search.counts import EVERYWHERE, capacity, copies_of
from simsched.match.search.descend import Descent
from simsched.match.search.on_targets import select_on_targets
from simsched.match.search.portions import first_copies
from simsched.match.state.selection import Draw, Hold, Selection

if TYPE_CHECKING:
    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Need, Request
    from simsched.match.state.availability import Availability


def could_fit(request: Request, avail: Availability) -> bool:
    """Whether the counts allow a match.

    Exact if siblings do not compete (`request.separable`, M10), else a necessary condition.
    A range counts with its least acceptable value (M6).
    """
    return all(_has(need, avail) for need in request.needs)


def _has(need: Need, avail: Availability) -> bool:
    """Whether one top-level need is available, counted by itself."""
    content = need.content
    if content is not None and need.level == TARGET:
        if need.kind == SLOT and not need.loose:
            return capacity(content, avail).total >= need.amount
        if need.kind == VERTEX:
            return capacity(content, avail).some >= need.amount
    return int(copies_of(need, EVERYWHERE, None, avail)[0]) >= 1


def select(
    request: Request,
    avail: Availability,
    policy: str | MatchPolicy = "first",
    rng: np.random.Generator | None = None,
) -> Selection | None:
    """Return the selection of a request in this state, or None if it does not fit.

    Raises
    ------
    ConfigError
        for an unknown policy, or one that returns no permutation.
    SearchLimitError
        if siblings compete and the exact search reached its limit.
    """
    policy = find_policy(policy)
    if avail.kinds is not None and avail.kinds.places(request, policy):
        return avail.kinds.select(request)
    # Fast paths for the requests of most jobs; the selection equals that of `Descent`.
    if request.whole and policy.static and not policy.whole_nodes:
        return _select_whole(request, avail, policy)
    if request.simple is not None and not policy.whole_nodes:
        return select_on_targets(request, request.simple, avail, policy, rng)
    if policy.whole_nodes and not request.alone:
        request = compile_request(request.jobspec, avail.index, request.dialect, alone=True)
    if not could_fit(request, avail):
        return None
    if request.ranged:
        if not can_match(request, avail):
            return None
        for number in request.ranged:
            request = _settle(request, number, avail)
    if not request.separable:
        return exact.find(request, avail, policy, rng)
    return Descent(request, avail, policy, rng).build()


def _select_whole(request: Request, avail: Availability, policy: MatchPolicy) -> Selection | None:
    """Return whole idle targets in a fixed order.

    Every target has the same units (`Index.on_each_target`) and an idle one has all of them free, so
    nothing below the targets needs to be counted.
    """
    index, wanted = avail.index, request.whole
    idle = avail.idle_targets()
    if not request.every:
        idle = idle & request.eligible
    total = int(np.count_nonzero(idle))
    if total < wanted:
        return None
    kind = index.target_type
    fits = cast("Integers", idle)  # 0 or 1
    targets, _ = first_copies(fits, wanted, fixed_order(policy, kind, avail), most=1, total=total)
    each = index.on_each_target or {}
    held = tuple(Draw(name, targets, units, units * wanted) for name, units in each.items())
    return Selection(request, targets, held, held, (Hold(kind, targets, exclusive=True),), (), request.slots)


def can_match(request: Request, avail: Availability, steps: int = exact.LIMIT) -> bool:
    """Whether a request fits, exactly, with its least counts; the policy makes no difference (M8).

    Raises
    ------
    SearchLimitError
        if siblings compete and the exact search takes more than `steps` steps.
    """
    if not could_fit(request, avail):
        return False
    return request.separable or exact.find(request, avail, find_policy("first"), limit=steps) is not None


def _settle(request: Request, number: int, avail: Availability) -> Request:
    """Fix one ranged need at the largest acceptable count that fits (M6).

    A request that fits with n copies fits with fewer, so bisection finds the largest count.
    """
    need = next(n for n in request.walk() if n.number == number)
    best = low = need.count.min
    high = need.count.largest_at_most(_bound(need, avail.index)) or low
    while low < high:
        middle = (low + high + 1) // 2
        # A count may have gaps (2,4,8): `middle` is tried with the largest acceptable value up to it.
        # If that is `best` or less, the gap is skipped without a try.
        value = need.count.largest_at_most(middle) or best
        if value <= best or can_match(with_amount(request, number, value, avail.index), avail):
            best, low = max(best, value), middle
        else:
            high = middle - 1
    return with_amount(request, number, best, avail.index)


def _bound(need: Need, index: Index) -> int:
    """Return a count that no match of a ranged need can exceed, in the request's own unit."""
    if need.kind == SLOT:  # each copy takes at least one unit or vertex of some type
        return sum(index.totals.values())
    total = index.totals.get(need.type, 0)
    return total * need.count.min // max(1, need.amount) + total
