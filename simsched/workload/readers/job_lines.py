"""JSON Lines of jobs: one entry per line, as in ``jobs.yaml``.

`PlainLines` is the fast reader of lines as programs write them: of a jobspec or shape, numbers and texts.  It
never reports a fault.  At the least doubt, duplicate keys included, it returns nothing, and `jobs_yaml.Maker`
reads the line.  It therefore may refuse a correct line, which costs time only;
tests/workload/readers/test_jobs_yaml.py compares both.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from simsched.declare.kinds import MOST
from simsched.errors import SimschedError
from simsched.formats.jobspec.fast import Reader
from simsched.formats.rfc.duration import MAX_SECONDS, whole
from simsched.formats.text.json_text import certain_json, load_json_line, number_of_keys
from simsched.workload.job import MAX_JOBS, Job
from simsched.workload.mapping import ReadOptions
from simsched.workload.readers.jobs_yaml import Maker, own_values, workload_faults, workload_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.workload.job import Workload
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
_Line: Any = msgspec.defstruct(
    "_Line",
    [(name, _TYPES.get(name, UnsetType) | UnsetType, UNSET) for name in (*_FIELDS, "shape")],
    forbid_unknown_fields=True,
    gc=False,
)
_DEFAULTS = tuple(None if field.required else field.default for field in msgspec.structs.fields(Job))
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
    maker = Maker(reading.folder, Reader())
    plain = PlainLines(maker)

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

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._decode = msgspec.json.Decoder(_Line).decode
        self._known: dict[str | bytes, _Known | None] = {}

    def job(self, line: str, place: str) -> Job | None:
        """Return the job of a line, or None where `Maker.jobs` has to decide."""
        try:
            data = line.encode().rstrip()
            keys = number_of_keys(data)
            given: tuple[Any, ...] = msgspec.structs.astuple(self._decode(data))
        except (ValueError, RecursionError):
            return None
        raw, shape, maker = given[_JOBSPEC], given[-1], self._maker
        if (raw is UNSET) == (shape is UNSET):
            return None
        text = shape if raw is UNSET else bytes(raw)
        if text not in self._known:
            self._known[text] = self._request(text, place)
        known = self._known[text]
        if known is None or keys != len(given) - given.count(UNSET) + known.keys:
            return None
        values: list[Any] = [
            default if value is UNSET else value for value, default in zip(given, _DEFAULTS, strict=False)
        ]
        for at in _TIMED:
            if type(values[at]) is float:
                values[at] = whole(values[at])
        if given[_DURATION] is UNSET:
            values[_DURATION] = known.duration
        if (values[_DURATION] is None and values[_RUNTIME] is None) or maker.sequence >= MAX_JOBS:
            return None
        sequence = maker.sequence + 1
        values[_ID] = sequence if given[_ID] is UNSET else given[_ID]
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
        try:
            if isinstance(text, str):
                keys, entry = 0, {"shape": text}
            else:
                keys, entry = number_of_keys(text), {"jobspec": certain_json(text)}
            jobspec = self._maker.jobspec(entry, place)
        except (ValueError, SimschedError):
            return None
        if "array" in jobspec.system:
            return None
        return _Known(jobspec, keys, *own_values(jobspec))
