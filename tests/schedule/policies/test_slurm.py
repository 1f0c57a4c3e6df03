"""Slurm's two schedulers, as stories on two cores."""

from __future__ import annotations

import pytest
import yaml

import simsched as ss
from simsched.errors import ConfigError
from simsched.formats.cluster.recipe import parse_recipe
from simsched.graph.build.recipe import from_recipe
from simsched.schedule.policies.registry import queue_policy
from tests.simulation.test_against_naive import cluster_of


def job(number, submit, seconds, size, queue=None):
    spec = ss.Jobspec.from_shape(f"slot={size}/core", duration=seconds)
    return ss.Job(id=number, submit=submit, runtime=seconds, duration=seconds, jobspec=spec, queue=queue)


def starts(*jobs, queues=None, **options):
    workload = ss.Workload(jobs=jobs, name="made")
    run = ss.simulate(cluster_of([(2, 0)]), workload, "slurm", queue_options=options, queues=queues)
    return run.jobs["start"].tolist()


def recipe(*groups):
    return ss.Cluster(from_recipe(parse_recipe({"groups": [yaml.safe_load(group) for group in groups]})))


def task(number, submit, seconds, cores):
    spec = ss.Jobspec.from_shape(f"slot=1/core={cores}", duration=seconds)
    return ss.Job(id=number, submit=submit, runtime=seconds, duration=seconds, jobspec=spec)


def runs(machine, *jobs, policy="slurm", queues=None, **options):
    given = options if policy == "slurm" else {}
    workload = ss.Workload(jobs=jobs, name="made")
    return ss.simulate(machine, workload, policy, queue_options=given, queues=queues).jobs["start"].tolist()


#: One core is busy until 100; the second job needs both; the third would fit beside the first.
WAITS = job(1, 0, 100, 1), job(2, 1, 100, 2), job(3, 2, 50, 1)


def test_backfill_comes_at_its_interval_and_the_main_scheduler_does_not_let_jobs_pass():
    assert starts(*WAITS, interval=30) == [0, 100, 30]
    assert starts(*WAITS, interval=1) == [0, 100, 2]


def test_a_job_that_would_delay_a_reservation_waits():
    late = job(3, 2, 150, 1)
    assert starts(*WAITS[:2], late, interval=30) == [0, 100, 200]
    assert starts(*WAITS[:2], late, interval=30, reservation_depth=0) == [0, 180, 30]
    # A young job blocks no other in the main scheduler either, which runs at once.
    assert starts(*WAITS[:2], late, interval=30, min_age_reserve=60) == [0, 152, 2]
    assert starts(*WAITS[:2], late, interval=30, window=10) == [0, 180, 30]


def test_a_blocked_partition_takes_its_nodes_from_the_partitions_behind_it():
    jobs = job(1, 0, 100, 1, "a"), job(2, 1, 100, 2, "a"), job(3, 2, 50, 1, "b"), job(4, 3, 10, 1, "a")
    assert starts(*jobs, queues={"a": {}, "b": {}}, interval=1000) == [0, 100, 200, 200]


def test_a_blocked_partition_leaves_other_nodes_alone():
    """Partition `low` has a node of its own, which it keeps when `high` is blocked."""
    machine = recipe(
        "{name: a, count: 2, cores: 4, properties: [high, low]}",
        "{name: b, count: 1, cores: 4, properties: [low]}",
    )
    queues = {"high": {"requires": ["high"], "priority": 10}, "low": {"requires": ["low"], "priority": 1}}
    jobs = (
        job(1, 0, 100, 4, "high"),
        job(2, 1, 50, 8, "high"),
        job(3, 2, 500, 4, "low"),
        job(4, 2, 9, 4, "low"),
    )
    found = runs(machine, *jobs, queues=queues, interval=10_000)
    assert found == [0, 100, 2, 150]


def test_a_reservation_is_for_whole_nodes():
    """Job 3 would fit beside the reservation of job 2 by cores, and may not start on its node before it."""
    machine = recipe("{name: a, count: 1, cores: 4}")
    jobs = [task(1, 0, 100, 3), task(2, 1, 50, 2), task(3, 2, 200, 1), task(4, 3, 30, 1)]
    assert runs(machine, *jobs, interval=30) == [0, 100, 100, 30]
    assert runs(machine, *jobs, interval=30, policy="easy") == [0, 100, 2, 100]


def test_the_counters_of_a_backfill_pass_are_those_of_all_partitions():
    """Two partitions without a common node: two jobs are tested in a pass, not two of each."""
    machine = recipe(
        "{name: a, count: 1, cores: 2, properties: [a]}", "{name: b, count: 1, cores: 2, properties: [b]}"
    )
    queues = {"a": {"requires": ["a"]}, "b": {"requires": ["b"]}}
    jobs = [
        *(job(1, 0, 100, 1, "a"), job(2, 0, 100, 1, "b"), job(3, 1, 10, 2, "a"), job(4, 1, 10, 2, "b")),
        *(job(5, 2, 20, 1, "a"), job(6, 2, 20, 1, "b")),
    ]
    assert runs(machine, *jobs, queues=queues, interval=10) == [0, 0, 100, 100, 10, 10]
    assert runs(machine, *jobs, queues=queues, interval=10, max_job_test=2) == [0, 0, 100, 100, 110, 110]
    assert runs(machine, *jobs, queues=queues, interval=10, max_job_start=1) == [0, 0, 100, 100, 10, 20]


def test_a_young_job_blocks_its_partition_if_it_lacks_nodes():
    """Of the two nodes of `low`, `high` has taken one: its job of two nodes blocks whatever its age."""
    machine = recipe(
        "{name: a, count: 1, cores: 2, properties: [high, low]}",
        "{name: b, count: 1, cores: 2, properties: [low]}",
    )
    queues = {"high": {"requires": ["high"], "priority": 10}, "low": {"requires": ["low"], "priority": 1}}
    old = job(1, 0, 100, 1, "high"), job(2, 0, 100, 2, "high")
    two = ss.Job(
        id=3, submit=50, runtime=9, duration=9, queue="low", jobspec=ss.Jobspec.from_shape("slot=2/node")
    )
    jobs = [*old, two, job(4, 50, 9, 2, "low")]
    assert runs(machine, *jobs, queues=queues, interval=10_000, min_age_reserve=40) == [0, 100, 200, 209]
    jobs[2] = job(3, 50, 9, 4, "low")  # it may have its cores on one node: it does not block
    assert runs(machine, *jobs, queues=queues, interval=10_000, min_age_reserve=40) == [0, 100, 200, 50]


@pytest.mark.parametrize("last", ["slot=1/core", "slot=1/socket/core"])
@pytest.mark.parametrize(("seconds", "expected"), [(30, [0, 60, 210]), (0, [0, 70, 20])])
def test_a_job_behind_one_that_overruns_keeps_its_nodes(last, seconds, expected):
    """The node of job 1 cleans up from 10 to 60. Job 2 has both nodes from a moment after now on.

    A job of zero seconds needs the other node for no longer than that moment, and then cleans up, too. With a
    request within sockets no count decides, and the rule is the same.
    """
    machine = recipe("{name: a, count: 2, sockets: 1, cores: 2}")
    shapes = [("slot=1/node", 0, 10), ("slot=2/node", 1, 100), (last, 20, seconds)]
    jobs = [
        ss.Job(
            id=at,
            submit=submit,
            runtime=seconds,
            duration=seconds,
            jobspec=ss.Jobspec.from_shape(shape, duration=seconds),
        )
        for at, (shape, submit, seconds) in enumerate(shapes, 1)
    ]
    run = ss.simulate(
        machine,
        ss.Workload(jobs=tuple(jobs), name="made"),
        "slurm",
        queue_options={"interval": 1, "resolution": 1},
        epilog=(50, 50),
    )
    assert run.jobs["start"].tolist() == expected


def test_a_job_without_a_place_in_the_window_takes_no_reservation():
    """Job 3 is behind a job without a limit, and never has a place: the one reservation is that of job 4."""
    machine = recipe("{name: a, count: 3, cores: 1}")
    endless = ss.Job(id=1, submit=0, runtime=9999, jobspec=ss.Jobspec.from_shape("slot=1/core"))
    jobs = endless, job(2, 0, 100, 1), job(3, 1, 10, 3), job(4, 2, 10, 2), job(5, 3, 500, 1)
    given = {"interval": 1, "reservation_depth": 1}
    assert runs(machine, *jobs, **given, window=float("inf"))[3:] == [100, 110]
    assert runs(machine, *jobs, **given)[3:] == [100, 110]


def test_the_main_scheduler_may_wait_too():
    assert starts(job(1, 0, 10, 1), job(2, 1, 10, 1), interval=50, sched_interval=20) == [0, 20]


def test_passes_stop_when_nothing_changes():
    """A job behind a queue that never starts does not keep the run alive."""
    jobs = job(1, 0, 10, 1, "a"), job(2, 1, 10, 1, "b")
    run = ss.simulate(
        cluster_of([(2, 0)]),
        ss.Workload(jobs=jobs, name="made"),
        "slurm",
        queues={"a": {}, "b": {"closed": [[0, "inf"]]}},
    )
    assert run.jobs["result"].tolist()[0] == "COMPLETED"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"interval": -1}, "interval"),
        (
            {"interval": "inf"},
            "interval: the time has no end .expected seconds, or a finite duration",
        ),
        ({"resolution": "x"}, "resolution"),
        (
            {"max_job_user": 0},
            "user: 0 is out of range .expected a whole number of 1 or more, or none",
        ),
        ({"reservation_depth": -1}, "policy-options.reservation_depth: -1 is out of range"),
        ({"max_job_usr": 1}, "did you mean max-job-user"),
    ],
)
def test_wrong_options_are_one_error(options, says):
    with pytest.raises((ConfigError, ss.FormatError), match=says):
        queue_policy("slurm", options)
