"""Dates of the seconds of a run: parsing, zones, summer time, and logs without dates."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from simsched.errors import ConfigError, FormatError
from simsched.formats.rfc.clock import (
    Clock,
    clock_of,
    dated_header,
    later_header,
    parse_date,
    parse_when,
    seconds_on,
    zone_name,
)

MARCH = 1_709_251_200  # 2024-03-01T00:00:00Z


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-03-01", 0),
        ("2024-03-01T08:00", 28800),
        ("2024-03-01 08:00:30", 28830),
        ("2024-03-01T08:00Z", 28800),
        ("2024-03-01T08:00+01:00", 25200),
        ("2024-03-01T08:00-0500", 46800),
        ("2024-02-29", -86400),
        ("2024-03-01T00:00:00.25", 0.25),
    ],
)
def test_a_date_is_a_second_of_the_run(text, seconds):
    found = seconds_on(parse_when(text), Clock(MARCH))
    assert (found, type(found)) == (seconds, type(seconds))


@pytest.mark.parametrize("text", ["2024-13-01", "2024-3-1", "2024-03-01T25:00", "2024/03/01", "2024-03-01T8"])
def test_a_text_that_is_nearly_a_date_is_refused(text):
    with pytest.raises(FormatError, match="is not a date") as error:
        parse_when(text, "--until")
    assert error.value.where == "--until"


def test_durations_are_read_as_before():
    assert [parse_when(text) for text in ("3d", "90", 60, "inf")] == [259200, 90, 60, float("inf")]
    with pytest.raises(FormatError, match="is not a duration"):
        parse_when("tomorrow")


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Kolkata", "Europe/Berlin", "+05:45", "UTC"])
def test_dates_and_seconds_are_inverse_in_zones_east_and_west(zone):
    clock = Clock(MARCH, zone)
    times = [seconds for seconds in range(0, 400 * 86400, 86400 * 7 + 3600) if seconds % 86400 > 12 * 3600]
    assert [clock.seconds(parse_date(clock.text(seconds))) for seconds in times] == times


def test_local_time_that_summer_time_skips_or_repeats_is_an_error_that_names_what_is_valid():
    clock = Clock(MARCH, "Europe/Berlin")
    with pytest.raises(ConfigError, match="does not exist in Europe/Berlin") as skipped:
        seconds_on(parse_date("2024-03-31T02:30"), clock, "--until")
    assert skipped.value.expected == "2024-03-31T03:30, or a time with an offset"
    with pytest.raises(ConfigError, match="occurs twice") as twice:
        seconds_on(parse_date("2024-10-27T02:30"), clock)
    assert twice.value.expected == "2024-10-27T02:30+02:00 or 2024-10-27T02:30+01:00"
    assert clock.seconds(parse_date("2024-10-27T02:30+01:00")) == 1_729_992_600 - MARCH


def test_a_day_of_the_change_has_23_or_25_hours():
    clock = Clock(0, "America/New_York")
    lengths = [
        clock.seconds(parse_date(f"2024-{after}")) - clock.seconds(parse_date(f"2024-{day}"))
        for day, after in (("03-10", "03-11"), ("11-03", "11-04"), ("06-01", "06-02"))
    ]
    assert [length / 3600 for length in lengths] == [23, 25, 24]


def test_offsets_are_those_of_the_zone_at_every_quarter_of_an_hour():
    clock, zone = Clock(MARCH, "Europe/Berlin"), ZoneInfo("Europe/Berlin")
    end = 300 * 86400
    times = np.arange(0, end, 900, dtype=np.float64)
    expected = [datetime.fromtimestamp(MARCH + t, zone).utcoffset().total_seconds() for t in times]
    assert (clock.local_seconds(times) - times - MARCH).tolist() == expected
    changes = clock.offsets(0, end)
    at = np.searchsorted([time for time, _ in changes], times, side="right") - 1
    assert [changes[i][1] for i in at] == expected
    assert len(changes) == 3


def test_the_clock_of_a_log_is_in_its_header():
    start = str(MARCH)
    assert clock_of({"UnixStartTime": start, "TimeZoneString": "US/Pacific"}) == Clock(MARCH, "US/Pacific")
    assert clock_of({"UnixStartTime": start, "TimeZone": "-28800"}) == Clock(MARCH, "-08:00")
    assert (
        clock_of({"UnixStartTime": start, "TimeZoneString": "no such", "TimeZone": "3600"}).zone == "+01:00"
    )
    assert clock_of({"UnixStartTime": start}) == Clock(MARCH, "UTC", assumed=True)
    for header in ({}, {"UnixStartTime": "0"}, {"UnixStartTime": "28800"}, {"UnixStartTime": "unknown"}):
        assert clock_of(header) is None
    # submissions that count from 1970 are dates by themselves
    assert clock_of({}, MARCH) == Clock(0, "UTC", assumed=True)


def test_the_header_takes_a_zone_and_a_start():
    header = dated_header({"TimeZone": "0"}, "Asia/Tokyo", parse_date("2024-03-01T09:00"))
    assert clock_of(header) == Clock(MARCH, "Asia/Tokyo")
    assert clock_of(dated_header({}, None, parse_date("2024-03-01"))) == Clock(MARCH, "UTC", assumed=True)
    assert clock_of(later_header(header, 60)).origin == MARCH + 60
    assert later_header({"UnixStartTime": "0"}, 60) == {"UnixStartTime": "0"}


def test_a_date_without_a_clock_says_how_to_give_one():
    with pytest.raises(ConfigError, match="has no dates") as error:
        seconds_on(parse_date("2024-03-01"), None, "--until")
    assert (error.value.where, "--start-date" in error.value.expected) == ("--until", True)
    assert seconds_on(5, None) == 5


@pytest.mark.parametrize(
    "zone", ["Europe/Berln", "Mars", "../etc/passwd", "Europe", "", "+25:00", "/etc/localtime"]
)
def test_an_unknown_zone_is_refused(zone):
    with pytest.raises(ConfigError, match="there is no time zone"):
        zone_name(zone, "--time-zone")


def test_texts_at_the_ends_of_the_calendar():
    clock = Clock(MARCH)
    assert clock.text(float("nan")) == "-"
    assert clock.text(1e13) == "10000000000000 s"


def test_a_clock_survives_as_plain_data():
    clock = Clock(MARCH, "Europe/Berlin")
    assert Clock.from_dict(clock.to_dict()) == clock
    for odd in (None, 7, {}, {"origin": "x", "zone": "UTC"}, {"origin": 0, "zone": "Mars"}):
        assert Clock.from_dict(odd) is None
