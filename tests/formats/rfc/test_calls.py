"""Calls as text: ``name(argument, …)``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import ConfigError
from simsched.formats.rfc.calls import parse_call


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("rebase", "rebase", []),
        ("release()", "release", []),
        (" slice ( 7d , 14d ) ", "slice", ["7d", "14d"]),
        ("resize(node[0-3,8], 6)", "resize", ["node[0-3,8]", "6"]),
        ("set(groups[0].count, 8)", "set", ["groups[0].count", "8"]),
        ("status(not (rank:1, rank:2), up)", "status", ["not (rank:1, rank:2)", "up"]),
        ("choice(1h,\n2h)", "choice", ["1h", "2h"]),
        ("add(a,)", "add", ["a", ""]),
    ],
)
def test_a_call_has_a_name_and_arguments(text, name, arguments):
    call = parse_call(text)
    assert call.name == name
    assert call.arguments(0, 9) == arguments


@pytest.mark.parametrize("text", ["", "45m", "Load(1)", "load(1", "load 1)", "load(1) more", "a-b(1)"])
def test_other_texts_are_not_calls(text):
    assert parse_call(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("load(1, 2)", r"load\(1, 2\): load has 2 arguments \(expected 1\)"),
        ("load", r"load: load has 0 arguments \(expected 1\)"),
        ("resize(a[0-3, 6)", r"resize has 1 argument: its brackets do not match \(expected 2\)"),
    ],
)
def test_faults_name_the_call(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_call(text).arguments(2 if "resize" in text else 1)


@given(st.lists(st.text(alphabet="ab0-9.", min_size=1, max_size=5), min_size=1, max_size=4))
def test_law_what_is_joined_by_commas_is_split_at_them(arguments):
    assert parse_call(f"f({', '.join(arguments)})").arguments(1, 4) == arguments
