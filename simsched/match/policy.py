"""Match policies: the order in which candidates are taken (M8).  One line each over one mechanism.

A policy sees the candidates of one choice, in graph order, with how many copies each can
host, and returns a permutation of them; what fits is settled before it is asked, so no
policy can make a request infeasible.  Others plug in through the entry-point group
``simsched.match_policies`` (an object of type `MatchPolicy` under its name).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from simsched.graph.index import Ints
    from simsched.match.allocate import Availability


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What a policy chooses from.

    Attributes
    ----------
    kind : the vertex type, the target type mostly.
    ordinals : the vertices that can host at least one copy, ascending (graph order).
    fits : how many copies each can host.
    avail : the state that is matched against.
    rng : the generator of the run, for policies that draw lots; None: not given.
    """

    kind: str
    ordinals: Ints
    fits: Ints
    avail: Availability
    rng: np.random.Generator | None

    def ids(self) -> Ints:
        """Return the logical ids (a vertex without one counts as its ordinal)."""
        vertices = self.avail.index.vertex_types[self.kind]
        ids = vertices.ids[self.ordinals]
        found: Ints = np.where(ids >= 0, ids, self.ordinals)
        return found


Order: TypeAlias = Callable[[Candidates], "Ints"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchPolicy:
    """An order of preference.

    Attributes
    ----------
    name : how it is asked for.
    order : candidates → the permutation (positions) in which they are taken; None: graph order.
    whole_nodes : take idle execution targets only, and each of them whole.
    says : one line for people.
    """

    name: str
    says: str
    order: Order | None = None
    whole_nodes: bool = False


def _ascending(key: Ints) -> Ints:
    return np.argsort(key, kind="stable")


POLICIES: dict[str, MatchPolicy] = {
    policy.name: policy
    for policy in (
        MatchPolicy(name="first", says="graph order"),
        MatchPolicy(name="firstnodex", says="graph order, whole nodes", whole_nodes=True),
        MatchPolicy(name="lonode", says="lowest node ids first", order=lambda c: _ascending(c.ids())),
        MatchPolicy(name="hinode", says="highest node ids first", order=lambda c: _ascending(-c.ids())),
        MatchPolicy(
            name="lonodex",
            says="lowest node ids first, whole nodes",
            order=lambda c: _ascending(c.ids()),
            whole_nodes=True,
        ),
        MatchPolicy(
            name="hinodex",
            says="highest node ids first, whole nodes",
            order=lambda c: _ascending(-c.ids()),
            whole_nodes=True,
        ),
        MatchPolicy(name="bestfit", says="the fullest that fits first", order=lambda c: _ascending(c.fits)),
        MatchPolicy(name="worstfit", says="the emptiest first", order=lambda c: _ascending(-c.fits)),
    )
}


@cache
def _plugged_in() -> dict[str, MatchPolicy]:
    from importlib.metadata import entry_points

    return {point.name: point.load() for point in entry_points(group="simsched.match_policies")}


def find_policy(name: str | MatchPolicy) -> MatchPolicy:
    """Return the match policy of that name.

    Raises
    ------
    ConfigError
        if there is none; the message lists those that exist.
    """
    if isinstance(name, MatchPolicy):
        return name
    policy = POLICIES.get(name) or _plugged_in().get(name)
    if policy is None:
        known = ", ".join([*POLICIES, *_plugged_in()])
        raise ConfigError(f"unknown match policy {name!r}", expected=f"one of {known}")
    return policy


def arranged(policy: MatchPolicy, candidates: Candidates) -> Ints:
    """Return the positions of the candidates in the policy's order.

    Raises
    ------
    ConfigError
        if the policy did not return a permutation of what it was given.
    """
    count = len(candidates.ordinals)
    if policy.order is None:
        return np.arange(count)
    found = np.asarray(policy.order(candidates))
    if len(found) != count or (np.bincount(found, minlength=count) != 1).any():
        raise ConfigError(f"match policy {policy.name!r} did not return a permutation of its candidates")
    return found
