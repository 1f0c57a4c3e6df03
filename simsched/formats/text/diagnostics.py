"""Faults of documents, with JSON path, line and column, and faults of one-line texts, with a caret."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError
from simsched.formats.text.excerpts import Path, clip, format_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simsched.formats.text.locations import Locations

_SURROGATE = re.compile("[\ud800-\udfff]")

WINDOW = 76
"""The characters of a long text that are shown around a fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a document.

    `path` leads to the faulty value, or, where `at_key` is true, to the key.  `line` and `column` are 0 until
    `located` finds them in the text.  A `mild` fault does not affect the resources: other schedulers run such
    a job, and a lenient reader warns of it.

    >>> print(Fault(("resources", 0, "count"), "0 is not a count", "at least 1"))
    resources[0].count: 0 is not a count (expected at least 1)
    """

    path: Path
    message: str
    expected: str = ""
    at_key: bool = False
    line: int = 0
    column: int = 0
    where: str = ""
    mild: bool = False

    @property
    def place(self) -> str:
        """File, line, column and JSON path, as far as they are known."""
        spot = f"{self.where}:{self.line}:{self.column}" if self.line else self.where
        return ": ".join(part for part in (spot, format_path(self.path)) if part)

    def error(self, kind: type[FormatError] = FormatError) -> FormatError:
        """Return the fault as an error."""
        return kind(self.message, where=self.place or None, expected=self.expected or None)

    def __str__(self) -> str:
        return str(self.error())


def located(faults: Iterable[Fault], text: str, where: str, document: int = 0) -> list[Fault]:
    """Return the faults with the lines and columns of their paths, in the order of the text."""
    return located_in_all({document: list(faults)}, text, where)


def located_in_all(faults: Mapping[int, Sequence[Fault]], text: str, where: str) -> list[Fault]:
    """Return the faults of several documents of one text, by number, with their lines and columns.

    The text is read once, for any number of documents.
    """
    from simsched.formats.text.locations import Locations
    from simsched.formats.text.yaml_text import documents

    wanted = {number: found for number, found in faults.items() if found}
    if not wanted:
        return []
    if set(wanted) == {0}:
        return _placed(wanted[0], Locations.of(text), where)
    values: dict[Path, tuple[int, int]] = {}
    keys: dict[Path, tuple[int, int]] = {}
    placed = []
    for number, _ in enumerate(documents(text, None, values, keys)):
        if number in wanted:
            placed += _placed(wanted[number], Locations(values, keys), where)
        values.clear()
        keys.clear()
    return placed


def _placed(faults: Sequence[Fault], spots: Locations, where: str) -> list[Fault]:
    placed = []
    for fault in faults:
        line, column = spots.key(fault.path) if fault.at_key else spots.value(fault.path)
        placed.append(replace(fault, line=line, column=column, where=where))
    return sorted(placed, key=lambda fault: (fault.line, fault.column))


def joined(faults: Sequence[Fault], where: str | None) -> FormatError:
    """Return one error with the first fault and the number of the others."""
    first = faults[0]
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    place = ": ".join(part for part in (where, first.place) if part)
    return FormatError(first.message + more, where=place or None, expected=first.expected or None)


def shown(value: Any) -> str:
    """Return the text of a value for a message.

    >>> shown("yes"), shown(None), shown({}), shown(True)
    ("'yes'", 'null', 'an object', 'true')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    return clip(repr(value), 40)


# -- faults in a text of one line -------------------------------------------------------


class CaretError(FormatError):
    """A fault at one character of a text.

    >>> print(CaretError("unclosed '{'", text="slot{a/core", position=4, expected="',' or '}'"))
    unclosed '{' (expected ',' or '}')
      slot{a/core
          ^
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        text: str = "",
        position: int = 0,
    ) -> None:
        super().__init__(message, where=where, expected=expected)
        self.text = text
        self.position = position

    def at(self, where: str) -> CaretError:
        """Return the same error with `where` put before its own place."""
        place = f"{where}: {self.where}" if self.where else where
        return type(self)(
            self.message, where=place, expected=self.expected, text=self.text, position=self.position
        )

    def within(self, text: str, offset: int) -> CaretError:
        """Return the same error in `text`, of which this error's own text starts at `offset`."""
        return type(self)(
            self.message,
            where=self.where,
            expected=self.expected,
            text=text,
            position=self.position + offset,
        )

    def __str__(self) -> str:
        head = super().__str__()
        return f"{head}\n{caret(self.text, self.position)}" if self.text else head


class CaretLimitError(CaretError, LimitError):
    """A fault at one character that is a limit of simsched, not of a standard."""


def refuse_broken_text(text: str) -> None:
    """Raise `CaretError` for half a surrogate pair: the argument or file was not UTF-8.

    >>> refuse_broken_text("node")
    """
    broken = None if text.isascii() else _SURROGATE.search(text)
    if broken:
        raise CaretError("a byte that is not UTF-8", text=text, position=broken.start(), expected="text")


def caret(text: str, position: int) -> str:
    """Return the line of `text` around `position` and a second line with a caret under it.

    >>> print(caret("node=0", 5))
      node=0
           ^
    """
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    at = position - start
    left = max(0, at - WINDOW // 2) if len(line) > WINDOW else 0
    shown = line[left : left + WINDOW]
    before = "…" if left else ""
    after = "…" if left + WINDOW < len(line) else ""
    shown = "".join(c if c.isprintable() else "·" for c in shown)
    return f"  {before}{shown}{after}\n  {' ' * (at - left + len(before))}^"
