"""What becomes of preempted jobs, by hand and in random runs."""

from __future__ import annotations

import random
import re

import pytest

from simsched.errors import ConfigError, SimschedError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.options.config_file import read_config
from simsched.workload.job import Job
from tests.simulation.simworld import job, machine, results, run, spans, starts

QUEUES = {
    "batch": {"hosts": "all"},
    "mid": {"hosts": "all", "priority": 4},
    "urgent": {"hosts": "all", "priority": 9, "preempts": True},
}


def story(**rules):
    """A has all four nodes for 10 s; U needs two of them from 4 to 9; B, of 9 s, comes at 5."""
    return run(
        machine(4),
        job("A", 0, "slot=4/core", 10, 20, queue="batch"),
        job("U", 4, "slot=2/core", 5, queue="urgent"),
        job("B", 5, "slot=1/core", 9, queue="batch"),
        queues=QUEUES,
        preemption=rules,
    )


def column(found, name):
    return dict(zip(found.jobs["id"], found.jobs[name].tolist(), strict=True))


def test_requeue():
    """A starts over when U is done; B would delay it."""
    found = story(mode="requeue")
    assert spans(found) == {"U": (4, 9), "A": (9, 19), "B": (19, 28)}
    assert column(found, "interruptions")["A"] == 1
    assert column(found, "lost")["A"] == 4
    assert column(found, "reason")["A"] == "queued again once: preempted by U"


def test_cancel():
    """B finds the two nodes that U does not need."""
    found = story(mode="cancel")
    assert spans(found) == {"A": (0, 4), "U": (4, 9), "B": (5, 14)}
    assert results(found) == {"A": "CANCELED", "U": "COMPLETED", "B": "COMPLETED"}
    assert column(found, "reason")["A"] == "preempted by U"


def test_suspend():
    """A stands still from 4 to 9, and its four nodes are kept from B until it ends."""
    found = story(mode="suspend")
    assert spans(found) == {"A": (0, 15), "U": (4, 9), "B": (15, 24)}
    assert column(found, "suspended") == {"A": 5, "U": 0, "B": 0}
    assert column(found, "interruptions")["A"] == 0


def test_another_job_that_preempts_may_take_the_nodes_of_a_suspended_one():
    """V takes the two nodes that U left; A goes on once V is done at 12."""
    found = run(
        machine(4),
        job("A", 0, "slot=4/core", 10, queue="batch"),
        job("U", 4, "slot=2/core", 5, queue="urgent"),
        job("V", 6, "slot=2/core", 6, queue="urgent"),
        queues=QUEUES,
        preemption={"mode": "suspend"},
    )
    assert spans(found) == {"A": (0, 18), "U": (4, 9), "V": (6, 12)}


def test_two_suspended_jobs_keep_the_same_node():
    """A goes on after U, which goes on after T; B, behind A, does not get their node in between."""
    found = run(
        machine(1),
        job("A", 0, "slot=1/node", 20, queue="batch"),
        job("B", 1, "slot=1/node", 2, queue="batch"),
        job("U", 4, "slot=1/node", 10, queue="urgent"),
        job("T", 6, "slot=1/node", 3, queue="top"),
        queues={
            "batch": {"hosts": "all"},
            "urgent": {"hosts": "all", "priority": 5, "preempts": True},
            "top": {"hosts": "all", "priority": 9, "preempts": True},
        },
        preemption={"mode": "suspend"},
    )
    assert spans(found) == {"A": (0, 33), "B": (33, 35), "U": (4, 17), "T": (6, 9)}


def test_a_suspended_job_runs_to_its_limit_without_the_suspension():
    found = run(
        machine(1),
        job("A", 0, "slot=1/core", 30, 10, queue="batch"),
        job("U", 4, "slot=1/core", 5, queue="urgent"),
        queues=QUEUES,
        preemption={"mode": "suspend"},
    )
    assert spans(found)["A"] == (0, 15)
    assert results(found)["A"] == "TIMEOUT"


def test_a_suspended_job_is_queued_again_if_its_node_fails_and_cancelled_if_asked():
    jobs = (
        job("A", 0, "slot=2/core", 10, queue="batch"),
        job("U", 4, "slot=1/core", 5, queue="urgent"),
    )
    fails = [{"ranks": "1", "start": 6, "end": 20}]
    found = run(machine(2), *jobs, queues=QUEUES, preemption={"mode": "suspend"}, outages=fails)
    assert spans(found) == {"U": (4, 9), "A": (20, 30)}
    assert (column(found, "lost")["A"], column(found, "interruptions")["A"]) == (4, 1)
    jobs = (job("A", 0, "slot=2/core", 10, queue="batch", cancel_at=7), jobs[1])
    found = run(machine(2), *jobs, queues=QUEUES, preemption={"mode": "suspend"})
    assert spans(found) == {"A": (0, 7), "U": (4, 9)}
    assert results(found)["A"] == "CANCELED"
    assert column(found, "suspended")["A"] == 3


def test_grace_and_exempt_time():
    """A may be preempted from 5 on, and keeps its nodes for 3 s more."""
    found = story(mode="requeue", grace="3s", exempt=5)
    assert spans(found) == {"U": (8, 13), "A": (13, 23), "B": (23, 32)}
    found = story(mode="cancel", grace=60)
    assert spans(found) == {"A": (0, 10), "U": (10, 15), "B": (10, 19)}  # it ends within its grace time
    assert results(found)["A"] == "COMPLETED"


def test_off():
    assert starts(story(mode="off")) == {"A": 0, "U": 10, "B": 10}


@pytest.mark.parametrize(("order", "gone"), [("priority", "A"), ("youngest", "B")])
def test_order_of_victims(order, gone):
    found = run(
        machine(2),
        job("A", 0, "slot=1/core", 20, queue="batch"),
        job("B", 1, "slot=1/core", 20, queue="mid"),
        job("U", 4, "slot=1/core", 5, queue="urgent"),
        queues=QUEUES,
        preemption={"order": order, "mode": "cancel"},
    )
    assert [name for name, result in results(found).items() if result == "CANCELED"] == [gone]


def test_a_victim_that_preempts_others_does_not_take_its_room_back():
    """Otherwise B, which is before H in the queue, would start again whenever its grace time is over."""
    found = run(
        machine(1),
        job("B", 0, "slot=1/core", 20, qos="mid"),
        job("H", 4, "slot=1/core", 5, qos="high"),
        preemption={"qos": {"high": {"preempts": ["mid"]}, "mid": {"preempts": ["low"], "grace": 3}}},
    )
    assert spans(found) == {"H": (7, 12), "B": (12, 32)}


def test_by_qos():
    """The QoS that comes first in `preempts` goes first; a QoS of its own mode is cancelled."""
    found = run(
        machine(3),
        job("A", 0, "slot=1/core", 20, qos="low"),
        job("B", 0, "slot=1/core", 20, qos="spare"),
        job("C", 0, "slot=1/core", 20),
        job("U", 4, "slot=1/core", 5, qos="high"),
        job("V", 5, "slot=1/core", 5, qos="high"),
        job("W", 6, "slot=1/core", 5, qos="high"),
        preemption={"qos": {"high": {"preempts": ["spare", "low"]}, "spare": {"mode": "cancel"}}},
    )
    assert starts(found) == {"A": 10, "B": 0, "C": 0, "U": 4, "V": 5, "W": 9}
    assert results(found)["B"] == "CANCELED"


def test_preemptible_after_of_a_job_is_its_exempt_time():
    made = job("A", 0, "slot=1/core", 20, queue="batch")
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    spec = made.jobspec.with_system(**{"preemptible-after": 7})
    urgent = job("U", 4, "slot=1/core", 5, queue="urgent")
    found = run(machine(1), Job(**{**fields, "jobspec": spec}), urgent, queues=QUEUES, preemption={})
    assert starts(found) == {"A": 12, "U": 7}


@pytest.mark.parametrize("mode", ["requeue", "cancel", "suspend", "checkpoint"])
def test_a_resumed_run_is_the_same(tmp_path, mode):
    """The state is saved while a job is suspended, or in its grace time."""
    jobs = [
        job("A", 0, "slot=4/core", 10, 20, queue="batch"),
        job("U", 4, "slot=2/core", 5, queue="urgent"),
        job("B", 5, "slot=1/core", 9, queue="batch"),
    ]
    options = {
        "queues": QUEUES,
        "preemption": {"mode": mode, "grace": 2},
        "job_checkpoints": {"interval": 3, "cost": 1, "restart": 2},
    }
    state = tmp_path / "state.json"
    whole = run(machine(4), *jobs, checkpoints={5.5: state}, **options)
    resumed = run(machine(4), *jobs, resume=state, **options)
    for name in ("start", "end", "saved", "lost", "overhead", "suspended", "interruptions"):
        assert resumed.jobs[name].tolist() == pytest.approx(whole.jobs[name].tolist(), nan_ok=True)
    assert resumed.log.text() == whole.log.text()


def random_run(seed):
    """A machine, jobs and options at random."""
    rng = random.Random(seed)
    cluster, shapes = rng.choice(
        [
            (machine(8), ["slot=1/core", "slot=2/core", "slot=4/core", "slot=8/core"]),
            (
                machine(4, cores=2, gpus=1),
                ["slot=2/core=1", "slot=1/[core=2;gpu]", "slot=3/node", "slot=1/core"],
            ),
        ]
    )
    modes, jobs = ["requeue", "cancel", "suspend", "checkpoint"], []
    for number in range(50):
        length, queue = rng.randint(0, 20), rng.choice(["batch", "batch", "mid", "urgent"])
        more = {"cancel_at": rng.randint(0, 120)} if rng.random() < 0.1 else {}
        limit = max(1, length + rng.randint(-2, 10))
        names = {"queue": queue, "qos": queue, "user": rng.choice("ab")}
        jobs.append(job(number, rng.randint(0, 90), rng.choice(shapes), length, limit, **names, **more))
    rules = {
        "mode": modes[seed % 4],
        "grace": rng.choice([0, 0, 3]),
        "exempt": rng.choice([0, 5]),
        "order": rng.choice(["priority", "youngest"]),
    }
    if rng.random() < 0.5:
        rules["queues"] = {"mid": {"mode": rng.choice(modes)}}
    else:
        mid = {"mode": rng.choice(modes), "preempts": ["batch"]}
        rules["qos"] = {"urgent": {"preempts": ["batch", "mid"]}, "mid": mid}
    options = {"queues": QUEUES, "preemption": rules, "order": rng.choice(["fifo", "sjf"]), "eventlog": True}
    options["job_checkpoints"] = {"interval": rng.randint(1, 6), "cost": rng.randint(0, 2), "restart": 1}
    if rng.random() < 0.4:
        options["failures"] = "mtbf=200,mttr=10"
    if rng.random() < 0.3:
        options["limits"] = [{"each": "user", "running-jobs": 3}]
    if rng.random() < 0.3:
        options["until"] = rng.randint(20, 100)
    if seed >= 16:
        options["predictor"] = rng.choice(["last-two", "quantile", "perfect"])
    policy = rng.choice(["fcfs", "easy", "conservative", "hybrid", "slurm", "selective"])
    return run(cluster, *jobs, policy=policy, seed=seed, **options), cluster


@pytest.mark.parametrize("seed", range(28))
def test_random_runs_are_clean(tmp_path, seed):
    found, cluster = random_run(seed)
    report = audit_run(found.save(tmp_path / "run"), cluster, found.workload)
    assert report, str(report)
    assert found.meta["until"] or any("preempted by" in (reason or "") for reason in found.jobs["reason"])


@pytest.mark.parametrize(
    ("column_name", "rule"), [("lost", "W1"), ("saved", "W1"), ("interruptions", "W1"), ("suspended", "W1")]
)
def test_the_audit_finds_wrong_work(tmp_path, column_name, rule):
    found = story(mode="suspend" if column_name == "suspended" else "requeue")
    found.jobs[column_name][list(found.jobs["id"]).index("A")] += 1
    report = audit_run(found.save(tmp_path / "run"), machine(4), found.workload)
    assert rule in str(report)


def test_the_audit_finds_a_preemption_against_the_rules(tmp_path):
    import json

    found = story(mode="cancel")
    folder = found.save(tmp_path / "run")
    meta = json.loads((folder / "run.json").read_text())
    meta["config"]["preemption"]["exempt"] = 5
    (folder / "run.json").write_text(json.dumps(meta))
    text = str(audit_run(folder, machine(4), found.workload))
    assert "V1" in text
    assert "was preempted after 4" in text


TOML = """
[queues.batch]
hosts = "all"
[queues.urgent]
hosts = "all"
priority = 9
preempts = true
{}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[preemption]\nmode = 'stop'", "preemption.mode: unknown value 'stop'"),
        ("[preemption]\ngrace = -1", "preemption.grace: a duration cannot be -1"),
        ("[preemption]\nexempt = 'inf'", "preemption.exempt: the time has no end"),
        ("[preemption]\nby = 'user'", "preemption.by: unknown value 'user'"),
        ("[preemption]\norder = 'oldest'", "preemption.order: unknown value 'oldest'"),
        ("[preemption]\nmodes = 'requeue'", "unknown key 'modes'; did you mean mode?"),
        ("[preemption.queues.nights]\nmode = 'cancel'", "there is no queue 'nights'"),
        ("[preemption]\nby = 'qos'", "no QoS preempts another"),
        ("[preemption]\nby = 'qos'\n[preemption.queues.batch]\nmode = 'off'", "a table of queues"),
        ("[preemption.qos.high]\npreempts = ['high']", "'high' preempts itself"),
        ("[job-checkpoints]\ninterval = 0", "job-checkpoints.interval: the interval is 0 s"),
        ("[job-checkpoints]\ncost = 'inf'", "job-checkpoints.cost: the time has no end"),
        ("[job-checkpoints]\nevery = 3", "unknown key 'every'"),
        ("job-checkpoints = 3", "not a table"),
    ],
)
def test_wrong_configurations(tmp_path, text, message):
    (tmp_path / "c.toml").write_text(
        text if text.startswith("job-ch") and "=" in text[:20] else TOML.format(text)
    )
    with pytest.raises(SimschedError, match=re.escape(message)):
        run(machine(2), job("A", 0, "slot=1/core", 1, queue="batch"), **read_config(tmp_path / "c.toml"))


def test_rules_that_nothing_can_follow_are_refused():
    with pytest.raises(ConfigError, match="no queue preempts another"):
        run(machine(1), job("A", 0, "slot=1/core", 1), preemption={})
    with pytest.raises(ConfigError, match="candidates=actual"):
        run(machine(1), job_checkpoints={"interval": 5}, candidates="actual")
    odd = Job(
        id="odd",
        submit=0,
        jobspec=Jobspec.from_shape("slot=1/core", duration=5).with_system(checkpoint={"interval": "soon"}),
        runtime=5,
        duration=5,
    )
    with pytest.raises(SimschedError, match=r"job odd: attributes.system.checkpoint.interval"):
        run(machine(1), odd, job_checkpoints={})


@pytest.mark.slow
def test_the_tables_are_axes_of_a_study(tmp_path):
    from simsched.cli import main

    text = """
cluster: tiny
workload: first-steps
config:
  queues: {batch: {hosts: all}, urgent: {hosts: all, priority: 5, preempts: true}}
axes:
  preemption:
    - {label: requeue, value: {mode: requeue}}
    - {label: cancel, value: {mode: cancel, grace: 30s}}
  job-checkpoints:
    - {label: hourly, value: {interval: 1h, cost: 30}}
  licenses:
    - {label: two, value: {matlab: 2}}
  reservations:
    - {label: none, value: []}
"""
    (tmp_path / "study.yaml").write_text(text)
    arguments = [str(tmp_path / "study.yaml"), "-o", str(tmp_path / "out"), "--workers", "1", "--quiet"]
    assert main(["sweep", *arguments]) == 0


def test_under_a_log_that_is_played_nothing_is_preempted():
    """Jobs start as in the log, although the queue preempts."""
    spec = Jobspec.from_shape("slot=1/core", duration=9).with_system(**{"preemptible-after": 0})
    jobs = (
        Job(name, at, spec, runtime=5, duration=9, queue=queue, wait=0)
        for name, at, queue in (("A", 0, "batch"), ("U", 2, "urgent"))
    )
    assert starts(run(machine(1), *jobs, queues=QUEUES, policy="recorded")) == {"A": 0, "U": 5}


@pytest.mark.parametrize("rules", [None, {}])
def test_magnetic_reservations_beside_preemption_are_refused(rules):
    one = {"name": "R", "start": 10, "duration": 10, "nodes": 1, "magnetic": True, "users": ["u"]}
    with pytest.raises(ConfigError, match="magnetic with limits or preemption"):
        run(machine(2), job("A", 0, "slot=1/core", 5), queues=QUEUES, preemption=rules, reservations=[one])
