"""Advance reservations: by hand, in random audited runs, and their wrong tables."""

from __future__ import annotations

import random
import re

import pytest

from simsched.errors import SimschedError
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.options.config_file import read_config
from simsched.workload.job import Job
from tests.simulation.simworld import job, machine, results, run, spans, starts

POLICIES = ["fcfs", "easy", "conservative", "hybrid", "slurm", "selective", "slack"]


def within(name, at, shape, runtime, reservation, limit=None, **more):
    """A job that names its reservation."""
    made = job(name, at, shape, runtime, limit, **more)
    fields = {field: getattr(made, field) for field in made.__struct_fields__}
    return Job(**{**fields, "jobspec": made.jobspec.with_system(reservation=reservation)})


def reasons(found):
    return dict(zip(found.jobs["id"], found.jobs["reason"], strict=True))


def reserved(found):
    return [
        [(w["start"], w["end"], w["ranks"]) for w in one["windows"]] for one in found.meta["reservations"]
    ]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "hybrid", "slurm"])
def test_a_fixed_start(policy):
    """B needs all nodes for 15 s, and would run into the window; C would delay B.

    R and S run in the window, one after the other where both do not fit.
    """
    found = run(
        machine(4),
        job("A", 0, "slot=4/core", 10),
        job("B", 1, "slot=4/core", 15),
        job("C", 1, "slot=1/core", 30),
        within("R", 2, "slot=2/core", 5, "r"),
        within("S", 3, "slot=1/core", 5, "r"),
        policy=policy,
        reservations=[{"name": "r", "start": 20, "duration": 10, "nodes": 2}],
    )
    assert starts(found) == {"A": 0, "B": 30, "C": 45, "R": 20, "S": 25}
    assert reserved(found) == [[(20, 30, "0-1")]]


def test_a_job_that_ends_by_the_start_may_run_before():
    """By its limit: B may run until 20 and does; C may run until 21 and takes the other nodes."""
    found = run(
        machine(4),
        job("B", 0, "slot=2/core", 3, 20),
        job("C", 0, "slot=2/core", 3, 21),
        reservations={"name": "r", "start": 20, "duration": 10, "hosts": "n[0-1]"},
    )
    assert starts(found) == {"B": 0, "C": 0}
    nodes = [line["R"]["execution"]["nodelist"] for line in lines(found) if line["event"] == "alloc"]
    assert nodes == [["n[0-1]"], ["n[2-3]"]]


def lines(found):
    import json

    return [json.loads(line) for line in found.log.text().splitlines()]


def test_a_flexible_start_is_the_first_time_with_enough_nodes():
    """At 5 the nodes are free at 10 and 12 by the limits of A and B; C waits behind the window."""
    found = run(
        machine(3),
        job("A", 0, "slot=1/core", 2, 10),
        job("B", 0, "slot=1/core", 2, 12),
        job("D", 0, "slot=1/core", 40),
        within("R", 1, "slot=2/core", 5, "r"),
        job("C", 6, "slot=2/core", 8),
        reservations={"name": "r", "announced": 1, "duration": 5, "nodes": 2},
    )
    assert reserved(found) == [[(12, 17, "0-1")]]
    assert starts(found) == {"A": 0, "B": 0, "D": 0, "R": 12, "C": 17}


def test_earliest_and_latest():
    jobs = (job("A", 0, "slot=2/core", 50), within("R", 1, "slot=2/core", 5, "r"))
    rule = {"name": "r", "announced": 1, "duration": 5, "nodes": 2}
    found = run(machine(4), *jobs, reservations={**rule, "earliest": 7})
    assert reserved(found) == [[(7, 12, "2-3")]]
    found = run(machine(3), *jobs, reservations={**rule, "latest": 49})
    assert reserved(found) == [[]]
    assert reasons(found)["R"] == "the reservation 'r' was refused: its nodes are not free in time"
    assert results(found)["R"] == "PENDING"
    found = run(machine(3), *jobs, reservations={**rule, "latest": 50})
    assert reserved(found) == [[(50, 55, "0-1")]]


def test_a_fixed_start_on_busy_nodes_is_refused():
    jobs = (job("A", 0, "slot=2/core", 50), within("R", 1, "slot=1/core", 5, "r"))
    rule = {"name": "r", "announced": 1, "start": 20, "duration": 5, "hosts": "n1"}
    assert reserved(run(machine(4), *jobs, reservations=rule)) == [[]]


def test_a_shape_and_properties():
    cluster = machine(4, cores=2, properties={"gpu": "1-3"})
    rule = {"name": "r", "start": 5, "duration": 5, "shape": "slot=3/core", "requires": ["gpu"]}
    found = run(cluster, job("A", 0, "slot=1/core", 1), reservations=rule)
    assert reserved(found) == [[(5, 10, "1-2")]]


def test_every_day():
    """Q uses the second window: the first was too short for it after R."""
    day = 86400
    found = run(
        machine(2),
        within("R", 0, "slot=2/core", 6, "r"),
        within("Q", 0, "slot=2/core", 6, "r"),
        job("B", 0, "slot=2/core", day),
        reservations={"name": "r", "start": 10, "duration": 10, "nodes": 2, "repeat": "daily", "times": 2},
    )
    assert starts(found) == {"R": 10, "Q": day + 10, "B": day + 20}


def test_who_may_use_it():
    rule = {"name": "r", "start": 10, "duration": 10, "nodes": 1, "users": ["ann"], "accounts": ["chem"]}
    found = run(
        machine(2),
        within("A", 0, "slot=1/core", 1, "r", user="ann"),
        within("B", 0, "slot=1/core", 1, "r", user="bob", bank="chem"),
        within("C", 0, "slot=1/core", 1, "r", user="bob"),
        within("D", 0, "slot=1/core", 11, "r", user="ann"),
        within("E", 0, "slot=1/core", 1, "s", user="ann"),
        reservations=rule,
    )
    assert starts(found) == {"A": 10, "B": 11}
    assert reasons(found) == {
        "A": None,
        "B": None,
        "C": "rejected: the reservation 'r' is for users ann and accounts chem",
        "D": "rejected: the reservation 'r' lasts 10 s, and the job may run longer",
        "E": "rejected: there is no reservation 's'",
    }


def test_jobs_that_are_too_late_wait_for_ever():
    found = run(
        machine(2),
        within("A", 0, "slot=2/core", 8, "r"),
        within("B", 0, "slot=2/core", 8, "r"),
        within("C", 90, "slot=1/core", 1, "r"),
        reservations={"name": "r", "start": 10, "duration": 10, "nodes": 2},
    )
    assert starts(found) == {"A": 10}
    assert set(reasons(found).values()) == {
        None,
        "the reservation 'r' ended at 20 s, before the job could start",
    }


def test_two_reservations_do_not_share_nodes():
    found = run(
        machine(4),
        job("A", 0, "slot=1/core", 1),
        reservations=[
            {"name": "r", "start": 10, "duration": 10, "nodes": 3},
            {"name": "s", "start": 15, "duration": 10, "nodes": 1},
            {"name": "t", "start": 15, "duration": 10, "nodes": 1},
            {"name": "u", "start": "flexible", "earliest": 15, "duration": 10, "nodes": 4},
        ],
    )
    assert reserved(found) == [[(10, 20, "0-2")], [(15, 25, "3")], [], [(25, 35, "0-3")]]


def test_a_resumed_run_is_the_same(tmp_path):
    jobs = [
        within("R", 1, "slot=2/core", 5, "r"),
        job("A", 0, "slot=1/core", 20),
        job("C", 6, "slot=2/core", 8),
    ]
    rule = {"name": "r", "announced": 1, "earliest": 9, "duration": 5, "nodes": 2}
    state = tmp_path / "state.json"
    whole = run(machine(3), *jobs, checkpoints={7: state}, reservations=rule)
    assert starts(run(machine(3), *jobs, resume=state, reservations=rule)) == starts(whole)
    assert starts(whole) == {"A": 0, "R": 9, "C": 14}


def test_why_jobs_wait(tmp_path):
    from simsched import load_run
    from simsched.report.waiting.job_wait import why

    found = run(
        machine(2),
        within("R", 0, "slot=1/core", 5, "r"),
        job("B", 0, "slot=2/core", 25),
        reservations={"name": "r", "start": 20, "duration": 10, "nodes": 1},
    )
    read = load_run(found.save(tmp_path / "run"))
    for name in ("R", "B"):
        answer = why(read, name, machine(2), found.workload)
        assert [period.cause for period in answer.periods][:1] == ["advance-reservation"]


@pytest.mark.parametrize("seed", range(14))
def test_random_runs_are_clean(tmp_path, seed):
    rng = random.Random(seed)
    cluster, shapes = rng.choice(
        [
            (machine(8), ["slot=1/core", "slot=2/core", "slot=4/core"]),
            (machine(4, cores=2, gpus=1), ["slot=2/core=1", "slot=1/[core=2;gpu]", "slot=2/node"]),
        ]
    )
    jobs = []
    for number in range(50):
        at, length, shape = rng.randint(0, 90), rng.randint(0, 12), rng.choice(shapes)
        limit = max(1, length + rng.randint(-2, 8))
        if rng.random() < 0.3:
            name = rng.choice(["r", "s"])
            jobs.append(within(number, at, shape, length, name, limit, user=rng.choice("ab"), queue="q"))
        else:
            jobs.append(job(number, at, shape, length, limit, queue="q"))
    rules = [
        {"name": "r", "start": rng.randint(0, 60), "duration": rng.randint(15, 60), "nodes": 2},
        {"name": "s", "announced": 20, "duration": rng.randint(15, 60), "nodes": 2, "users": ["a"]},
    ]
    options = {"reservations": rules, "queues": {"q": {"hosts": "all"}}}
    if rng.random() < 0.4:
        options["failures"] = "mtbf=200,mttr=10"
    if rng.random() < 0.3:
        options["limits"] = [{"each": "user", "running-jobs": 3}]
    if rng.random() < 0.4:
        options["outages"] = [{"ranks": "0-1", "start": 70, "end": 80, "kind": "maintenance"}]
    found = run(cluster, *jobs, policy=POLICIES[seed % len(POLICIES)], seed=seed, **options)
    report = audit_run(found.save(tmp_path / "run"), cluster, found.workload)
    assert report, str(report)
    waiting = [name for name, result in results(found).items() if result == "PENDING"]
    assert all("reservation" in reasons(found)[name] for name in waiting)
    assert len(spans(found)) > 20


def test_the_audit_finds_a_job_on_reserved_nodes(tmp_path):
    import json

    found = run(
        machine(2),
        job("A", 0, "slot=2/core", 15),
        within("R", 0, "slot=1/core", 5, "r"),
        reservations={"name": "r", "start": 20, "duration": 10, "nodes": 1},
    )
    folder = found.save(tmp_path / "run")
    meta = json.loads((folder / "run.json").read_text())
    meta["reservations"][0]["windows"][0] |= {"start": 12, "end": 22}
    (folder / "run.json").write_text(json.dumps(meta))
    text = str(audit_run(folder, machine(2), found.workload))
    assert "is allocated rank 0 at 0, which is reserved for 'r'" in text
    assert "runs from 20 outside of its reservation 'r'" in text


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "start = 1",
            "reservations[0]: the key 'name' is missing (expected the name by which jobs",
        ),
        ("name = 'r'\nstart = 1\nnodes = 2", "reservations[0].duration: the reservation has no duration"),
        ("name = 'r'\nduration = 5\nstart = 1", "reservations[0]: the reservation has no nodes"),
        ("name = 'r'\nduration = 5\nnodes = 2\nhosts = 'n0'", "nodes and hosts of one reservation"),
        ("name = 'r'\nduration = 5\nnodes = 0", "reservations[0].nodes: 0 is not a number of nodes"),
        ("name = 'r'\nduration = 5\nnodes = 1\nuser = 'a'", "unknown key 'user'; did you mean users?"),
        ("name = 'r'\nduration = 5\nnodes = 1\nstart = 4\nlatest = 8", "latest of a fixed start"),
        ("name = 'r'\nduration = 5\nnodes = 1\nstart = -4", "reservations[0].start: a duration cannot be -4"),
        (
            "name = 'r'\nduration = 5\nnodes = 1\nstart = 4\nannounced = 5",
            "it starts at 4 and is announced at 5",
        ),
        ("name = 'r'\nduration = 5\nnodes = 1\nearliest = 9\nlatest = 8", "its latest start is 8"),
        ("name = 'r'\nduration = 5\nnodes = 1\nstart = '2024-01-01'", "2024-01-01"),
        ("name = 'r'\nduration = '2d'\nnodes = 1\nrepeat = 'daily'", "overlaps itself"),
        ("name = 'r'\nduration = 5\nnodes = 1\nrepeat = 'yearly'", "repeat: unknown value 'yearly'"),
        ("name = 'r'\nduration = 5\nnodes = 1\ntimes = 3", "times without repeat"),
        ("name = 'r'\nduration = 5\nshape = 'slot='", "slot="),
        (
            "name = 'r'\nduration = 5\nnodes = 1\n[[reservations]]\nname = 'r'\nduration = 5\nnodes = 1",
            "occurs twice",
        ),
    ],
)
def test_wrong_tables(tmp_path, table, message):
    (tmp_path / "c.toml").write_text(f"[[reservations]]\n{table}\n")
    with pytest.raises(SimschedError, match=re.escape(message)):
        run(machine(2), job("A", 0, "slot=1/core", 1), **read_config(tmp_path / "c.toml"))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"nodes": 3}, "it needs 3 nodes, the cluster has 2 of them"),
        ({"nodes": 1, "requires": ["gpu"]}, "it needs 1 nodes, the cluster has 0 of them"),
        ({"hosts": "n[1-2]"}, "the cluster has no node 'n2'"),
        ({"shape": "slot=3/core"}, "its shape does not fit on the cluster"),
    ],
)
def test_more_than_the_cluster_has(place, message):
    with pytest.raises(SimschedError, match=re.escape(f"reservations[0]: {message}")):
        run(machine(2), reservations=[{"name": "r", "duration": 5, **place}])
