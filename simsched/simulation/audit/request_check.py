"""Whether what a job got satisfies what it asked for, judged from the jobspec and R alone.

R names what was counted, so for the usual requests (a slot within targets; targets, with or
without a slot in them) a few comparisons give the answer.  Everything else is counted from
the leaves up (`within`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from simsched.simulation.audit.region_check import Held, judge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.formats.rfc.count import Count
    from simsched.simulation.audit.inventory import Inventory

#: rank → type → units
Holding: TypeAlias = "Mapping[int, Mapping[str, int]]"

SLOT = "slot"


def shortfall(
    resources: Sequence[ResourceVertex], held: Held, inventory: Inventory, *, whole_targets: bool = False
) -> str | None:
    """Say what is wrong with a holding (bit masks), or None if it satisfies the request.

    `whole_targets` says that the run gave whole targets whatever was asked for.
    """
    parts = {vertex.type for top in resources for vertex in top.walk()}
    if len(resources) == 1 and parts.isdisjoint(inventory.regions):
        counts = {r: {t: mask.bit_count() for t, mask in units.items()} for r, units in held.items()}
        fault = _one(resources[0], counts, inventory, whole_targets=whole_targets)
        if fault is not NotImplemented:
            return None if fault is None else str(fault)
    return judge(resources, held, inventory, whole_targets=whole_targets)


def _one(top: ResourceVertex, held: Holding, inventory: Inventory, *, whole_targets: bool) -> object:
    """Judge a request of one top-level vertex exactly, or return NotImplemented."""
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
    node: ResourceVertex, copies: Sequence[int], held: Holding, inventory: Inventory, *, whole: bool
) -> object:
    """`copies` × as many targets as the vertex says, each with what lies beneath it."""
    whole = whole or bool(node.exclusive)
    number = len(held)
    if not any(number % n == 0 and number // n in node.count for n in copies):
        return f"{number} targets, asked for {node.count} in each of {list(copies)[-1:]} copies"
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


def _whole(held: Holding, inventory: Inventory) -> str | None:
    for rank, units in held.items():
        everything = {type_: mask.bit_count() for type_, mask in inventory.targets[rank].usable.items()}
        if {t: n for t, n in units.items() if n} != everything:
            return f"rank {rank} is asked for whole: {dict(units)} of {everything}"
    return None


def _slots_within(
    count: Count, content: Sequence[ResourceVertex], held: Holding, inventory: Inventory, *, whole: bool
) -> object:
    """Copies of a slot, each within one target: every rank holds a whole number of copies.

    Where targets are given `whole`, one may be held whole instead.
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
            exact = False
        elif not here or dict(units) != {type_: number * here for type_, number in each.items()}:
            return f"rank {rank} holds {dict(units)}, no whole number of copies of {each}"
    if (copies in count) if exact else (copies >= count.min):
        return None
    return f"{copies} copies of {each}, asked for {count}"


def _fixed(content: Sequence[ResourceVertex], inventory: Inventory) -> dict[str, int] | None:
    """Return units of each type in one copy, or None where counts are ranges or vertices have no units."""
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
