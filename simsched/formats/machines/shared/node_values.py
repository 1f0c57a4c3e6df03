"""Values of nodes, checked: hosts, ids and properties that a reader can use; the others are faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.errors import ClusterError, FormatError
from simsched.formats.cluster.recipe import MAX_NODES
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_host, check_property
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.formats.machines.shared.note_collector import NoteCollector

MAX_UNITS = 1_000_000
"""The most cores or gpus of a node, as in a recipe."""


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
