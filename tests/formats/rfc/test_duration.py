"""RFC 23 durations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import FormatError
from simsched.formats.rfc.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("1.5m", 90),
        ("0.5h", 1800),
        ("2d", 172800),
        ("100ms", 0.1),
        (".5", 0.5),
        ("5.", 5),
        ("1e3", 1000),
        ("1e3s", 1000),
        ("+7s", 7),
        ("0", 0),
        (" 60 ", 60),
        ("inf", math.inf),
        ("infinity", math.inf),
        ("INFINITY", math.inf),
        (12, 12),
        (0.25, 0.25),
        (math.inf, math.inf),
    ],
)
def test_duration(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "s", "-1", "-1s", "1x", "1 h", "1H", "1hour", "h1", "1m30s", "01:00:00", "nan", "0x10", "1,5",
     "\u0661s",
     math.nan, -1, -0.5, True, None, [1], "1e999", "9" * 400, 10**400],
)  # fmt: skip
def test_what_is_no_duration(text):
    with pytest.raises(FormatError) as caught:
        parse_duration(text, "--duration")
    assert caught.value.where == "--duration"
    assert len(str(caught.value)) < 600


def test_the_unit_that_is_not_known_is_named():
    with pytest.raises(FormatError, match="unknown unit 'w' in the duration '2w'"):
        parse_duration("2w")


@given(st.floats(min_value=0, allow_nan=False) | st.integers(0, 10**9))
def test_law_the_shortest_text_reads_back_as_the_same_seconds(seconds):
    text = format_duration(seconds)
    assert parse_duration(text) == seconds
    assert len(text) <= len(f"{float(seconds)!r}s")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0d"),
        (60, "1m"),
        (61, "61s"),
        (90, "90s"),
        (5400, "90m"),
        (3600, "1h"),
        (86400, "1d"),
        (0.001, "1ms"),
    ],
)
def test_shortest_text(seconds, text):
    assert format_duration(seconds) == text
