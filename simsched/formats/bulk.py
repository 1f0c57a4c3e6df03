"""Many jobspecs from one file: YAML documents, a JSON document or list, JSON Lines.

JSON Lines go through msgspec: a line that it decodes into the structures below holds the rules
of RFC 14 that a structure can hold, the rest is checked while the jobspec is built, and equal
resources become one shared value.  A line that anything is wrong with, duplicate keys included, is
read again by the strict reader and the detailed validator, and only then reported.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from simsched.errors import FormatError
from simsched.formats.count import MAX_COUNT, Count
from simsched.formats.frozen import FrozenDict, freeze
from simsched.formats.jobspec import Jobspec
from simsched.formats.jobspec_rules import system_faults
from simsched.formats.task import ONCE, Task
from simsched.formats.vertex import ResourceVertex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from simsched.formats.faults import Fault

_CACHED = 100_000
_MAX_LINE = 10_000_000

Positive = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
Word = Annotated[str, Meta(min_length=1)]


class RangeRecord(Struct, forbid_unknown_fields=True, gc=False):
    """A count as a dictionary."""

    min: Positive
    max: Positive | UnsetType = UNSET
    operator: str | UnsetType = UNSET
    operand: Positive | UnsetType = UNSET


class VertexRecord(Struct, forbid_unknown_fields=True, rename={"below": "with"}):
    """A resource vertex; a slot without a label or without `with` is refused when it is built."""

    type: Word
    count: Positive | Word | RangeRecord
    unit: str | UnsetType = UNSET
    exclusive: bool | UnsetType = UNSET
    label: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    below: list[VertexRecord] | UnsetType = UNSET


class PerResourceRecord(Struct, forbid_unknown_fields=True, gc=False):
    """The count of a task by resources."""

    type: str
    count: Positive


class TaskCountRecord(Struct, forbid_unknown_fields=True, gc=False):
    """The count of a task: exactly one of these."""

    per_slot: Positive | UnsetType = UNSET
    total: Positive | UnsetType = UNSET
    per_resource: PerResourceRecord | UnsetType = UNSET

    def keys(self) -> int:
        """Return how many keys are there."""
        return 3 - (self.per_slot, self.total, self.per_resource).count(UNSET)


class TaskRecord(Struct, forbid_unknown_fields=True):
    """A task."""

    command: Annotated[list[str], Meta(min_length=1)]
    slot: str
    count: TaskCountRecord
    attributes: dict[str, Any] | UnsetType = UNSET
    distribution: str | UnsetType = UNSET


class AttributesRecord(Struct, forbid_unknown_fields=True):
    """The attributes; `system` is checked by the rules that the detailed validator uses."""

    system: dict[str, Any] | UnsetType = UNSET
    user: dict[str, Any] | UnsetType = UNSET


class JobspecRecord(Struct, forbid_unknown_fields=True):
    """A jobspec; its resources and tasks stay as they are written until it is known that they are new."""

    version: Positive
    resources: msgspec.Raw
    tasks: msgspec.Raw
    attributes: AttributesRecord


class _Doubt(Exception):  # noqa: N818 - not an error: the detailed validator will tell
    """Something about a line that the quick reader does not settle."""


class Reader:
    """Reads jobspecs one JSON text at a time; equal parts are decoded once.

    >>> Reader().read(b'{"version": 1}') is None
    True
    """

    def __init__(self) -> None:
        self._document = msgspec.json.Decoder(JobspecRecord)
        self._resources = msgspec.json.Decoder(Annotated[list[VertexRecord], Meta(min_length=1)])
        self._tasks = msgspec.json.Decoder(Annotated[list[TaskRecord], Meta(min_length=1)])
        self._known_resources: dict[bytes, _Resources] = {}
        self._known_tasks: dict[tuple[bytes, bytes], tuple[Task, ...]] = {}

    def read(self, text: bytes) -> Jobspec | None:
        """Return the jobspec, or None where only the detailed validator can tell what is wrong."""
        try:
            if len(text) > _MAX_LINE or _looks_odd(text):
                return None
            return self._read(text)
        except (_Doubt, msgspec.MsgspecError, FormatError, UnicodeDecodeError, RecursionError):
            return None

    def _read(self, text: bytes) -> Jobspec:
        record = self._document.decode(text)
        resources = self._resources_of(bytes(record.resources))
        tasks = self._tasks_of(resources, bytes(record.tasks))
        attributes = record.attributes
        parts = {}
        if attributes.system is not UNSET:
            if system_faults(attributes.system):
                raise _Doubt
            parts["system"] = freeze(attributes.system)
        if attributes.user is not UNSET:
            parts["user"] = freeze(attributes.user)
        if text.count(b'":') != 4 + _colons(record.resources) + _colons(record.tasks) + _keys(parts):
            raise _Doubt
        return Jobspec(resources.vertices, tasks, FrozenDict(parts), record.version)

    def _resources_of(self, raw: bytes) -> _Resources:
        known = self._known_resources.get(raw)
        if known is None:
            if len(self._known_resources) >= _CACHED:
                self._known_resources.clear()
            known = _Resources(raw, self._resources.decode(raw))
            self._known_resources[raw] = known
        return known

    def _tasks_of(self, resources: _Resources, raw: bytes) -> tuple[Task, ...]:
        key = (resources.signature, raw)
        known = self._known_tasks.get(key)
        if known is None:
            if len(self._known_tasks) >= _CACHED:
                self._known_tasks.clear()
            records = self._tasks.decode(raw)
            known = tuple([_task(record, resources) for record in records])
            if raw.count(b'":') != sum(_task_keys(record) for record in records):
                raise _Doubt
            self._known_tasks[key] = known
        return known


def _looks_odd(text: bytes) -> bool:
    """Whether keys cannot be counted by their ``":`` alone, which is how duplicates are found."""
    return b'\\"' in text or b'" :' in text or b'"\t:' in text or b'"\r:' in text


def _colons(raw: msgspec.Raw) -> int:
    return bytes(raw).count(b'":')


def _keys(value: Any) -> int:
    """Return how many keys the dictionaries in a frozen value have in all."""
    total = 0
    if isinstance(value, dict):
        total = len(value)
        value = value.values()
    for item in value:
        if type(item) in _NESTED:
            total += _keys(item)
    return total


_NESTED = frozenset({dict, FrozenDict, list, tuple})


class _Resources:
    """The resources of a jobspec, and what its tasks need to know of them."""

    __slots__ = ("keys", "labels", "signature", "slots", "vertices")

    def __init__(self, raw: bytes, records: list[VertexRecord]) -> None:
        self.keys = 0
        self.labels: set[str] = set()
        self.slots: dict[str, set[str]] = {}
        self.vertices = tuple([self.build(record, ()) for record in records])
        if self.keys != raw.count(b'":'):
            raise _Doubt
        self.signature = repr(sorted((s, sorted(t)) for s, t in self.slots.items())).encode()

    def build(self, record: VertexRecord, inside: tuple[str, ...]) -> ResourceVertex:
        """Return the vertex; raises `_Doubt` where a rule does not hold."""
        kind = record.type
        for slot in inside:
            self.slots[slot].add(kind)
        label = record.label
        if label is not UNSET:
            if label in self.labels:
                raise _Doubt
            self.labels.add(label)
        if kind == "slot":
            if label is UNSET or not record.below:
                raise _Doubt
            self.slots[label] = set()
            inside = (*inside, label)
        below = record.below
        children: tuple[ResourceVertex, ...] = ()
        if below is not UNSET:
            if not below:
                raise _Doubt  # RFC 14 lets it stand, RFC 25 does not
            self.keys += 1
            children = tuple([self.build(child, inside) for child in below])
        optional: tuple[Any, ...] = (record.unit, record.exclusive, label, record.id)
        unset = optional.count(UNSET)
        self.keys += 6 - unset
        count = self.count(record.count)
        if unset == 4 and not children:
            return _leaf(kind, count)
        unit, exclusive, name, ids = [None if value is UNSET else value for value in optional]
        return ResourceVertex(kind, count, unit, exclusive, name, ids, children)

    def count(self, value: int | str | RangeRecord) -> Count:
        """Return the count.  Raises `FormatError`."""
        if isinstance(value, int):
            return Count.fixed(value)
        if isinstance(value, str):
            return Count.parse(value)
        plain = msgspec.to_builtins(value)
        self.keys += len(plain)
        return Count.from_json(plain)


@lru_cache(maxsize=4096)
def _leaf(kind: str, count: Count) -> ResourceVertex:
    return ResourceVertex(kind, count)


def _task(record: TaskRecord, resources: _Resources) -> Task:
    count = record.count
    if record.slot not in resources.slots or count.keys() != 1:
        raise _Doubt
    each = count.per_resource
    if each is not UNSET and each.type not in resources.slots[record.slot]:
        raise _Doubt
    return Task(
        tuple(record.command),
        record.slot,
        ONCE if count.per_slot == 1 else freeze(msgspec.to_builtins(count)),
        freeze({} if record.attributes is UNSET else record.attributes),
        None if record.distribution is UNSET else record.distribution,
    )


def _task_keys(record: TaskRecord) -> int:
    keys = 4 if record.count.per_resource is UNSET else 6
    if record.attributes is not UNSET:
        keys += 1 + _keys(record.attributes)
    return keys + (record.distribution is not UNSET)


# ---------------------------------------------------------------- files


def read_jobspecs(path: str | Path) -> list[Jobspec]:
    """Return the jobspecs of a file: JSON Lines, a JSON document or list, YAML documents.

    Raises `FormatError`: the first fault of the file with its place, and how many more there are.
    """
    from simsched.formats.text import read_text

    return jobspecs_of(read_text(path), "standard input" if str(path) == "-" else str(path))


def jobspecs_of(text: str, where: str) -> list[Jobspec]:
    """Return the jobspecs of a text, as `read_jobspecs` does."""
    from simsched.formats.text import detect_kind

    kind = detect_kind(text)
    if kind not in {"json", "jsonl", "yaml"}:
        raise FormatError("this is no jobspec", where=where, expected="YAML or JSON")
    with _without_collector():
        jobs = _from_lines(text) if kind == "jsonl" else _from_documents(text, where)
    if jobs is None:
        from simsched.formats.validate import validate_text

        raise _joined(validate_text(text, where, "jobspec").faults, where)
    return jobs


def _joined(faults: tuple[Fault, ...], where: str) -> FormatError:
    from simsched.formats.faults import joined

    return joined(faults, None) if faults else FormatError("no jobspec", where=where)


def _from_lines(text: str) -> list[Jobspec] | None:
    """Return the jobspecs of JSON Lines, None where one of them is in doubt and then found faulty."""
    from simsched.formats.text import load_json

    reader = Reader()
    jobs = []
    for line in text.encode("utf-8", "surrogatepass").split(b"\n"):
        job = reader.read(line)
        if job is None:
            if not line.strip():
                continue
            try:
                job = Jobspec.from_dict(load_json(line.decode()))
            except FormatError:
                return None
        jobs.append(job)
    return jobs


def _from_documents(text: str, where: str) -> list[Jobspec] | None:
    from simsched.formats.text import load_document, load_yaml_all

    if text.lstrip("\ufeff \t\r\n")[:1] in {"{", "["}:
        documents = [load_document(text, where)]
    else:
        documents = load_yaml_all(text, where)
    flat = [d for document in documents for d in (document if isinstance(document, list) else [document])]
    try:
        return [Jobspec.from_dict(document) for document in flat]
    except FormatError:
        return None


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep the cyclic collector from walking over values that cannot form cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
