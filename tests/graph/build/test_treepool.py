"""R with a TreePool topology: localities within nodes, ids of R_lite in their places."""

import pytest

from simsched.errors import ClusterError
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.resource_graph import children, pool_of
from simsched.graph.write.documents_of import to_document


def treepool(topo, *, lite=None, ranks="0-1"):
    return {
        "version": 1,
        "execution": {
            "R_lite": lite or [{"rank": "0-1", "children": {"core": "0-7", "gpu": "0-1"}}],
            "nodelist": ["n[0-1]"],
            "properties": {"mi50@gpu": "1"},
        },
        "scheduling": {"writer": "TreePool", "children": [{"ranks": ranks, "topo": topo}], "comment": "kept"},
    }


TWO_SOCKETS = {
    "memory": 256,
    "storage": [{"path": "/local", "capacity": 2, "unit": "TB"}],
    "socket": [
        {"numa": [{"cores": "0-1", "gpus": "0"}, {"cores": "2-3"}]},
        {"numa": [{"cores": "4-5", "gpus": "1"}, {"cores": "6-7"}]},
    ],
}


def test_localities_are_numbered_within_the_node_and_resources_are_in_them():
    graph = graph_from_document(treepool(TWO_SOCKETS))
    assert children(graph, "n0") == ["n0/memory", "n0/storage0", "n0/socket0", "n0/socket1"]
    assert children(graph, "n0/socket1") == ["n0/socket1/numa2", "n0/socket1/numa3"]
    assert str(pool_of(graph, "n0/socket1/numa2/core").ids) == "4-5"
    memory, disk = pool_of(graph, "n0/memory"), pool_of(graph, "n0/storage0")
    assert (memory.size, memory.unit) == (256, "GiB")
    assert (disk.size, disk.unit, disk.extra) == (2, "TB", {"path": "/local"})
    assert "mi50" in pool_of(graph, "n1/socket0/numa0/gpu").properties
    assert not pool_of(graph, "n0/socket0/numa0/gpu").properties


def test_it_comes_out_as_it_went_in():
    document = treepool(TWO_SOCKETS)
    assert to_document(graph_from_document(document), "treepool") == document


def test_what_the_topology_leaves_out_lies_in_the_node():
    graph = graph_from_document(treepool({"socket": [{"cores": "0-3"}]}, ranks="0"))
    assert str(pool_of(graph, "n0/core").ids) == "4-7"
    assert str(pool_of(graph, "n0/gpu").ids) == "0-1"
    assert str(pool_of(graph, "n1/core").ids) == "0-7"


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (treepool({"cores": "0-3", "socket": [{"cores": "3-4"}]}), "names core 3 twice"),
        (treepool({}, ranks="0-2"), "the topology has rank 2"),
    ],
)
def test_a_topology_that_r_lite_contradicts_is_refused(document, fault):
    with pytest.raises(ClusterError, match=fault):
        graph_from_document(document)


def test_r_of_an_allocation_has_the_topology_of_whole_nodes():
    """RFC 49: a topo describes the full node, R_lite is the record of what was allocated of it."""
    lite = [{"rank": "0-1", "children": {"core": "0,5", "memory": "0-63", "licence": "0"}}]
    graph = graph_from_document(treepool(TWO_SOCKETS, lite=lite))
    assert children(graph, "n0") == [
        "n0/memory", "n0/storage0", "n0/socket0", "n0/socket1", "n0/licence",
    ]  # fmt: skip
    assert children(graph, "n0/socket0") == ["n0/socket0/numa0"]
    assert children(graph, "n0/socket1") == ["n0/socket1/numa2"]
    assert children(graph, "n0/socket1/numa2") == ["n0/socket1/numa2/core"]
    assert str(pool_of(graph, "n0/socket1/numa2/core").ids) == "5"
    assert (pool_of(graph, "n0/memory").size, pool_of(graph, "n0/memory").unit) == (256, "GiB")
    one = graph_from_document(treepool(TWO_SOCKETS, lite=[{"rank": "0-1", "children": {"gpu": "1"}}]))
    assert children(one, "n1") == ["n1/memory", "n1/storage0", "n1/socket1"]
    assert children(one, "n1/socket1") == ["n1/socket1/numa2"]
