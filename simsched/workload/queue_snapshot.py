"""The queue of a live cluster at one moment: running jobs with their allocations, and waiting jobs.

`load_queue_snapshot` reads a file of any of three forms, recognised by content: the layout of simsched, the
output of Flux, and that of Slurm.  The *details* of its jobs, JSON Lines of ``{id, R, jobspec}``, may
complete the first two.

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

In ``flux jobs -A --json``, jobs in RUN and CLEANUP run, those in DEPEND, PRIORITY and SCHED wait, and those
that are INACTIVE are ignored.  The document has neither R nor requests.  A running job comes with its ranks,
hosts and number of cores; a waiting job with the numbers of nodes and cores that flux-core read from its
jobspec.  Both numbers together are read as shared nodes (``node=2/slot=4/core``), nodes alone as whole nodes,
and cores alone as cores on any nodes.  The details of the snapshot give R and the request exactly.

In ``squeue --json`` and ``scontrol show job``, jobs in RUNNING, COMPLETING and the like run, those in PENDING
wait, and those that ended are ignored.  A running job holds the cpus and gpus on its nodes until its limit,
and its memory if the queue is that of a site.  The request of a waiting job is the one that a workload has
(see `slurm_json`).  A job waits for resources if Slurm gives Priority, Resources or no reason; a begin time
and dependencies on jobs of the document are taken over.  Other reasons, such as a hold or a limit of its
account, cannot be forecast.

A document of Flux or Slurm without active jobs is a log, not a queue snapshot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from simsched.declare.kinds import ANYTHING, SWITCH, ValueKind, choice, in_turn, listed, or_null
from simsched.declare.table import Declared, fields_of, given_in
from simsched.errors import FormatError, SimschedError, WorkloadError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.machines.slurm.notation import node_names
from simsched.formats.rfc.declared import seconds
from simsched.formats.rfc.dependency import AFTERCORR, JOB_SCHEMES, Dependency
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.text.documents import load_document, name_of
from simsched.formats.text.json_text import load_json, load_json_line
from simsched.workload.dependencies import DEPENDS, refuse_cycles, resolve, slurm_dependencies
from simsched.workload.job import Job, bare, change, job_array
from simsched.workload.load import detect
from simsched.workload.mapping import DEFAULT_TEMPLATE, GPU_TEMPLATE, Flat, MissingValueError, ReadOptions
from simsched.workload.readers.flux_jobs import count_at, job_number, jobs_of, number_at, text_at, user_number
from simsched.workload.readers.gather import hosts_of
from simsched.workload.readers.jobs import TIME, Draft, JobId, Maker, QueuedEntry, workload_faults
from simsched.workload.readers.slurm_json import (
    facts_of,
    positive,
    queued_flat,
    queued_jobs,
    queued_task,
    state_word,
)
from simsched.workload.readers.slurm_values import UNFINISHED
from simsched.workload.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from simsched.workload.mapping import JobMap
    from simsched.workload.readers.slurm_json import QueuedJob

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


# --- Flux ----------------------------------------------------------------------------------

#: RFC 21's states, and the numbers that ``flux job list`` has for them.
STATES = {1: "NEW", 2: "DEPEND", 4: "PRIORITY", 8: "SCHED", 16: "RUN", 32: "CLEANUP", 64: "INACTIVE"}
RUNNING, WAITING = ("RUN", "CLEANUP"), ("NEW", "DEPEND", "PRIORITY", "SCHED")

#: How flux-core describes the dependency of a job in DEPEND → the scheme of RFC 26.
_AFTER = {
    "after-start": "after",
    "after-finish": "afterany",
    "after-success": "afterok",
    "after-failure": "afternotok",
    "after-except": "afterexcept",
}
_SHARED, _WHOLE = "node={nodes}/slot={ppn}/core", "slot={nodes}/node"
_NO_REQUEST = "the request is missing (expected its jobspec, among the details)"
_TIMES = ("t_submit", "t_depend", "t_priority", "t_sched", "t_run", "t_cleanup")


def read_flux_queue(text: str, where: str, reading: ReadOptions, details: Details) -> QueueSnapshot | None:
    """Read the document, one job, or one job per line; None if no job in it is active.

    Raises
    ------
    FormatError, WorkloadError
        For a record that is not a job, a running job without its resources, an id
        that occurs twice.
    """
    active: list[tuple[str, dict[str, Any], str]] = []
    for spot, record in jobs_of(text, where):
        if isinstance(record, SimschedError):
            raise record
        place = f"{where}:{spot}"
        if not isinstance(record, dict) or isinstance(record.get("id"), bool):
            raise WorkloadError("not a job", where=place, expected="an object with an id")
        state = record.get("state")
        state = STATES.get(state, "") if isinstance(state, int) else str(state)
        if state in RUNNING or state in WAITING:
            active.append((place, record, state))
    if not active:
        return None
    time = _time([(record, state) for _, record, state in active], where)
    reader = _FluxReader(time, reading, details, [record for _, record, _ in active])
    for place, record, state in active:
        try:
            reader.read(place, record, state)
        except SimschedError as error:
            raise error.at(place) if place not in (error.where or "") else error from None
    refuse_cycles([found.job for found in reader.waiting])
    return QueueSnapshot(time, tuple(reader.running), tuple(reader.waiting), where, epoch=True)


def _time(active: list[tuple[dict[str, Any], str]], where: str) -> float:
    """Return when the snapshot was taken: the start of a running job plus its run time so far.

    Without a running job it is the last time in the snapshot.
    """
    try:
        runs = [(number_at(r, "t_run"), number_at(r, "runtime")) for r, state in active if state == "RUN"]
        times = [number_at(record, key) for record, _ in active for key in _TIMES]
    except SimschedError as error:
        raise error.at(where) from None
    taken = [began + lasted for began, lasted in runs if began is not None and lasted is not None]
    return max([*taken, *(time for time in times if time is not None)], default=0)


class _FluxReader:
    """Turns the records of one document into jobs."""

    def __init__(
        self, time: float, reading: ReadOptions, details: Details, records: Sequence[dict[str, Any]]
    ) -> None:
        self.time = time
        self.details = details
        self.maps = {text: reading.job_map(text) for text in (_SHARED, _WHOLE, DEFAULT_TEMPLATE)}
        self.jobspecs: dict[Jobspec, Jobspec] = {}
        self.nothing = Jobspec.from_shape(UNKNOWN_SHAPE)
        self.places: dict[int | str, str] = {}
        ids = [(record.get("id", record.get("jobid")), text_at(record, "jobid")) for record in records]
        self.names = {job_number(str(id_)): name or str(id_) for id_, name in ids}
        self.running: list[RunningJob] = []
        self.waiting: list[WaitingJob] = []

    def read(self, place: str, record: dict[str, Any], state: str) -> None:
        """Take one active job into the snapshot."""
        id_ = record.get("id", record.get("jobid"))
        if not isinstance(id_, int | str) or id_ == "":
            raise WorkloadError("not a job", expected="an object with an id")
        number = job_number(str(id_))
        first = self.places.setdefault(number, place)
        if first != place:
            raise WorkloadError(f"job id {id_} occurs twice, first at {first}")
        detailed = self._detailed(id_)
        if state in RUNNING:
            self.running.append(self._running(place, record, state, number, detailed))
        else:
            jobspec = detailed or self._mapped(record)
            reason = jobspec if isinstance(jobspec, str) else _held_up(record, state)
            spec = self.nothing if isinstance(jobspec, str) else jobspec
            found = []
            for text in _dependencies(record) if state == "DEPEND" else []:
                scheme, _, value = text.partition("=")
                known = self.names.get(job_number(value))
                if scheme in _AFTER and known is not None:
                    found.append(Dependency(_AFTER[scheme], known))
                elif reason is None:
                    reason = f"waits for {text}"
            if not found and reason is None and state == "DEPEND":
                reason = "is in state DEPEND, and its dependency is missing"
            job = self._job(record, number, spec, number_at(record, "t_submit") or 0)
            self.waiting.append(WaitingJob(change(job, dependencies=tuple(found)), place, reason))

    # --- running -----------------------------------------------------------------------------

    def _running(
        self, place: str, record: dict[str, Any], state: str, number: int | str, detailed: Jobspec | None
    ) -> RunningJob:
        start = number_at(record, "t_run")
        if not start:  # 0 means unset
            raise WorkloadError(f"is in state {state} and never started", expected="t_run")
        document_at, document = self.details.of(number, "R")
        if "R" in record:
            document_at, document = f"{place}.R", record["R"]
        holds = _holds(record) if document is None else ResourceSet.from_dict(document, document_at)
        # by the document, else by R, else after the duration
        duration = number_at(record, "duration")
        granted = holds.expiration if isinstance(holds, ResourceSet) else None
        known = (number_at(record, "expiration"), granted, start + duration if duration else None)
        end = next((end for end in known if end), NEVER)
        cleaning = state == "CLEANUP"
        if cleaning:
            end = min(end, max(number_at(record, "t_cleanup") or self.time, start))
        if end < start:
            raise WorkloadError(f"expires at {end:.12g}, before its start at {start:.12g}")
        job = self._job(record, number, detailed or self.nothing, number_at(record, "t_submit") or start)
        return RunningJob(job, start, end, holds, place, detailed is not None, cleaning)

    # --- waiting -----------------------------------------------------------------------------

    def _mapped(self, record: dict[str, Any]) -> Jobspec | str:
        """Return the request of a job's counts, or the reason why it has none."""
        nodes, cores = count_at(record, "nnodes"), count_at(record, "ncores")
        cores = cores if cores or nodes else count_at(record, "ntasks")
        if not nodes and not cores:
            return _NO_REQUEST
        jobs: JobMap = self.maps[DEFAULT_TEMPLATE if not nodes else _SHARED if cores else _WHOLE]
        try:
            return jobs.jobspec(Flat(procs=cores, nodes=nodes), text_at(record, "queue"))
        except MissingValueError as error:
            return error.message

    # --- both --------------------------------------------------------------------------------

    def _detailed(self, id_: int | str) -> Jobspec | None:
        where, document = self.details.of(id_, "jobspec")
        if document is None:
            return None
        try:
            jobspec = Jobspec.from_dict(document)
        except SimschedError as error:
            raise error.at(where) from None
        after = jobspec.system.get("preemptible-after")
        request = (
            bare(jobspec) if after is None else bare(jobspec).with_system(**{"preemptible-after": after})
        )
        return self.jobspecs.setdefault(request, request)

    def _job(self, record: dict[str, Any], number: int | str, jobspec: Jobspec, submit: float) -> Job:
        urgency = count_at(record, "urgency")
        return Job(
            id=self.names[number],
            submit=submit,
            jobspec=jobspec,
            duration=number_at(record, "duration") or None,
            user=text_at(record, "username") or user_number(record),
            queue=text_at(record, "queue") or jobspec.queue,
            bank=text_at(record, "bank") or text_at(record, "project"),
            name=text_at(record, "name"),
            urgency=16 if urgency is None else min(urgency, 31),
            priority=count_at(record, "priority"),
        )


def _holds(record: dict[str, Any]) -> Spread:
    """Return the resources of a running job, as far as the document has them."""
    ranks, hosts = text_at(record, "ranks"), text_at(record, "nodelist")
    if ranks is None and hosts is None:
        raise WorkloadError(
            "the resources of the running job are missing", expected="ranks or nodelist, or its R"
        )
    return Spread(
        None if ranks is None else Idset.parse(ranks, where="ranks"),
        None if hosts is None else Hostlist.parse(hosts, where="nodelist"),
        count_at(record, "ncores"),
    )


def _dependencies(record: dict[str, Any]) -> list[str]:
    """Return the dependency of a job in DEPEND as Flux writes it: ``after-success=ƒ2ARxLQf``."""
    found = record.get("dependencies") or []
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise WorkloadError(f"bad dependencies {found!r}", expected="a list of texts")
    return found


def _held_up(record: dict[str, Any], state: str) -> str | None:
    """Return why a job waits for nothing that can be foreseen."""
    if state == "NEW":
        return "is not validated yet"
    if count_at(record, "urgency") == 0:
        return "held: its urgency is 0"
    if state == "PRIORITY":
        return "waits for its priority"
    if state == "SCHED" and count_at(record, "priority") == 0:
        return "held: its priority is 0"
    return None


# --- Slurm ---------------------------------------------------------------------------------

_FORESEEN = frozenset(("", "None", "Priority", "Resources", "BeginTime", "Dependency", "JobArrayTaskLimit"))
"""Reasons of waiting jobs that a forecast takes into account."""
_TAKEN = re.compile("Nodes.required.for.job.are.DOWN,.DRAINED")
"""How scontrol puts Resources where jobs of a partition before it have most of the nodes."""


def read_slurm_queue(text: str, where: str, reading: ReadOptions) -> QueueSnapshot | None:
    """Read the document; None if no job in it is active.

    Raises
    ------
    FormatError, WorkloadError
        For a document that no Slurm writes, and a running job without its nodes or start.
    """
    jobs, updated = queued_jobs(text, where, reading.time_zone)
    active: list[tuple[str, QueuedJob]] = []
    for place, job in jobs:
        if isinstance(job, FormatError):
            raise job.at(f"{where}:{place}")
        if state_word(job.job_state) in UNFINISHED:
            active.append((f"{where}:{place}", job))
    if not active:
        return None
    reader = _SlurmReader(reading, _known(active))
    running, waiting = [], []
    for place, job in active:
        try:
            if state_word(job.job_state) == "PENDING":
                waiting += reader.waiting(place, job)
            else:
                running.append(reader.running(place, job))
        except SimschedError as error:
            raise error.at(place) from None
    refuse_cycles([found.job for found in waiting])
    # The start of a waiting job is what Slurm expects, and may be later than now.
    times = [*(found.start for found in running), *(found.job.submit for found in waiting)]
    time = updated or max(times)
    return QueueSnapshot(time, tuple(running), tuple(waiting), where, epoch=True)


class _SlurmReader:
    """Turns the jobs of one document into jobs of a snapshot."""

    def __init__(self, reading: ReadOptions, ids: set[str]) -> None:
        self.map = reading.job_map(with_gpus=GPU_TEMPLATE)
        self.site = reading.on_site
        self.ids = ids
        self.nothing = Jobspec.from_shape(UNKNOWN_SHAPE)

    def running(self, place: str, job: QueuedJob) -> RunningJob:
        """Return a job that holds resources until its limit."""
        start = positive(job.start_time)
        if start is None:
            raise WorkloadError(f"job {job.job_id} runs and has no start", expected="start_time")
        hosts = hosts_of(job.nodes) if isinstance(job.nodes, str) else None
        if hosts is None:
            raise WorkloadError(f"the nodes of the running job {job.job_id} are missing", expected="nodes")
        found = self._job(job, self.nothing)
        try:
            on = Hostlist.from_hosts(node_names(hosts))  # Slurm's names may have several brackets
        except SimschedError as error:
            raise error.at("nodes") from None
        holds = self._holds(job, on)
        end = NEVER if found.duration is None else start + found.duration
        return RunningJob(found, start, end, holds, place)

    def _holds(self, job: QueuedJob, hosts: Hostlist) -> Spread:
        """Return the cores, gpus and memory of a running job; on a site, its cpus are whole cores."""
        cpus, flat = positive(job.cpus), queued_flat(job)
        kind = self.map.gpu_types.get((flat.gpu_type or "").lower(), "@")
        more = {"gpu" if "@" in kind else kind: flat.gpus or 0}
        if self.site is None:
            cores = cpus
        else:
            cores = None if cpus is None else -(-cpus // self.site.processors_per_core)
            more["memory"] = (flat.memory or 0) * (flat.procs or 0) // 1024
        return Spread(None, hosts, None if cores is None else int(cores), more)

    def waiting(self, place: str, job: QueuedJob) -> list[WaitingJob]:
        """Return a job that waits: for resources, for jobs of the document, or with the reason.

        The tasks of a job array that have not started are one job of the document.
        """
        flat = queued_flat(job)
        why = job.state_reason if isinstance(job.state_reason, str) else ""
        reason = None if why in _FORESEEN or _TAKEN.match(why) else f"waits: {why}"
        jobspec = self.nothing
        try:
            if not flat.procs:
                reason = "the request is missing"
            else:
                jobspec = self.map.jobspec(flat, facts_of(job)["queue"])
        except MissingValueError as error:
            reason = error.message
        found, missing = self._dependencies(job, why)
        made = self._job(job, jobspec, found)
        tasks = (job.array_task_string or "").strip("[]")
        if not tasks or made.array_task is not None:
            return [WaitingJob(made, place, reason or missing)]
        array = positive(job.array_job_id)
        most = positive(job.array_max_tasks)
        text = tasks if most is None else f"{tasks.partition('%')[0]}%{most:.0f}"
        if "." in text:
            raise WorkloadError(
                "the list of tasks of a job array is cut short", expected="scontrol show job --json"
            )
        own = change(made, id=made.id if array is None else f"{array:.0f}")
        return [WaitingJob(task, place, reason or missing) for task in job_array(own, text)]

    def _dependencies(self, job: QueuedJob, why: str) -> tuple[tuple[Dependency, ...], str | None]:
        """Return the dependencies that the document can meet, or why there are none."""
        eligible = positive(job.eligible_time)
        if why == "BeginTime" and eligible is not None:
            return (Dependency("begin-time", f"{eligible:.15g}"),), None
        if why != "Dependency":
            return (), None
        text = job.dependency if isinstance(job.dependency, str) else ""
        given = slurm_dependencies(text.replace("?", ",")) or ()
        task = queued_task(job)
        found = [item for item in given if item.scheme in JOB_SCHEMES and item.value in self.ids]
        found = [
            item for item in found if item.scheme != AFTERCORR or task is not None or job.array_task_string
        ]
        return tuple(found), None if found else f"waits for {text or 'a dependency that is not given'}"

    def _job(self, job: QueuedJob, jobspec: Jobspec, after: tuple[Dependency, ...] = ()) -> Job:
        if job.job_id is None:
            raise WorkloadError("a job without an id", expected="job_id")
        flat, facts, priority = queued_flat(job), facts_of(job), positive(job.priority)
        if facts["duration"] is None and self.site is not None:
            facts["duration"] = self.site.limit(facts["queue"])
        return Job(
            id=str(job.job_id),
            submit=positive(job.submit_time) or 0,
            jobspec=jobspec,
            priority=None if priority is None else int(priority),
            dependencies=after,
            procs=flat.procs,
            nodes=flat.nodes,
            memory=flat.memory,
            **facts,
        )


def _known(active: Sequence[tuple[str, QueuedJob]]) -> set[str]:
    """Return the ids of jobs, arrays and tasks that are active."""
    found = {str(job.job_id) for _, job in active}
    for _, job in active:
        array = positive(job.array_job_id)
        if array is not None:
            task = queued_task(job)
            found |= {f"{array:.0f}", f"{array:.0f}_*" if task is None else f"{task.array}_{task.index}"}
    return found


# --- the layout of simsched -----------------------------------------------------------------

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
        reader = _OwnReader(table.time, Maker(folder), details or Details())
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
class _OwnReader:
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
        return change(made[0], runtime=None)


_OF_JOBS = {*fields_of(QueuedEntry), "hold"}


def with_dependencies(running: Sequence[RunningJob], waiting: Sequence[Draft]) -> tuple[WaitingJob, ...]:
    """Resolve the dependencies of waiting jobs: jobs of the snapshot, by id or name.

    Dependencies of a jobspec on jobs that are not in the snapshot have been met, and are dropped.
    """
    ids = {str(job.id) for job in (*(run.job for run in running), *(job for _, job, _ in waiting))}
    drafts: list[Draft] = [(run.where, change(run.job, jobspec=bare(run.job.jobspec)), ()) for run in running]
    for place, job, said in waiting:
        own = [d for d in job.jobspec.dependencies if d.scheme not in JOB_SCHEMES or d.value in ids]
        if job.jobspec.dependencies:
            job = change(job, jobspec=job.jobspec.with_system(dependencies=[]))  # noqa: PLW2901
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
