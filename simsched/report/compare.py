"""Are two runs different, or is it chance?  Bootstrap intervals and paired comparison.

References
----------
.. [Efron93] B. Efron, R. Tibshirani, "An introduction to the bootstrap", 1993 (percentile interval, ch. 13).
.. [Kunsch89] H. Künsch, "The jackknife and the bootstrap for general stationary observations",
   Annals of Statistics 17(3), 1989 (blocks keep the dependence of neighbours).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from simsched.report.classes import day
from simsched.report.metrics import bounded_slowdown, ran, turnaround, wait

if TYPE_CHECKING:
    from simsched.report.tables import Run

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats], float]
#: the share of common ids that have to be submitted at one time for runs of different files to be paired
SAME = 0.5


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the ends of its confidence interval."""

    estimate: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether the value lies in the interval."""
        return self.low <= value <= self.high


def bootstrap(
    values: pd.Series[float],
    statistic: Statistic | None = None,
    *,
    blocks: pd.Series[int] | None = None,
    resamples: int = 1000,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """Percentile bootstrap interval of a statistic, the mean by default [Efron93].

    Neighbouring jobs wait together, so give `blocks` (such as `classes.day`): whole blocks
    are drawn then, and the dependence within them stays [Kunsch89].
    """
    known = values[np.isfinite(values)]
    x: Floats = np.asarray(known, dtype=np.float64)
    if not len(x):
        return Interval(np.nan, np.nan, np.nan)
    rng = rng or np.random.default_rng(0)
    labels = np.arange(len(x)) if blocks is None else pd.factorize(blocks.loc[known.index])[0]
    draws = (
        _means(x, labels, resamples, rng)
        if statistic is None
        else _draws(x, labels, statistic, resamples, rng)
    )
    tail = 50 * (1 - confidence)
    low, high = np.percentile(draws, [tail, 100 - tail])
    return Interval(float(x.mean() if statistic is None else statistic(x)), float(low), float(high))


def _means(x: Floats, labels: npt.NDArray[np.int64], resamples: int, rng: np.random.Generator) -> Floats:
    """Means of resampled blocks from the blocks' sums and sizes alone: no job is copied."""
    count = int(labels.max()) + 1
    sums, sizes = np.bincount(labels, x, count), np.bincount(labels, minlength=count)
    draws = np.empty(resamples)
    for i in range(resamples):
        drawn = rng.integers(0, count, count)
        draws[i] = sums[drawn].sum() / sizes[drawn].sum()
    return draws


def _draws(
    x: Floats, labels: npt.NDArray[np.int64], statistic: Statistic, resamples: int, rng: np.random.Generator
) -> Floats:
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    parts = np.split(x[order], cuts)
    return np.array(
        [
            statistic(np.concatenate([parts[i] for i in rng.integers(0, len(parts), len(parts))]))
            for _ in range(resamples)
        ]
    )


def paired(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs that ran in both, by id: id, submit, wait_a, wait_b, and the differences b - a.

    Columns: wait_difference and turnaround_difference (s), bounded_slowdown_difference (ratio).
    """
    left, right = (_measures(ran(j)).drop_duplicates("id") for j in (a, b))
    both = left.merge(right, on="id", suffixes=("_a", "_b"))
    for name in ("wait", "turnaround", "bounded_slowdown"):
        both[f"{name}_difference"] = both[f"{name}_b"] - both[f"{name}_a"]
    return both.rename(columns={"submit_a": "submit"}).drop(columns="submit_b")


def _measures(jobs: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": jobs["id"],
            "submit": jobs["submit"],
            "wait": wait(jobs),
            "turnaround": turnaround(jobs),
            "bounded_slowdown": bounded_slowdown(jobs),
        }
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs of one workload, job by job: b against a.

    `wait`, `turnaround` and `slowdown` are the mean differences b - a with their intervals;
    `sooner`, `same` and `later` the shares of jobs that started so in b.
    """

    jobs: int
    wait: Interval
    turnaround: Interval
    slowdown: Interval
    sooner: float
    same: float
    later: float

    @property
    def verdict(self) -> str:
        """``b waits less``, ``b waits more``, or ``no difference shown``."""
        if not self.jobs or self.wait.holds(0.0):
            return "no difference shown"
        return "waits less" if self.wait.estimate < 0 else "waits more"


def compare(
    a: pd.DataFrame, b: pd.DataFrame, *, resamples: int = 1000, rng: np.random.Generator | None = None
) -> Comparison:
    """Compare two runs of the same workload job by job, days as blocks of the bootstrap."""
    both = paired(a, b)
    if both.empty:
        nothing = Interval(np.nan, np.nan, np.nan)
        return Comparison(0, nothing, nothing, nothing, np.nan, np.nan, np.nan)
    blocks = day(both)
    rng = rng or np.random.default_rng(0)
    wait_, turnaround_, slowdown_ = (
        bootstrap(both[f"{name}_difference"], blocks=blocks, resamples=resamples, rng=rng)
        for name in ("wait", "turnaround", "bounded_slowdown")
    )
    moved = np.sign(both["wait_difference"])
    sooner, same, later = (float((moved == s).mean()) for s in (-1, 0, 1))
    return Comparison(len(both), wait_, turnaround_, slowdown_, sooner, same, later)


def same_jobs(a: Run, b: Run) -> bool:
    """Whether jobs of one id are one job in both runs: one workload file, or most submitted at one time.

    Numbers repeat between traces; jobs that merely have the same number are not to be paired.
    """
    files = [_workload_digest(run) for run in (a, b)]
    if files[0] and files[0] == files[1]:
        return True
    left, right = (run.jobs[["id", "submit"]].drop_duplicates("id") for run in (a, b))
    both = left.merge(right, on="id")
    return bool((both["submit_x"] == both["submit_y"]).mean() >= SAME) if len(both) else False


def _workload_digest(run: Run) -> str | None:
    given = (item.get("sha256") for item in run.meta.get("inputs", []) if item.get("role") == "workload")
    return next(given, None)


def compare_runs(a: Run, b: Run) -> Comparison:
    """Compare two runs job by job; runs of different workloads have no job in common."""
    return compare(a.jobs, b.jobs if same_jobs(a, b) else b.jobs.iloc[:0])


def side_by_side(summaries: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return one row a figure and one column a run, in the order of the first run's figures."""
    names: Sequence[str] = list(dict.fromkeys(name for s in summaries.values() for name in s))
    return pd.DataFrame(
        {run: [s.get(n, np.nan) for n in names] for run, s in summaries.items()}, index=list(names)
    )
