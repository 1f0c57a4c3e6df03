"""`Recorder`: what a run writes down while it goes on, in plain lists.

Nothing is computed here that can be computed afterwards; `columns` turns the lists into
NumPy columns once the run is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.match.selection import Selection
    from simsched.schedule.plan import Plan
    from simsched.simulate.allocations import AllocationLog

#: Results of jobs, by code.
RESULTS = (
    "PENDING",
    "RUNNING",
    "COMPLETED",
    "TIMEOUT",
    "FAILED",
    "CANCELED",
    "INFEASIBLE",
    "DROPPED",
)
PENDING, RUNNING, COMPLETED, TIMEOUT, FAILED, CANCELED, INFEASIBLE, DROPPED = range(len(RESULTS))

NEVER = float("nan")


class Recorder:
    """Per-job facts, the timeline and the stream of allocations of one run."""

    def __init__(self, jobs: int, types: Sequence[str], log: AllocationLog | None) -> None:
        self.log = log
        self.eligible: list[float] = [NEVER] * jobs
        self.start: list[float] = [NEVER] * jobs
        self.end: list[float] = [NEVER] * jobs
        self.result: list[int] = [PENDING] * jobs
        self.counts: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)] * jobs
        self.backfilled = bytearray(jobs)
        self.reasons: dict[int, str] = {}
        self.types = tuple(types)
        self.times: list[float] = []
        self.queued_jobs: list[int] = []
        self.queued_cores: list[int] = []
        self.running_jobs: list[int] = []
        self.free: dict[str, list[int]] = {type_: [] for type_ in self.types}
        self.down: list[tuple[float, dict[str, int]]] = []

    def begin(self, job: int, now: float, selection: Selection, backfilled: bool) -> None:
        """Note that a job started on `selection`."""
        self.start[job] = now
        self.result[job] = RUNNING
        counts = selection.counts
        self.counts[job] = (
            len(selection.targets),
            counts.get("core", 0),
            counts.get("gpu", 0),
            selection.slots,
        )
        if backfilled:
            self.backfilled[job] = 1
        if self.log is not None:
            self.log.alloc(job, now, selection)

    def finish(self, job: int, now: float, result: int) -> None:
        """Note that a job ended and gave everything back."""
        self.end[job] = now
        self.result[job] = result
        if self.log is not None:
            self.log.release(job, now)

    def reject(self, job: int, result: int, reason: str) -> None:
        """Note that a job will never run, and why."""
        self.result[job] = result
        self.reasons[job] = reason

    def tick(self, now: float, plan: Plan, queued: int, demand: int) -> None:
        """Note the state after the pass at `now`; a second pass at one instant replaces the first."""
        if self.times and self.times[-1] == now:
            self._drop_last()
        self.times.append(now)
        self.queued_jobs.append(queued)
        self.queued_cores.append(demand)
        self.running_jobs.append(len(plan))
        free = plan.free
        for type_, column in self.free.items():
            column.append(free(type_))

    def _drop_last(self) -> None:
        for column in (
            self.times,
            self.queued_jobs,
            self.queued_cores,
            self.running_jobs,
            *self.free.values(),
        ):
            column.pop()  # type: ignore[attr-defined]

    def timeline(self, totals: Mapping[str, int]) -> dict[str, Any]:
        """Return the timeline as columns: free, used and down units of each type at each time."""
        times = np.array(self.times, dtype=np.float64)
        columns: dict[str, Any] = {"time": times}
        for type_ in self.types:
            free = np.array(self.free[type_], dtype=np.int64)
            down = self._down(type_, times)
            columns[f"free_{type_}"] = free
            columns[f"used_{type_}"] = totals[type_] - free - down
            columns[f"down_{type_}"] = down
        columns["queued_jobs"] = np.array(self.queued_jobs, dtype=np.int64)
        columns["queued_cores"] = np.array(self.queued_cores, dtype=np.int64)
        columns["running_jobs"] = np.array(self.running_jobs, dtype=np.int64)
        return columns

    def _down(self, type_: str, times: Any) -> Any:
        """Return the units that are down at each time: a step function given by its changes."""
        if not self.down:
            return np.zeros(len(times), dtype=np.int64)
        changes = np.array([time for time, _ in self.down], dtype=np.float64)
        values = np.array([0, *(units.get(type_, 0) for _, units in self.down)], dtype=np.int64)
        return values[np.searchsorted(changes, times, side="right")]
