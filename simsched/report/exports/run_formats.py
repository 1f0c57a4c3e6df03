"""The formats that a run can be written in for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError, did_you_mean
from simsched.report.data.gantt_view import jobs_of_view, window_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from simsched.report.data.gantt_view import GanttView
    from simsched.report.data.tables import RunTables


@dataclass(frozen=True, slots=True)
class RunFormat:
    """One format: a line for the help, and the function (``module:name``) that yields its text."""

    summary: str
    written_by: str


FORMATS: dict[str, RunFormat] = {
    "swf": RunFormat("Standard Workload Format 2.2 with the simulated waits", "swf_run:swf_lines"),
    "evalys": RunFormat("the _jobs.csv of evalys and Batsim", "evalys_jobs:evalys_lines"),
    "perfetto": RunFormat(
        "trace events (JSON) of the jobs on each node, for Perfetto", "trace_events:trace_text"
    ),
    "flux-fiction": RunFormat(
        "the CSV of flux-fiction, of the jobs that ran", "flux_fiction_run:flux_fiction_lines"
    ),
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
    module, _, name = FORMATS[to].written_by.partition(":")
    if tracks is not None and (to != "perfetto" or tracks not in TRACKS):
        fault = f"unknown tracks {tracks!r}" if to == "perfetto" else f"the format {to} has no tracks"
        raise ConfigError(fault, where="tracks", expected=f"{' or '.join(TRACKS)}, with perfetto")
    write: Callable[..., Iterator[str]] = getattr(import_module(f"simsched.report.exports.{module}"), name)
    kept = _cut(run, view, jobs)
    if to == "perfetto":
        window = None if view is None else window_of(run, view)
        return write(kept, window, view and view.nodes, tracks)
    return write(kept)


def _cut(run: RunTables, view: GanttView | None, jobs: Collection[str]) -> RunTables:
    if jobs:
        known = run.jobs["id"].astype(str)
        unknown = next((job for job in jobs if job not in set(known)), None)
        if unknown is not None:
            raise ConfigError(f"the run has no job {unknown!r}{did_you_mean(unknown, known)}", where=run.name)
        run = run.of_jobs(np.flatnonzero(known.isin(list(jobs))))
    return run if view is None else run.of_jobs(jobs_of_view(run, view))
