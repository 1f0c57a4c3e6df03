"""Tables of runs for libraries that read Arrow, and frames as workloads."""

from __future__ import annotations

import pytest

import simsched as ss


@pytest.fixture(scope="module")
def log():
    return ss.load_workload("month", limit=200)


@pytest.fixture(scope="module")
def run(log):
    return ss.simulate("flat240", log)


def test_a_run_is_repeated_from_its_own_table(log, run):
    again = ss.Workload.from_frame(run.jobs)
    assert len(again) == len(log)
    for name in ("submit", "duration", "runtime", "user", "urgency"):
        assert [getattr(job, name) for job in again] == [getattr(job, name) for job in log]
    assert [job.jobspec.to_shape() for job in again] == [job.jobspec.to_shape() for job in log]
    repeated = ss.simulate("flat240", again).jobs
    assert repeated[["start", "end"]].equals(run.jobs[["start", "end"]])


def test_a_frame_with_a_wrong_value(run):
    broken = run.jobs.assign(shape="slot=/core")
    with pytest.raises(ss.FormatError, match="data frame"):
        ss.Workload.from_frame(broken)
    with pytest.raises(ss.WorkloadError, match="data frame"):
        ss.Workload.from_frame(run.jobs.assign(urgency=99))
    with pytest.raises(ss.ConfigError, match="no preset fits the columns"):
        ss.Workload.from_frame(run.jobs.drop(columns=["shape"]))


@pytest.mark.parametrize("table", ["jobs", "timeline", "nodes", "allocations"])
def test_a_table_is_a_stream_of_arrow(run, table):
    made = run.arrow(table)
    frame = getattr(run, table)
    assert repr(made) == f"<ArrowTable {table!r}: {len(frame):,} rows, {len(frame.columns)} columns>"
    assert (len(made), made.columns) == (len(frame), list(frame.columns))
    for _ in range(2):
        assert type(made.__arrow_c_stream__()).__name__ == "PyCapsule"


@pytest.mark.parametrize("table", ["jobs", "timeline", "nodes"])
def test_polars_reads_it(run, table):
    polars = pytest.importorskip("polars")
    frame, read = getattr(run, table), polars.DataFrame(run.arrow(table))
    assert read.columns == list(frame.columns)
    assert read.shape == frame.shape
    for name in ("id", "start", "user", "time", "host", "rank"):
        if name in frame:
            assert read[name].to_list() == frame[name].tolist()
    if table == "jobs":
        again = ss.simulate("flat240", ss.Workload.from_frame(read)).jobs
        assert again["start"].equals(run.jobs["start"])


def test_a_table_that_a_run_does_not_have(run):
    with pytest.raises(ss.ConfigError, match="a run has no table 'users'"):
        run.arrow("users")
