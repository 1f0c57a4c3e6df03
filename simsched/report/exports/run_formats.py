"""The formats that a run can be written in for other programs: SWF, flux-fiction, evalys, Perfetto.

evalys counts processors.  The processors of a job are the numbers of its cores: core C of rank R is
R times the cores of a node plus C, and in a machine without cores a node is one processor.  In a run
without allocations jobs are packed, so the number of processors is right and their place is not.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import ConfigError, did_you_mean
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.clock import clock_header
from simsched.formats.rfc.idset import Idset
from simsched.report.data.gantt import chart, units_per_node
from simsched.report.data.gantt_view import jobs_of_view, window_of
from simsched.report.exports.trace_events import trace_text
from simsched.workload.job import Job, Workload
from simsched.workload.save import DEFAULT_START, FLUX_FICTION_HEAD, trace_line, write_swf

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from simsched.report.data.gantt_view import GanttView
    from simsched.report.data.tables import RunTables


def swf_lines(run: RunTables) -> Iterator[str]:
    """Yield the lines of the file.

    A job that never ran has run time -1 and status 5.  Processors are cores, or nodes in a run without
    cores.  Users, queues and names that are not numbers are listed in the header, and so is the date of
    second 0 where it is known.
    """
    jobs = run.jobs[run.jobs["submit"].notna()]
    columns = ["id", "submit", "start", "end", "duration", "cores", "nodes", "procs", "user", "queue",
               "name", "result"]  # fmt: skip
    rows = jobs[columns].astype(object).where(jobs[columns].notna(), None).to_numpy().tolist()
    made = tuple(_job(dict(zip(columns, row, strict=True))) for row in rows)
    workload = Workload(jobs=made, name=run.name, total_records=len(made), header=_header(run))
    policy = run.config.get("queue_policy", "?")
    note = f"simulated by simsched {run.meta.get('simsched', '')} under the queue policy {policy}"
    for line in write_swf(workload, notes=[note, "waits are those of the simulation"]):
        yield line + "\n"


def _header(run: RunTables) -> dict[str, str]:
    totals, clock = run.totals, run.clock
    nodes = {"MaxNodes": str(totals["node"])} if "node" in totals else {}
    found = {
        "Computer": run.cluster_name,
        **nodes,
        "MaxProcs": str(totals.get("core") or totals.get("node") or 0),
    }
    return (
        found if clock is None else found | clock_header(clock.origin, None if clock.assumed else clock.zone)
    )


@lru_cache(maxsize=4096)
def _request(procs: int) -> Jobspec:
    return Jobspec.from_shape(f"slot={max(procs, 1)}/core")


def _job(row: dict[str, Any]) -> Job:
    ran = row["start"] is not None and row["end"] is not None
    procs = int(row["cores"] or row["nodes"] or row["procs"] or 0) or None
    name = row["id"]
    return Job(
        id=int(name) if str(name).isdecimal() else str(name),
        submit=_whole(row["submit"]),
        jobspec=_request(procs or 1),
        runtime=_whole(row["end"] - row["start"]) if ran else -1,
        duration=None if row["duration"] in (None, float("inf")) else _whole(row["duration"]),
        wait=_whole(row["start"] - row["submit"]) if row["start"] is not None else None,
        procs=procs,
        user=row["user"],
        queue=row["queue"],
        name=row["name"],
        status=row["result"] if row["result"] in ("COMPLETED", "TIMEOUT", "FAILED") else "CANCELED",
    )


def _whole(seconds: float) -> int | float:
    return int(seconds) if float(seconds).is_integer() else float(seconds)


def flux_fiction_lines(run: RunTables) -> Iterator[str]:
    """Yield the lines, a head first; only jobs that have ended are written, since each needs a run time.

    Nodes, processors (cores, or nodes in a run without cores) and gpus are those of the allocation.  Times
    are UTC; a run without dates begins on the first day of 2024.
    """
    base = DEFAULT_START if run.clock is None else run.clock.origin
    yield ",".join(FLUX_FICTION_HEAD) + "\n"
    jobs = run.jobs[run.jobs["start"].notna() & run.jobs["end"].notna()]
    columns = ["id", "submit", "start", "end", "duration", "nodes", "cores", "gpus"]
    for name, submit, start, end, limit, nodes, cores, gpus in jobs[columns].itertuples(
        index=False, name=None
    ):
        counts = int(nodes), int(cores or nodes), int(gpus)
        line = trace_line(name, base + submit, end - start, None if limit == inf else limit, *counts)
        yield line + "\n"


EVALYS_COLUMNS = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources",
    "requested_time", "success", "final_state", "starting_time", "execution_time", "finish_time",
    "waiting_time", "turnaround_time", "stretch", "allocated_resources",
)  # fmt: skip
STATES = {"COMPLETED": "COMPLETED_SUCCESSFULLY", "TIMEOUT": "COMPLETED_WALLTIME_REACHED"}
"""Result → Batsim's name of it; jobs with another result have COMPLETED_FAILED."""


def evalys_lines(run: RunTables) -> Iterator[str]:
    """Yield the lines, a head first; only jobs that have ended are written, as Batsim does."""
    yield _line(EVALYS_COLUMNS)
    held = _processors(run)
    jobs = run.jobs[run.jobs["start"].notna() & run.jobs["end"].notna()]
    columns = ["id", "shape", "submit", "duration", "result", "start", "end"]
    for number, *row in jobs[columns].itertuples(name=None):
        name, shape, submit, limit, result, start, end = row
        processors = held.get(number, Idset())
        ran = end - start
        yield _line(
            (
                name, run.name, shape, submit, len(processors),
                -1 if np.isinf(limit) else limit, int(result == "COMPLETED"),
                STATES.get(str(result), "COMPLETED_FAILED"), start, ran, end, start - submit, end - submit,
                (end - submit) / ran if ran > 0 else 1.0, str(processors).replace(",", " "),
            )
        )  # fmt: skip


def _line(values: tuple[object, ...]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(values)
    return out.getvalue()


def _processors(run: RunTables) -> dict[int, Idset]:
    """Return the processors of the last allocation of each job, by its row in ``run.jobs``."""
    drawn = chart(run)
    units = units_per_node(run, run.shards)["core"] if drawn.row == "rank" and run.totals.get("core") else 1
    boxes = drawn.boxes
    rows = boxes["job"].to_numpy(dtype=np.int64)
    last = boxes["start"].to_numpy() == run.jobs["start"].to_numpy()[rows]
    low = np.rint(boxes["low"].to_numpy() * units).astype(np.int64)
    high = np.rint(boxes["high"].to_numpy() * units).astype(np.int64)
    found: dict[int, list[tuple[int, int]]] = {}
    for row, first, beyond in zip(rows[last].tolist(), low[last].tolist(), high[last].tolist(), strict=True):
        found.setdefault(row, []).append((first, beyond - 1))
    return {row: Idset.from_ranges(spans) for row, spans in found.items()}


# --- the formats


@dataclass(frozen=True, slots=True)
class RunFormat:
    """One format: a line for the help, and the function that yields its text."""

    summary: str
    write: Callable[..., Iterator[str]]


FORMATS: dict[str, RunFormat] = {
    "swf": RunFormat("Standard Workload Format 2.2 with the simulated waits", swf_lines),
    "evalys": RunFormat("the _jobs.csv of evalys and Batsim", evalys_lines),
    "perfetto": RunFormat("trace events (JSON) of the jobs on each node, for Perfetto", trace_text),
    "flux-fiction": RunFormat("the CSV of flux-fiction, of the jobs that ran", flux_fiction_lines),
}


TRACKS = ("nodes", "jobs")
"""What the tracks of a trace are."""


def export_text(
    run: RunTables,
    to: str,
    *,
    view: GanttView | None = None,
    jobs: Collection[str] = (),
    tracks: str | None = None,
) -> Iterator[str]:
    """Yield the text of a run in a format of `FORMATS`.

    Parameters
    ----------
    view : write the jobs alone that ran in this part of the time and of the nodes, of these users and queues.
    jobs : write these jobs (ids) alone.
    tracks : of the format ``perfetto``, one of `TRACKS`; by default jobs in a large run, with a note.

    Raises
    ------
    ConfigError
        for an unknown format, job, user, queue or node, and `tracks` of another format.
    RunError
        if the run is too large for the format.
    """
    if to not in FORMATS:
        raise ConfigError(f"unknown format {to!r}{did_you_mean(to, FORMATS)}", expected=", ".join(FORMATS))
    if tracks is not None and (to != "perfetto" or tracks not in TRACKS):
        fault = f"unknown tracks {tracks!r}" if to == "perfetto" else f"the format {to} has no tracks"
        raise ConfigError(fault, where="tracks", expected=f"{' or '.join(TRACKS)}, with perfetto")
    kept = _cut(run, view, jobs)
    if to == "perfetto":
        window = None if view is None else window_of(run, view)
        return trace_text(kept, window, None if view is None else view.nodes, tracks)
    return FORMATS[to].write(kept)


def _cut(run: RunTables, view: GanttView | None, jobs: Collection[str]) -> RunTables:
    if jobs:
        known = run.jobs["id"].astype(str)
        unknown = next((job for job in jobs if job not in set(known)), None)
        if unknown is not None:
            raise ConfigError(f"the run has no job {unknown!r}{did_you_mean(unknown, known)}", where=run.name)
        run = run.of_jobs(np.flatnonzero(known.isin(list(jobs))))
    return run if view is None else run.of_jobs(jobs_of_view(run, view))
