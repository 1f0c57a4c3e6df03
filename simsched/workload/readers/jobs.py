"""Jobs as entries: ``jobs.yaml``, JSON Lines, data frames with the same names, and what programs give.

A ``jobs.yaml`` is a list of entries, or ``{name, defaults, jobs}`` where `defaults` holds keys that every
entry starts from.  `JobEntry` declares the keys.  In JSON Lines each line is one entry.  Data frames with the
columns of our own tables of jobs, such as ``run.jobs``, need no column map.

`PlainLines` is the fast reader of lines as programs write them: of a jobspec or shape, numbers and texts.  It
never reports a fault.  At the least doubt, duplicate keys included, it returns nothing, and `Maker` reads the
line.  It therefore may refuse a correct line, which costs time only; tests/workload/readers/test_jobs_yaml.py
compares both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from dataclasses import field as slot
from functools import partial
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Raw, UnsetType

from simsched.arguments import wrong
from simsched.declare.kinds import (
    ANYTHING,
    MOST,
    ValueKind,
    in_turn,
    listed,
    or_null,
    quoted,
    sized,
    text,
    typed,
    unread,
    whole,
)
from simsched.declare.table import Declared, field, fields_of, given_in
from simsched.errors import ConfigError, FormatError, LimitError, SimschedError, WorkloadError, clip
from simsched.formats.jobspec.fast import Reader
from simsched.formats.jobspec.heterogeneous import joined, part_queues
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc import duration
from simsched.formats.rfc.constraint import And, Constraint, from_json, parse_constraint, to_json
from simsched.formats.rfc.declared import seconds
from simsched.formats.text.json_text import load_json, load_json_line, number_of_keys
from simsched.formats.text.yaml_text import load_yaml
from simsched.workload.dependencies import DEPENDS, resolve
from simsched.workload.job import (
    MAX_JOBS,
    ArrayTask,
    Job,
    Skips,
    Workload,
    assemble,
    change,
    in_submit_order,
    parse_tasks,
)
from simsched.workload.mapping import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from simsched.formats.rfc.dependency import Dependency


_REQUESTS = ("shape", "jobspec", "file", "parts")
MAX_COPIES = 1_000_000
"""The most jobs that one entry may describe: a line of text should not take minutes and gigabytes."""
_ATTRIBUTES = ("licenses", "reservation", "checkpoint")
"""Keys that become attributes (``attributes.system``) of the jobspec."""


# -- entries -------------------------------------------------------------------------


_ENTRY = {"$ref": "#/$defs/entry"}
_STRING = text("a text", empty=True)


def _words(value: Any, where: str) -> list[str]:
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return value
    raise WorkloadError(
        f"{quoted(value)} is not a command", where=where, expected="a text or a list of texts"
    )


def _task(value: Any, where: str) -> ArrayTask:
    return ArrayTask.parse(_STRING.read(value, where), where)


_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_TEXT = or_null(typed("a text", str, int, make=str))
TIME = seconds("a time such as 90, 30m or 1.5h")
Time = Annotated[float | None, or_null(TIME)]
Limit = Annotated[float | None, or_null(seconds())]
Text = Annotated[str | None, _TEXT]
JobId = Annotated[int | str, typed("a whole number or a text", int, str, empty=False)]
Count = Annotated[int | None, or_null(whole())]


class RequestEntry(Declared, frozen=True, rename=None):
    """One request: exactly one of shape, jobspec and file.

    shape : RFC 46 text.
    jobspec : a jobspec in place (RFC 14).
    file : name of a file with a jobspec, beside the document.
    constraint : RFC 35 text or an RFC 31 object, and-ed to the constraint of the jobspec.
    command : the command of a shape, as a text or a list of texts.
    """

    nullable = False

    shape: Annotated[str | None, text("a shape", "RFC 46 text such as 'slot=4/core'")] = None
    jobspec: Annotated[Any, ANYTHING] = None
    file: Annotated[str | None, text("the name of a file")] = None
    constraint: Annotated[Any, ANYTHING] = None
    command: Annotated[list[str] | None, or_null(ValueKind(_words, _TEXTS))] = None


class PartEntry(RequestEntry, frozen=True, rename=None):
    """One part of a heterogeneous job.

    queue : name of its queue.
    """

    queue: Text = None


_PARTS = listed(given_in(PartEntry), "a list of requests", "one mapping per part", one_alone=False)


class QueuedEntry(RequestEntry, frozen=True, rename=None):
    """One job, which may run or wait.

    id : a whole number or a text; by default the next number.
    submit : when it is submitted, a duration after the start (RFC 23; default 0).
    duration : the requested limit.
    name : name of the job.
    user : who submits it.
    group : group of the user.
    bank : account that it is charged to.
    queue : name of the queue.
    qos : quality of service.
    urgency : 0 to 31 (RFC 30; default 16).
    priority : a priority that another scheduler gave.
    """

    id: JobId = 0
    submit: Time = None
    duration: Limit = None
    name: Text = None
    user: Text = None
    group: Text = None
    bank: Text = None
    queue: Text = None
    qos: Text = None
    urgency: Annotated[int, or_null(whole(0, 31), 16)] = 16
    priority: Count = None


class JobEntry(QueuedEntry, frozen=True, rename=None):
    """One entry: a job, or several that differ in their numbers.  Exactly one of its four requests is given.

    parts : requests with ``constraint`` and ``queue`` of their own, which start together.
    runtime : the actual run time.
    count : how many times it is submitted.
    every : the time between two of them (default 0).
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

    parts: Annotated[Any, sized(_PARTS)] = None
    count: Count = None
    every: Time = None
    runtime: Time = None
    preceding: Annotated[int | str | None, or_null(typed("the id of a job", int, str))] = None
    think_time: Time = None
    hold: bool = False
    cancel_at: Time = None
    deadline: Time = None
    procs: Count = None
    nodes: Count = None
    memory: Count = None
    energy: Count = None
    partition: Text = None
    wait: Time = None
    status: Text = None
    nodelist: Text = None
    depends: Annotated[Any, DEPENDS] = None
    array: Annotated[Any, or_null(ValueKind(parse_tasks, {"type": ["string", "integer"]}))] = None
    array_task: Annotated[ArrayTask | None, or_null(ValueKind(_task, _STRING.schema))] = None
    licenses: Annotated[Any, typed("a text or a mapping", str, dict)] = None
    reservation: Annotated[Any, _STRING] = None
    checkpoint: Annotated[Any, typed("a mapping", dict)] = None


_OF_JOBS = {*Job.__struct_fields__} - {"id", "submit", "jobspec"}


class JobsTable(Declared, frozen=True, rename=None):
    """A ``jobs.yaml`` with more than a list of entries.

    jobs : the entries.
    name : name of the workload.
    description : a text for readers.
    defaults : keys that every entry starts from.
    """

    join = ": "

    jobs: Annotated[list[Any], unread(type="array", items=_ENTRY)]
    name: Annotated[str, or_null(typed("a text", str, int, make=str), "")] = ""
    description: Annotated[Any, ANYTHING] = None
    defaults: Annotated[dict[str, Any], or_null(ValueKind(JobEntry.given, _ENTRY), {})] = field(
        default_factory=dict
    )


def jobs_schema() -> dict[str, Any]:
    """Return the JSON Schema of a ``jobs.yaml``; a line of JSON Lines is an ``entry`` of it."""
    table = JobsTable.schema()
    return {
        "anyOf": [table["properties"]["jobs"], table, {"type": "null"}],
        "$defs": {"entry": JobEntry.schema()},
    }


# -- documents -----------------------------------------------------------------------


def read_jobs_yaml(text: str, reading: ReadOptions | None = None) -> Workload:
    """Read a ``jobs.yaml`` (or the same in JSON).

    Raises
    ------
    FormatError, WorkloadError
        For a text that is not YAML, and for the first fault of the document, which has the others with it:
        unknown and missing keys, wrong values, shapes, durations and constraints, and dependencies on jobs
        that are not there.
    """
    reading = reading or ReadOptions(source="jobs.yaml")
    document, is_json = None, text.lstrip("\ufeff \t\r\n")[:1] in {"{", "["}
    if is_json:  # which is YAML, and is read by its own, faster reader
        try:
            document = load_json(text, reading.source)
        except LimitError:
            raise
        except FormatError:
            is_json = False  # [{shape: core}] is YAML alone
    if not is_json and any(line.lstrip()[:1] not in ("", "#") for line in text.splitlines()):
        document = load_yaml(text, reading.source)
    document = {"jobs": document or []} if isinstance(document, list | None) else document
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), list):
        expected = "a list, or a mapping with 'jobs'"
        raise WorkloadError("not a list of jobs", where=reading.source, expected=expected)
    with workload_faults():
        table = JobsTable.read(document, reading.source)
        maker = Maker(reading.folder, defaults=table.defaults, of_defaults=f"{reading.source}: defaults")
        numbered = ((f"{reading.source}: jobs[{index}]", entry) for index, entry in enumerate(table.jobs))
        drafts = (partial(maker.drafts, entry, place) for place, entry in numbered)
        return workload_of(drafts, replace(reading, name=table.name or reading.name), "jobs")


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
    entries = False

    def read(one: Any, place: str) -> list[Draft]:
        if isinstance(one, Job):
            maker.ids.setdefault(str(one.id), place)
            return [(place, one, ())]
        if not isinstance(one, Mapping):
            expected = "a Job, or a mapping with 'shape', 'jobspec' or 'file'"
            raise WorkloadError(f"{clip(repr(one), 60)} is not a job", where=place, expected=expected)
        nonlocal entries
        entries = True
        if one.get("submit") is not None and not _is_given(one["submit"]):
            raise WorkloadError("there is no submit time", where=f"{place}.submit", expected="seconds")
        return maker.drafts(
            {str(key): _plain_value(item) for key, item in one.items() if _is_given(item)}, place
        )

    with workload_faults():
        reads = (partial(read, one, f"jobs[{number}]") for number, one in enumerate(given))
        drafts = read_in_turn(reads, MAX_JOBS + 1)
        if len(drafts) > MAX_JOBS:
            raise LimitError(f"more than {MAX_JOBS:,} jobs", where="jobs")
        return in_submit_order(resolve(drafts) if entries else [job for _, job, _ in drafts])


@contextmanager
def workload_faults() -> Iterator[None]:
    """Make errors of the class of workloads of those that declared tables raise."""
    try:
        yield
    except SimschedError as error:
        raise error.retold(
            lambda one: WorkloadError(*one.args) if isinstance(one, ConfigError) else one
        ) from None


def _is_given(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and value != value)  # noqa: PLR0124 (NaN)


def _plain_value(value: Any) -> Any:
    if hasattr(value, "to_dict") and hasattr(value, "to_shape"):  # a jobspec
        return value.to_dict()
    value = value.tolist() if hasattr(value, "tolist") else value
    return list(value) if isinstance(value, tuple) else value


Draft: TypeAlias = tuple[str, Job, "Sequence[Dependency]"]
"""The place of an entry, one of its jobs, and the ``depends`` of the entry."""


def read_in_turn(entries: Iterable[Callable[[], Iterable[Draft]]], most: float = inf) -> list[Draft]:
    """Return the jobs of entries until there are `most`, or raise the first fault with the others."""
    drafts: list[Draft] = []
    coming = takewhile(lambda _: len(drafts) < most, entries)
    in_turn(lambda: drafts.extend(read()) for read in coming)  # noqa: B023 (called before the next)
    return drafts


def workload_of(
    entries: Iterable[Callable[[], Iterable[Draft]]], reading: ReadOptions, kind: str
) -> Workload:
    """Return the jobs of entries, with their dependencies, as far as the limit of records goes."""
    drafts = read_in_turn(entries, inf if reading.limit is None else reading.limit)
    return assemble(resolve(drafts), Skips(), source=reading.source, name=reading.name, kind=kind)


@dataclass(slots=True)
class Maker:
    """Turns entries into jobs; equal requests share one jobspec.

    `jobspecs` reads those of entries that strict JSON gave; None: all are validated in detail.
    `defaults` are the values that all entries start from, and `of_defaults` is their place.
    """

    folder: Path | None
    jobspecs: Reader | None = None
    defaults: Mapping[str, Any] = slot(default_factory=dict)
    of_defaults: str = ""
    made: dict[tuple[Any, ...], Jobspec] = slot(default_factory=dict)
    ids: dict[str, str] = slot(default_factory=dict)
    sequence: int = 0

    def drafts(self, entry: Any, place: str) -> list[Draft]:
        """Return the jobs of one entry, with its place and its dependencies, which are not resolved."""
        if not isinstance(entry, dict):
            expected = "a mapping with 'shape', 'jobspec' or 'file'"
            raise WorkloadError("not a job", where=place, expected=expected)
        said = JobEntry.given(entry, place)
        waits = said.get("depends", self.defaults.get("depends", ()))
        return [(place, job, waits) for job in self.jobs(said, place)]

    def jobs(self, said: dict[str, Any], place: str) -> Iterator[Job]:
        """Yield the jobs of the values of one entry, `count` of them; their dependencies come later.

        A limit in the entry counts before that of its jobspec, that before the default.
        """
        defaults = self.defaults
        if defaults and not said.keys().isdisjoint(_REQUESTS):  # the entry brings its own request
            defaults = {key: value for key, value in defaults.items() if key not in _REQUESTS}
        entry = {**defaults, **said} if defaults else said
        values = {key: value for key, value in entry.items() if key in _OF_JOBS}
        jobspec = self.jobspec(entry, place)
        attributes = {key: entry[key] for key in _ATTRIBUTES if key in entry}
        if attributes:
            cached = "attributes", id(jobspec), repr(attributes)
            jobspec = self._once(cached, partial(jobspec.with_system, **attributes))
        own_limit, name, queue = own_values(jobspec)
        if "duration" not in said:
            values["duration"] = own_limit or values.get("duration")
        if values.get("duration") is None and values.get("runtime") is None:
            raise WorkloadError("a job needs a runtime or a duration", where=place)
        if values.get("duration") == inf:
            values["duration"] = None
        if "array_task" in entry and "array" in entry:
            raise WorkloadError("found array and array_task", where=place, expected="one of them")
        tasks = entry.get("array")
        stated = None if entry.keys() & {"array", "array_task"} else jobspec.system.get("array")
        if stated is not None:
            tasks = parse_tasks(stated, f"{place}.attributes.system.array")
        indices, most = tasks or ([], None)
        given, every, submit = (entry.get(key) for key in ("count", "every", "submit"))
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
        for copy in range(count):
            self.sequence += 1
            id_: int | str = self.sequence
            if "id" in entry:
                id_ = entry["id"] if count == 1 else f"{entry['id']}.{copy + 1}"
            self._claimed(id_, place)
            job = Job(id=id_, submit=(submit or 0) + copy * (every or 0), jobspec=jobspec, **values)
            if not indices:
                yield job
                continue
            self.sequence += len(indices) - 1  # the tasks of a job array, whose id is that of the job
            for index in indices:
                task = ArrayTask(str(id_), index, most)
                yield change(job, id=self._claimed(f"{id_}_{index}", place), array_task=task)

    def _claimed(self, id_: int | str, place: str) -> int | str:
        """Return an id that no job before has."""
        first = self.ids.setdefault(str(id_), place)
        if first is not place:
            raise WorkloadError(f"job id {id_!r} occurs twice, first at {first}", where=place)
        return id_

    def jobspec(self, entry: Mapping[str, Any], place: str) -> Jobspec:
        """Return the request of the values of an entry."""
        given = [key for key in _REQUESTS if key in entry]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise WorkloadError(f"found {found}", where=place, expected="one of shape, jobspec, file, parts")
        key, value = given[0], entry[given[0]]
        if key == "parts":
            common = [entry.get(key) for key in ("constraint", "command", "queue")]
            cached: tuple[Any, ...] = key, repr(value), repr(common)
            return self._once(cached, partial(self._joined, value, entry, place))
        text = repr(value) if self.jobspecs is None else msgspec.json.encode(value)
        cached = key, text, repr(entry.get("constraint")), repr(entry.get("command"))
        return self._once(cached, partial(self._made, key, entry, place))

    def _once(self, key: tuple[Any, ...], make: Callable[[], Jobspec]) -> Jobspec:
        """Return the request of a key, which is made where it is needed first."""
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = make()
        return found

    def _at(self, key: str, entry: Mapping[str, Any], place: str) -> str:
        """Return the place of a key: that of the defaults if the value is theirs."""
        return f"{self.of_defaults if entry[key] is self.defaults.get(key) else place}.{key}"

    def _constraint(self, entry: Mapping[str, Any], place: str) -> Constraint | None:
        value = entry.get("constraint")
        if value is None:
            return None
        try:
            return parse_constraint(value) if isinstance(value, str) else from_json(value, "constraint")
        except SimschedError as error:
            raise error.at(self._at("constraint", entry, place)) from None

    def _made(self, key: str, entry: Mapping[str, Any], place: str) -> Jobspec:
        """Return the request of a shape, a jobspec or a file."""
        from simsched.formats.request_files import load_jobspec

        value, constraint = entry[key], self._constraint(entry, place)
        try:
            if key == "shape":
                return Jobspec.from_shape(value, constraint=constraint, command=entry.get("command"))
            if key == "jobspec":
                read = None if self.jobspecs is None else self.jobspecs.read(msgspec.json.encode(value))
                return constrained(read or Jobspec.from_dict(value), constraint)
            if self.folder is None:
                raise WorkloadError("a workload from standard input cannot name files")
            return constrained(load_jobspec(self.folder / value), constraint)
        except SimschedError as error:
            raise error.at(self._at(key, entry, place)) from None

    def _joined(self, parts: Sequence[dict[str, Any]], entry: Mapping[str, Any], place: str) -> Jobspec:
        """Return one jobspec for the parts of a heterogeneous job; the entry's constraint holds for each.

        Attributes of the job that its parts state are those of the whole; the longest duration counts.
        """
        constraint = self._constraint(entry, place)
        command = {"command": entry["command"]} if "command" in entry else {}
        reads = [
            partial(self.jobspec, {**command, **part}, f"{place}.parts[{at}]")
            for at, part in enumerate(parts)
        ]
        specs = [constrained(spec, constraint) for spec in in_turn(reads)]
        queues = [
            part.get("queue") or spec.queue or entry.get("queue")
            for part, spec in zip(parts, specs, strict=True)
        ]
        of_all: dict[str, Any] = {}
        for key in ("duration", "array", "preemptible-after", *_ATTRIBUTES):
            stated = [spec.system[key] for spec in specs if key in spec.system]
            if key == "duration" and stated:
                of_all[key] = max(stated, key=lambda seconds: seconds or inf)  # 0: no limit
            elif len(stated) > 1:
                raise WorkloadError(
                    f"{len(stated)} parts state {key}",
                    where=f"{place}.parts",
                    expected=f"{key} beside parts, for the whole job",
                )
            elif stated:
                of_all[key] = stated[0]
        return joined(specs, queues).with_system(**of_all)


def own_values(jobspec: Jobspec) -> tuple[float | None, str | None, str | None]:
    """Return the limit, the name and the queue that a jobspec states; of parts, the queue of the first."""
    limit = jobspec.duration  # None for 0, which is unlimited (RFC 14)
    queue = jobspec.queue or next(iter(part_queues(jobspec)), None)
    return limit and duration.whole(limit), jobspec.name, queue


def constrained(jobspec: Jobspec, constraint: Constraint | None) -> Jobspec:
    """Return the jobspec with a constraint and-ed to its own (RFC 31)."""
    if constraint is None:
        return jobspec
    both = constraint if jobspec.constraint is None else And((jobspec.constraint, constraint))
    return jobspec.with_system(constraints=to_json(both))


# -- JSON Lines, and data frames ------------------------------------------------------------


_WHOLE = Annotated[int, Meta(ge=0, le=MOST)]
_TIME = (
    Annotated[int, Meta(ge=0, le=int(duration.MAX_SECONDS))]
    | Annotated[float, Meta(ge=0, le=duration.MAX_SECONDS)]
)
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
    [(name, _TYPES.get(name, UnsetType), None) for name in (*_FIELDS, "shape")],
    forbid_unknown_fields=True,
    gc=False,
)
"""A line; null is no value of any field, and a field that is not given is None."""
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
        if known is None or keys != len(given) - given.count(None) + known.keys:
            return None
        *values, _ = given
        for at, default in _OTHERWISE.items():
            if values[at] is None:
                values[at] = default
        for at in _TIMED:
            if type(values[at]) is float:
                values[at] = duration.whole(values[at])
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


_NOT_OF_FRAMES = ("nodes", "count", "every", "file", "parts")
"""Keys of an entry that are not read from a frame: ``nodes`` of a run are those that a job held."""


def is_own_frame(frame: Any) -> bool:
    """Whether a frame has the requests of jobs and their submit times under our names."""
    names = {str(name) for name in frame.columns}
    return "submit" in names and not names.isdisjoint(("shape", "jobspec"))


def read_own_frame(frame: Any, reading: ReadOptions) -> Workload:
    """Read a frame, pandas or polars; columns that are not keys of a job are ignored.

    Raises
    ------
    FormatError, WorkloadError
        As `read_jsonl`, with the number of the row, from 1 on.
    """
    names = [name for name in frame.columns if name in fields_of(JobEntry) and name not in _NOT_OF_FRAMES]
    if "shape" in names and "jobspec" in names:
        names.remove("shape")
    return read_jsonl(_lines(frame, names), reading)


def _lines(frame: Any, names: list[str]) -> Iterator[str]:
    columns: list[list[Any]] = [_cells(frame[name]) for name in names]
    for number, row in enumerate(zip(*columns, strict=True), 1):
        place = f"data frame:{number}"
        entry: dict[str, Any] = {}
        for name, value in zip(names, map(_plain_value, row), strict=True):
            if isinstance(value, float) and value.is_integer():
                entry[name] = int(value)
            elif _is_given(value) and value not in ("", inf):  # an infinite time means no limit
                entry[name] = value
        if "submit" not in entry:
            raise WorkloadError("there is no submit time", where=place, expected="seconds")
        if isinstance(entry.get("depends"), str):
            entry["depends"] = entry["depends"].split(",")  # as the table of jobs of a run has them
        yield json.dumps(entry, default=partial(_refused, place))


def _refused(place: str, value: Any) -> Any:
    raise WorkloadError(f"{clip(repr(value), 60)} is neither a number nor a text", where=place)


def _cells(column: Any) -> list[Any]:
    """Return the cells of a column, with None for those that pandas has as absent."""
    column = column.astype(object).where(column.notna(), None) if hasattr(column, "notna") else column
    found: list[Any] = column.to_list()
    return found
