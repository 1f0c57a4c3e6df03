"""A run as trace events (JSON), which Perfetto (ui.perfetto.dev) and chrome://tracing draw.

Each job is one slice on every node that it used.  Slices of one track must not overlap, so jobs that share
a node are on several tracks of that node.  The waiting and running jobs are counters.
The format is Google's "Trace Event Format": times are microseconds.
"""

from __future__ import annotations

import json
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import RunError
from simsched.report.data.gantt import chart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.report.data.tables import RunTables

MAX_SLICES = 2_000_000
NODES, JOBS = 1, 2
"""Process ids of the tracks of nodes, and of the counters."""
LANES = 10_000
"""Tracks that one node may have, at most."""


def trace_text(run: RunTables) -> Iterator[str]:
    """Yield the text, one event per line; RunError for a run of more than `MAX_SLICES` slices."""
    yield '{"displayTimeUnit": "ms", "traceEvents": [\n'
    first = True
    for event in _events(run):
        yield ("" if first else ",\n") + json.dumps(event, ensure_ascii=False, allow_nan=False)
        first = False
    yield "\n]}\n"


def _events(run: RunTables) -> Iterator[dict[str, Any]]:
    drawn = chart(run)
    boxes = drawn.boxes
    low = np.floor(boxes["low"].to_numpy()).astype(np.int64)
    high = np.ceil(boxes["high"].to_numpy()).astype(np.int64)
    slices = int((high - low).sum())
    if slices > MAX_SLICES:
        raise RunError(
            f"{slices:,} slices are too many for a trace", where=run.name, expected=f"at most {MAX_SLICES:,}"
        )
    yield _named("process_name", NODES, 0, f"{run.name}: {drawn.label}")
    yield _named("process_name", JOBS, 0, f"{run.name}: jobs")
    facts = _facts(run)
    hosts = dict(zip(run.nodes["rank"].tolist(), run.nodes["host"].astype(str), strict=True))
    tracks = _Tracks()
    start, end = (boxes[name].to_numpy(dtype=np.float64) for name in ("start", "end"))
    jobs = boxes["job"].to_numpy(dtype=np.int64).tolist()
    for job, begin, until, first, beyond in zip(
        jobs, start.tolist(), end.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        for row in range(first, beyond):
            track, is_new = tracks.take(row, begin, until)
            if is_new:
                name = hosts.get(row, f"{drawn.row} {row}")
                lane = track % LANES
                yield _named("thread_name", NODES, track, f"{name} ({lane + 1})" if lane else name)
            yield {
                "ph": "X",
                "pid": NODES,
                "tid": track,
                "ts": _micro(begin),
                "dur": _micro(until - begin),
                **facts[job],
            }
    yield from _counters(run)


class _Tracks:
    """The tracks of each node: free ones by number, and the ends of the slices on the others."""

    def __init__(self) -> None:
        self._free: dict[int, list[int]] = {}
        self._busy: dict[int, list[tuple[float, int]]] = {}
        self._made: dict[int, int] = {}

    def take(self, row: int, begin: float, until: float) -> tuple[int, bool]:
        """Return a track of a node that is free from `begin` on, and whether it is a new one."""
        free, busy = self._free.setdefault(row, []), self._busy.setdefault(row, [])
        while busy and busy[0][0] <= begin:
            heappush(free, heappop(busy)[1])
        is_new = not free
        lane = self._made.get(row, 0) if is_new else heappop(free)
        self._made[row] = max(self._made.get(row, 0), lane + 1)
        heappush(busy, (until, lane))
        return row * LANES + lane, is_new


def _facts(run: RunTables) -> list[dict[str, Any]]:
    """Return name, category and arguments of the slices of each job."""
    columns = ["id", "user", "queue", "shape", "result", "submit", "start"]
    found = []
    for name, user, queue, shape, result, submit, start in run.jobs[columns].itertuples(
        index=False, name=None
    ):
        wait = float(start - submit)
        args = {"user": str(user), "request": str(shape), "result": str(result)}
        found.append(
            {
                "name": str(name),
                "cat": str(queue),
                "args": {**args, "wait": wait if np.isfinite(wait) else None},
            }
        )
    return found


def _counters(run: RunTables) -> Iterator[dict[str, Any]]:
    timeline = run.timeline
    for time, queued, running in zip(
        timeline["time"].tolist(),
        timeline["queued_jobs"].tolist(),
        timeline["running_jobs"].tolist(),
        strict=True,
    ):
        args = {"waiting": queued, "running": running}
        yield {"ph": "C", "pid": JOBS, "name": "jobs", "ts": _micro(time), "args": args}


def _named(kind: str, process: int, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": track, "args": {"name": name}}


def _micro(seconds: float) -> float:
    return round(seconds * 1e6, 3)
