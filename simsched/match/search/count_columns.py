"""The counts of one target as a column, remembered for each state that targets of its class have had.

Targets are in few states again and again: idle, full, or with a few cores free. A column holds the copies
of each content that a target in one state can host. After a claim or a release most of the touched targets
have a state whose column is known, and it is put in place of the old one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from simsched.match.search.counts import MANY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.graph.index.types import Bools, Ints
    from simsched.match.requests.request import Content

Value = TypeVar("Value")

UP, OPEN, IDLE = 0, 1, 2
"""Targets that may serve a content: those that are up, are not claimed exclusively, have no claim at all."""

WORD = 64
"""Bits of each number in a packed one; sums of copies are shorter."""

MASK = (1 << WORD) - 1
"""The first number in a packed one."""

MAX_NUMBERS = 1 << 20
"""Numbers in the columns that are remembered at most; with more, all are forgotten."""


class CountColumn(NamedTuple):
    """The counts of a target in one state.

    Attributes
    ----------
    cells : copies of each content, and behind them the free units of each type, as a matrix of one column.
    packed : copies of each content, and behind them for each content whether there is any, in one number
        (see `packed`).
    """

    cells: Ints
    packed: int


class CountColumns:
    """The columns of counts of the states that targets have had.

    Attributes
    ----------
    known : for each target the columns of its class by state. Targets of one class pass the same constraints
        and have units of the same types.
    present : for each class the numbers of these types.
    """

    def __init__(
        self, contents: Sequence[Content], types: Sequence[str], eligible: Bools, present: Bools
    ) -> None:
        groups: dict[tuple[tuple[tuple[int, int], ...], int, int], list[int]] = {}
        for number, content in enumerate(contents):
            draws = tuple((types.index(type_), units) for type_, units in content.flat or ())
            groups.setdefault((draws, most_copies(content), gate(content)), []).append(number)
        self._count, self._types = len(contents), len(types)
        classes, of = np.unique(np.concatenate([eligible, present]), axis=1, return_inverse=True)
        self._class: list[int] = of.reshape(-1).tolist()
        self._groups = [
            [
                (*demand, sum(1 << number * WORD for number in numbers if row[number]))
                for demand, numbers in groups.items()
                if any(row[number] for number in numbers)
            ]
            for row in classes.T.tolist()
        ]
        """For each class of targets: demands, and a one for each content with the demand, packed."""
        self.present = [row[len(eligible) :].nonzero()[0].tolist() for row in classes.T]
        classes_known: list[dict[tuple[int, ...], CountColumn]] = [{} for _ in self._groups]
        self.known = self.of_each(classes_known)
        self._room = MAX_NUMBERS // max(1, 2 * self._count)

    def of_each(self, values: Sequence[Value]) -> list[Value]:
        """Return for each target the value of its class."""
        return [values[class_] for class_ in self._class]

    def add(self, target: int, state: tuple[int, ...]) -> CountColumn:
        """Count a target in a state that is not among the `known` ones of its class, and return its column.

        `state` is the gate that it passes (-1: it is down), and its free units of each type that it has.
        """
        self._room -= 1
        if self._room < 0:
            self._forget()
        column = self.known[target][state] = self._counted(self._class[target], state)
        return column

    def _counted(self, class_: int, state: tuple[int, ...]) -> CountColumn:
        """Count the copies of all contents on a target."""
        passes, *some = state
        free, behind = [0] * self._types, self._count * WORD
        cells = 0
        for at, units in zip(self.present[class_], some, strict=True):
            free[at] = units
            cells |= units << behind + at * WORD
        copies_of_all = targets_of_all = 0
        for draws, most, gate_, contents in self._groups[class_]:
            if gate_ <= passes:
                copies = most
                for at, units in draws:
                    share = free[at] // units
                    copies = min(copies, share)
                if copies:
                    copies_of_all += copies * contents
                    targets_of_all += contents
        column = unpacked(cells | copies_of_all, self._count + self._types)[:, None]
        return CountColumn(column, copies_of_all | targets_of_all << behind)

    def _forget(self) -> None:
        """Forget all columns: bounded memory."""
        for known in self.known:
            known.clear()
        self._room = MAX_NUMBERS // max(1, 2 * self._count)


def packed(numbers: Sequence[int] | Ints) -> int:
    """Return some numbers as one, `WORD` bits for each: sums and differences of all take one operation."""
    return int.from_bytes(np.array(numbers, dtype="<i8").tobytes(), "little")


def unpacked(number: int, count: int) -> Ints:
    """Return the numbers in a packed one; read-only."""
    return np.frombuffer(number.to_bytes(count * WORD // 8, "little"), dtype="<i8")


def gate(content: Content) -> int:
    """Return which targets may serve a content."""
    if content.alone or (content.node and content.exclusive):
        return IDLE
    return OPEN if content.node else UP


def most_copies(content: Content) -> int:
    """Return how many copies of a content one target hosts at most."""
    return 1 if content.node and content.exclusive else MANY
