"""Sweeps on a real Dask scheduler: the same dataset as here, whoever dies in the middle."""

from __future__ import annotations

import gc
import json
import signal
import time
import warnings

import pytest

from simsched.study.runs import dispatch
from simsched.study.runs.dispatch import FinishedRun, run_tasks
from simsched.study.runs.worker_pools import open_workers
from simsched.study.spec.run_task import TaskInput
from simsched.study.sweep import sweep
from tests.study import breaking
from tests.study.studyworld import RECIPE, dataset, left_over, small

pytest.importorskip("distributed")

#: Dask leaves sockets to schedulers and workers that are gone to the garbage collector
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]


@pytest.fixture(autouse=True)
def _dasks_sockets_are_collected_here():
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference") / "study"
    sweep(small(keep="all"), folder, workers=0, report=False)
    return folder, dataset(folder)


def test_the_dataset_is_the_same_as_here(dask_cluster, reference, tmp_path):
    """Byte for byte, allocations and event logs included; nothing but results comes back."""
    result = sweep(small(keep="all"), tmp_path / "s", scheduler=dask_cluster.address, report=False)
    assert dataset(tmp_path / "s") == reference[1]
    assert left_over(tmp_path / "s") == []
    assert result.timings["worker"].nunique() == 2
    for task in small().tasks:
        for name in ("allocations.jsonl", "eventlog.jsonl", "task.json", "summary.json"):
            there, here = (f / "runs" / task.key / name for f in (tmp_path / "s", reference[0]))
            assert there.read_bytes() == here.read_bytes()


def test_inputs_are_sent_and_not_looked_for(dask_cluster, tmp_path):
    """Workers without our files: the study's inputs are gone from the disk before its runs begin."""
    (tmp_path / "cluster.json").write_text(json.dumps(RECIPE))
    (tmp_path / "one.yaml").write_text(
        "version: 9999\nresources: [{type: slot, count: 2, label: t, with: [{type: core, count: 1}]}]\n"
        "tasks: [{command: [a], slot: t, count: {per_slot: 1}}]\nattributes: {system: {duration: 9}}\n"
    )
    (tmp_path / "jobs.yaml").write_text("- {file: one.yaml, runtime: 5, count: 9, every: 1}\n")
    base = small().tasks[0]
    task = base.changed(
        cluster=TaskInput.find("clusters", str(tmp_path / "cluster.json")),
        workload=TaskInput.find("workloads", str(tmp_path / "jobs.yaml")),
        transforms=(),
    )
    with open_workers(scheduler=dask_cluster.address) as workers:
        workers.send([task.cluster, task.workload])
        workers.send([task.cluster, task.workload])
        for file in list(tmp_path.iterdir()):
            file.unlink()
        (found,) = run_tasks([task], workers)
    assert isinstance(found, FinishedRun), found
    assert found.row.metrics["jobs_completed"] == 9


def test_a_run_that_raises_on_a_worker(dask_cluster, tmp_path):
    study = small(axes={"edits": ["remove(n[0-3])", "remove(n3)"]}, seeds=None)
    result = sweep(study, tmp_path / "s", scheduler=dask_cluster.address, report=False)
    assert [f["run"] for f in result.failures] == [0]
    assert "the cluster is empty" in result.failures[0]["reason"]
    assert result.runs["run"].tolist() == [1]


def _slowly(monkeypatch, seconds=0.15):
    """Make every run take a while, wherever it is performed."""
    from functools import partial

    monkeypatch.setattr(dispatch, "work", partial(breaking.slow, seconds))


def test_a_worker_that_is_killed(dask_cluster, reference, tmp_path, monkeypatch):
    """Its runs are performed by the other one, and the dataset is the same."""
    _slowly(monkeypatch)
    killed = []

    def kill(state):
        if state.done == 2 and not killed:
            killed.append(dask_cluster.workers[0])
            killed[0].send_signal(signal.SIGKILL)

    sweep(small(keep="all"), tmp_path / "s", scheduler=dask_cluster.address, report=False, progress=kill)
    assert killed
    assert dataset(tmp_path / "s") == reference[1]


@pytest.mark.slow
def test_a_run_that_kills_worker_after_worker(dask_cluster, tmp_path, monkeypatch):
    """Dask tries it on several; it is given up, and the rest is done by the workers that are left."""
    from functools import partial

    for _ in range(4):
        dask_cluster.start_worker()
    dask_cluster.wait_for(6)
    key = small().tasks[3].key
    monkeypatch.setattr(dispatch, "work", partial(breaking.dying, str(tmp_path), key, 99))
    result = sweep(small(), tmp_path / "s", scheduler=dask_cluster.address, report=False)
    assert [(f["key"], f["reason"]) for f in result.failures] == [(key, "the worker died")]
    assert len(result.runs) == 7


@pytest.mark.slow
def test_a_scheduler_that_restarts(dask_cluster, reference, tmp_path, monkeypatch):
    """It is waited for, gets the inputs again, and the study goes on where it was."""
    _slowly(monkeypatch)
    restarted = []

    def restart(state):
        if state.done == 2 and not restarted:
            restarted.append(time.monotonic())
            dask_cluster.stop()
            dask_cluster.start_scheduler()
            dask_cluster.start_worker()
            dask_cluster.start_worker()

    result = sweep(small(keep="all"), tmp_path / "s", scheduler=dask_cluster.address, report=False,
                   progress=restart)  # fmt: skip
    assert restarted
    assert result.complete
    assert dataset(tmp_path / "s") == reference[1]


@pytest.mark.slow
def test_a_scheduler_that_stays_away(dask_cluster, tmp_path, monkeypatch):
    """After a while the sweep ends with one message; what was done is kept and can be resumed."""
    from simsched.errors import RunError

    monkeypatch.setattr("simsched.study.runs.dask_workers.PATIENCE", 0.5)
    monkeypatch.setattr("simsched.study.runs.dask_workers.CONNECT", 0.5)

    def stop(state):
        if state.done == 2 and dask_cluster.scheduler:
            dask_cluster.stop()

    study = small(seeds=4)
    with pytest.raises(RunError, match="the Dask scheduler did not return"):
        sweep(study, tmp_path / "s", scheduler=dask_cluster.address, report=False, progress=stop)
    states = []
    result = sweep(study, tmp_path / "s", workers=0, resume=True, report=False, progress=states.append)
    assert states[0].there >= 2
    assert result.complete
