"""`PresentOrder`: the order of the waiting jobs at one instant, worked out only as far as a pass needs it.

Under an order whose keys change with time, every pass has a new order. But most passes need only the
first job and the few jobs that free resources do not rule out. So the keys of all waiting jobs are one
vector, computed when they are first needed. The first job is that with the least key, and any other part
of the queue is sorted by itself. The columns of `ranking.sort_columns` decide, whatever part is sorted.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.plugins.plugin_errors import failed, is_ours, named_in_errors
from simsched.schedule.job_table import ShownTable
from simsched.schedule.orders.ranking import Order, sorted_by_keys
from simsched.schedule.orders.standing_order import MOST, StandingOrder, standing_order

if TYPE_CHECKING:
    from array import array

    import numpy.typing as npt

    from simsched.schedule.job_table import JobTable
    from simsched.schedule.orders.ranking import JobOrder

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]


def ranked(order: JobOrder, table: JobTable, jobs: Integers, now: float) -> Integers:
    """Return the jobs, given by ascending number, in order; the answer of another package's order is checked.

    Raises
    ------
    PluginError
        If another package's order fails or does not return each job once.
    """
    if is_ours(order):
        return order.ranked(table, jobs, now)
    read: Any = ShownTable(table)
    with named_in_errors("job order", order):
        if isinstance(order, Order):  # NumPy's message for wrong keys would not name the order
            _checked_keys(order, table, jobs, now)
        found = np.asarray(order.ranked(read, jobs.copy(), now))
    if found.shape != jobs.shape or found.dtype.kind not in "iu" or not np.array_equal(np.sort(found), jobs):
        raise failed("job order", order, f"did not return each of its {len(jobs)} jobs once")
    return found


def _checked_keys(order: Order, table: JobTable, jobs: Integers, now: float) -> Any:
    """Return the keys of another package's order; PluginError unless they are a number for each job."""
    read: Any = ShownTable(table)
    keys = np.asarray(order.keys(read, jobs.copy(), now))
    if keys.shape != jobs.shape or keys.dtype.kind not in "biuf":
        raise failed("job order", order, f"did not return one number for each of its {len(jobs)} jobs")
    return keys


SEARCHES = 2
"""First jobs of a pass that are searched without sorting: most passes start one job at most."""
FIRST_SORTED = 16
"""Jobs that are sorted at first where only the first few are needed."""


class PresentOrder:
    """The order of the waiting jobs of one queue at the time of the present pass.

    An order with keys (`Order.keys`, `FairShare.keys`) is asked for the keys of all waiting jobs at
    most once per pass, and then parts of the queue are sorted. Any other order ranks all waiting
    jobs at the beginning of each pass.
    """

    __slots__ = (
        "_epoch",
        "_first",
        "_front",
        "_jobs",
        "_keys",
        "_known_at",
        "_order",
        "_own",
        "_parts",
        "_places",
        "_searched",
        "_standing",
        "_stands",
        "_table",
        "_turn",
        "now",
    )

    def __init__(self, order: JobOrder, table: JobTable) -> None:
        self._order: Any = order
        self._table = table
        self._own = is_ours(order)
        self._parts = hasattr(order, "keys") if self._own else isinstance(order, Order)
        """Whether parts of the queue can be sorted by themselves."""
        self._epoch = getattr(order, "lasting", None) if self._own else None
        """Time → the time as of which keys count, of orders whose keys hold for a while; or None."""
        self._known_at = 0.0
        self.now = 0.0
        """The time of the pass, in seconds."""
        self._jobs: Integers = np.empty(0, dtype=np.int64)
        """The jobs that waited when the keys were computed, by number."""
        self._keys: Floats | None = None
        self._places: list[int] | None = None
        """The jobs in order, once all of them were sorted in this pass; some may not wait any more."""
        self._front: list[int] = []
        """The first jobs in order, as far as they were sorted in this pass to find the first one."""
        self._first: int | None = None
        self._searched = 0
        """How many first jobs were searched without sorting."""
        self._turn = 0
        """The place of the first job in `_places` or `_front`."""
        self._standing: StandingOrder | None = None
        """The jobs in order while their keys stand; None: not known, or the jobs are many."""
        # Tiers and urgencies of jobs would have to be compared, too.
        self._stands = self._epoch is not None and self._parts and table.by_number

    def begin(self, waiting: array[int], now: float) -> None:
        """Begin a pass over the jobs that wait, given by ascending number."""
        self.now = now
        if self._epoch is None:
            self.forget()
        else:
            at = self._epoch(now)
            if at != self._known_at or (self._keys is None and self._standing is None):
                self.forget()
                self._known_at = at
        if not self._own:  # an order of another package may count on a call in each pass
            self._compute(waiting)

    def forget(self) -> None:
        """Forget keys and places."""
        self._keys = self._places = self._first = self._standing = None
        self._searched = self._turn = 0
        self._front = []

    def added(self, job: int) -> None:
        """Note that a job waits from now on."""
        standing = self._standing
        self.forget()  # the sorted first ones, too: of many jobs these are looked up
        if standing is not None:
            standing.add(job)
            self._standing = standing

    def removed(self, job: int) -> None:
        """Note that a job does not wait any more."""
        if job == self._first:
            self._first = None
        if self._standing is not None:
            self._standing.remove(job)

    def reviewed(self, waiting: array[int]) -> None:
        """Note that jobs were hidden or shown: another may be the first."""
        self._standing = None
        if len(waiting) > len(self._jobs):
            self.forget()  # the keys are those of fewer jobs
        self._first = None
        self._front = []
        self._turn = 0
        if self._parts:
            self._places = None  # those of the jobs in view; they are sorted again by the same keys

    def first(self, waiting: array[int]) -> int:
        """Return the first of the jobs that wait."""
        if self._first is None:
            if len(waiting) == 1:
                self._first = waiting[0]
            elif self._stands and len(waiting) <= MOST and self.settles(waiting):
                assert self._standing is not None
                self._first = self._standing.jobs[0]
            elif self._parts and self._searched < SEARCHES:
                self._first = self._least(waiting)
                self._searched += 1
            else:  # many jobs may start in one pass: from the third on, they are sorted
                self._first = self._next(waiting)
        return self._first

    @property
    def stands(self) -> bool:
        """Whether the order is known, and jobs are put in and taken out one by one."""
        return self._standing is not None

    def settles(self, waiting: array[int]) -> bool:
        """Bring the standing order to the present; return False if there can be none."""
        if self._standing is None:
            jobs = self._compute(waiting)
            self._standing = standing_order(jobs, self._keys_at(jobs))
        elif not self._standing.settle(self._keys_of_some):
            self.forget()
        return self._standing is not None

    def _keys_of_some(self, jobs: list[int]) -> list[float]:
        found: list[float] = self._keys_of(np.array(jobs, dtype=np.int64)).tolist()
        return found

    def _next(self, waiting: array[int]) -> int:
        """Return the first of the jobs that wait, from the present place on."""
        if self._parts and self._places is None:
            return self._next_in_front(waiting)
        places, at = self._all(waiting), self._turn
        while not _is_in(waiting, places[at]):
            at += 1
        self._turn = at
        return places[at]

    def _next_in_front(self, waiting: array[int]) -> int:
        """Return the same, and sort only the jobs that may be needed."""
        front, at = self._front, self._turn
        while at < len(front) and not _is_in(waiting, front[at]):
            at += 1
        if at == len(front):
            size, jobs = max(FIRST_SORTED, 4 * len(front)), np.array(waiting, dtype=np.int64)
            self._front, at = self.first_of(jobs, size, waiting)[0], 0
        self._turn = at
        return self._front[at]

    def all(self, waiting: array[int]) -> Integers:
        """Return the jobs that wait, in order."""
        if self._standing is not None and self.settles(waiting):
            return np.array(self._standing.jobs, dtype=np.int64)
        places = np.array(self._all(waiting), dtype=np.int64)
        if len(places) == len(waiting):
            return places
        return places[np.isin(places, np.array(waiting, dtype=np.int64), assume_unique=True)]

    def listed(self, waiting: array[int]) -> list[int]:
        """Return the jobs that wait, in order, as a list."""
        if self._standing is not None and self.settles(waiting):
            return self._standing.jobs
        jobs: list[int] = self.all(waiting).tolist()
        return jobs

    def _all(self, waiting: array[int]) -> list[int]:
        """Return the jobs in order; some may not wait any more."""
        if self._places is None:
            jobs = self._compute(waiting)
            if self._places is None:
                self._places = self._sorted(jobs).tolist()
            # The place of the first job was one among those in front; these begin with jobs that wait now.
            self._turn = 0
        return self._places

    def some(self, jobs: Integers, waiting: array[int]) -> Integers:
        """Return some of the jobs that wait, given by ascending number, in order."""
        if len(jobs) < 2:
            return jobs
        if self._parts:
            if self._keys is None:
                self._compute(waiting)
            return self._sorted(jobs)
        self._compute(waiting)
        places = self.all(waiting)
        return places[np.isin(places, jobs, assume_unique=True)]

    @property
    def by_keys(self) -> bool:
        """Whether parts of the queue can be sorted by themselves."""
        return self._parts

    def first_of(self, jobs: Integers, count: int, waiting: array[int]) -> tuple[list[int], Bools]:
        """Return the first of some waiting jobs, in order, at least `count`, and which are behind these."""
        if self._keys is None:
            self._compute(waiting)
        chosen = np.ones(len(jobs), dtype=np.bool_)
        if len(jobs) > 2 * count and self._table.tiers is None:
            keys = self._keys_at(jobs)
            most = np.partition(keys, count - 1)[count - 1]
            if most == most:  # noqa: PLR0124 (not NaN)
                chosen = keys <= most
        found: list[int] = self._sorted(jobs[chosen]).tolist()
        return found, ~chosen

    def _compute(self, waiting: array[int]) -> Integers:
        """Compute the keys (or the places, under an order without keys) if they are not known.

        Return the jobs that wait, by number.
        """
        jobs = np.array(waiting, dtype=np.int64)
        if self._parts and self._keys is None:
            self._keys = self._keys_of(jobs)
            self._jobs = jobs
        elif not self._parts and self._places is None:
            self._places = ranked(self._order, self._table, jobs, self.now).tolist()
            self._jobs = jobs
        return jobs

    def _keys_of(self, jobs: Integers) -> Floats:
        if self._own:
            keys: Floats = self._order.keys(self._table, jobs, self.now)
            return keys
        with named_in_errors("job order", self._order):
            found: Floats = _checked_keys(self._order, self._table, jobs, self.now)
        return found

    def _least(self, waiting: array[int]) -> int:
        """Return the job with the least key; only jobs that share it are sorted."""
        jobs = self._compute(waiting)
        keys = self._keys_at(jobs)
        if self._table.by_number:
            at = keys.argmin()
            if keys[at] == keys[at]:  # not NaN
                return int(jobs[at])
        tiers = self._table.tiers
        if tiers is not None:
            mine = tiers[jobs]
            top = (mine == mine.max()).nonzero()[0]
            jobs, keys = jobs[top], keys[top]
        least = keys.min()
        ties = (keys == least).nonzero()[0]
        if len(ties) == 1:
            return int(jobs[ties[0]])
        # Keys that are not a number come last, so they tie only if all others do; then all are sorted.
        return int(self._sorted(jobs[ties] if len(ties) else jobs)[0])

    def _keys_at(self, jobs: Integers) -> Floats:
        """Return the keys of some of the jobs for which they were computed, both by ascending number."""
        assert self._keys is not None
        return self._keys if len(jobs) == len(self._jobs) else self._keys[self._jobs.searchsorted(jobs)]

    def _sorted(self, jobs: Integers) -> Integers:
        return sorted_by_keys(self._table, jobs, self._keys_at(jobs))


def _is_in(waiting: array[int], job: int) -> bool:
    at = bisect_left(waiting, job)
    return at < len(waiting) and waiting[at] == job
