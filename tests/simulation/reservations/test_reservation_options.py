"""Reservations that overlap others, ignore running jobs, or are flexible; their users; early dates."""

from __future__ import annotations

import random
import re

import pytest

from simsched import load_run
from simsched.errors import SimschedError
from simsched.report.waiting.job_wait import why
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.simulate import simulate
from simsched.workload.job import Workload, in_submit_order
from tests.simulation.reservations.test_reservations import POLICIES, lines, reasons, reserved, within
from tests.simulation.simworld import job, machine, results, run, spans, starts


def nodes_of(found):
    return {
        line["id"]: line["R"]["execution"]["R_lite"][0]["rank"]
        for line in lines(found)
        if line["event"] == "alloc"
    }


def test_a_job_needs_one_of_each_list():
    rule = {"name": "r", "start": 10, "duration": 10, "nodes": 1, "users": ["ann"], "accounts": ["bio"]}
    jobs = (
        within("A", 0, "slot=1/core", 1, "r", user="ann", bank="bio"),
        within("B", 0, "slot=1/core", 1, "r", user="ann", bank="chem"),
        within("C", 0, "slot=1/core", 1, "r", user="ann"),
        within("D", 0, "slot=1/core", 1, "r", user="bob", bank="bio"),
    )
    assert sorted(starts(run(machine(1), *jobs, reservations={**rule, "match": "all"}))) == ["A"]
    assert sorted(starts(run(machine(1), *jobs, reservations=rule))) == ["A", "B", "C", "D"]


def test_running_jobs_do_not_prevent_a_reservation_that_ignores_them():
    """Idle nodes come first: with one node it has n1. A runs on, and no further job begins."""
    rule = {"name": "r", "announced": 5, "start": 10, "duration": 40}
    jobs = (
        job("A", 0, "slot=1/core", 30),
        within("R", 6, "slot=1/core", 3, "r"),
        job("B", 6, "slot=1/core", 7),
    )
    found = run(machine(2), *jobs, reservations={**rule, "hosts": "n0"})
    assert reserved(found) == [[]]
    found = run(machine(2), *jobs, reservations={**rule, "hosts": "n0", "ignore-jobs": True})
    assert (reserved(found), spans(found)) == (
        [[(10, 50, "0")]], {"A": (0, 30), "R": (30, 33), "B": (6, 13)}
    )  # fmt: skip
    found = run(machine(2), *jobs, reservations={**rule, "nodes": 1, "ignore-jobs": True})
    assert (reserved(found), starts(found)) == ([[(10, 50, "1")]], {"A": 0, "R": 10, "B": 30})
    found = run(machine(2), *jobs, reservations={**rule, "nodes": 2, "ignore-jobs": True})
    assert (reserved(found), starts(found)) == ([[(10, 50, "0-1")]], {"A": 0, "R": 10, "B": 50})


@pytest.mark.parametrize("order", [1, -1])
def test_jobs_of_a_reservation_end_before_one_that_overlaps_it(order):
    """Slurm's example: maintenance cuts the course after half of its time, whichever table is first."""
    rules = [
        {"name": "course", "start": 100, "duration": 60, "hosts": "n[0-1]"},
        {"name": "repair", "start": 130, "duration": 60, "hosts": "all", "overlaps": True},
    ]
    found = run(
        machine(3),
        within("A", 0, "slot=2/core", 30, "course"),
        within("B", 0, "slot=1/core", 30, "course"),
        within("C", 0, "slot=1/core", 31, "course"),
        within("M", 0, "slot=3/core", 5, "repair"),
        job("D", 90, "slot=1/core", 40),
        job("E", 90, "slot=1/core", 41),
        reservations=rules[::order],
    )
    assert starts(found) == {"A": 100, "M": 130, "D": 90, "E": 190}
    assert {"B", "C"} == {name for name, result in results(found).items() if result == "PENDING"}


def test_two_that_do_not_overlap_exclude_each_other_still():
    rules = [
        {"name": "o", "start": 10, "duration": 10, "hosts": "n0", "overlaps": True},
        {"name": "r", "start": 10, "duration": 10, "hosts": "n0"},
        {"name": "s", "start": 10, "duration": 10, "hosts": "n0"},
        {"name": "t", "start": 10, "duration": 10, "nodes": 1},
    ]
    assert reserved(run(machine(2), job("A", 0, "slot=1/core", 1), reservations=rules)) == [
        [(10, 20, "0")],
        [(10, 20, "0")],
        [],
        [(10, 20, "1")],
    ]


def test_jobs_of_a_flexible_reservation_run_around_it():
    """R has both nodes before and in the window, S runs beyond its end; T keeps clear of the window of s."""
    rules = [
        {"name": "r", "start": 10, "duration": 10, "hosts": "n0", "flex": True},
        {"name": "s", "start": 40, "duration": 10, "hosts": "n1"},
    ]
    found = run(
        machine(2),
        within("R", 0, "slot=2/core", 8, "r"),
        job("A", 0, "slot=1/core", 5, 12),
        within("S", 9, "slot=1/core", 35, "r"),
        within("T", 9, "slot=1/core", 100, "r"),
        reservations=rules,
    )
    assert starts(found) == {"A": 0, "R": 5, "S": 13, "T": 48}
    assert nodes_of(found) == {"R": "0-1", "A": "1", "S": "0", "T": "0"}


def test_every_hour():
    rule = {"name": "r", "start": 10, "duration": 10, "nodes": 1, "repeat": "hourly", "times": 3}
    found = run(machine(1), *(within(n, 0, "slot=1/core", 6, "r") for n in "ABC"), reservations=rule)
    assert starts(found) == {"A": 10, "B": 3610, "C": 7210}


def dated(*jobs, **options):
    """Jobs whose second 0 is 2026-03-02T12:00 UTC."""
    header = {"UnixStartTime": "1772452800", "TimeZoneString": "UTC"}
    made = Workload(jobs=in_submit_order(jobs), name="story", header=header)
    return simulate(machine(2), made, "easy", **options)


def test_a_date_before_second_0():
    """The first reservation is over, the second one has begun, the third one repeats."""
    day, hour = 86400, 3600
    rules = [
        {"name": "old", "start": "2026-03-02T10:00", "duration": "2h", "hosts": "n0"},
        {"name": "now", "start": "2026-03-02T11:00", "duration": "2h", "hosts": "n0"},
        {"name": "days", "start": "2026-02-27T11:30", "duration": "1h", "hosts": "n1", "repeat": "daily",
         "times": 5},
    ]  # fmt: skip
    found = dated(
        job("A", 0, "slot=2/core", 60),
        within("B", 0, "slot=1/core", hour, "now"),
        within("C", 0, "slot=1/core", hour, "days"),
        within("D", 0, "slot=1/core", hour, "old"),
        reservations=rules,
    )
    assert starts(found) == {"A": hour, "B": 0, "C": day - hour // 2}
    assert reserved(found) == [
        [(-hour, hour, "0")],
        [(-hour // 2, hour // 2, "1"), (day - hour // 2, day + hour // 2, "1")],
    ]
    assert reasons(found)["D"] == "rejected: there is no reservation 'old'"
    with pytest.raises(SimschedError, match="is announced at 60"):
        dated(reservations={**rules[1], "announced": 60})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"flex": "yes"}, "reservations[0].flex: 'yes' is not true or false"),
        ({"overlaps": 1}, "reservations[0].overlaps: 1 is not true or false"),
        ({"match": "both"}, "reservations[0].match: unknown value 'both' (expected any or all)"),
        ({"ignore_job": True}, "unknown key 'ignore_job'; did you mean ignore-jobs?"),
        ({"repeat": "hourly", "duration": 3601}, "a hourly reservation of 3601 s overlaps itself"),
    ],
)
def test_wrong_values(more, message):
    with pytest.raises(SimschedError, match=re.escape(message)):
        run(machine(2), reservations=[{"name": "r", "start": 1, "duration": 5, "nodes": 1, **more}])


@pytest.mark.parametrize("seed", range(16))
def test_random_runs_are_clean_and_the_waits_are_explained(tmp_path, seed):
    rng = random.Random(seed)
    cluster, jobs = machine(6), []
    for number in range(50):
        at, length, shape = rng.randint(0, 90), rng.randint(1, 12), f"slot={rng.choice([1, 1, 2, 3])}/core"
        limit = length + rng.randint(0, 6)
        if rng.random() < 0.5:
            jobs.append(within(number, at, shape, length, rng.choice("rst"), limit))
        else:
            jobs.append(job(number, at, shape, length, limit))
    rules = [
        {"name": "r", "start": rng.randint(0, 60), "duration": rng.randint(15, 60), "nodes": 3},
        {"name": "s", "announced": 20, "duration": rng.randint(15, 40), "nodes": 3, "ignore-jobs": True},
        {"name": "t", "start": rng.randint(20, 60), "duration": 30, "hosts": "n[1-3]", "overlaps": True},
    ]
    for rule in rules:
        rule["flex"] = rng.random() < 0.4
    found = run(cluster, *jobs, policy=POLICIES[seed % len(POLICIES)], seed=seed, reservations=rules)
    folder = found.save(tmp_path / "run")
    report = audit_run(folder, cluster, found.workload)
    assert report, str(report)
    read = load_run(folder)
    submit = dict(zip(found.jobs["id"], found.jobs["submit"], strict=True))
    waited = [name for name, start in starts(found).items() if start > submit[name]]
    for name in waited[:8]:
        periods = why(read, name, cluster, found.workload).periods
        assert periods
        assert all(period.cause != "unknown" for period in periods)
