"""`WaitingQueue`: the waiting jobs, in the order in which a pass considers them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.match.policies.plugins import failed, is_ours, named_in_errors
from simsched.schedule.orders.ranking import Order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from simsched.schedule.job_table import JobTable
    from simsched.schedule.orders.ranking import JobOrder

    Integers = npt.NDArray[np.int64]


def _ranked(order: JobOrder, table: JobTable, jobs: Integers, now: float) -> Integers:
    """Return the jobs in order; the answer of another package's order is checked.

    Raises
    ------
    PluginError
        If another package's order fails or does not return each job once.
    """
    if is_ours(order):
        return order.ranked(table, jobs, now)
    with named_in_errors("job order", order):
        found = np.asarray(_called(order, table, jobs, now))
    if found.shape != jobs.shape or found.dtype.kind not in "iu" or not np.array_equal(np.sort(found), jobs):
        raise failed("job order", order, f"did not return each of its {len(jobs)} jobs once")
    return found


def _called(order: JobOrder, table: JobTable, jobs: Integers, now: float) -> Any:
    """Rank the jobs; check the keys of an `Order` here, since NumPy's message would not name it."""
    if isinstance(order, Order):
        keys = np.asarray(order.keys(table, jobs, now))
        if keys.shape != jobs.shape or keys.dtype.kind not in "biuf":
            raise failed("job order", order, f"did not return one number for each of its {len(jobs)} jobs")
    return order.ranked(table, jobs, now)


class WaitingQueue:
    """The jobs that wait, always in order.

    Every job has a rank: its place in the order among all jobs of the workload. A static order ranks the
    jobs once; any other order ranks the waiting jobs again at `sort`. The ranks of the waiting jobs are one
    sorted array of machine integers. So adding and removing is a bisection and a short move of memory, and
    a pass can look at all of them as one vector.

    Attributes
    ----------
    order : the job order.
    static : whether jobs keep their places while they wait.
    ranks : the ranks that wait, sorted; empty if no job waits. Callers must not change it.
    fresh : the ranks that were added since the last pass.
    gone : the jobs that were taken out since the last pass began, those that started included.
    """

    __slots__ = ("_at", "_plain", "_rank", "_table", "fresh", "gone", "order", "ranks", "static")

    def __init__(self, table: JobTable, order: JobOrder) -> None:
        self._table = table
        self.order = order
        self.static = order.static
        self.ranks = array("q")
        self.fresh: list[int] = []
        self.gone: list[int] = []
        numbers = np.arange(len(table), dtype=np.int64)
        at = _ranked(order, table, numbers, 0.0) if order.static else numbers
        # Where rank and job number are the same, as in the order fifo, nothing need be translated.
        self._plain = bool((at == numbers).all())
        self._use(at)

    def _use(self, at: Integers) -> None:
        """Take the jobs by rank, and the inverse: the ranks by job."""
        self._at = at
        rank = np.empty_like(at)
        rank[at] = np.arange(len(at), dtype=np.int64)
        self._rank: list[int] = rank.tolist()

    def __len__(self) -> int:
        return len(self.ranks)

    def __iter__(self) -> Iterator[int]:
        return iter(self.jobs().tolist())

    def __contains__(self, job: int) -> bool:
        rank = self._rank[job]
        at = bisect_left(self.ranks, rank)
        return at < len(self.ranks) and self.ranks[at] == rank

    @property
    def first(self) -> int:
        """The job that is considered first."""
        rank = self.ranks[0]
        return rank if self._plain else int(self._at[rank])

    def jobs(self, begin: int = 0) -> Integers:
        """Return the waiting jobs in order, from the `begin`-th on."""
        ranks = np.array(self.ranks[begin:], dtype=np.int64)
        return ranks if self._plain else self._at[ranks]

    def listed(self, begin: int = 0) -> list[int]:
        """Return the waiting jobs in order, from the `begin`-th on, as a list."""
        if self._plain:
            return self.ranks[begin:].tolist()
        jobs: list[int] = self.jobs(begin).tolist()
        return jobs

    def hide(self, ranks: list[int]) -> None:
        """Take ranks out of view; their jobs are not `gone`, and `show` puts them back."""
        if ranks:
            self.ranks = array("q", sorted(set(self.ranks).difference(ranks)))

    def show(self, ranks: list[int]) -> None:
        """Put hidden ranks back."""
        if ranks:
            self.ranks = array("q", sorted([*self.ranks, *ranks]))

    def new_jobs(self) -> list[int]:
        """Return the jobs added since the last pass that still wait, in order."""
        ranks = self.fresh if len(self.fresh) == 1 else sorted(self.fresh)
        return ranks.copy() if self._plain else [int(self._at[rank]) for rank in ranks]

    def only_appended(self) -> bool:
        """Whether the jobs added since the last pass are all behind those that waited before."""
        fresh = self.fresh
        if not self.order.static or not fresh:
            return self.order.static
        return min(fresh) == self.ranks[-len(fresh)]

    def add(self, job: int) -> None:
        """Put a job into the queue. O(log n) and a short move."""
        rank = job if self._plain else self._rank[job]
        self.fresh.append(rank)
        ranks = self.ranks
        if not ranks or rank > ranks[-1]:
            ranks.append(rank)
        else:
            ranks.insert(bisect_left(ranks, rank), rank)

    def remove(self, job: int) -> None:
        """Take a job out of the queue. O(log n) and a short move."""
        rank = job if self._plain else self._rank[job]
        self.gone.append(job)
        del self.ranks[bisect_left(self.ranks, rank)]
        if rank in self.fresh:
            self.fresh.remove(rank)

    def sort(self, now: float) -> None:
        """Rank the waiting jobs again if the order depends on the time `now` (seconds). O(n log n)."""
        if self.order.static or not self.ranks:
            return
        jobs = _ranked(self.order, self._table, np.sort(self.jobs()), now)
        fresh = {int(self._at[rank]) for rank in self.fresh}
        at = self._at.copy()
        # The jobs share out the same ranks in the new order, so that no other job changes its rank.
        slots = np.array(self.ranks, dtype=np.int64)
        at[slots] = jobs
        for rank, job in zip(slots.tolist(), jobs.tolist(), strict=True):
            self._rank[job] = rank
        self._at = at
        self._plain = False
        self.fresh = [self._rank[job] for job in fresh]

    def state(self) -> dict[str, Any]:
        """Return the part that a checkpoint must keep, as plain values; a static order can be rebuilt."""
        state: dict[str, Any] = {"ranks": self.ranks, "fresh": self.fresh, "gone": self.gone}
        if not self.static:
            state |= {"at": self._at, "plain": self._plain}
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put the queue into a state."""
        self.ranks, self.fresh, self.gone = state["ranks"], state["fresh"], state["gone"]
        if not self.static:
            self._plain = state["plain"]
            self._use(state["at"])

    def check(self) -> None:
        """Assert that the ranks are in order and belong to their jobs."""
        ranks = list(self.ranks)
        assert ranks == sorted(set(ranks))
        assert all(self._rank[int(self._at[rank])] == rank for rank in ranks)
        assert set(self.fresh) <= set(ranks)
