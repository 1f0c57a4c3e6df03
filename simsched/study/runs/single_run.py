"""One run: its inputs from the cache, the simulation, its figures and its directory."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.simulation.options.run_config import from_document, make_config
from simsched.simulation.record.run_directory import RunDirectory
from simsched.simulation.simulate import simulate
from simsched.study.runs.input_cache import INPUTS
from simsched.study.runs.run_row import RunRow
from simsched.study.spec.run_task import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

    from simsched.simulation.record.run_directory import RunResult
    from simsched.study.spec.run_task import RunTask

#: figures of a queue: those that come from its jobs and not from the timeline
OF_A_QUEUE = (
    "jobs", "jobs_run", "makespan", "throughput", "share_waited", "area_weighted_response",
    "mean_wait", "median_wait", "p90_wait", "p95_wait", "p99_wait", "max_wait",
    "mean_turnaround", "median_turnaround", "mean_bounded_slowdown", "median_bounded_slowdown",
    "p95_bounded_slowdown", "mean_per_processor_bounded_slowdown",
)  # fmt: skip


def options_of(task: RunTask, where: str = "options") -> dict[str, Any]:
    """Return the fields of the run's configuration.

    Raises
    ------
    ConfigError, FormatError
        for an unknown option, or a value that is not valid.
    """
    options = {**from_document(dict(task.options), where), "seed": task.seed}
    make_config(**options)
    return options


def perform(task: RunTask, folder: Path | None = None) -> RunRow:
    """Run a task and return its figures; its run directory is ``folder/KEY``.

    The cluster and the workload come from the cache of this process, which performs one task at a time.
    The run directory is written as a whole or not at all.

    Raises
    ------
    SimschedError
        for an input that is missing or has changed, and for errors of the run itself.
    """
    began = time.perf_counter()
    with INPUTS.lock:
        row = _row(task, _simulated(task)) if folder is None else _recorded(task, folder)
    return replace(row, seconds=round(time.perf_counter() - began, 4))


def _recorded(task: RunTask, folder: Path) -> RunRow:
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


def _simulated(task: RunTask, sink: Any = None) -> RunResult:
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


def _row(task: RunTask, result: RunResult) -> RunRow:
    from simsched.report.data.tables import RunTables

    run = RunTables.from_result(result)
    window = {"warm_up": task.measure.warm_up, "drain": task.measure.drain}
    figures = _summarised(run, run.jobs, window)
    queues: dict[str, Mapping[str, float]] = {}
    if task.measure.by_queue:
        names = sorted(str(name) for name in run.jobs["queue"].dropna().unique())
        for name in names:
            own = _summarised(run, run.jobs[run.jobs["queue"] == name], window)
            queues[name] = {figure: own[figure] for figure in OF_A_QUEUE if figure in own}
    if task.measure.figures:
        from simsched.study.runs.figure_values import figures_of
        from simsched.study.spec.target import parse_figure

        jobs = (result.workload or INPUTS.workload(task)).jobs
        named = map(parse_figure, task.measure.figures)
        figures |= figures_of(named, run, jobs, summary=figures, **window)
    row = RunRow(task.key, figures, result.meta["counts"], queues, {}, task.seed)
    # Bytes keep 12 digits: a row that was just made equals the one that a resumed study reads from row.json.
    return RunRow.from_bytes(row.to_bytes(), settings=task.settings)


def _summarised(run: Any, jobs: pd.DataFrame, window: Mapping[str, Any]) -> dict[str, float]:
    from simsched.report.metrics.summary import summarise

    return summarise(jobs, run.timeline, run.totals, **window)


def _summary(task: RunTask, row: RunRow, result: RunResult) -> str:
    """Return ``summary.json``: figures of the whole run, even if the row leaves out warm-up and drain."""
    from simsched.report.data.tables import RunTables
    from simsched.report.metrics.summary import summary_text

    in_part = task.measure.warm_up or task.measure.drain
    return summary_text(RunTables.from_result(result).summary if in_part else row.metrics)


def same_task(task: RunTask, text: bytes) -> bool:
    """Whether a ``task.json`` describes this task."""
    try:
        return canonical_json(json.loads(text)) == canonical_json(task.identity())
    except ValueError:
        return False
