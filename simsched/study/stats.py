"""Intervals of means over seeds and paired differences, which distinguish a difference from noise.

A configuration is simulated once with each seed; seed *s* means the same demand and the same
chance for every configuration (common random numbers).  Common effects cancel in the difference of a
pair, so configurations are compared pair by pair and never mean by mean.

Intervals within one run, over jobs that wait together, are in `simsched.report.metrics.intervals`.

References
----------
.. [Hall92] P. Hall, "On the removal of skewness by transformation", Journal of the Royal Statistical
   Society B 54(1), 1992 (the cubic transformation of the studentised mean).
.. [Law15] A. Law, "Simulation modeling and analysis", 5th ed. 2015 (common random numbers, 11.2;
   paired-t comparison of two systems, 10.2.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.arguments import check_real, wrong
from simsched.errors import ConfigError
from simsched.report.metrics.intervals import Interval, skewed_interval, skewness, student_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.arrays import Floats


CONFIDENCE = 0.95
#: least skewness of the values of seeds for the end that is farther from zero
USUAL_SKEWNESS = 0.35
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
        return not self.interval.excludes(0.0)

    @property
    def verdict(self) -> str:
        """``lower``, ``higher``, ``same`` (equal in every pair) or ``within noise``: b against a.

        It is ``unknown`` without a pair that has both values.

        >>> paired_difference([10, 12, 11], [8, 9, 9]).verdict
        'lower'
        """
        if not self.pairs:
            return "unknown"
        if self.equal == self.pairs:
            return "same"
        if self.within_noise:
            return "within noise"
        return "lower" if self.interval.estimate < 0 else "higher"


def interval(values: Sequence[float] | Floats, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval of the mean of one value per seed: Student's, corrected for skewness [Hall92].

    Few values do not show how skewed they are, so the end that is farther from zero is that of values with
    a skewness of at least `USUAL_SKEWNESS`.  For two values the other end is Student's.  The coverage for
    means of simulated months is measured in ``analysis/studies/coverage.md``.
    Values that are not finite are ignored.  The spread of a single value is unknown: both ends are NaN.

    Raises
    ------
    ConfigError
        for a confidence outside 0.5 to 0.9999.

    >>> found = interval([3.0, 5.0, 4.0, 4.0, 4.0])
    >>> found.estimate, round(found.low, 2), round(found.high, 2)
    (4.0, 3.12, 5.06)
    """
    known, mean, deviation = _finite(values, confidence)
    if len(known) < 2:
        return Interval(mean, math.nan, math.nan)
    count, root = len(known), math.sqrt(len(known))
    error = deviation / root
    if np.ptp(known) == 0 or error == 0:
        return Interval(mean, mean, mean)
    usual = (-math.inf, USUAL_SKEWNESS / root)
    return skewed_interval(mean, error, count - 1, skewness(known - mean) / root, usual, confidence)


def paired_difference(
    a: Sequence[float] | Floats,
    b: Sequence[float] | Floats,
    confidence: float = CONFIDENCE,
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
    found = interval(change, confidence)
    mean = float(left.mean()) if len(left) else math.nan
    relative = found.estimate / mean if mean else math.nan
    signs = np.sign(change)
    lower, equal, higher = (int((signs == s).sum()) for s in (-1, 0, 1))
    return PairedDifference(found, relative, len(change), lower, equal, higher, confidence)


def prediction(values: Sequence[float] | Floats, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval in which another seed is expected: mean ± t · s · sqrt(1 + 1 / n).

    It is exact for normal values and a guide for others; NaN for fewer than two values.

    >>> found = prediction([3.0, 5.0, 4.0, 4.0, 4.0])
    >>> round(found.low, 2), round(found.high, 2)
    (1.85, 6.15)
    """
    known, mean, deviation = _finite(values, confidence)
    count = len(known)
    if count < 2:
        return Interval(mean, math.nan, math.nan)
    reach = student_quantile(confidence, count - 1) * deviation * math.sqrt(1 + 1 / count)
    return Interval(mean, mean - reach, mean + reach)


def _finite(values: Any, confidence: float) -> tuple[Floats, float, float]:
    """Return the finite values with their mean and standard deviation, NaN where they are too few."""
    check_confidence(confidence)
    given = _numbers("values", values)
    known = given[np.isfinite(given)]
    deviation = float(known.std(ddof=1)) if len(known) > 1 else math.nan
    return known, float(known.mean()) if len(known) else math.nan, deviation


def _numbers(name: str, values: Any) -> Floats:
    """Return a one-dimensional array of numbers; ConfigError for other values."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise wrong(name, values, "numbers") from None
    if found.ndim != 1:
        raise wrong(name, values, "numbers, one per seed")
    return found


def check_confidence(confidence: float) -> None:
    """Raise ConfigError unless a confidence is from 0.5 to 0.9999."""
    check_real("confidence", confidence)
    if not MIN_CONFIDENCE <= confidence <= MAX_CONFIDENCE:
        raise ConfigError(
            f"a confidence of {confidence:g} is out of range",
            expected=f"{MIN_CONFIDENCE:g} to {MAX_CONFIDENCE:g}",
        )
