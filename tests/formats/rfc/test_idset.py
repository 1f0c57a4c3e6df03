"""Idsets: RFC 22's grammar, the laws of sets, and inputs that mean harm."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.idset import MAX_ID, Idset, encode_ids

ids = st.sets(st.integers(0, 40) | st.integers(0, 500), max_size=40)
pairs = st.tuples(st.integers(0, 60), st.integers(0, 9)).map(lambda p: (p[0], p[0] + p[1]))


@pytest.mark.parametrize(
    ("text", "members", "canonical"),
    [
        ("", [], ""),
        ("[]", [], ""),
        ("0", [0], "0"),
        ("1,2", [1, 2], "1-2"),
        ("[1-3,5-6]", [1, 2, 3, 5, 6], "1-3,5-6"),
        ("1,3-4,5,9", [1, 3, 4, 5, 9], "1,3-5,9"),
        ("7-7", [7], "7"),
        ("10-12", [10, 11, 12], "10-12"),
    ],
)
def test_reads_and_writes_the_standards_form(text, members, canonical):
    idset = Idset.parse(text)
    idset._check()
    assert (list(idset), str(idset)) == (members, canonical)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("3-1", "the range '3-1' descends at character 1"),
        ("[0,3-1]", "the range '3-1' descends at character 4"),
        ("1,1", "'1' does not come after 1 at character 3"),
        ("0-5,3", "'3' does not come after 5 at character 5"),
        ("2,1", "'1' does not come after 2"),
        ("01", "a leading zero in '01'"),
        ("1-02", "a leading zero in '1-02'"),
        ("1,,2", "an empty element at character 3"),
        (",", "an empty element at character 1"),
        ("1,", "an empty element at character 3"),
        ("[1-2", "'[1-2' is neither"),
        ("1-2]", "'1-2]' is neither"),
        ("1-", "neither an id nor a range"),
        ("-1", "neither an id nor a range"),
        ("1-2-3", "neither an id nor a range"),
        (" 1", "neither an id nor a range"),
        ("+1", "neither an id nor a range"),
        ("\u00b2", "neither an id nor a range"),
        ("\u0663", "neither an id nor a range"),
        ("core", "neither an id nor a range"),
        ("1_0", "neither an id nor a range"),
    ],
)
def test_says_what_is_wrong_and_where(text, says):
    with pytest.raises(FormatError) as caught:
        Idset.parse(text, where="r.json")
    assert says in str(caught.value)
    assert caught.value.where == "r.json"


@pytest.mark.parametrize("value", [None, 7, ["1"], b"1"])
def test_refuses_what_is_no_string(value):
    with pytest.raises(FormatError, match="an idset is a string"):
        Idset.parse(value)


@given(ids)
def test_text_form_is_lossless(members):
    """RFC 22: the string represents the set, whatever the order the set was made in."""
    idset = Idset.from_ids(members)
    idset._check()
    assert Idset.parse(str(idset)) == idset
    assert Idset.parse(f"[{idset}]") == idset
    assert list(idset) == sorted(members) == idset.expand()
    assert hash(Idset.parse(str(idset))) == hash(idset)


@given(ids, ids)
def test_algebra_is_that_of_sets(a, b):
    left, right = Idset.from_ids(a), Idset.from_ids(b)
    for ours, theirs in (
        (left | right, a | b), (left & right, a & b), (left - right, a - b), (left ^ right, a ^ b)
    ):  # fmt: skip
        ours._check()
        assert set(ours) == theirs
    assert (left <= right) == (a <= b)
    assert (left >= right) == (a >= b)
    assert left.isdisjoint(right) == a.isdisjoint(b)
    assert (left == right) == (a == b)


@given(ids, st.integers(0, 600))
def test_membership_order_and_size_are_those_of_the_set(members, probe):
    idset = Idset.from_ids(members)
    ordered = sorted(members)
    assert (probe in idset) == (probe in members)
    assert (np.int64(probe) in idset) == (probe in members)
    assert (len(idset), bool(idset)) == (len(members), bool(members))
    assert [idset[i] for i in range(len(ordered))] == ordered
    assert [idset.index(i) for i in ordered] == list(range(len(ordered)))
    assert list(idset.take(probe % 50)) == ordered[: probe % 50]
    if members:
        assert (idset.first, idset.last, idset[-1]) == (ordered[0], ordered[-1], ordered[-1])


@given(ids)
def test_masks_and_ranges_and_fast_writing_agree_with_the_set(members):
    idset = Idset.from_ids(members)
    assert idset.to_mask() == sum(1 << i for i in members)
    assert Idset.from_mask(idset.to_mask()) == idset
    ordered = sorted(members)
    assert encode_ids(ordered) == encode_ids(np.array(ordered, dtype=np.int64)) == str(idset)


@pytest.mark.slow
@given(st.lists(pairs, max_size=12))
def test_ranges_in_any_order_make_their_union(spans):
    idset = Idset.from_ranges(spans)
    idset._check()
    assert set(idset) == {i for low, high in spans for i in range(low, high + 1)}


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(2, 4)), min_size=1, max_size=12))
def test_fast_writing_crosses_long_runs(runs):
    """Few gaps take the doubling walk, many gaps the plain one; both write the canonical form."""
    members, at = [], 0
    for length, gap in runs:
        members += range(at, at + length)
        at += length + gap
    assert encode_ids(members) == str(Idset.from_ids(members))


def test_lookups_outside_are_errors():
    idset = Idset.parse("3-5")
    for position in (3, -4):
        with pytest.raises(IndexError):
            idset[position]
    for missing in (2, 6):
        with pytest.raises(ValueError, match="is not in 3-5"):
            idset.index(missing)
    assert "3" not in idset
    with pytest.raises(ValueError, match="negative"):
        Idset.from_ids([-1])


def test_an_endless_range_costs_nothing_until_it_is_expanded():
    huge = Idset.parse("0-99999999999")
    assert len(huge) == 10**11
    assert 5 in huge
    assert str(huge - Idset.parse("7")) == "0-6,8-99999999999"
    with pytest.raises(LimitError, match="100000000000 ids"):
        huge.expand()
    with pytest.raises(LimitError, match="too high for a bit mask"):
        huge.to_mask()


def test_an_id_has_a_highest_value():
    assert len(Idset.parse(f"0-{MAX_ID}")) == MAX_ID + 1
    for text in (str(MAX_ID + 1), "9" * 20, "9" * 21, "1-" + "9" * 5000):
        with pytest.raises(LimitError, match="goes beyond the highest id"):
            Idset.parse(text)


@pytest.mark.parametrize("text", ["," * 10**7, "1-" * 5 * 10**6, "[" * 10**7, "9" * 10**7], ids="abcd")
def test_ten_megabytes_of_nonsense_are_refused_quickly_and_shortly(text):
    before = time.process_time()
    with pytest.raises(FormatError) as caught:
        Idset.parse(text)
    assert time.process_time() - before < 30
    assert len(str(caught.value)) < 400
