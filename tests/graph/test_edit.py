"""What-if edits: another cluster, the old one untouched, the index of the new one sound."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ClusterError, ConfigError, SimschedError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.rfc.constraint import Properties, parse_constraint
from simsched.formats.rfc.idset import Idset
from simsched.graph import edit
from simsched.graph.cluster import Cluster, load_cluster
from simsched.graph.inspect.diff import diff
from simsched.graph.resource_graph import children, execution_targets, parents, pool_of
from simsched.graph.write.documents_of import to_document


def hosts(cluster):
    return [pool_of(cluster.graph, key).name for key in execution_targets(cluster.graph)]


def told(left, right):
    return [str(one) for one in diff(left.graph, right.graph)]


def test_status_by_hosts_ranks_and_constraint(machine):
    by_host = edit.set_status(machine, "gpu[0-1]", "down")
    by_rank = edit.set_status(machine, Idset.parse("0-1"), "down")
    by_property = edit.set_status(machine, Properties(("batch",)), "drained")
    assert told(machine, by_host) == ["gpu[0-1] status: up -> down"] == told(machine, by_rank)
    assert told(machine, by_property) == ["gpu[0-5] status: up -> drained"]
    assert told(by_host, edit.set_status(by_host, "gpu[0-1]", "up"))[:0] == []
    assert not diff(machine.graph, edit.set_status(by_host, "gpu[0-1]", "up").graph)


def test_the_old_cluster_is_as_it_was(machine):
    before = to_document(machine.graph, "jgf")
    edit.set_status(machine, "gpu0", "down")
    edit.add_properties(machine, "gpu0", "x")
    edit.remove_nodes(machine, "gpu[0-2]")
    edit.add_nodes(machine, "new[0-9]", like="gpu0")
    assert to_document(machine.graph, "jgf") == before


def test_properties_reach_children_by_their_suffix_and_leave_them(machine):
    more = edit.add_properties(machine, "gpu0,fat1", "ssd", "h100@gpu")
    assert list(pool_of(more.graph, "gpu0/socket1/gpu").properties) == ["mi300", "h100"]
    assert told(machine, more) == [
        "gpu0,fat1 property ssd: none -> set",
        "gpu0,fat1 property h100@gpu: none -> set",
    ]
    less = edit.drop_properties(more, "gpu[0-5],fat1", "ssd", "h100@gpu")
    assert not diff(machine.graph, less.graph)
    assert list(pool_of(less.graph, "gpu0/socket1/gpu").properties) == ["mi300"]


def test_removing_takes_what_serves_the_node_alone(machine):
    fewer = edit.remove_nodes(machine, "gpu5")
    assert "gpu5/power" not in fewer.graph
    assert "gpu5" not in children(fewer.graph, "switch2", "network")
    assert hosts(fewer) == ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "fat1", "fat2"]
    fewer.index._check()


def test_new_nodes_have_the_place_of_their_model(machine):
    more = edit.add_nodes(machine, "gpu[6-7]", like="gpu0")
    assert parents(more.graph, "gpu7") == ["rack0"]
    assert parents(more.graph, "gpu7", "network") == ["switch0"]
    assert children(more.graph, "gpu7", "power") == ["gpu7/power"]
    new = pool_of(more.graph, "gpu7")
    assert (new.rank, new.basename, new.id) == (9, "gpu", 7)
    assert children(more.graph, "gpu7/socket1") == ["gpu7/socket1/core", "gpu7/socket1/gpu"]
    more.index._check()


def test_adding_and_removing_is_where_we_began(machine):
    again = edit.remove_nodes(edit.add_nodes(machine, "x[0-4]", like="fat1"), "x[0-4]")
    assert nx.utils.graphs_equal(nx.MultiDiGraph(again.graph), nx.MultiDiGraph(machine.graph))


def test_a_group_is_scaled_up_in_turn_and_down_from_the_end(machine):
    more = edit.scale_group(machine, "gpu[0-5]", 12)
    assert sorted(hosts(more)) == sorted([f"gpu{n}" for n in range(12)] + ["fat1", "fat2"])
    assert [len(children(more.graph, rack)) for rack in ("rack0", "rack1")] == [4 + 4 + 1, 4 + 2 + 1]
    fewer = edit.scale_group(machine, "gpu[0-5]", 2)
    assert hosts(fewer) == ["gpu0", "gpu1", "fat1", "fat2"]
    assert edit.scale_group(machine, "gpu[0-5]", 6) is machine


def test_copies_in_a_graph_from_jgf_have_numbers_for_keys():
    cluster = load_cluster("jgf4")
    more = edit.add_nodes(cluster, "node4", like="node0")
    assert all(key.isdigit() for key in more.graph)
    document = to_document(more.graph, "jgf")
    paths = [v["metadata"]["paths"].get("containment") for v in document["graph"]["nodes"]]
    assert "/cluster0/rack0/node4/socket1/core7" in paths
    assert len({v["metadata"]["uniq_id"] for v in document["graph"]["nodes"]}) == len(paths)
    more.index._check()


def test_restricting_to_a_constraint(machine):
    assert hosts(edit.restrict(machine, Properties(("batch",)))) == [f"gpu{n}" for n in range(6)]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda c: edit.set_status(c, "nobody", "down"), "no execution target is called 'nobody'"),
        (lambda c: edit.set_status(c, Idset.parse("0,99"), "down"), "no execution target has rank 99"),
        (lambda c: edit.set_status(c, Properties(("nope",)), "down"), "no execution target matches"),
        (lambda c: edit.set_status(c, "gpu0", "asleep"), "unknown status 'asleep'"),
        (lambda c: edit.add_properties(c, "gpu0", "a|b"), r"a\|b"),
        (lambda c: edit.remove_nodes(c, "gpu[0-5],fat[1-2]"), "the cluster is empty"),
        (lambda c: edit.add_nodes(c, "fat1", like="gpu0"), "already a target called 'fat1'"),
        (lambda c: edit.add_nodes(c, "", like="gpu0"), "no hosts"),
        (lambda c: edit.scale_group(c, "gpu0", -1), "a group of -1 targets"),
        (lambda c: edit.scale_group(c, "gpu0", 10**9), "new targets"),
    ],
)
def test_edits_that_make_no_sense(machine, change, fault):
    with pytest.raises(SimschedError, match=fault):
        change(machine)
    assert issubclass(ClusterError, SimschedError)
    assert issubclass(ConfigError, SimschedError)


def test_a_new_host_may_have_the_key_of_another_vertex():
    graph = nx.MultiDiGraph()
    for key, kind in (("c", "cluster"), ("b", "rack"), ("a", "node"), ("a/core", "core")):
        graph.add_node(key, type=kind)
    for edge in (("c", "b"), ("b", "a"), ("a", "a/core")):
        graph.add_edge(*edge, key="containment")
    grown = edit.add_nodes(graph, "b", like="a")
    assert [(key, pool_of(grown.graph, key).name) for key in grown.index.targets] == [
        ("a", "a"),
        ("b+2", "b"),
    ]


@given(st.data())
@settings(max_examples=40)
def test_edits_of_r_are_edits_of_the_set(data):
    """Law: removing, restricting and scaling clusters of R change R as set operations would."""
    count = data.draw(st.integers(2, 9))
    rset = ResourceSet.of([(f"0-{count - 1}", {"core": "0-3", "gpu": "0"})], f"n[0-{count - 1}]")
    cluster = Cluster.from_rset(rset)
    chosen = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count - 1))
    picked = Idset.from_ids(chosen)
    kept = ResourceSet.from_dict(to_document(edit.restrict(cluster, picked).graph, "r"))
    gone = ResourceSet.from_dict(to_document(edit.remove_nodes(cluster, picked).graph, "r"))
    assert kept == rset.shard(picked)
    assert kept | gone == rset
    assert (kept & gone).is_empty
    size = data.draw(st.integers(1, 15))
    assert len(hosts(edit.scale_group(cluster, f"n[0-{count - 1}]", size))) == size


def test_edits_share_what_does_not_change():
    cluster = load_cluster("big9400")
    edited = edit.set_status(cluster, "big7", "down")
    assert edited.graph._succ is cluster.graph._succ
    assert edited.graph.nodes["big8"] is cluster.graph.nodes["big8"]


def test_units_of_targets_are_set():
    small = Cluster.from_rset(ResourceSet.of([("0-2", {"core": "0-3", "gpu": "0"})], "n[0-2]"))
    more = edit.set_units(small, "n[0-1]", "gpu", 4)
    assert more.index.pool_types["gpu"].total == 9
    assert more.index.pool_types["core"].total == 12
    rows = more.to_dict("r")["execution"]["R_lite"]
    assert [(row["rank"], row["children"]["gpu"]) for row in rows] == [("0-1", "0-3"), ("2", "0")]
    assert small.index.pool_types["gpu"].total == 3
    assert edit.set_units(more, "n[0-2]", "gpu", 1).to_dict("r") == small.to_dict("r")
    with pytest.raises(ClusterError, match="n0 has 0 vertices of type ssd"):
        edit.set_units(small, "n0", "ssd", 1)
    with pytest.raises(ConfigError, match="0 units of gpu"):
        edit.set_units(small, "n0", "gpu", 0)


def test_properties_by_which_the_targets_were_chosen(small):
    chosen = parse_constraint("batch")
    fewer = edit.drop_properties(small, chosen, "batch", "x@core")
    assert not any("batch" in pool_of(fewer.graph, key).properties for key in fewer.index.targets)
    more = edit.add_properties(small, parse_constraint("not big"), "big@core")
    assert all("big" in pool_of(more.graph, f"n{number}/core").properties for number in range(4))
