"""The recorded beside the simulated waits: figures by hand, and against independent programs."""

import math

import numpy as np
import pandas as pd
import pytest

from simsched.formats.rfc.clock import Clock
from simsched.report.metrics.agreement import (
    LEAST_WAIT,
    agreement,
    agreement_by,
    spearman,
    wait_error,
)
from simsched.report.metrics.classes import hour_of_week


def table(rows):
    """Jobs of (submit, wait, recorded wait, run time, cores)."""
    frame = pd.DataFrame(rows, columns=["submit", "wait", "recorded_wait", "run", "cores"], dtype=float)
    frame["start"] = frame.submit + frame.pop("wait")
    frame["end"] = frame.start + frame.pop("run")
    frame["nodes"], frame["procs"], frame["queue"], frame["user"] = 1.0, math.nan, "q", "u"
    return frame


def test_figures_of_a_few_jobs():
    found = agreement(table([(0, 0, 600, 100, 2), (0, 7200, 3600, 100, 1), (86400, 120, 30, 10, 4)]))
    assert found.jobs == 3
    assert found.recorded.mean == 1410
    assert found.simulated.mean == 2440
    assert found.recorded.slowdown == pytest.approx((7 + 37 + 4) / 3)
    assert found.simulated.work_rate == pytest.approx(340 / 86530)
    assert (found.near, found.twofold) == pytest.approx((2 / 3, 2 / 3))
    assert math.log(found.factor) == pytest.approx((math.log(10) + 2 * math.log(2)) / 3)
    assert (found.days, found.day_difference) == (2, (1500 + 90) / 2)
    assert found.day_rank == pytest.approx(1)


def test_jobs_without_a_recorded_start_and_jobs_that_did_not_run_do_not_count():
    rows = [(0, 5, 5, 10, 1), (0, 5, math.nan, 10, 1), (0, math.nan, 7, 10, 1)]
    assert agreement(table(rows)).jobs == 1
    assert agreement(table(rows[1:])) is None
    assert agreement(table([])) is None


def test_a_perfect_run_has_no_error_and_each_kind_of_error_counts():
    rng = np.random.default_rng(1)
    real = rng.exponential(3600, 4000) + LEAST_WAIT
    assert wait_error(real, real) == 0
    shuffled = rng.permutation(real)
    assert wait_error(shuffled, real) > 0.5  # the mean is right
    assert wait_error(10 * real, real) == pytest.approx(2 * math.log(10) / 3)  # the order is right
    assert wait_error(real + rng.normal(0, 1, 4000), real) < 0.01


@pytest.mark.parametrize("seed", range(5))
def test_rank_correlation_is_that_of_pandas(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 12, (2, 300)).astype(float)
    expected = pd.Series(a).rank().corr(pd.Series(b).rank())
    assert spearman(a, b) == pytest.approx(expected)
    assert math.isnan(spearman(a, np.ones(300)))


def test_groups_have_the_figures_of_their_jobs():
    jobs = table([(0, 0, 600, 100, 2), (0, 7200, 3600, 100, 1), (90000, 120, 30, 10, 1)])
    jobs["queue"] = ["a", "b", "a"]
    by_queue = agreement_by(jobs, "queue")
    assert by_queue["jobs"].to_dict() == {"a": 2, "b": 1}
    assert by_queue.loc["a", "recorded_mean_wait"] == 315
    assert by_queue.loc["b", "simulated_p95_wait"] == 7200
    assert by_queue["simulated_use"].sum() == pytest.approx(310 / 90130)
    assert list(agreement_by(jobs, "size").index) == ["1", "2"]
    assert list(agreement_by(jobs, "all")["jobs"]) == [3]
    assert list(agreement_by(jobs, "hour").index) == ["day 1 00", "day 2 01"]


def test_hours_of_the_week_have_names_where_times_are_dates():
    monday = 1_704_067_200  # 2024-01-01, a Monday
    jobs = table([(9 * 3600, 0, 0, 1, 1), (86400, 0, 0, 1, 1)])
    assert list(hour_of_week(jobs, Clock(monday, "UTC"))) == ["Mon 09", "Tue 00"]
    assert list(hour_of_week(jobs)) == ["day 1 09", "day 2 00"]
