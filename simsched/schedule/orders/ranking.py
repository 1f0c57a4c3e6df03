"""What a job order is: it ranks the jobs that wait.

An order gives every job a key; the smallest goes first, after queues of higher priority.
Equal keys break by (priority, submit time, workload order), the same in every order.
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
    """A named job order; `keys(table, jobs, now)` gives one key a job, the smallest first.

    A static order never looks at `now`, so its keys are computed once.
    """

    name: str
    keys: Key
    static: bool = True

    def ranked(self, table: JobTable, jobs: Integers, now: float) -> Integers:
        """Return the jobs by (key, priority, submit time, workload order)."""
        columns: tuple[npt.NDArray[Any], ...] = (
            jobs,
            table.submits[jobs],
            -table.priorities[jobs],
            self.keys(table, jobs, now),
        )
        if table.tiers is not None:
            columns = (*columns, -table.tiers[jobs])
        return jobs[np.lexsort(columns)]


class JobOrder(Protocol):
    """What a queue needs of an order: ranks, and whether they ever change."""

    @property
    def static(self) -> bool:
        """Whether jobs keep their places while they wait."""

    def ranked(self, table: JobTable, jobs: Integers, now: float) -> Integers:
        """Return the jobs in order."""
