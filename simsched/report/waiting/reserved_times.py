"""`ReservedTimes`: what maintenance and advance reservations closed to the jobs of a run."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.formats.rfc.idset import Idset
from simsched.match.named_targets import targets_of_ranks
from simsched.match.search.select import can_match
from simsched.schedule.kept_units import masks_by_leaf
from simsched.schedule.maintenance import Calendar
from simsched.simulation.reservations.reservation_rules import AdvanceReservation
from simsched.simulation.reservations.reserved_closures import ReservedClosures, Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.report.waiting.run_facts import RunFacts
    from simsched.schedule.maintenance import Closure


class ReservedTimes:
    """The closures for the jobs of the reservation `own`, or of none.

    Attributes
    ----------
    closures : all of them, those of maintenance too.
    begins : the times (s) at which a closure or a window begins.
    edges : the times at which one begins, ends or is announced.
    """

    def __init__(self, facts: RunFacts, maintenance: Sequence[Closure], own: str | None) -> None:
        rows = facts.run.meta.get("reservations", ())
        self._facts = facts
        self._names = [row["name"] for row in rows]
        self._own = self._names.index(own) if own in self._names else None
        self._longer = [row.get("longer", -1) for row in rows]
        self._announced = [row.get("announced", 0) for row in rows]
        self._windows = {
            at: [_window(one, facts.index) for one in row["windows"]]
            for at, row in enumerate(rows)
            if row["windows"]
        }
        made = ReservedClosures(facts.index, [*map(_reservation, rows)], self._used)
        self._maintenance = Calendar(maintenance)
        self._calendars: list[tuple[float, Calendar]] = []
        for time in sorted({-inf, *self._announced}):
            known = {at: found for at, found in self._windows.items() if self._announced[at] <= time}
            self.closures = [*maintenance, *made.to(self._own, known)]
            self._calendars.append((time, Calendar(self.closures)))
        windows = [one for found in self._windows.values() for one in found]
        self.begins = {one.start for ones in (windows, self.closures) for one in ones} - {-inf}
        self.edges = {*self.begins, *self._announced, *(one.end for one in windows)} - {inf}

    def fits(
        self, request: Request, state: Availability, time: float, limit: float, *, around_all: bool = True
    ) -> bool:
        """Whether a request that fits does so beside all that closes within its limit (s), or maintenance."""
        calendar = self._maintenance
        if around_all:
            calendar = next(found for known, found in reversed(self._calendars) if known <= time)
        left = calendar.within(state, time, time + limit)
        return left is state or can_match(request, left)

    def shorter(self, time: float, limit: float) -> list[float]:
        """Return the limits below one with which a job would end before something closes, descending."""
        limits = {one.start - time for one in self.closures} | {one.longer for one in self.closures}
        return sorted((found for found in limits if 0 < found < limit), reverse=True)

    def in_the_way(self, time: float, limit: float) -> list[tuple[str, float, float]]:
        """Return name, begin and end (s) of the windows that a job may run into, and of those of its own.

        Its own are named if it is not in one of them to its end.
        """
        until, found = time + limit, []
        for at, windows in self._windows.items():
            inside = any(one.start <= time and until <= one.end for one in windows)
            for one in windows:
                ahead = one.start < until and limit > self._longer[at] and self._announced[at] <= time
                if time < one.end and (not inside if at == self._own else ahead):
                    found.append((self._names[at], one.start, one.end))
        return found

    def _used(self, at: int, name: str, time: float) -> int:
        """Return how many units of a licence the jobs of a reservation have at a time (s)."""
        facts, ids = self._facts, self._facts.table["id"]
        running = (ids[row] for row, start, end in facts.attempts if start <= time < end)
        return sum(
            facts.request_of(job).demand.get(name, 0)
            for job in running
            if facts.jobs[job].jobspec.system.get("reservation") == self._names[at]
        )


def _reservation(row: Mapping[str, Any]) -> AdvanceReservation:
    """Return the part of a reservation of ``run.json`` by which it closes."""
    return AdvanceReservation(
        name=row["name"],
        nodes=1 if any(window["ranks"] for window in row["windows"]) else None,
        licenses=tuple(row.get("licenses", {}).items()),
        overlaps=row.get("overlaps", False),
        flex=row.get("flex", False),
        ahead=row.get("longer"),
    )


def _window(row: Mapping[str, Any], index: Index) -> Window:
    targets = np.array(targets_of_ranks(index, row["ranks"]), dtype=np.int64)
    ids = {int(rank): Idset.parse(ids) for rank, ids in row.get("cores", {}).items()}
    masks = masks_by_leaf(index, {rank: sum(1 << core for core in cores) for rank, cores in ids.items()})
    cores = tuple(masks.items()) if "cores" in row else None
    return Window(row["start"], inf if row["end"] is None else row["end"], targets, cores)
