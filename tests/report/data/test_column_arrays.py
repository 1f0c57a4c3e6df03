"""Columns as arrays: the values of the frames, without pandas."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import numpy as np
import pytest

import simsched as ss
from simsched.cli import main
from simsched.errors import RunError
from simsched.report.columns import JOBS

NAMES = [column.name for column in JOBS if column.kind != "list"]


@pytest.fixture
def run(tmp_path):
    log = tmp_path / "log.swf"
    lines = [f"{n} {n} -1 100 4 -1 -1 {9999 if n == 3 else 4} 200 -1 1 1 1 1 1 1 -1 -1" for n in range(1, 9)]
    log.write_text("\n".join([*lines, "9 x"]))  # one that never fits, and a record that is no job
    assert main(["run", "tiny", str(log), "-o", str(tmp_path / "run"), "--failures", "mtbf=50,mttr=20",
                 "--quiet"]) == 0  # fmt: skip
    return ss.load_run(tmp_path / "run")


def same(array, column):
    """Whether an array has the values of a frame's column; where a text is missing, it has None."""
    if array.dtype != object:
        return np.array_equal(array, column.to_numpy(), equal_nan=array.dtype == float)
    return array.tolist() == [
        None if missing else value for value, missing in zip(column, column.isna(), strict=True)
    ]


def test_arrays_have_the_values_of_the_frames(run):
    arrays = run.job_arrays(NAMES)
    timeline = run.timeline_arrays()  # from the files: no frame has been read yet
    assert "jobs" not in run.__dict__
    assert "timeline" not in run.__dict__
    assert {"INFEASIBLE", "COMPLETED"} <= set(arrays["result"])
    assert list(arrays) == NAMES
    for name in NAMES:
        assert same(arrays[name], run.jobs[name]), name
    assert set(timeline) == set(run.timeline)
    for name in timeline:
        assert np.array_equal(timeline[name], run.timeline[name]), name


def test_arrays_of_a_frame_in_memory_are_those_of_its_file(run):
    before = run.job_arrays(NAMES)
    assert len(run.jobs)
    after = run.job_arrays(NAMES)
    assert all(np.array_equal(before[name], after[name], equal_nan=before[name].dtype == float)
               for name in NAMES)  # fmt: skip
    cut = run.steady(warm_up=3)
    assert len(cut.job_arrays(["id"])["id"]) == len(cut.jobs) < len(run.jobs)


def write(folder, select):
    target = str(folder / "jobs.parquet")
    duckdb.sql(f"copy ({select}) to '{target}' (format parquet)")


REQUIRED = (
    "'a' id, {submit}::double submit, 2.0::double as \"start\", {end}::double as \"end\", 'COMPLETED' result"
)


def test_columns_that_a_file_lacks_are_empty(run):
    write(run.path, f"select {REQUIRED.format(submit=1, end=3)}")
    found = run.job_arrays(NAMES)
    assert found["user"].tolist() == [None]
    assert (found["nodes"].tolist(), found["backfilled"].tolist()) == ([0], [False])
    assert np.isnan(found["promised"]).tolist() == [True]


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (f"select {REQUIRED.format(submit='null', end=3)}", "column 'submit', row 1: nan"),
        (f"select {REQUIRED.format(submit=1, end=chr(39) + 'inf' + chr(39))}", "column 'end', row 1: inf"),
        ("select 1 id", "there is no column 'end', 'result', 'start', 'submit'"),
    ],
)
def test_bad_jobs_are_refused_as_the_frame_refuses_them(run, select, message):
    write(run.path, select)
    for read in (lambda: run.job_arrays(["id", "submit", "start", "end", "result"]), lambda: run.jobs):
        with pytest.raises(RunError, match=message):
            read()


LOG = """; MaxProcs: 4
; UnixStartTime: 900000000
1 0 5 60 1 -1 -1 1 90 -1 1 1 -1 -1 1 -1 -1 -1
2 9 0 30 2 -1 -1 2 60 -1 1 2 -1 -1 2 -1 -1 -1
3 9 70 30 4 -1 -1 4 60 -1 1 2 -1 -1 2 -1 -1 -1
"""


@pytest.mark.slow
def test_a_run_its_page_and_why_import_no_pandas(tmp_path):
    log, folder = tmp_path / "log.swf", str(tmp_path / "run")
    log.write_text(LOG)
    for command, shown in (
        (["run", "tiny", str(log), "-o", folder], "recorded wait"),
        (["report", folder], "by queue"),
        (["why", folder, "3"], "waited"),
    ):
        ask = f"import sys\nfrom simsched.cli import main\nassert main({command!r}) == 0\n"
        # Before 2.0, DuckDB itself imports pandas where it is given texts.
        if command[0] != "run" or int(duckdb.__version__.split(".")[0]) >= 2:
            ask += "assert 'pandas' not in sys.modules"
        done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert shown in done.stdout
