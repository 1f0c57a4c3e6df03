"""JSON, CSV and Markdown: other programs read them back."""

from __future__ import annotations

import csv
import io
import json

import pytest

from simsched.report import export
from simsched.report.run_views import load_run
from simsched.text_table import markdown_table


@pytest.fixture
def runs(write_run, story, make_schedule):
    return [load_run(write_run("easy", story)), load_run(write_run("fcfs", make_schedule(1)))]


def test_json_is_strict_and_whole(runs):
    def refuse(name):
        raise AssertionError(name)

    document = json.loads(export.as_json(runs), parse_constant=refuse)
    first = document["runs"][0]
    assert first["summary"]["max_wait"] == 90
    assert first["summary"]["fragmentation_gpu"] is None
    assert first["cluster"] == {"name": "toy", "totals": {"node": 4, "core": 16}}
    assert first["queues"][1] == {
        "queue": "debug",
        "jobs": 1,
        "mean_wait": 90,
        "median_wait": 90,
        "p95_wait": 90,
        "mean_bounded_slowdown": 10,
        "core_hours": pytest.approx(80 / 3600),
        "share": pytest.approx(80 / 1840),
    }
    assert [r["example"] for r in first["reasons"]] == ["e", "d"]
    assert [row["size"] for row in first["sizes"]] == ["3-4", "5-8", "9-16"]
    assert sum(row["jobs"] for row in first["users"]) == 3
    assert sum(row["jobs"] for row in first["run_times"]) == sum(row["jobs"] for row in first["days"]) == 3
    assert first["inputs"][0]["name"] == "story.yaml"
    assert document["figures"]["max_wait"] == {"unit": "s", "meaning": "longest wait"}
    assert document["figures"].keys() == first["summary"].keys()
    assert document["comparisons"][0]["run"] == "fcfs"


def test_csv_has_a_row_a_figure_with_its_unit(runs):
    rows = list(csv.reader(io.StringIO(export.as_csv(runs))))
    assert rows[0] == ["metric", "unit", "easy", "fcfs"]
    figures = {row[0]: row[1:] for row in rows}
    assert figures["max_wait"][:2] == ["s", "90"]
    assert figures["fragmentation_gpu"] == ["share", "", ""]


def test_markdown_escapes_what_would_break_a_table():
    assert markdown_table(["", "a|b"], [["x\ny", "1"]]) == "|  | a\\|b |\n| :-- | --: |\n| x y | 1 |"


def test_markdown_tells_figures_reasons_and_pairs(runs):
    page = export.as_markdown(runs)
    assert "| max wait | 1 min 30 s |" in page
    assert "| INFEASIBLE | needs 5 nodes of 4 | 1 |" in page
    assert "**fcfs** against **easy**" in page


def test_numbers_that_json_does_not_have_are_null(write_run, story):
    run = load_run(write_run("odd", story))
    run.meta["config"] = {"until": float("inf"), "list": [float("nan"), 1]}
    assert json.loads(export.as_json([run]))["runs"][0]["config"] == {"until": None, "list": [None, 1]}
