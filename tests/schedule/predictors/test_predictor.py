"""Predictors by name, what they predict, and the correction of short predictions."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.errors import ConfigError
from simsched.schedule.predictors.predictor import CORRECTIONS, PREDICTORS, find_predictor
from tests.simulation.test_against_naive import cluster_of


def predictions(name, *runs, runtimes=()):
    """The prediction after each run of one user."""
    predictor = find_predictor(name)(runtimes)
    found = [predictor.predict(0, 7)]
    for seconds in runs:
        predictor.learn(7, seconds)
        found.append(predictor.predict(0, 7))
    return found


def test_the_last_two_run_times_of_a_user_in_whole_seconds():
    assert predictions("last-two", 10, 21, 4) == [None, None, 15, 12]


def test_users_are_apart():
    predictor = find_predictor("last-two")([])
    for user in (1, 1, 2):
        predictor.learn(user, 10)
    assert (predictor.predict(0, 1), predictor.predict(0, 2)) == (10, None)


def test_a_quantile_is_one_of_the_recent_run_times():
    assert predictions("quantile(0.5, 4)", 8, 2, 6, 4, 100) == [None, 8, 2, 6, 4, 4]
    assert predictions("quantile", *range(1, 12))[-2:] == [9, 10]  # nine tenths of ten


@pytest.mark.parametrize(
    ("name", "longer"),
    [
        ("last-two", [160, 400, 1000]),
        ("last-two(steps)", [160, 400, 1000]),
        ("last-two(doubling)", [200, 200, 200]),
        ("last-two(limit)", [float("inf")] * 3),
        ("quantile(0.5, 4, doubling)", [200, 200, 200]),
        ("quantile(doubling)", [200, 200, 200]),
    ],
)
def test_the_last_argument_is_the_rule_of_correction(name, longer):
    """The prediction after one of 100 s, with none, one and two corrections before."""
    rule = CORRECTIONS[find_predictor(name)([]).correction]
    assert [rule(100, times) for times in range(3)] == longer


def test_the_limit_is_no_predictor_and_perfect_knows_all():
    assert find_predictor("limit") is None
    assert predictions("perfect", 5, runtimes=[42]) == [42, 42]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("last-tow", "did you mean 'last-two'"),
        ("perfect(2)", "perfect takes no arguments"),
        ("last-two(7)", "unknown correction '7'"),
        ("last-two(doubling, limit)", "last-two has 2 arguments"),
        ("last-two(duobling)", "did you mean 'doubling'"),
        ("quantile(0, 3)", "P above 0 and at most 1"),
        ("quantile(nan)", "P above 0 and at most 1"),
        ("quantile(0.5, 0)", "N from 1 to 1000"),
        ("quantile(0.5, 3, 4)", "unknown correction '4'"),
        ("quantile(0.5, 3, 4, limit)", "quantile has 4 arguments"),
        ("quantile(limit, 3)", "P above 0 and at most 1"),
        ("quantile(0.5", "unknown predictor"),
    ],
)
def test_names_that_are_not_predictors(name, says):
    with pytest.raises(ConfigError) as error:
        find_predictor(name)
    assert says in str(error.value)


def test_each_predictor_has_a_sentence():
    assert all(maker.__doc__ for maker in PREDICTORS.values())


def job(number, submit, runtime, limit, size):
    spec = ss.Jobspec.from_shape(f"slot={size}/core", duration=limit)
    return ss.Job(id=number, submit=submit, runtime=runtime, duration=limit, jobspec=spec, user="ada")


def test_a_short_prediction_is_corrected_and_the_reservation_moves():
    """Two jobs of 100 s teach that the third runs 100 s; it runs 500 s.

    The fourth needs both cores: its reservation is at 300 at first, then at 360, 660 and 1200. The sixth is
    predicted to run 55 s (the mean of 100 and 10). At 250 it would end after 300; at 300 it ends by 360.
    """
    jobs = [
        job(1, 0, 100, 1000, 1),
        job(2, 0, 100, 1000, 1),
        job(3, 200, 500, 1000, 1),
        job(4, 201, 10, 1000, 2),
        job(5, 202, 10, 10, 1),
        job(6, 250, 10, 100, 1),
    ]
    run = ss.simulate(cluster_of([(2, 0)]), ss.Workload(jobs=tuple(jobs), name="made"), "easy+")
    assert run.jobs["start"].tolist() == [0, 0, 200, 700, 202, 300]


def test_limits_end_jobs_under_a_predictor():
    jobs = [job(1, 0, 5, 100, 1), job(2, 0, 5, 100, 1), job(3, 10, 500, 100, 1)]
    run = ss.simulate(cluster_of([(2, 0)]), ss.Workload(jobs=tuple(jobs), name="made"), "easy++")
    assert run.jobs["end"].tolist() == [5, 5, 110]
    assert run.jobs["result"].tolist()[-1] == "TIMEOUT"


def test_a_run_time_of_ages_takes_few_corrections():
    """Corrections of 100 h each would be 17 million; beyond 1000 h each adds a tenth."""
    spec = ss.Jobspec.from_shape("slot=1/core")
    rows = (("a", 0, 600), ("b", 0, 600), ("c", 3600, 6e12))
    jobs = [ss.Job(id=name, submit=at, runtime=runs, jobspec=spec, user="u") for name, at, runs in rows]
    run = ss.simulate("tiny", ss.Workload(jobs=tuple(jobs)), "easy++")
    assert run.jobs["end"].tolist()[2] == 3600 + 6e12
    longer = CORRECTIONS["steps"]
    assert [longer(3600 * hours, 20) for hours in (10, 1000, 2000)] == [3600 * 110, 3600 * 1100, 3600 * 2200]
