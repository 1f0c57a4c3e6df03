"""Which form a text of requests has: shapes, Job Objects, or documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHAPE = re.compile(r"""\[?\s*(?:[^\W\d][\w.-]*|"[^"]*"|'[^']*')\s*(?:[=/{;\]]|\Z)""")


def looks_like_shapes(text: str) -> bool:
    """Whether the first line that counts begins as a shape does, and no JSON or YAML document.

    >>> looks_like_shapes("[core;gpu]"), looks_like_shapes("node{unit: GB}"), looks_like_shapes("a: 1")
    (True, True, False)
    """
    for line in text[:100_000].splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return _SHAPE.match(line.strip()) is not None
    return False


def read_shapes(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield (shape, place) of a text of one shape a line; blank lines and # lines are left out."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip(), f"{where}:{number}"


def is_xml(text: str) -> bool:
    """Whether a text is XML, and so, as a request, a document of Job Objects.

    >>> is_xml("  <Job/>"), is_xml("core=4")
    (True, False)
    """
    return text[:100].lstrip("\ufeff \t\r\n").startswith("<")
