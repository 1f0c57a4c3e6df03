"""``jobs.yaml``: workloads that people write by hand.

A document is a list of entries, or ``{name, defaults, jobs}`` where `defaults` holds keys that every entry
starts from.  `JobEntry` declares the keys.  In JSON Lines (`job_lines`) each line is one entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

from simsched.arguments import wrong
from simsched.declare.kinds import ANYTHING, MOST, ValueKind, unread
from simsched.declare.table import Declared, fields_of
from simsched.errors import FormatError, LimitError, SimschedError, WorkloadError, clip, nearest
from simsched.formats.jobspec.heterogeneous import joined, part_queues
from simsched.formats.rfc.duration import MAX_SECONDS, parse_duration, whole
from simsched.workload.dependencies import resolve
from simsched.workload.job import (
    MAX_JOBS,
    ArrayTask,
    Job,
    Skips,
    Workload,
    assemble,
    in_submit_order,
    parse_tasks,
)
from simsched.workload.mapping import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simsched.formats.jobspec.fast import Reader
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.rfc.constraint import Constraint


_EMPTY = re.compile(r"(?:\s*(?:#[^\n]*)?(?:\n|\Z))*")
_REQUESTS = ("shape", "jobspec", "file", "parts")
MAX_COPIES = 1_000_000
"""The most jobs that one entry may describe: a line of text should not take minutes and gigabytes."""
_ATTRIBUTES = ("licenses", "reservation", "checkpoint")
"""Keys that become attributes (``attributes.system``) of the jobspec."""


# -- entries -------------------------------------------------------------------------


def _bad(value: Any, where: str, expected: str) -> WorkloadError:
    return WorkloadError(f"bad {where.rpartition('.')[2]} {value!r}", where=where, expected=expected)


def _kind(
    expected: str,
    *types: type,
    span: range | None = None,
    null: Any = None,
    make: Callable[[Any], Any] = lambda value: value,
    **schema: Any,
) -> ValueKind:
    """Return the kind of values of some types, of numbers of a span; no boolean is a number.

    null : what null means, unless it is refused (`NoneType` is not one of the types).
    """
    empty = "" if "minLength" in schema else None

    def read(value: Any, where: str) -> Any:
        if value is None and NoneType in types:
            return null
        known = isinstance(value, types) and (bool in types or not isinstance(value, bool))
        if not known or value == empty or (span and not span[0] <= value <= span[-1]):
            raise _bad(value, where, expected)
        return make(value)

    bounds = {} if span is None else {"minimum": span[0], "maximum": span[-1]}
    return ValueKind(read, {"type": [_WORDS[one] for one in types], **bounds, **schema})


_WORDS = {str: "string", int: "integer", dict: "object", list: "array", bool: "boolean", NoneType: "null"}


def read_seconds(value: Any, where: str, *, endless: bool = False) -> float | None:
    """Return the seconds of an RFC 23 duration, an int where they are whole; None for null."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _bad(value, where, "a duration such as 90, 30m or 1.5h")
    seconds = whole(parse_duration(value, where))
    if seconds < 0 or (seconds > MAX_SECONDS and not (endless and seconds == inf)):
        raise _bad(value, where, "a time of 0 or more")
    return seconds


def _read_task(value: Any, where: str) -> ArrayTask | None:
    given = _TEXT.read(value, where)
    return None if given is None else ArrayTask.parse(given, where)


_TIME = {"type": ["number", "string", "null"], "minimum": 0, "maximum": MAX_SECONDS}
_TEXT = _kind("a text", str, int, NoneType, make=str)
_NUMBER = _kind(f"a whole number of 0 or more and below {MOST:g}", int, NoneType, span=range(MOST))
Seconds = Annotated[float | None, ValueKind(read_seconds, _TIME)]
Text = Annotated[str | None, _TEXT]
Count = Annotated[int | None, _NUMBER]


class RequestEntry(Declared, frozen=True, rename=None):
    """One request: exactly one of shape, jobspec and file.

    shape : RFC 46 text.
    jobspec : a jobspec in place (RFC 14).
    file : name of a file with a jobspec, beside the document.
    constraint : RFC 35 text or an RFC 31 object, and-ed to the constraint of the jobspec.
    command : the command of a shape, as a text or a list of texts.
    """

    nullable = False

    shape: Annotated[str | None, unread(type="string")] = None
    jobspec: Annotated[Any, ANYTHING] = None
    file: Annotated[str | None, unread(type="string")] = None
    constraint: Annotated[Any, ANYTHING] = None
    command: Annotated[Any, ANYTHING] = None


class PartEntry(RequestEntry, frozen=True, rename=None):
    """One part of a heterogeneous job.

    queue : name of its queue.
    """

    queue: Text = None


class JobEntry(RequestEntry, frozen=True, rename=None):
    """One entry: a job, or several that differ in their numbers.  Exactly one of its four requests is given.

    parts : requests with ``constraint`` and ``queue`` of their own, which start together.
    id : a whole number or a text; by default the next number.
    submit : when it is submitted, a duration after the start (RFC 23; default 0).
    duration : the requested limit.
    runtime : the actual run time.
    count : how many times it is submitted.
    every : the time between two of them (default 0).
    name : name of the job.
    user : who submits it.
    group : group of the user.
    bank : account that it is charged to.
    queue : name of the queue.
    qos : quality of service.
    urgency : 0 to 31 (RFC 30; default 16).
    priority : a priority that another scheduler gave.
    preceding : the job that it follows (SWF 2.2).
    think_time : the time after the end of that (SWF 2.2).
    hold : whether the job is held.
    cancel_at : when its user cancels it.
    deadline : when it should have ended.
    procs, nodes, memory, energy, partition, wait, status, nodelist : a fact of a trace, which is not matched.
    depends : ``afterok:NAME`` (a name or an id in this document), or a list of such, or RFC 26 objects.
    array : ``0-31%4``: a job array of 32 tasks, of which at most 4 run at a time; their ids are ID_0 … ID_31.
    array_task : ``ID_4%2``: this entry alone is task 4 of the array ID.
    licenses : ``matlab:2,ansys``, or a mapping.
    reservation : name of the reservation.
    checkpoint : a mapping with ``interval``, ``cost`` and ``restart``.
    """

    parts: Annotated[Any, unread(type="array")] = None
    id: Annotated[int | str, _kind("a whole number or a text", int, str, minLength=1)] = 0
    submit: Seconds = None
    duration: Annotated[float | None, ValueKind(partial(read_seconds, endless=True), _TIME)] = None
    count: Count = None
    every: Seconds = None
    runtime: Seconds = None
    name: Text = None
    user: Text = None
    group: Text = None
    bank: Text = None
    queue: Text = None
    qos: Text = None
    urgency: Annotated[int, _kind("0 to 31", int, NoneType, span=range(32), null=16)] = 16
    priority: Count = None
    preceding: Annotated[int | str | None, _kind("a job id", int, str, NoneType)] = None
    think_time: Seconds = None
    hold: Annotated[bool, _kind("true or false", bool)] = False
    cancel_at: Seconds = None
    deadline: Seconds = None
    procs: Count = None
    nodes: Count = None
    memory: Count = None
    energy: Count = None
    partition: Text = None
    wait: Seconds = None
    status: Text = None
    nodelist: Text = None
    depends: Annotated[Any, ANYTHING] = None
    array: Annotated[Any, ANYTHING] = None
    array_task: Annotated[ArrayTask | None, ValueKind(_read_task, _TEXT.schema)] = None
    licenses: Annotated[Any, _kind("a text or a mapping", str, dict)] = None
    reservation: Annotated[Any, _kind("a text", str)] = None
    checkpoint: Annotated[Any, _kind("a mapping", dict)] = None


KINDS = {key: one.kind for key, one in fields_of(JobEntry).items()}
"""Key of an entry → the kind of its values."""
_OF_JOBS = {*Job.__struct_fields__, "count", "every"} - {"id", "jobspec"}  # the id is read last
_VALUES = {key: kind.read for key, kind in KINDS.items() if key in _OF_JOBS}


def jobs_schema() -> dict[str, Any]:
    """Return the JSON Schema of a ``jobs.yaml``; a line of JSON Lines is an ``entry`` of it."""
    entry = {"$ref": "#/$defs/entry"}
    jobs = {"type": "array", "items": entry}
    keys = {"name": {}, "description": {}, "defaults": {"anyOf": [entry, {"type": "null"}]}, "jobs": jobs}
    table = {"type": "object", "properties": keys, "required": ["jobs"], "additionalProperties": False}
    return {"anyOf": [jobs, table, {"type": "null"}], "$defs": {"entry": JobEntry.schema()}}


# -- documents -----------------------------------------------------------------------


def read_jobs_yaml(text: str, reading: ReadOptions | None = None) -> Workload:
    """Read a ``jobs.yaml`` (or the same in JSON).

    Raises
    ------
    FormatError
        When the text is not YAML, or a shape, duration or constraint in it cannot be read.
    WorkloadError
        On an unknown key, a missing one, a wrong value, or a dependency on a job that is not there.
    """
    reading = reading or ReadOptions(source="jobs.yaml")
    document = None if _EMPTY.fullmatch(text) else _document(text, reading.source)
    entries, defaults, title = _parts(document, reading.source)
    maker = Maker(reading.folder)
    numbered = ((f"{reading.source}: jobs[{index}]", entry) for index, entry in enumerate(entries))
    drafts = (maker.drafts(entry, defaults, place) for place, entry in numbered)
    return workload_of(drafts, replace(reading, name=title or reading.name), "jobs")


def given_jobs(given: Any) -> tuple[Job, ...]:
    """Return jobs that a Python program gives, as values or as entries of a document, in submit order.

    Entries may have values of NumPy, jobspecs as objects, and None or NaN where a frame has no value.

    Raises
    ------
    FormatError, WorkloadError
        As `read_jobs_yaml`, with the place in the list.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise wrong("jobs", given, "several jobs, as Job or as mappings")
    maker = Maker(Path())
    drafts: list[Draft] = []
    entries = False
    for number, one in enumerate(given):
        place = f"jobs[{number}]"
        if isinstance(one, Job):
            drafts.append((place, one, None))
            maker.ids.setdefault(str(one.id), place)
        elif isinstance(one, Mapping):
            entries = True
            if one.get("submit") is not None and not _is_given(one["submit"]):
                raise WorkloadError("there is no submit time", where=f"{place}.submit", expected="seconds")
            entry = {str(key): _plain_value(value) for key, value in one.items() if _is_given(value)}
            drafts.extend((place, job, entry.get("depends")) for job in maker.jobs(entry, {}, place))
        else:
            expected = "a Job, or a mapping with 'shape', 'jobspec' or 'file'"
            raise WorkloadError(f"{clip(repr(one), 60)} is not a job", where=place, expected=expected)
        if len(drafts) > MAX_JOBS:
            raise LimitError(f"more than {MAX_JOBS:,} jobs", where=place)
    return in_submit_order(resolve(drafts) if entries else [job for _, job, _ in drafts])


def _is_given(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and value != value)  # noqa: PLR0124 (NaN)


def _plain_value(value: Any) -> Any:
    if hasattr(value, "to_dict") and hasattr(value, "to_shape"):  # a jobspec
        return value.to_dict()
    value = value.item() if hasattr(value, "item") else value
    return list(value) if isinstance(value, tuple) else value


def _document(text: str, source: str) -> Any:
    """Return the document of a text of YAML; JSON, which is YAML, is read by its own, faster reader."""
    from simsched.formats.text.json_text import load_json
    from simsched.formats.text.yaml_text import load_yaml

    if text.lstrip("\ufeff \t\r\n")[:1] in {"{", "["}:
        try:
            return load_json(text, source)
        except LimitError:
            raise
        except FormatError:  # [{shape: core}] is YAML alone
            pass
    return load_yaml(text, source)


def _parts(document: Any, source: str) -> tuple[list[Any], dict[str, Any], str]:
    """Return (entries, defaults, name) of either form of the document."""
    if document is None:
        return [], {}, ""
    if isinstance(document, list):
        return document, {}, ""
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), list):
        raise WorkloadError("not a list of jobs", where=source, expected="a list, or a mapping with 'jobs'")
    refuse_unknown(document, frozenset(("name", "defaults", "jobs", "description")), source)
    defaults = document.get("defaults") or {}
    if not isinstance(defaults, dict):
        raise WorkloadError(
            "not a mapping", where=f"{source}: defaults", expected="keys that every job starts from"
        )
    return document["jobs"], defaults, str(document.get("name") or "")


def refuse_unknown(entry: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    """Raise WorkloadError for a key that is not known, with the one that was meant."""
    for key in entry:
        if key not in known:
            expected = nearest(str(key), sorted(known)) or ", ".join(sorted(known))
            raise WorkloadError(f"unknown key {key!r}", where=place, expected=expected)


Draft: TypeAlias = tuple[str, Job, Any]
"""The place of an entry, one of its jobs, and the ``depends`` of the entry."""


def workload_of(entries: Iterable[list[Draft]], reading: ReadOptions, kind: str) -> Workload:
    """Return the jobs of entries, with their dependencies, as far as the limit of records goes."""
    drafts: list[Draft] = []
    most = inf if reading.limit is None else reading.limit
    coming = iter(entries)
    while len(drafts) < most and (found := next(coming, None)) is not None:
        drafts += found
    return assemble(resolve(drafts), Skips(), source=reading.source, name=reading.name, kind=kind)


@dataclass(slots=True)
class Maker:
    """Turns entries into jobs; equal requests share one jobspec.

    `jobspecs` reads those of entries that strict JSON gave; None: all are validated in detail.
    """

    folder: Path | None
    jobspecs: Reader | None = None
    made: dict[tuple[Any, ...], Jobspec] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    sequence: int = 0

    def drafts(self, entry: Any, defaults: dict[str, Any], place: str) -> list[Draft]:
        """Return the jobs of one entry, with its place and what it says of dependencies."""
        if not isinstance(entry, dict):
            raise WorkloadError(
                "not a job", where=place, expected="a mapping with 'shape', 'jobspec' or 'file'"
            )
        said = entry.get("depends", defaults.get("depends"))
        return [(place, job, said) for job in self.jobs(entry, defaults, place)]

    def jobs(self, said: dict[str, Any], defaults: dict[str, Any], place: str) -> Iterator[Job]:
        """Yield the jobs of one entry, `count` of them; their dependencies come later.

        A limit in the entry counts before that of its jobspec, that before the default.
        """
        if defaults and not said.keys().isdisjoint(_REQUESTS):  # the entry brings its own request
            defaults = {key: value for key, value in defaults.items() if key not in _REQUESTS}
        entry = {**defaults, **said} if defaults else said
        if not entry.keys() <= KINDS.keys():
            refuse_unknown(entry, KINDS, place)
        values = {
            key: _VALUES[key](value, f"{place}.{key}") for key, value in entry.items() if key in _VALUES
        }
        jobspec = self._with_attributes(self.jobspec(entry, place), entry, place)
        own_limit, name, queue = own_values(jobspec)
        if "duration" not in said:
            values["duration"] = own_limit or values.get("duration")
        if values.get("duration") is None and values.get("runtime") is None:
            raise WorkloadError("a job needs a runtime or a duration", where=place)
        if values.get("duration") == float("inf"):
            values["duration"] = None
        indices, most = _array_of(entry, jobspec, place)
        given, every, submit = (values.pop(key, None) for key in ("count", "every", "submit"))
        count = 1 if given is None else given
        total = count * max(len(indices), 1)
        if total > MAX_COPIES:
            raise LimitError(f"more than {MAX_COPIES:,} jobs of one entry", where=place)
        if self.sequence + total > MAX_JOBS:
            raise LimitError(f"more than {MAX_JOBS:,} jobs", where=place)
        values["name"] = values.get("name") or name
        # Parts name queues of their own, or have that of the entry.
        own = values.get("queue")
        values["queue"] = queue or own if "parts" in entry else own or queue
        for index in range(count):
            id_ = self._id(entry, index, count, place)
            job = Job(id=id_, submit=(submit or 0) + index * (every or 0), jobspec=jobspec, **values)
            yield from self._tasks(job, indices, most, place) if indices else (job,)

    def _tasks(self, job: Job, indices: list[int], most: int | None, place: str) -> Iterator[Job]:
        """Yield the tasks of a job array, whose id is that of the job."""
        self.sequence += len(indices) - 1
        for index in indices:
            task = ArrayTask(str(job.id), index, most)
            name = f"{job.id}_{index}"
            first = self.ids.setdefault(name, place)
            if first is not place:
                raise WorkloadError(f"job id {name!r} occurs twice, first at {first}", where=place)
            yield msgspec.structs.replace(job, id=name, array_task=task)

    def _id(self, entry: dict[str, Any], index: int, count: int, place: str) -> int | str:
        """Return the id of the entry (numbered when it has a count), or the next free number."""
        self.sequence += 1
        made: int | str = self.sequence
        if "id" in entry:
            given = KINDS["id"].read(entry["id"], f"{place}.id")
            made = given if count == 1 else f"{given}.{index + 1}"
        first = self.ids.setdefault(str(made), place)
        if first is not place:
            raise WorkloadError(f"job id {made!r} occurs twice, first at {first}", where=place)
        return made

    def jobspec(self, entry: dict[str, Any], place: str) -> Jobspec:
        """Return the request of an entry."""
        given = [key for key in _REQUESTS if key in entry]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise WorkloadError(f"found {found}", where=place, expected="one of shape, jobspec, file, parts")
        key, value = given[0], entry[given[0]]
        if key == "parts":
            return self._joined(value, entry, place)
        text = repr(value) if self.jobspecs is None else msgspec.json.encode(value)
        cached = key, text, repr(entry.get("constraint")), repr(entry.get("command"))
        made = self.made.get(cached)
        if made is None:
            try:
                made = self.made[cached] = self._make(key, value, text, entry)
            except SimschedError as error:
                raise error.at(f"{place}.{key}") from None
        return made

    def _with_attributes(self, jobspec: Jobspec, entry: dict[str, Any], place: str) -> Jobspec:
        """Return the jobspec with the licences, the reservation and the checkpoints of the entry."""
        given = {key: KINDS[key].read(entry[key], f"{place}.{key}") for key in _ATTRIBUTES if key in entry}
        if not given:
            return jobspec
        cached = "attributes", id(jobspec), repr(given)
        if cached not in self.made:
            self.made[cached] = jobspec.with_system(**given)
        return self.made[cached]

    def _joined(self, parts: Any, entry: dict[str, Any], place: str) -> Jobspec:
        """Return one jobspec for the parts of a heterogeneous job; the entry's constraint holds for each."""
        if not isinstance(parts, list) or not parts:
            raise WorkloadError(
                "parts is not a list of requests", where=f"{place}.parts", expected="one mapping per part"
            )
        common = [entry.get(key) for key in ("constraint", "command", "queue")]
        cached = "parts", repr(parts), repr(common)
        if cached in self.made:
            return self.made[cached]
        specs, queues = [], []
        for number, part in enumerate(parts):
            where = f"{place}.parts[{number}]"
            if not isinstance(part, dict):
                raise WorkloadError(
                    "not a part", where=where, expected="a mapping with 'shape', 'jobspec' or 'file'"
                )
            refuse_unknown(part, fields_of(PartEntry), where)
            command = {"command": entry["command"]} if "command" in entry else {}
            spec = self.jobspec({**command, **part}, where)
            specs.append(_and(spec, entry.get("constraint"), place))
            own = _TEXT.read(part.get("queue"), f"{where}.queue")
            queues.append(own or spec.queue or _TEXT.read(entry.get("queue"), f"{place}.queue"))
        made = self.made[cached] = joined(specs, queues).with_system(**_of_the_job(specs, f"{place}.parts"))
        return made

    def _make(self, key: str, value: Any, text: str | bytes, entry: dict[str, Any]) -> Jobspec:
        from simsched.formats.jobspec.jobspec import Jobspec
        from simsched.formats.request_files import load_jobspec

        constraint = _constraint(entry.get("constraint"))
        if key == "shape":
            if not isinstance(value, str):
                raise WorkloadError(f"{value!r} is not a shape", expected="RFC 46 text such as 'slot=4/core'")
            return Jobspec.from_shape(value, constraint=constraint, command=_command(entry.get("command")))
        if key == "jobspec":
            read = None if self.jobspecs is None else self.jobspecs.jobspec(value, text)
            return constrained(read or Jobspec.from_dict(value), constraint)
        if not isinstance(value, str):
            raise WorkloadError(f"{value!r} is not a file name")
        if self.folder is None:
            raise WorkloadError("a workload from standard input cannot name files")
        return constrained(load_jobspec(self.folder / value), constraint)


def own_values(jobspec: Jobspec) -> tuple[float | None, str | None, str | None]:
    """Return the limit, the name and the queue that a jobspec states; of parts, the queue of the first."""
    limit = whole(jobspec.duration) if jobspec.duration else None  # 0 is unlimited (RFC 14)
    return limit, jobspec.name, jobspec.queue or next(iter(part_queues(jobspec)), None)


def _of_the_job(parts: list[Jobspec], place: str) -> dict[str, Any]:
    """Return the attributes of a heterogeneous job that its parts state; the longest duration counts."""
    found: dict[str, Any] = {}
    for key in ("duration", "array", "preemptible-after", *_ATTRIBUTES):
        stated = [part.system[key] for part in parts if key in part.system]
        if key == "duration" and stated:
            found[key] = max(stated, key=lambda seconds: seconds or float("inf"))  # 0: no limit
        elif len(stated) > 1:
            raise WorkloadError(
                f"{len(stated)} parts state {key}",
                where=place,
                expected=f"{key} beside parts, for the whole job",
            )
        elif stated:
            found[key] = stated[0]
    return found


def _array_of(entry: dict[str, Any], jobspec: Jobspec, place: str) -> tuple[list[int], int | None]:
    """Return the tasks of an entry's job array, by itself or by its jobspec; [] if it is not an array."""
    if "array_task" in entry:
        if "array" in entry:
            raise WorkloadError("found array and array_task", where=place, expected="one of them")
        return [], None
    given = entry.get("array", jobspec.system.get("array"))
    if given is None:
        return [], None
    return parse_tasks(given, f"{place}.{'array' if 'array' in entry else 'attributes.system.array'}")


def _and(jobspec: Jobspec, constraint: Any, place: str) -> Jobspec:
    try:
        return constrained(jobspec, _constraint(constraint))
    except SimschedError as error:
        raise error.at(f"{place}.constraint") from None


def constrained(jobspec: Jobspec, constraint: Constraint | None) -> Jobspec:
    """Return the jobspec with a constraint and-ed to its own (RFC 31)."""
    if constraint is None:
        return jobspec
    from simsched.formats.rfc.constraint import And, to_json

    both = constraint if jobspec.constraint is None else And((jobspec.constraint, constraint))
    return jobspec.with_system(constraints=to_json(both))


def _constraint(value: Any) -> Constraint | None:
    if value is None:
        return None
    from simsched.formats.rfc.constraint import from_json, parse_constraint

    return parse_constraint(value) if isinstance(value, str) else from_json(value, "constraint")


def _command(value: Any) -> list[str] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return value
    raise WorkloadError(f"bad command {value!r}", expected="a text or a list of texts")
