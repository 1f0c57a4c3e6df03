"""Long random lives of matchers on random trees, under every policy: the state always adds up.

Laws: after each match, release in part or whole, and change of status, the state is the sum
of the claims (`_check`); a saved state comes back equal; every selection can be written as
R and as a graph; whole-node policies share no node.
"""

from __future__ import annotations

import json
import random

import pytest

import simsched as ss
from simsched.formats.cluster.jgf import jgf_from_object
from simsched.graph.build.jgf import from_jgf
from simsched.graph.cluster import Cluster
from simsched.match.emit_graph import jgf_of
from simsched.match.policies.policy import POLICIES
from tests.reference.cases import describe, random_constraint, random_request, to_jgf, to_shape, tree_cluster

STEPS = 8

#: What fits often, so that there is something to release.
SMALL = [
    "slot/core",
    "slot=2/core",
    "slot/node",
    "slot/node/core",
    "slot/socket",
    "slot/rack",
    "slot/[core;license]",
    "slot/node{-x}/core",
    "node=1/core",
    "node=2/slot/core",
    "rack/slot/core=2",
    "core=2",
    "[node=1;slot/core]",
]


class Life:
    """One matcher on one random cluster."""

    def __init__(self, seed):
        self.rng = random.Random(f"life {seed}")
        self.graph = tree_cluster(self.rng)
        self.cluster = Cluster(from_jgf(jgf_from_object(to_jgf(self.graph)["graph"])))
        self.matcher = ss.Matcher(self.cluster, policy=self.rng.choice(list(POLICIES)), seed=seed)
        self.story = [f"{seed} {self.matcher.policy.name}: {describe(self.graph)}"]
        self.matched = 0

    def live(self):
        for step in (self.match, self.release, self.set_status, self.save) * STEPS:
            step()
            self.matcher._check()
            self.check_whole_nodes()

    def match(self):
        shape, constraint = self.rng.choice(SMALL), None
        if self.rng.random() < 0.5:
            shape, constraint = to_shape(random_request(self.rng, self.graph)), random_constraint(self.rng)
        self.story.append(f"match {shape} {constraint or ''}")
        answer = self.matcher.match(ss.Jobspec.from_shape(shape, constraint=constraint))
        json.dumps(answer.to_dict())
        if answer:
            self.matched += 1
            assert self.matcher.allocation(answer.id) == answer.R
            json.dumps(jgf_of(answer.selection, self.cluster.index))
        else:
            assert answer.reasons

    def release(self):
        ids = list(self.matcher.allocations)
        if not ids or self.rng.random() < 0.5:
            return
        gone = self.rng.choice(ids)
        ranks = list(self.matcher.allocation(gone).ranks)
        part = self.rng.sample(ranks, self.rng.randint(1, len(ranks))) if ranks else None
        self.story.append(f"release {gone} {part}")
        kept = self.matcher.release(gone, part if self.rng.random() < 0.7 else None)
        if kept is not None:
            assert set(kept.ranks) == set(ranks) - set(part)

    def set_status(self):
        if self.rng.random() < 0.3:
            rank, status = self.rng.randrange(len(self.cluster.index)), self.rng.choice(["up", "down"])
            self.story.append(f"{status} {rank}")
            self.matcher.set_status(status, ranks=str(rank))

    def save(self):
        if self.rng.random() < 0.3:
            saved = json.loads(json.dumps(self.matcher.save()))
            self.matcher = ss.Matcher.restore(self.cluster, saved)
            assert self.matcher.save() == saved

    def check_whole_nodes(self):
        if self.matcher.policy.whole_nodes:
            assert self.matcher.available.use.max(initial=0) <= 1


@pytest.mark.parametrize("seeds", [range(80), pytest.param(range(80, 800), marks=pytest.mark.slow)])
def test_the_state_always_adds_up(seeds):
    matched = 0
    for seed in seeds:
        life = Life(seed)
        try:
            life.live()
        except Exception as error:
            error.add_note("\n".join(life.story))
            raise
        matched += life.matched
    assert matched > 2 * len(seeds)
