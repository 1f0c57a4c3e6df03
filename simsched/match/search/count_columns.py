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
    from collections.abc import Mapping, Sequence

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
    cells : copies of each content, and behind them the free units of each type.
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
        self._count, self._types = len(contents), len(types)
        classes, of = np.unique(np.concatenate([eligible, present]), axis=1, return_inverse=True)
        self._class: list[int] = of.reshape(-1).tolist()
        gates = np.array([gate(content) for content in contents], dtype=np.int64)
        most = np.array([most_copies(content) for content in contents], dtype=np.int64)
        passing = [gates <= passes for passes in (UP, OPEN, IDLE)]
        self._units, beyond = units_of(contents, {type_: at for at, type_ in enumerate(types)})
        self._draws = beyond == 0
        self._shares: list[dict[int, Ints]] = [{} for _ in types]
        """For each type and each number of free units of it the copies for which they suffice."""
        self._most = [
            [
                most * (row[: len(contents)] & ~self._draws[~row[len(eligible) :]].any(axis=0) & may)
                for may in passing
            ]
            for row in classes.T
        ]
        """For each class of targets and each gate the most copies of each content on a target."""
        self.present = [row[len(eligible) :].nonzero()[0].tolist() for row in classes.T]
        classes_known: list[dict[tuple[int, ...], CountColumn]] = [{} for _ in self._most]
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
        present, count = self.present[class_], self._count
        column = np.zeros(count + self._types, dtype="<i8")  # as `packed` needs it
        copies = column[:count]
        if passes >= UP:
            copies[:] = self._most[class_][passes]
        for at, units in zip(present, some, strict=True):
            column[count + at] = units
            share = self._shares[at].get(units)
            if share is None:
                share = np.where(self._draws[at], units // self._units[at], MANY)
                self._shares[at][units] = share
            np.minimum(copies, share, out=copies)
        both = copies.tobytes() + np.minimum(copies, 1).tobytes()
        return CountColumn(column, int.from_bytes(both, "little"))

    def _forget(self) -> None:
        """Forget all columns: bounded memory."""
        for known in self.known:
            known.clear()
        for shares in self._shares:
            shares.clear()
        self._room = MAX_NUMBERS // max(1, 2 * self._count)


def packed(numbers: Sequence[int] | Ints) -> int:
    """Return some numbers as one, `WORD` bits for each: sums and differences of all take one operation."""
    return int.from_bytes(np.array(numbers, dtype="<i8").tobytes(), "little")


def unpacked(number: int, count: int) -> Ints:
    """Return the numbers in a packed one; read-only."""
    return np.frombuffer(number.to_bytes(count * WORD // 8, "little"), dtype="<i8")


def units_of(contents: Sequence[Content], at: Mapping[str, int]) -> tuple[Ints, Ints]:
    """Return the units that each content draws of each type (1 if none), and `MANY` where it draws none.

    `at` is the line of each type; the shape of both is (types, contents).
    """
    units = np.ones((len(at), len(contents)), dtype=np.int64)
    beyond = np.full((len(at), len(contents)), MANY)
    for number, content in enumerate(contents):
        for type_, amount in content.flat or ():
            units[at[type_], number] = amount
            beyond[at[type_], number] = 0
    return units, beyond


def gate(content: Content) -> int:
    """Return which targets may serve a content."""
    if content.alone or (content.node and content.exclusive):
        return IDLE
    return OPEN if content.node else UP


def most_copies(content: Content) -> int:
    """Return how many copies of a content one target hosts at most."""
    return 1 if content.node and content.exclusive else MANY
