"""The engine against the exhaustive oracle: histories of random requests on random tiny clusters.

Law (M10): a match is found if and only if one exists, whatever was claimed before and whatever the
policy (M8); and R names a match (M1-M6).  Each history is made from its seed alone, so a failure repeats.
"""

from __future__ import annotations

import json
import random
from itertools import islice

import pytest

import simsched as ss
from tests.reference.bruteforce import (
    Claims,
    Graph,
    TooBigError,
    Vertex,
    is_feasible,
    match_exists,
    matches_naming,
)
from tests.reference.cases import (
    CLUSTERS,
    describe,
    random_constraint,
    random_request,
    to_jgf,
    to_r,
    to_shape,
)
from tests.reference.rich_cases import rich_cluster, rich_request

JOBS = 6
POLICIES = ("low", "high", "lonode", "hinode", "bestfit", "worstfit", "locality", "random")


def jobspec(request, constraint):
    return ss.Jobspec.from_shape(to_shape(request), duration=60, constraint=constraint)


def load(graph, kind, folder):
    path = folder / f"cluster-{kind}.json"
    path.write_text(json.dumps(to_r(graph) if kind == "flat" else to_jgf(graph)))
    return ss.load_cluster(path)


def named_by(rset, graph):
    """R as {rank: {type: ids}}, of the types that the oracle's leaves have."""
    types = {v.type for v in graph.values() if v.type in {"core", "gpu", "memory"}}
    document = rset.to_dict()
    answer = {}
    for group in document["execution"]["R_lite"]:
        children = {
            kind: set(ss.Idset.parse(text)) for kind, text in group["children"].items() if kind in types
        }
        for rank in ss.Idset.parse(group["rank"]):
            answer[rank] = children
    return answer


class History:
    """One cluster and the jobs that run on it, in the engine's books and in the oracle's."""

    def __init__(self, seed, kind, folder):
        self.rng = random.Random(f"{kind} {seed}")
        self.graph = (CLUSTERS | {"rich": rich_cluster})[kind](self.rng)
        self.rich = kind == "rich"
        policy = POLICIES[seed // 2 % len(POLICIES)] if seed % 2 else "first"
        self.matcher = ss.Matcher(load(self.graph, kind, folder), policy=policy)
        self.jobs = {}
        self.story = [f"{kind} {seed} {policy}: {describe(self.graph)}"]
        self.asked = 0

    def claims(self):
        claims = Claims()
        for pieces in self.jobs.values():
            claims.add(self.graph, pieces)
        return claims

    def play(self):
        """Ask for jobs and release some; stop early where R alone does not say what was taken."""
        for _ in range(JOBS):
            if self.jobs and self.rng.random() < 0.3:
                gone = self.rng.choice(sorted(self.jobs))
                self.release(gone)
            elif self.rich and self.rng.random() < 0.2:
                self.set_status()
            elif not self.ask():
                break
        return self.asked

    def release(self, gone):
        """Give back a job, or in rich histories what it has on some of its ranks."""
        ranks = sorted({self.rank_of(piece) for piece in self.jobs[gone]} - {None})
        above = any(
            self.rank_of(p) is None and p.exclusive and self.graph.below[p.vertex] for p in self.jobs[gone]
        )
        part = self.rng.sample(ranks, self.rng.randint(1, len(ranks))) if ranks and not above else ranks
        if not self.rich or len(part) == len(ranks):
            self.story.append(f"release {gone}")
            self.matcher.release(gone)
            del self.jobs[gone]
            return
        self.story.append(f"release {gone} on {part}")
        kept = self.matcher.release(gone, part)
        self.jobs[gone] = [piece for piece in self.jobs[gone] if self.rank_of(piece) not in part]
        assert sorted(kept.ranks) == sorted(set(ranks) - set(part)), str(self)

    def rank_of(self, piece):
        """The rank of the target that a piece is or lies in."""
        chain = self.graph.up_from[piece.vertex]
        return next((self.graph[v].rank for v in chain if self.graph[v].rank is not None), None)

    def set_status(self):
        """Turn a node down or up, where nothing above it is down."""
        node = self.rng.choice([v for v in self.graph if self.graph[v].type == "node"])
        if all(self.graph[v].up for v in self.graph.up_from[node][1:]):
            up = not self.graph[node].up
            self.story.append(f"{node} {'up' if up else 'down'}")
            self.graph[node] = self.graph[node]._replace(up=up)
            assert self.matcher.set_status("up" if up else "down", ranks=str(self.graph[node].rank)) == 1

    def ask(self):
        draw = rich_request if self.rich else random_request
        request, constraint = draw(self.rng, self.graph), random_constraint(self.rng)
        self.story.append(f"{to_shape(request)} {constraint or ''}")
        try:
            possible = match_exists(self.graph, request, self.claims(), constraint)
            feasible = possible or is_feasible(self.graph, request, constraint)
        except TooBigError:
            return True
        self.asked += 1
        outcome = self.matcher.match(jobspec(request, constraint))
        expected = ss.Matched if possible else ss.Busy if feasible else ss.Infeasible
        assert isinstance(outcome, expected), f"{self}\n{type(outcome)} and not {expected}"
        if not possible:
            assert outcome.reasons, f"{self}\nno reasons"
            return True
        return self.accept(outcome, request, constraint)

    def accept(self, outcome, request, constraint):
        named = named_by(outcome.R, self.graph)
        self.story.append(f"  job {outcome.id}: {named}")
        matches = matches_naming(self.graph, request, named, self.claims(), constraint)
        try:
            found = list(islice(matches, 50))
        except TooBigError:
            return False
        assert found, f"{self}\nR names no match of the request"
        self.jobs[outcome.id] = found[0]
        same = len({self.taken_by(pieces) for pieces in found}) == 1
        return len(found) < 50 and same and not mixed(found[0])

    def taken_by(self, pieces):
        claims = Claims()
        claims.add(self.graph, pieces)
        return frozenset(claims.subtrees), frozenset(claims.units), frozenset(claims.shared)

    def __str__(self):
        return "\n".join(self.story)


def mixed(pieces):
    """Whether one pool gave both exclusive and shared units: R does not say which are which."""
    return len({(p.vertex, p.exclusive) for p in pieces}) > len({p.vertex for p in pieces})


def play(kind, seeds, folder):
    asked = sum(History(seed, kind, folder).play() for seed in seeds)
    assert asked > 2 * len(seeds), "too many histories ended early to prove anything"


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["flat", "tree", "network", "rich"])
def test_engine_is_sound_and_complete(kind, tmp_path):
    play(kind, range(250), tmp_path)


def test_switches_that_reach_the_same_nodes(tmp_path):
    """Found by history 4381: locality took one node twice."""
    over = {"node0": ("switch0", "switch1"), "node1": (), "node2": ()}
    graph = {"cluster0": Vertex("cluster", None)}
    graph |= {s: Vertex("switch", "cluster0") for s in ("switch0", "switch1")}
    for rank, name in enumerate(over):
        graph[name] = Vertex("node", "cluster0", rank=rank, host=f"host{rank}", over=over[name])
        graph[f"{name}/core"] = Vertex("core", name, (0, 1))
    matcher = ss.Matcher(load(Graph(graph), "network", tmp_path), policy="locality")
    got = matcher.match(ss.Jobspec.from_shape("node=3/slot=1/core=1"))
    assert sorted(named_by(got.R, graph)) == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flat", "tree", "network", "rich"])
def test_engine_is_sound_and_complete_for_long(kind, tmp_path):
    play(kind, range(1000, 2000), tmp_path)


def ranged(rng, graph):
    """A lone slot or node of a ranged count; for slots that only share there is no largest one."""
    while True:
        (want, *more) = random_request(rng, graph)
        if not more and want.type in {"slot", "node"} and "{-x}" not in to_shape([want]):
            return want._replace(counts=tuple(sorted(rng.sample(range(1, 9), rng.randint(2, 5)))))


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["flat", "tree", "network"])
def test_a_range_takes_the_largest_count_that_can_be_had(kind, tmp_path):
    """Law (M6): the outermost count is the largest acceptable one for which a match exists."""
    seen = 0
    for seed in range(200):
        rng = random.Random(f"range {kind} {seed}")
        graph = CLUSTERS[kind](rng)
        want = ranged(rng, graph)
        outcome = ss.Matcher(load(graph, kind, tmp_path)).match(jobspec([want], None))
        try:
            possible = [n for n in want.counts if match_exists(graph, [want._replace(counts=(n,))])]
        except TooBigError:
            continue
        story = f"{seed} {describe(graph)}\n{to_shape([want])}: {possible}"
        assert bool(outcome) is bool(possible), story
        if outcome:
            execution = outcome.R.to_dict()["execution"]
            nodes = sum(len(ss.Idset.parse(group["rank"])) for group in execution["R_lite"])
            assert (execution["nslots"] if want.type == "slot" else nodes) == max(possible), story
            seen += 1
    assert seen > 30
