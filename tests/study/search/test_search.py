"""The search for a threshold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import ConfigError
from simsched.study.search.threshold import BRACKET, HALVING, SCAN, START, Probe, Scan, smallest


@st.composite
def hunts(draw):
    """A range, a threshold in it or beyond it, a place to start and a first stride."""
    low = draw(st.integers(1, 1000))
    high = low + draw(st.integers(0, 20_000))
    threshold = draw(st.integers(low - 2, high + 2))
    start = draw(st.none() | st.integers(low - 50, high + 50))
    step = draw(st.none() | st.integers(1, 2000))
    return low, high, threshold, start, step, draw(st.integers(0, 3))


@given(hunts())
def test_a_monotone_condition_gives_its_threshold_with_few_probes(case):
    """Law: the answer is the threshold; each number is asked once; the probes are logarithmic."""
    low, high, threshold, start, step, checks = case
    asked = []

    def met(value):
        asked.append(value)
        return value >= threshold

    found = smallest(met, low, high, start=start, step=step, scan=Scan(checks, checks))
    assert found.answer == (None if threshold > high else max(threshold, low))
    assert len(set(asked)) == len(asked) == len(found.probes)
    assert all(low <= value <= high for value in asked)
    assert len(asked) <= 2 * math.log2(high - low + 1) + 4 + 2 * checks
    assert found.monotone
    if found.answer is not None:
        assert found.answer == low or (found.answer - 1, False) in {(p.value, p.met) for p in found.probes}
    else:
        assert Probe(high, False, BRACKET) in found.probes or Probe(high, False, START) in found.probes


@given(st.sets(st.integers(1, 60)), st.integers(1, 60), st.integers(0, 4))
def test_any_condition_gives_an_answer_that_meets_next_to_one_that_fails(members, start, checks):
    """Law: of whatever condition, the answer meets, the number below fails, and exceptions are listed."""
    found = smallest(members.__contains__, 1, 60, start=start, scan=Scan(checks, checks))
    probed = {p.value: p.met for p in found.probes}
    assert probed == {value: value in members for value in probed}
    if found.answer is None:
        assert 60 not in members
        return
    assert found.answer in members
    assert found.answer == 1 or found.answer - 1 not in members
    smaller_met = {v for v, met in probed.items() if met and v < found.answer}
    larger_failed = {v for v, met in probed.items() if not met and v > found.answer}
    assert found.monotone == (not smaller_met and not larger_failed)


def test_the_trace_tells_why_each_number_was_asked():
    found = smallest(lambda n: n >= 107, 1, 1600, start=100, scan=Scan(2, 2))
    assert [(p.value, p.met, p.why) for p in found.probes] == [
        (100, False, START),
        (112, True, BRACKET),
        (106, False, HALVING),
        (109, True, HALVING),
        (107, True, HALVING),
        (105, False, SCAN),
        (108, True, SCAN),
    ]


def test_a_smaller_number_beside_the_threshold_is_the_answer_and_larger_ones_that_fail_are_said():
    found = smallest(lambda n: (n >= 50 and n != 51) or n == 48, 1, 100, start=49)
    assert (found.answer, found.monotone) == (48, False)
    assert [(p.value, p.met) for p in found.probes if p.value in (47, 49, 51)] == [
        (49, False),
        (47, False),
        (51, False),
    ]


def test_numbers_below_a_floor_are_tried_and_are_no_answers():
    found = smallest(lambda n: n >= 50 or n == 48, 1, 100, start=49, floor=49)
    assert found.answer == 50
    assert 48 in {p.value for p in found.probes if p.met}


def test_the_neighbourhood_of_the_end_is_tried_where_nothing_else_meets():
    """Three sizes tried in strides fail, and others between them meet: the end looked too close to call."""
    meeting = {*range(117, 122), *range(123, 130)}
    found = smallest(meeting.__contains__, 1, 134, start=100, scan=Scan(clear=lambda n: n < 117))
    assert [p.value for p in found.probes][:3] == [100, 112, 134]
    assert found.answer == 117
    larger_failed = {p.value for p in found.probes if not p.met and p.value > 117}
    assert larger_failed == {122, 130, 131, 132, 133, 134}


@given(st.integers(1, 80), st.integers(1, 5), st.integers(0, 8))
def test_a_scan_goes_on_until_enough_in_a_row_are_clear(threshold, calm, more):
    """Law: numbers that are not clear do not count, and `most` in all end the scan."""
    unclear = range(threshold - 3, threshold + 3)
    scan = Scan(calm, calm + more, lambda n: n not in unclear, widening=False)
    found = smallest(lambda n: n >= threshold, -100, 200, start=threshold, step=300, scan=scan)
    tried = {p.value for p in found.probes}
    width = min(3 + calm, calm + more)
    assert set(range(threshold - width, threshold + width)) <= tried | {threshold}


def test_what_is_expected_to_follow_is_told_before_each_probe():
    told = []
    found = smallest(lambda n: n >= 107, 1, 1600, start=100, expect=told.append)
    assert len(told) == len(found.probes)
    assert told[:2] == [None, None]
    assert told[-1] == 0
    assert told[2:] == sorted(told[2:], reverse=True)


def test_nothing_in_range():
    found = smallest(lambda n: False, 1, 4096, start=100)
    assert (found.answer, found.monotone) == (None, True)
    bracket = [100, 112, 136, 184, 280, 472, 856, 1624, 3160, 4096]
    assert [p.value for p in found.probes] == [*bracket, 4095, 4094]


def test_everything_in_range():
    found = smallest(lambda n: True, 5, 100, start=40)
    assert found.answer == 5
    assert [p.value for p in found.probes] == [40, 35, 25, 12, 6, 5, 7, 8]


def test_a_range_of_one_and_a_range_of_none():
    assert smallest(lambda n: True, 7, 7).answer == 7
    assert smallest(lambda n: False, 7, 7).answer is None
    with pytest.raises(ConfigError, match="the range 8 to 7 is empty"):
        smallest(lambda n: True, 8, 7)


def test_a_dip_well_above_the_answer_is_found():
    """414 meets, 421 and 434 to 446 miss: none of them is beside the threshold."""
    dip = {421, *range(434, 447)}
    met = lambda n: n >= 414 and n not in dip  # noqa: E731
    found = smallest(met, 1, 1600, start=400, scan=Scan.of(None, lambda _: True))
    assert found.answer == 414
    assert 438 in {probe.value for probe in found.probes if not probe.met}
    assert smallest(met, 1, 1600, start=400, scan=Scan.of(3, lambda _: True)).monotone
