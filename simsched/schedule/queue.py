"""`WaitingQueue`: the waiting jobs, in the order in which a pass considers them.

Like the kernel this file is plain Python, and is compiled where there is a compiler.
"""

from __future__ import annotations

from array import array
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.match.kernel import view
from simsched.plugins.plugin_errors import failed, is_ours
from simsched.schedule.orders.multifactor import UNKNOWN, Multifactor
from simsched.schedule.orders.ranking import Order, by_keys, keys_of, ranked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from simsched.arrays import Floats, Integers
    from simsched.match.kernel import Kernel
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.orders.ranking import JobOrder


LEAST = 256
"""Jobs for which a queue has place at least."""


class WaitingQueue:
    """The jobs that wait.

    The rank of a job never changes: it is its place in a static order, and under any other its place among
    jobs with equal keys. The columns of a job decide it, so it is known as soon as the job is. The waiting
    jobs are one array of machine integers, sorted by rank, so a static order needs no sort, and under any
    other a stable sort by the keys is the order.

    A key that is not of a static order counts for the pass that asks for it or, under an order with a period,
    until the next multiple of it. So such keys are computed when a pass first asks for them, and within a
    period only those of new jobs.

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
        self._spare = np.empty(LEAST, dtype=np.int64)
        self._chosen = view(self._spare)
        self.fresh: list[int] = []
        self.gone: list[int] = []
        self.barred: set[int] = set()
        self.now = 0.0
        self._table = table
        self._own = is_ours(order)
        self._priority: Multifactor | None = order if isinstance(order, Multifactor) else None
        self._lasts = self._priority is not None and self._priority.period > 0
        self._as_of = UNKNOWN
        self._keys: Floats = np.zeros(0)
        self._key_of: Any = view(self._keys)
        self._unkeyed: list[int] | None = None
        """The waiting jobs whose keys are not known; None: all of them."""
        # An order that ranks all jobs at once decides about tiers, too.
        self._tiered = table.tiers is not None and (isinstance(order, Order) or not self.static)
        self.enroll(0)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(self.listed())

    def __contains__(self, job: int) -> bool:
        return self._find(job) >= 0

    def _find(self, job: int) -> int:
        """Return the place of a waiting job; -1 for one that does not wait."""
        if not 0 <= job < len(self._table):
            return -1
        at = 0 if self._count and self._jobs[0] == job else self._place(job)
        return at if at < self._count and self._jobs[at] == job else -1

    def _place(self, job: int) -> int:
        """Return the number of waiting jobs before a job; IndexError for one that does not exist."""
        if not 0 <= job < len(self._table):
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
        """Whether a job has a lower rank than another, by the columns of `by_keys`."""
        table, keys = self._table, self._key_of
        if self._tiered and table.tier_of[one] != table.tier_of[job]:
            return table.tier_of[one] > table.tier_of[job]
        if self.static and keys[one] != keys[job]:
            if keys[one] == keys[one]:
                return bool(keys[one] < keys[job] or keys[job] != keys[job])  # NaN comes last
            if keys[job] == keys[job]:
                return False
        if table.priority_of[one] != table.priority_of[job]:
            return table.priority_of[one] > table.priority_of[job]
        if table.submit_of[one] != table.submit_of[job]:
            return bool(table.submit_of[one] < table.submit_of[job])
        return one < job

    def _by_rank(self, jobs: Sequence[int]) -> Integers:
        """Return some jobs sorted by rank."""
        found = np.array(jobs, dtype=np.int64)
        keys = self._keys[found] if self.static else np.zeros(len(found))
        if self._tiered or self._table.tiers is None:
            return by_keys(self._table, found, keys)
        return found[keys.argsort(kind="stable")]

    def _fill(self, jobs: Sequence[int] | array[int] | Integers) -> None:
        """Let these jobs wait, which are given by rank, and no others."""
        self._count = len(jobs)
        self._room = np.empty(max(LEAST, 2 * self._count), dtype=np.int64)
        self._room[: self._count] = jobs
        self._jobs = view(self._room)
        self._spare = np.empty(len(self._room), dtype=np.int64)
        self._chosen = view(self._spare)

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
        jobs: list[int] = (self._room[begin : self._count] if self.static else self.jobs(begin)).tolist()
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

    def behind(
        self, first: int, kernel: Kernel, kinds: Any, judged: Any, now: float, time: float, most: int
    ) -> Integers:
        """Return in order the jobs behind the first that may start now (`Kernel.next`); until the next call.

        Only these jobs are sorted.
        """
        waiting, jobs, count = self._jobs[: self._count], self._chosen, 0
        at = kernel.next(waiting, 0, kinds, judged, now, time, most)
        while at < len(waiting):
            if waiting[at] != first:
                jobs[count] = waiting[at]
                count += 1
            at = kernel.next(waiting, at + 1, kinds, judged, now, time, most)
        return self.ordered(self._spare[:count])

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
            if self._priority is not None:
                jobs = self._jobs[: self._count] if new is None else view(np.array(new, dtype=np.int64))
                self._priority.enter(self._table, jobs, self._key_of, self.now)
            elif self._own:
                found = self.unordered()
                self._keys[found] = self.order.keys(self._table, found, self.now)
            else:
                found = ranked(self.order, self._table, np.sort(self.unordered()), self.now)
                self._keys[found] = np.arange(len(found))
            self._unkeyed = []

    def _unkey(self, jobs: Collection[int]) -> None:
        """Let the keys of jobs that come into view be computed when they are asked for."""
        if not self._lasts:
            self._unkeyed = None
        elif self._unkeyed is not None:
            self._unkeyed += jobs

    def sort(self, now: float) -> None:
        """Begin a pass: from now on the order is that of this time (seconds)."""
        self.now = now
        as_of = UNKNOWN if self._priority is None else self._priority.epoch(now)
        if not self._lasts or as_of != self._as_of:
            self._as_of, self._unkeyed = as_of, None
        if not self._own and self._count:  # an order of another package may count on a call in each pass
            self._find_keys()

    # -- jobs that come and go --------------------------------------------------------------------

    def enroll(self, first: int) -> None:
        """Give ranks to the jobs of the table from a number on."""
        end = len(self._table)
        if end > len(self._keys):
            self._keys = np.concatenate([self._keys, np.zeros(max(end, LEAST))])
            self._key_of = view(self._keys)
        if self.static and first < end:
            for at, key in enumerate(self._fixed_keys(first, end), first):
                self._key_of[at] = key

    def _fixed_keys(self, first: int, end: int) -> list[float]:
        """Return the keys of jobs in a static order; one that only ranks jobs ranks all of them at once."""
        order, table = self.order, self._table
        # The jobs are a slice and not an array of numbers: an open run asks for each job by itself.
        keys: Any = (
            keys_of(order, table, slice(first, end), 0.0)
            if isinstance(order, Order)
            else ranked(order, table, np.arange(first, end), 0.0).argsort()
        )
        if (
            not self._own
            and keys.dtype.kind in "iu"
            and (keys.astype(float).astype(keys.dtype) != keys).any()
        ):
            raise failed("job order", order, "returned whole numbers that no float64 is equal to")
        found: list[float] = keys.tolist()
        return found

    def rerank(self, job: int) -> None:
        """Give a job another rank, because its columns were changed."""
        at = self._find(job)
        if at >= 0:
            self._take(at)
        if self.static:
            self._keys[job] = self._fixed_keys(job, job + 1)[0]
        if at >= 0:
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
        at = self._find(job)
        if at < 0:
            raise ValueError(f"job {job} does not wait")
        self._take(at)
        self.gone.append(job)
        if job in self.fresh:
            self.fresh.remove(job)

    def new_jobs(self) -> list[int]:
        """Return the jobs added since the last pass that still wait, in order."""
        if len(self.fresh) < 2:
            return self.fresh.copy()
        found: list[int] = self.ordered(self._by_rank(self.fresh)).tolist()
        return found

    def only_appended(self) -> bool:
        """Whether the jobs added since the last pass are all behind those that waited before."""
        fresh = self.fresh
        if not self.static or not fresh:
            return self.static
        before = self._count - len(fresh)
        return all(self._place(job) >= before for job in fresh)

    def hide(self, jobs: Collection[int]) -> None:
        """Take jobs out of view; they are not `gone`, and `show` puts them back."""
        for job in reversed([*jobs]):  # those at the end, which some policies hide, move no others
            at = self._find(job)
            if at >= 0:
                self._take(at)

    def show(self, jobs: Collection[int]) -> None:
        """Put hidden jobs back, except for those that were barred meanwhile."""
        coming = [job for job in jobs if job not in self.barred]
        if coming:
            self._bring(coming)

    def _bring(self, jobs: list[int]) -> None:
        for job in jobs:
            self._put(self._place(job), job)
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
        self._bring(jobs)
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
        self.now, self._as_of, self._unkeyed = state["now"], UNKNOWN, None

    def check(self) -> None:
        """Assert that the waiting jobs are sorted by rank."""
        jobs = self.unordered().tolist()
        assert jobs == self._by_rank([*set(jobs)]).tolist()
        assert set(self.fresh) <= set(jobs)
