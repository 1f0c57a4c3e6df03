"""What a callback may do: its event is half done, unless it is a scheduling pass."""

from __future__ import annotations

import pytest
import simpy

import simsched as ss
from simsched.errors import RunError
from simsched.simulation.live.open_simulation import OpenSimulation
from tests.simulation.live.test_open_simulation import differences, without_later_dependencies
from tests.simulation.simworld import machine
from tests.simulation.test_whole_configurations import draw


def busy():
    sim = ss.Simulation(machine(4, 1))
    for n in range(5):
        sim.submit("slot=3/node", duration=10 + n, runtime=5 + n, at=3 * n)

    def controller():
        yield sim.env.timeout(7)
        sim.fail(0)
        yield sim.env.timeout(4)
        sim.undrain(0)

    sim.env.process(controller())
    return sim


@pytest.mark.quick(6)
@pytest.mark.parametrize("event", ["submit", "start", "end", "requeue"])
@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda sim: sim.copy(), "cannot copy the simulation: its event is not over"),
        (lambda sim: sim.result(), "cannot read the records of the simulation: its event is not over"),
        (lambda sim: sim.audit(), "cannot read the records of the simulation: its event is not over"),
        (lambda sim: sim.run(until=sim.now + 3), "the clock runs already"),
        (lambda sim: sim.step(), "the clock runs already"),
    ],
)
def test_a_half_done_event_has_no_whole_state(event, act, message):
    sim, told = busy(), []

    def callback(_):
        with pytest.raises(RunError, match=message) as error:
            act(sim)
        told.append(error)

    sim.on(event, callback)
    sim.run()
    assert told
    assert sim.audit(), sim.audit()


@pytest.mark.parametrize("seed", range(200, 216))
def test_copies_of_callbacks_continue_to_the_same_bytes(seed):
    cluster, given, rules = draw(seed)
    sim = OpenSimulation(cluster, eventlog=True, expect=given.jobs, **rules)
    sim.submit_all(without_later_dependencies(given))
    kept, states = [], []
    if sim.config.passes == "instant":
        sim.on("pass", lambda it: kept.append(it.copy()) if len(kept) < 5 else None)
    for event in ("submit", "start", "end", "requeue", "pass"):
        sim.on(event, lambda _: states.append(sim.checkpoint()))
    sim.run()
    for copy in (*kept, *(state.restore() for state in states[:: len(states) // 9 + 1])):
        copy.run()
        assert differences(sim.result(), copy.result()) == []


def test_a_state_is_not_restored_before_its_event_is_over():
    sim, told = busy(), []

    def callback(_):
        state = sim.checkpoint()
        with pytest.raises(RunError, match="the state is kept once the present event is over"):
            state.restore()
        told.append(state)

    sim.on("start", callback)
    sim.run()
    assert [state.time for state in told] == [state.restore().now for state in told]


def test_the_clock_is_not_started_twice():
    sim = ss.Simulation(machine(1, 1))

    def process():
        yield sim.env.timeout(1)
        with pytest.raises(RunError, match=r"the clock runs already \(expected `yield` in a process"):
            sim.run(until=sim.submit("slot=1/node", duration=3).ended)
        yield sim.env.timeout(1)

    sim.env.process(process())
    sim.run()
    assert sim.job(1).end == 4


def test_events_that_do_not_happen():
    sim = ss.Simulation(machine(1, 1))
    runs, waits = (
        sim.submit("slot=1/node", duration="inf", runtime=50),
        sim.submit("slot=1/node", duration=5, hold=True),
    )
    with pytest.raises(RunError, match="at 50 s nothing is left to happen, and the event has not taken"):
        sim.run(until=waits.started)
    assert (sim.now, runs.end) == (50, 50)
    with pytest.raises(RunError, match="belongs to another environment"):
        sim.run(until=simpy.Environment().event())
    assert sim.submit("slot=1/node", duration=5).number is None
    sim.run()
    assert sim.audit(), sim.audit()
