"""A run as trace events (JSON), which Perfetto (ui.perfetto.dev) and chrome://tracing draw.

Each job is one slice on every node that it used.  Slices of one track must not overlap, so jobs that share
a node are on several tracks of that node.  With jobs as tracks each
job is one slice.  The waiting and running jobs are counters.
The format is Google's "Trace Event Format": times are microseconds.
"""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import InputWarning, RunError
from simsched.report.data.gantt import FreeRows, chart
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
    events = _events(run, window or (-np.inf, np.inf), nodes, tracks or "nodes")
    return _text(events)


def _text(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    begin = '{"displayTimeUnit": "ms", "traceEvents": [\n'
    for event in events:
        yield begin + json.dumps(event, ensure_ascii=False, allow_nan=False)
        begin = ",\n"
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
    facts = _facts(run)
    free: dict[int, FreeRows] = defaultdict(FreeRows)
    busy: dict[int, list[tuple[float, int]]] = defaultdict(list)
    lanes: dict[int, int] = defaultdict(int)
    for job, begin, until, first, beyond in zip(
        rows.tolist(), start.tolist(), end.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        for row in range(first, beyond):
            while busy[row] and busy[row][0][0] <= begin:
                _, left = heappop(busy[row])
                free[row].give([(left, left + 1)])
            lane = free[row].take(1)[0][0]
            heappush(busy[row], (until, lane))
            track = row * LANES + lane
            if lane == lanes[row]:
                lanes[row] += 1
                name = names[row]
                yield _named("thread_name", NODES, track, f"{name} ({lane + 1})" if lane else name)
            times = {"ts": _micro(begin), "dur": _micro(until - begin)}
            yield {"ph": "X", "pid": NODES, "tid": track, **times, **facts[job]}
    timeline = run.timeline[run.timeline["time"].between(*window)]
    columns = (timeline[name].tolist() for name in ("time", "queued_jobs", "running_jobs"))
    for time, queued, running in zip(*columns, strict=True):
        args = {"waiting": queued, "running": running}
        yield {"ph": "C", "pid": JOBS, "name": "jobs", "ts": _micro(time), "args": args}


JOB_TRACK = "jobs"
"""The name of the tracks where they are not nodes."""


def _facts(run: RunTables) -> list[dict[str, Any]]:
    """Return name, category and arguments of the slices of each job; what is not known is left out."""
    columns = {"id": "id", "queue": "queue", "user": "user", "shape": "request", "result": "result"}
    texts = run.jobs[[*columns]].astype(object)
    rows = texts.where(texts.notna(), None).rename(columns=columns).to_dict("records")
    waits = (run.jobs["start"] - run.jobs["submit"]).tolist()
    found = []
    for row, wait in zip(rows, waits, strict=True):
        args = {name: row[name] for name in ("user", "request", "result") if row[name] is not None}
        queue = {} if row["queue"] is None else {"cat": str(row["queue"])}
        more = {"wait": wait} if np.isfinite(wait) else {}
        found.append({"name": str(row["id"]), "args": {**args, **more}, **queue})
    return found


def _named(kind: str, process: int, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": track, "args": {"name": name}}


def _micro(seconds: float) -> float:
    return round(seconds * 1e6, 3)
