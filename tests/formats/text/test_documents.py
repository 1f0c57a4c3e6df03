"""Reading text: files, strict JSON, strict YAML, and the places of what is in them."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import sys
import time

import msgspec
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.text.diagnostics import Locations
from simsched.formats.text.documents import load_document, read_bytes, read_text
from simsched.formats.text.excerpts import format_path, parse_path
from simsched.formats.text.json_text import decode_json_bulk, load_json
from simsched.formats.text.sniffing import detect_kind
from simsched.formats.text.yaml_text import load_yaml, load_yaml_all, yaml_hint

words = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\x85\u2028\u2029\ufeff"), max_size=8
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)


def fails(function, *arguments):
    with pytest.raises(FormatError) as caught:
        function(*arguments)
    assert len(str(caught.value)) < 400
    return str(caught.value)


# -- files ---------------------------------------------------------------------------


def test_plain_and_gzip_files_read_alike(tmp_path):
    (tmp_path / "plain").write_bytes(b"\xef\xbb\xbfh\xc3\xa9llo\n")
    (tmp_path / "packed").write_bytes(gzip.compress(b"h\xc3\xa9") + gzip.compress(b"llo\n"))
    assert read_text(tmp_path / "plain") == read_text(str(tmp_path / "packed")) == "h\u00e9llo\n"


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"a: 1"))))
    assert read_text("-") == "a: 1"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (gzip.compress(b"hello" * 1000, mtime=0)[:-12], "the gzip data is truncated"),
        (b"\x1f\x8b" + b"x" * 50, "the gzip data is damaged"),
        (b"a\0b", "this is a binary file"),
        (b"a\nb\xff", ":2: byte 0xff is not UTF-8"),
        ("text".encode("utf-16"), "the text is UTF-16"),
        (b"\x28\xb5\x2f\xfd....", "zstd data"),
        (b"PK\x03\x04....", "the zip data is damaged"),
        (b"\xfd7zXZ\0....", "the xz data is"),
        (b"BZh9....", "the bzip2 data is damaged"),
        (bytes(257) + b"ustar" + bytes(250), "this is a tar archive"),
    ],
)
def test_files_that_are_no_text(tmp_path, data, says):
    path = tmp_path / "input"
    path.write_bytes(data)
    message = fails(read_text, path)
    assert message.startswith(str(path))
    assert says in message


def test_files_that_cannot_be_read(tmp_path):
    assert fails(read_text, tmp_path / "none").endswith("none: no such file")
    assert "this is a directory" in fails(read_text, tmp_path)
    assert "cannot be read" in fails(read_text, "a\0b")
    assert "cannot be read" in fails(read_text, "x" * 5000)


def test_old_traces_may_be_latin_1(tmp_path):
    (tmp_path / "trace").write_bytes(b"; Universit\xe0\n")
    assert read_text(tmp_path / "trace", lenient=True) == "; Universit\u00e0\n"


def test_a_gzip_bomb_stops_at_the_limit(tmp_path):
    (tmp_path / "bomb").write_bytes(gzip.compress(b" " * 10**7))
    with pytest.raises(LimitError, match="more than 1000000 bytes"):
        read_bytes(tmp_path / "bomb", limit=10**6)


def test_a_packed_text_may_not_stand_for_hundreds_of_times_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr("simsched.formats.text.decompression.PACKED_FREELY", 10**6)
    (tmp_path / "bomb").write_bytes(gzip.compress(b" " * 10**8))
    with pytest.raises(LimitError, match="bytes"):
        read_bytes(tmp_path / "bomb")
    (tmp_path / "even").write_bytes(gzip.compress(b"core=1\n" * 10**5))
    assert len(read_bytes(tmp_path / "even")) == 7 * 10**5


def test_endless_zeros_are_refused_at_their_beginning(tmp_path):
    (tmp_path / "zeros").write_bytes(gzip.compress(bytes(10**8)))
    assert "binary file" in fails(read_text, "/dev/zero")
    assert "binary file" in fails(read_text, tmp_path / "zeros")


# -- JSON ----------------------------------------------------------------------------


@given(values)
def test_json_reads_what_the_standard_library_reads(value):
    text = json.dumps(value)
    assert load_json(text) == load_document(text) == value
    assert decode_json_bulk(text) == msgspec.json.decode(text)


#: Python has words of its own for this fault since 3.13
TRAILING_COMMA = (
    "f:1:4: not JSON: found ']'"
    if sys.version_info < (3, 13)
    else "f:1:3: not JSON: illegal trailing comma before end of array"
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "f: the document is empty"),
        ('{"a":1,"a":2}', "f:1:8: key 'a' occurs twice in one object"),
        ('{"a":{"b":1,\n"c":[{"x":1,"x":2}]}}', "f:2:13: key 'x' occurs twice"),
        ("[NaN]", "f:1:2: NaN is not a number in JSON"),
        ('["NaN", -Infinity]', "f:1:9: -Infinity is not a number"),
        ("[1e999]", "f:1:2: 1e999 is not a number"),
        ("[1,]", TRAILING_COMMA),
        ('{"a" 1}', "f:1:6: not JSON: found '1}' (expected ':' delimiter)"),
        ("[1] x", "f:1:5: 'x' follows the JSON document"),
        ("{\u201ca\u201d:1}", "f:1:2: a typographic quotation mark"),
        ("[" + "9" * 5000 + "]", "f:1:2: the number has too many digits"),
        ('"\\ud800"', "f:1:2: half of a surrogate pair"),
        ("\n[" + "[" * 10**5, "f:2:201: nested deeper than 200 levels"),
        ("[" * 10**5 + "]" * 10**5, "f:1:201: nested deeper than 200 levels"),
        ('{"a":' * 10**5, "f:1:1001: nested deeper than 200 levels"),
        ("[" * 201 + "]" * 201, "f:1:201: nested deeper than 200 levels"),
        ('["' + "[" * 300 + '", ' + "[" * 200 + "]" * 200 + "]", "f:1:505: nested deeper"),
        ('"\n"', "f:1:2: not JSON: invalid control character"),
    ],
)
def test_strict_json_says_what_is_wrong_and_where(text, says):
    assert says in fails(load_json, text, "f")


def test_depth_counts_nesting_and_not_brackets():
    assert load_json("[" * 200 + "]" * 200)
    assert len(load_json("[" + ",".join(["[{}]"] * 1000) + "]")) == 1000
    assert load_json('["' + "[" * 300 + '"]') == ["[" * 300]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a":1,', "f:1:8: not JSON: found the end"),
        ('{\n"a":NaN}', "f:2:5: NaN is not a number in JSON"),
        ("[" * 10**5, "nested deeper than 200 levels"),
    ],
)
def test_bulk_json_says_what_is_wrong_and_where(text, says):
    assert says in fails(decode_json_bulk, text, "f")


def test_bulk_json_decodes_into_a_type():
    class Point(msgspec.Struct):
        x: int

    assert decode_json_bulk('[{"x": 1}]', kind=list[Point]) == [Point(1)]
    with pytest.raises(FormatError, match=r"^f: expected `int`, got `str` at \$\[0\]\.x$"):
        decode_json_bulk('[{"x": "1"}]', "f", kind=list[Point])


# -- YAML ----------------------------------------------------------------------------


@given(values)
def test_yaml_reads_json_as_json(value):
    """A JSON document is a YAML document with the same meaning."""
    text = json.dumps(value, ensure_ascii=False)
    assert load_yaml(text) == value


@given(values)
def test_yaml_reads_what_pyyaml_writes(value):
    """PyYAML quotes what its own reader takes for something else: all but 1e3, a number to YAML 1.2 alone."""
    assume(not re.search(r"\d[eE][-+]?\d", json.dumps(value)))
    got = load_yaml(yaml.safe_dump(value, allow_unicode=True))
    assert got == value or (isinstance(value, float) and math.isclose(got, value))


def test_no_text_silently_becomes_another_value():
    assert load_yaml(
        "[yes, No, on, y, 010, 0x1F, 0o7, 1_000, 22:22, 1:30:00, 2024-01-01, '5', =, 1.2.3]"
    ) == [
        "yes",
        "No",
        "on",
        "y",
        "010",
        "0x1F",
        "0o7",
        "1_000",
        "22:22",
        "1:30:00",
        "2024-01-01",
        "5",
        "=",
        "1.2.3",
    ]
    assert load_yaml("[1e3, +5, .5, 1., -0, True, FALSE, ~, null, Null, !!str 5, !!float 3, !!int 3]") == [
        1000.0, 5, 0.5, 1.0, 0, True, False, None, None, None, "5", 3.0, 3,
    ]  # fmt: skip
    assert load_yaml("1: a\nyes: b\nnull:\n") == {"1": "a", "yes": "b", "null": None}


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("yes", "write true for the boolean"),
        ("Off", "write false for the boolean"),
        ("010", "write 10, or 8 if octal was meant"),
        ("089", "write 89"),
        ("0x1F", "write the number in decimal digits"),
        ("22:22", "not a number in base 60"),
        ("1_000", "write 1000"),
        ("5", "write it without them for the number"),
        ("abc", None),
        ("", None),
        (5, None),
        ("9" * 50, None),
    ],
)
def test_hints_name_the_trap(value, hint):
    got = yaml_hint(value)
    assert got is None if hint is None else hint in got


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 9) + "]" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "f: the document is empty"),
        ("# only a comment", "f: the document is empty"),
        ("a: 1\nb:\n  c: 1\n  c: 2", "f:4:3: key 'c' occurs twice in one mapping"),
        ("{a: 1, 'a': 2}", "f:1:8: key 'a' occurs twice"),
        ("a: .inf", "f:1:4: .inf is not a finite number"),
        ("a: -.Inf", "is not a finite number"),
        ("a: .nan", "f:1:4: .nan is not a finite number"),
        ("a: 1e999", "f:1:4: 1e999 is too large"),
        ("a: " + "9" * 500, "f:1:4: the number has too many digits"),
        (bomb(30), "aliases expand to more than 100000 nodes"),
        ("a: &x [*x]", "f:1:8: alias *x refers to itself"),
        ("a: *y", "f:1:4: alias *y has no anchor"),
        ("[" * 10**5, "f:1:201: nested deeper than 200 levels"),
        ("- " * 10**5, "f:1:401: nested deeper than 200 levels"),
        ("[a: b: " + "[" * 10**4, "f:1:6: not YAML"),  # the first fault, though a parser may look ahead
        ("a:\n\tb: 1", "f:2:1: not YAML: a tab in the indentation"),
        ("a: b: c", "f:1:5: not YAML"),
        ("a: 'unclosed", "not YAML"),
        ("a: \x01", "f:1:4: not YAML: the control character '\\x01'"),
        ("a: \ud800", "f:1:4: not YAML: the control character '\\ud800'"),
        ("{[1]: 2}", "f:1:2: a key is not a string"),
        ("&k a: 1\n? *k\n: 2", "f:2:3: a key is an alias"),
        ("a: !!python/object:os.system x", "f:1:4: tag 'python/object:os.system' is not one of JSON's"),
        ("a: !!int x", "f:1:4: 'x' is not of the type int"),
        ("a: !!set {b}", "f:1:4: tag"),
        ("a: !!binary aGk=", "f:1:4: tag 'binary'"),
        ("a: 1\n---\nb: 2", "f: the text has more than one document"),
        ("<<: 3", "'<<' merges something that is not a mapping"),
        ("@a", "not YAML"),
    ],
)
def test_strict_yaml_says_what_is_wrong_and_where(text, says):
    before = time.process_time()
    assert says in fails(load_yaml, text, "f")
    assert time.process_time() - before < 20  # a quadratic reader takes minutes


def test_anchors_and_merges_work_within_reason():
    text = "base: &b {x: 1, y: 2}\nc:\n  <<: *b\n  y: 3\nd:\n  <<: [{x: 9}, *b]\ne: *b"
    assert load_yaml(text) == {
        "base": {"x": 1, "y": 2}, "c": {"x": 1, "y": 3}, "d": {"x": 9, "y": 2}, "e": {"x": 1, "y": 2}
    }  # fmt: skip


def test_a_merge_key_in_quotes_is_a_key():
    assert load_yaml("'<<': 1") == {"<<": 1}


def test_a_text_may_hold_several_documents():
    assert load_yaml_all("a: 1\n---\n- 2\n...\n") == [{"a": 1}, [2]]
    assert load_yaml_all("") == []
    assert load_document("{a: [1, yes]}") == {"a": [1, "yes"]}
    assert "f:1:7: not JSON" in fails(load_document, '{"a": }', "f")


# -- places --------------------------------------------------------------------------


def paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from paths(inner, (*path, position))


def at(value, path):
    for step in path:
        value = value[step]
    return value


@given(values, st.sampled_from([None, 1]))
def test_every_json_value_is_found_where_it_is_written(value, indent):
    text = json.dumps(value, indent=indent)
    lines = text.split("\n")
    spots = Locations.of(text)
    for path in paths(value):
        line, column = spots.value(path)
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        assert json.JSONDecoder().raw_decode(rest)[0] == at(value, path)
        if path and isinstance(path[-1], str):
            line, column = spots.key(path)
            assert lines[line - 1][column - 1 :].startswith(json.dumps(path[-1]))


@given(values)
def test_every_yaml_value_is_found_where_json_is_written(value):
    """The same text, read as YAML, has the same places."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    spots, same = Locations.of(text), Locations.of("# YAML\n" + text)
    for path in paths(value):
        line, column = spots.value(path)
        assert same.value(path) == (line + 1, column)
        line, column = spots.key(path)
        assert same.key(path) == (line + 1, column)


def test_places_in_block_yaml():
    text = "version: 1\nresources:\n  - type: slot\n    with:\n      - {type: core, count: x}\n"
    spots = Locations.of(text)
    assert spots.value("resources[0].with[0].count") == (5, 29)
    assert spots.key(("resources", 0, "with", 0, "count")) == (5, 22)
    assert spots.value("resources[0].label") == (3, 5)
    assert spots.value("nothing.here") == (1, 1)
    assert Locations.of("a: 1\n---\nb:\n  c: 2", document=1).value("b.c") == (4, 6)
    assert Locations.of("a: 1\nb: [").value("a") == (1, 4)


def test_a_flow_mapping_with_an_escape_that_json_has_not():
    assert Locations.of('{a: 1, "\\x41": 2}').key(("A",)) == (1, 8)


@given(st.lists(words.filter(bool) | st.integers(0, 99)))
def test_paths_have_a_text_form(path):
    assert parse_path(format_path(path)) == tuple(path)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"a": 1}', "json"),
        ("[1,\n2]", "json"),
        ('{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("a: 1", "yaml"),
        ("# comment\n\nresources:\n", "yaml"),
        ("- 1", "yaml"),
        ("---\n5", "yaml"),
        ("\n <Job/>", "xml"),
        ("; Version: 2.2\n1 2 3", "text"),
        ("1 2 3", "text"),
        ("JobIDRaw|Submit\n", "text"),
        ("slot=4/core", "text"),
        ("", "text"),
    ],
)
def test_kinds_are_told_by_content(text, kind):
    assert detect_kind(text) == kind


def test_excerpts_are_short():
    assert len(clip("x" * 10**6)) <= 60
