"""The tables over all runs of a study: Parquet files, rows in the order of the plan, no wall-clock times."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.files import hidden_name
from simsched.report.metrics.summary import METRICS
from simsched.simulation.record.parquet import write_tables
from simsched.study.spec.study import SEED, column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.study.runs.dispatch import FinishedRun
    from simsched.study.runs.single_run import RunRow
    from simsched.study.runs.study_folder import StudyFolder
    from simsched.study.spec.run_task import RunTask


def write_dataset(folder: StudyFolder, tasks: Sequence[RunTask], rows: Mapping[str, RunRow]) -> None:
    """Write ``runs.parquet``, ``queues.parquet`` and the dataset of jobs of the finished runs."""
    there = [(number, task, rows[task.key]) for number, task in enumerate(tasks) if task.key in rows]
    tables = {"runs": runs_table(there)}
    if any(row.queues for _, _, row in there):
        tables["queues"] = _queues_table(there)
    _write(folder, tables)
    for name in ("jobs", "timeline"):
        _linked(folder, name, [(number, task.key) for number, task, _ in there])


def _write(folder: StudyFolder, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Write tables, each as a whole or not at all."""
    beside = hidden_name(folder.path / "tables", 0)
    beside.mkdir()
    try:
        write_tables(beside, tables)
        for name in tables:
            (beside / f"{name}.parquet").replace(folder.path / f"{name}.parquet")
    except OSError as error:  # the message names the folder of the study, not the hidden one
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"cannot be written: {reason}", str(folder.path)) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def runs_table(rows: Sequence[tuple[int, RunTask, RunRow]]) -> dict[str, Any]:
    """Return the columns: run, key, the axes, seed, every figure."""
    axes = _axes([task for _, task, _ in rows])
    return {**_heads(rows, axes), **_figures([row.metrics for _, _, row in rows])}


def _queues_table(rows: Sequence[tuple[int, RunTask, RunRow]]) -> dict[str, Any]:
    """Return the same columns with one row per run and queue."""
    each = [(line, queue, figures) for line in rows for queue, figures in line[2].queues.items()]
    axes = _axes([task for _, task, _ in rows])
    heads = _heads([line for line, _, _ in each], axes)
    return {**heads, "queue": _texts([queue for _, queue, _ in each]), **_figures([f for _, _, f in each])}


def _heads(rows: Sequence[tuple[int, RunTask, RunRow]], axes: Sequence[str]) -> dict[str, Any]:
    tasks = [task for _, task, _ in rows]
    return {
        "run": np.array([number for number, _, _ in rows], dtype=np.int64),
        "key": _texts([task.key for task in tasks]),
        **{column(name): _labels([task.settings.get(name) for task in tasks]) for name in axes},
        SEED: np.array([task.seed for task in tasks], dtype=np.int64),
    }


def _axes(tasks: Sequence[RunTask]) -> list[str]:
    return [name for name in dict.fromkeys(n for task in tasks for n in task.settings) if name != SEED]


def _texts(values: Sequence[Any]) -> Any:
    made = np.empty(len(values), dtype=object)
    made[:] = [None if value is None else str(value) for value in values]
    return made


def _labels(values: Sequence[Any]) -> Any:
    """Return labels as whole numbers, numbers or texts, the first type that represents all of them."""
    if all(isinstance(value, int) and abs(value) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    if all(isinstance(value, int | float) for value in values):
        return np.array(values, dtype=np.float64)
    return _texts(values)


def _figures(each: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return one column per figure: the known figures in their usual order, then the others."""
    have = {name for figures in each for name in figures}
    usual = [known.name for known in METRICS if known.name in have]
    names = [*usual, *sorted(have.difference(usual))]
    nan = float("nan")
    return {n: np.array([figures.get(n, nan) for figures in each], dtype=np.float64) for n in names}


def _linked(folder: StudyFolder, name: str, runs: Sequence[tuple[int, str]]) -> None:
    """Link a table of every run into a dataset in hive layout."""
    files = [(number, folder.runs / key / f"{name}.parquet") for number, key in runs]
    files = [(number, file) for number, file in files if file.is_file()]
    if not files:
        return
    beside = hidden_name(folder.path / name, 0)
    shutil.rmtree(beside, ignore_errors=True)
    for number, file in files:
        place = beside / f"run={number}"
        place.mkdir(parents=True)
        try:
            os.link(file, place / file.name)
        except OSError:  # a file system without links
            shutil.copyfile(file, place / file.name)
    beside.rename(folder.path / name)


def write_timings(folder: StudyFolder, tasks: Sequence[RunTask], done: Mapping[str, FinishedRun]) -> None:
    """Write the time and the worker of each run, which differ between equal sweeps."""
    there = [(number, done[task.key]) for number, task in enumerate(tasks) if task.key in done]
    columns = {
        "run": np.array([number for number, _ in there], dtype=np.int64),
        "key": _texts([item.task.key for _, item in there]),
        "seconds": np.array([item.row.seconds for _, item in there], dtype=np.float64),
        "worker": _texts([item.worker for _, item in there]),
        "attempts": np.array([item.attempts for _, item in there], dtype=np.int64),
    }
    _write(folder, {"timings": columns})
