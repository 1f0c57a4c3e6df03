"""Warm-up by a named rule, MSER-5 or Welch's, on the waits of a run.

Welch's procedure averages replications, smooths the curve and lets the reader choose where it is flat.  Here
it is flat from the first point on that lies in the range of its second half.

References
----------
.. [Law15] A. Law, "Simulation modeling and analysis", 5th ed. 2015 (Welch's procedure, 9.5.1: a moving
   average whose window is at most a quarter of the run, shorter at its beginning).
.. [Welch83] P. Welch, "The statistical analysis of simulation results", in: The computer performance
   modeling handbook, 1983.
.. [White97] K. White, "An effective truncation heuristic for bias reduction in simulation output",
   Simulation 69(6), 1997 (MSER).
.. [White00] K. White, M. Cobb, S. Spratt, "A comparison of five steady-state truncation heuristics for
   simulation", WSC 2000 (MSER-5: batches of five; a minimum in the second half is not accepted).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from simsched.arrays import Floats


BATCH = 5
"""Jobs of a batch."""
FEWEST = 10
"""Batches from which a rule can be computed."""
WINDOWS = 10
"""The smoothing of Welch's rule reaches a tenth of the batches to either side."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The end of the warm-up that a rule finds.

    `seconds` is the time from the first submission, `jobs` the number of jobs that ran and were submitted
    before it.  `settled` is False if the rule finds no end in the first half of the jobs: the run has no
    steady state, and the values are those of half of the jobs.
    """

    seconds: float
    jobs: int
    settled: bool


def mser(values: Floats, batch: int = BATCH) -> tuple[int, bool]:
    """Return how many of the first values to leave out, and whether that is less than half of them [White97].

    The number minimises the squared standard error of the mean of the rest, over means of batches.

    >>> import numpy as np
    >>> mser(np.array([100.0] * 10 + [1.0, 2.0] * 100))
    (10, True)
    """
    count = len(values) // batch
    means = values[: count * batch].reshape(count, batch).mean(axis=1)
    left = np.arange(count, 0, -1, dtype=float)  # batches that remain when 0, 1, … are left out
    apart = means - means.mean()
    totals, squares = np.cumsum(apart[::-1])[::-1], np.cumsum(apart[::-1] ** 2)[::-1]
    errors = np.maximum(squares - totals**2 / left, 0) / left**2
    # Beyond half of the batches the statistic is of too few of them to show a steady state.
    half = count // 2
    best = int(np.argmin(errors[: half + 1]))
    return best * batch, best < half


def welch(replications: Sequence[Floats], batch: int = BATCH) -> tuple[int, bool]:
    """Return how many of the first values to leave out, and whether that is less than half of them [Welch83].

    `replications` are values of runs that differ by chance alone; their means of batches are averaged, up to
    the end of the shortest, and smoothed over a fifth of the run [Law15].

    >>> import numpy as np
    >>> welch([np.concatenate([np.arange(100.0), np.full(400, 100.0)])])
    (150, True)
    """
    count = min(map(len, replications)) // batch
    means = np.mean([one[: count * batch].reshape(count, batch).mean(axis=1) for one in replications], axis=0)
    window = count // WINDOWS
    sums = np.concatenate([[0.0], np.cumsum(means)])
    place = np.arange(count - window)
    reach = np.minimum(place, window)
    curve = (sums[place + reach + 1] - sums[place - reach]) / (2 * reach + 1)
    half = count // 2
    later = curve[half:]
    slack = 1e-9 * float(np.abs(curve).max())  # sums of floats: a flat curve is not exactly flat
    flat = (curve >= later.min() - slack) & (curve <= later.max() + slack)
    first = int(np.argmax(flat))
    return first * batch, first < half


def warm_up_of(jobs: pd.DataFrame, name: str = "", others: Sequence[pd.DataFrame] | None = None) -> WarmUp:
    """Return the warm-up of a run by the waits of its jobs in order of submission.

    Parameters
    ----------
    others : the jobs of runs that differ from this one by chance alone; the rule is then Welch's on all of
        them.  None: the rule is MSER-5.

    Raises
    ------
    RunError
        if fewer than 50 jobs ran.
    """
    rule = "MSER-5" if others is None else "Welch's rule"
    done = _in_order(jobs, name, rule)
    waits = done["wait"].to_numpy(dtype=float)
    if others is None:
        number, settled = mser(waits)
    else:
        more = (_in_order(one, name, rule)["wait"].to_numpy(dtype=float) for one in others)
        number, settled = welch([waits, *more])
    begin = float(jobs["submit"].min())
    return WarmUp(float(done["submit"].iloc[number]) - begin if number else 0.0, number, settled)


def _in_order(jobs: pd.DataFrame, name: str, rule: str) -> pd.DataFrame:
    from simsched.report.metrics.metrics import measured

    done: pd.DataFrame = measured(jobs).sort_values("submit", kind="stable")
    if len(done) < FEWEST * BATCH:
        raise RunError(
            f"{len(done)} jobs are too few for a warm-up by {rule}",
            where=name or None,
            expected=f"at least {FEWEST * BATCH} jobs that ran",
        )
    return done
