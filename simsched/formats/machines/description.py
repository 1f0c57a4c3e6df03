"""`MachineDescription`: the hardware and queues in the files of a site, and the notes of reading them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar

from simsched.errors import ClusterError, FormatError, LimitError, SimschedError, clip, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from simsched.formats.cluster.recipe import Recipe


NoteKind = Literal["assumed", "left out", "fault"]

Table: TypeAlias = "dict[str, Any]"
"""A table of a configuration document."""

Content: TypeAlias = "str | Mapping[str, Any]"
"""What a reader of one format reads: a text, or a decoded JSON document."""


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the person who imports a site.

    kind : `assumed` for a value that the file does not state, `left out` for one that simsched does
        not hold, `fault` for a line that could not be understood.
    where : file and line, ``slurm.conf:12``, as far as they are known.
    """

    kind: NoteKind
    text: str
    where: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.text}" if self.where else self.text
        return {"assumed": "assumed: ", "left out": "left out: ", "fault": "ignored: "}[self.kind] + text


@dataclass(frozen=True, slots=True)
class QosRow:
    """The values of a QOS that are not limits; `where` is its line.

    preempts : the QOS whose jobs it may preempt.
    victims : ``mode``, ``grace`` and ``exempt`` (seconds) of its own jobs that are preempted, as far as they
        are stated.
    """

    name: str
    priority: int = 0
    usage_factor: float = 1.0
    where: str = ""
    preempts: tuple[str, ...] = ()
    victims: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDescription:
    """The hardware and the queues that one or several files of a site describe.

    Attributes
    ----------
    recipe : the nodes.  Partitions and features are properties of nodes.
    config : a configuration document as `--config` takes it (RFC 33: ``queues``, ``policy``); empty if
        the files state no queues.
    notes : assumptions, omissions, and parts that were not understood, in the order of the files.
    format : the name of the format, ``slurm.conf``.
    excluded : the hosts that Flux's ``resource.exclude`` withholds from scheduling; `recipe` lacks them.
    cpus_per_core : the CPUs that the site's scheduler, and so its logs, count for one core: 2 if it
        counts hardware threads.  1 also if nodes differ.
    """

    recipe: Recipe
    config: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    format: str = ""
    cpus_per_core: int = 1
    excluded: tuple[str, ...] = ()


Result = TypeVar("Result")

MOST_FAULTS = 50
"""Faults of one cause that have a note each; of the others there is only the number."""

MOST_CAUSES = 1_000
"""Kinds and causes of notes that one reading tells apart; of the others there is only the number."""


@dataclass(slots=True)
class NoteCollector:
    """The notes of one reading, in the order of their first occurrence.

    Notes of one kind and cause are joined: the first one stays, with the number of the others.  The cause
    is the sentence itself unless it is given; of faults with a given cause the first fifty stay.

    strict : the first fault is raised as an error instead of being noted.
    """

    strict: bool = False
    _first: dict[tuple[str, str], list[Note]] = field(default_factory=dict)
    _number: Counter[tuple[str, str]] = field(default_factory=Counter)
    _fault: SimschedError | None = None
    _more: int = 0

    @classmethod
    def joined(cls, parts: Iterable[NoteCollector]) -> NoteCollector:
        """Return a collector with a copy of the notes of several readings."""
        found = cls()
        for part in parts:
            found.strict = found.strict or part.strict
            found._fault = found._fault or part._fault
            found._more += part._more
            found._number += part._number
            for key, first in part._first.items():
                mine = found._first.setdefault(key, [])
                most = MOST_FAULTS if key[0] == "fault" and len(first) > 1 else 1
                mine += first[: max(most - len(mine), 0)]
        return found

    def fault(self, text: str, where: str = "", expected: str | None = None, *, cause: str = "") -> None:
        """Note that a line, or a part of it, could not be understood; raise `FormatError` if strict."""
        self.error(FormatError(text, where=where or None, expected=expected), cause=cause)

    def error(self, error: SimschedError, *, cause: str = "") -> None:
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

    def tried(self, read: Callable[[], Result], otherwise: Result, where: str = "") -> Result:
        """Return ``read()``; if it raises, note the error, at `where` without a place, and `otherwise`."""
        try:
            return read()
        except (FormatError, ClusterError) as error:
            self.error(error.at(where) if where and not error.where else error)
            return otherwise

    def whole(
        self, text: str, key: str, where: str, *, most: int = 10**9 - 1, expected: str = "a whole number"
    ) -> int | None:
        """Return the whole number that a value of `key` is; None if it is none, which is a fault."""
        if re.fullmatch(r"[0-9]{1,18}", text) and int(text) <= most:
            return int(text)
        self.fault(f"{clip(text)!r} is not a value of {key}", where, expected)
        return None

    def unknown_keys(self, table: Iterable[str], known: Sequence[str], place: Callable[[str], str]) -> None:
        """Note the keys of a table that are not known; `place` returns that of a key."""
        for key in table:
            if key not in known:
                self.unknown(key, known, place(key))

    def has_room(self, cause: str) -> bool:
        """Whether one more fault of a cause has a note of its own."""
        return self._number["fault", cause] < MOST_FAULTS

    def notes(self) -> tuple[Note, ...]:
        """Return all notes; the last of a cause says how many more there are."""
        found: list[Note] = []
        for key, first in self._first.items():
            *rest, last = first
            more = self._number[key] - len(first)
            if more:  # those of a text are lines, those of a document are not
                word = "line" if last.where.rpartition(":")[2].isdigit() else "place"
                last = replace(last, text=f"{last.text} (and {more:,} more {word}{'s' * (more > 1)})")
            found += [*rest, last]
        if self._more:
            found.append(Note("fault", f"{self._more:,} more faults and notes of this file"))
        return tuple(found)

    def _add(self, kind: NoteKind, text: str, where: str, cause: str, most: int) -> None:
        if (kind, cause) not in self._first and len(self._first) >= MOST_CAUSES:
            self._more += 1
            return
        first = self._first.setdefault((kind, cause), [])
        self._number[kind, cause] += 1
        if len(first) < most:
            first.append(Note(kind, text, where))
