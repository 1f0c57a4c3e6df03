"""Rules of the audit for advance reservations: their nodes, cores (R1) and licences (R2) are for their jobs.

Their jobs run nowhere else.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.formats.rfc.idset import Idset
from simsched.simulation.audit.tolerance import later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.workload.job import Job

    Units = Mapping[int, Mapping[str, int]]


class ReservedWindow(NamedTuple):
    """A reservation from `start` until `end` (s) on some ranks, and when it was announced.

    With `cores` (rank → mask) it has only these there. With `longer` it keeps away only the jobs that may
    run for more than this number of seconds.
    """

    name: str
    start: float
    end: float
    ranks: frozenset[int]
    announced: float
    longer: float
    cores: Mapping[int, int] | None

    def closed(self, units: Units) -> frozenset[int]:
        """Return the ranks of which a job has something that is reserved."""
        closed = self.ranks & units.keys()
        if self.cores is None:
            return closed
        return frozenset(rank for rank in closed if units[rank].get("core", 0) & self.cores.get(rank, 0))

    def contains(self, units: Units) -> bool:
        """Whether all that a job has is reserved."""
        if not units.keys() <= self.ranks:
            return False
        mine = self.cores
        return mine is None or not any(
            masks.get("core", 0) & ~mine.get(rank, 0) for rank, masks in units.items()
        )


def reservation_named(job: Job) -> str | None:
    """Return the reservation that a job names."""
    name = job.jobspec.system.get("reservation")
    return None if name is None else str(name)


def _windows_of(row: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[ReservedWindow]:
    for window in row["windows"]:
        cores = {
            int(rank): sum(1 << core for core in Idset.parse(str(ids)))
            for rank, ids in window.get("cores", {}).items()
        }
        yield ReservedWindow(
            str(row["name"]),
            float(window["start"]),
            inf if window["end"] is None else float(window["end"]),
            frozenset(Idset.parse(str(window["ranks"]))),
            float(table.get("announced", 0)),
            float(row.get("longer", -1)),
            cores if "cores" in window else None,
        )


class ReservedNodes:
    """The windows of a run, and the jobs that may use them."""

    def __init__(self, tables: Sequence[Mapping[str, Any]], granted: Sequence[Mapping[str, Any]]) -> None:
        self._tables = {table["name"]: table for table in tables}
        self._windows = [one for row in granted for one in _windows_of(row, self._tables[row["name"]])]
        self._licences: dict[str, Mapping[str, int]] = {
            name: table["licenses"] for name, table in self._tables.items() if table.get("licenses")
        }
        self._inside: dict[str, tuple[str, Mapping[str, int]]] = {}
        """Running job → its reservation with licences, and its licences."""
        self.checked = {"R1": 0, "R2": 0}

    def wrong(self, job: Job, time: float, units: Units, ran: float | None = None) -> Iterator[str]:
        """Yield why a job may not have these units from a time on.

        One that was suspended after it `ran` for some seconds may go on beyond the end of its reservation.
        """
        if not self._tables:
            return
        self.checked["R1"] += 1
        until = time + (inf if job.duration is None else job.duration - (ran or 0))
        named, name = reservation_named(job), self._of(job, time, until, units)
        if named is not None and ran is None:
            yield from self._wrong_own(job, named, time, until, units)
        own = [window for window in self._windows if window.name == name]
        table = self._tables.get(name or "", {})
        for window in self._windows:
            closed = window.closed(units)
            if window.name == name or time < window.announced or not closed:
                continue
            if window.longer >= 0 and not later(until - time, window.longer):
                continue
            if table.get("overlaps"):  # within its windows it has nodes that others have, too
                begin, end = max(time, window.start), min(until, window.end)
                inside = (w.ranks for w in own if not later(w.start, begin) and not later(end, w.end))
                closed = closed.difference(*inside)
            if closed and time < window.end and later(until, window.start):
                yield f"is allocated rank {min(closed)} at {time:g}, which is reserved for {window.name!r}"

    def _of(self, job: Job, time: float, until: float, units: Units) -> str | None:
        """Return the reservation that a job is in: the one that it names, or a magnetic one around it.

        A job in a flexible one may run on beyond the window, and on other nodes.
        """
        named = reservation_named(job)
        around = (
            window.name
            for window in self._windows
            if self._tables[window.name].get("magnetic") and self._may_use(job, window.name)
            if not later(window.start, time) and time < window.end
            if self._tables[window.name].get("flex")
            or (not later(until, window.end) and window.contains(units))
        )
        return next(around, None) if named is None else named

    # -- licences -----------------------------------------------------------------------------------

    def wrong_licences(
        self, job: Job, time: float, units: Units, taken: Mapping[str, int], free: Mapping[str, int]
    ) -> Iterator[str]:
        """Yield why a job may not have some licences from a time on; `free` are left beside it."""
        if not self._licences or not taken:
            return
        self.checked["R2"] += 1
        until = time + (inf if job.duration is None else job.duration)
        own = self._of(job, time, until, units)
        if own in self._licences:
            self._inside[str(job.id)] = own, taken
        ahead = {window.name for window in self._windows
                 if window.announced <= time < window.end and later(until, window.start)}  # fmt: skip
        for name in taken:
            used: Counter[str] = Counter()
            for of, mine in self._inside.values():
                used[of] += mine.get(name, 0)
            kept = sum(
                max(0, licences.get(name, 0) - used[other])
                for other, licences in self._licences.items()
                if other != own and other in ahead
            )
            if free[name] < kept:
                yield f"leaves {free[name]} of the licence {name!r} at {time:g}, of which {kept} are reserved"

    def release(self, name: str) -> None:
        """Note that a job released its licences."""
        self._inside.pop(name, None)

    # -- its own jobs -------------------------------------------------------------------------------

    def _wrong_own(self, job: Job, name: str, time: float, until: float, units: Units) -> Iterator[str]:
        table = self._tables.get(name, {})
        mine = [window for window in self._windows if window.name == name]
        anywhere = not {"nodes", "hosts", "shape"} & table.keys()  # licences alone
        fitting = (
            window
            for window in mine
            if not later(window.start, time) and not later(until, window.end)
            if anywhere or window.contains(units)
        )
        if not table.get("flex") and next(fitting, None) is None:
            yield f"runs from {time:g} outside of its reservation {name!r}"
        if not self._may_use(job, name):
            yield f"runs in the reservation {name!r}, which it may not use"

    def _may_use(self, job: Job, name: str) -> bool:
        """Whether a job is of the users, accounts and queues of a reservation."""
        table = self._tables.get(name, {})
        lists = [(table.get("users", ()), job.user), (table.get("accounts", ()), job.bank)]
        lists.append((table.get("queues", ()), job.queue))
        found = [one in names for names, one in lists if names]
        return not found or (all(found) if table.get("match") == "all" else any(found))
