"""The error of simulated against recorded waits, and its intervals by resampling of whole weeks or days.

The error is `agreement.wait_error`.  Waits of neighbouring jobs depend on each other, so intervals come from
the bootstrap over blocks of time (Künsch 1989): whole weeks, or days in a short log, are drawn with
replacement.  All runs are drawn with the same weights, so the difference of two errors is paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simsched.report.metrics.agreement import LEAST_WAIT, log_ratios, ranks_of
from simsched.report.metrics.intervals import Interval

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

RESAMPLES = 1000


@dataclass(frozen=True, slots=True, eq=False)
class WaitBlocks:
    """Sums over the jobs of each block, from which the error of any choice of blocks follows.

    Ranks are those among all jobs of the blocks, in resamples too, so that resamples cost no sorting.
    """

    sums: Floats

    @classmethod
    def of(cls, found: Floats, real: Floats, blocks: Integers, count: int) -> WaitBlocks:
        """Return the sums of jobs with simulated and recorded waits (s); `blocks` are below `count`."""
        a, b = ranks_of(found), ranks_of(real)
        columns = (np.ones(len(found)), log_ratios(found, real), found, real, a, b, a * a, b * b, a * b)
        return cls(np.stack([np.bincount(blocks, column, count) for column in columns], axis=1))

    @property
    def error(self) -> float:
        """The error of all jobs."""
        return float(self.errors(np.ones((1, len(self.sums))))[0])

    def errors(self, weights: Floats) -> Floats:
        """Return the error for each row of weights (resamples × blocks)."""
        n, logs, found, real, a, b, aa, bb, ab = (weights @ self.sums).T
        n = np.maximum(n, 1)
        means = np.abs(np.log(np.maximum(found / n, LEAST_WAIT) / np.maximum(real / n, LEAST_WAIT)))
        spread = np.maximum(aa / n - (a / n) ** 2, 0) * np.maximum(bb / n - (b / n) ** 2, 0)
        covariance = ab / n - (a / n) * (b / n)
        rank = np.divide(covariance, np.sqrt(spread), out=np.zeros_like(n), where=spread > 0)
        errors: Floats = (logs / n + (1 - rank) + means) / 3
        return errors


class Resampler:
    """Draws blocks with replacement, the same for every run."""

    def __init__(self, blocks: int, rng: np.random.Generator, confidence: float) -> None:
        draws = rng.integers(0, blocks, (RESAMPLES, blocks)) if blocks else np.zeros((RESAMPLES, 0), np.int64)
        self.weights = np.stack([np.bincount(row, minlength=blocks) for row in draws]).astype(np.float64)
        self._tail = 50 * (1 - confidence)

    def error(self, run: WaitBlocks) -> Interval:
        """Return the error of a run with its interval."""
        return self._interval(run.error, run.errors(self.weights))

    def gain(self, before: WaitBlocks, after: WaitBlocks) -> Interval:
        """Return by how much the error is smaller after than before, with its interval."""
        draws = before.errors(self.weights) - after.errors(self.weights)
        return self._interval(before.error - after.error, draws)

    def _interval(self, estimate: float, draws: Floats) -> Interval:
        low, high = np.percentile(draws, [self._tail, 100 - self._tail])
        return Interval(estimate, float(low), float(high))
