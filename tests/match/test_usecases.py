"""The basic use cases of RFC 14 in RFC 46's shapes: matched where they fit, explained where they do not."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

import simsched as ss
from tests.reference.rsets import units_of

CASES = {
    "1.1": "slot=4/node",
    "1.2": "slot=3-30/node",
    "1.3": "slot=4{nodelevel}/node{-x}/socket=2+/core=4+",
    "1.4": "slot=4{nodelevel}/node/socket=2/core=4",
    "1.5": "[cluster/slot=2{ib}/node/[memory=4{unit:GB};ib10g];switch/slot=2{bicore}/node/core=2]",
    "1.6": "cluster=2/slot/node=1+{-x}/core=30",
    "1.7": "switch=3/slot/node=1+{-x}/core",
    "1.8": "slot=4,9,16,25/node",
    "2.1": "slot=4/node",
    "2.2": "slot=4/node",
    "2.3": "slot=10/core=2",
    "2.4": "node/[slot=10{read-db}/[core;memory=4{unit:GB}];slot{db}/[core=6;memory=24{unit:GB}]]",
    "2.5": "slot=10/[memory=2+{unit:GB};core]",
    "2.6": "slot=2{4GB-node}/node/memory=4+{unit:GB}",
    "2.7": "slot/node",
    "2.8": "slot/node",
    "2.9": "slot/node",
}

#: What each gets on the idle cluster ``center`` (12 nodes × 2 sockets × 16 cores × 128 GB; the six
#: nodes of the first cluster have ib10g): slots, then (ranks, children) of R_lite.
WHOLE = {"core": "0-31", "ib10g": "0", "memory": "0-127"}
PLAIN = {"core": "0-31", "memory": "0-127"}
GETS = {
    "1.1": (4, [("0-3", WHOLE)]),
    "1.2": (12, [("0-5", WHOLE), ("6-11", PLAIN)]),
    "1.3": (4, [("0-3", {"core": "0-31"})]),
    "1.4": (4, [("0-3", {"core": "0-3,16-19"})]),
    "1.5": (4, [("0-1", {"ib10g": "0", "memory": "0-3"}), ("3-4", {"core": "0-1"})]),
    "1.6": (2, [("0-11", {"core": "0-29"})]),
    "1.7": (3, [("0-8", {"core": "0"})]),
    "1.8": (9, [("0-5", WHOLE), ("6-8", PLAIN)]),
    "2.1": (4, [("0-3", WHOLE)]),
    "2.2": (4, [("0-3", WHOLE)]),
    "2.3": (10, [("0", {"core": "0-19"})]),
    "2.4": (11, [("0", {"core": "0-15", "memory": "0-63"})]),
    "2.5": (10, [("0-9", {"core": "0", "memory": "0-127"})]),
    "2.6": (2, [("0-1", {"memory": "0-127"})]),
    "2.7": (1, [("0", WHOLE)]),
    "2.8": (1, [("0", WHOLE)]),
    "2.9": (1, [("0", WHOLE)]),
}

#: (case, its shape with more of it where one copy would fit, cluster and constraint) → why it never runs.
NEVER = {
    ("1.1", "slot=8/node", "jgf4"): "slot/node: 8 needed, 4 available, the idle cluster holds 4",
    ("1.2", "slot=6-30/node", "jgf4"): "slot/node: 6 needed, 4 available, the idle cluster holds 4",
    ("1.3", CASES["1.3"], "tiny"): "slot/node/socket: 2 needed, 0 available, this cluster has no socket; "
    "it has cluster, core, gpu, node",
    (
        "1.4",
        "slot=4/node/socket=2/core=5",
        "jgf4",
    ): "slot/node: 4 needed, 0 available, the idle cluster holds 0, limited by core",
    ("1.5", CASES["1.5"], "racked"): "cluster/slot/node/ib10g: 1 needed, 0 available, this cluster has no "
    "ib10g; it has chassis, cluster, core, gpu, memory, node, pdu, power, powerpanel, rack, socket, storage",
    ("1.6", CASES["1.6"], "gpu1152"): "cluster: 2 needed, 1 available, the idle cluster holds 1",
    ("1.7", CASES["1.7"], "jgf4"): "switch: 3 needed, 0 available, this cluster has no switch; "
    "it has cluster, core, gpu, memory, node, pdu, powerpanel, rack, socket",
    (
        "1.8",
        "slot=9,16,25/node",
        "jgf4",
    ): "slot/node: 9 needed, 4 available, the idle cluster holds 4",
    ("2.1", "slot=5/node", "tiny"): "slot/node: 5 needed, 4 available, the idle cluster holds 4",
    ("2.2", "slot=4/node", "tiny debug"): "slot/node: 4 needed, 1 available, the part with debug holds 1",
    ("2.8", "slot/node", "tiny nosuch"): "slot/node: 1 needed, 0 available, the part with nosuch holds 0",
    (
        "2.9",
        "slot/node/core=5",
        "tiny",
    ): "slot/node: 1 needed, 0 available, the idle cluster holds 0, limited by core",
    ("2.3", CASES["2.3"], "tiny"): "slot: 10 needed, 8 available, the idle cluster holds 8, limited by core",
    ("2.4", CASES["2.4"], "jgf4"): "node: 1 needed, 0 available, the idle cluster holds 0, limited by core",
    ("2.5", CASES["2.5"], "gpu1152"): "slot/memory: 2 needed, 0 available, this cluster has no memory; "
    "it has cluster, core, gpu, node",
    ("2.6", CASES["2.6"], "flat240"): "slot/node/memory: 4 needed, 0 available, this cluster has no memory; "
    "it has cluster, core, node",
    ("2.7", "slot=1153/node", "gpu1152"): "slot/node: 1153 needed, 1152 available, the idle cluster "
    "holds 1152",
}


@pytest.mark.parametrize("case", CASES)
def test_each_case_is_matched_on_the_cluster_that_holds_it(case, center):
    matcher = ss.Matcher(center)
    got = matcher.match(ss.Jobspec.from_shape(CASES[case]))
    matcher._check()
    execution = got.R.to_dict()["execution"]
    found = [(group["rank"], group["children"]) for group in execution["R_lite"]]
    assert (execution["nslots"], found) == GETS[case]
    matcher.release(got.id)
    matcher._check()
    assert matcher.satisfiable(ss.Jobspec.from_shape(CASES[case])).R.to_dict() == got.R.to_dict()


@pytest.mark.parametrize(("case", "shape", "cluster"), NEVER)
def test_each_case_is_explained_on_a_cluster_that_cannot_hold_it(case, shape, cluster):
    name, _, constraint = cluster.partition(" ")
    jobspec = ss.Jobspec.from_shape(shape, constraint=constraint or None)
    answer = ss.Matcher(ss.load_cluster(name)).satisfiable(jobspec)
    assert isinstance(answer, ss.Infeasible)
    assert answer.reasons.short() == NEVER[case, shape, cluster]


@pytest.mark.parametrize("policy", ["first", "lonode", "bestfit", "locality", "random", "high"])
def test_hundreds_of_matches_never_share_a_unit(policy, center):
    """Law: what R documents name at one time is disjoint, and everything is free again in the end.

    (1.7 and the like share nodes, never units: what stands in a slot is exclusive.)
    """
    rng = random.Random(policy)
    matcher = ss.Matcher(center, policy=policy, seed=1)
    running: dict[int, set[tuple[int, str, int]]] = {}
    answers = defaultdict(int)
    for _ in range(300):
        case = rng.choice(list(CASES))
        answer = matcher.match(ss.Jobspec.from_shape(CASES[case]))
        answers[answer.status] += 1
        if answer:
            units = units_of(answer.R)
            assert all(units.isdisjoint(other) for other in running.values()), case
            running[answer.id] = units
        while len(running) > 4 or (running and not answer):
            gone = rng.choice(sorted(running))
            matcher.release(gone)
            del running[gone]
            answer = True
    matcher._check()
    assert answers["matched"] > 80
    assert answers["busy"] > 20
    assert answers["infeasible"] == 0
    for id_ in running:
        matcher.release(id_)
    assert not matcher.available.use.any()
    assert all(
        (free == matcher.index.pool_types[name].size).all() for name, free in matcher.available.free.items()
    )
