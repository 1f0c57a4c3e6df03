"""`Gap`: a time from which a job could run to its requested end, and bounds on where to look for one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    from simsched.match.state.selection import Selection

NEVER = float("inf")


class Gap(NamedTuple):
    """A start in seconds (`NEVER` without one) and the resources, None where counts decide."""

    start: float
    selection: Selection | None


class Bounds:
    """Lower bounds of starts: a job starts no earlier than an equal request of at most its duration.

    That holds while reservations are only added. Withdrawing one invalidates the bounds.

    >>> bounds = Bounds()
    >>> bounds.note("two nodes", 60, 500)
    >>> bounds.of("two nodes", 30), bounds.of("two nodes", 90)
    (0, 500)
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[list[float], list[float]]] = {}
        """Request → growing durations, and the starts that were found for them, which grow as well."""

    def of(self, request: Hashable, duration: float) -> float:
        """Return the latest start found for an equal request of at most this duration; 0 without one."""
        durations, starts = self._found.get(request, ((), ()))
        place = bisect_right(durations, duration)
        return starts[place - 1] if place else 0

    def note(self, request: Hashable, duration: float, start: float) -> None:
        """Note a start, and drop starts of longer durations that are not later: this one implies them."""
        durations, starts = self._found.setdefault(request, ([], []))
        place = bisect_left(durations, duration)
        stop = bisect_right(starts, start, place)
        durations[place:stop], starts[place:stop] = [duration], [start]
