"""`NoteBook`: collects the notes of one reading and joins equal ones; if strict, a fault is an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from simsched.errors import FormatError, SimschedError
from simsched.formats.machines.description import Note

if TYPE_CHECKING:
    from collections.abc import Callable

    from simsched.formats.machines.description import NoteKind

Result = TypeVar("Result")

MOST_FAULTS = 50
"""Faults of one cause that have a note each; of the others there is only the number."""


@dataclass(slots=True)
class _Entry:
    """Notes of one kind and cause: the first ones as they are, and the number of all."""

    first: list[Note]
    number: int = 0


@dataclass(slots=True)
class NoteBook:
    """The notes of one reading, in the order of their first occurrence.

    strict : the first fault is raised as a `FormatError` instead of being noted.
    """

    strict: bool = False
    _entries: dict[tuple[str, str], _Entry] = field(default_factory=dict)

    def fault(self, text: str, where: str, expected: str | None = None, *, cause: str = "") -> None:
        """Note that a line, or a part of it, could not be understood; raise `FormatError` if strict."""
        if self.strict:
            raise FormatError(text, where=where, expected=expected)
        note = str(FormatError(text, expected=expected))
        self._add("fault", note, where, cause or note, MOST_FAULTS)

    def assumed(self, text: str, where: str = "", *, cause: str = "") -> None:
        """Note a value that the file does not state."""
        self._add("assumed", text, where, cause or text, 1)

    def left_out(self, text: str, where: str = "", *, cause: str = "") -> None:
        """Note a value that simsched does not hold.  Notes of one cause are one note, with their number."""
        self._add("left out", text, where, cause or text, 1)

    def attempt(self, read: Callable[[str], Result], text: str, where: str, key: str) -> Result | None:
        """Return ``read(text)``; if it raises, note the fault of `key` and return None."""
        try:
            return read(text)
        except SimschedError as error:
            self.fault(f"{key}: {error.message}", where, error.expected, cause=key)
            return None

    def has_room(self, cause: str) -> bool:
        """Whether one more fault of a cause has a note of its own."""
        entry = self._entries.get(("fault", cause))
        return entry is None or entry.number < MOST_FAULTS

    def notes(self) -> tuple[Note, ...]:
        """Return all notes; the last of a cause says how many more lines have it."""
        found: list[Note] = []
        for entry in self._entries.values():
            *rest, last = entry.first
            more = entry.number - len(entry.first)
            plural = "s" if more > 1 else ""
            text = f"{last.text} (and {more:,} more line{plural})" if more else last.text
            found += [*rest, Note(last.kind, text, last.where)]
        return tuple(found)

    def _add(self, kind: NoteKind, text: str, where: str, cause: str, most: int) -> None:
        entry = self._entries.setdefault((kind, cause), _Entry([]))
        entry.number += 1
        if len(entry.first) < most:
            entry.first.append(Note(kind, text, where))
