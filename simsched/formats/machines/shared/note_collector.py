"""`NoteCollector`: the notes of one reading, equal ones joined; if strict, a fault is an error."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn, TypeVar

from simsched.errors import ClusterError, FormatError, LimitError, SimschedError, did_you_mean
from simsched.formats.machines.description import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from simsched.formats.machines.description import NoteKind

Result = TypeVar("Result")

MOST_FAULTS = 50
"""Faults of one cause that have a note each; of the others there is only the number."""

MOST_CAUSES = 1_000
"""Kinds and causes of notes that one reading tells apart; of the others there is only the number."""


@dataclass(slots=True)
class _Entry:
    """Notes of one kind and cause: the first ones as they are, and the number of all."""

    first: list[Note]
    number: int = 0


@dataclass(slots=True)
class NoteCollector:
    """The notes of one reading, in the order of their first occurrence.

    Notes of one kind and cause are joined: the first one stays, with the number of the others.  The cause
    is the sentence itself unless it is given; of faults with a given cause the first fifty stay.

    strict : the first fault is raised as an error instead of being noted.
    """

    strict: bool = False
    _entries: dict[tuple[str, str], _Entry] = field(default_factory=dict)
    _fault: FormatError | ClusterError | None = None
    _more: int = 0

    @classmethod
    def joined(cls, parts: Iterable[NoteCollector]) -> NoteCollector:
        """Return a collector with a copy of the notes of several readings."""
        found = cls()
        for part in parts:
            found.strict = found.strict or part.strict
            found._fault = found._fault or part._fault
            found._more += part._more
            for key, entry in part._entries.items():
                mine = found._entries.setdefault(key, _Entry([]))
                mine.number += entry.number
                most = MOST_FAULTS if key[0] == "fault" and len(entry.first) > 1 else 1
                mine.first += entry.first[: max(most - len(mine.first), 0)]
        return found

    def fault(self, text: str, where: str = "", expected: str | None = None, *, cause: str = "") -> None:
        """Note that a line, or a part of it, could not be understood; raise `FormatError` if strict."""
        self.error(FormatError(text, where=where or None, expected=expected), cause=cause)

    def error(self, error: FormatError | ClusterError, *, cause: str = "") -> None:
        """Note an error as a fault, or raise it if strict; limits are always raised."""
        if self.strict or isinstance(error, LimitError):
            raise error
        self._fault = self._fault or error
        text = f"{error.message} (expected {error.expected})" if error.expected else error.message
        self._add("fault", text, error.where or "", cause or text, MOST_FAULTS if cause else 1)

    def refuse(self, message: str, where: str, expected: str) -> NoReturn:
        """Raise FormatError for a file that describes nothing: its first fault, which may be the reason."""
        raise self._fault or FormatError(message, where=where or None, expected=expected)

    def unknown(self, key: str, known: Iterable[str], where: str = "") -> None:
        """Note a key that is not known: a fault if it resembles a known one."""
        meant = did_you_mean(key, known, cutoff=0.75)
        if meant:
            self.fault(f"unknown key {key!r}{meant}", where)
        else:
            self.left_out(f"the key {key!r} is not used", where)

    def assumed(self, text: str, where: str = "", *, cause: str = "") -> None:
        """Note a value that the file does not state."""
        self._add("assumed", text, where, cause or text, 1)

    def left_out(self, text: str, where: str = "", *, cause: str = "") -> None:
        """Note a value that simsched does not hold."""
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
        """Return all notes; the last of a cause says how many more there are."""
        found: list[Note] = []
        for entry in self._entries.values():
            *rest, last = entry.first
            more = entry.number - len(entry.first)
            found += [
                *rest,
                replace(last, text=f"{last.text} (and {_more(more, last.where)})") if more else last,
            ]
        if self._more:
            found.append(Note("fault", f"{self._more:,} more faults and notes of this file"))
        return tuple(found)

    def _add(self, kind: NoteKind, text: str, where: str, cause: str, most: int) -> None:
        if (kind, cause) not in self._entries and len(self._entries) >= MOST_CAUSES:
            self._more += 1
            return
        entry = self._entries.setdefault((kind, cause), _Entry([]))
        entry.number += 1
        if len(entry.first) < most:
            entry.first.append(Note(kind, text, where))


def _more(number: int, where: str) -> str:
    """Return a number of further places; those of a text are lines, those of a document are not."""
    word = "line" if where.rpartition(":")[2].isdigit() else "place"
    return f"{number:,} more {word}{'s' if number > 1 else ''}"
