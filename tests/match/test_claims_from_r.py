"""From R back to what is held: the inverse of what a match emits, on every kind of cluster."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.errors import ClusterError, ConfigError, WorkloadError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.graph.cluster import Cluster, load_cluster
from simsched.match.claims_from_r import ClaimsFromR
from simsched.match.matcher import Matcher
from simsched.match.requests.compile import compile_request
from simsched.match.state.availability import Availability
from simsched.match.state.masks import listed

SHAPES = {
    "tiny": ["slot=3/core", "slot=2/[core=2;gpu]", "slot=1/node", "node=2/slot=1/core", "slot=1/node/core=2"],
    "racked": [
        *(
            "slot=40/core",
            "slot=2/socket",
            "slot=1/socket/core=3",
            "node=2/socket=2/slot=1/core=2",
            "slot=3/node",
        ),
        *(
            "slot=2/[core=4;memory=16]",
            "slot=1/gpu",
            "rack=1/node=2/slot=1/core=4",
            "slot=1/[node;power=100]",
        ),
    ],
    "topo16": ["slot=9/core", "slot=2/[core=2;gpu]", "slot=2/node", "slot=1/socket", "node=2/slot=2/core=3"],
    "grug4": ["slot=5/core", "slot=1/node", "slot=1/socket/core=2", "slot=2/core=3", "core=2"],
}


def units(selection, index):
    """{type: {leaf pool: mask}} of what is held; a number where units bear no ids."""
    found = {}
    for draw in selection.held:
        pool = index.pool_types[draw.type]
        masks = None if draw.masks is None else listed(draw.masks)
        counts = np.broadcast_to(draw.units, len(draw.pools)).tolist()
        found[draw.type] = {
            leaf: count if not pool.named else pool.full[leaf] if masks is None else masks[at]
            for at, (leaf, count) in enumerate(zip(draw.pools.tolist(), counts, strict=True))
        }
    return found


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("policy", ["first", "hinode", "bestfit", "lonodex"])
def test_what_a_match_emits_is_what_comes_back(name, policy):
    """Law: R and the request give the units that the match claimed, and leave the machine in its state."""
    cluster = load_cluster(name)
    index, rng = cluster.index, np.random.default_rng(7)
    matcher, grants, left = Matcher(cluster, policy), ClaimsFromR(index), Availability(index)
    matched = 0
    for number in range(60):
        spec = Jobspec.from_shape(str(rng.choice(SHAPES[name])))
        found = matcher.match(spec)
        if not found:
            continue
        matched += 1
        granted = ResourceSet.from_dict(found.R.to_dict())
        mine = grants.exact(str(number), granted, compile_request(spec, index, alone=policy == "lonodex"))
        assert units(mine, index) == units(found.selection, index), spec.to_shape()
        left.claim(mine)
        theirs = matcher.available
        assert (left.total, left.sharers) == (theirs.total, theirs.sharers)
        assert (left.use == theirs.use).all()
        for kind in index.pool_types:
            assert (left.free[kind] == theirs.free[kind]).all()
    left.check()
    assert matched > 2


def granted(ranks, children, hosts, **more):
    lite = [{"rank": ranks, "children": children}]
    return ResourceSet.from_dict({"version": 1, "execution": {"R_lite": lite, "nodelist": [hosts]}, **more})


def machine(nodes=4, cores=4):
    return Cluster.from_rset(granted(f"0-{nodes - 1}", {"core": f"0-{cores - 1}"}, f"n[0-{nodes - 1}]")).index


POOLS = {"writer": "simsched", "pools": {"/nowhere": 3}}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (granted("9", {"core": "0"}, "n9"), "the cluster has no rank 9 (expected ranks 0-3)"),
        (granted("1", {"core": "0"}, "n2"), "rank 1 is 'n2' in R and 'n1' in the cluster"),
        (granted("1-2", {"core": "0"}, "n[2,1]"), "rank 1 is 'n2' in R and 'n1' in the cluster"),
        (granted("1", {"core": "3-4"}, "n1"), "rank 1 (n1) has no core 4"),
        (granted("1", {"core": "0-99999999"}, "n1"), "rank 1 (n1) has no core 4"),
        (granted("3-4", {"core": "0"}, "n[3-4]"), "the cluster has no rank 4 (expected ranks 0-3)"),
        (granted("1", {"gpu": "0"}, "n1"), "rank 1 (n1) has no gpu"),
        (granted("1", {"node": "0"}, "n1"), "rank 1 (n1) has no node"),
        (granted("1", {"core": "0"}, "n1", scheduling=POOLS), "the cluster has no pool '/nowhere'"),
    ],
)
def test_what_the_cluster_lacks_is_said(found, said):
    with pytest.raises((ClusterError, ConfigError)) as caught:
        ClaimsFromR(machine()).exact("7", found)
    assert str(caught.value) == said


def test_no_unit_is_held_twice_and_a_job_that_cleans_up_gets_the_rest():
    grants = ClaimsFromR(machine())
    grants.exact("7", granted("0-1", {"core": "1-2"}, "n[0-1]"))
    with pytest.raises(WorkloadError, match=r"core 2 of n1 \(rank 1\) is already claimed by job 7"):
        grants.exact("8", granted("1-2", {"core": "2-3"}, "n[1-2]"))
    rest = grants.exact("9", granted("1-2", {"core": "2-3"}, "n[1-2]"), rest=True)
    assert units(rest, machine()) == {"core": {1: 0b1000, 2: 0b1100}}
    with pytest.raises(WorkloadError, match="already claimed by job 9"):
        grants.whole("10", [3, 2])


def test_pools_that_lie_on_no_node_are_held_by_their_paths():
    cluster = load_cluster("racked")
    index, spec = cluster.index, Jobspec.from_shape("slot=1/[node;power=1000]")
    found = Matcher(cluster).match(spec)
    document = found.R.to_dict()
    pools = document["scheduling"]["pools"]
    mine = ClaimsFromR(index).exact("7", ResourceSet.from_dict(document))
    assert mine.counts["power"] == found.selection.counts["power"] > 1000
    pools[next(iter(pools))] = 10**9
    with pytest.raises(ClusterError, match=r"has \d+ units, not 1000000000"):
        ClaimsFromR(index).exact("7", ResourceSet.from_dict(document))


def test_cores_without_names_are_spread_as_evenly_as_the_others_let_them_be():
    index = machine(3)
    grants = ClaimsFromR(index)
    assert (grants.cores_on([0, 1]), grants.cores_on([0, 1, 2])) == (8, 12)
    grants.exact("7", granted("1", {"core": "0-2"}, "n1"))
    assert units(grants.some("8", [0, 1, 2], 7), index) == {"core": {0: 0b0111, 1: 0b1000, 2: 0b0111}}
    with pytest.raises(WorkloadError, match=r"3 cores do not fit on n\[0-2\] beside the other jobs"):
        grants.some("9", [0, 1, 2], 3)
    assert grants.some("9", [0, 1, 2], 3, rest=True).counts == {"core": 2}


def test_targets_by_ranks_hosts_or_both():
    index = Cluster.from_rset(granted("0-3", {"core": "0"}, "a,b,b,c")).index
    grants, parse, hosts = ClaimsFromR(index), Idset.parse, Hostlist.parse
    assert (
        grants.targets_of(parse("1-3"), None) == grants.targets_of(parse("1-3"), hosts("b,c,b")) == [1, 2, 3]
    )
    assert grants.targets_of(None, hosts("c,a")) == [3, 0]
    for ranks, names, said in [
        ("7", None, "the cluster has no rank 7 (expected ranks 0-3)"),
        ("0", "b", "ranks 0 are a, not b"),
        ("0-1", "a", "1 hosts for 2 ranks (expected one host per rank)"),
        (None, "x", "the cluster has no host 'x'"),
        (None, "a,b", "2 targets of the cluster are on host 'b' (expected their ranks)"),
    ]:
        with pytest.raises(ConfigError) as caught:
            grants.targets_of(ranks and parse(ranks), names and hosts(names))
        assert str(caught.value) == said
