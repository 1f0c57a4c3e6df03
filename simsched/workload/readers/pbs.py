"""PBS and Torque accounting logs: one record ``time;type;id;key=value …`` per line.

A job is its E record (it ended), which repeats the values of S and Q.  A job that was deleted
(D, A) and has no E was cancelled before it started; Q, S and the others are counted as what
they are, and not listed.  The times are epoch seconds (``qtime``, ``start``, ``end``).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather
from simsched.workload.readers.slurm_values import clock_or_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from simsched.workload.job import Workload

    Tell: TypeAlias = Callable[[str, str, str], None]

_RECORD = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)")
_PAIR = re.compile(r"([A-Za-z_][\w.]*)=(\"[^\"]*\"|\S*)")
_SIZE = re.compile(r"(\d{1,15})([kmgtp]?)([bw]?)", re.IGNORECASE)
_KILO = {"": 1 / 1024, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3, "p": 1024**4}
_WORD = 8
"""The bytes of a word, in which a size with the suffix ``w`` is."""
_DAYS = re.compile(r"(\d{1,7}):(\d{1,7}:\d{1,2}:\d{1,2}(?:\.\d+)?)")
_SPOKEN = frozenset(("", "unlimited", "infinite", "infinity", "-1", "0", "00:00:00"))
"""Walltimes that are no limit."""
_MODES = frozenset(("shared", "exclusive", "exclusive_thread", "exclusive_process", "default", "reseterr"))
"""Words behind ``gpus=N``: how a gpu is shared by the processes of its job."""
_COUNTED = {"ncpus": 0, "ppn": 0, "ngpus": 1, "gpus": 1}
_SILENT = frozenset(("mpiprocs", "ompthreads"))
"""Keys of a chunk that are about processes, and not about resources."""
_READ = frozenset(
    ("select", "nodes", "ncpus", "procs", "mem", "pmem", "ngpus", "gpus", "nodect", "walltime", "neednodes",
     "place", "mpiprocs")
)  # fmt: skip
"""Keys of ``Resource_List`` that are used, or repeat others."""
UNREAD, UNUSED = "cannot be read and does not count", "not used"
_DELETED = frozenset("DA")
#: Exit statuses of jobs that PBS itself ended.
_KILLED_AT_LIMIT = frozenset(("-29", "-11"))


def read_pbs(lines: Iterable[str], reading: ReadOptions | None = None) -> Workload:
    """Read an accounting log.

    Raises
    ------
    WorkloadError
        At the first ignored record under `strict`.
    """
    gather = Gather(reading or ReadOptions(source="pbs"), "pbs")
    others, ended = Counter[str](), set[str]()
    deleted: dict[str, tuple[str, str]] = {}  # until it is known whether the job had run
    for number, line in gather.lines(lines):
        match = _RECORD.match(line)
        if match is None:
            gather.skip(number, why.NOT_A_RECORD, line)
            continue
        _, kind, id_, message = match.groups()
        if kind == "E":
            ended.add(id_)
            said = {key: value.strip('"') for key, value in _PAIR.findall(message)}
            _add(gather, number, id_, said, line)
        elif kind in _DELETED and id_ not in deleted:
            deleted[id_] = (number, line)
        else:
            others[kind] += 1
    for id_, (number, line) in deleted.items():
        if id_ in ended:
            others["D"] += 1
        else:
            gather.skip(number, why.CANCELLED, line, id_)
    for kind, count in others.items():
        gather.skips.count(f"a record of type {kind}, not the end of a job", count)
    return gather.finish()


def _add(gather: Gather, number: str, id_: str, said: Mapping[str, str], line: str) -> None:
    """Add the job of the record of its end, or ignore it."""
    start, end = _whole(said.get("start")), _whole(said.get("end"))
    if start is None or end is None:
        damaged = any(re.search(r"[^0-9]", said.get(key, "")) for key in ("start", "end"))
        gather.skip(number, why.DAMAGED_TIME if damaged else why.NEVER_STARTED, line, id_)
        return
    tell = partial(gather.unread, number)
    flat = flat_of(said, tell)
    for key in ("qtime", "ctime", "etime"):
        if said.get(key) and _whole(said[key]) is None and said[key] != "0":
            tell(key, said[key], UNREAD)
    submit = _whole(said.get("qtime")) or _whole(said.get("ctime"))
    gather.take(
        number, flat, eligible=_whole(said.get("etime")), id=id_, submit=submit, start=start,
        runtime=end - start, duration=_limit(said.get("Resource_List.walltime", ""), tell),
        user=said.get("user") or None, group=said.get("group") or None, queue=said.get("queue") or None,
        bank=said.get("account") or said.get("project") or None, name=said.get("jobname") or None,
        status=_result(said.get("Exit_status"), tell),
    )  # fmt: skip


def _result(status: str | None, tell: Tell) -> str | None:
    if status is None:
        return None
    if not re.fullmatch(r"-?[0-9]+", status):
        tell("Exit_status", status, "cannot be read: the job has no recorded result")
        return None
    if status in _KILLED_AT_LIMIT:
        return "TIMEOUT"
    return "COMPLETED" if status == "0" else "FAILED"


def _limit(text: str, tell: Tell) -> float | None:
    """Return the seconds of a walltime; Torque also has days in front, ``1:00:00:00``."""
    days = _DAYS.fullmatch(text)
    if days is not None:
        return 86_400 * int(days[1]) + (clock_or_seconds(days[2]) or 0) or None
    seconds = clock_or_seconds(text)
    if seconds is None and text.lower() not in _SPOKEN:
        tell("Resource_List.walltime", text, "cannot be read: the job has no limit")
    return seconds


def _silent(key: str, value: str, effect: str) -> None:
    """Take a value that cannot be read for one that is not there."""


def flat_of(said: Mapping[str, str], tell: Tell = _silent) -> Flat:
    """Return the flat counts of a record's ``Resource_List``; `tell` gets what cannot be read or contradicts.

    In this order: ``select`` (PBS Pro chunks), ``nodes`` (Torque chunks), then the totals
    ``ncpus``, ``procs`` and ``nodect``.  A total also counts beside chunks that state no processors.  A job
    that requested none of them, or in a form that cannot be read, is sized by its allocation:
    ``exec_vnode``, ``exec_host``, or ``total_execution_slots`` and ``unique_node_count``.

    ``gpus`` of Torque beside ``nodes`` and ``procs`` are those of each node or processor.

    >>> flat_of({"Resource_List.nodes": "2:ppn=8+1:ppn=4:gpus=2"}).procs
    20
    >>> flat_of({"Resource_List.select": "2:ncpus=8:ngpus=1:mem=16gb"}).gpus
    2
    >>> flat_of({"Resource_List.procs": "6", "Resource_List.gpus": "1:shared"}).gpus
    6
    """
    wanted = {
        key.removeprefix("Resource_List."): value
        for key, value in said.items()
        if key.startswith("Resource_List.")
    }

    def whole(key: str, text: str | None = None) -> int | None:
        text = wanted.get(key) if text is None else text
        found = _whole(text)
        if text and found is None and text != "0":
            tell(f"Resource_List.{key}", text, UNREAD)
        return found

    for key, value in wanted.items():
        if key not in _READ:
            tell(f"Resource_List.{key}", value, UNUSED)
    chunks: list[_Chunk] = []
    for key in ("select", "nodes"):
        if not chunks and wanted.get(key):
            chunks = _chunks(wanted[key], f"Resource_List.{key}", tell)
    totals = whole("ncpus") or whole("procs")
    granted = _granted(said)
    given = [] if chunks or totals else granted
    unsized = chunks and not any(chunk.sized for chunk in chunks)
    chunks = chunks or given
    procs = sum(chunk.nodes * chunk.cpus for chunk in chunks)
    if totals and (unsized or not chunks):
        procs = max(procs, totals)
    procs = (
        procs or _whole(said.get("total_execution_slots")) or _whole(said.get("resources_used.ncpus")) or 0
    )
    nodes = sum(chunk.nodes for chunk in chunks) or whole("nodect")
    nodes = nodes or _whole(said.get("unique_node_count"))
    slots = sum(chunk.cpus for chunk in granted)
    numbered = said.get("exec_vnode") or all("/" in part for part in said.get("exec_host", "").split("+"))
    if not given and procs and granted and numbered and slots != procs:
        text = said.get("exec_vnode") or said.get("exec_host", "")
        effect = f"{slots} processors, but the request is for {procs}, which count"
        tell("exec_vnode" if said.get("exec_vnode") else "exec_host", text, effect)
    gpus = sum(chunk.nodes * chunk.gpus for chunk in chunks) or whole("ngpus")
    if wanted.get("gpus") and not gpus:
        number, _, mode = wanted["gpus"].partition(":")
        each = whole("gpus", number)
        if mode and mode not in _MODES:
            tell("Resource_List.gpus", wanted["gpus"], f"the word {mode} is not used")
        by_procs = _whole(wanted.get("procs")) and (unsized or not wanted.get("nodes"))
        each_of = "processor" if by_procs else "node" if wanted.get("nodes") else ""
        gpus = (each or 0) * ({"node": nodes, "processor": procs}.get(each_of) or 1)
        if gpus and each_of:
            tell("Resource_List.gpus", wanted["gpus"], f"gpus of each {each_of} (Torque)")
    held = len(list(filter(None, said.get("exec_gpus", "").split("+"))))
    if held and held != gpus:
        if gpus:
            tell("exec_gpus", said["exec_gpus"], f"{held} gpus, but the request is for {gpus}, which count")
        gpus = gpus or held
    memory = sum(chunk.nodes * chunk.memory for chunk in chunks)
    memory = memory or _kilobytes(wanted.get("mem", ""), "Resource_List.mem", tell)
    each_memory = -(-memory // procs) if memory and procs else None
    each_memory = each_memory or _kilobytes(wanted.get("pmem", ""), "Resource_List.pmem", tell) or None
    return Flat(procs=procs or None, nodes=nodes, gpus=gpus, memory=each_memory)


class _Chunk(NamedTuple):
    """`nodes` nodes with these cpus, gpus and KB each; `sized` if the request states the cpus."""

    nodes: int
    cpus: int
    gpus: int
    memory: int
    sized: bool = True


def _granted(said: Mapping[str, str]) -> list[_Chunk]:
    """Return the cpus, gpus and KB of each host that a job ran on."""
    vnodes = said.get("exec_vnode", "").replace("(", "").replace(")", "")
    parts = [part for part in vnodes.split("+") if part] or said.get("exec_host", "").split("+")
    hosts: dict[str, list[int]] = {}
    for part in filter(None, parts):
        name = part.partition(":")[0].partition("/")[0]
        found = _chunks(part, "exec_vnode", _silent) if vnodes else [_Chunk(1, _cpus_of(part), 0, 0)]
        for chunk in found:
            sums = hosts.setdefault(name, [0, 0, 0])
            sums[:] = [a + b for a, b in zip(sums, chunk[1:4], strict=True)]
    return [_Chunk(1, cpus, gpus, size) for cpus, gpus, size in hosts.values()]


def _cpus_of(host: str) -> int:
    """Return the processors of one part of an ``exec_host``.

    PBS Pro has ``n1/0*16`` (task 0 with 16), Torque ``n1/0-15`` or ``n1/0,2`` (processors by number).

    >>> _cpus_of("n1/0*16"), _cpus_of("n1/0-3,8"), _cpus_of("n1/7"), _cpus_of("n1")
    (16, 5, 1, 1)
    """
    _, _, place = host.partition("/")
    task, star, number = place.partition("*")
    if star:
        return _whole(number) or 1
    total = 0
    for part in task.split(","):
        first, dash, last = part.partition("-")
        total += max(1, (_whole(last) or 0) - (_whole(first) or 0) + 1) if dash else 1
    return total


def _chunks(text: str, key: str, tell: Tell) -> list[_Chunk]:
    """Return the chunks of a specification; none, and a report, if it is not one.

    A chunk has a number or the name of a host, ``key=value`` pairs, and (Torque) properties of nodes.
    """
    found = []
    for chunk in text.partition("#")[0].split("+"):
        count, sizes, memory, sized = 1, [1, 0], 0, False
        for place, part in enumerate(chunk.split(":")):
            name, equals, value = part.partition("=")
            if name in _COUNTED and equals:
                if not re.fullmatch(r"[0-9]{1,11}", value):
                    tell(key, text, "not a specification of nodes, and does not count")
                    return []
                sizes[_COUNTED[name]] = int(value)
                sized = sized or _COUNTED[name] == 0
            elif name == "mem" and equals:
                memory = _kilobytes(value, key, tell)
            elif equals and not re.fullmatch(r"[A-Za-z]\w*", name):
                tell(key, text, "not a specification of nodes, and does not count")
                return []
            elif place == 0 and not equals:
                count = _whole(part) or 1  # a host name in place of a count is one node
                if not part or part == "0":
                    tell(key, text, "not a specification of nodes, and does not count")
                    return []
                if _whole(part) is None:
                    tell(key, part, "the name of a host or property is not used")
            elif name not in _SILENT and part not in _MODES:
                tell(key, part, UNUSED)
        found.append(_Chunk(count, sizes[0], sizes[1], memory, sized))
    return found


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 and int(text) else None


def _kilobytes(text: str, key: str, tell: Tell) -> int:
    """Return a size in KB, rounded up; 0 for none.

    >>> [_kilobytes(text, "mem", _silent) for text in ("2gb", "512", "1kw", "")]
    [2097152, 1, 8, 0]
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        if text:
            tell(key, text, UNREAD)
        return 0
    size = int(match[1]) * (_WORD if match[3].lower() == "w" else 1)
    return -(-int(size * _KILO[match[2].lower()] * 1024) // 1024)
