"""The supply: queue policies get the same answers from counts and from the matcher, where counts decide."""

from __future__ import annotations

import random

import numpy as np
import pytest

from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.graph.cluster import Cluster
from simsched.match.requests.compile import compile_request
from simsched.match.state.availability import Availability
from simsched.schedule.job_table import Counting, JobTable
from simsched.schedule.orders.order import job_order
from simsched.schedule.pass_context import PassContext
from simsched.schedule.policies.registry import queue_policy
from simsched.schedule.profiles.plan import Plan
from simsched.schedule.queue import WaitingQueue

CORES = 12
LITE = [{"rank": "0-2", "children": {"core": "0-3"}}]
EXECUTION = {"R_lite": LITE, "nodelist": ["n[0-2]"], "starttime": 0, "expiration": 0}
INDEX = Cluster.from_rset(ResourceSet.from_dict({"version": 1, "execution": EXECUTION})).index
REQUESTS = [compile_request(Jobspec.from_shape(f"slot={n}/core"), INDEX) for n in range(1, CORES + 1)]


def table_of(submits, durations, units, single="core"):
    """Jobs of so many cores each, as the counts see them; with `single` None, as the matcher does."""
    made = JobTable()
    made.by_kind[:], made.kind_sizes[:] = REQUESTS, range(1, len(REQUESTS) + 1)
    made.recount(Counting(single, None, ("core",), np.array([range(1, len(REQUESTS) + 1)])))
    made.make_place(len(units))
    for submit, duration, count in zip(submits, durations, units, strict=True):
        made.add(count - 1, submit, duration, duration, 16, None, None)
    return made


class World:
    """A machine, its queue and a policy: a clock is not needed, only instants."""

    def __init__(self, table, policy, options):
        self.plan = Plan(Availability(INDEX))
        self.queue = WaitingQueue(table, job_order("fifo"))
        self.context = PassContext(table, self.plan, self.queue)
        self.policy = queue_policy(policy, options)

    def end(self, job, *, early):
        self.plan.release(job)
        self.context.released = True
        self.context.moved |= early

    def started(self, now):
        """The jobs that a pass starts, and whether they passed another."""
        self.context.open(now)
        self.policy.run_pass(self.context)
        self.queue.check()
        self.plan.check()
        # No policy asks for the arrays where numbers decide.
        assert (self.plan.runs is None) == (self.context.table.single is None)
        return [(job, backfilled) for job, _, backfilled in self.context.close()]


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("fcfs", {}),
        ("easy", {}),
        ("easy", {"extra": False}),
        ("easy", {"reservation": "none"}),
        ("easy", {"queue_depth": 4}),
    ],
)
@pytest.mark.parametrize("seed", range(6))
def test_counts_and_the_matcher_start_the_same_jobs(policy, options, seed):
    rng, jobs = random.Random(seed), 150
    submits = sorted(rng.randint(0, 1500) for _ in range(jobs))
    durations = [float(rng.choice([0, 20, 60, 60, 100, 300])) for _ in range(jobs)]
    runtimes = [rng.choice([0, duration, duration, rng.randint(0, int(duration))]) for duration in durations]
    units = [rng.choice([1, 1, 2, 3, 5, 8, CORES]) for _ in range(jobs)]
    tables = [table_of(submits, durations, units, single) for single in ("core", None)]
    worlds = [World(table, policy, options) for table in tables]
    ends, coming, begun = {}, list(range(jobs)), 0
    while coming or ends:
        now = min([*ends.values(), *(submits[job] for job in coming[:1])])
        over = [job for job, end in ends.items() if end == now]
        fresh = [job for job in coming if submits[job] == now]
        for world in worlds:
            for job in over:
                world.end(job, early=world.plan.expected_end(job) > now)
            for job in fresh:
                world.queue.add(job)
        del coming[: len(fresh)]
        counted, matched = (world.started(now) for world in worlds)
        assert counted == matched
        ends = {job: end for job, end in ends.items() if job not in over}
        ends |= {job: now + runtimes[job] for job, _ in counted}
        begun += len(counted)
    assert begun == jobs


def test_the_state_of_a_queue_and_its_context_can_be_put_back():
    table = table_of([0.0] * 4, [9.0] * 4, [CORES, 2, 3, 1])
    for order in ("fifo", "sjf", "wfp3"):
        queue = WaitingQueue(table, job_order(order))
        for job in (2, 0, 3):
            queue.add(job)
        queue.sort(5)
        queue.remove(0)
        again = WaitingQueue(table, job_order(order))
        again.restore(queue.state())
        again.check()
        assert (list(again), again.new_jobs(), again.gone) == (list(queue), queue.new_jobs(), [0])
    context = PassContext(table, Plan(Availability(INDEX)), WaitingQueue(table, job_order("fifo")))
    context.released, context.wake = False, 7.0
    other = PassContext(table, Plan(Availability(INDEX)), WaitingQueue(table, job_order("fifo")))
    other.restore(context.state())
    assert other.state() == {"failed": set(), "released": False, "moved": True, "wake": 7.0}
