"""The values of a JSON Graph Format document, as structs that decode and encode at full speed.

Only `simsched.formats.cluster.jgf` imports this module, and only when there is a graph to read or
to write: msgspec costs start-up time.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

__all__ = [
    "UNSET",
    "Body",
    "Edge",
    "EdgeMetadata",
    "Metadata",
    "OddEdge",
    "OddVertex",
    "UnsetType",
    "Vertex",
    "replaced",
]

S = TypeVar("S", bound=Struct)


def replaced(value: S, **changes: Any) -> S:
    """Return a copy of a struct with some fields changed."""
    return replace(value, **changes)


class Metadata(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """RFC 4 base data of a vertex, with the keys that Fluxion adds; absent keys are UNSET."""

    type: str
    basename: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    id: int | UnsetType | None = UNSET
    uniq_id: int | str | UnsetType = UNSET
    rank: int | UnsetType | None = UNSET
    exclusive: bool | UnsetType = UNSET
    unit: str | UnsetType | None = UNSET
    size: int | UnsetType = UNSET
    status: int | str | UnsetType = UNSET
    drained: bool | UnsetType = UNSET
    properties: dict[str, str] | list[str] | UnsetType | None = UNSET
    uuid: str | UnsetType | None = UNSET
    ids: str | UnsetType = UNSET
    paths: dict[str, str] | UnsetType = UNSET


class Vertex(Struct, gc=False, forbid_unknown_fields=True):
    """One entry of ``nodes``."""

    id: str
    metadata: Metadata


class OddVertex(Vertex, gc=False):
    """A vertex with keys that neither RFC 20 nor Fluxion knows; they are kept."""

    more: dict[str, Any] = {}
    outer: dict[str, Any] = {}


class EdgeMetadata(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """RFC 20's pair, Fluxion's ``subsystem`` alone, or the older ``name`` object."""

    subsystem: str | UnsetType = UNSET
    relationship: str | UnsetType = UNSET
    name: dict[str, str] | UnsetType = UNSET


class Edge(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of ``edges``; without metadata it is one of containment."""

    source: str
    target: str
    metadata: EdgeMetadata | UnsetType = UNSET


class OddEdge(Edge, gc=False):
    """An edge with unknown keys."""

    more: dict[str, Any] = {}
    outer: dict[str, Any] = {}


class Body(Struct, gc=False, forbid_unknown_fields=True):
    """The value of ``graph``."""

    nodes: list[Vertex]
    edges: list[Edge] | UnsetType = UNSET
