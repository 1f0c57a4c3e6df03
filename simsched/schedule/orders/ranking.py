"""The interface of job orders, and orders by a key.

An order ranks the waiting jobs. An order by a key gives every job a number, and the smallest goes first,
after the jobs of queues with a higher priority. Jobs with equal keys go by (priority, submit time, workload
order), the same in every order. No two jobs are equal in all of these, so a part of the jobs has the same
order by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simsched.plugins.plugin_errors import failed, is_ours, named_in_errors
from simsched.schedule.job_table import ShownTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from simsched.arrays import Floats, Integers
    from simsched.schedule.job_table import JobTable

    Key = Callable[["JobTable", "Integers", float], "Floats"]


@dataclass(frozen=True, slots=True)
class Order:
    """A named job order by a key: `keys(table, jobs, now)` returns a number for each job.

    The keys of a static order do not depend on `now` (seconds), so they are computed once.  `ours` is whether
    no other package made it.
    """

    name: str
    keys: Key
    static: bool = True
    ours: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ours", is_ours(self))

    def ranked(self, table: JobTable, jobs: Integers, now: float) -> Integers:
        """Return the jobs by (key, priority, submit time, workload order)."""
        return by_keys(table, jobs, self.keys(table, jobs, now))


class JobOrder(Protocol):
    """An order as a queue needs it: ranks, and whether they ever change."""

    @property
    def static(self) -> bool:
        """Whether jobs keep their places while they wait."""

    def ranked(self, table: JobTable, jobs: Integers, now: float) -> Integers:
        """Return the jobs in order at the time `now`, in seconds."""


def by_keys(table: JobTable, jobs: Integers, keys: Floats) -> Integers:
    """Return jobs in the order of their keys; those of queues with a higher priority come first."""
    columns = (jobs, table.submits[jobs], -table.priorities[jobs], keys)
    return jobs[np.lexsort(columns if table.tiers is None else (*columns, -table.tiers[jobs]))]


def ranked(order: JobOrder, table: JobTable, jobs: Integers, now: float) -> Integers:
    """Return the jobs, given by ascending number, in order; the answer of another package's order is checked.

    Raises
    ------
    PluginError
        If another package's order fails or does not return each job once.
    """
    if isinstance(order, Order):
        return by_keys(table, jobs, keys_of(order, table, jobs, now))
    if is_ours(order):
        return order.ranked(table, jobs, now)
    read: Any = ShownTable(table)
    with named_in_errors("job order", order):
        found = np.asarray(order.ranked(read, jobs.copy(), now))
    if found.shape != jobs.shape or found.dtype.kind not in "iu" or not np.array_equal(np.sort(found), jobs):
        raise failed("job order", order, f"did not return each of its {len(jobs)} jobs once")
    return found


def keys_of(order: Order, table: JobTable, jobs: Integers | slice, now: float) -> Any:
    """Return the keys of jobs; PluginError if those of another package's order are not a number for each."""
    if order.ours:
        return order.keys(table, jobs, now)  # type: ignore[arg-type]
    read: Any = ShownTable(table)
    jobs = np.arange(jobs.start, jobs.stop) if isinstance(jobs, slice) else jobs.copy()
    with named_in_errors("job order", order):  # NumPy's message for wrong keys would not name the order
        keys = np.asarray(order.keys(read, jobs, now))
    if keys.shape != jobs.shape or keys.dtype.kind not in "biuf":
        raise failed("job order", order, f"did not return one number for each of its {len(jobs)} jobs")
    return keys
