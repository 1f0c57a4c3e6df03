"""Sweeps on local processes: datasets, resuming, runs that fail, workers that die, what is half-written."""

from __future__ import annotations

import json
import os
import shutil
import signal
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial

import duckdb
import numpy as np
import pytest

import simsched as ss
from simsched.cli import main
from simsched.errors import ConfigError, RunError, SimschedError
from simsched.files import this_host
from simsched.simulation.record.parquet import write_tables
from simsched.study.runs import dispatch
from simsched.study.runs.dispatch import FailedRun, FinishedRun, run_tasks
from simsched.study.runs.worker_pools import open_workers
from simsched.study.runs.workers import Workers
from simsched.study.study_folder import StudyFolder, load_study_result
from simsched.study.sweep import sweep
from tests.study import breaking
from tests.study.studyworld import dataset, left_over, small


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The small study in this process: its folder and its dataset."""
    folder = tmp_path_factory.mktemp("reference") / "study"
    sweep(small(), folder, workers=0, report=False)
    return folder, dataset(folder)


def test_the_dataset_of_a_sweep(reference):
    result = load_study_result(reference[0])
    assert result.complete
    assert list(result.runs.columns[:5]) == ["run", "key", "queue_policy", "load", "seed"]
    assert result.runs["run"].tolist() == list(range(8))
    assert result.runs["queue_policy"].tolist() == ["fcfs"] * 4 + ["easy"] * 4
    assert result.runs["load"].tolist() == [0.8, 0.8, 1.2, 1.2] * 2
    assert result.runs["seed"].tolist() == [0, 1] * 4
    assert (result.runs["jobs"] == 60).all()
    assert not {"wall_seconds", "seconds", "created"} & set(result.runs.columns)
    assert result.failures == []
    assert result.run(3).summary["mean_wait"] == pytest.approx(result.runs["mean_wait"][3])
    assert result.run(3).name == "queue-policy fcfs, load 1.2, seed 1"
    assert repr(result) == "<Study small: 8 of 8 runs>"


def test_sql_over_all_runs(reference):
    result = load_study_result(reference[0])
    waits = result.sql(
        "select queue_policy, load, seed, avg(mean_wait) w from runs group by all order by all"
    )
    jobs = result.sql(
        'select axis_queue_policy as queue_policy, axis_load as load, seed, avg("start" - submit) w '
        "from jobs group by all order by all"
    )
    assert waits["w"].tolist() == pytest.approx(jobs["w"].tolist())
    assert result.sql("select count(distinct run) n from timeline")["n"][0] == 8
    with pytest.raises(ConfigError, match="SQL: "):
        result.sql("select nonsense from runs")


def test_any_parquet_tool_reads_the_jobs(reference):
    """Hive's layout: one folder a run, named after the column that joins it with runs.parquet."""
    found = duckdb.sql(
        f"select run, count(*) from read_parquet('{reference[0]}/jobs/*/*.parquet', hive_partitioning=true)"
        " group by run order by run"
    ).fetchall()
    assert [(int(run), jobs) for run, jobs in found] == [(n, 60) for n in range(8)]


@pytest.mark.integration
@pytest.mark.parametrize("workers", [1, 2])
def test_results_do_not_depend_on_the_workers(tmp_path, reference, workers):
    sweep(small(), tmp_path / "s", workers=workers, report=False)
    assert dataset(tmp_path / "s") == reference[1]


def test_results_do_not_depend_on_the_order(tmp_path, reference, monkeypatch):
    """Tasks handed in backwards, two at a time, to an executor of ours."""

    def backwards(tasks, *args, **kwargs):
        return run_tasks(list(tasks)[::-1], *args, **kwargs)

    monkeypatch.setattr("simsched.study.sweep.run_tasks", backwards)
    with ThreadPoolExecutor(2) as pool:
        sweep(small(), tmp_path / "s", executor=pool, report=False)
        assert pool.submit(int).result() == 0  # it is ours, and still open
    assert dataset(tmp_path / "s") == reference[1]


def test_a_complete_study_is_left_alone_when_it_is_resumed(reference, tmp_path):
    folder = tmp_path / "s"
    shutil.copytree(reference[0], folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    sweep(small(), folder, workers=0, resume=True, report=False)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    sweep(small(), folder, workers=0, resume=True)  # now with the report, which was not there
    assert (folder / "report.html").is_file()
    assert dataset(folder) == reference[1]


def _damage(path, how):
    if how == "gone":
        shutil.rmtree(path)
    elif how == "no row":
        (path / "row.json").unlink()
    elif how == "cut table":
        (path / "jobs.parquet").write_bytes((path / "jobs.parquet").read_bytes()[:-9])
    elif how == "empty table":
        (path / "timeline.parquet").write_bytes(b"")
    elif how == "other task":
        (path / "task.json").write_text("{}")
    elif how == "incomplete":
        record = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps({**record, "complete": False}))
    elif how == "other version":
        record = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps({**record, "simsched": "0.0.1"}))
    else:
        (path / "run.json").write_text("{")


HOW = ["gone", "no row", "cut table", "empty table", "other task", "incomplete", "other version", "no json"]


@pytest.mark.parametrize("how", HOW)
def test_what_is_not_whole_is_run_again(reference, tmp_path, how):
    """Only the damaged run is performed; the dataset is the same as if nothing had happened."""
    folder = tmp_path / "s"
    shutil.copytree(reference[0], folder)
    key = small().tasks[5].key
    _damage(folder / "runs" / key, how)
    performed = []
    sweep(small(), folder, workers=0, resume=True, report=False,
          progress=lambda state: performed.append(state.last))  # fmt: skip
    assert [done.task.key for done in performed if done] == [key]
    assert dataset(folder) == reference[1]


def test_a_study_may_grow(reference, tmp_path):
    """Runs are found by what they are: with a seed more only its runs are performed."""
    folder = tmp_path / "s"
    shutil.copytree(reference[0], folder)
    states = []
    result = sweep(small(seeds=3), folder, workers=0, resume=True, report=False, progress=states.append)
    assert sum(state.last is not None for state in states) == 4
    assert len(result.runs) == 12
    again = sweep(small(), folder, workers=0, resume=True, report=False)
    assert dataset(folder).keys() >= reference[1].keys()
    assert len(again.runs) == 8


def test_tables_that_are_asked_for_later_are_made(reference, tmp_path):
    folder = tmp_path / "s"
    shutil.copytree(reference[0], folder)
    result = sweep(small(keep="allocations"), folder, workers=0, resume=True, report=False)
    assert result.run(0).has_allocations


def test_figures_alone(tmp_path, reference):
    result = sweep(small(keep="figures"), tmp_path / "s", workers=0, report=False)
    assert result.runs.equals(load_study_result(reference[0]).runs)
    assert not (tmp_path / "s" / "jobs").exists()
    with pytest.raises(RunError, match="missing"):
        result.run(0)
    with pytest.raises(RunError, match=r"no run 99 .*expected 0 to 7"):
        result.run(99)


# --- runs that fail

BAD = [{"label": "good"}, {"label": "bad", "edits": ["remove(n[0-3])"]}]


@pytest.mark.integration
def test_a_run_that_raises_is_listed_and_the_rest_goes_on(tmp_path):
    study = small(axes={"machine": BAD, "queue-policy": ["fcfs", "easy"]})
    result = sweep(study, tmp_path / "s", workers=2, report=False)
    assert not result.complete
    assert result.runs["run"].tolist() == [0, 1, 2, 3]
    assert [(f["run"], f["settings"]["machine"]) for f in result.failures] == [
        (n, "bad") for n in range(4, 8)
    ]
    assert all("the cluster is empty" in f["reason"] for f in result.failures)
    assert result.record["counts"] == {"runs": 8, "done": 4, "failed": 4}
    again = []
    sweep(study, tmp_path / "s", workers=0, resume=True, report=False, progress=again.append)
    assert again[0].done == again[0].there == 4
    assert sum(state.last is not None for state in again) == 4


def test_a_study_of_which_nothing_runs(tmp_path):
    result = sweep(small(axes={"machine": BAD[1:]}), tmp_path / "s", workers=0)
    assert len(result.runs) == 0
    assert len(result.failures) == 2


def bent(monkeypatch, function, *arguments):
    monkeypatch.setattr(dispatch, "work", partial(function, *arguments))


@pytest.mark.integration
def test_a_worker_that_is_killed_from_outside(tmp_path, reference):
    """A process of the pool is killed in the middle: the pool is made anew, nothing is lost or twice."""
    study, killed = small(), []
    folder = StudyFolder(tmp_path)
    with open_workers(2) as workers:
        found = []
        for outcome in run_tasks(study.tasks, workers, folder=folder.runs):
            found.append(outcome)
            if len(found) == 2:
                killed.append(workers.pids[0])
                os.kill(killed[0], signal.SIGKILL)
        assert killed[0] not in workers.pids
    assert sorted(d.task.key for d in found) == sorted(t.key for t in study.tasks)
    assert all(isinstance(outcome, FinishedRun) for outcome in found)
    for task in study.tasks:
        there = (folder.runs / task.key / "row.json").read_bytes()
        assert there == (reference[0] / "runs" / task.key / "row.json").read_bytes()


@pytest.mark.integration
@pytest.mark.slow
def test_a_run_that_kills_its_worker_once_is_tried_again(tmp_path, reference, monkeypatch):
    key = small().tasks[3].key
    bent(monkeypatch, breaking.dying, str(tmp_path), key, 1)
    result = sweep(small(), tmp_path / "s", workers=2, report=False)
    assert dataset(tmp_path / "s") == reference[1]
    assert result.timings["attempts"].max() == 2


@pytest.mark.integration
@pytest.mark.slow
def test_a_run_that_always_kills_its_worker_is_found_and_given_up(tmp_path, monkeypatch):
    """The others are not blamed for it, however often they were under way when a pool broke."""
    key = small().tasks[3].key
    bent(monkeypatch, breaking.dying, str(tmp_path), key, 99)
    result = sweep(small(), tmp_path / "s", workers=2, retries=1, report=False)
    assert [(f["key"], f["reason"]) for f in result.failures] == [(key, "the worker died")]
    assert result.runs["run"].tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert left_over(tmp_path / "s") == []


def test_what_may_pass_is_tried_again_and_then_given_up(tmp_path, monkeypatch):
    tasks = small().tasks[:3]
    bent(monkeypatch, breaking.passing, str(tmp_path), tasks[1].key, 2)
    with open_workers(0) as workers:
        found = {o.task.key: o for o in run_tasks(tasks, workers, retries=1)}
    assert found[tasks[1].key] == FailedRun(tasks[1], "OSError: disk full", 2)
    assert sum(isinstance(o, FinishedRun) for o in found.values()) == 2


class Lost(Workers):
    """Workers whose pool breaks a number of times before it answers."""

    def __init__(self, times, *, blames_all=True):
        self.times, self.blames_all, self.renewed = times, blames_all, 0

    def submit(self, function, *arguments):
        future = Future()
        if self.times:
            self.times -= 1
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_result(function(*arguments))
        return future

    def renew(self):
        self.renewed += 1

    def close(self):
        pass


def test_a_scheduler_that_goes_away_is_nobodys_fault():
    """What it lost is handed in again without counting as an attempt."""
    workers = Lost(6, blames_all=False)
    found = list(run_tasks(small().tasks[:4], workers, retries=0))
    assert len(found) == 4
    assert all(isinstance(outcome, FinishedRun) and outcome.attempts == 1 for outcome in found)
    assert workers.renewed > 0


def test_workers_that_never_answer_end_the_sweep():
    with pytest.raises(RunError, match="died 21 times in a row"):
        list(run_tasks(small().tasks, Lost(10**6, blames_all=False)))


def test_another_version_of_simsched_is_refused(monkeypatch):
    monkeypatch.setattr("simsched.study.runs.dispatch.version", lambda: "0.0.1")
    with open_workers(0) as workers:
        (found,) = run_tasks(small().tasks[:1], workers)
    assert found.reason.startswith("the worker has simsched ")


def test_not_more_is_under_way_than_there_is_room_for():
    """Tasks may come from a generator that never ends: it is not run through."""
    taken = []

    def endless():
        for number in range(10**9):
            taken.append(number)
            yield small().tasks[0].changed(seed=number)

    with ThreadPoolExecutor(1) as pool, open_workers(1, executor=pool) as workers:
        found = run_tasks(endless(), workers)
        next(found)
        found.close()
    assert len(taken) <= 3


# --- directories


def test_nothing_half_written_looks_finished(reference, tmp_path, gone_pid):
    """What died while it was written is cleared away and does not count."""
    folder = tmp_path / "s"
    shutil.copytree(reference[0], folder)
    key = small().tasks[2].key
    left = f"{this_host()}.{gone_pid}-0.writing"
    (folder / "runs" / key).rename(folder / "runs" / f".{key}.{left}")
    (folder / f".runs.parquet.{left}").touch()
    record = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**record, "complete": False}))
    sweep(small(), folder, workers=0, resume=True, report=False)
    assert left_over(folder) == []
    assert dataset(folder) == reference[1]


@pytest.mark.parametrize("place", ["simsched.study.sweep.write_tables", "simsched.study.study_page.page"])
def test_a_disk_that_fills_up_at_the_end_leaves_an_unfinished_study(reference, tmp_path, monkeypatch, place):
    """Tables and the page are the last to be written; without them nothing says complete."""
    folder = tmp_path / "s"
    shutil.copytree(reference[0], folder)
    (folder / "runs.parquet").unlink()

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(place, full)
    with pytest.raises(OSError, match="No space left"):
        sweep(small(), folder, workers=0, resume=True)
    assert load_study_result(folder).complete is False
    monkeypatch.undo()
    assert sweep(small(), folder, workers=0, resume=True).complete
    assert left_over(folder) == []
    assert dataset(folder) == reference[1]


def test_tables_that_cannot_be_written_are_an_error_of_the_system(tmp_path):
    """DuckDB's own exception would pass for a fault of ours, and a run would not be tried again."""
    with pytest.raises(OSError, match="IO Error"):
        write_tables(tmp_path / "nowhere", {"runs": {"run": np.array([1])}})


def test_inputs_that_changed_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    jobs, study = tmp_path / "jobs.yaml", tmp_path / "study.yaml"
    jobs.write_text("- {shape: slot=1/core, runtime: 5}\n")
    study.write_text("cluster: tiny\nworkload: jobs.yaml\n")
    command = ["sweep", "study.yaml", "-o", "out", "--workers", "0", "--no-report", "--quiet"]
    assert main(command) == 0
    assert main([*command, "--resume"]) == 0
    assert capsys.readouterr().err == ""
    jobs.write_text("- {shape: slot=1/core, runtime: 6}\n")
    assert main([*command, "--resume"]) == 0
    assert capsys.readouterr().err == "note: jobs.yaml has changed; its runs are performed again\n"


def test_the_tables_of_an_unfinished_study_are_gone(reference, tmp_path, monkeypatch):
    """From the moment at which a study goes on until it is finished nothing says that it is."""
    folder = tmp_path / "s"
    shutil.copytree(reference[0], folder)

    def stop(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("simsched.study.sweep.run_tasks", stop)
    with pytest.raises(KeyboardInterrupt):
        sweep(small(seeds=3), folder, workers=0, resume=True)
    result = load_study_result(folder)
    assert not result.complete
    assert not (folder / "runs.parquet").exists()
    with pytest.raises(RunError, match=r"runs\.parquet is missing"):
        result.runs  # noqa: B018
    monkeypatch.undo()
    assert len(sweep(small(seeds=3), folder, workers=0, resume=True, report=False).runs) == 12


def test_a_finished_study_is_replaced_by_a_finished_study_only(reference, tmp_path, monkeypatch):
    """Until the new one is whole the earlier one stays; what was done meanwhile is resumed."""
    folder, beside = tmp_path / "s", tmp_path / "s.partial"
    shutil.copytree(reference[0], folder)
    again = small(axes={"queue-policy": ["fcfs", "easy"]})
    performed = dispatch.run_tasks

    def stop_after_one(*args, **kwargs):
        yield next(performed(*args, **kwargs))
        raise KeyboardInterrupt

    monkeypatch.setattr("simsched.study.sweep.run_tasks", stop_after_one)
    with pytest.raises(KeyboardInterrupt):
        sweep(again, folder, workers=0, report=False)
    assert dataset(folder) == reference[1]
    monkeypatch.undo()
    with pytest.raises(RunError, match=r"s\.partial: the directory holds an unfinished study"):
        sweep(again, folder, workers=0, report=False)
    states = []
    result = sweep(again, folder, workers=0, report=False, resume=True, progress=states.append)
    assert 1 <= states[0].there < 4
    assert (result.path, len(result.runs)) == (folder, 4)
    assert len(list((folder / "runs").iterdir())) == 4
    assert not beside.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_runs_that_fail_do_not_replace_a_finished_study(reference, tmp_path):
    folder = tmp_path / "s"
    shutil.copytree(reference[0], folder)
    odd = small(axes={"edits": ["remove(n1)", "remove(n9)"]})
    result = sweep(odd, folder, workers=0, report=False)
    assert (result.path.name, len(result.failures)) == ("s.partial", 2)
    assert dataset(folder) == reference[1]


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    "place", ["notes.txt", "runs/notes.txt", "runs/KEY/notes.txt", "jobs/notes.txt", "report.html"]
)
@pytest.mark.parametrize("finished", [True, False])
def test_a_users_file_in_a_study_is_never_lost(reference, tmp_path, place, finished):
    """Replacing is refused by the file's name; resuming is refused where it would take the file away."""
    folder = tmp_path / "s"
    shutil.copytree(reference[0], folder)
    name = place.replace("KEY", small().tasks[0].key)
    (folder / name).write_text("mine")
    if not finished:
        record = json.loads((folder / "study.json").read_text())
        (folder / "study.json").write_text(json.dumps({**record, "complete": False}))
    with suppress(RunError) if not finished else pytest.raises(RunError, match=name):
        sweep(small(), folder, workers=0, resume=not finished)
    assert (folder / name).read_text() == "mine"


def test_two_sweeps_do_not_write_one_directory(tmp_path):
    folder = StudyFolder(tmp_path / "s")
    with folder.writing(), pytest.raises(RunError, match="another sweep is writing to this directory"):
        sweep(small(), tmp_path / "s", workers=0)


@pytest.mark.parametrize("content", [{"notes.txt": "mine"}, {"study.json": "{}"}, {"study.json": "["}])
def test_a_directory_of_something_else_is_refused(tmp_path, content):
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(RunError):
        sweep(small(), tmp_path, workers=0, resume=True)
    assert {path.name for path in tmp_path.iterdir()} == set(content)


def test_a_newer_layout_is_refused(reference, tmp_path):
    record = json.loads((reference[0] / "study.json").read_text())
    (tmp_path / "study.json").write_text(json.dumps({**record, "format": 2}))
    with pytest.raises(RunError, match="study format 2 is unknown"):
        load_study_result(tmp_path)
    with pytest.raises(RunError, match="not the directory of a study"):
        load_study_result(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "where",
    [
        {"workers": -1},
        {"workers": 5000},
        {"workers": 2, "scheduler": "tcp://a:1"},
        {"scheduler": "a"},
        {"hpc": "sge"},
        {"scheduler": "tcp://a:1", "hpc": "flux"},
    ],
)
def test_workers_that_cannot_be_had_leave_nothing_behind(tmp_path, where):
    with pytest.raises(SimschedError):
        sweep(small(), tmp_path / "s", **where)
    assert not (tmp_path / "s").exists()


@pytest.mark.integration
def test_a_broken_executor_of_the_callers_is_told(tmp_path, monkeypatch):
    bent(monkeypatch, breaking.dying, str(tmp_path), small().tasks[0].key, 9)
    from simsched.study.runs.worker_pools import WorkerContext

    with (
        ProcessPoolExecutor(1, WorkerContext()) as pool,
        pytest.raises(ConfigError, match="the executor is broken"),
    ):
        sweep(small(), tmp_path / "s", executor=pool)


def test_the_facade(reference):
    assert ss.load_study_result(reference[0]).name == "small"
    study = ss.study_from_dict({"cluster": "tiny", "workload": "first-steps"})
    assert study.axis_names == ()
    assert ss.Study is type(study)


@pytest.mark.parametrize("resume", [False, True])
def test_another_study_never_takes_the_place_of_one(reference, tmp_path, resume):
    folder = tmp_path / "s"
    shutil.copytree(reference[0], folder)
    other = replace(small(), name="other")
    with pytest.raises(RunError, match=r"holds the study .*, and this one is 'other'"):
        sweep(other, folder, workers=0, report=False, resume=resume)
    assert dataset(folder) == reference[1]
