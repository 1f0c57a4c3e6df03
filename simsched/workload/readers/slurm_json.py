"""Slurm's accounting and queue as JSON, ``sacct --json`` and ``squeue --json``, decoded with msgspec.

Numbers come in three generations: plain, null, and ``{"set": …, "infinite": …, "number": …}``;
the state is a text or a list of texts.  Limits are minutes, memory is MB.

The text of ``scontrol show job``, also ``--oneliner``, is read as the jobs of ``squeue --json``.  Its times
are local times without an offset: those of ``--time-zone``, or UTC.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.errors import FormatError, WorkloadError
from simsched.workload.job import ArrayTask
from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers.gather import Gather, LogRecord, eligible_at, hosts_of
from simsched.workload.readers.sacct import TimeReader, unfinished
from simsched.workload.readers.slurm_values import (
    UNFINISHED,
    RequestedTres,
    clock,
    joules,
    kilobytes,
    result_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.workload.job import Workload


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
_NONE = frozenset(("", "(null)", "N/A", "None", "Unknown"))


def jobs_of_text(
    text: str, source: str, zone: str | None = None
) -> tuple[list[tuple[str, dict[str, Any]]], float | None]:
    """Return (line, values of a `QueuedJob`) of each record, and the time of the output if a job runs.

    Raises
    ------
    FormatError
        for a text without such a record.
    """
    times = TimeReader(source, zone)
    found: list[tuple[str, dict[str, Any]]] = []
    now: float | None = None
    for line, values in _records(text):
        job = _job(values, times, line)
        found.append((line, job))
        ran, start = clock(values.get("RunTime", "")), job["start_time"]
        if job["job_state"] == "RUNNING" and ran is not None and start is not None:
            now = max(now or 0, start + ran)
    if not found:
        raise FormatError("there is no job", where=source, expected="the output of scontrol show job")
    return found, now


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
    found: dict[str, Any] = {name: times.read(given.get(key, ""), line) for name, key in _TIMES.items()}
    found |= {name: _number(given.get(key, "")) for name, key in _NUMBERS.items()}
    found |= {name: given[key] for name, key in _TEXTS.items() if key in given}
    limit = clock(given.get("TimeLimit", ""))
    task = given.get("ArrayTaskId", "")
    return found | {
        "job_state": given.get("JobState", ""),
        "time_limit": None if limit is None else limit / 60,
        "memory_per_cpu": _megabytes(given.get("MinMemoryCPU", "")),
        "memory_per_node": _megabytes(given.get("MinMemoryNode", "")),
        "tres_req_str": given.get("ReqTRES") or given.get("TRES"),
        "user_name": given.get("UserId", "").partition("(")[0] or None,
        "group_name": given.get("GroupId", "").partition("(")[0] or None,
        "array_task_id": _number(task) if task.isdigit() else None,
        "array_task_string": None if task.isdigit() else task or None,
    }


def _number(text: str) -> int | None:
    """Return a whole number; of a range, such as ``2-4`` nodes, the first."""
    digits = text.partition("-")[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None


def _megabytes(text: str) -> float | None:
    found = kilobytes(text)
    return found[0] / 1024 if found else None


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
    memory: int | float | _Number | None = None


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


class QueueDocument(msgspec.Struct, frozen=True):
    """The document of ``squeue --json``."""

    jobs: list[QueuedJob]


class _Updated(msgspec.Struct, frozen=True):
    """The part of the document that states when its jobs last changed."""

    last_update: int | float | _Number | None = None


class _Document(msgspec.Struct, frozen=True):
    jobs: list[_Job]


class _RawDocument(msgspec.Struct, frozen=True):
    jobs: list[msgspec.Raw]


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
    jobs = _decoded(text, reading.source, _Document, _Job)
    if jobs and all(isinstance(job, _Job) and job.job_id is None for job in jobs):
        raise WorkloadError(
            "no job has a job_id", where=reading.source, expected="the document of sacct --json"
        )
    gather = Gather(reading, "sacct-json")
    for index, job in enumerate(jobs):
        if gather.full:
            break
        if isinstance(job, FormatError):
            gather.skip(f" jobs[{index}]", WRONG_TYPE, job.message)
        else:
            _add(gather, f" jobs[{index}]", job)
    return gather.finish()


def _decoded(text: str, source: str, document: type[Any], job: type[Any]) -> list[Any]:
    """Return the jobs of a document; in place of a job with a value of a wrong type, the error.

    Raises
    ------
    FormatError
        For a text that is not such a document, and where no job of it can be read.
    """
    from simsched.formats.text.json_text import decode_json_bulk

    try:
        return list(decode_json_bulk(text, source, kind=document).jobs)
    except FormatError as error:
        found = _one_by_one(text, source, job)
        if all(isinstance(one, FormatError) for one in found):
            raise error from None
        return found


def _one_by_one(text: str, source: str, kind: type[Any]) -> list[Any]:
    """Return each job of a document or the error in it; [] for a text that is not such a document."""
    from simsched.formats.text.json_text import decode_json_bulk

    found: list[Any] = []
    try:
        jobs = decode_json_bulk(text, source, kind=_RawDocument).jobs
    except FormatError:
        return found
    for job in jobs:
        try:
            found.append(decode_json_bulk(bytes(job), source, kind=kind))
        except FormatError as error:
            found.append(error)
    return found


def _add(gather: Gather, where: str, job: _Job) -> None:
    start, run, submit = positive(job.time.start), _value(job.time.elapsed), positive(job.time.submission)
    state = _state(job)
    reason = unfinished(state, start, run)
    if reason is None and job.job_id is None:
        reason = "no job id"
    if reason is not None:
        gather.skip(where, reason, f"job {job.job_id}", job.job_id)
        return
    flat, partition = _flat(job), job.partition or job.association.partition or None
    queue = partition.split(",")[0] if partition else None
    limit = positive(job.time.limit)
    array = job.array or _Array()
    row = LogRecord(
        job.job_id or 0,
        submit,
        gather.request(flat, queue=queue, partition=partition, features=job.constraints or ""),
        start,
        run,
        None if limit is None else limit * 60,
        job.association.user or job.user or None,
        job.group or None,
        queue,
        job.account or job.association.account or None,
        job.name or None,
        partition,
        flat.procs,
        flat.nodes,
        flat.memory,
        result_of(state, gather.unknown_states),
        dependencies=eligible_at(positive(job.time.eligible), submit, start),
        energy=joules(str(_totals(job.tres.allocated).get("energy", ""))),
        nodelist=hosts_of(job.nodes) if isinstance(job.nodes, str) else None,
        qos=job.qos or None,
        task=_task(gather, array.job_id, array.task_id, array.limits.max.running.tasks),
    )
    het = job.het or _Het()
    _add_row(gather, where, row, het.job_id, het.job_offset)


def _task(
    gather: Gather,
    array: float | _Number | None,
    index: float | _Number | None,
    most: float | _Number | None,
) -> tuple[str, int] | None:
    """Return the array and the index of a task, and note the most tasks of the array at a time."""
    found = queued_task(array, index, most)
    if found is not None and found.limit is not None:
        gather.array_limits[found.array] = found.limit
    gather.has_tasks = gather.has_tasks or found is not None
    return None if found is None else (found.array, found.index)


def queued_task(
    array: float | _Number | None, index: float | _Number | None, most: float | _Number | None
) -> ArrayTask | None:
    """Return a task of a job array; None for a job of none."""
    id_, number, limit = positive(array), _value(index), positive(most)
    if id_ is None or number is None or number < 0:
        return None
    return ArrayTask(f"{id_:.0f}", int(number), None if limit is None else int(limit))


def _add_row(
    gather: Gather,
    where: str,
    row: LogRecord,
    leader: int | _Number | None,
    offset: int | _Number | None,
) -> None:
    """Add a record, or a part of the heterogeneous job `leader`."""
    number = positive(leader)
    if number:
        gather.add_part(where, row, f"{number:.0f}", int(_value(offset) or 0))
    else:
        gather.add(where, row)


def queued_jobs(
    text: str, source: str, zone: str | None = None
) -> tuple[list[tuple[str, QueuedJob | FormatError]], float | None]:
    """Return (place, job) of each job of a queue, JSON or the text of scontrol, and the time of the queue.

    In place of a job with a value of a wrong type, there is the error.  Raises `FormatError` for other texts.
    """
    from simsched.formats.machines.recognition import SCONTROL_JOBS, machine_parts
    from simsched.formats.text.json_text import decode_json_bulk

    if text.lstrip("\ufeff \t\r\n")[:1] != "{":
        found, now = jobs_of_text(machine_parts(text).get(SCONTROL_JOBS, ""), source, zone)
        return [(line, QueuedJob(**values)) for line, values in found], now
    jobs = _decoded(text, source, QueueDocument, QueuedJob)
    time = decode_json_bulk(text, source, kind=_Updated).last_update
    return [(f" jobs[{index}]", job) for index, job in enumerate(jobs)], positive(time)


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
    for place, job in jobs:
        if gather.full:
            break
        if isinstance(job, FormatError):
            gather.skip(place, WRONG_TYPE, job.message)
            continue
        active += _add_queued(gather, place, job)
    if active:
        gather.notes.append(
            f"{active:,} jobs of this queue wait or run; a workload is made of jobs that ended (sacct --json)"
        )
    return gather.finish()


def _add_queued(gather: Gather, where: str, job: QueuedJob) -> bool:
    """Add the job if it has ended; return whether it still waits or runs."""
    state = state_word(job.job_state)
    start, end, submit = positive(job.start_time), positive(job.end_time), positive(job.submit_time)
    run = None if start is None or end is None else end - start
    active = state in UNFINISHED
    reason = WAITING if state == "PENDING" else unfinished(state, start, run)
    reason = "no job id" if reason is None and job.job_id is None else reason
    if reason is not None:
        gather.skip(where, reason, f"job {job.job_id}", job.job_id)
        return active
    queue = job.partition.split(",")[0] if job.partition else None
    flat, limit = queued_flat(job), positive(job.time_limit)
    row = LogRecord(
        job.job_id or 0,
        submit,
        gather.request(flat, queue=queue, partition=job.partition or None, features=job.features or ""),
        start,
        run,
        None if limit is None else limit * 60,
        job.user_name or None,
        job.group_name or None,
        queue,
        job.account or None,
        job.name or None,
        job.partition or None,
        flat.procs,
        flat.nodes,
        flat.memory,
        result_of(state, gather.unknown_states),
        dependencies=eligible_at(positive(job.eligible_time), submit, start),
        nodelist=hosts_of(job.nodes) if isinstance(job.nodes, str) else None,
        qos=job.qos or None,
        task=_task(gather, job.array_job_id, job.array_task_id, job.array_max_tasks),
    )
    _add_row(gather, where, row, job.het_job_id, job.het_job_offset)
    return active


def queued_flat(job: QueuedJob) -> Flat:
    """Return the requested value, else the allocated one."""
    per_cpu, per_node = positive(job.memory_per_cpu), positive(job.memory_per_node)
    memory = f"{per_cpu:.0f}Mc" if per_cpu else f"{per_node:.0f}Mn" if per_node else ""
    return RequestedTres(
        alloc_cpus=_digits(job.cpus),
        alloc_nodes=_digits(job.node_count),
        req_tres=job.tres_req_str or "",
        alloc_tres=job.tres_alloc_str or "",
        req_mem=memory,
        req_gres=(job.tres_per_node or "").replace("gres/", "").replace("gres:", ""),
    ).flat()


def _digits(number: float | _Number | None) -> str:
    found = positive(number)
    return "" if found is None else f"{found:.0f}"


def _state(job: _Job) -> str:
    return state_word(job.state.current if isinstance(job.state, _State) else job.state)


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


def _flat(job: _Job) -> Flat:
    """Return the requested value, else the allocated one."""
    wanted, given = _totals(job.tres.requested), _totals(job.tres.allocated)
    required = job.required
    procs = _count(_value(required.CPUs)) or wanted.get("cpu") or given.get("cpu")
    nodes = wanted.get("node") or job.allocation_nodes or given.get("node")
    gpus = wanted.get("gpu") or given.get("gpu")
    tres = job.tres.requested if wanted.get("gpu") else job.tres.allocated
    names = [part.name or "" for part in tres if part.type == "gres"]
    types = [name.removeprefix("gpu:") for name in names if name.startswith("gpu:")]
    return Flat(
        procs=procs,
        nodes=nodes or None,
        gpus=gpus,
        gpu_type=types[0] if len(types) == 1 and gpus else None,
        memory=_memory(job, procs, nodes, wanted),
    )


def _memory(job: _Job, procs: int | None, nodes: int | None, wanted: dict[str, int]) -> int | None:
    """Return KB per processor, rounded up."""
    per_cpu, per_node = positive(job.required.memory_per_cpu), positive(job.required.memory_per_node)
    if per_cpu is not None:
        return int(per_cpu * 1024)
    if not procs:
        return None
    whole = per_node * (nodes or 1) if per_node is not None else wanted.get("mem")
    return -(-int(whole * 1024) // procs) if whole else None


def _totals(parts: list[_Tres]) -> dict[str, int]:
    """Return units by type; gpus are the untyped ``gres/gpu``, else the sum of the typed."""
    found: dict[str, int] = {}
    typed = 0
    for part in parts:
        name, count = part.name or "", part.count or 0
        if part.type != "gres":
            found[part.type] = count
        elif name == "gpu":
            found["gpu"] = count
        elif name.startswith("gpu:"):
            typed += count
    if typed and "gpu" not in found:
        found["gpu"] = typed
    return found


def _count(number: float | None) -> int | None:
    return int(number) if number is not None and number > 0 else None
