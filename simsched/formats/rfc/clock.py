"""`Clock`: the dates of the seconds of a run (RFC 3339, ISO 8601), in a time zone.

A log counts seconds from its second 0.  Where the date of second 0 is known, a `Clock` translates in
both directions, with the changes to and from summer time that the zone has (`zoneinfo`).
A time that a user gives is a number or a duration (a ``float`` here), or a date (`DateText`), which
becomes seconds once the log is read: `parse_when` reads both, `seconds_on` translates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from math import floor, isfinite
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from simsched.errors import ConfigError, FormatError, did_you_mean
from simsched.formats.rfc.duration import parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

EARLIEST_DATE = 315_532_800
"""Seconds since 1970 of the earliest time that counts as a date, 1980-01-01."""
LATEST_DATE = 253_402_214_400
"""Seconds since 1970 of the last time that counts as a date, 9999-12-31."""
ASSUMED = "UTC (assumed: the log has no time zone)"
EXPECTED = "seconds, a duration such as 3d, or a date such as 2024-03-01T08:00"

_START, _ZONE, _OFFSET = "UnixStartTime", "TimeZoneString", "TimeZone"
_DATE = re.compile(r"[+-]?\d+-\d+-|\d+/\d+/\d+", re.ASCII)
_FORM = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\s?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_FIXED = re.compile(r"(?:UTC)?([+-])(\d\d):?(\d\d)\Z", re.ASCII)
_QUARTER = 900
"""Seconds between the earliest instants at which a zone can change its offset, since 1980."""


@dataclass(frozen=True, slots=True)
class DateText:
    """A date as a user gave it: local time of the log, or with an offset of its own."""

    text: str
    time: datetime

    def __str__(self) -> str:
        return self.text


When: TypeAlias = float | DateText
"""A time that a user gives: seconds of the run, or a date."""


class ClockDocument(TypedDict):
    """The dates of a run in a document.

    origin : seconds since 1970 of second 0 of the run.
    zone : the name of a time zone, or an offset.
    zone_assumed : whether the log does not have its zone, so that it is UTC.
    """

    origin: float
    zone: str
    zone_assumed: bool


@dataclass(frozen=True, slots=True)
class Clock:
    """The dates of a run.

    Attributes
    ----------
    origin : seconds since 1970 of second 0 of the run.
    zone : the name of a time zone (``Europe/Rome``), or an offset (``+01:00``).
    assumed : whether the log does not have its zone, so that `zone` is UTC.

    >>> clock = Clock(1_711_843_200, "Europe/Berlin")
    >>> clock.text(0), clock.text(3600)
    ('2024-03-31T01:00:00', '2024-03-31T03:00:00')
    """

    origin: float
    zone: str = "UTC"
    assumed: bool = False

    @property
    def zone_text(self) -> str:
        """The zone as tables name it, once."""
        return ASSUMED if self.assumed else self.zone

    def local(self, seconds: float) -> datetime:
        """Return the local time of a second of the run.  Raises `OverflowError` beyond the year 9999."""
        return datetime.fromtimestamp(self.origin + seconds, zone_of(self.zone))

    def text(self, seconds: float) -> str:
        """Return the local date and time, to the second; ``-`` if there is none, seconds after 9999."""
        if not isfinite(seconds):
            return "-"
        if not EARLIEST_DATE <= self.origin + seconds < LATEST_DATE:
            return f"{seconds:.15g} s"
        return f"{self.local(round(seconds)):%Y-%m-%dT%H:%M:%S}"

    def texts(self, seconds: npt.NDArray[np.floating[Any]]) -> list[str | None]:
        """Return the `text` of many times; None where there is no time."""
        import numpy as np

        known = np.isfinite(seconds)
        local = np.rint(self.local_seconds(np.where(known, seconds, 0.0)))
        inside = known & (local < LATEST_DATE)
        dates = np.datetime_as_string(np.where(inside, local, 0).astype("datetime64[s]")).tolist()
        if inside.all():
            return list(dates)
        return [
            date if is_inside else self.text(time) if is_known else None
            for date, is_inside, is_known, time in zip(dates, inside, known, seconds.tolist(), strict=True)
        ]

    def seconds(self, date: DateText, where: str | None = None) -> float:
        """Return the second of the run at a date, which may be before second 0.

        Raises
        ------
        ConfigError
            For a local time that the zone skips or has twice, such as when summer time begins or ends.
        """
        time = date.time
        if time.tzinfo is None:
            time = _in_zone(date, zone_of(self.zone), self.zone, where)
        found = round(time.timestamp() - self.origin, 6)
        return int(found) if found.is_integer() else found

    def at(self, local: datetime) -> float:
        """Return the second of the run at a local time; a time that is skipped becomes the next valid one."""
        found = local.replace(tzinfo=zone_of(self.zone)).timestamp() - self.origin
        return int(found) if found.is_integer() else found

    def local_seconds(self, seconds: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
        """Return local times as seconds after 1970-01-01T00:00 on the clock of the zone."""
        import numpy as np

        times = np.asarray(seconds, dtype=np.float64) + self.origin
        quarters, inverse = np.unique(np.floor(times / _QUARTER).astype(np.int64), return_inverse=True)
        offsets = np.array([self._offset(int(q) * _QUARTER) for q in quarters], dtype=np.float64)
        return times + offsets[inverse.reshape(times.shape)] if len(quarters) else times

    def offsets(self, begin: float, end: float) -> list[tuple[float, float]]:
        """Return (second of the run, seconds that local time is ahead of UTC) from `begin` to `end`.

        The first pair is that of `begin`; each other is the instant of a change.
        """
        found = [(begin, self._offset(self.origin + begin))]
        day, last = floor((self.origin + begin) / 86400) + 1, self.origin + end
        while day * 86400 < last + 86400:
            if self._offset(day * 86400) != found[-1][1]:
                found.extend(self._changes((day - 1) * 86400, found[-1][1]))
            day += 1
        return [pair for pair in found if pair[0] <= end]

    def _changes(self, begin: int, known: float) -> list[tuple[float, float]]:
        """Return the changes of the offset in the day from `begin` (seconds after 1970)."""
        found = []
        for time in range(begin, begin + 86400 + _QUARTER, _QUARTER):
            offset = self._offset(time)
            if offset != known and time > self.origin:
                found.append((time - self.origin, offset))
                known = offset
        return found

    def _offset(self, epoch: float) -> float:
        """Return how many seconds local time is ahead of UTC; 0 outside of the calendar."""
        if not -LATEST_DATE < epoch < LATEST_DATE:
            return 0.0
        ahead = datetime.fromtimestamp(epoch, zone_of(self.zone)).utcoffset()
        return 0.0 if ahead is None else ahead.total_seconds()

    def to_dict(self) -> ClockDocument:
        """Return plain data, for ``run.json``."""
        return {"origin": self.origin, "zone": self.zone, "zone_assumed": self.assumed}

    @classmethod
    def from_dict(cls, document: Any) -> Clock | None:
        """Return the clock of `to_dict`; None for any other value, such as of a run without dates."""
        try:
            origin, zone = document["origin"], zone_name(document["zone"])
            if not isinstance(origin, int | float) or not -LATEST_DATE < origin < LATEST_DATE:
                return None
            return cls(origin, zone, document.get("zone_assumed") is True)
        except (TypeError, KeyError, AttributeError, ConfigError):
            return None


def clock_of(header: Mapping[str, str], first: float = 0) -> Clock | None:
    """Return the clock of a log by its header; None if its dates are not known.

    ``UnixStartTime`` is the time of second 0, and ``TimeZoneString`` the zone; the former ``TimeZone`` is
    the offset in seconds.  If the `first` submission (s) is a date by itself, second 0 is that of 1970.

    >>> clock_of({"UnixStartTime": "1711843200", "TimeZoneString": "Europe/Berlin"})
    Clock(origin=1711843200, zone='Europe/Berlin', assumed=False)
    >>> clock_of({"UnixStartTime": "0"}), clock_of({}, 1711843200)
    (None, Clock(origin=0, zone='UTC', assumed=True))
    """
    start = _number(header.get(_START, ""))
    if EARLIEST_DATE <= first < LATEST_DATE:
        start = 0
    elif start is None or not EARLIEST_DATE <= start < LATEST_DATE:
        return None
    name = next(iter(header.get(_ZONE, "").split()), "")
    if name and (zone := _known(name)) is not None:
        return Clock(start, zone)
    offset = _number(header.get(_OFFSET, ""))
    if offset is not None and abs(offset) < 86400 and offset % 60 == 0:
        return Clock(start, offset_text(int(offset)))
    return Clock(start, "UTC", assumed=True)


def dated_header(header: Mapping[str, str], zone: str | None, start: DateText | None) -> dict[str, str]:
    """Return a header with this time zone, and with this date as the time of second 0.

    A date without an offset is local time of the zone.
    """
    found = dict(header)
    if zone is not None:
        found.pop(_OFFSET, None)
        found[_ZONE] = zone
    if start is not None:
        known = clock_of({**found, _START: str(EARLIEST_DATE)})
        assert known is not None
        seconds = Clock(0, known.zone).seconds(start, "--start-date")
        if not EARLIEST_DATE <= seconds < LATEST_DATE:
            raise ConfigError(
                f"the date {start} is too early", where="--start-date", expected="1980 or later"
            )
        found[_START] = f"{seconds:.15g}"
    return found


def clock_header(origin: float, zone: str | None) -> dict[str, str]:
    """Return the header of a log with these dates: second 0 as seconds since 1970, and its zone if known."""
    return {_START: f"{origin:.15g}"} | ({} if zone is None else {_ZONE: zone})


def later_header(header: Mapping[str, str], seconds: float) -> dict[str, str]:
    """Return a header whose second 0 is later by `seconds`; unchanged if its date is not known."""
    start = _number(header.get(_START, ""))
    if start is None or not EARLIEST_DATE <= start < LATEST_DATE:
        return dict(header)
    return {**header, _START: f"{start + seconds:.15g}"}


def is_date(value: Any) -> bool:
    """Whether a value is meant as a date: a text that begins like ``2024-03-``, or a date of YAML or TOML."""
    return hasattr(value, "isoformat") or (isinstance(value, str) and _DATE.match(value.strip()) is not None)


def parse_when(value: Any, where: str | None = None) -> When:
    """Return a time: seconds of a number or a duration, or a date.

    Raises
    ------
    FormatError
        For any other value.
    """
    return parse_date(value, where) if is_date(value) else parse_time(value, where=where)


def parse_date(value: Any, where: str | None = None) -> DateText:
    """Return the date of ``2024-03-01``, ``2024-03-01T08:00`` or ``2024-03-01T08:00+01:00``.

    Seconds may follow the minutes; ``Z`` is UTC.  A date of YAML or TOML is taken as its text.

    >>> str(parse_date("2024-03-01 08:00Z").time)
    '2024-03-01 08:00:00+00:00'
    """
    text = value.isoformat() if hasattr(value, "isoformat") else str(value).strip()
    found = _FORM.fullmatch(text)
    if found is not None:
        day, time, zone = found.groups()
        try:
            return DateText(text, datetime.fromisoformat(f"{day}T{time or '00:00'}{zone or ''}"))
        except ValueError:
            pass
    raise FormatError(
        f"{text[:40]!r} is not a date", where=where, expected="2024-03-01, 2024-03-01T08:00, or with +01:00"
    )


def seconds_on(when: When, clock: Clock | None, where: str | None = None) -> float:
    """Return the second of the run at a time that a user gave.

    Raises
    ------
    ConfigError
        For a date without a `clock`, or a local time that the zone skips or has twice.
    """
    if not isinstance(when, DateText):
        return when
    if clock is None:
        raise ConfigError(
            f"the workload has no dates, so {when} is not a time of it",
            where=where,
            expected="seconds or a duration; --start-date DATE gives second 0 its date",
        )
    return clock.seconds(when, where)


def zone_name(text: str, where: str | None = None) -> str:
    """Return the name of a time zone as `Clock` has it.

    Raises
    ------
    ConfigError
        For a zone that does not exist; it names the nearest one.

    >>> zone_name("Europe/Rome"), zone_name("+0530"), zone_name("UTC")
    ('Europe/Rome', '+05:30', 'UTC')
    """
    found = _known(text)
    if found is None:
        from zoneinfo import available_timezones

        near = did_you_mean(text, sorted(available_timezones()))
        raise ConfigError(
            f"there is no time zone {text!r}{near}", where=where, expected="such as Europe/Rome, or +01:00"
        )
    return found


@cache
def zone_of(name: str) -> tzinfo:
    """Return the zone of a name or an offset.  Raises `LookupError` or `ValueError` for any other text."""
    if name.upper() in {"UTC", "Z", "GMT"}:
        return UTC
    fixed = _FIXED.fullmatch(name)
    if fixed:
        sign, hours, minutes = fixed.groups()
        ahead = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-ahead if sign == "-" else ahead)
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


def offset_text(seconds: int) -> str:
    """Return an offset from UTC as text: ``-08:00``; ``UTC`` for 0."""
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{minutes:02}" if seconds else "UTC"


def _known(name: str) -> str | None:
    """Return the name of a zone in its usual form; None if there is no such zone."""
    try:
        zone = zone_of(name)
    except (LookupError, ValueError, OSError):  # a folder of the data base is an OSError
        return None
    if isinstance(zone, timezone):
        ahead = zone.utcoffset(None)
        return offset_text(int(ahead.total_seconds()))
    return name


def _in_zone(date: DateText, zone: tzinfo, name: str, where: str | None) -> datetime:
    """Return a local time with its zone; ConfigError if the zone skips it or has it twice."""
    early, late = (date.time.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if early.utcoffset() == late.utcoffset():
        return early
    again = early.astimezone(UTC).astimezone(zone)
    if again.replace(tzinfo=None) != date.time:
        raise ConfigError(
            f"{date} does not exist in {name}, where clocks are put forward then",
            where=where,
            expected=f"{again:%Y-%m-%dT%H:%M}, or a time with an offset",
        )
    raise ConfigError(
        f"{date} occurs twice in {name}, where clocks are put back then",
        where=where,
        expected=f"{early.isoformat(timespec='minutes')} or {late.isoformat(timespec='minutes')}",
    )


def _number(text: str) -> float | None:
    """Return the number that a field of a header begins with; None if there is none."""
    word = next(iter(text.split()), "")
    try:
        found = float(word)
    except ValueError:
        return None
    if not isfinite(found):
        return None
    return int(found) if found.is_integer() else found
