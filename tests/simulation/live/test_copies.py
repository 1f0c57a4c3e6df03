"""Copies of open simulations, to look ahead and to continue from."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.errors import ConfigError
from simsched.simulation.live.open_simulation import OpenSimulation
from tests.simulation.live.test_open_simulation import differences, without_later_dependencies
from tests.simulation.simworld import machine
from tests.simulation.test_whole_configurations import draw


@pytest.mark.parametrize("seed", range(200, 240))
def test_a_copy_continues_to_the_bytes_of_the_whole_run(seed):
    cluster, given, rules = draw(seed)
    given = without_later_dependencies(given)
    sim = OpenSimulation(cluster, eventlog=True, expect=given.jobs if seed % 2 else (), **rules)
    sim.submit_all(given)
    sim.run(until=seed % 17)
    twin = sim.copy()
    state = sim.checkpoint()
    sim.run()
    twin.run(until=twin.now + 3)
    again = twin.copy()
    for other in (twin, again, state.restore(), state.restore()):
        other.run()
        assert differences(sim.result(), other.result()) == []


def test_looking_ahead_changes_nothing():
    sim = ss.Simulation(machine(2, 1))
    for n in range(5):
        sim.submit("slot=2/core", duration=10, id=f"j{n}")
    told = []
    sim.on("start", told.append)
    sim.run(until=5)
    ahead = sim.copy()
    extra = ahead.submit("slot=1/core", duration=1)
    ahead.job("j1").cancel()
    ahead.run()
    assert (extra.start, ahead.job("j2").start, ahead.job("j1").result) == (40, 10, "CANCELED")
    assert (sim.now, len(sim.queue), len(told)) == (5, 4, 1)
    assert sim.job("j1").state == "SCHED"
    sim.run()
    assert (sim.job("j2").start, sim.job("j4").end, len(told)) == (20, 50, 5)
    assert ahead.audit()
    assert sim.audit()


def test_copies_of_changed_nodes_and_jobs():
    sim = ss.Simulation(machine(6, 2), "conservative", absent="5")
    wide = sim.submit("slot=2-5/node", duration=500, runtime=100)
    waits = sim.submit("slot=3/node", duration=20)
    sim.run(until=10)
    wide.resize(2)
    waits.update(duration=60)
    sim.run(until=20)
    sim.drain(1)
    sim.run(until=30)
    twin = sim.copy()
    for each in (sim, twin):
        each.add(5)
        each.undrain(1)
        each.job(1).resize(3, beside_queue=True)
        each.run()
    assert differences_of(sim, twin) == []
    assert twin.job(1).end == sim.job(1).end
    assert twin.audit(), twin.audit()


def differences_of(one, other):
    first, second = one.result().result, other.result().result
    found = [
        name for name in first.jobs if list(map(repr, first.jobs[name])) != list(map(repr, second.jobs[name]))
    ]
    return found + ["allocations"] * (first.log.text() != second.log.text())


def test_a_copy_spells_a_duration_as_the_run_does():
    sim = ss.Simulation(machine(1, 1))
    sim.submit("slot=1/core", duration=3)
    second = sim.submit(ss.Job("b", 0, ss.Jobspec.from_shape("slot=1/core"), runtime=2, duration=5.0))
    sim.run(until=1)
    second.update(duration=5)
    sim.run(until=2)
    twin = sim.copy()
    for one in (sim, twin):
        one.run()
    assert differences_of(sim, twin) == []


def test_a_job_by_its_id():
    sim = ss.Simulation(machine(1, 1))
    with pytest.raises(ConfigError, match="there is no job 'x'"):
        sim.job("x")


def test_the_r_of_an_ended_job_is_read_from_the_records(tmp_path):
    sim = ss.Simulation("tiny")
    shapes = {"a": "slot=2/node", 7: "slot/core=3"}
    kept = [sim.submit(shape, duration=10, id=name) for name, shape in shapes.items()]
    never = sim.submit("slot=99/core", duration=10)
    sim.run()
    sim.checkpoint(tmp_path / "state.json")
    for later in (sim, sim.copy(), ss.Simulation.restore(tmp_path / "state.json", "tiny")):
        assert [later.job(job.id).R for job in kept] == [job.R for job in kept]
        assert later.job(never.id).R is None
    assert ss.Simulation("tiny", allocations=False).submit("slot/core", duration=1).R is None


def test_a_job_that_waits_again_has_no_r():
    sim = ss.Simulation("tiny")
    job = sim.submit("slot=4/node", duration=100, id="again")
    sim.run(until=10)
    sim.fail("0")
    sim.run(until=20)
    assert (job.state, job.R, sim.job("again").R) == ("SCHED", None, None)
    sim.job("again").cancel()
    sim.run()
    assert sim.job("again").R is None
