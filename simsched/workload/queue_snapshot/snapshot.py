"""A queue snapshot as a value: what runs on a cluster at one time, where, and what waits.

It is read from a document of our own (`queue_document`) or from what Flux prints (`flux_queue`);
beside either may stand the *details* of its jobs, JSON Lines of ``{id, R, jobspec}``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.errors import WorkloadError
from simsched.workload.readers.flux_jobs import job_number
from simsched.workload.readers.jobs_yaml import refuse_unknown
from simsched.workload.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from simsched.formats.cluster.rset import ResourceSet
    from simsched.formats.rfc.hostlist import Hostlist
    from simsched.formats.rfc.idset import Idset
    from simsched.workload.job import Job

NEVER = float("inf")
UNTOLD = "slot=1/node"
"""What stands for a request that nobody told; it is never asked for."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Where a job runs, and on how many cores in all (None: not told), where nothing tells its R."""

    ranks: Idset | None
    hosts: Hostlist | None
    cores: int | None


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds resources: since when, until when it may (inf: for ever), and which.

    `asked` says that the request of `job` is its own; else nobody told it.  A job that is
    `cleaning` up has ended, and may have given part of what it held back already.
    """

    job: Job
    start: float
    end: float
    holds: ResourceSet | Spread
    where: str
    asked: bool = False
    cleaning: bool = False


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits: for resources, or, if there is a `reason`, for something that nobody can foresee."""

    job: Job
    where: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """What runs and what waits at `time` (seconds; since the epoch if so said)."""

    time: float
    running: tuple[RunningJob, ...] = ()
    waiting: tuple[WaitingJob, ...] = ()
    source: str = "snapshot"
    epoch: bool = False


@dataclass(frozen=True, slots=True)
class Details:
    """R and jobspecs by the number or text of the job's id, each with its place."""

    known: Mapping[int | str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)

    def of(self, id_: object, key: str) -> tuple[str, Any]:
        """Return what is told of a job under ``R`` or ``jobspec`` and where; None if nothing is."""
        where, found = self.known.get(job_number(str(id_)), ("", {}))
        return f"{where}.{key}", found.get(key)


def read_details(path: str | Path | None) -> Details:
    """Read details: JSON Lines of ``{id, R, jobspec}``, or a JSON list of them.

    Raises
    ------
    FormatError, WorkloadError
        With the line of what is none.
    """
    from simsched.formats.text.documents import load_json, load_json_line

    if path is None:
        return Details()
    text, where = Source.of(path).text(), str(path)
    if text.lstrip()[:1] == "[":
        entries = [(f"{where}[{at}]", entry) for at, entry in enumerate(load_json(text, where))]
    else:
        lines = enumerate(text.splitlines(), 1)
        entries = [(f"{where}:{at}", load_json_line(line, where, at)) for at, line in lines if line.strip()]
    known: dict[int | str, tuple[str, Mapping[str, Any]]] = {}
    for place, entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), int | str):
            raise WorkloadError("no details of a job", where=place, expected="{id, R, jobspec}")
        refuse_unknown(entry, frozenset(("id", "R", "jobspec")), place)
        known[job_number(str(entry["id"]))] = (place, entry)
    return Details(known)


def with_fields(job: Job, **fields: Any) -> Job:
    """Return a job with some fields changed."""
    return msgspec.structs.replace(job, **fields)
