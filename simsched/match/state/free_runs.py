"""`FreeRuns`: the free units of a flat machine as runs of consecutive ones.

It serves simulations in which every request is a number of units of one pool type, or of whole targets,
anywhere, and the first in graph order are taken. Then an allocation is the lowest free units, a handful of
runs (`run_selection`). Like the kernel this file is plain Python, and is compiled where there is a compiler.
"""

from __future__ import annotations

from itertools import pairwise
from sys import maxsize
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.match.kernel import NOT_FREE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class Runs(Protocol):
        """An allocation (`run_selection.RunSelection`)."""

        runs: list[int]
        units: int


class FreeRuns:
    """The free units; nothing on the machine is down, shared or claimed in any other way.

    Attributes
    ----------
    kind : what one unit is (`run_selection.UnitKind`).
    total : pool type → free units; other types stay as they are.
    runs : the free units, in the form of `RunSelection.runs`.
    """

    def __init__(self, kind: Any, targets: int, total: dict[str, int]) -> None:
        self.kind = kind
        self.total = total
        self.each = kind.each
        self.content = tuple(kind.content.items())
        # The last number is larger than any run: there is always a next one to compare with.
        self.runs = [0, targets * kind.each, maxsize]

    def lowest(self, units: int) -> list[int]:
        """Return the lowest free units as runs; at least that number must be free."""
        runs = self.runs
        at, left = 0, units
        while True:
            size = runs[at + 1] - runs[at]
            if size >= left:
                break
            left -= size
            at += 2
        found = runs[: at + 2]
        found[at + 1] = found[at] + left
        return found

    def claim(self, selection: Runs) -> int:
        """Claim the `lowest` units of this very state; return how many idle targets they touch.

        ValueError for those of another state.
        """
        runs, found = self.runs, selection.runs
        last = len(found) - 1
        if runs[:last] != found[:last] or found[last] > runs[last]:
            raise ValueError(NOT_FREE)
        end, behind = found[last], runs[last]
        lost = selection.units
        if self.each > 1:
            lost = -whole(end, behind, self.each)
            for at in range(0, last, 2):
                stop = found[at + 1] if at + 1 < last else behind
                lost += whole(found[at], stop, self.each)
        if behind == end:
            del runs[: last + 1]
        else:
            runs[last - 1] = end
            del runs[: last - 1]
        self._count(-selection.units)
        return lost

    def release(self, selection: Runs) -> int:
        """Release the units of a claim; return how many targets are idle thereby."""
        runs, found, each = self.runs, selection.runs, self.each
        gained = selection.units if each == 1 else 0
        at = 0
        for i in range(0, len(found), 2):
            low, high = found[i], found[i + 1]
            at = first_at_least(runs, low, at)
            before, behind = at & 1 == 1, runs[at + (at & 1)] == high  # whether free units are next to it
            if each > 1:
                start = runs[at - 1] if before else low
                end = runs[at + (at & 1) + 1] if behind else high
                gained += whole(start, end, each) - whole(start, low, each) - whole(high, end, each)
            if before and behind:
                del runs[at : at + 2]
            elif before:
                runs[at] = high
            elif behind:
                runs[at] = low
            else:
                runs[at:at] = (low, high)
            at -= at & 1
        self._count(selection.units)
        return gained

    def _count(self, units: int) -> None:
        """Count free units by pool type."""
        for type_, number in self.content:
            self.total[type_] += number * units

    def check(self, claims: Iterable[Runs], targets: int) -> int:
        """Assert that each unit of the machine is free or claimed once; return how many targets are idle."""
        runs = self.runs[: len(self.runs) - 1]
        assert not [low for low, high in pairwise(self.runs) if low >= high]
        free = np.zeros(targets * self.each, dtype=np.bool_)
        for low, high in zip(runs[::2], runs[1::2], strict=True):
            free[low:high] = True
        idle = int(free.reshape(targets, self.each).all(axis=1).sum())
        for selection in claims:
            for low, high in zip(selection.runs[::2], selection.runs[1::2], strict=True):
                assert not free[low:high].any()
                free[low:high] = True
        assert free.all()
        return idle


def first_at_least(runs: list[int], number: int, begin: int) -> int:
    """Return the place of the first number, from a place on, that is not less: a compiled `bisect_left`."""
    end = len(runs)
    while begin < end:
        middle = (begin + end) // 2
        if runs[middle] < number:
            begin = middle + 1
        else:
            end = middle
    return begin


def whole(low: int, high: int, each: int) -> int:
    """Return how many targets have all their units in a run."""
    found = high // each - (low + each - 1) // each
    return max(0, found)
