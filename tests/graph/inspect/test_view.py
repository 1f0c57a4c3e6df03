"""Counts, folded trees and predicates: what people see of a cluster."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ConfigError, SimschedError
from simsched.graph.build import assemble
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.cluster import load_cluster
from simsched.graph.inspect.dot import svg
from simsched.graph.inspect.fold import APART, SIBLINGS, fold
from simsched.graph.inspect.view import find, subsystem_view, summary, tree_lines
from simsched.graph.pool import numbered
from simsched.graph.resource_graph import children


def test_the_tree_of_tiny():
    assert list(tree_lines(load_cluster("tiny").graph)) == [
        "cluster  cluster0",
        "├─ 2 × node  node[0-1]  {batch}",
        "│  └─ core  4  [0-3]",
        "├─ node  node2  {debug, amd-mi50@gpu}",
        "│  ├─ core  4  [0-3]",
        "│  └─ gpu  2  [0-1]  {amd-mi50}",
        "└─ node  node3  {batch, amd-mi50@gpu}",
        "   ├─ core  4  [0-3]",
        "   └─ gpu  2  [0-1]  {amd-mi50}",
    ]


def test_like_subtrees_are_one_and_names_are_those_of_all():
    graph = load_cluster("fattree").graph
    assert list(tree_lines(graph, depth=2)) == [
        "cluster  cluster0",
        "└─ 16 × rack  rack[0-15]",
        "   └─ 16 × node  node[0-255]",
    ]
    assert list(tree_lines(graph, "network")) == [
        "fabric  fabric0",
        "└─ 2 × spine  spine[0-1]",
        "   └─ 4 × pod  pod[0-3]",
        "      └─ 4 × switch  switch[0-15]",
        "         └─ 16 × node  node[0-255]",
    ]


def test_a_down_node_is_not_like_the_others_and_apart_shows_all(machine):
    lines = list(tree_lines(machine.graph))
    assert any("fat2  (drained)" in line for line in lines)
    assert len(list(tree_lines(machine.graph, apart=True))) > 2 * len(lines)


def test_three_ways_to_fold_a_network():
    graph = load_cluster("fattree").graph
    assert [len(fold(graph, "network", how=how)) for how in ("alike", SIBLINGS, APART)] == [
        5,
        1 + 2 + 4 + 16 + 16,
        1 + 2 + 4 + 16 + 256,
    ]


def test_the_summary_of_a_machine(machine):
    found = summary(machine.graph)
    assert found.targets == 8
    assert found.units["core"] == "112"
    assert found.units["memory"] == "2,432 GiB"
    assert found.vertices["socket"] == 12
    assert found.properties == {"batch": 6, "mi300@gpu": 6}
    assert found.statuses == {"up": 7, "drained": 1}
    assert found.subsystems == ["containment", "network", "power"]
    assert [(group.hosts, group.count, group.status) for group in found.groups] == [
        ("gpu[0-5]", 6, "up"),
        ("fat1", 1, "up"),
        ("fat2", 1, "drained"),
    ]
    assert found.groups[0].holds["gpu"] == "2"


@pytest.mark.parametrize(
    ("terms", "found"),
    [
        ("type=node status=drained", ["fat2"]),
        ("type=node -property=batch", ["fat1", "fat2"]),
        ("property=mi300", [f"gpu{n}/socket{s}/gpu" for n in range(6) for s in range(2)]),
        ("name=gpu[0,5]", ["gpu0", "gpu5"]),
        ("rank=6-7", ["fat1", "fat2"]),
        ("type=core id=31", ["fat1/core", "fat2/core"]),
        ("type=rack id=1", ["rack1"]),
        ("type=fpga", []),
        ("type=node property=batch=x", []),
    ],
)
def test_predicates_find_vertices(machine, terms, found):
    assert find(machine.graph, terms) == found


@pytest.mark.parametrize("terms", ["", "node", "colour=red", "status=asleep", "rank=x", "name=a[0-"])
def test_predicates_that_are_none(machine, terms):
    with pytest.raises(SimschedError):
        find(machine.graph, terms)


def test_a_subsystem_is_a_view_of_networkx(machine):
    view = subsystem_view(machine.graph, "network")
    assert set(view) == {
        "fabric0", "spine0", "spine1", "pod0", "pod1", *(f"switch{n}" for n in range(4)),
        *(f"gpu{n}" for n in range(6)), "fat1", "fat2",
    }  # fmt: skip
    assert nx.is_directed_acyclic_graph(view)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30))
@settings(max_examples=40)
def test_folds_partition_the_vertices_and_counts_multiply_out(parents):
    """Law: each vertex is in one fold; a fold's count times its parent's size is the edges between them."""
    keys = [str(n) for n in range(len(parents) + 1)]
    edges = [(keys[min(parent, n)], keys[n + 1]) for n, parent in enumerate(parents)]
    graph = graph_from_document(
        {
            "graph": {
                "nodes": [
                    {"id": k, "metadata": {"type": "node" if k == keys[-1] else "box", "id": 0}} for k in keys
                ],
                "edges": [{"source": a, "target": b} for a, b in edges],
            }
        }
    )
    folds = fold(graph)
    assert sorted(v for one in folds for v in one.vertices) == sorted(keys)
    for one in folds:
        for count, number in one.below:
            below = set(folds[number].vertices)
            assert all(sum(c in below for c in children(graph, v)) == count for v in one.vertices)


def test_an_unknown_subsystem_has_no_tree(small):
    assert list(tree_lines(small.graph, "power")) == []
    with pytest.raises(ConfigError, match="no subsystem 'power'"):
        svg(small.graph, "power")


@pytest.mark.slow
def test_containment_of_any_depth_is_shown_to_a_hundred_levels():
    """A line says where it goes on; whoever asks for more levels gets them."""
    graph = assemble.new_graph("deep")
    assemble.add_vertices(graph, [("0", numbered("cluster", 0))])
    levels = 3_000
    assemble.add_tree(graph, [(str(n), numbered("rack", n), str(n - 1)) for n in range(1, levels)])
    assemble.add_tree(graph, [("n", numbered("node", 0), str(levels - 1))])
    deep = assemble.finish(graph)
    lines = list(tree_lines(deep))
    assert (len(lines), lines[1], lines[100].strip()) == (102, "└─ rack  rack1", "└─ rack  rack100")
    assert lines[101].strip() == "└─ … more below rack100 at level 100: --depth N shows N levels"
    assert len(list(tree_lines(deep, depth=3))) == 4
    assert list(tree_lines(deep, depth=5_000))[-1].strip() == "└─ node  node0"
    assert summary(deep).vertices == {"cluster": 1, "rack": 2_999, "node": 1}
