"""Graphs that users make with networkx: checked, copied, frozen, and written by networkx's writers."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simsched as ss
from simsched.graph import edit
from simsched.graph.inspect.diff import diff
from simsched.graph.resource_graph import edge_rows, execution_targets, pool_of

SMALL = ("tiny", "center", "grug4", "topo16")
"""Bundled clusters of an R, a recipe, a GRUG and a TreePool."""


def contain(graph, above, below, **attributes):
    graph.add_edge(above, below, key="containment", **{"relationship": "contains", **attributes})


def lab():
    """Two nodes of two cores, with a `Pool` at each vertex and no ranks."""
    graph = nx.MultiDiGraph(name="lab")
    graph.add_node("cluster0", pool=ss.Pool(type="cluster", name="cluster0", basename="cluster", id=0))
    for n in range(2):
        node = f"node{n}"
        graph.add_node(node, pool=ss.Pool(type="node", name=node, basename="node", id=n))
        contain(graph, "cluster0", node)
        for c in range(2):
            graph.add_node(
                f"{node}/core{c}", pool=ss.Pool(type="core", name=f"core{c}", basename="core", id=c)
            )
            contain(graph, node, f"{node}/core{c}")
    return graph


def put(graph, vertex, **changes):
    graph.nodes[vertex]["pool"] = graph.nodes[vertex]["pool"].replace(**changes)


def pool(name="x9", type_="core", **rest):
    return ss.Pool(type=type_, name=name, basename=name, **rest)


FAULTS = {
    "a cycle to the root": (
        lambda g: contain(g, "node0", "cluster0"),
        "containment has no root: cluster0 -> node0 -> cluster0",
    ),
    "a cycle below": (lambda g: contain(g, "node0/core0", "node0"), "vertex 'node0': two parents"),
    "a vertex that contains itself": (lambda g: contain(g, "node1", "node1"), "vertex 'node1': two parents"),
    "a cycle beside": (
        lambda g: g.add_edges_from(
            [(a, b, "net", {"relationship": "x"}) for a, b in (("node0", "node1"), ("node1", "node0"))]
        ),
        "a cycle in subsystem 'net': node0 -> node1 -> node0",
    ),
    "two parents": (
        lambda g: contain(g, "node1", "node0/core0"),
        "vertex 'node0/core0': two parents in containment: 'node0' and 'node1'",
    ),
    "no pool": (lambda g: g.add_node("stray"), "vertex 'stray': no pool (expected a simsched.Pool"),
    "a pool taken away": (lambda g: g.nodes["node1"].clear(), "vertex 'node1': no pool"),
    "a text as pool": (lambda g: g.nodes["node1"].update(pool="core"), "vertex 'node1': the pool is a str"),
    "an integer as edge key": (
        lambda g: g.add_edge("cluster0", "node1", relationship="contains"),
        "edge 'cluster0' -> 'node1': the key is 1 (expected a subsystem such as 'containment')",
    ),
    "a relationship that is no text": (
        lambda g: g.add_edge("cluster0", "node1", "net", relationship=7),
        "edge 'cluster0' -> 'node1': the relationship is 7",
    ),
    "a negative size": (lambda g: put(g, "node0/core1", size=-1), "vertex 'node0/core1': size -1"),
    "sizes unlike the ids": (
        lambda g: put(g, "node0/core1", size=3, ids=ss.Idset.parse("0-1")),
        "vertex 'node0/core1': size 3 with 2 ids",
    ),
    "a size as text": (
        lambda g: put(g, "node0/core1", size="4"),
        "vertex 'node0/core1': size is '4' (expected int)",
    ),
    "a size of True": (lambda g: put(g, "node0/core1", size=True), "size is True"),
    "properties in a list": (lambda g: put(g, "node0", properties=["ssd"]), "properties is ['ssd']"),
    "properties of numbers": (lambda g: put(g, "node0", properties={"ssd": 1}), "properties is {'ssd': 1}"),
    "ids as text": (lambda g: put(g, "node0/core1", ids="0"), "vertex 'node0/core1': ids is '0'"),
    "a type that is no text": (lambda g: put(g, "node0", type=5), "vertex 'node0': type is 5 (expected str)"),
    "an unknown status": (
        lambda g: put(g, "node0", status="ill"),
        "status is 'ill' (expected up, down, drained)",
    ),
    "a negative rank": (lambda g: put(g, "node0", rank=-4), "vertex 'node0': rank -4"),
    "a rank twice": (
        lambda g: [put(g, f"node{n}", rank=3) for n in range(2)],
        "vertex 'node1': rank 3 is taken by 'node0'",
    ),
    "a host twice": (
        lambda g: put(g, "node1", name="node0"),
        "vertex 'node1': the host 'node0' is taken by 'node0'",
    ),
    "a host no hostlist can hold": (
        lambda g: put(g, "node1", name="a,b"),
        "vertex 'node1': 'a,b' is not a host name",
    ),
    "a vertex attached to nothing": (
        lambda g: g.add_node("stray", pool=pool()),
        "containment has 2 roots: 'cluster0', 'stray'",
    ),
    "an edge cut": (
        lambda g: g.remove_edge("cluster0", "node1"),
        "containment has 2 roots: 'cluster0', 'node1'",
    ),
    "a vertex key that is a number": (lambda g: g.add_node(7, pool=pool()), "7 is not the key of a vertex"),
    "no target": (
        lambda g: [put(g, f"node{n}", type="box") for n in range(2)],
        "it has no execution target (expected a vertex of type node or with a rank)",
    ),
    "an empty graph": (lambda g: g.clear(), "the cluster is empty: it has no vertices"),
    "ids that are no idset": (
        lambda g: g.nodes["node0/core1"].update(pool=None, type="core", ids="3-1"),
        "vertex 'node0/core1': ids: ",
    ),
    "properties that are not JSON": (
        lambda g: g.nodes["node1"].update(pool=None, type="node", properties="{"),
        "vertex 'node1': properties is '{' (expected JSON)",
    ),
    "an edge's extra that is not JSON": (
        lambda g: g.add_edge("cluster0", "node1", "net", relationship="x", extra="["),
        "edge 'cluster0' -> 'node1': extra is '['",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_one_error_with_its_place(fault):
    graph = lab()
    spoil, message = FAULTS[fault]
    spoil(graph)
    for take in (ss.Cluster, ss.load_cluster, ss.Matcher):
        with pytest.raises(ss.ClusterError) as caught:
            take(graph)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
def test_another_kind_of_graph_is_refused(kind):
    for take in (ss.Cluster, ss.load_cluster, ss.Matcher):
        with pytest.raises(ss.ClusterError, match=f"the graph is a {kind.__name__} "):
            take(kind(lab()))


def test_what_is_no_graph_is_refused():
    for value in (None, 5, "tiny", {}):
        with pytest.raises(ss.ClusterError, match=f"the graph is a {type(value).__name__}"):
            ss.Cluster(value)


def test_every_function_that_takes_a_cluster_takes_a_graph():
    request = ss.Jobspec.from_shape("slot=4/core", duration=5)
    assert ss.Cluster(lab()).name == ss.load_cluster(lab()).name == "lab"
    assert ss.Cluster(lab(), name="mine").name == "mine"
    assert str(ss.Matcher(lab()).match(request).R.ranks) == "0-1"
    assert ss.feasible(lab(), request)
    workload = ss.Workload(jobs=(ss.Job(id=1, submit=0, runtime=5, duration=5, jobspec=request),), name="w")
    assert ss.simulate(lab(), workload).jobs["end"].tolist() == [5]
    saved = ss.Matcher(lab()).save()
    assert ss.Matcher.restore(lab(), saved).match(request)


def test_edits_and_differences_take_a_graph():
    request = ss.Jobspec.from_shape("slot=4/core")
    assert diff(lab(), ss.Cluster(lab())) == []
    host = pool_of(lab(), execution_targets(ss.Cluster(lab()).graph)[0]).name
    for edited in (
        edit.set_status(lab(), host, "down"),
        edit.remove_nodes(lab(), host),
        edit.restrict(lab(), host),
        edit.add_nodes(lab(), "extra0", like=host),
        edit.scale_group(lab(), host, 2),
        edit.add_properties(lab(), host, "fast"),
        edit.drop_properties(lab(), host, "fast"),
        edit.set_units(ss.load_cluster("tiny").to_networkx(), "node0", "core", 8),
    ):
        assert isinstance(edited, ss.Cluster)
    assert len(diff(lab(), edit.set_status(lab(), host, "down"))) == 1
    assert ss.feasible(edit.add_nodes("tiny", "extra0", like="node0"), request)


def test_a_plain_tree_is_a_cluster():
    """A DiGraph has no keys of edges: they are containment unless an attribute names the subsystem."""
    tree = nx.DiGraph(name="tree")
    tree.add_nodes_from([("c", {"type": "cluster"}), ("n0", {"type": "node"}), ("n1", {"type": "node"})])
    tree.add_nodes_from([("n0/core", {"type": "core", "ids": "0-3"}), ("s", {"type": "switch"})])
    tree.add_edges_from([("c", "n0"), ("c", "n1"), ("c", "s"), ("n0", "n0/core")])
    tree.add_edge("s", "n1", subsystem="network", relationship="connects")
    cluster = ss.Cluster(tree)
    assert cluster.name == "tree"
    assert cluster.index.totals == {"cluster": 1, "switch": 1, "node": 2, "core": 4}
    assert [row[:3] for row in edge_rows(cluster.graph)][-1] == ("s", "n1", "network")
    assert not ss.feasible(tree, ss.Jobspec.from_shape("slot=2/node/core"))


def test_ranks_that_are_missing_follow_in_containment_order():
    graph = lab()
    put(graph, "node0", rank=7)
    assert ss.Cluster(graph).index.ranks.tolist() == [7, 8]


def test_the_graph_is_a_frozen_copy():
    """Edits of the user's graph change no answer, before the first use or after it."""
    graph = lab()
    properties = {"ssd": ""}
    put(graph, "node0", properties=properties)
    cluster = ss.Cluster(graph)
    assert not nx.is_frozen(graph)
    with pytest.raises(nx.NetworkXError, match=r"[Ff]rozen"):
        cluster.graph.add_node("more")
    properties["fast"] = ""
    graph.remove_node("node1")
    put(graph, "node0/core0", size=100)
    graph["cluster0"]["node0"]["containment"]["relationship"] = "in"
    graph.graph["name"] = "other"
    assert cluster.index.totals["core"] == 4
    assert set(cluster.index.property_rows) == {"ssd"}
    assert cluster.graph.graph["name"] == "lab"
    assert cluster.to_dict("jgf")["graph"]["edges"]


def test_only_a_graph_that_was_checked_is_taken_as_it_is():
    """Readers hand their graph over; a copy of it is a user's, whichever way it was copied."""
    tiny = ss.load_cluster("tiny")
    assert ss.Cluster(tiny.graph).graph is tiny.graph
    edited = edit.set_status(tiny, "node1", "down")
    assert ss.Cluster(edited.graph).graph is edited.graph
    copies = (
        tiny.graph.copy(),
        nx.MultiDiGraph(tiny.graph),
        copy.deepcopy(tiny.graph),
        copy.deepcopy(edited.graph),
        nx.freeze(tiny.graph.copy()),
        nx.subgraph_view(tiny.graph),
    )
    for graph in copies:
        cluster = ss.Cluster(graph)
        assert cluster.graph is not graph
        assert diff(cluster.graph, tiny.graph if graph is not copies[3] else edited.graph) == []
    spoiled = copy.deepcopy(tiny.graph)
    put(spoiled, "node0", rank=1)
    with pytest.raises(ss.ClusterError, match="rank 1 is taken by"):
        ss.Cluster(spoiled)


def test_a_pickled_cluster_is_the_same_cluster():
    tiny = ss.load_cluster("tiny")
    assert diff(pickle.loads(pickle.dumps(tiny)).graph, tiny.graph) == []


def test_an_edited_copy_is_written_again():
    """What the source document said of the whole goes with the copy; what an edit makes wrong does not."""
    for name in SMALL:
        cluster = ss.load_cluster(name)
        graph = cluster.graph.copy()
        last = cluster.index.targets[-1]
        graph.remove_nodes_from([last, *nx.descendants(graph, last)])
        smaller = ss.Cluster(graph)
        assert len(smaller.index) == len(cluster.index) - 1
        for form in ("r", "jgf", "r+jgf", "treepool"):
            assert smaller.to_dict(form)
        copied = ss.Cluster(cluster.graph.copy())
        assert copied.to_dict("jgf")["graph"]["nodes"] == cluster.to_dict("jgf")["graph"]["nodes"]
        assert copied.to_dict("r") == cluster.to_dict("r")


def test_foreign_facts_about_the_whole_do_no_harm():
    graph = lab()
    graph.graph.update(document=5, source=["x"], jgf="y", treepool={}, root=3, edge_order=[1], name=9)
    cluster = ss.Cluster(graph)
    assert cluster.name == "cluster"
    for form in ("r", "jgf", "r+jgf", "treepool"):
        assert cluster.to_dict(form)


# --- plain attributes ----------------------------------------------------------------


def graphml(graph, path):
    nx.write_graphml(graph, path)
    return nx.read_graphml(path)


def graphml_multi(graph, path):
    nx.write_graphml(graph, path)
    return nx.read_graphml(path, force_multigraph=True)


def gexf(graph, path):
    nx.write_gexf(graph, path)
    return nx.read_gexf(path)


def node_link(graph, path):
    named = {"edges": "edges"} if nx.__version__ >= "3.4" else {"link": "edges"}  # the keyword was renamed
    path.write_text(json.dumps(nx.node_link_data(graph, **named), allow_nan=False))
    return nx.node_link_graph(json.loads(path.read_text()), **named)


def same_graph(left, right):
    assert [(key, data["pool"]) for key, data in left.nodes(data=True)] == [
        (key, data["pool"]) for key, data in right.nodes(data=True)
    ]
    assert {row[:3]: row[3]["relationship"] for row in edge_rows(left)} == {
        row[:3]: row[3]["relationship"] for row in edge_rows(right)
    }


@pytest.mark.parametrize("through", [graphml, graphml_multi, gexf, node_link])
@pytest.mark.parametrize("name", SMALL)
def test_plain_attributes_go_through_networkx_writers_and_back(name, through, tmp_path):
    cluster = ss.load_cluster(name)
    back = through(cluster.to_networkx(), tmp_path / "graph")
    same_graph(ss.Cluster(nx.MultiDiGraph(back)).graph, cluster.graph)


def test_plain_attributes_hold_what_any_pool_holds(tmp_path):
    graph = lab()
    put(graph, "node0", properties={"ssd": "", "perf_class": "2"}, status="drained", uuid="u-1", rank=4)
    put(
        graph,
        "node1",
        extra={"exclusive": True, "paths": {"a": ["b", None]}},
        given=frozenset({"id", "rank"}),
    )
    put(graph, "node0/core0", size=12, unit="GB", ids=ss.Idset.parse("0-3,8-15"))
    graph.add_edge("node0", "node1", "power", relationship="supplies", more={"watts": [1, 2]})
    cluster = ss.Cluster(graph)
    plain = cluster.to_networkx()
    assert {type(value) for _, data in plain.nodes(data=True) for value in data.values()} == {str, int}
    assert {type(value) for *_, data in plain.edges(data=True) for value in data.values()} == {str}
    plain.remove_node("node1/core1")  # it is the user's own
    assert len(cluster.graph) == 7
    for through in (graphml_multi, node_link):
        again = ss.Cluster(nx.MultiDiGraph(through(cluster.to_networkx(), tmp_path / through.__name__)))
        same_graph(again.graph, cluster.graph)
        assert again.graph["node0"]["node1"]["power"]["more"] == {"watts": [1, 2]}


def test_plain_attributes_written_by_hand():
    graph = nx.MultiDiGraph(name="hand")
    graph.add_node("c", type="cluster")
    for n in range(2):
        graph.add_node(f"n{n}", type="node", properties=["ssd"], label="drawn in red")
        graph.add_node(f"n{n}/core", type="core", ids="0-3")
        graph.add_edge("c", f"n{n}", "containment")
        graph.add_edge(f"n{n}", f"n{n}/core", "containment")
    graph.add_node("n1/memory", type="memory", name="memory", size=64, unit="GB")
    graph.add_edge("n1", "n1/memory", "containment")
    cluster = ss.Cluster(graph)
    assert cluster.index.hosts == ("n0", "n1")
    assert cluster.index.totals == {"cluster": 1, "node": 2, "core": 8, "memory": 64}
    request = ss.Jobspec.from_shape("slot/[core=3;memory=10{unit:GB}]", constraint="ssd")
    assert str(ss.Matcher(cluster).match(request).R.ranks) == "1"


VALUES = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        3,
        2**70,
        1.5,
        float("nan"),
        "",
        "x",
        "0-1",
        "up",
        [],
        ["a"],
        {},
        {"a": "b"},
        np.int64(2),
        b"x",
    ]
)
FIELDS = st.sampled_from(list(ss.Pool.__struct_fields__))


@given(
    fields=st.dictionaries(FIELDS, VALUES, max_size=3),
    plain=st.dictionaries(
        st.sampled_from(
            ["type", "name", "basename", "logical_id", "size", "rank", "ids", "properties", "extra", "given"]
        ),
        VALUES,
        max_size=4,
    ),
    edges=st.lists(
        st.tuples(
            st.sampled_from(["cluster0", "node0", "node1", "x", 5]),
            st.sampled_from(["cluster0", "node0", "node1", "node0/core0", "x", None]).filter(
                lambda v: v is not None
            ),
            st.sampled_from(["containment", "net", 3, "", None]),
            VALUES,
        ),
        max_size=2,
    ),
)
def test_nothing_in_a_graph_is_worse_than_a_message(fields, plain, edges):
    """Law: any graph is a cluster that can be matched on, or one `SimschedError`."""
    graph = lab()
    put(graph, "node0/core0", **fields)
    graph.add_node("x", **plain)
    contain(graph, "node1", "x")
    for source, target, key, value in edges:
        graph.add_edge(source, target, key, relationship=value)
    with contextlib.suppress(ss.SimschedError):
        cluster = ss.Cluster(graph)
        cluster.index._check()
        ss.Matcher(cluster).match(ss.Jobspec.from_shape("slot/core"))
        for form in ("r", "jgf", "treepool"):
            cluster.to_dict(form)
        same_graph(ss.Cluster(cluster.to_networkx()).graph, cluster.graph)


# --- targets in targets ----------------------------------------------------------------


def two_boards(inner, **attributes):
    """A rank at one board; another board inside it or beside it."""
    graph = nx.MultiDiGraph()
    graph.add_node("chassis0", type="chassis")
    graph.add_node("board0", type="board", rank=0)
    graph.add_node("board1", type="board", **attributes)
    graph.add_node("core0", type="core", size=2)
    contain(graph, "chassis0", "board0")
    contain(graph, "board0" if inner else "chassis0", "board1")
    contain(graph, "board1", "core0")
    return graph


@pytest.mark.parametrize(
    ("inner", "attributes", "message"),
    [
        (True, {}, "the board is inside the execution target 'board0'"),
        (True, {"rank": 1}, "the board is inside the execution target 'board0'"),
        (False, {}, "the board is not an execution target, but others of its type are"),
    ],
)
def test_each_vertex_of_the_targets_type_is_a_target(inner, attributes, message):
    cluster = ss.load_cluster(two_boards(inner, **attributes))
    with pytest.raises(ss.SimschedError, match=f"vertex 'board1': {message}"):
        ss.Matcher(cluster).match(ss.Jobspec.from_shape("board=2"))


def test_a_node_inside_a_node_is_refused():
    graph = lab()
    graph.add_node("node2", pool=pool("node2", "node"))
    contain(graph, "node1", "node2")
    with pytest.raises(
        ss.SimschedError, match="vertex 'node2': the node is inside the execution target 'node1'"
    ):
        ss.Matcher(graph)


def test_a_property_that_r_cannot_hold_is_refused_before_a_match():
    graph = lab()
    put(graph, "node1", properties={"fast&cheap": ""})
    with pytest.raises(ss.SimschedError, match="vertex 'node1': property 'fast&cheap' has the forbidden"):
        ss.Matcher(graph)
