"""Warm-up by a named rule: MSER-5 on the waits of a run.

References
----------
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
    import numpy.typing as npt
    import pandas as pd

    Floats = npt.NDArray[np.float64]

BATCH = 5
"""Jobs of a batch."""
FEWEST = 10
"""Batches from which the rule can be computed."""


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


def warm_up_of(jobs: pd.DataFrame, name: str = "") -> WarmUp:
    """Return the warm-up of a run by MSER-5 on the waits of its jobs in order of submission.

    Raises
    ------
    RunError
        if fewer than 50 jobs ran.
    """
    from simsched.report.metrics.metrics import measured

    done = measured(jobs).sort_values("submit", kind="stable")
    if len(done) < FEWEST * BATCH:
        raise RunError(
            f"{len(done)} jobs are too few for a warm-up by MSER-5",
            where=name or None,
            expected=f"at least {FEWEST * BATCH} jobs that ran",
        )
    number, settled = mser(done["wait"].to_numpy(dtype=float))
    begin = float(jobs["submit"].min())
    return WarmUp(float(done["submit"].iloc[number]) - begin if number else 0.0, number, settled)
