"""Racks that are held with all their nodes: those that R does not name, those that come up meanwhile (M4)."""

from __future__ import annotations

import pytest

import simsched as ss

RACKS = """
    cluster0
      rack0
        node0 rank=0
          core0
        node1 rank=1
          core0
      rack1
        node2 rank=2
          core0
    """


@pytest.fixture
def racks(jgf):
    return ss.Matcher(jgf(RACKS))


def match(matcher, shape):
    return matcher.match(ss.Jobspec.from_shape(shape))


def lite(answer):
    return [(group["rank"], group["children"]) for group in answer.R.to_dict()["execution"]["R_lite"]]


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_node_that_comes_up_in_a_held_rack_is_held_with_it(racks, rank):
    racks.set_status("down", ranks=rank)
    held = match(racks, "slot/rack")
    racks.set_status("up", ranks=rank)
    racks._check()
    assert lite(match(racks, "slot/core")) == [("2", {"core": "0"})]
    assert not match(racks, "slot/core")
    racks.release(held.id)
    racks._check()
    assert lite(match(racks, "slot=2/core")) == [("0-1", {"core": "0"})]


def test_a_node_that_comes_up_only_after_the_rack_is_free_again(racks):
    racks.set_status("down", ranks="1")
    held = match(racks, "slot/rack")
    racks.release(held.id)
    assert not match(racks, "slot=3/core")
    racks.set_status("up", ranks="1")
    racks._check()
    assert match(racks, "slot=3/core")


def test_the_rack_goes_with_the_last_rank_that_r_names(racks):
    """``slot/rack/core`` holds two nodes, R names one."""
    held = match(racks, "slot/rack/core")
    assert lite(held) == [("0", {"core": "0"})]
    assert racks.release(held.id, held.R) is None
    racks._check()
    assert match(racks, "slot=2/rack")


def test_the_rack_stays_as_long_as_r_names_a_node_of_it(racks):
    held = match(racks, "rack{x}/slot=2/core")
    kept = racks.release(held.id, "0")
    assert str(kept.ranks) == "1"
    assert not match(racks, "slot=2/rack")
    assert racks.release(held.id, kept) is None
    assert match(racks, "slot=2/rack")
