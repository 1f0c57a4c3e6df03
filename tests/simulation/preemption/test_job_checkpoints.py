"""Jobs that go on from their last checkpoint, by hand and against a walk second by second."""

from __future__ import annotations

import pytest

from simsched import load_run
from simsched.simulation.preemption.checkpoint_rules import CheckpointTimes
from simsched.workload.job import Job
from tests.simulation.simworld import job, machine, results, run, spans


def column(found, name):
    return dict(zip(found.jobs["id"], found.jobs[name].tolist(), strict=True))


def walk(interval, cost, restart, work, saved, seconds):
    """Return (work in checkpoints, work done, whether the work is done) after some seconds of an attempt."""
    clock = restart if saved else 0
    done = kept = 0
    while clock < seconds and saved + done < work:
        clock, done = clock + 1, done + 1
        if done - kept == interval and saved + done < work:
            if clock + cost > seconds:
                break
            clock, kept = clock + cost, done
    return kept, done, saved + done >= work


@pytest.mark.parametrize("interval", [1, 3, 7, 40])
@pytest.mark.parametrize("cost", [0, 1, 4])
@pytest.mark.parametrize("saved", [0, 6])
def test_times_against_a_walk(interval, cost, saved):
    times, work, restart = CheckpointTimes(interval, cost, 5), 22, 5
    length = times.length(work - saved, restarted=saved > 0)
    for seconds in range(length + 1):
        kept, done, over = walk(interval, cost, restart, work, saved, seconds)
        assert times.kept(seconds, work - saved, restarted=saved > 0) == kept
        assert times.done(seconds, work - saved, restarted=saved > 0) == done
        assert over == (seconds == length)


def test_a_failure():
    """Two checkpoints of 1 s each are complete at 6; the rest takes 1 + 6 + 2 s from 8 on."""
    found = run(
        machine(1),
        job("A", 0, "slot=1/core", 10, 30),
        outages=[{"ranks": "0", "start": 6, "end": 8}],
        job_checkpoints={"interval": 2, "cost": 1, "restart": 1},
    )
    assert spans(found) == {"A": (8, 17)}
    assert (column(found, "saved"), column(found, "lost")) == ({"A": 4}, {"A": 2})
    assert column(found, "overhead") == {"A": 3}


def test_the_cost_of_checkpoints_counts_for_the_limit():
    found = run(machine(1), job("A", 0, "slot=1/core", 10, 11), job_checkpoints={"interval": 2, "cost": 1})
    assert spans(found) == {"A": (0, 11)}
    assert results(found) == {"A": "TIMEOUT"}
    assert column(found, "overhead") == {"A": 3}


def test_attributes_and_queues_go_before_the_common_times():
    made = job("B", 0, "slot=1/core", 10, 30, queue="b")
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    spec = made.jobspec.with_system(checkpoint={"interval": 5, "cost": 3})
    found = run(
        machine(4),
        job("A", 0, "slot=1/core", 10, 30, queue="a"),
        Job(**{**fields, "jobspec": spec}),
        job("C", 0, "slot=1/core", 10, 30, queue="b"),
        queues={"a": {"hosts": "all"}, "b": {"hosts": "all"}},
        job_checkpoints={"interval": 2, "cost": 1, "queues": {"b": {"interval": "never"}}},
    )
    assert {name: end for name, (_, end) in spans(found).items()} == {"A": 14, "B": 13, "C": 10}


def test_work_that_checkpoints_kept_is_goodput(tmp_path):
    """Of 17 s the node works 10 s for A, reads and writes for 5, and is down for 2."""
    found = run(
        machine(1),
        job("A", 0, "slot=1/core", 10, 30),
        outages=[{"ranks": "0", "start": 6, "end": 8}],
        job_checkpoints={"interval": 2, "cost": 1, "restart": 1},
    )
    summary = load_run(found.save(tmp_path / "run")).summary
    assert summary["goodput"] == pytest.approx(10 / 17)
    assert summary["badput"] == pytest.approx(5 / 17)
