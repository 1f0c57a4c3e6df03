"""Runs on nodes of which a socket, or the cores of one, are down: R lists what is up."""

from __future__ import annotations

import random

import pytest

import simsched as ss
from simsched.formats.cluster.recipe import parse_recipe
from simsched.graph.build.recipe import from_recipe

SHAPES = (
    *("node=1", "node=3", "slot=1/node", "slot=2/node/core=2", "slot=2/socket", "node=2/socket=2"),
    *("slot=6/core", "slot=20/core", "slot=3/[core=2]", "node=2/core=4{x}"),
)


RECIPE = {"groups": [{"name": "n", "count": 3, "sockets": 2, "cores": 8}]}


def drawn(rng):
    graph = ss.Cluster(from_recipe(parse_recipe(RECIPE))).to_networkx()
    for _, vertex in graph.nodes(data=True):
        if vertex["type"] in ("node", "socket", "core") and rng.random() < 0.15:
            vertex["status"] = rng.choice(["down", "drained"])
    return ss.Cluster(graph)


@pytest.mark.parametrize("seed", range(12))
def test_the_audit_knows_the_parts_of_nodes_that_are_down(seed):
    rng = random.Random(seed)
    policy = rng.choice(["fcfs", "easy", "conservative", "slurm"])
    sim = ss.Simulation(drawn(rng), policy, match_policy=rng.choice(["first", "high"]))
    for number in range(12):
        at = rng.randint(0, 20) + 20 * number
        sim.submit(rng.choice(SHAPES), duration=40, runtime=rng.randint(1, 30), at=at)
    sim.run()
    assert sim.audit(), sim.audit()
