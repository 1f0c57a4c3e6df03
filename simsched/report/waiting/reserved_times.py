"""`ReservedTimes`: the nodes and cores that advance reservations keep from a job of a run."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from simsched.workload.job import Job


class _Window(NamedTuple):
    """A window: with `cores` (rank → mask) only of these, with `longer` only for jobs of more seconds."""

    name: str
    start: float
    end: float
    ranks: frozenset[int]
    longer: float
    cores: Mapping[int, int] | None


def _windows_of(row: Mapping[str, Any]) -> Iterator[_Window]:
    for window in row["windows"]:
        cores = {
            int(rank): sum(1 << core for core in Idset.parse(str(ids)))
            for rank, ids in window.get("cores", {}).items()
        }
        end = inf if window["end"] is None else window["end"]
        ranks = frozenset(Idset.parse(str(window["ranks"])))
        longer = float(row.get("longer", -1))
        yield _Window(row["name"], window["start"], end, ranks, longer, cores if "cores" in window else None)


class ReservedTimes:
    """The windows of a run, as ``run.json`` has them, for one job."""

    def __init__(self, found: Sequence[Mapping[str, Any]], job: Job, ranks: Iterable[int]) -> None:
        self.own = job.jobspec.system.get("reservation") if found else None
        self._all = frozenset(ranks)
        self._flags = {one["name"]: (bool(one.get("overlaps")), bool(one.get("flex"))) for one in found}
        self._alone = {one["name"] for one in found if not any(one["ranks"] for one in one["windows"])}
        self._windows = [window for one in found for window in _windows_of(one)]

    @property
    def times(self) -> set[float]:
        """The times (s) at which a window begins or ends."""
        return {time for window in self._windows for time in (window.start, window.end) if time < inf}

    @staticmethod
    def edges(found: Sequence[Mapping[str, Any]]) -> list[float]:
        """Return the times (s) at which a window of a run begins or ends."""
        times = (
            time for one in found for window in one["windows"] for time in (window["start"], window["end"])
        )
        return [float(time) for time in times if time is not None]

    @property
    def spans(self) -> list[tuple[float, float]]:
        """The begin and the end (s) of each window of a reservation that is not the job's own."""
        return [(window.start, window.end) for window in self._windows if window.name != self.own]

    @property
    def own_spans(self) -> list[tuple[float, float]]:
        """The begin and the end (s) of each window of the job's own reservation."""
        return [(window.start, window.end) for window in self._windows if window.name == self.own]

    @property
    def exempt(self) -> set[float]:
        """Limits (s) up to which a reservation lets jobs start."""
        return {window.longer for window in self._windows if window.longer > 0}

    def in_the_way(self, time: float, limit: float) -> list[tuple[str, float, float]]:
        """Return name, begin and end (s) of the windows that a job may run into, and of those of its own.

        Its own are named if it is not in one of them to its end.
        """
        own = [window for window in self._windows if window.name == self.own]
        outside = not any(window.start <= time and time + limit <= window.end for window in own)
        windows = [*self._others(time, limit), *(own if outside else ())]
        return [(window.name, window.start, window.end) for window in windows if window.end > time]

    def closed(self, time: float, limit: float) -> frozenset[int]:
        """Return the ranks on which the job may not start at a time; `limit` is its requested time (s)."""
        until = time + limit
        overlaps, flex = self._flags.get(self.own, (False, False))
        own = [w for w in self._windows if w.name == self.own]
        closed = frozenset[int]()
        for window in self._others(time, limit):
            if window.cores is None:
                first, last = max(time, window.start), min(until, window.end)
                shared = (w.ranks for w in own if w.start <= first and last <= w.end)
                closed |= window.ranks.difference(*shared) if overlaps else window.ranks
        if self.own is None or flex:
            return closed
        mine = next((w for w in own if w.start <= time and until <= w.end), None)
        ranks = frozenset[int]() if mine is None else self._all if mine.name in self._alone else mine.ranks
        return closed | (self._all - ranks)

    def closed_cores(self, time: float, limit: float) -> dict[int, int]:
        """Return rank → the cores (a mask) that the job may not have from a time on."""
        closed: dict[int, int] = {}
        for window in self._others(time, limit):
            for rank, mask in (window.cores or {}).items():
                closed[rank] = closed.get(rank, 0) | mask
        if not self._flags.get(self.own, (False, False))[1]:
            for window in self._windows:
                if window.name == self.own and window.start <= time < window.end and window.cores is not None:
                    for rank, mask in window.cores.items():
                        closed[rank] = closed.get(rank, 0) | ~mask
        return closed

    def _others(self, time: float, limit: float) -> Iterator[_Window]:
        """Yield the windows of other reservations in which the job would run."""
        for window in self._windows:
            ahead = window.start < time + limit and time < window.end and limit > window.longer
            if window.name != self.own and ahead:
                yield window
