"""Preemption beside advance reservations and maintenance, by hand and in random audited runs."""

from __future__ import annotations

import random

import pytest

from simsched.simulation.audit.auditor import audit_run
from tests.simulation.reservations.test_reservations import POLICIES, reserved, within
from tests.simulation.simworld import job, machine, results, run, spans, starts

QUEUES = {"batch": {"hosts": "all"}, "urgent": {"hosts": "all", "priority": 9, "preempts": True}}
FIRST = {"name": "r", "start": 10, "duration": 20, "hosts": "n0"}


def story(*jobs, nodes=2, rules=None, reservations=FIRST, **options):
    return run(
        machine(nodes), *jobs, queues=QUEUES, preemption=rules or {}, reservations=reservations, **options
    )


def test_jobs_of_a_reservation_are_not_preempted_by_others():
    """U waits for the end of the window at 30, and A is left alone until then."""
    found = story(
        within("R", 0, "slot=1/core", 20, "r", queue="batch"),
        job("A", 0, "slot=1/core", 40, queue="batch"),
        job("U", 12, "slot=2/core", 5, queue="urgent"),
    )
    assert spans(found) == {"R": (10, 30), "U": (30, 35), "A": (35, 75)}


def test_nothing_is_preempted_where_the_other_could_not_end_before_the_window():
    """C is the younger one, but U of 8 s would run into the window on its node."""
    jobs = (
        job("C", 1, "slot=1/core", 6, queue="batch"),
        job("A", 0, "slot=1/core", 40, queue="batch"),
    )
    found = story(*jobs, job("U", 4, "slot=1/core", 8, queue="urgent"), rules={"mode": "cancel"})
    assert results(found) == {"C": "COMPLETED", "A": "CANCELED", "U": "COMPLETED"}
    found = story(*jobs, job("U", 4, "slot=1/core", 6, queue="urgent"), rules={"mode": "cancel"})
    assert results(found) == {"C": "CANCELED", "A": "COMPLETED", "U": "COMPLETED"}
    grace = {"mode": "cancel", "grace": 1}  # U would begin at 5 and end at 11
    found = story(*jobs, job("U", 4, "slot=1/core", 6, queue="urgent"), rules=grace)
    assert spans(found)["A"] == (0, 5)


def test_without_a_table_nothing_is_preempted_before_maintenance_either():
    def preemptible(name, at, length):
        made = job(name, at, "slot=1/core", length, queue="batch")
        fields = {field: getattr(made, field) for field in made.__struct_fields__}
        return type(made)(**{**fields, "jobspec": made.jobspec.with_system(**{"preemptible-after": 0})})

    found = run(
        machine(2),
        preemptible("A", 0, 40),
        preemptible("C", 1, 6),
        job("U", 4, "slot=1/core", 8, queue="urgent"),
        queues=QUEUES,
        outages=[{"ranks": "0", "start": 10, "end": 20, "kind": "maintenance"}],
    )
    assert spans(found) == {"C": (1, 7), "U": (4, 12), "A": (12, 52)}


def test_jobs_of_a_reservation_preempt_each_other():
    found = story(
        within("R", 0, "slot=1/core", 15, "r", queue="batch"),
        within("V", 12, "slot=1/core", 4, "r", queue="urgent"),
        job("A", 0, "slot=1/core", 40, queue="batch"),
    )
    assert spans(found) == {"A": (0, 40), "V": (12, 16)}  # R does not fit again before the window ends
    assert results(found)["R"] == "PENDING"


def test_a_reservation_itself_preempts_nothing():
    """A runs on beyond the start; an urgent job of the reservation may preempt it."""
    rule = {**FIRST, "announced": 5, "ignore-jobs": True, "duration": 100}
    jobs = (
        job("A", 0, "slot=1/core", 50, queue="batch"),
        job("B", 0, "slot=1/core", 60, queue="batch"),
    )
    waits = within("W", 6, "slot=1/core", 5, "r", queue="batch")
    assert spans(story(*jobs, waits, reservations=rule)) == {"A": (0, 50), "B": (0, 60), "W": (50, 55)}
    takes = within("V", 6, "slot=1/core", 5, "r", queue="urgent")
    found = story(*jobs, takes, reservations=rule, rules={"mode": "cancel"})
    assert spans(found) == {"A": (0, 10), "V": (10, 15), "B": (0, 60)}


def test_a_suspended_job_waits_for_the_end_of_the_window():
    """A has 16 s left at 9 and the window begins at 12. Its other node is kept from B meanwhile."""
    rule = {"name": "r", "announced": 5, "start": 12, "duration": 10, "hosts": "n1"}
    found = story(
        job("A", 0, "slot=2/core", 20, queue="batch"),
        job("U", 4, "slot=1/core", 5, queue="urgent"),
        within("R", 6, "slot=1/core", 6, "r", queue="batch"),
        job("B", 7, "slot=1/core", 2, queue="batch"),
        rules={"mode": "suspend"},
        reservations=rule,
    )
    assert reserved(found) == [[(12, 22, "1")]]
    assert spans(found) == {"U": (4, 9), "R": (12, 18), "A": (0, 38), "B": (38, 40)}


def test_a_job_that_was_suspended_in_its_reservation_goes_on_after_its_end():
    """R has 8 s left at 28 and the window ends at 30; U is from outside and needs both nodes."""
    found = story(
        within("R", 0, "slot=1/core", 18, "r", queue="batch"),
        within("V", 20, "slot=1/core", 8, "r", queue="urgent"),
        job("U", 15, "slot=2/core", 4, queue="batch"),
        rules={"mode": "suspend"},
    )
    assert spans(found) == {"R": (10, 36), "V": (20, 28), "U": (36, 40)}


def test_jobs_of_a_reservation_are_kept_to_its_end():
    """With a grace time of 3 s, U could be given the node of R at the end of the window."""
    found = story(
        within("R", 0, "slot=1/core", 20, "r", queue="batch"),
        job("A", 0, "slot=1/core", 40, queue="batch"),
        job("U", 28, "slot=2/core", 5, queue="urgent"),
        rules={"mode": "cancel", "grace": 3},
    )
    assert results(found) == {"R": "COMPLETED", "A": "CANCELED", "U": "COMPLETED"}
    assert spans(found)["R"] == (10, 30)


def test_a_suspended_job_does_not_go_on_into_maintenance():
    found = run(
        machine(1),
        job("A", 0, "slot=1/core", 10, queue="batch"),
        job("U", 4, "slot=1/core", 5, queue="urgent"),
        queues=QUEUES,
        preemption={"mode": "suspend"},
        outages=[{"ranks": "0", "start": 12, "end": 20, "kind": "maintenance"}],
    )
    assert spans(found) == {"A": (0, 26), "U": (4, 9)}


@pytest.mark.parametrize("mode", ["requeue", "suspend"])
def test_a_resumed_run_is_the_same(tmp_path, mode):
    rule = {"name": "r", "announced": 5, "start": 12, "duration": 10, "hosts": "n1"}
    jobs = (
        job("A", 0, "slot=2/core", 20, queue="batch"),
        job("U", 4, "slot=1/core", 5, queue="urgent"),
        within("R", 6, "slot=1/core", 6, "r", queue="batch"),
        job("B", 7, "slot=1/core", 2, queue="batch"),
    )
    options = {"reservations": rule, "rules": {"mode": mode}}
    state = tmp_path / "state.json"
    whole = story(*jobs, checkpoints={13: state}, **options)
    resumed = story(*jobs, resume=state, **options)
    assert resumed.log.text() == whole.log.text()
    assert spans(resumed) == spans(whole)


def random_run(seed):
    rng = random.Random(seed)
    cluster, shapes = rng.choice(
        [
            (machine(8), ["slot=1/core", "slot=2/core", "slot=4/core"]),
            (machine(4, cores=2, gpus=1), ["slot=2/core=1", "slot=1/[core=2;gpu]", "slot=2/node"]),
        ]
    )
    jobs = []
    for number in range(60):
        at, length, shape = rng.randint(0, 90), rng.randint(1, 14), rng.choice(shapes)
        more = {"queue": rng.choice(["batch", "batch", "urgent"]), "user": rng.choice("ab")}
        limit = max(1, length + rng.randint(-2, 8))
        if rng.random() < 0.3:
            jobs.append(within(number, at, shape, length, rng.choice("rst"), limit, **more))
        else:
            jobs.append(job(number, at, shape, length, limit, **more))
    rules = [
        {"name": "r", "start": rng.randint(0, 60), "duration": rng.randint(15, 60), "nodes": 2},
        {"name": "s", "announced": 20, "duration": rng.randint(15, 60), "nodes": 2, "ignore-jobs": True},
        {"name": "t", "start": rng.randint(30, 60), "duration": 30, "hosts": "n[1-2]", "overlaps": True},
    ]
    rules[seed % 3]["flex"] = rng.random() < 0.5
    modes = ["requeue", "cancel", "suspend", "checkpoint"]
    preemption = {"mode": modes[seed % 4], "grace": rng.choice([0, 3]), "exempt": rng.choice([0, 4])}
    options = {"reservations": rules, "preemption": preemption, "queues": QUEUES}
    options["job_checkpoints"] = {"interval": rng.randint(2, 6), "cost": rng.randint(0, 2), "restart": 1}
    if rng.random() < 0.3:
        options["failures"] = "mtbf=200,mttr=10"
    if rng.random() < 0.3:
        options["outages"] = [{"ranks": "0-1", "start": 70, "end": 80, "kind": "maintenance"}]
    found = run(cluster, *jobs, policy=POLICIES[seed % len(POLICIES)], seed=seed, **options)
    return found, cluster


@pytest.mark.parametrize("seed", range(24))
def test_random_runs_are_clean(tmp_path, seed):
    found, cluster = random_run(seed)
    report = audit_run(found.save(tmp_path / "run"), cluster, found.workload)
    assert report, str(report)
    assert len(starts(found)) > 20


def test_some_random_runs_preempt():
    reasons = [reason for seed in range(4) for reason in random_run(seed)[0].jobs["reason"]]
    assert sum("preempted by" in (reason or "") for reason in reasons) > 3


def test_the_audit_finds_a_job_of_a_reservation_that_another_preempted(tmp_path):
    import json

    found = story(
        within("R", 0, "slot=1/core", 15, "r", queue="batch"),
        within("V", 12, "slot=1/core", 4, "r", queue="urgent"),
        rules={"mode": "cancel"},
    )
    jobs = [
        one if one.id != "V" else job("V", 12, "slot=1/core", 4, queue="urgent") for one in found.workload
    ]
    folder = found.save(tmp_path / "run")
    text = str(audit_run(folder, machine(2), type(found.workload)(tuple(jobs), name="story")))
    assert "V1" in text
    assert "was preempted in its reservation 'r' by V, which is not in it" in text
    meta = json.loads((folder / "run.json").read_text())
    assert meta["config"]["reservations"][0]["name"] == "r"
