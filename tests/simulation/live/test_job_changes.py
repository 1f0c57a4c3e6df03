"""Jobs that shrink, grow and get another duration while they run."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.errors import ConfigError, RunError
from tests.simulation.simworld import machine

SHAPES = ("slot=1-6/node", "node=2-6/slot/core=2", "node=1,2,4/slot=1/[core=1;gpu=1]")


def ranks(job):
    return [entry["rank"] for entry in job.R.to_dict()["execution"]["R_lite"]]


def test_a_malleable_job_shrinks_for_another_and_grows_again():
    sim = ss.Simulation(machine(8, 2), eventlog=True)
    wide = sim.submit("slot=2-8/node", duration=1000, runtime=100)
    sizes = []

    def manager():
        yield sim.env.timeout(50)
        other = sim.submit("slot=4/node", duration=20)
        sizes.append((yield wide.resize(4)))
        yield other.ended
        sizes.append((yield wide.resize(8)))

    sim.env.process(manager())
    sim.run(until=55)
    assert (ranks(wide), [job.start for job in sim.running]) == (["0-3"], [0, 50])
    sim.run()
    # 50 s on 8 nodes, 20 s on 4, and the other 40 s on 8
    assert (sizes, wide.end, wide.result) == ([4, 8], 110, "COMPLETED")
    assert ranks(wide) == ["0-7"]
    assert sim.audit(), sim.audit()
    log = sim.result().result.log.text().splitlines()
    assert [('"id":"1",' in line, '"event":"alloc"' in line) for line in log] == [
        (True, True), (True, False), (True, True), (False, True), (False, False), (True, False),
        (True, True), (True, False)]  # fmt: skip


def test_a_job_grows_by_what_is_free_and_not_before_those_who_wait():
    sim = ss.Simulation(machine(4, 2), "fcfs")
    first = sim.submit("slot=1/node", duration=30)
    job = sim.submit("node=1-4/slot/core=2", duration=500, runtime=90)
    sim.run(until=0)
    assert len(ranks(job)) == 1
    waits = sim.submit("slot=4/node", duration=5)
    sim.run(until=1)
    assert sim.run(until=job.resize(2)) == 2
    assert sim.run(until=job.resize(3)) == 2
    assert sim.run(until=job.resize(4, beside_queue=True)) == 3
    sim.run()
    assert (first.end, waits.result, job.result) == (30, "COMPLETED", "COMPLETED")
    assert sim.audit(), sim.audit()


@pytest.mark.quick(2)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "hybrid"])
@pytest.mark.parametrize("shape", SHAPES)
def test_many_changes_are_audited(policy, shape):
    sim = ss.Simulation(machine(6, 2, 1), policy, overrun="timeout")
    jobs = [sim.submit(shape, duration=60 + n, runtime=20 + 3 * n, at=7 * n) for n in range(25)]
    others = [sim.submit(f"slot={1 + n % 5}/core", duration=30, runtime=9, at=4 * n) for n in range(40)]

    def manager():
        turn = 0
        while any(job.result is None for job in jobs):
            yield sim.env.timeout(3)
            for job in sim.running:
                if job in jobs and job.state == "RUN":
                    turn += 1
                    size = (1, 2, 4)[turn % 3] if "," in shape else 2 + turn % 5
                    yield job.resize(size, beside_queue=bool(turn % 2))

    sim.env.process(manager())
    sim.run()
    assert all(job.result in ("COMPLETED", "TIMEOUT") for job in [*jobs, *others])
    assert sim.audit(), sim.audit()


@pytest.mark.parametrize(
    ("shape", "size", "message"),
    [
        ("slot=2-4/node", 5, r"job 1 cannot have 5 execution targets \(expected 2-4\)"),
        ("slot=2-4/node", 0, "size is 0"),
        ("slot=2/node", 1, "job 1 is not malleable"),
        ("slot=2-4/core", 3, "job 1 is not malleable"),
        ("slot=9/node", 9, "job 1 has ended"),
    ],
)
def test_wrong_sizes(shape, size, message):
    sim = ss.Simulation(machine(4, 2))
    job = sim.submit(shape, duration=10)
    sim.run(until=1)
    with pytest.raises((ConfigError, RunError), match=message):
        job.resize(size)
    late = sim.submit("slot=2-4/node", duration=10, at=500)
    with pytest.raises(RunError, match="job 2 does not run"):
        late.resize(2)


def test_durations_change_before_and_while_a_job_runs():
    sim = ss.Simulation(machine(1, 1))
    first = sim.submit("slot=1/core", duration=50, runtime=40)
    second = sim.submit("slot=1/core", duration=10)
    later = sim.submit("slot=1/core", duration=10, at=100)
    sim.run(until=5)
    first.update(duration=20)
    second.update(duration="1m")
    later.update(duration=7)
    sim.run()
    assert (first.end, first.result, second.start, second.end, later.end) == (20, "TIMEOUT", 20, 80, 107)
    assert sim.audit(), sim.audit()
    for wrong, value in (("duration: 'x'", "x"), ("duration is -1", -1)):
        job = sim.submit("slot=1/core", duration=10)
        with pytest.raises(ConfigError, match=wrong):
            job.update(duration=value)
    with pytest.raises(RunError, match="job 1 has ended"):
        first.update(duration=20)


def test_a_duration_that_is_over_already_is_refused():
    sim = ss.Simulation(machine(1, 1))
    job = sim.submit("slot=1/core", duration=50)
    sim.run(until=30)
    with pytest.raises(ConfigError, match="job 1 has run for more than 20 s"):
        job.update(duration=20)
