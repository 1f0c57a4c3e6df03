"""The definition of a profile: free units over time as rows, target by target and pool by pool.

It shares no code with the profile of the package, and nothing in it is clever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nextafter
from typing import NamedTuple

import numpy as np

UP, OPEN, IDLE = 0, 1, 2


class Inner(NamedTuple):
    """What a copy takes of vertices within its target, `times` times: units of `distinct` different ones."""

    need: np.ndarray
    distinct: int
    alone: bool
    times: int


@dataclass
class Demand:
    """What a copy takes of one target, the targets that may serve it, and the most copies on each."""

    need: np.ndarray
    gate: int
    most: int
    whole: bool
    may: np.ndarray
    inner: Inner | None = None


class Place(NamedTuple):
    """The copies on each target, and the units of each pool."""

    copies: np.ndarray
    units: np.ndarray


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
    """Capacity (targets in the order in which they are taken, pools), demands, and claims.

    `types` is the type of each pool, `vertices` the vertex of each target and pool, or -1. Units are taken
    from the first pools on, or from the last.
    """

    capacity: np.ndarray
    demands: list[Demand]
    types: np.ndarray
    vertices: np.ndarray
    last: bool = False
    now: float = 0
    claims: dict = field(default_factory=dict)

    def take(self, name, begin, end, demand=None, place=None, *, targets=(), units=None):
        """Claim a place for copies of a demand, or shut some targets, or take units as they are."""
        shuts = np.zeros(len(self.capacity), bool)
        shuts[list(targets)] = True
        if units is not None:
            touches = units.any(axis=1)
        elif demand is None:
            units, touches = np.zeros_like(self.capacity), np.zeros_like(shuts)
        else:
            units, touches = place.units, place.copies > 0
            if self.demands[demand].whole:
                shuts = touches
        self.claims[name] = Claim(begin, end, units, touches, shuts)

    def over(self, claim):
        """The end of a claim: that of a running job has not passed yet."""
        return claim.end if claim.end > self.now else nextafter(self.now, inf)

    def state(self, time, end=None, beside=None):
        """The least that is free from a time until `end`, and which targets a claim touches or shuts."""
        free = self.capacity.copy()
        touched, shut = np.zeros(len(free), bool), np.zeros(len(free), bool)
        for moment in [time, *(each for each in (self.times() if end else ()) if time < each < end)]:
            here = self.capacity.copy()
            for name, claim in self.claims.items():
                last = self.over(claim) if str(name).startswith("running") else claim.end
                if name != beside and claim.begin <= moment < last:
                    here -= claim.units
                    touched |= claim.touches
                    shut |= claim.shuts
            free = np.minimum(free, np.maximum(here, 0))
        return free, touched, shut

    def copies(self, number, time, end=None, beside=None):
        """The copies on each target by the least that is free from a time until `end`."""
        demand, (free, touched, shut) = self.demands[number], self.state(time, end, beside)
        found = np.full(len(free), demand.most)
        for type_, need in enumerate(demand.need):
            if need:
                found = np.minimum(found, free[:, self.types == type_].sum(axis=1) // need)
        if demand.inner is not None:
            found = np.minimum(found, [self.inside(demand.inner, n, row) for n, row in enumerate(free)])
        found[~demand.may | shut] = 0
        if demand.gate == IDLE:
            found[touched] = 0
        return found

    def hosted(self, inner, n, free):
        """The copies that each vertex of a target hosts."""
        found = []
        for vertex in range(self.vertices.max() + 1):
            mine = self.vertices[n] == vertex
            sums = [free[mine & (self.types == type_)].sum() for type_ in range(len(inner.need))]
            copies = min(units // need for units, need in zip(sums, inner.need, strict=True) if need)
            if inner.alone:
                copies = min(copies, 1) if (free[mine] == self.capacity[n, mine]).all() else 0
            found.append(copies)
        return found

    def inside(self, inner, n, free):
        """The copies that a target hosts: each takes so many different vertices, so many times."""
        each, most = self.hosted(inner, n, free), 0
        while sum(min(copies, most + 1) for copies in each) >= inner.distinct * (most + 1):
            most += 1
        return most // inner.times

    def drawn(self, demand, copies, free):
        """The units of each pool for the copies on each target."""
        units = np.zeros_like(self.capacity)

        def draw(n, pools, amount):
            for pool in pools[::-1] if self.last else pools:
                taken = min(amount, free[n, pool])
                units[n, pool] += taken
                amount -= taken

        for n in copies.nonzero()[0]:
            for type_, need in enumerate(demand.need):
                draw(n, (self.types == type_).nonzero()[0], need * copies[n])
            inner = demand.inner
            if inner is None:
                continue
            left = copies[n] * inner.times * inner.distinct
            for vertex, hosts in enumerate(self.hosted(inner, n, free[n])):
                number = min(left, hosts, 1 if inner.alone else copies[n] * inner.times)
                left -= number
                mine = self.vertices[n] == vertex
                if inner.alone:
                    units[n, mine] = self.capacity[n, mine] * number
                    continue
                for type_, need in enumerate(inner.need):
                    draw(n, (mine & (self.types == type_)).nonzero()[0], need * number)
        return units

    def times(self):
        """All times at which anything changes, and now."""
        ends = {
            self.over(claim) if str(name).startswith("running") else claim.end
            for name, claim in self.claims.items()
        }
        every = ends | {claim.begin for claim in self.claims.values()} | {self.now}
        return sorted(time for time in every if time >= self.now)

    def earliest(self, demand, amount, seconds, begin, before, beside=None):
        """The first start in [begin, before), and the place; (inf, None) without one."""
        times, begin = self.times(), max(begin, self.now)
        for start in sorted({begin, *(time for time in times if time > begin)}):
            if start >= before or start == inf:
                break
            end = max(start + seconds, nextafter(start, inf))
            least = self.copies(demand, start, end, beside)
            if least.sum() >= amount:
                copies = np.diff(np.minimum(np.cumsum(least), amount), prepend=0)
                units = self.drawn(self.demands[demand], copies, self.state(start, end, beside)[0])
                return start, Place(copies, units)
        return inf, None
