"""R_lite becomes a root, a node a rank and a pool a child type."""

from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ClusterError, LimitError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.rfc.idset import Idset
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.build.rset import from_rset
from simsched.graph.cluster import Cluster
from simsched.graph.resource_graph import children, execution_targets, pool_of, pools
from simsched.graph.write.rset import to_rset


def test_the_example_of_rfc_20(rfc20):
    graph = graph_from_document(rfc20)
    assert execution_targets(graph) == ["node186", "node187", "node188", "node189"]
    node = pool_of(graph, "node187")
    assert (node.type, node.basename, node.id, node.rank) == ("node", "node", 187, 20)
    core = pool_of(graph, "node187/core")
    assert (core.name, core.size, str(core.ids)) == ("core", 48, "0-47")
    assert pool_of(graph, "node187/gpu").size == 8
    assert to_rset(graph).to_dict() == rfc20


def test_equal_pools_of_a_group_are_one_value(small):
    assert pool_of(small.graph, "n0/core") is pool_of(small.graph, "n1/core")


def test_a_property_with_a_suffix_is_on_the_target_and_within_it(small):
    assert list(pool_of(small.graph, "n3").properties) == ["batch", "mi50@gpu"]
    assert list(pool_of(small.graph, "n3/gpu").properties) == ["mi50"]
    assert not pool_of(small.graph, "n3/core").properties


def test_children_of_any_type_and_instance_local_properties_and_what_r_says_of_the_whole_set():
    document = {
        "version": 1,
        "execution": {
            "R_lite": [{"rank": "0", "children": {"core": "0-1", "hbm": "3,5"}}],
            "nodelist": ["a"],
            "properties": {"+local": "0"},
            "nslots": 2,
            "starttime": 0.0,
        },
        "scheduling": {"hint": [1]},
        "attributes": {"system": {"scheduler": {"queue": "batch"}}},
    }
    graph = graph_from_document(document)
    assert str(pool_of(graph, "a/hbm").ids) == "3,5"
    assert to_rset(graph).to_dict() == document


def test_brokers_that_share_a_host_have_keys_with_their_rank():
    graph = from_rset(ResourceSet.of([("0-2", {"core": "0-1"})], "a,a,b"))
    assert execution_targets(graph) == ["a@0", "a@1", "b"]
    assert pool_of(graph, "a@1").name == "a"


def test_a_host_may_be_called_like_the_root():
    graph = from_rset(ResourceSet.of([("0", {"core": "0"})], "cluster0"))
    assert children(graph, "/cluster0") == ["cluster0"]


def test_no_ranks_or_too_many_are_refused():
    with pytest.raises(ClusterError, match="the cluster is empty"):
        from_rset(ResourceSet())
    with pytest.raises(LimitError, match="5,000,000 execution targets"):
        from_rset(ResourceSet.of([("0-4999999", {"core": "0"})], "n[0-4999999]"))


def test_a_node_within_a_node_is_refused():
    group = {"rank": "0-3", "children": {"node": "0", "core": "0-1"}}
    rset = ResourceSet.from_dict({"version": 1, "execution": {"R_lite": [group], "nodelist": ["n[0-3]"]}})
    with pytest.raises(ClusterError, match="0-3 have children of type node"):
        from_rset(rset)


def test_ranks_without_hosts_are_refused():
    whole, part = ResourceSet.of([("0-1", {})], "a,b"), ResourceSet.of([("0", {})], "a")
    with pytest.raises(ClusterError, match="2 ranks and 1 hosts"):
        from_rset(replace(whole, hosts=part.hosts))


@st.composite
def resource_sets(draw):
    """Random resource sets over a few ranks, ids and types."""
    ranks = sorted(draw(st.sets(st.integers(0, 12), min_size=1, max_size=8)))
    kinds = st.dictionaries(
        st.sampled_from(["core", "gpu", "hbm"]),
        st.sets(st.integers(0, 9), min_size=1).map(Idset.from_ids),
        max_size=3,
    )
    entries = [(Idset.from_ids([rank]), draw(kinds)) for rank in ranks]
    names = draw(
        st.dictionaries(st.sampled_from(["a", "b@gpu", "+c"]), st.sets(st.sampled_from(ranks), min_size=1))
    )
    return ResourceSet.of(
        entries,
        f"n[{','.join(map(str, ranks))}]",
        properties={name: Idset.from_ids(having) for name, having in names.items()},
    )


@given(resource_sets())
@settings(max_examples=60)
def test_r_to_graph_to_r_is_the_identity(rset):
    """Law (RFC 20): the graph of an R_lite holds all of it."""
    graph = from_rset(rset)
    assert to_rset(graph).to_dict() == rset.to_dict()
    units = {
        (pool_of(graph, key.rpartition("/")[0]).rank, pool.type, unit)
        for key, pool in pools(graph)
        if pool.ids
        for unit in pool.ids
    }
    assert units == {
        (rank, kind, unit)
        for g in rset.groups
        for rank in g.ranks
        for kind, ids in g.children.items()
        for unit in ids
    }


def triples(rset):
    """A resource set as the plain set of (rank, type, id)."""
    return {
        (r, kind, i) for g in rset.groups for r in g.ranks for kind, ids in g.children.items() for i in ids
    }


@pytest.mark.slow
@given(resource_sets(), resource_sets())
@settings(max_examples=60)
def test_set_algebra_of_r_is_that_of_sets_of_rank_type_id(left, right):
    """Law: union, intersection and difference of R are those of sets of (rank, type, id)."""
    assert triples(left | right) == triples(left) | triples(right)
    assert triples(left & right) == triples(left) & triples(right)
    assert triples(left - right) == triples(left) - triples(right)


@given(resource_sets(), resource_sets())
@settings(max_examples=30)
def test_the_graph_of_a_union_holds_the_union(left, right):
    """Law: graph(A | B) holds exactly the units of A and of B."""
    both = to_rset(from_rset(left | right))
    assert triples(both) == triples(left) | triples(right)


def test_the_index_of_r_is_compiled_from_the_graph_of_the_cluster(rfc20):
    cluster = Cluster.from_rset(ResourceSet.from_dict(rfc20))
    assert nx.is_frozen(cluster.graph)
    assert cluster.index.graph is cluster.graph
    cluster.index._check()
