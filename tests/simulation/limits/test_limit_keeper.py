"""Jobs under limits: who is passed over, who blocks, who is rejected or held, and what the tables say."""

from __future__ import annotations

import json

import numpy as np
import pytest

import simsched as ss
from simsched.report.run_views import load_run
from simsched.report.waiting.job_wait import why
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.forecast.start_times import forecast
from tests.simulation.limits.test_against_limited import some_jobs, workload_of
from tests.simulation.simworld import job, machine, results, run, starts, workload

ALICE = [job(f"a{at}", 0, "slot=1/node", 10, user="alice") for at in range(3)]
BOB = [job("b", 0, "slot=1/node", 10, user="bob")]
POLICIES = ("fcfs", "easy", "conservative", "hybrid")
TWO_EACH = [{"each": "user", "running-jobs": 2}]


def reasons(result):
    return dict(zip(result.jobs["id"], result.jobs["reason"], strict=True))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("order", ["fifo", "sjf", "fairshare"])
def test_a_job_over_a_limit_does_not_block_those_behind_it(policy, order):
    found = run(machine(4), *ALICE, *BOB, policy=policy, order=order, limits=TWO_EACH)
    assert starts(found) == {"a0": 0, "a1": 0, "a2": 10, "b": 0}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_limit_may_block_the_jobs_behind(policy):
    found = run(machine(4), *ALICE, *BOB, policy=policy, limits=[{**TWO_EACH[0], "blocks": True}])
    assert starts(found) == {"a0": 0, "a1": 0, "a2": 10, "b": 10}


def test_jobs_behind_a_limit_that_is_used_up_for_good_cause_no_passes(tmp_path):
    """Under slurm, two groups each asked for a pass in which the other saw its jobs go out of view."""
    groups = "{name: n, count: 2, cores: 1}, {name: m, count: 1, cores: 2}, {name: o, count: 2, cores: 2}"
    (tmp_path / "c.yaml").write_text(f"groups: [{groups}]")
    free = [
        ("J30", 0, 40, 20, "node=2/slot/core", "mid"),
        ("J27", 17, 80, 80, "slot=3/core", "low"),
        ("J44", 22, 40, 40, "slot=1-3/core", "low"),
        ("J9", 53, 85, 80, "slot=1-3/core", "high"),
        ("J28", 107, 85, 40, "slot=2/core", "high"),
        ("J0", 125, 1, 1, "slot=1-3/core", "high"),
    ]
    reserved = [
        ("J7", 7, 80, 80, "node=2/slot/core", "low"),
        ("J41", 27, 1, 0, "slot=3/core", "high"),
        ("J15", 33, 80, 80, "node{x}/slot/core", "high"),
        ("J10", 85, 5, 5, "slot=2/node", "high"),
    ]
    jobs = []
    for one in [*free, *reserved]:
        name, submit, duration, runtime, shape, queue = one
        spec = ss.Jobspec.from_shape(shape, duration=duration)
        spec = spec.with_system(reservation="r0") if one in reserved else spec
        jobs.append(ss.Job(name, submit, spec, runtime=runtime, duration=duration, queue=queue))
    queues = {name: {"hosts": "all", "priority": at} for at, name in enumerate(("low", "mid", "high"))}
    found = run(
        ss.load_cluster(tmp_path / "c.yaml"), *jobs, policy="slurm", match_policy="lonode", queues=queues,
        limits=[{"queue": "high", "core-hours": 0.05, "blocks": True}],
        reservations=[{"name": "r0", "start": 40, "duration": 46, "nodes": 1, "flex": True, "announced": 1}],
        until=100_000,
    )  # fmt: skip
    assert found.timeline["time"].tolist()[-2] < 1_000


def test_the_rule_with_a_name_goes_before_the_rule_for_each():
    limits = [*TWO_EACH, {"user": "alice", "running-jobs": 1}, {"user": "bob", "running-jobs": -1}]
    bobs = [job(f"b{at}", 0, "slot=1/node", 10, user="bob") for at in range(3)]
    found = starts(run(machine(8), *ALICE, *bobs, limits=limits))
    assert [found[name] for name in ("a0", "a1", "a2")] == [0, 10, 20]
    assert [found[name] for name in ("b0", "b1", "b2")] == [0, 0, 0]


@pytest.mark.quick(2)
@pytest.mark.parametrize("policy", [*POLICIES, "slurm"])
def test_a_limit_of_a_higher_level_counts_the_jobs_that_it_does_not_bind(policy, tmp_path):
    """As the association of a user in Slurm, which counts the jobs of all QOS."""

    def ran(own, *jobs):
        cluster = machine(4, 8)
        jobs = [
            job(name, at, f"slot={cores}/core", 10, user="u", qos="high" if name in "hi" else None)
            for at, (name, cores) in enumerate(jobs)
        ]
        high = {"cores": 100, "running-jobs": 5, "submitted-jobs": 9}
        rules = [{"qos": "high", "each": "user", "level": 1, **high}, {"each": "user", "level": 2, **own}]
        found = run(cluster, *jobs, policy=policy, limits=rules)
        found.save(tmp_path / jobs[0].id)
        assert audit_run(tmp_path / jobs[0].id, cluster, found.workload)
        return found

    own = {"cores": 5, "running-jobs": 3}
    found = ran(own, ("h", 2), ("b", 4), ("i", 2))
    assert starts(found) == {"h": 0, "b": 12, "i": 2}
    answer = why(load_run(tmp_path / "h"), "b", machine(4, 8), found.workload)
    assert {period.cause for period in answer.periods} == {"limit cores of user u"}
    assert starts(ran(own, ("a", 4), ("b", 2), ("h", 6))) == {"a": 0, "b": 12, "h": 2}
    found = ran({"submitted-jobs": 1, "running-jobs": 1}, ("i", 1), ("b", 1), ("h", 1))
    assert results(found) == {"i": "COMPLETED", "b": "FAILED", "h": "COMPLETED"}


def test_submitted_jobs_beyond_the_limit_are_rejected_or_wait_outside():
    rejected = run(machine(4), *ALICE, limits=[{"each": "user", "submitted-jobs": 2}])
    assert results(rejected) == {"a0": "COMPLETED", "a1": "COMPLETED", "a2": "FAILED"}
    assert reasons(rejected)["a2"] == "rejected: user alice may have 2 jobs submitted at a time"
    held = run(machine(4), *ALICE, limits=[{"each": "user", "submitted-jobs": 2, "over": "hold"}])
    assert starts(held) == {"a0": 0, "a1": 0, "a2": 10}


def test_a_job_that_no_limit_allows_is_rejected_or_held_for_ever():
    big = job("big", 0, "slot=3/node", 10, user="alice", qos="small")
    rule = {"qos": "small", "each": "job", "nodes": 2}
    text = "a job of qos small may use at most 2 nodes, the job asks for 3 nodes"
    rejected = run(machine(4), big, limits=[rule])
    assert (results(rejected)["big"], reasons(rejected)["big"]) == ("FAILED", f"rejected: {text}")
    held = run(machine(4), big, *BOB, limits=[{**rule, "over": "hold"}])
    assert (results(held)["big"], reasons(held)["big"]) == ("PENDING", f"held for ever: {text}")
    assert starts(held) == {"b": 0}


def test_the_table_says_which_limit_a_job_waits_for_and_who_uses_it():
    jobs = [
        job("x", 0, "slot=2/node", 100, user="alice", bank="lab"),
        job("y", 0, "slot=1/node", 100, user="bob", bank="lab"),
        job("z", 5, "slot=2/node", 100, user="carol", bank="lab"),
    ]
    found = run(machine(8), *jobs, limits=[{"account": "lab", "nodes": 4}], until=50)
    assert reasons(found)["z"] == (
        "limit: account lab may use 4 nodes, and 3 nodes are used (alice 2 nodes, bob 1 node)"
    )


def test_hours_that_were_not_used_come_back():
    jobs = [job(f"a{at}", 0, "slot=1/node", 5, 10, user="alice") for at in range(4)]
    found = run(machine(4), *jobs, limits=[{"each": "user", "node-hours": 25 / 3600}])
    assert starts(found) == {"a0": 0, "a1": 0, "a2": 5, "a3": 10}


def test_hours_of_running_jobs_fall_with_time():
    jobs = [job(f"a{at}", 0, "slot=1/node", 10, user="alice") for at in range(3)]
    found = run(machine(4), *jobs, limits=[{"each": "user", "running-node-hours": 15 / 3600}])
    assert starts(found) == {"a0": 0, "a1": 5, "a2": 10}


def test_queues_have_limits_of_their_own():
    queues = {"long": {}, "debug": {}}
    jobs = [job(f"d{at}", 0, "slot=1/node", 10, user=f"u{at}", queue="debug") for at in range(3)]
    others = [job(f"l{at}", 0, "slot=1/node", 10, user="u", queue="long") for at in range(3)]
    found = run(machine(8), *jobs, *others, queues=queues, limits=[{"queue": "debug", "running-jobs": 1}])
    assert starts(found) == {"d0": 0, "d1": 10, "d2": 20, "l0": 0, "l1": 0, "l2": 0}


def test_a_cancelled_job_makes_room_for_submissions():
    jobs = [
        job("r", 0, "slot=4/node", 100, user="alice"),
        job("w", 1, "slot=4/node", 100, user="alice", cancel_at=5),
        job("x", 2, "slot=1/node", 10, user="alice"),
    ]
    limits = [{"each": "user", "submitted-jobs": 2, "over": "hold"}]
    found = run(machine(4), *jobs, limits=limits)
    assert results(found)["w"] == "CANCELED"
    assert starts(found) == {"r": 0, "x": 100}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_that_was_queued_again_counts_once(policy):
    jobs = [job(f"a{at}", 0, "slot=1/node", 50, user="alice") for at in range(6)]
    outages = [{"ranks": "0", "start": 10, "end": 20, "kind": "failure"}]
    found = run(machine(4), *jobs, policy=policy, limits=TWO_EACH, outages=outages)
    assert set(results(found).values()) == {"COMPLETED"}


MIXED = [
    {"each": "user", "running-jobs": 2, "cores": 9, "over": "hold"},
    {"each": "account", "running-core-hours": 0.3, "over": "hold"},
    {"each": "user", "submitted-jobs": 6, "over": "hold"},
    {"core-hours": 2, "over": "hold"},
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_the_audit_finds_nothing_and_checkpoints_change_nothing(policy, seed, tmp_path):
    given = workload_of(some_jobs(np.random.default_rng(seed)))
    limits = [{**MIXED[0], "blocks": seed == 2}, *MIXED[1:]]
    options = {"limits": limits, "failures": "mtbf=200,mttr=5" if seed == 1 else None}
    plain = ss.simulate(machine(12), given, policy, checkpoints={40: tmp_path / "point"}, **options)
    again = ss.simulate(machine(12), given, policy, resume=tmp_path / "point", **options)
    assert starts(plain) == starts(again)
    assert reasons(plain) == reasons(again)
    plain.save(tmp_path / "run")
    assert not audit_run(tmp_path / "run", machine(12), given).faults


def test_dynamic_limits_hold_under_a_limited_queue_depth():
    given = workload_of(some_jobs(np.random.default_rng(3)))
    for policy in POLICIES:
        found = ss.simulate(
            machine(12), given, policy, queue_options={"queue_depth": 3}, limits=MIXED, order="fairshare"
        )
        assert all(result == "COMPLETED" for result in results(found).values())


@pytest.mark.parametrize(
    "rule",
    [
        {"each": "user", "running-jobs": 1},
        {"each": "user", "cores": 8},
        {"each": "user", "submitted-jobs": 3},
    ],
)
def test_the_audit_finds_limits_that_were_exceeded(rule, tmp_path):
    given = workload_of(some_jobs(np.random.default_rng(0)))
    ss.simulate(machine(12), given).save(tmp_path / "run")
    meta = json.loads((tmp_path / "run/run.json").read_text())
    meta["config"]["limits"] = [rule]
    (tmp_path / "run/run.json").write_text(json.dumps(meta))
    laws = {fault.law for fault in audit_run(tmp_path / "run", machine(12), given).faults}
    assert laws == {"L1", "A10"}, "the digest of run.json is another one, too"


def preemptible(name):
    spec = ss.Jobspec.from_shape("slot=1/node", duration=100).with_system(**{"preemptible-after": 0})
    return ss.Job(id=name, submit=0, jobspec=spec, runtime=100, duration=100, queue="low", user="u")


def test_a_forecast_names_the_limit_that_a_job_waits_for():
    found = forecast(machine(4), workload(*ALICE, *BOB), 5, limits=[{"each": "user", "running-jobs": 2}])
    assert [(item.id, item.start, item.reason) for item in found] == [
        ("a2", float("inf"), "limit: user alice may run 2 jobs, and 2 jobs run (alice 2 jobs)")
    ]


def test_preemption_stops_at_a_limit():
    """The second urgent job may not start, so no running job is preempted for it."""
    low = [preemptible("l0"), preemptible("l1")]
    high = [job(f"h{at}", 10, "slot=1/node", 20, queue="high", user="v") for at in range(2)]
    queues = {"low": {}, "high": {"priority": 9, "preempts": True}}
    limits = [{"queue": "high", "running-jobs": 1}]
    found = ss.simulate(machine(2), workload(*low, *high), queues=queues, limits=limits)
    assert starts(found)["h0"] == 10
    assert starts(found)["l0"] == 0
