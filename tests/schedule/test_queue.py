"""The queue keeps its order, whatever is added and removed."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from simsched.schedule.job_table import Counting, JobTable
from simsched.schedule.orders.order import ORDERS, job_order
from simsched.schedule.queue import WaitingQueue


def table(submits, durations, sizes, priorities=None, tiers=None):
    n = len(submits)
    made = JobTable(in_queues=tiers is not None)
    made.by_kind[:], made.kind_sizes[:] = [None] * n, sizes
    made.recount(Counting(None, None, ("core",), np.array([sizes], dtype=np.int64)))
    seconds = list(map(float, durations))
    priorities = priorities or [16] * n
    made.make_place(n)
    for kind, row in enumerate(zip(submits, seconds, priorities, tiers or [0] * n, strict=True)):
        submit, duration, priority, tier = row
        made.add(kind, submit, duration, duration, priority, None, None, tier)
    return made


JOBS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 9), st.integers(1, 4), st.sampled_from([8, 16, 24])),
    min_size=1,
    max_size=12,
)
ACTIONS = st.lists(st.integers(0, 11), max_size=40)


@given(JOBS, ACTIONS, st.sampled_from(sorted(ORDERS)))
def test_the_queue_is_always_in_order(jobs, actions, name):
    """Law: waiting jobs are in order of (key, priority, submit time, workload order) as of the last sort."""
    jobs.sort(key=lambda job: job[0])
    columns = table(*(list(column) for column in zip(*jobs, strict=True)))
    order = job_order(name)
    waiting = WaitingQueue(columns, order)
    inside = set()
    for now, action in enumerate(actions, start=10):
        job = action % len(jobs)
        if job in inside:
            waiting.remove(job)
            inside.discard(job)
        else:
            waiting.add(job)
            inside.add(job)
        waiting.sort(now)
        waiting.check()
        expected = order.ranked(columns, np.array(sorted(inside), dtype=np.int64), now).tolist()
        assert list(waiting) == expected
        assert len(waiting) == len(inside)
        assert all((j in waiting) == (j in inside) for j in range(len(jobs)))
        if inside:
            assert waiting.first == expected[0]


def test_new_jobs_are_those_since_the_last_pass():
    waiting = WaitingQueue(table([0, 1, 2, 3], [1] * 4, [1] * 4), job_order("fifo"))
    waiting.add(0)
    waiting.add(2)
    waiting.fresh.clear()
    assert waiting.only_appended()
    waiting.add(3)
    assert waiting.new_jobs() == [3]
    assert waiting.only_appended()
    waiting.add(1)
    assert waiting.new_jobs() == [1, 3]
    assert not waiting.only_appended()
    waiting.remove(1)
    assert waiting.new_jobs() == [3]


def test_unicef_and_wfp3_let_age_win():
    """At 55 the old long job has waited 55 of 100 s, the new short one 5 of 10; later it overtakes."""
    columns = table([0, 50], [100, 10], [4, 4])
    both = np.array([0, 1])
    for name in ("wfp3", "unicef"):
        order = job_order(name)
        assert order.ranked(columns, both, 55.0).tolist() == [0, 1]
        assert order.ranked(columns, both, 1000.0).tolist() == [1, 0]


def test_f1_prefers_small_and_early():
    columns = table([10, 10, 100_000], [100, 10, 10], [64, 1, 1])
    assert job_order("f1").ranked(columns, np.arange(3), 0.0).tolist() == [1, 0, 2]


def test_the_earliest_deadline_goes_first_and_jobs_without_one_last():
    columns = table([0, 1, 2, 3], [1] * 4, [1] * 4)
    columns.deadlines = np.array([np.inf, 90.0, 40.0, np.inf])
    assert job_order("edf").ranked(columns, np.arange(4), 5.0).tolist() == [2, 1, 0, 3]
    plain = table([0, 1, 2, 3], [1] * 4, [1] * 4)
    assert job_order("edf").ranked(plain, np.arange(4), 5.0).tolist() == [0, 1, 2, 3]
