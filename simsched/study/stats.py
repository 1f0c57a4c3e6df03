"""Intervals of means over seeds and paired differences, which distinguish a difference from noise.

A configuration is simulated once with each seed; seed *s* means the same demand and the same
chance for every configuration (common random numbers).  Common effects cancel in the difference of a
pair, so configurations are compared pair by pair and never mean by mean.

Intervals within one run, over jobs that wait together, are in `simsched.report.metrics.intervals`.

References
----------
.. [Efron93] B. Efron, R. Tibshirani, "An introduction to the bootstrap", 1993 (percentile interval, ch. 13).
.. [Hesterberg15] T. Hesterberg, "What teachers should know about the bootstrap: resampling in the
   undergraduate statistics curriculum", The American Statistician 69(4), 2015 (the expanded
   percentile interval, for samples that are small).
.. [Law15] A. Law, "Simulation modeling and analysis", 5th ed. 2015 (common random numbers, 11.2;
   paired-t comparison of two systems, 10.2.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simsched.arguments import check_real, check_whole, wrong
from simsched.errors import ConfigError
from simsched.report.metrics.intervals import Interval, student_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 10_000
#: number of values from which the interval is a bootstrap's; below it is Student's
MANY = 10
MAX_RESAMPLES = 1_000_000
MIN_CONFIDENCE, MAX_CONFIDENCE = 0.5, 0.9999


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Configuration b against configuration a, pair by pair: b - a.

    Attributes
    ----------
    interval : the mean difference with its confidence interval.
    relative : the mean difference over the mean of a; NaN where that is 0.
    pairs : number of seeds for which both are known.
    lower, equal, higher : number of pairs in which b is below a, equal to it, above it.
    confidence : confidence of the interval.
    """

    interval: Interval
    relative: float
    pairs: int
    lower: int
    equal: int
    higher: int
    confidence: float

    @property
    def within_noise(self) -> bool:
        """Whether the interval contains 0 or is unknown (fewer than two pairs)."""
        low, high = self.interval.low, self.interval.high
        return not (low > 0 or high < 0)

    @property
    def verdict(self) -> str:
        """``lower``, ``higher``, ``same`` (equal in every pair) or ``within noise``: b against a.

        >>> paired_difference([10, 12, 11], [8, 9, 9]).verdict
        'lower'
        """
        if self.pairs and self.equal == self.pairs:
            return "same"
        if self.within_noise:
            return "within noise"
        return "lower" if self.interval.estimate < 0 else "higher"


def interval(
    values: Sequence[float] | Floats,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
    *,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the interval of the mean of one value per seed: Student's for few, a bootstrap's for many.

    For fewer than ten values it is mean ± t · s / sqrt(n).  From ten values on it is the expanded
    percentile interval [Hesterberg15]: the percentile interval of a bootstrap [Efron93], widened as
    Student's t is wider than the normal, and by sqrt(n / (n - 1)).  It is as skewed as the values, but too
    narrow for fewer of them (with five normal values it covers 91 %).  The coverage of both for skewed
    means of simulated months is measured in ``analysis/studies/coverage.md``.
    Values that are not finite are ignored.  The spread of a single value is unknown: both ends are NaN.
    Without `rng` a generator of seed 0 is used, so that equal values give equal intervals.

    Raises
    ------
    ConfigError
        for a confidence outside 0.5 to 0.9999.

    >>> found = interval([3.0, 5.0, 4.0, 4.0, 4.0])
    >>> found.estimate, 3.0 <= found.low < 4.0 < found.high <= 5.0
    (4.0, True)
    """
    check_confidence(confidence)
    check_whole("resamples", resamples, 1, MAX_RESAMPLES)
    rng = _generator(rng)
    given = _numbers("values", values)
    known = given[np.isfinite(given)]
    count = len(known)
    if count < 2:
        estimate = float(known[0]) if count else math.nan
        return Interval(estimate, math.nan, math.nan)
    mean = float(known.mean())
    if np.ptp(known) == 0:
        return Interval(mean, mean, mean)
    if count < MANY:
        reach = student_quantile(confidence, count - 1) * float(known.std(ddof=1)) / math.sqrt(count)
        return Interval(mean, mean - reach, mean + reach)
    tail = expanded_tail(count, confidence)
    draws = known[rng.integers(0, count, (resamples, count))].mean(axis=1)
    low, high = np.percentile(draws, [100 * tail, 100 * (1 - tail)])
    return Interval(mean, min(float(low), mean), max(float(high), mean))


def paired_difference(
    a: Sequence[float] | Floats,
    b: Sequence[float] | Floats,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
    *,
    resamples: int = RESAMPLES,
) -> PairedDifference:
    """Compare b with a, each with one value per seed in the same order of seeds: b - a [Law15].

    A pair with a value that is not finite (no job ran) is ignored.

    Raises
    ------
    ConfigError
        if the numbers of values differ.
    """
    left, right = _numbers("a", a), _numbers("b", b)
    if left.shape != right.shape:
        raise ConfigError(
            f"a has {left.size} values and b has {right.size}", expected="one value per seed in both"
        )
    both = np.isfinite(left) & np.isfinite(right)
    left, right = left[both], right[both]
    change = right - left
    found = interval(change, confidence, rng, resamples=resamples)
    mean = float(left.mean()) if len(left) else math.nan
    relative = found.estimate / mean if mean else math.nan
    signs = np.sign(change)
    lower, equal, higher = (int((signs == s).sum()) for s in (-1, 0, 1))
    return PairedDifference(found, relative, len(change), lower, equal, higher, confidence)


def within_noise(values: Sequence[float] | Floats, bound: float, confidence: float = CONFIDENCE) -> bool:
    """Whether the mean does not differ from `bound` beyond noise: its interval contains it or is unknown."""
    found = interval(values, confidence)
    return not (found.low > bound or found.high < bound)


def prediction(values: Sequence[float] | Floats, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval in which another seed is expected: mean ± t · s · sqrt(1 + 1 / n).

    It is exact for normal values and a guide for others; NaN for fewer than two values.

    >>> found = prediction([3.0, 5.0, 4.0, 4.0, 4.0])
    >>> round(found.low, 2), round(found.high, 2)
    (1.85, 6.15)
    """
    check_confidence(confidence)
    given = np.asarray(values, dtype=np.float64)
    known = given[np.isfinite(given)]
    count = len(known)
    if count < 2:
        return Interval(float(known[0]) if count else math.nan, math.nan, math.nan)
    mean = float(known.mean())
    reach = student_quantile(confidence, count - 1) * float(known.std(ddof=1)) * math.sqrt(1 + 1 / count)
    return Interval(mean, mean - reach, mean + reach)


def _numbers(name: str, values: Any) -> Floats:
    """Return a one-dimensional array of numbers; ConfigError for other values."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise wrong(name, values, "numbers") from None
    if found.ndim != 1:
        raise wrong(name, values, "numbers, one per seed")
    return found


def _generator(rng: Any) -> np.random.Generator:
    if rng is None:
        return np.random.default_rng(0)
    if not isinstance(rng, np.random.Generator):
        raise wrong("rng", rng, "a numpy.random.Generator")
    return rng


def check_confidence(confidence: float) -> None:
    """Raise ConfigError unless a confidence is from 0.5 to 0.9999."""
    check_real("confidence", confidence)
    if not MIN_CONFIDENCE <= confidence <= MAX_CONFIDENCE:
        raise ConfigError(
            f"a confidence of {confidence:g} is out of range",
            expected=f"{MIN_CONFIDENCE:g} to {MAX_CONFIDENCE:g}",
        )


@lru_cache
def expanded_tail(count: int, confidence: float) -> float:
    """Return the share of the bootstrap distribution that is cut off at each end [Hesterberg15].

    It is Φ(-sqrt(n / (n - 1)) · t), t the quantile of Student's distribution.

    >>> round(expanded_tail(1000, 0.95), 3), round(expanded_tail(5, 0.95), 5)
    (0.025, 0.00095)
    """
    t = student_quantile(confidence, count - 1)
    return NormalDist().cdf(-math.sqrt(count / (count - 1)) * t)
