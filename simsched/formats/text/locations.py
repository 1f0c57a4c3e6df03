"""Locations in a JSON or YAML text: the line and column of the value or key at a path."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.text.excerpts import Path, parse_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
        if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and document == 0:
            values, keys = _of_json(text)
            if _parses(text):
                return cls(values, keys)
        return cls(*_of_yaml(text, document))

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


def locate(
    text: str, path: Sequence[str | int] | str, *, key: bool = False, document: int = 0
) -> tuple[int, int]:
    r"""Line and column (from 1) of a value, or of its key, in a JSON or YAML text.

    `path` is a tuple of keys and positions or its text form, ``resources[0].count``.  A path
    that is not there gives the place of its nearest ancestor.  For many paths make one
    `Locations`.

    >>> locate("a:\n  - b: 7", "a[0].b"), locate("a:\n  - b: 7", ("a", 0, "b"), key=True)
    ((2, 8), (2, 5))
    """
    spots = Locations.of(text, document)
    return spots.key(path) if key else spots.value(path)


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


def _parses(text: str) -> bool:
    """Whether `text` is JSON at all (and not a YAML flow collection)."""
    try:
        json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return False
    return True


def _of_json(text: str) -> tuple[dict[Path, Spot], dict[Path, Spot]]:
    """The places of the values and of the keys of a JSON text."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    values: dict[Path, Spot] = {}
    keys: dict[Path, Spot] = {}
    for path, offset, is_key in walk_json(text):
        line = bisect_right(starts, offset)
        (keys if is_key else values)[path] = (line, offset - starts[line - 1] + 1)
    return values, keys


def _of_yaml(text: str, document: int) -> tuple[dict[Path, Spot], dict[Path, Spot]]:
    """The places of the values and of the keys of one document of a YAML text."""
    from simsched.formats.text.yaml_text import documents

    values: dict[Path, Spot] = {}
    keys: dict[Path, Spot] = {}
    try:
        for number, _ in enumerate(documents(text, None, values, keys)):
            if number == document:
                break
            values.clear()
            keys.clear()
    except FormatError:
        pass
    return values, keys
