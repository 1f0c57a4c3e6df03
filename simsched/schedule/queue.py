"""`WaitingQueue`: the waiting jobs, in the order in which a pass considers them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.plugins.plugin_errors import is_ours
from simsched.schedule.orders.ranking import TIES, Order, ranked, sort_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    import numpy.typing as npt

    from simsched.schedule.job_table import JobTable
    from simsched.schedule.orders.ranking import JobOrder

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]


class WaitingQueue:
    """The jobs that wait.

    Every job has a rank that never changes: its place among all jobs of the workload or, while jobs are still
    to come, the values that decide it. Under a static order this is the place in the order; under any other
    it is the place among jobs with equal keys. The waiting jobs are one array of machine integers, sorted by
    rank, so a static order needs no sort, and under any other a stable sort by the keys is the order.

    A key counts for the pass that asks for it or, under an order with a period, until the next multiple of
    it. So keys are computed when a pass first asks for them, and within a period only those of new jobs.

    Attributes
    ----------
    order : the job order.
    static : whether jobs keep their places while they wait.
    waiting : the jobs that wait, sorted by rank. Callers must not change it.
    fresh : the jobs that were added since the last pass.
    gone : the jobs that were taken out since the last pass began, those that started included.
    barred : the jobs that wait for a limit, out of view until `unbar`.
    now : the time of the pass, in seconds.
    """

    __slots__ = (
        *("_as_of", "_key", "_keys", "_lasting", "_own", "_rank", "_table", "_unkeyed"),
        *("barred", "fresh", "gone", "now", "order", "static", "waiting"),
    )

    def __init__(self, table: JobTable, order: JobOrder) -> None:
        self.order: Any = order
        is_open = not len(table)  # an open run enters its jobs later
        # An order that only ranks all jobs at once cannot rank one that comes later.
        self.static = order.static and (isinstance(order, Order) or not is_open)
        self.waiting = array("q")
        self.fresh: list[int] = []
        self.gone: list[int] = []
        self.barred: set[int] = set()
        self.now = 0.0
        self._table = table
        self._own = is_ours(order)
        self._lasting: Callable[[float], float] | None = (
            getattr(order, "lasting", None) if self._own else None
        )
        self._as_of: float | None = None
        self._keys: Floats = np.zeros(0 if self.static else len(table))
        self._unkeyed: list[int] | None = None
        """The waiting jobs whose keys are not known; None: all of them."""
        self._rank: Any = []
        if not is_open:
            numbers = np.arange(len(table), dtype=np.int64)
            places = ranked(order if self.static else TIES, table, numbers, 0.0)
            # In the order fifo a job's rank is its number, and nothing need be looked up.
            self._rank = range(len(table)) if (places == numbers).all() else places.argsort().tolist()
        self._key = None if isinstance(self._rank, range) else self._rank.__getitem__

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[int]:
        return iter(self.listed())

    def __contains__(self, job: int) -> bool:
        at = self._place(job)
        return at < len(self.waiting) and self.waiting[at] == job

    def _place(self, job: int) -> int:
        return bisect_left(self.waiting, self._rank[job], key=self._key)

    # -- the order --------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """The job that is considered first."""
        if self.static or len(self.waiting) < 2:
            return self.waiting[0]
        jobs, tiers = self.unordered(), self._tiers
        if tiers is not None:
            jobs = jobs[tiers[jobs] == tiers[jobs[0]]]
        keys = self._keys_of(jobs)
        at = keys.argmin()
        if keys[at] != keys[at]:  # NaN, which a sort puts last and `argmin` first
            at = keys.argsort(kind="stable")[0]
        return jobs.item(at)

    def jobs(self, begin: int = 0) -> Integers:
        """Return the waiting jobs in order, from the `begin`-th on."""
        return self.ordered(self.unordered())[begin:]

    def listed(self, begin: int = 0) -> list[int]:
        """Return the waiting jobs in order, from the `begin`-th on, as a list."""
        jobs: list[int] = self.jobs(begin).tolist()
        return jobs

    def unordered(self) -> Integers:
        """Return the waiting jobs by rank, which is the order if it is static; nothing is sorted."""
        return np.array(self.waiting, dtype=np.int64)

    def ordered(self, jobs: Integers) -> Integers:
        """Return some of the waiting jobs in order; they are given by rank, as `unordered` has them."""
        if self.static or len(jobs) < 2:
            return jobs
        keys, tiers = self._keys_of(jobs), self._tiers
        if tiers is None:
            return jobs[keys.argsort(kind="stable")]
        return jobs[np.lexsort((keys, -tiers[jobs]))]

    def behind(self, first: int, chosen: Callable[[Integers], Bools]) -> Integers:
        """Return in order the jobs behind the first that `chosen` (jobs → whether each counts) lets pass.

        Only these jobs are sorted.
        """
        jobs = self.unordered()
        return self.ordered(jobs[chosen(jobs) & (jobs != first)])

    @property
    def _tiers(self) -> Integers | None:
        return self._table.tiers if self._own else None  # another package's order decides about all jobs

    def _keys_of(self, jobs: Integers) -> Floats:
        """Return the keys of some waiting jobs; those of all of them are known then."""
        new = self._unkeyed
        if new is None or new:
            unkeyed = self.unordered() if new is None else np.array(new, dtype=np.int64)
            if self._own:
                self._keys[unkeyed] = self.order.keys(self._table, unkeyed, self.now)
            else:
                found = ranked(self.order, self._table, np.sort(unkeyed), self.now)
                self._keys[found] = np.arange(len(found))
            self._unkeyed = []
        return self._keys[jobs]

    def _unkey(self, jobs: Collection[int]) -> None:
        """Let the keys of jobs that come into view be computed when they are asked for."""
        if self._lasting is None:
            self._unkeyed = None
        elif self._unkeyed is not None:
            self._unkeyed += jobs

    def sort(self, now: float) -> None:
        """Begin a pass: from now on the order is that of this time (seconds)."""
        self.now = now
        as_of = None if self._lasting is None else self._lasting(now)
        if as_of is None or as_of != self._as_of:
            self._as_of, self._unkeyed = as_of, None
        if not self._own and self.waiting:  # an order of another package may count on a call in each pass
            self._keys_of(self.unordered())

    # -- jobs that come and go --------------------------------------------------------------------

    def enroll(self, job: int) -> None:
        """Give a rank to a job that the table got during the run; its number is the next one."""
        self._rank.append(sort_key(self.order if self.static else TIES, self._table, job))
        if not self.static and job >= len(self._keys):
            self._keys = np.concatenate([self._keys, np.zeros(max(len(self._keys), 256))])

    def rerank(self, job: int) -> None:
        """Give a job of a growing table another rank, because its columns were changed."""
        waits = job in self
        if waits:
            del self.waiting[self._place(job)]
        self._rank[job] = sort_key(self.order if self.static else TIES, self._table, job)
        if waits:
            self.waiting.insert(self._place(job), job)

    def add(self, job: int) -> None:
        """Put a job into the queue. O(log n) and a short move."""
        waiting, rank = self.waiting, self._rank
        if not waiting or rank[waiting[-1]] < rank[job]:
            waiting.append(job)
        else:
            waiting.insert(self._place(job), job)
        self.fresh.append(job)
        if not self.static:
            self._unkey((job,))

    def remove(self, job: int) -> None:
        """Take a job out of the queue. O(log n) and a short move."""
        waiting = self.waiting
        del waiting[0 if waiting[0] == job else self._place(job)]
        self.gone.append(job)
        if job in self.fresh:
            self.fresh.remove(job)

    def new_jobs(self) -> list[int]:
        """Return the jobs added since the last pass that still wait, in order."""
        if len(self.fresh) < 2:
            return self.fresh.copy()
        jobs = np.array(sorted(self.fresh, key=self._key), dtype=np.int64)
        found: list[int] = self.ordered(jobs).tolist()
        return found

    def only_appended(self) -> bool:
        """Whether the jobs added since the last pass are all behind those that waited before."""
        fresh = self.fresh
        if not self.static or not fresh:
            return self.static
        return min(fresh, key=self._key) == self.waiting[-len(fresh)]

    def hide(self, jobs: Collection[int]) -> None:
        """Take jobs out of view; they are not `gone`, and `show` puts them back."""
        if jobs:
            self.waiting = array("q", filterfalse(set(jobs).__contains__, self.waiting))

    def show(self, jobs: Collection[int]) -> None:
        """Put hidden jobs back, except for those that were barred meanwhile."""
        jobs = list(filterfalse(self.barred.__contains__, jobs))
        if jobs:
            self.waiting = array("q", sorted([*self.waiting, *jobs], key=self._key))
            self._unkey(jobs)

    def bar(self, jobs: set[int]) -> None:
        """Take jobs that wait for a limit out of view until `unbar`."""
        if jobs:
            self.barred |= jobs
            self.hide(jobs)
            self.fresh = list(filterfalse(jobs.__contains__, self.fresh))

    def unbar(self, jobs: set[int]) -> None:
        """Put barred jobs back; to the policies they are new."""
        self.barred -= jobs
        self.fresh += jobs
        self.show(jobs)

    def with_barred(self, jobs: list[int]) -> list[int]:
        """Return the jobs in view and some of the barred ones, in order."""
        waiting = self.waiting
        self.waiting = array("q", sorted([*waiting, *jobs], key=self._key))
        self._unkey(jobs)
        found = self.listed()
        self.waiting = waiting
        return found

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the part that a checkpoint must keep, as plain values; the order can be rebuilt."""
        return {"waiting": self.waiting, "fresh": self.fresh, "gone": self.gone, "now": self.now}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put the queue into a state."""
        self.waiting, self.fresh, self.gone = state["waiting"], state["fresh"], state["gone"]
        self.now, self._as_of, self._unkeyed = state["now"], None, None

    def check(self) -> None:
        """Assert that the waiting jobs are sorted by rank."""
        ranks = [self._rank[job] for job in self.waiting]
        assert ranks == sorted(set(ranks))
        assert set(self.fresh) <= set(self.waiting)
