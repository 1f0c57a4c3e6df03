"""The compiled index against the graph itself, walked by networkx."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest

import simsched as ss
from simsched.formats.cluster.jgf import jgf_from_object
from simsched.formats.rfc import constraint as rfc31
from simsched.graph.build.jgf import from_jgf
from simsched.graph.cluster import Cluster
from simsched.graph.index.index import Index
from tests.reference.bruteforce import satisfies
from tests.reference.cases import PROPERTIES, flat_cluster, random_constraint, to_jgf, tree_cluster
from tests.reference.outlines import outline_cluster

BUNDLED = [
    "tiny",
    "flat240",
    "gpu1152",
    "center",
    "jgf4",
    "grug4",
    "topo16",
    "racked",
    "fattree",
    "dragonfly",
]


def random_clusters(count):
    for seed in range(count):
        rng = random.Random(seed)
        graph = tree_cluster(rng) if seed % 2 else flat_cluster(rng)
        yield rng, graph, Cluster(from_jgf(jgf_from_object(to_jgf(graph)["graph"])))


@pytest.mark.parametrize("name", BUNDLED)
def test_invariants_on_every_bundled_cluster(name):
    cluster = ss.load_cluster(name)
    cluster.index._check()
    assert cluster.index.totals["core"] > 0


@pytest.mark.parametrize("name", ["jgf4", "grug4", "center", "fattree"])
def test_what_lies_beneath_is_what_a_walk_reaches(name):
    """Law: over containment and every other subsystem, `beneath` finds what networkx's descendants are."""
    index = ss.load_cluster(name).index
    place = {key: (kind, i) for kind, v in index.vertex_types.items() for i, key in enumerate(v.keys)}
    pairs = [(a, b) for a in index.vertex_types for b in index.vertex_types if a != b]
    downwards = nx.DiGraph()
    downwards.add_nodes_from(index.graph)
    for above, below, subsystem in index.graph.edges(keys=True):
        if not index.graph.edges[above, below, subsystem]["relationship"].endswith("in"):
            downwards.add_edge(above, below)
    for above, below in random.Random(name).sample(pairs, min(len(pairs), 12)):
        view = index.beneath(above, below)
        for i, key in enumerate(index.vertex_types[above].keys[:6]):
            reached = {
                place[k][1] for k in nx.descendants(downwards, key) if place.get(k, ("", 0))[0] == below
            }
            found = np.arange(view.low[i], view.high[i])
            assert set((found if view.ordinals is None else view.ordinals[found]).tolist()) == reached, (
                above,
                key,
            )


def test_leaf_pools_hold_every_leaf_once():
    for _, graph, cluster in random_clusters(60):
        index = cluster.index
        index._check()
        for kind in ("core", "gpu"):
            leaves = [v for v in graph.values() if v.type == kind]
            pool = index.pool_types.get(kind)
            assert (int(pool.size.sum()) if pool else 0) == sum(len(v.units) for v in leaves)
        assert len(index) == sum(v.type == "node" for v in graph.values())


def test_constraints_are_evaluated_target_by_target():
    """Law: the row of a constraint is what RFC 31 says of each target by itself (M7, R4)."""
    for rng, graph, cluster in random_clusters(60):
        nodes = [v for v in graph.values() if v.type == "node"]
        for constraint in filter(None, (random_constraint(rng) for _ in range(6))):
            row = cluster.index.targets_matching(rfc31.from_json(constraint))
            by_rank = {int(rank): bool(x) for rank, x in zip(cluster.index.ranks, row, strict=True)}
            assert by_rank == {node.rank: satisfies(node, constraint) for node in nodes}, constraint


@pytest.mark.parametrize(
    ("constraint", "ranks"),
    [
        ({}, [0, 1, 2]),
        ({"and": []}, [0, 1, 2]),
        ({"or": []}, [0, 1, 2]),
        ({"not": []}, []),
        ({"properties": []}, [0, 1, 2]),
        ({"hostlist": []}, [0, 1, 2]),
        ({"ranks": []}, [0, 1, 2]),
        ({"properties": ["ssd"]}, [1]),
        ({"properties": ["^ssd"]}, [0, 2]),
        ({"properties": ["ssd", "^ssd"]}, []),
        ({"properties": ["class=2"]}, [2]),
        ({"properties": ["class"]}, [0, 2]),
        ({"properties": ["nobody"]}, []),
        ({"properties": ["^nobody"]}, [0, 1, 2]),
        ({"hostlist": ["node[1-2],node9"]}, [1, 2]),
        ({"hostlist": ["node1", "node1"]}, [1]),
        ({"ranks": ["0,2-7"]}, [0, 2]),
        ({"not": [{"properties": ["ssd", "fast"]}]}, [0, 2]),
        ({"not": [{"properties": ["ssd"]}, {"ranks": ["0-1"]}]}, [0, 2]),
        ({"or": [{"ranks": ["0"]}, {"and": [{"properties": ["ssd"]}, {"not": [{"ranks": ["0"]}]}]}]}, [0, 1]),
    ],
)
def test_constraints(constraint, ranks):
    outline = """
    cluster0
      node0 rank=0 properties=class=1
        core0
      node1 rank=1 properties=ssd,fast
        core0
      node2 rank=2 properties=class=2
        core0
    """
    index = outline_cluster(outline).index
    assert np.flatnonzero(index.targets_matching(rfc31.from_json(constraint))).tolist() == ranks


def test_leaves_fold_into_leaf_pools():
    """Single units of one parent and status are one leaf pool; larger pools stay by themselves."""
    outline = """
    cluster0
      node0 rank=0
        core0
        core1
        core2 status=1
        memory0 size=4 unit=GB
        memory1 size=8 unit=GB
      node1 rank=1
        core0
    """
    index = outline_cluster(outline).index
    index._check()
    core, memory = index.pool_types["core"], index.pool_types["memory"]
    assert [(size, up) for size, up in zip(core.size.tolist(), core.up.tolist(), strict=True)] == [
        (2, True),
        (1, False),
        (1, True),
    ]
    assert (memory.size.tolist(), memory.unit, index.totals["memory"]) == ([4, 8], "GB", 12)
    assert not core.aligned


def test_units_of_one_type_are_counted_in_one_unit():
    outline = """
    cluster0
      node0 rank=0
        memory0 size=4 unit=GB
      node1 rank=1
        memory0 size=512 unit=MB
    """
    pool = outline_cluster(outline).index.pool_types["memory"]
    assert (pool.unit, pool.size.tolist()) == ("B", [4 * 10**9, 512 * 10**6])


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("size=5", "some pools of type 'memory' have a unit and some have none"),
        ("size=5 unit=W", "dimension"),
    ],
)
def test_units_that_cannot_be_added_up(second, message):
    outline = f"""
    cluster0
      node0 rank=0
        memory0 size=4 unit=GB
      node1 rank=1
        memory0 {second}
    """
    with pytest.raises(ss.errors.ClusterError, match=message):
        _ = outline_cluster(outline).index


def test_a_pool_on_some_nodes_is_aligned_all_the_same():
    index = ss.load_cluster("tiny").index
    gpu = index.pool_types["gpu"]
    assert gpu.aligned
    assert gpu.size.tolist() == [0, 0, 2, 2]
    assert index.flat


def test_what_is_down_above_is_down_beneath():
    outline = """
    cluster0
      rack0 status=1
        node0 rank=0
          core0 size=4
      rack1
        node1 rank=1
          core0 size=4
    """
    index = outline_cluster(outline).index
    assert index.up.tolist() == [False, True]
    assert index.pool_types["core"].up.tolist() == [False, True]
    assert index.totals["core"] == 4


def test_an_index_is_made_once():
    cluster = ss.load_cluster("tiny")
    assert cluster.index is cluster.index
    assert isinstance(cluster.index, Index)
    assert set(PROPERTIES).isdisjoint(cluster.index.property_rows)
