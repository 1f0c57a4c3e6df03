"""LSF accounting, ``lsb.acct``: one record of fields separated by blanks per line.

A job is its ``JOB_FINISH`` record; records of other events are counted and ignored.  Texts are in double
quotes, in which a double quote is doubled.  Some fields are lists with their length in front, so that the
fields behind them are found by reading from the left.  The fields are those of lsb.acct(5) of LSF 10.1.  The
limit (``runLimit``) is near the end, since LSF 9.1.  In the manual ``options3`` is in front of it; in records
of 9.1 and of 10.1 it is behind.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.workload.job import Workload

_INTEGER = re.compile(r"-?\d+")
_FIELD = re.compile(r'"((?:[^"]|"")*)"|(\S+)')
_HEAD = (
    "event", "version", "end", "id", "userId", "options", "processors", "submit", "begin", "term", "start",
    "user", "queue", "resReq", "dependCond", "preExecCmd", "fromHost", "cwd", "inFile", "outFile", "errFile",
    "jobFile",
)  # fmt: skip
_USAGES = 19
"""The number of fields of ``lsfRusage``."""
_MIDDLE = ("mailUser", "project", "exitStatus", "maxProcessors", "loginShell", "timeEvent", "index")
_BEFORE_EXTENSIONS = 23
"""The number of fields between ``idx`` and the extensions of the submission."""
_DONE = "64"
"""``jStatus`` of a job that ended well."""
_EXIT = "32"
_AT_LIMIT = "5"
"""``exitInfo`` of a job that its run limit ended (TERM_RUNLIMIT)."""
_EXIT_INFO = 8


def read_lsf(lines: Iterable[str], reading: ReadOptions | None = None) -> Workload:
    """Read an ``lsb.acct`` file.

    Raises
    ------
    WorkloadError
        At the first ignored record under `strict`.
    """
    gather = Gather(reading or ReadOptions(source="lsb.acct"), "lsf")
    others = Counter[str]()
    for number, line in gather.lines(lines):
        if line.startswith("#"):
            continue
        event = line.lstrip().partition(" ")[0].strip('"')
        if event == "JOB_FINISH":
            _add(gather, number, line)
        elif re.fullmatch(r"[A-Z0-9_]+", event):
            others[event] += 1
        else:
            gather.skip(number, why.NOT_A_RECORD, line)
    for event, count in others.items():
        gather.skips.count(f"a record of the event {event}, not the end of a job", count)
    return gather.finish()


def _add(gather: Gather, number: str, line: str) -> None:
    """Add the job of one record, or ignore it."""
    try:
        said, hosts = _read(line)
        submit, start, end, begin = (_number(said[name]) for name in ("submit", "start", "end", "begin"))
        index, slots = _number(said["index"]), _number(said["processors"])
        id_: int | str = f"{said['id']}[{index}]" if index else int(said["id"])
    except (StopIteration, ValueError):
        gather.skip(number, why.NOT_A_RECORD, line)
        return
    if not start or not end:
        reason = why.CANCELLED if said["status"] != _DONE else why.NEVER_STARTED
        gather.skip(number, reason, line, id_)
        return
    procs = slots or sum(hosts.values()) or None
    if slots and hosts and sum(hosts.values()) != slots:
        effect = f"but execHosts has {sum(hosts.values())} slots; the former counts"
        gather.unread(number, "numProcessors", str(slots), effect)
    limit = said.get("runLimit", "")
    is_limit = re.fullmatch(r"-?\d{1,11}", limit)
    if limit and not is_limit:
        gather.unread(number, "runLimit", limit, "cannot be read: the job has no limit")
    if said["status"] not in {_DONE, _EXIT}:
        gather.unread(
            number, "jStatus", said["status"], "neither 32 (EXIT) nor 64 (DONE), and counts as EXIT"
        )
    flat = Flat(procs=procs, nodes=len(hosts) or None)
    status = "TIMEOUT" if said.get("exitInfo") == _AT_LIMIT else "FAILED"
    gather.take(
        number, flat, eligible=begin, id=id_, submit=submit, start=start, runtime=end - start,
        duration=_number(limit) if is_limit else None, user=said["user"] or None,
        queue=said["queue"] or None, bank=said["project"] or None, name=said["jobName"] or None,
        status="COMPLETED" if said["status"] == _DONE else status,
    )  # fmt: skip


def _read(line: str) -> tuple[dict[str, str], dict[str, int]]:
    """Return the fields of a record by name, and the slots per host.

    Raises
    ------
    StopIteration, ValueError
        for a record that is cut short, and a length that is not a number.
    """
    matches = _FIELD.finditer(line)
    fields = map(_text, matches)
    said = {name: next(fields) for name in _HEAD}
    _list(fields)  # the requested hosts
    hosts: dict[str, int] = {}
    for host in _list(fields):
        count, star, name = host.rpartition("*")
        hosts[name] = hosts.get(name, 0) + (int(count) if star else 1)
    said |= {name: next(fields) for name in ("status", "hostFactor", "jobName", "command")}
    for _ in range(_USAGES):
        next(fields)
    said |= {name: next(fields) for name in _MIDDLE}
    return said | _tail(list(matches)), hosts


def _list(fields: Iterator[str]) -> list[str]:
    """Return a list that has its length in front."""
    return [next(fields) for _ in range(int(next(fields)))]


def _tail(rest: list[re.Match[str]]) -> dict[str, str]:
    """Return ``exitInfo`` and ``runLimit`` of the fields behind ``idx``, as far as the record has them.

    An entry of ``hostRusage`` has five fields or six: what follows the entries, ``runLimit``, ``options3``,
    ``avgMem`` and a text, ``effectiveResReq``, tells which.
    """
    said = {"exitInfo": _text(rest[_EXIT_INFO])} if len(rest) > _EXIT_INFO else {}
    place = _BEFORE_EXTENSIONS
    for size in (2, 0):  # fields of an entry of submitEXT; the entries of hostRusage are next
        if len(rest) <= place or not rest[place][0].isdecimal():
            return said
        number = int(rest[place][0])
        place += 1 + size * number
    for size in (5, 6):
        match rest[place + size * number :][:4]:
            case [limit, *numbers, text] if text[2] is None and all(
                _INTEGER.fullmatch(one[0]) for one in numbers
            ):
                return {**said, "runLimit": _text(limit)}
    return said


def _text(match: re.Match[str]) -> str:
    """Return a field without its quotes."""
    return match[2] if match[1] is None else match[1].replace('""', '"')


def _number(text: str) -> int | None:
    """Return a whole number above 0, None for other numbers.  Raises ValueError for another text."""
    return max(int(text), 0) or None
