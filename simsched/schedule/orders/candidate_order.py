"""The order of backfill candidates, apart from the order of the queue.

The order of the queue decides which job is first and gets the reservation. Another order may decide which of
the jobs behind it is tried first: shortest first is EASY-SJBF (Tsafrir, Etsion & Feitelson 2007).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError
from simsched.schedule.orders.order import ORDERS, job_order
from simsched.schedule.orders.priority_rules import NAME as MULTIFACTOR
from simsched.schedule.orders.ranking import Order, ranked

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable

    import numpy.typing as npt

    from simsched.schedule.job_table import JobTable
    from simsched.schedule.queue import WaitingQueue

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]


def candidate_order(given: str | None) -> Order | None:
    """Return the order of backfill candidates of this name; None: the order of the queue.

    Raises
    ------
    ConfigError
        If no order has this name, or if the order has more than a key: only that of the queue has the factors
        of the run, and learns of the ends of jobs.

    >>> candidate_order("sjf").name
    'sjf'
    """
    if given is None:
        return None
    order = job_order(given)
    if not isinstance(order, Order) or given == MULTIFACTOR:
        text = f"backfill-order is {given!r}, which only the queue can have"
        raise ConfigError(text, expected=f"an order by a key, such as {', '.join(ORDERS)}")
    return order


def in_order(order: Order | None, table: JobTable, jobs: list[int], now: float) -> list[int]:
    """Return some jobs in the order of candidates; in the given order without one."""
    if order is None or len(jobs) < 2:
        return jobs
    found: list[int] = ranked(order, table, np.array(jobs, dtype=np.int64), now).tolist()
    return found


class CandidateQueue:
    """The view of a queue whose first job stays the first; the jobs behind it are in the order of candidates.

    It has the part of `WaitingQueue` that a search for candidates reads.
    """

    __slots__ = ("_now", "_order", "_queue", "_table", "static")

    def __init__(self, queue: WaitingQueue, order: Order, table: JobTable, now: float) -> None:
        self._queue, self._order, self._table, self._now = queue, order, table, now
        self.static = False
        """The ranks of the queue do not say the order of this view."""

    @property
    def sorts_parts(self) -> bool:
        """Whether parts of the view are sorted by themselves."""
        return False

    @property
    def ranks(self) -> array[int]:
        """The ranks that wait, as in the queue."""
        return self._queue.ranks

    def jobs(self, begin: int = 0) -> Integers:
        """Return the jobs from the `begin`-th on: the first of the queue, and the others in order."""
        first, rest = self._queue.jobs()[:1], self._sorted(self._queue.jobs(1))
        return np.concatenate([first, rest])[begin:]

    def listed(self, begin: int = 0) -> list[int]:
        """Return `jobs` as a list."""
        jobs: list[int] = self.jobs(begin).tolist()
        return jobs

    def behind_first(self, chosen: Callable[[Integers], Bools]) -> Integers:
        """Return those jobs behind the first that `chosen` lets pass, in order."""
        return self._sorted(self._queue.behind_first(chosen))

    def _sorted(self, jobs: Integers) -> Integers:
        return ranked(self._order, self._table, jobs, self._now) if len(jobs) > 1 else jobs
