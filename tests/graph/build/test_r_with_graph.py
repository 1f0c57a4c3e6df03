"""R with a graph beside it: hosts, ranks and properties of R on the vertices of JGF."""

import pytest

from simsched.errors import SimschedError
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.cluster import Cluster, load_cluster
from simsched.graph.resource_graph import children, execution_targets, pool_of
from simsched.graph.write.documents_of import to_document


def jgf(*nodes, edges):
    return {
        "nodes": [{"id": key, "metadata": {"type": kind, **rest}} for key, kind, rest in nodes],
        "edges": [{"source": a, "target": b} for a, b in edges],
    }


def both(graph, lite, hosts, **scheduling):
    return {
        "version": 1,
        "execution": {"R_lite": lite, "nodelist": hosts, "properties": {"fast": "0", "mi50@gpu": "0"}},
        "scheduling": {**scheduling, "graph": graph},
    }


FULL = jgf(
    ("0", "cluster", {}),
    ("1", "node", {"name": "a", "rank": 0}),
    ("2", "core", {"id": 0, "rank": 0}),
    ("3", "gpu", {"id": 0, "rank": 0}),
    edges=[("0", "1"), ("1", "2"), ("1", "3")],
)
LITE = [{"rank": "0", "children": {"core": "0", "gpu": "0"}}]


def test_properties_of_r_are_on_targets_and_by_suffix_on_their_children():
    graph = graph_from_document(both(FULL, LITE, ["a"]))
    assert set(pool_of(graph, "1").properties) == {"fast", "mi50@gpu"}
    assert set(pool_of(graph, "3").properties) == {"mi50"}


def test_a_nested_instance_has_ranks_of_its_own():
    graph = jgf(
        ("0", "cluster", {}),
        ("1", "node", {"name": "n8", "rank": 8}),
        ("2", "core", {"id": 0, "rank": 8}),
        ("3", "node", {"name": "n7", "rank": 7}),
        edges=[("0", "1"), ("1", "2"), ("0", "3")],
    )
    lite = [{"rank": "0", "children": {}}, {"rank": "1", "children": {"core": "0"}}]
    found = graph_from_document(both(graph, lite, ["n7", "n8"]))
    assert [(pool_of(found, key).name, pool_of(found, key).rank) for key in execution_targets(found)] == [
        ("n8", 1),
        ("n7", 0),
    ]
    assert pool_of(found, "2").rank == 1


def test_what_shorthand_leaves_out_is_filled_in_from_r_lite():
    graph = jgf(
        ("0", "cluster", {}),
        ("1", "node", {"name": "a", "rank": 0, "exclusive": True}),
        ("2", "node", {"name": "b", "rank": 1}),
        ("3", "socket", {"id": 0, "rank": 1, "exclusive": True}),
        ("4", "core", {"id": 9, "rank": 1}),
        edges=[("0", "1"), ("0", "2"), ("2", "3"), ("2", "4")],
    )
    lite = [
        {"rank": "0", "children": {"core": "0-3", "gpu": "0"}},
        {"rank": "1", "children": {"core": "4-7,9"}},
    ]
    found = graph_from_document(both(graph, lite, ["a", "b"], writer="fluxion:jgf_shorthand"))
    assert children(found, "1") == ["1/core", "1/gpu"]
    assert str(pool_of(found, "3/core").ids) == "4-7"
    assert to_document(found, "r")["execution"]["R_lite"] == lite


@pytest.mark.parametrize(
    ("graph", "lite", "hosts", "fault"),
    [
        (FULL, [{"rank": "0-1", "children": {}}], ["a", "b"], r"no vertex has rank 1 \(b\)"),
        (
            jgf(("1", "node", {"name": "x", "rank": 3}), edges=[]),
            LITE,
            ["a"],
            r"scheduling.graph: vertex '1': rank 3 \(x\) is not in R_lite",
        ),
        (FULL, LITE, ["a", "b"], "hosts"),
        (FULL, LITE, [], "nodelist|hosts"),
    ],
)
def test_the_two_have_to_speak_of_the_same_targets(graph, lite, hosts, fault):
    document = both(graph, lite, hosts)
    with pytest.raises(SimschedError, match=fault):
        graph_from_document(document)


def within(*inner):
    """The graph of one node `a` that holds these."""
    nodes = [("0", "cluster", {}), ("1", "node", {"name": "a", "rank": 0})]
    held = [(str(number), kind, rest) for number, (kind, rest) in enumerate(inner, 2)]
    return jgf(*nodes, *held, edges=[("0", "1"), *(("1", key) for key, _, _ in held)])


@pytest.mark.parametrize(
    ("graph", "named", "fault"),
    [
        (
            FULL,
            {"core": "0-3"},
            "R_lite names core 1-3 on rank 0 (a) (expected the units of the graph: core 0)",
        ),
        (
            within(("core", {"id": 4}), ("core", {"id": 5})),
            {"core": "0-1"},
            "R_lite names core 0-1 on rank 0 (a) (expected the units of the graph: core 4-5)",
        ),
        (
            within(("gpu", {"id": 0})),
            {"core": "0-1"},
            "R_lite names core 0-1 on rank 0 (a) (expected no more core than the graph has)",
        ),
        (
            within(("core", {"size": 4, "id": -1})),
            {"core": "0-4"},
            "R_lite names 5 core where there are 4 on rank 0 (a) (expected no more core than the graph has)",
        ),
    ],
)
def test_units_of_r_lite_that_the_graph_lacks_are_refused(graph, named, fault):
    with pytest.raises(SimschedError) as caught:
        graph_from_document(both(graph, [{"rank": "0", "children": named}], ["a"]))
    assert str(caught.value) == f"scheduling.graph: vertex '1': {fault}"


@pytest.mark.parametrize(
    "inner",
    [
        [("core", {"id": 0}), ("core", {"id": 0})],  # numbered anew in each socket
        [("core", {"size": 2, "id": -1})],
        [("core", {"id": 0}), ("core", {"id": 1}), ("core", {"id": 2})],  # R_lite may leave some out
    ],
)
def test_units_without_ids_of_their_own_are_told_by_their_number(inner):
    graph = graph_from_document(both(within(*inner), [{"rank": "0", "children": {"core": "0-1"}}], ["a"]))
    assert execution_targets(graph) == ["1"]


def test_an_unknown_writer_is_named():
    document = {
        "version": 1,
        "execution": {"R_lite": LITE, "nodelist": ["a"]},
        "scheduling": {"writer": "Mystery"},
    }
    with pytest.raises(
        SimschedError, match=r"scheduling.writer: unknown writer 'Mystery' \(expected TreePool or"
    ):
        graph_from_document(document)


def test_scheduling_alone_is_enough():
    graph = graph_from_document({"version": 1, "scheduling": {"graph": FULL}})
    assert execution_targets(graph) == ["1"]


def test_a_shorthand_graph_is_no_longer_one_when_it_is_written(small):
    document = to_document(small.graph, "r+jgf", dialect="fluxion")
    document["scheduling"]["writer"] = "fluxion:jgf_shorthand"
    again = to_document(graph_from_document(document), "r+jgf", dialect="fluxion")
    assert "writer" not in again["scheduling"]
    assert again["execution"] == document["execution"]


def test_two_brokers_on_one_host(tmp_path):
    """R may name a host for several ranks, with a graph beside it as well as alone."""
    lite = [{"rank": "0-2", "children": {"core": "0-3"}}]
    alone = {"version": 1, "execution": {"R_lite": lite, "nodelist": ["n0,n0,n1"]}}
    Cluster(graph_from_document(alone)).save(tmp_path / "r.json", "r+jgf")
    assert load_cluster(tmp_path / "r.json").to_dict("r")["execution"] == {
        "R_lite": lite,
        "nodelist": ["n[0,0-1]"],
    }
