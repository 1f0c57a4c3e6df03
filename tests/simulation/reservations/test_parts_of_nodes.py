"""Reservations of cores and licences, on weekdays, with a start that moves, and magnetic ones."""

from __future__ import annotations

import random
import re

import pytest

from simsched import load_run
from simsched.errors import SimschedError
from simsched.report.waiting.job_wait import why
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.live.open_simulation import OpenSimulation
from simsched.workload.job import Job
from tests.simulation.reservations.test_reservation_options import dated, nodes_of
from tests.simulation.reservations.test_reservations import POLICIES, lines, reasons, within
from tests.simulation.simworld import job, machine, results, run, starts, workload


def licensed(made, number):
    """The job with a number of the licence m."""
    fields = {field: getattr(made, field) for field in made.__struct_fields__}
    return Job(**{**fields, "jobspec": made.jobspec.with_system(licenses={"m": number})})


def cores_of(found, name):
    for line in lines(found):
        if line["event"] == "alloc" and line["id"] == name:
            return {one["rank"]: one["children"]["core"] for one in line["R"]["execution"]["R_lite"]}
    return None


def test_cores_of_a_node():
    """B needs the whole node and C three cores of it; D has two cores beside the reservation."""
    rule = {"name": "r", "start": 10, "duration": 20, "nodes": 1, "cores": 2}
    found = run(
        machine(1, cores=4),
        job("A", 0, "slot=1/core=4", 8),
        job("B", 1, "slot=1/node", 4),
        job("C", 1, "slot=1/core=3", 5),
        job("D", 1, "slot=1/core=2", 5),
        within("R", 1, "slot=1/core=2", 6, "r"),
        within("S", 1, "slot=1/core=1", 6, "r"),
        policy="easy",
        reservations=rule,
    )
    assert starts(found) == {"A": 0, "B": 30, "C": 34, "D": 8, "R": 10, "S": 16}
    assert (cores_of(found, "R"), cores_of(found, "D"), cores_of(found, "S")) == (
        {"0": "0-1"}, {"0": "2-3"}, {"0": "0"},
    )  # fmt: skip
    window = found.meta["reservations"][0]["windows"][0]
    assert window == {"start": 10, "end": 30, "ranks": "0", "hosts": "n0", "cores": {"0": "0-1"}}


def test_named_cores_and_two_reservations_on_one_node():
    rules = [
        {"name": "r", "start": 10, "duration": 5, "cores": {"n0": "1", "n1": "2-3"}},
        {"name": "s", "start": 12, "duration": 5, "hosts": "n0", "cores": 2},
        {"name": "t", "start": 10, "duration": 5, "hosts": "n1", "cores": {"n1": "3"}},
        {"name": "u", "start": 10, "duration": 5, "hosts": "n1"},
    ]
    found = run(machine(2, cores=4), job("A", 0, "slot=1/core", 1), reservations=rules)
    assert [[w["cores"] for w in one["windows"]] for one in found.meta["reservations"]] == [
        [{"0": "1", "1": "2-3"}], [{"0": "0,2"}], [], [],
    ]  # fmt: skip


def test_running_jobs_keep_their_cores():
    """A holds cores 0 and 1 by its limit; with ignore-jobs they are reserved all the same."""
    rule = {"name": "r", "announced": 1, "start": 5, "duration": 20, "hosts": "n0"}
    jobs = (job("A", 0, "slot=1/core=2", 3, 30), within("R", 2, "slot=1/core", 5, "r"))

    def cores(**more):
        found = run(machine(1, cores=3), *jobs, reservations={**rule, **more}).meta["reservations"][0]
        return [window["cores"] for window in found["windows"]]

    assert cores(cores=1) == [{"0": "2"}]
    assert cores(cores=2) == []
    assert cores(cores={"n0": "0"}) == []
    assert cores(cores=2, **{"ignore-jobs": True}) == [{"0": "0-1"}]


def test_cores_of_all_nodes_are_those_of_each_node():
    """One node of two is a job's, or another reservation's: neither all nodes nor the rest is reserved."""
    rule = {"name": "r", "announced": 1, "start": 5, "duration": 20, "hosts": "all", "cores": 2}
    other = {"name": "s", "start": 5, "duration": 9, "hosts": "n0"}

    def windows(*jobs, rules=rule):
        found = run(machine(2, cores=3), *jobs, reservations=rules)
        return found.meta["reservations"][-1]["windows"]

    shared = windows(job("A", 0, "slot=1/core", 9))
    assert [window["cores"] for window in shared] == [{"0": "1-2", "1": "0-1"}]
    assert windows(job("A", 0, "slot=1/node", 9)) == []
    assert windows(job("A", 0, "slot=2/node", 9)) == []
    assert windows(job("A", 0, "slot=1/core", 9), rules=[other, rule]) == []


def test_a_job_of_all_cores_of_a_flexible_reservation():
    rule = {"name": "r", "start": 4, "duration": 10, "hosts": "n0", "cores": 2, "flex": True}
    found = run(machine(1, cores=4), within("R", 0, "slot=1/core=4", 20, "r"), reservations=rule)
    assert starts(found) == {"R": 0}


def test_licences():
    """Three of four are reserved from 10 on: B may not run into the window with two, C with one may.

    With C they have all. D, with two, would take one of the reserved ones from 24 on.
    """
    found = run(
        machine(8),
        licensed(job("A", 0, "slot=1/core", 5), 2),
        licensed(job("B", 5, "slot=1/core", 10), 2),
        licensed(job("C", 5, "slot=1/core", 10), 1),
        licensed(job("D", 16, "slot=1/core", 3), 2),
        licensed(within("R", 6, "slot=1/core", 4, "r"), 2),
        licensed(within("S", 6, "slot=1/core", 10, "r"), 2),
        policy="easy",
        licenses={"m": 4},
        reservations={"name": "r", "start": 10, "duration": 20, "licenses": "m:3"},
    )
    assert starts(found) == {"A": 0, "B": 30, "C": 5, "R": 10, "S": 14, "D": 30}


def test_nodes_and_licences():
    """The jobs of the reservation have its nodes alone."""
    rule = {"name": "r", "start": 5, "duration": 10, "hosts": "n1", "licenses": {"m": 1}}
    found = run(
        machine(2),
        licensed(within("R", 0, "slot=1/core", 4, "r"), 1),
        licensed(job("A", 0, "slot=1/core", 6), 1),
        job("B", 0, "slot=1/core", 6),
        licenses={"m": 1},
        reservations=rule,
    )
    assert starts(found) == {"R": 5, "A": 15, "B": 0}
    assert nodes_of(found)["R"] == "1"


def test_a_job_beside_a_flexible_magnetic_reservation(tmp_path):
    """A starts on the reserved node and one beside it, and runs on after the window."""
    cluster = machine(2)
    rule = {"name": "r", "start": 0, "duration": 10, "hosts": "n0", "flex": True, "magnetic": True}
    found = run(cluster, job("A", 4, "slot=2/core", 20), job("B", 30, "slot=1/core", 1), reservations=rule)
    assert starts(found) == {"A": 4, "B": 30}
    report = audit_run(found.save(tmp_path / "run"), cluster, found.workload)
    assert report, str(report)


def test_a_start_that_moves():
    """No job of more than 10 s starts on n0 and n1 while the clock is before 40 - 10."""
    jobs = (
        job("A", 0, "slot=1/core", 5, 11),
        job("B", 0, "slot=2/core", 10),
        job("C", 1, "slot=2/core", 11),
        within("R", 1, "slot=1/core", 1, "r"),
    )
    rule = {"name": "r", "start": "now+10", "hosts": "n[0-1]"}
    found = run(machine(3), *jobs, policy="easy", reservations={**rule, "latest": 40})
    assert starts(found) == {"A": 0, "B": 0, "C": 30}
    assert nodes_of(found) == {"A": "2", "B": "0-1", "C": "0-1"}
    assert reasons(found)["R"] == "rejected: the reservation 'r' moves with the time, so no job can use it"
    found = run(machine(3), *jobs, policy="easy", reservations=rule)
    assert results(found)["C"] == "PENDING"


def test_weekdays_and_weekends():
    """Second 0 is noon of Monday, 2 March 2026; the first window is where it is given, here on a Saturday."""
    day = 86400
    rules = [
        {
            "name": name,
            "start": "2026-03-07T13:00",
            "duration": "1h",
            "hosts": host,
            "repeat": name,
            "times": 4,
        }
        for name, host in (("weekdays", "n0"), ("weekends", "n1"))
    ]
    found = dated(job("A", 0, "slot=1/core", 1), reservations=rules)
    assert [[(w["start"] - 3600) / day for w in one["windows"]] for one in found.meta["reservations"]] == [
        [5, 7, 8, 9], [5, 6, 12, 13],
    ]  # fmt: skip
    with pytest.raises(SimschedError, match="the workload has no dates, so weekdays are not known"):
        run(
            machine(2),
            reservations={"name": "r", "start": 1, "duration": 5, "nodes": 1, "repeat": "weekdays"},
        )


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "slurm"])
def test_jobs_of_other_queues_in_a_magnetic_reservation(policy):
    """E is a job of ann and fits into the window; F would run beyond it, and B is not hers.

    R is behind E, but under conservative it was promised its start before E came.
    """
    rule = {"name": "r", "start": 5, "duration": 10, "hosts": "n0", "users": ["ann"], "magnetic": True}
    found = run(
        machine(2),
        job("A", 0, "slot=1/core", 40, user="bob"),
        job("B", 0, "slot=1/core", 8, user="bob"),
        job("F", 1, "slot=1/core", 12, user="ann"),
        job("E", 1, "slot=1/core", 8, user="ann"),
        within("R", 1, "slot=1/core", 2, "r", user="ann"),
        policy=policy,
        reservations=rule,
    )
    first = starts(found)
    assert (first["A"], first["R"], first["E"]) == ((0, 5, 7) if policy == "conservative" else (0, 13, 5))
    assert first["B"] >= 15
    assert nodes_of(found)["E"] == "0"


def test_a_run_goes_on_within_a_window_of_a_magnetic_reservation(tmp_path):
    """E does not name the reservation, and comes after the checkpoint."""
    rule = {"name": "r", "start": 5, "duration": 20, "hosts": "n0", "users": ["ann"], "magnetic": True}
    jobs = [job("A", 0, "slot=1/core", 40, user="bob"), job("E", 10, "slot=1/core", 8, user="ann")]
    options = {"reservations": rule, "policy": "fcfs"}
    whole = run(machine(2), *jobs, checkpoints={8: tmp_path / "state.json"}, **options)
    resumed = run(machine(2), *jobs, resume=tmp_path / "state.json", **options)
    assert starts(whole) == starts(resumed) == {"A": 0, "E": 10}


@pytest.mark.parametrize("seed", range(14))
def test_random_runs_are_clean(tmp_path, seed):
    rng = random.Random(seed)
    cluster, jobs = machine(3, cores=4), []
    for number in range(50):
        at, length = rng.randint(0, 90), rng.randint(1, 12)
        shape = rng.choice(
            ["slot=1/core=2", "slot=2/core=1", "slot=1/core=3", "slot=1/node", "slot=3/core=2"]
        )
        limit, user = length + rng.randint(0, 6), rng.choice("ab")
        if rng.random() < 0.4:
            made = within(number, at, shape, length, rng.choice("rst"), limit, user=user)
        else:
            made = job(number, at, shape, length, limit, user=user)
        jobs.append(licensed(made, rng.randint(1, 2)) if rng.random() < 0.4 else made)
    rules = [
        {"name": "r", "start": rng.randint(0, 60), "duration": rng.randint(15, 60), "nodes": 2, "cores": 2},
        {"name": "s", "announced": 20, "duration": rng.randint(15, 40), "licenses": {"m": 2}},
        {"name": "t", "start": rng.randint(20, 60), "duration": 40, "nodes": 1, "licenses": {"m": 1},
         "magnetic": True, "users": ["a"]},
        {"name": "u", "start": "now+14", "hosts": "n2", "announced": 15, "latest": 70, "ignore-jobs": True},
    ]  # fmt: skip
    rules[0]["flex"], rules[1]["flex"] = rng.random() < 0.3, rng.random() < 0.3
    options = {"reservations": rules, "licenses": {"m": 3}}
    found = run(cluster, *jobs, policy=POLICIES[seed % len(POLICIES)], seed=seed, **options)
    folder = found.save(tmp_path / "run")
    report = audit_run(folder, cluster, found.workload)
    assert report, str(report)
    read = load_run(folder)
    submit = dict(zip(found.jobs["id"], found.jobs["submit"], strict=True))
    for name in [name for name, start in starts(found).items() if start > submit[name]][:6]:
        assert all(period.cause != "unknown" for period in why(read, name, cluster, found.workload).periods)
    if POLICIES[seed % len(POLICIES)] == "easy":
        state = tmp_path / "state.json"
        whole = run(cluster, *jobs, seed=seed, checkpoints={45: state}, **options)
        assert starts(run(cluster, *jobs, seed=seed, resume=state, **options)) == starts(whole)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"cores": 0}, "reservations[0].cores: 0 is not a number of cores"),
        ({"cores": "2"}, "reservations[0].cores: '2' is not a number of cores"),
        ({"cores": 9}, "reservations[0].cores: its nodes have fewer cores than it needs: 9"),
        ({"nodes": None, "hosts": "n0", "cores": {"n0": "7"}}, "fewer cores than it needs"),
        ({"nodes": None, "hosts": "n0", "cores": {"n1": "0"}}, "cores of n1, the reservation has n0"),
        ({"nodes": None, "cores": {"n[0-1]": "0"}}, "reservations[0].cores: 'n[0-1]' is not one host"),
        ({"start": "now+9", "latest": 9}, "expected a latest start more than 9 s after the announcement"),
        ({"cores": {"n0": ""}}, "reservations[0].cores.n0"),
        ({"cores": {"n0": "0"}}, "cores by host of a number of nodes"),
        ({"cores": 1, "overlaps": True}, "whole nodes with overlaps = true"),
        ({"licenses": "x:1"}, "there is no licence 'x'"),
        ({"licenses": {"m": 5}}, "it needs 5 of the licence 'm', there are 3"),
        ({"licenses": {"m": -1}}, "reservations[0].licenses.m: -1 is not a number of licences"),
        ({"licenses": 3}, "reservations[0].licenses: not a table of licences"),
        ({"nodes": None, "licenses": "m:1", "magnetic": True}, "expected nodes, hosts or shape"),
        ({"start": "now+"}, "reservations[0].start"),
        ({"start": "now+1h", "repeat": "daily"}, "a start that moves with the time"),
        ({"start": "now+1h", "earliest": 5}, "earliest of a start that moves with the time"),
        ({"start": "now+0"}, "'now+0' is not a time"),
        ({"magnetic": True, "start": "now+1h"}, "a start that does not move"),
        ({"repeat": "weekday"}, "repeat: unknown value 'weekday'"),
    ],
)
def test_wrong_values(more, message):
    rule = {"name": "r", "start": 1, "duration": 5, "nodes": 1, **more}
    rule = {key: value for key, value in rule.items() if value is not None}
    with pytest.raises(SimschedError, match=re.escape(message)):
        run(machine(2, cores=2), reservations=[rule], licenses={"m": 3})


def test_the_audit_finds_jobs_on_reserved_cores_and_licences(tmp_path):
    import json

    found = run(
        machine(1, cores=2),
        licensed(job("A", 0, "slot=1/core", 15), 1),
        job("B", 0, "slot=1/core", 15),
        licenses={"m": 2},
        reservations={"name": "r", "start": 20, "duration": 10, "nodes": 1, "cores": 1, "licenses": "m:2"},
    )
    folder = found.save(tmp_path / "run")
    assert audit_run(folder, machine(1, cores=2), found.workload)
    meta = json.loads((folder / "run.json").read_text())
    meta["reservations"][0]["windows"][0] |= {"start": 12}
    (folder / "run.json").write_text(json.dumps(meta))
    text = str(audit_run(folder, machine(1, cores=2), found.workload))
    assert "is allocated rank 0 at 0, which is reserved for 'r'" in text
    assert text.count("is allocated rank 0") == 1
    assert "leaves 1 of the licence 'm' at 0, of which 2 are reserved" in text


def test_a_job_that_is_promised_a_start_in_a_magnetic_reservation_may_start_at_once_elsewhere(tmp_path):
    rule = {"name": "r", "start": 0, "duration": 20, "hosts": "n0", "users": ["ann"], "magnetic": True}
    jobs = [job(name, at, "slot=1/core", 8, user="ann") for name, at in (("A", 0), ("B", 1))]
    found = run(machine(2), *jobs, policy="conservative", reservations=rule)
    assert starts(found) == {"A": 0, "B": 1}
    assert dict(zip(found.jobs["id"], found.jobs["promised"], strict=True))["B"] == 8
    report = audit_run(found.save(tmp_path / "run"), machine(2), found.workload)
    assert report, str(report)


def test_a_magnetic_reservation_of_an_open_simulation():
    """Of three jobs that do not name it, the one that may use it is drawn to its node, as in `simulate`."""
    rule = {"name": "r", "start": 5, "duration": 9, "hosts": "n0", "magnetic": True, "users": ["ann"]}
    users = {"A": "bob", "B": "bob", "C": "ann"}
    jobs = [job(name, 1, "slot=1/node", 8, 8, user=user) for name, user in users.items()]
    live = OpenSimulation(machine(2), "easy", reservations=rule)
    live.submit_all(workload(*jobs))
    live.run()
    assert starts(live.result()) == starts(run(machine(2), *jobs, reservations=rule))
    assert starts(live.result())["C"] == 5
