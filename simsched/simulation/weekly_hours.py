"""`WeeklyHours`: days of the week with hours, in the time zone of a log; and the forms of windows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from simsched.errors import ConfigError
from simsched.formats.rfc.clock import When

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.rfc.clock import Clock

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EXPECTED = '["8h", "18h"], ["2024-03-01T08:00", "2024-03-02"] or "Mon-Fri 08:00-18:00"'
"""The forms of a window, for messages."""

_TEXT = re.compile(
    r"(?:([A-Za-z]+(?:\s*[-,]\s*[A-Za-z]+)*)\s*)?(?:(\d?\d:\d\d)\s*-\s*(\d?\d:\d\d))?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class WeeklyHours:
    """Hours at days of the week; 0 is Monday.  Hours that end before they begin end on the next day.

    `begin` and `end` are minutes of the local day; `clock` is that of the log, once it is read.
    """

    text: str
    days: tuple[int, ...]
    begin: int = 0
    end: int = 1440
    clock: Clock | None = None

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str, where: str | None = None) -> WeeklyHours:
        """Read ``Mon-Fri 08:00-18:00``, ``Sat,Sun`` (the whole days) or ``22:00-06:00`` (every day).

        Raises
        ------
        ConfigError
            For any other text.
        """
        found = _TEXT.fullmatch(text.strip())
        if found is None or not text.strip():
            raise ConfigError(f"{text!r} is not a window", where=where, expected=EXPECTED)
        days, begin, end = found.groups()
        hours = (0, 1440) if begin is None else (_minutes(begin, where), _minutes(end, where))
        if hours[0] == hours[1] or hours[0] == 1440:
            raise ConfigError(f"{text!r} has no hours", where=where, expected="a begin before the end")
        return cls(text.strip(), _days(days, where), *hours)

    def on_clock(self, clock: Clock | None, where: str | None = None) -> WeeklyHours:
        """Return the hours in the zone of a clock; ConfigError without a clock."""
        if clock is None:
            raise ConfigError(
                f"the workload has no dates, so {self.text!r} is not a time of it",
                where=where,
                expected="windows in seconds or durations; --start-date DATE gives second 0 its date",
            )
        return replace(self, clock=clock)

    def windows(self, after: float) -> Iterator[tuple[float, float]]:
        """Yield (stop, start) in seconds of the run in order, from the first that ends after `after` on."""
        assert self.clock is not None, "the hours are not on a clock yet"
        overnight = self.end <= self.begin
        first = self.clock.local(after).date() - timedelta(days=1)
        try:
            for number in count():
                day = first + timedelta(days=number)
                if day.weekday() not in self.days:
                    continue
                midnight = datetime.combine(day, time())
                stop = self.clock.at(midnight + timedelta(minutes=self.begin))
                start = self.clock.at(midnight + timedelta(days=int(overnight), minutes=self.end))
                if after < start and stop < start:
                    yield stop, start
        except OverflowError:  # the end of the calendar
            return


Window: TypeAlias = tuple[When, When] | WeeklyHours


def _minutes(text: str, where: str | None) -> int:
    """Return the minutes of ``08:30``, up to ``24:00``."""
    hours, minutes = map(int, text.split(":"))
    if minutes > 59 or 60 * hours + minutes > 1440:
        raise ConfigError(f"{text!r} is not a time of the day", where=where, expected="00:00 to 24:00")
    return 60 * hours + minutes


def _days(text: str | None, where: str | None) -> tuple[int, ...]:
    """Return the days of ``Mon-Fri,Sun``; all without a text."""
    if text is None or text.lower() == "daily":
        return tuple(range(7))
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        begin = _day(first, where)
        length = (_day(last, where) - begin) % 7 if dash else 0
        found.update((begin + after) % 7 for after in range(length + 1))
    return tuple(sorted(found))


def _day(word: str, where: str | None) -> int:
    """Return the number of ``Mon`` or ``Monday``."""
    known = [at for at, name in enumerate(DAYS) if word[:3].lower() == name]
    full = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    if not known or not full[known[0]].startswith(word.lower()):
        raise ConfigError(f"{word!r} is not a day of the week", where=where, expected="Mon, Tue … Sun")
    return known[0]
