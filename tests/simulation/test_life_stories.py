"""What jobs wait for besides resources, and what happens to them on nodes that go away.

Each picture has a line a job and a column a second: `.` it waits, `#` it runs.
"""

from __future__ import annotations

import json
import random
import textwrap

import pytest

import simsched as ss
from simsched.errors import ConfigError, SimschedError
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.idset import Idset
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.jobs.lifecycle import JobState, replay
from simsched.simulation.outages.outages import Failures, Outage, read_outages
from tests.simulation.simworld import gantt, job, machine, results, run, starts, workload


def picture(text):
    return textwrap.dedent(text).strip("\n")


def after(*texts):
    return {"dependencies": tuple(Dependency.parse(text) for text in texts)}


def reasons(result):
    return {n: r for n, r in zip(result.jobs["id"], result.jobs["reason"], strict=True) if r}


# --- dependencies (RFC 26) -------------------------------------------------------------------------------


def test_a_chain_of_jobs():
    found = run(
        machine(4),
        job("A", 0, "slot=1/core", 3),
        job("B", 0, "slot=1/core", 2, **after("afterok:A")),
        job("C", 0, "slot=1/core", 2, **after("after:B", "afterany:A")),
    )
    assert gantt(found, 8) == picture(
        """
        A ###
        B ...##
        C ...##
        """
    )
    assert list(found.jobs["eligible"]) == [0, 3, 3]


def test_a_dependency_chain_that_fails():
    """A is ended at its limit: B, which needs it to end well, fails, and so does C; D waited for that."""
    found = run(
        machine(4),
        job("A", 0, "slot=1/core", 9, 4),
        job("B", 0, "slot=1/core", 2, **after("afterok:A")),
        job("C", 0, "slot=1/core", 2, **after("afterok:B")),
        job("D", 0, "slot=1/core", 2, **after("afternotok:A")),
        job("E", 0, "slot=1/core", 2, **after("afterany:B")),
    )
    assert results(found) == {
        "A": "TIMEOUT",
        "B": "FAILED",
        "C": "FAILED",
        "D": "COMPLETED",
        "E": "COMPLETED",
    }
    assert starts(found) == {"A": 0, "D": 4, "E": 4}
    assert reasons(found) == {
        "B": "dependency afterok:A can never be met",
        "C": "dependency afterok:B can never be met",
    }


def test_dependencies_on_jobs_that_ended_are_met_or_in_vain_at_once():
    found = run(
        machine(4),
        job("A", 0, "slot=1/core", 1),
        job("B", 5, "slot=1/core", 1, **after("afterok:A")),
        job("C", 5, "slot=1/core", 1, **after("afternotok:A")),
        job("D", 5, "slot=1/core", 1, **after("afterok:nobody")),
    )
    assert starts(found) == {"A": 0, "B": 5}
    assert results(found)["C"] == "FAILED"
    assert reasons(found)["D"] == "dependency afterok:nobody does not name a job of the workload"


def test_what_can_never_run_ends_badly_for_those_that_wait_for_it():
    found = run(
        machine(1),
        job("big", 0, "slot=2/core", 1),
        job("B", 0, "slot=1/core", 1, **after("afterok:big")),
        job("C", 0, "slot=1/core", 1, **after("afternotok:big")),
    )
    assert results(found) == {"big": "INFEASIBLE", "B": "FAILED", "C": "COMPLETED"}


def test_begin_time():
    found = run(machine(1), job("A", 0, "slot=1/core", 1, **after("begin-time:7")))
    assert starts(found) == {"A": 7}
    assert found.jobs["eligible"][0] == 7


def test_symbolic_dependencies_follow_the_last_producer_and_keep_users_apart():
    found = run(
        machine(9),
        job("P", 0, "slot=1/core", 4, user="ann", **after("string:mesh?type=out")),
        job("Q", 0, "slot=1/core", 2, user="ann", **after("string:mesh?type=inout")),
        job("R", 0, "slot=1/core", 1, user="ann", **after("string:mesh?type=in")),
        job("X", 0, "slot=1/core", 1, user="bob", **after("string:mesh?type=in")),
        job("Y", 0, "slot=1/core", 1, user="bob", **after("string:mesh?type=in&scope=global")),
        job("Z", 0, "slot=1/core", 3, user="cid", **after("string:mesh?type=out&scope=global")),
    )
    assert starts(found) == {"P": 0, "Q": 4, "R": 6, "Z": 0, "Y": 3}
    assert reasons(found)["X"].endswith("is produced by no job of the workload")


def test_think_times_delay_a_job_only_if_they_are_honoured():
    queue = (
        job("A", 0, "slot=1/core", 10),
        job("B", 3, "slot=1/core", 1, preceding="A", think_time=5),
        job("C", 30, "slot=1/core", 1, preceding="A", think_time=5),
    )
    assert starts(run(machine(2), *queue)) == {"A": 0, "B": 3, "C": 30}
    assert starts(run(machine(2), *queue, think_times="honour")) == {"A": 0, "B": 15, "C": 30}


# --- holds, cancellation ---------------------------------------------------------------------------------


def test_a_held_job_stays_pending_and_in_nobodys_way():
    found = run(
        machine(1),
        job("H", 0, "slot=1/core", 5, hold=True),
        job("U", 0, "slot=1/core", 5, urgency=0),
        job("A", 1, "slot=1/core", 5),
    )
    assert results(found) == {"H": "PENDING", "U": "PENDING", "A": "COMPLETED"}
    assert starts(found) == {"A": 1}
    assert "held" in reasons(found)["H"]


def test_jobs_cancelled_while_they_wait_run_depend_or_are_done():
    found = run(
        machine(1),
        job("run", 0, "slot=1/core", 9, cancel_at=4),
        job("wait", 1, "slot=1/core", 9, cancel_at=2),
        job("next", 1, "slot=1/core", 2),
        job("dep", 1, "slot=1/core", 2, cancel_at=3, **after("afterok:next")),
        job("done", 20, "slot=1/core", 2, cancel_at=30),
        policy="fcfs",
    )
    assert results(found) == {
        "run": "CANCELED",
        "wait": "CANCELED",
        "next": "COMPLETED",
        "dep": "CANCELED",
        "done": "COMPLETED",
    }
    assert starts(found) == {"run": 0, "next": 4, "done": 20}
    assert found.jobs["end"][0] == 4


def test_the_head_of_the_queue_is_cancelled_and_the_next_moves_up():
    found = run(
        machine(2),
        job("A", 0, "slot=1/core", 9),
        job("B", 1, "slot=2/core", 9, cancel_at=3),
        job("C", 2, "slot=1/core", 20),
    )
    assert starts(found) == {"A": 0, "C": 3}


# --- failures, drains, maintenance -----------------------------------------------------------------------


def outage(ranks, start, end=float("inf"), kind="failure", note=""):
    return Outage(Idset.parse(ranks), start, end, kind, note)


def test_a_failure_with_requeue():
    """n0 fails at 3 and is back at 8: A starts over on n1 … when B leaves it."""
    found = run(
        machine(2),
        job("A", 0, "slot=1/core", 5),
        job("B", 0, "slot=1/core", 6),
        outages=(outage("0", 3, 8),),
    )
    assert starts(found) == {"A": 6, "B": 0}
    assert results(found) == {"A": "COMPLETED", "B": "COMPLETED"}
    assert reasons(found) == {"A": "queued again once: failure of n0"}
    lines = [json.loads(line) for line in found.log.text().splitlines()]
    assert [(x["id"], x["event"], x["time"]) for x in lines] == [
        ("A", "alloc", 0),
        ("B", "alloc", 0),
        ("A", "release", 3),
        ("B", "release", 6),
        ("A", "alloc", 6),
        ("A", "release", 11),
    ]
    rows = dict(zip(found.timeline["time"], found.timeline["down_node"], strict=True))
    assert rows.items() >= {0: 0, 3: 1, 6: 1, 8: 0, 11: 0}.items()


def test_a_failure_that_fails_the_job():
    found = run(
        machine(2),
        job("A", 0, "slot=2/core", 5),
        outages=(outage("0-1", 3, 8, note="power"),),
        on_failure="fail",
    )
    assert results(found) == {"A": "FAILED"}
    assert reasons(found) == {"A": "power of n0, n1"}
    assert found.jobs["end"][0] == 3


def test_a_drain_lets_what_runs_run_on():
    found = run(
        machine(2),
        job("A", 0, "slot=2/core", 5),
        job("B", 1, "slot=2/core", 2),
        job("C", 1, "slot=1/core", 2),
        outages=(outage("0", 2, 20, "drain"),),
    )
    assert starts(found) == {"A": 0, "C": 5, "B": 20}
    used = dict(zip(found.timeline["time"], found.timeline["used_core"], strict=True))
    down = dict(zip(found.timeline["time"], found.timeline["down_core"], strict=True))
    assert (used[2], down[2]) == (2, 0)
    assert (used[5], down[5]) == (1, 1)
    assert (used[20], down[20]) == (2, 0)


def test_a_day_of_maintenance():
    """A dedicated access time from 10 to 14 on both nodes.

    B would still run at 10 and waits until it is over; C is short enough to run before.
    """
    found = run(
        machine(2),
        job("A", 0, "slot=1/core", 3),
        job("B", 1, "slot=1/core", 10),
        job("C", 2, "slot=1/core", 4),
        outages=(outage("0-1", 10, 14, "maintenance"),),
    )
    assert gantt(found, 26) == picture(
        """
        A ###
        B  .............##########
        C   ####
        """
    )


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "hybrid"])
def test_maintenance_on_some_nodes_sends_long_jobs_to_the_others(policy):
    found = run(
        machine(2),
        job("A", 0, "slot=1/core", 20),
        job("B", 0, "slot=1/core", 5),
        job("C", 1, "slot=2/core", 9),
        outages=(outage("0", 10, 12, "maintenance"),),
        policy=policy,
    )
    assert starts(found) == {"A": 0, "B": 0, "C": 20}
    lines = [json.loads(line) for line in found.log.text().splitlines()]
    ranks = {x["id"]: x["R"]["execution"]["R_lite"][0]["rank"] for x in lines}
    assert ranks == {"A": "1", "B": "0", "C": "0-1"}


def test_the_reservation_waits_for_the_maintenance_to_end():
    """B could have both nodes at 5, but it takes 9 s and maintenance begins at 10: its start is 14.

    C, which ends at 14, is not in its way.
    """
    found = run(
        machine(2),
        job("A", 0, "slot=2/core", 5),
        job("B", 1, "slot=2/core", 9),
        job("C", 5, "slot=1/core", 9),
        job("D", 5, "slot=1/core", 10),
        outages=(outage("0", 10, 14, "maintenance"),),
    )
    assert starts(found) == {"A": 0, "B": 14, "C": 5, "D": 23}


def test_random_failures_come_from_the_seed_and_hurt():
    jobs = [job(n, n, f"slot={1 + n % 4}/core", 20 + n % 30) for n in range(60)]
    options = {"failures": Failures.parse("mtbf=300s,mttr=30s,shape=0.8")}
    one, two = (run(machine(8), *jobs, seed=5, **options) for _ in range(2))
    assert one.log.text() == two.log.text()
    assert max(one.timeline["down_node"]) > 0
    assert set(one.jobs["result"]) == {"COMPLETED"}
    assert any("queued again" in (reason or "") for reason in one.jobs["reason"])
    assert run(machine(8), *jobs, seed=6, **options).log.text() != one.log.text()


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_the_audit_is_clean_and_the_eventlog_replays(tmp_path, policy, seed):
    """Law: with failures, drains, maintenance, dependencies and cancellations nothing is booked twice,

    and every job's events lead to the state that its result stands for.
    """
    rng = random.Random(f"{policy} {seed}")
    cluster = machine(4, cores=2, gpus=1)
    shapes = ("slot=2/core=1", "slot=1/[core=2;gpu]", "slot=1/node", "slot=3/node", "slot=5/core")
    jobs = []
    for n in range(40):
        more = {}
        if n and rng.random() < 0.3:
            more |= after(f"{rng.choice(['after', 'afterok', 'afterany', 'afternotok'])}:{rng.randrange(n)}")
        if rng.random() < 0.1:
            more["cancel_at"] = rng.randint(0, 150)
        if rng.random() < 0.05:
            more["hold"] = True
        run_for, limit = rng.randint(0, 30), rng.choice([5, 20, 60])
        jobs.append(job(n, rng.randint(0, 80), rng.choice(shapes), run_for, limit, **more))
    outages = (
        outage("1", 30, 50),
        outage("2", 20, 60, "drain"),
        outage("0-3", 100, 120, "maintenance"),
        outage("1-2", 45, 70),
    )
    found = run(cluster, *jobs, policy=policy, outages=outages, eventlog=True, seed=seed)
    path = found.save(tmp_path / "run")
    report = audit_run(path, cluster, workload(*jobs))
    assert report, str(report)
    assert min(found.timeline["free_core"]) >= 0
    assert min(found.timeline["down_core"]) >= 0
    logs = {}
    for line in (path / "eventlog.jsonl").read_text().splitlines():
        event = json.loads(line)
        logs.setdefault(str(event["id"]), []).append(event["name"])
    ended = {n: replay(names) for n, names in logs.items()}
    waits = {"PENDING": {JobState.SCHED, JobState.DEPEND}, "RUNNING": {JobState.RUN}}
    for name, result in results(found).items():
        assert ended[name] in waits.get(result, {JobState.INACTIVE}), (name, result, logs[name])


# --- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "not a list"),
        ([3], "outages.json\\[0\\]: 3 is not a table"),
        ([{"ranks": "0"}], "needs ranks or hosts, and a start"),
        ([{"hosts": ["n0", 3], "start": 5}], "not a hostlist"),
        ([{"hosts": "n[0", "start": 5}], "n\\[0"),
        ([{"host": "n0", "start": 5}], "unknown key 'host'; did you mean hosts"),
        ([{"ranks": "0", "start": 5, "end": 5}], "end after the start"),
        ([{"ranks": "0", "start": 5, "kind": "fire"}], "unknown value 'fire'"),
        ([{"ranks": "x", "start": 5}], "x"),
        ([{"ranks": "0", "start": "soon"}], "soon"),
        ([{"ranks": "0", "start": 1, "until": 2}], "unknown key 'until'"),
    ],
)
def test_outages_that_are_none(document, message):
    with pytest.raises(SimschedError, match=message):
        read_outages(document, "outages.json")


def test_outages_are_read_with_durations():
    (found,) = read_outages({"outages": [{"ranks": "0-2", "start": "1h", "end": "2h", "kind": "drain"}]})
    assert (found.start, found.end, found.kind, str(found.ranks)) == (3600, 7200, "drain", "0-2")


def test_outages_name_hosts_as_reservations_do():
    tiny, log = ss.load_cluster("tiny"), ss.load_workload("first-steps")
    hosts = [{"hosts": "node[0-1]", "start": 600, "end": 7200, "kind": "maintenance"}]
    ranks = [{"ranks": "0-1", "start": 600, "end": 7200, "kind": "maintenance"}]
    by_host, by_rank = (ss.simulate(tiny, log, outages=outages) for outages in (hosts, ranks))
    assert by_host.jobs.equals(by_rank.jobs)
    assert by_host.config["outages"] == by_rank.config["outages"]
    with pytest.raises(ConfigError, match="no host 'node9'; did you mean"):
        ss.simulate(tiny, log, outages=[{"hosts": "node9", "start": 1}])


def test_ranks_that_do_not_exist_are_refused():
    with pytest.raises(ConfigError, match="no rank 7"):
        run(machine(2), outages=(outage("7", 1, 2),))


@pytest.mark.parametrize(
    "text", ["", "mtbf=3", "mtbf=1d,mttr=0", "mtbf=1d,mttr=1h,x=2", "mtbf=1d,mttr=1h,shape=y"]
)
def test_failures_that_cannot_be(text):
    with pytest.raises(ConfigError):
        Failures.parse(text)


# --- epilogs ---------------------------------------------------------------------------------------------


def test_partial_release_lets_a_waiting_job_start_early(tmp_path):
    """A ends at 4, and its nodes need 1 to 5 s to clean up.  B takes the first that is done.

    Were the job's resources given back as a whole, B would wait for the last of them.
    """
    queue = (job("A", 0, "slot=3/core", 4), job("B", 1, "slot=1/core", 2))
    found = run(machine(3), *queue, epilog=(1, 5), eventlog=True, seed=1)
    lines = [json.loads(line) for line in found.log.text().splitlines()]
    shards = [
        (x["time"], x["R"]["execution"]["R_lite"][0]["rank"])
        for x in lines
        if (x["id"], x["event"]) == ("A", "release")
    ]
    assert len(shards) > 1
    assert starts(found) == {"A": 0, "B": shards[0][0]}
    assert starts(found)["B"] < shards[-1][0]
    assert found.jobs["end"][0] == 4
    names = [json.loads(line)["name"] for line in found.events.text().splitlines() if '"A"' in line]
    assert names[:6] == ["submit", "validate", "depend", "priority", "alloc", "start"]
    assert names[6:] == ["finish", *["release"] * len(shards), "free", "clean"]
    path = found.save(tmp_path / "run")
    assert audit_run(path, machine(3), workload(*queue))


def test_an_epilog_of_fixed_length():
    found = run(machine(2), job("A", 0, "slot=2/core", 4), job("B", 1, "slot=1/core", 2), epilog=(3, 3))
    assert starts(found) == {"A": 0, "B": 7}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_runs_with_epilogs_and_failures_are_clean(tmp_path, policy):
    cluster = machine(4, cores=2, gpus=1)
    rng = random.Random(policy)
    shapes = ("slot=2/core=1", "slot=1/[core=2;gpu]", "slot=1/node", "slot=3/node", "slot=5/core")
    jobs = [
        job(n, rng.randint(0, 80), rng.choice(shapes), rng.randint(0, 30), rng.choice([5, 20, 60]))
        for n in range(40)
    ]
    outages = [outage("1", 10 * n, 10 * n + 4) for n in range(12)]
    found = run(cluster, *jobs, policy=policy, epilog=(0, 9), outages=tuple(outages))
    report = audit_run(found.save(tmp_path / "run"), cluster, workload(*jobs))
    assert report, str(report)
    assert set(found.jobs["result"]) <= {"COMPLETED", "TIMEOUT"}


def test_jobs_that_only_failures_lie_before_end_the_run():
    """n0 is out for good and B needs both nodes: no failure to come can help it, so the run is over."""
    found = run(
        machine(2),
        job("A", 0, "slot=1/core", 3),
        job("B", 1, "slot=2/core", 3),
        outages=[{"ranks": "0", "start": 2}],
        failures="mtbf=30d,mttr=4h",
    )
    assert results(found) == {"A": "COMPLETED", "B": "PENDING"}
