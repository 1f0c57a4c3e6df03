"""Units: exact conversion inside a dimension, an error across."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import RequestError
from simsched.formats.rfc.units import UNITS, convert, convert_up, same_dimension, unit_of

names = st.sampled_from(sorted(UNITS))


@given(st.integers(0, 10**12), names, names)
def test_law_conversion_there_and_back_is_the_identity(value, first, second):
    if not same_dimension(first, second):
        with pytest.raises(RequestError, match="unit of"):
            convert(value, first, second)
        return
    assert convert(convert(value, first, second), second, first) == value


@given(st.integers(0, 10**12), names, names)
def test_law_rounding_up_is_the_least_whole_number_that_holds_the_value(value, first, second):
    if same_dimension(first, second):
        up = convert_up(value, first, second)
        exact = Fraction(convert(value, first, second))
        assert up - 1 < exact <= up


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (4, "GB", "MB", 4000),
        (1, "GiB", "MiB", 1024),
        (1, "KiB", "B", 1024),
        (1, "kB", "B", 1000),
        (1, "KB", "B", 1000),
        (1, "YB", "ZB", 1000),
        (1, "YiB", "EiB", 1024**2),
        (1, "GB", "GiB", Fraction(1953125, 2097152)),
        (3, "GHz", "MHz", 3000),
        (2, "kW", "W", 2000),
        (8, "Gb/s", "GB/s", 1),
        (5, "licences", "licences", 5),
    ],
)
def test_conversions(value, source, target, result):
    assert convert(value, source, target) == result


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("GB", "GHz", "GB is a unit of memory and GHz one of frequency"),
        ("GB", "B/s", "unit of memory"),
        ("gb", "MB", "unknown unit 'gb', perhaps GB"),
        ("GB", "furlong", "unknown unit 'furlong'"),
        ("", "GB", "unknown unit ''"),
    ],
)
def test_what_cannot_be_converted(source, target, words):
    with pytest.raises(RequestError, match=words) as caught:
        convert(1, source, target, "resources[0].unit")
    assert caught.value.where == "resources[0].unit"


def test_every_unit_knows_its_own_name():
    assert all(unit_of(name).name == name for name in UNITS)
