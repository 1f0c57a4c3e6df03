"""PBS and Torque accounting logs: one record ``time;type;id;key=value …`` per line.

A job is its E record (it ended), which repeats the values of S and Q.  A job that was deleted
(D, A) and has no E was cancelled before it started; Q, S and the others are counted as what
they are, and not listed.  The times are epoch seconds (``qtime``, ``start``, ``end``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simsched.workload.log_record import LogRecord
from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather, eligible_at
from simsched.workload.readers.slurm_values import clock_or_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from simsched.workload.job import Workload

_RECORD = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)")
_PAIR = re.compile(r"([A-Za-z_][\w.]*)=(\"[^\"]*\"|\S*)")
_SIZE = re.compile(r"(\d+)([kmgt]?)[bw]?", re.IGNORECASE)
_KILO = {"": 1 / 1024, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}
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
    log = _Log(Gather(reading or ReadOptions(source="pbs"), "pbs"))
    for number, line in log.gather.lines(lines):
        log.line(number, line)
    return log.finish()


@dataclass(slots=True)
class _Log:
    """One pass over a log; deletions wait until it is known whether the job had run."""

    gather: Gather
    deleted: dict[str, tuple[str, str]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    others: dict[str, int] = field(default_factory=dict)

    def line(self, number: str, line: str) -> None:
        match = _RECORD.match(line)
        if match is None:
            self.gather.skip(number, why.NOT_A_RECORD, line)
            return
        _, kind, id_, message = match.groups()
        if kind == "E":
            self.ended.add(id_)
            self._end(number, id_, {key: value.strip('"') for key, value in _PAIR.findall(message)}, line)
        elif kind in _DELETED:
            if id_ in self.deleted:
                self._other(kind)
            else:
                self.deleted[id_] = (number, line)
        else:
            self._other(kind)

    def _other(self, kind: str) -> None:
        reason = f"a record of type {kind}, not the end of a job"
        self.others[reason] = self.others.get(reason, 0) + 1

    def _end(self, number: str, id_: str, said: Mapping[str, str], line: str) -> None:
        start, end = _time(said.get("start")), _time(said.get("end"))
        if start is None or end is None:
            self.gather.skip(number, why.NEVER_STARTED, line, id_)
            return
        flat, queue = flat_of(said), said.get("queue") or None
        limit = clock_or_seconds(said.get("Resource_List.walltime", ""))
        submit = _time(said.get("qtime")) or _time(said.get("ctime"))
        row = LogRecord(
            id_,
            submit,
            self.gather.request(flat, queue=queue, partition=None),
            start,
            end - start,
            limit,
            said.get("user") or None,
            said.get("group") or None,
            queue,
            said.get("account") or said.get("project") or None,
            said.get("jobname") or None,
            procs=flat.procs,
            nodes=flat.nodes,
            memory=flat.memory,
            status=_result(said.get("Exit_status")),
            dependencies=eligible_at(_time(said.get("etime")), submit, start),
        )
        self.gather.add(number, row)

    def finish(self) -> Workload:
        """Add the deleted jobs, and count the records that are not jobs."""
        for id_, (number, line) in self.deleted.items():
            if id_ in self.ended:
                self._other("D")
            else:
                self.gather.skip(number, why.CANCELLED, line, id_)
        for reason, count in self.others.items():
            self.gather.skips.count(reason, count)
        return self.gather.finish()


def _time(text: str | None) -> int | None:
    return (
        int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 and int(text) > 0 else None
    )


def _result(status: str | None) -> str | None:
    if status is None:
        return None
    if status in _KILLED_AT_LIMIT:
        return "TIMEOUT"
    return "COMPLETED" if status == "0" else "FAILED"


def flat_of(said: Mapping[str, str]) -> Flat:
    """Return the flat counts of a record's ``Resource_List``.

    In this order: ``select`` (PBS Pro chunks), ``nodes`` (Torque chunks), then the totals
    ``ncpus``, ``procs`` and ``nodect``.  A job that requested none of them is sized by its allocation:
    ``exec_vnode``, ``exec_host``, or ``total_execution_slots`` and ``unique_node_count``.

    >>> flat_of({"Resource_List.nodes": "2:ppn=8+1:ppn=4:gpus=2"}).procs
    20
    >>> flat_of({"Resource_List.select": "2:ncpus=8:ngpus=1:mem=16gb"}).gpus
    2
    """
    wanted = {
        key.removeprefix("Resource_List."): value for key, value in said.items() if "Resource_List." in key
    }
    chunks = _chunks(wanted.get("select", "")) or _chunks(wanted.get("nodes", ""))
    totals = _whole(wanted.get("ncpus")) or _whole(wanted.get("procs"))
    given = [] if chunks or totals else _granted(said)
    chunks = chunks or given
    procs = sum(chunk[0] * chunk[1] for chunk in chunks) or totals
    procs = procs or _whole(said.get("total_execution_slots")) or _whole(said.get("resources_used.ncpus"))
    nodes = sum(chunk[0] for chunk in chunks) or _whole(wanted.get("nodect"))
    nodes = nodes or _whole(said.get("unique_node_count"))
    gpus = sum(chunk[0] * chunk[2] for chunk in chunks) or _whole(wanted.get("ngpus"))
    memory = sum(chunk[0] * chunk[3] for chunk in chunks) or _kilobytes(wanted.get("mem", ""))
    return Flat(procs=procs, nodes=nodes, gpus=gpus, memory=-(-memory // procs) if memory and procs else None)


def _granted(said: Mapping[str, str]) -> list[tuple[int, int, int, int]]:
    """Return (1, cpus, gpus, KB) for each host that a job ran on."""
    vnodes = said.get("exec_vnode", "").replace("(", "").replace(")", "")
    parts = [part for part in vnodes.split("+") if part] or said.get("exec_host", "").split("+")
    hosts: dict[str, list[int]] = {}
    for part in filter(None, parts):
        name = part.partition(":")[0].partition("/")[0]
        _, cpus, gpus, size = _chunks(part)[0] if vnodes else (1, _cpus_of(part), 0, 0)
        found = hosts.setdefault(name, [0, 0, 0])
        found[:] = [found[0] + cpus, found[1] + gpus, found[2] + size]
    return [(1, cpus, gpus, size) for cpus, gpus, size in hosts.values()]


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


def _chunks(text: str) -> list[tuple[int, int, int, int]]:
    """Return (count, cpus, gpus, KB) of each chunk; a host name in place of a count is one node."""
    found = []
    for chunk in text.split("+") if text else []:
        head, *rest = chunk.split(":")
        values = dict(part.split("=", 1) for part in rest if "=" in part)
        cpus = _whole(values.get("ncpus")) or _whole(values.get("ppn")) or 1
        gpus = _whole(values.get("ngpus")) or _whole(values.get("gpus")) or 0
        found.append((_whole(head) or 1, cpus, gpus, _kilobytes(values.get("mem", ""))))
    return found


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 and int(text) else None


def _kilobytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    return -(-int(int(match.group(1)) * _KILO[match.group(2).lower()] * 1024) // 1024) if match else 0
