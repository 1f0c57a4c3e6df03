"""Which job holds which units (A3) and licences (L2).

A unit that a job requests outside a slot is shared: others may share it too, and none may hold it
alone (M4).  R does not tell shared units from others, so the request decides.  If a request has both for
one type, such as ``[slot/core=2;node/core=3]``, any of the named units may be shared, but as many as the
request holds alone have to be free of others.

The licences that an R has are those of its request, and there are enough of them.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.rfc.idset import Idset
from simsched.simulation.licences.licence_pools import read_licences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.simulation.audit.claim_rules import ClaimRules
    from simsched.simulation.audit.inventory import Inventory
    from simsched.workload.job import Job

    Units = Mapping[int, Mapping[str, int]]


def _requested(job: Job) -> dict[str, int]:
    """Return the licences that a job requests, by its attribute and as vertices of the type ``License``."""
    counts = read_licences(job.jobspec.system.get("licenses"), "licenses") or {}
    for vertex in job.jobspec.resources:
        if vertex.type == "License" and vertex.id is not None:
            counts[vertex.id] = counts.get(vertex.id, 0) + vertex.count.min
    return {name: number for name, number in counts.items() if number}


class LicenceUse:
    """The licences that are in use after each line of the allocations.

    Attributes
    ----------
    free : the licences that are left.
    taken : those of the last allocation.
    checked : the allocations that were compared with their requests.
    """

    def __init__(self, licences: Mapping[str, int] | None) -> None:
        self._counts = dict(licences or {})
        self.free = dict(self._counts)
        self.taken: dict[str, int] = {}
        self.checked = 0
        self._ids: dict[str, Idset] = {}  # licence → the ids in use, where R names ids

    def _numbers(self, named: Mapping[str, Any]) -> dict[str, int]:
        """Return how many units an R lists of each licence: their number, or their ids."""
        return {
            name: len(Idset.parse(units)) if isinstance(units, str) else int(units)
            for name, units in named.items()
            if name in self._counts
        }

    def take(self, job: Job, named: Mapping[str, Any]) -> Iterator[str]:
        """Take the licences that an R names, and yield its faults."""
        if not self._counts:
            return
        self.checked += 1
        self.taken = self._numbers(named)
        for name in self.taken:
            if isinstance(named[name], str):
                ids, used = Idset.parse(named[name]), self._ids.get(name, Idset())
                if ids & used:
                    yield f"has the licence {name!r} {ids & used}, which another job has"
                self._ids[name] = used | ids
        try:
            expected = _requested(job)
        except ConfigError as error:
            yield f"has an attribute that cannot be read: {error}"
            return
        if self.taken != expected:
            yield f"has the licences {self.taken or 'none'} instead of {expected or 'none'}"
        for name, units in self.taken.items():
            self.free[name] -= units
            if self.free[name] < 0:
                there = self._counts[name]
                yield f"{there - self.free[name]} of the licence {name!r} are in use, there are {there}"

    def give_back(self, named: Mapping[str, Any]) -> None:
        """Release the licences that an R names."""
        for name, units in self._numbers(named).items() if self._counts else ():
            self.free[name] += units
            if isinstance(named[name], str):
                self._ids[name] = self._ids.get(name, Idset()) - Idset.parse(named[name])


class UnitHolders:
    """The targets and units that jobs hold at the present line."""

    def __init__(self, inventory: Inventory) -> None:
        self._alone: dict[str, dict[int, int]] = defaultdict(dict)
        """Type → rank → the units that one job holds."""
        self._shared: dict[tuple[int, str], dict[str, int]] = {}
        self._mixed: dict[str, ClaimRules] = {}
        """The jobs that hold units of one type both alone and shared."""
        self._on: dict[int, set[str]] = {}
        self._whole: dict[int, str] = {}
        """Rank → the jobs on it, and the one that requested it exclusively."""
        self._sizes = {path: (rank, type_, units.bit_count()) for path, (rank, type_, units) in
                       inventory.pools.items()}  # fmt: skip
        self._taken: dict[str, int] = {}
        """The units in use of pools of which R states amounts, by path."""

    def take(
        self, name: str, rules: ClaimRules, units: Units, amounts: Mapping[str, int]
    ) -> Iterator[tuple[str, str]]:
        """Take the units of an allocation, and those of which R states `amounts` by path.

        Yield (job, fault) for targets and units that are held twice, and amounts that are not left.
        """
        on, alone, shared, whole = self._on, self._alone, self._shared, rules.alone
        plain = not (shared or rules.shared or rules.mixed)
        for rank, masks in units.items():
            here = on.get(rank)
            if here is None:
                here = on[rank] = set()
            elif here and (whole or rank in self._whole):
                if rank in self._whole:
                    yield name, f"rank {rank} is held exclusively by job {self._whole[rank]}"
                else:
                    yield name, f"rank {rank} is requested exclusively, and is held by {sorted(here)}"
            here.add(name)
            if whole:
                self._whole[rank] = name
            for type_, mask in masks.items():
                row = alone[type_]
                taken = row.get(rank, 0)
                if plain or not rules.may_share(type_):
                    row[rank] = taken | mask
                    if shared:  # shared claims collide with exclusive ones only
                        taken |= reduce(or_, shared.get((rank, type_), {}).values(), 0)
                else:
                    shared.setdefault((rank, type_), {})[name] = mask
                if taken & mask:
                    yield name, f"{(taken & mask).bit_count()} {type_} of rank {rank} held twice"
        if rules.mixed:
            self._mixed[name] = rules
        for other, theirs in self._mixed.items():
            if other == name or rules.shared or rules.mixed:
                yield from ((other, fault) for fault in self._too_few_alone(other, theirs))
        for path, amount in amounts.items():
            rank, type_, size = self._sizes[path]
            if not rules.may_share(type_):
                self._taken[path] = self._taken.get(path, 0) + amount
            free = size - self._taken.get(path, 0)
            if amount > 0 and (free < 0 or amount > size):
                yield name, f"rank {rank} has {max(free + amount, 0)} free units of {type_}, R has {amount}"

    def _too_few_alone(self, name: str, rules: ClaimRules) -> Iterator[str]:
        """Yield a fault for each type of which others share more units than the request lets them."""
        for type_, least in rules.mixed.items():
            alone = 0
            for place, sharers in self._shared.items():
                if place[1] == type_ and name in sharers:
                    others = reduce(or_, (mask for other, mask in sharers.items() if other != name), 0)
                    alone += (sharers[name] & ~others).bit_count()
            if alone < least:
                yield f"{alone} {type_} are held by no other job, requested {least} outside what is shared"

    def give_back(
        self, name: str, rules: ClaimRules, units: Units, amounts: Mapping[str, int], *, leaves: bool
    ) -> None:
        """Release units and amounts of a job, all that it has on these ranks if it `leaves` them."""
        on, alone, plain = self._on, self._alone, not (rules.shared or rules.mixed)
        for rank, masks in units.items():
            for type_, mask in masks.items():
                if plain or not rules.may_share(type_):
                    alone[type_][rank] &= ~mask
                else:
                    sharers = self._shared[rank, type_]
                    sharers[name] &= ~mask
                    if not sharers[name]:
                        del sharers[name]
                        if not sharers:
                            del self._shared[rank, type_]
            if leaves:
                on[rank].discard(name)
                if rules.alone and self._whole.get(rank) == name:
                    del self._whole[rank]
        if leaves and rules.mixed:
            self._mixed.pop(name, None)
        for path, amount in amounts.items():
            if not rules.may_share(self._sizes[path][1]):
                self._taken[path] -= amount
