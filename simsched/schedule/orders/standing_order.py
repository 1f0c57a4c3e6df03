"""`StandingOrder`: the waiting jobs in order, as long as their keys stand.

Under an order whose keys count for a while (`Multifactor` with a period), few jobs come and go between two
times at which all keys change.  So jobs are put in and taken out one by one, and the rest stays sorted.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

MOST = 256
"""Waiting jobs up to which all of them are sorted at once; of more, most passes need only a few."""


class StandingOrder:
    """Jobs by (key, number).

    Attributes
    ----------
    jobs : the jobs in order, except for those that came since they were last asked for.
    """

    __slots__ = ("_fresh", "_keys", "jobs")

    def __init__(self, jobs: list[int], keys: list[float]) -> None:
        self.jobs = jobs
        self._keys = keys
        self._fresh: list[int] = []

    def add(self, job: int) -> None:
        """Note that a job came; its key need not be known yet."""
        self._fresh.append(job)

    def remove(self, job: int) -> None:
        """Take a job out."""
        if job in self._fresh:
            self._fresh.remove(job)
            return
        at = 0 if self.jobs[0] == job else self.jobs.index(job)
        del self.jobs[at], self._keys[at]

    def settle(self, keys_of: Callable[[list[int]], list[float]]) -> bool:
        """Put the jobs that came into their places; return False if a key is not a number."""
        if self._fresh:
            fresh = sorted(self._fresh)
            for job, key in zip(fresh, keys_of(fresh), strict=True):
                if key != key:  # noqa: PLR0124 (NaN)
                    return False
                at = bisect_right(self._keys, key)
                while at and self._keys[at - 1] == key and self.jobs[at - 1] > job:
                    at -= 1  # a job that was queued again
                self._keys.insert(at, key)
                self.jobs.insert(at, job)
            self._fresh.clear()
        return True


def standing_order(jobs: Integers, keys: Floats) -> StandingOrder | None:
    """Return jobs, given by ascending number, in the order of their keys; None if a key is not a number."""
    places = keys.argsort(kind="stable")
    sorted_keys: list[float] = keys[places].tolist()
    if sorted_keys[-1] != sorted_keys[-1]:  # NaN is sorted last
        return None
    return StandingOrder(jobs[places].tolist(), sorted_keys)
