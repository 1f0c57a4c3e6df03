"""What a jobspec claims, for the audit: the targets it may have, and what it holds alone."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from simsched.formats.jobspec.heterogeneous import part_constraints
from simsched.simulation.audit.request_check import SLOT, UnitMasks, UnitSums, placed_vertices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.simulation.audit.inventory import Inventory


def other_kind(type_: str, kinds: frozenset[str], held: UnitMasks, inventory: Inventory) -> int | None:
    """Return a rank on which a job holds units of another kind than its constraint names, or None."""
    known = [(kind, masks) for (of, kind), masks in inventory.kinds.items() if of == type_]
    for rank, units in held.items() if kinds else ():
        allowed = [masks[rank] for kind, masks in known if kind in kinds and rank in masks]
        named = any(rank in masks for _, masks in known)
        if named and units.get(type_, 0) & ~reduce(or_, allowed, 0):
            return rank
    return None


class ClaimRules:
    """The parts of one jobspec that the audit needs, computed once: eligible ranks and exclusive types."""

    def __init__(self, spec: Jobspec, inventory: Inventory) -> None:
        self.spec = spec
        self.allowed = inventory.matching(spec.constraint) if spec.constraint is not None else None
        self.apart = _parts_apart(spec, inventory)
        """Parts of a heterogeneous job with constraints of their own, and the ranks that these let pass."""
        if self.apart:
            self.allowed = frozenset().union(*(ranks for _, ranks in self.apart))
        # If only some parts hold targets exclusively, R lists all units of these, and the units decide.
        parts = [list(placed_vertices((vertex,), inventory.type)) for vertex in spec.resources]
        alone = [
            any(one.vertex.type == inventory.type and one.exclusive for one in placed) for placed in parts
        ]
        self.alone = all(alone)
        self.partly = any(alone) and not self.alone
        everything = [one for placed in parts for one in placed]
        exclusive = {one.vertex.type for one in everything if one.exclusive or one.closed}
        self.closed = exclusive & inventory.regions.keys()
        """Types of regions (racks, sockets …) that are held exclusively, with all their units."""
        self.vague = bool(self.closed) and not _is_chain(spec.resources, inventory)
        """Whether R does not distinguish units in those regions from units outside them."""
        if inventory.type in exclusive:
            exclusive |= inventory.unit_types  # a target is held with all its units
        self.shared = inventory.unit_types - exclusive if not (self.alone or self.closed) else frozenset()
        """Types whose units are shared with others."""
        sums = UnitSums(spec.resources, inventory)
        open_ = inventory.unit_types - self.shared if not self.alone else frozenset()
        self.mixed = {type_: sums.least.get(type_, 0) for type_ in sorted(open_ & sums.shared)}
        """Types of which some units are shared and others are not → the least number of the others."""
        self.unclear = bool(self.vague or self.mixed or self.shared & sums.most.keys())
        """Whether R does not determine how many units no other job may use."""
        self.slots = tuple(_slots(spec.resources, end) for end in (0, 1))
        """The fewest and the most slots that satisfy the request."""
        in_region = any(one.vertex.type in inventory.regions for one in everything)
        self.by_number = not (in_region or inventory.kinds or self.apart)
        """Whether placements that differ in ids alone satisfy the request alike."""

    def may_share(self, type_: str) -> bool:
        """Whether some units of a type may be held by other jobs too."""
        return type_ in self.shared or type_ in self.mixed


def _parts_apart(
    spec: Jobspec, inventory: Inventory
) -> tuple[tuple[tuple[ResourceVertex, ...], frozenset[int]], ...]:
    """Return (resources, ranks) of the parts of a heterogeneous job, one entry per set of ranks."""
    found: dict[frozenset[int], tuple[ResourceVertex, ...]] = {}
    for vertex, rule in zip(spec.resources, part_constraints(spec) or (), strict=False):
        ranks = frozenset(inventory.targets) if rule is None else frozenset(inventory.matching(rule))
        found[ranks] = (*found.get(ranks, ()), vertex)
    return tuple((resources, ranks) for ranks, resources in found.items())


def _is_chain(resources: Sequence[ResourceVertex], inventory: Inventory) -> bool:
    """Whether each vertex of a request has one child, down to the units in R."""
    while len(resources) == 1:
        resources = resources[0].with_
    return not any(vertex.with_ or vertex.type in inventory.regions for vertex in resources)


def _slots(vertices: Sequence[ResourceVertex], end: int) -> float:
    total: float = 0
    for vertex in vertices:
        count = (vertex.count.min, vertex.count.max)[end]
        number = float("inf") if count is None else count
        if vertex.type == SLOT:
            total += number
        else:
            below = _slots(vertex.with_, end)
            total += number * below if below else 0
    return total
