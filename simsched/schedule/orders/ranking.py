"""The interface of job orders, and orders by a key.

An order ranks the waiting jobs. An order by a key gives every job a number, and the smallest goes first,
after the jobs of queues with a higher priority. Jobs with equal keys go by (priority, submit time, workload
order), the same in every order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from simsched.schedule.job_table import JobTable

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]
    Key = Callable[["JobTable", "Integers", float], "Floats"]


@dataclass(frozen=True, slots=True)
class Order:
    """A named job order by a key: `keys(table, jobs, now)` returns a number for each job.

    The keys of a static order do not depend on `now` (seconds), so they are computed once.
    """

    name: str
    keys: Key
    static: bool = True

    def ranked(self, table: JobTable, jobs: Integers, now: float) -> Integers:
        """Return the jobs by (key, priority, submit time, workload order)."""
        return jobs[np.lexsort(sort_columns(table, jobs, self.keys(table, jobs, now)))]


def sort_columns(table: JobTable, jobs: Integers, keys: Floats) -> tuple[npt.NDArray[Any], ...]:
    """Return the columns by which jobs with these keys are sorted, for `numpy.lexsort`: the last goes first.

    No two jobs are equal in all of them, so a part of the jobs has the same order by itself.
    """
    columns = (jobs, table.submits[jobs], -table.priorities[jobs], keys)
    return columns if table.tiers is None else (*columns, -table.tiers[jobs])


def sorted_by_keys(table: JobTable, jobs: Integers, keys: Floats) -> Integers:
    """Return jobs, given by ascending number, in the order of these keys, as `sort_columns` has it."""
    if table.by_number:
        return jobs[keys.argsort(kind="stable")]
    return jobs[np.lexsort(sort_columns(table, jobs, keys))]


class JobOrder(Protocol):
    """An order as a queue needs it: ranks, and whether they ever change."""

    @property
    def static(self) -> bool:
        """Whether jobs keep their places while they wait."""

    def ranked(self, table: JobTable, jobs: Integers, now: float) -> Integers:
        """Return the jobs in order at the time `now`, in seconds."""
