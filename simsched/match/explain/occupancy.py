"""A state with its allocations: which of them hold the resources that a request lacks, and how many."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simsched.graph.index.types import BELOW
from simsched.match.explain.reasons import Holder
from simsched.match.search.counts import beneath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from simsched.arrays import Bools
    from simsched.graph.index.index import Index
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A state, the allocations that it consists of by id, and their expected ends (seconds) if known."""

    avail: Availability
    allocations: Mapping[int | str, Selection]
    ends: Mapping[int | str, float]

    @property
    def index(self) -> Index:
        """The compiled cluster."""
        return self.avail.index

    def after(self, ended: Iterable[int | str]) -> Availability:
        """Return the state once the allocations `ended` are released."""
        later = self.avail.copy()
        for id_ in ended:
            later.release(self.allocations[id_])
        return later

    def to_wait_for(self, fits: Callable[[Availability], bool]) -> list[int | str]:
        """Return the allocations to wait for, by expected end, until a request `fits`; [] if it never does.

        A release only ever adds resources: a request that fits after one end fits after every later
        one, so bisection finds the first such end.
        """
        order = sorted(
            (id_ for id_ in self.allocations if id_ in self.ends), key=lambda id_: (self.ends[id_], str(id_))
        )
        first = bisect_left(range(len(order)), x=True, key=lambda at: fits(self.after(order[: at + 1])))
        return order[: first + 1] if first < len(order) else []

    def holders_of_units(self, type_: str, pools: Bools) -> tuple[Holder, ...]:
        """Return the allocations with units of a pool type in the chosen leaf pools."""
        found = []
        for id_, selection in self.allocations.items():
            units = sum(
                int(np.broadcast_to(draw.units, len(draw.pools))[pools[draw.pools]].sum())
                for draw in (*selection.held, *selection.shared)
                if draw.type == type_
            )
            if units:
                found.append(self._holder(id_, len(selection.targets), units))
        return _ranked(found)

    def holders_of_vertices(self, kind: str, wanted: Bools) -> tuple[Holder, ...]:
        """Return the allocations on the targets that contain, or are contained in, the chosen vertices."""
        row = np.zeros(len(self.index), dtype=np.bool_)
        vertices = self.index.vertex_types[kind]
        if vertices.level == BELOW:
            row[vertices.target[wanted]] = True
        else:
            reached = beneath(kind, self.index.target_type, np.flatnonzero(wanted), self.index).ordinals
            row[reached] = True
        return self.holders_of_targets(row, None)

    def holders_of_targets(self, wanted: Bools, binding: str | None) -> tuple[Holder, ...]:
        """Return the allocations on the chosen targets, with their units of the binding resource there."""
        found = []
        for id_, selection in self.allocations.items():
            touched = int(wanted[selection.targets].sum())
            if touched:
                found.append(self._holder(id_, touched, self._units_on(selection, wanted, binding)))
        return _ranked(found)

    def _units_on(self, selection: Selection, wanted: Bools, binding: str | None) -> int:
        pool = self.index.pool_types.get(binding or "")
        if pool is None:
            return 0
        found = 0
        for draw in (*selection.held, *selection.shared):
            if draw.type == pool.name:
                target = pool.target[draw.pools]
                here = (target >= 0) & wanted[target]
                found += int(np.broadcast_to(draw.units, len(draw.pools))[here].sum())
        return found

    def _holder(self, id_: int | str, targets: int, units: int) -> Holder:
        return Holder(id=id_, targets=targets, units=units, until=self.ends.get(id_))


def _ranked(holders: list[Holder]) -> tuple[Holder, ...]:
    return tuple(sorted(holders, key=lambda h: (-h.units, -h.targets, str(h.id))))
