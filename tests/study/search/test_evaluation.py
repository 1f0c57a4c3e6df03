"""Trials: what a task is asked to measure, what a rule holds it against, and which demand a seed is."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import simsched as ss
from simsched.study.runs.input_cache import INPUTS
from simsched.study.runs.single_run import perform
from simsched.study.search.evaluation import CRITERIA, AcceptanceRule
from simsched.study.search.search_request import cluster_input, workload_input
from simsched.study.search.seeds import seeded
from simsched.study.search.size import feasibility_of, load_steps, wanted
from simsched.study.spec.run_task import Measure, RunTask
from simsched.study.spec.target import parse_targets
from simsched.workload.job import Job, Workload

CORE = ss.Jobspec.from_shape("slot=1/core")


def machine(nodes: int) -> ss.Cluster:
    ranks = f"0-{nodes - 1}" if nodes > 1 else "0"
    return ss.Cluster.from_rset(ss.ResourceSet.of([(ranks, {"core": "0"})], f"n[{ranks}]"))


def stream(count: int = 60, gap: int = 60, seconds: int = 90) -> Workload:
    jobs = [
        Job(id=n + 1, submit=n * gap, runtime=seconds, duration=seconds, jobspec=CORE, user="ab"[n % 2])
        for n in range(count)
    ]
    return Workload(tuple(jobs), name="stream")


def task(workload: Workload | None = None, nodes: int = 2, **more) -> RunTask:
    return RunTask(cluster_input(machine(nodes)), workload_input(workload or stream(), {}), **more)


def test_a_task_is_sent_with_the_figures_that_it_is_to_give():
    wish = wanted(parse_targets(["p80_wait<=1h", "max_wait[user == a]<=1h", "p80_wait>=0"]))
    assert wish == ("p80_wait", "max_wait[user == a]", "jobs[user == a]")
    asked = task(measure=Measure(figures=wish))
    assert RunTask.from_bytes(asked.to_bytes()) == asked
    assert asked.key != task().key
    row = perform(asked)
    assert row.metrics["jobs[user == a]"] == 30
    assert row.metrics["p80_wait"] >= 0


def test_figures_that_are_not_asked_for_leave_a_key_as_it_was():
    assert "figures" not in Measure().document()


def test_a_seed_is_the_same_demand_on_every_machine_and_before_every_load():
    """Common random numbers: at twice the load, the same blocks come at half their times."""
    base = task()
    small, large = (seeded(base, 2, "resample").changed(edits=(f"resize(all, {n})",)) for n in (3, 9))
    assert INPUTS.workload(small).jobs == INPUTS.workload(large).jobs
    dense = seeded(base, 2, "resample", *load_steps("arrival", 2.0))
    once, twice = INPUTS.workload(small), INPUTS.workload(dense)
    assert [job.id for job in once] == [job.id for job in twice]
    first = once.jobs[0].submit
    assert all(
        b.submit - first == pytest.approx((a.submit - first) / 2, abs=1)
        for a, b in zip(once, twice, strict=True)
    )


def test_seeds_follow_the_steps_of_the_workload():
    base = task(transforms=("first(40)",), seed=5)
    assert seeded(base, 0, "resample(600)", "load(2)").transforms == ("first(40)", "load(2)")
    assert seeded(base, 3, "resample(600)", "load(2)").transforms == ("first(40)", "resample(600)", "load(2)")
    assert seeded(base, 3, "resample").seed == 8


def test_a_look_says_what_never_fits_and_how_much_is_asked_for():
    wide = Workload((*stream(11).jobs, Job(id=99, submit=5, runtime=60, duration=60,
                    jobspec=ss.Jobspec.from_shape("slot=3/core"))))  # fmt: skip
    count, example, offered = feasibility_of(task(wide, nodes=2))
    assert count == 1
    assert example.startswith("job 99: slot: 3 needed, 2 available")
    assert offered == pytest.approx(11 * 90 / (2 * 600))
    assert math.isnan(feasibility_of(task(Workload(stream(1).jobs)))[2])


@given(
    st.lists(st.none() | st.floats(0, 7200), min_size=1, max_size=6), st.sampled_from(["<=", "<", ">=", ">"])
)
@example([None, None], "<=")
def test_the_criteria_are_ordered(values, relation):
    """Law: what the interval or every seed meets, the mean meets; seeds without such jobs break no bound."""
    nothing = -math.inf if relation[0] == "<" else math.inf
    values = [nothing if value is None else value for value in values]
    (target,) = parse_targets(f"mean_wait{relation}1h")
    met = {name: AcceptanceRule((target,), name).met(target, tuple(values)) for name in CRITERIA}
    assert met["mean"] >= max(met["confident"], met["every"])


@given(st.integers(1, 25), st.integers(0, 4))
@settings(max_examples=8)
def test_waves_of_equal_jobs(count, waves):
    """Law: n one-core nodes serve `count` equal jobs in ceil(count / n) waves."""
    jobs = tuple(Job(id=n, submit=0, runtime=600, duration=600, jobspec=CORE) for n in range(count))
    answer = ss.size(machine(2), Workload(jobs), f"max_wait<={600 * waves}", workers=0, checks=0)
    assert answer.value == -(-count // (waves + 1))


def test_a_job_that_never_fits_in_a_later_draw_of_a_model_counts(tmp_path):
    """Law: no seed meets a target with jobs that can never run, whichever seed draws them."""
    mix = tmp_path / "mix.yaml"
    mix.write_text(
        "gap: exp(1h)\njobs: 6\nparts:\n  - {weight: 9, shape: slot=1/core, runtime: exp(5m)}\n"
        "  - {weight: 1, shape: slot=5/core, runtime: 1m}\n"
    )
    assert ss.size(machine(4), mix, "p95_wait<=1d", workers=0, seeds=1, seed=1).value == 1
    answer = ss.size(
        machine(4), mix, "p95_wait<=1d", workers=0, seeds=4, seed=1
    )  # the draw of seed 4 has a wide job
    assert answer.value == 5
    assert answer.trials[4].refused
    assert "slot: 5 needed" in answer.trials[4].example


def test_a_model_is_drawn_anew_with_each_seed(tmp_path):
    mix = tmp_path / "mix.yaml"
    mix.write_text(
        "gap: exp(1m)\njobs: 200\nparts:\n  - {name: a, shape: slot=1/core, runtime: exp(5m), duration: x2}\n"
    )
    answer = ss.size(machine(4), mix, "p95_wait<=5m", workers=0, seeds=3)
    assert answer.found
    assert "3 draws of the model" in answer.notes[-1]
    target = answer.rule.targets[0]
    assert len(set(answer.trials[4].figures[target])) == 3


def test_figures_that_nothing_has_are_nan_and_meet_nothing():
    answer = ss.size(machine(2), stream(3), "fragmentation_gpu<=0.5", workers=0, seeds=1, most=4)
    assert answer.value is None
    target = answer.rule.targets[0]
    assert math.isnan(answer.trials[4].figures[target][0])
    assert "at 4 nodes fragmentation_gpu is unknown (no job to compute it from)" in answer.sentence


def test_rules_may_be_said_on_their_own():
    ask = {"workers": 0, "seeds": 1}
    one = ss.size(machine(3), stream(4, 0), "max_wait<=0", queue_policy="fcfs", **ask)
    assert one.about["options"] == {"queue-policy": "fcfs"}
    assert (
        one.value
        == ss.size(machine(3), stream(4, 0), "max_wait<=0", options={"queue-policy": "fcfs"}, **ask).value
    )
