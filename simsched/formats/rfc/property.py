"""What a property of execution targets may be called (RFC 20)."""

from __future__ import annotations

from typing import Any

from simsched.errors import FormatError
from simsched.formats.text.excerpts import clip

FORBIDDEN = "!&'\"^`|()"
"""Characters that a property name must not have (RFC 20)."""


def check_property(name: Any, where: str | None = None) -> None:
    """Raise FormatError if `name` is not a valid property name (RFC 20).

    >>> check_property("amd-mi50@gpu")
    """
    if not isinstance(name, str) or not name:
        raise FormatError(f"{name!r} is no property name", where=where, expected="a name")
    for character in name:
        if character in FORBIDDEN:
            raise FormatError(
                f"property {clip(name)!r} has the forbidden character {character}",
                where=where,
                expected=f"none of {' '.join(FORBIDDEN)}",
            )
