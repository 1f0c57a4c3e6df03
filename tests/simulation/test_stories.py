"""Schedules worked out by hand.  Each picture has a line a job and a column a second:
`.` it waits, `#` it runs.
"""

from __future__ import annotations

import textwrap

import pytest

from tests.simulation.simworld import gantt, job, machine, results, run, starts


def picture(text):
    return textwrap.dedent(text).strip("\n")


def test_fcfs_nobody_passes():
    """Four nodes.  B needs all of them and waits for A; C would fit beside A and waits all the same."""
    found = run(
        machine(4),
        job("A", 0, "slot=3/core", 6),
        job("B", 1, "slot=4/core", 4),
        job("C", 2, "slot=1/core", 2),
        policy="fcfs",
    )
    assert gantt(found, 14) == picture(
        """
        A ######
        B  .....####
        C   ........##
        """
    )


def test_easy_a_job_that_ends_before_the_shadow_time_passes():
    """B's shadow time is 6; C asks for 4 seconds at 2 and is out of the way by then."""
    found = run(
        machine(4),
        job("A", 0, "slot=3/core", 6),
        job("B", 1, "slot=4/core", 4),
        job("C", 2, "slot=1/core", 4),
    )
    assert gantt(found, 12) == picture(
        """
        A ######
        B  .....####
        C   ####
        """
    )
    assert list(found.jobs["backfilled"]) == [False, False, True]


def test_easy_a_job_beside_the_reservation_passes():
    """B will take 3 of the 4 nodes at 6; C runs on beyond that, on the node that is left over."""
    found = run(
        machine(4),
        job("A", 0, "slot=3/core", 6),
        job("B", 1, "slot=3/core", 4),
        job("C", 2, "slot=1/core", 9),
    )
    assert gantt(found, 12) == picture(
        """
        A ######
        B  .....####
        C   #########
        """
    )


def test_easy_a_job_that_would_delay_the_first_must_not_start():
    """B will need all four nodes at 6, and C would still be running then."""
    found = run(
        machine(4),
        job("A", 0, "slot=3/core", 6),
        job("B", 1, "slot=4/core", 4),
        job("C", 2, "slot=1/core", 5),
    )
    assert gantt(found, 16) == picture(
        """
        A ######
        B  .....####
        C   ........#####
        """
    )


def test_easy_judges_by_requests_and_lives_by_run_times():
    """A asks for 8 s and runs 3: B starts at 3.  C asks for 7, so it must not pass though it runs 1."""
    found = run(
        machine(4),
        job("A", 0, "slot=3/core", 3, 8),
        job("B", 1, "slot=4/core", 4),
        job("C", 2, "slot=1/core", 1, 7),
    )
    assert starts(found) == {"A": 0, "B": 3, "C": 7}


def test_conservative_protects_the_second_in_the_queue_too():
    """D delays nobody at the head, but C: EASY lets it pass, conservative does not."""
    queue = (
        job("A", 0, "slot=2/core", 6),
        job("B", 1, "slot=3/core", 4),
        job("C", 1, "slot=4/core", 3),
        job("D", 2, "slot=1/core", 12),
    )
    easy = run(machine(4), *queue, policy="easy")
    conservative = run(machine(4), *queue, policy="conservative")
    assert starts(easy) == {"A": 0, "B": 6, "C": 14, "D": 2}
    assert starts(conservative) == {"A": 0, "B": 6, "C": 10, "D": 13}


def test_hybrid_protects_as_many_as_its_depth():
    queue = (
        job("A", 0, "slot=2/core", 6),
        job("B", 1, "slot=3/core", 4),
        job("C", 1, "slot=4/core", 3),
        job("D", 2, "slot=1/core", 12),
    )
    one = run(machine(4), *queue, policy="hybrid", queue_options={"depth": 1})
    two = run(machine(4), *queue, policy="hybrid", queue_options={"depth": 2})
    assert starts(one) == starts(run(machine(4), *queue, policy="easy"))
    assert starts(two) == starts(run(machine(4), *queue, policy="conservative"))


def test_reservations_pin_no_vertices():
    """The head waits for one of two gpu nodes; a cpu job that first-fit would put on it goes elsewhere.

    At 5 a gpu node comes free and B takes it.  C wants one core for long: first fit gives it
    the only idle node's core, n1 without a gpu is busy until 5 too.
    """
    found = run(
        machine(2, cores=2, gpus=1),
        job("A", 0, "slot=1/[core=1;gpu]", 5),
        job("X", 0, "slot=1/[core=1;gpu]", 9),
        job("B", 1, "slot=1/[core=2;gpu]", 3),
        job("C", 2, "slot=1/core=1", 20),
    )
    assert starts(found) == {"A": 0, "X": 0, "B": 5, "C": 2}


def test_order_at_one_instant_is_ends_then_submissions_then_one_pass():
    """At 5 A ends, B and C come: C finds the node that A left only behind B."""
    found = run(
        machine(2),
        job("A", 0, "slot=2/core", 5),
        job("B", 5, "slot=2/core", 1),
        job("C", 5, "slot=1/core", 1),
    )
    assert starts(found) == {"A": 0, "B": 5, "C": 6}


def test_equal_keys_break_by_workload_order_and_urgency_goes_first_under_priority():
    queue = (
        job("A", 0, "slot=1/core", 5),
        job("B", 1, "slot=1/core", 2),
        job("C", 1, "slot=1/core", 2),
        job("D", 2, "slot=1/core", 2, urgency=20),
    )
    assert starts(run(machine(1), *queue, order="fifo")) == {"A": 0, "B": 5, "C": 7, "D": 9}
    assert starts(run(machine(1), *queue, order="priority")) == {"A": 0, "D": 5, "B": 7, "C": 9}


@pytest.mark.parametrize("cores", [1, 2])
def test_easy_the_reservation_moves_when_a_job_of_higher_priority_starts_before_it(cores):
    """H could have had all nodes at 10.  U, which came later and goes first, runs until 22: so may C."""
    extra = (job("G", 0, "slot=1/[core=2;gpu]", 1),) if cores == 2 else ()
    found = run(
        machine(5, cores=cores, gpus=cores - 1),
        *extra,
        job("A", 0, "slot=3/node", 10),
        job("H", 1, "slot=5/node", 4),
        job("U", 2, "slot=1/node", 20, urgency=20),
        job("C", 3, "slot=1/node", 15),
        order="priority",
    )
    assert {name: start for name, start in starts(found).items() if name != "G"} == {
        "A": 0,
        "H": 22,
        "U": 2,
        "C": 3,
    }


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("fifo", "ABCD"),
        ("sjf", "ACBD"),
        ("ljf", "ADBC"),
        ("smallest-area", "ACDB"),
        ("largest-area", "ABDC"),
    ],
)
def test_orders(order, expected):
    found = run(
        machine(3),
        job("A", 0, "slot=3/core", 9),
        job("B", 1, "slot=3/core", 5),
        job("C", 2, "slot=2/core", 2),
        job("D", 3, "slot=2/core", 6),
        policy="fcfs",
        order=order,
    )
    first = starts(found)
    assert "".join(sorted(first, key=first.__getitem__)) == expected


def test_a_job_of_zero_seconds_ends_at_once_and_another_pass_follows():
    found = run(machine(1), job("A", 3, "slot=1/core", 0, 10), job("B", 3, "slot=1/core", 4))
    assert starts(found) == {"A": 3, "B": 3}
    assert results(found) == {"A": "COMPLETED", "B": "COMPLETED"}


def test_a_job_over_its_time_is_ended_or_allowed_to_go_on():
    queue = (job("A", 0, "slot=1/core", 9, 5), job("B", 1, "slot=1/core", 2))
    ended = run(machine(1), *queue)
    assert results(ended)["A"] == "TIMEOUT"
    assert starts(ended) == {"A": 0, "B": 5}
    allowed = run(machine(1), *queue, overrun="allow")
    assert results(allowed)["A"] == "COMPLETED"
    assert starts(allowed) == {"A": 0, "B": 9}


def test_what_cannot_run_is_reported_and_the_run_goes_on():
    found = run(
        machine(2, properties={"ssd": "0"}),
        job("big", 0, "slot=3/core", 5),
        job("odd", 0, "slot=1/fpga", 5),
        job("ssd2", 0, "slot=2/node", 5, constraint="ssd"),
        job("fine", 0, "slot=2/core", 5),
    )
    assert results(found) == {
        "big": "INFEASIBLE",
        "odd": "INFEASIBLE",
        "ssd2": "INFEASIBLE",
        "fine": "COMPLETED",
    }
    reasons = dict(zip(found.jobs["id"], found.jobs["reason"], strict=True))
    assert reasons["fine"] is None
    assert all(reasons[name] for name in ("big", "odd", "ssd2"))
    assert "3" in reasons["big"]
    assert "core" in reasons["big"]


def test_a_job_of_unknown_length_is_dropped_with_a_reason():
    found = run(machine(1), job("A", 0, "slot=1/core", None, float("inf")), job("B", 0, "slot=1/core", 1))
    assert results(found) == {"A": "DROPPED", "B": "COMPLETED"}


def test_an_empty_workload_is_a_run():
    found = run(machine(1))
    assert len(found.jobs["id"]) == 0
    assert found.meta["complete"]
    assert found.meta["counts"]["jobs"] == 0


def test_constraints_hold_and_the_shadow_knows_them():
    """B needs the ssd node that A holds; C may use the other one for long, D may not pass B on n0."""
    found = run(
        machine(2, properties={"ssd": "0"}),
        job("A", 0, "slot=1/node", 5, constraint="ssd"),
        job("B", 1, "slot=1/node", 5, constraint="ssd"),
        job("C", 2, "slot=1/node", 20),
        job("D", 3, "slot=1/node", 1),
    )
    assert starts(found) == {"A": 0, "B": 5, "C": 2, "D": 10}


# --- the named variations of EASY ------------------------------------------------------------------------


def test_without_the_extra_nodes_a_job_beside_the_reservation_waits():
    queue = (
        job("A", 0, "slot=3/core", 6),
        job("B", 1, "slot=3/core", 4),
        job("C", 2, "slot=1/core", 9),
    )
    assert starts(run(machine(4), *queue))["C"] == 2
    assert starts(run(machine(4), *queue, queue_options={"extra": False}))["C"] == 6


def test_candidates_judged_by_their_actual_time_pass_although_they_ask_for_more():
    queue = (
        job("A", 0, "slot=3/core", 6),
        job("B", 1, "slot=4/core", 4),
        job("C", 2, "slot=1/core", 2, 50),
    )
    assert starts(run(machine(4), *queue))["C"] == 10
    assert starts(run(machine(4), *queue, candidates="actual"))["C"] == 2


def test_without_a_binding_reservation_the_first_job_starves():
    queue = (
        job("A", 0, "slot=3/core", 6),
        job("B", 1, "slot=4/core", 4),
        job("C", 2, "slot=1/core", 20),
    )
    assert starts(run(machine(4), *queue, queue_options={"reservation": "none"})) == {"A": 0, "C": 2, "B": 22}


def test_a_pass_after_each_event_sees_the_first_of_two_ends_alone():
    """At 4 two jobs end.  One pass an event: the first end lets C start before the second lets B."""
    queue = (
        job("A1", 0, "slot=1/core", 4),
        job("A2", 0, "slot=1/core", 4, 9),
        job("B", 1, "slot=2/core", 4),
        job("C", 2, "slot=1/core", 5),
    )
    assert starts(run(machine(2), *queue)) == {"A1": 0, "A2": 0, "B": 4, "C": 8}
    assert starts(run(machine(2), *queue, passes="event")) == {"A1": 0, "A2": 0, "C": 4, "B": 9}


def test_a_reservation_that_is_never_refreshed_stays_where_it_was():
    """A asks for 20 and ends at 3, X holds on until 10: B may start at 10; the old reservation says 20."""
    queue = (
        job("A", 0, "slot=1/core", 3, 20),
        job("X", 0, "slot=2/core", 10),
        job("B", 1, "slot=4/core", 4),
        job("C", 4, "slot=1/core", 15),
    )
    assert starts(run(machine(4), *queue))["C"] == 14
    assert starts(run(machine(4), *queue, queue_options={"refresh": "when-blocked"}))["C"] == 4


def test_fair_share_lets_those_who_used_less_go_first():
    """Ann's first job makes her wait behind bob, who came later."""
    found = run(
        machine(1),
        job("a1", 0, "slot=1/core", 5, user="ann"),
        job("a2", 1, "slot=1/core", 5, user="ann"),
        job("b1", 2, "slot=1/core", 5, user="bob"),
        order="fairshare",
    )
    assert starts(found) == {"a1": 0, "b1": 5, "a2": 10}
