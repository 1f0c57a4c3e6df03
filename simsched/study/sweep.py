"""`sweep`: performs every run of a study and puts the results together; finished runs are kept."""

from __future__ import annotations

import math
import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

import numpy as np

from simsched._version import version
from simsched.arguments import check, check_callable, check_whole
from simsched.declare.answers import UNSET, WrittenKeys, json_of, taken
from simsched.files import hidden_name
from simsched.folders import replace_folder, sync_disk
from simsched.report.metrics.summary import METRICS
from simsched.simulation.record.parquet import write_tables
from simsched.study.reality import RealityAnswer, reality_of_study
from simsched.study.runs.dispatch import FailedRun, FinishedRun, run_tasks
from simsched.study.runs.sweep_plan import is_shaken, log_uses, warn_of_rules
from simsched.study.runs.worker_pools import open_workers
from simsched.study.spec.run_task import FILE, MeasureDocument
from simsched.study.spec.study import SEED, Study, column
from simsched.study.study_folder import (
    FAILURES,
    RECORD,
    STUDY,
    STUDY_FORMAT,
    StudyFolder,
    StudyResult,
    place_of,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from simsched.study.runs.workers import Workers
    from simsched.study.spec.run_task import RunTask, TaskInput


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """The progress of a sweep: numbers of runs by state, and the run that ended last.

    `done` includes the `there` runs that an earlier sweep had finished.
    """

    total: int
    done: int = 0
    failed: int = 0
    running: int = 0
    there: int = 0
    last: FinishedRun | FailedRun | None = None


@dataclass
class _Results:
    """The results of the runs so far, by key."""

    total: int
    done: dict[str, FinishedRun] = field(default_factory=dict)
    failed: dict[str, FailedRun] = field(default_factory=dict)
    there: int = 0
    log_use: list[str] = field(default_factory=list)
    reality: Mapping[str, Any] = field(default_factory=dict)

    def progress(self, size: int, last: FinishedRun | FailedRun | None = None) -> SweepProgress:
        left = self.total - len(self.done) - len(self.failed)
        return SweepProgress(self.total, len(self.done), len(self.failed), min(size, left), self.there, last)


def sweep(
    study: Study,
    directory: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    hpc: str | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    retries: int = 2,
    report: bool = True,
    progress: Callable[[SweepProgress], None] | None = None,
    log_use: Sequence[str] | None = None,
) -> StudyResult:
    """Perform the runs of a study and write its directory.

    Parameters
    ----------
    directory : the directory to write; `simsched.study.study_folder` lists its files.  A finished
        study is replaced once the new one is finished, which is in ``DIRECTORY.partial`` until then.
    workers, scheduler, hpc, executor : the workers, as for `open_workers`.
    resume : continue a study that is there; only missing runs are performed.
    retries : number of further attempts if a worker dies.
    report : whether to write ``report.html`` (omitted if Bokeh is not installed).
    progress : called after each run.
    log_use : sentences on the use of logs, which ``study.json`` records; None: those of `log_uses`.

    Raises
    ------
    RunError
        if the directory holds something else, or the workers cannot be restarted.
    ConfigError
        if the workers cannot be opened, or the study has no run.
    """
    check("study", study, Study, "a study, as load_study returns it")
    check_whole("retries", retries)
    check_callable("progress", progress)
    folder, earlier = place_of(directory, study.name, resume=resume)
    tasks = study.tasks
    each = {task.key: task for task in tasks}
    state = _Results(len(each))
    state.done = {key: run for key, task in each.items() if (run := folder.done(task)) is not None}
    state.there = len(state.done)
    missing = [task for task in each.values() if task.key not in state.done]
    if missing or not _is_finished(folder, study, report=report):
        # Without missing runs there is nothing to perform, and no scheduler needs to answer.
        where = (workers, scheduler, hpc) if missing else (0, None, None)
        with folder.tidied(), open_workers(*where, executor=executor) as opened, folder.writing():
            folder.begin()
            state.log_use = list(log_uses(study) if log_use is None else log_use)
            write_json(folder.path / RECORD, record_of(study, state, complete=False))
            warn_of_rules(missing)
            _perform(missing, opened, folder, state, retries, progress)
            state.reality = reality_of_study(tasks, opened)
            _finish(folder, study, state, report=report)
    if earlier is not None and not state.failed:
        with earlier.writing():
            replace_folder(folder.path, earlier.path, STUDY)
        folder = earlier
    return StudyResult(folder.path)


def _perform(
    tasks: Sequence[RunTask],
    workers: Workers,
    folder: StudyFolder,
    state: _Results,
    retries: int,
    progress: Callable[[SweepProgress], None] | None,
) -> None:
    workers.send(_inputs(tasks))
    tell = progress or (lambda _: None)
    tell(state.progress(workers.size))
    for found in run_tasks(tasks, workers, folder=folder.runs, retries=retries):
        if isinstance(found, FinishedRun):
            state.done[found.task.key] = found
        else:
            state.failed[found.task.key] = found
        tell(state.progress(workers.size, found))


def _is_finished(folder: StudyFolder, study: Study, *, report: bool) -> bool:
    """Whether the directory holds this very study with all its files."""
    record = folder.record()
    if record is None or record.get("complete") is not True:
        return False
    same = record.get("plan") == _plan(study.tasks) and record.get("name") == study.name
    files = ["runs.parquet", *(["report.html"] if report else [])]
    return same and all((folder.path / name).is_file() for name in files)


def _finish(folder: StudyFolder, study: Study, state: _Results, *, report: bool) -> None:
    """Write the tables and the page; the record is marked complete only at the end."""
    tasks = study.tasks
    write_dataset(folder, tasks, state.done)
    failures: Failures = [
        taken(FailedTask, task, run=number, reason=state.failed[task.key].reason)
        for number, task in enumerate(tasks)
        if task.key in state.failed
    ]
    write_json(folder.path / FAILURES, failures)
    write_json(folder.path / RECORD, record_of(study, state, complete=False))
    if report and state.done:
        from simsched.study.study_page import write_page

        write_page(StudyResult(folder.path))
    if not state.failed:
        sync_disk(folder.path)
        write_json(folder.path / RECORD, record_of(study, state, complete=True))


class FailedTask(WrittenKeys):
    """A run without a result: its number, key and settings, and the reason."""

    run: int
    key: str
    settings: dict[str, Any]
    reason: str


Failures = list[FailedTask]


class PlannedRun(WrittenKeys):
    """A run of a study: its number, key, seed and settings (axis: label)."""

    run: int
    key: str
    seed: int
    settings: dict[str, Any]


class CountsOfStudy(WrittenKeys):
    """Numbers of runs."""

    runs: int
    done: int
    failed: int


class InputOfStudy(WrittenKeys):
    """An input: its name, kind and digest."""

    name: str
    kind: str
    sha256: str


class StudyRecord(WrittenKeys):
    """The content of ``study.json``.

    simsched : version that made it.
    complete : whether every run has a result or a reason.
    axes : axis: the labels of its settings.
    shaken : whether seeds shake submissions.
    log_use : how each log uses the machine of the site.
    """

    simsched: str
    format: Annotated[int, json_of(const=STUDY_FORMAT)]
    complete: bool
    name: str
    description: str
    axes: dict[str, list[Any]]
    seeds: list[int]
    shaken: bool
    measure: MeasureDocument
    counts: CountsOfStudy
    inputs: list[InputOfStudy]
    plan: list[PlannedRun]
    log_use: NotRequired[list[str]]
    reality: NotRequired[RealityAnswer]


def _plan(tasks: Sequence[RunTask]) -> list[PlannedRun]:
    return [taken(PlannedRun, task, run=number) for number, task in enumerate(tasks)]


def changed_inputs(record: Mapping[str, Any], study: Study) -> list[str]:
    """Return the names of inputs that have changed since the study of a record began."""
    before: dict[str, set[str]] = {}
    for known in record.get("inputs", ()):
        before.setdefault(known["name"], set()).add(known["sha256"])
    files = [source for source in _inputs(study.tasks) if source.kind == FILE]
    return sorted({s.name for s in files if s.sha256 not in before.get(s.name, {s.sha256})})


def _inputs(tasks: Sequence[RunTask]) -> list[TaskInput]:
    """Return the clusters and workloads of tasks, each content once."""
    return list({s.sha256: s for task in tasks for s in (task.cluster, task.workload)}.values())


def record_of(study: Study, state: _Results, *, complete: bool) -> StudyRecord:
    """Return the content of ``study.json``."""
    tasks = study.tasks
    return taken(
        StudyRecord,
        study,
        simsched=version(),
        format=STUDY_FORMAT,
        complete=complete,
        axes={axis.name: [setting.label for setting in axis.settings] for axis in study.axes},
        shaken=is_shaken(tasks),
        measure=study.base.measure.document(),
        counts={"runs": len(tasks), "done": len(state.done), "failed": len(state.failed)},
        inputs=[taken(InputOfStudy, source) for source in _inputs(tasks)],
        plan=_plan(tasks),
        log_use=state.log_use or UNSET,
        **{"reality": UNSET, **state.reality},
    )


# --- the tables over all runs of a study: Parquet files, rows in the order of the plan, no wall-clock times


def write_dataset(folder: StudyFolder, tasks: Sequence[RunTask], done: Mapping[str, FinishedRun]) -> None:
    """Write ``runs.parquet``, ``queues.parquet`` and the dataset of jobs of the finished runs.

    ``timings.parquet`` has the time and the worker of each run, which differ between equal sweeps.
    """
    there = [(number, task, done[task.key]) for number, task in enumerate(tasks) if task.key in done]
    axes = [name for name in dict.fromkeys(n for _, task, _ in there for n in task.settings) if name != SEED]
    runs, queues, timings = [], [], []
    for number, task, run in there:
        labels = {column(name): task.settings.get(name) for name in axes}
        head = {"run": number, "key": task.key}
        timings.append({**head, "seconds": run.seconds, "worker": run.worker, "attempts": run.attempts})
        head |= {**labels, SEED: task.seed}
        runs.append((head, run.row.metrics))
        queues += [({**head, "queue": name}, figures) for name, figures in run.row.queues.items()]
    tables = {"runs": _table(runs), "timings": _columns(timings)}
    _write(folder, tables | ({"queues": _table(queues)} if queues else {}))
    for name in ("jobs", "timeline"):
        _linked(folder, name, [(number, task.key) for number, task, _ in there])


def _table(rows: Sequence[tuple[dict[str, Any], Mapping[str, float]]]) -> dict[str, Any]:
    """Return the columns of rows and their figures: known figures in their usual order, then others."""
    have = {name for _, figures in rows for name in figures}
    usual = [known.name for known in METRICS if known.name in have]
    names = [*usual, *sorted(have.difference(usual))]
    each = {name: [figures.get(name, math.nan) for _, figures in rows] for name in names}
    floats = {name: np.array(values, dtype=np.float64) for name, values in each.items()}
    return {**_columns([head for head, _ in rows]), **floats}


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return columns of whole numbers, numbers or texts: the first type that represents all their values."""
    numbers, texts = np.empty(0, np.int64), np.empty(0, object)
    made = {} if rows else {"run": numbers, "key": texts, SEED: numbers}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        if all(isinstance(value, int) and abs(value) < 2**63 for value in values):
            made[name] = np.array(values, dtype=np.int64)
        elif all(isinstance(value, int | float) for value in values):
            made[name] = np.array(values, dtype=np.float64)
        else:
            made[name] = np.array([None if value is None else str(value) for value in values], dtype=object)
    return made


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
