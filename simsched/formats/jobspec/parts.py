"""A jobspec document is checked and becomes the parts of a `Jobspec`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from simsched.errors import FormatError, SimschedError
from simsched.formats.jobspec.tasks import Task
from simsched.formats.jobspec.validation_rules import faults_of
from simsched.formats.jobspec.vertex import ResourceVertex
from simsched.formats.rfc.count import Count
from simsched.formats.text.diagnostics import joined
from simsched.formats.text.immutable import FrozenDict, freeze

Warn: TypeAlias = Callable[[SimschedError], None]
"""A function that receives each fault that a lenient reader ignores."""


class JobspecParts(NamedTuple):
    """The arguments of a `Jobspec`, in their order."""

    resources: tuple[ResourceVertex, ...]
    tasks: tuple[Task, ...]
    attributes: FrozenDict
    version: int


def read_jobspec(
    document: Mapping[str, Any], where: str | None = None, *, lenient: Warn | None = None
) -> JobspecParts:
    """Check a document by RFC 14 (a document of version 1 may be one of RFC 25) and build its parts.

    `lenient` is called with each mild fault, which is then ignored.  Raises `FormatError` with the
    first fault and the number of the others.
    """
    plain = dict(document) if isinstance(document, Mapping) else document
    odd = next((key for key in plain if not isinstance(key, str)), None) if isinstance(plain, dict) else None
    if odd is not None:
        raise FormatError(f"the key {odd!r} is not a string", where=where, expected="a jobspec document")
    faults = faults_of(plain)
    if lenient is not None:
        for fault in faults:
            if fault.mild:
                lenient(fault.error().at(where) if where else fault.error())
        faults = [fault for fault in faults if not fault.mild]
    if faults and not _is_v1(plain):
        raise joined(faults, where)
    return JobspecParts(
        build_resources(plain["resources"]),
        tuple(Task.from_dict(task) for task in plain["tasks"]),
        freeze(plain["attributes"] or {}),
        plain["version"],
    )


def _is_v1(document: Any) -> bool:
    """Whether the document is valid by RFC 25 though not by RFC 14: its command is one string."""
    return isinstance(document, dict) and document.get("version") == 1 and not faults_of(document, v1=True)


def build_resources(vertices: Any) -> tuple[ResourceVertex, ...]:
    """Build a resources list that has no faults."""
    return tuple([_vertex(vertex) for vertex in vertices])


def _vertex(document: Mapping[str, Any]) -> ResourceVertex:
    get = document.get
    count = document["count"]
    return ResourceVertex(
        document["type"],
        Count.from_json(count),
        get("unit"),
        get("exclusive"),
        get("label"),
        get("id"),
        build_resources(get("with") or ()),
    )
