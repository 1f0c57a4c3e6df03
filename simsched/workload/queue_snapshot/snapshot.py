"""A queue snapshot as a value: the jobs that run on a cluster at one time, their resources, and the queue.

It is read from a document in the layout of simsched (`load_snapshot`) or from the output of Flux
(`flux_queue`).  The *details* of its jobs, JSON Lines of ``{id, R, jobspec}``, may complete either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from simsched.declare.kinds import ANYTHING, in_turn
from simsched.declare.table import Declared
from simsched.workload.readers.flux_jobs import job_number
from simsched.workload.readers.jobs_yaml import JobId, workload_faults
from simsched.workload.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from simsched.formats.cluster.rset import ResourceSet
    from simsched.formats.rfc.hostlist import Hostlist
    from simsched.formats.rfc.idset import Idset
    from simsched.workload.job import Job

NEVER = float("inf")
UNKNOWN_SHAPE = "slot=1/node"
"""Placeholder of an unknown request; it is never matched."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The ranks of a job without R, and its number of cores in all (None: unknown).

    `more` has the other units that it holds on them, such as gpus, by type.
    """

    ranks: Idset | None
    hosts: Hostlist | None
    cores: int | None
    more: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds resources: its start, its expected end (inf: unlimited), and its resources.

    `has_request`: the request of `job` is its own; otherwise it is unknown.  A job that is
    `cleaning` up has ended, and may have released a part of its resources already.
    """

    job: Job
    start: float
    end: float
    holds: ResourceSet | Spread
    where: str
    has_request: bool = False
    cleaning: bool = False


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A waiting job: it waits for resources or, with a `reason`, for an event that cannot be forecast."""

    job: Job
    where: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """The running and the waiting jobs at `time` (seconds; since the epoch if `epoch`)."""

    time: float
    running: tuple[RunningJob, ...] = ()
    waiting: tuple[WaitingJob, ...] = ()
    source: str = "snapshot"
    epoch: bool = False
    zone: str | None = None


class DetailsEntry(Declared, frozen=True, rename=None):
    """The details of one job.

    id : its id, as in the queue snapshot.
    R : its resources (RFC 20).
    jobspec : its request (RFC 14).
    """

    id: JobId
    R: Annotated[Any, ANYTHING] = None
    jobspec: Annotated[Any, ANYTHING] = None


@dataclass(frozen=True, slots=True)
class Details:
    """R and jobspecs by the number or text of the job's id, each with its place."""

    known: Mapping[int | str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)

    def of(self, id_: object, key: str) -> tuple[str, Any]:
        """Return a job's ``R`` or ``jobspec`` in the details and its place; None if it is not there."""
        where, found = self.known.get(job_number(str(id_)), ("", {}))
        return f"{where}.{key}", found.get(key)


def read_details(path: str | Path | None) -> Details:
    """Read details: JSON Lines of ``{id, R, jobspec}``, or a JSON list of them.

    Raises
    ------
    FormatError, WorkloadError
        For the first fault, with its line; it has the others with it.
    """
    from simsched.formats.text.json_text import load_json, load_json_line

    if path is None:
        return Details()
    text, where = Source.of(path).text(), str(path)
    known: dict[int | str, tuple[str, Mapping[str, Any]]] = {}

    def add(document: Any, place: str) -> None:
        entry = DetailsEntry.given(document, place)
        known[job_number(str(entry["id"]))] = (place, entry)

    def add_line(line: str, at: int) -> None:
        add(load_json_line(line, where, at), f"{where}:{at}")

    with workload_faults():
        if text.lstrip()[:1] == "[":
            in_turn(partial(add, entry, f"{where}[{at}]") for at, entry in enumerate(load_json(text, where)))
        else:
            lines = enumerate(text.splitlines(), 1)
            in_turn(partial(add_line, line, at) for at, line in lines if line.strip())
    return Details(known)


def with_fields(job: Job, **fields: Any) -> Job:
    """Return a job with some fields changed."""
    return msgspec.structs.replace(job, **fields)
