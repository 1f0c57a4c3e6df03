"""Runs in the formats of other programs, read back by the rules of those programs."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from simsched.cli import main
from simsched.errors import ConfigError, InputWarning, RunError
from simsched.report.data.gantt_view import GanttView
from simsched.report.exports import trace_events
from simsched.report.exports.run_formats import FORMATS, export_text
from simsched.report.run_views import load_run
from simsched.simulation.simulate import simulate
from simsched.workload.load import load_workload
from tests.simulation.simworld import job, machine, workload


@pytest.fixture
def run(tmp_path):
    jobs = [
        job("1", 0, "slot=3/core", 60, 80, user="ann", queue="batch"),
        job("2", 5, "slot=2/node", 30, 30, user="bob"),
        job("3", 10, "slot=1/core", 20, 10, user="ann"),
        job("4", 11, "slot=9/node", 20, user="ann"),
        job("5", 12, "slot=1/core", 0.5, float("inf")),
    ]
    simulate(machine(2, cores=4), workload(*jobs), "easy").save(tmp_path / "run")
    return load_run(tmp_path / "run")


def test_swf_is_read_back_with_the_simulated_waits(run, tmp_path):
    (tmp_path / "run.swf").write_text("".join(export_text(run, "swf")))
    read = {str(job.id): job for job in load_workload(tmp_path / "run.swf").jobs}
    for row in run.jobs.itertuples():
        if row.result == "INFEASIBLE":
            assert row.id not in read  # the archive's rule: run time -1 and status 5 were cancelled
            continue
        found = read[row.id]
        assert (found.submit, found.wait, found.runtime) == (
            row.submit,
            row.start - row.submit,
            row.end - row.start,
        )
        assert found.procs == row.cores
    assert (read["1"].user, read["1"].queue) == ("ann", "batch")
    text = (tmp_path / "run.swf").read_text()
    assert "; MaxNodes: 2\n; MaxProcs: 8\n" in text
    assert "; Note: waits are those of the simulation\n" in text


def test_dates_of_a_run_are_kept(tmp_path):
    dated = {"UnixStartTime": "1740960000", "TimeZoneString": "Europe/Rome"}
    for name, header in (("known", dated), ("assumed", {"UnixStartTime": "1740960000"})):
        jobs = workload(job("1", 5, "slot=1/core", 60, 60))
        simulate(machine(1, cores=4), replace(jobs, header=header), "easy").save(tmp_path / name)
        run = load_run(tmp_path / name)
        (tmp_path / "run.swf").write_text("".join(export_text(run, "swf")))
        read = load_workload(tmp_path / "run.swf")
        assert (read.clock, run.clock.assumed) == (run.clock, name == "assumed")
        assert ",2025-03-03T00:00:05," in "".join(export_text(run, "flux-fiction"))


def intervals(text):
    """The processors of ``0-2 5``, by evalys's rule."""
    found = set()
    for part in text.split():
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found


def test_flux_fiction_is_read_back_with_the_allocated_sizes(run, tmp_path):
    (tmp_path / "run.csv").write_text("".join(export_text(run, "flux-fiction")))
    read = {str(job.id): job for job in load_workload(tmp_path / "run.csv", map="flux-fiction").jobs}
    ran = run.jobs[run.jobs["start"].notna()]
    assert list(read) == list(ran["id"])
    for row in ran.itertuples():
        found = read[row.id]
        assert (found.nodes, found.procs) == (row.nodes, row.cores)
        assert found.submit == row.submit
        assert found.runtime == max(1, row.end - row.start)
        assert found.duration == (found.runtime if row.duration == float("inf") else max(1, row.duration))


def test_evalys_has_each_job_that_ended_and_no_processor_twice_at_once(run):
    rows = list(csv.DictReader(io.StringIO("".join(export_text(run, "evalys")))))
    jobs = run.jobs.set_index("id")
    assert [row["job_id"] for row in rows] == [name for name in jobs.index if jobs["end"].notna()[name]]
    used = defaultdict(list)
    for row in rows:
        mine = jobs.loc[row["job_id"]]
        processors = intervals(row["allocated_resources"])
        assert len(processors) == int(row["requested_number_of_resources"]) == mine["cores"]
        assert float(row["waiting_time"]) == mine["start"] - mine["submit"]
        assert float(row["turnaround_time"]) == mine["end"] - mine["submit"]
        assert row["success"] == str(int(mine["result"] == "COMPLETED"))
        for processor in processors:
            used[processor].append((float(row["starting_time"]), float(row["finish_time"])))
    for spans in used.values():
        spans.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert set(used) <= set(range(8))
    assert next(row for row in rows if row["job_id"] == "3")["final_state"] == "COMPLETED_WALLTIME_REACHED"
    assert next(row for row in rows if row["job_id"] == "5")["requested_time"] == "-1"


def test_perfetto_has_a_slice_per_job_and_node_and_none_overlap_on_a_track(run):
    document = json.loads("".join(export_text(run, "perfetto")))
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert {event["name"] for event in slices} == set(run.jobs["id"][run.jobs["start"].notna()])
    for name, number in (("1", 1), ("2", 2)):
        assert sum(event["name"] == name for event in slices) == number
    tracks = defaultdict(list)
    for event in slices:
        tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        spans.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
    names = {event["tid"]: event["args"]["name"] for event in document["traceEvents"]
             if event["ph"] == "M" and event["name"] == "thread_name"}  # fmt: skip
    assert set(names) == {tid for _, tid in tracks}
    assert {"n0", "n1"} <= set(names.values())
    counters = [event for event in document["traceEvents"] if event["ph"] == "C"]
    assert max(event["args"]["waiting"] for event in counters) == run.timeline["queued_jobs"].max()


@pytest.mark.parametrize("to", FORMATS)
def test_runs_without_allocations_and_without_jobs(write_run, make_jobs, to):
    """Jobs are then packed; the numbers of processors stay right."""
    bare = load_run(
        write_run("bare", make_jobs([{"id": "7", "submit": 0, "start": 2, "end": 9, "cores": 4}]))
    )
    text = "".join(export_text(bare, to))
    assert "7" in text
    if to == "evalys":
        assert text.splitlines()[1].endswith(",0-3")
    empty = load_run(write_run("empty", make_jobs([{"id": "8", "result": "INFEASIBLE", "cores": 0}])))
    assert "".join(export_text(empty, to))


def test_too_many_slices_and_unknown_formats(run, monkeypatch):
    monkeypatch.setattr(trace_events, "MAX_SLICES", 2)
    with pytest.raises(RunError, match=r"slices are too many for a trace \(expected at most 2:"):
        "".join(export_text(run, "perfetto"))
    with pytest.raises(ConfigError, match=r"unknown format 'evalis'; did you mean evalys\?"):
        export_text(run, "evalis")


def slices_of(run, **cut):
    document = json.loads("".join(export_text(run, "perfetto", **cut)))
    return [event for event in document["traceEvents"] if event["ph"] == "X"]


def test_a_trace_has_no_name_for_what_is_not_known(run):
    assert run.jobs["queue"].isna().any()
    assert run.jobs["user"].isna().any()
    assert "nan" not in "".join(export_text(run, "perfetto"))
    assert {event["name"]: event.get("cat") for event in slices_of(run)} == {
        "1": "batch",
        "2": None,
        "3": None,
        "5": None,
    }


def test_the_cut_of_a_run(run):
    """By time, nodes, users and jobs, in any format; slices end at the cut."""
    first = slices_of(run)[0]["name"]
    assert {event["name"] for event in slices_of(run, jobs=[first])} == {first}
    low, high = run.jobs["submit"].min(), run.jobs["end"].max()
    half = (high - low) / 2
    early = slices_of(run, view=GanttView(end=half))
    there = run.jobs[run.jobs["start"] < low + half]
    assert {event["name"] for event in early} == set(there["id"])
    assert max(event["ts"] + event["dur"] for event in early) <= 1e6 * (low + half)
    on_node = slices_of(run, view=GanttView(nodes="0"))
    held = run.allocations[run.allocations["rank"] == 0]
    assert {event["name"] for event in on_node} == set(held["id"])
    assert len({event["tid"] // trace_events.LANES for event in on_node}) == 1
    lines = list(export_text(run, "evalys", view=GanttView(end=half)))
    assert {line.partition(",")[0] for line in lines[1:]} <= set(there["id"])
    with pytest.raises(ConfigError, match="the run has no job 'x'"):
        export_text(run, "swf", jobs=["x"])


def test_a_large_run_has_a_slice_per_job_and_says_so(run, monkeypatch):
    monkeypatch.setattr(trace_events, "MOST_ON_NODES", 2)
    with pytest.warns(InputWarning, match="the tracks are jobs and not nodes"):
        jobs = slices_of(run)
    assert sorted(event["name"] for event in jobs) == sorted(run.jobs["id"][run.jobs["start"].notna()])
    assert len(slices_of(run, tracks="nodes")) > len(jobs)
    with pytest.raises(ConfigError, match="the format swf has no tracks"):
        export_text(run, "swf", tracks="jobs")


def test_the_command_line(run, tmp_path, capsys):
    assert main(["export", str(run.path), "--to", "evalys"]) == 0
    assert capsys.readouterr().out.startswith("job_id,workload_name,profile,")
    assert main(["export", str(run.path), "--to", "perfetto", "-o", str(tmp_path / "t.json")]) == 0
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert main(["export", str(run.path), "--to", "pdf"]) == 2
    assert main(["export", str(tmp_path), "--to", "swf"]) == 2


def test_a_part_that_begins_or_ends_at_0(run, capsys):
    """Zero is a time and not an option that is missing; the run has nothing before its begin."""
    assert main(["export", str(run.path), "--to", "evalys", "--until", "0"]) == 2
    assert "the view ends before it begins" in capsys.readouterr().err
    assert main(["export", str(run.path), "--to", "evalys", "--from", "0"]) == 0
    assert capsys.readouterr().out == "".join(export_text(run, "evalys", view=GanttView(start=0)))
    assert main(["plot", "gantt", str(run.path), "--until", "0"]) == 2


def test_evalys_itself_loads_and_plots_an_exported_run(run, tmp_path):
    jobset = pytest.importorskip("evalys.jobset", reason="evalys is not installed")
    (tmp_path / "run_jobs.csv").write_text("".join(export_text(run, "evalys")))
    found = jobset.JobSet.from_csv(str(tmp_path / "run_jobs.csv"))
    assert len(found.df) == int(run.jobs["end"].notna().sum())
    found.plot()
