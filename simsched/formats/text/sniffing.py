"""The form of a text by its beginning: JSON, JSON Lines, YAML, XML, shapes.

`formats.machines.recognition` decides which format of that form a text is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind: TypeAlias = Literal["json", "jsonl", "yaml", "xml", "text"]

_YAML_START = re.compile(
    r"---|%YAML|- |-\Z|\? |(?:[^\s:;#{}\[\],&*!|>'\"%@`-][^:#]*|\"[^\"]*\"|'[^']*'):(?:\s|\Z)"
)
_SHAPE = re.compile(r"""\[?\s*(?:[^\W\d][\w.-]*|"[^"]*"|'[^']*')\s*(?:[=/{;\]]|\Z)""")


def detect_kind(text: str) -> Kind:
    r"""Return the form of a text, recognised by its beginning.

    ``json`` is one document, ``jsonl`` one object per line, ``text`` anything
    else (an SWF trace, a shape, a table).

    >>> detect_kind('{"a": 1}\n{"a": 2}'), detect_kind("a: 1"), detect_kind("; Version: 2.2\n1 0 3")
    ('jsonl', 'yaml', 'text')
    """
    head = text[:65536].lstrip("\ufeff \t\r\n")
    if head[:1] == "<":
        return "xml"
    if head[:1] in ("{", "["):
        first, _, rest = head.partition("\n")
        several = rest.lstrip()[:1] == "{" and first.rstrip()[-1:] == "}" and head[0] == "{"
        return "jsonl" if several else "json"
    for line in head.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return "yaml" if _YAML_START.match(line.strip()) else "text"
    return "text"


def looks_like_shapes(text: str) -> bool:
    """Whether the first line (but blank ones and comments) begins like a shape, not like JSON or YAML.

    >>> looks_like_shapes("[core;gpu]"), looks_like_shapes("node{unit: GB}"), looks_like_shapes("a: 1")
    (True, True, False)
    """
    for line in text[:100_000].splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return _SHAPE.match(line.strip()) is not None
    return False


def read_shapes(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield (shape, place) of a text of one shape per line; blank lines and # lines are ignored."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip(), f"{where}:{number}"


def is_xml(text: str) -> bool:
    """Whether a text is XML; a request in XML is a document of Job Objects.

    >>> is_xml("  <Job/>"), is_xml("core=4")
    (True, False)
    """
    return text[:100].lstrip("\ufeff \t\r\n").startswith("<")
