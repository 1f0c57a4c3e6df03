"""A line of JSON Lines is decoded quickly, and means and is refused as the strict reader says."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from simsched.errors import FormatError
from simsched.formats.text.json_text import load_json, load_json_line

LINES = (
    *('{"a":1,"a":2}', '{"a" :1,"a":2}', '{"a\\u0022:":1,"b":{"c":[{"d":1,"d":1}]}}', '{"x":"a\\":","x":1}'),
    *("NaN", "[-Infinity]", "1e400", "-0", "-0.0", "1e-400", "01", "1.", "[1,]", "+1", "1 2", "", "tru"),
    *("9" * 300, "9" * 301, f'{{"a":[-{"9" * 301}]}}', "9" * 5000, f'"{"9" * 400}"', f"0.{'3' * 400}"),
    *("18446744073709551616", "-9223372036854775809", "9007199254740993.0", "1e5", "0.30000000000000004"),
    *('"\\ud800"', '"\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"\x01"', '"a\tb"', '"\\x"', '"\u2028é"'),
    *("\ufeff[1]", "[1]\x0c", "[1]\xa0", " [1] \r\n", "[1]\n", "\t[1]", "“a”"),
    *(
        "[" * 200 + "]" * 200,
        "[" * 201 + "]" * 201,
        "[" + "[1]," * 300 + "1]",
        '{"a"  :1,"b":1,"b":2}',
        "[" * 9000,
        '"' + "[" * 300 + '"',
    ),
)


def outcome(read, *args):
    try:
        value = read(*args)
    except FormatError as error:
        return type(error), str(error)
    return repr(value)


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_a_line_means_what_the_strict_reader_says(line):
    assert outcome(load_json_line, line, "f", 1) == outcome(load_json, line, "f")


KEYS = st.sampled_from(["a", 'b":', "\u00fc", "\\", '"'])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
PIECES = st.sampled_from(
    ['"a":1,', '"', ":", " ", "\t", "\\", "\\u0022:", "{", "}", "[", "]", ",", "0", "e9", "-"]
)


@settings(deadline=None)
@given(VALUES, st.booleans(), st.lists(st.tuples(PIECES, st.integers(0, 60)), max_size=2))
def test_so_does_a_line_with_mistakes(value, ascii_only, mistakes):
    line = json.dumps(value, ensure_ascii=ascii_only)
    for piece, at in mistakes:
        line = line[:at] + piece + line[at:]
    assert outcome(load_json_line, line, "f", 1) == outcome(load_json, line, "f")
