"""Rule of the audit for advance reservations (R1): their nodes are for their jobs, which run nowhere else."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.formats.rfc.idset import Idset
from simsched.simulation.audit.tolerance import later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.workload.job import Job


class ReservedWindow(NamedTuple):
    """A reservation from `start` until `end` (s) on some ranks, and when it was announced."""

    name: str
    start: float
    end: float
    ranks: frozenset[int]
    announced: float


def reservation_named(job: Job) -> str | None:
    """Return the reservation that a job names."""
    name = job.jobspec.system.get("reservation")
    return None if name is None else str(name)


class ReservedNodes:
    """The windows of a run, and the jobs that may use them."""

    def __init__(self, tables: Sequence[Mapping[str, Any]], granted: Sequence[Mapping[str, Any]]) -> None:
        self._tables = {table["name"]: table for table in tables}
        self._windows = [
            ReservedWindow(
                str(row["name"]),
                float(window["start"]),
                float(window["end"]),
                frozenset(Idset.parse(str(window["ranks"]))),
                float(self._tables[row["name"]].get("announced", 0)),
            )
            for row in granted
            for window in row["windows"]
        ]

    def is_kept(self, name: str, other: str | None) -> bool:
        """Whether the nodes of a reservation are kept from the jobs of another one, or of none."""
        free = self._tables.get(name, {}).get("flex") or self._tables.get(other or "", {}).get("overlaps")
        return name != other and name in self._tables and not free

    def wrong(self, job: Job, time: float, ranks: set[int], ran: float | None = None) -> Iterator[str]:
        """Yield why a job may not have these ranks from a time on.

        One that was suspended after it `ran` for some seconds may go on beyond the end of its reservation.
        """
        if not self._tables:
            return
        name = reservation_named(job)
        until = time + (inf if job.duration is None else job.duration - (ran or 0))
        if name is not None and ran is None:
            yield from self._wrong_own(job, name, time, until, ranks)
        own = [window for window in self._windows if window.name == name]
        table = self._tables.get(name or "", {})
        for window in self._windows:
            closed = window.ranks & ranks
            if window.name == name or time < window.announced or not closed:
                continue
            if table.get("overlaps"):  # within its windows it has nodes that others have, too
                begin, end = max(time, window.start), min(until, window.end)
                inside = (w.ranks for w in own if not later(w.start, begin) and not later(end, w.end))
                closed = closed.difference(*inside)
            if closed and time < window.end and later(until, window.start):
                yield f"is allocated rank {min(closed)} at {time:g}, which is reserved for {window.name!r}"

    def _wrong_own(self, job: Job, name: str, time: float, until: float, ranks: set[int]) -> Iterator[str]:
        table = self._tables.get(name, {})
        mine = [window for window in self._windows if window.name == name]
        fitting = (
            w for w in mine if not later(w.start, time) and not later(until, w.end) and ranks <= w.ranks
        )
        if not table.get("flex") and next(fitting, None) is None:
            yield f"runs from {time:g} outside of its reservation {name!r}"
        lists = [(table.get("users", ()), job.user), (table.get("accounts", ()), job.bank)]
        lists.append((table.get("queues", ()), job.queue))
        found = [one in names for names, one in lists if names]
        if found and not (all(found) if table.get("match") == "all" else any(found)):
            yield f"runs in the reservation {name!r}, which it may not use"
