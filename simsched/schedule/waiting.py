"""`Waiting`: the queue, in the order in which a pass considers it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from simsched.schedule.book import Book
    from simsched.schedule.ranking import JobOrder

    Integers = npt.NDArray[np.int64]


class Waiting:
    """Jobs that wait, always in order.

    Every job has a rank: its place in the order among all jobs of the workload.  A static
    order ranks once; any other ranks the waiting jobs again at `sort`.  The ranks that wait
    are one sorted array of machine integers, so that adding and removing is a bisection and
    a short move of memory, and a whole pass can look at them as one vector.
    """

    __slots__ = ("_at", "_book", "_plain", "_rank", "fresh", "gone", "order", "ranks", "static")

    def __init__(self, book: Book, order: JobOrder) -> None:
        self._book = book
        self.order = order
        everyone = np.arange(len(book), dtype=np.int64)
        at = order.ranked(book, everyone, 0.0) if order.static else everyone
        self._plain = bool((at == everyone).all())  # rank and job number are the same
        self.ranks = array("q")
        """The ranks that wait, sorted; false when nobody does.  To be read, not written."""
        self.static = order.static
        """Whether jobs keep their places while they wait."""
        self.fresh: list[int] = []  # ranks added since the last pass
        self.gone: list[int] = []
        """The jobs taken out since the last pass began, those that started among them."""
        self._use(at)

    def _use(self, at: Integers) -> None:
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
        """Rank the waiting jobs again, as an order that looks at the clock must. O(n log n)."""
        if self.order.static or not self.ranks:
            return
        jobs = self.order.ranked(self._book, np.sort(self.jobs()), now)
        fresh = {int(self._at[rank]) for rank in self.fresh}
        at = self._at.copy()
        # The waiting jobs take the ranks that the waiting jobs had, in the new order.
        slots = np.array(self.ranks, dtype=np.int64)
        at[slots] = jobs
        for rank, job in zip(slots.tolist(), jobs.tolist(), strict=True):
            self._rank[job] = rank
        self._at = at
        self._plain = False
        self.fresh = [self._rank[job] for job in fresh]

    def _check(self) -> None:
        ranks = list(self.ranks)
        assert ranks == sorted(set(ranks))
        assert all(self._rank[int(self._at[rank])] == rank for rank in ranks)
        assert set(self.fresh) <= set(ranks)
