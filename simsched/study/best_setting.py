"""The answer of a study: the settings of an axis in the order of a figure, and all pairs of them compared.

A figure of a setting is averaged over the combinations of the other axes that all settings have, seed by
seed.  Differences are those of equal seeds, so that chance which the settings share cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.report.metrics.summary import metric
from simsched.study.spec.study import SEED, column
from simsched.study.stats import interval, paired_difference

if TYPE_CHECKING:
    import pandas as pd

    from simsched.report.metrics.intervals import Interval
    from simsched.study.grid import Grid
    from simsched.study.stats import PairedDifference

MOST_SETTINGS = 20
"""Settings up to which all pairs are compared."""


@dataclass(frozen=True, slots=True)
class SettingPair:
    """Two settings, the better one first: the figure of `worse` less that of `better`, seed by seed."""

    better: str
    worse: str
    difference: PairedDifference


@dataclass(frozen=True, slots=True)
class BestSetting:
    """The settings of an axis by one figure.

    Attributes
    ----------
    axis, figure : the axis, and the name of the figure.
    means : setting → mean of the figure over the seeds with its 95 % interval, the best setting first.
    pairs : all pairs of settings; the first one is the best with the next.
    seeds, combinations : the numbers of seeds that differ, and of combinations of the other axes behind
        each mean.
    noise : the words for a difference that may be 0.
    one_seed : the words for means without intervals.
    """

    axis: str
    figure: str
    means: dict[str, Interval]
    pairs: tuple[SettingPair, ...]
    seeds: int
    combinations: int
    noise: str
    one_seed: str

    @property
    def sentence(self) -> str:
        """The answer in words: the best setting, and its distance to the next."""
        unit, name = metric(self.figure).unit, self.figure.replace("_", " ")
        first, second = list(self.means)[:2]
        values = [human.quantity(self.means[label].estimate, unit) for label in (first, second)]
        lead = f"{self.axis} {first} is best by {name}: {values[0]}, next {second} with {values[1]}"
        difference = self.pairs[0].difference
        if difference.pairs and difference.equal == difference.pairs:
            return f"{self.axis} {first} and {self.axis} {second} have the same {name}: {values[0]}"
        if self.seeds < 2:
            return f"{lead}. {self.one_seed}: the effect of chance is unknown"
        gap, low, high = (
            human.quantity(value, unit)
            for value in (difference.interval.estimate, difference.interval.low, difference.interval.high)
        )
        ends = f"difference {gap}, 95 % between {low} and {high}"
        return f"{lead}; {ends}" + (f": {self.noise}" if difference.within_noise else "")


def best_setting(grid: Grid, name: str) -> BestSetting | None:
    """Return the settings of the compared axis in the order of a figure; None if there are not two.

    The axis is the one whose settings charts distinguish by colour, or else the axis of abscissas.
    """
    axis = grid.series or grid.x
    if (
        axis is None
        or not grid.has(name)
        or not metric(name).better
        or len(grid.labels[axis]) > MOST_SETTINGS
    ):
        return None
    values, count = _by_seed(grid, axis, name)
    means = {label: interval(values[label].to_numpy(dtype=float)) for label in values}
    known = [label for label in means if math.isfinite(means[label].estimate)]
    if len(known) < 2:
        return None
    sign = -metric(name).better
    order = sorted(known, key=lambda label: sign * means[label].estimate)
    pairs = tuple(
        SettingPair(
            str(a), str(b),
            paired_difference(values[a].to_numpy(dtype=float), values[b].to_numpy(dtype=float)),
        )
        for a, b in combinations(order, 2)
    )  # fmt: skip
    seeds = len(values) if grid.several else 1
    ordered = {str(a): means[a] for a in order}
    return BestSetting(axis, name, ordered, pairs, seeds, count, grid.noise, grid.one_seed)


def _by_seed(grid: Grid, axis: str, name: str) -> tuple[pd.DataFrame, int]:
    """Return one row per seed and one column per setting, and the number of combinations behind a value.

    Only combinations and seeds that have a value for all settings count.
    """
    others = [column(other) for other in grid.axes if other != axis]
    table: Any = grid.frame.pivot_table(
        index=[*others, SEED], columns=column(axis), values=name, aggfunc="mean", dropna=False
    ).dropna()
    count = len(table.groupby(level=others)) if others else 1
    return table.groupby(level=SEED).mean(), count
