"""Queue policies and job orders of other packages, found through their entry points."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import numpy as np
import pytest

import simsched as ss
import simsched.schedule.policies.registry as policies
from simsched.declare.kinds import whole
from simsched.declare.table import Declared
from simsched.errors import ConfigError, PluginError
from simsched.match.policies.policy import MatchPolicy
from simsched.schedule.orders.order import job_order
from simsched.schedule.orders.ranking import Order
from simsched.schedule.policies.registry import queue_policy


class Lazy:
    """A policy that starts one job a pass."""

    def __init__(self, limit: int = 1):
        self.limit = limit

    def run_pass(self, context):
        for job in context.queue.listed()[: self.limit]:
            selection = context.fit(job)
            if selection is not None:
                context.start(job, selection)


class LazyOptions(Declared, frozen=True, kw_only=True):
    """A policy that starts a few jobs a pass.

    limit : the most jobs that a pass starts.
    """

    limit: Annotated[int, whole(1, 5)] = 2

    def policy(self):
        return Lazy(self.limit)


LAST_FIRST = Order("last-first", lambda table, jobs, now: -table.submits[jobs])


class Entry:
    def __init__(self, group, name, target):
        self.group, self.name, self.value, self.target = group, name, f"theirs:{name}", target

    def matches(self, group=None):
        return group in (None, self.group)

    def load(self):
        return self.target


@pytest.fixture
def installed(monkeypatch):
    table = {
        ("simsched.queue_policies", "lazy"): Lazy,
        ("simsched.queue_policies", "declared"): LazyOptions,
        ("simsched.job_orders", "last-first"): LAST_FIRST,
    }

    points = importlib.metadata.EntryPoints(Entry(*of, target) for of, target in table.items())
    monkeypatch.setattr(importlib.metadata, "entry_points", points.select)


def test_an_installed_policy_is_found_with_its_options(installed):
    assert queue_policy("lazy", {"limit": 3}).limit == 3
    with pytest.raises(ConfigError, match="speed"):
        queue_policy("lazy", {"speed": 3})
    with pytest.raises(ConfigError, match="unknown queue policy 'lazier'"):
        queue_policy("lazier")
    assert "lazy" not in policies.POLICIES


def test_an_installed_policy_may_declare_its_options(installed):
    assert queue_policy("declared").limit == 2
    assert queue_policy("declared", {"limit": "3"}).limit == 3
    with pytest.raises(ConfigError, match=r"policy-options.limit: 9 is out of range .expected"):
        queue_policy("declared", {"limit": 9})
    with pytest.raises(ConfigError, match="'declared' has no option 'limitt'; did you mean limit"):
        queue_policy("declared", {"limitt": 1})
    assert policies.KIND.described("declared") == ("A policy that starts a few jobs a pass", "limit=2")


def test_an_installed_order_is_found(installed):
    assert job_order("last-first") is LAST_FIRST


def test_an_installed_policy_and_order_run(installed):
    from simsched.formats.cluster.rset import ResourceSet
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.cluster import Cluster
    from simsched.simulation.simulate import simulate
    from simsched.workload.job import Job, Workload

    execution = {"R_lite": [{"rank": "0", "children": {"core": "0-1"}}], "nodelist": ["n0"]}
    cluster = Cluster.from_rset(ResourceSet.from_dict({"version": 1, "execution": execution}))
    spec = Jobspec.from_shape("slot=1/core")
    jobs = tuple(Job(id=n, submit=n, jobspec=spec, runtime=5, duration=5) for n in range(4))
    found = simulate(cluster, Workload(jobs=jobs), "lazy", order="last-first")
    assert np.array_equal(found.jobs["start"], [0, 1, 6, 5])


def simulated(**policies):
    core = ss.Jobspec.from_shape("slot=16/core")
    jobs = [ss.Job(id=n, submit=n, jobspec=core, duration=5, runtime=5) for n in range(3)]
    return ss.simulate(ss.load_cluster("tiny"), ss.Workload(jobs), **policies)


class NoContext:
    order = "an attribute of its own"

    def run_pass(self):
        """Lack the argument."""


class StartsAll:
    """Forgets that `fit` may return None."""

    def run_pass(self, context):
        for job in context.queue.listed():
            context.start(job, context.fit(job))


class StartsTwice:
    """Starts its first job, and again."""

    def run_pass(self, context):
        first = context.queue.first
        selection = context.fit(first)
        for _ in range(2):
            context.start(first, selection)


class AsksForNothing:
    """Hands over None, and a job that does not exist."""

    def __init__(self, ask):
        self.run_pass = lambda context: ask(context.supply, context.queue)


@pytest.mark.parametrize(
    ("policies", "text"),
    [
        ({"queue_policy": NoContext()}, r"'NoContext' has run_pass\(\) \(expected run_pass\(context\)\)"),
        (
            {"order": Order("mine", lambda table, jobs: jobs)},
            r"'mine' cannot be called: <lambda>\(\) takes 2",
        ),
        (
            {"match_policy": MatchPolicy(name="mine", says="", order=lambda: None)},
            r"'mine' cannot be called: .*<lambda>\(\) takes 0",
        ),
        ({"queue_policy": StartsAll()}, r"failed in run_pass: .*start\(job 1\) got no selection \(expected"),
        (
            {"queue_policy": StartsTwice()},
            r"failed in run_pass: .*start\(job 0\) got a job that does not wait",
        ),
        (
            {"queue_policy": AsksForNothing(lambda supply, _: supply.next_fitting(None, 0))},
            r"failed in .*'NoneType' object has no attribute",
        ),
        (
            {"queue_policy": AsksForNothing(lambda supply, queue: supply.next_fitting(queue, -1))},
            r"failed in .*-1 is not a place of the queue",
        ),
        (
            {"queue_policy": AsksForNothing(lambda supply, _: supply.candidates([99], supply.shadow(0)))},
            r"failed in .*a job that does not exist",
        ),
    ],
)
def test_a_wrong_call_is_an_error_of_the_plug_in_with_its_place(policies, text):
    with pytest.raises(PluginError, match=rf"test_plugins.py:\d+: .*{text}"):
        simulated(**policies)


class AsksBeforeItStarts:
    """Asks where each waiting job fits, and starts them all afterwards, on the same units."""

    def run_pass(self, context):
        found = [(job, context.fit(job)) for job in context.queue.listed()]
        for job, selection in found:
            if selection is not None:
                context.start(job, selection)


@pytest.mark.parametrize("match_policy", ["first", "bestfit"])
@pytest.mark.parametrize("shape", ["slot/core", "slot/node", "slot/socket", "slot=2/[core=2;memory=4]"])
@pytest.mark.parametrize("other", [None, "slot/rack"])
def test_units_are_not_claimed_twice(match_policy, shape, other):
    shapes = [shape, shape] if other is None else [shape, shape, other]
    jobs = [
        ss.Job(id=n, submit=0, jobspec=ss.Jobspec.from_shape(text), duration=5, runtime=5)
        for n, text in enumerate(shapes)
    ]
    with pytest.raises(PluginError, match="has units that are not free"):
        ss.simulate(
            ss.load_cluster("racked"), ss.Workload(jobs), AsksBeforeItStarts(), match_policy=match_policy
        )
