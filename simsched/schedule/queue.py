"""`WaitingQueue`: the waiting jobs, in the order in which a pass considers them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.schedule.orders.present_order import PresentOrder, ranked
from simsched.schedule.orders.ranking import Order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from simsched.schedule.job_table import JobTable
    from simsched.schedule.orders.ranking import JobOrder

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]


FEW = 8
"""So many jobs are put into the ranks or taken out one by one; of more, all ranks are made again."""


class WaitingQueue:
    """The jobs that wait, always in order.

    Every job has a rank. Under a static order it is the job's place in the order among all jobs of the
    workload. Under any other order it is the job's number, and the order of the present pass is worked out
    as far as it is needed (`PresentOrder`). The ranks of the waiting jobs are one sorted array of machine
    integers. So adding and removing is a bisection and a short move of memory, and a pass can look at all
    of them as one vector.

    Attributes
    ----------
    order : the job order.
    static : whether jobs keep their places while they wait.
    ranks : the ranks that wait, sorted; empty if no job waits. Callers must not change it.
    fresh : the ranks that were added since the last pass.
    gone : the jobs that were taken out since the last pass began, those that started included.
    barred : the jobs that wait for a limit, out of view until `unbar`.
    """

    __slots__ = (
        *("_at", "_last", "_plain", "_present", "_rank", "_table"),
        *("barred", "fresh", "gone", "order", "ranks", "static"),
    )

    def __init__(self, table: JobTable, order: JobOrder) -> None:
        self.order = order
        self.static = order.static
        self.ranks = array("q")
        self.fresh: list[int] = []
        self.gone: list[int] = []
        self.barred: set[int] = set()
        self._present = None if self.static else PresentOrder(order, table)
        numbers = np.arange(len(table), dtype=np.int64)
        self._at = ranked(order, table, numbers, 0.0) if self.static else numbers
        # Where rank and job number are the same, as in the order fifo, nothing need be translated.
        self._plain = bool((self._at == numbers).all())
        rank = np.empty_like(self._at)
        rank[self._at] = numbers
        self._rank: list[int] = rank.tolist()
        self._table = table
        self._last: tuple[float, ...] | None = None

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
        if self._present is not None:
            return self._present.first(self.ranks)
        rank = self.ranks[0]
        return rank if self._plain else int(self._at[rank])

    def jobs(self, begin: int = 0) -> Integers:
        """Return the waiting jobs in order, from the `begin`-th on."""
        if self._present is not None:
            return self._present.all(self.ranks)[begin:]
        ranks = np.array(self.ranks[begin:], dtype=np.int64)
        return ranks if self._plain else self._at[ranks]

    def listed(self, begin: int = 0) -> list[int]:
        """Return the waiting jobs in order, from the `begin`-th on, as a list."""
        if self._present is not None:
            return self._present.listed(self.ranks)[begin:]
        if self._plain:
            return self.ranks[begin:].tolist()
        jobs: list[int] = self.jobs(begin).tolist()
        return jobs

    def behind_first(self, chosen: Callable[[Integers], Bools]) -> Integers:
        """Return those jobs behind the first that `chosen` (jobs → for each whether it counts) lets pass."""
        if self._present is None:
            jobs = self.jobs(1)
            return jobs[chosen(jobs)]
        if self._present.stands:
            jobs = self._present.all(self.ranks)[1:]
            return jobs[chosen(jobs)]
        # Sorting is the expensive step, so it comes last.
        jobs = np.array(self.ranks, dtype=np.int64)
        jobs = jobs[chosen(jobs)]
        if not len(jobs):
            return jobs
        return self._present.some(jobs[jobs != self.first], self.ranks)

    @property
    def sorts_parts(self) -> bool:
        """Whether the order changes from pass to pass, and parts of the queue can be sorted by themselves."""
        return self._present is not None and self._present.by_keys

    @property
    def stands(self) -> bool:
        """Whether the order is known until all keys change; jobs are put in and taken out one by one."""
        return self._present is not None and self._present.stands

    def behind_first_by_number(self) -> Integers:
        """Return the jobs behind the first, in no particular order; only if the queue `sorts_parts`."""
        jobs: Integers = np.array(self.ranks, dtype=np.int64)
        others: Integers = jobs[jobs != self.first]
        return others

    def first_of(self, jobs: Integers, count: int) -> tuple[list[int], Bools]:
        """Return the first jobs of some, in order, at least `count`, and which of them are behind these.

        The jobs are given by ascending number; only if the queue `sorts_parts`.
        """
        assert self._present is not None
        return self._present.first_of(jobs, count, self.ranks)

    def behind(self, count: int) -> list[int]:
        """Return the ranks of the jobs behind the first `count`."""
        if self._present is None:
            return self.ranks[count:].tolist()
        return self.listed(count)  # a job's rank is its number

    def hide(self, ranks: list[int]) -> None:
        """Take ranks out of view; their jobs are not `gone`, and `show` puts them back."""
        if ranks:
            self.ranks = array("q", sorted(set(self.ranks).difference(ranks)))
            if self._present is not None:
                self._present.reviewed(self.ranks)

    def show(self, ranks: list[int]) -> None:
        """Put hidden ranks back, except for jobs that were barred meanwhile."""
        if self.barred:
            barred = {self._rank[job] for job in self.barred}
            ranks = [rank for rank in ranks if rank not in barred]
        if ranks:
            self.ranks = array("q", sorted([*self.ranks, *ranks]))
            if self._present is not None:
                self._present.reviewed(self.ranks)

    def bar(self, jobs: set[int]) -> None:
        """Take jobs that wait for a limit out of view until `unbar`."""
        if jobs:
            self.barred |= jobs
            ranks = jobs if self._plain else {self._rank[job] for job in jobs}
            if len(ranks) <= FEW:
                for rank in ranks:
                    at = bisect_left(self.ranks, rank)
                    if at < len(self.ranks) and self.ranks[at] == rank:
                        del self.ranks[at]
            else:
                self.ranks = array("q", list(filterfalse(ranks.__contains__, self.ranks)))
            if self.fresh:
                self.fresh = list(filterfalse(ranks.__contains__, self.fresh))
            if self._present is not None:
                self._present.reviewed(self.ranks)

    def unbar(self, jobs: set[int]) -> None:
        """Put barred jobs back; to the policies they are new."""
        if jobs:
            self.barred -= jobs
            ranks = list(jobs) if self._plain else [self._rank[job] for job in jobs]
            self.fresh += ranks
            if len(ranks) <= FEW:
                for rank in ranks:
                    self.ranks.insert(bisect_left(self.ranks, rank), rank)
            else:
                self.ranks = array("q", sorted([*self.ranks, *ranks]))
            if self._present is not None:
                self._present.forget()  # their keys may not be known

    def with_barred(self, jobs: list[int]) -> list[int]:
        """Return the jobs in view and some of the barred ones, in order."""
        ranks = self.ranks
        self.ranks = array("q", sorted([*ranks, *(self._rank[job] for job in jobs)]))
        if self._present is None:
            found: list[int] = self.ranks.tolist()
            if not self._plain:
                found = self._at[np.array(found, dtype=np.int64)].tolist()
        else:
            self._present.forget()
            found = self._present.all(self.ranks).tolist()
            self._present.forget()
        self.ranks = ranks
        return found

    def new_jobs(self) -> list[int]:
        """Return the jobs added since the last pass that still wait, in order."""
        ranks = self.fresh if len(self.fresh) == 1 else sorted(self.fresh)
        if self._present is not None:
            jobs: list[int] = self._present.some(np.array(ranks, dtype=np.int64), self.ranks).tolist()
            return jobs
        return ranks.copy() if self._plain else [int(self._at[rank]) for rank in ranks]

    def only_appended(self) -> bool:
        """Whether the jobs added since the last pass are all behind those that waited before."""
        fresh = self.fresh
        if not self.static or not fresh:
            return self.static
        return min(fresh) == self.ranks[-len(fresh)]

    def enroll(self, job: int) -> None:
        """Give a rank to a job that the table got during the run; its number is the next one.

        Job numbers stay the ranks while each job is behind the one before it in the order. After the
        first that is not, the order of each pass is worked out as it is needed.
        """
        self._rank.append(job)
        if self._present is None and not self._is_behind(job):
            self.go_by_keys()
        if self._present is not None:
            self._present.forget()

    def go_by_keys(self) -> None:
        """Work out the order of each pass from now on: jobs do not keep their places."""
        if self._present is not None:
            self._present.forget()
            return
        jobs = self.listed()
        fresh = self.fresh if self._plain else [int(self._at[rank]) for rank in self.fresh]
        self._present, self.static = PresentOrder(self.order, self._table), False
        self.ranks, self.fresh = array("q", sorted(jobs)), fresh
        self._rank = list(range(len(self._rank)))

    def _is_behind(self, job: int) -> bool:
        """Whether a new job is behind all others in the order, under which ranks are job numbers."""
        if not self._plain or not isinstance(self.order, Order):
            return False
        table, one = self._table, np.array((job,))
        key = self.order.keys(table, one, 0.0).item()
        tier = 0 if table.tiers is None else -table.tiers.item(job)
        # as `ranking.sort_columns`, the first column first
        last, mine = self._last, (tier, key, -table.priorities.item(job), table.submits.item(job))
        self._last = mine
        return key == key and (last is None or last <= mine)  # noqa: PLR0124 (not NaN)

    def add(self, job: int) -> None:
        """Put a job into the queue. O(log n) and a short move."""
        rank = job if self._plain else self._rank[job]
        if self._present is not None:
            self._present.added(job)
        self.fresh.append(rank)
        ranks = self.ranks
        if not ranks or rank > ranks[-1]:
            ranks.append(rank)
        else:
            ranks.insert(bisect_left(ranks, rank), rank)

    def remove(self, job: int) -> None:
        """Take a job out of the queue. O(log n) and a short move."""
        rank, ranks = job if self._plain else self._rank[job], self.ranks
        self.gone.append(job)
        if self._present is not None:
            self._present.removed(job)
        del ranks[0 if ranks[0] == rank else bisect_left(ranks, rank)]
        if rank in self.fresh:
            self.fresh.remove(rank)

    def sort(self, now: float) -> None:
        """Rank the waiting jobs again if the order depends on the time `now` (seconds)."""
        if self._present is not None and self.ranks:
            self._present.begin(self.ranks, now)

    def state(self) -> dict[str, Any]:
        """Return the part that a checkpoint must keep, as plain values; the order can be rebuilt."""
        state: dict[str, Any] = {"ranks": self.ranks, "fresh": self.fresh, "gone": self.gone}
        return state if self._present is None else state | {"now": self._present.now}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put the queue into a state."""
        self.ranks, self.fresh, self.gone = state["ranks"], state["fresh"], state["gone"]
        if self._present is not None:
            if "at" in state:  # a checkpoint of older versions, in which jobs that wait share out ranks
                self.ranks = array("q", sorted(state["at"][state["ranks"]].tolist()))
                self.fresh = state["at"][self.fresh].tolist()
            self._present.forget()
            self._present.now = state.get("now", 0.0)

    def check(self) -> None:
        """Assert that the ranks are in order and belong to their jobs."""
        ranks = list(self.ranks)
        assert ranks == sorted(set(ranks))
        same = self._plain or self._present is not None
        assert all(self._rank[rank if same else int(self._at[rank])] == rank for rank in ranks)
        assert set(self.fresh) <= set(ranks)
