"""TOML as values, and the lines of its keys."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from simsched.errors import FormatError, clip
from simsched.formats.text.documents import refuse_foreign

_KEY = r"[ \t]*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:[ \t]*\.[ \t]*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)[ \t]*"
_HEADER = re.compile(rf"[ \t]*(\[\[?){_KEY}\]\]?[ \t]*(?:#.*)?")
_PAIR = re.compile(rf"{_KEY}=")
_DOTTED = re.compile(r"[\w\"'-]++(?:[ \t]*+\.[ \t]*+[\w\"'-]++)*+")
MOST_PARTS = 100
"""The most parts of a dotted key: the time and memory of tomllib grow with their square."""
_AT_LINE = re.compile(r"at line (\d+)")


def load_toml(text: str, where: str) -> dict[str, Any]:
    """Read a TOML document of JSON's values.

    Raises
    ------
    FormatError
        with the line where the text is not TOML or a key has too many parts, or the path of a value that
        JSON has not.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") < MOST_PARTS:
            continue
        parts = max((found[0].count(".") + 1 for found in _DOTTED.finditer(line)), default=0)
        if parts > MOST_PARTS:
            raise FormatError(
                f"a dotted key of {parts:,} parts",
                where=f"{where}:{number}",
                expected=f"at most {MOST_PARTS} parts",
            )
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a ValueError: more digits than Python reads
        found = _AT_LINE.search(str(error))
        spot = f"{where}:{found[1]}" if found else where
        raise FormatError(f"not TOML: {clip(str(error), 200)}", where=spot) from None
    refuse_foreign(document, where)
    return document


def toml_lines(text: str) -> dict[str, int]:
    r"""Return the line (from 1) of each table and key by its path, ``resource.config[1].hosts``.

    Keys in inline tables and in strings of several lines are not told apart; the lines serve messages only.

    >>> toml_lines("[[a]]\nx = 1\n[[a]]\ny.z = 2\n")
    {'a[0]': 1, 'a[0].x': 2, 'a[1]': 3, 'a[1].y.z': 4}
    """
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.fullmatch(line)
        if header is not None:
            table = _path(header[2])
            if header[1] == "[[":
                turn = counts[table] = counts.get(table, -1) + 1
                table = f"{table}[{turn}]"
            found.setdefault(table, number)
        elif pair := _PAIR.match(line):
            found.setdefault(f"{table}.{_path(pair[1])}".lstrip("."), number)
    return found


def _path(key: str) -> str:
    return re.sub(r"[ \t\"']", "", key)
