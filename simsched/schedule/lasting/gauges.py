"""`Gauges`: necessary conditions of requests, counted for many times of a plan at once.

A gauge is a part of a request on one execution target (`Content`): some units of some types, or a whole
target, on the targets that a constraint lets pass. The number of copies for which the targets have room is
the gauge's total. A request fits only if each of its gauges has the total that it needs. That is
necessary and not sufficient: vertices within targets are not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.graph.index.types import ABOVE, TARGET
from simsched.match.requests.request import POOL, VERTEX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Bools
    from simsched.match.requests.request import Content, Need, Request

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

MOST = 64
"""Gauges of one workload; requests with further contents share coarser ones."""

CELLS = 1 << 18
"""Cells (gauge, time, target) that are computed at a time."""

FEW = 1 << 10
"""Cells (time, target) up to which one operation for all demands takes less time than one for each."""


class GaugedPart(NamedTuple):
    """The part of a request that one gauge counts: units of one target, or all of it, and where."""

    units: tuple[tuple[str, int], ...]
    whole: bool
    eligible: bytes


class Gauges:
    """The gauges of all requests of a workload.

    Attributes
    ----------
    of : kind of request → its gauges, and how many copies it needs of each.
    first, wanted : kind of request → its first gauge, and the copies that it needs of it.
    concerns : kind of request → the gauge on whose targets anything must be freed before the request can
        fit where it did not; `always` if that may be anywhere, and one more if nothing is known: an exact
        search that gave up may find a match although less is free.
    parts, eligible : gauge → the part of a request that it counts, and on which targets.
    demand : gauge → the number of its demand; gauges of one demand count it on different targets.
    reaches_above : whether any request claims a vertex above the execution targets exclusively.
    """

    def __init__(self, requests: Mapping[int, Request], index: Index, kinds: int) -> None:
        self._index = index
        self._parts: dict[GaugedPart, int] = {}
        self.types = [name for name, pool in index.pool_types.items() if pool.on_targets]
        coarse = 0
        found = {kind: list(self._gauged(request, coarse)) for kind, request in requests.items()}
        while len(self._parts) > MOST and coarse < 2:
            coarse += 1
            self._parts.clear()
            found = {kind: list(self._gauged(request, coarse)) for kind, request in requests.items()}
        self.parts = parts = list(self._parts)
        self.of = {kind: [(self._parts[part], count) for part, count in some] for kind, some in found.items()}
        self.always = len(parts)
        """The number of the gauge that never rules a request out."""
        self._set_columns(parts)
        self.first = np.full(kinds, self.always, dtype=np.int64)
        self.wanted = np.zeros(kinds)
        self.concerns = np.full(kinds, self.always, dtype=np.int64)
        for kind, some in self.of.items():
            if some:
                self.first[kind], self.wanted[kind] = some[0]
            if not requests[kind].separable:
                self.concerns[kind] = self.always + 1
            elif len(some) == 1 and not _claims_above(requests[kind]):
                self.concerns[kind] = some[0][0]
        self.reaches_above = any(map(_takes_above, requests.values()))

    def _set_columns(self, parts: Sequence[GaugedPart]) -> None:
        """Lay the parts out as arrays with one row per gauge."""
        size = len(self._index)
        self.eligible = np.zeros((len(parts), size), dtype=np.bool_)
        self.whole = np.array([part.whole for part in parts], dtype=np.bool_)
        for at, part in enumerate(parts):
            self.eligible[at] = np.frombuffer(part.eligible, dtype=np.bool_)
        alike: dict[tuple[tuple[tuple[int, int], ...], bool], list[int]] = {}
        for at, part in enumerate(parts):
            draws = tuple((self.types.index(type_), number) for type_, number in part.units)
            alike.setdefault((draws, part.whole), []).append(at)
        self._demands = list(alike)
        """Units and whether a whole target is meant, each once."""
        self._every = np.arange(len(alike))
        # For how many copies of each demand the units of each type, and last the claims, have room.
        self._slope = np.zeros((len(self.types) + 1, len(alike), 1, 1))
        self._base = np.full_like(self._slope, np.inf)
        for number, (draws, whole) in enumerate(alike):
            for row, each in draws:
                self._slope[row, number] = 1.0 / each
                self._base[row, number] = 0.5 / each  # so that no quotient is rounded below a whole number
            if whole:
                self._slope[-1, number] = self._base[-1, number] = 1.0
        self._inverse = self._slope[:-1, :, 0]
        self.demand = np.zeros(len(parts), dtype=np.int64)
        for number, gauges in enumerate(alike.values()):
            self.demand[gauges] = number

    def __len__(self) -> int:
        return self.always

    def _gauged(self, request: Request, coarse: int) -> Iterator[tuple[GaugedPart, int]]:
        """Yield the parts of a request, and how many copies it needs of each."""
        for content, copies in _contents(request.needs, 1):
            units = _units(content.needs)
            units = {type_: number for type_, number in units.items() if type_ in self.types}
            whole = content.alone or (content.node and content.exclusive)
            where = content.eligible if coarse < 2 else np.ones_like(content.eligible)
            parts = [GaugedPart(tuple(sorted(units.items())), whole, where.tobytes())]
            counts = [copies]
            if coarse:
                parts = [GaugedPart(((type_, 1),), False, where.tobytes()) for type_ in units]
                counts = [copies * number for number in units.values()]
                if whole:
                    parts, counts = [*parts, GaugedPart((), True, where.tobytes())], [*counts, copies]
            for part, count in zip(parts, counts, strict=True):
                if part.units or part.whole:
                    self._parts.setdefault(part, len(self._parts))
                    yield part, count

    def totals(self, cells: Integers, may: Floats) -> Floats:
        """Return the total of each gauge on some targets, for each of some times: shape (gauges, times).

        `cells` are those of `rooms`, and `may` is one for each gauge on each of the targets that it counts.
        """
        times, width = cells.shape[1:]
        most = max(1, CELLS // max(1, len(self) * width))
        found = np.empty((len(self), times))
        for low in range(0, times, most):
            part = slice(low, low + most)
            found[:, part] = self.sums(self.rooms(cells[:, part]), may)
        return found

    def sums(self, rooms: Floats, may: Floats) -> Floats:
        """Return for each gauge the sum of its demand's copies over the targets that it counts."""
        found: Floats = (rooms[self.demand] @ may[:, :, None])[:, :, 0]
        return found

    def rooms(self, cells: Integers, demands: Integers | None = None) -> Floats:
        """Return for how many copies of some demands targets have room: shape (demands, times, targets).

        `cells` are the free units of each of `types`, and last the claims as negative numbers. Without
        `demands`, all are meant.
        """
        times, width = cells.shape[1:]
        some = self._every if demands is None else demands
        if times * width > FEW:
            found = np.empty((len(some), times, width))
            shares: dict[tuple[int, int], Integers] = {}
            *free, use = cells
            for at, demand in enumerate(some.tolist()):
                found[at] = self.room(demand, free, use, shares)
        else:
            slope, base = self._slope, self._base
            if demands is not None:
                slope, base = slope[:, demands], base[:, demands]
            quotients = cells[:, None] * slope
            quotients += base
            found = np.minimum.reduce(quotients, axis=0)
            np.floor(found, out=found)
        return np.maximum(found, 0.0, out=found)

    def most_added(self, freed: Integers, targets: Integers) -> Floats:
        """Return for each gauge at most how many more copies fit on each of some targets after a release.

        `freed` are the units of each of `types` (rows) on each of the targets.
        """
        quotients = freed[:, None] * self._inverse
        # at least one: something that counts do not see may have been in the way
        copies = np.maximum.reduce(np.ceil(quotients - 1e-6), axis=0, initial=1.0)
        most: Floats = copies[self.demand]
        most[self.whole] = 1.0
        most *= self.eligible[:, targets]
        return most

    def copies(self, gauge: int, free: Sequence[Integers], use: Integers) -> Integers:
        """Return for how many copies of one gauge some targets have room, at some times.

        `free` are the free units of each type that the gauge counts, and `use` the claims.
        """
        found: Integers | None = (use == 0).astype(use.dtype) if self.whole[gauge] else None
        for (_, units), some in zip(self.parts[gauge].units, free, strict=True):
            copies = some if units == 1 else some // units
            found = copies if found is None else np.minimum(found, copies)
        assert found is not None, "every gauge counts something"
        # A reservation may be longer than its job, so that more may be reserved than there is.
        return np.maximum(found, 0)

    def room(
        self,
        demand: int,
        free: Sequence[Integers],
        use: Integers,
        shares: dict[tuple[int, int], Integers],
    ) -> Integers | Bools:
        """Return for how many copies of one demand targets have room, as `rooms`.

        `shares` are those of single types that demands have in common; they are added to it.
        """
        draws, whole = self._demands[demand]
        room: Integers | Bools | None = use == 0 if whole else None
        for draw in draws:
            share = shares.get(draw)
            if share is None:
                at, units = draw
                share = shares[draw] = free[at] if units == 1 else free[at] // units
            # A whole target serves once.
            part = share > 0 if whole else share
            room = part if room is None else room & part if whole else np.minimum(room, part)
        assert room is not None, "every gauge counts something"
        return room


def _contents(needs: Sequence[Need], times: int) -> Iterator[tuple[Content, int]]:
    """Yield the parts of a request on one target each, and how many copies of each it takes at least."""
    for need in needs:
        if need.content is not None and need.level == TARGET:
            yield need.content, need.amount * times
        else:
            yield from _contents(need.children, need.amount * times)


def _units(needs: Sequence[Need]) -> dict[str, int]:
    """Return the units by pool type that needs within one target take from other jobs."""
    found: dict[str, int] = {}
    for need in needs:
        inner = ({need.type: 1} if need.exclusive else {}) if need.kind == POOL else _units(need.children)
        for type_, units in inner.items():
            found[type_] = found.get(type_, 0) + units * need.amount
    return found


def _claims_above(request: Request) -> bool:
    """Whether a request claims vertices or units outside of execution targets."""
    return any(need.level == ABOVE and need.kind in (VERTEX, POOL) for need in request.walk())


def _takes_above(request: Request) -> bool:
    """Whether a request claims a vertex above the execution targets exclusively."""
    return any(need.level == ABOVE and need.kind == VERTEX and need.exclusive for need in request.walk())
