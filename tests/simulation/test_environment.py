"""A run in a simpy environment that it shares with other processes gives the same bytes."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
import simpy

from simsched.errors import ConfigError
from simsched.simulation.engine import Engine
from simsched.simulation.environment import END, SUBMISSION, FutureEvents
from simsched.simulation.options.run_config import make_config
from simsched.simulation.simulate import engine_of, simulate
from tests.simulation.checkpoint.test_checkpoint import draw_jobs, draw_options, saved
from tests.simulation.simworld import job, machine, workload


def world(seed):
    """A machine, a workload with everything that a job may have, and options."""
    rng = np.random.default_rng(seed)
    queues = rng.random() < 0.4
    cluster = machine(5, cores=3, gpus=1, properties={"a": "0-2", "b": "2-4"})
    jobs = workload(*draw_jobs(rng, int(rng.integers(5, 25)), queues=queues))
    return cluster, jobs, draw_options(rng, queues=queues)


def busy(env, seen):
    """Something happens beside the run at each half second, twice, for ever."""
    while True:
        yield env.timeout(0.5)
        seen.append(env.now)
        yield env.timeout(0)
        yield env.process(quick(env))


def quick(env):
    yield env.timeout(0)


def both(cluster, jobs, options, env, folder, **more):
    """The files of a run by itself and of one in an environment."""
    alone = saved(simulate(cluster, jobs, eventlog=True, **options, **more), folder / "alone")
    beside = saved(simulate(cluster, jobs, eventlog=True, env=env, **options, **more), folder / "beside")
    return alone, beside


@pytest.mark.parametrize("seed", range(20))
def test_a_process_beside_the_run_changes_nothing(tmp_path, seed):
    """At the same instants, before the run is made and while it is on, and with `until`."""
    seen = []
    env = simpy.Environment()
    env.process(busy(env, seen))
    more = {"until": float(seed + 2)} if seed % 3 == 0 else {}
    alone, beside = both(*world(seed), env, tmp_path, **more)
    assert beside == alone
    assert seen


@pytest.mark.parametrize("begin", [7, 0.1, 1e6 + 1 / 3, 2**31])
def test_an_environment_that_has_begun(tmp_path, begin):
    """Second 0 of the workload is the time of the environment when the run begins."""
    for seed in (3, 4, 5):
        env = simpy.Environment(begin)
        alone, beside = both(*world(seed), env, tmp_path / str(seed))
        assert beside == alone
        assert env.now >= begin


def test_two_runs_in_one_environment_one_after_the_other(tmp_path):
    cluster, jobs, options = world(6)
    env = simpy.Environment()
    alone, first = both(cluster, jobs, options, env, tmp_path / "first")
    end = env.now
    _, second = both(cluster, jobs, options, env, tmp_path / "second")
    assert first == second == alone
    assert env.now == 2 * end


def test_two_runs_side_by_side():
    """A program enters both and runs the environment itself."""
    env = simpy.Environment()
    jobs = workload(job("A", 0, "slot=4/core", 5), job("B", 1, "slot=4/core", 5))
    engines = [engine_of(machine(4), jobs, make_config(queue_policy=policy), env=env)[0]
               for policy in ("fcfs", "easy")]  # fmt: skip
    ends = []

    def wait(engine):
        yield engine.future.over
        ends.append(env.now)

    for engine in engines:
        env.process(wait(engine))
        engine.start()
    env.run()
    assert ends == [10, 10]
    assert [engine.recorder.start for engine in engines] == [[0, 5], [0, 5]]


def test_a_process_may_wait_for_the_end_of_a_run_that_has_no_job():
    env = simpy.Environment(5)
    engine, _, _ = engine_of(machine(1), workload(), make_config(), env=env)
    engine.start()
    env.run(until=engine.future.over)
    assert env.now == 5


def test_a_resumed_run_in_an_environment(tmp_path):
    jobs = workload(*(job(n, n, "slot=3/core", 4) for n in range(9)))
    plain = simulate(machine(4), jobs, checkpoints={7: tmp_path / "at7.json"})
    env = simpy.Environment(100)
    env.process(busy(env, []))
    resumed = simulate(machine(4), jobs, resume=tmp_path / "at7.json", env=env)
    assert resumed.log.text() == plain.log.text()
    assert env.now == 100 + max(plain.jobs["end"])


def test_what_is_left_of_a_run_that_ended_early_does_nothing():
    env = simpy.Environment()
    jobs = workload(job("A", 0, "slot=1/core", 50), job("B", 20, "slot=1/core", 5))
    found = simulate(machine(4), jobs, until=10, env=env)
    before = found.timeline["time"].tolist()
    env.run()
    assert found.timeline["time"].tolist() == before
    assert list(found.jobs["result"]) == ["RUNNING", "PENDING"]


def test_a_run_that_is_stopped_leaves_the_environment_usable():
    env = simpy.Environment()
    seen = []
    env.process(busy(env, seen))
    stop = threading.Event()
    stop.set()
    found = simulate(machine(4), workload(job("A", 3, "slot=1/core", 50)), env=env, stop=stop)
    assert not found.meta["complete"]
    env.run(until=30)
    assert seen[-1] == 29.5


def test_an_error_in_a_process_beside_the_run_is_its_own():
    env = simpy.Environment()

    def broken(env):
        yield env.timeout(3)
        raise OSError("broken")

    env.process(broken(env))
    with pytest.raises(OSError, match="broken"):
        simulate(machine(4), workload(job("A", 0, "slot=1/core", 50)), env=env)


def test_a_realtime_environment():
    env = simpy.RealtimeEnvironment(factor=0.001, strict=False)
    found = simulate(machine(4), workload(job("A", 0, "slot=1/core", 5)), env=env)
    assert found.jobs["end"].tolist() == [5]


def test_an_environment_before_time_0_is_refused():
    with pytest.raises(ConfigError, match="time is -1"):
        FutureEvents(simpy.Environment(-1))


@pytest.mark.parametrize("begin", [0, 0.1, 1e5 / 7])
def test_times_are_exact_and_events_of_one_time_keep_their_order(begin):
    """From wherever they are entered, events fall on their time and come in order of entry."""
    rng = np.random.default_rng(0)
    env = simpy.Environment(begin)
    events, seen, entered = FutureEvents(env), [], []
    times = (rng.random(40) * 10.0 ** rng.integers(-6, 9, 40)).tolist()

    def enter(left):
        for time in times:
            if time > events.now:
                entered.append((time, len(entered)))
                events.at(time, END, "note", entered[-1])
        if left:
            events.at(events.now + float(rng.random()) * max(times) / 50, END, "enter", left - 1)

    def note(entry):
        assert env.now == begin + entry[0] == begin + events.now
        seen.append(entry)

    events.handle("enter", enter)
    events.handle("note", note)
    events.at(0, END, "enter", 40)
    events.run()
    assert seen == sorted(entered)


def test_classes_order_the_events_of_one_instant_whenever_they_were_entered():
    events = FutureEvents(simpy.Environment(0.7))
    seen = []
    events.handle("note", seen.append)

    def enter(_):
        events.at(1.1, END, "note", "end")

    events.handle("enter", enter)
    events.at(1.1, SUBMISSION, "note", "submission")
    for time in (0.1, 0.2, 0.3, 0.6):
        events.at(time, END, "enter")
    events.run()
    assert seen == [*["end"] * 4, "submission"]


@pytest.mark.quick(2)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "slurm", "selective", "slack"])
def test_a_run_is_freed_with_its_result_without_a_collection(policy):
    """The collector is paused during runs, so a loop over runs would keep what only it could free."""
    jobs = workload(*(job(f"j{number}", number, "slot=2/core", 5) for number in range(50)))
    cluster = machine(4)
    simulate(cluster, jobs, queue_policy=policy)
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(one, Engine) for one in gc.get_objects())
        simulate(cluster, jobs, queue_policy=policy)
        assert sum(isinstance(one, Engine) for one in gc.get_objects()) == before
    finally:
        gc.enable()
