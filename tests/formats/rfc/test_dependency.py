"""RFC 26 dependencies, in both of their forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import FormatError
from simsched.formats.rfc.dependency import Dependency

words = st.text(alphabet="abcƒ123-_.", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("afterany:ƒ2oLkTLb", {"scheme": "afterany", "value": "ƒ2oLkTLb"}),
        ("string:foo?type=out", {"scheme": "string", "value": "foo", "type": "out"}),
        ("fluid:hungry-hippos-white-elephant", {"scheme": "fluid", "value": "hungry-hippos-white-elephant"}),
        ("string:foo?type=inout&scope=user",
         {"scheme": "string", "value": "foo", "type": "inout", "scope": "user"}),
        ("string:foo?type=in;scope=global",
         {"scheme": "string", "value": "foo", "type": "in", "scope": "global"}),
        ("begin-time:1700000000.5", {"scheme": "begin-time", "value": "1700000000.5"}),
        ("after:12", {"scheme": "after", "value": "12"}),
        ("our-own:a:b?k=v=w", {"scheme": "our-own", "value": "a:b", "k": "v=w"}),
    ],
)  # fmt: skip
def test_the_command_line_form_becomes_the_object(text, document):
    dependency = Dependency.parse(text)
    assert dependency.to_json() == document
    assert Dependency.from_json(document) == dependency
    assert hash(Dependency.from_json(document)) == hash(dependency)


@given(words, words, st.dictionaries(words.filter(lambda w: w not in {"type", "scope"}), words, max_size=3))
def test_law_text_and_object_round_trip(scheme, value, params):
    """RFC 26: scheme:value[?key=val[&key=val...]]."""
    if scheme == "begin-time" or {"scheme", "value"} & set(params):
        return
    document = {"scheme": scheme, "value": value, **params}
    dependency = Dependency.from_json(document)
    assert dependency.to_json() == document
    assert Dependency.parse(str(dependency)) == dependency


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a dependency"),
        ("afterok", "not a dependency"),
        (":1", "scheme is missing"),
        ("afterok:", "value is missing"),
        ("string:foo?type=sideways", "'sideways' is not a type"),
        ("fluid:x?scope=planet", "'planet' is not a scope"),
        ("afterok:1?", "not a new key with a value"),
        ("afterok:1?a", "not a new key with a value"),
        ("afterok:1?=b", "not a new key with a value"),
        ("afterok:1?a=b&a=c", "not a new key with a value"),
        ("afterok:1?value=2", "not a new key with a value"),
        ("begin-time:soon", "'soon' is not a time"),
        ("begin-time:-4", "not a time"),
        ("begin-time:nan", "not a time"),
        ("begin-time:1e99", "not a time"),
    ],
)
def test_faulty_texts(text, words):
    with pytest.raises(FormatError, match=words):
        Dependency.parse(text)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("afterok:1", "d"),
        ({"value": "1"}, "d.scheme"),
        ({"scheme": 4, "value": "1"}, "d.scheme"),
        ({"scheme": "afterok"}, "d.value"),
        ({"scheme": "afterok", "value": None}, "d.value"),
        ({"scheme": "afterok", "value": True}, "d.value"),
        ({"scheme": "afterok", "value": 1}, "d.value"),
        ({"scheme": "string", "value": "x", "type": 4}, "d.type"),
    ],
)
def test_faulty_objects(value, where):
    with pytest.raises(FormatError) as caught:
        Dependency.from_json(value, "d")
    assert caught.value.where == where
