"""The axis of a search: its protocol, the axis of loads, and lists of values as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable


class SearchAxis(Protocol):
    """The meaning of the whole numbers of a search."""

    @property
    def noun(self) -> str:
        """The unit in the plural: ``nodes``, ``times the load``."""

    def number(self, value: int) -> float:
        """Return the size or load of a number."""

    def phrase(self, value: int) -> str:
        """Return the size or load in words: ``12 nodes``."""


@dataclass(frozen=True, slots=True)
class LoadAxis:
    """Loads in steps from today's: 0 is today's load, 1 is one step more, -1 is one step less."""

    today: float
    step: float

    @property
    def noun(self) -> str:
        """The unit of loads."""
        return "times the load"

    def number(self, value: int) -> float:
        """Return the load as a multiple of the workload's.

        >>> LoadAxis(1.0, 0.01).number(25)
        1.25
        """
        return float(f"{self.today + value * self.step:.9g}")

    def phrase(self, value: int) -> str:
        """Return the load in words.

        >>> LoadAxis(1.0, 0.05).phrase(-2)
        '0.9 times the load'
        """
        return f"{self.number(value):g} times the load"


def listed(axis: SearchAxis, values: Iterable[int]) -> str:
    """Return ascending values as text, three and more neighbours as a range.

    >>> listed(LoadAxis(0, 1), [100, 112, 117, 118, 119, 1340])
    '100, 112, 117 to 119 and 1,340'
    """
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    parts = [part for run in runs for part in _run(axis, run)]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def _run(axis: SearchAxis, run: list[int]) -> list[str]:
    ends = [f"{axis.number(value):,.9g}" for value in run]
    return ends if len(run) < 3 else [f"{ends[0]} to {ends[-1]}"]
