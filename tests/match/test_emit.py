"""R of whatever a match returns (RFC 20, M5), and the same as a graph."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.formats.cluster.jgf import jgf_from_object
from simsched.formats.cluster.rset import ResourceSet
from simsched.graph.build.jgf import from_jgf
from simsched.graph.cluster import Cluster
from simsched.match.emit import document
from simsched.match.emit_graph import graph_of, jgf_of, tree_of
from tests.reference.outlines import outline_cluster

JOBSPEC = ss.Jobspec.from_shape


def given(cluster, shape, constraint=None, **matcher):
    answer = ss.Matcher(cluster, **matcher).match(JOBSPEC(shape, constraint=constraint))
    assert answer, answer.reasons
    return answer.R.to_dict()


def test_a_match_in_full(tiny):
    """Golden: equal targets share an entry; properties are those of the ranks given; times and queue."""
    matcher = ss.Matcher(tiny)
    matcher.match(JOBSPEC("slot=1/core"))
    got = matcher.match(JOBSPEC("slot=7/core=2"))
    scheduler = {"queue": "batch", "policy": "first"}
    found = document(got.selection, tiny.index, starttime=100, expiration=700, scheduler=scheduler)
    assert found == {
        "version": 1,
        "execution": {
            "R_lite": [
                {"rank": "0", "children": {"core": "1-2"}},
                {"rank": "1-3", "children": {"core": "0-3"}},
            ],
            "nodelist": ["node[0-3]"],
            "nslots": 7,
            "starttime": 100,
            "expiration": 700,
            "properties": {"amd-mi50@gpu": "2-3", "batch": "0-1,3", "debug": "2"},
        },
        "attributes": {"system": {"scheduler": scheduler}},
    }
    assert ResourceSet.from_dict(json.loads(json.dumps(found))).to_dict() == found


NAMED = [
    ("what was counted", "slot=2/core", [("0", {"core": "0-1"})]),
    ("a node without content names all of it", "slot/node", [("0", {"core": "0-3"})]),
    ("a node with content names what was counted", "slot/node/core=2", [("0", {"core": "0-1"})]),
    ("unless it is called exclusive itself", "slot/node{x}/core=2", [("0", {"core": "0-3"})]),
    ("a shared node alone has nothing named on it", "node=2", [("0-1", {})]),
    ("shared units", "node=2/core=3", [("0-1", {"core": "0-2"})]),
    (
        "a cluster that is held whole",
        "slot/cluster",
        [("0-1", {"core": "0-3"}), ("2-3", {"core": "0-3", "gpu": "0-1"})],
    ),
    ("nothing but the cluster", "cluster=1", []),
]


@pytest.mark.parametrize(("shape", "entries"), [case[1:] for case in NAMED], ids=[case[0] for case in NAMED])
def test_r_names_exactly_what_was_counted(tiny, shape, entries):
    """M5."""
    execution = given(tiny, shape)["execution"]
    assert [(group["rank"], group["children"]) for group in execution["R_lite"]] == entries
    assert bool(execution["nodelist"]) == bool(entries)


def test_hosts_stand_in_the_order_of_ranks(make):
    """R10, also where ranks do not ascend in the graph."""
    outline = """
    cluster0
      a1 type=node rank=3
        core0 size=2
      b7 type=node rank=0
        core0 size=2
      c2 type=node rank=1
        core0 size=1
    """
    execution = given(outline_cluster(outline), "slot=3/node")["execution"]
    assert execution["R_lite"] == [
        {"rank": "0,3", "children": {"core": "0-1"}},
        {"rank": "1", "children": {"core": "0"}},
    ]
    assert execution["nodelist"] == ["b7,c2,a1"]


def test_a_property_with_a_plus_is_the_instances_own(make):
    cluster = make(("0-2", {"core": "0"}), hosts="n[0-2]", properties={"+mine": "0-2", "ssd": "1-2"})
    assert given(cluster, "slot=2/core")["execution"]["properties"] == {"ssd": "1"}
    assert "properties" not in given(cluster, "slot/core")["execution"]
    assert given(cluster, "slot/core", "+mine and ssd")["execution"]["properties"] == {"ssd": "1"}


def test_ids_of_a_pool_keep_their_gaps(make):
    cluster = make(("0", {"core": "2-3,8,11-12"}), hosts="n0")
    matcher = ss.Matcher(cluster)
    got = [str(matcher.match(JOBSPEC("slot/core=2")).R.groups[0].children["core"]) for _ in range(2)]
    assert got == ["2-3", "8,11"]


def test_ids_that_repeat_in_each_socket_are_numbered_anew(jgf):
    outline = """
    cluster0
      node0 rank=0
        socket0
          core0
          core1
        socket1
          core0
          core1
    """
    assert given(jgf(outline), "slot/core=3")["execution"]["R_lite"] == [
        {"rank": "0", "children": {"core": "0-2"}}
    ]


LOOSE = """
cluster0
  node0 rank=0
    core0 size=2
    memory0 size=200000 unit=KB
  license0 size=5
  rack0
    disk0 size=500 unit=GB
"""


def test_what_lies_on_no_target_is_listed_by_path(jgf):
    found = given(jgf(LOOSE), "slot=2/[core;license=2;disk=100{unit:GB}]")
    assert found["execution"]["R_lite"] == [{"rank": "0", "children": {"core": "0-1"}}]
    assert found["scheduling"] == {
        "writer": "simsched",
        "pools": {"/cluster0/license0": "0-3", "/cluster0/rack0/disk0": "0-199"},
    }
    alone = given(jgf(LOOSE), "slot/license")
    assert alone["execution"]["R_lite"] == alone["execution"]["nodelist"] == []
    assert alone["scheduling"]["pools"] == {"/cluster0/license0": "0"}


def test_units_of_a_pool_too_large_to_name_are_numbered(jgf):
    found = given(jgf(LOOSE), "slot/[core;memory=150{unit:MB}]")
    assert found["execution"]["R_lite"] == [{"rank": "0", "children": {"core": "0"}}]
    assert found["scheduling"]["pools"] == {"/cluster0/node0/memory0": 150_000}


def test_shards_add_up_to_the_allocation(tiny):
    r = ss.Matcher(tiny).match(JOBSPEC("slot=7/core=2")).R
    parts = r.shards()
    assert len(parts) == 4
    total = parts[0]
    for part in parts[1:]:
        total = total | part
    assert [(g.ranks, g.children) for g in total.groups] == [(g.ranks, g.children) for g in r.groups]


def test_a_selection_as_a_tree(center):
    got = ss.Matcher(center).match(JOBSPEC("slot=2/node/[memory=4{unit:GB};core=3]"))
    assert list(tree_of(got.selection, center.index)) == [
        "center  center0",
        "└─ cluster  cluster0",
        "   └─ 2 × node  east[0-1]  {ib}",
        "      ├─ socket  socket[0,2]",
        "      │  └─ core  3  core0",
        "      ├─ socket  socket[1,3]",
        "      └─ memory  4 GB  memory0",
    ]


def test_what_lies_outside_containment_alone_leaves_the_root():
    racked = ss.load_cluster("racked")
    got = ss.Matcher(racked).match(JOBSPEC("power=2{unit:kW}"))
    assert list(tree_of(got.selection, racked.index)) == ["cluster  cluster0"]
    nodes = jgf_of(got.selection, racked.index)["graph"]["nodes"]
    assert [node["metadata"]["type"] for node in nodes] == ["cluster"]


@pytest.mark.parametrize("cluster", ["tiny", "center", "jgf4", "topo16", "racked"])
@pytest.mark.parametrize("shape", ["slot=3/core=2", "slot=2/node", "node=2/slot=2/core", "core=5"])
def test_a_selection_as_jgf_is_a_cluster_that_holds_it(cluster, shape):
    """The graph of a selection is a graph again, with as many units as R names, and the request fits in."""
    cluster = ss.load_cluster(cluster)
    got = ss.Matcher(cluster).match(JOBSPEC(shape))
    text = json.dumps(jgf_of(got.selection, cluster.index))
    part = Cluster(from_jgf(jgf_from_object(json.loads(text)["graph"])))
    assert part.index.totals["core"] == got.R.count("core")
    assert list(part.index.hosts) == list(got.R.hosts)
    assert ss.Matcher(part).satisfiable(JOBSPEC(shape))


def test_what_is_held_says_so(center):
    def held(shape):
        graph = graph_of(ss.Matcher(center).match(JOBSPEC(shape)).selection, center.index)
        pools = [graph.nodes[key]["pool"] for key in graph]
        return {pool.type for pool in pools if pool.extra.get("exclusive")}

    assert held("node/slot=2/core") == {"core"}
    assert held("node/core=2") == set()
    assert held("slot/node") >= {"node", "socket", "core"}


@pytest.mark.parametrize("hosts", ["node[0-8]", "n[00-08]", "r1n[0-8]", "a[0-3],b[4-8]", "x1[0-8]", "[0-8]"])
def test_the_nodelist_names_the_hosts_of_the_ranks(hosts):
    """However hosts are numbered, the hostlist expands to the hosts of the ranks, in their order (R10)."""
    names = list(ss.Hostlist.parse(hosts))
    execution = {"R_lite": [{"rank": "0-8", "children": {"core": "0"}}], "nodelist": [hosts]}
    cluster = ss.Cluster.from_rset(ss.ResourceSet.from_dict({"version": 1, "execution": execution}))
    matcher = ss.Matcher(cluster)
    held = [matcher.match(ss.Jobspec.from_shape("slot/core")) for _ in range(9)]
    for odd in held[1::2]:
        matcher.release(odd.id)
    got = matcher.match(ss.Jobspec.from_shape("slot=4/core")).R
    assert list(got.hosts) == [names[rank] for rank in got.ranks] == names[1::2]
    assert list(held[2].R.hosts) == [names[2]]


# --- what is exclusive in JGF ---------------------------------------------------------------

LEAVES = """
cluster0
  node0 rank=0
    core0
    core1
    gpu0
    memory0 size=512000000000 unit=B
  node1 rank=1
    core0
    gpu0
    gpu1
"""


def marked(cluster, shape, policy="first", **more):
    """Names of the vertices of a match's JGF, those that are marked exclusive with an ``x``."""
    matcher = ss.Matcher(cluster, policy=policy)
    found = matcher.match(ss.Jobspec.from_shape(shape, **more))
    nodes = jgf_of(matcher.allocations[found.id], cluster.index)["graph"]["nodes"]
    told = [node["metadata"] for node in nodes]
    return " ".join(f"{facts['type']}{facts['id']}{'x' * facts.get('exclusive', False)}" for facts in told)


@pytest.mark.parametrize(
    ("shape", "constraint", "expected"),
    [
        ("slot/gpu", "rank:0", "cluster0 node0 gpu0x"),
        ("slot/gpu", "rank:1", "cluster0 node1 gpu0x"),
        ("slot/core=2", "rank:0", "cluster0 node0 core0x core1x"),
        ("slot/memory=4{unit:GB}", None, "cluster0 node0 memory0x"),
        ("slot/node", "rank:1", "cluster0 node1x core0x gpu0x gpu1x"),
        ("node/[core=2;gpu]", "rank:0", "cluster0 node0 core0 core1 gpu0"),
        ("node/[slot/core;gpu]", "rank:0", "cluster0 node0 core0x gpu0"),
    ],
)
def test_a_leaf_says_that_it_is_exclusive_as_any_other_vertex(shape, constraint, expected):
    assert marked(outline_cluster(LEAVES), shape, constraint=constraint) == expected


def test_nodes_that_a_policy_takes_whole_are_exclusive():
    for shape in ("slot/core", "node/slot/core", "slot/node{-x}/core"):
        found = marked(outline_cluster(LEAVES), shape, "lonodex", constraint="rank:1")
        assert found == "cluster0 node1x core0x gpu0x gpu1x", shape


# --- R on a cluster with a TreePool topology (RFC 49) ---------------------------------------


def treepool_cluster():
    """Four nodes with two sockets, one of which has a disk too large for its units to be named."""
    sockets = [{"cores": "0-1", "memory": 16}, {"cores": "2-3", "gpus": "0"}]
    disk = [{"path": "/ssd", "capacity": 100_000, "unit": "MB"}]
    children = [
        {"ranks": "0-1,3", "topo": {"socket": sockets}},
        {"ranks": "2", "topo": {"socket": sockets, "storage": disk}},
    ]
    R = {
        "version": 1,
        "execution": {
            "R_lite": [{"rank": "0-3", "children": {"core": "0-3", "gpu": "0"}}],
            "nodelist": ["n[0-3]"],
            "starttime": 0,
            "expiration": 0,
        },
        "scheduling": {"writer": "TreePool", "children": children, "site": {"room": 7}},
    }
    from simsched.graph.build.cluster_files import graph_from_document

    return Cluster(graph_from_document(R)), children


def test_r_carries_the_topology_of_its_ranks():
    """RFC 49: ranks are trimmed to those allocated, entries without any are removed, topos stay unchanged."""
    cluster, children = treepool_cluster()
    matcher = ss.Matcher(cluster)
    alone = matcher.match(JOBSPEC("slot/core=3", constraint="rank:1")).R.to_dict()["scheduling"]
    assert alone == {
        "writer": "TreePool",
        "children": [{"ranks": "1", "topo": children[0]["topo"]}],
        "site": {"room": 7},
    }
    several = matcher.match(JOBSPEC("slot=3/node", constraint="rank:0,2-3"))
    document = several.R.to_dict()
    topologies = document["scheduling"]["children"]
    assert topologies == [
        {"ranks": "0,3", "topo": children[0]["topo"]},
        {"ranks": "2", "topo": children[1]["topo"]},
    ]
    assert list(document["scheduling"]["pools"].values()) == [100_000]
    assert ss.Cluster.from_rset(several.R).index.ranks.tolist() == [0, 2, 3]
    kept = matcher.release(several.id, "2-3")
    assert kept.to_dict()["scheduling"]["children"] == [{"ranks": "0", "topo": children[0]["topo"]}]


def test_r_of_an_allocation_is_a_cluster_with_that_topology():
    from simsched.graph.build.cluster_files import graph_from_document

    cluster, _ = treepool_cluster()
    found = ss.Matcher(cluster).match(JOBSPEC("slot=2/node", constraint="rank:1-2")).R.to_dict()
    part = Cluster(graph_from_document(found))
    assert part.index.totals["socket"] == 4
    assert part.index.totals["memory"] == 32
    assert ss.Matcher(part).match(JOBSPEC("slot=4/socket"))


def test_what_is_held_of_an_unnamed_pool_is_read_back_from_a_treepool_r():
    from simsched.match.claims_from_r import ClaimsFromR

    cluster, _ = treepool_cluster()
    found = ss.Matcher(cluster).match(JOBSPEC("slot/[core;storage=40000]"))
    assert found.R.to_dict()["scheduling"]["pools"] == {"/cluster0/n2/storage0": 40_000}
    held = ClaimsFromR(cluster.index).exact("1", found.R)
    assert held.counts["storage"] == 40_000


def test_a_run_on_a_treepool_cluster_writes_the_topology():
    jobs = [
        ss.Job(id=n, submit=0, runtime=5, duration=5, jobspec=JOBSPEC(shape))
        for n, shape in enumerate(("slot/core", "slot=2/core=4", "slot=1/node"))
    ]
    cluster, _ = treepool_cluster()
    run = ss.simulate(cluster, ss.Workload(jobs=tuple(jobs), name="w"))
    lines = [json.loads(line) for line in run.result.log.text().splitlines()]
    for line in lines:
        ranks = ResourceSet.from_dict(line["R"]).ranks
        topologies = line["R"]["scheduling"]["children"]
        assert sum(len(ss.Idset.parse(entry["ranks"])) for entry in topologies) == len(ranks)
