"""Which allocations have what is missing, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simsched.graph.index.types import BELOW
from simsched.match.explain.reasons import Holder
from simsched.match.search.counts import beneath

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Bools
    from simsched.match.state.selection import Selection


@dataclass(frozen=True, slots=True)
class Claims:
    """The allocations of a state by id, and their expected ends in seconds where they are known."""

    index: Index
    selections: Mapping[int | str, Selection]
    ends: Mapping[int | str, float]

    def units(self, type_: str, pools: Bools) -> tuple[Holder, ...]:
        """Return who holds units of a pool type in some leaf pools."""
        found = []
        for id_, selection in self.selections.items():
            units = sum(
                int(np.broadcast_to(draw.units, len(draw.pools))[pools[draw.pools]].sum())
                for draw in (*selection.held, *selection.shared)
                if draw.type == type_
            )
            if units:
                found.append(self._holder(id_, len(selection.targets), units))
        return _ranked(found)

    def vertices(self, kind: str, wanted: Bools) -> tuple[Holder, ...]:
        """Return who holds anything on the targets that some vertices contain, or lie in."""
        row = np.zeros(len(self.index), dtype=np.bool_)
        vertices = self.index.vertex_types[kind]
        if vertices.level == BELOW:
            row[vertices.target[wanted]] = True
        else:
            reached = beneath(kind, self.index.target_type, np.flatnonzero(wanted), self.index).ordinals
            row[reached] = True
        return self.targets(row, None)

    def targets(self, wanted: Bools, binding: str | None) -> tuple[Holder, ...]:
        """Return who holds anything on some targets, and how much of the binding resource there."""
        found = []
        for id_, selection in self.selections.items():
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
