"""Nodes one by one, as most files of sites list them, and the notes that a reader collects."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NoReturn

from simsched.errors import ClusterError, FormatError, LimitError, did_you_mean
from simsched.formats.cluster.recipe import MAX_NODES, NodeGroup
from simsched.formats.machines.description import Note
from simsched.formats.rfc.host_ranges import split_name
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_host, check_property
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.formats.cluster.recipe import Level, PoolSpec
    from simsched.formats.machines.description import NoteKind

MAX_UNITS = 1_000_000
"""The most cores or gpus of a node, as in a recipe."""


MAX_NOTES = 1_000
"""The most notes of one reading; of the others there is only the number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node; the fields are those of a `NodeGroup`."""

    host: str
    cores: int = 0
    gpus: int = 0
    core_ids: Idset | None = None
    gpu_ids: Idset | None = None
    locality: tuple[Level, ...] = ()
    pools: tuple[PoolSpec, ...] = ()
    properties: tuple[str, ...] = ()
    status: str = "up"


_LIKE = attrgetter("cores", "gpus", "core_ids", "gpu_ids", "locality", "pools", "properties")


def groups_of(rows: Iterable[NodeRow]) -> tuple[NodeGroup, ...]:
    """Return the nodes as groups, in their order: neighbours that are alike are one group.

    >>> rows = [NodeRow(host=f"n{at}", cores=4, status="down" if at == 1 else "up") for at in range(3)]
    >>> [(group.hosts, sorted(group.down)) for group in groups_of(rows)]
    [(('n0', 'n1', 'n2'), ['n1'])]
    """
    found: list[NodeGroup] = []
    for _, members in groupby(rows, key=_LIKE):
        nodes = list(members)
        like = nodes[0]
        found.append(
            NodeGroup(
                name=split_name(nodes[0].host).prefix or nodes[0].host,
                hosts=tuple(node.host for node in nodes),
                locality=like.locality,
                cores=like.cores,
                gpus=like.gpus,
                core_ids=like.core_ids,
                gpu_ids=like.gpu_ids,
                pools=like.pools,
                properties=like.properties,
                down=frozenset(node.host for node in nodes if node.status == "down"),
                drained=frozenset(node.host for node in nodes if node.status == "drained"),
            )
        )
    return tuple(found)


class NoteCollector:
    """The notes of one reader; equal sentences become one note with their number.

    strict : raise the first fault as an error instead of noting it.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._first: FormatError | ClusterError | None = None
        self._places: dict[tuple[NoteKind, str], list[str]] = {}
        self._more = 0

    def fault(self, message: str, where: str = "", expected: str | None = None) -> None:
        """Note a part of the file that is not understood and not used.  Raises FormatError if strict."""
        self.error(FormatError(message, where=where or None, expected=expected))

    def error(self, error: FormatError | ClusterError) -> None:
        """Note an error as a fault, or raise it if strict; limits are always raised."""
        if self.strict or isinstance(error, LimitError):
            raise error
        self._first = self._first or error
        text = f"{error.message} (expected {error.expected})" if error.expected else error.message
        self._add("fault", text, error.where or "")

    def refuse(self, message: str, where: str, expected: str) -> NoReturn:
        """Raise FormatError for a file that describes nothing: its first fault, which may be the reason."""
        raise self._first or FormatError(message, where=where or None, expected=expected)

    def unknown(self, key: str, known: Iterable[str], where: str = "") -> None:
        """Note a key that is not known: a fault if it resembles a known one."""
        meant = did_you_mean(key, known, cutoff=0.75)
        if meant:
            self.fault(f"unknown key {key!r}{meant}", where)
        else:
            self.left_out(f"the key {key!r} is not used", where)

    def assumed(self, text: str, where: str = "") -> None:
        """Note a value that the file does not state."""
        self._add("assumed", text, where)

    def left_out(self, text: str, where: str = "") -> None:
        """Note a part of the file that simsched does not hold."""
        self._add("left out", text, where)

    def _add(self, kind: NoteKind, text: str, where: str) -> None:
        if (kind, text) in self._places or len(self._places) < MAX_NOTES:
            self._places.setdefault((kind, text), []).append(where)
        else:
            self._more += 1

    def notes(self) -> tuple[Note, ...]:
        """Return the notes in the order in which each sentence first occurred."""
        found = []
        for (kind, text), places in self._places.items():
            times = f" ({len(places):,} times)" if len(places) > 1 else ""
            found.append(Note(kind, text + times, places[0]))
        if self._more:
            found.append(Note("fault", f"{self._more:,} more faults and notes of this file"))
        return tuple(found)


def hosts_in(text: str, where: str, notes: NoteCollector) -> list[str]:
    """Return the names of a hostlist; an expression that is not one is a fault, and is ignored."""
    try:
        return Hostlist.parse(text, where=where).expand(MAX_NODES)
    except FormatError as error:
        notes.error(
            error if error.where else type(error)(error.message, where=where, expected=error.expected)
        )
        return []


def idset_in(value: object, where: str, notes: NoteCollector) -> Idset:
    """Return the ids of an idset; a value that is not one is a fault, and means no ids."""
    if not isinstance(value, str):
        notes.fault(f"{clip(repr(value))} is not an idset", where, 'a text such as "0-47"')
        return Idset(())
    try:
        return Idset.parse(value, where=where)
    except FormatError as error:
        notes.error(error)
        return Idset(())


def usable_host(name: str, where: str, notes: NoteCollector) -> bool:
    """Return whether a hostlist can hold this name; a name that it cannot hold is a fault."""
    try:
        check_host(name, where)
    except ClusterError as error:
        notes.error(error)
        return False
    return True


def usable_properties(names: Iterable[str], where: str, notes: NoteCollector) -> tuple[str, ...]:
    """Return the names, each once, that can be properties of nodes (RFC 20); others are faults."""
    found = dict.fromkeys(names)
    for name in list(found):
        try:
            check_property(name, where)
        except FormatError as error:
            notes.error(error)
            del found[name]
    return tuple(found)


def named_ids(ids: Idset) -> Idset | None:
    """Return ids, or None where they are 0, 1, 2 … as a recipe counts them.

    >>> named_ids(Idset.parse("0-3")), str(named_ids(Idset.parse("2-3")))
    (None, '2-3')
    """
    return None if ids == Idset.from_range(0, len(ids) - 1) else ids
