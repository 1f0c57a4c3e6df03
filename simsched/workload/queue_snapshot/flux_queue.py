"""The output of ``flux jobs -A --json`` of a live instance as a queue snapshot.

Jobs in RUN and CLEANUP run, those in DEPEND, PRIORITY and SCHED wait, and those that are
INACTIVE are ignored; a document without active jobs is a log, not a queue snapshot.

The document has neither R nor requests.  A running job comes with its ranks, hosts and number of
cores; a waiting job with the numbers of nodes and cores that flux-core read from its jobspec.  Both
numbers together are read as shared nodes (``node=2/slot=4/core``), nodes alone as whole nodes, and
cores alone as cores on any nodes.  The details of the snapshot give R and the request exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import SimschedError, WorkloadError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.workload.dependencies import refuse_cycles
from simsched.workload.flat_counts import bare
from simsched.workload.job import Job
from simsched.workload.mapping import DEFAULT_TEMPLATE, Flat, MissingValueError
from simsched.workload.queue_snapshot.snapshot import (
    NEVER,
    UNKNOWN_SHAPE,
    QueueSnapshot,
    RunningJob,
    Spread,
    WaitingJob,
    with_fields,
)
from simsched.workload.readers.flux_jobs import count_at, job_number, jobs_of, number_at, text_at, user_number

if TYPE_CHECKING:
    from simsched.workload.mapping import JobMap, ReadOptions
    from simsched.workload.queue_snapshot.snapshot import Details

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
    reader = _Reader(_time([(record, state) for _, record, state in active], where), reading, details)
    for place, record, state in active:
        try:
            reader.read(place, record, state)
        except SimschedError as error:
            raise error.at(place) if place not in (error.where or "") else error from None
    return reader.snapshot(where)


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


class _Reader:
    """Turns the records of one document into jobs."""

    def __init__(self, time: float, reading: ReadOptions, details: Details) -> None:
        self.time = time
        self.details = details
        self.maps = {text: reading.job_map(text) for text in (_SHARED, _WHOLE, DEFAULT_TEMPLATE)}
        self.jobspecs: dict[Jobspec, Jobspec] = {}
        self.nothing = Jobspec.from_shape(UNKNOWN_SHAPE)
        self.places: dict[int | str, str] = {}
        self.names: dict[int | str, str] = {}
        self.running: list[RunningJob] = []
        # waiting jobs with their states, and the dependencies that Flux reports for them
        self.drafts: list[tuple[WaitingJob, str, list[str]]] = []

    def read(self, place: str, record: dict[str, Any], state: str) -> None:
        """Take one active job into the snapshot."""
        id_ = record.get("id", record.get("jobid"))
        if not isinstance(id_, int | str) or id_ == "":
            raise WorkloadError("not a job", expected="an object with an id")
        number = job_number(str(id_))
        first = self.places.setdefault(number, place)
        if first != place:
            raise WorkloadError(f"job id {id_} occurs twice, first at {first}")
        self.names[number] = text_at(record, "jobid") or str(id_)
        detailed = self._detailed(id_)
        if state in RUNNING:
            self.running.append(self._running(place, record, state, number, detailed))
        else:
            jobspec = detailed or self._mapped(record)
            reason = jobspec if isinstance(jobspec, str) else _held_up(record, state)
            spec = self.nothing if isinstance(jobspec, str) else jobspec
            waits = _dependencies(record) if state == "DEPEND" else []
            job = self._job(record, number, spec, number_at(record, "t_submit") or 0)
            self.drafts.append((WaitingJob(job, place, reason), state, waits))

    def snapshot(self, where: str) -> QueueSnapshot:
        """Return the snapshot of the records that were read.

        Raises
        ------
        WorkloadError
            If jobs wait for each other.
        """
        waiting = [self._waiting(*draft) for draft in self.drafts]
        refuse_cycles([found.job for found in waiting])
        return QueueSnapshot(self.time, tuple(self.running), tuple(waiting), where, epoch=True)

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

    def _waiting(self, draft: WaitingJob, state: str, waits: list[str]) -> WaitingJob:
        """Return a waiting job with the dependencies that the snapshot can meet, or why it waits."""
        found, reason = [], draft.reason
        for text in waits:
            scheme, _, value = text.partition("=")
            known = self.names.get(job_number(value))
            if scheme in _AFTER and known is not None:
                found.append(Dependency(_AFTER[scheme], known))
            elif reason is None:
                reason = f"waits for {text}"
        if not found and reason is None and state == "DEPEND":
            reason = "is in state DEPEND, and its dependency is missing"
        return WaitingJob(with_fields(draft.job, dependencies=tuple(found)), draft.where, reason)

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
