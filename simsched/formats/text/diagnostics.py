"""Faults of documents, with JSON path, line and column, and faults of one-line texts, with a caret.

`Locations` finds the line and column of the value or key at a path of a JSON or YAML text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from simsched.errors import FormatError, LimitError, SimschedError, clip
from simsched.formats.text.excerpts import Path, format_path, parse_path, split_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


Spot = tuple[int, int]

_TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|([\[\]{},:])|([^\s\[\]{},:"]+)', re.DOTALL)
_DEEPEST = 2000


class Locations:
    r"""Lines and columns (both from 1) of all values and keys of one document, found in one pass.

    >>> spots = Locations.of('{"a": [1,\n 2]}')
    >>> spots.value(("a", 1)), spots.key(("a",))
    ((2, 2), (1, 2))
    """

    def __init__(self, values: Mapping[Path, Spot], keys: Mapping[Path, Spot]) -> None:
        self._values = values
        self._keys = keys

    @classmethod
    def of(cls, text: str, document: int = 0) -> Locations:
        """Find the locations in a JSON text, or in one document of a YAML text.

        A text that is not well formed gives the locations before its first fault.
        """
        found = islice(_locations(text), document, None)
        return next(found, cls({}, {}))

    def value(self, path: Sequence[str | int] | str = ()) -> Spot:
        """The beginning of the value at `path`, or of its nearest ancestor if the text has no such path."""
        steps = parse_path(path) if isinstance(path, str) else tuple(path)
        while steps and steps not in self._values:
            steps = steps[:-1]
        return self._values.get(steps, (1, 1))

    def key(self, path: Sequence[str | int] | str) -> Spot:
        """The beginning of the last key of `path`; that of the value if it has no key."""
        steps = parse_path(path) if isinstance(path, str) else tuple(path)
        return self._keys.get(steps) or self.value(steps)


def walk_json(text: str) -> Iterator[tuple[Path, int, bool]]:
    """Yield (path, offset, whether it is a key) for each key and value of a well-formed JSON text.

    >>> list(walk_json('{"a": 1}'))
    [((), 0, False), (('a',), 1, True), (('a',), 6, False)]
    """
    path: list[str | int] = []
    frames: list[str] = []
    at_key = False
    for match in _TOKEN.finditer(text):
        string, mark, _ = match.groups()
        if mark is None:
            if string and at_key:
                path[-1] = json.loads(string, strict=False)
            yield tuple(path), match.start(), bool(string and at_key)
        elif mark in "{[":
            yield tuple(path), match.start(), False
            frames.append(mark)
            path.append(0 if mark == "[" else "")
            at_key = mark == "{"
            if len(frames) > _DEEPEST:
                return
        elif mark in "}]":
            if not frames:
                return
            frames.pop()
            path.pop()
            at_key = False
        elif mark == ":":
            at_key = False
        elif frames:
            last = path[-1]
            at_key = frames[-1] == "{"
            if not at_key and isinstance(last, int):
                path[-1] = last + 1


def _of_json(text: str) -> tuple[dict[Path, Spot], dict[Path, Spot]]:
    """The places of the values and of the keys of a JSON text."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    values: dict[Path, Spot] = {}
    keys: dict[Path, Spot] = {}
    for path, offset, is_key in walk_json(text):
        line = bisect_right(starts, offset)
        (keys if is_key else values)[path] = (line, offset - starts[line - 1] + 1)
    return values, keys


def _locations(text: str) -> Iterator[Locations]:
    """Yield the locations of each document of a text, which are those before its first fault.

    The locations of a document of YAML are empty again when those of the next one are asked for.
    """
    from simsched.formats.text.yaml_text import documents

    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):  # a YAML flow collection, perhaps
            json.loads(text.removeprefix("\ufeff"))
            yield Locations(*_of_json(text))
            return
    values: dict[Path, Spot] = {}
    keys: dict[Path, Spot] = {}
    with suppress(FormatError):
        for _ in documents(text, None, values, keys):
            yield Locations(values, keys)
            values.clear()
            keys.clear()
    yield Locations(values, keys)


_SURROGATE = re.compile("[\ud800-\udfff]")

WINDOW = 76
"""The characters of a long text that are shown around a fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a document.

    path : place of the faulty value, or of the key.
    message : the fault.
    expected : the valid values; empty if the message names them.
    at_key : whether the path leads to a key and not to its value.
    line, column : place in the text, from 1; 0 if it is not known (`located` finds it).
    where : the file.
    mild : whether it does not affect the resources: other schedulers run such a job, and a lenient reader
        warns of it.

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

    @classmethod
    def of(cls, error: SimschedError, where: str = "") -> Fault:
        """Return the fault of a declared table that was read at the place `where`."""
        rest = error.where or ""
        if where:
            rest = rest.removeprefix(where).removeprefix(": ")
        steps = (error.key,) if error.key is not None else ()
        return cls(
            (*split_place(rest)[0], *steps),
            error.message,
            error.expected or "",
            at_key=bool(steps),
            where=where,
        )

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
    wanted = {number: found for number, found in faults.items() if found}
    placed: list[Fault] = []
    for number, spots in enumerate(islice(_locations(text), max(wanted, default=-1) + 1)):
        placed += _placed(wanted.get(number, ()), spots, where)
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
    from simsched.declare.kinds import quoted  # imported only for a fault

    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    return clip(quoted(value), 40)


def typed(value: Any, kind: type, where: str | None, expected: str | None = None) -> Any:
    """Return a value that is an object (dict), a list or a string, and there.  Raises `FormatError`."""
    if not isinstance(value, kind) and not (kind is list and isinstance(value, tuple)):
        found = "nothing" if value is None else shown(value)
        raise FormatError(f"found {found}", where=where, expected=expected or _KINDS[kind])
    return value


_KINDS: dict[type, str] = {list: "a list", dict: "an object", str: "a string"}


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
        where: str | None = None,
        expected: str | None = None,
        text: str = "",
        position: int = 0,
    ) -> None:
        super().__init__(message, where=where, expected=expected)
        self.text = text
        self.position = position
        self.args = (*self.args, text, position)  # of which simpy and pickle make a copy

    def _placed(self, where: str) -> Self:
        found = super()._placed(where)
        found.text, found.position = self.text, self.position
        return found

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
