"""The matching rules one by one, each as a small story (DESIGN M1 to M9)."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.match.requests.dialect import RFC14, Dialect, find_dialect

JOBSPEC = ss.Jobspec.from_shape

#: Two racks of two nodes of two sockets of four cores; node 1 is down, node 3 is fast; a licence for all.
OUTLINE = """
cluster0
  rack0
    node0 rank=0
      socket0
        core0 size=4
      socket1
        core0 size=4
      memory0 size=16 unit=GB
    node1 rank=1 status=1
      socket2
        core0 size=4
      socket3
        core0 size=4
      memory0 size=16 unit=GB
  rack1
    node2 rank=2
      socket4
        core0 size=4
      socket5
        core0 size=4
      memory0 size=16 unit=GB
    node3 rank=3 properties=fast
      socket6
        core0 size=4
      socket7
        core0 size=4
      memory0 size=32 unit=GB
  license0 size=2
"""


def r_lite(answer):
    return [(str(g.ranks), {kind: str(ids) for kind, ids in g.children.items()}) for g in answer.R.groups]


MATCHED = [
    # M1
    ("M1 levels may be skipped", "slot/node/core=6", None, [("0", {"core": "0-5"})]),
    ("M1 or named", "slot/rack/node/socket/core=4", None, [("0", {"core": "0-3"})]),
    ("M1 what is down does not match", "slot=3/node/core", None, [("0,2-3", {"core": "0"})]),
    ("M1 ids", "slot/rack{id:'1'}/node/core", None, [("2", {"core": "0"})]),
    ("M1 names", "slot/node{id:'node[2-3]'}/core=2", None, [("2", {"core": "0-1"})]),
    # M2
    ("M2 units from several pools", "slot/node/core=7", None, [("0", {"core": "0-6"})]),
    ("M2 distinct vertices", "slot/node/socket=2/core", None, [("0", {"core": "0,4"})]),
    ("M2 units convert", "slot/memory=2000{unit:MB}", None, [("0", {"memory": "0-1"})]),
    ("M2 and are rounded up to the pool's", "slot/memory=1500{unit:MB}", None, [("0", {"memory": "0-1"})]),
    ("M2 across nodes, outside a slot", "core=10", None, [("0", {"core": "0-7"}), ("2", {"core": "0-1"})]),
    # M3
    ("M3 a copy lies within one node", "slot=2/core=5", None, [("0,2", {"core": "0-4"})]),
    ("M3 copies may share one", "slot=2/core=4", None, [("0", {"core": "0-7"})]),
    ("M3 unless they ask for nodes", "slot/node=3/core", None, [("0,2-3", {"core": "0"})]),
    ("M3 or what is above", "slot/rack=2/core", None, [("0,2", {"core": "0"})]),
    # M5
    ("M5 without `with`: all of it", "slot/socket", None, [("0", {"core": "0-3"})]),
    ("M5 with it: what was counted", "slot/node/core", None, [("0", {"core": "0"})]),
    (
        "M5 called exclusive itself: all of it",
        "slot/node{x}/core",
        None,
        [("0", {"core": "0-7", "memory": "0-15"})],
    ),
    # M6
    ("M6 the largest that can be had", "slot=1-9/node/core=8", None, [("0,2-3", {"core": "0-7"})]),
    ("M6 of a set", "slot=1,2,7/node/core=8", None, [("0,2", {"core": "0-7"})]),
    ("M6 the outermost first", "slot=1-2/node/core=5+", "rank:2-3", [("2-3", {"core": "0-7"})]),
    # M7
    ("M7 a constraint filters nodes", "slot/core", "fast", [("3", {"core": "0"})]),
    ("M7 above them through those that pass", "rack/slot/core", "fast", [("3", {"core": "0"})]),
    ("M7 not", "slot=3/core=4", "not fast", [("0", {"core": "0-7"}), ("2", {"core": "0-3"})]),
]


@pytest.mark.parametrize(
    ("shape", "constraint", "entries"), [c[1:] for c in MATCHED], ids=[c[0] for c in MATCHED]
)
def test_matched(jgf, shape, constraint, entries):
    matcher = ss.Matcher(jgf(OUTLINE))
    answer = matcher.match(JOBSPEC(shape, constraint=constraint))
    assert answer, answer.reasons
    matcher._check()
    assert r_lite(answer) == entries


NOT = [
    ("M1 beneath, not beside", "slot/socket/memory", "infeasible"),
    ("M1 down, and feasible all the same", "slot=4/node", "busy"),
    ("M2 more distinct vertices than there are", "rack=3", "infeasible"),
    ("M3 not across nodes", "slot/core=9", "infeasible"),
    ("M6 the least cannot be had", "slot=5-9/node", "infeasible"),
    ("M7 held whole, all beneath must pass", "slot/rack=2{x}", "infeasible"),
]


@pytest.mark.parametrize(("shape", "status"), [c[1:] for c in NOT], ids=[c[0] for c in NOT])
def test_not_matched(jgf, shape, status):
    constraint = "not fast" if "rack=2{x}" in shape else None
    assert ss.Matcher(jgf(OUTLINE)).match(JOBSPEC(shape, constraint=constraint)).status == status


#: One rack, one node, two sockets of four cores, two licences.
ONE = """
cluster0
  rack0
    node0 rank=0
      socket0
        core0 size=4
      socket1
        core0 size=4
  license0 size=2
"""

#: M4: what one job holds, what another asks for then, and whether it gets it.
SIDE_BY_SIDE = [
    ("a node that is held holds its cores", "slot/node", "slot/core", False),
    ("though one only was counted", "slot/node/core", "slot/core", False),
    ("and its sockets", "slot/node/core", "slot/socket", False),
    ("and what is shared", "slot/node/core", "node=1", False),
    ("and keeps its rack from being held", "slot/node/core", "slot/rack", False),
    ("but not from being shared", "slot/socket/core", "rack/slot/core", True),
    ("a core keeps its node from being held", "slot/core", "slot/node", False),
    ("and its socket", "slot=5/core", "slot/socket", False),
    ("but not the other socket", "slot/core=4", "slot/socket", True),
    ("and not the other cores", "slot/core", "slot/core=7", True),
    ("a shared node is not held", "node=1", "slot/node", False),
    ("nor is its rack", "node=1", "slot/rack", False),
    ("but its cores can be", "node=1", "slot/core=8", True),
    ("shared units are shared", "node/core=8", "node/core=8", True),
    ("and not held", "node/core=8", "slot/core", False),
    ("a shared node in a slot holds its cores", "slot/node{-x}/core=2", "slot/core=7", False),
    ("and leaves the others", "slot/node{-x}/core=2", "slot/node{-x}/core=6", True),
    ("an exclusive node outside a slot", "node{x}/core", "slot/core", False),
    ("a rack that is held holds its nodes", "slot/rack", "slot/node", False),
    ("and all their cores", "rack{x}/core", "slot/core", False),
    ("the whole cluster", "slot/cluster", "slot/license", False),
    ("licences run out", "slot=2/license", "slot/license", False),
    ("and are counted one by one", "slot/license", "slot/license", True),
]


@pytest.mark.parametrize(
    ("held", "asked", "both"), [c[1:] for c in SIDE_BY_SIDE], ids=[c[0] for c in SIDE_BY_SIDE]
)
def test_m4_exclusive_and_shared(jgf, held, asked, both):
    matcher = ss.Matcher(jgf(ONE))
    first = matcher.match(JOBSPEC(held))
    assert first, first.reasons
    second = matcher.match(JOBSPEC(asked))
    matcher._check()
    assert second.status == ("matched" if both else "busy")
    matcher.release(first.id)
    assert both or matcher.match(JOBSPEC(asked))
    matcher._check()


def test_m9_a_failed_match_changes_nothing(jgf):
    matcher = ss.Matcher(jgf(OUTLINE))
    matcher.match(JOBSPEC("slot=2/core=3"))
    before = matcher.save()
    assert not matcher.match(JOBSPEC("[slot=2{a}/core=4;slot=9{b}/socket]"))
    assert matcher.save() == before


def test_dialects_are_values():
    assert find_dialect("rfc14") is RFC14
    mine = Dialect(name="mine", exclusive_in_slot=False)
    assert not mine.is_exclusive(None, in_slot=True)
    assert mine.is_exclusive(True, in_slot=True)
    with pytest.raises(ss.errors.ConfigError, match=r"unknown dialect 'pbs' \(expected one of rfc14"):
        find_dialect("pbs")


def test_another_dialect_is_another_value_and_no_branch(four, monkeypatch):
    """The seam: with vertices in slots shared, two slots of a node each land on one node."""
    from simsched.match.requests import dialect

    monkeypatch.setitem(dialect.DIALECTS, "sharing", Dialect(name="sharing", exclusive_in_slot=False))
    assert str(ss.Matcher(four).match(JOBSPEC("slot=2/node/core=2")).R.ranks) == "0-1"
    assert str(ss.Matcher(four, rules="sharing").match(JOBSPEC("slot=2/node/core=2")).R.ranks) == "0"
