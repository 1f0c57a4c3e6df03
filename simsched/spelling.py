"""The nearest known name to a mistyped one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 64
"""Characters of a word that are compared: matching costs the square of its length."""


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name that is most like a word, or None if none is.

    >>> nearest("lonod", ["first", "lonode"]), nearest("xyz", ["first"])
    ('lonode', None)
    """
    from difflib import get_close_matches  # only where something is wrong: it costs 5 ms to import

    found = get_close_matches(word[:LONGEST], list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return ``"; did you mean NAME?"`` for the nearest known name, or nothing.

    >>> did_you_mean("lonod", ["first", "lonode"])
    '; did you mean lonode?'
    """
    meant = nearest(word, known, cutoff=cutoff)
    return f"; did you mean {meant}?" if meant else ""
