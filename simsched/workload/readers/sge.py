"""Grid Engine accounting (SGE, Open Grid Scheduler, Univa): 45 or more fields per line, separated by ``:``.

The fields are those of accounting(5).  A job has `slots` processors.  The limit is ``h_rt`` and the memory
per slot ``h_vmem`` of the field ``category``.  A task of an array is a job with the id ``NUMBER.TASK``.
Lines of the slave tasks of a parallel job are counted and ignored.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simsched.formats.rfc.duration import whole
from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather
from simsched.workload.readers.slurm_values import clock_or_seconds, kilobytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.workload.job import Workload

SLAVE = "a task of a parallel job, not a job"
LEAST_FIELDS = 39
"""The number of fields without which a line is not a record; the field ``slots`` is among them."""

(_QUEUE, _HOST, _GROUP, _OWNER, _NAME, _NUMBER, _ACCOUNT, _PRIORITY, _SUBMIT, _START, _END, _FAILED,
 _EXIT) = range(13)  # fmt: skip
_PROJECT, _SLOTS, _TASK, _CATEGORY = 31, 34, 35, 39
_NUMERIC = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LIMITED = frozenset(("37",))
"""Codes of the field ``failed`` for jobs that their limit ended."""
_MILLISECONDS = 10**11
"""Times beyond this number are milliseconds, as Univa Grid Engine writes them."""
_NONE = frozenset(("", "infinity", "inf", "none", "0", "0:0:0", "00:00:00"))
"""Values of a resource that are no limit."""
_RESOURCE = re.compile(r"(?:^|[ ,])([A-Za-z_][\w.-]*)=([^ ,]+)")


def read_sge(lines: Iterable[str], reading: ReadOptions | None = None) -> Workload:
    """Read an accounting file.

    Raises
    ------
    WorkloadError
        At the first ignored record under `strict`.
    """
    gather = Gather(reading or ReadOptions(source="accounting"), "sge")
    slaves = 0
    for number, line in gather.lines(lines):
        if len(line.strip()) < 2 or line.startswith("#"):
            continue
        cells = line.split(":")
        if len(cells) < LEAST_FIELDS or not re.fullmatch("[0-9]{1,18}", cells[_NUMBER]):
            gather.skip(number, why.NOT_A_RECORD, line)
            continue
        category, task = _category(cells)
        if task not in {"NONE", ""}:
            slaves += 1
        else:
            _add(gather, number, cells, category, line)
    gather.skips.count(SLAVE, slaves)
    return gather.finish()


def _category(cells: list[str]) -> tuple[str, str]:
    """Return the fields ``category`` and ``pe_taskid``.

    A category may contain colons (``-l h_rt=1:00:00``).  Numbers are behind it and behind ``pe_taskid``, by
    which its end is found.
    """
    for end in range(_CATEGORY, len(cells) - 3):
        numbers = _NUMERIC.fullmatch(cells[end + 1]) and _NUMERIC.fullmatch(cells[end + 3])
        if numbers and not cells[end + 2].isdecimal() and "=" not in cells[end + 2]:
            return ":".join(cells[_CATEGORY : end + 1]), cells[end + 2]
    return ":".join(cells[_CATEGORY:]), ""


def _add(gather: Gather, number: str, cells: list[str], category: str, line: str) -> None:
    submit, start, end = (_time(cells[place]) for place in (_SUBMIT, _START, _END))
    task = cells[_TASK]
    id_: int | str = int(cells[_NUMBER]) if task in {"0", ""} else f"{cells[_NUMBER]}.{task}"
    if start is None or end is None:
        damaged = not (cells[_START].isdecimal() and cells[_END].isdecimal())
        gather.skip(number, why.DAMAGED_TIME if damaged else why.NEVER_STARTED, line, id_)
        return
    wanted = dict(_RESOURCE.findall(category))
    slots = int(cells[_SLOTS]) if cells[_SLOTS].isdecimal() and len(cells[_SLOTS]) < 10 else None
    size = kilobytes(wanted.get("h_vmem", "").upper())
    limit = clock_or_seconds(wanted.get("h_rt", ""))
    for key, found, effect in (("h_rt", limit, "no limit"), ("h_vmem", size, "no memory")):
        text = wanted.get(key, "")
        if found is None and text.lower() not in _NONE:
            gather.unread(number, key, text, f"cannot be read: the job has {effect}")
    for key, text in wanted.items():
        if key not in ("h_rt", "h_vmem"):
            gather.unread(number, key, text, "not used")
    flat = Flat(procs=slots or None, memory=size[0] if size else None)
    places = {"user": _OWNER, "group": _GROUP, "queue": _QUEUE, "bank": _PROJECT, "name": _NAME}
    texts: dict[str, Any] = {
        name: None if cells[at] in {"", "NONE"} else cells[at] for name, at in places.items()
    }
    status = _result(gather, number, cells[_FAILED].strip(), cells[_EXIT].strip())
    gather.take(
        number, flat, id=id_, submit=submit, start=start, runtime=whole(round(end - start, 3)),
        duration=limit, status=status, **texts,
    )  # fmt: skip


def _time(text: str) -> float | None:
    """Return a time in seconds after 1970; 0 is none.

    >>> _time("1400000000"), _time("1400000000500"), _time("0")
    (1400000000, 1400000000.5, None)
    """
    if not text.isdecimal() or not 0 < len(text) < 16 or int(text) == 0:
        return None
    number = int(text)
    return whole(number / 1000) if number > _MILLISECONDS else number


def _result(gather: Gather, number: str, failed: str, status: str) -> str | None:
    code = failed.partition(" ")[0].partition(":")[0]  # qacct writes "37 : qmaster enforced h_rt"
    for key, text in (("failed", code), ("exit_status", status)):
        if not text.lstrip("-").isdecimal():
            gather.unread(number, key, text, "cannot be read: the job has no recorded result")
            return None
    if code in _LIMITED:
        return "TIMEOUT"
    return "COMPLETED" if code == "0" and status == "0" else "FAILED"
