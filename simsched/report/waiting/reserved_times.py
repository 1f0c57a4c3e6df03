"""`ReservedTimes`: the nodes that advance reservations keep from a job of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simsched.workload.job import Job


class ReservedTimes:
    """The windows of a run, as ``run.json`` has them, for one job."""

    def __init__(self, found: Sequence[Mapping[str, Any]], job: Job, ranks: Iterable[int]) -> None:
        self._own = job.jobspec.system.get("reservation") if found else None
        self._all = frozenset(ranks)
        self._flags = {one["name"]: (bool(one.get("overlaps")), bool(one.get("flex"))) for one in found}
        self._windows = [
            (one["name"], window["start"], window["end"], frozenset(Idset.parse(str(window["ranks"]))))
            for one in found
            for window in one["windows"]
        ]

    @property
    def times(self) -> set[float]:
        """The times (s) at which a window begins or ends."""
        return {time for _, start, end, _ in self._windows for time in (start, end)}

    def closed(self, time: float, limit: float) -> frozenset[int]:
        """Return the ranks on which the job may not start at a time; `limit` is its requested time (s)."""
        until = time + limit
        overlaps, flex = self._flags.get(self._own, (False, False))
        own = [w for w in self._windows if w[0] == self._own]
        closed = frozenset[int]()
        for name, start, end, ranks in self._windows:
            if name != self._own and start < until and time < end:
                shared = (w[3] for w in own if w[1] <= max(time, start) and min(until, end) <= w[2])
                closed |= ranks.difference(*shared) if overlaps else ranks
        if self._own is None or flex:
            return closed
        mine = next((w[3] for w in own if w[1] <= time and until <= w[2]), frozenset[int]())
        return closed | (self._all - mine)
