"""Slurm's accounting and queue as JSON, and the queue as text.

The JSON of ``sacct --json`` and ``squeue --json`` is decoded with msgspec.  Its numbers come in three
generations: plain, null, and ``{"set": …, "infinite": …, "number": …}``; the state is a text or a list of
texts.  Limits are minutes, memory is MB.  The text of ``scontrol show job``, also ``--oneliner``, is read as
the jobs of ``squeue --json``.  Its times are local times without an offset: those of ``--time-zone``, or UTC.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from simsched.errors import FormatError, WorkloadError
from simsched.workload.job import ArrayTask, Workload
from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather, hosts_of
from simsched.workload.readers.sacct import TimeReader, unfinished
from simsched.workload.readers.slurm_values import (
    UNFINISHED,
    clock,
    joules,
    kilobytes,
    requested,
    result_of,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

_KEY = re.compile(r"(?:^|\s)([A-Za-z][\w/:.]*)=")
_TIMES = {
    "submit_time": "SubmitTime", "eligible_time": "EligibleTime", "start_time": "StartTime",
    "end_time": "EndTime",
}  # fmt: skip
_NUMBERS = {
    "job_id": "JobId", "cpus": "NumCPUs", "node_count": "NumNodes", "priority": "Priority",
    "array_job_id": "ArrayJobId", "array_max_tasks": "ArrayTaskThrottle", "het_job_id": "HetJobId",
    "het_job_offset": "HetJobOffset",
}  # fmt: skip
_TEXTS = {
    "tres_alloc_str": "AllocTRES", "tres_per_node": "TresPerNode", "partition": "Partition", "qos": "QOS",
    "account": "Account", "name": "JobName", "features": "Features", "nodes": "NodeList",
    "state_reason": "Reason", "dependency": "Dependency",
}  # fmt: skip
_SIZES = {"memory_per_cpu": "MinMemoryCPU", "memory_per_node": "MinMemoryNode"}
_NONE = frozenset(("", "(null)", "N/A", "None", "Unknown"))


def _records(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (line, values) of each record; of a key that occurs twice, the first counts."""
    line, values = "", dict[str, str]()
    for number, text_line in enumerate(text.split("\n"), 1):
        bare = text_line.strip()
        if not bare or bare.startswith("JobId="):
            if values:
                yield line, values
            line, values = str(number), {}
        if not values and not bare.startswith("JobId="):
            continue
        keys = list(_KEY.finditer(bare))
        ends = [*(key.start() for key in keys[1:]), len(bare)]
        for key, end in zip(keys, ends, strict=False):  # a line may have no key
            values.setdefault(key[1], bare[key.end() : end].strip())
    if values:
        yield line, values


def _job(values: dict[str, str], times: TimeReader, line: str) -> dict[str, Any]:
    """Return the values of a job by the keys of JSON; those that are not set are absent."""
    given = {key: value for key, value in values.items() if value not in _NONE}
    array, _, tasks = given.get("JobId", "").partition("_")
    if tasks.startswith("["):  # the tasks of an array that have not started, such as 14_[1-5%2]
        given = {"ArrayJobId": array, "ArrayTaskId": tasks} | given | {"JobId": array}
    found: dict[str, Any] = {name: times.read(given.get(key, ""), line) for name, key in _TIMES.items()}
    found |= {  # of a range, such as 2-4 nodes, the first
        name: whole_number(given.get(key, "").partition("-")[0]) for name, key in _NUMBERS.items()
    }
    sizes = {name: kilobytes(given.get(key, "")) for name, key in _SIZES.items()}
    found |= {name: None if size is None else size[0] / 1024 for name, size in sizes.items()}
    found |= {name: given[key] for name, key in _TEXTS.items() if key in given}
    limit = clock(given.get("TimeLimit", ""))
    task = given.get("ArrayTaskId", "")
    return found | {
        "job_state": given.get("JobState", ""),
        "time_limit": None if limit is None else limit / 60,
        "tres_req_str": given.get("ReqTRES") or given.get("TRES"),
        "user_name": given.get("UserId", "").partition("(")[0] or None,
        "group_name": given.get("GroupId", "").partition("(")[0] or None,
        "array_task_id": whole_number(task) if task.isdigit() else None,
        "array_task_string": None if task.isdigit() else task or None,
    }


WAITING = "still waiting when the queue was listed"
WRONG_TYPE = "a value that is not of its type"


class _Number(msgspec.Struct, frozen=True, gc=False):
    """A number that may be unset or infinite."""

    set: bool = True
    infinite: bool = False
    number: float = 0


class _Tres(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    name: str | None = ""
    count: int | None = 0


class _TresLists(msgspec.Struct, frozen=True):
    requested: list[_Tres] = []
    allocated: list[_Tres] = []


class _Time(msgspec.Struct, frozen=True, gc=False):
    submission: int | float | _Number | None = None
    eligible: int | float | _Number | None = None
    start: int | float | _Number | None = None
    end: int | float | _Number | None = None
    elapsed: int | float | _Number | None = None
    limit: int | float | _Number | None = None


class _State(msgspec.Struct, frozen=True):
    current: str | list[str] = ""


class _Required(msgspec.Struct, frozen=True, gc=False):
    CPUs: int | float | _Number | None = None
    memory_per_cpu: int | float | _Number | None = None
    memory_per_node: int | float | _Number | None = None


class _Association(msgspec.Struct, frozen=True, gc=False):
    user: str | None = None
    account: str | None = None
    partition: str | None = None


class _Het(msgspec.Struct, frozen=True, gc=False):
    """The heterogeneous job that a record is a part of; the id is 0 for other jobs."""

    job_id: int | _Number | None = None
    job_offset: int | _Number | None = None


class _ArrayRunning(msgspec.Struct, frozen=True, gc=False):
    tasks: int | _Number | None = None


class _ArrayMost(msgspec.Struct, frozen=True, gc=False):
    running: _ArrayRunning = _ArrayRunning()


class _ArrayLimits(msgspec.Struct, frozen=True, gc=False):
    max: _ArrayMost = _ArrayMost()


class _Array(msgspec.Struct, frozen=True, gc=False):
    """The job array that a record is a task of; the id is 0 for other jobs."""

    job_id: int | _Number | None = None
    limits: _ArrayLimits = _ArrayLimits()
    task_id: int | _Number | None = None


class _Job(msgspec.Struct, frozen=True):
    job_id: int | None = None
    time: _Time = _Time()
    state: _State | str | list[str] = ""
    tres: _TresLists = _TresLists()
    required: _Required = _Required()
    allocation_nodes: int | None = None
    association: _Association = _Association()
    account: str | None = None
    user: str | None = None
    group: str | None = None
    qos: str | None = None
    partition: str | None = None
    name: str | None = None
    constraints: str | None = None
    nodes: Any = None
    het: _Het | None = None
    array: _Array | None = None


class QueuedJob(msgspec.Struct, frozen=True):
    """One job of ``squeue --json``; times are seconds, the limit is minutes, memory is MB."""

    job_id: int | None = None
    job_state: str | list[str] = ""
    submit_time: int | float | _Number | None = None
    eligible_time: int | float | _Number | None = None
    start_time: int | float | _Number | None = None
    end_time: int | float | _Number | None = None
    time_limit: int | float | _Number | None = None
    cpus: int | float | _Number | None = None
    node_count: int | float | _Number | None = None
    memory_per_cpu: int | float | _Number | None = None
    memory_per_node: int | float | _Number | None = None
    tres_req_str: str | None = None
    tres_alloc_str: str | None = None
    tres_per_node: str | None = None
    partition: str | None = None
    user_name: str | None = None
    group_name: str | None = None
    qos: str | None = None
    account: str | None = None
    name: str | None = None
    features: str | None = None
    nodes: Any = None
    state_reason: Any = None
    dependency: Any = None
    priority: int | float | _Number | None = None
    het_job_id: int | _Number | None = None
    het_job_offset: int | _Number | None = None
    array_job_id: int | _Number | None = None
    array_task_id: int | _Number | None = None
    array_task_string: str | None = None
    array_max_tasks: int | _Number | None = None


class _Document(msgspec.Struct, Generic[T], frozen=True):
    """The document of ``sacct --json`` or ``squeue --json``."""

    jobs: list[T]


class _Updated(msgspec.Struct, frozen=True):
    """The part of the document that states when its jobs last changed."""

    last_update: int | float | _Number | None = None


def read_sacct_json(text: str, reading: ReadOptions | None = None) -> Workload:
    """Read the document of ``sacct --json``.

    Raises
    ------
    FormatError
        When it is not JSON, or every job has a value of a type that no Slurm writes; such jobs are left
        out and counted.
    WorkloadError
        When no job has an id, or at the first ignored record under `strict`.
    """
    reading = reading or ReadOptions(source="sacct.json")
    jobs = _decoded(text, reading.source, _Job)
    if jobs and all(isinstance(job, _Job) and job.job_id is None for _, job in jobs):
        raise WorkloadError(
            "no job has a job_id", where=reading.source, expected="the document of sacct --json"
        )
    gather = Gather(reading, "sacct-json")
    for where, job in gather.good(jobs, WRONG_TYPE):
        time, of = job.time, job.association
        array, het = job.array or _Array(), job.het or _Het()
        state = job.state.current if isinstance(job.state, _State) else job.state
        found = QueuedJob(
            job.job_id, state, time.submission, time.eligible, time.start, time.end, time.limit,
            partition=job.partition or of.partition, user_name=of.user or job.user, group_name=job.group,
            qos=job.qos, account=job.account or of.account, name=job.name, features=job.constraints,
            nodes=job.nodes, het_job_id=het.job_id, het_job_offset=het.job_offset,
            array_job_id=array.job_id, array_task_id=array.task_id,
            array_max_tasks=array.limits.max.running.tasks,
        )  # fmt: skip
        used = [str(part.count) for part in job.tres.allocated if part.type == "energy"]
        flat = requested(
            req_cpus=_digits(job.required.CPUs),
            alloc_nodes=_digits(job.allocation_nodes),
            req_tres=_tres(job.tres.requested),
            alloc_tres=_tres([part for part in job.tres.allocated if part.type != "mem"]),
            req_mem=_memory(job.required),
        )
        _add(gather, where, found, flat, _value(time.elapsed), joules(used[-1]) if used else None)
    return gather.finish()


def _decoded(text: str, source: str, job: type[Any]) -> list[tuple[str, Any]]:
    """Return (place, job) of each job of a document; in place of one with a value of a wrong type, the error.

    Raises
    ------
    FormatError
        For a text that is not such a document, and where no job of it can be read.
    """
    from simsched.formats.text.json_text import decode_json_bulk

    document: Any = _Document
    found: list[Any] = []
    try:
        found += decode_json_bulk(text, source, kind=document[job]).jobs
    except FormatError as error:
        with suppress(FormatError):
            for one in decode_json_bulk(text, source, kind=document[msgspec.Raw]).jobs:
                try:
                    found.append(decode_json_bulk(bytes(one), source, kind=job))
                except FormatError as fault:
                    found.append(fault)
        if all(isinstance(one, FormatError) for one in found):
            raise error from None
    return [(f" jobs[{index}]", one) for index, one in enumerate(found)]


def _add(
    gather: Gather, where: str, job: QueuedJob, flat: Flat, run: float | None, energy: int | None = None
) -> None:
    """Add a job that has ended; ignore any other, with the reason."""
    state, start, submit = state_word(job.job_state), positive(job.start_time), positive(job.submit_time)
    reason = unfinished(state, start, run)
    if reason is None and job.job_id is None:
        reason = why.NO_ID
    if reason is not None:
        in_queue = gather.kind == "squeue-json" and state == "PENDING"
        gather.skip(where, WAITING if in_queue else reason, f"job {job.job_id}", job.job_id)
        return
    facts = facts_of(job)
    task = facts["array_task"]
    if task is not None:
        gather.has_tasks = True
        if task.limit is not None:
            gather.array_limits[task.array] = task.limit
    leader = positive(job.het_job_id)
    gather.take(
        where,
        flat,
        part=None if leader is None else (f"{leader:.0f}", int(_value(job.het_job_offset) or 0)),
        eligible=positive(job.eligible_time),
        features=job.features or "",
        id=job.job_id or 0,
        submit=submit,
        start=start,
        runtime=run,
        status=result_of(state, gather.unknown_states),
        energy=energy,
        nodelist=hosts_of(job.nodes) if isinstance(job.nodes, str) else None,
        **facts,
    )


def facts_of(job: QueuedJob) -> dict[str, Any]:
    """Return the fields of a `Job` that are in a record as they are; the queue is the first partition."""
    limit = positive(job.time_limit)
    return {
        "duration": None if limit is None else limit * 60,
        "user": job.user_name or None,
        "group": job.group_name or None,
        "queue": job.partition.split(",")[0] if job.partition else None,
        "bank": job.account or None,
        "name": job.name or None,
        "partition": job.partition or None,
        "qos": job.qos or None,
        "array_task": queued_task(job),
    }


def queued_task(job: QueuedJob) -> ArrayTask | None:
    """Return the job as a task of a job array; None for a job of none."""
    id_, number, limit = positive(job.array_job_id), _value(job.array_task_id), positive(job.array_max_tasks)
    if id_ is None or number is None or number < 0:
        return None
    return ArrayTask(f"{id_:.0f}", int(number), None if limit is None else int(limit))


def queued_jobs(
    text: str, source: str, zone: str | None = None
) -> tuple[list[tuple[str, QueuedJob | FormatError]], float | None]:
    """Return (place, job) of each job of a queue, JSON or the text of scontrol, and the time of the queue.

    In place of a job with a value of a wrong type, there is the error.  A text shows the time only if a job
    runs.  Raises `FormatError` for other texts.
    """
    from simsched.formats.machines.recognition import SCONTROL_JOBS, machine_parts
    from simsched.formats.text.json_text import decode_json_bulk

    if text.lstrip("\ufeff \t\r\n")[:1] == "{":
        jobs = _decoded(text, source, QueuedJob)
        return jobs, positive(decode_json_bulk(text, source, kind=_Updated).last_update)
    times, found, now = TimeReader(source, zone), list[tuple[str, QueuedJob | FormatError]](), 0.0
    for line, values in _records(machine_parts(text).get(SCONTROL_JOBS, "")):
        job = QueuedJob(**_job(values, times, line))
        found.append((line, job))
        ran, start = clock(values.get("RunTime", "")), positive(job.start_time)
        if job.job_state == "RUNNING" and ran is not None and start is not None:
            now = max(now, start + ran)
    if not found:
        raise FormatError("there is no job", where=source, expected="the output of scontrol show job")
    return found, now or None


def read_squeue_json(text: str, reading: ReadOptions | None = None) -> Workload:
    """Read the document of ``squeue --json`` or ``scontrol show job --json``, or the text of the latter.

    It shows the queue, with the jobs that ended in the last minutes.  These are the workload; jobs
    that wait or run are left out and counted.

    Raises
    ------
    FormatError
        When it is not JSON, or every job has a value of a type that no Slurm writes; such jobs are left
        out and counted.
    WorkloadError
        At the first ignored record under `strict`.
    """
    reading = reading or ReadOptions(source="squeue.json")
    gather = Gather(reading, "squeue-json")
    active = 0
    jobs, _ = queued_jobs(text, reading.source, reading.time_zone)
    for place, job in gather.good(jobs, WRONG_TYPE):
        start, end = positive(job.start_time), positive(job.end_time)
        active += state_word(job.job_state) in UNFINISHED
        _add(gather, place, job, queued_flat(job), None if start is None or end is None else end - start)
    if active:
        gather.notes.append(
            f"{active:,} jobs of this queue wait or run; a workload is made of jobs that ended (sacct --json)"
        )
    return gather.finish()


def queued_flat(job: QueuedJob) -> Flat:
    """Return the requested value, else the allocated one."""
    return requested(
        alloc_cpus=_digits(job.cpus),
        alloc_nodes=_digits(job.node_count),
        req_tres=job.tres_req_str or "",
        alloc_tres=job.tres_alloc_str or "",
        req_mem=_memory(job),
        req_gres=job.tres_per_node or "",
    )


def _memory(job: QueuedJob | _Required) -> str:
    """Return the requested memory as sacct prints it; empty if the job's record does not state one."""
    per_cpu, per_node = positive(job.memory_per_cpu), positive(job.memory_per_node)
    return f"{per_cpu * 1024:.0f}Kc" if per_cpu else f"{per_node * 1024:.0f}Kn" if per_node else ""


def _tres(parts: list[_Tres]) -> str:
    """Return a list of TRES as sacct prints it."""
    names = [f"gres/{part.name}" if part.type == "gres" else part.type for part in parts]
    counts = [f"{part.count or 0}{'M' if part.type == 'mem' else ''}" for part in parts]
    return ",".join(map("{}={}".format, names, counts))


def _digits(number: float | _Number | None) -> str:
    found = positive(number)
    return "" if found is None else f"{found:.0f}"


def state_word(current: str | list[str]) -> str:
    """Return the base state of a text or list of states."""
    word = (current[0] if current else "") if isinstance(current, list) else current
    return word.split(" ", 1)[0].upper()


def _value(number: float | _Number | None) -> float | None:
    """Return the number; None where it is unset or infinite."""
    if isinstance(number, _Number):
        number = number.number if number.set and not number.infinite else None
    return int(number) if number is not None and float(number).is_integer() else number


def positive(number: float | _Number | None) -> float | None:
    """Return a number above 0; None where it is unset, infinite or 0."""
    found = _value(number)
    return found if found is not None and found > 0 else None
