"""`load_queue_snapshot`: a queue snapshot from a file of any of its formats, recognised by content.

The layout of simsched is JSON or YAML, with the keys of `jobs.yaml` and of the public parts of a checkpoint::

    kind: simsched queue
    time: 3600                    # seconds on the clock of all times here
    running:
      - {id: 7, start: 600, expected_end: 7800, R: {version: 1, execution: {…}}}
    waiting:
      - {id: 8, submit: 900, duration: 1h, queue: batch, shape: slot=4/node}

The expected end of a running job is ``expected_end``, else ``start`` + ``duration``, else that of its R
or its jobspec; null is never.  It may have a request like a waiting job; the request specifies the
resources that R does not list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from simsched.declare.kinds import ANYTHING, SWITCH, ValueKind, choice, in_turn, listed, or_null
from simsched.declare.table import Declared, fields_of, given_in
from simsched.errors import SimschedError, WorkloadError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.rfc.declared import seconds
from simsched.formats.rfc.dependency import JOB_SCHEMES
from simsched.formats.text.documents import name_of
from simsched.workload.dependencies import DEPENDS, resolve
from simsched.workload.flat_counts import bare
from simsched.workload.load import detect
from simsched.workload.mapping import ReadOptions
from simsched.workload.queue_snapshot.flux_queue import read_flux_queue
from simsched.workload.queue_snapshot.slurm_queue import read_slurm_queue
from simsched.workload.queue_snapshot.snapshot import (
    NEVER,
    UNKNOWN_SHAPE,
    Details,
    QueueSnapshot,
    RunningJob,
    WaitingJob,
    read_details,
    with_fields,
)
from simsched.workload.readers.jobs_yaml import TIME, JobId, Maker, QueuedEntry, workload_faults
from simsched.workload.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from simsched.workload.job import Job
    from simsched.workload.readers.jobs_yaml import Draft


KIND = "simsched queue"

_REQUEST = ("shape", "jobspec", "file")


class SnapshotEntry(QueuedEntry, frozen=True, rename=None, kw_only=True):
    """A job of a queue.

    id : a whole number or a text.
    """

    nullable = True

    id: JobId


class RunningEntry(SnapshotEntry, frozen=True, rename=None, kw_only=True):
    """A running job, whose request may be unknown.

    start : the time of its start.
    duration : the requested limit; null: it has no end.
    expected_end : when it is expected to end; null: never.
    R : its resources (RFC 20), unless the details have them.
    """

    start: Annotated[float, TIME]
    duration: Annotated[float, or_null(seconds(), NEVER)] = NEVER
    expected_end: Annotated[float, or_null(seconds(), NEVER)] = NEVER
    R: Annotated[Any, ANYTHING] = None


class WaitingEntry(SnapshotEntry, frozen=True, rename=None, kw_only=True):
    """A waiting job.

    hold : whether the job is held.
    depends : ``afterok:NAME`` (a name or an id in this document), or a list of such, or RFC 26 objects.
    place : its place in the queue, which is not read.
    """

    hold: Annotated[bool, or_null(SWITCH, False)] = False
    depends: Annotated[Any, DEPENDS] = None
    place: Annotated[Any, ANYTHING] = None


def _entries(table: type[SnapshotEntry]) -> ValueKind:
    return or_null(listed(given_in(table), "a list of jobs", one_alone=False), ())


class SnapshotTable(Declared, frozen=True, rename=None, kw_only=True):
    """A queue snapshot in the layout of simsched.

    kind : what the document is.
    time : the time of the snapshot, on the clock of all times of the document.
    running : the running jobs.
    waiting : the waiting jobs, in any order.
    description : a text for readers.
    """

    join = ": "

    kind: Annotated[str, choice(KIND)]
    time: Annotated[float, TIME]
    running: Annotated[tuple[dict[str, Any], ...], _entries(RunningEntry)] = ()
    waiting: Annotated[tuple[dict[str, Any], ...], _entries(WaitingEntry)] = ()
    description: Annotated[Any, ANYTHING] = None


_OURS = re.compile(
    r'\s*\{(?:\s*"?(?:kind|time|running|waiting)"?\s*:|[^\0]*"kind"\s*:\s*"simsched queue")'
    r"|(?:[^\n{[]*\n)*?(?:kind|time|running|waiting):"
)
"""How a snapshot begins, in JSON and in YAML."""


def looks_ours(head: str) -> bool:
    r"""Whether a text that begins like this is a snapshot of our own layout.

    >>> looks_ours("kind: simsched queue\ntime: 0"), looks_ours("- shape: slot=1/core")
    (True, False)
    """
    return _OURS.match(head) is not None


def read_queue(
    text: str, where: str, source: Source | None = None, details: Details | None = None
) -> QueueSnapshot:
    """Read a snapshot of our own layout; errors as `load_queue_snapshot`."""
    from simsched.formats.text.documents import load_document

    document = load_document(text, where)
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind != KIND:
        if kind == "simsched checkpoint":
            raise WorkloadError(
                "a checkpoint is not a queue snapshot",
                where=where,
                expected="CLUSTER WORKLOAD --resume FILE",
            )
        raise WorkloadError(f"the document has the kind {kind!r}", where=where, expected=f"kind: {KIND}")
    with workload_faults():
        table = SnapshotTable.read(document, where)
        folder = None if source is None or source.content is not None else source.path.parent
        reader = _Reader(table.time, Maker(folder), details or Details())
        running: list[RunningJob] = []
        waiting: list[Draft] = []

        def read(place: str, entry: dict[str, Any]) -> None:
            if "start" in entry:
                running.append(reader.running(place, entry))
            else:
                waiting.append(reader.waiting(place, entry))

        listed = {"running": table.running, "waiting": table.waiting}
        in_turn(
            partial(read, f"{where}: {key}[{at}]", entry)
            for key, entries in listed.items()
            for at, entry in enumerate(entries)
        )
        return QueueSnapshot(table.time, tuple(running), with_dependencies(running, waiting), where)


@dataclass(slots=True)
class _Reader:
    """Reads the entries of one snapshot; equal requests share one jobspec."""

    time: float
    maker: Maker
    details: Details

    def running(self, place: str, entry: dict[str, Any]) -> RunningJob:
        start = entry["start"]
        if start > self.time:
            raise WorkloadError(f"starts at {start:.12g}, after the snapshot's {self.time:.12g}", where=place)
        where, granted = (f"{place}.R", entry["R"]) if "R" in entry else self.details.of(entry["id"], "R")
        if granted is None:
            raise WorkloadError(
                "the resources of the running job are missing", where=place, expected="R (RFC 20)"
            )
        holds = ResourceSet.from_dict(granted, where)
        has_request = self._has_request(entry)
        job = self._job(
            {**entry, "submit": entry.get("submit", start)}
            | ({} if has_request else {"shape": UNKNOWN_SHAPE}),
            place,
        )
        end = holds.expiration or (job.duration and start + job.duration) or NEVER
        end = entry.get("expected_end", start + entry["duration"] if "duration" in entry else end)
        if end < start:
            raise WorkloadError(f"ends at {end:.12g}, before its start at {start:.12g}", where=place)
        return RunningJob(job, start, end, holds, place, has_request)

    def waiting(self, place: str, entry: dict[str, Any]) -> Draft:
        if not self._has_request(entry):
            raise WorkloadError("the request is missing", where=place, expected="one of shape, jobspec, file")
        job = self._job(entry, place)
        if job.submit > self.time:
            raise WorkloadError(
                f"submitted at {job.submit:.12g}, after the snapshot's {self.time:.12g}", where=place
            )
        return place, job, entry.get("depends", ())

    def _has_request(self, entry: dict[str, Any]) -> bool:
        """Whether the request is known; put it into the entry if the details have it."""
        if entry.keys().isdisjoint(_REQUEST):
            where, jobspec = self.details.of(entry["id"], "jobspec")
            if jobspec is None:
                return False
            from simsched.formats.jobspec.jobspec import Jobspec

            try:
                Jobspec.from_dict(jobspec)  # so that a fault in it has its own place
            except SimschedError as error:
                raise error.at(where) from None
            entry["jobspec"] = jobspec
        return True

    def _job(self, entry: dict[str, Any], place: str) -> Job:
        """Make the job by the rules of ``jobs.yaml``; a job without a limit may run for ever."""
        said = {key: value for key, value in entry.items() if key in _OF_JOBS}
        if "jobspec" not in said and "file" not in said:
            said.setdefault("duration", NEVER)
        made = [*self.maker.jobs({"runtime": 0, **said}, place)]
        if len(made) != 1:
            raise WorkloadError("a job array", where=place, expected="each of its tasks as an entry")
        return with_fields(made[0], runtime=None)


_OF_JOBS = {*fields_of(QueuedEntry), "hold"}


def with_dependencies(running: Sequence[RunningJob], waiting: Sequence[Draft]) -> tuple[WaitingJob, ...]:
    """Resolve the dependencies of waiting jobs: jobs of the snapshot, by id or name.

    Dependencies of a jobspec on jobs that are not in the snapshot have been met, and are dropped.
    """
    ids = {str(job.id) for job in (*(run.job for run in running), *(job for _, job, _ in waiting))}
    drafts: list[Draft] = [
        (run.where, with_fields(run.job, jobspec=bare(run.job.jobspec)), ()) for run in running
    ]
    for place, job, said in waiting:
        own = [d for d in job.jobspec.dependencies if d.scheme not in JOB_SCHEMES or d.value in ids]
        if job.jobspec.dependencies:
            job = with_fields(job, jobspec=job.jobspec.with_system(dependencies=[]))  # noqa: PLW2901
        drafts.append((place, job, (*said, *own)))
    made = resolve(drafts)[len(running) :]
    return tuple(WaitingJob(job, place) for job, (place, _, _) in zip(made, waiting, strict=True))


def load_queue_snapshot(
    path: str | Path | Source, reading: ReadOptions | None = None, details: str | Path | None = None
) -> QueueSnapshot | None:
    """Read a snapshot; None if the file is something else, such as a workload.

    `reading` are the maps by which flat counts become requests.

    Raises
    ------
    FormatError, WorkloadError
        If the file begins like a queue snapshot and is not a valid one; the error has the place.
    """
    source = path if isinstance(path, Source) else Source.of(path)
    given = name_of(source.path)
    reading = reading or ReadOptions()
    head = source.head()
    if looks_ours(head):
        return read_queue(source.text(), given, source, read_details(details))
    kind = detect(head, source.name)
    if kind == "squeue-json":
        return read_slurm_queue(source.text(), given, reading)
    if kind == "flux":
        return read_flux_queue(source.text(), given, reading, read_details(details))
    return None
