"""Fairness between jobs and between users.

References
----------
.. [Sabin04] G. Sabin, G. Kochhar, P. Sadayappan, "Job fairness in non-preemptive job scheduling", ICPP 2004.
.. [Jain84] R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness and discrimination for
   resource allocation in shared computer systems", DEC TR-301, 1984.
.. [Vasupongayya05] S. Vasupongayya, S.-H. Chiang, "On job fairness in non-preemptive parallel job
   scheduling", PDCS 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.report.metrics.metrics import bounded_slowdown, ran
from simsched.report.metrics.plain_columns import objects

if TYPE_CHECKING:
    import pandas as pd

    from simsched.report.metrics.plain_columns import Table


def jain(values: Any) -> float:
    """Return (Σx)² / (n · Σx²) [Jain84]: 1 if all are equal, 1/n if all but one are 0; NaN without values.

    >>> jain(np.array([1.0, 1.0, 1.0, 1.0])), jain(np.array([4.0, 0.0, 0.0, 0.0]))
    (1.0, 0.25)
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    squares = float((x * x).sum())
    return float(x.sum()) ** 2 / (len(x) * squares) if squares else float("nan")


def jain_of_users(jobs: Table) -> float:
    """Return the Jain index of the users' mean bounded slowdowns [Vasupongayya05]; NaN without users.

    Jobs of unknown users are ignored.
    """
    done = ran(jobs)
    users = objects(done, "user").tolist()
    distinct = sorted(name for name in set(users) if isinstance(name, str))
    number = {name: at for at, name in enumerate(distinct)}
    places = np.fromiter(map(number.get, users, repeat(-1)), np.int64, len(users))
    of_user = places >= 0
    sums = np.bincount(places[of_user], np.asarray(bounded_slowdown(done))[of_user], len(number))
    return jain(sums / np.bincount(places[of_user], minlength=len(number)))


@dataclass(frozen=True, slots=True)
class FairStart:
    """Result of `fair_start_miss`: `missed` of `jobs` jobs, total and mean miss in seconds."""

    jobs: int
    missed: int
    total_miss: float
    mean_miss: float

    @property
    def share(self) -> float:
        """Share of the jobs that missed their fair start."""
        return self.missed / self.jobs if self.jobs else float("nan")


def fair_start_miss(jobs: pd.DataFrame, fair: pd.DataFrame) -> FairStart:
    """Compare starts with fair starts [Sabin04]: a job misses its fair start if it starts later.

    `fair` is the jobs of the same workload under the reference discipline.  In [Sabin04] a
    job's fair start is its start if no later job exists.  Under strict FCFS later jobs have no
    influence, so an FCFS run gives exactly these starts.  `mean_miss` is over
    all jobs, missed or not.
    """
    both = ran(jobs)[["id", "start"]].merge(ran(fair)[["id", "start"]], on="id", suffixes=("", "_fair"))
    late = (both["start"] - both["start_fair"]).clip(lower=0)
    missed = int((late > 0).sum())
    return FairStart(len(both), missed, float(late.sum()), float(late.mean()) if len(both) else float("nan"))


def overtaken(jobs: pd.DataFrame) -> pd.Series[int]:
    """Return, for each job that ran, how many jobs that were submitted later started earlier.

    Defined here.  Overtaking is not harm: a backfilled job overtakes and need not delay another job.
    O(n log n): an inversion count, from the last submission to the first.
    """
    import pandas as pd

    done = ran(jobs)
    order = np.lexsort((np.arange(len(done)), done["submit"].to_numpy()))
    starts, places = np.unique(done["start"].to_numpy()[order], return_inverse=True)
    counts = np.zeros(len(done), dtype=np.int64)
    tree = [0] * (len(starts) + 1)  # Fenwick's: the jobs seen so far, by the place of their start
    for row, place in zip(order[::-1].tolist(), places.ravel()[::-1].tolist(), strict=True):
        below = place
        while below:
            counts[row] += tree[below]
            below &= below - 1
        above = place + 1
        while above < len(tree):
            tree[above] += 1
            above += above & -above
    return pd.Series(counts, index=done.index, name="overtaken")
