"""Blocks of time of a log, weeks or days: those that choose settings and those that test, and their errors.

The error of simulated against recorded waits is `agreement.wait_error`.  Waits of neighbouring jobs depend on
each other, so intervals come from the bootstrap over blocks of time (Künsch 1989): whole weeks, or days in a
short log, are drawn with replacement.  All runs are drawn with the same weights, so the difference of two
errors is paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from simsched import human
from simsched.errors import ConfigError
from simsched.report.metrics.agreement import LEAST_WAIT, log_ratios, ranks_of
from simsched.report.metrics.intervals import DAY, Interval

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

WEEK = 7 * DAY
#: least number of training and of held-out blocks
LEAST_TRAINING, LEAST_HELD_OUT = 4, 2
#: a log of fewer weeks is divided into days
FEWEST_WEEKS = 10
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Blocks of time from the first submission on.

    Attributes
    ----------
    begin : the first submission (s), and `length` of a block (s): a week or a day.
    warm_up, training, held_out : numbers of blocks, which follow each other in this order.  The machine of
        a simulation is empty at first and that of the log was not, so the first block is left out.
    """

    begin: float
    length: float
    warm_up: int
    training: int
    held_out: int

    @classmethod
    def of(cls, submits: Floats, held_out: float) -> TimeSplit:
        """Divide the time of submissions; `held_out` is the share of the blocks that test.

        Raises
        ------
        ConfigError
            If the log is too short to learn from, or the share leaves too few blocks.
        """
        begin, end = float(submits.min()), float(submits.max())
        length = WEEK if end - begin >= FEWEST_WEEKS * WEEK else DAY
        # A last block that is not whole would weigh like a whole one in the bootstrap.
        count = max(1, int((end - begin) // length)) - 1
        test = ceil(count * held_out)
        if test < LEAST_HELD_OUT or count - test < LEAST_TRAINING:
            need = LEAST_TRAINING + LEAST_HELD_OUT + 1
            raise ConfigError(
                f"{human.seconds(end - begin)} of submissions, with {human.share(held_out)} of them held "
                "out, are too short to learn from",
                where="calibrate",
                expected=f"at least {need} days, of which {LEAST_TRAINING} are for training and "
                f"{LEAST_HELD_OUT} are held out",
            )
        return cls(begin, length, 1, count - test, test)

    @property
    def unit(self) -> str:
        """The name of a block: ``week`` or ``day``."""
        return "week" if self.length == WEEK else "day"

    def block_of(self, submits: Floats) -> Integers:
        """Return the block of each submission, counted from the first training block; less is warm-up."""
        blocks: Integers = ((submits - self.begin) // self.length).astype(np.int64) - self.warm_up
        return blocks

    def training_end(self) -> float:
        """Return the time (s) at which the held-out blocks begin."""
        return self.begin + (self.warm_up + self.training) * self.length


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
