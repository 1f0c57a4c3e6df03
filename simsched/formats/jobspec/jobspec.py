"""The value of a jobspec (RFC 14, RFC 25): resources, tasks and attributes, from a shape or a document."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from simsched.arguments import wrong
from simsched.errors import FormatError, RequestError, SimschedError, clip
from simsched.formats.jobspec.shape import format_shape, parse_shape
from simsched.formats.jobspec.validation_rules import faults_of, resources_faults
from simsched.formats.jobspec.vertex import ResourceVertex, slots
from simsched.formats.rfc.count import Count
from simsched.formats.rfc.duration import parse_duration
from simsched.formats.text.diagnostics import joined
from simsched.formats.text.immutable import EMPTY, FrozenDict, freeze, thaw

if TYPE_CHECKING:
    from simsched.formats.rfc.constraint import Constraint
    from simsched.formats.rfc.dependency import Dependency
    from simsched.formats.text.diagnostics import Fault


ONCE = FrozenDict(per_slot=1)
"""The count of a task that runs once in each slot."""


@dataclass(frozen=True, slots=True)
class Task:
    """A program and its slot; `count` holds the one key of RFC 14's dictionary.

    `slot` is the label of a slot; a lenient reader accepts any label, and the empty one for a task without.

    >>> Task(("app",), "default").to_dict()
    {'command': ['app'], 'slot': 'default', 'count': {'per_slot': 1}}
    """

    command: tuple[str, ...]
    slot: str
    count: FrozenDict = ONCE
    attributes: FrozenDict = EMPTY
    distribution: str | None = None

    @staticmethod
    def from_dict(document: dict[str, Any]) -> Task:
        """Return the task of a document that the validator has passed."""
        command = document["command"]
        return Task(
            (command,) if isinstance(command, str) else tuple(command),
            document.get("slot", ""),
            freeze(document["count"]),
            freeze(document.get("attributes") or {}),
            document.get("distribution"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the task as RFC 14 writes it."""
        document = {"command": list(self.command), "slot": self.slot, "count": thaw(self.count)}
        if self.attributes:
            document["attributes"] = thaw(self.attributes)
        if self.distribution is not None:
            document["distribution"] = self.distribution
        return document


Warn: TypeAlias = Callable[[SimschedError], None]
"""A function that receives each fault that a lenient reader ignores."""


def build_resources(vertices: Any) -> tuple[ResourceVertex, ...]:
    """Build a resources list that has no faults."""
    return tuple(
        [
            ResourceVertex(
                vertex["type"],
                Count.from_json(vertex["count"]),
                vertex.get("unit"),
                vertex.get("exclusive"),
                vertex.get("label"),
                vertex.get("id"),
                build_resources(vertex.get("with") or ()),
            )
            for vertex in vertices
        ]
    )


CANONICAL = 999
"""The version of a canonical jobspec that is not V1."""

DEFAULT_COMMAND = ("app",)
"""The command of a jobspec that was made from a shape alone."""


@dataclass(frozen=True, slots=True)
class Jobspec:
    """One request: its resources, its tasks and its attributes.  Immutable and hashable.

    >>> job = Jobspec.from_shape("slot=4/[core=2;gpu]", duration="1h", constraint="ssd")
    >>> job.duration, str(job.constraint), job.to_shape(), job.version
    (3600.0, 'ssd', 'slot=4/[core=2;gpu]', 1)
    """

    resources: tuple[ResourceVertex, ...]
    tasks: tuple[Task, ...] = ()
    attributes: FrozenDict = EMPTY
    version: int = CANONICAL
    _hash: int = field(init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            key = (self.resources, self.tasks, self.attributes, self.version)
            object.__setattr__(self, "_hash", hash(key))
            return self._hash

    def __repr__(self) -> str:
        """Return one line: the shape, and what else limits where and how long it runs.

        >>> Jobspec.from_shape("slot=4/core", duration=60, constraint="ssd", queue="batch")
        <Jobspec 'slot=4/core': 60 s, constraint ssd, queue batch>
        """
        facts = [
            "" if self.duration is None else f"{self.duration:g} s",
            "" if self.constraint is None else f"constraint {self.constraint}",
            "" if self.queue is None else f"queue {self.queue}",
        ]
        known = ", ".join(filter(None, facts))
        return f"<Jobspec {self.to_shape()!r}{known and ': '}{known}>"

    def _repr_html_(self) -> str:
        """Return the request and its attributes as a table, for a notebook."""
        from simsched import human
        from simsched.text_table import html_table

        facts = {
            "shape": self.to_shape(),
            "duration": "no limit" if self.duration is None else human.seconds(self.duration),
            "queue": self.queue or "-",
            "constraint": "-" if self.constraint is None else str(self.constraint),
            "name": self.name or "-",
            "version": str(self.version),
        }
        return html_table("jobspec", list(facts.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Jobspec, (self.resources, self.tasks, self.attributes, self.version))

    # ------------------------------------------------------------ making

    @staticmethod
    def from_shape(
        text: str,
        *,
        duration: str | float | None = None,
        command: Sequence[str] | None = None,
        constraint: str | Constraint | Mapping[str, Any] | None = None,
        queue: str | None = None,
        name: str | None = None,
        dependencies: Iterable[str | Dependency] = (),
    ) -> Jobspec:
        """Return the jobspec of an RFC 46 shape, with one task on each of its slots.

        `duration` is RFC 23 text or seconds, None or inf for no limit; `constraint` RFC 35 text,
        a constraint or an RFC 31 object; `dependencies` RFC 26 texts.  The version is 1 where
        the resources fit RFC 25, else 999.  Raises `FormatError`.
        """
        if isinstance(command, str):
            raise FormatError("a command is a list of words", where="command", expected=repr(command.split()))
        words = DEFAULT_COMMAND if command is None else command
        if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
            raise FormatError(
                f"{clip(repr(command))} is not a command", where="command", expected="a list of words"
            )
        if not isinstance(text, str):
            raise FormatError(f"{text!r} is not a shape", expected="text such as slot=2/core")
        if queue is not None and (not isinstance(queue, str) or not queue):
            raise FormatError(f"{queue!r} is not the name of a queue", where="queue", expected="text")
        if name is not None and not isinstance(name, str):
            raise wrong("name", name, "text")
        resources, tasks, version = _from_shape(text, tuple(words) or DEFAULT_COMMAND)
        seconds = 0.0 if duration is None else parse_duration(duration, "duration")
        system: dict[str, Any] = {"duration": 0.0 if math.isinf(seconds) else seconds}
        if queue is not None:
            system["queue"] = queue
        if constraint is not None:
            system["constraints"] = _constraint_json(constraint)
        if name is not None:
            system["job"] = FrozenDict(name=name)
        if dependencies:
            system["dependencies"] = _dependencies_json(dependencies)
        return Jobspec(resources, tasks, FrozenDict(system=FrozenDict(system)), version)

    @staticmethod
    def from_dict(
        document: Mapping[str, Any], where: str | None = None, *, lenient: Warn | None = None
    ) -> Jobspec:
        """Return the jobspec of an RFC 14 or RFC 25 document.

        `lenient` is called with each warning; a task may then name an unknown slot or none, because
        schedulers place slots and not tasks.  Raises `FormatError` with the JSON path of
        the first fault and the number of the others.
        """
        plain: Any = dict(document) if isinstance(document, Mapping) else document
        keys = plain if isinstance(plain, dict) else ()
        odd = next((key for key in keys if not isinstance(key, str)), None)
        if odd is not None:
            raise FormatError(f"the key {odd!r} is not a string", where=where, expected="a jobspec document")
        faults = faults_of(plain)
        if lenient is not None:
            for fault in faults:
                if fault.mild:
                    lenient(fault.error().at(where) if where else fault.error())
            faults = [fault for fault in faults if not fault.mild]
        # A document of version 1 may be valid by RFC 25 though not by RFC 14: its command may be one string.
        is_v1 = isinstance(plain, dict) and plain.get("version") == 1
        if faults and not (is_v1 and not faults_of(plain, v1=True)):
            raise joined(faults, where)
        return Jobspec(
            build_resources(plain["resources"]),
            tuple(Task.from_dict(task) for task in plain["tasks"]),
            freeze(plain["attributes"] or {}),
            plain["version"],
        )

    # ------------------------------------------------------------ writing

    def to_dict(self) -> dict[str, Any]:
        """Return the document, plain dictionaries and lists."""
        return {
            "version": self.version,
            "resources": [vertex.to_dict() for vertex in self.resources],
            "tasks": [task.to_dict() for task in self.tasks],
            "attributes": thaw(self.attributes),
        }

    def to_shape(self) -> str:
        """Return the shortest RFC 46 shape of the resources."""
        return format_shape(self.resources)

    def to_v1(self) -> Jobspec:
        """Return the same request as an RFC 25 jobspec.

        Raises `RequestError` that names the construct which V1 does not have.
        """
        fault = v1_misfit(self)
        if fault is not None:
            message = f"this is not a V1 jobspec: {fault.message}"
            raise RequestError(message, where=fault.place, expected=fault.expected)
        return self if self.version == 1 else replace(self, version=1)

    def to_canonical(self) -> Jobspec:
        """Return the same request as an RFC 14 jobspec (every V1 jobspec is one)."""
        return self if self.version == CANONICAL else replace(self, version=CANONICAL)

    def with_system(self, **keys: Any) -> Jobspec:
        """Return the jobspec with these keys in `attributes.system`; None takes a key away.

        >>> Jobspec.from_shape("node").with_system(queue="debug").queue
        'debug'
        """
        system = {**self.system, **{k: freeze(v) for k, v in keys.items()}}
        system = {key: value for key, value in system.items() if value is not None}
        return replace(self, attributes=FrozenDict({**self.attributes, "system": FrozenDict(system)}))

    # ------------------------------------------------------------ reading

    @property
    def system(self) -> FrozenDict:
        """The `attributes.system` dictionary, which may be empty."""
        return self.attributes.get("system", EMPTY)  # type: ignore[no-any-return]

    @property
    def duration(self) -> float | None:
        """The requested seconds; None for no limit (absent, or 0 after RFC 14)."""
        seconds = self.attributes.get("system", EMPTY).get("duration")
        return float(seconds) if seconds else None

    @property
    def constraint(self) -> Constraint | None:
        """The RFC 31 constraint, or None."""
        value = self.attributes.get("system", EMPTY).get("constraints")
        return None if value is None else _constraint(value)

    @property
    def queue(self) -> str | None:
        """The name of the requested queue, or None."""
        return self.attributes.get("system", EMPTY).get("queue")  # type: ignore[no-any-return]

    @property
    def name(self) -> str | None:
        """The name of the job, or None."""
        return self.attributes.get("system", EMPTY).get("job", EMPTY).get("name")  # type: ignore[no-any-return]

    @property
    def dependencies(self) -> tuple[Dependency, ...]:
        """The RFC 26 dependencies."""
        return _dependencies(self.attributes.get("system", EMPTY).get("dependencies", ()))


def v1_misfit(job: Jobspec) -> Fault | None:
    """Return the first fault of a jobspec against RFC 25, or None."""
    faults = faults_of({**job.to_dict(), "version": 1}, v1=True)
    return next((fault for fault in faults if not fault.mild), None)


def as_jobspec(value: Jobspec | str | Mapping[str, Any]) -> Jobspec:
    """Return a jobspec as it is, that of a shape, or that of a document.

    Raises
    ------
    FormatError
        if it is none of these.

    >>> as_jobspec("slot=2/core").to_shape()
    'slot=2/core'
    """
    if isinstance(value, Jobspec):
        return value
    return Jobspec.from_shape(value) if isinstance(value, str) else Jobspec.from_dict(value)


@lru_cache(maxsize=4096)
def _constraint(value: FrozenDict) -> Constraint:
    from simsched.formats.rfc.constraint import from_json

    return from_json(value, "attributes.system.constraints")


@lru_cache(maxsize=1024)
def _dependencies(values: tuple[FrozenDict, ...]) -> tuple[Dependency, ...]:
    from simsched.formats.rfc.dependency import Dependency

    return tuple(Dependency.from_json(value) for value in values)


# ---------------------------------------------------------------- from a shape


@lru_cache(maxsize=4096)
def _from_shape(
    text: str, command: tuple[str, ...]
) -> tuple[tuple[ResourceVertex, ...], tuple[Task, ...], int]:
    resources = parse_shape(text)
    for vertex in (v for top in resources for v in top.walk()):
        if vertex.extra:
            raise FormatError(
                f"a resource has no key {vertex.extra[0][0]!r}",
                where=f"shape {text[:60]!r}",
                expected="unit, exclusive (x), label or id",
            )
    tasks = tuple(Task(command, slot.label or "") for slot in slots(resources))
    fits = not resources_faults([vertex.to_dict() for vertex in resources], v1=True)
    return resources, tasks, 1 if fits else CANONICAL


@lru_cache(maxsize=1024)
def _constraint_text_json(text: str) -> FrozenDict:
    from simsched.formats.rfc.constraint import parse_constraint, to_json

    return freeze(to_json(parse_constraint(text)))  # type: ignore[no-any-return]


def _constraint_json(constraint: str | Constraint | Mapping[str, Any]) -> FrozenDict:
    from simsched.formats.rfc.constraint import Constraint, from_json, to_json

    if isinstance(constraint, str):
        return _constraint_text_json(constraint)
    if isinstance(constraint, Mapping):
        from_json(constraint)
        return freeze(dict(constraint))  # type: ignore[no-any-return]
    if not isinstance(constraint, Constraint):
        raise FormatError(f"{constraint!r} is not a constraint", expected="text, RFC 31 JSON or a constraint")
    return freeze(to_json(constraint))  # type: ignore[no-any-return]


def _dependencies_json(dependencies: Iterable[str | Dependency]) -> tuple[FrozenDict, ...]:
    from simsched.formats.rfc.dependency import Dependency

    if isinstance(dependencies, str) or not isinstance(dependencies, Iterable):
        raise wrong("dependencies", dependencies, "a list of texts such as after:17")
    values = [Dependency.parse(item) if isinstance(item, str) else item for item in dependencies]
    stranger = next((value for value in values if not isinstance(value, Dependency)), None)
    if stranger is not None:
        raise wrong("dependencies", stranger, "texts such as after:17")
    return tuple(freeze(value.to_json()) for value in values)
