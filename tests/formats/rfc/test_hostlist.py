"""Hostlists: RFC 29's vectors, the laws of lists, and inputs that mean harm."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.hostlist import HostEncoder, Hostlist, encode_hosts

numbers = st.integers(0, 12).map(str) | st.sampled_from(["00", "01", "09", "007", "008", "010", "99", "100"])
hosts = st.builds(
    lambda stem, number, tail: stem + number + tail or "x",
    st.sampled_from(["n", "node", "gpu-", "rack1n", "", "%d"]),
    numbers | st.just(""),
    st.sampled_from(["", "", "", "-eth2", ".site.org", "a"]),
)
lists = st.lists(hosts, max_size=25)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("[1-3,5-6]", ["1", "2", "3", "5", "6"]),
        ("foo[0-4]-eth2", ["foo0-eth2", "foo1-eth2", "foo2-eth2", "foo3-eth2", "foo4-eth2"]),
        ("foo1,foo1,foo1", ["foo1"] * 3),
        ("[00-02]", ["00", "01", "02"]),
        ("[00-2]", ["00", "01", "02"]),
        ("foo[1,1,2,1]", ["foo1", "foo1", "foo2", "foo1"]),
        ("[005,4]", ["005", "004"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("n[1,007]", ["n1", "n007"]),
        ("n[018,0103,057]", ["n018", "n0103", "n057"]),
        ("b[38,024,65]", ["b38", "b024", "b65"]),
        ("n[3,007-008,9]", ["n3", "n007", "n008", "n9"]),
        ("n[005,4,11-13]x", ["n005x", "n004x", "n011x", "n012x", "n013x"]),
        (",1,2", ["1", "2"]),
        ("1,2,", ["1", "2"]),
        (",", []),
        ("a,,b[1],,", ["a", "b1"]),
        ("a,b[1],c", ["a", "b1", "c"]),
        ("10.0.0.[1-2]", ["10.0.0.1", "10.0.0.2"]),
        ("%d[1-2]%s", ["%d1%s", "%d2%s"]),
    ],
)
def test_reads_the_standards_vectors(text, names):
    hostlist = Hostlist.parse(text)
    hostlist._check()
    assert list(hostlist) == hostlist.expand() == names
    assert Hostlist.parse(str(hostlist)) == hostlist


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n1", "n2", "n3"], "n[1-3]"),
        (["n1", "n2", "n2", "n3"], "n[1-2,2-3]"),
        (["n3", "n2", "n1"], "n[3,2,1]"),
        (["n1", "login", "n2"], "n1,login,n2"),
        (["n08", "n09", "n10"], "n[08-10]"),
        (["n8", "n09", "n10"], "n[8,09-10]"),
        (["n007", "n8"], "n007,n8"),
        (["n98", "n99", "n100"], "n[98-100]"),
        (["a1.x", "a2.x"], "a[1-2].x"),
        (["10.0.0.1", "10.0.0.2"], "10.0.0.[1-2]"),
        (["login"], "login"),
        ([], ""),
        (["1", "2"], "[1-2]"),
        (["n" + "1" * 30, "n" + "1" * 29 + "2"], "n" + "1" * 30 + ",n" + "1" * 29 + "2"),
    ],
)
def test_writes_compressed_and_in_order(names, text):
    assert str(Hostlist.from_hosts(names)) == text
    assert Hostlist.parse(text).expand() == names
    if names:
        assert encode_hosts(names) == text


@given(lists)
def test_text_form_keeps_order_and_repeats(names):
    """RFC 29: a hostlist is an ordered list that may repeat."""
    hostlist = Hostlist.from_hosts(names)
    hostlist._check()
    assert hostlist.expand() == names
    again = Hostlist.parse(str(hostlist))
    assert again.expand() == names
    assert (again == hostlist, hash(again) == hash(hostlist)) == (True, True)
    assert Hostlist.parse(names) == hostlist
    assert len(hostlist) == len(names)
    if names:
        assert Hostlist.parse(encode_hosts(names)).expand() == names


@given(lists, lists, st.integers(0, 25), st.integers(0, 25))
def test_it_is_a_sequence(names, others, start, stop):
    hostlist, other = Hostlist.from_hosts(names), Hostlist.from_hosts(others)
    assert [hostlist[i] for i in range(len(names))] == names
    part = hostlist[start:stop]
    part._check()
    assert list(part) == names[start:stop]
    assert part == Hostlist.from_hosts(names[start:stop])
    both = hostlist + other
    both._check()
    assert list(both) == names + others
    assert (hostlist == other) == (names == others)
    assert list(hostlist.unique()) == list(dict.fromkeys(names))
    assert (hostlist.duplicate() is None) == (len(set(names)) == len(names))
    for name in set(names + others):
        assert (name in hostlist) == (name in names)
        if name in names:
            assert hostlist.index(name) == names.index(name)


@given(st.lists(hosts, min_size=1, max_size=25), st.sets(st.integers(0, 24), min_size=1))
def test_the_encoder_writes_what_the_names_say(names, picked):
    positions = sorted(i for i in picked if i < len(names)) or [0]
    text = HostEncoder(names).encode(positions)
    assert Hostlist.parse(text).expand() == [names[i] for i in positions]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a[3-1]", "the range '3-1' descends at character 1"),
        ("x,a[3-1]", "the range '3-1' descends at character 3"),
        ("a,,b[", "'[' is never closed in 'b[' at character 4"),
        ("a b", "white space in 'a b'"),
        ("a,b\n", "white space"),
        ("[1-2", "'[' is never closed"),
        ("a[1]b[2]", "more than one pair of brackets in 'a[1]b[2]'"),
        ("a[[1]]", "more than one pair of brackets"),
        ("a]", "']' without '['"),
        ("a[]", "'' is neither an id nor a range"),
        ("a[x]", "'x' is neither an id nor a range"),
        ("a[1-\u0662]", "neither an id nor a range"),
        ("x" * 300, "a name of more than 255 characters"),
    ],
)
def test_says_what_is_wrong_and_where(text, says):
    with pytest.raises(FormatError) as caught:
        Hostlist.parse(text, where="r.json")
    assert says in str(caught.value)
    assert caught.value.where == "r.json"


def test_of_several_strings_the_bad_one_is_named():
    with pytest.raises(FormatError, match=r"^nodelist\[1\]: the range"):
        Hostlist.parse(["a[1-2]", "a[3-1]"], where="nodelist")
    for value in (5, None):
        with pytest.raises(FormatError, match="a hostlist is a string"):
            Hostlist.parse(value)


def test_a_thousand_million_names_are_a_range():
    huge = Hostlist.parse("n[0-999999999]")
    assert (len(huge), huge[123456789], huge[-1]) == (10**9, "n123456789", "n999999999")
    assert "n5" in huge
    assert "n05" not in huge
    assert huge.index("n77") == 77
    assert str(huge[5:10]) == "n[5-9]"
    for making in (huge.expand, huge.unique):
        with pytest.raises(LimitError, match="1000000000 names"):
            making()


def test_numbers_and_counts_have_limits():
    with pytest.raises(LimitError, match="too many digits"):
        Hostlist.parse("a[1-" + "9" * 19 + "]")
    with pytest.raises(LimitError, match="too many names"):
        Hostlist.parse(",".join(["a[0-999999999999999999]"] * 5))


def test_lookups_outside_are_errors():
    hostlist = Hostlist.parse("n[1-3]")
    for position in (3, -4):
        with pytest.raises(IndexError):
            hostlist[position]
    with pytest.raises(ValueError, match="not in the hostlist"):
        hostlist.index("n4")
    with pytest.raises(ValueError, match="steps of 1"):
        hostlist[::2]
    assert Hostlist() == Hostlist.parse("")
    assert not Hostlist()
    assert 5 not in hostlist


@pytest.mark.parametrize(
    "text",
    ["[" * 10**7, "a" * 10**7, "1-" * 5 * 10**6, "a[" + "1-" * 5 * 10**6, "," * 10**7 + "]"],
    ids="abcde",
)
def test_ten_megabytes_of_nonsense_are_refused_quickly_and_shortly(text):
    before = time.process_time()
    with pytest.raises(FormatError) as caught:
        Hostlist.parse(text)
    assert time.process_time() - before < 30
    assert len(str(caught.value)) < 400
