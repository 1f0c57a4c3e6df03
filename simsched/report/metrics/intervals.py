"""Confidence intervals of means over jobs whose waits depend on each other.

Jobs of one day wait together, and so do days of one busy week.  A mean is therefore seen as one of days, and
its variance comes from the slow waves of their series: the mean square of its first k cosine components
[Muller14], with Student's t of k degrees of freedom [Lazarus18].  k is half of the number recommended there,
because waits have heavy tails.
Waits are skewed: a few busy days make most of a month's mean.  The interval is corrected for skewness
[Hall92], which falls as the root of the number of independent days; busy days follow busy days, so these are
fewer than days (`FOLLOWING`).  A month without very busy days does not show how skewed waits are.  The end
that is farther from zero is therefore that of days as skewed as is usual (`USUAL_SKEWNESS`), or more, and
the other end that of days with three quarters of it (`NEAR`).  Hall's cubic is vertical where the skewness of
the mean is about 1/t, so the skewness that the days show is bounded in proportion to that (`MOST_SKEWNESS`).
``analysis/studies/coverage.md`` measures how often such intervals contain the true mean.

The percentile bootstrap, for other statistics than the mean, draws blocks of neighbouring periods.  Their
length follows from the data [Politis04], [Patton09].  It is at least a week if the run has ten weeks, and a
tenth of the run otherwise.

References
----------
.. [Efron93] B. Efron, R. Tibshirani, "An introduction to the bootstrap", 1993 (percentile interval, ch. 13).
.. [Hall92] P. Hall, "On the removal of skewness by transformation", Journal of the Royal Statistical
   Society B 54(1), 1992 (the cubic transformation of the studentised mean).
.. [Kunsch89] H. Künsch, "The jackknife and the bootstrap for general stationary observations",
   Annals of Statistics 17(3), 1989 (blocks keep the dependence of neighbours).
.. [Lazarus18] E. Lazarus, D. Lewis, J. Stock, M. Watson, "HAR inference: recommendations for practice",
   Journal of Business & Economic Statistics 36(4), 2018 (cosines, their number, and Student's t).
.. [Muller14] U. Müller, "HAC corrections for strongly autocorrelated time series", Journal of Business &
   Economic Statistics 32(3), 2014 (the variance of a mean from cosine components).
.. [Patton09] A. Patton, D. Politis, H. White, "Correction to automatic block-length selection for the
   dependent bootstrap", Econometric Reviews 28(4), 2009.
.. [Politis04] D. Politis, H. White, "Automatic block-length selection for the dependent bootstrap",
   Econometric Reviews 23(1), 2004.
.. [AS64] M. Abramowitz, I. Stegun, "Handbook of mathematical functions", 1964 (Student's distribution
   of whole degrees of freedom, 26.7.3 and 26.7.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from simsched.declare.answers import OrNull  # noqa: TC001 (of the JSON Schema)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from simsched.arrays import Floats, Integers


Statistic: TypeAlias = "Callable[[Floats], float]"

DAY = 86_400.0
#: least number of periods in a block if the run has `ENOUGH` blocks of them: the days of a week
WEEK = 7
#: enough blocks: they are not made shorter than a week to have more
ENOUGH = 10
#: least number of blocks, however long they should be
FEWEST = 6
#: cosine components of n periods: this factor times n^(2/3), and not fewer than the least number
WAVES, FEWEST_WAVES = 0.2, 3
#: least skewness of the days of usual waits, and days for each independent one
USUAL_SKEWNESS, FOLLOWING = 1.0, 2.5
#: the share of it for the end near zero; if the true mean is 0, about 6 to 12 of 100 intervals exclude it
NEAR = 0.75
#: most skewness of a mean that days show, with the fewest waves; with more, Student's t is smaller, and the
#: bound larger in the same proportion
MOST_SKEWNESS = 0.3
#: a run of fewer days is cut into this number of periods
PERIODS = 28


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the ends of its confidence interval."""

    estimate: OrNull
    low: OrNull
    high: OrNull

    def holds(self, value: float) -> bool:
        """Whether the value is in the interval."""
        return self.low <= value <= self.high

    def excludes(self, value: float) -> bool:
        """Whether the interval is known and does not contain the value."""
        return self.low > value or self.high < value


def mean_interval(values: Any, periods: Any, confidence: float = 0.95) -> Interval:
    """Return the interval of the mean of values that depend on their neighbours in time.

    Parameters
    ----------
    values : an array or a series, one per job; values that are not finite are ignored.
    periods : the period of each value, such as its day (`periods_of`); they have an order, that of time.

    Returns
    -------
    Interval
        Both ends are NaN if all values are of one period, and the mean if all values are equal.
    """
    x: Floats = np.asarray(values, dtype=np.float64)
    known = np.isfinite(x)
    x = x[known]
    if not len(x):
        return Interval(np.nan, np.nan, np.nan)
    mean = float(x.mean())
    if np.ptp(x) == 0:
        return Interval(mean, mean, mean)
    place = _places(np.asarray(periods)[known])
    sums: Floats = np.bincount(place, x).astype(np.float64)
    return interval_of_periods(sums, np.bincount(place), confidence)


def interval_of_periods(sums: Floats, sizes: Floats | Integers, confidence: float = 0.95) -> Interval:
    """Return the interval of a mean from the sum and the number of the values of each period, by time."""
    mean = float(sums.sum()) / float(sizes.sum())
    count = len(sums)
    if count < 2:
        return Interval(mean, np.nan, np.nan)
    # the mean is a ratio of sums: its error is that of the sums less what their sizes explain
    errors: Floats = (sums - mean * sizes) / float(sizes.mean())
    waves = min(max(round(WAVES * count ** (2 / 3)), FEWEST_WAVES), count - 1)
    error = _standard_error(errors, waves)
    if error == 0:
        return Interval(mean, mean, mean)
    root = math.sqrt(count / FOLLOWING)
    most = MOST_SKEWNESS * student_quantile(confidence, FEWEST_WAVES) / student_quantile(confidence, waves)
    skew = min(max(skewness(errors) / root, -most), most)
    far = USUAL_SKEWNESS / root
    return skewed_interval(mean, error, waves, skew, (NEAR * far, far), confidence)


def skewed_interval(
    mean: float, error: float, freedom: int, skew: float, usual: tuple[float, float], confidence: float
) -> Interval:
    """Return Student's interval of a mean, corrected for skewness [Hall92].

    Parameters
    ----------
    mean, error, freedom : the mean, its standard error and the degrees of freedom of that.
    skew : the skewness of the mean.
    usual : the least skewness away from zero that counts for the end near zero, and for the end far from it.
    """
    t = student_quantile(confidence, freedom)
    side = math.copysign(1.0, mean)
    near = mean - side * error * _turned(t, max(side * skew, usual[0]))
    far = mean - side * error * _turned(-t, max(side * skew, usual[1]))
    low, high = sorted((near, far))
    return Interval(mean, min(low, mean), max(high, mean))  # the cubic may pass the mean if the skew is large


def _standard_error(errors: Floats, waves: int) -> float:
    """Return the standard error of the mean of a series from its first cosine components [Muller14]."""
    count = len(errors)
    middle = (np.arange(count) + 0.5) / count
    components = np.cos(np.pi * np.outer(np.arange(1, waves + 1), middle)) @ errors
    return math.sqrt(2 * float((components**2).mean())) / count


def skewness(errors: Floats) -> float:
    """Return the skewness of values with a mean of zero, corrected for their number; 0 for fewer than 3."""
    count = len(errors)
    if count < 3:
        return 0.0
    biased = float((errors**3).mean()) / math.pow(float((errors**2).mean()), 1.5)
    return biased * math.sqrt(count * (count - 1)) / (count - 2)


def _turned(t: float, skew: float) -> float:
    """Return the studentised mean that Hall's cubic turns into `t`; `skew` is that of the mean."""
    if abs(skew) < 1e-6:
        return t  # the limit; the formula below divides by the skew
    root = float(np.cbrt(1 + skew * (t - skew / 6)))
    return 3 / skew * (root - 1)


def bootstrap(
    values: pd.Series[float],
    statistic: Statistic | None = None,
    *,
    blocks: pd.Series[int] | None = None,
    resamples: int = 1000,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Interval:
    """Return the percentile bootstrap interval of any statistic, by default the mean [Efron93].

    Neighbouring jobs wait together, so give `blocks`, the period of each value in order of time (such
    as `classes.day`): `block_of` joins them, and whole blocks are drawn [Kunsch89].  With few
    blocks the interval is too narrow: for a mean, `mean_interval` is better.
    """
    known = values[np.isfinite(values)]
    x: Floats = np.asarray(known, dtype=np.float64)
    if not len(x):
        return Interval(np.nan, np.nan, np.nan)
    rng = rng or np.random.default_rng(0)
    labels = np.arange(len(x)) if blocks is None else block_of(x, blocks.loc[known.index])
    draws = (
        _means(x, labels, resamples, rng)
        if statistic is None
        else _draws(x, labels, statistic, resamples, rng)
    )
    tail = 50 * (1 - confidence)
    low, high = np.percentile(draws, [tail, 100 - tail])
    return Interval(float(x.mean() if statistic is None else statistic(x)), float(low), float(high))


def _means(x: Floats, labels: Integers, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the means of resampled blocks, from the blocks' sums and sizes: no job is copied."""
    count = int(labels.max()) + 1
    sums, sizes = np.bincount(labels, x, count), np.bincount(labels, minlength=count)
    draws = np.empty(resamples)
    for i in range(resamples):
        drawn = rng.integers(0, count, count)
        draws[i] = sums[drawn].sum() / sizes[drawn].sum()
    return draws


def _draws(
    x: Floats, labels: Integers, statistic: Statistic, resamples: int, rng: np.random.Generator
) -> Floats:
    order = np.argsort(labels, kind="stable")
    parts = np.split(x[order], np.flatnonzero(np.diff(labels[order])) + 1)
    drawn = (rng.integers(0, len(parts), len(parts)) for _ in range(resamples))
    return np.array([statistic(np.concatenate([parts[at] for at in places])) for places in drawn])


# --- blocks --------------------------------------------------------------------------------


def periods_of(submit: Any) -> Any:
    """Return the period in which each job is submitted: a day, or a 28th of a run of fewer days.

    `submit` is an array or a series of seconds, and so is the answer.
    """
    since = submit - submit.min() if len(submit) else submit
    length = min(DAY, float(since.max()) / PERIODS) if len(since) else DAY
    return (since // length if length else since).astype("int64")


def _places(periods: npt.NDArray[np.generic]) -> Integers:
    """Return the place of each period among those that occur."""
    found: Integers = np.unique(periods, return_inverse=True)[1].ravel().astype(np.int64)
    return found


def block_of(x: Floats, periods: pd.Series[int]) -> Integers:
    """Return the block of each value: neighbouring periods joined to blocks of equal length.

    The length is `block_length` of the periods' contributions to the mean, and at least `WEEK` periods,
    or a tenth of all periods if these are fewer than ten weeks.
    """
    place = _places(np.asarray(periods))
    contributions: Floats = np.bincount(place, x - x.mean()).astype(np.float64)
    number = len(contributions)
    length = max(block_length(contributions), min(WEEK, number / ENOUGH))
    count = max(int(number / length), min(number, FEWEST))
    return place * count // number


def block_length(series: Sequence[float] | Floats) -> float:
    """Return the length of the blocks of a series for the circular bootstrap [Politis04], [Patton09].

    It is 1 for independent values and grows with the cube root of their number.

    >>> block_length([1.0, -1.0, 2.0, 0.0] * 4) >= 1
    True
    """
    x: Floats = np.asarray(series, dtype=np.float64)
    count = len(x)
    if count < 8 or np.ptp(x) == 0:
        return 1.0
    few = max(5, math.ceil(math.sqrt(math.log10(count))))
    most = min(math.ceil(math.sqrt(count)) + few, count - 1)
    covariance = _autocovariance(x, min(most + few, count - 1))
    reach = min(2 * _last_lag(covariance, few, most, count), most)
    lags = np.arange(1, reach + 1)
    weight = np.minimum(1.0, 2 * (1 - lags / reach)) * covariance[1 : reach + 1]  # the flat-top window
    slope, spectrum = 2 * float((lags * weight).sum()), float(covariance[0] + 2 * weight.sum())
    longest = math.ceil(min(3 * math.sqrt(count), count / 3))
    if spectrum <= 0:
        return 1.0
    best = math.cbrt(1.5 * (slope / spectrum) ** 2 * count)
    return min(max(best, 1.0), float(longest))


def _autocovariance(x: Floats, lags: int) -> Floats:
    error = x - x.mean()
    return np.array([float((error[lag:] * error[: len(x) - lag]).sum()) for lag in range(lags + 1)]) / len(x)


def _last_lag(covariance: Floats, few: int, most: int, count: int) -> int:
    """Return the lag after which `few` correlations in a row are not significant; at least 1."""
    significant = np.abs(covariance / covariance[0]) >= 2 * math.sqrt(math.log10(count) / count)
    for lag in range(1, most + 1):
        if not significant[lag + 1 : lag + 1 + few].any():
            return lag
    return most


# --- Student's distribution ----------------------------------------------------------------


@lru_cache(maxsize=1024)
def student_quantile(confidence: float, freedom: int) -> float:
    """Return t such that ``P(abs(T) <= t)`` is `confidence`, for whole degrees of freedom.

    >>> round(student_quantile(0.95, 4), 3), round(student_quantile(0.9, 1), 3)
    (2.776, 6.314)
    """
    low, high = 0.0, math.pi / 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _within(angle: float, freedom: int) -> float:
    """``P(abs(T) <= sqrt(freedom) · tan(angle))`` by the finite sums of [AS64] 26.7.3 and 26.7.4."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
