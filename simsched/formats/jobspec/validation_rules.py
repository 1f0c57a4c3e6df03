"""The rules of RFC 14 and RFC 25 for a document; every fault is found in one walk.

They are the one judge of a jobspec's validity.  They cover the two JSON Schemas, as tests hold, and the rules
that a schema cannot state: labels are unique, the slot of a task exists, the type of `per_resource` is in the
slot, ranges are not empty.  Where RFC 25's text and schema differ, the readings R1 to R3 hold.  Unknown keys
are faults, except in `attributes.system`, where RFC 14 requires a warning.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from simsched.errors import FormatError, nearest
from simsched.formats.jobspec.vertex import KEYS as VERTEX_KEYS
from simsched.formats.rfc import constraint as constraints
from simsched.formats.rfc import dependency as dependencies
from simsched.formats.rfc.count import MAX_COUNT, Count, dict_faults
from simsched.formats.text.diagnostics import Fault, shown
from simsched.formats.text.immutable import MAX_DEPTH
from simsched.formats.text.yaml_text import yaml_hint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.text.excerpts import Path


TOP_KEYS = ("version", "resources", "tasks", "attributes")
STRINGS = ("cwd", "queue", "bank", "project")
OBJECTS = ("environment", "shell", "files", "job")
NUMBERS = ("duration", "preemptible-after")
SYSTEM_KEYS = (*NUMBERS, *STRINGS, *OBJECTS, "dependencies", "constraints")
"""The keys of `attributes.system` that RFC 14 knows."""

TASK_KEYS = ("command", "slot", "count", "attributes", "distribution")
"""The keys of a task, RFC 14; a V1 task has the first three."""

COUNT_KEYS = ("per_slot", "per_resource", "total")
"""The keys of a task's count, of which exactly one is there."""

KEY = "resource-parts"
"""The key of ``attributes.system`` for parts with constraints or queues of their own."""


def faults_of(document: Any, *, v1: bool = False) -> list[Fault]:
    """Return every fault of a document against RFC 14, or against RFC 25 (`v1`); empty if valid.

    >>> [str(f) for f in faults_of({"version": 1, "resources": [], "tasks": [], "attributes": {}})]
    ... # doctest: +ELLIPSIS
    ['resources: an empty list is not valid here (expected a list of at least one resource)', 'tasks: ...']
    """
    check = _V1Check() if v1 else _Check()
    check.document(document)
    return check.faults


def resources_faults(resources: Any, *, v1: bool = False) -> list[Fault]:
    """Return every fault of a resources list (RFC 14, or RFC 25 with `v1`) without a jobspec around it."""
    check = _V1Check() if v1 else _Check()
    check.resources(resources)
    return check.faults


def system_faults(system: dict[str, Any], path: Path = ()) -> list[Fault]:
    """Return every fault of the `attributes.system` dictionary at `path`."""
    check = _Check()
    check.system(system, path)
    return check.faults


def constraint_faults(value: Any, path: Path = (), level: int = 1) -> list[Fault]:
    """Return every fault of the RFC 31 object at `path`."""
    parts: list[tuple[Any, Path]] = [(value, path)]
    if isinstance(value, dict) and len(value) == 1 and level <= constraints.MAX_LEVELS:
        ((operator, items),) = value.items()
        if operator in constraints.OPERATORS and isinstance(items, (list, tuple)):
            places = [(*path, operator, i) for i in range(len(items))]
            if operator in {"and", "or", "not"}:
                nested = zip(items, places, strict=True)
                return [f for item, place in nested for f in constraint_faults(item, place, level + 1)]
            parts = [({operator: [item]}, place) for item, place in zip(items, places, strict=True)]
    faults = []
    for part, place in parts:
        try:
            constraints.from_json(part)
        except FormatError as error:
            faults.append(Fault(place, error.message, error.expected or ""))
    return faults


class _Check:
    """One walk over one document; the faults gather in `faults`."""

    task_keys: tuple[str, ...] = TASK_KEYS
    count_keys: tuple[str, ...] = COUNT_KEYS

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.labels: set[str] = set()
        self.slots: dict[str, set[str]] = {}
        self.top_level = 0  # entries of resources; 0: they are not known

    def fault(
        self, path: Path, message: str, expected: str = "", *, at_key: bool = False, mild: bool = False
    ) -> None:
        self.faults.append(Fault(path, message, expected, at_key, mild=mild))

    def wrong(self, path: Path, value: Any, expected: str) -> None:
        hint = yaml_hint(value)
        self.fault(path, f"{shown(value)} is not valid here" + (f": {hint}" if hint else ""), expected)

    def table(
        self, value: Any, path: Path, expected: str, known: tuple[str, ...], required: tuple[str, ...] = ()
    ) -> bool:
        """Whether a value is an object; keys that are unknown or missing are faults as well."""
        if not isinstance(value, dict):
            self.wrong(path, value, expected)
            return False
        for key in value:
            if key not in known:
                self.fault((*path, key), self.unknown(key, known), ", ".join(known), at_key=True)
        for key in required:
            if key not in value:
                self.fault(path, f"the key {key!r} is missing", key)
        return True

    def unknown(self, key: str, known: tuple[str, ...]) -> str:
        near = nearest(key, known)
        return f"unknown key {key!r}" + (f", perhaps {near!r}" if near else "")

    def rows(self, value: Any, path: Path, expected: str) -> Iterator[tuple[Path, Any]]:
        """Yield the items of a list that is not empty, with their paths."""
        if not isinstance(value, (list, tuple)) or not value:
            self.wrong(path, value, expected)
            return
        for i, item in enumerate(value):
            yield (*path, i), item

    def typed(self, value: dict[str, Any], path: Path, key: str, kind: type, expected: str) -> None:
        if key in value and not isinstance(value[key], kind):
            self.wrong((*path, key), value[key], expected)

    # ------------------------------------------------------------ the document

    def document(self, value: Any) -> None:
        expected = "an object with version, resources, tasks and attributes"
        if self.table(value, (), expected, TOP_KEYS, TOP_KEYS):
            for key, check in zip(
                TOP_KEYS, (self.version, self.resources, self.tasks, self.attributes), strict=True
            ):
                if key in value:
                    check(value[key])

    def version(self, value: Any) -> None:
        self.number(value, ("version",))

    # ------------------------------------------------------------ resources

    def resources(self, value: Any) -> None:
        self.top_level = len(value) if isinstance(value, (list, tuple)) else 0
        for path, vertex in self.rows(value, ("resources",), "a list of at least one resource"):
            self.vertex(vertex, path, ())

    def vertex(self, value: Any, path: Path, inside: tuple[str, ...]) -> None:
        """Check one vertex and its children; `inside` are the labels of the slots around it."""
        if isinstance(value, dict) and len(path) > 2 * MAX_DEPTH:
            self.fault(path, "resources are nested too deeply", f"at most {MAX_DEPTH} levels")
            return
        expected = "a resource: an object with type and count"
        if not self.table(value, path, expected, VERTEX_KEYS, ("type", "count")):
            return
        kind = value.get("type")
        if "type" in value and (not isinstance(kind, str) or not kind):
            self.wrong((*path, "type"), kind, "a resource type such as node, core or slot")
        elif isinstance(kind, str):
            for slot in inside:
                self.slots[slot].add(kind)
        if "count" in value:
            self.count(value["count"], (*path, "count"))
        for key in ("unit", "id"):
            self.typed(value, path, key, str, "a string")
        self.typed(value, path, "exclusive", bool, "true or false")
        if "label" in value:
            inside += self.label(value["label"], (*path, "label"), kind)
        elif kind == "slot":
            self.fault(path, "a slot has no label", "label")
        if "with" not in value:
            if kind == "slot":
                self.fault(path, "a slot holds nothing", "with: at least one resource")
            return
        children, path = value["with"], (*path, "with")
        if not isinstance(children, (list, tuple)):
            self.wrong(path, children, "a list of resources")
            return
        if not children and kind == "slot":
            self.fault(path, "a slot holds nothing", "at least one resource")
        for i, child in enumerate(children):
            self.vertex(child, (*path, i), inside)

    def label(self, label: Any, path: Path, kind: Any) -> tuple[str, ...]:
        """Check a label; return it as a tuple if it is that of a slot."""
        if not isinstance(label, str):
            self.wrong(path, label, "a string")
            return ()
        if label in self.labels:
            self.fault(path, f"the label {label!r} occurs twice", "unique labels")
        self.labels.add(label)
        if kind != "slot":
            return ()
        self.slots.setdefault(label, set())
        return (label,)

    def count(self, value: Any, path: Path) -> None:
        if type(value) is int:
            self.number(value, path)
        elif isinstance(value, dict):
            for key, message, expected in dict_faults(value):
                unknown = message.startswith("unknown key")
                self.fault((*path, key) if key else path, message, expected, at_key=unknown)
        elif isinstance(value, str):
            try:
                Count.parse(value)
            except FormatError as error:
                hint = yaml_hint(value) or ""
                message = hint if hint and "boolean" not in hint else f"{shown(value)}: {error.message}"
                self.fault(path, message, error.expected or "")
        else:
            self.wrong(path, value, "an integer, an idset or range, or an object with min")

    def number(self, value: Any, path: Path) -> None:
        if type(value) is not int or not 1 <= value <= MAX_COUNT:
            large = type(value) is int and value > MAX_COUNT
            self.wrong(path, value, f"at most {MAX_COUNT}" if large else "an integer, at least 1")

    # ------------------------------------------------------------ tasks

    def tasks(self, value: Any) -> None:
        for path, task in self.rows(value, ("tasks",), "a list of at least one task"):
            self.task(task, path)

    def task(self, value: Any, path: Path) -> None:
        expected = "a task: an object with command, slot and count"
        if not self.table(value, path, expected, self.task_keys, ("command", "count")):
            return
        if "command" in value:
            self.command(value["command"], (*path, "command"))
        slot = value.get("slot")
        if "slot" not in value:
            self.fault(path, "the key 'slot' is missing", "slot", mild=True)
        elif not isinstance(slot, str):
            self.wrong((*path, "slot"), slot, "the label of a slot")
        elif slot not in self.slots:
            known = ", ".join(map(repr, self.slots)) or "a slot among the resources"
            self.fault((*path, "slot"), f"no slot has the label {shown(slot)}", known, mild=True)
        if "count" in value:
            self.task_count(value["count"], (*path, "count"), slot)
        if "distribution" in self.task_keys:  # `table` has reported it, and attributes, where they may not be
            self.typed(value, path, "distribution", str, "a string")
            self.typed(value, path, "attributes", dict, "an object")

    def command(self, value: Any, path: Path) -> None:
        for place, word in self.rows(value, path, "a list of the program and its arguments"):
            if not isinstance(word, str):
                self.wrong(place, word, "a string")

    def task_count(self, value: Any, path: Path, slot: Any) -> None:
        one_of = "one of " + ", ".join(self.count_keys)
        if not self.table(value, path, f"an object with {one_of}", self.count_keys):
            return
        if len([key for key in value if key in self.count_keys]) != 1:
            self.fault(path, f"{len(value)} keys", f"exactly {one_of}")
        for key in ("per_slot", "total"):
            if key in value:
                self.number(value[key], (*path, key))
        if "per_resource" in value and "per_resource" in self.count_keys:
            self.per_resource(value["per_resource"], (*path, "per_resource"), slot)

    def per_resource(self, value: Any, path: Path, slot: Any) -> None:
        keys = ("type", "count")
        if not self.table(value, path, "an object with type and count", keys, keys):
            return
        self.typed(value, path, "type", str, "a resource type")
        kind = value.get("type")
        if isinstance(kind, str) and isinstance(slot, str) and kind not in self.slots.get(slot, {kind}):
            found = ", ".join(sorted(self.slots[slot])) or "a type that the slot holds"
            self.fault((*path, "type"), f"the slot {slot!r} holds no {kind}", found)
        if "count" in value:
            self.number(value["count"], (*path, "count"))

    # ------------------------------------------------------------ attributes

    def attributes(self, value: Any) -> None:
        path, keys = ("attributes",), ("system", "user")
        if value is None:
            return  # RFC 14's schema allows it
        if self.table(value, path, "an object with system and user", keys):
            for key in keys:
                self.typed(value, path, key, dict, "an object")
            if isinstance(value.get("system"), dict):
                self.system(value["system"], (*path, "system"))

    def system(self, value: dict[str, Any], path: Path) -> None:
        for key, item in value.items():
            place = (*path, key)
            if key in NUMBERS:
                good = isinstance(item, (int, float)) and not isinstance(item, bool)
                if not good or not 0 <= item < math.inf:
                    hint = " (60.0, not '1m')" if isinstance(item, str) else ""
                    self.wrong(place, item, f"seconds, a number of at least 0{hint}")
            elif key in STRINGS:
                self.typed(value, path, key, str, "a string")
            elif key in OBJECTS and not isinstance(item, dict):
                self.wrong(place, item, "an object of strings" if key == "job" else "an object")
            elif key == "environment":
                self.texts(item, place, (str, type(None)), "a string, or null to unset the variable")
            elif key == "job":
                self.texts(item, place, (str,), "a string")
            elif key == "dependencies":
                self.dependencies(item, place)
            elif key == "constraints":
                self.faults += constraint_faults(item, place)
            elif key == KEY:
                self.parts(item, place)

    def texts(self, value: dict[str, Any], path: Path, kinds: tuple[type, ...], expected: str) -> None:
        for key, item in value.items():
            if not isinstance(item, kinds):
                self.wrong((*path, key), item, expected)

    def dependencies(self, value: Any, path: Path) -> None:
        if not isinstance(value, (list, tuple)):
            self.wrong(path, value, "a list of dependencies")
            return
        for i, item in enumerate(value):
            for key, message, expected in dependencies.faults(item):
                self.fault((*path, i, key) if key else (*path, i), message, expected)

    def parts(self, value: Any, path: Path) -> None:
        """Check the parts of a heterogeneous job: first their form, then their constraints."""
        if not isinstance(value, (list, tuple)) or not value:
            message = "resource-parts is not a list of objects"
            self.fault(path, message, "one object per part of a heterogeneous job")
            return
        keys, covered = ("resources", "constraints", "queue"), 0
        for i, part in enumerate(value):
            size = part.get("resources") if isinstance(part, dict) else None
            if not isinstance(part, dict):
                self.fault((*path, i), "a part is not an object", ", ".join(keys))
                break
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                message = f"{size!r} is not a number of resources"
                self.fault((*path, i, "resources"), message, "1 or more")
                break
            covered += size
            for key in part:
                if key not in keys:
                    self.fault((*path, i, key), f"unknown key {key!r}", ", ".join(keys))
            if not isinstance(part.get("queue", ""), str):
                self.fault((*path, i, "queue"), f"{part['queue']!r} is not the name of a queue", "a string")
        else:
            if covered != self.top_level:
                message = f"the parts have {covered} resources, and the jobspec has {self.top_level}"
                self.fault(path, message, "equal numbers")
        for i, part in enumerate(value):
            if isinstance(part, dict) and "constraints" in part:
                self.faults += constraint_faults(part["constraints"], (*path, i, "constraints"))


class _V1Check(_Check):
    """The restrictions of RFC 25 beyond RFC 14, with the readings R1 to R3."""

    task_keys = ("command", "slot", "count")
    count_keys = ("per_slot", "total")
    vertex_keys: ClassVar[dict[str, tuple[str, ...]]] = {
        "node": ("type", "count", "unit", "with", "exclusive"),
        "slot": ("type", "count", "unit", "with", "label", "exclusive"),
        "core": ("type", "count", "unit"),
        "gpu": ("type", "count", "unit"),
    }

    def unknown(self, key: str, known: tuple[str, ...]) -> str:
        return f"V1 has no {key!r}" if key in _Check.task_keys + COUNT_KEYS else super().unknown(key, known)

    def version(self, value: Any) -> None:
        if type(value) is not int or value != 1:
            self.wrong(("version",), value, "1")

    def resources(self, value: Any) -> None:
        super().resources(value)
        if not isinstance(value, (list, tuple)) or not value:
            return
        if len(value) > 1:
            self.fault(("resources",), f"{len(value)} resources", "exactly one, a node or a slot")
        for i, vertex in enumerate(value):
            self.level(vertex, ("resources", i), ("node", "slot"))

    def level(self, value: Any, path: Path, types: tuple[str, ...]) -> None:
        """Check a vertex against the types that RFC 25's enumerated graphs have at its level."""
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            return
        kind = value["type"]
        if kind not in types:
            self.fault((*path, "type"), f"{shown(kind)} is not allowed here in V1", " or ".join(types))
            return
        for key in value:
            if key in VERTEX_KEYS and key not in self.vertex_keys[kind]:
                known = ", ".join(self.vertex_keys[kind])
                self.fault((*path, key), f"a {kind} has no {key!r} in V1", known, at_key=True)
        if kind in {"node", "slot"}:
            self.children(value, path, kind)

    def children(self, value: dict[str, Any], path: Path, kind: str) -> None:
        children = value.get("with")
        if children is None or not isinstance(children, (list, tuple)):
            if kind == "node" and "with" not in value:
                self.fault(path, "a node holds no slot", "with: one slot")
            return
        path = (*path, "with")
        for i, child in enumerate(children):
            self.level(child, (*path, i), ("slot",) if kind == "node" else ("core", "gpu"))
        types = [child.get("type") for child in children if isinstance(child, dict)]
        if kind == "node" and len(children) != 1:
            self.fault(path, f"{len(children)} resources in the node", "exactly one slot")
        elif kind == "slot" and children and types.count("core") != 1:
            self.fault(path, f"{types.count('core')} core resources in the slot", "exactly one")
        elif kind == "slot" and types.count("gpu") > 1:
            self.fault(path, f"{types.count('gpu')} gpu resources in the slot", "at most one")

    def count(self, value: Any, path: Path) -> None:
        faults = len(self.faults)
        if isinstance(value, dict | str):
            super().count(value, path)
            if len(self.faults) == faults:
                self.fault(path, f"the count {Count.from_json(value)}", "an integer")
        else:
            self.number(value, path)

    def tasks(self, value: Any) -> None:
        super().tasks(value)
        if isinstance(value, (list, tuple)) and len(value) > 1:
            self.fault(("tasks",), f"{len(value)} tasks", "exactly one")

    def command(self, value: Any, path: Path) -> None:
        if not (isinstance(value, str) and value):
            super().command(value, path)

    def attributes(self, value: Any) -> None:
        super().attributes(value)
        if value is None:
            self.wrong(("attributes",), value, "an object with system and user")  # reading R3
        if not isinstance(value, dict):
            return
        if "system" not in value:
            self.fault(("attributes",), "the key 'system' is missing", "system")
        elif isinstance(value["system"], dict) and "duration" not in value["system"]:
            self.fault(("attributes", "system"), "the key 'duration' is missing", "duration, in seconds")
