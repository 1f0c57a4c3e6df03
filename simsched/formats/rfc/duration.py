"""RFC 23 Flux Standard Duration: ``N[ms|s|m|h|d]``, ``inf`` or ``infinity``."""

from __future__ import annotations

import math
import re

from simsched.errors import FormatError

SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""Seconds of each suffix."""

MAX_SECONDS = 2.0**53
"""The highest time of a simulation: a float cannot distinguish the seconds beyond it."""

_TEXT = re.compile(r"\+?(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)([A-Za-z]*)\Z", re.ASCII)
_ENDLESS = frozenset({"inf", "infinity"})
_WORDS = {"d": r"d(ays?)?", "h": r"h(r|rs|ours?)?", "m": r"m(in|ins|inutes?)?", "s": r"s(ec|ecs|econds?)?"}
"""Units as people write them, as regular expressions."""
_EXPECTED = "a duration such as 90, 30m, 1.5h, 2d or inf"


def whole(seconds: float) -> float:
    """Return whole seconds as int, so that whole workloads stay whole; others as they are.

    >>> whole(2.0), whole(2.5)
    (2, 2.5)
    """
    return int(seconds) if float(seconds).is_integer() else seconds


def parse_duration(text: str | float, where: str | None = None) -> float:
    """Return the seconds of an RFC 23 duration; `inf` is allowed, NaN is not.

    A number is taken as seconds.  Raises `FormatError`.

    >>> parse_duration("1.5h"), parse_duration("250ms"), parse_duration(60), parse_duration("inf")
    (5400.0, 0.25, 60.0, inf)
    """
    if isinstance(text, str):
        return _from_text(text.strip(), where)
    if isinstance(text, bool) or not isinstance(text, (int, float)):
        raise FormatError(f"{text!r} is not a duration", where=where, expected=_EXPECTED)
    try:
        seconds = float(text)
    except OverflowError:
        raise FormatError("the duration is too large", where=where, expected=_EXPECTED) from None
    if math.isnan(seconds) or seconds < 0:
        raise FormatError(f"a duration cannot be {text}", where=where, expected=_EXPECTED)
    return seconds


def parse_time(text: str | float, where: str | None = None) -> float:
    """Return the seconds of a time or a duration of a simulation, or `inf`.

    Whole seconds are an ``int``.  Raises `FormatError`, also beyond `MAX_SECONDS`.

    >>> parse_time("2h"), parse_time("inf")
    (7200, inf)
    """
    seconds = parse_duration(text, where)
    if MAX_SECONDS < seconds < math.inf:
        raise FormatError(
            f"{seconds:g} s is too late", where=where, expected=f"at most {MAX_SECONDS:g} s, or inf"
        )
    return int(seconds) if seconds.is_integer() else seconds


def _meant(text: str) -> str:
    """Return the nearest duration to a text as people write it: several units, or units as words.

    >>> _meant("1d5h"), _meant("10 min"), _meant("2 days"), _meant("2w")
    ('; did you mean 29h?', '; did you mean 10m?', '; did you mean 2d?', '')
    """
    parts = re.findall(r"(\d+)\s*([a-z]+)\s*", text.lower())
    if not parts or re.fullmatch(r"(?:\d+\s*[a-z]+\s*)+", text.lower()) is None:
        return ""
    units = [next((unit for unit in "dhms" if re.fullmatch(_WORDS[unit], word)), "") for _, word in parts]
    if not all(units):
        return ""
    total = sum(int(number) * int(SECONDS[unit]) for (number, _), unit in zip(parts, units, strict=True))
    unit = next(unit for unit in "dhms" if total % int(SECONDS[unit]) == 0)
    return f"; did you mean {total // int(SECONDS[unit])}{unit}?"


def _from_text(text: str, where: str | None) -> float:
    if text.lower() in _ENDLESS:
        return math.inf
    found = _TEXT.match(text)
    if found is None:
        raise FormatError(f"{_short(text)} is not a duration{_meant(text)}", where=where, expected=_EXPECTED)
    number, suffix = found.groups()
    if suffix not in SECONDS:
        raise FormatError(
            f"unknown unit {_short(suffix)} in the duration {_short(text)}{_meant(text)}",
            where=where,
            expected="ms, s, m, h or d",
        )
    seconds = float(number) / 1000 if suffix == "ms" else float(number) * SECONDS[suffix]
    if math.isinf(seconds):
        raise FormatError(f"the duration {_short(text)} is too large", where=where, expected=_EXPECTED)
    return seconds


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")


def format_duration(seconds: float) -> str:
    """Return the shortest RFC 23 text of exactly these seconds.

    Raises `FormatError` for a negative number or NaN.

    >>> format_duration(5400), format_duration(86400), format_duration(0.25), format_duration(61)
    ('90m', '1d', '0.25s', '61s')
    """
    seconds = parse_duration(seconds)
    if math.isinf(seconds):
        return "inf"
    candidates = (_candidate(seconds, suffix) for suffix in ("s", "m", "h", "d", "ms"))
    exact = [text for text in candidates if _means(text, seconds)]
    best = min(exact, key=len)
    shortest = [text for text in exact if len(text) == len(best)]
    return min(shortest, key=lambda text: -SECONDS[text.lstrip("0123456789.e+-")])


def format_date(seconds: float) -> str:
    """Return an epoch time as a date (UTC); as seconds after the year 9999, where dates end.

    >>> format_date(86400), format_date(1e12)
    ('1970-01-02T00:00:00Z', '1000000000000 s')
    """
    from datetime import UTC, datetime

    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.15g} s"


def _means(text: str, seconds: float) -> bool:
    try:
        return parse_duration(text) == seconds
    except FormatError:  # beyond the range of floats
        return False


def _candidate(seconds: float, suffix: str) -> str:
    value = seconds * 1000 if suffix == "ms" else seconds / SECONDS[suffix]
    text = repr(value)
    return text.removesuffix(".0") + suffix
