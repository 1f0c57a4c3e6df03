"""The oracle itself: small schedules done by hand, and its two EASYs against each other."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.naive import Job, schedule


def starts(text_jobs, nodes, policy):
    jobs = [Job(number, *job) for number, job in enumerate(text_jobs)]
    return [span and span[0] for span in schedule(jobs, nodes, policy).values()]


#        submit, runtime, requested, copies
STORY = [
    (0, 10, 10, 6),  # starts at once on 8 processors
    (1, 10, 10, 8),  # the head: waits until 10
    (2, 20, 20, 2),  # would hold 2 of the head's processors beyond 10
    (3, 5, 7, 2),  # ends at 10 as requested, so EASY lets it pass
]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fcfs", [0, 10, 20, 20]),
        ("easy", [0, 10, 20, 3]),
        ("textbook-easy", [0, 10, 20, 3]),
        ("conservative", [0, 10, 20, 3]),
        ("textbook-conservative", [0, 10, 20, 3]),
    ],
)
def test_story(policy, expected):
    result = schedule([Job(n, *job) for n, job in enumerate(STORY)], [(8, 0)], policy)
    assert [result[n][0] for n in range(4)] == expected


def test_easy_may_delay_the_second_where_conservative_does_not():
    jobs = [
        Job(0, 0, 10, 10, 6),
        Job(1, 1, 10, 10, 6),  # the head: earliest start 10, which leaves 2 processors over
        Job(2, 1, 10, 10, 8),  # the second: earliest start 20
        Job(3, 2, 30, 30, 2),  # fits beside the head and moves the second
    ]
    easy = schedule(jobs, [(8, 0)], "easy")
    kept = schedule(jobs, [(8, 0)], "conservative")
    assert (easy[1][0], easy[2][0], easy[3][0]) == (10, 32, 2)
    assert (kept[1][0], kept[2][0], kept[3][0]) == (10, 20, 30)


def test_times_out_and_infeasible():
    result = schedule([Job(1, 0, 100, 10, 4), Job(2, 0, 5, 5, 9)], [(8, 0)], "easy")
    assert result == {1: (0, 10), 2: None}


def test_slots_do_not_span_nodes():
    jobs = [Job(1, 0, 5, 5, 2, cores=3), Job(2, 0, 5, 5, 1, cores=2)]
    assert schedule(jobs, [(4, 0), (4, 0)], "fcfs")[2] == (5, 10)


def test_no_time_passes_in_a_job_of_no_run_time():
    jobs = [Job(1, 0, 0, 10, 8), Job(2, 0, 5, 10, 8)]
    assert schedule(jobs, [(8, 0)], "fcfs") == {1: (0, 0), 2: (0, 5)}


flat_jobs = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(0, 20),
        st.one_of(st.integers(1, 25), st.just(math.inf)),
        st.integers(1, 9),
        st.just(1),
        st.just(0),
        st.booleans(),
    ),
    max_size=14,
).map(lambda rows: [Job(number, *row) for number, row in enumerate(rows)])


@pytest.mark.parametrize("policy", ["easy", "conservative"])
@given(jobs=flat_jobs)
def test_the_definition_is_the_textbook_rule_on_a_flat_machine(policy, jobs):
    """DESIGN, "Time": on identical one-core nodes the definition gives exactly the classical rule."""
    assert schedule(jobs, [(8, 0)], policy) == schedule(jobs, [(8, 0)], f"textbook-{policy}")
