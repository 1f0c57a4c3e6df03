"""Why not: funnels as stories, and laws that hold for every negative answer (M11, M12)."""

from __future__ import annotations

import json
import random
import textwrap

import pytest

import simsched as ss
from simsched.formats.jobspec.shape import parse_shape
from simsched.formats.rfc.count import Count
from tests.reference.cases import (
    describe,
    flat_cluster,
    random_constraint,
    random_request,
    to_jgf,
    to_r,
    to_shape,
    tree_cluster,
)

JOBSPEC = ss.Jobspec.from_shape


def story(text):
    return textwrap.dedent(text).strip()


def never(cluster, shape, constraint=None):
    answer = ss.Matcher(cluster).satisfiable(JOBSPEC(shape, constraint=constraint))
    assert isinstance(answer, ss.Infeasible)
    return answer.reasons


# --- never ----------------------------------------------------------------------------------


NEVER = [
    (
        "more copies than the whole cluster holds",
        "slot=10/core=2",
        None,
        """
        slot: 10 needed, 8 available
          node: 4 exist (hold 8) → 4 fit core=2 (hold 8)
          limited by core
        would fit with: slot=8 instead of 10
        would fit with: core=1 instead of 2 (slot/core)
        """,
    ),
    (
        "a copy that no node can hold",
        "slot/core=8",
        None,
        """
        slot: 1 needed, 0 available
          node: 4 exist (hold 0) → 0 fit core=8
          limited by core
        would fit with: core=4 instead of 8 (slot/core)
        """,
    ),
    (
        "more nodes than there are",
        "slot=5/node",
        None,
        """
        slot/node: 5 needed, 4 available
          node: 4 exist → 4 fit
        would fit with: slot=4 instead of 5
        """,
    ),
    (
        "gpus are on two nodes only",
        "node=3/slot=2/gpu",
        None,
        """
        node: 3 needed, 2 available
          node: 4 exist (hold 2) → 2 fit slot=2/gpu
          limited by gpu
        would fit with: node=2 instead of 3
        """,
    ),
    (
        "a type that the cluster does not have",
        "slot/node/gpus=2",
        None,
        """
        slot/node/gpus: 2 needed, 0 available
          gpus: 0 exist
          this cluster has no gpus; it has cluster, core, gpu, node; did you mean gpu?
        """,
    ),
    (
        "units that are shared, outside a slot",
        "core=30",
        None,
        """
        core: 30 needed, 16 available
          core: 16 exist → 16 idle enough
        would fit with: core=16 instead of 30
        """,
    ),
    (
        "a constraint that too few nodes satisfy",
        "slot=2/node",
        "debug",
        """
        slot/node: 2 needed, 1 available
          node: 4 exist → 1 with debug → 1 fit
        would fit with: slot=1 instead of 2
        would fit without the constraint debug
        """,
    ),
    (
        "one property of two is to blame",
        "slot/node",
        "debug and batch",
        """
        slot/node: 1 needed, 0 available
          node: 4 exist → 0 with debug and batch → 0 fit
        would fit without the property debug
        would fit without the property batch
        """,
    ),
    (
        "a property that no node has",
        "slot=2/core",
        "ssd",
        """
        no node has the property ssd; known properties: amd-mi50, amd-mi50@gpu, batch, debug
        slot: 2 needed, 0 available
          node: 4 exist (hold 16) → 0 with ssd → 0 fit core
        would fit without the constraint ssd
        """,
    ),
    (
        "a node that is not there",
        "slot/node{id:node9}",
        None,
        """
        slot/node: 1 needed, 0 available
          node: 4 exist → 0 with id=node9 → 0 fit
        would fit with: any node, without id
        """,
    ),
    (
        "cores and gpus, but not on the same nodes",
        "slot=3/[core=3;gpu]",
        None,
        """
        slot: 3 needed, 2 available
          node: 4 exist (hold 2) → 2 fit [core=3;gpu]
          enough core and gpu, but not on the same nodes
        would fit with: slot=2 instead of 3
        would fit with: core=2 instead of 3 (slot/core)
        """,
    ),
    (
        "nothing less in one place will do: the nearest is less in two",
        "slot=9/node/core=5",
        None,
        """
        slot/node: 9 needed, 0 available
          node: 4 exist (hold 0) → 0 fit core=5
          limited by core
        would fit with: slot=4 instead of 9 and core=4 instead of 5 (slot/node/core)
        """,
    ),
    (
        "the least of a range is too much",
        "slot=6-9/[core;gpu]",
        None,
        """
        slot: 6 needed, 4 available
          node: 4 exist → 2 fit [core;gpu] (hold 4)
          limited by gpu
        would fit with: slot=4 instead of 6
        """,
    ),
    (
        "siblings that can each be had by themselves",
        "[slot=10{a}/core;slot=8{b}/core]",
        None,
        """
        each part fits by itself, but not all of them together
        the whole request: 18 needed, 16 available
          core: 16 exist → 16 idle enough
        would fit without slot=10{a}/core
        would fit without slot=8{b}/core
        would fit with: slot=8 instead of 10
        would fit with: slot=6 instead of 8
        """,
    ),
]


@pytest.mark.parametrize(
    ("shape", "constraint", "text"), [case[1:] for case in NEVER], ids=[c[0] for c in NEVER]
)
def test_never(tiny, shape, constraint, text):
    assert str(never(tiny, shape, constraint)) == story(text)


OUTLINE = """
cluster0
  rack0
    node0 rank=0
      socket0
        core0 size=4
      socket1
        core0 size=4
    node1 rank=1
      socket2
        core0 size=4
  rack1
    node2 rank=2 properties=fast
      socket3
        core0 size=8
  license0 size=2
  disk0 size=500 unit=GB
"""

NESTED = [
    (
        "racks that are too small",
        "rack=2/node=2/core",
        None,
        """
        rack: 2 needed, 1 available
          rack: 2 exist (hold 1) → 1 fit node=2/core
        rack/node: 4 needed, 3 available
          node: 3 exist → 3 fit core
        would fit with: rack=1 instead of 2
        would fit with: node=1 instead of 2 (rack/node)
        """,
    ),
    (
        "sockets within nodes",
        "slot=2/node/socket=2/core=4",
        None,
        """
        slot/node: 2 needed, 1 available
          node: 3 exist (hold 1) → 1 fit socket=2/core=4
          limited by socket
        would fit with: slot=1 instead of 2
        would fit with: socket=1 instead of 2 (slot/node/socket)
        """,
    ),
    (
        "no socket serves",
        "slot/node/socket/core=16",
        None,
        """
        slot/node: 1 needed, 0 available
          node: 3 exist (hold 0) → 0 fit socket/core=16
          limited by core
        slot/node/socket: 1 needed, 0 available
          socket: 4 exist (hold 0) → 0 fit core=16
        would fit with: core=8 instead of 16 (slot/node/socket/core)
        """,
    ),
    (
        "licences that lie on no node",
        "slot=3/[core=2;license]",
        None,
        """
        slot/license: 3 needed, 2 available
          license: 2 exist → 2 idle enough
        would fit with: slot=2 instead of 3
        """,
    ),
    (
        "a pool with a unit",
        "disk=1{unit:TB}",
        None,
        """
        disk: 1000 needed, 500 available
          disk: 500 exist → 500 idle enough
        """,
    ),
    (
        "a constraint above the nodes",
        "rack=2/slot/core",
        "fast",
        """
        rack: 2 needed, 1 available
          rack: 2 exist → 1 with fast → 1 fit slot/core
        would fit with: rack=1 instead of 2
        would fit without the constraint fast
        """,
    ),
]


@pytest.mark.parametrize(("shape", "constraint", "text"), [c[1:] for c in NESTED], ids=[c[0] for c in NESTED])
def test_never_in_a_tree(jgf, shape, constraint, text):
    assert str(never(jgf(OUTLINE), shape, constraint)) == story(text)


# --- not now --------------------------------------------------------------------------------


def test_busy_names_who_holds_it_and_when_it_ends(tiny):
    matcher = ss.Matcher(tiny)
    matcher.match(JOBSPEC("slot=5/core=2", duration=100), starttime=0)
    matcher.match(JOBSPEC("slot/node", duration=50), starttime=10)
    answer = matcher.match(JOBSPEC("slot=4/core=2"), starttime=20)
    assert isinstance(answer, ss.Busy)
    assert str(answer.reasons) == story("""
        slot: 4 needed, 1 available
          node: 4 exist (hold 8) → 1 idle enough (hold 2) → 1 fit core=2
          limited by core
          claimed by job 1 (10 core) until 100 s, job 2 (4 core) until 60 s
        would fit with: slot=1 instead of 4
        would fit at 100 s, when job 1 ends
        """)
    assert answer.reasons.short() == "slot: 4 needed, 1 available, the rest is in use, limited by core"
    assert json.loads(json.dumps(answer.to_dict())) == {
        "status": "busy",
        "reasons": {
            "codes": [
                {
                    "code": "graph-busy",
                    "text": "slot: 4 needed, 1 available, the rest is in use, limited by core",
                }
            ],
            "funnels": [
                {
                    "path": "slot",
                    "type": "node",
                    "steps": [
                        {"name": "exist", "left": 4, "holds": 8},
                        {"name": "up", "left": 4, "holds": 8},
                        {"name": "idle", "left": 1, "holds": 2},
                        {"name": "fits", "left": 1, "holds": 1, "note": "core=2"},
                    ],
                    "needed": 4,
                    "available": 1,
                    "broke_at": "idle",
                    "binding": "core",
                    "held_by": [
                        {"id": 1, "targets": 3, "units": 10, "until": 100},
                        {"id": 2, "targets": 1, "units": 4, "until": 60},
                    ],
                }
            ],
            "would_do": [
                {"kind": "count", "text": "slot=1 instead of 4", "path": "slot", "value": 1},
                {"kind": "time", "text": "at 100 s, when job 1 ends", "value": 100},
            ],
        },
    }


def test_whole_nodes_that_somebody_shares(tiny):
    matcher = ss.Matcher(tiny)
    matcher.match(JOBSPEC("node=4/core"))
    answer = matcher.match(JOBSPEC("slot=2/node"))
    assert str(answer.reasons) == story("""
        slot/node: 2 needed, 0 available
          node: 4 exist → 0 idle enough → 0 fit
          claimed by job 1
        """)


def test_what_is_down(tiny):
    matcher = ss.Matcher(tiny)
    matcher.set_status("down", ranks="0-1")
    assert str(matcher.match(JOBSPEC("slot=3/node")).reasons) == story("""
        slot/node: 3 needed, 2 available
          node: 4 exist → 2 up → 2 fit
        would fit with: slot=2 instead of 3
        would fit with the 2 nodes that are down back up
        """)
    assert isinstance(matcher.satisfiable(JOBSPEC("slot=3/node"), status=True), ss.Infeasible)
    assert isinstance(matcher.satisfiable(JOBSPEC("slot=3/node")), ss.Matched)


def test_a_policy_of_whole_nodes(four):
    matcher = ss.Matcher(four, policy="lonodex")
    matcher.match(JOBSPEC("slot=13/core"))
    assert str(matcher.match(JOBSPEC("slot/core")).reasons) == story("""
        slot: 1 needed, 0 available
          node: 4 exist (hold 16) → 0 idle enough → 0 fit core
          limited by core
          claimed by job 1 (16 core)
        """)
    shared = ss.Matcher(four)
    shared.match(JOBSPEC("slot=13/core"))
    assert shared.match(JOBSPEC("slot/core"))


def test_reasons_tell_of_the_moment_they_were_given_in(tiny):
    """They are made when they are looked at, and yet know nothing of what came later."""
    matcher = ss.Matcher(tiny)
    first = matcher.match(JOBSPEC("slot=3/node"))
    refused = matcher.match(JOBSPEC("slot=2/node"))
    matcher.release(first.id)
    matcher.match(JOBSPEC("slot=4/node"))
    assert refused.reasons.short() == "slot/node: 2 needed, 1 available, the rest is in use"


def test_an_unsettled_search_is_neither_yes_nor_no(tiny, monkeypatch):
    monkeypatch.setattr("simsched.match.search.exact.find.__defaults__", (None, 0))
    answer = ss.Matcher(tiny).match(JOBSPEC("[slot=4{a}/core=2;slot=4{b}/core=2]"))
    assert isinstance(answer, ss.Undecided)
    assert not answer
    assert answer.reasons.note


# --- laws -----------------------------------------------------------------------------------


def histories(seeds):
    """Yield (story, jobspec, matcher, answer) for every negative answer of random histories."""
    for kind in ("flat", "tree"):
        for seed in seeds:
            rng = random.Random(f"{kind} {seed}")
            graph = flat_cluster(rng) if kind == "flat" else tree_cluster(rng)
            document = to_r(graph) if kind == "flat" else to_jgf(graph)
            matcher = ss.Matcher(document_cluster(document))
            for now in range(6):
                shape, constraint = to_shape(random_request(rng, graph)), random_constraint(rng)
                jobspec = JOBSPEC(shape, duration=60, constraint=constraint)
                answer = matcher.match(jobspec, starttime=now)
                if answer.status in ("busy", "infeasible"):
                    yield f"{kind} {seed}: {describe(graph)} | {shape} {constraint}", jobspec, matcher, answer


def document_cluster(document):
    from simsched.formats.cluster.jgf import jgf_from_object
    from simsched.formats.cluster.rset import ResourceSet
    from simsched.graph.build.jgf import from_jgf
    from simsched.graph.cluster import Cluster

    if "execution" in document:
        return Cluster.from_rset(ResourceSet.from_dict(document))
    return Cluster(from_jgf(jgf_from_object(document["graph"])))


def check_funnel(funnel, text):
    """A funnel narrows, starts with all there is, and says how much of what is needed is left."""
    assert funnel.needed >= 1
    assert 0 <= funnel.available <= funnel.needed
    assert funnel.available < funnel.needed or funnel.note, text
    assert funnel.steps[0].name == "exist"
    for before, after in zip(funnel.steps, funnel.steps[1:], strict=False):
        assert 0 <= after.left <= before.left
        assert 0 <= after.holds <= before.holds


def edited(vertex, path, value, above=""):
    """Yield versions of a vertex in which one vertex at that path asks for `value`."""
    from dataclasses import replace

    here = f"{above}/{vertex.type}" if above else vertex.type
    if here == path:
        yield replace(vertex, count=Count.fixed(value))
    for at, child in enumerate(vertex.with_):
        for version in edited(child, path, value, here):
            yield replace(vertex, with_=(*vertex.with_[:at], version, *vertex.with_[at + 1 :]))


def works(jobspec, change, matcher):
    """Whether a change of one count, tried anew, makes the request match."""
    from dataclasses import replace

    for at, vertex in enumerate(jobspec.resources):
        for version in edited(vertex, change.path, int(change.value)):
            resources = (*jobspec.resources[:at], version, *jobspec.resources[at + 1 :])
            if matcher(replace(jobspec, resources=resources)):
                return True
    return False


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 250), marks=pytest.mark.slow)])
def test_laws_of_every_no(seeds):
    """Every funnel narrows; every smaller count that is named makes the request match."""
    seen = {"funnels": 0, "count": 0, "several": 0, "time": 0, "constraint": 0, "status": 0}
    for text, jobspec, matcher, answer in histories(seeds):
        reasons = answer.reasons
        assert reasons.funnels or reasons.note, text
        assert reasons.short(), text
        assert "\n" not in reasons.short()
        json.dumps(reasons.to_dict())
        for funnel in reasons.funnels:
            seen["funnels"] += 1
            check_funnel(funnel, text)
        for change in reasons.changes:
            seen[change.kind] = seen.get(change.kind, 0) + 1
            if change.kind == "count":
                ask = matcher.feasible_now if answer.status == "busy" else matcher.satisfiable
                assert works(jobspec, change, ask), f"{text}: {change}"
            if change.kind == "time":
                assert works_later(jobspec, matcher, change.value), f"{text}: {change}"
    assert all(seen.values()), seen


def works_later(jobspec, matcher, end):
    """Whether it matches once all that end by then have ended."""
    later = matcher.copy()
    for id_ in later.allocations:
        if later.ends[id_] <= end:
            later.release(id_)
    return bool(later.feasible_now(jobspec))


def test_reasons_of_a_yes_are_empty(tiny):
    answer = ss.Matcher(tiny).satisfiable(JOBSPEC("slot/core"))
    assert not answer.reasons
    assert str(answer.reasons) == ""
    assert answer.reasons.to_dict() == {"codes": [], "funnels": [], "would_do": []}


def test_a_jobspec_that_means_nothing_here_is_an_error(center):
    with pytest.raises(
        ss.errors.RequestError, match="slot/memory: W is a unit of power and GB one of memory"
    ):
        ss.Matcher(center).satisfiable(JOBSPEC("slot/memory=2{unit:W}"))


@pytest.mark.parametrize("shape", ["node=2{unit:GB}", "slot/node{unit:W}/core", "cluster{unit:B}"])
def test_what_is_claimed_vertex_by_vertex_has_no_unit(center, shape):
    """M2: a unit of another dimension is an error, and a count of vertices has no dimension."""
    with pytest.raises(ss.errors.RequestError, match="without a unit, the request asks for"):
        ss.Matcher(center).satisfiable(JOBSPEC(shape))


def test_shapes_in_stories_parse():
    for case in (*NEVER, *NESTED):
        assert parse_shape(case[1])
