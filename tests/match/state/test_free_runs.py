"""Free units as runs: the same claims, answers and R as with the arrays of `Availability`."""

from __future__ import annotations

import copy

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.graph.cluster import Cluster
from simsched.match.emit import document
from simsched.match.requests.compile import compile_request
from simsched.match.search.select import select
from simsched.match.state.availability import Availability
from simsched.match.state.free_runs import FreeRuns
from simsched.match.state.masks import listed
from simsched.match.state.run_selection import RunSelection, UnitKind
from simsched.schedule.profiles.plan import Plan
from simsched.simulation.record.r_text import PlainText

TARGETS = 5


def machine(cores, *, gpus=0):
    children = {"core": f"0-{cores - 1}"} | ({"gpu": f"0-{gpus - 1}"} if gpus else {})
    execution = {
        "R_lite": [{"rank": f"0-{TARGETS - 1}", "children": children}],
        "nodelist": [f"n[0-{TARGETS - 1}]"],
        "starttime": 0,
        "expiration": 0,
    }
    return Cluster.from_rset(ResourceSet.from_dict({"version": 1, "execution": execution}))


MACHINES = {
    "cores, one each": (machine(1), "slot={}/core", UnitKind("core", 1, {"core": 1}, whole=False)),
    "cores, four each": (machine(4), "slot={}/core", UnitKind("core", 4, {"core": 1}, whole=False)),
    "nodes": (machine(4, gpus=2), "slot={}/node", UnitKind("node", 1, {"core": 4, "gpu": 2}, whole=True)),
}


def same(found, expected):
    """Whether two selections have the same targets, units and vertices."""
    assert found.targets.tolist() == expected.targets.tolist()
    assert found.slots == expected.slots
    assert found.counts == expected.counts
    assert found.sizes() == expected.sizes()
    for mine, theirs in zip(found.held, expected.held, strict=True):
        assert (mine.type, mine.amount) == (theirs.type, theirs.amount)
        assert mine.pools.tolist() == theirs.pools.tolist()
        assert (np.zeros_like(mine.pools) + mine.units).tolist() == (theirs.pools * 0 + theirs.units).tolist()
        assert (mine.masks is None) == (theirs.masks is None)
        assert mine.masks is None or listed(mine.masks) == listed(theirs.masks)
    for mine, theirs in zip(found.holds, expected.holds, strict=True):
        assert (mine.type, mine.exclusive) == (theirs.type, theirs.exclusive)
        assert mine.ordinals.tolist() == theirs.ordinals.tolist()


@pytest.mark.parametrize("name", MACHINES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_runs_choose_what_the_arrays_choose(name, data):
    """A random history: each claim is on the same units, and all totals agree after each step."""
    cluster, shape, kind = MACHINES[name]
    index = cluster.index
    runs, arrays = Plan(Availability(index)), Plan(Availability(index))
    runs.keep_runs(kind)
    text, number = PlainText(index), 0
    for step in range(data.draw(st.integers(1, 25))):
        free = runs.free(kind.type)
        running = sorted(arrays.expected_ends())
        if running and (not free or data.draw(st.booleans())):
            job = data.draw(st.sampled_from(running))
            runs.release(job)
            arrays.release(job)
        else:
            units = data.draw(st.integers(1, free))
            request = compile_request(Jobspec.from_shape(shape.format(units)), index)
            expected = select(request, arrays.available)
            found = RunSelection(kind, request, runs.runs.lowest(units), units)
            assert repr(copy.deepcopy(found)) == repr(found) == repr(found.full())
            same(found, expected)
            same(found.full(), expected)
            assert text.text(found, "0", "1", "}") == text.text(expected, "0", "1", "}")
            assert document(found.full(), index) == document(expected, index)
            runs.claim(number, found, step)
            arrays.claim(number, expected, step)
            number += 1
        assert (runs.idle, runs.total, len(runs)) == (arrays.idle, arrays.total, len(arrays))
        runs.check()
    assert runs.runs is not None
    asked = runs.available  # the arrays are asked for: they take over
    assert runs.runs is None
    runs.check()
    assert asked.total == arrays.available.total
    assert asked.use.tolist() == arrays.available.use.tolist()
    for job, _, selection in arrays.claims():
        same(runs.held[job], selection)
    for job in sorted(arrays.expected_ends()):
        runs.release(job)
    assert runs.idle == TARGETS


def test_a_selection_by_runs_may_be_claimed_after_the_arrays_were_asked_for():
    cluster, shape, kind = MACHINES["cores, four each"]
    plan = Plan(Availability(cluster.index))
    plan.keep_runs(kind)
    request = compile_request(Jobspec.from_shape(shape.format(6)), cluster.index)
    found = RunSelection(kind, request, plan.runs.lowest(6), 6)
    assert plan.available.total["core"] == 20
    plan.claim("job", found, 10)
    plan.check()
    assert plan.held["job"].targets.tolist() == [0, 1]
    assert (plan.free("core"), plan.idle) == (14, 3)


def test_runs_are_not_kept_where_something_is_taken_or_down():
    cluster, shape, kind = MACHINES["cores, one each"]
    request = compile_request(Jobspec.from_shape(shape.format(2)), cluster.index)
    taken = Plan(Availability(cluster.index))
    taken.claim("job", select(request, taken.available), 10)
    taken.keep_runs(kind)
    assert taken.runs is None
    down = Plan(Availability(cluster.index))
    down.set_status(np.array([1]), up=False)
    down.keep_runs(kind)
    assert down.runs is None


def test_the_check_finds_a_run_that_is_free_and_claimed():
    cluster, shape, kind = MACHINES["cores, four each"]
    request = compile_request(Jobspec.from_shape(shape.format(6)), cluster.index)
    runs = FreeRuns(kind, TARGETS, {"core": 4 * TARGETS})
    selection = RunSelection(kind, request, runs.lowest(6), 6)
    with pytest.raises(AssertionError):
        runs.check([selection], TARGETS)
    runs.claim(selection)
    runs.check([selection], TARGETS)
    with pytest.raises(AssertionError):
        runs.check([], TARGETS)
