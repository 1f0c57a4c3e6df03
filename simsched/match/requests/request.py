"""A request in one cluster's own terms: what a jobspec's resources come to when they are compiled.

Every request vertex becomes a `Need` that knows what kind of thing it asks for here (units
of a pool, vertices, copies of a slot, or a type that the cluster does not have), where such
things lie, how many it takes at least, and whether it takes them exclusively (M4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from simsched.graph.index.types import ABOVE, BELOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.rfc.count import Count
    from simsched.formats.rfc.idset import Idset
    from simsched.graph.index.types import Bools
    from simsched.match.requests.dialect import Dialect

POOL, VERTEX, SLOT, ABSENT = "pool", "vertex", "slot", "absent"
Flat: TypeAlias = tuple[tuple[str, int], ...]
"""Units of each pool type that one copy draws, by type name: (("core", 2), ("gpu", 1))."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Need:
    """One request vertex, compiled.

    Attributes
    ----------
    type : the resource type, or ``"slot"``.
    kind : `POOL`, `VERTEX`, `SLOT` or `ABSENT` (no such type in this cluster).
    level : for a vertex or pool, where such things lie; for a slot, `TARGET` where each copy
        lies within one execution target (M3), else `ABOVE`.
    amount : how many are taken: the least acceptable count (M6), in the pool's own unit.
    count : the acceptable counts as asked for.
    exclusive : claimed exclusively (M4).
    whole : R names the whole subtree (M5).
    children : what must be had beneath each.
    ids, names : the vertices or units that may serve; None: any.
    path : where it stands in the request, ``node/slot/core``.
    number : its place in the request in preorder.
    eligible, every : the targets that the constraint lets pass (M7); whether all do.
    content : what one execution target must offer for one of these; None above the targets.
    flat : what `children` draw, where units a pool type say it all (see `Content`).
    """

    type: str
    kind: str
    level: str
    amount: int
    count: Count
    exclusive: bool
    whole: bool
    children: tuple[Need, ...]
    ids: Idset | None
    names: frozenset[str] | None
    path: str
    number: int
    label: str | None
    eligible: Bools
    every: bool
    content: Content | None
    flat: Flat | None

    @property
    def loose(self) -> tuple[Need, ...]:
        """What a slot asks for beside its targets: pools that lie on none."""
        return tuple(child for child in self.children if child.level == ABOVE)

    @property
    def takes_any_units(self) -> bool:
        """Whether this asks for units of a pool, no matter which, for itself alone."""
        return self.kind == POOL and self.exclusive and self.ids is None and self.names is None

    def walk(self) -> Iterator[Need]:
        """Yield this need and all beneath it, in preorder."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What is asked of one execution target for one copy of a slot, or for one target vertex.

    Attributes
    ----------
    node : whether the target itself is claimed, and so serves at most once when `exclusive`.
    needs : what must be had within the target for one copy.
    flat : the same as units a pool type, where that says it all; None: sockets and the like.
    alone : nothing else may be on the target (a policy of whole nodes).
    unit : the one pool type of which one unit is all that is asked, whose free units are then
        the answer; else None.
    eligible : the targets that the constraint, ids and names let pass.
    every : whether `eligible` holds for all targets of the cluster.
    """

    node: bool
    exclusive: bool
    needs: tuple[Need, ...]
    flat: Flat | None
    eligible: Bools
    every: bool
    alone: bool
    unit: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A compiled request; compare by identity, since equal ones are shared while they are remembered.

    Attributes
    ----------
    needs : the top-level needs.
    eligible, every : the targets that the constraint lets pass (M7); whether all do.
    demand : units of each pool type that any match takes at least (exclusively).
    nodes : execution targets that any match touches at least.
    slots : copies of slots in all, or 0 without a slot.
    ranged : numbers (preorder) of the needs whose count is a range or set, not settled yet.
    chosen : the counts settled for the others of them, in the request's own unit.
    separable : no two siblings compete for the same things, so counting is exact (M10).
    plain : the content of the one slot that is all that is asked for, where that is a fixed
        number of copies of units of aligned pools; None for anything else.
    whole : how many whole targets are all that is asked for, where a target is but its pools;
        0 for anything else.
    """

    jobspec: Jobspec
    needs: tuple[Need, ...]
    eligible: Bools
    every: bool
    demand: dict[str, int]
    nodes: int
    slots: int
    ranged: tuple[int, ...]
    separable: bool
    plain: Content | None
    whole: int
    dialect: Dialect
    chosen: dict[int, int]
    alone: bool
    variants: dict[tuple[int, int], Request] = field(default_factory=dict)

    @property
    def names_units(self) -> bool:
        """Whether it matters which units are free: some are asked for by `id`, or to be shared."""
        return any(need.kind == POOL and not need.takes_any_units for need in self.walk())

    def walk(self) -> Iterator[Need]:
        """Yield all needs in preorder."""
        for need in self.needs:
            yield from need.walk()


def flat_demand(needs: tuple[Need, ...]) -> Flat | None:
    """Return units a pool type where needs within a target ask for nothing but exclusive units."""
    if not needs:
        return ()
    if len(needs) == 1 and needs[0].level == BELOW and needs[0].takes_any_units:
        return ((needs[0].type, needs[0].amount),)
    found: dict[str, int] = {}
    for need in needs:
        if need.kind == SLOT:
            inner = flat_demand(need.children)
            if inner is None:
                return None
            parts = [(type_, units * need.amount) for type_, units in inner]
        elif need.takes_any_units and need.level == BELOW:
            parts = [(need.type, need.amount)]
        else:
            return None
        for type_, units in parts:
            found[type_] = found.get(type_, 0) + units
    return tuple(sorted(found.items()))
