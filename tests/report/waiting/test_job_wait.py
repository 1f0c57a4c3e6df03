"""The wait of a job by cause: stories whose reasons were worked out by hand, and sums that must hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ConfigError, RunError
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.idset import Idset
from simsched.report.run_views import load_run
from simsched.report.waiting.job_answer import job_text
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
    assert "a limit of its user, account, queue, QoS or array is used up" in job_text(ask("B"))
    assert ask("C").wait == 0


def test_a_job_that_waits_to_be_taken_in(story):
    jobs = [job(name, 0, "slot=1/node", 20, user="alice") for name in "AB"]
    ask = story(machine(4), jobs, limits=[{"each": "user", "submitted-jobs": 1, "over": "hold"}])
    assert causes(ask("B")) == [(0, 20, "limit submitted-jobs", None)]
