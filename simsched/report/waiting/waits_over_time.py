"""The job-hours waited in each part of a run by cause: when jobs waited, and for which resource.

The causes are those of `wait_totals`, and the sums over time are its totals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from simsched.report.waiting.job_answer import SHORT
from simsched.report.waiting.wait_totals import NOT_ELIGIBLE, POLICY, scarcest, waiting_jobs

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.report.data.tables import RunTables

    Floats = npt.NDArray[np.float64]

ROUNDING = 1e-6
"""Seconds per job that are the rounding of sums of times, and not a wait."""


def waits_over_time(run: RunTables, edges: Floats) -> pd.DataFrame:
    """Return one row per part of the time between `edges` (s, ascending): the job-hours waited by cause.

    The index is the beginning of each part.

    Raises
    ------
    RunError
        if the timeline of the run does not have the free units of the types of the cluster.
    """
    jobs, types, submit, eligible, end = waiting_jobs(run)
    times = run.timeline["time"].to_numpy(dtype=np.float64)
    grid = np.unique(np.concatenate((times, eligible, end, edges)))
    row = np.clip(np.searchsorted(times, grid[:-1], side="right") - 1, 0, len(times) - 1)
    seconds = np.diff(grid)
    table = pd.DataFrame({NOT_ELIGIBLE: _between(_waited(submit, eligible, edges))}, index=edges[:-1])
    short = np.zeros((len(types), len(edges) - 1))
    for rows, worst in scarcest(run, types, jobs, end > eligible):
        waiting = _waiting(grid, eligible[rows], end[rows]) * seconds
        for at in range(len(types)):
            passed = np.concatenate(([0.0], np.cumsum(waiting * (worst[row] == at))))
            short[at] += np.diff(passed[np.searchsorted(grid, edges)])
    for at, type_ in enumerate(types):
        table[f"{SHORT} of {type_}"] = short[at]
    rest = _between(_waited(eligible, end, edges)) - short.sum(axis=0)
    table[POLICY] = np.where(rest > ROUNDING * len(jobs), rest, 0.0)
    return table / 3600.0


def _waiting(grid: Floats, begin: Floats, end: Floats) -> Floats:
    """Return the number of intervals that are open between each time of the grid and the next."""
    change = np.zeros(len(grid))
    np.add.at(change, np.searchsorted(grid, begin), 1.0)
    np.add.at(change, np.searchsorted(grid, end), -1.0)
    result: Floats = np.cumsum(change)[:-1]
    return result


def _waited(begin: Floats, end: Floats, at: Floats) -> Floats:
    """Return the seconds that intervals have lasted in all until each time `at`."""
    return _since(begin, at) - _since(end, at)


def _since(events: Floats, at: Floats) -> Floats:
    """Return the sum over the events before each time `at` of the seconds since then."""
    ordered = np.sort(events)
    number = np.searchsorted(ordered, at)
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    result: Floats = number * at - sums[number]
    return result


def _between(totals: Floats) -> Floats:
    result: Floats = np.diff(totals)
    return result
