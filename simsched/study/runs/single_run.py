"""One run: the function that a worker runs, the simulation, its figures, and its directory.

A worker takes a task and returns a reply, both as bytes and plain values.  A run that raises an exception
also gives a reply; the executor only notices the death of a worker.  Nothing of a run but its files and its
figures leaves the worker.
"""

from __future__ import annotations

import json
import math
import os
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from simsched._version import version as own_version
from simsched.declare.answers import OrNull, rounded
from simsched.errors import RunError, SimschedError
from simsched.simulation.options.run_config import from_document, make_config
from simsched.simulation.record.run_directory import RunDirectory
from simsched.simulation.simulate import simulate
from simsched.study.runs.input_cache import INPUTS
from simsched.study.spec.run_task import RunTask, canonical_json
from simsched.study.spec.target import OF_JOBS, parse_figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from simsched.simulation.record.run_directory import RunResult
    from simsched.study.spec.target import Figure

#: figures of a queue: those that come from its jobs and not from the timeline
OF_A_QUEUE = (
    "jobs", "jobs_run", "makespan", "throughput", "share_waited", "area_weighted_response",
    "mean_wait", "median_wait", "p90_wait", "p95_wait", "p99_wait", "max_wait",
    "mean_turnaround", "median_turnaround", "mean_bounded_slowdown", "median_bounded_slowdown",
    "p95_bounded_slowdown", "mean_per_processor_bounded_slowdown",
)  # fmt: skip


# --- the result: a row of figures


class RunRow(msgspec.Struct, frozen=True):
    """The figures of one run, and the content of ``row.json``; null for one that could not be computed.

    key : key of the task.
    metrics : the figures.
    queues : queue: figures of its jobs.
    counts : result of jobs: number of jobs.
    """

    key: str
    metrics: dict[str, OrNull]
    queues: dict[str, dict[str, OrNull]]
    counts: dict[str, int]
    seed: int

    def to_bytes(self) -> bytes:
        """Return ``row.json``, numbers with 12 digits."""
        document = rounded(msgspec.to_builtins(self), 12, whole=True)
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> RunRow:
        """Return the row that `to_bytes` wrote, with NaN for null."""
        found = msgspec.json.decode(data, type=cls)
        each = {name: _numbers(figures) for name, figures in found.queues.items()}
        return msgspec.structs.replace(found, metrics=_numbers(found.metrics), queues=each)


def _numbers(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {name: math.nan if value is None else value for name, value in figures.items()}


# --- a run


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
    from simsched.report.data.tables import RunTables
    from simsched.report.metrics.summary import summary_text

    with ExitStack() as ends:
        ends.enter_context(INPUTS.lock)
        if folder is None:
            return _row(task, _simulated(task))
        directory = ends.enter_context(RunDirectory(folder / task.key, of_study=True))
        sink = directory.allocations() if "allocations" in task.keep else None
        result = _simulated(task, sink)
        row = _row(task, result)
        in_part = task.measure.warm_up or task.measure.drain  # summary.json is of the whole run
        texts = {
            "row.json": row.to_bytes().decode(),
            "task.json": json.dumps(task.identity(), indent=1, ensure_ascii=False) + "\n",
            "summary.json": summary_text(RunTables.from_result(result).summary if in_part else row.metrics),
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
    from simsched.report.metrics.summary import summarise

    run = RunTables.from_result(result)
    window = {"warm_up": task.measure.warm_up, "drain": task.measure.drain}
    figures = summarise(run.jobs, run.timeline, run.totals, **window)
    queues: dict[str, dict[str, float]] = {}
    if task.measure.by_queue:
        for name in sorted(str(name) for name in run.jobs["queue"].dropna().unique()):
            jobs = run.jobs[run.jobs["queue"] == name]
            own = summarise(jobs, run.timeline, run.totals, **window)
            queues[name] = {figure: own[figure] for figure in OF_A_QUEUE if figure in own}
    if task.measure.figures:
        known = (result.workload or INPUTS.workload(task)).jobs
        named = map(parse_figure, task.measure.figures)
        figures |= figures_of(named, run, known, summary=figures, **window)
    row = RunRow(task.key, figures, queues, dict(result.meta["counts"]), task.seed)
    # Bytes keep 12 digits: a row that was just made equals the one that a resumed study reads from row.json.
    return RunRow.from_bytes(row.to_bytes())


def same_task(task: RunTask, text: bytes) -> bool:
    """Whether a ``task.json`` describes this task."""
    try:
        return canonical_json(json.loads(text)) == canonical_json(task.identity())
    except ValueError:
        return False


# --- figures of all jobs, or of those that match a query


def figures_of(
    figures: Iterable[Figure],
    run: Any,
    jobs: Iterable[Any],
    *,
    warm_up: float = 0.0,
    drain: float = 0.0,
    summary: dict[str, float] | None = None,
) -> dict[str, float]:
    """Return the value of each figure of a run, by its text.

    Parameters
    ----------
    run : a `simsched.report.data.tables.RunTables`.
    jobs : the jobs of the workload as it was run; queries select from them.
    warm_up, drain : seconds of submissions that are ignored (see `summarise`).
    summary : figures of the whole run, if they are known.

    Returns
    -------
    dict
        NaN for a figure that cannot be computed because no job ran or none matches its query.
    """
    from simsched.report.metrics.metrics import trim
    from simsched.report.metrics.summary import summarise
    from simsched.workload.transforms.query import parse_query

    whole = summary if summary is not None else summarise(run.jobs, run.timeline, run.totals,
                                                          warm_up=warm_up, drain=drain)  # fmt: skip
    kept = trim(run.jobs, warm_up, drain) if (warm_up or drain) and len(run.jobs) else run.jobs
    known = list(jobs)
    found: dict[str, float] = {}
    for figure in figures:
        frame = kept
        if figure.query:
            holds = parse_query(figure.query)
            frame = kept[kept["id"].astype(str).isin({str(job.id) for job in known if holds(job)})]
        found[str(figure)] = _of_frame(figure, frame, whole)
    return found


def _of_frame(figure: Figure, frame: pd.DataFrame, whole: dict[str, float]) -> float:
    from simsched.report.metrics import metrics
    from simsched.report.metrics.summary import summarise

    if not figure.query:
        name = figure.name
        if name == "utilisation":
            name = "utilisation_core" if "utilisation_core" in whole else "utilisation_node"
        if name in whole:
            return whole[name]
        if name.startswith("down_"):
            return 0.0  # a summary has such figures only for types that were down
    if figure.statistic is not None:
        statistic, measure = figure.statistic
        level = float(statistic[1:]) if statistic.startswith("p") else 50
        described = metrics.describe(getattr(metrics, measure)(metrics.ran(frame)), (level,))
        return described[f"p{level:g}" if statistic[:1] == "p" or statistic == "median" else statistic]
    if figure.query and figure.name in OF_JOBS:  # it depends on jobs only
        timeline = frame.iloc[:0][["submit"]].rename(columns={"submit": "time"}).assign(queued_jobs=0.0)
        return summarise(frame, timeline, {}).get(figure.name, float("nan"))
    return float("nan")


# --- the function that a worker runs


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """The reply of a worker to one task.

    Attributes
    ----------
    row : the figures, as `RunRow.to_bytes`; None if the run failed.
    seconds, worker : time of the run, and the worker that performed it.
    error, passing : reason of a failure, and whether another attempt may succeed.
    files : files of the run directory, if client and worker do not share files.
    """

    row: bytes | None
    seconds: float = 0.0
    worker: str = ""
    error: str = ""
    passing: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)


def work(task: bytes, folder: str | None, packed: bool, version: str) -> dict[str, Any]:
    """Perform a task and return a `WorkerReply` as a dictionary.

    Parameters
    ----------
    task : `RunTask.to_bytes`.
    folder : folder of the run directories; None keeps none.
    packed : return the files of the run directory and ignore `folder`.
    version : version of the client; another one here is a failure, since results could differ.
    """
    worker = f"{socket.gethostname()}:{os.getpid()}"
    files: dict[str, bytes] = {}
    began = time.perf_counter()
    if own_version() != version:
        expected = f"{version}, the version of the client"
        fault = RunError(f"the worker has simsched {own_version()}", expected=expected)
        return {"row": None, "worker": worker, "error": str(fault)}
    try:
        wanted = RunTask.from_bytes(task)
        if packed:  # in a temporary directory of this machine
            with TemporaryDirectory(prefix="simsched-run-") as place:
                row = perform(wanted, Path(place))
                run = Path(place) / wanted.key
                files = {path.name: path.read_bytes() for path in sorted(run.iterdir())}
        else:
            row = perform(wanted, None if folder is None else Path(folder))
    except Exception as error:  # noqa: BLE001 - the reply carries it
        ours = isinstance(error, SimschedError)
        text = " ".join(str(error).split()) or type(error).__name__
        reason = text if ours else f"{type(error).__name__}: {text}"
        # Lack of memory or disk may pass; an error of the input or the options would return.
        passing = isinstance(error.__cause__, OSError) if ours else isinstance(error, OSError | MemoryError)
        return {"row": None, "worker": worker, "error": reason, "passing": passing}
    seconds = round(time.perf_counter() - began, 4)
    return {"row": row.to_bytes(), "seconds": seconds, "worker": worker, "files": files}
