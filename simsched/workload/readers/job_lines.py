"""JSON Lines of jobs: one entry per line, as in ``jobs.yaml``; and data frames with the same names.

`PlainLines` is the fast reader of lines as programs write them: of a jobspec or shape, numbers and texts.  It
never reports a fault.  At the least doubt, duplicate keys included, it returns nothing, and `jobs_yaml.Maker`
reads the line.  It therefore may refuse a correct line, which costs time only;
tests/workload/readers/test_jobs_yaml.py compares both.

Data frames with the columns of our own tables of jobs, such as ``run.jobs``, need no column map.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from simsched.declare.kinds import MOST
from simsched.declare.table import fields_of
from simsched.errors import SimschedError, WorkloadError
from simsched.formats.jobspec.fast import Reader
from simsched.formats.rfc.duration import MAX_SECONDS, whole
from simsched.formats.text.json_text import load_json_line, number_of_keys
from simsched.workload.job import MAX_JOBS, Job, Workload
from simsched.workload.mapping import ReadOptions
from simsched.workload.readers.jobs_yaml import JobEntry, Maker, own_values, workload_faults, workload_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.workload.readers.jobs_yaml import Draft


_WHOLE = Annotated[int, Meta(ge=0, le=MOST)]
_TIME = Annotated[int, Meta(ge=0, le=int(MAX_SECONDS))] | Annotated[float, Meta(ge=0, le=MAX_SECONDS)]
_TIMES = ("submit", "runtime", "duration", "think_time", "cancel_at", "deadline", "wait")
_TYPES: dict[str, Any] = {
    "id": int | Annotated[str, Meta(min_length=1)],
    "jobspec": Raw,
    "shape": str,
    "urgency": Annotated[int, Meta(ge=0, lt=32)],
    "preceding": int | str,
    "hold": bool,
    **dict.fromkeys(_TIMES, _TIME),
    **dict.fromkeys(("priority", "procs", "nodes", "memory", "energy"), _WHOLE),
    **dict.fromkeys(
        ("user", "group", "queue", "bank", "name", "partition", "status", "qos", "nodelist"), str
    ),
}
"""Field of a job, or shape → the type of its plain values; other fields have none."""
_FIELDS = Job.__struct_fields__
_OTHERWISE = {
    at: field.default
    for at, field in enumerate(msgspec.structs.fields(Job))
    if not field.required and field.default is not None
}
"""Place of a field → its value where it is not given, if that is not None."""
_Line: Any = msgspec.defstruct(
    "_Line",
    [
        (name, _TYPES.get(name, UnsetType) | UnsetType, UNSET if at in _OTHERWISE else None)
        for at, name in enumerate((*_FIELDS, "shape"))
    ],
    forbid_unknown_fields=True,
    gc=False,
)
"""A line; null is no value of any field, and a field that is not given is None or UNSET."""
_ID, _SUBMIT, _JOBSPEC, _DURATION = map(_FIELDS.index, ("id", "submit", "jobspec", "duration"))
_RUNTIME, _NAME, _QUEUE = map(_FIELDS.index, ("runtime", "name", "queue"))
_TIMED = [_FIELDS.index(name) for name in _TIMES]


def read_jsonl(lines: Iterable[str], reading: ReadOptions | None = None) -> Workload:
    """Read JSON Lines, one entry per line; blank lines are ignored.

    Raises
    ------
    FormatError, WorkloadError
        As `read_jobs_yaml`, with the number of the line.
    """
    reading = reading or ReadOptions(source="jobs.jsonl")
    reader = Reader()
    maker = Maker(reading.folder, reader)
    plain = PlainLines(maker, reader)

    def read(line: str, number: int) -> list[Draft]:
        place = f"{reading.source}:{number}"
        job = plain.job(line, place)
        if job is None:
            return maker.drafts(load_json_line(line, reading.source, number), place)
        return [(place, job, ())]

    with workload_faults():
        entries = (partial(read, line, number) for number, line in enumerate(lines, 1) if line.strip())
        return workload_of(entries, reading, "jsonl")


class _Known(NamedTuple):
    """A request that was read: its jobspec, the keys of its text, and the job's values that it brings."""

    jobspec: Jobspec
    keys: int
    duration: float | None
    name: str | None
    queue: str | None


class PlainLines:
    """Reads the lines of one document for a `Maker`, which knows the ids and the requests so far."""

    def __init__(self, maker: Maker, reader: Reader) -> None:
        self._maker, self._reader = maker, reader
        self._decode = msgspec.json.Decoder(_Line).decode
        self._known: dict[str | bytes, _Known | None] = {}

    def job(self, line: str, place: str) -> Job | None:
        """Return the job of a line, or None where `Maker.jobs` has to decide."""
        try:
            line = line.rstrip(" \t\r\n")
            keys = number_of_keys(line)
            given: tuple[Any, ...] = msgspec.structs.astuple(self._decode(line))
        except (ValueError, RecursionError):
            return None
        raw, shape, maker = given[_JOBSPEC], given[-1], self._maker
        if (raw is None) == (shape is None):
            return None
        text = shape if raw is None else bytes(raw)
        if text not in self._known:
            self._known[text] = self._request(text, place)
        known = self._known[text]
        if known is None or keys != len(given) - given.count(None) - given.count(UNSET) + known.keys:
            return None
        *values, _ = given
        for at, default in _OTHERWISE.items():
            if values[at] is UNSET:
                values[at] = default
        for at in _TIMED:
            if type(values[at]) is float:
                values[at] = whole(values[at])
        if values[_DURATION] is None:
            values[_DURATION] = known.duration
        if (values[_DURATION] is None and values[_RUNTIME] is None) or maker.sequence >= MAX_JOBS:
            return None
        sequence = maker.sequence + 1
        if values[_ID] is None:
            values[_ID] = sequence
        if maker.ids.setdefault(str(values[_ID]), place) is not place:
            return None
        maker.sequence = sequence
        values[_SUBMIT] = values[_SUBMIT] or 0
        values[_JOBSPEC] = known.jobspec
        values[_NAME] = values[_NAME] or known.name
        values[_QUEUE] = values[_QUEUE] or known.queue
        return Job(*values)

    def _request(self, text: str | bytes, place: str) -> _Known | None:
        """Read a shape, or the text of a jobspec; None where `Maker.jobs` has to decide."""
        keys, jobspec = 0, None
        if isinstance(text, bytes):
            keys, jobspec = text.count(b'":'), self._reader.read(text)
        else:
            with suppress(SimschedError):
                jobspec = self._maker.jobspec({"shape": text}, place)
        if jobspec is None or "array" in jobspec.system:
            return None
        return _Known(jobspec, keys, *own_values(jobspec))


REQUESTS = ("shape", "jobspec")
"""The columns of which one has the request of each job."""
OTHERS = ("nodes", "count", "every", "file", "parts")
"""Keys of an entry that are not read from a frame: ``nodes`` of a run are those that a job held."""


def is_own_frame(frame: Any) -> bool:
    """Whether a frame has the requests of jobs and their submit times under our names."""
    names = {str(name) for name in frame.columns}
    return "submit" in names and not names.isdisjoint(REQUESTS)


def read_own_frame(frame: Any, reading: ReadOptions) -> Workload:
    """Read a frame, pandas or polars; columns that are not keys of a job are ignored.

    Raises
    ------
    FormatError, WorkloadError
        As `read_jsonl`, with the number of the row, from 1 on.
    """
    names = [name for name in frame.columns if name in fields_of(JobEntry) and name not in OTHERS]
    if "shape" in names and "jobspec" in names:
        names.remove("shape")
    return read_jsonl(_lines(frame, names), reading)


def _lines(frame: Any, names: list[str]) -> Iterator[str]:
    columns: list[list[Any]] = [frame[name].to_list() for name in names]
    for number, row in enumerate(zip(*columns, strict=True), 1):
        if not _is_given(row[names.index("submit")]):
            raise WorkloadError("there is no submit time", where=f"data frame:{number}", expected="seconds")
        entry = {name: _plain(value) for name, value in zip(names, row, strict=True) if _is_given(value)}
        if isinstance(entry.get("depends"), str):
            entry["depends"] = entry["depends"].split(",")  # as the table of jobs of a run has them
        yield json.dumps(entry)


def _is_given(value: Any) -> bool:
    """Whether a cell has a value: not None or NaN, and not an infinite time, which means no limit."""
    if value is None or value in ("", float("inf")):
        return False
    return bool(value == value)  # noqa: PLR0124 (NaN)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; whole numbers are ints, as in a workload."""
    value = value.item() if hasattr(value, "item") else value
    return int(value) if isinstance(value, float) and value.is_integer() else value
