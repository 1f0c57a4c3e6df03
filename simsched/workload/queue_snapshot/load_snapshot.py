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
from typing import TYPE_CHECKING, Any

from simsched.errors import SimschedError, WorkloadError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.rfc.dependency import JOB_SCHEMES
from simsched.formats.text.documents import name_of
from simsched.workload.dependencies import resolve
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
from simsched.workload.readers.jobs_yaml import Maker, read_seconds, refuse_unknown
from simsched.workload.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from simsched.workload.job import Job


KIND = "simsched queue"

_REQUEST = ("shape", "jobspec", "file")
_JOB = ("id", "submit", "duration", "name", "user", "group", "bank", "queue", "urgency", "priority",
        "constraint", *_REQUEST)  # fmt: skip
_TOP = frozenset(("kind", "time", "running", "waiting", "description"))
_RUNNING = frozenset((*_JOB, "start", "expected_end", "R"))
_WAITING = frozenset((*_JOB, "hold", "depends", "place"))
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
    refuse_unknown(document, _TOP, where)
    time = read_seconds(document.get("time"), f"{where}.time")
    if time is None:
        raise WorkloadError("the time of the snapshot is missing", where=where, expected="time: seconds")
    folder = None if source is None or source.content is not None else source.path.parent
    reader = _Reader(time, Maker(folder), details or Details())
    running = tuple(reader.running(place, entry) for place, entry in _entries(document, "running", where))
    waiting = [reader.waiting(place, entry) for place, entry in _entries(document, "waiting", where)]
    return QueueSnapshot(time, running, with_dependencies(running, waiting), where)


def _entries(document: Mapping[str, Any], key: str, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    found = document.get(key) or []
    if not isinstance(found, list):
        raise WorkloadError(f"{key} is not a list", where=where, expected="a list of jobs")
    for at, entry in enumerate(found):
        place = f"{where}: {key}[{at}]"
        if not isinstance(entry, dict) or "id" not in entry:
            raise WorkloadError("not a job", where=place, expected="a mapping with an id")
        yield place, entry


@dataclass(slots=True)
class _Reader:
    """Reads the entries of one snapshot; equal requests share one jobspec."""

    time: float
    maker: Maker
    details: Details

    def running(self, place: str, entry: dict[str, Any]) -> RunningJob:
        refuse_unknown(entry, _RUNNING, place)
        start = read_seconds(entry.get("start"), f"{place}.start")
        if start is None:
            raise WorkloadError(
                "the start of the running job is missing", where=place, expected="start: seconds"
            )
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
        if "expected_end" in entry:
            given = read_seconds(entry["expected_end"], f"{place}.expected_end")
            end = NEVER if given is None else given
        elif "duration" in entry:
            given = read_seconds(entry["duration"], f"{place}.duration", endless=True)
            end = NEVER if given is None else start + given
        if end < start:
            raise WorkloadError(f"ends at {end:.12g}, before its start at {start:.12g}", where=place)
        return RunningJob(job, start, end, holds, place, has_request)

    def waiting(self, place: str, entry: dict[str, Any]) -> tuple[str, Job, Any]:
        refuse_unknown(entry, _WAITING, place)
        if not self._has_request(entry):
            raise WorkloadError("the request is missing", where=place, expected="one of shape, jobspec, file")
        job = self._job(entry, place)
        if job.submit > self.time:
            raise WorkloadError(
                f"submitted at {job.submit:.12g}, after the snapshot's {self.time:.12g}", where=place
            )
        return place, job, entry.get("depends")

    def _has_request(self, entry: dict[str, Any]) -> bool:
        """Whether the request is known; put it into the entry if the details have it."""
        if not any(entry.get(key) is not None for key in _REQUEST):
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
        said = {key: value for key, value in entry.items() if key in _KEPT and value is not None}
        if "duration" not in said and "jobspec" not in said and "file" not in said:
            said["duration"] = "inf"
        made = [*self.maker.jobs({"runtime": 0, **said}, {}, place)]
        if len(made) != 1:
            raise WorkloadError("a job array", where=place, expected="each of its tasks as an entry")
        return with_fields(made[0], runtime=None)


_KEPT = frozenset((*_JOB, "hold"))


def with_dependencies(
    running: tuple[RunningJob, ...], waiting: list[tuple[str, Job, Any]]
) -> tuple[WaitingJob, ...]:
    """Resolve the dependencies of waiting jobs: jobs of the snapshot, by id or name.

    Dependencies of a jobspec on jobs that are not in the snapshot have been met, and are dropped.
    """
    ids = {str(job.id) for job in (*(run.job for run in running), *(job for _, job, _ in waiting))}
    drafts: list[tuple[str, Job, Any]] = [
        (run.where, with_fields(run.job, jobspec=bare(run.job.jobspec)), None) for run in running
    ]
    for place, job, said in waiting:
        own = [d.to_json() for d in job.jobspec.dependencies if d.scheme not in JOB_SCHEMES or d.value in ids]
        if own:
            said = [*(said if isinstance(said, list) else [said] if said is not None else []), *own]  # noqa: PLW2901
        if job.jobspec.dependencies:
            job = with_fields(job, jobspec=job.jobspec.with_system(dependencies=[]))  # noqa: PLW2901
        drafts.append((place, job, said))
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
