"""A run as trace events (JSON), which Perfetto (ui.perfetto.dev) and chrome://tracing draw.

Each job is one slice on every node that it used.  Slices of one track must not overlap, so jobs that share
a node are on several tracks of that node.  With jobs as tracks each
job is one slice.  The waiting and running jobs are counters.
The format is Google's "Trace Event Format": times are microseconds.
"""

from __future__ import annotations

import json
import warnings
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import InputWarning, RunError
from simsched.report.data.gantt import chart
from simsched.report.data.gantt_view import at_rows, ranks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from simsched.report.data.tables import RunTables

MAX_SLICES = 2_000_000
MOST_ON_NODES = 200_000
"""Most slices for which the tracks are nodes by default."""
NODES, JOBS = 1, 2
"""Process ids of the tracks of nodes (or jobs), and of the counters."""
LANES = 10_000
"""Tracks that one node may have, at most."""


def trace_text(
    run: RunTables, window: tuple[float, float] | None, nodes: str | None, tracks: str | None
) -> Iterator[str]:
    """Yield the text, one event per line, of these nodes within the window (s).

    RunError for a run of more than `MAX_SLICES` slices.
    """
    slices = int(np.maximum(run.jobs["nodes"][run.jobs["start"].notna()].to_numpy(), 1).sum())
    if tracks is None and slices > MOST_ON_NODES:
        tracks = "jobs"
        note = (
            f"the tracks are jobs and not nodes, since {slices:,} slices of jobs on nodes are more than"
            f" {MOST_ON_NODES:,}; --tracks nodes, or fewer jobs by --from, --until, --nodes, --job"
        )
        warnings.warn(InputWarning(run.name, [note]), stacklevel=3)
    return _text(_events(run, window or (-np.inf, np.inf), nodes, tracks or "nodes"))


def _text(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield '{"displayTimeUnit": "ms", "traceEvents": [\n'
    first = True
    for event in events:
        yield ("" if first else ",\n") + json.dumps(event, ensure_ascii=False, allow_nan=False)
        first = False
    yield "\n]}\n"


def _events(
    run: RunTables, window: tuple[float, float], nodes: str | None, kind: str
) -> Iterator[dict[str, Any]]:
    jobs = run.jobs
    names: Sequence[str] = (JOB_TRACK,)
    if kind == "jobs":
        boxes = jobs[["start", "end"]].assign(job=np.arange(len(jobs)), low=0.0, high=1.0)
        boxes = boxes.assign(end=boxes["end"].fillna(run.timeline["time"].max()))
        boxes, label = boxes[boxes["start"].notna()].sort_values("start", kind="stable"), "jobs"
    else:
        drawn = chart(run)
        boxes, label = drawn.boxes, drawn.label
        ranks = np.arange(drawn.rows)
        if nodes is not None:
            ranks = ranks_of(run, drawn, nodes)
            boxes = at_rows(boxes, ranks).sort_values("start", kind="stable")
        hosts = dict(zip(run.nodes["rank"].tolist(), run.nodes["host"].astype(str), strict=True))
        names = [hosts.get(rank, f"{drawn.row} {rank}") for rank in ranks.tolist()]
    boxes = boxes[(boxes["end"] > window[0]) & (boxes["start"] < window[1])]
    rows = boxes["job"].to_numpy(dtype=np.int64)
    start, end = (boxes[name].clip(*window).to_numpy(dtype=np.float64) for name in ("start", "end"))
    low = np.floor(boxes["low"].to_numpy()).astype(np.int64)
    high = np.ceil(boxes["high"].to_numpy()).astype(np.int64)
    slices = int((high - low).sum())
    if slices > MAX_SLICES:
        raise RunError(
            f"{slices:,} slices are too many for a trace",
            where=run.name,
            expected=f"at most {MAX_SLICES:,}: --tracks jobs, or fewer by --from, --until, --nodes, --job",
        )
    yield _named("process_name", NODES, 0, f"{run.name}: {label}")
    yield _named("process_name", JOBS, 0, f"{run.name}: jobs")
    tracks, facts = _Tracks(), _Facts(run)
    for job, begin, until, first, beyond in zip(
        rows.tolist(), start.tolist(), end.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        for row in range(first, beyond):
            track, is_new = tracks.take(row, begin, until)
            if is_new:
                lane = track - row * LANES
                name = names[row]
                yield _named("thread_name", NODES, track, f"{name} ({lane + 1})" if lane else name)
            times = {"ts": _micro(begin), "dur": _micro(until - begin)}
            yield {"ph": "X", "pid": NODES, "tid": track, **times, **facts.of(job)}
    yield from _counters(run, window)


JOB_TRACK = "jobs"
"""The name of the tracks where they are not nodes."""


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


class _Facts:
    """Name, category and arguments of the slices of each job; what is not known is left out."""

    def __init__(self, run: RunTables) -> None:
        names = ["id", "queue", "user", "shape", "result"]
        texts = run.jobs[names].astype(object)
        self._texts = {name: column.where(column.notna(), None).tolist() for name, column in texts.items()}
        self._waits = (run.jobs["start"] - run.jobs["submit"]).tolist()

    def of(self, job: int) -> dict[str, Any]:
        """Return those of the job in a row."""
        known = {name: values[job] for name, values in self._texts.items() if values[job] is not None}
        args = {"user": known.get("user"), "request": known.get("shape"), "result": known.get("result")}
        found: dict[str, Any] = {
            "name": str(known["id"]),
            "args": {k: v for k, v in args.items() if v is not None},
        }
        if np.isfinite(self._waits[job]):
            found["args"]["wait"] = self._waits[job]
        return {**found, "cat": str(known["queue"])} if "queue" in known else found


def _counters(run: RunTables, window: tuple[float, float]) -> Iterator[dict[str, Any]]:
    timeline = run.timeline[run.timeline["time"].between(*window)]
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
