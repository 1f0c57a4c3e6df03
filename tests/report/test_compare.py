"""Bootstrap intervals and paired comparison."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from simsched.report import text_report
from simsched.report.compare import compare, compare_runs, figures_of, paired
from simsched.report.metrics.intervals import bootstrap
from simsched.report.run_views import load_run


def test_the_interval_of_a_mean_agrees_with_the_normal_one():
    values = pd.Series(np.random.default_rng(1).normal(5, 2, 2000))
    found = bootstrap(values)
    half = 1.96 * 2 / math.sqrt(2000)
    assert found.estimate == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.02)
    assert found.high == pytest.approx(values.mean() + half, abs=0.02)


def test_a_statistic_of_ones_own_gives_the_same_as_the_fast_mean():
    values = pd.Series(np.arange(50.0))
    blocks = pd.Series(np.arange(50) // 5)
    fast = bootstrap(values, blocks=blocks, rng=np.random.default_rng(3))
    slow = bootstrap(values, lambda x: float(x.mean()), blocks=blocks, rng=np.random.default_rng(3))
    assert (fast.low, fast.high) == (pytest.approx(slow.low), pytest.approx(slow.high))


def test_blocks_widen_the_interval_of_dependent_values():
    days = np.repeat(np.random.default_rng(0).normal(0, 1, 40), 50)
    values, blocks = pd.Series(days), pd.Series(np.repeat(np.arange(40), 50))
    alone, together = bootstrap(values), bootstrap(values, blocks=blocks)
    assert together.high - together.low > 5 * (alone.high - alone.low)


def test_about_95_of_100_intervals_hold_the_truth():
    rng = np.random.default_rng(7)
    held = sum(
        bootstrap(pd.Series(rng.exponential(3, 200)), resamples=400, rng=rng).holds(3) for _ in range(200)
    )
    assert 178 <= held <= 199


def test_no_value_gives_no_interval():
    assert math.isnan(bootstrap(pd.Series([math.nan])).low)


def test_the_same_seed_gives_the_same_interval(story):
    values = pd.Series([1.0, 5.0, 9.0, 2.0])
    assert bootstrap(values, rng=np.random.default_rng(1)) == bootstrap(values, rng=np.random.default_rng(1))


def test_paired_differences_by_hand(story):
    sooner = story.assign(start=story["start"] - [0, 50, 80, 0, 0], end=story["end"] - [0, 50, 80, 0, 0])
    both = paired(story, sooner)
    assert both["id"].tolist() == ["a", "b", "c"]
    assert both["wait_difference"].tolist() == [0, -50, -80]
    assert both["bounded_slowdown_difference"].tolist() == [0, -5, -2]


def test_pairing_is_by_id_and_not_by_row(make_schedule):
    a = make_schedule(1)
    shuffled = a.sample(frac=1, random_state=1, ignore_index=True)
    assert (paired(a, shuffled)["wait_difference"] == 0).all()


def test_a_run_that_is_an_hour_quicker_waits_less(make_schedule):
    a = make_schedule(2, count=200).assign(submit=lambda f: f["submit"] * 400)
    a = a.assign(start=a["submit"] + 7200.0, end=a["submit"] + 9000.0)
    b = a.assign(start=a["start"] - 3600, end=a["end"] - 3600)
    found = compare(a, b)
    assert found.verdict == "waits less"
    assert compare(b, a).verdict == "waits more"
    assert found.wait.estimate == pytest.approx(-3600)
    assert (found.sooner, found.same, found.later) == (1, 0, 0)
    assert compare(a, a).verdict == "within noise"


def test_runs_without_a_common_job(story):
    found = compare(story, story.assign(id=["x", "y", "z", "u", "v"]))
    assert found.jobs == 0
    assert found.verdict == "within noise"


def test_figures_of_runs_keep_every_figure():
    runs = [SimpleNamespace(summary={"x": 1.0, "y": 2.0}), SimpleNamespace(summary={"y": 3.0, "z": 4.0})]
    table = dict(figures_of(runs))
    assert [*table] == ["x", "y", "z"]
    assert table["y"] == [2, 3]
    assert math.isnan(table["x"][1])


def test_equal_numbers_of_different_workloads_are_not_paired(write_run, story):
    """Traces number their jobs from 1; only jobs of one workload are compared one by one."""
    run = load_run(write_run("a", story))
    same = load_run(write_run("b", story.assign(start=story["start"] + 5, end=story["end"] + 5)))
    inputs = [{"role": "workload", "name": "other.swf", "sha256": "1" * 64}]
    moved = story.assign(submit=story["submit"] + 7, start=story["start"] + 7, end=story["end"] + 7)
    other = load_run(write_run("c", moved, inputs=inputs))
    longer = load_run(write_run("d", story.assign(duration=500.0), inputs=inputs))
    assert compare_runs(run, same).jobs == 3
    assert compare_runs(run, other).jobs == 0
    assert compare_runs(run, longer).jobs == 3  # another file, the same jobs
    assert "c and a have no job in common" in text_report.comparison([run, other])
