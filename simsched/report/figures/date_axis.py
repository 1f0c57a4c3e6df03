"""Axes of time with dates and days of the week, in the time zone of the log."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from matplotlib import dates as untyped
from matplotlib.ticker import FixedFormatter, FixedLocator

from simsched.formats.rfc.clock import zone_of

if TYPE_CHECKING:
    from simsched.formats.rfc.clock import Clock

Axes = Any
_dates: Any = untyped
POINTS = 78
"""Points of width that a label takes."""
DAY, MONTH = 86400, 25 * 86400
MOST_WEEKS = 12
"""Columns of a calendar that bear a date."""
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")  # whatever the language of the machine


def mark_dates(axes: Axes, clock: Clock, first: float, window: tuple[float, float], seconds: float) -> None:
    """Put dates at the ticks of an axis: `window` (s) counts from `first`, and its unit has `seconds`."""
    low, high = (first + time for time in window)
    most = max(2, int(72 * 0.85 * axes.figure.get_size_inches()[0] / POINTS))
    zone = zone_of(clock.zone)
    locator = _dates.AutoDateLocator(tz=zone, minticks=2, maxticks=most)
    found = _dates.num2date(locator.tick_values(clock.local(low), clock.local(high)), tz=zone)
    times = [(time, time.timestamp() - clock.origin) for time in found]
    shown = [(time, at) for time, at in times if low <= at <= high]
    step = min((later - at for (_, at), (_, later) in pairwise(shown)), default=DAY)
    labels = [_label(time, step, number == 0) for number, (time, _) in enumerate(shown)]
    axes.xaxis.set_major_locator(FixedLocator([(at - first) / seconds for _, at in shown]))
    axes.xaxis.set_major_formatter(FixedFormatter(labels))
    axes.set_xlabel(f"local time ({clock.zone})")


def _label(time: Any, step: float, is_first: bool) -> str:
    """Return the label of a tick: hours within a day, the date where a day begins, months by name."""
    if step >= 300 * DAY:
        return f"{time:%Y}"
    if step >= MONTH:
        return f"{time:%Y-%m}"
    day = f"{WEEKDAYS[time.weekday()]}\n{time:%Y-%m-%d}"
    if step >= 0.9 * DAY:
        return day
    midnight = time.hour == time.minute == 0
    return (
        f"{time:%H:%M}\n{WEEKDAYS[time.weekday()]} {time:%Y-%m-%d}"
        if is_first or midnight
        else f"{time:%H:%M}"
    )


def mark_weeks(axes: Axes, monday: int, weeks: int) -> None:
    """Put the dates of Mondays below a calendar; `monday` is the first, in days since 0001-01-01."""
    step = -(-weeks // MOST_WEEKS)
    columns = range(0, weeks, step)
    labels = [date.fromordinal(monday + 1 + 7 * column).isoformat() for column in columns]
    axes.set_xticks(list(columns), labels)
    axes.set_xlabel("week, from Monday")
