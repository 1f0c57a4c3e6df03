"""Calls as text, ``name(argument, …)``: the form of workload steps, cluster edits and distributions.

A name is lower-case letters.  A comma inside brackets belongs to its argument, so hostlists need no
quotes: ``resize(node[0-3,8], 6)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from simsched.errors import ConfigError

_CALL = re.compile(r"\s*([a-z]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CallText:
    """A call: `text` as it was written, its name, and `inside`, the text between the parentheses.

    `inside` is None for a name without parentheses.
    """

    text: str
    name: str
    inside: str | None

    def arguments(self, fewest: int, most: int | None = None) -> list[str]:
        """Return the arguments without the blanks around them; there are `fewest` to `most` of them.

        Raises `ConfigError` for another number of arguments.

        >>> parse_call("resize(node[0-3,8], 6)").arguments(2)
        ['node[0-3,8]', '6']
        """
        most = fewest if most is None else most
        found, depth = self._split()
        if not fewest <= len(found) <= most:
            expected = str(fewest) if fewest == most else f"{fewest} to {most}"
            noun = "argument" if len(found) == 1 else "arguments"
            brackets = ": its brackets do not match" if depth else ""
            message = f"{self.name} has {len(found)} {noun}{brackets}"
            raise ConfigError(message, where=self.text, expected=expected)
        return found

    def _split(self) -> tuple[list[str], int]:
        """Return the arguments, and how many brackets are left open at the end (or closed once too often)."""
        if self.inside is None or not self.inside.strip():
            return [], 0
        parts, start, depth = [], 0, 0
        for position, sign in enumerate(self.inside):
            if sign == "," and depth == 0:
                parts.append(self.inside[start:position])
                start = position + 1
            else:
                depth += (sign in "[(") - (sign in "])")
        return [part.strip() for part in (*parts, self.inside[start:])], depth


def parse_call(text: str) -> CallText | None:
    """Return the call that a text is; None for any other text.

    >>> parse_call("load(1.2)"), parse_call("release").inside, parse_call("7d")
    (CallText(text='load(1.2)', name='load', inside='1.2'), None, None)
    """
    found = _CALL.fullmatch(text)
    return CallText(text, found[1], found[2]) if found else None
