"""Candidates: the vertices among which a match policy chooses, and their facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError
from simsched.match.policies.unit_ids import free_unit_ids, performance_classes

if TYPE_CHECKING:
    from simsched.graph.index.types import Ints
    from simsched.match.requests.request import Content
    from simsched.match.state.availability import Availability


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The vertices that a policy orders.

    Attributes
    ----------
    kind : the vertex type, usually the target type.
    ordinals : the vertices that can host at least one copy, ascending (graph order).
    fits : how many copies each can host.
    avail : the state that is matched against.
    rng : the generator of the run, for policies that choose at random; None if there is no generator.
    wanted : copies that will be taken, from the first candidates on.
    most : copies that are taken from one candidate at most.
    content : the demand of one copy on an execution target; None above and below the targets.
    copy : with `MatchPolicy.each_copy`, the number of each entry among the copies of its candidate.
    """

    kind: str
    ordinals: Ints
    fits: Ints
    avail: Availability
    rng: np.random.Generator | None
    wanted: int = 1
    most: int = 1
    content: Content | None = None
    copy: Ints | None = None

    def ids(self) -> Ints:
        """Return the logical ids (a vertex without one counts as its ordinal)."""
        index = self.avail.index
        known: Ints | None = index.memo.get(f"ids of {self.kind}")
        if known is None:
            ids = index.vertex_types[self.kind].ids
            known = index.memo[f"ids of {self.kind}"] = np.where(ids >= 0, ids, np.arange(len(ids)))
        return known[self.ordinals]

    def free(self, type_: str) -> Ints:
        """Return the free units of a pool type on or below each candidate: ``free("core")``.

        They are zeros if the cluster has no pools of that type.  A policy that uses them is not static.
        """
        free = self.avail.free.get(type_)
        if free is None:
            return np.zeros(len(self.ordinals), dtype=np.int64)
        below = self.avail.index.beneath(self.kind, type_, self.ordinals)
        return below.sum(free[below.ordinals])

    def unit_ids(self, *, highest: bool = False) -> Ints:
        """Return the id of the first unit that each copy would get; a whole vertex's own id."""
        content = self.content
        if content is None or content.node or content.alone:
            return self.ids()
        return free_unit_ids(content, self.ordinals, self.copy, self.avail, highest=highest)

    def classes(self) -> Ints:
        """Return the performance classes (the property ``perf_class``); the last one without the property."""
        return performance_classes(self.kind, self.avail.index)[self.ordinals]

    def lots(self) -> Ints:
        """Return a random permutation of the positions."""
        if self.rng is None:
            raise ConfigError("the match policy 'random' needs a random generator", expected="a seed")
        return self.rng.permutation(len(self.ordinals))
