"""Slurm's two schedulers, as stories on two cores."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.errors import ConfigError
from simsched.schedule.policies.registry import queue_policy
from tests.simulation.test_against_naive import cluster_of


def job(number, submit, seconds, size, queue=None):
    spec = ss.Jobspec.from_shape(f"slot={size}/core", duration=seconds)
    return ss.Job(id=number, submit=submit, runtime=seconds, duration=seconds, jobspec=spec, queue=queue)


def starts(*jobs, queues=None, **options):
    workload = ss.Workload(jobs=jobs, name="made")
    run = ss.simulate(cluster_of([(2, 0)]), workload, "slurm", queue_options=options, queues=queues)
    return run.jobs["start"].tolist()


#: One core is busy until 100; the second job needs both; the third would fit beside the first.
WAITS = job(1, 0, 100, 1), job(2, 1, 100, 2), job(3, 2, 50, 1)


def test_backfill_comes_at_its_interval_and_the_main_scheduler_does_not_let_jobs_pass():
    assert starts(*WAITS, interval=30) == [0, 100, 30]
    assert starts(*WAITS, interval=1) == [0, 100, 2]


def test_a_job_that_would_delay_a_reservation_waits():
    late = job(3, 2, 150, 1)
    assert starts(*WAITS[:2], late, interval=30) == [0, 100, 200]
    assert starts(*WAITS[:2], late, interval=30, reservation_depth=0) == [0, 180, 30]
    assert starts(*WAITS[:2], late, interval=30, min_age_reserve=60) == [0, 180, 30]
    assert starts(*WAITS[:2], late, interval=30, window=10) == [0, 180, 30]


def test_a_blocked_partition_does_not_block_another():
    jobs = job(1, 0, 100, 1, "a"), job(2, 1, 100, 2, "a"), job(3, 2, 50, 1, "b"), job(4, 3, 10, 1, "a")
    assert starts(*jobs, queues={"a": {}, "b": {}}, interval=1000) == [0, 100, 2, 200]


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
        ({"interval": "inf"}, "interval is infinite"),
        ({"resolution": "x"}, "resolution"),
        ({"max_job_user": 0}, "max-job-user is 0"),
        ({"reservation_depth": -1}, "reservation-depth is -1"),
        ({"max_job_usr": 1}, "did you mean max-job-user"),
    ],
)
def test_wrong_options_are_one_error(options, says):
    with pytest.raises((ConfigError, ss.FormatError), match=says):
        queue_policy("slurm", options)
