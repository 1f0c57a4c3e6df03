"""Standard Workload Format 2.2 (Parallel Workloads Archive), and the Grid Workload Format.

Eighteen columns of numbers, ``-1`` for absent, ``;`` lines for the header.  The reader
parses whole columns with NumPy and only then makes jobs; each omitted record, and the reason, is
in the workload's skips.  The rules (in this order, the first that applies):

- fewer than 18 numbers, or a number beyond 10**15: ``not a record of 18 numbers``
- status 2, 3 or 4: ``partial execution record`` (the 0/1 line sums them up)
- a negative submit time: ``no submit time``
- status 5 without run time or processors: ``cancelled before it started``
- neither allocated processors nor run time: ``never started``
- no processors requested or allocated: ``no processors``
- a negative run time: ``no run time``

Run time 0 is kept (an instant job), requested time -1 is an unlimited job, requested
processors -1 means the allocated ones, and a job cancelled after it started ran its time.

Records with more fields may end with a descriptor of their size, such as ``frontier:excl:2500x112`` (2,500
whole nodes of 112 processors), as the Frontier traces of 2024 and 2025 do.  Their fields 5 and 8 are not
reliable: nodes and processors are then those of the descriptor, and field 19 is the number of gpus.

A header line ``; Map: slot={procs}/[core=16;gpu]`` (ours) gives the request that a processor of this file
means; it applies unless the caller passes a map.

The Grid Workload Format of the Grid Workloads Archive has 29 fields per line between blanks, ``-1`` for none.
The first sixteen are those of the Standard Workload Format, but ids of users, groups, queues and sites may be
words, and times of submission are seconds after 1970.  Lines with ``#`` are comments.  The sites on which a
job was submitted and ran (fields 17 and 18), and its structure (19, 20), are left out.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import WorkloadError
from simsched.formats.rfc.duration import whole
from simsched.workload.job import Job, Workload, assemble
from simsched.workload.mapping import DEFAULT_TEMPLATE, Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt


COLUMNS = 18
LARGEST = 10**15  # whole numbers beyond this are garbage, and floats cannot hold them

NOT_A_RECORD = "not a record of 18 numbers"
PARTIAL = "partial execution record"
(_ID, _SUBMIT, _WAIT, _RUN, _ALLOC, _CPU, _USED, _PROCS, _LIMIT, _MEM, _STATUS, _USER, _GROUP, _EXE, _QUEUE,
 _PART, _PREC, _THINK) = range(COLUMNS)  # fmt: skip

_DESCRIPTOR = re.compile(r"\s[\w.-]+:[\w.-]+:(\d{1,7})x(\d{1,5})(?:\s|$)")
NODE_TEMPLATE = "slot={nodes}/node"

RESULTS = {0: "FAILED", 1: "COMPLETED", 5: "CANCELED"}
_BLOCK = 4096
# Whole numbers are read several times as fast; the average CPU time, which is not used, often has decimals.
_WHOLE = np.dtype([("", float if at == _CPU else np.int64) for at in range(COLUMNS)])
_REAL = np.dtype([("", float)] * COLUMNS)


def read_swf(text: str, reading: ReadOptions | None = None) -> Workload:
    """Read an SWF text into a workload; times are seconds after the trace's start.

    Raises
    ------
    WorkloadError
        When no line holds 18 numbers, or at the first ignored record under `strict`.
    """
    reading = reading or ReadOptions(source="swf")
    lines = text.splitlines()
    header, numbers = _split(lines)
    gather = Gather(reading, "swf", with_gpus=None)
    columns, numbers = _columns(lines, numbers[: reading.limit], gather)
    if not numbers and gather.skips.counts:
        raise WorkloadError(
            "no line of this file holds 18 numbers", where=reading.source, expected="an SWF trace"
        )
    sizes = _described_sizes(lines, numbers)
    default = DEFAULT_TEMPLATE if sizes is None else NODE_TEMPLATE
    gather.job_map = reading.job_map(header.get("Map", default))
    if sizes is None:
        gather.job_map.need_width(reading.source)
        typical = [lines[index] for index in (*numbers[:_BLOCK], *numbers[-1:])]
        most = max((len(record.partition(";")[0].split()) for record in typical), default=0)
        extra = f"field {most} is" if most == COLUMNS + 1 else f"fields {COLUMNS + 1} to {most} are"
        note = f"records have {most} fields; SWF has {COLUMNS}, and {extra} ignored"
        notes = [note] if most > COLUMNS else []
    else:
        known = sizes[:, 0] > 0
        columns[_ALLOC][known] = columns[_PROCS][known] = sizes[known, 0] * sizes[known, 1]
        notes = ["nodes and processors are those of the descriptors; fields 5 and 8 are not used"]
    jobs = _jobs(columns, sizes, header, gather, lambda row: (numbers[row] + 1, lines[numbers[row]]))
    return assemble(
        jobs, gather.skips, source=reading.source, name=reading.name, kind="swf", header=header, notes=notes
    )


def _described_sizes(lines: Sequence[str], numbers: Sequence[int]) -> npt.NDArray[np.float64] | None:
    """Return nodes, processors per node and gpus of each record; None for a trace without descriptors.

    A record without a descriptor has 0 nodes.
    """
    if not numbers or not any(_DESCRIPTOR.search(lines[index]) for index in (*numbers[:10], numbers[-1])):
        return None
    sizes = np.zeros((len(numbers), 3))
    for row, index in enumerate(numbers):
        found = _DESCRIPTOR.search(lines[index])
        if found is not None:
            words = lines[index].split(None, COLUMNS + 1)
            gpus = int(words[COLUMNS]) if re.fullmatch("[0-9]{1,9}", words[COLUMNS]) else 0
            sizes[row] = int(found[1]), int(found[2]), gpus
    return sizes


def _split(lines: Sequence[str]) -> tuple[dict[str, str], list[int]]:
    """Return the header (``Key: value`` comments) and the indexes of the record lines."""
    header: dict[str, str] = {}
    records: list[int] = []
    for index, line in enumerate(map(str.lstrip, lines)):
        if line[:1] == ";":
            key, colon, value = line[1:].partition(":")
            key, value = key.strip(), value.strip()
            if colon and key and " " not in key:
                header[key] = f"{header[key]}\n{value}" if key in header else value
        elif line:
            records.append(index)
    return header, records


def _columns(
    lines: Sequence[str], numbers: list[int], gather: Gather
) -> tuple[list[npt.NDArray[Any]], list[int]]:
    """Return the columns of the good lines and their indexes; bad lines are ignored."""
    parts, good = [[np.empty(0, np.int64)] * COLUMNS], []
    for begin in range(0, len(numbers), _BLOCK):
        block = numbers[begin : begin + _BLOCK]
        part = _load([lines[index] for index in block])
        if part is None:  # line by line
            rows = {index: _row(lines[index]) for index in block}
            for index, row in rows.items():
                if row is None:
                    gather.skip(index + 1, NOT_A_RECORD, lines[index])
            block = [index for index, row in rows.items() if row is not None]
            part = list(np.array([rows[index] for index in block], dtype=float).reshape(-1, COLUMNS).T)
        parts.append(part)
        good.extend(block)
    return list(map(np.concatenate, zip(*parts, strict=True))), good


def _load(records: Sequence[str]) -> list[npt.NDArray[Any]] | None:
    """Parse lines of at least 18 numbers, or return None when any of them is something else."""
    # To find digits beyond ASCII in whole numbers, NumPy reads outside of a table, and may crash.
    for numbers in (_WHOLE, _REAL) if all(map(str.isascii, records)) else (_REAL,):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)  # NumPy before 2.4 reads 1.5 as 1
                columns: Any = np.loadtxt(
                    records, numbers, comments=";", usecols=range(COLUMNS), unpack=True, ndmin=1
                )
        except (ValueError, IndexError, DeprecationWarning):
            continue
        sound = len(columns[0]) == len(records) and all(
            column.min() >= -LARGEST and column.max() <= LARGEST for column in columns
        )
        return columns if sound else None
    return None


def _row(line: str) -> list[Any] | None:
    row = list(map(_number, line.partition(";")[0].split(None, COLUMNS)[:COLUMNS]))
    return row if len(row) == COLUMNS and None not in row else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return whole(number) if abs(number) <= LARGEST else None


def _jobs(
    columns: Sequence[npt.NDArray[Any]],
    sizes: npt.NDArray[np.float64] | None,
    header: dict[str, str],
    gather: Gather,
    place: Callable[[int], tuple[int, str]],
) -> Iterator[Job]:
    """Return the jobs of the records that are whole; the others are ignored.

    `place` gives the number of a record's line, and the line.
    """
    reasons = _reasons(columns)
    left = np.flatnonzero(reasons)
    known = (_integers(columns[at][left]) for at in (_ID, _SUBMIT))
    for row, id_, submit in zip(left.tolist(), *known, strict=True):
        number, line = place(row)
        gather.skip(number, _REASONS[reasons[row]], line, id_, submit)
    rows = np.flatnonzero(reasons == 0)
    take = [column[rows] for column in columns]
    sizes = np.zeros((len(rows), 3)) if sizes is None else sizes[rows]
    ids, submits = _integers(take[_ID]), _integers(take[_SUBMIT])
    procs = np.ceil(np.where(take[_PROCS] > 0, take[_PROCS], take[_ALLOC]))
    names = {"user": _USER, "group": _GROUP, "queue": _QUEUE, "name": _EXE, "partition": _PART}
    keys = {"name": "Executable"}
    facts: dict[str, Sequence[Any]] = {
        "id": ids,
        "submit": submits,
        "runtime": _integers(take[_RUN]),
        "duration": _or_none(take[_LIMIT], above=0),
        **{
            name: _texts(take[at], numbered(header, keys.get(name, name.title())))
            for name, at in names.items()
        },
        "preceding": _or_none(take[_PREC], above=0),
        "think_time": _or_none(take[_THINK]),
        "procs": _integers(procs),
        "nodes": _or_none(sizes[:, 0], above=0),
        "memory": _or_none(np.ceil(take[_MEM]), above=0),
        "wait": _or_none(take[_WAIT]),
        "status": list(map(RESULTS.get, take[_STATUS].tolist())),
    }

    def skip(at: int, reason: str) -> None:
        number, line = place(rows[at])
        gather.skip(number, reason, line, ids[at], submits[at])

    return gather.of_columns(facts, skip, _or_none(sizes[:, 2], above=0))


_REASONS = (
    "", PARTIAL, why.NO_SUBMIT, why.CANCELLED, why.NEVER_STARTED, why.NO_PROCESSORS, why.NO_RUN_TIME,
    why.EARLY,
)  # fmt: skip


def _reasons(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int_]:
    """Return per record the index of the first reason to leave it out, 0 for none."""
    status, run, allocated = columns[_STATUS], columns[_RUN], columns[_ALLOC]
    rules = [
        (status >= 2) & (status <= 4),
        columns[_SUBMIT] < 0,
        (status == 5) & ((run <= 0) | (allocated == 0) | ((allocated < 0) & (columns[_PROCS] <= 0))),
        (allocated <= 0) & (run <= 0),
        (allocated <= 0) & (columns[_PROCS] <= 0),
        run < 0,
        (columns[_WAIT] < 0) & (columns[_WAIT] != -1),
    ]
    return np.select(rules, range(1, len(rules) + 1), default=0)


def _integers(column: npt.NDArray[Any]) -> list[Any]:
    """Return a column as Python numbers: whole ones as int."""
    if bool((column == np.floor(column)).all()):
        numbers: list[Any] = column.astype(np.int64).tolist()
        return numbers
    return list(map(whole, column.tolist()))


def _or_none(column: npt.NDArray[Any], above: float = -1) -> list[Any]:
    known = column > above
    if not known.any():
        return [None] * len(column)
    values = _integers(column)
    return values if known.all() else [value if value > above else None for value in values]


def _texts(column: npt.NDArray[Any], names: dict[int, str]) -> list[str | None]:
    """Return a column of numbered things as their names; equal ones share one string."""
    numbers, places = np.unique(column, return_inverse=True)
    texts = [None if number < 0 else names.get(int(number)) or str(number) for number in _integers(numbers)]
    shared: list[str | None] = np.array(texts, object)[places].tolist()
    return shared


def numbered(header: dict[str, str], key: str) -> dict[int, str]:
    r"""Return the names that header lines such as ``; Queue: 3 normal`` give to numbers.

    >>> numbered({"Queue": "0 interactive\n1 [fque:1]"}, "Queue")
    {0: 'interactive', 1: '[fque:1]'}
    """
    names = {}
    for line in header.get(key, "").splitlines():
        number, _, name = line.strip().partition(" ")
        if number.isdecimal() and name.strip() and len(number) < 10:
            names[int(number)] = name.strip()
    return names


LEAST_FIELDS = 18
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
    procs = next((int(values[place]) for place in (_PROCS, _ALLOC) if values[place] > 0), None)
    id_: int | str = int(cells[_ID]) if re.fullmatch("[0-9]{1,18}", cells[_ID]) else cells[_ID]
    unstarted = why.CANCELLED if status == 5 else why.NEVER_STARTED
    faults = {PARTIAL: status in (2, 3, 4), unstarted: run < 0, why.NO_PROCESSORS: procs is None}
    reason = next((reason for reason, holds in faults.items() if holds), None)
    if reason is not None:
        gather.skip(number, reason, line, id_)
        return
    memory, limit = values[_MEM], values[_LIMIT]
    flat = Flat(procs=procs, memory=int(memory) if memory > 0 else None)
    places = {"user": _USER, "group": _GROUP, "queue": _QUEUE}
    texts: dict[str, Any] = {name: None if cells[at] == "-1" else cells[at] for name, at in places.items()}
    gather.take(
        number, flat, id=id_, submit=submit, start=submit + wait if wait >= 0 else None, runtime=run,
        duration=limit if limit > 0 else None, status=RESULTS.get(int(status)),
        **texts,
    )  # fmt: skip
