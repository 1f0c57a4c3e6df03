"""Quantiles of the start of waiting jobs, learnt from the errors of past forecasts.

A forecast assumes that no job ends early and none is submitted, so it is wrong in a way that depends on the
place in the queue.  Past forecasts are therefore put into classes by horizon (the predicted wait), place
and size.  The quantiles of a class are those of the logarithm of (real wait + ten minutes) / (horizon + ten
minutes) among its past forecasts; a class with too few of them is joined with its neighbours.  Jobs that
have not started yet count with the wait so far [Kaplan58].

The check goes week by week (day by day for less than ten weeks): the forecasts of each week are compared
with quantiles from the weeks before it alone.  Sites change, so the level of a quantile follows its coverage
[Gibbs21]: where 85 % of the waits were below the quantile of 90 %, that of a higher level is taken from the
week after the next one on, because many of the jobs have started only then.  A week with jobs that have not
started yet is not tested.

References
----------
.. [Gibbs21] I. Gibbs, E. Candès, "Adaptive conformal inference under distribution shift", NeurIPS 2021.
.. [Kaplan58] E. Kaplan, P. Meier, "Nonparametric estimation from incomplete observations", Journal of the
   American Statistical Association 53, 1958.
.. [Smith99] W. Smith, V. Taylor, I. Foster, "Using run-time predictions to estimate queue wait times and
   improve scheduler performance", JSSPP 1999 (errors of predicted waits).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from simsched import human
from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.arrays import Floats, Integers
    from simsched.simulation.forecast.past_forecasts import PastForecasts
    from simsched.simulation.forecast.start_times import Forecast

    Truths = npt.NDArray[np.bool_]

LEVELS = (0.1, 0.5, 0.9)
OFFSET = 600.0
"""Seconds that are added to waits and horizons, so that differences of minutes count little."""
HORIZONS = (600.0, 1800.0, *(3600.0 * hours for hours in (1, 2, 4, 8, 16, 24, 48, 96, 192)))
PLACES = (2, 5, 17, 65)
SIZES = (1 / 16, 1 / 4)
"""Lower ends of the classes of horizons and places, and upper ends of those of sizes over the largest."""
LEAST = 500
"""Past forecasts of a class from which it has quantiles of its own."""
STEP = 0.1
"""How far the level of a quantile follows the coverage of one week."""
MOSTLY = 0.95
"""The share of the jobs of a week that have started, from which the week is tested."""
DAY, WEEK = 86_400.0, 604_800.0
FEWEST_WEEKS = 10
LEAST_LEARNT, LEAST_TESTED = 4, 2
"""Weeks (days) before the first one that is tested, and least number of those."""
EXTREME = 0.001


@dataclass(frozen=True, slots=True, eq=False)
class QuantileCheck:
    """How often real starts were not later than the quantiles, on weeks that had no part in them.

    Attributes
    ----------
    unit : ``week`` or ``day``.
    shares : one row per tested week, one column per level: the share of its forecasts.
    counts : the forecasts of each week.
    """

    levels: tuple[float, ...]
    unit: str
    shares: Floats
    counts: Integers

    @property
    def coverage(self) -> Floats:
        """The mean share over the weeks, for each level."""
        found: Floats = self.shares.mean(axis=0)
        return found

    @property
    def pooled(self) -> Floats:
        """The share of all forecasts, in which busy weeks weigh more."""
        found: Floats = np.average(self.shares, axis=0, weights=self.counts)
        return found

    @property
    def text(self) -> str:
        """The check as a sentence."""
        levels, found = (", ".join(map(human.share, row)) for row in (self.levels, self.coverage.tolist()))
        weeks = f"{len(self.counts)} {self.unit}s, each with quantiles of the {self.unit}s before it"
        together = ", ".join(map(human.share, self.pooled.tolist()))
        text = f"checked on {weeks}: {found} of the starts were no later than the quantiles of {levels}"
        text += (
            f" (mean of the {self.unit}s; {together} of all forecasts together, most of them in long queues)"
        )
        if len(self.levels) > 1:
            inside = human.share(float(self.coverage[-1] - self.coverage[0]))
            claimed = human.share(self.levels[-1] - self.levels[0])
            text += f"; {inside} were between the first and the last ({claimed} claimed)"
        return text


@dataclass(frozen=True, slots=True, eq=False)
class StartQuantiles:
    """Quantiles of starts learnt from past forecasts, and the check of such quantiles.

    `levels` are those that are claimed and `used` those that are taken, after the check.
    """

    past: PastForecasts
    levels: tuple[float, ...]
    used: Floats
    check: QuantileCheck
    largest: float

    @property
    def text(self) -> str:
        """The learnt ratios, and their check."""
        return f"quantiles learnt from {len(self.past):,} earlier forecasts; {self.check.text}"

    def of(self, horizons: Floats, places: Integers, sizes: Floats) -> Floats:
        """Return the quantiles of the waits (s): one row per forecast, one column per level."""
        return _quantiles(self.past, (horizons, places, sizes), self.used, self.largest)

    def added_to(self, forecasts: Sequence[Forecast], now: float) -> list[Forecast]:
        """Return forecasts made at a time (s) with their quantiles, where they have a place and a start."""
        at = [n for n, job in enumerate(forecasts) if job.place is not None and job.start != float("inf")]
        horizons = np.array([forecasts[n].start - now for n in at], dtype=np.float64)
        places = np.array([forecasts[n].place for n in at], dtype=np.int64)
        sizes = np.array([forecasts[n].size or 0 for n in at], dtype=np.float64)
        found = list(forecasts)
        for n, waits in zip(at, self.of(horizons, places, sizes), strict=True):
            found[n] = replace(found[n], quantiles=tuple((now + waits).tolist()))
        return found


def read_levels(text: str, where: str) -> tuple[float, ...]:
    """Return the levels in a text such as ``0.1,0.5,0.9`` or ``10%,90%``, in ascending order.

    Raises
    ------
    ConfigError
        For a text that is not a list of numbers above 0 and below 1.
    """
    found = []
    for part in text.split(","):
        word = part.strip()
        try:
            value = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
        except ValueError:
            value = 0.0
        if not EXTREME <= value <= 1 - EXTREME:
            raise ConfigError(
                f"{word!r} is not the level of a quantile",
                where=where,
                expected="0.001 to 0.999, as 0.1,0.9 or 10%,90%",
            )
        found.append(value)
    return tuple(sorted(set(found)))


def learn(past: PastForecasts, levels: Sequence[float] = LEVELS) -> StartQuantiles:
    """Return quantiles learnt from past forecasts, with their check.

    Raises
    ------
    ConfigError
        If the past is too short, or had no waiting job.
    """
    span = max(past.end - past.begin, 0.0)
    length, unit = (WEEK, "week") if span >= FEWEST_WEEKS * WEEK else (DAY, "day")
    week: Integers = ((past.times - past.begin) // length).astype(np.int64)
    counts = np.bincount(week) if len(week) else np.zeros(0, dtype=np.int64)
    seen = np.cumsum(counts)
    over = np.bincount(week[past.started], minlength=len(counts))
    tested = [
        at for at in range(LEAST_LEARNT, len(counts)) if seen[at - 1] and over[at] >= MOSTLY * counts[at] > 0
    ]
    if len(tested) < LEAST_TESTED:
        raise ConfigError(
            f"too little to learn from: {human.seconds(span)} with {len(past):,} forecasts of waiting jobs",
            where="forecast",
            expected=f"jobs that wait on {LEAST_LEARNT + LEAST_TESTED} days or more before the time",
        )
    claimed = np.array(levels, dtype=np.float64)
    used, shares = claimed.copy(), []
    error = np.zeros_like(claimed)
    largest = float(past.sizes.max())
    for at in tested:
        rows = week == at
        facts = (past.horizons[rows], past.places[rows], past.sizes[rows])
        begin = past.begin + at * length
        found = _quantiles(past.known_at(begin), facts, used, largest)
        below = (past.waits[rows][:, None] <= found + 1e-6) & past.started[rows][:, None]
        shares.append(below.mean(axis=0))
        used = np.clip(used + error, EXTREME, 1 - EXTREME)
        error = STEP * (claimed - shares[-1])
    used = np.clip(used + error, EXTREME, 1 - EXTREME)
    check = QuantileCheck(tuple(levels), unit, np.array(shares), counts[tested])
    return StartQuantiles(past, tuple(levels), used, check, largest)


def _quantiles(
    past: PastForecasts, facts: tuple[Floats, Integers, Floats], levels: Floats, largest: float
) -> Floats:
    """Return the quantiles of the waits of forecasts with these horizons, places and sizes."""
    horizons = facts[0]
    ratios = np.log((past.waits + OFFSET) / (past.horizons + OFFSET))
    known = _classes(past.horizons, past.places, past.sizes, largest)
    asked = _classes(*facts, largest)
    found = np.empty((len(horizons), len(levels)))
    # From all forecasts to the smallest classes: a class with enough of them takes the place of a larger one.
    for depth, (mine, theirs) in enumerate(zip(asked, known, strict=True)):
        for name in np.unique(mine).tolist():
            rows = theirs == name
            if not depth or int(rows.sum()) >= LEAST:
                found[mine == name] = censored_quantiles(ratios[rows], past.started[rows], levels)
    waits = np.exp(found) * (horizons + OFFSET)[:, None] - OFFSET
    return np.maximum.accumulate(np.maximum(waits, 0.0), axis=1)


def _classes(horizons: Floats, places: Integers, sizes: Floats, largest: float) -> list[Integers]:
    """Return the classes of forecasts: all together, by horizon, by place too, and by size too."""
    by_horizon = np.searchsorted(HORIZONS, horizons, side="right")
    by_place = by_horizon * (len(PLACES) + 1) + np.searchsorted(PLACES, places, side="right")
    by_size = by_place * (len(SIZES) + 1) + np.searchsorted(SIZES, sizes / max(largest, 1e-9), side="left")
    return [np.zeros(len(horizons), dtype=np.int64), by_horizon, by_place, by_size]


def censored_quantiles(values: Floats, known: Truths, levels: Floats) -> Floats:
    """Return quantiles of values of which some are only known to be larger [Kaplan58]; inf: beyond them all.

    >>> import numpy as np
    >>> values, known = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, True, False, True])
    >>> censored_quantiles(values, known, np.array([0.5, 0.9])).tolist()
    [2.0, 4.0]
    """
    order = np.lexsort((~known, values))
    values, known = values[order], known[order]
    left = np.arange(len(values), 0, -1)
    survival = np.cumprod(np.where(known, 1 - 1 / left, 1.0))
    places = np.searchsorted(-survival, -(1 - levels) - 1e-12)
    found: Floats = np.append(values, np.inf)[places]
    return found
