"""Numbers as text for people: seconds as hours and minutes, shares as per cent, always with their unit.

Every duration that the user sees is written here, but for values of a file format.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEPS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
MISSING = "-"
#: resource types that are counted; the others (memory, power …) are measured
COUNTED = frozenset({"node", "core", "gpu", "socket", "license", "slot"})
_AXES = ((3 * 86400.0, 86400.0, "days"), (3 * 3600.0, 3600.0, "hours"), (180.0, 60.0, "min"))


#: ticks of a logarithmic axis of times: seconds and the label
TIME_MARKS = ((1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (6 * 3600, "6 h"),
              (86400, "1 d"), (7 * 86400, "7 d"), (30 * 86400, "30 d"), (365 * 86400, "1 y"))  # fmt: skip


def time_unit(length: float) -> tuple[float, str]:
    """Return the unit for an axis of this length (s): its seconds and its name.

    >>> time_unit(30), time_unit(86400 * 100)
    ((1.0, 's'), (86400.0, 'days'))
    """
    return next(((seconds, name) for least, seconds, name in _AXES if length >= least), (1.0, "s"))


def seconds(value: float) -> str:
    """Return a time in its two largest units.

    >>> [seconds(v) for v in (0, 0.25, 59, 61, 3600, 93784, 1e9)]
    ['0 s', '0.25 s', '59 s', '1 min 1 s', '1 h', '1 d 2 h', '11574 d']
    """
    if not math.isfinite(value):
        return MISSING
    if value < 0:
        return f"-{seconds(-value)}"
    if value < 59.95:
        return f"{value:.3g} s"
    rest = round(value)
    for position, (length, unit) in enumerate(_STEPS):
        if rest >= length:
            whole, below = divmod(rest, int(length))
            lower, name = _STEPS[position + 1] if position < 2 else (1.0, "s")
            part = int(below // lower)
            return f"{whole} {unit}" + (f" {part} {name}" if part and whole < 1000 else "")
    return f"{rest} s"


def signed_seconds(value: float) -> str:
    """Return a difference of times with its sign.

    >>> signed_seconds(90.0), signed_seconds(-90.0), signed_seconds(0.0)
    ('+1 min 30 s', '-1 min 30 s', '0 s')
    """
    shown = seconds(value)
    return f"+{shown}" if value > 0 else shown


def moment(value: float) -> str:
    """Return a point in time, counted from second 0, to the second.

    >>> moment(0), moment(93784.4), moment(float("inf"))
    ('0:00:00', '1 d 2:03:04', '-')
    """
    if not math.isfinite(value):
        return MISSING
    if value < 0:
        return f"-{moment(-value)}"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (f"{days} d " if days else "") + f"{hours}:{minutes:02}:{rest:02}"


def share(value: float) -> str:
    """Return a share as per cent.

    >>> share(0.6123), share(1.0), share(132.7), share(0.00012), share(float("nan"))
    ('61.2 %', '100 %', '13,270 %', '0.012 %', '-')
    """
    if not math.isfinite(value):
        return MISSING
    percent = 100 * value
    if abs(percent) >= 999.5:
        return f"{percent:,.0f} %"
    return f"{percent:.3g} %" if abs(percent) < 99.95 else f"{percent:.4g} %"


def number(value: float) -> str:
    """Return a plain number: whole ones with thousands separated, others with three digits.

    >>> number(202871), number(3.14159), number(1234.5), number(float("nan"))
    ('202,871', '3.14', '1,234', '-')
    """
    if not math.isfinite(value):
        return MISSING
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def quantity(value: float, unit: str) -> str:
    """Return a figure with its unit, one of those of `summary.Metric`.

    >>> quantity(90, "s"), quantity(0.5, "share"), quantity(12, "jobs"), quantity(1.5, "ratio")
    ('1 min 30 s', '50 %', '12 jobs', '1.5')
    """
    if unit == "s":
        return seconds(value)
    if unit == "share":
        return share(value)
    text = number(value)
    return text if unit in ("", "ratio") or text == MISSING else f"{text} {unit}"


def units(totals: Mapping[str, int]) -> list[str]:
    """Return the number of units of each type; types without units are omitted.

    >>> units({"node": 1, "core": 4096, "gpu": 0, "memory": 512})
    ['1 node', '4,096 cores', '512 memory']
    """
    return [f"{n:,} {plural(t) if n != 1 else t}" for t, n in totals.items() if n]


def occasions(times: int) -> str:
    """Return how often something happened.

    >>> occasions(1), occasions(2), occasions(1200)
    ('once', '2 times', '1,200 times')
    """
    return "once" if times == 1 else f"{times:,} times"


def plural(kind: str) -> str:
    """Return a resource type in the plural; types that are measured stay unchanged.

    >>> plural("core"), plural("memory")
    ('cores', 'memory')
    """
    return f"{kind}s" if kind in COUNTED else kind
