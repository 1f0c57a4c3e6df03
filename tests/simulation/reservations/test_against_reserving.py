"""Starts and windows against the reservations of tests/reference, job by job."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.formats.jobspec.jobspec import Jobspec
from simsched.workload.job import Job
from tests.reference.reserving import Booking, Task, read_swf, run
from tests.simulation.simworld import machine, starts
from tests.simulation.simworld import run as simulated

HOUR, DAY = 3600, 86400


def job_of(task):
    limit = None if task.limit == inf else task.limit
    spec = Jobspec.from_shape(f"slot={task.size}/core", duration=limit)
    if task.reservation is not None:
        spec = spec.with_system(reservation=task.reservation)
    return Job(
        id=task.number,
        submit=task.submit,
        jobspec=spec,
        runtime=task.runtime,
        duration=limit,
        user=task.user,
        bank=task.account,
    )


def rule_of(booking):
    """The table of a configuration."""
    found = {
        "name": booking.name,
        "duration": booking.duration,
        "nodes": booking.size,
        "announced": booking.announced,
        "users": list(booking.users),
        "accounts": list(booking.accounts),
    }
    if booking.start is not None:
        found["start"] = booking.start
    else:
        found |= {"earliest": booking.earliest} | (
            {} if booking.latest == inf else {"latest": booking.latest}
        )
    if booking.days > 1:
        found |= {"repeat": "daily", "times": booking.days}
    return {key: value for key, value in found.items() if value != []}


def assert_same(tasks, size, bookings, policy):
    expected, windows = run(tasks, size, bookings, policy)
    rules = [rule_of(one) for one in bookings]
    found = simulated(machine(size), *(job_of(task) for task in tasks), policy=policy, reservations=rules)
    assert {int(name): start for name, start in starts(found).items()} == expected
    rows = {one["name"]: one["windows"] for one in found.meta["reservations"]}
    for name, row in rows.items():
        mine = [(begin, end, len(nodes)) for begin, end, nodes in windows.get(name, ())]
        assert [(w["start"], w["end"]) for w in row] == [span[:2] for span in mine]
    return expected, windows


tasks_of = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.integers(0, 25),
        st.one_of(st.integers(1, 30), st.just(inf)),
        st.integers(1, 7),
        st.sampled_from("ab"),
        st.sampled_from("xy"),
        st.sampled_from([None, None, None, "r", "s", "t"]),
    ),
    max_size=25,
).map(lambda rows: [Task(number, *row) for number, row in enumerate(rows)])
fixed = st.builds(
    Booking, st.just("r"), st.integers(5, 40), st.integers(1, 6), st.integers(10, 60),
    announced=st.integers(0, 10), users=st.sampled_from([(), ("a",)]), accounts=st.sampled_from([(), ("x",)]),
)  # fmt: skip
daily = st.builds(
    Booking, st.just("s"), st.integers(5, 40), st.integers(1, 6), st.integers(0, 60), days=st.integers(1, 3)
)
flexible = st.builds(
    Booking, st.just("t"), st.integers(5, 40), st.integers(1, 6), announced=st.integers(0, 30),
    earliest=st.integers(0, 40), latest=st.one_of(st.just(inf), st.integers(41, 90)),
)  # fmt: skip


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@settings(max_examples=60, deadline=None)
@given(tasks=tasks_of, bookings=st.tuples(fixed, daily, flexible))
def test_random_workloads(policy, tasks, bookings):
    assert_same(tasks, 6, bookings, policy)


@pytest.mark.parametrize(
    ("policy", "records"),
    [("easy", 250), *(pytest.param(policy, 2500, marks=pytest.mark.slow) for policy in ("fcfs", "easy"))],
)
def test_a_log(traces, policy, records):
    """Every third job of the four busiest users goes into one of three reservations."""
    tasks = read_swf(traces / "KTH-SP2-1996-2.1-cln.swf.gz", records)
    busy = [user for user, _ in Counter(task.user for task in tasks).most_common(4)]
    made = []
    for task in tasks:
        name = "rst"[task.number % 7 % 3] if task.user in busy and task.number % 3 == 0 else None
        made.append(replace(task, reservation=name))
    bookings = (
        Booking("r", 6 * HOUR, 24, 8 * HOUR, days=60, users=tuple(busy)),
        Booking(
            "s", 3 * DAY, 32, 40 * DAY, announced=30 * DAY, accounts=tuple({task.account for task in tasks})
        ),
        Booking("t", 2 * DAY, 60, announced=20 * DAY, users=tuple(busy[:2])),
    )
    expected, windows = assert_same(made, 100, bookings, policy)
    inside = Counter(task.reservation for task in made if task.number in expected)
    assert inside["r"] > 0
    assert records < 5000 or (min(inside["s"], inside["t"]) > 0 and set(windows) == {"r", "s", "t"})
