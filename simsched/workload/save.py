"""`save_workload`: a workload into a file of any format that can be written."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from simsched.declare.table import fields_of
from simsched.errors import ConfigError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.constraint import to_json
from simsched.formats.rfc.duration import format_date
from simsched.workload.job import Job, Skips, Workload, demand, procs_of, seconds_of
from simsched.workload.readers.jobs import JobEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


class Writer(NamedTuple):
    """One format: the function that yields its lines, and the fields of a job that it cannot hold.

    `selects`: there are jobs that it cannot write at all; the function takes the `Skips` to note them in.
    """

    module: str
    function: str
    endings: tuple[str, ...]
    loses: tuple[str, ...] = ()
    selects: bool = False


_NOT_BATSIM = (
    "jobspec", "urgency", "priority", "dependencies", "hold", "cancel_at", "deadline", "bank", "nodes",
    "queue", "group", "partition", "memory", "energy", "wait", "status", "preceding", "think_time",
    "nodelist", "qos", "array_task",
)  # fmt: skip

#: Name (``--to``) → writer.
WRITERS = {
    "swf": Writer(
        "save", "write_swf", (".swf",),
        ("jobspec", "urgency", "priority", "dependencies", "hold", "cancel_at", "deadline", "bank", "nodes",
         "energy", "nodelist", "qos", "array_task"),
    ),
    "batsim": Writer("readers.batsim", "write_batsim", (".json",), _NOT_BATSIM),
    "batsim4": Writer("readers.batsim", "write_batsim4", (), _NOT_BATSIM),
    "jobs": Writer("save", "write_jobs_yaml", (".yaml", ".yml")),
    "jsonl": Writer("save", "write_jsonl", (".jsonl",)),
    "sacct": Writer(
        "save", "write_sacct", (".sacct",),
        ("urgency", "priority", "dependencies", "hold", "cancel_at", "deadline", "preceding", "think_time",
         "energy", "nodelist", "qos", "array_task"),
    ),
    "flux-fiction": Writer(
        "save", "write_flux_fiction", (),
        ("urgency", "priority", "dependencies", "hold", "cancel_at", "deadline", "preceding", "think_time",
         "user", "group", "bank", "queue", "partition", "name", "memory", "energy", "wait", "status",
         "nodelist", "qos", "array_task"),
    ),
    "sss": Writer(
        "readers.sss_jobs", "write_sss", (".xml",),
        ("urgency", "cancel_at", "preceding", "think_time", "nodes", "memory", "energy", "partition",
         "nodelist", "array_task"),
        selects=True,
    ),
}  # fmt: skip


def save_workload(
    workload: Workload, path: str | Path, *, to: str | None = None, skips: Skips | None = None
) -> str:
    """Write a workload; the format is `to`, or follows from the ending (``.gz`` compresses).

    The file is written beside its final name and renamed when whole.  Jobs that the format cannot
    write at all are left out and noted in `skips`.  Returns the name of the format.

    Raises
    ------
    WorkloadError
        On the first job that cannot be written, if there are no `skips` or they are strict, and when no
        job is left.
    ConfigError
        On a format that cannot be written, an ending of no format, or a place that cannot be written to.
    """
    from simsched.files import replacing

    place = Path(path)
    kind = to or kind_of(place.name)
    texts = (f"{line}\n".encode() for line in lines_of(workload, kind, skips))
    with replacing(path, ConfigError) as stream:
        if place.suffix == ".gz":
            # No name and no time in the header: the same workload gives the same bytes.
            with gzip.GzipFile("", "wb", 9, stream, mtime=0) as packed:
                packed.writelines(texts)
        else:
            stream.writelines(texts)
    return kind


def lines_of(workload: Workload, kind: str, skips: Skips | None = None) -> Iterator[str]:
    """Return the lines of a workload in a format; jobs that it cannot write go to `skips`."""
    if kind not in WRITERS:
        raise ConfigError(f"cannot write {kind!r}", expected=", ".join(WRITERS))
    writer = WRITERS[kind]
    write = getattr(import_module(f"simsched.workload.{writer.module}"), writer.function)
    lines: Iterator[str] = write(workload, skips) if writer.selects else write(workload)
    return lines


def kind_of(name: str) -> str:
    """Return the format that belongs to the ending of a file name.

    >>> kind_of("month.swf.gz"), kind_of("jobs.yaml")
    ('swf', 'jobs')
    """
    plain = name.removesuffix(".gz")
    for kind, writer in WRITERS.items():
        if writer.endings and plain.endswith(writer.endings):
            return kind
    endings = ", ".join(ending for writer in WRITERS.values() for ending in writer.endings)
    raise ConfigError("no format belongs to the ending", where=name, expected=f"{endings}, or --to")


def losses(workload: Workload, kind: str) -> list[str]:
    """Return the fields that some job has and the format cannot hold."""
    plain = {one.name: one.default for one in msgspec.structs.fields(Job)}
    found = []
    loses = WRITERS[kind].loses
    for name in loses:
        if name == "jobspec":
            lost = "Map" not in workload.header and any(
                job.jobspec != Jobspec.from_shape(f"slot={demand(job.jobspec).procs}/core")
                for job in workload.jobs
            )
        elif name == "dependencies" and kind == "sacct":  # the column Eligible holds begin times
            lost = any(item.scheme != "begin-time" for job in workload.jobs for item in job.dependencies)
        else:
            lost = any(getattr(job, name) != plain[name] for job in workload.jobs)
        if lost:
            found.append(name)
    return found


# -- jobs.yaml and JSON Lines: the entries that `readers.jobs` reads, without loss -------------------

_SAME = [
    (one.name, one.default)
    for one in fields_of(JobEntry).values()
    if one.name in {*Job.__struct_fields__} - {"id", "submit", "duration", "runtime", "jobspec", "array_task"}
]
"""Fields of a job that are keys of an entry with the same name, and their default values."""


def write_jobs_yaml(workload: Workload) -> Iterator[str]:
    """Yield the lines of a ``jobs.yaml``: one job per line, in YAML's flow style."""
    name = json.dumps(workload.name, ensure_ascii=False)
    yield f"name: {name}"
    yield "jobs:" if workload.jobs else "jobs: []"
    for entry in entries(workload):
        yield f"- {json.dumps(entry, ensure_ascii=False)}"


def write_jsonl(workload: Workload) -> Iterator[str]:
    """Yield JSON Lines, one entry per job, each with its whole jobspec.

    A request without a slot is not an RFC 14 document (it has no task), so it is written as a shape.
    """
    requests: dict[int, dict[str, Any]] = {}
    for entry, job in zip(entries(workload), workload.jobs, strict=True):
        request = requests.get(id(job.jobspec))
        if request is None:
            whole = {"jobspec": job.jobspec.to_dict()} if job.jobspec.tasks else _request(job.jobspec)
            request = requests[id(job.jobspec)] = whole
        kept = {key: value for key, value in entry.items() if key not in {"shape", "constraint", "jobspec"}}
        yield json.dumps({**kept, **request}, ensure_ascii=False)


def entries(workload: Workload) -> Iterator[dict[str, Any]]:
    """Yield one entry per job; equal requests share their part of it."""
    requests: dict[int, dict[str, Any]] = {}
    for job in workload.jobs:
        request = requests.get(id(job.jobspec))
        if request is None:
            request = requests[id(job.jobspec)] = _request(job.jobspec)
        yield {"id": job.id, **request, **_rest(job)}


def _request(jobspec: Jobspec) -> dict[str, Any]:
    """Return the shortest of shape, shape with constraint, and whole jobspec that loses nothing."""
    shape, wanted = jobspec.to_shape(), jobspec.constraint
    if jobspec.tasks and Jobspec.from_shape(shape, constraint=wanted) != jobspec:
        return {"jobspec": jobspec.to_dict()}
    return {"shape": shape} if wanted is None else {"shape": shape, "constraint": to_json(wanted)}


def _rest(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = {
        "submit": job.submit,
        "duration": "inf" if job.duration is None else job.duration,
    }
    if job.runtime is not None:
        found["runtime"] = job.runtime
    for name, default in _SAME:
        value = getattr(job, name)
        if value != default:
            found[name] = value
    if job.array_task is not None:
        found["array_task"] = str(job.array_task)
    if job.dependencies:
        found["depends"] = [dependency.to_json() for dependency in job.dependencies]
    return found


# -- the CSV of flux-fiction: a trace in the words of sacct, one line per job -----------------------

FLUX_FICTION_HEAD = ("JobID", "NNodes", "NCPUS", "Timelimit", "Submit", "Elapsed", "NGPUS")
DEFAULT_START = 1_704_067_200
"""2024-01-01T00:00:00, second 0 of a workload on a clock of its own."""


def write_flux_fiction(workload: Workload) -> Iterator[str]:
    """Yield the lines of a trace, its header first.

    Second 0 is the header's ``UnixStartTime``, else the first day of 2024.  flux-fiction needs nodes and
    limits: a job without a number of nodes has one node, and a job without a limit its run time.
    Times are whole seconds, rounded; a run time of 0 becomes a second.
    """
    stated = workload.stated("UnixStartTime")
    base = DEFAULT_START if stated is None else stated
    yield ",".join(FLUX_FICTION_HEAD)
    for job in workload.jobs:
        least = demand(job.jobspec)
        counts = job.nodes or least.nodes or 1, procs_of(job), least.gpus
        yield trace_line(job.id, base + round(job.submit), seconds_of(job), job.duration, *counts)


def trace_line(
    id_: int | str, submit: float, runtime: float, limit: float | None, nodes: int, procs: int, gpus: int
) -> str:
    """Return the line of one job; `submit` is in seconds after 1970, and the limit is None for none.

    >>> trace_line(7, 1704067200, 90, None, 2, 1, 0)
    '7,2,2,00:01:30,2024-01-01T00:00:00,00:01:30,0'
    """
    run = max(1, round(runtime))
    most = run if limit is None else max(1, round(limit))
    at = format_date(round(submit)).removesuffix("Z")
    most_text, elapsed = (_clock(time).removeprefix("0-") for time in (most, run))
    line = io.StringIO()
    row = (id_, nodes, max(procs, nodes), most_text, at, elapsed, gpus)
    csv.writer(line, lineterminator="").writerow(row)
    return line.getvalue()


def _clock(seconds: int) -> str:
    """Return a duration as ``D-HH:MM:SS``.

    >>> _clock(600), _clock(90061)
    ('0-00:10:00', '1-01:01:01')
    """
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}-{hour:02d}:{minute:02d}:{second:02d}"


# -- sacct -P: whole seconds, flat counts, one line per job ----------------------------------------

SACCT_HEAD = (
    "JobIDRaw", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "Timelimit", "ReqNodes", "ReqCPUS",
    "ReqTRES", "ReqMem", "Partition", "Account", "User", "Group", "JobName", "State",
)  # fmt: skip
_STATES = {"CANCELED": "CANCELLED", None: "COMPLETED"}


def write_sacct(workload: Workload) -> Iterator[str]:
    """Yield the lines of a dump, its header first.

    Second 0 is the header's ``UnixStartTime``, else the first day of 2024.  A job that
    never waited in a trace starts when it is submitted, or eligible (its begin-time).
    """
    stated = workload.stated("UnixStartTime")
    base = DEFAULT_START if stated is None else stated
    yield "|".join(SACCT_HEAD)
    for job in workload.jobs:
        submit = base + round(job.submit)
        begins = [float(item.value) for item in job.dependencies if item.scheme == "begin-time"]
        eligible = base + round(max([job.submit, *begins]))
        start = max(submit + round(job.wait or 0), eligible)
        run = round(seconds_of(job))
        times = (format_date(at).removesuffix("Z") for at in (submit, eligible, start, start + run))
        limit = "UNLIMITED" if job.duration is None else _clock(round(job.duration))
        least = demand(job.jobspec)
        procs, nodes = procs_of(job), job.nodes or least.nodes
        parts = {"cpu": procs, "node": nodes, "gres/gpu": least.gpus}
        tres = ",".join(f"{name}={count}" for name, count in parts.items() if count)
        memory = "" if job.memory is None else f"{job.memory}Kc"
        given = (job.partition or job.queue, job.bank, job.user, job.group, job.name)
        # characters that end a cell
        texts = ((text or "").replace("|", "/").replace("\n", " ").replace("\r", " ") for text in given)
        state = _STATES.get(job.status, job.status) or "COMPLETED"
        yield "|".join(
            (str(job.id), *times, str(run), limit, str(nodes or ""), str(procs), tres, memory, *texts, state)
        )


# -- SWF 2.2: flat counts, names kept in header lines that `read_swf` understands -------------------

_CODES = {"FAILED": 0, "TIMEOUT": 0, "COMPLETED": 1, "CANCELED": 5}
#: Columns that hold a number for a name, and the header key that lists the names.
_NAMED: Mapping[str, Callable[[Job], str | None]] = {
    "User": lambda job: job.user,
    "Group": lambda job: job.group,
    "Executable": lambda job: job.name,
    "Queue": lambda job: job.queue,
    "Partition": lambda job: job.partition,
}


def write_swf(workload: Workload, *, notes: Iterable[str] = ()) -> Iterator[str]:
    """Yield the lines of an SWF file, without line ends.

    Job ids that are not whole numbers become their position.  Requests are flattened to
    processors; a workload whose header has a ``Map`` is read back with its shapes.
    """
    numbers = {key: _numbers(map(name_of, workload.jobs)) for key, name_of in _NAMED.items()}
    # the ids themselves if all are whole, else positions
    whole = all(isinstance(job.id, int) and job.id >= 0 for job in workload.jobs)
    ids = {job.id: int(job.id) if whole else at for at, job in enumerate(workload.jobs, 1)}
    yield from _header(workload, numbers, notes)
    for job in workload.jobs:
        yield _record(job, ids, [numbers[key][name_of(job)] for key, name_of in _NAMED.items()])


def _header(
    workload: Workload, numbers: Mapping[str, Mapping[str | None, int]], notes: Iterable[str]
) -> Iterator[str]:
    yield "; Version: 2.2"
    for key, value in workload.header.items():
        if key not in {"Version", "MaxJobs", "MaxRecords", "Note", *_NAMED}:
            yield from (f"; {key}: {line}" for line in value.splitlines())
    yield f"; MaxJobs: {len(workload)}"
    yield f"; MaxRecords: {len(workload)}"
    for key, known in numbers.items():
        for name, number in known.items():
            if name is not None and name != str(number):
                yield f"; {key}: {number} {name}"
    for note in (*workload.header.get("Note", "").splitlines(), *workload.history, *notes):
        yield f"; Note: {note}"


def _numbers(names: Iterable[str | None]) -> dict[str | None, int]:
    """Return the number of each name: its own where it is one, else the next that is free."""
    known: dict[str | None, int] = {None: -1}
    others = []
    for name in dict.fromkeys(names):
        if name is None:
            continue
        if re.fullmatch(r"0|[1-9][0-9]{0,8}", name):
            known[name] = int(name)
        else:
            others.append(name)
    free = max(known.values()) + 1 if len(known) > 1 else 1
    known.update({name: free + index for index, name in enumerate(others)})
    return known


def _record(job: Job, ids: Mapping[int | str, int], named: list[int]) -> str:
    user, group, executable, queue, partition = named
    procs = procs_of(job)
    before = -1 if job.preceding is None else ids.get(job.preceding, -1)
    columns = (
        ids[job.id], job.submit, job.wait, job.runtime if job.runtime is not None else job.duration, procs,
        None, None, procs, job.duration, job.memory, _CODES.get(job.status or "", -1), user, group,
        executable, queue, partition, before, job.think_time,
    )  # fmt: skip
    return " ".join("-1" if value is None else str(value) for value in columns)
