"""The fast reader of jobspecs in JSON: every jobspec that it accepts is valid.

The structures below state those rules of RFC 14 that a structure can state; the other rules are checked
while the jobspec is built.  Equal resources become one shared value.

The reader never reports a fault.  At the least doubt, duplicate keys included, it returns nothing, and the
strict reader and the detailed validator read the text again.  It therefore may refuse a valid text, which
costs time only, but must never accept one that they refuse; tests/formats/jobspec/test_fast.py compares both.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from simsched.errors import FormatError
from simsched.formats.jobspec.jobspec import ONCE, Jobspec, Task
from simsched.formats.jobspec.validation_rules import system_faults
from simsched.formats.jobspec.vertex import ResourceVertex
from simsched.formats.rfc.count import MAX_COUNT, Count
from simsched.formats.text.immutable import EMPTY, freeze
from simsched.formats.text.json_text import MAX_DEPTH, counted_json, number_of_keys

if TYPE_CHECKING:
    from simsched.formats.text.immutable import FrozenDict

_CACHED = 100_000

Positive = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
Seconds = Annotated[float, Meta(ge=0)]
Word = Annotated[str, Meta(min_length=1)]


class VertexRecord(Struct, forbid_unknown_fields=True, rename={"below": "with"}):
    """A resource vertex; a slot without a label or without `with` is refused when it is built."""

    type: Word
    count: Positive | Word | dict[str, Any]
    unit: str | UnsetType = UNSET
    exclusive: bool | UnsetType = UNSET
    label: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    below: list[VertexRecord] | UnsetType = UNSET


class PerResourceRecord(Struct, forbid_unknown_fields=True, gc=False):
    """The count of a task by resources."""

    type: str
    count: Positive


class TaskRecord(Struct, forbid_unknown_fields=True):
    """A task; its count has exactly one key."""

    command: Annotated[list[str], Meta(min_length=1)]
    slot: str
    count: Annotated[dict[str, Positive | PerResourceRecord], Meta(min_length=1, max_length=1)]
    attributes: dict[str, Any] | UnsetType = UNSET
    distribution: str | UnsetType = UNSET


class SystemRecord(Struct, rename="kebab"):
    """The keys of `attributes.system` that RFC 14 defines; other keys are allowed."""

    duration: Seconds | UnsetType = UNSET
    preemptible_after: Seconds | UnsetType = UNSET
    environment: dict[str, str | None] | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    bank: str | UnsetType = UNSET
    project: str | UnsetType = UNSET
    job: dict[str, str] | UnsetType = UNSET
    shell: dict[str, Any] | UnsetType = UNSET
    files: dict[str, Any] | UnsetType = UNSET
    dependencies: msgspec.Raw | UnsetType = UNSET
    constraints: msgspec.Raw | UnsetType = UNSET
    resource_parts: msgspec.Raw | UnsetType = UNSET


class AttributesRecord(Struct, forbid_unknown_fields=True):
    """The attributes."""

    system: SystemRecord | UnsetType = UNSET
    user: dict[str, Any] | UnsetType = UNSET


class JobspecRecord(Struct, forbid_unknown_fields=True):
    """A jobspec; its parts stay undecoded, because most texts repeat the bytes of earlier ones."""

    version: Positive
    resources: msgspec.Raw
    tasks: msgspec.Raw
    attributes: msgspec.Raw


class _Doubt(Exception):  # noqa: N818 - not an error: the detailed validator decides
    """Raised for a text that the fast reader does not decide."""


_UNSETTLED = (_Doubt, msgspec.MsgspecError, FormatError, ValueError, RecursionError)


class Reader:
    """Reads jobspecs one JSON text at a time; equal parts are decoded once.

    >>> Reader().read(b'{"version": 1}') is None
    True
    """

    def __init__(self) -> None:
        self._document = msgspec.json.Decoder(JobspecRecord)
        self._resources = lru_cache(_CACHED)(_Resources)
        self._tasks = lru_cache(_CACHED)(_Tasks)
        self._attributes = lru_cache(_CACHED)(_Attributes)

    def read(self, text: bytes) -> Jobspec | None:
        """Return the jobspec, or None where the detailed validator has to decide."""
        try:
            version, resources, tasks, attributes = self._parts(text)
            return Jobspec(resources.vertices, tasks.built, attributes.frozen, version)
        except _UNSETTLED:
            return None

    def passes(self, text: bytes, *, v1: bool | None = False) -> bool:
        """Whether the jobspec is certainly valid: by RFC 14, by RFC 25 (`v1`), or (None) by its version."""
        try:
            version, resources, tasks, attributes = self._parts(text)
        except _UNSETTLED:
            return False
        if v1 is False or (v1 is None and version != 1):
            return True
        return version == 1 and resources.fit_v1 and tasks.fit_v1 and attributes.fit_v1

    def _parts(self, text: bytes) -> tuple[int, _Resources, _Tasks, _Attributes]:
        """Return the version and the parts of a valid text; raise one of `_UNSETTLED` for others."""
        record = self._document.decode(text)
        resources = self._resources(bytes(record.resources))
        tasks = self._tasks(bytes(record.tasks))
        attributes = self._attributes(bytes(record.attributes))
        keys = len(JobspecRecord.__struct_fields__) + resources.keys + tasks.keys + attributes.keys
        if number_of_keys(text.decode().rstrip()) != keys:
            raise _Doubt
        for slot, type_ in tasks.counted:
            types = resources.slots.get(slot)
            if types is None or not (type_ is None or type_ in types):
                raise _Doubt
        return record.version, resources, tasks, attributes


_RESOURCES = msgspec.json.Decoder(Annotated[list[VertexRecord], Meta(min_length=1)])
_TASKS = msgspec.json.Decoder(Annotated[list[TaskRecord], Meta(min_length=1)])
_ATTRIBUTES = msgspec.json.Decoder(AttributesRecord | None)


class _Resources:
    """The checked resources of a jobspec; the vertices are built on first use."""

    def __init__(self, text: bytes) -> None:
        _, self.keys = counted_json(text, MAX_DEPTH - 1)
        self.records = records = _RESOURCES.decode(text)
        self.slots: dict[str, set[str]] = {}
        self.check(records, (), set())

    def check(self, records: list[VertexRecord], inside: tuple[str, ...], labels: set[str]) -> None:
        """Raise `_Doubt` or `FormatError` if a rule is broken that a structure cannot express."""
        for record in records:
            kind, label, below = record.type, record.label, record.below
            for slot in inside:
                self.slots[slot].add(kind)
            if label is not UNSET:
                if label in labels:
                    raise _Doubt
                labels.add(label)
            if type(record.count) is not int:
                Count.from_json(record.count)
            around = inside
            if kind == "slot":
                if label is UNSET or below is UNSET:
                    raise _Doubt
                self.slots[label] = set()
                around = (*inside, label)
            if below is not UNSET:
                if not below:
                    raise _Doubt  # RFC 14 accepts an empty list, RFC 25 does not
                self.check(below, around, labels)

    @cached_property
    def vertices(self) -> tuple[ResourceVertex, ...]:
        """The resources as vertices."""
        return tuple([_vertex(record) for record in self.records])

    @cached_property
    def fit_v1(self) -> bool:
        """Whether the resources are one of RFC 25's enumerated graphs (no vertex is built for the answer)."""
        slot = self.records[0]
        if slot.type == "node" and slot.below is not UNSET:
            if not _has_only(slot, slot.exclusive, slot.below) or len(slot.below) != 1:
                return False
            slot = slot.below[0]
        if len(self.records) != 1 or slot.type != "slot" or slot.below is UNSET:
            return False
        return (
            _has_only(slot, slot.exclusive, slot.label, slot.below)
            and all(map(_has_only, slot.below))
            and sorted([leaf.type for leaf in slot.below]) in (["core"], ["core", "gpu"])
        )


class _Tasks:
    """The tasks of a jobspec."""

    def __init__(self, text: bytes) -> None:
        _, self.keys = counted_json(text, MAX_DEPTH - 1)
        self.records = _TASKS.decode(text)
        self.counted: list[tuple[str, str | None]] = []
        """The slot of each task, and the type by whose resources it is counted."""
        for record in self.records:
            ((key, number),) = record.count.items()
            by_type = number.type if isinstance(number, PerResourceRecord) else None
            if key not in (("per_slot", "total") if by_type is None else ("per_resource",)):
                raise _Doubt
            self.counted.append((record.slot, by_type))

    @cached_property
    def built(self) -> tuple[Task, ...]:
        """The tasks as values."""
        return tuple([_task(record) for record in self.records])

    @property
    def fit_v1(self) -> bool:
        """Whether there is one task as in RFC 25."""
        (first, *others), ((_, by_type), *_) = self.records, self.counted
        return not others and by_type is None and first.attributes is UNSET and first.distribution is UNSET


class _Attributes:
    """The attributes of a jobspec."""

    def __init__(self, text: bytes) -> None:
        plain, self.keys = counted_json(text, MAX_DEPTH - 1)
        record = _ATTRIBUTES.decode(text)
        self.frozen: FrozenDict = freeze(plain or {})
        system = UNSET if record is None else record.system
        self.fit_v1 = system is not UNSET and system.duration is not UNSET
        """Whether there is a duration, as RFC 25 demands."""
        if system is UNSET:
            return
        details = {"constraints": system.constraints, "dependencies": system.dependencies}
        if system.resource_parts is not UNSET or not all(
            raw is UNSET or _is_sound(key, bytes(raw)) for key, raw in details.items()
        ):
            raise _Doubt


@lru_cache(_CACHED)
def _is_sound(key: str, text: bytes) -> bool:
    """Whether the detailed validator finds no fault in a value of `attributes.system`."""
    return not system_faults({key: msgspec.json.decode(text)})


def _has_only(record: VertexRecord, *allowed: object) -> bool:
    """Whether the count is an integer and no keys but type, count, unit and the allowed ones are set."""
    optional = (record.exclusive, record.label, record.id, record.below)
    return type(record.count) is int and 4 - optional.count(UNSET) == len(allowed) - allowed.count(UNSET)


def _vertex(record: VertexRecord) -> ResourceVertex:
    count = Count.from_json(record.count)
    optional: tuple[Any, ...] = (record.unit, record.exclusive, record.label, record.id)
    if record.below is UNSET and optional.count(UNSET) == 4:
        return _leaf(record.type, count)
    unit, exclusive, label, ids = [None if value is UNSET else value for value in optional]
    children = () if record.below is UNSET else tuple([_vertex(child) for child in record.below])
    return ResourceVertex(record.type, count, unit, exclusive, label, ids, children)


@lru_cache(maxsize=4096)
def _leaf(kind: str, count: Count) -> ResourceVertex:
    return ResourceVertex(kind, count)


def _task(record: TaskRecord) -> Task:
    return Task(
        tuple(record.command),
        record.slot,
        ONCE if record.count == ONCE else freeze(msgspec.to_builtins(record.count)),
        EMPTY if record.attributes is UNSET else freeze(record.attributes),
        None if record.distribution is UNSET else record.distribution,
    )
