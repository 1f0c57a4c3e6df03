"""Names of others as text that only shows: no terminal escape, no reordered line, no spreadsheet formula.

Users and queues are named by whoever wrote the trace.  A terminal obeys control characters, and a
spreadsheet computes a cell that begins with ``=``.
"""

from __future__ import annotations

import re

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_FORMULA = ("=", "+", "-", "@", "\t")


def visible(text: str) -> str:
    r"""Return a text with control characters, but for newline and tab, as JSON escapes them.

    JSON and YAML that hold such a character in a string mean the same afterwards.

    >>> print(visible("al\x1b[31mice"))
    al\u001b[31mice
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def cell(value: object) -> object:
    r"""Return a value as a cell of a CSV file: a text that a spreadsheet would compute gets an apostrophe.

    >>> cell("=1+1"), cell("-x"), cell(-1), cell("node-1")
    ("'=1+1", "'-x", -1, 'node-1')
    """
    if not isinstance(value, str):
        return value
    return visible(f"'{value}" if value.startswith(_FORMULA) else value)
