"""The wait of a job by cause: stories whose reasons were worked out by hand, and sums that must hold."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.cli import main
from simsched.errors import ConfigError, RunError
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.idset import Idset
from simsched.graph.cluster import load_cluster
from simsched.report.run_views import load_run
from simsched.report.waiting.job_answer import job_document, job_text
from simsched.report.waiting.job_wait import WaitPeriod, why
from simsched.simulation.outages.outages import Outage
from simsched.simulation.simulate import simulate
from simsched.workload.job import Skip
from tests.simulation.simworld import job, machine, workload


@pytest.fixture
def story(tmp_path):
    """Simulate jobs on a machine; the answer tells why one of them waited."""

    def told(cluster, jobs, policy="easy", **options):
        load = workload(*jobs)
        simulate(cluster, load, policy, **options).save(tmp_path / "run")
        run = load_run(tmp_path / "run")
        return lambda name: why(run, name, cluster, load)

    return told


def causes(answer):
    return [(p.start, p.end, p.cause, p.job) for p in answer.periods]


def test_a_shortage_then_the_order_of_the_queue(story):
    """A holds three of four nodes; B requests all of them; C would fit but comes after B."""
    jobs = [job("A", 0, "slot=3/node", 6), job("B", 1, "slot=4/node", 4), job("C", 2, "slot/node", 2)]
    ask = story(machine(4), jobs, "fcfs")
    assert causes(ask("B")) == [(1, 6, "short of node", None)]
    assert [(h.id, h.units, h.unit_seconds) for h in ask("B").holders] == [("A", 3, 15)]
    assert causes(ask("C")) == [(2, 6, "order", "B"), (6, 10, "short of node", None)]
    assert ask("A").periods == ()
    assert ask("C").ahead == (1, 16.0)  # B requests 4 nodes for 4 s
    assert ask("C").running == (1, 12.0)  # A has 3 nodes for 4 s more


def test_a_reservation_in_the_way_and_the_limit_that_would_have_done(story):
    """D fits beside A at 2, but its limit of 9 s reaches into B's reservation, which begins at 6."""
    jobs = [job("A", 0, "slot=3/node", 6), job("B", 1, "slot=4/node", 4), job("D", 2, "slot/node", 1, 9)]
    answer = story(machine(4), jobs)("D")
    assert causes(answer) == [(2, 6, "reservation", "B"), (6, 10, "short of node", None)]
    assert "at 0:00:02: with a limit of at most 4 s" in answer.sooner


def test_jobs_that_pass_are_counted(story):
    jobs = [
        job("A", 0, "slot=3/node", 6),
        job("B", 1, "slot=4/node", 4),
        job("C", 2, "slot/node", 2),
        job("D", 3, "slot/node", 1),
    ]
    ask = story(machine(4), jobs)
    assert ask("B").passed == (2, 2)
    assert ask("C").passed == (0, 0)


def test_a_dependency_names_the_job_that_had_to_end(story):
    later = job("B", 1, "slot/node", 1, dependencies=(Dependency(scheme="afterok", value="A"),))
    answer = story(machine(2), [job("A", 0, "slot/node", 5), later])("B")
    assert causes(answer) == [(1, 5, "dependency", "A")]


def test_a_begin_time(story):
    later = job("B", 1, "slot/node", 1, dependencies=(Dependency(scheme="begin-time", value=7.0),))
    assert causes(story(machine(2), [later])("B")) == [(1, 7, "begin-time", None)]


def test_a_constraint_makes_the_sums_of_its_nodes_count(story):
    """Three nodes are free, but the one with the property is taken."""
    jobs = [job("A", 0, "slot/node", 5, constraint="fast"), job("B", 1, "slot/core", 2, constraint="fast")]
    answer = story(machine(4, properties={"fast": "0"}), jobs)("B")
    assert causes(answer) == [(1, 5, "short of core", None)]


def test_free_units_in_the_wrong_places(story):
    """One core is free on each of two nodes; a slot of two cores fits on neither."""
    jobs = [
        job("A", 0, "slot/core", 5, constraint="x"),
        job("B", 0, "slot/core", 7, constraint="y"),
        job("D", 1, "slot/core=2", 2),
    ]
    ask = story(machine(2, cores=2, properties={"x": "0", "y": "1"}), jobs)
    assert causes(ask("D")) == [(1, 5, "placement", None)]
    assert ask("D").sooner == ("at 0:00:01: core=1 instead of 2 (slot/core)",)


def test_nodes_that_are_down(story):
    jobs = [job("A", 2, "slot=4/node", 3)]
    answer = story(machine(4), jobs, outages=(Outage(Idset.parse("0"), 0, 10),))("A")
    assert causes(answer) == [(2, 10, "unavailable", None)]


def test_maintenance_that_the_limit_reaches_into(story):
    jobs = [job("A", 2, "slot=4/node", 3, 6)]
    outage = Outage(Idset.parse("0-3"), 5, 10, "maintenance")
    assert causes(story(machine(4), jobs, outages=(outage,))("A")) == [
        (2, 5, "maintenance", None),
        (5, 10, "unavailable", None),
    ]


def test_jobs_that_never_waited_or_are_not_there(story, tmp_path):
    ask = story(machine(2), [job("A", 0, "slot/node", 5), job("B", 0, "slot=3/node", 5)])
    with pytest.raises(ConfigError, match="job B never waited: "):
        ask("B")
    with pytest.raises(ConfigError, match="the run has no job 'Q'"):
        ask("Q")
    (tmp_path / "run" / "allocations.jsonl").unlink()
    with pytest.raises(RunError, match="made without its allocations"):
        why(load_run(tmp_path / "run"), "A", machine(2), workload(job("A", 0, "slot/node", 5)))


SHAPES = ["slot=1/core", "slot=3/core", "slot=2/node", "slot=2/core=2", "slot/core=4", "slot=4/[core;gpu]"]
rows = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(SHAPES), st.integers(1, 12), st.integers(1, 12)),
    min_size=2,
    max_size=14,
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(rows, st.sampled_from(["fcfs", "easy", "conservative"]), st.booleans())
def test_periods_fill_every_wait_and_name_true_causes(tmp_path_factory, table, policy, down):
    """The periods of each job add up to its wait; a shortage is one by the jobs that run then."""
    cluster = machine(3, cores=4, gpus=2)
    jobs = [job(f"j{n}", s, shape, run, limit) for n, (s, shape, run, limit) in enumerate(table)]
    load = workload(*jobs)
    outages = (Outage(Idset.parse("2"), 5, 20, "drain"),) if down else ()
    place = tmp_path_factory.mktemp("run") / "r"
    simulate(cluster, load, policy, outages=outages).save(place)
    run = load_run(place)
    frame = run.jobs
    for row in frame.itertuples():
        if row.result in ("INFEASIBLE", "DROPPED"):
            continue
        answer = why(run, row.id, cluster, load)
        assert answer.wait == row.start - row.submit
        assert [p.start for p in answer.periods[1:]] == [p.end for p in answer.periods[:-1]]
        for period in answer.periods:
            held = frame[(frame["start"] <= period.start) & (frame["end"] > period.start)]
            free = 12 - held["cores"].sum()
            if period.cause == "short of core":
                assert free < frame["cores"][row.Index] or down
            elif period.cause in ("order", "reservation"):
                assert free >= frame["cores"][row.Index]
                assert period.job != row.id


def test_neighbouring_periods_of_one_cause_are_one(story):
    jobs = [job(f"s{n}", n, "slot/node", 1) for n in range(6)]
    answer = story(machine(1), [job("A", 0, "slot/node", 3), *jobs])("s5")
    assert answer.periods == (WaitPeriod(5, np.float64(answer.start), "short of node"),)


def test_an_ignored_record_does_not_hide_the_job_with_its_id(tmp_path):
    """The second record with the id B was ignored; the record with the id C has no job."""
    load = workload(job("A", 0, "slot=4/node", 6), job("B", 1, "slot=4/node", 4))
    skips = tuple(
        Skip(f"log:{n}", reason, "", id=id_) for n, reason, id_ in ((3, "twice", "B"), (4, "no end", "C"))
    )
    load = replace(load, skipped=skips)
    simulate(machine(4), load, "fcfs").save(tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert why(run, "B", machine(4), load).wait == 5
    with pytest.raises(ConfigError, match="job C never waited: no end"):
        why(run, "C", machine(4), load)


def test_a_limit_that_is_used_up(story):
    """Alice's second job waits for her limit, although nodes are free."""
    alice = [job(name, 0, "slot=1/node", 20, user="alice") for name in "AB"]
    jobs = [*alice, job("C", 5, "slot=1/node", 10, user="bob")]
    ask = story(machine(4), jobs, limits=[{"each": "user", "running-jobs": 1}])
    assert causes(ask("B")) == [(0, 20, "limit running-jobs of user alice", "A")]
    assert (
        "a limit, its own or that of its user, account, queue, QoS or array, has no room for it"
        in job_text(ask("B"))
    )
    assert ask("C").wait == 0


def test_a_job_that_waits_to_be_taken_in(story):
    jobs = [job(name, 0, "slot=1/node", 20, user="alice") for name in "AB"]
    ask = story(machine(4), jobs, limits=[{"each": "user", "submitted-jobs": 1, "over": "hold"}])
    assert causes(ask("B")) == [(0, 20, "limit submitted-jobs of user alice", None)]


def test_a_limit_on_single_jobs_is_the_cause_of_the_whole_wait(story):
    """Neither job can ever start; the answer has the words of the column `reason`, and no way out."""
    jobs = [
        job("long", 0, "slot=1/core", 60, 86400, user="tom", bank="bio"),
        job("wide", 0, "slot=4/core", 60, 3600, user="uma", bank="geo"),
        job("ok", 0, "slot=1/core", 3600, user="tom", bank="bio"),
    ]
    limits = [
        {"account": "bio", "each": "job", "duration": "6h", "over": "hold"},
        {"user": "uma", "each": "job", "cores": 2, "over": "hold"},
    ]
    ask = story(machine(4, cores=4), jobs, limits=limits)
    for name, cause, reason in (
        ("long", "limit duration of a job of account bio",
         "held for ever: a job of account bio may request at most 6h, the job asks for 1d"),
        ("wide", "limit cores of a job of user uma",
         "held for ever: a job of user uma may use at most 2 cores, the job asks for 4 cores"),
    ):  # fmt: skip
        answer = ask(name)
        assert causes(answer) == [(0, 3600, cause, None)]
        assert answer.periods[0].detail == reason
        assert answer.sooner == ()
        assert reason in job_text(answer)
    assert ask("ok").wait == 0


def test_a_limit_says_who_uses_it_up(story):
    jobs = [
        job("A", 0, "slot=3/core", 20, user="uma"),
        job("B", 0, "slot=5/core", 30, user="uma"),
        job("C", 5, "slot=2/core", 10, user="uma"),
    ]
    answer = story(machine(4, cores=4), jobs, limits=[{"each": "user", "cores": 9}])("C")
    assert causes(answer) == [(5, 20, "limit cores of user uma", "B")]
    assert answer.periods[0].detail == (
        "user uma may use 9 cores, and 8 cores are used (uma 8 cores); the job asks for 2 cores"
    )
    assert [(one.id, one.amount, one.until) for one in answer.limit_users] == [
        ("B", "5 cores", 30),
        ("A", "3 cores", 20),
    ]


def test_hours_ahead_fall_while_jobs_run(story):
    """C asks for 20 of 45 core-seconds; A has 30 ahead at 5, and at most 25 from the whole second 8 on."""
    jobs = [job("A", 0, "slot=2/core", 20, user="uma"), job("C", 5, "slot=2/core", 10, user="uma")]
    limits = [{"each": "user", "running-core-hours": 0.0125}]
    answer = story(machine(1, cores=4), jobs, limits=limits)("C")
    assert causes(answer) == [(5, 8, "limit running-core-hours of user uma", "A")]


def test_a_job_that_is_over_a_limit_is_not_in_the_way(story):
    """The first in the queue waits for its limit, so C waits for the reservation of W."""
    jobs = [
        job("A", 0, "slot=3/node", 20, user="uma"),
        job("B", 1, "slot=1/node", 20, user="uma"),
        job("W", 2, "slot=4/node", 20, user="tom"),
        job("C", 3, "slot=1/node", 40, user="tom"),
    ]
    answer = story(machine(4), jobs, limits=[{"user": "uma", "running-jobs": 1}])("C")
    assert causes(answer)[0] == (3, 40, "reservation", "W")


@pytest.mark.parametrize("policy", ["easy", "conservative", "hybrid"])
def test_the_longest_limit_that_starts_at_once_under_every_policy(tmp_path, monkeypatch, policy):
    """W is to start at 60; D may run beside A until then, which is 58 s after its submission."""
    monkeypatch.chdir(tmp_path)
    rows = [("A", 0, 3, 60), ("W", 1, 4, 30), ("D", 2, 1, 90)]
    lines = [
        f"- {{id: {name}, submit: {at}, shape: slot={nodes}/node, runtime: 30, duration: {limit}}}"
        for name, at, nodes, limit in rows
    ]
    (tmp_path / "jobs.yaml").write_text("\n".join(lines))
    command = ["run", "tiny", "jobs.yaml", "-o", "run", "--quiet", "--queue-policy", policy]
    assert main(command) == 0
    answer = load_run("run").why("D")
    assert answer.periods[0].cause == "reservation"
    assert "at 0:00:02: with a limit of at most 58 s" in answer.sooner


def test_maintenance_is_named_with_the_limit_that_ends_before_it(story):
    outage = Outage(Idset.parse("0-3"), 50, 80, "maintenance")
    answer = story(machine(4), [job("A", 2, "slot=4/node", 3, 60)], outages=(outage,))("A")
    assert causes(answer) == [(2, 50, "maintenance", None), (50, 80, "unavailable", None)]
    assert answer.sooner == ("at 0:00:02: with a limit of at most 48 s",)
    assert [(one.kind, one.start, one.end) for one in answer.outages] == [("maintenance", 50, 80)]


def test_a_job_runs_into_maintenance_only_from_the_time_on_that_its_limit_reaches_it(story):
    """B is held back by the reservation of W until 10, and from then on by the maintenance at 40."""
    jobs = [job("A", 0, "slot=3/node", 60), job("W", 1, "slot=4/node", 5), job("B", 2, "slot=1/node", 30)]
    outage = Outage(Idset.parse("3"), 40, 55, "maintenance")
    answer = story(machine(4), jobs, "fcfs", outages=(outage,))("B")
    assert causes(answer)[:3] == [
        (2, 10, "order", "W"),
        (10, 40, "maintenance", None),
        (40, 55, "unavailable", None),
    ]


def test_an_advance_reservation_is_named_with_its_hours_and_the_limit_that_ends_before_it(story):
    reserved = [{"name": "monthly", "start": 100, "duration": 50, "nodes": 2, "announced": 0}]
    answer = story(machine(2), [job("A", 10, "slot=1/node", 20, 300)], reservations=reserved)("A")
    assert causes(answer) == [(10, 150, "advance-reservation", None)]
    assert answer.sooner == ("at 0:00:10: with a limit of at most 1 min 30 s",)
    assert [(one.name, one.start, one.end) for one in answer.reservations] == [("monthly", 100, 150)]
    assert "fitted, but the advance reservation monthly is in the way" in job_text(answer)


def test_stranded_units_are_named_with_their_nodes_and_holders(story):
    """The gpus of n0 have no core beside them, and the cores of n1 no gpu."""
    jobs = [
        job("fat", 0, "slot/[core=4;gpu]", 50, constraint="x"),
        job("b1", 0, "slot/[core;gpu=2]", 50, constraint="y"),
        job("thin", 1, "slot/[core;gpu]", 50),
    ]
    cluster = machine(2, cores=4, gpus=2, properties={"x": "0", "y": "1"})
    answer = story(cluster, jobs)("thin")
    assert causes(answer) == [(1, 50, "placement", None)]
    assert [(one.host, one.idle, one.held) for one in answer.idle] == [
        ("n1", {"core": 3, "gpu": 0}, (("b1", "gpu", 2),)),
        ("n0", {"core": 0, "gpu": 1}, (("fat", "core", 4),)),
    ]
    assert "n0    no cores, 1 gpu   job fat (4 cores)" in job_text(answer)
    assert job_document(answer)["idle"][0]["host"] == "n1"


def test_whole_nodes_count_only_where_the_constraint_lets_them_serve(story):
    """Both nodes with A are in use; the idle one with B is no help, and neither is its former user."""
    jobs = [
        job("other", 0, "slot=1/node", 3, constraint="B"),
        job("one", 0, "slot=2/node", 100, constraint="A"),
        job("two", 1, "slot=1/node", 100, constraint="A"),
    ]
    answer = story(machine(3, cores=4, properties={"A": "0-1", "B": "2"}), jobs)("two")
    assert causes(answer) == [(1, 100, "short of node", None)]
    assert [holder.id for holder in answer.holders] == ["one"]
    assert "short of node (with A)" in job_text(answer)


def test_the_time_that_a_job_ran_before_it_was_queued_again_is_no_shortage(story):
    outage = Outage(Idset.parse("0"), 5, 9, "failure")
    answer = story(machine(1), [job("A", 0, "slot=1/node", 20)], outages=(outage,))("A")
    assert causes(answer) == [(0, 5, "interrupted", None), (5, 9, "unavailable", None)]


def test_a_job_behind_one_that_waits_for_a_limit_that_blocks(story):
    """B waits for the limit of uma, which blocks: C would fit beside A."""
    jobs = [
        job("A", 0, "slot=1/node", 5, user="uma"),
        job("B", 1, "slot=1/node", 5, user="uma"),
        job("C", 2, "slot=1/node", 5, user="vic"),
    ]
    ask = story(machine(4), jobs, limits=[{"each": "user", "running-jobs": 1, "blocks": True}])
    assert [part[2] for part in causes(ask("B"))] == ["limit running-jobs of user uma"]
    assert causes(ask("C")) == [(2, 5, "blocked", "B")]
    assert "fitted, but job B was before it and waited for a limit that blocks" in job_text(ask("C"))


def test_a_job_that_never_started_because_its_allocation_would_be_above_a_limit(story, tmp_path):
    groups = [{"name": "large", "count": 1, "cores": 4}, {"name": "small", "count": 1, "cores": 2}]
    (tmp_path / "cluster.json").write_text(json.dumps({"groups": groups}))
    large_first = load_cluster(tmp_path / "cluster.json")
    jobs = [job("A", 0, "slot=1/node/core=2", 5), job("B", 1, "slot=1/core", 9)]
    limits = [{"cores": 3, "each": "job", "over": "hold"}]
    answer = story(large_first, jobs, match_policy="firstnodex", limits=limits)("A")
    (period,) = answer.periods
    assert period.cause == "limit cores of a job"
    assert period.detail == "a job may use at most 3 cores, the free resources for the job have 4 cores"
