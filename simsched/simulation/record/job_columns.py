"""The columns of ``jobs.parquet``, from the workload and the lists of the recorder."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.simulation.record.recorder import DROPPED, PENDING, RESULTS, RUNNING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.simulation.record.recorder import Recorder
    from simsched.workload.job import Job, Workload

NAN = float("nan")
UNLIMITED = float("inf")


def job_columns(workload: Workload, recorder: Recorder) -> dict[str, Any]:
    """Return the table of jobs: those of the workload in submit order, then the dropped records."""
    jobs = workload.jobs
    # a skipped record was a job; steps and summary lines are not
    dropped = [one for one in workload.skipped if one.id is not None or one.submit is not None or one.where]
    more = len(dropped)
    start, end = _times(recorder.start, more), _times(recorder.end, more)
    nodes, cores, gpus, slots = (np.array(each + [0] * more, dtype=np.int64) for each in recorder.counts)
    codes = np.fromiter(recorder.result + [DROPPED] * more, np.int64)
    reasons = [*map(recorder.reasons.get, range(len(jobs))), *(skip.reason for skip in dropped)]
    shapes = _shapes(jobs)
    submit = _floats([job.submit for job in jobs] + [skip.submit for skip in dropped])
    wait = _floats([job.wait for job in jobs] + [None] * more)
    # columns that a workload without such values does not have
    optional: dict[str, tuple[list[Any], Callable[[list[Any]], Any]]] = {
        "recorded_energy": ([job.energy for job in jobs], _floats),
        "array_task": ([None if job.array_task is None else str(job.array_task) for job in jobs], _texts),
        "depends": ([",".join(map(str, job.dependencies)) or None for job in jobs], _texts),
    }
    return {
        "id": _texts(
            [*map(str, recorder.ids)] + [str(skip.where if skip.id is None else skip.id) for skip in dropped]
        ),
        **{
            name: _texts([*map(attrgetter(name), jobs), *[None] * more])
            for name in ("name", "user", "bank", "queue")
        },
        "urgency": np.fromiter(chain(map(attrgetter("urgency"), jobs), [16] * more), np.int32),
        "submit": submit,
        "eligible": _times(recorder.eligible, more),
        "start": start,
        "wait": start - submit,
        "end": end,
        "duration": _times([UNLIMITED if job.duration is None else job.duration for job in jobs], more),
        "runtime": end - start,
        "nodes": nodes.astype(np.int32),
        "cores": cores,
        "gpus": gpus,
        "slots": slots,
        "procs": _floats([job.procs for job in jobs] + [None] * more),
        "result": np.array(RESULTS, dtype=object)[codes],
        "reason": _texts(reasons),
        "backfilled": np.array(recorder.backfilled + bytes(more), dtype=np.bool_),
        "promised": _times(recorder.promised, more),
        "shape": _texts(shapes + [None] * more),
        "recorded_state": _texts([job.status for job in jobs] + [None] * more),
        "recorded_start": submit + wait,
        "recorded_wait": wait,
        **{
            name: column(values + [None] * more)
            for name, (values, column) in optional.items()
            if values.count(None) < len(jobs)
        },
    }


def _texts(values: Sequence[str | None]) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _times(values: list[float], more: int) -> Any:
    """Return a column of numbers, and `more` rows without one; floats take a sixth of `_floats`."""
    return np.fromiter(values + [NAN] * more, np.float64)


def _floats(values: Sequence[float | None]) -> Any:
    # NumPy makes NaN of None, too, but takes five times as long.
    return np.fromiter([NAN if value is None else value for value in values], np.float64)


def _shapes(jobs: Sequence[Job]) -> list[str | None]:
    """Return each job's request as a shape; resources that are one object are converted once."""
    specs = [job.jobspec for job in jobs]
    ids = [id(spec.resources) for spec in specs]
    known = {key: _shape_of(spec) for key, spec in dict(zip(ids, specs, strict=True)).items()}
    return list(map(known.__getitem__, ids))


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
