"""Check of an allocation against its request, from the jobspec and R alone.

For usual requests (a slot within targets; targets with or without a slot) a few comparisons of
counts suffice.  `region_check` counts all others from the leaves up.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, TypeAlias

from simsched.formats.jobspec.heterogeneous import part_constraints
from simsched.simulation.audit.region_check import UnitMasks, UnitSums, check_regions, too_few

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.formats.rfc.count import Count
    from simsched.simulation.audit.inventory import Inventory

#: rank → type → number of units
UnitCounts: TypeAlias = "Mapping[int, Mapping[str, int]]"

SLOT = "slot"


def shortfall(
    resources: Sequence[ResourceVertex], held: UnitMasks, inventory: Inventory, *, whole_targets: bool = False
) -> str | None:
    """Return the fault in the units of a job (bit masks), or None if they satisfy the request.

    `whole_targets` states that the run gave whole targets whatever the request.
    """
    parts = {vertex.type for top in resources for vertex in top.walk()}
    if len(resources) == 1 and parts.isdisjoint(inventory.regions):
        counts = {r: {t: mask.bit_count() for t, mask in units.items()} for r, units in held.items()}
        fault = _one(resources[0], counts, inventory, whole_targets=whole_targets)
        if fault is not NotImplemented:
            return None if fault is None else str(fault)
    return check_regions(resources, held, inventory, whole_targets=whole_targets)


def _one(top: ResourceVertex, held: UnitCounts, inventory: Inventory, *, whole_targets: bool) -> object:
    """Check a request of one top-level vertex exactly, or return NotImplemented."""
    whole = whole_targets
    if top.type == inventory.type:
        alone = bool(top.exclusive) or bool(top.with_)
        return _on_targets(top, (1,), held, inventory, whole=whole) if alone else NotImplemented
    if top.type != SLOT:
        return NotImplemented
    if len(top.with_) == 1 and top.with_[0].type == inventory.type and top.with_[0].exclusive is not False:
        copies = list(top.count.values(len(held)))
        return _on_targets(top.with_[0], copies, held, inventory, whole=whole)
    if any(vertex.type == inventory.type for child in top.with_ for vertex in child.walk()):
        return NotImplemented
    return _slots_within(top.count, top.with_, held, inventory, whole=whole)


def _on_targets(
    node: ResourceVertex, copies: Sequence[int], held: UnitCounts, inventory: Inventory, *, whole: bool
) -> object:
    """Check that the targets are `node.count` times one of `copies`, each with its content."""
    whole = whole or bool(node.exclusive)
    number = len(held)
    if not any(number % n == 0 and number // n in node.count for n in copies):
        return f"{number} targets, requested {node.count} in each of {max(copies, default=0)} copies"
    if node.exclusive or not node.with_:
        missing = _whole(held, inventory)
        if missing is not None or not node.with_:
            return missing
    if len(node.with_) == 1 and node.with_[0].type == SLOT:
        slot = node.with_[0]
        for rank, units in held.items():
            fault = _slots_within(slot.count, slot.with_, {rank: units}, inventory, whole=whole)
            if fault is NotImplemented or fault is not None:
                return fault
        return None
    return NotImplemented


def _whole(held: UnitCounts, inventory: Inventory) -> str | None:
    for rank, units in held.items():
        everything = {type_: mask.bit_count() for type_, mask in inventory.targets[rank].usable.items()}
        if {t: n for t, n in units.items() if n} != everything:
            return f"rank {rank} is requested whole, but the job holds {dict(units)} of {everything}"
    return None


def _slots_within(
    count: Count, content: Sequence[ResourceVertex], held: UnitCounts, inventory: Inventory, *, whole: bool
) -> object:
    """Check copies of a slot, each within one target: every rank holds a whole number of copies.

    If the run gave `whole` targets, a rank may be held as a whole instead.
    """
    each = _fixed(content, inventory)
    if each is None:
        return NotImplemented
    copies = 0
    exact = True
    for rank, units in held.items():
        here = min(units.get(type_, 0) // number for type_, number in each.items())
        copies += here
        if whole and _whole({rank: units}, inventory) is None:
            exact = False  # a whole target may hold more copies than were requested
        elif not here or dict(units) != {type_: number * here for type_, number in each.items()}:
            return f"rank {rank} holds {dict(units)}, not a whole number of copies of {each}"
    if (copies in count) if exact else (copies >= count.min):
        return None
    return f"{copies} copies of {each}, requested {count}"


def _fixed(content: Sequence[ResourceVertex], inventory: Inventory) -> dict[str, int] | None:
    """Return the units of each type in one copy; None if counts are ranges or a vertex has no units."""
    each: dict[str, int] = {}
    for vertex in content:
        if not vertex.count.is_fixed or vertex.unit is not None or vertex.exclusive is False:
            return None  # several copies may share it
        if vertex.type in inventory.unit_types and not vertex.with_:
            each[vertex.type] = each.get(vertex.type, 0) + vertex.count.min
            continue
        inner = _fixed(vertex.with_, inventory)
        if not inner:
            return None
        for type_, number in inner.items():
            each[type_] = each.get(type_, 0) + number * vertex.count.min
    return each or None


def other_kind(type_: str, kinds: frozenset[str], held: UnitMasks, inventory: Inventory) -> int | None:
    """Return a rank on which a job holds units of another kind than its constraint names, or None."""
    known = [(kind, masks) for (of, kind), masks in inventory.kinds.items() if of == type_]
    for rank, units in held.items() if kinds else ():
        allowed = [masks[rank] for kind, masks in known if kind in kinds and rank in masks]
        named = any(rank in masks for _, masks in known)
        if named and units.get(type_, 0) & ~reduce(or_, allowed, 0):
            return rank
    return None


# --- exclusive claims ----------------------------------------------------------------


class ClaimRules:
    """The parts of one jobspec that the audit needs, computed once: eligible ranks and exclusive types."""

    __slots__ = ("allowed", "alone", "apart", "closed", "mixed", "partly", "shared", "spec", "vague")

    def __init__(self, spec: Jobspec, inventory: Inventory) -> None:
        self.spec = spec
        self.allowed = inventory.matching(spec.constraint) if spec.constraint is not None else None
        self.apart = _parts_apart(spec, inventory)
        """Parts of a heterogeneous job with constraints of their own, and the ranks that these let pass."""
        if self.apart:
            self.allowed = frozenset().union(*(ranks for _, ranks in self.apart))
        # If only some parts hold targets exclusively, R lists all units of these, and the units decide.
        alone = [_is_alone(vertex, inventory.type, in_slot=False) for vertex in spec.resources]
        self.alone = all(alone)
        self.partly = any(alone) and not self.alone
        exclusive = {
            kind
            for vertex in spec.resources
            for kind in _exclusive_types(vertex, in_slot=False, inside=False)
        }
        self.closed = exclusive & inventory.regions.keys()
        """Types of regions (racks, sockets …) that are held exclusively, with all their units."""
        self.vague = bool(self.closed) and not _is_chain(spec.resources)
        """Whether R does not distinguish units in those regions from units outside them."""
        if inventory.type in exclusive:
            exclusive |= inventory.unit_types  # a target is held with all its units
        self.shared = inventory.unit_types - exclusive if not (self.alone or self.closed) else frozenset()
        """Types whose units are shared with others."""
        sums = UnitSums.of(spec.resources, inventory)
        open_ = inventory.unit_types - self.shared if not self.alone else frozenset()
        self.mixed = {type_: sums.least.get(type_, 0) for type_ in sorted(open_ & sums.shared)}
        """Types of which some units are shared and others are not → the least number of the others."""

    def may_share(self, type_: str) -> bool:
        """Whether some units of a type may be held by other jobs too."""
        return type_ in self.shared or type_ in self.mixed

    def may_count(self, counts: tuple[int, ...], named: tuple[int, ...], whole: tuple[int, ...]) -> bool:
        """Whether numbers of targets, cores and gpus are possible for what R names on these `whole` targets.

        R does not tell which units are shared, nor which targets some part of the request holds alone.
        """
        return counts[0] == named[0] and all(
            self.mixed.get(type_, least) <= number <= (most if self.partly else least)
            for type_, number, least, most in zip(
                ("core", "gpu"), counts[1:], named[1:], whole[1:], strict=True
            )
        )


def _parts_apart(
    spec: Jobspec, inventory: Inventory
) -> tuple[tuple[tuple[ResourceVertex, ...], frozenset[int]], ...]:
    """Return (resources, ranks) of the parts of a heterogeneous job, one entry per set of ranks."""
    found: dict[frozenset[int], tuple[ResourceVertex, ...]] = {}
    for vertex, rule in zip(spec.resources, part_constraints(spec) or (), strict=False):
        ranks = frozenset(inventory.targets) if rule is None else frozenset(inventory.matching(rule))
        found[ranks] = (*found.get(ranks, ()), vertex)
    return tuple((resources, ranks) for ranks, resources in found.items())


def misplaced(rules: ClaimRules, held: UnitMasks, inventory: Inventory) -> str | None:
    """Return the part of a heterogeneous job for which the units on its ranks do not suffice, or None."""
    for resources, ranks in rules.apart:
        within = {rank: units for rank, units in held.items() if rank in ranks}
        fault = too_few(resources, within, inventory)
        if fault is not None:
            return f"on the nodes that the constraint of a part lets pass, {fault}"
    return None


def _is_alone(vertex: ResourceVertex, target: str, *, in_slot: bool) -> bool:
    """Whether the request holds targets exclusively."""
    exclusive = in_slot if vertex.exclusive is None else vertex.exclusive
    if vertex.type == target and exclusive:
        return True
    inner = in_slot or vertex.type == SLOT
    return any(_is_alone(child, target, in_slot=inner) for child in vertex.with_)


def _is_chain(resources: Sequence[ResourceVertex]) -> bool:
    """Whether each vertex of a request has one child, down to the units in R."""
    while len(resources) == 1:
        resources = resources[0].with_
    return not any(vertex.with_ for vertex in resources)


def _exclusive_types(vertex: ResourceVertex, *, in_slot: bool, inside: bool) -> Iterator[str]:
    """Yield the types whose units the request holds exclusively."""
    exclusive = inside or (in_slot if vertex.exclusive is None else vertex.exclusive)
    if exclusive:
        yield vertex.type
    inner = in_slot or vertex.type == SLOT
    deep = inside or (bool(exclusive) and vertex.type != SLOT)
    for child in vertex.with_:
        yield from _exclusive_types(child, in_slot=inner, inside=deep)
