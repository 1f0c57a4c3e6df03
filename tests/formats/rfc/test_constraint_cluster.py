"""RFC 31's examples and readings R4 and R5, evaluated on bundled clusters."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.formats.rfc.constraint import (
    And,
    Hosts,
    Not,
    Or,
    Properties,
    Ranks,
    from_json,
    parse_constraint,
)
from simsched.graph.cluster import load_cluster

#: the bundled cluster `tiny`: node[0-3]; batch on ranks 0, 1, 3; debug on 2
TINY = {0: {"batch"}, 1: {"batch"}, 2: {"debug"}, 3: {"batch"}}


@pytest.fixture(scope="module")
def index():
    """The compiled arrays of the bundled cluster `tiny`."""
    return load_cluster("tiny").index


def ranks(index, constraint):
    """The ranks of the targets that satisfy a constraint."""
    row = index.targets_matching(constraint)
    return [int(rank) for rank, good in zip(index.ranks, row, strict=True) if good]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"properties": ["batch"]}, [0, 1, 3]),  # have a property
        ({"properties": ["^debug"]}, [0, 1, 3]),  # must not have one
        ({"not": [{"properties": ["debug"]}]}, [0, 1, 3]),
        ({"or": [{"properties": ["batch"]}, {"properties": ["debug"]}]}, [0, 1, 2, 3]),
        ({"hostlist": ["node[0-1]"]}, [0, 1]),
        ({"not": [{"hostlist": ["node[0-1]"]}]}, [2, 3]),
        ({"and": [{"hostlist": ["node[1-2]"]}, {"properties": ["batch"]}]}, [1]),
        ({"ranks": ["0"]}, [0]),
        ({"ranks": ["0-1", "3"]}, [0, 1, 3]),
        ({"properties": ["batch", "^debug"]}, [0, 1, 3]),
        ({"properties": ["gone"]}, []),
        ({"properties": ["^gone"]}, [0, 1, 2, 3]),
        ({"hostlist": ["elsewhere"]}, []),
        ({}, [0, 1, 2, 3]),  # R4, all empty forms
        ({"and": []}, [0, 1, 2, 3]),
        ({"or": []}, [0, 1, 2, 3]),
        ({"not": []}, []),
        ({"properties": []}, [0, 1, 2, 3]),
        ({"hostlist": []}, [0, 1, 2, 3]),
        ({"ranks": []}, [0, 1, 2, 3]),
        ({"not": [{"or": []}]}, []),
        ({"not": [{"properties": ["batch"]}, {"ranks": ["0-1"]}]}, [2, 3]),  # R4: not of all of them
        ({"not": [{"properties": ["batch", "debug"]}]}, [0, 1, 2, 3]),  # R5: and-ed first
    ],
)
def test_documents(index, document, expected):
    assert ranks(index, from_json(document)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("batch and not host:node[0-1]", [3]),
        ("batch -rank:0", [1, 3]),
        ("debug|rank:0", [0, 2]),
        ("not (batch or debug)", []),
        ("()", [0, 1, 2, 3]),
    ],
)
def test_texts(index, text, expected):
    assert ranks(index, parse_constraint(text)) == expected


leaves = st.sampled_from(
    ["batch", "debug", "^batch", "gone", "host:node[1-2]", "host:node3", "rank:0,2", "rank:9"]
)
trees = st.recursive(
    leaves.map(parse_constraint),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda args: And(tuple(args))),
        st.lists(inner, min_size=1, max_size=3).map(lambda args: Or(tuple(args))),
        inner.map(Not),
    ),
    max_leaves=8,
)


def holds(constraint, rank):
    """The meaning of a tree for one target of `tiny`."""
    match constraint:
        case Properties(names):
            return TINY[rank].issuperset(names)
        case Hosts(hostlist):
            return f"node{rank}" in hostlist
        case Ranks(idset):
            return rank in idset
        case And(args):
            return all(holds(arg, rank) for arg in args)
        case Or(args):
            return any(holds(arg, rank) for arg in args)
        case Not(arg):
            return not holds(arg, rank)
    return constraint.value


@settings(max_examples=60)
@given(trees)
def test_law_the_vectorised_evaluation_is_the_target_by_target_one(tree):
    """A constraint that went through its text selects the same targets."""
    index = load_cluster("tiny").index
    expected = [rank for rank in TINY if holds(tree, rank)]
    assert ranks(index, tree) == expected
    assert ranks(index, parse_constraint(str(tree))) == expected


def test_a_large_cluster_is_one_vector_operation():
    index = load_cluster("big9400").index
    row = index.targets_matching(parse_constraint("rank:0-99 and not rank:50-99"))
    assert int(row.sum()) == 50
    assert row.dtype == bool
