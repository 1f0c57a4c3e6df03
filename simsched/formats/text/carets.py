"""Faults in a one-line text (a shape, a count, a constraint), shown with a caret under their place."""

from __future__ import annotations

import re

from simsched.errors import FormatError, LimitError

_SURROGATE = re.compile("[\ud800-\udfff]")

WINDOW = 76
"""Characters of a long text that are shown around a fault."""


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
    """A marked fault that is a limit of ours and not of the standard."""


def refuse_broken_text(text: str) -> None:
    """Raise `CaretError` for half a surrogate pair: the argument or file was no UTF-8.

    >>> refuse_broken_text("node")
    """
    broken = None if text.isascii() else _SURROGATE.search(text)
    if broken:
        raise CaretError("a byte that is no UTF-8", text=text, position=broken.start(), expected="text")


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
