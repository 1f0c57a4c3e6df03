"""`Recorder`: the facts of a run in plain lists, collected during the run.

Nothing is computed here that can be computed afterwards; `job_columns` turns the lists into NumPy
columns after the run.
"""

from __future__ import annotations

from array import array
from copy import copy
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.human import occasions
from simsched.match.kernel import view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from simsched.match.state.selection import Selection
    from simsched.schedule.profiles.plan import Plan
    from simsched.simulation.record.allocation_log import AllocationLog
    from simsched.simulation.record.event_log import EventLog
    from simsched.workload.job import Job

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

GROWING = (
    *("ids", "eligible", "start", "end", "result", "backfilled", "promised", "reasons", "down", "failures"),
    *("_times", "_counts"),
)
"""The containers of a recorder."""

LEAST = 256
"""Rows of the timeline for which there is place at least."""


class Recorder:
    """Per-job facts, the timeline and the stream of allocations of one run.

    `pools` are the resource types of the timeline, besides the execution targets.  `later` computes the rows
    of the timeline after the run; None: they are noted pass by pass.
    """

    def __init__(
        self,
        ids: list[int | str],
        pools: Sequence[str],
        log: AllocationLog | None,
        events: EventLog | None = None,
    ) -> None:
        """Begin without jobs; `ids` is a list that the logs share."""
        self.ids = ids
        self.log = log
        self.events = events
        self.eligible: list[float] = []
        self.start: list[float] = []
        self.end: list[float] = []
        self.result = bytearray()
        self.counts: tuple[list[int], ...] = ([], [], [], [])
        """The nodes, cores, gpus and slots of each job."""
        self.backfilled = bytearray()
        self.promised: list[float] = []
        self.reasons: dict[int, str] = {}
        self.pools = tuple(pools)
        self._width = 4 + len(self.pools)  # counts in a row of the timeline
        self._ticks = 0
        """How many rows the timeline has; its arrays have place for more."""
        self._keep(np.empty(0), np.empty(0, dtype=np.int64))
        self.later: Callable[[Recorder, int], tuple[Any, Any]] | None = None
        self.down: list[tuple[float, dict[str, int]]] = []
        self.failures: list[tuple[int, float, float]] = []
        """Random failures: the rank, when it failed, and when it is repaired."""

    def extend(self, jobs: Sequence[Job]) -> None:
        """Make place for the next jobs of the run."""
        nodes, cores, gpus, slots = self.counts
        for job in jobs:
            self.ids.append(job.id)
            self.eligible.append(NEVER)
            self.start.append(NEVER)
            self.end.append(NEVER)
            self.promised.append(NEVER)
            self.result.append(PENDING)
            nodes.append(0)
            cores.append(0)
            gpus.append(0)
            slots.append(0)
            self.backfilled.append(0)
        if self.log is not None:
            self.log.extend([job.queue or "default" for job in jobs])

    def put_back(self, allocations: Iterable[bytes], events: Iterable[bytes]) -> None:
        """Take over the lines of the logs, without line ends, of a run that this one continues."""
        if self.log is not None:
            self.log.put_back(allocations)
        if self.events is not None:
            self.events.put_back(events)

    def take_lines(self, other: Recorder) -> None:
        """Take over the lines that another recorder has in memory."""
        logs = (other.log, other.events)
        self.put_back(*(() if log is None else log.text().encode().splitlines() for log in logs))

    def detached(self) -> Recorder:
        """Return a recorder with the facts so far, which does not change with this one."""
        made = copy(self)
        for name in GROWING:
            setattr(made, name, copy(getattr(self, name)))
        made._keep(made._times, made._counts)
        made.counts = tuple(map(list, self.counts))
        made.log = None if self.log is None else self.log.detached()
        made.events = None if self.events is None else self.events.detached()
        return made

    def begin(self, job: int, now: float, selection: Selection, backfilled: bool) -> None:
        """Record that a job started on `selection`."""
        self.start[job] = now
        self.result[job] = RUNNING
        nodes, cores, gpus, slots = self.counts
        nodes[job], cores[job], gpus[job], slots[job] = selection.sizes()
        if backfilled:
            self.backfilled[job] = 1
        if self.log is not None:
            self.log.alloc(job, now, selection)

    def promise(self, promised: list[tuple[int, float]]) -> None:
        """Record the promised starts of jobs; the first promise of each job counts."""
        for job, start in promised:
            if isnan(self.promised[job]):
                self.promised[job] = start
        promised.clear()

    def shard(self, job: int, now: float, selection: Selection, *, last: bool) -> None:
        """Record that a job released a part of its resources."""
        if self.log is not None:
            self.log.release_shard(job, now, selection, last=last)

    def failure_columns(self) -> dict[str, Any]:
        """Return the random failures as the columns of ``failures.parquet``; nothing without any."""
        if not self.failures:
            return {}
        ranks, starts, ends = zip(*self.failures, strict=True)
        times = {"start": np.array(starts, dtype=np.float64), "end": np.array(ends, dtype=np.float64)}
        return {"rank": np.array(ranks, dtype=np.int64), **times}

    def resize(self, job: int, now: float, selection: Selection, start: float) -> None:
        """Record that a job, which runs since `start`, has other resources or another duration now."""
        for numbers, size in zip(self.counts, selection.sizes(), strict=True):
            numbers[job] = size
        if self.log is not None:
            self.log.replace(job, now, selection, start)

    def suspend(self, job: int, now: float, times: int, reason: str) -> None:
        """Record that a job lost its resources for a time, the `times`-th time."""
        self.reasons[job] = f"suspended {occasions(times)}: {reason}"
        if self.log is not None:
            self.log.release(job, now)

    def resume(self, job: int, now: float, selection: Selection, suspended: float) -> None:
        """Record that a job got its resources back; it was suspended for this number of seconds in all."""
        if self.log is not None:
            self.log.again(job, now, selection, self.start[job], suspended)

    def requeue(self, job: int, now: float, times: int, reason: str) -> None:
        """Record that a job lost its resources and waits again, the `times`-th time."""
        self.start[job] = NEVER
        self.result[job] = PENDING
        for numbers in self.counts:
            numbers[job] = 0
        self.backfilled[job] = 0
        self.promised[job] = NEVER  # the promise held for the attempt that was lost
        self.reasons[job] = f"queued again {occasions(times)}: {reason}"
        if self.log is not None:
            self.log.release(job, now)

    def reject(self, job: int, result: int, reason: str) -> None:
        """Record that a job will never run, and why."""
        self.result[job] = result
        self.reasons[job] = reason

    def tick(self, now: float, plan: Plan, queued: int, demand: int) -> None:
        """Record the state after the pass at `now`; a second pass at the same instant replaces the first."""
        if self.down or not plan.all_up:  # after the first outage, also the return to zero is recorded
            self._note_down(now, plan)
        row = self._ticks
        if row and self._time_of[row - 1] == now:
            row -= 1
        elif row == len(self._time_of):
            more = max(row // 2, LEAST)
            self._keep(
                np.concatenate((self._times, np.empty(more))),
                np.concatenate((self._counts, np.empty(more * self._width, dtype=np.int64))),
            )
        self._time_of[row] = now
        self._ticks = row + 1
        counts, at = self._count_of, row * self._width
        counts[at], counts[at + 1] = queued, demand
        counts[at + 2], counts[at + 3] = len(plan.until), plan.idle
        for place, pool in enumerate(self.pools, at + 4):
            counts[place] = plan.total[pool]

    def _keep(self, times: Any, counts: Any) -> None:
        """Let the timeline be in these arrays: its times, and its counts row after row."""
        self._times, self._counts = times, counts
        self._time_of: Any = view(times)
        self._count_of = view(counts)

    def _note_down(self, now: float, plan: Plan) -> None:
        """Record the units that are neither free nor in use: those on unavailable targets."""
        available = plan.available
        used = dict.fromkeys(self.pools, 0)
        for selection in plan.held.values():
            for type_, units in selection.counts.items():
                used[type_] += units
        for type_, _, _ in available.sharers:  # a unit that several jobs share is in use once
            used[type_] += 1
        pools = available.index.pool_types
        down = {name: pools[name].total - available.total[name] - used[name] for name in self.pools}
        down["node"] = len(available.use) - plan.idle - int((available.use > 0).sum())
        if not self.down or self.down[len(self.down) - 1][1] != down:
            self.down.append((now, down))

    def state(self, submitted: int) -> dict[str, Any]:
        """Return the recorded facts as plain values; columns of jobs only for the first `submitted` jobs."""
        return {
            "columns": [column[:submitted] for column in self._columns()],
            "reasons": self.reasons,
            "rows": array("d", np.column_stack(self._rows(submitted)).tobytes()),
            "down": self.down,
            "failures": self.failures,
            "log": None if self.log is None else self.log.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put the recorder into a state."""
        for column, noted in zip(self._columns(), state["columns"], strict=True):
            column[: len(noted)] = noted
        self.reasons = state["reasons"]
        rows = np.array(state["rows"], dtype=np.float64).reshape(-1, 1 + self._width)
        self._keep(rows[:, 0].copy(), rows[:, 1:].astype(np.int64).ravel())
        self._ticks = len(rows)
        self.down = state["down"]
        self.failures = [tuple(one) for one in state["failures"]]
        if self.log is not None:
            self.log.restore(state["log"])

    def _columns(self) -> tuple[Any, ...]:
        """Return the columns that have one entry per job."""
        return (
            *(self.eligible, self.start, self.end, self.result),
            *(*self.counts, self.backfilled, self.promised),
        )

    def timeline(self, totals: Mapping[str, int], submitted: int) -> dict[str, Any]:
        """Return the timeline as columns: free, used and down units of each type at each time.

        The first `submitted` jobs were submitted.
        """
        times, counts = self._rows(submitted)
        queued, demand, running = (counts[:, at].copy() for at in range(3))
        columns: dict[str, Any] = {"time": times}
        for at, type_ in enumerate(("node", *self.pools), start=3):
            free = counts[:, at].copy()
            down = self._down(type_, times)
            columns[f"free_{type_}"] = free
            columns[f"used_{type_}"] = totals[type_] - free - down
            columns[f"down_{type_}"] = down
        return {**columns, "queued_jobs": queued, "queued_cores": demand, "running_jobs": running}

    def _rows(self, submitted: int) -> tuple[Any, Any]:
        """Return the times of the timeline and, row after row, its counts."""
        rows = self._ticks
        times = self._times[:rows].copy()
        counts = self._counts[: rows * self._width].reshape(-1, self._width)
        if self.later is None:
            return times, counts
        before, sums = self.later(self, submitted)
        if not len(times):
            return before, sums  # a copy would be a tenth of the memory of a long run
        kept = before.searchsorted(times[0])  # what was noted is the end of the run alone
        return np.concatenate((before[:kept], times)), np.concatenate((sums[:kept], counts))

    def _down(self, type_: str, times: Any) -> Any:
        """Return the units that are down at each time: a step function given by its changes."""
        if not self.down:
            return np.zeros(len(times), dtype=np.int64)
        changes = np.array([time for time, _ in self.down], dtype=np.float64)
        values = np.array([0, *(units.get(type_, 0) for _, units in self.down)], dtype=np.int64)
        return values[np.searchsorted(changes, times, side="right")]
