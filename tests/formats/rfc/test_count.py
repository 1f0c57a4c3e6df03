"""RFC 14 and 45 counts: one value type, its laws held against plain sets of integers."""

from __future__ import annotations

import pickle
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.count import MAX_COUNT, Count
from simsched.formats.text.diagnostics import CaretError

TOP = 400


def plain_values(low, high, operator, operand):
    """The acceptable numbers up to TOP, by the definition of RFC 14."""
    values = set()
    n = low
    while n <= (TOP if high is None else high) and n <= TOP:
        values.add(n)
        n = {"+": n + operand, "*": n * operand, "^": n**operand}[operator]
    return values


@st.composite
def ranges(draw):
    operator = draw(st.sampled_from("+*^"))
    low = draw(st.integers(2 if operator == "^" else 1, 40))
    high = draw(st.none() | st.integers(low, 300))
    operand = draw(st.integers(1 if operator == "+" else 2, 9))
    return Count.range(low, high, operator, operand), plain_values(low, high, operator, operand)


@st.composite
def idsets(draw):
    values = draw(st.sets(st.integers(1, 60), min_size=1, max_size=12))
    return Count.parse(",".join(map(str, sorted(values)))), values


counts = ranges() | idsets() | st.integers(1, 99).map(lambda n: (Count.fixed(n), {n}))


@given(counts)
def test_law_a_count_contains_what_its_definition_lists(pair):
    count, values = pair
    count._check()
    assert {n for n in range(-3, TOP + 1) if n in count} == values


@given(counts, st.integers(0, TOP))
def test_law_largest_at_most_is_the_maximum_below_a_bound(pair, bound):
    """RFC 14: a range asks for the largest acceptable value that is available."""
    count, values = pair
    assert count.largest_at_most(bound) == max((n for n in values if n <= bound), default=None)


@given(counts)
def test_law_values_come_in_order_and_without_expansion(pair):
    count, values = pair
    assert list(islice(count.values(5), 5)) == sorted(values)[:5] or count.max is None
    assert count.min == min(values)


@given(counts)
def test_law_text_and_document_round_trip(pair):
    count, _ = pair
    assert Count.parse(str(count)) == count
    assert Count.parse(f"[{count}]") == count
    assert Count.from_json(count.to_json()) == count
    assert hash(Count.parse(str(count))) == hash(count)
    assert pickle.loads(pickle.dumps(count)) == count


@given(st.text(alphabet="0123456789,-+*^:[] ", max_size=14))
def test_any_text_is_a_count_or_a_fault_with_its_place(text):
    try:
        count = Count.parse(text)
    except CaretError as error:
        fault = error
        assert 0 <= fault.position <= len(text)
    else:
        count._check()
        assert Count.parse(str(count)) == count


@pytest.mark.parametrize(
    ("text", "canonical", "document"),
    [
        ("4", "4", 4),
        ("[4]", "4", 4),
        ("4-4", "4", 4),
        ("2-3:5", "2", 2),
        ("2,3,4", "2-4", {"min": 2, "max": 4, "operator": "+", "operand": 1}),
        ("1-2,3,7", "1-3,7", "1-3,7"),
        ("3-30", "3-30", {"min": 3, "max": 30, "operator": "+", "operand": 1}),
        ("3-30:1:+", "3-30", {"min": 3, "max": 30, "operator": "+", "operand": 1}),
        ("100+", "100+", {"min": 100}),
        ("100+:1", "100+", {"min": 100}),
        ("2+:3:*", "2+:3:*", {"min": 2, "operator": "*", "operand": 3}),
        ("1-16:2:*", "1-16:2:*", {"min": 1, "max": 16, "operator": "*", "operand": 2}),
    ],
)
def test_canonical_text_and_document(text, canonical, document):
    count = Count.parse(text)
    assert (str(count), count.to_json()) == (canonical, document)


def test_rfc_45_examples():
    assert list(Count.parse("1-16:2:*").values(99)) == [1, 2, 4, 8, 16]
    assert list(Count.parse("2-16:2:^").values(99)) == [2, 4, 16]
    assert Count.parse("1-5:2:+") == Count.parse("1-5:2")
    assert Count.parse("1-4:1:+") == Count.parse("1-4")
    assert list(Count.parse("[100+]").values(2)) == [100, 101]


def test_endless_and_huge_ranges_are_never_expanded():
    assert Count.parse(f"1-{MAX_COUNT}").largest_at_most(10**15 + 1) == 10**15 + 1
    assert 10**15 in Count.parse("1+")
    assert Count.parse("2+:2:^").largest_at_most(2**53) == 2**32
    assert Count.parse(f"3+:{MAX_COUNT}:^").largest_at_most(10**300) == 3
    assert list(Count.parse(f"2-{MAX_COUNT}:9000000000000000:^").values(9)) == [2]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "cannot be 0"),
        (-1, "cannot be -1"),
        (True, "True is not a count"),
        (4.0, "4.0 is not a count"),
        (None, "None is not a count"),
        ([4], "not a count"),
        ("", "empty"),
        ("0", "cannot be 0"),
        ({}, "'min' is missing"),
        ({"min": 0}, "min cannot be 0"),
        ({"min": "2"}, "not an integer"),
        ({"min": True}, "not an integer"),
        ({"min": 2, "max": 1}, "before its start"),
        ({"min": 2, "max": None}, "not an integer"),
        ({"min": 2, "operator": "+"}, "without 'operand'"),
        ({"min": 2, "operand": 2}, "without 'operator'"),
        ({"min": 2, "operator": "-", "operand": 2}, "unknown operator"),
        ({"min": 2, "operator": "*", "operand": 1}, "cannot be 1"),
        ({"min": 1, "operator": "^", "operand": 2}, "min cannot be 1"),
        ({"min": 2, "step": 1}, "unknown key 'step'"),
    ],
)
def test_what_is_no_count(value, words):
    with pytest.raises(FormatError, match=words):
        Count.from_json(value, "resources[0].count")


def test_a_count_beyond_what_json_keeps_exactly_is_a_limit():
    for make in (lambda: Count.from_json(2**53 + 1), lambda: Count.fixed(2**60)):
        with pytest.raises(LimitError, match="too large"):
            make()
    with pytest.raises(FormatError, match="operand cannot be 0"):
        Count.range(1, 4, "+", 0)
    assert Count.range(1, 4, "*", 2) == Count.parse("1-4:2:*")
