"""`WaitingQueue`: the waiting jobs, in the order in which a pass considers them.

Like the kernel this file is plain Python, and is compiled where there is a compiler.
"""

from __future__ import annotations

from array import array
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.match.kernel import view
from simsched.plugins.plugin_errors import is_ours
from simsched.schedule.orders.ranking import TIES, Order, ranked, sort_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from simsched.arrays import Bools, Floats, Integers
    from simsched.match.kernel import Kernel
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.orders.ranking import JobOrder


LEAST = 256
"""Jobs for which a queue has place at least."""


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
    fresh : the jobs that were added since the last pass.
    gone : the jobs that were taken out since the last pass began, those that started included.
    barred : the jobs that wait for a limit, out of view until `unbar`.
    now : the time of the pass, in seconds.
    """

    def __init__(self, table: JobTable, order: JobOrder) -> None:
        self.order: Any = order
        is_open = not len(table)  # an open run enters its jobs later
        # An order that only ranks all jobs at once cannot rank one that comes later.
        self.static = order.static and (isinstance(order, Order) or not is_open)
        self._room = np.empty(LEAST, dtype=np.int64)
        """The waiting jobs, sorted by rank, and place for more."""
        self._jobs, self._count = view(self._room), 0
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
        self._key_of: Any = view(self._keys)
        self._unkeyed: list[int] | None = None
        """The waiting jobs whose keys are not known; None: all of them."""
        self._rank: list[Any] | None = []
        """The rank of each job; None: it is the number of the job, as in the order fifo."""
        if not is_open:
            numbers = np.arange(len(table), dtype=np.int64)
            places = ranked(order if self.static else TIES, table, numbers, 0.0)
            self._rank = None if (places == numbers).all() else places.argsort().tolist()
        self._key = None if self._rank is None else self._rank.__getitem__

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(self.listed())

    def __contains__(self, job: int) -> bool:
        at = self._place(job)
        return at < self._count and self._jobs[at] == job

    def _place(self, job: int) -> int:
        """Return the number of waiting jobs before a job; IndexError for one without a rank."""
        if self._rank is not None and not 0 <= job < len(self._rank):
            raise IndexError("a job that does not exist")
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._is_before(self._jobs[middle], job):
                low = middle + 1
            else:
                high = middle
        return low

    def _is_before(self, one: int, job: int) -> bool:
        return one < job if self._rank is None else self._rank[one] < self._rank[job]

    def _fill(self, jobs: Sequence[int] | array[int] | Integers) -> None:
        """Let these jobs wait, which are given by rank, and no others."""
        self._count = len(jobs)
        self._room = np.empty(max(LEAST, 2 * self._count), dtype=np.int64)
        self._room[: self._count] = jobs
        self._jobs = view(self._room)

    # -- the order --------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """The job that is considered first."""
        if not self._count:
            raise IndexError("no job waits")
        return self._jobs[0] if self.static or self._count == 1 else self._first()

    def _first(self) -> int:
        self._find_keys()
        found = self._jobs[0]
        count, keys, tiers = self._count, self._key_of, self._tiers
        if tiers is not None:  # the jobs of the highest tier have the lowest ranks
            jobs = self.unordered()
            count = int(np.count_nonzero(tiers[jobs] == tiers[found]))
        least = keys[found]
        for at in range(1, count):
            key = keys[self._jobs[at]]
            if key < least or (least != least and key == key):  # noqa: PLR0124 (NaN, which comes last)
                found, least = self._jobs[at], key
        return found

    def jobs(self, begin: int = 0) -> Integers:
        """Return the waiting jobs in order, from the `begin`-th on."""
        if self.static:
            return self._room[begin : self._count].copy()
        return self.ordered(self.unordered())[begin:]

    def listed(self, begin: int = 0) -> list[int]:
        """Return the waiting jobs in order, from the `begin`-th on, as a list."""
        jobs: list[int] = self.jobs(begin).tolist()
        return jobs

    def unordered(self) -> Integers:
        """Return the waiting jobs by rank, which is the order if it is static; nothing is sorted."""
        return self._room[: self._count].copy()

    def ordered(self, jobs: Integers) -> Integers:
        """Return some of the waiting jobs in order; they are given by rank, as `unordered` has them."""
        if self.static or len(jobs) < 2:
            return jobs
        self._find_keys()
        keys, tiers = self._keys[jobs], self._tiers
        if tiers is None:
            return jobs[keys.argsort(kind="stable")]
        return jobs[np.lexsort((keys, -tiers[jobs]))]

    def behind(self, first: int, chosen: Callable[[Integers], Bools]) -> Integers:
        """Return in order the jobs behind the first that `chosen` (jobs → whether each counts) lets pass.

        Only these jobs are sorted.
        """
        jobs = self.unordered()
        return self.ordered(jobs[chosen(jobs) & (jobs != first)])

    def next(
        self, kernel: Kernel, at: int, kinds: Any, judged: Any, now: float, time: float, most: int
    ) -> int:
        """Return the place of the first job by rank, from a place on, that may start now (`Kernel.next`)."""
        return kernel.next(self._jobs[: self._count], at, kinds, judged, now, time, most)

    @property
    def _tiers(self) -> Integers | None:
        return self._table.tiers if self._own else None  # another package's order decides about all jobs

    def _find_keys(self) -> None:
        """Find the keys of all waiting jobs that are not known."""
        new = self._unkeyed
        if new is None or new:
            unkeyed = self.unordered() if new is None else np.array(new, dtype=np.int64)
            if self._own:
                jobs, keys = view(unkeyed), view(self.order.keys(self._table, unkeyed, self.now))
                for at in range(len(jobs)):
                    self._key_of[jobs[at]] = keys[at]
            else:
                found = ranked(self.order, self._table, np.sort(unkeyed), self.now)
                self._keys[found] = np.arange(len(found))
            self._unkeyed = []

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
        if not self._own and self._count:  # an order of another package may count on a call in each pass
            self._find_keys()

    # -- jobs that come and go --------------------------------------------------------------------

    def enroll(self, job: int) -> None:
        """Give a rank to a job that the table got during the run; its number is the next one."""
        assert self._rank is not None, "only an open run enrolls jobs"
        self._rank.append(sort_key(self.order if self.static else TIES, self._table, job))
        if not self.static and job >= len(self._keys):
            self._keys = np.concatenate([self._keys, np.zeros(max(len(self._keys), 256))])
            self._key_of = view(self._keys)

    def rerank(self, job: int) -> None:
        """Give a job of a growing table another rank, because its columns were changed."""
        assert self._rank is not None, "only an open run enrolls jobs"
        waits = job in self
        if waits:
            self._take(self._place(job))
        self._rank[job] = sort_key(self.order if self.static else TIES, self._table, job)
        if waits:
            self._put(self._place(job), job)

    def add(self, job: int) -> None:
        """Put a job into the queue. O(log n) and a short move."""
        count = self._count
        at = count if not count or self._is_before(self._jobs[count - 1], job) else self._place(job)
        self._put(at, job)
        self.fresh.append(job)
        if not self.static:
            self._unkey((job,))

    def _put(self, at: int, job: int) -> None:
        count = self._count
        if count == len(self._jobs):
            self._fill(self._room)
        if at < count:
            self._jobs[at + 1 : count + 1] = self._jobs[at:count]
        self._jobs[at] = job
        self._count = count + 1

    def _take(self, at: int) -> None:
        self._count = count = self._count - 1
        if at < count:
            self._jobs[at:count] = self._jobs[at + 1 : count + 1]

    def remove(self, job: int) -> None:
        """Take a job out of the queue. O(log n) and a short move."""
        self._take(0 if self._jobs[0] == job else self._place(job))
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
        return bool(min(fresh, key=self._key) == self._jobs[self._count - len(fresh)])

    def hide(self, jobs: Collection[int]) -> None:
        """Take jobs out of view; they are not `gone`, and `show` puts them back."""
        if jobs:
            self._fill([*filterfalse(set(jobs).__contains__, self.unordered().tolist())])

    def show(self, jobs: Collection[int]) -> None:
        """Put hidden jobs back, except for those that were barred meanwhile."""
        jobs = list(filterfalse(self.barred.__contains__, jobs))
        if jobs:
            self._fill(sorted([*self.unordered().tolist(), *jobs], key=self._key))
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
        waiting = self.unordered()
        self._fill(sorted([*waiting.tolist(), *jobs], key=self._key))
        self._unkey(jobs)
        found = self.listed()
        self._fill(waiting)
        return found

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the part that a checkpoint must keep, as plain values; the order can be rebuilt."""
        waiting = array("q", self.unordered().tobytes())
        return {"waiting": waiting, "fresh": self.fresh, "gone": self.gone, "now": self.now}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put the queue into a state."""
        self._fill(state["waiting"])
        self.fresh, self.gone = state["fresh"], state["gone"]
        self.now, self._as_of, self._unkeyed = state["now"], None, None

    def check(self) -> None:
        """Assert that the waiting jobs are sorted by rank."""
        jobs = self.unordered().tolist()
        assert jobs == sorted(set(jobs), key=self._key)
        assert set(self.fresh) <= set(jobs)
