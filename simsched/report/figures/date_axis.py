"""Axes of time with dates and days of the week, in the time zone of the log."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import FixedFormatter, FixedLocator

if TYPE_CHECKING:
    from simsched.formats.rfc.clock import Clock

Axes = Any
POINTS = 70
"""Points of width that a label takes."""
DAY = 86400
STEPS = (1, 5, 10, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 14 * DAY)
"""Seconds between ticks; from a week on the ticks are Mondays."""
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 1200)
MONDAY = datetime(1970, 1, 5)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")  # whatever the language of the machine


def mark_dates(axes: Axes, clock: Clock, first: float, window: tuple[float, float], seconds: float) -> None:
    """Put dates at the ticks of an axis: `window` (s) counts from `first`, and its unit has `seconds`."""
    low, high = (first + time for time in window)
    most = max(2, int(72 * 0.85 * axes.figure.get_size_inches()[0] / POINTS))
    begin, end = (clock.local(time).replace(tzinfo=None) for time in (low, high))
    step, found = ticks_between(begin, end, most)
    shown = [
        (time, at)
        for time, at in zip(found, map(clock.at, found), strict=True)
        if low <= at <= high and clock.local(at).replace(tzinfo=None) == time  # summer time skips an hour
    ]
    labels = [_label(time, step, is_first=number == 0) for number, (time, _) in enumerate(shown)]
    axes.xaxis.set_major_locator(FixedLocator([(at - first) / seconds for _, at in shown]))
    axes.xaxis.set_major_formatter(FixedFormatter(labels))
    axes.set_xlabel(f"local time ({clock.zone})")


def ticks_between(begin: datetime, end: datetime, most: int) -> tuple[float, list[datetime]]:
    """Return the seconds between ticks and the local times of at most `most` of them (or one more).

    >>> step, found = ticks_between(datetime(2024, 3, 1), datetime(2024, 3, 30), 5)
    >>> step / 86400, [f"{time:%a %d}" for time in found]
    (7.0, ['Mon 04', 'Mon 11', 'Mon 18', 'Mon 25'])
    """
    length = (end - begin).total_seconds()
    step = next((step for step in STEPS if length / step <= most), None)
    if step is not None:
        at = timedelta(seconds=step)
        count = ceil((begin - MONDAY) / at)
        return step, [MONDAY + n * at for n in range(count, int((end - MONDAY) / at) + 1)]
    months = next(months for months in MONTHS if length / (30 * DAY * months) <= most or months == MONTHS[-1])
    first, last = 12 * begin.year + begin.month - 1, 12 * end.year + end.month - 1
    numbers = range(-(-first // months) * months, last + 1, months)
    found = [datetime(number // 12, number % 12 + 1, 1) for number in numbers]
    return 30 * DAY * months, [time for time in found if begin <= time <= end]


def _label(time: datetime, step: float, *, is_first: bool) -> str:
    """Return the label of a tick: hours within a day, dates where days begin, months and years."""
    if step >= 360 * DAY:
        return f"{time:%Y}"
    if step >= 30 * DAY:
        return f"{time:%Y-%m}"
    day = WEEKDAYS[time.weekday()]
    if step >= DAY:
        return f"{day}\n{time:%Y-%m-%d}"
    hours = f"{time:%H:%M}" if step >= 60 else f"{time:%H:%M:%S}"
    begins = is_first or time.hour == time.minute == time.second == 0
    return f"{hours}\n{day} {time:%Y-%m-%d}" if begins else hours


def mark_weeks(axes: Axes, monday: int, weeks: int) -> None:
    """Put the dates of Mondays below a calendar; `monday` is the first, in days since 0001-01-01."""
    most = max(2, int(72 * 0.8 * axes.figure.get_size_inches()[0] / POINTS))
    step = -(-weeks // most)
    columns = range(0, weeks, step)
    labels = [date.fromordinal(monday + 1 + 7 * column).isoformat() for column in columns]
    axes.set_xticks(list(columns), labels)
    axes.set_xlabel("week, from Monday")
