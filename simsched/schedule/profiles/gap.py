"""Holes in time: where a job could run, and how soon at the soonest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import nextafter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    from simsched.match.state.selection import Selection

NEVER = float("inf")


class Gap(NamedTuple):
    """The earliest start of a job: when, and on what (None where counts decide or there is none)."""

    start: float
    selection: Selection | None


def end_of(start: float, duration: float) -> float:
    """Return the end of a reservation: a job of zero seconds needs its resources, too."""
    return start + duration if duration else nextafter(start, NEVER)


class Bounds:
    """How soon at the soonest: while reservations are only added, no job starts sooner than one like it.

    >>> bounds = Bounds()
    >>> bounds.note("two nodes", 60, 500)
    >>> bounds.of("two nodes", 30), bounds.of("two nodes", 90)
    (0, 500)
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[list[float], list[float]]] = {}
        """What is asked for → durations, growing, and the starts found for them, which grow along."""

    def of(self, asked: Hashable, duration: float) -> float:
        """Return the latest start found for the same for no longer; 0 if none was."""
        durations, starts = self._found.get(asked, ((), ()))
        place = bisect_right(durations, duration)
        return starts[place - 1] if place else 0

    def note(self, asked: Hashable, duration: float, start: float) -> None:
        """Note a start, and forget those for a longer time that are no later."""
        durations, starts = self._found.setdefault(asked, ([], []))
        place = bisect_left(durations, duration)
        stop = bisect_right(starts, start, place)
        durations[place:stop], starts[place:stop] = [duration], [start]
