"""Opening run directories: what is read, in which dtypes, and what is refused."""

from __future__ import annotations

import json
import shutil
import time

import duckdb
import numpy as np
import pandas as pd
import pytest

from simsched.errors import RunError
from simsched.report.columns import DTYPES, JOBS
from simsched.report.data.tables import RunTables
from simsched.report.run_views import load_run

#: the dtype of text: pandas has one of its own since version 3
TEXT = str(pd.Series(["a"]).astype("str").dtype)


def test_a_run_reads_back_what_was_written(write_run, story):
    run = load_run(write_run("easy", story))
    assert list(run.jobs.columns) == [c.name for c in JOBS]
    assert run.jobs["id"].tolist() == ["a", "b", "c", "d", "e"]
    assert run.jobs["start"].tolist()[:3] == [0.0, 100.0, 100.0]
    assert run.jobs["start"].isna().tolist() == [False, False, False, True, True]
    assert run.jobs["reason"].astype(object).tolist()[3] == "needs 5 nodes of 4"
    assert run.totals == {"node": 4, "core": 16}
    assert run.cluster_name == "toy"
    assert run.config["queue_policy"] == "easy"


def test_dtypes_are_the_documented_ones(write_run, story):
    jobs = load_run(write_run("easy", story)).jobs
    for column in JOBS:
        if column.name not in ("name", "bank"):  # no value at all
            documented = TEXT if DTYPES[column.kind] == "str" else DTYPES[column.kind]
            assert str(jobs[column.name].dtype) == documented, column.name


def test_infinite_durations_and_unknown_numbers_survive(write_run, story):
    jobs = load_run(write_run("easy", story)).jobs
    assert np.isinf(jobs["duration"][3])
    assert np.isnan(jobs["procs"][4])


def test_columns_that_are_not_there_become_empty_ones(write_run, story, make_timeline):
    timeline = make_timeline(story, {"core": 16})
    folder = write_run("easy", story[["id", "submit", "start", "end", "result", "cores"]], timeline)
    jobs = load_run(folder).jobs
    assert list(jobs.columns) == [c.name for c in JOBS]
    assert jobs["backfilled"].tolist() == [False] * 5
    assert jobs["user"].isna().all()


def test_columns_that_nobody_documented_are_kept(write_run, story, tmp_path):
    folder = write_run("easy", story)
    file = folder / "jobs.parquet"
    duckdb.sql(
        f"copy (select *, 7 as site_column from '{file}') to '{tmp_path}/more.parquet' (format parquet)"
    )
    shutil.move(tmp_path / "more.parquet", file)
    assert load_run(folder).jobs["site_column"].tolist() == [7] * 5


def test_more_names_than_categories_are_read_as_text(write_run, make_jobs, monkeypatch):
    monkeypatch.setattr("simsched.report.data.column_arrays.MAX_CATEGORIES", 3)
    jobs = make_jobs([{"name": f"job{i}", "start": 0, "end": 1} for i in range(10)])
    read = load_run(write_run("names", jobs)).jobs
    assert str(read["name"].dtype) == TEXT
    assert read["name"].tolist() == [f"job{i}" for i in range(10)]


@pytest.mark.parametrize("name", ["a[1-2]b", "what?", "star*", "it's", 'quo"te', "späße", "semi;colon"])
def test_any_directory_name_is_read_literally(write_run, story, name):
    assert len(load_run(write_run(name, story)).jobs) == 5


def test_the_stored_summary_is_preferred_and_null_is_nan(write_run, story):
    folder = write_run("easy", story)
    (folder / "summary.json").write_text('{"mean_wait": 12.5, "makespan": null, "note": "text"}')
    summary = load_run(folder).summary
    assert summary["mean_wait"] == 12.5
    assert np.isnan(summary["makespan"])
    assert "note" not in summary


def test_a_run_can_be_made_from_columns_in_memory():
    jobs = {"id": ["1"], "submit": [0], "start": [5], "end": [9], "result": ["COMPLETED"], "cores": [2]}
    timeline = {"time": [0, 5, 9], "used_core": [0, 2, 0], "queued_jobs": [1, 0, 0]}
    run = RunTables.from_columns(
        jobs, timeline, {"cluster": {"name": "x", "totals": {"core": 4}}}, name="mine"
    )
    assert run.summary["mean_wait"] == 5
    assert run.summary["utilisation_core"] == pytest.approx(2 * 4 / (4 * 9))
    assert run.allocations.empty
    assert not run.has_allocations
    assert repr(run) == "<Run mine: 1 jobs on x>"


def fault(folder) -> str:
    try:
        run = load_run(folder)
        _ = run.jobs, run.timeline, run.allocations
    except RunError as error:
        return str(error)
    return pytest.fail("no RunError")


def test_a_missing_directory(tmp_path):
    assert "nowhere: there is no such run directory (expected a dir" in fault(tmp_path / "nowhere")


def test_a_missing_directory_beside_runs(tmp_path):
    (tmp_path / "month-easy").mkdir()
    (tmp_path / "month-easy" / "run.json").write_text("{}")
    (tmp_path / "other").mkdir()
    message = fault(tmp_path / "monht-easy")
    assert f"did you mean {tmp_path / 'month-easy'}?" in message
    assert message.endswith(f"(expected one of the run directories there: {tmp_path / 'month-easy'})")


def test_a_file_is_not_a_run(tmp_path):
    (tmp_path / "file").write_text("")
    assert "this is a file (expected a run directory)" in fault(tmp_path / "file")


def test_a_foreign_directory(tmp_path):
    assert "it has no run.json" in fault(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "is not a JSON object"),
        ("{", "cannot be read"),
        ("\ud800".encode("utf-8", "surrogatepass"), "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"name": "other"}', "not written by simsched"),
        ('{"simsched": "9", "format": 9, "complete": true}', "run format 9 of simsched 9 is not known"),
        ('{"simsched": "1", "format": 1}', "the run did not finish"),
        ('{"simsched": "1", "format": 1, "complete": false}', "the run did not finish"),
        (
            '{"simsched": "1", "format": 1, "complete": true, "cluster": 3}',
            "got `int` at $.cluster",
        ),
        ('{"simsched": "1", "format": 1, "complete": true}', "jobs.parquet is missing"),
        (
            '{"simsched": "1", "complete": true, "cluster": {"totals": []}}',
            "got `array` at $.cluster.totals",
        ),
        (
            '{"simsched": "1", "complete": true, "cluster": {"targets": -1}}',
            ">= 0 at $.cluster.targets",
        ),
        (
            '{"simsched": "1", "complete": true, "inputs": ["x"]}',
            "got `str` at $.inputs[0]",
        ),
        (
            '{"simsched": "1", "complete": true, "inputs": [{"role": {}}]}',
            "expected `str | null`, got `object` at $.inputs[0].role",
        ),
        (
            '{"simsched": "1", "complete": true, "queue_stops": {"a": [[1]]}}',
            "expected `array` of length 2, got 1 at $.queue_stops[...][0]",
        ),
        (
            '{"simsched": "1", "complete": true, "wall_seconds": "long"}',
            "got `str` at $.wall_seconds",
        ),
        (
            '{"simsched": "1", "format": 1, "complete": true, "cluster": {"totals": {"core": "x"}}}',
            "expected `int`, got `str` at $.cluster.totals[...]",
        ),
    ],
)
def test_a_run_json_that_is_none(tmp_path, text, message):
    (tmp_path / "run.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert message in fault(tmp_path)


def test_tables_that_are_not_parquet(write_run, story):
    folder = write_run("easy", story)
    (folder / "timeline.parquet").write_bytes(b"PAR1 no")
    assert "timeline.parquet: cannot be read" in fault(folder)


def test_a_table_of_something_else(write_run, story):
    folder = write_run("easy", story)
    duckdb.sql(f"copy (select 1 as a) to '{folder}/jobs.parquet' (format parquet)")
    assert "jobs.parquet: there is no column 'end', 'id', 'result', 'start', 'submit'" in fault(folder)


@pytest.mark.parametrize(("column", "value"), [("submit", np.nan), ("submit", np.inf), ("end", np.inf)])
def test_times_that_cannot_be(write_run, story, make_timeline, column, value):
    timeline = make_timeline(story, {"core": 16})
    jobs = story.assign(**{column: story[column].astype(float).mask(story["id"] == "b", value)})
    assert f"column {column!r}, row 2: {value}" in fault(write_run("easy", jobs, timeline))


def test_a_dropped_record_may_have_told_no_time(write_run, story, make_timeline):
    """A bad line of a trace is a row of its own, and no reason to refuse all others."""
    bad = story.head(1).assign(id="bad", submit=np.nan, start=np.nan, end=np.nan, result="DROPPED")
    jobs = pd.concat([story, bad], ignore_index=True)
    run = load_run(write_run("easy", jobs, make_timeline(story, {"core": 16})))
    assert run.jobs["submit"].isna().sum() == 1
    plain = load_run(write_run("plain", story, make_timeline(story, {"core": 16})))
    same = ("jobs_run", "mean_wait", "makespan")
    assert [run.summary[name] for name in same] == [plain.summary[name] for name in same]


@pytest.mark.parametrize("times", [[0.0, 5.0, 4.0], [0.0, np.nan, 4.0], [0.0, 1.0, np.inf]])
def test_a_timeline_that_goes_back(write_run, story, times):
    timeline = pd.DataFrame({"time": times, "used_core": 0, "free_core": 0, "queued_jobs": 0})
    assert "timeline.parquet: column 'time', row" in fault(write_run("easy", story, timeline))


def test_a_table_whose_times_are_words(write_run, story):
    folder = write_run("easy", story)
    duckdb.sql(
        f"copy (select 'a' id, 'x' submit, 'y' \"start\", 'z' \"end\", 'DONE' result) "
        f"to '{folder}/jobs.parquet' (format parquet)"
    )
    assert "jobs.parquet: column 'submit' is of the type VARCHAR (expected numbers)" in fault(folder)


@pytest.mark.slow
def test_a_million_jobs_load_in_little_more_than_their_table_takes(tmp_path):
    """What that is in seconds (2 are wanted) is measured by `bench_report`."""
    source = """select i::varchar as id, 'u' || (i % 300) as "user", 'batch' as queue, i::double as submit,
        i + 60.0 as start, i + 360.0 as "end", 'COMPLETED' as result, (i % 64)::bigint as cores,
        'slot=' || (i % 64) || '/core' as shape, 600.0 as duration from range(1000000) t(i)"""
    duckdb.sql(f"copy ({source}) to '{tmp_path}/jobs.parquet' (format parquet)")
    duckdb.sql(f"copy (select 0.0 as time) to '{tmp_path}/timeline.parquet' (format parquet)")
    (tmp_path / "run.json").write_text(json.dumps({"simsched": "1", "format": 1, "complete": True}))
    run, table = [], []
    for _ in range(3):
        started = time.process_time()
        assert len(load_run(tmp_path).jobs) == 1_000_000
        loaded = time.process_time()
        assert len(duckdb.sql(f"from '{tmp_path}/jobs.parquet'").df()) == 1_000_000
        run.append(loaded - started)
        table.append(time.process_time() - loaded)
    assert min(run) < 4 * min(table)


def test_a_study_is_not_taken_for_a_run(tmp_path):
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(RunError, match=r"this is a study, not a run; its page is report\.html in it"):
        load_run(tmp_path)
