"""The summary: every figure named, described and written whole."""

from __future__ import annotations

import json
import math

import pytest

from simsched.report.data.tables import RunTables
from simsched.report.metrics.summary import METRICS, metric, summarise, summary_text
from simsched.report.run_views import load_run


def test_the_story_in_figures(story, make_timeline):
    figures = summarise(story, make_timeline(story, {"node": 4, "core": 16}), {"node": 4, "core": 16})
    expected = {
        "jobs": 5,
        "jobs_run": 3,
        "jobs_completed": 2,
        "jobs_timeout": 1,
        "jobs_infeasible": 1,
        "jobs_dropped": 1,
        "makespan": 140,
        "mean_wait": 170 / 3,
        "median_wait": 80,
        "max_wait": 90,
        "share_waited": 2 / 3,
        "mean_turnaround": 320 / 3,
        "mean_bounded_slowdown": 14 / 3,
        "utilisation_core": 1840 / 2240,
        "goodput": 1680 / 2240,
        "max_queue_length": 2,
        "loss_of_capacity": 0,
    }
    for name, value in expected.items():
        assert figures[name] == pytest.approx(value), name


def test_every_figure_is_a_float_and_has_a_unit_and_a_meaning(story, make_timeline):
    figures = summarise(story, make_timeline(story, {"node": 4, "core": 16}), {"node": 4, "core": 16})
    assert {k.name for k in METRICS} <= set(figures)
    for name, value in figures.items():
        assert isinstance(value, float)
        assert metric(name).unit, name
        assert metric(name).meaning, name


def test_nothing_ran_gives_nan_and_no_error(make_jobs, make_timeline):
    jobs = make_jobs([{"result": "INFEASIBLE", "reason": "never"}])
    timeline = make_timeline(make_jobs([{"start": 0, "end": 1}]), {"core": 1}).head(0)
    figures = summarise(jobs, timeline, {"core": 1})
    assert figures["jobs"] == 1
    assert math.isnan(figures["mean_wait"])
    assert math.isnan(figures["utilisation_core"])


def test_an_empty_run(make_jobs, make_timeline):
    figures = RunTables.from_columns({}, {}, {}).summary
    assert figures["jobs"] == 0


def test_load_run_reads_the_summary_that_is_written(write_run, story):
    folder = write_run("easy", story)
    figures = load_run(folder).summary
    (folder / "summary.json").write_text(summary_text(figures))
    stored = json.loads((folder / "summary.json").read_text())
    assert stored["max_wait"] == 90
    assert stored["fragmentation_gpu"] is None
    read = load_run(folder).summary
    for name, value in figures.items():
        assert read[name] == pytest.approx(value, nan_ok=True), name
