"""``jobs.yaml`` and JSON Lines of jobs: workloads that people write by hand.

A document is a list of entries, or ``{name, defaults, jobs}`` where `defaults` holds keys that every entry
starts from.  In JSON Lines each line is one entry.  `JobEntry` declares the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from simsched.arguments import wrong
from simsched.declare.kinds import ANYTHING, ValueKind
from simsched.declare.table import Declared, fields_of
from simsched.errors import FormatError, LimitError, SimschedError, WorkloadError, clip, nearest
from simsched.formats.jobspec.heterogeneous import joined, part_queues
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.duration import MAX_SECONDS, parse_duration, whole
from simsched.formats.text.json_text import certain_json, load_json_line
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
    from simsched.formats.rfc.constraint import Constraint


_EMPTY = re.compile(r"(?:\s*(?:#[^\n]*)?(?:\n|\Z))*")
_REQUESTS = ("shape", "jobspec", "file", "parts")
_ATTRIBUTES = ("licenses", "reservation", "checkpoint")
"""Keys that become attributes (``attributes.system``) of the jobspec."""
MAX_COPIES = 1_000_000
"""The most jobs that one entry may describe: a line of text should not take minutes and gigabytes."""
MOST = 2**53
"""A count of a job is less than this, so that every table holds it as it is."""


# -- values of entries ---------------------------------------------------------------


def _bad(value: Any, where: str, expected: str) -> WorkloadError:
    return WorkloadError(f"bad {where.rpartition('.')[2]} {value!r}", where=where, expected=expected)


def _kind(
    expected: str,
    *types: type,
    span: range | None = None,
    empty: bool = True,
    make: Callable[[Any], Any] = lambda value: value,
) -> ValueKind:
    """Return the kind of values of some types, of numbers of a span; no boolean is a number."""

    def read(value: Any, where: str) -> Any:
        known = isinstance(value, types) and (bool in types or not isinstance(value, bool))
        if not known or (span is not None and value not in span) or (value == "" and not empty):
            raise _bad(value, where, expected)
        return make(value)

    bounds = {} if span is None else {"minimum": span[0], "maximum": span[-1]}
    return ValueKind(read, {"type": [_WORDS[one] for one in types]} | bounds)


_WORDS = {str: "string", int: "integer", dict: "object", bool: "boolean"}


def read_seconds(value: Any, where: str, *, endless: bool = False) -> float | None:
    """Return the seconds of an RFC 23 duration, whole ones as int; None for null."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _bad(value, where, "a duration such as 90, 30m or 1.5h")
    seconds = whole(parse_duration(value, where))
    if seconds < 0 or (seconds > MAX_SECONDS and not (endless and seconds == inf)):
        raise _bad(value, where, "a time of 0 or more")
    return seconds


_TIME = {"anyOf": [{"type": "number", "minimum": 0, "maximum": MAX_SECONDS}, {"type": ["string", "null"]}]}
DURATION = ValueKind(partial(read_seconds, endless=True), _TIME)
_NUMBER = _kind(f"a whole number of 0 or more and below {MOST:g}", int, span=range(MOST))

# The types are those of values that need no reader, for lines of JSON; the kinds read all.
Whole = Annotated[int, Meta(ge=0, lt=MOST)]
Number = Whole | Annotated[float, Meta(ge=0, le=MAX_SECONDS)]
Seconds = Annotated[Number | None, ValueKind(read_seconds, _TIME)]
Text = Annotated[str | None, _kind("a text", str, int, make=str)]
Count = Annotated[Whole | None, _NUMBER]


class EntryRequest(Declared, frozen=True, rename=None):
    """What a job asks for, in one of four ways.

    shape : RFC 46 text.
    jobspec : a jobspec in place (RFC 14).
    file : name of a file with a jobspec, beside the document.
    constraint : RFC 35 text or an RFC 31 object, and-ed to the constraint of the jobspec.
    command : the command, a text or a list of texts, of a shape.
    queue : name of the queue.
    """

    shape: Annotated[str | UnsetType, ANYTHING] = UNSET
    jobspec: Annotated[Any, ANYTHING] = UNSET
    file: Annotated[str | UnsetType, ANYTHING] = UNSET
    constraint: Annotated[Any, ANYTHING] = None
    command: Annotated[Any, ANYTHING] = None
    queue: Text = None

    @classmethod
    def of(cls, said: Mapping[str, Any], place: str) -> Self:
        """Return the value of a mapping of a document.

        Raises
        ------
        FormatError, WorkloadError
            for an unknown key, with the one that was meant, and a wrong value.
        """
        known = fields_of(cls)
        if not said.keys() <= known.keys():
            refuse_unknown(said, known, place)
        return cls(
            **{
                key: known[key].kind.read(value, f"{place}.{key}")
                for key, value in said.items()
                if value is not None or known[key].default is UNSET
            }
        )


class JobEntry(EntryRequest, frozen=True, rename=None, omit_defaults=True):
    """One entry: a job, or several that differ in their numbers.

    parts : requests with ``constraint`` and ``queue`` of their own, which start together.
    id : a whole number or a text; by default the next number.
    submit : when it is submitted, a duration after the start (RFC 23; default 0).
    duration : the requested limit.
    runtime : the actual run time.
    count : how many times it is submitted.
    every : the time between two of them (default 0).
    name, user, group, bank, qos : names of the job and of whom it belongs to.
    urgency : 0 to 31 (RFC 30).
    priority : a priority that another scheduler gave.
    hold : whether the job is held.
    cancel_at : when it is cancelled.
    deadline : when it has to end.
    preceding, think_time : the job that it follows, and the time between the two (SWF 2.2).
    depends : ``afterok:NAME`` (a name or an id in this document), or a list of such, or RFC 26 objects.
    array : ``0-31%4``: a job array of 32 tasks, of which at most 4 run at a time; their ids are ID_0 … ID_31.
    array_task : ``ID_4%2``: this entry alone is task 4 of the array ID.
    licenses : ``matlab:2,ansys``, or a mapping.
    reservation : name of the reservation.
    checkpoint : a mapping with ``interval``, ``cost`` and ``restart``.
    nodes, procs, memory, energy, partition, status, wait, nodelist : value of a trace, which is not matched.
    """

    parts: Annotated[Any, ANYTHING] = UNSET
    id: Annotated[
        int | Annotated[str, Meta(min_length=1)] | UnsetType,
        _kind("a whole number or a text", int, str, empty=False),
    ] = UNSET
    submit: Seconds = None
    duration: Annotated[Number | Literal["inf"] | UnsetType | None, DURATION] = UNSET
    runtime: Seconds = None
    count: Count = None
    every: Seconds = None
    name: Text = None
    user: Text = None
    group: Text = None
    bank: Text = None
    qos: Text = None
    urgency: Annotated[Annotated[int, Meta(ge=0, le=31)], _kind("0 to 31", int, span=range(32))] = 16
    priority: Count = None
    hold: Annotated[bool, _kind("true or false", bool)] = False
    cancel_at: Seconds = None
    deadline: Seconds = None
    preceding: Annotated[int | str | None, _kind("a job id", int, str)] = None
    think_time: Seconds = None
    depends: Annotated[Any, ANYTHING] = None
    array: Annotated[Any, ANYTHING] = None
    array_task: Text = None
    licenses: Annotated[str | dict[str, Any] | UnsetType, _kind("a text or a mapping", str, dict)] = UNSET
    reservation: Annotated[str | UnsetType, _kind("a text", str)] = UNSET
    checkpoint: Annotated[dict[str, Any] | UnsetType, _kind("a mapping", dict)] = UNSET
    nodes: Count = None
    procs: Count = None
    memory: Count = None
    energy: Count = None
    partition: Text = None
    status: Text = None
    wait: Seconds = None
    nodelist: Text = None


class JobLine(JobEntry, frozen=True, rename=None, omit_defaults=True, forbid_unknown_fields=True):
    """An entry as a line of JSON; its jobspec is not decoded yet, because most repeat an earlier one."""

    jobspec: msgspec.Raw | UnsetType = UNSET


_LINES = msgspec.json.Decoder(JobLine)
KEYS = frozenset(fields_of(JobEntry))
"""The keys of an entry."""
SAME = (
    *("runtime", "name", "user", "group", "bank", "queue", "qos", "urgency", "priority", "preceding"),
    *(
        "think_time",
        "hold",
        "cancel_at",
        "deadline",
        "procs",
        "nodes",
        "memory",
        "energy",
        "partition",
        "wait",
    ),
    *("status", "nodelist"),
)
"""Keys of an entry that are fields of a job, with the same defaults."""
same = attrgetter(*SAME)
_TIMES = ("runtime", "think_time", "cancel_at", "deadline", "wait")


# -- documents -----------------------------------------------------------------------


def jobs_schema() -> dict[str, Any]:
    """Return the JSON Schema of a ``jobs.yaml``; a line of JSON Lines is an ``entry`` of it."""
    entry = {"$ref": "#/$defs/entry"}
    jobs = {"type": "array", "items": entry}
    keys = {"name": {}, "description": {}, "defaults": entry, "jobs": jobs}
    table = {"type": "object", "properties": keys, "required": ["jobs"], "additionalProperties": False}
    return {"anyOf": [jobs, table, {"type": "null"}], "$defs": {"entry": JobEntry.schema()}}


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
    maker = Maker(reading.folder, defaults=defaults)
    places = ((f"{reading.source}: jobs[{index}]", entry) for index, entry in enumerate(entries))
    made = ((place, maker.entry(entry, place)) for place, entry in places)
    return _workload(maker, made, replace(reading, name=title or reading.name), "jobs")


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
    drafts: list[tuple[str, Job, Any]] = []
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
            made = maker.entry(entry, place)
            drafts.extend((place, job, made.depends) for job in maker.jobs(made, place))
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


def read_jsonl(lines: Iterable[str], reading: ReadOptions | None = None) -> Workload:
    """Read JSON Lines, one entry per line; blank lines are ignored.

    Raises
    ------
    FormatError, WorkloadError
        As `read_jobs_yaml`, with the number of the line.
    """
    from simsched.formats.jobspec.fast import Reader

    reading = reading or ReadOptions(source="jobs.jsonl")
    maker = Maker(reading.folder, Reader())
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    made = ((f"{reading.source}:{at}", maker.line(line, reading.source, at)) for at, line in numbered)
    return _workload(maker, made, reading, "jsonl")


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


def _workload(
    maker: Maker, entries: Iterable[tuple[str, JobEntry]], reading: ReadOptions, kind: str
) -> Workload:
    drafts: list[tuple[str, Job, Any]] = []
    for place, entry in entries:
        if reading.limit is not None and len(drafts) >= reading.limit:
            break
        drafts.extend((place, job, entry.depends) for job in maker.jobs(entry, place))
    jobs = resolve(drafts)
    return assemble(jobs, Skips(), source=reading.source, name=reading.name, kind=kind)


@dataclass(slots=True)
class Maker:
    """Turns entries into jobs; equal requests share one jobspec.

    `defaults` are the keys from which each entry starts.  `jobspecs` reads those of entries that strict JSON
    gave; None: all are validated in detail.
    """

    folder: Path | None
    jobspecs: Reader | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    made: dict[tuple[Any, ...], Jobspec] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    sequence: int = 0

    def entry(self, said: Mapping[str, Any], place: str) -> JobEntry:
        """Return the entry of a document, with the defaults; their duration counts after the jobspec's."""
        if not isinstance(said, Mapping):
            raise WorkloadError(
                "not a job", where=place, expected="a mapping with 'shape', 'jobspec' or 'file'"
            )
        if self.defaults:
            # An entry that brings its own request has none of the defaults.
            own = "duration", *(() if said.keys().isdisjoint(_REQUESTS) else _REQUESTS)
            said = {**{key: value for key, value in self.defaults.items() if key not in own}, **said}
        return JobEntry.of(said, place)

    def line(self, line: str, source: str, number: int) -> JobEntry:
        """Return the entry of a line of JSON; what is plainly one is read several times as fast."""
        entry = self._plain_line(line)
        return entry or self.entry(load_json_line(line, source, number), f"{source}:{number}")

    def _plain_line(self, line: str) -> JobEntry | None:
        try:
            entry: JobLine = certain_json(line.encode(), _LINES.decode)
        except ValueError:  # also half of a surrogate pair, which is not UTF-8
            return None
        if entry.jobspec is UNSET or self.jobspecs is None:
            return entry
        text = bytes(entry.jobspec)
        jobspec = self.made.get((text,)) or self.jobspecs.read(text)
        if jobspec is None:
            return None
        self.made[text,] = jobspec
        return msgspec.structs.replace(entry, jobspec=jobspec)

    def jobs(self, entry: JobEntry, place: str) -> Iterator[Job]:
        """Yield the jobs of one entry, `count` of them; their dependencies come later.

        A limit in the entry counts before that of its jobspec, that before the default.
        """
        jobspec = self._with_attributes(self._jobspec(entry, place), entry)
        limit = entry.duration
        if limit is UNSET:
            limit = jobspec.duration  # 0 is unlimited (RFC 14)
            if not limit and "duration" in self.defaults:
                limit = DURATION.read(self.defaults["duration"], f"{place}.duration")
            limit = limit or None
        if limit is None and entry.runtime is None:
            raise WorkloadError("a job needs a runtime or a duration", where=place)
        indices, most = _array_of(entry, jobspec, place)
        count = 1 if entry.count is None else entry.count
        total = count * max(len(indices), 1)
        if total > MAX_COPIES:
            raise LimitError(f"more than {MAX_COPIES:,} jobs of one entry", where=place)
        if self.sequence + total > MAX_JOBS:
            raise LimitError(f"more than {MAX_JOBS:,} jobs", where=place)
        values = dict(zip(SAME, same(entry), strict=True))
        values |= {name: _whole(values[name]) for name in _TIMES}
        values["name"] = entry.name or jobspec.name
        # Parts name queues of their own, or have that of the entry.
        own, queue = entry.queue, jobspec.queue or next(iter(part_queues(jobspec)), None)
        values["queue"] = own or queue if entry.parts is UNSET else queue or own
        task = entry.array_task
        for index in range(count):
            job = Job(
                id=self._id(entry.id, index, count, place),
                submit=_whole(entry.submit or 0) + index * (_whole(entry.every) or 0),
                jobspec=jobspec,
                duration=None if limit in ("inf", inf) else _whole(limit),
                array_task=None if task is None else ArrayTask.parse(task, f"{place}.array_task"),
                **values,
            )
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

    def _id(self, given: int | str | UnsetType, index: int, count: int, place: str) -> int | str:
        """Return the id of the entry (numbered when it has a count), or the next free number."""
        self.sequence += 1
        made: int | str = self.sequence
        if given is not UNSET:
            made = given if count == 1 else f"{given}.{index + 1}"
        first = self.ids.setdefault(str(made), place)
        if first is not place:
            raise WorkloadError(f"job id {made!r} occurs twice, first at {first}", where=place)
        return made

    def _jobspec(self, entry: EntryRequest, place: str) -> Jobspec:
        given = [key for key in _REQUESTS if getattr(entry, key, UNSET) is not UNSET]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise WorkloadError(f"found {found}", where=place, expected="one of shape, jobspec, file, parts")
        key, value = given[0], getattr(entry, given[0])
        if key == "parts":
            return self._joined(value, entry, place)
        if isinstance(value, Jobspec):
            if entry.constraint is None:
                return value
            text: str | bytes | int = id(value)
        else:
            text = repr(value) if self.jobspecs is None else msgspec.json.encode(value)
        cached = key, text, repr(entry.constraint), repr(entry.command)
        made = self.made.get(cached)
        if made is None:
            try:
                made = self.made[cached] = self._make(key, value, entry)
            except SimschedError as error:
                raise error.at(f"{place}.{key}") from None
        return made

    def _with_attributes(self, jobspec: Jobspec, entry: JobEntry) -> Jobspec:
        """Return the jobspec with the licences, the reservation and the checkpoints of the entry."""
        given = {key: value for key in _ATTRIBUTES if (value := getattr(entry, key)) is not UNSET}
        if not given:
            return jobspec
        cached = "attributes", id(jobspec), repr(given)
        if cached not in self.made:
            self.made[cached] = jobspec.with_system(**given)
        return self.made[cached]

    def _joined(self, parts: Any, entry: EntryRequest, place: str) -> Jobspec:
        """Return one jobspec for the parts of a heterogeneous job; the entry's constraint holds for each."""
        if not isinstance(parts, list) or not parts:
            raise WorkloadError(
                "parts is not a list of requests", where=f"{place}.parts", expected="one mapping per part"
            )
        cached = "parts", repr(parts), repr([entry.constraint, entry.command, entry.queue])
        if cached in self.made:
            return self.made[cached]
        specs, queues = [], []
        for number, said in enumerate(parts):
            where = f"{place}.parts[{number}]"
            if not isinstance(said, dict):
                raise WorkloadError(
                    "not a part", where=where, expected="a mapping with 'shape', 'jobspec' or 'file'"
                )
            part = EntryRequest.of({"command": entry.command, **said}, where)
            spec = self._jobspec(part, where)
            specs.append(_and(spec, entry.constraint, place))
            queues.append(part.queue or spec.queue or entry.queue)
        made = self.made[cached] = joined(specs, queues).with_system(**_of_the_job(specs, f"{place}.parts"))
        return made

    def _make(self, key: str, value: Any, entry: EntryRequest) -> Jobspec:
        from simsched.formats.request_files import load_jobspec

        constraint = _constraint(entry.constraint)
        if key == "shape":
            if not isinstance(value, str):
                raise WorkloadError(f"{value!r} is not a shape", expected="RFC 46 text such as 'slot=4/core'")
            return Jobspec.from_shape(value, constraint=constraint, command=_command(entry.command))
        if key == "jobspec":
            if isinstance(value, Jobspec):
                return constrained(value, constraint)
            read = None
            if self.jobspecs is not None:
                read = self.jobspecs.jobspec(value, msgspec.json.encode(value))
            return constrained(read or Jobspec.from_dict(value), constraint)
        if not isinstance(value, str):
            raise WorkloadError(f"{value!r} is not a file name")
        if self.folder is None:
            raise WorkloadError("a workload from standard input cannot name files")
        return constrained(load_jobspec(self.folder / value), constraint)


def _whole(seconds: Any) -> Any:
    return seconds if seconds is None or type(seconds) is int else whole(seconds)


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


def _array_of(entry: JobEntry, jobspec: Jobspec, place: str) -> tuple[list[int], int | None]:
    """Return the tasks of an entry's job array, by itself or by its jobspec; [] if it is not an array."""
    if entry.array_task is not None:
        if entry.array is not None:
            raise WorkloadError("found array and array_task", where=place, expected="one of them")
        return [], None
    given = jobspec.system.get("array") if entry.array is None else entry.array
    if given is None:
        return [], None
    return parse_tasks(given, f"{place}.{'attributes.system.array' if entry.array is None else 'array'}")


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
