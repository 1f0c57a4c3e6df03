"""``jobs.yaml`` and JSON Lines of jobs: workloads that people write by hand.

A document is a list of entries, or ``{name, defaults, jobs}`` where `defaults` holds keys
that every entry starts from.  An entry has exactly one of ``shape`` (RFC 46), ``jobspec``
(RFC 14, in place), ``file`` (a jobspec file beside the document) and ``parts`` (a list of such requests with
``constraint`` and ``queue`` of their own, which start together), and any of::

    submit    when it is submitted (RFC 23 duration after the start, default 0)
    duration  the requested limit           runtime  the actual run time
    count     how many times it is submitted every    the time between two of them (default 0)
    id name user group bank queue urgency priority hold cancel_at deadline preceding think_time
    constraint  RFC 35 text or an RFC 31 object, and-ed to the constraint of the jobspec
    depends   afterok:NAME (a name or an id in this document), or a list of such, or RFC 26 objects
    array     0-31%4: a job array of 32 tasks, of which at most 4 run at a time; their ids are ID_0 … ID_31
    array_task  ID_4%2: this entry alone is task 4 of the array ID
    licenses  matlab:2,ansys, or a mapping    reservation  its name    checkpoint  {interval, cost, restart}
    nodes procs memory energy partition status wait nodelist   values of a trace; never used for matching

In JSON Lines each line is one entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.arguments import wrong
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


MOST = 2**53
"""A count of a job is less than this, so that every table holds it as it is."""

_EMPTY = re.compile(r"(?:\s*(?:#[^\n]*)?(?:\n|\Z))*")
_REQUESTS = ("shape", "jobspec", "file", "parts")
_PART_KEYS = frozenset(("shape", "jobspec", "file", "constraint", "queue", "command"))
MAX_COPIES = 1_000_000
"""The most jobs that one entry may describe: a line of text should not take minutes and gigabytes."""
_ATTRIBUTES: dict[str, tuple[type, ...]] = {
    "licenses": (str, dict),
    "reservation": (str,),
    "checkpoint": (dict,),
}
"""Keys that become attributes (``attributes.system``) of the jobspec → the types of their values."""


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
    numbered = ((f"{reading.source}: jobs[{index}]", entry) for index, entry in enumerate(entries))
    return _workload(numbered, defaults, replace(reading, name=title or reading.name), "jobs")


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


def read_jsonl(lines: Iterable[str], reading: ReadOptions | None = None) -> Workload:
    """Read JSON Lines, one entry per line; blank lines are ignored.

    Raises
    ------
    FormatError, WorkloadError
        As `read_jobs_yaml`, with the number of the line.
    """
    from simsched.formats.jobspec.fast import Reader

    reading = reading or ReadOptions(source="jobs.jsonl")
    return _workload(_json_entries(lines, reading.source), {}, reading, "jsonl", Reader())


def _json_entries(lines: Iterable[str], source: str) -> Iterator[tuple[str, Any]]:
    from simsched.formats.text.json_text import load_json_line

    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"{source}:{number}", load_json_line(line, source, number)


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


def refuse_unknown(entry: Mapping[str, Any], known: frozenset[str], place: str) -> None:
    """Raise WorkloadError for a key that is not known, with the one that was meant."""
    for key in entry:
        if key not in known:
            expected = nearest(str(key), sorted(known)) or ", ".join(sorted(known))
            raise WorkloadError(f"unknown key {key!r}", where=place, expected=expected)


def _workload(
    entries: Iterable[tuple[str, Any]],
    defaults: dict[str, Any],
    reading: ReadOptions,
    kind: str,
    jobspecs: Reader | None = None,
) -> Workload:
    maker = Maker(reading.folder, jobspecs)
    drafts: list[tuple[str, Job, Any]] = []
    for place, entry in entries:
        if reading.limit is not None and len(drafts) >= reading.limit:
            break
        if not isinstance(entry, dict):
            raise WorkloadError(
                "not a job", where=place, expected="a mapping with 'shape', 'jobspec' or 'file'"
            )
        said = entry.get("depends", defaults.get("depends"))
        drafts.extend((place, job, said) for job in maker.jobs(entry, defaults, place))
    jobs = resolve(drafts)
    return assemble(jobs, Skips(), source=reading.source, name=reading.name, kind=kind)


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

    def jobs(self, said: dict[str, Any], defaults: dict[str, Any], place: str) -> Iterator[Job]:
        """Yield the jobs of one entry, `count` of them; their dependencies come later.

        A limit in the entry counts before that of its jobspec, that before the default.
        """
        if defaults and not said.keys().isdisjoint(_REQUESTS):  # the entry brings its own request
            defaults = {key: value for key, value in defaults.items() if key not in _REQUESTS}
        entry = {**defaults, **said} if defaults else said
        if not entry.keys() <= KEYS:
            refuse_unknown(entry, KEYS, place)
        values = {key: _VALUES[key](entry, key, place) for key in entry if key in _VALUES}
        jobspec = self._with_attributes(self._jobspec(entry, place), entry, place)
        if "duration" not in said:
            own_limit = whole(jobspec.duration) if jobspec.duration else None  # 0 is unlimited (RFC 14)
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
        values["name"] = values.get("name") or jobspec.name
        # Parts name queues of their own, or have that of the entry.
        own, queue = values.get("queue"), jobspec.queue or next(iter(part_queues(jobspec)), None)
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
            given = entry["id"]
            if isinstance(given, bool) or not isinstance(given, int | str) or given == "":
                raise _bad(entry, "id", place, "a whole number or a text")
            made = given if count == 1 else f"{given}.{index + 1}"
        first = self.ids.setdefault(str(made), place)
        if first is not place:
            raise WorkloadError(f"job id {made!r} occurs twice, first at {first}", where=place)
        return made

    def _jobspec(self, entry: dict[str, Any], place: str) -> Jobspec:
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
        given = {key: entry[key] for key in _ATTRIBUTES if key in entry}
        for key, value in given.items():
            if not isinstance(value, _ATTRIBUTES[key]):
                words = ["a text" if kind is str else "a mapping" for kind in _ATTRIBUTES[key]]
                raise _bad(entry, key, place, " or ".join(words))
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
            refuse_unknown(part, _PART_KEYS, where)
            command = {"command": entry["command"]} if "command" in entry else {}
            spec = self._jobspec({**command, **part}, where)
            specs.append(_and(spec, entry.get("constraint"), place))
            queues.append(_text(part, "queue", where) or spec.queue or _text(entry, "queue", place))
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


def _bad(entry: Mapping[str, Any], key: str, place: str, expected: str) -> WorkloadError:
    return WorkloadError(f"bad {key} {entry[key]!r}", where=f"{place}.{key}", expected=expected)


def seconds_of(entry: Mapping[str, Any], key: str, place: str) -> float | None:
    """Return the RFC 23 duration at a key, an int where it is whole; None if the key is absent."""
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _bad(entry, key, place, "a duration such as 90, 30m or 1.5h")
    seconds = whole(parse_duration(value, f"{place}.{key}"))
    if seconds < 0 or (seconds > MAX_SECONDS and not (seconds == float("inf") and key == "duration")):
        raise _bad(entry, key, place, "a time of 0 or more")
    return seconds


def _whole(entry: dict[str, Any], key: str, place: str) -> int | None:
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST:
        raise _bad(entry, key, place, f"a whole number of 0 or more and below {MOST:g}")
    return value


def _urgency(entry: dict[str, Any], key: str, place: str) -> int:
    value = _whole(entry, key, place)
    if value is None:
        return 16
    if value > 31:
        raise _bad(entry, key, place, "0 to 31")
    return value


def _preceding(entry: dict[str, Any], key: str, place: str) -> int | str | None:
    value: Any = entry[key]
    if value is None or (isinstance(value, int | str) and not isinstance(value, bool)):
        return value
    raise _bad(entry, key, place, "a job id")


def _text(entry: dict[str, Any], key: str, place: str) -> str | None:
    value = entry.get(key)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise _bad(entry, key, place, "a text")


def _task(entry: dict[str, Any], key: str, place: str) -> ArrayTask | None:
    given = _text(entry, key, place)
    return None if given is None else ArrayTask.parse(given, f"{place}.{key}")


def _flag(entry: dict[str, Any], key: str, place: str) -> bool:
    value = entry[key]
    if not isinstance(value, bool):
        raise _bad(entry, key, place, "true or false")
    return value


_READERS: dict[Callable[[dict[str, Any], str, str], Any], tuple[str, ...]] = {
    _text: ("name", "user", "group", "queue", "bank", "partition", "status", "nodelist", "qos"),
    seconds_of: ("submit", "every", "duration", "runtime", "cancel_at", "deadline", "think_time", "wait"),
    _whole: ("count", "procs", "nodes", "memory", "energy", "priority"),
    _urgency: ("urgency",),
    _flag: ("hold",),
    _preceding: ("preceding",),
    _task: ("array_task",),
}
_VALUES = {key: reader for reader, keys in _READERS.items() for key in keys}
"""Key of a value of a job → its reader, which takes the entry, the key and the place of the entry."""
KEYS = frozenset((*_REQUESTS, *_VALUES, *_ATTRIBUTES, "id", "constraint", "depends", "command", "array"))
"""The keys of an entry."""
