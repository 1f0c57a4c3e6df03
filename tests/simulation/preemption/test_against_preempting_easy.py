"""Preemption in all modes under FCFS and EASY, job by job against a program that shares no code with it."""

from __future__ import annotations

import random
from math import inf
from pathlib import Path

import pytest
from msgspec.structs import replace

from simsched.workload.load import load_workload
from tests.reference.preempting_easy import Rules, Task, simulate
from tests.simulation.simworld import job, machine, run

QUEUES = {
    "batch": {"hosts": "all"},
    "mid": {"hosts": "all", "priority": 4, "preempts": True},
    "urgent": {"hosts": "all", "priority": 9, "preempts": True},
}
RANKS = {"batch": 0, "mid": 4, "urgent": 9}
MODES = ["requeue", "cancel", "suspend", "checkpoint"]
KTH = Path(__file__).parents[3] / ".." / "shared" / "traces" / "KTH-SP2-1996-2.1-cln.swf.gz"


def both(rows, nodes, rules, *, table=True):
    """Run rows (submit, size, runtime, limit, queue) with both programs; return their results by number.

    Without a table, jobs say themselves from when on they may be preempted.
    """
    jobs = [
        job(number, submit, f"slot={size}/core", work, limit, queue=queue, user=str(number % 5))
        for number, (submit, size, work, limit, queue) in enumerate(rows)
    ]
    options = {}
    if table:
        order = "youngest" if rules.youngest else "priority"
        options["preemption"] = {
            "mode": rules.mode,
            "grace": rules.grace,
            "exempt": rules.exempt,
            "order": order,
        }
    else:
        own = {"preemptible-after": rules.exempt}
        jobs = [replace(one, jobspec=one.jobspec.with_system(**own)) for one in jobs]
    if rules.most < inf:
        options["limits"] = [{"each": "user", "nodes": rules.most}]
    if rules.interval < inf:
        options["job_checkpoints"] = {
            "interval": rules.interval,
            "cost": rules.cost,
            "restart": rules.restart,
        }
    found = run(
        machine(nodes),
        *jobs,
        policy="easy" if rules.easy else "fcfs",
        queues=QUEUES,
        allocations=False,
        **options,
    )
    tasks = [
        Task(number, submit, size, work, limit, RANKS[queue], takes=queue != "batch", user=str(number % 5))
        for number, (submit, size, work, limit, queue) in enumerate(rows)
    ]
    expected = simulate(tasks, nodes, rules)
    names = ("start", "end", "result", "saved", "suspended", "interruptions")
    theirs = {
        task.number: (task.start, task.end, task.result, task.saved, task.stood, task.attempts)
        for task in expected
    }
    names = [name for name in names if name in found.jobs]
    theirs = {number: row[: len(names)] for number, row in theirs.items()}
    columns = [found.jobs[name].tolist() for name in names]
    ours = dict(zip(found.jobs["id"], zip(*columns, strict=True), strict=True))
    return {int(name): row for name, row in ours.items()}, theirs


def same(ours, theirs):
    different = {
        number: (ours[number], theirs[number]) for number in theirs if ours[number] != theirs[number]
    }
    first = min(different, key=lambda number: theirs[number][0] or 0, default=None)
    assert not different, f"{len(different)} jobs differ, such as {first}: {different[first]}"
    return theirs


def random_rows(rng):
    """Small times, so that many things happen at one instant; three queues, two of which preempt."""
    rows = []
    for submit in sorted(rng.randint(0, 700) for _ in range(250)):
        work = rng.randint(1, 20)
        limit = max(1, work + rng.randint(-2, 15))
        queue = rng.choice(["batch", "batch", "batch", "mid", "urgent"])
        rows.append((submit, rng.randint(1, 8), work, limit, queue))
    return rows


@pytest.mark.parametrize("most", [9, inf])
@pytest.mark.parametrize("easy", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_without_a_table(seed, easy, most):
    rng = random.Random(seed)
    rules = Rules("requeue", 0, rng.choice([0, 4]), easy=easy, youngest=True, most=most)
    same(*both(random_rows(rng), 12, rules, table=False))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6))
def test_under_limits(mode, seed):
    """Each of five users may have 9 nodes of 12, those of suspended jobs included."""
    rng = random.Random(1000 * seed + MODES.index(mode))
    rules = Rules(mode, rng.choice([0, 0, 3]), rng.choice([0, 4]), easy=bool(seed % 2), most=9)
    rules.youngest = rng.random() < 0.5
    if mode == "checkpoint":
        rules.interval, rules.cost, rules.restart = rng.randint(2, 8), rng.randint(0, 3), rng.randint(0, 3)
    same(*both(random_rows(rng), 12, rules))


@pytest.mark.parametrize("easy", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6))
def test_random_workloads(mode, seed, easy):
    rng = random.Random(100 * seed + MODES.index(mode))
    rules = Rules(mode, rng.choice([0, 0, 3]), rng.choice([0, 0, 4]), easy=easy)
    if mode == "checkpoint" or seed % 2:
        rules.interval, rules.cost, rules.restart = rng.randint(2, 8), rng.randint(0, 3), rng.randint(0, 3)
    found = same(*both(random_rows(rng), 12, rules))
    hit = {"cancel": lambda row: row[2] == "CANCELED", "suspend": lambda row: row[4]}
    assert sum(bool(hit.get(mode, lambda row: row[5])(row)) for row in found.values()) > 5


@pytest.mark.skipif(not KTH.exists(), reason="the traces are not here")
@pytest.mark.parametrize("mode", MODES)
def test_kth(mode):
    """5,000 jobs of KTH-SP2; every seventh user is urgent, and checkpoints are written every two hours."""
    rules = Rules(mode, 60 if mode != "suspend" else 0, 300)
    if mode in ("requeue", "checkpoint"):
        rules.interval, rules.cost, rules.restart = 7200, 120, 180
    rows = []
    for one in load_workload(KTH).jobs[:5000]:
        queue = ("urgent", "mid", *["batch"] * 5)[int(one.user or 0) % 7]
        rows.append((one.submit, one.procs, max(1, one.runtime), max(1, one.duration), queue))
    found = same(*both(rows, 100, rules))
    results = [row for row in found.values() if row[2] == "CANCELED" or row[4] or row[5]]
    assert len(results) > 50
