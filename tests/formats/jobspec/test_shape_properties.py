"""Shapes and jobspecs there and back: any resources list has a shape that means the same."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.formats.jobspec.fast import Reader
from simsched.formats.jobspec.jobspec import Jobspec, build_resources
from simsched.formats.jobspec.shape import format_shape, parse_shape
from simsched.formats.jobspec.validation_rules import faults_of, resources_faults
from simsched.formats.jobspec.vertex import ResourceVertex, walk
from simsched.formats.rfc.count import Count
from simsched.formats.text.diagnostics import CaretError
from simsched.formats.text.immutable import freeze
from simsched.formats.text.json_text import load_json
from simsched.formats.text.yaml_text import load_yaml, to_yaml

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
tricky = st.sampled_from(
    ["x", "-x", "+x", "true", "null", "4", "010", "1e3", "NaN", "a b", "it's", 'a"b', "a;b", "\\", "yes",
     "default", "slot", "4GB-node", "é😀", "\x85", " ", "=", "/", "{", "22:22", ""]
)  # fmt: skip
words = anything | tricky
types = (st.sampled_from(["node", "core", "gpu", "memory", "socket"]) | words).filter(
    lambda t: t not in {"", "slot"}
)
numbers = st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
counts = (
    st.integers(1, 64).map(Count.fixed)
    | st.sets(st.integers(1, 30), min_size=1, max_size=5).map(
        lambda ids: Count.parse(",".join(map(str, sorted(ids))))
    )
    | st.builds(
        lambda low, more, step: Count.range(low, None if more is None else low + more, "+", step),
        st.integers(1, 9),
        st.none() | st.integers(0, 20),
        st.integers(1, 4),
    )
    | st.sampled_from(["1+:2:*", "2-64:2:^", "3-99:3:*"]).map(Count.parse)
)
keys = words.filter(lambda k: k not in {"type", "count", "unit", "exclusive", "label", "id", "with"})


def vertices(extra):
    """A resource vertex and what is in it; labels are given afterwards."""
    common = {
        "count": counts,
        "unit": st.none() | words,
        "exclusive": st.none() | st.booleans(),
        "id": st.none() | words,
        "extra": st.dictionaries(keys, values.map(freeze), max_size=2).map(lambda d: tuple(d.items()))
        if extra
        else st.just(()),
    }
    leaf = st.builds(ResourceVertex, type=types, label=st.none() | st.just("?"), **common)

    def above(inner):
        children = st.lists(inner, min_size=1, max_size=3).map(tuple)
        return st.builds(ResourceVertex, type=types, with_=children, **common) | st.builds(
            ResourceVertex, type=st.just("slot"), label=st.just("?"), with_=children, **common
        )

    return st.recursive(leaf, above, max_leaves=6)


@st.composite
def resources(draw, *, extra=False):
    """A resources list whose labels are unique."""
    bare = draw(st.lists(vertices(extra), min_size=1, max_size=3))
    wanted = sum(v.label is not None for v in walk(bare))
    labels = draw(st.lists(words | st.just("default"), min_size=wanted, max_size=wanted, unique=True))

    def named(vertex):
        label = labels.pop() if vertex.label is not None else None
        below = tuple(named(child) for child in vertex.with_)
        return replace(vertex, label=label, with_=below)

    return tuple(named(vertex) for vertex in bare)


@pytest.mark.slow
@given(resources(extra=True))
def test_law_parse_of_to_shape_is_the_identity(some):
    shape = format_shape(some)
    assert parse_shape(shape) == some
    assert hash(parse_shape(shape)) == hash(some)


@settings(max_examples=30)
@given(resources())
def test_law_no_part_of_the_shortest_shape_can_be_left_out(some):
    """Leaving out any one character gives another request or none at all."""
    shape = format_shape(some)
    for at in range(min(len(shape), 40)):
        try:
            assert parse_shape(shape[:at] + shape[at + 1 :]) != some
        except CaretError:
            continue


@pytest.mark.slow
@settings(max_examples=50)
@given(resources())
def test_law_resources_are_the_same_through_the_document(some):
    document = [vertex.to_dict() for vertex in some]
    assert resources_faults(document) == []
    assert build_resources(document) == some
    assert build_resources(load_yaml(to_yaml(document))) == some


@given(values)
def test_law_yaml_that_we_write_reads_back_as_the_same(value):
    assert load_yaml(to_yaml(value)) == value


@st.composite
def jobspecs(draw):
    some = draw(resources().filter(lambda r: any(v.is_slot for v in walk(r))))
    job = Jobspec.from_shape(
        format_shape(some),
        duration=draw(st.none() | st.integers(0, 10**6) | st.floats(0, 1e9)),
        command=draw(st.none() | st.lists(words, min_size=1, max_size=3)),
        constraint=draw(
            st.none() | st.sampled_from(["ssd", "a and not host:n[0-3]", {"ranks": ["0-3"]}, {}])
        ),
        queue=draw(st.none() | words.filter(bool)),
        name=draw(st.none() | words),
    )
    more = draw(st.dictionaries(keys, values, max_size=2))
    job = job.with_system(environment={"A": "b", "C": None}) if draw(st.booleans()) else job
    document = job.to_dict()
    if draw(st.booleans()):
        document["attributes"]["user"] = more
    return document


@settings(max_examples=30)
@given(jobspecs())
def test_law_a_jobspec_is_the_same_through_its_document(document):
    job = Jobspec.from_dict(document)
    assert job.to_dict() == document
    assert Jobspec.from_dict(load_json(json_of(document))) == job
    assert Jobspec.from_dict(load_yaml(to_yaml(document))) == job
    assert pickle.loads(pickle.dumps(job)) == job
    assert hash(Jobspec.from_dict(document)) == hash(job)


@pytest.mark.slow
@settings(max_examples=30)
@given(jobspecs())
def test_law_rules_schema_and_quick_reader_agree_on_what_is_valid(document):
    assert faults_of(document) == []
    text = json_of(document).encode()
    quick = Reader().read(text)
    assert quick is None or quick == Jobspec.from_dict(document)
    assert quick is not None or b'" :' in text
    assert Reader().passes(text) == (quick is not None)
    assert Reader().passes(text, v1=None) == (quick is not None)
    if quick is not None:
        v1 = json_of(document | {"version": 1}).encode()
        assert Reader().passes(v1, v1=True) == (not faults_of(document | {"version": 1}, v1=True))
    if document["version"] == 1:
        assert faults_of(document, v1=True) == []
        assert Jobspec.from_dict(document).to_v1().version == 1


def json_of(value):
    import json

    return json.dumps(value)
