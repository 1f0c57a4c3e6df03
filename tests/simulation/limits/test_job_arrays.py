"""Job arrays with a limit of tasks at a time: by hand, and against the schedulers of tests/reference."""

from __future__ import annotations

import random

import numpy as np
import pytest

import simsched as ss
from tests.reference import backfilling, limited
from tests.simulation.limits import test_against_limited as crowd
from tests.simulation.simworld import job, machine, run, spans, starts
from tests.simulation.test_against_backfilling import CASES
from tests.simulation.test_against_backfilling import starts as numbered_starts
from tests.simulation.test_against_backfilling import workload_of as workload_of_backfilling
from tests.simulation.test_against_naive import cluster_of

POLICIES = ("fcfs", "easy", "conservative", "hybrid", "slurm", "selective", "slack", "easy++")


@pytest.mark.parametrize("policy", POLICIES)
def test_two_tasks_at_a_time_run_in_pairs(policy):
    options = {"queue_options": {"interval": 1, "sched_interval": 1}} if policy == "slurm" else {}
    done = run(machine(8), *ss.job_array(job("a", 0, "slot=1/core", 100), "0-4%2"), policy=policy, **options)
    assert spans(done) == {
        "a_0": (0, 100),
        "a_1": (0, 100),
        "a_2": (100, 200),
        "a_3": (100, 200),
        "a_4": (200, 300),
    }


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # At 100 both may start. The task was submitted first, but has no reservation from before.
        ("easy", {"a_0": 0, "a_1": 100, "b": 200}),
        ("conservative", {"a_0": 0, "b": 100, "a_1": 150}),
        ("hybrid", {"a_0": 0, "b": 100, "a_1": 150}),
        ("slack", {"a_0": 0, "b": 100, "a_1": 150}),
    ],
)
def test_a_barred_task_gets_no_reservation(policy, expected):
    wide = ss.job_array(job("a", 0, "slot=4/core", 100), "0-1%1")
    done = run(machine(4), *wide, job("b", 1, "slot=4/core", 50), policy=policy)
    assert starts(done) == expected


def test_a_barred_task_blocks_no_job_behind_it():
    wide = ss.job_array(job("a", 0, "slot=3/core", 100), "0-1%1")
    done = run(machine(4), *wide, job("b", 1, "slot=1/core", 500), policy="fcfs")
    assert starts(done) == {"a_0": 0, "b": 1, "a_1": 100}


def test_a_task_that_waits_at_the_end_names_the_limit_of_its_array():
    done = run(machine(8), *ss.job_array(job("a", 0, "slot=1/core", 100, user="ann"), "1-3%2"), until=50)
    reasons = dict(zip(done.jobs["id"], done.jobs["reason"], strict=True))
    assert reasons["a_3"] == "limit: array a may run 2 jobs, and 2 jobs run (ann 2 jobs)"
    assert list(done.jobs["array_task"]) == ["a_1%2", "a_2%2", "a_3%2"]


def test_a_workload_without_arrays_has_no_column_of_them():
    assert "array_task" not in run(machine(1), job("a", 0, "slot=1/core", 1)).jobs


def test_the_smaller_of_the_limits_of_a_site_and_of_the_array_counts():
    tasks = (
        *ss.job_array(job("a", 0, "slot=1/core", 10), "0-2%3"),
        *ss.job_array(job("b", 0, "slot=1/core", 10), "0-2%1"),
    )
    done = run(machine(9), *tasks, limits=[{"each": "array", "running-jobs": 2}])
    assert starts(done) == {"a_0": 0, "a_1": 0, "a_2": 10, "b_0": 0, "b_1": 10, "b_2": 20}


def test_the_log_of_a_site_is_played_as_it_was():
    """The limit of an array may have been changed while it ran."""
    tasks = [
        ss.Job(id=f"a_{n}", submit=0, runtime=10, duration=10, wait=0,
               jobspec=ss.Jobspec.from_shape("slot=1/core"), array_task=ss.ArrayTask("a", n, 1))
        for n in range(2)
    ]  # fmt: skip
    assert set(starts(run(machine(2), *tasks, policy="recorded")).values()) == {0}


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("seed", range(20))
def test_random_arrays_start_as_in_the_simple_scheduler(policy, seed):
    rng = np.random.default_rng(5000 + seed)
    jobs = [one._replace(array=str(rng.integers(4))) for one in crowd.some_jobs(rng)]
    rules, limits = crowd.some_limits(rng)
    most = {array: int(rng.integers(1, 4)) for array in "0123"}
    limits += [
        limited.Limit(lambda one, array=array: 0 if one.array == array else None, "jobs", number)
        for array, number in most.items()
    ]
    given = crowd.workload_of(jobs)
    arrays = {one.id: one.array for one in jobs}
    given = given.with_jobs(
        [
            ss.Job(**{name: getattr(one, name) for name in one.__struct_fields__ if name != "array_task"},
                   array_task=ss.ArrayTask(arrays[one.id], one.id, most[arrays[one.id]]))
            for one in given
        ],
        "arrays",
    )  # fmt: skip
    expected = limited.schedule(jobs, 12, limits, policy)
    done = ss.simulate(machine(12), given, policy, limits=rules, allocations=False)
    assert crowd.starts_of(done) == expected


@pytest.mark.quick(8)
@pytest.mark.parametrize("case", CASES)
def test_every_policy_starts_tasks_as_the_naive_scheduler(case):
    options, policy, predictor = CASES[case]
    cluster = cluster_of([(1, 0)] * 8)
    for seed in range(4):
        rng = random.Random(f"arrays {case} {seed}")
        jobs = [one._replace(array=rng.randint(0, 2)) for one in some_tasks(rng)]
        most = {1: rng.randint(1, 3), 2: rng.randint(1, 3)}
        limits = [
            backfilling.Limit(lambda one, array=array: 0 if one.array == array else None, "jobs", number)
            for array, number in most.items()
        ]
        given = workload_of_backfilling(jobs)
        arrays = {one.id: one.array for one in jobs}
        given = given.with_jobs([in_array(one, arrays[one.id], most) for one in given], "arrays")
        expected = backfilling.schedule(jobs, 8, policy(), predictor, limits)
        sim = ss.Simulation(cluster, allocations=False, **options)
        sim.submit_all(given)
        sim.run()
        for done in (ss.simulate(cluster, given, allocations=False, **options), sim.result()):
            found = numbered_starts(done)
            differ = [(one, found.get(one.id)) for one in jobs if found.get(one.id) != expected[one.id]]
            assert not differ, f"seed {seed}: {differ[:3]}"


def some_tasks(rng):
    """Up to 40 jobs that crowd on 8 processors, in whole seconds."""
    jobs = []
    for number in range(1, rng.randint(5, 40)):
        runtime = rng.randint(1, 60)
        submit = rng.choice([0, rng.randint(0, 60), rng.randint(0, 300)])
        limit = rng.choice([runtime, 2 * runtime, runtime + rng.randint(0, 100)])
        size, user, queue = rng.randint(1, 8), rng.randint(1, 3), rng.randint(0, 1)
        jobs.append(backfilling.Job(number, submit, runtime, limit, size, user, queue))
    return sorted(jobs, key=lambda one: one.submit)


def in_array(one, array, most):
    fields = {name: getattr(one, name) for name in one.__struct_fields__ if name != "array_task"}
    return ss.Job(**fields, array_task=ss.ArrayTask(str(array), one.id, most[array]) if array else None)


def test_the_audit_finds_a_task_too_many(tmp_path):
    from simsched.simulation.audit.auditor import audit_run

    tasks = ss.job_array(job("a", 0, "slot=1/core", 10), "0-2%2")
    load = ss.Workload(jobs=tasks, name="arrays")
    found = ss.simulate(machine(4), load)
    found.save(tmp_path / "good")
    assert not audit_run(tmp_path / "good", machine(4), load).faults
    tighter = ss.Workload(jobs=ss.job_array(job("a", 0, "slot=1/core", 10), "0-2%1"), name="arrays")
    faults = audit_run(tmp_path / "good", machine(4), tighter).faults
    assert [one.law for one in faults] == ["A7", "A7", "A7", "L1"], "the column array_task has the limit, too"
    assert "running-jobs of array a is 2, of 1 allowed" in str(faults[-1])


@pytest.mark.quick(2)
@pytest.mark.parametrize("policy", ["easy", "conservative", "hybrid", "slack"])
def test_the_audit_of_random_arrays_is_clean(policy, tmp_path):
    from simsched.simulation.audit.auditor import audit_run

    for seed in range(3):
        rng = random.Random(f"audit {seed}")
        jobs = [one._replace(array=rng.randint(0, 2)) for one in some_tasks(rng)]
        arrays = {one.id: one.array for one in jobs}
        load = workload_of_backfilling(jobs)
        load = load.with_jobs([in_array(one, arrays[one.id], {1: 1, 2: 2}) for one in load], "arrays")
        folder = tmp_path / str(seed)
        ss.simulate(machine(8), load, policy).save(folder)
        assert not audit_run(folder, machine(8), load).faults


@pytest.mark.parametrize("policy", ["conservative", "hybrid"])
def test_the_limit_of_its_array_explains_why_a_task_starts_late(policy, tmp_path):
    """Both tasks are promised 100; at 100 the first starts and bars the second."""
    from simsched.simulation.audit.auditor import audit_run

    tasks = ss.job_array(job("a", 1, "slot=2/core", 100), "0-1%1")
    load = ss.Workload(jobs=(job("f", 0, "slot=4/core", 100), *tasks), name="late")
    ss.simulate(machine(4), load, policy).save(tmp_path / "run")
    report = audit_run(tmp_path / "run", machine(4), load)
    assert not report.faults
    assert [(one.job, one.promised, one.start, one.cause) for one in report.explained] == [
        ("a_1", 100, 200, "the limit of its job array")
    ]


def test_two_limits_of_one_array_are_refused():
    shape = ss.Jobspec.from_shape("slot=1/core")
    jobs = [
        ss.Job(id=n, submit=0, runtime=1, jobspec=shape, array_task=ss.ArrayTask("a", n, n + 1))
        for n in range(2)
    ]
    with pytest.raises(ss.WorkloadError, match="array a has the limits 1 and 2"):
        ss.simulate(machine(1), ss.Workload(jobs=tuple(jobs)))
    twice = [jobs[0], ss.Job(id=7, submit=0, runtime=1, jobspec=shape, array_task=ss.ArrayTask("a", 0, 1))]
    with pytest.raises(ss.WorkloadError, match="task 0 of array a occurs twice"):
        ss.simulate(machine(1), ss.Workload(jobs=tuple(twice)))


def test_an_open_simulation_goes_on_under_the_limit_of_an_array(tmp_path):
    """Its limit comes with its first task, counts after a checkpoint, and is one for all tasks."""
    sim = ss.Simulation(machine(4))
    before = sim.submit("slot=1/core", 5)
    sim.run(until=1)
    tasks = sim.submit_all(ss.job_array(job("a", 1, "slot=1/core", 10), "0-3%2"))
    sim.run(until=5)
    sim.checkpoint(tmp_path / "state")
    again = ss.Simulation.restore(tmp_path / "state", machine(4))
    copied = sim.copy()
    for one in (sim, again, copied):
        other = ss.job_array(job("a", 5, "slot=1/core", 10), "3-4%1")
        with pytest.raises(ss.WorkloadError, match="task 3 of array a occurs twice"):
            one.submit(other[0], id="other")
        for _ in range(2):  # a task that is refused stays unknown
            with pytest.raises(ss.WorkloadError, match="array a has the limits 2 and 1"):
                one.submit(other[1], id=f"other{_}")
        one.run()
        starts = dict(zip(one.result().jobs["id"], one.result().jobs["start"], strict=True))
        assert [starts[f"a_{n}"] for n in range(4)] == [1, 1, 11, 11]
    assert before.start == 0
    assert tasks[3].start == 11
