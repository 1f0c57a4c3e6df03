"""Which job holds which units (A3).

A unit that a job requests outside a slot is shared: others may share it too, and none may hold it
alone (M4).  R does not tell shared units from others, so the request decides.  If a request has both for
one type, such as ``[slot/core=2;node/core=3]``, any of the named units may be shared, but as many as the
request holds alone have to be free of others.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.simulation.audit.request_check import ClaimRules

    Units = Mapping[int, Mapping[str, int]]


class UnitHolders:
    """The units that jobs hold at the present line: alone by place, and shared by place and job."""

    def __init__(self) -> None:
        self._alone: dict[tuple[int, str], int] = {}
        self._shared: dict[tuple[int, str], dict[str, int]] = {}
        self._mixed: dict[str, ClaimRules] = {}
        """The jobs that hold units of one type both alone and shared."""

    def take(self, name: str, rules: ClaimRules, units: Units) -> Iterator[tuple[str, str]]:
        """Take the units of an allocation; yield (job, fault) for units that may not be held twice."""
        for rank, masks in units.items():
            for type_, mask in masks.items():
                fault = self._take(name, (rank, type_), mask, shared=rules.may_share(type_))
                if fault is not None:
                    yield name, fault
        if rules.mixed:
            self._mixed[name] = rules
        for other, theirs in self._mixed.items():
            if other == name or rules.shared or rules.mixed:
                yield from ((other, fault) for fault in self._too_few_alone(other, theirs))

    def _take(self, name: str, place: tuple[int, str], mask: int, *, shared: bool) -> str | None:
        taken = self._alone.get(place, 0)
        sharers = self._shared.get(place)
        if sharers and not shared:  # shared claims collide with exclusive ones only
            for other in sharers.values():
                taken |= other
        if shared:
            self._shared.setdefault(place, {})[name] = mask
        else:
            self._alone[place] = self._alone.get(place, 0) | mask
        twice = taken & mask
        return f"{twice.bit_count()} {place[1]} of rank {place[0]} held twice" if twice else None

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

    def give_back(self, name: str, rules: ClaimRules, rank: int, masks: Mapping[str, int]) -> None:
        """Release units of a rank."""
        self._mixed.pop(name, None)
        for type_, mask in masks.items():
            if rules.may_share(type_):
                sharers = self._shared[rank, type_]
                sharers[name] &= ~mask
                if not sharers[name]:
                    del sharers[name]
            else:
                self._alone[rank, type_] &= ~mask
