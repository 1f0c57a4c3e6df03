"""The nearest known name to a mistyped one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 64
"""Number of characters that are compared, since the cost is the square of the length."""


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name that is most similar to a word, or None if none is similar.

    >>> nearest("lonod", ["first", "lonode"]), nearest("xyz", ["first"])
    ('lonode', None)
    """
    from difflib import get_close_matches  # imported only for an error: it costs 5 ms

    found = get_close_matches(word[:LONGEST], list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return ``"; did you mean NAME?"`` for the nearest known name, or nothing.

    >>> did_you_mean("lonod", ["first", "lonode"])
    '; did you mean lonode?'
    """
    meant = nearest(word, known, cutoff=cutoff)
    return f"; did you mean {meant}?" if meant else ""
