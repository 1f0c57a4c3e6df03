"""Texts in tables that SQL does not read: durations, sizes, lists of nodes and states."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from simsched.errors import SimschedError
from simsched.formats.rfc.duration import parse_duration
from simsched.workload.readers.slurm_values import NO_LIMIT, RESULTS, UNFINISHED, clock, kilobytes

if TYPE_CHECKING:
    from collections.abc import Mapping

_DAYS = re.compile(r"(\d{1,7}) days?,? (?:\+)?(\d{1,7}:\d\d:\d\d)(?:\.(\d{1,9}))?")
_ENDLESS = frozenset(word.lower() for word in NO_LIMIT) | {"infinite", "inf", "infinity", "-1"}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGTP]?)(i?)B", re.IGNORECASE)
_POWERS = " KMGTP"


def seconds_of_text(text: str) -> float | None:
    """Return the seconds of ``1-02:00:00``, ``90:00``, ``1 days 02:00:00`` or ``1.5h``; inf for no limit.

    >>> seconds_of_text("1-02:00:00"), seconds_of_text("0 days 00:10:00"), seconds_of_text("1.5h")
    (93600, 600.0, 5400.0)
    >>> seconds_of_text("UNLIMITED"), seconds_of_text("soon")
    (inf, None)
    """
    bare = text.strip()
    if bare.lower() in _ENDLESS:
        return math.inf
    found = clock(bare)
    if found is not None:
        return found
    days = _DAYS.fullmatch(bare)
    if days is not None:
        return int(days[1]) * 86400 + (clock(days[2]) or 0) + float(f"0.{days[3] or 0}")
    try:
        return parse_duration(bare)
    except SimschedError:
        return None


def kilobytes_of_text(text: str) -> tuple[float, str] | None:
    """Return (KB, per) of a size such as ``16Gn`` or ``16 GiB``; `per` is ``core``, ``node`` or ``job``.

    Without a B the powers are those of 1024, as Slurm counts.

    >>> kilobytes_of_text("4000Mc"), kilobytes_of_text("2 KiB"), kilobytes_of_text("much")
    ((4096000, 'core'), (2.0, 'job'), None)
    """
    size = _SIZE.fullmatch(text.strip())
    if size is not None:
        base = 1024 if size[3] else 1000
        return float(size[1]) * base ** _POWERS.index(size[2].upper() or " ") / 1024, "job"
    found = kilobytes(text.strip())
    if found is None:
        return (0.0, "job") if text.strip().strip("0.") == "" else None
    return found[0], {"c": "core", "n": "node"}.get(found[1], "job")


def nodes_of_text(text: str) -> int | None:
    """Return the number of nodes in a list of nodes (RFC 29, as Slurm and Flux write them).

    >>> nodes_of_text("n[1-4,7]"), nodes_of_text("a,b"), nodes_of_text("n[1-")
    (5, 2, None)
    """
    from simsched.formats.rfc.hostlist import Hostlist

    try:
        return len(Hostlist.parse(text.strip()))
    except SimschedError:
        return None


def state_of_text(text: str, values: Mapping[str, str]) -> str | None:
    """Return the result of a job (RFC 21), RUNNING or PENDING; `values` first, then Slurm's words.

    >>> state_of_text("Pass", {"Pass": "COMPLETED"}), state_of_text("cancelled by 7", {})
    ('COMPLETED', 'CANCELED')
    >>> state_of_text("SUSPENDED", {}), state_of_text("sleepy", {})
    ('RUNNING', None)
    """
    lower = {key.lower(): value for key, value in values.items()}
    given = values.get(text) or lower.get(text.strip().lower())
    if given:
        return given
    word = text.strip().upper().split(" ")[0].rstrip("+")
    if word in UNFINISHED:
        return "PENDING" if word == "PENDING" else "RUNNING"
    return RESULTS.get(word) or ("CANCELED" if word == "CANCELED" else None)
