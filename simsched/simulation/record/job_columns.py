"""The columns of ``jobs.parquet``, from the workload and the lists of the recorder."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.simulation.record.recorder import DROPPED, PENDING, RESULTS, RUNNING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.simulation.record.recorder import Recorder
    from simsched.workload.job import Job, Workload

NAN = float("nan")
UNLIMITED = float("inf")
MISSING = {"f": NAN, "i": 0, "b": False, "O": None}
"""What a column has for a record that was dropped, by the kind of its values."""


def job_columns(workload: Workload, recorder: Recorder) -> dict[str, Any]:
    """Return the table of jobs: those of the workload in submit order, then the dropped records."""
    jobs = workload.jobs
    eligible, start, end, promised = (
        np.array(times, dtype=np.float64)
        for times in (recorder.eligible, recorder.start, recorder.end, recorder.promised)
    )
    nodes, cores, gpus, slots = (np.array(each, dtype=np.int64) for each in recorder.counts)
    reasons = np.full(len(jobs), None, dtype=object)
    for job, reason in recorder.reasons.items():
        reasons[job] = reason
    submit = np.fromiter(map(attrgetter("submit"), jobs), np.float64, len(jobs))
    wait = _floats(jobs, "wait")
    columns = {
        "id": _texts(map(str, recorder.ids)),
        **{name: _texts([*map(attrgetter(name), jobs)]) for name in ("name", "user", "bank", "queue")},
        "urgency": np.fromiter(map(attrgetter("urgency"), jobs), np.int32, len(jobs)),
        "submit": submit,
        "eligible": eligible,
        "start": start,
        "wait": start - submit,
        "end": end,
        "duration": _floats(jobs, "duration", UNLIMITED),
        "runtime": end - start,
        "nodes": nodes.astype(np.int32),
        "cores": cores,
        "gpus": gpus,
        "slots": slots,
        "procs": _floats(jobs, "procs"),
        "result": np.array(RESULTS, dtype=object)[np.array(recorder.result)],
        "reason": reasons,
        "backfilled": np.array(recorder.backfilled, dtype=np.bool_),
        "promised": promised,
        "shape": _shapes(jobs),
        "recorded_state": _texts([job.status for job in jobs]),
        "recorded_start": submit + wait,
        "recorded_wait": wait,
    }
    # columns that a workload without such values does not have
    if any(job.energy is not None for job in jobs):
        columns["recorded_energy"] = _floats(jobs, "energy")
    tasks = [None if job.array_task is None else str(job.array_task) for job in jobs]
    depends = [",".join(map(str, job.dependencies)) if job.dependencies else None for job in jobs]
    for name, texts in (("array_task", tasks), ("depends", depends)):
        if texts.count(None) < len(jobs):
            columns[name] = _texts(texts)
    return _with_dropped(columns, workload)


def _with_dropped(columns: dict[str, Any], workload: Workload) -> dict[str, Any]:
    """Return the columns with a row for each record that was dropped."""
    # a skipped record was a job; steps and summary lines are not
    dropped = [one for one in workload.skipped if one.id is not None or one.submit is not None or one.where]
    if not dropped:
        return columns
    known: dict[str, list[Any]] = {
        "id": [str(skip.where if skip.id is None else skip.id) for skip in dropped],
        "urgency": [16] * len(dropped),
        "submit": [NAN if skip.submit is None else skip.submit for skip in dropped],
        "result": [RESULTS[DROPPED]] * len(dropped),
        "reason": [skip.reason for skip in dropped],
    }
    rows = {name: known.get(name, [MISSING[of.dtype.kind]] * len(dropped)) for name, of in columns.items()}
    return {name: np.concatenate((of, np.array(rows[name], dtype=of.dtype))) for name, of in columns.items()}


def _texts(values: Iterable[str | None]) -> Any:
    return np.fromiter(values, object)


def _floats(jobs: Sequence[Job], name: str, missing: float = NAN) -> Any:
    # NumPy makes NaN of None, too, but takes twice as long where there are many.
    return np.fromiter(
        [missing if value is None else value for value in map(attrgetter(name), jobs)], np.float64
    )


def _shapes(jobs: Sequence[Job]) -> Any:
    """Return each job's request as a shape; resources that are one object are converted once."""
    specs = [job.jobspec for job in jobs]
    ids = [id(spec.resources) for spec in specs]
    known = {key: _shape_of(spec) for key, spec in dict(zip(ids, specs, strict=True)).items()}
    return _texts(map(known.__getitem__, ids))


def _shape_of(jobspec: Jobspec) -> str | None:
    from simsched.errors import SimschedError

    try:
        return jobspec.to_shape()
    except SimschedError:  # resources that no shape can express
        return None


def counts_of(columns: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of jobs by result, for ``run.json``."""
    results = columns["result"]
    numbers = Counter(results.tolist())  # to compare the column with each name takes many times as long
    found = {name.lower(): numbers[name] for name in RESULTS}
    never = sum(found[RESULTS[code].lower()] for code in (PENDING, RUNNING))
    started = int(np.isfinite(columns["start"]).sum())
    return {"jobs": len(results), "run": started, "unfinished": never, **found}
