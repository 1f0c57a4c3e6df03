"""Open simulations: jobs that come while the clock runs, their events, and the records."""

from __future__ import annotations

import signal

import numpy as np
import pytest
import simpy
from msgspec.structs import replace

import simsched as ss
from simsched.errors import ConfigError, FormatError, RunError
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.live.open_simulation import OpenSimulation
from simsched.simulation.simulate import simulate
from tests.simulation.simworld import job, machine, run, starts, workload
from tests.simulation.test_whole_configurations import draw


def differences(one, other):
    """The columns and logs in which two results differ."""
    found = [
        name for name in one.jobs if list(map(repr, one.jobs[name])) != list(map(repr, other.jobs[name]))
    ]
    for name, column in one.timeline.items():
        if not np.array_equal(column, other.timeline[name], equal_nan=True):
            found.append(name)
    found += ["allocations"] * (one.log.text() != other.log.text())
    found += ["eventlog"] * (one.events.text() != other.events.text())
    return found


def without_later_dependencies(given):
    """The workload without dependencies on jobs that are submitted later, which are not known."""
    seen, jobs = set(), []
    for one in given.jobs:
        kept = [
            dependency
            for dependency in one.dependencies
            if dependency.scheme == "begin-time" or dependency.value in seen
        ]
        jobs.append(replace(one, dependencies=tuple(kept)))
        seen.add(str(one.id))
    return workload(*jobs)


def played(cluster, given, rules, *, expect, process):
    sim = OpenSimulation(cluster, eventlog=True, expect=given.jobs if expect else (), **rules)

    def source():
        for one in given.jobs:
            if one.submit > sim.env.now:
                yield sim.env.timeout(one.submit - sim.env.now)
            sim.submit(one)

    if process:
        sim.env.process(source())
    else:
        sim.submit_all(given)
    sim.run()
    return sim.result()


@pytest.mark.parametrize("seed", range(60))
def test_submissions_give_the_bytes_of_simulate(seed):
    cluster, given, rules = draw(seed)
    given = without_later_dependencies(given)
    process = seed % 2 == 0 and not rules.get("failures")  # these end while no job is known
    whole = simulate(cluster, given, eventlog=True, **rules)
    assert differences(whole, played(cluster, given, rules, expect=True, process=process)) == []


@pytest.mark.parametrize("order", ["fifo", "sjf", "wfp3", "fairshare"])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_flat_requests_need_no_expectation(policy, order):
    rng = np.random.default_rng(5)
    jobs = [
        job(
            f"j{n}", n * 3, f"slot={rng.integers(1, 9)}/core", int(rng.integers(1, 90)), 100, user=f"u{n % 5}"
        )
        for n in range(250)
    ]
    rules = {"queue_policy": policy, "order": order}
    cluster = machine(4, 4)
    whole = simulate(cluster, workload(*jobs), eventlog=True, **rules)
    assert differences(whole, played(cluster, workload(*jobs), rules, expect=False, process=True)) == []


def test_mixed_requests_hand_over_to_the_matcher_during_the_run():
    jobs = [job("a", 0, "slot=3/core", 10), job("b", 1, "slot=8/core", 9),
            job("c", 2, "node=1/slot/core=2", 4),
            job("d", 3, "slot=1/core", 20), job("e", 4, "slot=2/[core=1]", 3)]  # fmt: skip
    cluster = machine(2, 4)
    whole = simulate(cluster, workload(*jobs), eventlog=True)
    assert differences(whole, played(cluster, workload(*jobs), {}, expect=False, process=True)) == []


# -- users ------------------------------------------------------------------------------------------


def test_a_user_waits_for_a_job_thinks_and_submits_the_next():
    sim = ss.Simulation(machine(1, 4))
    seen = []

    def user():
        for _ in range(3):
            one = sim.submit("slot=4/core", duration=100, runtime=60, user="ann")
            ended = yield one.ended
            assert ended is one
            seen.append((one.submit, one.start, one.end, one.wait, one.result))
            yield sim.env.timeout(30)

    sim.env.process(user())
    sim.run()
    assert seen == [(t, t, t + 60, 0, "COMPLETED") for t in (0, 90, 180)]
    assert sim.result().jobs["id"].tolist() == ["1", "2", "3"]


def test_events_of_a_job():
    sim = ss.Simulation(machine(1, 2))
    first = sim.submit("slot=2/core", duration=10)
    second = sim.submit("slot=1/core", duration=5)
    states = []

    def watch(one):
        while one.state != "INACTIVE":
            name = yield one.state_changed
            states.append((sim.now, name))

    sim.env.process(watch(second))
    assert sim.run(until=second.started) is second
    assert (sim.now, first.state, first.result, second.R.to_dict()["execution"]["starttime"]) == (
        10, "INACTIVE", "COMPLETED", 10)  # fmt: skip
    sim.run()
    assert states == [(0, "SCHED"), (10, "RUN"), (15, "INACTIVE")]
    assert second.ended.value is second  # asked for after the end
    with pytest.raises(RunError, match="has ended"):
        _ = second.state_changed


def test_a_start_that_never_comes_fails_for_those_who_wait():
    sim = ss.Simulation(machine(1, 2))
    told = []

    def user(one):
        try:
            yield one.started
        except RunError as error:
            told.append(str(error))

    def careful(one):
        yield one.started | one.ended
        told.append(one.result)

    never = sim.submit("slot=9/core", duration=5)
    sim.env.process(user(never))
    sim.env.process(careful(never))
    full, waits = sim.submit("slot=2/core", duration=50), sim.submit("slot=2/core", duration=50)
    sim.env.process(user(waits))
    sim.run(until=3)
    waits.cancel()
    sim.run()
    assert [text.split(":")[0] for text in told] == [
        "job 1 ended without a start (INFEASIBLE",
        "INFEASIBLE",
        "job 3 ended without a start (CANCELED",
    ]
    assert full.result == "COMPLETED"


def test_an_error_of_simsched_in_a_process_arrives_as_it_is():
    sim = ss.Simulation(machine(1, 2))

    def user():
        yield sim.env.timeout(5)
        sim.submit("slot=1/core", at=2)

    sim.env.process(user())
    with pytest.raises(ConfigError, match="at is 2 s, which has passed"):
        sim.run()
    sim.submit("slot=1/core", duration=1)
    sim.run()  # the run itself is whole
    assert sim.result().meta["counts"]["completed"] == 1


def test_resources_of_simpy_and_a_shared_environment():
    env = simpy.Environment(initial_time=1000)
    sim = ss.Simulation(machine(2, 1), env=env)
    desk = simpy.Resource(env, capacity=1)
    starts = []

    def user():
        with desk.request() as turn:
            yield turn
            one = sim.submit("slot=1/core", duration=10)
            yield one.ended
            starts.append((one.start, env.now))

    env.process(user())
    env.process(user())
    env.run()
    assert starts == [(0, 1010), (10, 1020)]


# -- time -------------------------------------------------------------------------------------------


def test_run_until_includes_that_time_and_can_be_continued():
    sim = ss.Simulation(machine(1, 1))
    jobs = [sim.submit("slot=1/core", duration=10) for _ in range(3)]
    sim.run(until=10)
    assert sim.now == 10
    assert [one.state for one in jobs] == ["INACTIVE", "RUN", "SCHED"]
    assert (sim.running, sim.queue, sim.free()) == ([jobs[1]], [jobs[2]], {"node": 0, "core": 0})
    part = sim.result()
    assert part.jobs["result"].tolist() == ["COMPLETED", "RUNNING", "PENDING"]
    assert part.meta["until"] == 10
    sim.run()
    assert sim.result().meta["until"] is None
    assert part.jobs["result"].tolist() == ["COMPLETED", "RUNNING", "PENDING"]  # not changed since


def test_an_event_and_a_pass_at_a_time():
    sim = ss.Simulation(machine(1, 1))
    one = sim.submit("slot=1/core", duration=10, at=5)
    assert (one.state, one.number) == ("NEW", None)
    assert sim.step_pass()
    assert (sim.now, one.state) == (5, "RUN")
    assert sim.step()
    assert (sim.now, one.state) == (15, "INACTIVE")
    assert not sim.step_pass()
    assert not sim.step()


def test_later_submissions_are_in_the_records_although_their_time_is_to_come():
    sim = ss.Simulation(machine(1, 1))
    sim.submit("slot=1/core", duration=10, at=50)
    withdrawn = sim.submit("slot=1/core", duration=10, at=60)
    withdrawn.cancel()
    sim.run(until=20)
    assert sim.result().jobs["result"].tolist() == ["PENDING"]
    assert (withdrawn.state, withdrawn.result) == ("INACTIVE", "CANCELED")
    sim.run()
    assert sim.result().jobs["start"].tolist() == [50]


# -- callbacks --------------------------------------------------------------------------------------


def test_callbacks():
    sim = ss.Simulation(machine(1, 1))
    told = []
    for kind in ("submit", "start", "end"):
        sim.on(kind, lambda one, kind=kind: told.append((sim.now, kind, one.id)))
    sim.on("pass", lambda same: told.append((same.now, "pass", len(same.queue))))
    sim.submit("slot=1/core", duration=10, id="a")
    sim.submit("slot=9/core", duration=10, id="b")
    sim.run()
    assert told == [(0, "submit", "a"), (0, "submit", "b"), (0, "end", "b"), (0, "start", "a"),
                    (0, "pass", 0), (10, "end", "a"), (10, "pass", 0)]  # fmt: skip


def test_a_callback_may_submit():
    sim = ss.Simulation(machine(1, 1))

    @lambda function: sim.on("end", function)
    def again(one):
        if one.id < 4:
            sim.submit("slot=1/core", duration=10)

    sim.submit("slot=1/core", duration=10)
    sim.run()
    assert sim.result().jobs["start"].tolist() == [0, 10, 20, 30]


def test_a_callback_that_raises_ends_the_run_with_its_name():
    sim = ss.Simulation(machine(1, 1))

    def broken(one):
        raise ValueError(f"no {one.id}")

    sim.on("start", broken)
    sim.submit("slot=1/core", duration=10)
    with pytest.raises(
        RunError, match=r"callback .*broken for 'start' failed at 0 s: ValueError: no 1"
    ) as told:
        sim.run()
    assert isinstance(told.value.__cause__, ValueError)
    for refused in (sim.run, sim.step, sim.result, lambda: sim.submit("slot=1/core")):
        with pytest.raises(RunError, match="the simulation ended with an error: the callback"):
            refused()


def test_an_interrupt_ends_a_process_that_submits_for_ever():
    sim = ss.Simulation(machine(1, 1))

    def user():
        while True:
            one = sim.submit("slot=1/core", duration=10)
            if one.id == 200:
                raise KeyboardInterrupt
            yield one.ended

    sim.env.process(user())
    with pytest.raises(KeyboardInterrupt):
        sim.run()
    assert sim.result().meta["counts"]["completed"] == 199


def test_ctrl_c_ends_a_run_between_two_events(heard):
    sim = ss.Simulation(machine(1, 1))
    seen = []

    def user():
        while True:
            yield sim.submit("slot=1/core", duration=10).ended

    def press(one):
        if one.id == 50:
            seen.append(one)
            signal.raise_signal(signal.SIGINT)

    sim.on("start", press)  # within an event of the run
    sim.env.process(user())
    with pytest.raises(KeyboardInterrupt):
        sim.run()
    assert sim.result().meta["counts"]["completed"] == 49
    sim.run(until=seen[0].ended)
    assert seen[0].result == "COMPLETED"
    assert sim.audit()


# -- wrong input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"at": -1}, "at is -1"),
        ({"at": float("nan")}, "at is nan"),
        ({"at": "soon"}, "at is 'soon'"),
        ({"at": True}, "at is True"),
        ({"duration": "1 fortnight"}, "duration: '1 fortnight' is not a duration"),
        ({"duration": -1}, "duration is -1"),
        ({"runtime": float("nan")}, "runtime"),
        ({"usr": "ann"}, "unknown option 'usr'; did you mean user?"),
        ({"user": 5}, "user is 5"),
        ({"qos": 5}, "qos is 5 (expected a text)"),
        ({"nodes": 1.5}, "nodes is 1.5 (expected a whole number of 0 or more)"),
        ({"energy": "x"}, "energy is 'x'"),
        ({"wait": -1}, "wait is -1"),
        ({"hold": 1}, "hold is 1 (expected True or False)"),
        ({"preceding": [1]}, "preceding is [1]"),
        ({"urgency": 99}, "urgency is 99 (expected a whole number from 0 to 31)"),
        ({"id": 1.5}, "id is 1.5"),
        ({"dependencies": 7}, "dependencies is 7"),
    ],
)
def test_wrong_submissions(given, message):
    sim = ss.Simulation(machine(1, 1))
    with pytest.raises((ConfigError, FormatError)) as told:
        sim.submit("slot=1/core", **given)
    assert str(told.value).startswith(message)
    sim.run()
    assert len(sim.result().jobs["id"]) == 0


@pytest.mark.parametrize("id_", [True, 1.5, None, "", float("nan"), b"x"])
def test_a_job_has_an_id_that_is_a_number_or_a_text(id_):
    sim = ss.Simulation(machine(1, 1))
    wanted = ss.Jobspec.from_shape("slot=1/core")
    for own, more in ((id_, {}), (1, {"id": id_})):
        with pytest.raises(ConfigError, match=r"id is .* \(expected a whole number or a text\)"):
            sim.submit(ss.Job(own, 0, wanted), duration=1, **more)


def test_numbers_of_numpy_are_plain_ones():
    sim = ss.Simulation(machine(1, 1))
    first = sim.submit("slot=1/core", duration=1, id=np.int64(7), priority=np.int32(-5))
    sim.submit("slot=1/core", duration=1, preceding=np.int64(7))
    assert (type(first.id), first.id) == (int, 7)
    sim.run()
    assert sim.audit()


def test_ids_occur_once():
    sim = ss.Simulation(machine(1, 1))
    sim.submit("slot=1/core", duration=1, id="2")
    assert [sim.submit("slot=1/core", duration=1).id for _ in range(2)] == [1, 3]
    with pytest.raises(ConfigError, match="there is a job 3 already"):
        sim.submit("slot=1/core", duration=1, id=3)


def test_actions_on_a_job_that_is_gone():
    sim = ss.Simulation(machine(1, 1))
    one = sim.submit("slot=1/core", duration=1)
    sim.run()
    with pytest.raises(RunError, match=r"job 1 has ended \(COMPLETED\)"):
        one.cancel()


# -- records ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_records_are_audited(seed, tmp_path):
    cluster, given, rules = draw(seed)
    sim = ss.Simulation(cluster, eventlog=True, **rules)
    sim.submit_all(given)
    sim.run()
    result = sim.result()
    report = audit_run(result.save(tmp_path / "run"), cluster, result.result.workload)
    assert report, report


def test_dependencies_of_jobs_that_come_later_are_known():
    sim = ss.Simulation(machine(1, 4))
    old = sim.submit("slot=1/core", duration=10, id="old")
    sim.run()
    after = sim.submit("slot=1/core", duration=10, dependencies="afterok:old")
    later = sim.submit("slot=1/core", duration=10, dependencies=["afterany:late"])
    sim.submit("slot=1/core", duration=10, at=100, id="late")
    wrong = sim.submit("slot=1/core", duration=10, dependencies="afterok:nobody")
    sim.run()
    assert (old.end, after.start, later.start, wrong.result) == (10, 10, 110, "FAILED")


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_a_new_kind_of_request_comes_while_many_jobs_wait(policy):
    shapes = ["slot=2/[core;gpu]", "slot=3/core", "slot=2/core=2", "slot/[core=2;gpu]"]
    later = [(n, shape) for n, shape in enumerate(["slot=1/core", "slot=4/core", "slot=1/gpu"], start=40)]
    given = [(n, shapes[n % len(shapes)]) for n in range(30)]
    live = ss.Simulation(machine(3, 4, 2), policy)
    for at, shape in [*given, *later]:
        if at > live.now:
            live.run(until=at)
        live.submit(shape, 50, id=f"j{at}")
    live.run()
    jobs = [job(f"j{at}", at, shape, 50) for at, shape in [*given, *later]]
    assert starts(live.result().result) == starts(run(machine(3, 4, 2), *jobs, policy=policy))
