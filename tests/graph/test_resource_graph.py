"""Containment is one tree, its root is noted, targets are in order, and the rest is networkx."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import ClusterError
from simsched.graph import resource_graph as rg
from simsched.graph.build import assemble
from simsched.graph.pool import numbered


def built(edges, ranks=(), types=None):
    """A graph of the vertices that `edges` name; those called n… are nodes."""
    graph = assemble.new_graph("test")
    names = list(dict.fromkeys(end for edge in edges for end in edge[:2]))
    types = types or {}
    assemble.add_vertices(
        graph,
        [
            (
                name,
                numbered(
                    types.get(name, "node" if name[0] == "n" else "rack"),
                    basename=name,
                    rank=dict(ranks).get(name),
                ),
            )
            for name in names
        ],
    )
    for source, target, *rest in edges:
        assemble.add_edge(graph, source, target, *(rest or ["containment", "contains"]))
    return assemble.finish(graph)


def test_a_tree_has_a_root_paths_and_targets_in_preorder():
    graph = built([("c", "r1"), ("c", "r0"), ("r0", "n2"), ("r1", "n0"), ("r1", "n1")])
    assert rg.containment_root(graph) == "c"
    assert rg.execution_targets(graph) == ["n0", "n1", "n2"]
    assert [rg.pool_of(graph, key).rank for key in ("n0", "n1", "n2")] == [0, 1, 2]
    assert rg.subsystem_paths(graph)["n2"] == "/c/r0/n2"
    assert list(rg.walk(graph)) == [("c", 0), ("r1", 1), ("n0", 2), ("n1", 2), ("r0", 1), ("n2", 2)]


def test_the_graph_is_frozen_and_networkx_algorithms_work_on_it():
    graph = built([("c", "r0"), ("r0", "n0"), ("r0", "n1")])
    with pytest.raises(nx.NetworkXError, match=r"[Ff]rozen"):
        graph.add_node("more")
    assert nx.is_arborescence(nx.DiGraph(graph))
    assert nx.shortest_path(graph, "c", "n1") == ["c", "r0", "n1"]
    assert nx.descendants(graph, "r0") == {"n0", "n1"}


def test_ranks_that_are_there_stay_and_missing_ones_follow():
    graph = built([("c", "n0"), ("c", "n1"), ("c", "n2")], ranks=[("n1", 5)])
    assert [rg.pool_of(graph, key).rank for key in ("n0", "n1", "n2")] == [6, 5, 7]


def test_without_nodes_the_topmost_vertices_with_a_rank_are_targets():
    graph = built([("c", "b0"), ("b0", "x"), ("c", "b1")], ranks=[("b0", 0), ("x", 0), ("b1", 1)])
    assert rg.execution_targets(graph) == ["b0", "b1"]


@pytest.mark.parametrize(
    ("edges", "fault"),
    [
        ([("c", "n0"), ("d", "n0")], "two parents in containment: 'c' and 'd'"),
        ([("c", "n0"), ("d", "n1")], "containment has 2 roots: 'c', 'd'"),
        ([("a", "n0"), ("n0", "a")], "containment has no root: a -> n0 -> a"),
        ([("c", "n0"), ("x", "y"), ("y", "z"), ("z", "x")], "a cycle in containment: .* -> "),
        ([("c", "c")], "no root"),
        (
            [("c", "n0"), ("s", "t", "net", "x"), ("t", "s", "net", "x")],
            "a cycle in subsystem 'net': . -> . -> .",
        ),
        ([("c", "r0")], "it has no execution target"),
        ([("c", "n0"), ("c", "n0")], "two edges of subsystem 'containment'"),
    ],
)
def test_what_is_no_tree_is_refused_by_name(edges, fault):
    with pytest.raises(ClusterError, match=fault):
        built(edges)


def test_two_targets_of_one_rank_are_refused():
    with pytest.raises(ClusterError, match="vertex 'n1': rank 3 is taken by 'n0'"):
        built([("c", "n0"), ("c", "n1")], ranks=[("n0", 3), ("n1", 3)])


def test_an_empty_graph_an_unknown_end_and_a_key_twice_are_refused():
    with pytest.raises(ClusterError, match="empty"):
        assemble.finish(assemble.new_graph("nothing"))
    graph = assemble.new_graph("g")
    assemble.add_vertices(graph, [("a", numbered("node"))])
    with pytest.raises(ClusterError, match="no vertex has the id 'b'"):
        assemble.add_edge(graph, "a", "b", "containment", "contains")
    with pytest.raises(ClusterError, match="vertex 'a': two vertices have this id"):
        assemble.add_vertices(graph, [("a", numbered("node"))])


def test_other_subsystems_have_their_own_vertices_paths_and_reverse_edges():
    graph = built(
        [
            ("c", "n0"),
            ("c", "n1"),
            ("n0", "c", "containment", "in"),
            ("switch", "n0", "network", "conduit-of"),
            ("switch", "n1", "network", "conduit-of"),
        ]
    )
    assert rg.subsystems(graph) == ["containment", "network"]
    assert rg.children(graph, "switch", "network") == ["n0", "n1"]
    assert rg.parents(graph, "n1", "network") == ["switch"]
    assert rg.dominating(graph, "n1") == ["c", "switch"]
    assert rg.paths_by_subsystem(graph)["network"] == {
        "switch": "/switch",
        "n0": "/switch/n0",
        "n1": "/switch/n1",
    }


def test_a_deep_chain_is_no_problem():
    edges = [(f"r{n}", f"r{n + 1}") for n in range(5000)] + [("r5000", "n0")]
    assert rg.execution_targets(built(edges)) == ["n0"]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.data())
def test_filling_networkx_tables_is_what_its_own_methods_do(parents, data):
    """Law: add_vertices, add_contained and add_edges build what add_node and add_edge build."""
    keys = [f"v{n}" for n in range(len(parents) + 1)]
    pools = [(key, numbered("node")) for key in keys]
    tree = [(keys[min(parent, n)], keys[n + 1]) for n, parent in enumerate(parents)]
    ends = st.sampled_from(keys)
    others = data.draw(st.lists(st.tuples(ends, ends, st.sampled_from(["a", "b"])), max_size=10, unique=True))
    ours = assemble.new_graph("g")
    assemble.add_vertices(ours, pools)
    assemble.add_contained(ours, tree)
    assemble.add_edges(ours, ((u, v, s, {"relationship": "serves"}) for u, v, s in others))
    theirs = nx.MultiDiGraph(name="g")
    for key, pool in pools:
        theirs.add_node(key, pool=pool)
    for above, child in tree:
        theirs.add_edge(above, child, "containment", relationship="contains")
    for source, target, subsystem in others:
        theirs.add_edge(source, target, subsystem, relationship="serves")
    assert nx.utils.graphs_equal(ours, theirs)
    assert list(ours.edges(keys=True)) == list(theirs.edges(keys=True))
    assert nx.utils.graphs_equal(ours.reverse(), theirs.reverse())


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [
        ([(10**15, "TB")] * 2, True),
        ([(10**15, "TB"), (5, "GB")], False),
        ([(10**15, "")] * 3000, False),
        ([(512, "GB"), (64, "GiB")] * 100, True),
    ],
)
def test_what_there_is_of_a_type_has_to_add_up(sizes, fits):
    graph = assemble.new_graph("g")
    assemble.add_vertices(graph, [("n", numbered("node"))])
    assemble.add_vertices(
        graph, [(f"m{i}", numbered("memory", i, size=s, unit=u)) for i, (s, u) in enumerate(sizes)]
    )
    assemble.add_contained(graph, [("n", f"m{i}") for i in range(len(sizes))])
    if fits:
        assemble.finish(graph)
    else:
        with pytest.raises(ClusterError, match="of type 'memory' exceed the largest possible total"):
            assemble.finish(graph)
