"""The definition of a profile: free units over time as rows, target by target and type by type.

It shares no code with the profile of the package, and nothing in it is clever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nextafter

import numpy as np

UP, OPEN, IDLE = 0, 1, 2


@dataclass
class Demand:
    """What a copy takes of one target, the targets that may serve it, and the most copies on each."""

    need: np.ndarray
    gate: int
    most: int
    whole: bool
    may: np.ndarray


@dataclass
class Claim:
    """Units on targets, those that it touches, and those that it shuts, from begin until end."""

    begin: float
    end: float
    units: np.ndarray
    touches: np.ndarray
    shuts: np.ndarray


@dataclass
class PlainProfile:
    """Capacity (targets in the order in which they are taken, types), demands, and claims."""

    capacity: np.ndarray
    demands: list[Demand]
    now: float = 0
    claims: dict = field(default_factory=dict)

    def take(self, name, begin, end, demand=None, copies=None, *, targets=(), units=None):
        """Claim copies of a demand on each target, or shut some targets, or take units as they are."""
        shuts = np.zeros(len(self.capacity), bool)
        shuts[list(targets)] = True
        if units is not None:
            touches = units.any(axis=1)
        elif demand is None:
            units, touches = np.zeros_like(self.capacity), np.zeros_like(shuts)
        else:
            units, touches = np.outer(copies, self.demands[demand].need), copies > 0
            if self.demands[demand].whole:
                shuts = touches
        self.claims[name] = Claim(begin, end, units, touches, shuts)

    def over(self, claim):
        """The end of a claim: that of a running job has not passed yet."""
        return claim.end if claim.end > self.now else nextafter(self.now, inf)

    def copies(self, demand, time, beside=None):
        """The copies on each target at a time, without the claim of that name."""
        demand = self.demands[demand]
        free = self.capacity.copy()
        touched, shut = np.zeros(len(free), bool), np.zeros(len(free), bool)
        for name, claim in self.claims.items():
            end = self.over(claim) if str(name).startswith("running") else claim.end
            if name != beside and claim.begin <= time < end:
                free -= claim.units
                touched |= claim.touches
                shut |= claim.shuts
        free = np.maximum(free, 0)
        found = np.full(len(free), demand.most)
        for type_, need in enumerate(demand.need):
            if need:
                found = np.minimum(found, free[:, type_] // need)
        found[~demand.may | shut] = 0
        if demand.gate == IDLE:
            found[touched] = 0
        return found

    def times(self):
        """All times at which anything changes, and now."""
        ends = {
            self.over(claim) if str(name).startswith("running") else claim.end
            for name, claim in self.claims.items()
        }
        every = ends | {claim.begin for claim in self.claims.values()} | {self.now}
        return sorted(time for time in every if time >= self.now)

    def earliest(self, demand, amount, seconds, begin, before, beside=None):
        """The first start in [begin, before), and the copies on each target; (inf, None) without one."""
        times, begin = self.times(), max(begin, self.now)
        for start in sorted({begin, *(time for time in times if time > begin)}):
            if start >= before or start == inf:
                break
            end = max(start + seconds, nextafter(start, inf))
            window = [start, *(time for time in times if start < time < end)]
            least = np.min([self.copies(demand, time, beside) for time in window], axis=0)
            if least.sum() >= amount:
                upto = np.minimum(np.cumsum(least), amount)
                return start, np.diff(upto, prepend=0)
        return inf, None
