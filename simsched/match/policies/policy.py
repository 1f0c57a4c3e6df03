"""Match policies: the order in which candidates are taken (M8).  All policies share one mechanism.

A policy sees the candidates of one choice, in graph order, with how many copies each can
host, and returns a permutation of them; whether a request fits is decided before it is called, so no
policy can make a request infeasible.  Others plug in through the entry-point group
``simsched.match_policies`` (a `MatchPolicy`, or just its order, under the policy's name; see `plugins`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from simsched.arguments import wrong
from simsched.errors import ConfigError
from simsched.match.policies.candidates import Candidates
from simsched.match.policies.locality import nearest_together
from simsched.plugins.plugin_errors import name_of
from simsched.plugins.plugin_kind import PluginKind

if TYPE_CHECKING:
    from simsched.arrays import Integers
    from simsched.match.state.availability import Availability

__all__ = [
    "KIND",
    "POLICIES",
    "CandidateOrder",
    "Candidates",
    "MatchPolicy",
    "Order",
    "arranged",
    "ascending",
    "copies_in_order",
    "find_policy",
    "fixed_order",
    "is_found_by_name",
    "keeps_siblings",
    "known_policies",
]

MAX_ORDERS = 256
"""Orders of static policies that are remembered for one cluster."""

Order: TypeAlias = Callable[[Candidates], "Integers"]


class CandidateOrder(Protocol):
    """A match policy as a function."""

    def __call__(self, candidates: Candidates) -> Integers:
        """Return the positions of the candidates in the order in which they are taken."""


KIND = PluginKind("match policy", "simsched.match_policies", CandidateOrder)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchPolicy:
    """An order of preference.  Policies are compared by identity, since names may repeat.

    Attributes
    ----------
    name : its name in options and files.
    says : a description in one line.
    order : candidates → the permutation (positions) in which they are taken; None: graph order.
    whole_nodes : take idle execution targets only, and each of them whole.
    static : the order depends on the graph alone, not on the state or on chance.
    random : the order depends on chance (on `Candidates.rng`), so that a run depends on its seed.
    each_copy : it orders the single copies instead of the candidates that host them.
    lowest, highest : the lowest, or the highest, free units of a pool are taken.
    """

    name: str
    says: str
    order: Order | None = None
    whole_nodes: bool = False
    static: bool = False
    random: bool = False
    each_copy: bool = False
    lowest: bool = False
    highest: bool = False

    def __call__(self, candidates: Candidates) -> Integers:
        """Return the positions of the candidates in the order in which they are taken."""
        return np.arange(len(candidates.ordinals)) if self.order is None else self.order(candidates)

    @property
    def is_steady(self) -> bool:
        """Whether equal states are known to get equal orders: it is built in and makes no random choice."""
        return self is POLICIES.get(self.name) and not self.random


def ascending(key: Integers) -> Integers:
    """Return the permutation that sorts a key of integers; equals stay in graph order."""
    if len(key) > 1 and int(key.max()) < 1 << 15 and int(key.min()) >= -(1 << 15):
        key = key.astype(np.int16)  # NumPy sorts 16-bit integers by radix, in linear time
    return np.argsort(key, kind="stable")


def _lowest_node(c: Candidates) -> Integers:
    return ascending(c.ids())


def _highest_node(c: Candidates) -> Integers:
    return ascending(-c.ids())


_TABLE = (
    MatchPolicy(name="first", says="graph order", static=True),
    MatchPolicy(
        name="low",
        says="lowest unit ids of the whole machine first",
        order=lambda c: ascending(c.unit_ids()),
        each_copy=True,
        lowest=True,
    ),
    MatchPolicy(
        name="high",
        says="highest unit ids of the whole machine first",
        order=lambda c: ascending(-c.unit_ids(highest=True)),
        each_copy=True,
        highest=True,
    ),
    MatchPolicy(
        name="lonode",
        says="lowest node ids first, and on each the lowest unit ids",
        order=_lowest_node,
        static=True,
        lowest=True,
    ),
    MatchPolicy(
        name="hinode",
        says="highest node ids first, and on each the highest unit ids",
        order=_highest_node,
        static=True,
        highest=True,
    ),
    MatchPolicy(name="firstnodex", says="graph order, whole nodes", whole_nodes=True, static=True),
    MatchPolicy(
        name="lonodex",
        says="lowest node ids first, whole nodes",
        order=_lowest_node,
        whole_nodes=True,
        static=True,
    ),
    MatchPolicy(
        name="hinodex",
        says="highest node ids first, whole nodes",
        order=_highest_node,
        whole_nodes=True,
        static=True,
    ),
    MatchPolicy(name="bestfit", says="room for the fewest copies first", order=lambda c: ascending(c.fits)),
    MatchPolicy(name="worstfit", says="room for the most copies first", order=lambda c: ascending(-c.fits)),
    MatchPolicy(
        name="locality", says="fewest and narrowest common ancestors, neighbours", order=nearest_together
    ),
    MatchPolicy(
        name="variation",
        says="lowest performance class (property perf_class) first",
        order=lambda c: ascending(c.classes()),
        static=True,
    ),
    MatchPolicy(name="random", says="at random, from the seed", order=lambda c: c.lots(), random=True),
)

POLICIES: dict[str, MatchPolicy] = {policy.name: policy for policy in _TABLE}


def find_policy(name: str | MatchPolicy | CandidateOrder) -> MatchPolicy:
    """Return the match policy of that name, or that of a function of candidates.

    Raises
    ------
    ConfigError
        for an unknown name (the message lists the known ones), or if the policy cannot be loaded.
    """
    if isinstance(name, MatchPolicy):
        return name
    if not isinstance(name, str):
        if KIND.fits(name):
            return _of_order(KIND.checked(name))
        raise wrong("policy", name, "the name of a match policy, a function of candidates, or a MatchPolicy")
    policy = POLICIES.get(name) or _plugged_in(name)
    if policy is None:
        raise KIND.unknown(name, POLICIES, "one of ")
    return policy


def is_found_by_name(policy: MatchPolicy) -> bool:
    """Whether `find_policy` finds this very policy by its name."""
    return (POLICIES.get(policy.name) or _plugged_in(policy.name)) is policy


def known_policies() -> list[str]:
    """Return the names of all policies, those of other packages last."""
    return list(dict.fromkeys([*POLICIES, *KIND.names()]))


@cache
def _plugged_in(name: str) -> MatchPolicy | None:
    """Return the policy of another package, the same for each run; None if none of this name is installed."""
    found = KIND.installed(name)
    if found is None:
        return None
    if isinstance(found, MatchPolicy):
        return replace(found, name=name)
    return _of_order(found, name)


def _of_order(order: Any, name: str | None = None) -> MatchPolicy:
    """Return the match policy that takes candidates in the order that a function returns."""
    says = str(order.__doc__ or "").partition("\n")[0]
    return MatchPolicy(name=name or name_of(order), says=says, order=order)


def arranged(policy: MatchPolicy, candidates: Candidates) -> Integers:
    """Return the positions of the candidates in the policy's order.

    Raises
    ------
    ConfigError
        if the policy did not return a permutation of the candidates.
    """
    count = len(candidates.ordinals)
    if policy.order is None:
        return np.arange(count)
    if POLICIES.get(policy.name) is policy:  # built in, hence known to return a permutation
        return policy.order(candidates)
    # copies: an order that writes into them changes nothing else
    apart = replace(candidates, ordinals=candidates.ordinals.copy(), fits=candidates.fits.copy())
    with KIND.named(policy):
        found = np.asarray(policy.order(apart))
    positions = found.shape == (count,) and found.dtype.kind in "iu"
    if not positions or not np.array_equal(np.sort(found), np.arange(count)):
        raise ConfigError(
            f"match policy {policy.name!r} did not return a permutation of its {count} candidates",
            expected=f"the positions 0 to {count - 1}, each once, as np.argsort returns them",
        )
    return found


def fixed_order(policy: MatchPolicy, kind: str, avail: Availability) -> Integers | None:
    """Return all vertices of a type in the order of a static policy; None: graph order.

    It is made once per cluster, as it does not depend on the state (`MatchPolicy.static`).
    """
    if policy.order is None:
        return None
    known: dict[tuple[MatchPolicy, str], Integers | None] = avail.index.memo.setdefault("fixed orders", {})
    key = (policy, kind)
    if key not in known:
        ordinals = np.arange(len(avail.index.vertex_types[kind]))
        order = arranged(policy, Candidates(kind, ordinals, np.ones_like(ordinals), avail, None))
        _make_room(known)
        known[key] = None if (order == ordinals).all() else order
    return known[key]


def _make_room(known: dict[tuple[MatchPolicy, str], Any]) -> None:
    """Forget all orders if there are too many: a program may make any number of policies."""
    if len(known) >= MAX_ORDERS:
        known.clear()


def keeps_siblings(policy: MatchPolicy, kind: str, avail: Availability) -> bool:
    """Whether a static policy takes the vertices of a type within each target in graph order."""
    known: dict[tuple[MatchPolicy, str], bool] = avail.index.memo.setdefault("siblings in order", {})
    key = (policy, kind)
    if key not in known:
        _make_room(known)
        order = fixed_order(policy, kind, avail)
        target = avail.index.vertex_types[kind].target
        place = np.arange(len(target)) if order is None else np.argsort(order)
        known[key] = bool((np.diff(place)[target[1:] == target[:-1]] > 0).all())
    return known[key]


def copies_in_order(policy: MatchPolicy, candidates: Candidates) -> tuple[Integers, Integers]:
    """Return the candidates and the copies of each, for a policy that orders single copies."""
    numbers = np.minimum(candidates.fits, min(candidates.most, candidates.wanted))
    starts = np.cumsum(numbers) - numbers
    entries = np.repeat(candidates.ordinals, numbers)
    copy = np.arange(len(entries)) - np.repeat(starts, numbers)
    copies = replace(candidates, ordinals=entries, fits=np.ones_like(entries), copy=copy)
    taken = entries[arranged(policy, copies)[: candidates.wanted]]
    return np.unique(taken, return_counts=True)
