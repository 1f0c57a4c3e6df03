"""Dependencies on job arrays and their tasks: by hand, and against their definition on random workloads."""

from __future__ import annotations

import random

import pytest

import simsched as ss
from simsched.formats.rfc.dependency import Dependency
from tests.simulation.simworld import job, machine, results, run, starts, workload


def after(text):
    return {"dependencies": (Dependency.parse(text),)}


def tasks(name, spec, seconds=10, submit=0, **more):
    return ss.job_array(job(name, submit, "slot=1/core", seconds, **more), spec)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("afterok:a", 20),
        ("afterany:a", 20),
        ("after:a", 10),  # when the last task has started
        ("after:a?delay=15", 25),
        ("afterok:a_0", 10),
        ("afterok:a_2", 20),
        ("after:a_2?delay=1m", 70),
    ],
)
def test_a_job_waits_for_an_array_or_a_task(text, expected):
    """Two tasks run from 0 to 10, the third from 10 to 20."""
    done = run(machine(8), *tasks("a", "0-2%2"), job("b", 0, "slot=1/core", 1, **after(text)))
    assert starts(done)["b"] == expected


def test_aftercorr_is_task_by_task():
    first = [one for n, one in enumerate(tasks("a", "0-2")) if n != 1] + [tasks("a", "0-2", 50)[1]]
    second = tasks("b", "0-2", **after("aftercorr:a"))
    assert {
        name: start for name, start in starts(run(machine(8), *first, *second)).items() if name > "b"
    } == {
        "b_0": 10,
        "b_1": 50,
        "b_2": 10,
    }


def test_a_failed_task_decides_what_waits_for_its_array():
    array = list(tasks("a", "0-1", 10, duration=5)[:1]) + list(
        tasks("a", "0-1", 20)[1:]
    )  # a_0 times out at 5
    waiting = [
        job(text, 0, "slot=1/core", 1, **after(text))
        for text in (
            "afterok:a",
            "afterany:a",
            "afternotok:a",
            "afternotok:a_1",
            "afternotok:a_0",
            "aftercorr:a",
        )
    ]
    done = run(machine(8), *array, *waiting)
    assert starts(done) == {"a_0": 0, "a_1": 0, "afterany:a": 20, "afternotok:a": 20, "afternotok:a_0": 5}
    ends = dict(zip(done.jobs["id"], done.jobs["reason"], strict=True))
    assert ends["afterok:a"] == "dependency afterok:a can never be met"
    assert (
        ends["aftercorr:a"] == "dependency aftercorr:a does not name an array with a task of the same index"
    )
    assert results(done)["afternotok:a_1"] == "FAILED"


def test_an_array_that_ends_well_never_meets_afternotok():
    done = run(machine(8), *tasks("a", "0-1"), job("b", 0, "slot=1/core", 1, **after("afternotok:a")))
    assert results(done)["b"] == "FAILED"


def test_unknown_tasks_and_circles():
    done = run(
        machine(8),
        *tasks("a", "0-1", **after("afterok:c")),
        job("b", 0, "slot=1/core", 1, **after("afterok:a_7")),
        *tasks("c", "0-1", **after("afterok:a_1")),
        *tasks("d", "0-1", **after("aftercorr:a")),
    )
    reasons = dict(zip(done.jobs["id"], done.jobs["reason"], strict=True))
    assert reasons["b"] == "dependency afterok:a_7 does not name a job of the workload"
    assert reasons["a_1"] == "dependencies in a cycle can never be met: a_1, c_0, c_1"
    assert reasons["a_0"] == "dependency afterok:c can never be met"
    assert reasons["d_0"] == "dependency aftercorr:a can never be met"
    assert set(results(done).values()) == {"FAILED"}


def test_an_open_run_finds_circles_when_they_close():
    """A job may name one that comes later, by its id or by that of its array."""
    sim = ss.Simulation(machine(8))
    first = sim.submit("slot=1/core", 10, id="a", dependencies="afterok:b")
    sim.submit("slot=1/core", 10, id="own", dependencies="afterok:own", at=5)
    for task in tasks("b", "0-1", submit=5, **after("afterok:a")):
        sim.submit(task)
    sim.run()
    assert first.result == "FAILED"
    assert first.reason == "dependencies in a cycle can never be met: a, b_0, b_1"
    reasons = dict(zip(sim.result().jobs["id"], sim.result().jobs["reason"], strict=True))
    circle = "dependencies in a cycle can never be met"
    assert reasons["own"] == f"{circle}: own"
    assert reasons["b_0"] == reasons["b_1"] == f"{circle}: a, b_0, b_1"  # as in a closed run


def test_what_waits_for_a_job_that_is_withdrawn_goes_on_or_ends():
    """Of an array the tasks that came decide; a job alone is then no job of the workload."""
    sim = ss.Simulation(machine(8))
    array = [*sim.submit_all(tasks("a", "0-1")), sim.submit(tasks("a", "2", submit=200)[0])]
    alone = sim.submit("slot=1/core", 10, id="alone", at=200)
    after_array = sim.submit("slot=1/core", 10, id="x", dependencies="afterok:a")
    after_alone = sim.submit("slot=1/core", 10, id="y", dependencies="afterok:alone")
    sim.run(until=150)
    array[2].cancel()
    alone.cancel()
    sim.run()
    assert (after_array.start, after_array.result) == (150, "COMPLETED")
    assert after_alone.reason == "dependency afterok:alone does not name a job of the workload"


def test_think_times_and_symbols_of_a_withdrawn_job():
    """A think time after a withdrawn job is over. A symbol that only it would produce never arrives."""
    sim = ss.Simulation(machine(8), think_times="honour")
    out, waits = ("string:m?type=out", "string:m?type=in")
    withdrawn = sim.submit("slot=1/core", 10, id="z", at=200, dependencies=out)
    thinks = sim.submit("slot=1/core", 10, id="x", preceding="z", think_time=5)
    needs = sim.submit("slot=1/core", 10, id="y", dependencies=waits)
    sim.run(until=50)
    assert (thinks.start, needs.start) == (None, None)
    withdrawn.cancel()
    sim.run()
    assert (thinks.start, thinks.result) == (50, "COMPLETED")
    assert needs.reason == "dependency string:m?type=in is produced by no job of the workload"


@pytest.mark.parametrize("scheme", ["afterok", "afterany", "afternotok", "after"])
def test_a_circle_of_jobs_that_are_handed_in_ends_both(scheme):
    jobs = [
        job("x", 0, "slot=1/core", 9, **after(f"{scheme}:y")),
        job("y", 5, "slot=1/core", 9, **after(f"{scheme}:x")),
    ]
    sim = ss.Simulation(machine(8))
    sim.submit_all(workload(*jobs))
    sim.run()
    for done in (run(machine(8), *jobs), sim.result()):
        assert set(done.jobs["reason"]) == {"dependencies in a cycle can never be met: x, y"}


# --- their definition ---------------------------------------------------------------------------------


def eligible_by_definition(jobs):
    """{job id: when its dependencies were met, None for never}, on a machine that is never full."""
    by_name = {one.id: one for one in jobs}
    arrays = {}
    for one in jobs:
        if one.array_task is not None:
            arrays.setdefault(one.array_task.array, []).append(one)
    known = {}

    def life(one):  # (start or None, end, whether it ended well)
        if one.id not in known:
            times = [one.submit]
            for item in one.dependencies:
                others = arrays.get(item.value) or [by_name[item.value]]
                if item.scheme == "aftercorr":
                    others = [o for o in others if o.array_task.index == one.array_task.index]
                times.append(met(item, [life(o) for o in others], one.submit))
            if any(isinstance(time, tuple) for time in times):
                ends = [time[0] for time in times if isinstance(time, tuple)]
                known[one.id] = (None, max(one.submit, min(ends)), False)
            else:
                start = max(times)
                well = one.runtime <= one.duration
                known[one.id] = (start, start + min(one.runtime, one.duration), well)
        return known[one.id]

    def met(item, lives, submit):
        """A time, or (the time from which it can never be met,)."""
        last = max(end for _, end, _ in lives)
        wells = [well for _, _, well in lives]
        if item.scheme == "after":
            never = [end for start, end, _ in lives if start is None]
            return (min(never),) if never else max(start for start, _, _ in lives) + item.delay
        if item.scheme == "afterany":
            return last
        if item.scheme == "afternotok":
            return last if not all(wells) else (last,)
        bad = [end for _, end, well in lives if not well]
        return (min(bad),) if bad else last

    return {one.id: life(one) for one in jobs}


@pytest.mark.parametrize("seed", range(30))
def test_random_dependencies_are_met_when_their_definition_says(seed):
    rng = random.Random(seed)
    jobs = []
    for number in range(6):
        seconds = [rng.randint(1, 60) for _ in range(4)]
        targets = [one.id for one in jobs] + [f"a{n}" for n in range(number)]
        links = []
        for _ in range(rng.randint(0, 2) if targets else 0):
            scheme = rng.choice(["after", "afterok", "afterany", "afternotok", "aftercorr"])
            value = f"a{rng.randrange(number)}" if scheme == "aftercorr" else rng.choice(targets)
            query = f"?delay={rng.randint(1, 30)}" if scheme == "after" and rng.random() < 0.5 else ""
            links.append(Dependency.parse(f"{scheme}:{value}{query}"))
        for task, runtime in enumerate(seconds):
            duration = runtime if rng.random() < 0.85 else max(1, runtime - 3)
            one = job(f"a{number}_{task}", rng.randint(0, 30), "slot=1/core", runtime, duration)
            fields = {name: getattr(one, name) for name in one.__struct_fields__}
            fields |= {"array_task": ss.ArrayTask(f"a{number}", task), "dependencies": tuple(links)}
            jobs.append(ss.Job(**fields))
    expected = {name: start for name, (start, _, _) in eligible_by_definition(jobs).items()}
    sim = ss.Simulation(machine(40))
    sim.submit_all(workload(*jobs))
    sim.run()
    for done in (run(machine(40), *jobs), sim.result()):
        found = dict(zip(done.jobs["id"], done.jobs["start"], strict=True))
        assert {name: start if start == start else None for name, start in found.items()} == expected


def test_the_audit_knows_arrays(tmp_path):
    from simsched.simulation.audit.auditor import audit_run

    first = tasks("a", "0-1")
    more = [
        *tasks("b", "0-1", **after("aftercorr:a")),
        job("c", 0, "slot=1/core", 1, **after("afterany:a")),
        job("d", 0, "slot=1/core", 1, **after("after:a_0?delay=7")),
    ]
    load = workload(*first, *more)
    ss.simulate(machine(8), load).save(tmp_path / "run")
    assert not audit_run(tmp_path / "run", machine(8), load).faults
    free = [
        type(one)(**{n: getattr(one, n) for n in one.__struct_fields__ if n != "dependencies"})
        for one in more
    ]
    ss.simulate(machine(8), workload(*first, *free)).save(tmp_path / "wrong")
    faults = [str(one) for one in audit_run(tmp_path / "wrong", machine(8), load).faults if one.law == "A8"]
    for text in ("before aftercorr:a is met", "before afterany:a is met", "before after:a_0?delay=7 is met"):
        assert any(text in fault for fault in faults), faults


def test_a_checkpoint_in_the_middle_changes_nothing(tmp_path):
    jobs = [*tasks("a", "0-5%2"), *tasks("b", "0-5", **after("aftercorr:a")),
            job("c", 0, "slot=1/core", 1, **after("afterok:b")),
            job("d", 0, "slot=1/core", 1, **after("after:a?delay=33"))]  # fmt: skip
    whole = ss.simulate(machine(8), workload(*jobs))
    ss.simulate(machine(8), workload(*jobs), checkpoints={15: tmp_path / "state"})
    again = ss.simulate(machine(8), workload(*jobs), resume=tmp_path / "state")
    assert starts(again) == starts(whole)
    assert starts(whole)["c"] == 40
    assert starts(whole)["d"] == 53


def test_an_index_of_thousands_of_digits_names_no_task():
    second = job("b", 0, "slot=1/core", 1, **after(f"afterok:a_{'9' * 5000}"))
    found = run(machine(8), *tasks("a", "0-2"), second)
    assert results(found)["b"] == "FAILED"
    assert "does not name a job" in found.jobs["reason"][3]
