"""The Grid Workload Format of the Grid Workloads Archive: 29 fields per line between blanks, ``-1`` for none.

The first sixteen fields are those of the Standard Workload Format, but ids of users, groups, queues and
sites may be words, and times of submission are seconds after 1970.  Lines with ``#`` are comments.  The sites
on which a job was submitted and ran (fields 17 and 18), and its structure (19, 20), are left out.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from simsched.errors import WorkloadError
from simsched.formats.rfc.duration import whole
from simsched.workload.mapping import Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather
from simsched.workload.readers.swf import LARGEST, PARTIAL, RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.workload.job import Workload

LEAST_FIELDS = 18
(_ID, _SUBMIT, _WAIT, _RUN, _PROCS, _CPU, _USED, _REQ_PROCS, _REQ_TIME, _REQ_MEMORY, _STATUS, _USER, _GROUP,
 _EXECUTABLE, _QUEUE) = range(15)  # fmt: skip
_STRUCTURES = frozenset(("", "-1", "UNITARY"))


def read_gwf(lines: Iterable[str], reading: ReadOptions | None = None) -> Workload:
    """Read a trace of the Grid Workloads Archive.

    Raises
    ------
    WorkloadError
        If no line is a record, and at the first ignored record under `strict`.
    """
    gather = Gather(reading or ReadOptions(source="gwf"), "gwf")
    records = composite = 0
    for number, line in gather.lines(lines):
        if line.lstrip().startswith("#"):
            continue
        cells = line.split()
        numbers = [_number(cell) for cell in cells[: _STATUS + 1]]
        if len(cells) < LEAST_FIELDS or None in numbers[: _RUN + 1]:
            gather.skip(number, why.NOT_A_RECORD, line)
            continue
        records += 1
        composite += cells[18:19] not in ([], *([word] for word in _STRUCTURES))
        _add(gather, number, cells, [-1 if value is None else value for value in numbers], line)
    if not records:
        raise WorkloadError(
            "no line is a record", where=gather.reading.source, expected="the 29 fields of GWF"
        )
    if composite:
        gather.notes.append(
            f"{composite:,} jobs are parts of a bag of tasks or a workflow; each is a job here"
        )
    return gather.finish()


def _add(gather: Gather, number: str, cells: list[str], values: list[float], line: str) -> None:
    submit, wait, run, status = (values[place] for place in (_SUBMIT, _WAIT, _RUN, _STATUS))
    procs = next((int(values[place]) for place in (_REQ_PROCS, _PROCS) if values[place] > 0), None)
    id_: int | str = int(cells[_ID]) if cells[_ID].isdecimal() else cells[_ID]
    unstarted = why.CANCELLED if status == 5 else why.NEVER_STARTED
    faults = {PARTIAL: status in (2, 3, 4), unstarted: run < 0, why.NO_PROCESSORS: procs is None}
    reason = next((reason for reason, holds in faults.items() if holds), None)
    if reason is not None:
        gather.skip(number, reason, line, id_)
        return
    memory, limit = values[_REQ_MEMORY], values[_REQ_TIME]
    flat = Flat(procs=procs, memory=int(memory) if memory > 0 else None)
    places = {"user": _USER, "group": _GROUP, "queue": _QUEUE}
    texts: dict[str, Any] = {name: None if cells[at] == "-1" else cells[at] for name, at in places.items()}
    gather.take(
        number, flat, id=id_, submit=submit, start=submit + wait if wait >= 0 else None, runtime=run,
        duration=limit if limit > 0 else None, status=RESULTS.get(int(status)),
        **texts,
    )  # fmt: skip


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return whole(number) if isfinite(number) and abs(number) <= LARGEST else None
