"""Helpers that all readers share: excerpts and places for messages, and paths into documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from simsched.errors import path_step

if TYPE_CHECKING:
    from collections.abc import Sequence

Path: TypeAlias = "tuple[str | int, ...]"
"""A place in a document: mapping keys and list positions from the root."""

MAX_DIGITS = 300
"""The most digits of a whole number in a document: the largest double has 309."""

_PATH_STEP = re.compile(r"""\.?([^.\[\]"]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]""")
_PATH_AND_REST = re.compile(r"""((?:\["(?:[^"\\]|\\.)*"\]|(?!: ).)*)(?:: )?(.*)""", re.DOTALL)


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def has_control(text: str) -> bool:
    r"""Whether a name contains control characters or line ends, which no name may have.

    >>> has_control("core"), has_control("co\x07re"), has_control("ñandú 2")
    (False, True, False)
    """
    return not text.isprintable() and _CONTROL.search(text) is not None


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    r"""Line and column, both from 1, of the character at `offset` of `text`.

    >>> line_and_column("ab\ncd", 4)
    (2, 2)
    """
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def place(where: str | None, line: int, column: int) -> str:
    """Join a file name and a position: ``job.yaml:3:1``, or ``line 3, column 1`` without a name.

    >>> place("job.yaml", 3, 1), place(None, 3, 1)
    ('job.yaml:3:1', 'line 3, column 1')
    """
    return f"{where}:{line}:{column}" if where else f"line {line}, column {column}"


def format_path(path: Sequence[str | int]) -> str:
    """Return a path into a document as text.

    >>> format_path(("resources", 0, "with", 1, "odd key"))
    'resources[0].with[1]["odd key"]'
    """
    return "".join(map(path_step, path)).removeprefix(".")


def parse_path(text: str) -> Path:
    """Return the path of a text from `format_path`; a leading ``$`` is allowed.

    >>> parse_path('resources[0]["odd key"].count')
    ('resources', 0, 'odd key', 'count')
    """
    steps: list[str | int] = []
    for match in _PATH_STEP.finditer(text.removeprefix("$")):
        key, position, quoted = match.groups()
        if position is not None:
            steps.append(int(position))
        else:
            steps.append(key if key is not None else re.sub(r"\\(.)", r"\1", quoted))
    return tuple(steps)


def split_place(text: str) -> tuple[Path, str]:
    """Return the path that a place begins with, and the place within the value at that path.

    >>> split_place('axes["q: x"][0]: order: kind')
    (('axes', 'q: x', 0), 'order: kind')
    """
    path, inside = _PATH_AND_REST.fullmatch(text).groups()  # type: ignore[union-attr]
    return parse_path(path), inside
