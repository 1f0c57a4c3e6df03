"""Check of an allocation against its request (A5), from the jobspec and R alone.

It counts from the leaves up, on the held units alone, how many times this part of the machine can host
that part of the request.  If siblings request different types, the check is exact: the units satisfy
the request if and only if the counts suffice and no further unit is held.  Siblings that compete for
units (``[socket=1/core=2;core=3]``) are counted one by one and by their sums: a refusal is then
correct, but wrong units may pass.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import islice, product
from operator import or_
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from simsched.formats.rfc.count import Count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.simulation.audit.inventory import Inventory

#: rank → type → units held, as bit masks
UnitMasks: TypeAlias = "Mapping[int, Mapping[str, int]]"
Resources: TypeAlias = "Sequence[ResourceVertex]"

SLOT = "slot"
#: Combinations of counts that are tried for a request with ranges.
TRIED = 1 << 14
ENDLESS = 1 << 60


class RequestCheck:
    """The check of requests on one machine; `whole_targets`: jobs got whole targets whatever their request.

    `undecided` counts the requests with so many combinations of counts that not all were tried.
    """

    def __init__(self, inventory: Inventory, *, whole_targets: bool = False) -> None:
        self.inventory = inventory
        self.whole_targets = whole_targets
        self.undecided = 0

    def fault(self, resources: Resources, held: UnitMasks) -> str | None:
        """Return the fault in the held units, or None if they satisfy the request with one of its counts."""
        first: str | None = None
        tried = 0
        for tried, fixed in enumerate(_fixed_versions(resources, held), start=1):  # noqa: B007
            # fits are lower bounds: units beyond the request are found by sums and by region
            found = self._sums(fixed, held) or self.too_few(fixed, held) or self._beyond(fixed, held)
            if found is None:
                return None  # one combination of counts that fits is enough
            first = first or found
        if tried < TRIED:
            return first
        self.undecided += 1
        return None

    def too_few(self, resources: Resources, held: UnitMasks) -> str | None:
        """Return the fault if held units do not suffice for resources with their least counts, or None."""
        for vertex in resources:
            found = self.fits(vertex, held, in_slot=False)
            if found < vertex.count.min:
                return f"room for {found} {vertex.type} as requested, requested {vertex.count}"
        return None

    def misplaced(self, parts: Iterable[tuple[Resources, frozenset[int]]], held: UnitMasks) -> str | None:
        """Return the part of a heterogeneous job for which the units on its ranks do not suffice, or None."""
        for resources, ranks in parts:
            within = {rank: units for rank, units in held.items() if rank in ranks}
            fault = self.too_few(resources, within)
            if fault is not None:
                return f"on the nodes that the constraint of a part lets pass, {fault}"
        return None

    def _beyond(self, resources: Resources, held: UnitMasks) -> str | None:
        """Return the fault if the request is for whole vertices only, and units outside them are held."""
        times, leaf, in_slot = 1, resources, False
        while len(leaf) == 1 and leaf[0].with_:
            times, in_slot = times * leaf[0].count.min, in_slot or leaf[0].type == SLOT
            leaf = leaf[0].with_
        if len(leaf) != 1 or not self._is_folder(leaf[0]) or not self._alone(leaf[0], in_slot):
            return None
        parts = self._parts(leaf[0].type, held)
        whole = [
            mine for mine, region in parts if mine and self._hosts(leaf[0], mine, region, in_slot=in_slot)
        ]
        number = times * leaf[0].count.min
        if len(whole) > number:
            return f"{len(whole)} whole {leaf[0].type}, requested {number}"
        for rank, units in held.items():
            for type_, mask in units.items():
                if mask & ~reduce(or_, (part[rank].get(type_, 0) for part in whole if rank in part), 0):
                    return f"{type_} of rank {rank} is in no {leaf[0].type} that is held as a whole"
        return None

    def _is_folder(self, vertex: ResourceVertex) -> bool:
        """Whether a vertex is a target, or divides the machine or a target."""
        return vertex.type == self.inventory.type or vertex.type in self.inventory.regions

    # -- from the leaves up -------------------------------------------------------------------

    def fits(self, vertex: ResourceVertex, held: UnitMasks, *, in_slot: bool) -> int:
        """Return the number of copies of a vertex that the held units can form."""
        if vertex.type == SLOT:
            return self._copies(vertex.with_, held)
        if vertex.unit is not None:
            return ENDLESS  # an amount (memory=4GB): R lists pools, not amounts
        if vertex.type in self.inventory.regions and not (vertex.with_ or self._alone(vertex, in_slot)):
            return ENDLESS  # R does not list a shared claim of a vertex
        if self._is_folder(vertex):
            parts = self._parts(vertex.type, held)
            return sum(self._hosts(vertex, mine, region, in_slot=in_slot) for mine, region in parts)
        if vertex.type in self.inventory.unit_types:
            return sum(units.get(vertex.type, 0).bit_count() for units in held.values())
        return ENDLESS  # R_lite does not list licences and the like

    def _parts(self, type_: str, held: UnitMasks) -> list[tuple[UnitMasks, UnitMasks]]:
        """Return, for each vertex of a type with held units, these units and all its units."""
        if type_ == self.inventory.type:
            return [
                ({rank: units}, {rank: self.inventory.targets[rank].usable}) for rank, units in held.items()
            ]
        return [
            (_within(held, region), region)
            for region in self.inventory.regions[type_]
            # an empty region (a rack without nodes) touches no rank and may be held all the same
            if not (held and region) or not held.keys().isdisjoint(region)
        ]

    def _alone(self, vertex: ResourceVertex, in_slot: bool) -> bool:
        return in_slot if vertex.exclusive is None else vertex.exclusive

    def _hosts(self, vertex: ResourceVertex, mine: UnitMasks, region: UnitMasks, *, in_slot: bool) -> bool:
        """Whether this one vertex, with the units held in it, satisfies the request."""
        if vertex.exclusive or (self._alone(vertex, in_slot) and not vertex.with_):
            everything = all(
                _plain(units) == _plain(region[rank]) for rank, units in mine.items() if rank in region
            )
            if not everything or (region and not mine):
                return False
        return all(
            self.fits(child, mine, in_slot=in_slot) >= number
            for child, number in _siblings(vertex.with_, in_slot=in_slot)
        )

    def _copies(self, content: Resources, held: UnitMasks) -> int:
        """Return the copies of a slot: each within one target, unless the slot contains targets."""
        types, inventory = {vertex.type for part in content for vertex in part.walk()}, self.inventory
        if inventory.type in types or types & inventory.above:
            return self._together(content, held)
        if not types & (inventory.unit_types | inventory.regions.keys()):
            return ENDLESS  # R lists none of it
        return sum(self._together(content, {rank: units}) for rank, units in held.items())

    def _together(self, content: Resources, held: UnitMasks) -> int:
        return min(
            (self._room(child, number, held) for child, number in _siblings(content, in_slot=True)), default=0
        )

    def _room(self, child: ResourceVertex, number: int, held: UnitMasks) -> int:
        """Return the number of copies of a slot for which the held units hold one part of its content."""
        found = self.fits(child, held, in_slot=True)
        if child.exclusive is not False:
            return found // number
        if number > 1 or not child.with_:  # copies may share it
            return ENDLESS if found >= number else 0
        return sum(self._together(child.with_, mine) for mine, _ in self._parts(child.type, held))

    # -- all together -------------------------------------------------------------------------

    def _sums(self, resources: Resources, held: UnitMasks) -> str | None:
        """Return the fault if more or fewer units are held than requested in all."""
        sums = UnitSums(resources, self.inventory)
        have: dict[str, int] = {}
        for units in held.values():
            for type_, mask in units.items():
                have[type_] = have.get(type_, 0) + mask.bit_count()
        for type_ in dict.fromkeys((*sums.least, *have)):
            number = have.get(type_, 0)
            if number < sums.least.get(type_, 0):
                return f"{number} {type_}, requested {sums.least[type_]}"
            if number > sums.most.get(type_, 0) and not (sums.open or self._whole(held)):
                return f"{number} {type_}, requested {sums.most.get(type_, 0)}"
        if sums.targets is not None and len(held) > sums.targets:
            return f"{len(held)} targets, requested {sums.targets}"
        bare = next((rank for rank, units in held.items() if not any(units.values())), None)
        if bare is not None and not sums.folders:
            return f"rank {bare} is listed without units"
        return None

    def _whole(self, held: UnitMasks) -> bool:
        """Whether the run gave whole targets, and these are whole."""
        targets = self.inventory.targets
        return self.whole_targets and all(
            _plain(units) == _plain(targets[rank].usable) for rank, units in held.items()
        )


class PlacedVertex(NamedTuple):
    """A vertex of a request: how often it is requested in all, and how its place decides what it claims.

    `exclusive` is whether it is claimed exclusively, `inside` whether it is in a target, and `closed` whether
    what contains it is held exclusively.
    """

    vertex: ResourceVertex
    number: int
    exclusive: bool
    inside: bool
    closed: bool


def placed_vertices(
    resources: Resources, target: str, times: int = 1, *, in_slot: bool = False, inside: bool = False,
    closed: bool = False,
) -> Iterator[PlacedVertex]:  # fmt: skip
    """Yield the vertices of a request in preorder, with the least count of each range; `target` is a type."""
    for vertex in resources:
        exclusive = in_slot if vertex.exclusive is None else vertex.exclusive
        found = PlacedVertex(vertex, times * vertex.count.min, exclusive, inside, closed)
        yield found
        yield from placed_vertices(
            vertex.with_,
            target,
            found.number,
            in_slot=in_slot or vertex.type == SLOT,
            inside=inside or vertex.type == target,
            closed=closed or (exclusive and vertex.type != SLOT),
        )


class UnitSums:
    """The units of a request in all: `least`, because shared units may coincide, and `most`."""

    def __init__(self, resources: Resources, inventory: Inventory) -> None:
        """Add up a request, with the least count of each range."""
        self.least: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.open = False
        """Whether the request has whole vertices or amounts, whose number of units is unknown."""
        self.folders = False
        """Whether the request has targets or regions."""
        self.targets: int | None = 0
        """Most targets; None if their number is unknown."""
        self.shared: set[str] = set()
        """Types of units that are requested as shared."""
        for vertex, number, exclusive, inside, closed in placed_vertices(resources, inventory.type):
            if vertex.type == SLOT:
                continue
            if vertex.type == inventory.type or vertex.type in inventory.regions:
                self.folders = True
                self.open |= bool(vertex.exclusive) or (exclusive and not vertex.with_)
            elif vertex.unit is not None:
                self.open = True
            elif vertex.type in inventory.unit_types:
                self.most[vertex.type] = self.most.get(vertex.type, 0) + number
                if exclusive:
                    self.least[vertex.type] = self.least.get(vertex.type, 0) + number
                elif not closed:
                    self.shared.add(vertex.type)
            # each unit that is requested outside a target adds at most one target
            above = vertex.type in inventory.above
            if not inside and (
                vertex.type == inventory.type or not vertex.with_ or (above and vertex.exclusive)
            ):
                self.targets = None if self.targets is None or above else self.targets + number


def _fixed_versions(resources: Resources, held: UnitMasks) -> Iterator[tuple[ResourceVertex, ...]]:
    """Yield the request with fixed counts, for each combination that is possible, at most `TRIED`."""
    most = max(len(held), *(mask.bit_count() for units in held.values() for mask in units.values()), 1)
    total = most * max(len(held), 1)
    yield from islice(product(*(tuple(_versions(vertex, total)) for vertex in resources)), TRIED)


def _versions(vertex: ResourceVertex, most: int) -> Iterator[ResourceVertex]:
    if all(part.count.is_fixed for part in vertex.walk()):
        yield vertex
        return
    counts = [n for n in islice(vertex.count.values(most), TRIED) if n <= most] or [vertex.count.min]
    below = [tuple(_versions(child, most)) for child in vertex.with_]
    for count in counts:
        for children in islice(product(*below), TRIED):
            yield replace(vertex, count=Count.fixed(count), with_=tuple(children))


def _siblings(content: Resources, *, in_slot: bool) -> Iterator[tuple[ResourceVertex, int]]:
    """Yield the siblings with their counts.

    In a slot, plain units of one type are added up; outside they are shared and may coincide.
    """
    sums: dict[str, int] = {}
    firsts: dict[str, ResourceVertex] = {}
    for vertex in content:
        alone = vertex.with_ or vertex.exclusive is not None or vertex.unit is not None
        if alone or not in_slot:
            yield vertex, vertex.count.min
        else:
            sums[vertex.type] = sums.get(vertex.type, 0) + vertex.count.min
            firsts.setdefault(vertex.type, vertex)
    for type_, number in sums.items():
        yield firsts[type_], number


def _within(held: UnitMasks, region: UnitMasks) -> dict[int, dict[str, int]]:
    """Return the held units in a region."""
    return {
        rank: {type_: mask & region[rank].get(type_, 0) for type_, mask in units.items()}
        for rank, units in held.items()
        if rank in region
    }


def _plain(units: Mapping[str, int]) -> dict[str, int]:
    return {type_: mask for type_, mask in units.items() if mask}
