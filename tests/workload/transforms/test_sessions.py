"""Sessions: batches and think times of a log, and users and sessions drawn anew."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from simsched.errors import ConfigError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.workload.job import Job, Workload
from simsched.workload.transforms.resample import sessions_of
from simsched.workload.transforms.steps import apply_steps

SPEC = Jobspec.from_shape("slot/core")
WEEK = 604_800


def job(number: int, submit: int, run: int = 100, wait: int | None = 0, user: str | None = "a") -> Job:
    return Job(id=number, submit=submit, jobspec=SPEC, runtime=run, wait=wait, user=user)


def applied(log: Workload, step: str, seed: int = 0) -> Workload:
    return apply_steps(log, [step], np.random.default_rng(seed))


#: two jobs at once, a reaction after 50 s to the second, and a new session after an hour
LOG = Workload((job(1, 0), job(2, 10, wait=40), job(3, 200), job(4, 220), job(5, 4000)))


def test_batches_and_sessions():
    ids = [[[one.id for one in batch] for batch in batches] for batches in sessions_of(LOG)["a"]]
    assert ids == [[[1, 2], [3, 4]], [[5]]]


def test_jobs_follow_the_last_job_of_the_batch_before():
    found = {one.id: (one.preceding, one.think_time) for one in applied(LOG, "sessions(20m)")}
    assert found == {1: (None, None), 2: (None, None), 3: (2, 50), 4: (2, 70), 5: (None, None)}


def test_the_threshold_and_its_default():
    links = lambda step: [one.id for one in applied(LOG, step) if one.preceding is not None]  # noqa: E731
    assert links("sessions") == [3, 4]
    assert links("sessions(40s)") == []
    assert links("sessions(2h)") == [3, 4, 5]


def test_users_do_not_react_to_other_users():
    log = Workload((job(1, 0, user="a"), job(2, 150, user="b"), job(3, 160, user=None)))
    assert all(one.preceding is None for one in applied(log, "sessions(20m)"))


def test_sessions_are_drawn_from_those_of_the_user():
    jobs = [
        job(number, week * WEEK + first, run=run, user=user)
        for number, (week, first, run, user) in enumerate(
            (week, minute * 60, 10 * (week + 1), user)
            for week in range(8)
            for user, minutes in (("a", (0, 5)), ("b", (30, 31, 32)))
            for minute in minutes
        )
    ]
    log = Workload(tuple(jobs))
    drawn = applied(log, "resample(sessions)", 1)
    assert len(drawn) == len(log)
    assert Counter(one.user for one in drawn) == Counter(one.user for one in log)
    assert sorted(one.submit for one in drawn) == sorted(one.submit for one in log)
    assert [one.runtime for one in drawn] != [one.runtime for one in log]
    for batches in sessions_of(drawn)["a"]:  # both jobs of a session are from one session of the log
        assert len({one.runtime for batch in batches for one in batch}) == 1


def test_users_are_drawn_with_replacement_and_keep_the_time_of_the_week():
    jobs = [
        job(10 * user + week, week * WEEK + 3600 * user, user=f"u{user}")
        for week in range(6)
        for user in range(8)
    ]
    log = Workload(tuple(sorted(jobs, key=lambda one: one.submit)))
    drawn = applied(log, "resample(users)", 3)
    assert len({one.user for one in drawn}) == 8
    origins = {one.user.partition(".")[0] for one in drawn if one.user}
    assert len(origins) < 8
    for one in drawn:
        assert one.user is not None
        assert one.submit % WEEK == 3600 * int(one.user.partition(".")[0][1:])
    assert len({one.id for one in drawn}) == len(drawn)
    assert applied(log, "resample(users)", 3).jobs == drawn.jobs


@pytest.mark.parametrize(
    ("log", "step", "message"),
    [
        (Workload((job(1, 0, user=None),)), "sessions", "no job has a user"),
        (Workload((job(1, 0, user=None),)), "resample(users)", "no job has a user"),
        (Workload((job(1, 0, wait=None),)), "sessions", "no job has a recorded wait"),
        (LOG, "sessions(-5)", "out of range"),
        (LOG, "resample(7d, 3)", "too many arguments"),
    ],
)
def test_refusals(log, step, message):
    with pytest.raises(ConfigError, match=message):
        applied(log, step)


def test_an_empty_workload_stays_empty():
    for step in ("sessions", "resample(users)", "resample(sessions)", "flurries(out)"):
        assert not applied(Workload(()), step).jobs
