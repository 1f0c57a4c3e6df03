"""A compiled request: a jobspec's resources in the terms of one cluster.

Every request vertex becomes a `Need`: its kind (units of a pool, vertices, copies of a slot, or a type
that the cluster does not have), the level of such resources in the cluster, the least number that it
takes, and whether it claims them exclusively (M4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from simsched.graph.index.types import ABOVE, BELOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.arrays import Bools
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.rfc.count import Count
    from simsched.formats.rfc.idset import Idset
    from simsched.graph.index.types import VertexType
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
    level : for a vertex or pool, its place in the cluster: above, at or below the execution targets; for
        a slot, `TARGET` if each copy is within one target (M3), else `ABOVE`.
    amount : the number taken: the least acceptable count (M6), in the pool's own unit.
    count : the acceptable counts as the jobspec gives them.
    exclusive : claimed exclusively (M4).
    whole : R names the whole subtree (M5).
    children : the needs below each copy.
    ids, names : the vertices or units that may serve; None: any.
    kinds : the properties of which units of a pool need one, where the constraint names a kind of them
        (``a100@gpu``) and not all units of the targets that it selects are of that kind; empty: any units.
    path : its place in the request, ``node/slot/core``.
    number : its number in the request in preorder.
    eligible, every : the targets that the constraint lets pass (M7); whether all do.
    content : the demand of one copy on one execution target; None above the targets.
    flat : the units that `children` draw by pool type, if they draw nothing else (see `flat_demand`).
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
    kinds: frozenset[str]
    path: str
    number: int
    label: str | None
    eligible: Bools
    every: bool
    content: Content | None
    flat: Flat | None

    @property
    def loose(self) -> tuple[Need, ...]:
        """The children of a slot outside the targets: pools such as licences."""
        return tuple(child for child in self.children if child.level == ABOVE)

    @property
    def takes_any_units(self) -> bool:
        """Whether this claims units of a pool exclusively, no matter which."""
        return self.kind == POOL and self.exclusive and not self.is_particular

    @property
    def is_particular(self) -> bool:
        """Whether only some vertices or units may serve, by id, name or kind."""
        return self.ids is not None or self.names is not None or bool(self.kinds)

    def walk(self) -> Iterator[Need]:
        """Yield this need and all below it, in preorder."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The demand on one execution target of one copy of a slot, or of one target vertex.

    Attributes
    ----------
    node : whether the target itself is claimed, and so serves at most once when `exclusive`.
    needs : the needs within the target for one copy.
    flat : the same as units by pool type, if that is all; None if there are sockets and the like.
    alone : nothing else may be on the target (a policy of whole nodes).
    unit : the pool type, if one unit of an aligned pool is all that a copy draws: its free units are then
        the counts; else None.
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
    """A compiled request; compared by identity, since equal ones are shared while they are remembered.

    Attributes
    ----------
    needs : the top-level needs.
    eligible, every : the targets that the constraint lets pass (M7); whether all do.
    demand : units of each pool type that any match takes at least (exclusively).
    nodes : execution targets that any match touches at least.
    slots : copies of slots in all, or 0 without a slot.
    ranged : numbers (preorder) of the needs whose count is a range or set and not fixed yet.
    chosen : the counts fixed for the others of them, in the request's own unit.
    separable : no two siblings compete for the same resources, so counting is exact (M10).
    plain : the content, if the request is one slot with a fixed number of copies that draw units of
        aligned pools only; else None.
    simple : a need and the copies of it, if the request is for a number of copies of units on targets, or for
        a number of whole targets, and nothing else; else None.
    whole : the number of targets, if the request is for whole targets only, on a cluster where all
        targets have the same aligned pools and no vertices; else 0.
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
    simple: tuple[Need, int] | None
    whole: int
    dialect: Dialect
    chosen: dict[int, int]
    alone: bool
    variants: dict[tuple[int, int], Request] = field(default_factory=dict)

    @property
    def names_units(self) -> bool:
        """Whether it matters which units are free: some are requested by `id`, or shared."""
        return any(need.kind == POOL and not need.takes_any_units for need in self.walk())

    def walk(self) -> Iterator[Need]:
        """Yield all needs in preorder."""
        for need in self.needs:
            yield from need.walk()


def identified(vertices: VertexType, ids: Idset | None, names: frozenset[str] | None) -> Bools:
    """Return which vertices of a type may serve by their ids and names (None: by any)."""
    pairs = zip(vertices.ids.tolist(), vertices.names, strict=True)
    row = [(ids is None or id_ in ids) and (names is None or name in names) for id_, name in pairs]
    return np.array(row, dtype=np.bool_)


def flat_demand(needs: tuple[Need, ...]) -> Flat | None:
    """Return the units by pool type that needs within a target draw; None if they need anything else.

    Slots within a target multiply their content and disappear.
    """
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
