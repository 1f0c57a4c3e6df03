"""Does what a job got satisfy what it asked for?  Judged from the jobspec and R alone.

R names what was counted, so for the usual requests (a slot within targets; targets, with or
without slots in them) the answer is exact.  For requests with several top-level vertices or
vertices that R cannot name (racks, sockets) it checks the least amounts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.count import Count
    from simsched.formats.vertex import ResourceVertex
    from simsched.simulate.inventory import Inventory

#: rank → type → units
Holding: TypeAlias = "Mapping[int, Mapping[str, int]]"

SLOT = "slot"


def shortfall(resources: Sequence[ResourceVertex], held: Holding, inventory: Inventory) -> str | None:
    """Say what is wrong with a holding, or None if it satisfies the request."""
    if len(resources) == 1:
        fault = _one(resources[0], held, inventory)
        if fault is not NotImplemented:
            return None if fault is None else str(fault)
    return _least(resources, held, inventory)


def _one(top: ResourceVertex, held: Holding, inventory: Inventory) -> object:
    """Judge a request of one top-level vertex exactly, or return NotImplemented."""
    if top.type == inventory.type:
        return _on_targets(top, (1,), held, inventory)
    if top.type != SLOT:
        return NotImplemented
    if len(top.with_) == 1 and top.with_[0].type == inventory.type:
        copies = list(top.count.values(len(held)))
        return _on_targets(top.with_[0], copies, held, inventory)
    if any(vertex.type == inventory.type for child in top.with_ for vertex in child.walk()):
        return NotImplemented
    return _slots_within(top.count, top.with_, held, inventory)


def _on_targets(node: ResourceVertex, copies: Sequence[int], held: Holding, inventory: Inventory) -> object:
    """`copies` × as many targets as the vertex says, each with what lies beneath it."""
    number = len(held)
    if not any(number % n == 0 and number // n in node.count for n in copies):
        return f"{number} targets, asked for {node.count} in each of {list(copies)[-1:]} copies"
    if not node.with_:
        return _whole(held, inventory)
    if len(node.with_) == 1 and node.with_[0].type == SLOT:
        slot = node.with_[0]
        for rank, units in held.items():
            fault = _slots_within(slot.count, slot.with_, {rank: units}, inventory)
            if fault is NotImplemented or fault is not None:
                return fault
        return None
    for rank, units in held.items():
        fault = _least(node.with_, {rank: units}, inventory)
        if fault is not None:
            return fault
    return None


def _whole(held: Holding, inventory: Inventory) -> str | None:
    for rank, units in held.items():
        everything = {type_: mask.bit_count() for type_, mask in inventory.targets[rank].units.items()}
        if dict(units) != everything:
            return f"rank {rank} is asked for whole: {dict(units)} of {everything}"
    return None


def _slots_within(
    count: Count, content: Sequence[ResourceVertex], held: Holding, inventory: Inventory
) -> object:
    """Copies of a slot, each within one target: every rank holds a whole number of copies."""
    each = _fixed(content, inventory)
    if each is None:
        return NotImplemented
    copies = 0
    exact = True
    for rank, units in held.items():
        here = min(units.get(type_, 0) // number for type_, number in each.items())
        copies += here
        if dict(units) != {type_: number * here for type_, number in each.items()}:
            exact = False
            if _whole({rank: units}, inventory) is not None:
                return f"rank {rank} holds {dict(units)}, no whole number of copies of {each}"
    if (copies in count) if exact else (copies >= count.min):
        return None
    return f"{copies} copies of {each}, asked for {count}"


def _fixed(content: Sequence[ResourceVertex], inventory: Inventory) -> dict[str, int] | None:
    """Return units of each type in one copy, or None where counts are ranges or vertices have no units."""
    each: dict[str, int] = {}
    for vertex in content:
        if not vertex.count.is_fixed or vertex.unit is not None:
            return None
        if vertex.type in inventory.unit_types and not vertex.with_:
            each[vertex.type] = each.get(vertex.type, 0) + vertex.count.min
            continue
        inner = _fixed(vertex.with_, inventory)
        if not inner:
            return None
        for type_, number in inner.items():
            each[type_] = each.get(type_, 0) + number * vertex.count.min
    return each or None


def _least(resources: Sequence[ResourceVertex], held: Holding, inventory: Inventory) -> str | None:
    """Check that at least the least amounts are there, in all."""
    need: dict[str, int] = {}
    for vertex in resources:
        _add(vertex, 1, need, inventory)
    for type_, number in need.items():
        have = len(held) if type_ == inventory.type else sum(units.get(type_, 0) for units in held.values())
        if have < number:
            return f"{have} {type_}, asked for at least {number}"
    return None


def _add(vertex: ResourceVertex, times: int, need: dict[str, int], inventory: Inventory) -> None:
    number = times * vertex.count.min
    if vertex.type == inventory.type or (vertex.type in inventory.unit_types and vertex.unit is None):
        need[vertex.type] = need.get(vertex.type, 0) + number
    for child in vertex.with_:
        _add(child, number, need, inventory)
