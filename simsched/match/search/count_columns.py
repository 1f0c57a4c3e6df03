"""The counts of one target as a column, remembered for each state that targets of its class have had.

Targets are in few states again and again: idle, full, or with a few cores free. A column holds the copies
of each content that a target in one state can host. After a claim or a release most of the touched targets
have a state whose column is known, and it is put in place of the old one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.match.search.counts import MANY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.graph.index.types import Bools, Ints
    from simsched.match.requests.request import Content

UP, OPEN, IDLE = 0, 1, 2
"""Targets that may serve a content: those that are up, are not claimed exclusively, have no claim at all."""

MAX_NUMBERS = 1 << 20
"""Numbers in the columns that are remembered at most; with more, all are forgotten."""


class CountColumn(NamedTuple):
    """The counts of a target in one state.

    Attributes
    ----------
    fits : copies of each content.
    joined : the same, and behind them for each content whether there is any copy.
    units : the free units of each type.
    """

    fits: Ints
    joined: Ints
    units: Ints


class CountColumns:
    """The columns of counts of the states that targets have had."""

    def __init__(self, contents: Sequence[Content], types: Sequence[str], eligible: Bools) -> None:
        groups: dict[tuple[tuple[tuple[int, int], ...], int, int], list[int]] = {}
        for number, content in enumerate(contents):
            draws = tuple((types.index(type_), units) for type_, units in content.flat or ())
            groups.setdefault((draws, most_copies(content), gate(content)), []).append(number)
        self._count = len(contents)
        classes, of = np.unique(eligible, axis=1, return_inverse=True)
        self._of: list[int] = of.reshape(-1).tolist()
        self._groups = [
            [
                (*demand, [number for number in numbers if row[number]])
                for demand, numbers in groups.items()
                if any(row[number] for number in numbers)
            ]
            for row in classes.T.tolist()
        ]
        """For each class of targets that pass the same constraints: demands, and the contents with each."""
        self._known: list[dict[tuple[int, ...], CountColumn]] = [{} for _ in self._groups]
        self._room = MAX_NUMBERS // max(1, 2 * self._count)

    def column(self, target: int, state: tuple[int, ...]) -> CountColumn:
        """Return the counts of a target.

        `state` is the gate that it passes (-1: it is down), and its free units of each type.
        """
        known = self._known[self._of[target]]
        column = known.get(state)
        if column is None:
            column = known[state] = self._counted(self._of[target], state)
            self._room -= 1
            if self._room < 0:
                self._forget()
        return column

    def _counted(self, class_: int, state: tuple[int, ...]) -> CountColumn:
        """Count the copies of all contents on a target."""
        passes, *free = state
        size = self._count
        joined = [0] * (2 * size)
        for draws, most, gate_, numbers in self._groups[class_]:
            if gate_ <= passes:
                copies = most
                for at, units in draws:
                    copies = min(copies, free[at] // units)
                if copies:
                    for number in numbers:
                        joined[number] = copies
                        joined[size + number] = 1
        array = np.array(joined, dtype=np.int64)
        return CountColumn(array[:size], array, np.array(free, dtype=np.int64))

    def _forget(self) -> None:
        """Forget all columns: bounded memory."""
        for known in self._known:
            known.clear()
        self._room = MAX_NUMBERS // max(1, 2 * self._count)


def gate(content: Content) -> int:
    """Return which targets may serve a content."""
    if content.alone or (content.node and content.exclusive):
        return IDLE
    return OPEN if content.node else UP


def most_copies(content: Content) -> int:
    """Return how many copies of a content one target hosts at most."""
    return 1 if content.node and content.exclusive else MANY
