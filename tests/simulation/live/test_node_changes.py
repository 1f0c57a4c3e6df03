"""Nodes that are drained, fail, come and go while the clock runs."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.errors import ConfigError, FormatError
from tests.simulation.simworld import machine


def test_a_controller_drains_nodes_at_night():
    sim = ss.Simulation(machine(2, 1))
    first = sim.submit("slot=2/node", duration=15)
    second = sim.submit("slot=2/node", duration=5)
    small = sim.submit("slot=1/node", duration=5, at=16)

    def controller():
        yield sim.env.timeout(10)
        sim.drain("1", note="night")
        yield sim.env.timeout(20)
        sim.undrain(1)

    sim.env.process(controller())
    sim.run(until=20)
    assert (first.end, second.start, small.start, sim.free()["node"]) == (15, None, 16, 0)
    sim.run()
    assert second.start == 30
    result = sim.result()
    assert result.meta["config"]["outages"] == [
        {"ranks": "1", "start": 10, "end": 30, "kind": "drain", "note": "night"}
    ]
    assert result.timeline["down_node"].max() == 1
    assert sim.audit(), sim.audit()


def test_nodes_that_are_absent_are_added_and_removed():
    sim = ss.Simulation(machine(4, 2), absent="2-3")
    jobs = [sim.submit("slot=1/node", duration=10) for _ in range(4)]
    wide = sim.submit("slot=4/node", duration=10)
    sim.run(until=4)
    assert sim.free() == {"node": 0, "core": 0}
    sim.add([2])
    sim.run(until=5)
    assert [job.start for job in jobs] == [0, 0, 4, None]
    sim.add(3)
    sim.run(until=6)
    sim.remove(0)
    sim.run(until=30)
    assert (jobs[3].start, wide.state) == (5, "SCHED")
    sim.add(0)
    sim.run()
    assert wide.start == 30
    assert sim.audit(), sim.audit()


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "hybrid"])
def test_drains_in_the_middle_of_a_full_machine(policy):
    sim = ss.Simulation(machine(6, 2), policy)
    for n in range(60):
        sim.submit(f"slot={1 + n % 6}/core", duration=20 + n % 7, runtime=9 + n % 11, at=n * 2)

    def controller():
        for turn in range(5):
            yield sim.env.timeout(17)
            sim.drain(f"{turn}-{turn + 1}")
            yield sim.env.timeout(12)
            sim.undrain([turn, turn + 1])

    sim.env.process(controller())
    sim.run()
    assert sim.result().meta["counts"]["completed"] == 60
    assert sim.audit(), sim.audit()


def test_a_failure_requeues_jobs():
    sim = ss.Simulation(machine(2, 1))
    job = sim.submit("slot=1/node", duration=10)
    told = []
    sim.on("requeue", told.append)
    sim.run(until=5)
    sim.fail(0)
    sim.run()
    assert (told, job.start, job.end, job.reason) == ([job], 5, 15, "queued again once: failure of n0")
    assert sim.audit(), sim.audit()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda sim: sim.drain(9), "the cluster has no rank 9"),
        (lambda sim: sim.drain("x"), "ranks: "),
        (lambda sim: sim.drain(None), "ranks are None"),
        (lambda sim: sim.drain(0, note=5), "note is 5"),
        (lambda sim: sim.undrain(0), "rank 0 is not drained (expected a rank that was drained)"),
        (lambda sim: sim.add(0), "rank 0 is not absent (expected 1)"),
        (lambda sim: sim.undrain(1), "rank 1 is not drained"),
    ],
)
def test_wrong_changes(act, message):
    sim = ss.Simulation(machine(2, 1), absent=1)
    sim.run(until=1)
    with pytest.raises((ConfigError, FormatError)) as told:
        act(sim)
    assert str(told.value).startswith(message)
