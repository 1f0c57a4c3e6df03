"""Corner cases of matching, each with an answer that was worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import simsched as ss
from simsched.match.claims_from_r import ClaimsFromR
from simsched.match.requests.compile import compile_request
from tests.reference.outlines import outline_cluster

JOBSPEC = ss.Jobspec.from_shape

BAYS = """
cluster0
  node0 rank=0 properties=ssd
    core0 size=4
  node1 rank=1
    core0 size=4
  bay0
    disk0 size=2
"""


def test_a_vertex_without_targets_below_it_passes_any_constraint_where_siblings_compete():
    """M7: a constraint filters targets; a bay of disks has none, so that it is not ruled out."""
    request = JOBSPEC("[bay/disk=1;slot/disk=1]", constraint="ssd")
    matcher = ss.Matcher(outline_cluster(BAYS))
    assert not compile_request(request, matcher.index).separable
    assert matcher.satisfiable(request)
    assert matcher.match(request)
    assert not ss.Matcher(outline_cluster(BAYS)).satisfiable(
        JOBSPEC("[bay/disk=2;slot/disk=1]", constraint="ssd")
    )


@pytest.mark.parametrize(
    ("shape", "cores"), [("slot=2/core=2{id:0-7}", "0-3"), ("slot=3/core=2{id:1-6}", "1-6")]
)
def test_copies_on_one_node_get_units_that_are_named_each_for_itself(shape, cores):
    cluster = outline_cluster("cluster0\n  node0 rank=0\n" + "".join(f"    core{n}\n" for n in range(8)))
    matcher = ss.Matcher(cluster)
    found = matcher.match(JOBSPEC(shape))
    matcher._check()
    assert str(found.R.groups[0].children["core"]) == cores
    assert int(matcher.available.free["core"].sum()) == 8 - len(ss.Idset.parse(cores))


def test_the_id_zero_is_an_id():
    """Nodes 1, 3 and 0 in graph order: the lowest is the last, the highest the one in the middle."""
    outline = "cluster0\n" + "".join(
        f"  node{number} rank={rank}\n    core0 size=2\n" for rank, number in enumerate((1, 3, 0))
    )
    for policy, ranks in (("lonode", ["2", "0", "1"]), ("hinode", ["1", "0", "2"])):
        matcher = ss.Matcher(outline_cluster(outline), policy=policy)
        assert [str(matcher.match(JOBSPEC("slot/node")).R.ranks) for _ in range(3)] == ranks


@pytest.mark.parametrize(
    ("shape", "copies"),
    [
        ("slot={}/core{{id:1-2}}", 4),  # two cores of each node
        ("slot={}/core{{id:core3}}", 2),
        ("slot={}/core=2{{id:0-2}}", 2),
        ('slot={}/core{{id:"9"}}', 0),
        ("slot={}/memory=100{{id:memory0,unit:GB}}", 5),
        ("slot={}/memory=100{{id:memory1,unit:GB}}", 0),
        ('slot={}/memory=1{{id:"0",unit:GB}}', 0),  # units of such a pool have no ids
        ('slot={}/node{{id:"1"}}', 1),
        ("slot={}/node{{id:node0}}", 1),
        ('slot={}/node{{id:"5"}}', 0),
    ],
)
def test_what_id_leaves_is_counted(shape, copies):
    """M2: `id` names vertices or units; a pool of bytes is known by its name alone."""
    lines = ["cluster0"]
    for node in range(2):
        lines += [f"  node{node} rank={node}", *(f"    core{core}" for core in range(4))]
    lines.append("    memory0 size=500000000000 unit=B")
    cluster = outline_cluster("\n".join(lines))
    matcher = ss.Matcher(cluster)
    if copies:
        assert matcher.satisfiable(JOBSPEC(shape.format(copies)))
        assert matcher.match(JOBSPEC(shape.format(copies)))
        matcher._check()
    assert not matcher.satisfiable(JOBSPEC(shape.format(copies + 1)))


RACKS = """
cluster0
  rack0
    node0 rank=0
      core0 size=4
    node1 rank=1
      core0 size=4
  rack1
    node2 rank=2
      core0 size=4
"""


@pytest.mark.parametrize(
    ("shape", "held", "free"),
    [
        ("rack{x}/node/core=2", [True, False], [0, 0, 4]),
        ("rack/slot/core=2", [False, False], [2, 4, 4]),
    ],
)
def test_a_rack_that_a_running_job_asked_for_is_held_with_it(shape, held, free):
    """R names cores of a node; the request tells that the rack above it was to be exclusive."""
    cluster = outline_cluster(RACKS)
    matcher = ss.Matcher(cluster)
    given = matcher.match(JOBSPEC(shape))
    grants = ClaimsFromR(cluster.index)
    request = compile_request(JOBSPEC(shape), cluster.index)
    grants.exact("1", given.R, request)
    assert grants.left.held["rack"].tolist() == held
    assert grants.left.shared["rack"].tolist() == [int(not held[0]), 0]
    if held[0]:
        assert not grants.left.free["core"][:2].any()
    assert grants.left.free["core"][2] == free[2]


@pytest.mark.parametrize(
    ("shape", "flat"),
    [
        ("node/slot=2/core=2", (("core", 4),)),
        ("node/slot=2/[core=2;gpu]", (("core", 4), ("gpu", 2))),
        ("node/[slot=3/core;gpu=2]", None),
        ("slot/node/[core=3;gpu]", (("core", 3), ("gpu", 1))),
        ("node/[slot=2{a}/core;slot=3{b}/core=2]", (("core", 8),)),
    ],
)
def test_what_lies_in_a_node_is_added_up_over_its_slots(shape, flat):
    """A flat demand is what makes counting quick; a shared gpu outside a slot takes no units."""
    cluster = outline_cluster("cluster0\n  node0 rank=0\n    core0 size=9\n    gpu0 size=3")
    (need,) = compile_request(JOBSPEC(shape), cluster.index).needs
    if need.type == "slot":
        (need,) = need.children
    assert need.flat == need.content.flat == flat


def test_what_is_kept_after_a_release_in_part_is_named_as_it_was():
    """Whole nodes are held of which R names two cores each; the rest of R still names two."""
    matcher = ss.Matcher(outline_cluster(RACKS))
    given = matcher.match(JOBSPEC("slot=3/node/core=2"))
    kept = matcher.release(given.id, "1")
    assert [(str(group.ranks), str(group.children["core"])) for group in kept.groups] == [("0,2", "0-1")]
    assert matcher.available.free["core"].tolist() == [0, 4, 0]
    shared = ss.Matcher(outline_cluster(RACKS))
    given = shared.match(JOBSPEC("slot=3/core=3"))
    assert str(shared.release(given.id, "0").groups[0].children["core"]) == "0-2"
    for one in (matcher, shared):
        one._check()


@pytest.mark.parametrize(
    ("shape", "ranks"),
    [
        ('rack{id:"1"}/slot/core', "2"),
        ("rack{id:rack1}/slot/core", "2"),
        ("rack{id:rack0}/slot=2/node", "0-1"),
        ('rack{id:"7"}/slot/core', None),
        ("rack{id:rack7}/slot/core", None),
        ('rack=2{id:"1"}/node/slot/core', None),
    ],
)
def test_vertices_above_the_nodes_are_named_by_id(shape, ranks):
    found = ss.Matcher(outline_cluster(RACKS)).match(JOBSPEC(shape))
    assert (str(found.R.ranks) if found else None) == ranks


# --- suggestions ----------------------------------------------------------------------------

HALL = """
cluster0
  rack0
    node0 rank=0 properties=ssd
      core0 size=4
      memory0 size=64 unit=GB
    node1 rank=1 properties=ssd,fast
      core0 size=4
      memory0 size=64 unit=GB
  rack1
    node2 rank=2
      core0 size=8
      memory0 size=64 unit=GB
"""

SUGGESTED = {
    ("slot=9/core=2", None): ["count slot=8 instead of 9", "count core=1 instead of 2 (slot/core)"],
    ("slot=5/core=3", None): ["count slot=4 instead of 5", "count core=2 instead of 3 (slot/core)"],
    ("slot=2/core=5", None): ["count slot=1 instead of 2", "count core=4 instead of 5 (slot/core)"],
    ("slot=2/memory=65{unit:GB}", None): ["count memory=64 GB instead of 65 GB (slot/memory)"],
    ("slot=4/node/core=5", None): ["count slot=1 instead of 4"],
    ("rack=3/node/slot/core", None): ["count rack=2 instead of 3"],
    ("rack=2/node=2/slot/core", None): ["count rack=1 instead of 2", "count node=1 instead of 2 (rack/node)"],
    ("slot=3/node", "ssd"): ["count slot=2 instead of 3", "constraint without the constraint ssd"],
    ("slot=2/node", "ssd and fast"): ["count slot=1 instead of 2", "constraint without the property fast"],
    ("slot/core=8", "ssd fast"): [
        "count core=4 instead of 8 (slot/core)",
        "constraint without the constraint ssd and fast",
    ],
    ("slot/core=5", "ssd and rank:0-2"): [
        "count core=4 instead of 5 (slot/core)",
        "constraint without the property ssd",
    ],
    ('slot/node{id:"7"}', None): ["id any node, without id"],
    ('slot=2/node{id:"1"}/core', None): ["count slot=1 instead of 2", "id any node, without id"],
    ("slot=4/node/core", None): ["count slot=3 instead of 4", "sharing with node{-x}, shared"],
    ("[slot=3{a}/node;slot{b}/core]", None): [
        "sibling without slot=3{a}/node",
        "sibling without slot{b}/core",
        "count slot=2 instead of 3",
    ],
    ("slot/core=9", None): ["count core=8 instead of 9 (slot/core)"],
    ("slot=5/node/core=9", "ssd"): [
        "several slot=2 instead of 5 and core=4 instead of 9 (slot/node/core)",
    ],
}


@pytest.mark.parametrize(("shape", "constraint"), SUGGESTED)
def test_what_would_fit_is_named_and_fits(shape, constraint):
    """Each suggestion in its words; the nearest one that fits, and no larger one."""
    reasons = ss.Matcher(outline_cluster(HALL)).satisfiable(JOBSPEC(shape, constraint=constraint)).reasons
    assert [f"{change.kind} {change.text}" for change in reasons.changes] == SUGGESTED[shape, constraint]


def test_a_suggestion_leaves_out_what_may_stay():
    """Counts that need not shrink are not named; of two properties in one list the one in the way is."""
    cluster = outline_cluster(HALL)
    several = JOBSPEC("slot=5/node/[core=9;memory=2{unit:GB}]", constraint="ssd")
    (change,) = ss.Matcher(cluster).satisfiable(several).reasons.changes
    assert change.text == "slot=2 instead of 5 and core=4 instead of 9 (slot/node/core)"
    both = JOBSPEC("slot=2/node", constraint={"properties": ["ssd", "fast"]})
    texts = [change.text for change in ss.Matcher(cluster).satisfiable(both).reasons.changes]
    assert texts == ["slot=1 instead of 2", "without the property fast"]


def test_a_suggestion_in_time_is_the_first_end_that_suffices():
    matcher = ss.Matcher(outline_cluster(HALL))
    for host, seconds in (("node0", 300), ("node1", 100), ("node2", 7200)):
        matcher.match(JOBSPEC("slot/node", duration=seconds, constraint=f"host:{host}"), starttime=0)
    found = {
        shape: [(c.text, c.value) for c in matcher.match(JOBSPEC(shape)).reasons.changes if c.kind == "time"]
        for shape in ("slot/core", "slot/core=5", "slot=2/node", "slot=3/node")
    }
    assert found == {
        "slot/core": [("at 100 s, when job 2 ends", 100)],
        "slot/core=5": [("at 7200 s, when job 3 ends", 7200)],
        "slot=2/node": [("at 300 s, when job 1 ends", 300)],
        "slot=3/node": [("at 7200 s, when job 3 ends", 7200)],
    }


def test_a_suggestion_of_status_counts_what_is_down():
    matcher = ss.Matcher(outline_cluster(HALL))
    matcher.set_status("down", ranks="2")
    (one,) = [
        c.text for c in matcher.feasible_now(JOBSPEC("slot/core=8")).reasons.changes if c.kind == "status"
    ]
    matcher.set_status("drained", ranks="0")
    (two,) = [
        c.text for c in matcher.feasible_now(JOBSPEC("slot=3/node")).reasons.changes if c.kind == "status"
    ]
    assert (one, two) == ("with the node that is down back up", "with the 2 nodes that are down back up")


def test_a_suggestion_of_sharing_nodes_under_a_policy_of_whole_ones():
    matcher = ss.Matcher(outline_cluster(HALL), policy="lonodex")
    changes = [(c.kind, c.text) for c in matcher.satisfiable(JOBSPEC("slot=4/core=2")).reasons.changes]
    assert ("sharing", "with a match policy that shares nodes") not in changes
    matcher.match(JOBSPEC("slot/core", constraint="rank:0-1"))
    matcher.match(JOBSPEC("slot/core", constraint="rank:0-1"))
    matcher.match(JOBSPEC("slot/core"))
    changes = [(c.kind, c.text) for c in matcher.match(JOBSPEC("slot/core")).reasons.changes]
    assert ("sharing", "with a match policy that shares nodes") not in changes  # all is held


def test_the_nearest_arrays_are_not_changed_by_asking():
    matcher = ss.Matcher(outline_cluster(HALL))
    before = {name: free.copy() for name, free in matcher.available.free.items()}
    str(matcher.feasible_now(JOBSPEC("slot=9/core=2")).reasons)
    assert all(np.array_equal(before[name], free) for name, free in matcher.available.free.items())
    matcher._check()
