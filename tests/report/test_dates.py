"""Dates in tables, text, pages and pictures of a run whose log has them."""

from __future__ import annotations

import json
import re
from datetime import datetime

import pytest

from simsched import load_cluster, load_workload, simulate
from simsched.cli import main
from simsched.errors import ConfigError
from simsched.formats.rfc.clock import Clock, parse_date
from simsched.report import groups, text_report
from simsched.report.data.gantt import chart
from simsched.report.data.gantt_view import GanttView, part_of
from simsched.report.metrics.agreement import agreement
from simsched.report.run_views import load_run

pytest.importorskip("matplotlib")
pytest.importorskip("bokeh")

HEADER = "; UnixStartTime: 1711785600\n; TimeZoneString: Europe/Berlin\n"  # Saturday 2024-03-30T09:00 there
JOBS = [(0, 10, 3600), (3600, 600, 7200), (90000, 0, 3600), (180000, 0, 3600)]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The same log with and without dates, simulated on one machine."""
    monkeypatch.chdir(tmp_path)
    for name, header in (("dated", HEADER), ("plain", "")):
        rows = (
            f"{n} {at} {wait} {run} 4 -1 -1 4 7200 -1 1 {n % 2 + 1} 1 -1 1 -1 -1 -1"
            for n, (at, wait, run) in enumerate(JOBS, 1)
        )
        (tmp_path / f"{name}.swf").write_text(header + "\n".join(rows) + "\n")
        assert main(["run", "tiny", f"{name}.swf", "-o", name, "--quiet"]) == 0
    return load_run("dated"), load_run("plain")


def test_dates_change_no_table_and_only_add_the_clock_to_the_record(runs, tmp_path):
    for file in ("timeline.parquet", "nodes.parquet", "summary.json", "allocations.jsonl"):
        assert (tmp_path / "dated" / file).read_bytes() == (tmp_path / "plain" / file).read_bytes()
    dated, plain = runs
    assert dated.jobs.equals(plain.jobs)
    assert dated.meta.keys() - plain.meta.keys() == {"clock"}
    assert dated.meta["clock"] == {"origin": 1_711_785_600, "zone": "Europe/Berlin", "zone_assumed": False}


def test_the_text_page_names_dates_and_zone_once(runs):
    dated, plain = (text_report.page(run) for run in runs)
    assert "dates 2024-03-30T09:00:00 to 2024-04-01T13:00:00, Europe/Berlin\n" in dated
    assert dated.count("Europe/Berlin") == 1
    assert "dates" not in plain


def test_tables_of_jobs_keep_seconds_and_add_dates(runs):
    dated, plain = runs
    table = groups.of_jobs(dated)
    assert table["submit_date"].tolist()[:2] == ["2024-03-30T09:00:00", "2024-03-30T10:00:00"]
    assert table["end_date"].tolist()[3] == "2024-04-01T13:00:00"
    assert table.drop(columns=["submit_date", "start_date", "end_date"]).equals(groups.of_jobs(plain))
    head, first, *_ = groups.FORMATS["text"]([dated], "job").splitlines()
    assert ("submit (Europe/Berlin)" in head, "2024-03-30T09:00:00" in first) == (True, True)


def test_a_job_without_a_start_has_no_date():
    import numpy as np

    found = Clock(1_711_785_600, "Europe/Berlin").texts(np.array([0.0, np.nan, 1e12]))
    assert found == ["2024-03-30T09:00:00", None, "1000000000000 s"]


def test_why_answers_in_dates(runs, capsys):
    assert main(["why", "dated", "2"]) == 0
    out = capsys.readouterr().out
    assert "submitted at 2024-03-30T10:00:00" in out
    assert "times are local times: Europe/Berlin" in out
    assert main(["why", "plain", "2", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["clock"] is None


def test_a_gantt_view_takes_dates(runs):
    dated, plain = runs
    view = GanttView(start=parse_date("2024-03-31"), end=parse_date("2024-03-31T23:00"))
    part = part_of(dated, chart(dated), view)
    assert part.window == (15 * 3600, 37 * 3600)
    assert part.boxes["job"].tolist() == [2]
    with pytest.raises(ConfigError, match="has no dates"):
        part_of(plain, chart(plain), view)
    for start, end, message in (
        ("2025-01-01", None, "begins after the last job has ended, at 2024-04-01T13:00:00"),
        ("2024-04-01", "2024-03-31", "ends before it begins"),
        ("2024-01-01", "2024-01-02", "ends before the first submission, at 2024-03-30T09:00:00"),
    ):
        odd = GanttView(start=parse_date(start), end=end and parse_date(end))
        with pytest.raises(ConfigError, match=message):
            part_of(dated, chart(dated), odd)


def test_a_figure_takes_dates_as_texts(runs):
    dated, plain = runs
    assert dated.plot("gantt", start="2024-03-31", end="2024-03-31T23:00").axes[0].get_xlim() == (15, 37)
    with pytest.raises(ConfigError, match="has no dates"):
        plain.plot("gantt", start="2024-03-31")


def test_warm_up_and_drain_take_dates(runs, capsys):
    assert main(["report", "dated", "--warm-up", "2024-03-31", "--drain", "2024-04-01", "--by", "job"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()] == ["job", "3"]
    assert main(["report", "plain", "--warm-up", "2024-03-31"]) == 2
    assert "--warm-up: the workload has no dates" in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_has_dates_and_the_recorded_beside_the_simulated_waits(runs):
    from simsched.report.html.page import page

    text = page(runs[:1])
    assert "2024-03-30T09:00:00 to 2024-04-01T13:00:00, Europe/Berlin" in text
    assert "local time (Europe/Berlin)" in text
    assert "hour of the day (Europe/Berlin)" in text
    spec = json.loads(re.search(r'id="page-data">(.*?)</script>', text, re.DOTALL)[1])
    (time,) = [item["time"] for item in spec["charts"] if "time" in item]
    assert time["clock"] == {
        "origin": 1_711_785_600,
        "offsets": [[1_711_785_600, 3600], [1_711_846_800, 7200]],
    }
    table = re.search(r'<table id="[^"]*-recorded">(.*?)</table>', text, re.DOTALL)[1]
    assert re.findall(r"<tr><td[^>]*>(\w+)</td><td[^>]*>([^<]*)", table) == [
        ("recorded", "2 min 32 s"),
        ("simulated", "0 s"),
    ]
    assert "time since the first submission" in page(runs[1:])


def test_recorded_waits_of_a_log_without_starts(tmp_path):
    (tmp_path / "jobs.yaml").write_text("- {shape: slot/core, submit: 0, runtime: 60}\n")
    result = simulate(load_cluster("tiny"), load_workload(tmp_path / "jobs.yaml"))
    from simsched.report.data.tables import RunTables

    assert agreement(RunTables.from_result(result).jobs) is None


def labels_of(runs, draw):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4))
    draw(figure, runs)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    return [label.get_text() for label in axes.get_xticklabels()], axes


def test_axes_of_time_have_dates_and_days_of_the_week(runs):
    from simsched.report.figures.run_figures import calendar, utilisation

    labels, axes = labels_of(runs[:1], utilisation)
    assert axes.get_xlabel() == "local time (Europe/Berlin)"
    assert labels[0] == "12:00\nSat 2024-03-30"
    assert "00:00\nSun 2024-03-31" in labels
    at = dict(zip(labels, axes.get_xticks(), strict=True))
    # Sunday has 23 hours; the axis counts in hours or days from 09:00 of Saturday
    unit = at["00:00\nSun 2024-03-31"] / 15
    assert at["00:00\nMon 2024-04-01"] == pytest.approx(38 * unit)
    assert labels_of(runs[1:], utilisation)[1].get_xlabel().startswith("time since the first submission")
    assert labels_of(runs, utilisation)[1].get_xlabel().startswith("time since the first submission")
    weeks, axes = labels_of(runs[:1], calendar)
    assert weeks == ["2024-03-25", "2024-04-01"]
    cells = axes.images[0].get_array()
    # 23 hours of Sunday: one job of an hour on 4 of 16 cores
    assert [axes.get_yticklabels()[6].get_text(), round(float(cells[6, 0]), 3)] == ["Sun", round(25 / 23, 3)]
    assert float(cells[5, 0]) == pytest.approx(100 * (3 * 4) / (16 * 24))


@pytest.mark.parametrize(
    ("end", "step", "first"),
    [
        (datetime(2024, 3, 1, 12, 2), 30, datetime(2024, 3, 1, 12)),
        (datetime(2024, 3, 2, 12), 6 * 3600, datetime(2024, 3, 1, 12)),
        (datetime(2024, 4, 1), 7 * 86400, datetime(2024, 3, 4)),
        (datetime(2024, 9, 1), 60 * 86400, datetime(2024, 5, 1)),
        (datetime(2034, 9, 1), 24 * 30 * 86400, datetime(2026, 1, 1)),
    ],
)
def test_ticks_are_round_local_times(end, step, first):
    from simsched.report.figures.date_axis import ticks_between

    found = ticks_between(datetime(2024, 3, 1, 12), end, 6)
    assert (found[0], found[1][0]) == (step, first)
    assert len(found[1]) <= 7
