"""Placements: where a static policy places a request on rows of targets, without its units.

The rows of a table of counts (`count_table`) have sums over a target. They suffice to tell how many copies of
another request fit beside a placement. The units on the leaf pools are chosen only if the request starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from simsched.match.search.count_columns import IDLE, OPEN, gate, most_copies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.graph.index.types import Ints
    from simsched.match.requests.request import Content

FEW = 12
"""Targets up to which the copies that are lost beside a placement are counted one by one."""


class Change(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The difference that the release of a selection makes: places in the flattened rows, and amounts."""

    places: Ints
    amounts: Ints


class RowDemand(NamedTuple):
    """The units that one copy of a content draws, and on which targets it may be.

    Attributes
    ----------
    draws : line of the rows, and units.
    gate : the targets that may serve it (see `count_columns`).
    most : copies on one target at most.
    whole : whether it claims a target with all that is free on it.
    lines : the lines that a claim changes, in places of the flattened rows: those of the draws, and behind
        them that of the number of claims; for a `whole` target all lines.
    units : the units of the draws, and a zero for the number of claims, in a column.
    """

    draws: tuple[tuple[int, int], ...]
    gate: int
    most: int
    whole: bool
    lines: Ints
    units: Ints

    @classmethod
    def of(cls, content: Content, lines: dict[str, int], width: int) -> RowDemand:
        """Return the demand of a content; `lines` are those of its types in rows of some width."""
        draws = tuple((lines[type_], units) for type_, units in content.flat or ())
        whole = content.node and content.exclusive
        changed = [*range(len(lines) + 2)] if whole else [*(at for at, _ in draws), len(lines)]
        return cls(
            draws,
            gate(content),
            most_copies(content),
            whole,
            np.array(changed, dtype=np.int64)[:, None] * width,
            np.array([*(units for _, units in draws), 0], dtype=np.int64)[:, None],
        )


class RowPlacement(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The targets that a request takes, and how many copies on each (one number: the same on all)."""

    targets: Ints
    numbers: Ints | int
    demand: RowDemand

    def change(self, rows: Ints) -> Change:
        """Return the difference that the release of the placement makes to rows in which it was placed."""
        targets, demand = self.targets, self.demand
        places = (demand.lines + targets).reshape(-1)
        if demand.whole:  # everything on the targets, and the targets
            amounts = rows[:, targets]
            amounts[-2:] = -1
            return Change(places, amounts.reshape(-1))
        amounts = demand.units * self.numbers
        if len(targets) != amounts.shape[1]:
            amounts = amounts.repeat(len(targets), axis=1)
        amounts[-1] = -1
        return Change(places, amounts.reshape(-1))

    def lost(self, demand: RowDemand, copies: Ints, then: Ints, now: Ints) -> tuple[int, int] | None:
        """Return the copies of a demand, and the targets with any, that are lost beside the placement.

        `copies` are those of the demand on each target of the rows `then`; `now` are the rows in which the
        placement was made. None if the placement has too many targets to look at each.
        """
        if len(self.targets) > FEW:
            return None
        targets = self.targets.tolist()
        numbers = self.numbers
        each = [numbers] * len(targets) if isinstance(numbers, int) else numbers.tolist()
        copies_on, free_then, free_now = copies.item, then.item, now.item
        whole, drawn = self.demand.whole, dict(self.demand.draws)
        blocked = demand.gate == IDLE or (whole and demand.gate == OPEN)
        lost = gone = 0
        for target, number in zip(targets, each, strict=True):
            before = copies_on(target)
            if not before:
                continue
            after = 0
            if not blocked:
                after = demand.most
                for at, units in demand.draws:
                    taken = free_now(at, target) if whole else drawn.get(at, 0) * number
                    after = min(after, (free_then(at, target) - taken) // units)
            lost += before - after
            gone += not after
        return lost, gone


def with_changes(rows: Ints, changes: Sequence[Change], *, sign: int = 1) -> Ints:
    """Return a copy of rows with some changes made, or taken back; without changes the rows themselves."""
    if not changes:
        return rows
    found = rows.copy()
    places = np.concatenate([change.places for change in changes])
    amounts = np.concatenate([change.amounts for change in changes])
    np.add.at(found.reshape(-1), places, amounts if sign > 0 else -amounts)
    return found
