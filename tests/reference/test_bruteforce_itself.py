"""The matching oracle on cases that can be settled by hand, one for each rule."""

from __future__ import annotations

import pytest

from tests.reference.bruteforce import (
    Claims,
    Graph,
    Search,
    Vertex,
    Want,
    check_selection,
    is_feasible,
    match_exists,
)


def cluster(*nodes):
    """A flat cluster; each node is (cores, gpus) or (cores, gpus, up, properties)."""
    vertices = {"cluster": Vertex("cluster", None)}
    for rank, (cores, gpus, *more) in enumerate(nodes):
        up, properties = (*more, True, ())[:2] if len(more) != 1 else (*more, ())
        name = f"n{rank}"
        vertices[name] = Vertex(
            "node", "cluster", properties=frozenset(properties), up=up, rank=rank, host=f"host{rank}"
        )
        vertices[f"{name}/core"] = Vertex("core", name, tuple(range(cores)))
        vertices[f"{name}/gpu"] = Vertex("gpu", name, tuple(range(gpus)))
    return Graph(vertices)


def want(kind, count=1, *children, x=None):
    return Want(kind, count if isinstance(count, tuple) else (count,), children, x)


def slot(count, *children):
    return want("slot", count, *children)


TWO = cluster((4, 1), (4, 0))


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ([slot(8, want("core"))], True),
        ([slot(9, want("core"))], False),
        ([slot(2, want("core", 3))], True),
        ([slot(2, want("core", 5))], False),  # a copy lies within one target
        ([slot(3, want("core", 2), want("gpu"))], False),
        ([slot(1, want("core", 4), want("gpu"))], True),
        ([want("node", 2, slot(2, want("core", 2)))], True),
        ([want("node", 3, slot(1, want("core")))], False),  # distinct vertices
        ([slot(2, want("node", 1, want("core", 4)))], True),
        ([slot(3, want("node"))], False),
        ([want("node", 1, slot(1, want("core"))), want("node", 2, x=True)], False),  # siblings compete
        ([want("node", 1, slot(1, want("core"))), want("node", 1, x=True)], True),
        ([slot(1, want("core"), want("core", 3))], True),
        ([slot(1, want("core"), want("core", 4))], False),
        ([want("core", 8), want("core", 8)], True),  # shared claims take no units
        ([want("core", 9)], False),
        ([slot(8, want("core")), want("node", 1, x=True)], False),
        ([slot(4, want("core")), want("node", 1, x=True)], True),
        ([slot((2, 9), want("core", 4))], True),  # the smallest value can be had
        ([want("cluster", 1, slot(2, want("node", 1, want("core", 2))))], True),
        ([slot(1, slot(2, want("core", 2)))], True),
        ([slot(1, slot(2, want("core", 3)))], False),
    ],
)
def test_on_two_idle_nodes(request_, answer):
    assert match_exists(TWO, request_) is answer


def first(graph, request, claims=None):
    return next(Search(graph).matches(request, claims or Claims()))


def test_claims_hold_and_shared_claims_keep_exclusive_ones_away():
    claims = Claims()
    claims.add(TWO, first(TWO, [want("node", 1)]))  # shared, first node
    assert match_exists(TWO, [slot(8, want("core"))], claims)
    assert not match_exists(TWO, [slot(2, want("node"))], claims)
    claims.add(TWO, first(TWO, [slot(5, want("core"))], claims))
    assert match_exists(TWO, [slot(3, want("core"))], claims)
    assert not match_exists(TWO, [slot(4, want("core"))], claims)
    assert not match_exists(TWO, [want("node", 1, x=True)], claims)


def test_an_exclusive_node_is_held_whole():
    claims = Claims()
    claims.add(TWO, first(TWO, [slot(1, want("node", 1, want("core")))]))
    assert match_exists(TWO, [slot(4, want("core"))], claims)
    assert not match_exists(TWO, [slot(5, want("core"))], claims)
    assert not match_exists(TWO, [want("node", 2)], claims)


def test_status_and_constraint():
    graph = cluster((4, 0, False), (4, 0, True, ("big",)))
    request = [slot(8, want("core"))]
    assert not match_exists(graph, request)
    assert is_feasible(graph, request)
    assert not is_feasible(graph, request, {"properties": ["big"]})
    assert is_feasible(graph, request, {"not": [{"properties": ["tiny"]}]})
    assert match_exists(graph, [slot(4, want("core"))], constraint={"hostlist": ["host1"]})
    assert not match_exists(graph, [slot(4, want("core"))], constraint={"ranks": ["0"]})
    assert not match_exists(graph, [slot(1, want("core"))], constraint={"not": []})


@pytest.mark.parametrize(
    ("request_", "named", "right"),
    [
        ([slot(2, want("core", 2))], {0: {"core": {0, 1}}, 1: {"core": {2, 3}}}, True),
        ([slot(2, want("core", 2))], {0: {"core": {0, 1, 2, 3}}}, True),
        ([slot(2, want("core", 2))], {0: {"core": {0}}, 1: {"core": {1, 2, 3}}}, False),
        ([slot(2, want("core", 2))], {0: {"core": {0, 1, 2}}}, False),
        ([slot(1, want("core", 1))], {0: {"core": {0, 1}}}, False),
        ([slot((1, 2), want("core", 1))], {0: {"core": {0, 1}}}, True),
        ([slot(1, want("node"))], {0: {"core": {0, 1, 2, 3}, "gpu": {0}}}, True),
        ([slot(1, want("node"))], {0: {"core": {0, 1, 2, 3}}}, False),
        ([slot(1, want("node", 1, want("core")))], {1: {"core": {3}}}, True),
        ([want("node", 1, slot(1, want("core")), x=True)], {1: {"core": {0, 1, 2, 3}}}, True),
        ([want("node", 1, slot(1, want("core")), x=True)], {1: {"core": {0}}}, False),
    ],
)
def test_what_r_may_name(request_, named, right):
    assert check_selection(TWO, request_, named) is right
