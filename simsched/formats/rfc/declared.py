"""Kinds of declared fields whose values are those of standards: durations, dates, hosts and ids."""

from __future__ import annotations

from math import inf
from typing import Any

from simsched.declare.kinds import ValueKind
from simsched.errors import ConfigError
from simsched.formats.rfc.clock import DateText, parse_when
from simsched.formats.rfc.duration import MAX_SECONDS, parse_time

DURATION = {"type": ["number", "string"], "description": "seconds, or a duration of RFC 23 such as 2h"}
WHEN = {"type": ["number", "string"], "description": "seconds, a duration of RFC 23, or a date of RFC 3339"}


def seconds(expected: str | None = None, *, zero: bool = True) -> ValueKind:
    """Return the kind of durations in seconds; with an example in `expected` they are finite."""

    def read(value: Any, where: str) -> float:
        found = parse_time(value, where=where)
        if expected is not None and found == inf:
            raise ConfigError("the time has no end", where=where, expected=expected)
        if not zero and found == 0:
            raise ConfigError(f"{value!r} is not a time", where=where, expected="a duration above 0, or inf")
        return found

    return ValueKind(read, DURATION)


def _when(value: Any, where: str) -> float | DateText:
    found = parse_when(value, where)
    if not isinstance(found, DateText) and not 0 <= found <= MAX_SECONDS:
        raise ConfigError(f"{value!r} is not a time of a run", where=where, expected="0 or more seconds")
    return found


TIME_OF_RUN = ValueKind(_when, WHEN, lambda when: str(when) if isinstance(when, DateText) else when)
