"""Preemption, checkpoints of jobs and reservations in open simulations: the same bytes as `simulate`."""

from __future__ import annotations

import random

import pytest

import simsched as ss
from simsched.errors import ConfigError, RunError
from simsched.workload.job import Job
from tests.simulation.simworld import job, machine, workload

QUEUES = {
    "batch": {"hosts": "all"},
    "mid": {"hosts": "all", "priority": 4},
    "urgent": {"hosts": "all", "priority": 9, "preempts": True},
}
APART = {
    "batch": {"hosts": "n[0-5]", "priority": 1},
    "urgent": {"hosts": "n[6-7]", "preempts": True, "priority": 5},
}
RESERVED = [
    {"name": "r", "start": 40, "duration": 40, "nodes": 2},
    {"name": "s", "announced": 20, "duration": 30, "nodes": 2, "ignore-jobs": True, "users": ["a"]},
    {"name": "t", "start": 60, "duration": 30, "hosts": "n[1-2]", "overlaps": True, "flex": True},
]
WRITES = {"interval": 4, "cost": 1, "restart": 1}
BY_QOS = {"urgent": {"preempts": ["batch", "mid"]}, "mid": {"mode": "cancel", "preempts": ["batch"]}}
OPTIONS = {
    "requeue": {"queues": QUEUES, "preemption": {"mode": "requeue", "exempt": 3}},
    "cancel": {
        "queues": QUEUES,
        "preemption": {"mode": "cancel", "grace": 2},
        "queue_policy": "conservative",
    },
    "suspend": {"queues": QUEUES, "preemption": {"mode": "suspend"}, "predictor": "last-two"},
    "checkpoint": {"queues": QUEUES, "preemption": {"mode": "checkpoint"}, "job_checkpoints": WRITES},
    "qos": {"preemption": {"qos": BY_QOS}, "queue_policy": "slurm", "job_checkpoints": WRITES},
    "failures": {"job_checkpoints": WRITES, "failures": "mtbf=150,mttr=9", "kill_grace": 2},
    "reservations": {"reservations": RESERVED},
    "reservations-queues": {"reservations": RESERVED, "queues": QUEUES, "queue_policy": "hybrid"},
    "reservations-apart": {"reservations": RESERVED, "queues": APART},
    "limits": {
        "queues": QUEUES,
        "preemption": {"mode": "suspend"},
        "limits": [{"each": "user", "running-jobs": 3}],
        "reservations": RESERVED,
    },
}


def jobs_of(seed, options):
    """Sixty jobs; without an option for it they name no reservation."""
    rng = random.Random(seed)
    queues = list(options.get("queues", {}))
    made = []
    for number in range(60):
        length = rng.randint(1, 14)
        more = {"qos": rng.choice(["batch", "batch", "mid", "urgent"]), "user": rng.choice("ab")}
        if queues:
            more["queue"] = rng.choice([queues[0], *queues])
        limit = max(1, length + rng.randint(-2, 9))
        one = job(number, rng.randint(0, 110), f"slot={rng.choice([1, 1, 2, 3])}/core", length, limit, **more)
        if "reservations" in options and rng.random() < 0.4:
            fields = {name: getattr(one, name) for name in one.__struct_fields__}
            spec = one.jobspec.with_system(reservation=rng.choice("rst"))
            one = Job(**{**fields, "jobspec": spec})
        made.append(one)
    return workload(*made)


def parts(result):
    columns = {name: list(map(str, column)) for name, column in result.jobs.items()}
    timeline = {name: list(map(str, column)) for name, column in result.timeline.items()}
    return result.log.text(), columns, timeline, result.meta.get("reservations")


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_records_are_those_of_simulate(tmp_path, name, seed):
    """Submitted beforehand, on a copy, from a file, and one by one by a process."""
    options = OPTIONS[name]
    jobs, cluster = jobs_of(seed, options), machine(8)
    closed = ss.simulate(cluster, jobs, seed=3, **options)
    expected = parts(closed.result)
    assert any(closed.result.jobs["reason"])

    def begun():
        return ss.Simulation(cluster, expect=jobs, seed=3, **options)

    sim = begun()
    sim.submit_all(jobs)
    sim.run(until=55)
    twin, file = sim.copy(), tmp_path / "state.json.gz"
    sim.checkpoint(file)
    again = ss.Simulation.restore(file, cluster, seed=3, **options)
    for one in (sim, twin, again):
        one.run()
        assert parts(one.result().result) == expected
        assert one.audit()
    live = begun()

    def submitted():
        for one in jobs:
            yield live.env.timeout(one.submit - live.env.now)
            live.submit(one)

    live.env.process(submitted())
    live.run()
    assert parts(live.result().result) == expected


def test_a_user_reacts_to_a_preemption():
    """The suspended job does not run, and goes on; a requeued one tells its callback."""
    sim = ss.Simulation(
        "tiny", queues=QUEUES, preemption={"mode": "suspend", "queues": {"mid": {"mode": "requeue"}}}
    )
    told = []
    sim.on("requeue", lambda job: told.append((job.id, sim.now)))
    low = sim.submit("slot=2/node", 100, queue="batch")
    mid = sim.submit("slot=2/node", 100, queue="mid")
    sim.run(until=10)
    urgent = sim.submit("slot=4/node", 20, queue="urgent")
    sim.run(until=15)
    assert (low.suspended, mid.suspended, sim.running) == (True, False, [urgent])
    sim.run(until=35)
    assert (low.suspended, low.state) == (False, "RUN")
    assert told == [(mid.id, 10)]
    sim.run()
    assert (low.end, mid.start, mid.end) == (120, 30, 130)
    assert sim.audit()


def test_jobs_of_a_reservation_come_while_the_clock_runs():
    sim = ss.Simulation(
        "tiny", reservations={"name": "r", "start": 100, "duration": 50, "nodes": 2, "users": ["ann"]}
    )
    spec = ss.Jobspec.from_shape("slot=2/node", duration=40).with_system(reservation="r")
    sim.run(until=20)
    wide = sim.submit("slot=4/node", 90)
    mine = sim.submit(spec, user="ann")
    other = sim.submit(spec, user="bob")
    sim.run(until=60)
    shown = sim.result().jobs.set_index("id")["reason"].to_dict()
    assert shown[str(mine.id)] == "waits for resources of the reservation 'r'"
    assert mine.reason is None  # the records do not change the run
    sim.run()
    assert (mine.start, wide.start, other.result) == (100, 150, "FAILED")
    assert other.reason == "rejected: the reservation 'r' is for users ann"
    assert sim.audit()


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"queues": QUEUES, "preemption": {}}, "preemption"),
        ({"job_checkpoints": {"interval": 5}}, "job-checkpoints"),
        ({"reservations": {"name": "r", "start": 900, "duration": 5, "nodes": 1}}, "reservations"),
    ],
)
@pytest.mark.parametrize("call", [lambda job: job.update(duration=50), lambda job: job.resize(1)])
def test_jobs_do_not_change_under_these_rules(options, rule, call):
    sim = ss.Simulation("tiny", **options)
    one = sim.submit("slot=1-2/node", 100, **({"queue": "batch"} if "queues" in options else {}))
    sim.run(until=1)
    with pytest.raises(RunError, match=f"in a run with {rule} a job stays as it was submitted"):
        call(one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preemption": {}}, "no queue preempts another"),
        (
            {"reservations": {"name": "r", "start": 9, "duration": 5, "nodes": 9}},
            "it needs 9 nodes, the cluster has 4",
        ),
        ({"reservations": {"name": "r", "start": "2026-01-01", "duration": 5, "nodes": 1}}, "has no dates"),
        (
            {"job_checkpoints": {"interval": 5}, "candidates": "actual"},
            "job-checkpoints with candidates=actual",
        ),
    ],
)
def test_wrong_rules_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        ss.Simulation("tiny", **options)


def test_a_wrong_attribute_is_refused_and_the_run_goes_on():
    """The error comes with the submission, and names the job."""
    sim = ss.Simulation("tiny", job_checkpoints={"interval": 5})
    spec = ss.Jobspec.from_shape("slot/core", duration=5).with_system(checkpoint={"interval": "soon"})
    with pytest.raises(ss.SimschedError, match=r"job 1: attributes\.system\.checkpoint\.interval"):
        sim.submit(spec)
    one = sim.submit("slot/core", 12)
    sim.run()
    assert one.end == 12


def test_a_question_about_a_job_leaves_the_runs_as_they_are():
    sim = ss.Simulation("tiny")
    one = sim.submit("slot=1/core", 50)
    sim.run(until=1)
    runs = sim.engine.plan.runs
    assert runs is not None
    assert not one.suspended
    assert sim.engine.plan.runs is runs
