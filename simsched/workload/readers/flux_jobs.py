"""Flux: ``flux jobs -a --json``, and folders of jobspec, R and eventlog, or archives of them.

``flux jobs`` gives flat counts (``ncores``, ``nnodes``), which a map turns into requests.  A
folder of jobs has one folder per job with the files ``jobspec``, ``eventlog`` and, if it
ran, ``R`` (with or without ``.json``); its requests are the jobspecs themselves, and so are
the dependencies, as far as they are on jobs of the folder.  The documents of an archive of the KVS
(``flux dump FILE``, a tar file) are unpacked into a temporary folder.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from contextlib import closing
from dataclasses import replace
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError, SimschedError, WorkloadError, first_line
from simsched.files import scratch_folder
from simsched.formats.rfc.dependency import JOB_SCHEMES
from simsched.formats.rfc.duration import whole
from simsched.formats.text.json_text import decode_json_bulk, load_json
from simsched.workload.dependencies import met, refuse_cycles
from simsched.workload.job import Job, Workload, bare, change
from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather, hosts_of
from simsched.workload.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.rfc.eventlog import Event


_SPARE = frozenset(("nnodes", "ntasks", "urgency"))
"""Counts without which a record is still the same job."""
NOT_JSON = "a line that is not JSON"
NOT_A_JOB = "not an object with an id"


def read_flux_jobs(source: Source | str, reading: ReadOptions | None = None) -> Workload:
    """Read ``flux jobs -a --json``: the whole document, one job, or one job per line.

    Raises
    ------
    FormatError, WorkloadError
        When it is not JSON, or nothing in it is a job; at the first record left out under `strict`.
        A record with a value of a wrong type is left out and counted.
    """
    reading = reading or ReadOptions(source="flux.json")
    gather = Gather(reading, "flux")
    text = source if isinstance(source, str) else source.text()
    lost: dict[str, int] = {}
    for where, job in gather.good(jobs_of(text, reading.source), NOT_JSON):
        if not isinstance(job, dict) or type(job.get("id")) not in (int, str):
            gather.skip(where, NOT_A_JOB, repr(job)[:80])
            continue
        try:
            values = _values(job, lost)
        except WorkloadError as error:
            gather.skip(where, error.message, error.where or "", job["id"])
        else:
            _add(gather, where, job, values)
    if not gather.jobs and gather.skips.counts and gather.skips.counts.keys() <= {NOT_JSON, NOT_A_JOB}:
        expected = "the document of flux jobs --json"
        raise WorkloadError("no record is a job", where=reading.source, expected=expected)
    if lost:
        listed = ", ".join(f"{key} ({count:,})" for key, count in lost.items())
        gather.notes.append(f"values that are not numbers are left out: {listed}")
    return gather.finish()


def jobs_of(text: str, source: str) -> Iterator[tuple[str, Any]]:
    """Yield (place, record) of each job in the whole document, one job, or one job per line.

    In place of a line that is not JSON, there is the error that names it.
    """
    from simsched.formats.text.sniffing import detect_kind

    if detect_kind(text) == "jsonl":
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    yield str(number), decode_json_bulk(line, f"{source}:{number}")
                except SimschedError as error:
                    yield str(number), error
        return
    document = decode_json_bulk(text, source)
    if isinstance(document, dict) and "jobs" not in document and "t_submit" in document:
        document = {"jobs": [document]}
    jobs = document.get("jobs") if isinstance(document, dict) else document
    if not isinstance(jobs, list):
        raise WorkloadError(
            "the list of jobs is missing", where=source, expected="the document of flux jobs --json"
        )
    yield from ((f" jobs[{index}]", job) for index, job in enumerate(jobs))


def _values(job: dict[str, Any], lost: dict[str, int]) -> dict[str, Any]:
    """Return the values of a record; `lost` counts those of `_SPARE` that cannot be read.

    Raises
    ------
    WorkloadError
        For a value without which it is not the job that it was, with the value as its place.
    """
    found: dict[str, Any] = {}
    for key, (read, kind) in _READS.items():
        try:
            found[key] = read(job, key)
        except WorkloadError:
            if key not in _SPARE:
                raise WorkloadError(f"{key} is not {kind}", where=f"{key}={job[key]!r}") from None
            found[key] = None
            lost[key] = lost.get(key, 0) + 1
    return found


def _add(gather: Gather, where: str, job: dict[str, Any], values: dict[str, Any]) -> None:
    """Add the job of one record."""
    start, result = values["t_run"], values["result"]
    end = values["t_cleanup"] or values["t_inactive"]
    active = values["state"] not in {None, "INACTIVE", "CLEANUP"}
    reason = _unfinished(start, end, result, active=active)
    if reason is not None:
        gather.skip(where, reason, f"job {job['id']}", job["id"])
        return
    urgency = values["urgency"]
    gather.take(
        where, Flat(procs=values["ncores"] or values["ntasks"], nodes=values["nnodes"]), id=job["id"],
        submit=values["t_submit"], start=start, runtime=whole(round((end or start) - start, 6)),
        duration=values["duration"] or None, user=values["username"] or user_number(job),
        queue=values["queue"], bank=values["bank"] or values["project"], name=values["name"],
        status=result, urgency=16 if urgency is None else min(urgency, 31),
        nodelist=hosts_of(values["nodelist"]),
    )  # fmt: skip


def _unfinished(start: float | None, end: float | None, result: str | None, *, active: bool) -> str | None:
    if start is None:
        return why.CANCELLED if result == "CANCELED" else why.NEVER_STARTED
    return why.RUNNING if end is None or active else None


def user_number(job: dict[str, Any]) -> str | None:
    """Return the number of a user without a name."""
    number = job.get("userid")
    return str(number) if isinstance(number, int) and not isinstance(number, bool) else None


def number_at(job: dict[str, Any], key: str) -> float | None:
    """Return seconds; None where the key is absent or empty, as Flux writes unknown values."""
    value = job.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise WorkloadError(f"bad {key} {value!r}", expected="seconds")
    return whole(value)


def count_at(job: dict[str, Any], key: str) -> int | None:
    """Return a whole number; None as `number_at`."""
    value = job.get(key)
    if value is None or value == "":
        return None
    if type(value) is not int or value < 0:
        raise WorkloadError(f"bad {key} {value!r}", expected="a whole number")
    return value


def text_at(job: dict[str, Any], key: str) -> str | None:
    """Return a text; None if the key is absent."""
    value = job.get(key)
    return value if isinstance(value, str) and value else None


_READS: dict[str, tuple[Callable[[dict[str, Any], str], Any], str]] = {
    **dict.fromkeys(
        ("t_submit", "t_run", "t_cleanup", "t_inactive", "duration"), (number_at, "a number of seconds")
    ),
    **dict.fromkeys(("ncores", "nnodes", "ntasks", "urgency"), (count_at, "a whole number")),
    **dict.fromkeys(
        ("name", "username", "queue", "result", "state", "bank", "project", "nodelist"), (text_at, "a text")
    ),
}
"""Key of a record → how its value is read, and its kind."""


# ------------------------------------------------------------ a folder of jobs

UNREADABLE = "a document that cannot be read"


def read_flux_folder(path: Path, reading: ReadOptions | None = None, shown: str = "") -> Workload:
    """Read a folder that holds one folder per job, each with a jobspec and an eventlog.

    The folders of jobs may be nested as in a dump of Flux's KVS, ``job/0000/0001/ab00/0000``: the
    parts are the id in hexadecimal (RFC 19, dothex).

    shown : the name of the folder in messages; by default its path.

    Raises
    ------
    WorkloadError
        When no folder in it holds both.
        Or, under `strict`, a job is ignored: it has not run, or one of its documents cannot be
        read; the error (the text of the skip) names the file.
    """
    reading = reading or ReadOptions(source=path.name)
    gather, shown = Gather(reading, "flux-folder"), shown or str(path)
    requests: dict[Jobspec, Jobspec] = {}  # equal requests are one object
    folders = sorted(
        (int(name) if re.fullmatch(r"[0-9]{1,19}", name) else -1, name, folder)
        for name, folder in _job_folders(path)
    )
    for number, name, folder in folders:
        if gather.full:
            break
        id_ = number if number >= 0 else name
        fault = _add_folder(gather, name, id_, folder, requests)
        if fault is not None:
            gather.skip(name, UNREADABLE, str(fault).replace(str(path), shown), id_)
    if not folders:
        expected = "folders with jobspec and eventlog"
        raise WorkloadError("there is no job in this folder", where=shown, expected=expected)
    gather.jobs = _with_dependencies(gather.jobs)
    workload = gather.finish()
    refuse_cycles(workload.jobs)
    return workload


def _with_dependencies(jobs: list[Job]) -> list[Job]:
    """Name the jobs that others depend on by their ids, and drop dependencies on jobs that are not there."""
    ids = {job_number(str(job.id)): str(job.id) for job in jobs}
    made = []
    for job in jobs:
        targets = [(item, ids.get(job_number(item.value), str(job.id))) for item in job.dependencies]
        found = [
            replace(met(item), value=target) if item.scheme in JOB_SCHEMES else item
            for item, target in targets
            if item.scheme not in JOB_SCHEMES or target != str(job.id)
        ]
        made.append(change(job, dependencies=tuple(dict.fromkeys(found))))
    return made


_F58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def job_number(text: str) -> int | str:
    """Return the number of a Flux job id (RFC 19: decimal, hexadecimal, F58), or the text.

    >>> job_number("42"), job_number("0x2a"), job_number("ƒj"), job_number("fluxion")
    (42, 42, 42, 'fluxion')
    """
    if text.isascii() and text.isdigit():
        return int(text) if len(text) < 21 else text
    try:
        if text.lower().startswith("0x") and len(text) < 19:
            return int(text, 16)
    except ValueError:
        return text
    digits = text[1:]
    if text[:1] not in ("ƒ", "f") or not 0 < len(digits) < 13 or any(d not in _F58 for d in digits):
        return text
    number = 0
    for digit in digits:
        number = 58 * number + _F58.index(digit)
    return number


_HEX = re.compile(r"[0-9a-f]{4}")
_KVS_LEVELS = 4


def _job_folders(path: Path, parts: tuple[str, ...] = ()) -> Iterator[tuple[str, Path]]:
    """Yield (id, folder) of each folder with a jobspec or an eventlog; `parts` are those of its id so far."""
    for folder in path.iterdir():
        if not folder.is_dir():
            continue
        inner = (*parts, folder.name) if _HEX.fullmatch(folder.name) else ()
        if _file(folder, "jobspec") is not None or _file(folder, "eventlog") is not None:
            whole_id = len(inner) == _KVS_LEVELS
            yield str(int("".join(inner), 16)) if whole_id else folder.name, folder
        elif (inner and len(inner) < _KVS_LEVELS) or (folder.name == "job" and not parts):
            yield from _job_folders(folder, inner)


def _file(folder: Path, name: str) -> Path | None:
    return next((folder / n for n in (name, f"{name}.json", f"{name}.jsonl") if (folder / n).is_file()), None)


def _add_folder(
    gather: Gather, name: str, id_: int | str, folder: Path, requests: dict[Jobspec, Jobspec]
) -> SimschedError | None:
    """Add the job of a folder, or ignore it; return the fault of a document that cannot be read."""
    from simsched.formats.request_files import load_jobspec
    from simsched.formats.rfc.eventlog import iter_eventlog

    spec, log = _file(folder, "jobspec"), _file(folder, "eventlog")
    if spec is None or log is None:
        gather.skip(name, f"no {'jobspec' if spec is None else 'eventlog'}")
        return None
    try:
        jobspec = load_jobspec(spec)
        with closing(Source.of(log).lines()) as lines:
            life = _life_of(iter_eventlog(lines, str(log)))
        procs, nodes, nodelist = _granted(folder)
    except SimschedError as error:
        return error
    start, finish = life["start"], life.pop("finish")
    reason = _unfinished(start, finish, life["status"], active=False)
    if reason is not None:
        gather.skip(name, reason, f"job {name}", id_)
        return None
    request = bare(jobspec)
    gather.add(
        name, requests.setdefault(request, request), id=id_,
        runtime=whole(round((finish or 0) - (start or 0), 6)),
        duration=None if jobspec.duration is None else whole(jobspec.duration), queue=jobspec.queue,
        bank=text_at(dict(jobspec.system), "bank"), name=jobspec.name, procs=procs, nodes=nodes,
        dependencies=tuple(jobspec.dependencies), nodelist=nodelist, **life,
    )  # fmt: skip
    return None


def _granted(folder: Path) -> tuple[int | None, int | None, str | None]:
    """Return (cores, nodes, hosts) of the job's R; None without R."""
    from simsched.formats.cluster.rset import ResourceSet

    path = _file(folder, "R")
    text = "" if path is None else Source.of(path).text()
    if not text.strip():
        return None, None, None
    granted = ResourceSet.from_dict(load_json(text, str(path)), str(path))
    hosts = hosts_of(str(granted.hosts)) if granted.hosts else None
    return granted.count("core") or None, len(granted.ranks) or None, hosts


def _life_of(events: Iterable[Event]) -> dict[str, Any]:
    """Return the times, the user, the urgency and the result of one job after its eventlog."""
    life: dict[str, Any] = {"submit": None, "start": None, "finish": None, "user": None, "status": None}
    for event in events:
        context = event.context
        if event.name in {"submit", "start", "finish"}:
            life[event.name] = whole(event.timestamp)
        if event.name == "submit":
            number, urgency = context.get("userid"), context.get("urgency", 16)
            life["user"] = str(number) if isinstance(number, int) else None
            life["urgency"] = urgency if isinstance(urgency, int) and 0 <= urgency <= 31 else 16
        elif event.name == "finish":
            failed = context.get("status", 0) != 0
            life["status"] = life["status"] or ("FAILED" if failed else "COMPLETED")
        elif event.name == "exception" and context.get("severity", 0) == 0:
            ends = {"cancel": "CANCELED", "timeout": "TIMEOUT"}
            life["status"] = ends.get(str(context.get("type")), "FAILED")
    return life


DOCUMENTS = frozenset(("jobspec", "eventlog", "R"))
MOST_BYTES = 64 * 1024**2
"""The most bytes of one document, and a thousandth of those of all."""


def read_flux_archive(path: Path, reading: ReadOptions) -> Workload:
    """Read the jobs of a dump of Flux's KVS; errors as `read_flux_folder`.

    Raises
    ------
    FormatError, LimitError
        for a file that is not a tar archive, is cut short, or is too large.
    """
    with scratch_folder() as folder:
        _unpack(path, folder, reading.source)
        return read_flux_folder(folder, reading, reading.source)


def _unpack(path: Path, folder: Path, source: str) -> None:
    """Write the documents of jobs into a folder, each at its key."""
    total = 0
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                key = PurePosixPath(member.name)
                if not member.isfile() or key.name not in DOCUMENTS or ".." in key.parts:
                    continue
                total += member.size
                if member.size > MOST_BYTES or total > 1000 * MOST_BYTES:
                    raise LimitError("the archive is too large", where=f"{source}: {member.name}")
                content = archive.extractfile(member)
                if content is not None:
                    place = folder.joinpath(*(part for part in key.parts if part != "/"))
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(content.read())
    except (tarfile.TarError, EOFError, OSError, zlib.error, LZMAError) as error:
        fault = first_line(error).replace(str(folder), source)
        raise FormatError(
            f"this is a tar archive that cannot be read: {fault}",
            where=source,
            expected="a file of flux dump",
        ) from None
