"""The waits of all jobs of a run by cause, by queue and by user, from the tables of the run.

The time before a job was eligible is one cause.  After that, each instant at which fewer units were
free than the job got is a shortage of the scarcest type, and all other time is the queue policy's
(reservations and the order of the queue) or due to where the free units were.  `job_wait` tells these
apart for a single job; here sums decide, so that a million jobs take seconds.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from simsched.errors import RunError
from simsched.report.columns import HELD
from simsched.report.metrics.causes import NEVER, REJECTED
from simsched.report.waiting.job_answer import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from simsched.report.data.tables import RunTables

    Floats = npt.NDArray[np.float64]

NOT_ELIGIBLE, POLICY = "not eligible", "policy or placement"
_WHOLE_NODE = re.compile(r"\bnode(?:=[^/;\]{]*)?(?:\{x|\Z|[;\]])")
"""A node of a shape (RFC 46) that is exclusive, because it says so or has nothing in it."""
GROUPS = ("queue", "user")


def wait_table(run: RunTables) -> pd.DataFrame:
    """Return one row per job that was submitted, and one column per cause: seconds.

    The columns of a row add up to the wait of the job, from submission to start; a job that did
    not start waits until its end or the end of the run.

    Raises
    ------
    RunError
        if the timeline of the run does not have the free units of the types of the cluster.
    """
    jobs, types, submit, eligible, end = waiting_jobs(run)
    table = pd.DataFrame({NOT_ELIGIBLE: eligible - submit}, index=jobs.index)
    short = _shortages(run, types, jobs, eligible, end)
    for type_ in types:
        table[f"{SHORT} of {type_}"] = short[type_]
    # the rest, so that the causes add up to the wait whatever the rounding
    table[POLICY] = (end - eligible) - sum(short.values())
    return table


def waiting_jobs(run: RunTables) -> tuple[pd.DataFrame, list[str], Floats, Floats, Floats]:
    """Return the jobs that were submitted, the types that may be short, and the times of the jobs' waits.

    The times (s) are those of submission, of eligibility and of the end of the wait.
    """
    rejected = run.jobs["reason"].astype(str).str.startswith(REJECTED)
    jobs = run.jobs[~(run.jobs["result"].isin(NEVER) | rejected)]
    types = [type_ for type_ in HELD if f"free_{type_}" in run.timeline and run.totals.get(type_)]
    if not types:
        raise RunError("the timeline of this run has no free units of any type", where=run.name)
    last = float(run.timeline["time"].iloc[-1]) if len(run.timeline) else 0.0
    end = jobs["start"].fillna(jobs["end"]).fillna(last).to_numpy(dtype=np.float64)
    submit = jobs["submit"].to_numpy(dtype=np.float64)
    end = np.maximum(end, submit)
    eligible = np.clip(jobs["eligible"].fillna(np.inf).to_numpy(dtype=np.float64), submit, end)
    return jobs, types, submit, eligible, end


def _shortages(
    run: RunTables, types: list[str], jobs: pd.DataFrame, eligible: Floats, end: Floats
) -> dict[str, Floats]:
    """Return, for each type, the seconds in which it was the scarcest of those that were short for a job."""
    time = run.timeline["time"].to_numpy(dtype=np.float64)
    lengths = np.diff(np.append(time, max(float(end.max(initial=0.0)), float(time[-1]))))
    found = {type_: np.zeros(len(jobs)) for type_ in types}
    for rows, worst in scarcest(run, types, jobs, end > eligible):
        for at, type_ in enumerate(types):
            passed = np.concatenate(([0.0], np.cumsum(lengths * (worst == at))))
            found[type_][rows] = _at(passed, time, lengths, worst == at, end[rows]) - _at(
                passed, time, lengths, worst == at, eligible[rows]
            )
    return found


def scarcest(
    run: RunTables, types: list[str], jobs: pd.DataFrame, waited: npt.NDArray[np.bool_]
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield the jobs (row numbers) of each size that waited, and the scarcest type per row of the timeline.

    The type is a position in `types`, or -1 where none is short for jobs of this size.
    """
    free = {type_: run.timeline[f"free_{type_}"].to_numpy(dtype=np.float64) for type_ in types}
    needs = needed_units(run, types, jobs)
    kinds, which = np.unique(needs, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    edges = np.searchsorted(which.ravel()[order], np.arange(len(kinds) + 1))
    for kind, (low, high) in enumerate(pairwise(edges)):
        rows = order[low:high]
        rows = rows[waited[rows]]
        if not len(rows):
            continue
        lacking = np.stack(
            [(kinds[kind, at] - free[type_]) / run.totals[type_] for at, type_ in enumerate(types)]
        )
        # rounded, because whole nodes lack the same share of nodes and cores; nodes come first then
        yield rows, np.where(lacking.max(axis=0) > 0, lacking.round(9).argmax(axis=0), -1)


def needed_units(run: RunTables, types: list[str], jobs: pd.DataFrame) -> Floats:
    """Return the units of each type (column) that must be free for each job (row).

    Jobs that get whole nodes request nodes, the others units in them.
    """
    needs = np.stack([jobs[HELD[type_]].to_numpy(dtype=np.float64) for type_ in types], axis=1)
    if "node" in types:
        whole = _has_whole_nodes(run, jobs)
        needs[~whole, types.index("node")] = 0
        for at in (at for at, type_ in enumerate(types) if type_ != "node"):
            needs[whole, at] = 0
    return needs


def _has_whole_nodes(run: RunTables, jobs: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return, for each job, whether it gets whole nodes: by the match policy, or by its shape."""
    if run.meta.get("whole_nodes"):
        return np.ones(len(jobs), dtype=bool)
    shapes = jobs["shape"].astype(str)
    whole = {shape: _WHOLE_NODE.search(str(shape)) is not None for shape in shapes.unique()}
    return shapes.map(whole).to_numpy(dtype=bool)


def _at(passed: Floats, time: Floats, lengths: Floats, counted: npt.NDArray[np.bool_], at: Floats) -> Floats:
    """Return the counted seconds up to each time `at`."""
    row = np.clip(np.searchsorted(time, at, side="right") - 1, 0, len(time) - 1)
    within = np.clip(at - time[row], 0.0, lengths[row])
    result: Floats = passed[row] + within * counted[row]
    return result


def totals_by(run: RunTables, table: pd.DataFrame, key: str | None = None) -> pd.DataFrame:
    """Return hours waited by cause: one row per group of `key` (``queue``, ``user``), the longest wait first.

    Without a key there is one row, ``all``.
    """
    hours = table / 3600.0
    if key is None:
        return hours.sum().to_frame("all").T
    names = run.jobs.loc[table.index, key].astype(str)
    grouped: pd.DataFrame = hours.groupby(names).sum()
    return grouped.loc[grouped.sum(axis=1).sort_values(ascending=False, kind="stable").index]


def binding(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per type that was short: job-hours, jobs, and the share of all waited hours.

    This is the answer to "what to buy": more units of the type in the first row would have helped
    for the most hours.
    """
    total = float(table.to_numpy().sum())
    rows = [
        {
            "type": str(column).removeprefix(f"{SHORT} of "),
            "job_hours": float(table[column].sum()) / 3600.0,
            "jobs": int((table[column] > 0).sum()),
            "share": float(table[column].sum()) / total if total else 0.0,
        }
        for column in table
        if str(column).startswith(SHORT)
    ]
    frame = pd.DataFrame(rows, columns=["type", "job_hours", "jobs", "share"]).set_index("type")
    return frame.sort_values("job_hours", ascending=False, kind="stable")
