"""Harmless text for names from inputs: no terminal escapes, no reordered lines, no spreadsheet formulas.

Names of users and queues come from traces.  A terminal executes control characters, and a spreadsheet
computes a cell that begins with ``=``.
"""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_FORMULA = ("=", "+", "-", "@", "\t")


def visible(text: str) -> str:
    r"""Return a text with control characters, except newline and tab, escaped as in JSON.

    JSON and YAML with such a character in a string keep their meaning.

    >>> print(visible("al\x1b[31mice"))
    al\u001b[31mice
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def cell(value: object) -> object:
    r"""Return a value as a cell of a CSV file; a text that looks like a formula gets an apostrophe.

    >>> cell("=1+1"), cell("-x"), cell(-1), cell("node-1")
    ("'=1+1", "'-x", -1, 'node-1')
    """
    if not isinstance(value, str):
        return value
    return visible(f"'{value}" if value.startswith(_FORMULA) else value)
