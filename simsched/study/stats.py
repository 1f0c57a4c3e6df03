"""Is a difference between two configurations more than noise?  Intervals and pairs over seeds.

A configuration is simulated once with each seed; seed *s* means the same demand and the same
chance for every configuration (common random numbers).  What they share cancels in the
difference of a pair, so configurations are compared pair by pair and never mean by mean.

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
#: values of which the interval is a bootstrap's; of fewer it is Student's
MANY = 10
MAX_RESAMPLES = 1_000_000
MIN_CONFIDENCE, MAX_CONFIDENCE = 0.5, 0.9999


@dataclass(frozen=True, slots=True)
class Difference:
    """Configuration b against configuration a, pair by pair: b - a.

    Attributes
    ----------
    interval : the mean difference with its confidence interval.
    relative : the mean difference over the mean of a; NaN where that is 0.
    pairs : seeds for which both are known.
    lower, equal, higher : pairs in which b is below a, the same, above it.
    confidence : of the interval.
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
        """Whether the interval holds 0 or cannot be known (fewer than two pairs that differ in anything)."""
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
    """Interval of the mean of one value a seed: Student's of few, a bootstrap's of many.

    Of fewer than ten values it is mean ± t · s / sqrt(n).  Of ten and more it is the expanded percentile
    interval [Hesterberg15]: the plain one of a bootstrap [Efron93], widened as Student's t is wider than
    the normal, and by sqrt(n / (n - 1)).  It is as skewed as the values are, but of fewer values too
    narrow (of five normal ones it covers 91 %).  What both cover of skewed means of simulated months
    is measured in ``analysis/studies/coverage.md``.
    Values that are not finite are left out.  One value says nothing of its spread: both ends are
    NaN.  Without `rng` a generator of seed 0 is used, so that equal values give an equal interval.

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
) -> Difference:
    """Compare b with a, one value a seed each and in the same order of seeds: b - a [Law15].

    A pair of which one value is not finite (nothing ran) is left out.

    Raises
    ------
    ConfigError
        if there are not as many values of b as of a.
    """
    left, right = _numbers("a", a), _numbers("b", b)
    if left.shape != right.shape:
        raise ConfigError(f"{left.size} values against {right.size}", expected="one a seed of both")
    both = np.isfinite(left) & np.isfinite(right)
    left, right = left[both], right[both]
    change = right - left
    found = interval(change, confidence, rng, resamples=resamples)
    mean = float(left.mean()) if len(left) else math.nan
    relative = found.estimate / mean if mean else math.nan
    signs = np.sign(change)
    lower, equal, higher = (int((signs == s).sum()) for s in (-1, 0, 1))
    return Difference(found, relative, len(change), lower, equal, higher, confidence)


def within_noise(values: Sequence[float] | Floats, bound: float, confidence: float = CONFIDENCE) -> bool:
    """Whether the mean of the values cannot be told from `bound`: its interval holds it, or is not known."""
    found = interval(values, confidence)
    return not (found.low > bound or found.high < bound)


def prediction(values: Sequence[float] | Floats, confidence: float = CONFIDENCE) -> Interval:
    """Interval in which the value of one further seed is expected: mean ± t · s · sqrt(1 + 1 / n).

    Exact for normal values, a guide for others; NaN of fewer than two values.

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
    """Return a row of numbers; ConfigError for what is none."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise wrong(name, values, "numbers") from None
    if found.ndim != 1:
        raise wrong(name, values, "numbers, one a seed")
    return found


def _generator(rng: Any) -> np.random.Generator:
    if rng is None:
        return np.random.default_rng(0)
    if not isinstance(rng, np.random.Generator):
        raise wrong("rng", rng, "a numpy.random.Generator")
    return rng


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is none.

    Raises
    ------
    ConfigError
        outside 0.5 to 0.9999.
    """
    check_real("confidence", confidence)
    if not MIN_CONFIDENCE <= confidence <= MAX_CONFIDENCE:
        raise ConfigError(
            f"a confidence of {confidence:g}", expected=f"{MIN_CONFIDENCE:g} to {MAX_CONFIDENCE:g}"
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
