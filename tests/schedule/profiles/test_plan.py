"""The plan: sorted expected ends over the live state, and searches that change nothing."""

from __future__ import annotations

import itertools
from functools import partial
from math import inf, nextafter

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from simsched.errors import ConfigError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.graph.cluster import Cluster
from simsched.match.requests.compile import compile_request
from simsched.match.state.availability import Availability
from simsched.schedule.profiles.earliest import earliest_by_bisection
from simsched.schedule.profiles.plan import Plan, first_fit, units_in
from simsched.schedule.profiles.remainder import beside, set_aside


def cluster(*cores):
    lite = [{"rank": str(r), "children": {"core": f"0-{n - 1}"}} for r, n in enumerate(cores)]
    execution = {"R_lite": lite, "nodelist": [f"n[0-{len(cores) - 1}]"], "starttime": 0, "expiration": 0}
    return Cluster.from_rset(ResourceSet.from_dict({"version": 1, "execution": execution}))


CLUSTER = cluster(4, 2, 2)
SHAPES = ("slot=1/core=2", "slot=2/core=1", "slot=1/core=4", "slot=3/core=2", "slot=1/node", "slot=2/node")
REQUESTS = {shape: compile_request(Jobspec.from_shape(shape), CLUSTER.index) for shape in SHAPES}


class Plans(RuleBasedStateMachine):
    """Random claims and releases; `earliest` is checked against trying every release in turn."""

    def __init__(self):
        super().__init__()
        self.plan = Plan(Availability(CLUSTER.index))
        self.now = 0.0
        self.names = itertools.count()
        self.ends = {}

    @rule(shape=st.sampled_from(SHAPES), duration=st.sampled_from([1, 3, 5, 8, float("inf")]))
    def start(self, shape, duration):
        selection = first_fit(REQUESTS[shape], self.plan.available)
        if selection is not None:
            name = next(self.names)
            self.plan.claim(name, selection, self.now + duration)
            self.ends[name] = (self.now + duration, selection)

    @precondition(lambda self: self.ends)
    @rule(data=st.data())
    def end(self, data):
        name = data.draw(st.sampled_from(sorted(self.ends)))
        end, selection = self.ends.pop(name)
        assert self.plan.expected_end(name) == end
        assert self.plan.release(name) is selection

    @rule(step=st.sampled_from([0, 1, 2, 7]))
    def wait(self, step):
        self.now += step  # a job whose end has passed overruns

    @rule(shape=st.sampled_from(SHAPES))
    def earliest(self, shape):
        request = REQUESTS[shape]
        before = self.plan.available.total.copy()
        found = earliest_by_bisection(self.plan, request, self.now, partial(first_fit, request))
        expected = None
        moment = nextafter(self.now, inf)  # the end of a job that overruns
        ends = [(max(end, moment), selection) for end, selection in self.ends.values()]
        for time in sorted({self.now, *(end for end, _ in ends)}):
            state = self.plan.available.copy()
            for end, selection in ends:
                if end <= time:
                    state.release(selection)
            if first_fit(request, state) is not None:
                expected = time
                break
        assert (found and found.start) == expected
        assert self.plan.available.total == before

    @invariant()
    def sound(self):
        self.plan.check()


Plans.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestPlans = Plans.TestCase


def test_what_is_left_beside_a_reservation_counts_units_not_ids():
    """Four cores, three busy until then; the reservation takes three of the four: one is left now."""
    index = cluster(4).index
    one, three = (compile_request(Jobspec.from_shape(f"slot=1/core={n}"), index) for n in (1, 3))
    now = Availability(index)
    busy = first_fit(three, now)
    now.claim(busy)
    then = now.copy()
    then.release(busy)
    left = beside(now, then, first_fit(three, then))
    assert left.total["core"] == 1
    assert now.total["core"] == 1
    left.check()
    assert first_fit(one, left) is not None


def test_setting_aside_leaves_the_lowest_ids():
    index = cluster(4).index
    one = compile_request(Jobspec.from_shape("slot=1/core=1"), index)
    now = Availability(index)
    left = set_aside(now, (first_fit(one, now),), {"core": now.free["core"] - 3})
    left.check()
    assert left.free_mask(index.pool_types["core"], 0) == 0b0001


def test_free_units_are_those_of_a_type_that_is_counted():
    plan = Plan(Availability(CLUSTER.index))
    assert (plan.free("core"), plan.free("node")) == (8, 3)
    assert (units_in(plan.available, "core"), units_in(plan.available, "node")) == (8, 3)
    for unknown in ("nonsense", "cluster", ""):
        with pytest.raises(
            ConfigError, match=rf"type '{unknown}' are not counted \(expected one of core, node"
        ):
            units_in(plan.available, unknown)
    for unknown in ("nonsense", "cluster", "", "slot"):
        with pytest.raises(ConfigError, match="are not counted"):
            plan.free(unknown)


def test_jobs_with_equal_ends_are_in_the_order_in_which_they_got_them():
    plan = Plan(Availability(CLUSTER.index))
    for job in range(4):
        plan.claim(job, first_fit(REQUESTS["slot=1/core=2"], plan.available), 10)
    assert list(plan.running()) == [(10, 0), (10, 1), (10, 2), (10, 3)]
    plan.move_end(1, 10)
    plan.release(2)
    assert list(plan.running()) == [(10, 0), (10, 3), (10, 1)]
