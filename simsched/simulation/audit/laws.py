"""`Law`: what one jobspec says that the audit needs, worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.simulation.audit.request_check import SLOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.simulation.audit.inventory import Inventory


class Law:
    """What one jobspec says that the audit needs, worked out once."""

    __slots__ = ("allowed", "alone", "closed", "shared", "spec", "vague")

    def __init__(self, spec: Jobspec, inventory: Inventory) -> None:
        self.spec = spec
        self.allowed = inventory.matching(spec.constraint) if spec.constraint is not None else None
        self.alone = any(_is_alone(vertex, inventory.type, in_slot=False) for vertex in spec.resources)
        exclusive = {
            kind
            for vertex in spec.resources
            for kind in _exclusive_types(vertex, in_slot=False, inside=False)
        }
        self.closed = exclusive & inventory.regions.keys()
        """Types of racks, sockets and the like that are held exclusively, with all that is in them."""
        self.vague = bool(self.closed) and not _is_chain(spec.resources)
        """Whether R does not say what lies in those and what beside them."""
        self.shared = inventory.unit_types - exclusive if not (self.alone or self.closed) else frozenset()


def _is_alone(vertex: ResourceVertex, target: str, *, in_slot: bool) -> bool:
    """Whether the request holds targets exclusively."""
    exclusive = in_slot if vertex.exclusive is None else vertex.exclusive
    if vertex.type == target and exclusive:
        return True
    inner = in_slot or vertex.type == SLOT
    return any(_is_alone(child, target, in_slot=inner) for child in vertex.with_)


def _is_chain(resources: Sequence[ResourceVertex]) -> bool:
    """Whether a request is one thing in another, down to what R names, with nothing beside."""
    while len(resources) == 1:
        resources = resources[0].with_
    return not any(vertex.with_ for vertex in resources)


def _exclusive_types(vertex: ResourceVertex, *, in_slot: bool, inside: bool) -> Iterator[str]:
    """Yield the types of which the request takes units away from others."""
    exclusive = inside or (in_slot if vertex.exclusive is None else vertex.exclusive)
    if exclusive:
        yield vertex.type
    inner = in_slot or vertex.type == SLOT
    deep = inside or (bool(exclusive) and vertex.type != SLOT)
    for child in vertex.with_:
        yield from _exclusive_types(child, in_slot=inner, inside=deep)


def without(
    units: Mapping[int, Mapping[str, int]], shard: Mapping[int, Mapping[str, int]]
) -> dict[int, dict[str, int]]:
    """Return what is left of a holding once a shard is given back."""
    left: dict[int, dict[str, int]] = {}
    for rank, masks in units.items():
        gone = shard.get(rank)
        if gone is None:
            left[rank] = dict(masks)
            continue
        rest = {type_: mask & ~gone.get(type_, 0) for type_, mask in masks.items()}
        rest = {type_: mask for type_, mask in rest.items() if mask}
        if rest:
            left[rank] = rest
    return left
