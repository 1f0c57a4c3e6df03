"""Predicted ends of suspended jobs: they move by the suspension, and what is learnt leaves it out."""

from __future__ import annotations

import pytest

from simsched.schedule.policies.registry import queue_policy
from tests.simulation.simworld import job, machine, run, spans

QUEUES = {"batch": {"hosts": "all"}, "urgent": {"hosts": "all", "priority": 9, "preempts": True}}


class Watched:
    """FCFS that notes the expected ends of running jobs in each pass, as (time, job) → end."""

    def __init__(self):
        self.inner, self.ends = queue_policy("fcfs", {}), {}

    def __deepcopy__(self, memo):
        return self

    def run_pass(self, context):
        for number, end in context.plan.expected_ends().items():
            self.ends[context.now, number] = end
        self.inner.run_pass(context)


def story(policy="fcfs", **options):
    """P and Q teach that jobs of ann take 3 s; A takes 10 s and is suspended from 8 to 13 by U."""
    return run(
        machine(2),
        job("P", 0, "slot=2/core", 3, 20, user="ann", queue="batch"),
        job("Q", 3, "slot=2/core", 3, 20, user="ann", queue="batch"),
        job("A", 6, "slot=2/core", 10, 20, user="ann", queue="batch"),
        job("U", 8, "slot=1/core", 5, 5, user="bob", queue="urgent"),
        job("X", 9, "slot=1/core", 1, 1, user="bob", queue="batch"),
        job("Y", 15, "slot=1/core", 1, 1, user="bob", queue="batch"),
        job("Z", 22, "slot=2/core", 9, 20, user="ann", queue="batch"),
        job("T", 23, "slot=2/core", 1, 1, user="bob", queue="batch"),
        policy=policy,
        queues=QUEUES,
        preemption={"mode": "suspend"},
        predictor="last-two",
        **options,
    )


def test_the_predicted_end_moves_by_the_suspension():
    """At 8 A has 1 s left of its predicted 3 s. So it is corrected at 14, to its limit."""
    policy = Watched()
    found = story(policy)
    assert spans(found)["A"] == (6, 21)
    ends = {time: end for (time, number), end in policy.ends.items() if number == 2}
    assert 9 not in ends  # it holds nothing
    assert ends[13] == 14
    assert ends[14] == ends[15] == 6 + 20 + 5


def test_what_is_learnt_leaves_the_suspension_out():
    """Q took 3 s and A 10 s, so that Z is expected to take 6 s (whole seconds)."""
    policy = Watched()
    found = story(policy)
    start, _ = spans(found)["Z"]
    assert policy.ends[start + 1, 6] == start + 6


@pytest.mark.parametrize("at", [8.5, 13.5])
def test_a_resumed_run_is_the_same(tmp_path, at):
    state = tmp_path / "state.json"
    whole = story("easy", checkpoints={at: state})
    resumed = story("easy", resume=state)
    assert spans(resumed) == spans(whole)
    assert resumed.log.text() == whole.log.text()


def test_a_job_that_is_suspended_at_its_predicted_end_is_corrected_as_it_goes_on():
    found = run(
        machine(1),
        job("P", 0, "slot=1/core", 3, 20, user="ann", queue="batch"),
        job("A", 3, "slot=1/core", 10, 20, user="ann", queue="batch"),
        job("U", 6, "slot=1/core", 4, 4, user="bob", queue="urgent"),
        queues=QUEUES,
        preemption={"mode": "suspend"},
        predictor="last-two",
    )
    assert spans(found) == {"P": (0, 3), "U": (6, 10), "A": (3, 17)}
