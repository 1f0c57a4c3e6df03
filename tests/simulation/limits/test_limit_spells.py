"""The table of limits of a run says what its jobs waited for, at any time, and is part of its state."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import simsched as ss
from simsched.errors import RunError
from simsched.report.columns import LIMITS
from simsched.report.data.column_arrays import read_columns
from simsched.report.run_views import load_run
from simsched.report.waiting.wait_totals import find_causes
from simsched.simulation.jobs.lifecycle import JobState
from simsched.simulation.limits.limit_kinds import KINDS
from simsched.simulation.limits.limit_spells import LimitSpells
from tests.simulation.simworld import job, machine, run, workload

SHAPES = ["slot=1/core", "slot=2/core=2", "slot=2/node", "slot=1/[core;gpu]", "slot=1-4/core"]
VALUES = {
    "running-jobs": (1, 3),
    "cores": (6, 10),
    "nodes": (2, 3),
    "gpus": (1, 2),
    "core-hours": (0.1, 0.3),
    "running-core-hours": (0.03, 0.06),
    "submitted-jobs": (7, 12),
}


def random_run(seed, **options):
    rng = random.Random(seed)
    rules = [
        {
            "each": rng.choice(["user", "account", "queue", []]),
            kind: rng.choice(VALUES[kind]),
            "over": "hold",
            "blocks": rng.random() < 0.3,
        }
        for kind in rng.sample([*VALUES], 3)
    ]
    given = {
        "limits": [*rules, {"each": "job", "cores": 8, "over": "hold"}],
        "policy": rng.choice(["easy", "slurm", "conservative"]),
        "match_policy": rng.choice(["first", "firstnodex", "random"]),
        "queues": {"q": {"hosts": "all"}, "p": {"hosts": "all", "priority": 5, "preempts": True}},
        "preemption": {"mode": rng.choice(["requeue", "suspend"])},
        **options,
    }
    jobs = []
    for number in range(30):
        length = rng.randint(1, 15)
        names = {"user": rng.choice("abc"), "bank": rng.choice("xy"), "queue": rng.choice("qqp")}
        one = job(f"j{number}", rng.randint(0, 40), rng.choice(SHAPES), length, length + 3, **names)
        jobs.append(one)
    return machine(3, cores=4, gpus=1), sorted(jobs, key=lambda one: one.submit), given


def spells_of(found, folder):
    """Return id → (limit, start, end) of each time in which a limit kept its group or the job waiting."""
    table = found.result.tables["limits"]
    frame = load_run(found.save(folder)).jobs
    groups = dict(zip(frame["id"], frame.get("limit_group", np.full(len(frame), np.nan)), strict=True))
    made = {name: [] for name in frame["id"]}
    for group, of, limit, start, end in zip(
        *(table[name].tolist() for name in ("group", "job", "limit", "start", "end")), strict=True
    ):
        for name, times in made.items():
            if name == of or groups[name] == group:
                times.append((limit, start, np.inf if np.isnan(end) else end))
    return made


@pytest.mark.quick(3)
@pytest.mark.parametrize("seed", range(30))
def test_at_any_time_the_table_has_the_limits_that_the_run_itself_gives(tmp_path, seed):
    """Between the instants, an open simulation says of each job that waits for a limit why it does."""
    cluster, jobs, options = random_run(seed)
    sim = ss.Simulation(cluster, queue_policy=options.pop("policy"), **options)
    for one in jobs:
        sim.submit(one)
    said = {}
    for time in np.arange(0.5, 150):
        sim.run(until=float(time))
        engine = sim.engine
        reasons = engine.waiting_reasons()
        for number, state in enumerate(engine.progress.states):
            if state is JobState.SCHED and number not in engine.prepared.holds:
                said[engine.name_of(number), float(time)] = reasons.get(number)
    spells = spells_of(sim.result(), tmp_path / "run")
    assert any(said.values())
    for (name, time), reason in said.items():
        limits = [limit for limit, begin, end in spells[name] if begin <= time < end]
        assert len(limits) == (reason is not None), (name, time, limits, reason)
        for limit in limits:
            kind, _, scope = limit.partition(" of ")
            assert reason.startswith("limit: ")
            assert scope in reason
            assert KINDS[kind].noun in reason


def test_jobs_alike_have_one_row_and_one_only_when_the_limit_changes():
    """One of ten jobs runs at a time; that the others come into view between two of them is no change."""
    jobs = [job(f"j{n}", n, "slot=1/core", 10, user="ann") for n in range(10)]
    found = run(machine(1), *jobs, limits=[{"each": "user", "running-jobs": 1}])
    table = {name: column.tolist() for name, column in found.tables["limits"].items()}
    assert table == {
        "group": [0.0],
        "job": [None],
        "limit": ["running-jobs of user ann"],
        "blocks": [False],
        "start": [1.0],
        "end": [90.0],
        "reason": [None],
    }
    assert found.jobs["limit_group"].tolist() == [0.0] * 10


def test_a_run_without_a_wait_for_a_limit_has_no_table(tmp_path):
    for limits in ([{"running-jobs": 1}], []):
        found = run(machine(1), job("a", 0, "slot=1/core", 5, user="ann"), limits=limits)
        assert not (found.save(tmp_path / "run") / "limits.parquet").exists()
    assert "limit_group" not in load_run(tmp_path / "run").jobs


def test_a_job_that_waits_by_itself_has_rows_with_a_sentence(tmp_path):
    jobs = [
        job("a", 0, "slot=1/core", 20, user="ann"),
        job("b", 5, "slot=1/core", 9, user="ann"),
        job("c", 6, "slot=3/core", 9, user="bob"),
    ]
    limits = [
        {"each": "user", "submitted-jobs": 1, "over": "hold"},
        {"each": "job", "cores": 2, "over": "hold"},
    ]
    found = run(machine(1, cores=4), *jobs, limits=limits)
    folder = found.save(tmp_path / "run")
    table = read_columns(folder / "limits.parquet", {column.name: column.kind for column in LIMITS})
    assert [*zip(*(table[name].tolist() for name in ("job", "limit", "start", "reason")), strict=True)] == [
        ("b", "submitted-jobs of user ann", 5.0, "user ann may have 1 job submitted at a time"),
        ("c", "cores of a job", 6.0,
         "held for ever: a job may use at most 2 cores, the job asks for 3 cores"),
    ]  # fmt: skip
    assert table["end"][0] == 20
    assert np.isnan(table["end"][1])


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", range(100, 112))
def test_a_run_that_goes_on_from_its_middle_has_the_same_table(tmp_path, seed):
    cluster, jobs, options = random_run(seed)
    policy = options.pop("policy")
    load, files = ss.Workload(jobs), {20: tmp_path / "at20.json", 37: tmp_path / "at37.json"}
    whole = ss.simulate(cluster, load, policy, checkpoints=files, **options)
    again = [ss.simulate(cluster, load, policy, resume=file, **options) for file in files.values()]
    sim = ss.Simulation(cluster, queue_policy=policy, **options)
    for one in jobs:
        sim.submit(one)
    sim.run(until=30)
    copied = sim.copy()
    for other in (sim, copied):
        other.run()
        again.append(other.result())
    text = [(found.save(tmp_path / f"run{n}") / "limits.parquet").read_bytes()
            for n, found in enumerate([whole, *again])]  # fmt: skip
    assert len(text) == 5
    assert set(text) == {text[0]}


def test_an_earlier_run_under_limits_says_that_it_cannot_tell(tmp_path):
    """Its totals are by sums over the whole machine; one without limits is asked as ever."""
    jobs = [job(name, 0, "slot=1/node", 9, user="ann") for name in "ab"]
    for limits in ([{"running-jobs": 1}], []):
        folder = run(machine(1), *jobs, limits=limits).save(tmp_path / f"run{len(limits)}")
        meta = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**meta, "format": 2}))
    old, plain = load_run(tmp_path / "run1"), load_run(tmp_path / "run0")
    with pytest.raises(RunError, match="does not record which limits its jobs waited for"):
        old.why("b", machine(1), workload(*jobs))
    causes, reason = find_causes(old, machine(1), workload(*jobs))
    assert "does not record which limits its jobs waited for" in reason
    assert causes.cluster is None
    (period,) = plain.why("b", machine(1), workload(*jobs)).periods
    assert period.cause == "short of node"


def test_the_frame_of_limits_has_its_columns_in_every_run(tmp_path):
    jobs = [job(name, 0, "slot=1/core", 9, user="ann") for name in "ab"]
    plain = load_run(run(machine(1), *jobs).save(tmp_path / "plain")).limits
    assert [*plain.columns] == [column.name for column in LIMITS]
    assert plain.empty
    limited = load_run(run(machine(2), *jobs, limits=[{"running-jobs": 1}]).save(tmp_path / "run")).limits
    assert limited[["group", "limit", "start", "end"]].to_numpy().tolist() == [
        [0, "running-jobs of the jobs together", 0, 9]
    ]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("running-core-hours", [0, 10, 60, 110]),
        ("core-hours", [0, 10, None, None]),
    ],
)
def test_a_limit_is_kept_after_a_job_without_a_limit_was_counted(kind, expected):
    """Level 1 counts the job and does not bind it; at level 2 its amount has no bound while it runs."""
    rules = [
        {"qos": "high", "each": "user", "level": 1, kind: -1},
        {"each": "user", "level": 2, kind: 150 / 3600, "over": "hold"},
    ]
    free = job("free", 0, "slot=1/core", 5, float("inf"), user="a", qos="high")
    bound = [job(f"b{at}", at, "slot=1/core", 100, user="a", qos="low") for at in (10, 11, 12)]
    found = run(machine(1, cores=8), free, *bound, limits=rules)
    assert [None if start != start else start for start in found.jobs["start"]] == expected


def test_the_sentence_on_a_limit_names_who_uses_it_then():
    """The jobs of ann and bob have ended when a job is refused its allocation."""
    sim = ss.Simulation(machine(3, cores=2), limits=[{"nodes": 2}], queue_policy="fcfs")
    for user, at, shape, seconds in (
        ("ann", 0, "slot=1/core", 20),
        ("bob", 0, "slot=1/core", 10),
        ("eve", 1, "slot=2/node", 5),
        ("dan", 20, "slot=1/core", 30),
        ("fay", 20, "slot=2/core", 9),
    ):
        sim.submit(shape, seconds, at=at, user=user)
    sim.run(until=5)
    looked = sim.copy()
    looked.result()
    for one in (sim, looked):
        one.run()
    sentences = [set(one.result().limits["reason"].dropna()) for one in (sim, looked)]
    assert sentences[0] == sentences[1]
    assert not any("ann" in text and "20" in text for text in sentences[0])


def test_a_limit_that_another_replaces_for_no_time_has_one_row():
    spells = LimitSpells()
    for limit in (("a", False), ("b", False), ("a", False)):
        spells.note(0, 5.0 if limit[0] == "b" or spells._last else 1.0, limit)
    spells.note(0, 9.0)
    assert [spells.columns([])[name].tolist() for name in ("start", "end")] == [[1.0], [9.0]]
