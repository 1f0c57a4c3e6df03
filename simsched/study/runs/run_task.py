"""Performing one task: inputs from the cache, the run, its figures, its directory."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.simulation.options.run_config import from_document, make_config
from simsched.simulation.record.run_directory import RunDirectory
from simsched.simulation.simulate import simulate
from simsched.study.runs.cache import INPUTS
from simsched.study.runs.task import Row, canonical

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

    from simsched.simulation.record.result import Result
    from simsched.study.runs.task import Task

#: figures of a queue alone: those that come from its jobs and not from the timeline
OF_A_QUEUE = (
    "jobs", "jobs_run", "makespan", "throughput", "share_waited", "area_weighted_response",
    "mean_wait", "median_wait", "p90_wait", "p95_wait", "p99_wait", "max_wait",
    "mean_turnaround", "median_turnaround", "mean_bounded_slowdown", "median_bounded_slowdown",
    "p95_bounded_slowdown", "mean_per_processor_bounded_slowdown",
)  # fmt: skip


def options_of(task: Task, where: str = "options") -> dict[str, Any]:
    """Return the fields of the run's configuration.

    Raises
    ------
    ConfigError, FormatError
        For an option that does not exist, or a value that it does not take.
    """
    options = {**from_document(dict(task.options), where), "seed": task.seed}
    make_config(**options)
    return options


def perform(task: Task, folder: Path | None = None) -> Row:
    """Run a task and return its figures; `folder` takes its run directory, under the name `task.key`.

    The cluster and the workload come from this process's cache, so a process performs one task
    at a time.  The run directory is there as a whole or not at all.

    Raises
    ------
    SimschedError
        For an input that is not there, or not as it was, and whatever the run itself raises.
    """
    began = time.perf_counter()
    with INPUTS.lock:
        row = _row(task, _simulated(task)) if folder is None else _recorded(task, folder)
    return replace(row, seconds=round(time.perf_counter() - began, 4))


def _recorded(task: Task, folder: Path) -> Row:
    """Run a task and write its directory."""
    with RunDirectory(folder / task.key, of_study=True) as directory:
        sink = directory.allocations() if "allocations" in task.keep else None
        result = _simulated(task, sink)
        row = _row(task, result)
        texts = {
            "row.json": row.to_bytes().decode(),
            "task.json": json.dumps(task.identity(), indent=1, ensure_ascii=False) + "\n",
            "summary.json": _summary(task, row, result),
        }
        directory.finish(result, texts, tables="jobs" in task.keep)
    return row


def _simulated(task: Task, sink: Any = None) -> Result:
    cluster = INPUTS.cluster(task.cluster, task.edits)
    workload = INPUTS.workload(task)
    result = simulate(
        cluster,
        workload,
        allocations=sink is not None,
        eventlog="eventlog" in task.keep,
        sink=sink,
        **options_of(task),
    )
    sources = (("cluster", task.cluster), ("workload", task.workload))
    inputs = [{"role": role, "name": source.name, "sha256": source.sha256} for role, source in sources]
    return replace(result, meta={**result.meta, "inputs": inputs})


def _row(task: Task, result: Result) -> Row:
    from simsched.report.data.tables import Run

    run = Run.from_columns(result.jobs, result.timeline, result.meta)
    window = {"warm_up": task.measure.warm_up, "drain": task.measure.drain}
    figures = _summarised(run, run.jobs, window)
    queues: dict[str, Mapping[str, float]] = {}
    if task.measure.by_queue:
        names = sorted(str(name) for name in run.jobs["queue"].dropna().unique())
        for name in names:
            own = _summarised(run, run.jobs[run.jobs["queue"] == name], window)
            queues[name] = {figure: own[figure] for figure in OF_A_QUEUE if figure in own}
    if task.measure.figures:
        from simsched.study.runs.target_figures import figures_of
        from simsched.study.sizing.target import parse_figure

        jobs = (result.workload or INPUTS.workload(task)).jobs
        named = map(parse_figure, task.measure.figures)
        figures |= figures_of(named, run, jobs, summary=figures, **window)
    row = Row(task.key, figures, result.meta["counts"], queues, {}, task.seed)
    return Row.from_bytes(row.to_bytes(), settings=task.settings)


def _summarised(run: Any, jobs: pd.DataFrame, window: Mapping[str, Any]) -> dict[str, float]:
    from simsched.report.metrics.summary import summarise

    return summarise(jobs, run.timeline, run.totals, **window)


def _summary(task: Task, row: Row, result: Result) -> str:
    """Return ``summary.json``: the figures of the whole run, whatever the row was measured over."""
    from simsched.report.data.tables import Run

    if task.measure.warm_up or task.measure.drain:
        run = Run.from_columns(result.jobs, result.timeline, result.meta)
        row = replace(row, metrics=_summarised(run, run.jobs, {}))
    return json.dumps(json.loads(row.to_bytes())["metrics"], indent=1) + "\n"


def same_task(task: Task, text: bytes) -> bool:
    """Whether a ``task.json`` is of this task."""
    try:
        return canonical(json.loads(text)) == canonical(task.identity())
    except ValueError:
        return False
