"""Every format to every other that can hold it, and back; what it cannot hold is said."""

import json

import pytest

from simsched.errors import ConfigError, FormatError
from simsched.formats.cluster.rset import ResourceSet
from simsched.graph.build.cluster_files import graph_from_bytes, graph_from_document
from simsched.graph.cluster import Cluster, load_cluster
from simsched.graph.resource_graph import execution_targets, pool_of
from simsched.graph.write.documents_of import to_bytes, to_document
from simsched.graph.write.losses import FORMATS, losses

SMALL_ONES = ("tiny", "topo16", "jgf4", "grug4")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", SMALL_ONES)
def test_what_a_format_holds_it_gives_back(name, form):
    """Law: writing in a format and reading back loses nothing that the format did not lose before."""
    graph = load_cluster(name).graph
    data = to_bytes(graph, form)
    again = graph_from_bytes(data)
    assert json.loads(to_bytes(again, form)) == json.loads(data)
    assert losses(again, form) == []


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", SMALL_ONES)
def test_r_is_the_same_through_every_format(name, form):
    """Law: each format holds at least what R_lite holds."""
    graph = load_cluster(name).graph
    document = to_document(graph, "r")
    again = graph_from_document(to_document(graph, form))
    assert to_document(again, "r")["execution"] == document["execution"]


@pytest.mark.parametrize("form", ["r+jgf", "jgf"])
def test_nothing_is_lost_in_jgf(machine, form):
    graph = machine.graph
    assert losses(graph, form) == []
    again = graph_from_document(to_document(graph, form))
    facts = [
        sorted(
            (
                p.type,
                p.name,
                p.size,
                p.unit,
                p.status,
                str(p.ids),
                str(p.properties),
                str(p.extra.get("path")),
            )
            for p in (pool_of(g, key) for key in g)
        )
        for g in (graph, again)
    ]
    assert facts[0] == facts[1]
    edges = [
        sorted(
            (pool_of(g, u).name, pool_of(g, v).name, k, d["relationship"])
            for u, v, k, d in g.edges(keys=True, data=True)
        )
        for g in (graph, again)
    ]
    assert edges[0] == edges[1]
    assert [pool_of(again, key).name for key in execution_targets(again)] == execution_targets(graph)


def test_what_r_cannot_hold_is_said(machine):
    assert losses(machine.graph, "r") == [
        "vertices above or beside the execution targets: 2 rack, 2 pdu",
        "localities within them: 12 socket",
        "the subsystems network, power",
        "pools that are measured, not counted: 8 memory, 6 storage",
        "status of 1 vertex",
    ]


def test_what_treepool_cannot_hold_is_said(machine):
    assert losses(machine.graph, "treepool") == [
        "vertices above or beside the execution targets: 2 rack, 2 pdu",
        "the subsystems network, power",
        "status of 1 vertex",
    ]


def test_treepool_rounds_memory_to_gib_and_storage_has_one_type():
    group = {"name": "n", "count": 1, "cores": 1, "memory": "100 GB"}
    group["storage"] = [{"type": "nvme", "size": "1 TB", "path": "/s"}]
    graph = graph_from_document({"groups": [group]})
    assert losses(graph, "treepool") == [
        "parts of a GiB, rounded down: 1 memory",
        "the type of storage pools: 1 nvme",
    ]
    topo = to_document(graph, "treepool")["scheduling"]["children"][0]["topo"]
    assert topo == {"cores": "0", "memory": 93, "storage": [{"path": "/s", "capacity": 1, "unit": "TB"}]}


def test_ids_that_occur_twice_on_a_target_are_numbered_afresh():
    socket = {"type": "socket"}
    nodes = [("n", {"type": "node"}), ("a", socket), ("b", socket)]
    nodes += [(f"{s}{i}", {"type": "core", "id": i}) for s in "ab" for i in range(2)]
    edges = [("n", "a"), ("n", "b"), ("a", "a0"), ("a", "a1"), ("b", "b0"), ("b", "b1")]
    graph = graph_from_document(
        {
            "graph": {
                "nodes": [{"id": key, "metadata": metadata} for key, metadata in nodes],
                "edges": [{"source": a, "target": b} for a, b in edges],
            }
        }
    )
    assert to_document(graph, "r")["execution"]["R_lite"] == [{"rank": "0", "children": {"core": "0-3"}}]
    assert "ids within a target, which are renumbered: core" in losses(graph, "r")
    sockets = to_document(graph, "treepool")["scheduling"]["children"][0]["topo"]["socket"]
    assert sockets == [{"cores": "0-1"}, {"cores": "2-3"}]


def test_properties_of_children_become_suffixed_ones_of_the_rank():
    document = to_document(load_cluster("tiny").graph, "jgf")
    for vertex in document["graph"]["nodes"]:
        vertex["metadata"]["properties"].pop("amd-mi50@gpu", None)
    again = to_document(graph_from_document(document), "r")
    assert again["execution"]["properties"]["amd-mi50@gpu"] == "2-3"


def test_a_property_that_r_forbids_is_refused_on_writing():
    graph = graph_from_document(
        {"graph": {"nodes": [{"id": "0", "metadata": {"type": "node", "properties": {"a|b": ""}}}]}}
    )
    with pytest.raises(FormatError, match=r"'a\|b'"):
        to_document(graph, "r")


def test_an_unknown_format_is_refused(small):
    with pytest.raises(ConfigError, match=r"unknown format 'xml' .expected r, r.jgf, jgf, treepool"):
        to_document(small.graph, "xml")
    with pytest.raises(ConfigError, match="unknown dialect"):
        to_document(small.graph, "jgf", dialect="klingon")


def test_r_of_a_whole_machine_has_few_groups():
    rset = ResourceSet.from_dict(to_document(load_cluster("racked").graph, "r"))
    assert [len(group.ranks) for group in rset.groups] == [192, 832]
    assert Cluster.from_rset(rset).index.size == 1 + 2 * 1024 + 192
