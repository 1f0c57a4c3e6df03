"""JSON values are written as block-style YAML that every YAML reader reads as the same values.

A string is written without quotes only if no reader of YAML 1.1 or 1.2 could convert it.  PyYAML is not used
because its import takes a third of the start-up of ``simsched shape``, and it leaves ``1e3`` without quotes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN = re.compile(
    r"""(?: [A-Za-z_/][\w./@%^-]*                # words and paths
        | [0-9]+[AC-DF-NP-WYZac-df-np-wyz][\w.-]* # 4GB-node; not 1e3, 0x1f, 0b1, 0o7
        | [0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)+  # 4,9,16
        | [+^]
        )\Z""",
    re.VERBOSE | re.ASCII,
)
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})


def to_yaml(value: Any) -> str:
    r"""Return a JSON value as a YAML document.

    >>> print(to_yaml([{"type": "node", "count": {"min": 1}, "id": "010"}]), end="")
    - type: node
      count:
        min: 1
      id: "010"
    """
    if isinstance(value, (dict, list, tuple)) and value:
        return "\n".join(_lines(value, "")) + "\n"
    return _scalar(value) + "\n"


def _lines(value: Any, indent: str) -> Iterator[str]:
    """Yield the lines of a collection that is not empty; lists in dictionaries are not indented."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, (dict, list, tuple)) and item:
                yield f"{indent}{_string(key)}:"
                yield from _lines(item, indent + "  " if isinstance(item, dict) else indent)
            else:
                yield f"{indent}{_string(key)}: {_scalar(item)}"
        return
    for item in value:
        if isinstance(item, (dict, list, tuple)) and item:
            lines = _lines(item, indent + "  ")
            yield f"{indent}- {next(lines)[len(indent) + 2 :]}"
            yield from lines
        else:
            yield f"{indent}- {_scalar(item)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    text = json.dumps(value)
    if isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 has no 1e+16
    return text


def _string(text: str) -> str:
    if _PLAIN.match(text) and text.lower() not in _WORDS:
        return text
    return "".join(map(_escaped, json.dumps(text, ensure_ascii=False)))


def _escaped(char: str) -> str:
    """Return a character of a JSON string as YAML accepts it in double quotes."""
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
