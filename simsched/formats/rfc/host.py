"""What a host may be called so that RFC 29 can write it."""

from __future__ import annotations

import re

from simsched.errors import ClusterError

MAX_NAME = 255
"""The longest host name, in characters (POSIX)."""

_NOT_IN_A_HOSTLIST = re.compile(r"[\[\],\s\x00-\x1f]")


def check_host(name: str, where: str | None = None) -> None:
    """Refuse a name that would be something else in a hostlist.

    Raises
    ------
    ClusterError
        for an empty name or one of more than 255 characters, and for brackets, commas and white space in it.

    >>> check_host("a[0]", "vertex '7'")
    Traceback (most recent call last):
        ...
    simsched.errors.ClusterError: vertex '7': 'a[0]' cannot stand in a hostlist (expected a plain name)
    """
    if not name or len(name) > MAX_NAME or _NOT_IN_A_HOSTLIST.search(name):
        raise ClusterError(f"{name[:80]!r} cannot stand in a hostlist", where=where, expected="a plain name")
