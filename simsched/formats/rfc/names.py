"""The rules for names: hosts that RFC 29 can write, and properties after RFC 20."""

from __future__ import annotations

import re
from typing import Any

from simsched.errors import ClusterError, FormatError, clip

MAX_NAME = 255
"""The longest host name, in characters (POSIX)."""

FORBIDDEN = "!&'\"^`|()"
"""Characters that a property name must not contain (RFC 20)."""

_HOST = f"1 to {MAX_NAME} characters, no blank, comma or bracket"
_NOT_IN_A_HOSTLIST = re.compile(r"[\[\],\s\x00-\x1f]")


def check_host(name: str, where: str | None = None) -> None:
    """Check that a hostlist (RFC 29) can hold a host name.

    Raises
    ------
    ClusterError
        for an empty name, a name of more than 255 characters, and for brackets, commas and white space in it.

    >>> check_host("a[0]")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    simsched.errors.ClusterError: 'a[0]' is not a host name (expected 1 to 255 characters, no ...)
    """
    if not name or len(name) > MAX_NAME or _NOT_IN_A_HOSTLIST.search(name):
        raise ClusterError(f"{name[:80]!r} is not a host name", where=where, expected=_HOST)


def check_property(name: Any, where: str | None = None) -> None:
    """Check the name of a property of execution targets (RFC 20).  Raises `FormatError`.

    >>> check_property("amd-mi50@gpu")
    """
    if not isinstance(name, str) or not name:
        raise FormatError(f"{name!r} is not a valid property name", where=where, expected="a name")
    for character in name:
        if character in FORBIDDEN:
            raise FormatError(
                f"property {clip(name)!r} has the forbidden character {character}",
                where=where,
                expected=f"none of {' '.join(FORBIDDEN)}",
            )
