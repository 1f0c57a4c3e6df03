"""The runs of a study by their settings: means and intervals over seeds, differences seed by seed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.report.metrics.summary import metric
from simsched.study.spec.study import SEED, column
from simsched.study.stats import interval, paired_difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from simsched.report.compare import Interval
    from simsched.report.html.study_charts import ChartLine
    from simsched.study.study_result import StudyResult

#: the verdict of `PairedDifference` on a difference that may be 0
NOISE = "within noise"
#: number of combinations up to which differences are computed
MAX_COMBINATIONS = 400


@dataclass(frozen=True, slots=True)
class SettingComparison:
    """One setting against the first: the numbers of combinations in which it is lower, higher or the same."""

    label: str
    base: str
    counts: dict[str, int]

    @property
    def counted(self) -> str:
        """The counts as text."""
        parts = [f"{word} in {number}" for word, number in self.counts.items() if number]
        return f"{', '.join(parts)} of {sum(self.counts.values())} combinations of the other axes"


class Grid:
    """The runs of a study by their settings.

    Attributes
    ----------
    axes : the axes with more than one label.
    x : the axis of abscissas: the first axis of numbers, else the last axis; None without axes.
    series : the axis of the lines of a chart, the first of the others; None without others.
    noise : the verdict on a difference that may be 0: within noise or, if seeds only shake submissions,
        within the effect of shaking.
    several : whether seeds differ in their figures; without chance, there are no intervals.
    one_seed : the words for figures without intervals.
    """

    def __init__(self, result: StudyResult) -> None:
        self.frame = result.runs
        labels = {name: _as_in(self.frame, name, given) for name, given in result.axes.items()}
        self.axes = [name for name in labels if len(labels[name]) > 1]
        numeric = [n for n in self.axes if all(isinstance(label, int | float) for label in labels[n])]
        self.x: str | None = next(iter(numeric or self.axes[-1:]), None)
        others = [name for name in self.axes if name != self.x]
        words = [name for name in others if name not in numeric]
        self.series: str | None = next(iter(words or others), None)
        self.rest = [name for name in others if name != self.series]
        self.labels = labels
        self._means: dict[tuple[tuple[Any, ...], str], Interval] = {}
        seeds = len(result.record["seeds"])
        self.several = seeds > 1 and self._seeds_differ()
        self.one_seed = "Every seed gave the same result" if seeds > 1 else "One seed"
        self.noise = "within the effect of shaking" if result.record.get("shaken") else NOISE

    def _seeds_differ(self) -> bool:
        """Whether the seeds of any combination differ in their mean wait; a missing one counts as a value."""
        columns = [column(name) for name in self.axes]
        if "mean_wait" not in self.frame or not len(self.frame):
            return True
        groups = self.frame.groupby(columns, sort=False) if columns else [((), self.frame)]
        return any(group["mean_wait"].nunique(dropna=False) > 1 for _, group in groups)

    def has(self, name: str) -> bool:
        """Whether any run has a figure."""
        return name in self.frame and bool(self.frame[name].notna().any())

    @cached_property
    def _groups(self) -> dict[tuple[Any, ...], pd.DataFrame]:
        """Combination of labels → its runs, one per seed, in the order of the plan."""
        columns = [column(name) for name in self.axes]
        if not columns:
            return {(): self.frame}
        found: dict[tuple[Any, ...], pd.DataFrame] = {}
        for key, group in self.frame.groupby(columns, sort=False):
            found[key if isinstance(key, tuple) else (key,)] = group
        return found

    def _at(self, combination: dict[str, Any]) -> pd.DataFrame | None:
        return self._groups.get(tuple(combination[name] for name in self.axes))

    def mean(self, key: tuple[Any, ...], name: str) -> Interval:
        """Return the mean of a figure over the seeds of a combination, with its 95 % interval."""
        if (key, name) not in self._means:
            values = self._groups[key][name].to_numpy(dtype=float)
            self._means[key, name] = interval(values)
        return self._means[key, name]

    def rows(self, names: Sequence[str], limit: int) -> list[list[Any]]:
        """Return one row per combination: labels, number of runs, each figure and half its interval."""
        made: list[list[Any]] = []
        for number, (key, runs) in enumerate(self._groups.items()):
            if number >= limit:  # the table states the number of rows that it leaves out
                made.append([*key, len(runs), *[math.nan] * (len(names) * (1 + self.several))])
                continue
            row: list[Any] = [*key, len(runs)]
            for name in names:
                found = self.mean(key, name)
                row.append(found.estimate)
                row += [(found.high - found.low) / 2] if self.several else []
            made.append(row)
        return made

    def facets(self, name: str) -> list[tuple[str, list[ChartLine], str]]:
        """Return the charts of a figure: title, lines, unit; one for each combination of the rest."""
        high = float(self.frame[name].max())
        unit = metric(name).unit
        seconds, scale = human.time_unit(high) if unit == "s" else (1.0, unit)
        factor = 100.0 if unit == "share" else 1.0 / seconds
        made = []
        for rest in _products([(axis, self.labels[axis]) for axis in self.rest]):
            title = ", ".join(f"{axis} {label}" for axis, label in rest.items())
            series = self.labels[self.series] if self.series else [None]
            lines = [self._line(name, rest, label, factor) for label in series]
            made.append((title, [line for line in lines if line.at], scale))
        return [facet for facet in made if facet[1]]

    def _line(self, name: str, rest: dict[str, Any], label: Any, factor: float) -> ChartLine:
        from simsched.report.html.study_charts import ChartLine

        fixed = {**rest, **({self.series: label} if self.series else {})}
        places = []
        for at in self.labels[self.x] if self.x else []:
            where = {**fixed, str(self.x): at}
            key = tuple(where[axis] for axis in self.axes)
            if key in self._groups:
                found = self.mean(key, name)
                low = max(found.low, 0.0)  # with few seeds an interval may go below 0, but no figure does
                places.append((at, found.estimate * factor, low * factor, found.high * factor))
        columns = list(zip(*places, strict=True)) or [(), (), (), ()]
        title = f"{self.series} {label}" if isinstance(label, int | float) else str(label)
        return ChartLine(title if self.series else "all", *map(tuple, columns))

    def verdicts(self, name: str) -> Iterator[SettingComparison]:
        """Compare each setting of the series with the first one, combination by combination."""
        axis = self.series or (None if self._is_numeric(self.x) else self.x)
        if axis is None or not self.has(name) or len(self._groups) > MAX_COMBINATIONS:
            return
        base, *others = self.labels[axis]
        for label in others:
            counts = {"lower": 0, "higher": 0, "the same": 0, self.noise: 0}
            for key, runs in self._groups.items():
                where: dict[str, Any] = dict(zip(self.axes, key, strict=True))
                against = self._at({**where, axis: base})
                if where[axis] == label and against is not None:
                    counts[self._verdict(against, runs, name)] += 1
            if sum(counts.values()):
                yield SettingComparison(f"{axis} {label}", f"{axis} {base}", counts)

    def _is_numeric(self, axis: str | None) -> bool:
        return axis is None or all(isinstance(label, int | float) for label in self.labels[axis])

    def _verdict(self, base: pd.DataFrame, runs: pd.DataFrame, name: str) -> str:
        both = base[[SEED, name]].merge(runs[[SEED, name]], on=SEED)
        left, right = (both[f"{name}_{side}"].to_numpy(dtype=float) for side in ("x", "y"))
        if len(both) == 1:  # one run each: noise is unknown
            gap = float(right[0] - left[0])
            return "lower" if gap < 0 else "higher" if gap > 0 else "the same"
        # Pairs of equal seeds: chance that both settings share cancels (common random numbers).
        verdict = paired_difference(left, right).verdict
        return {"same": "the same", NOISE: self.noise}.get(verdict, verdict)

    def handful(self, limit: int) -> list[int]:
        """Return runs to compare job by job: one per setting of an axis, the other axes at their middle."""
        axis = self.series or self.x
        if axis is None or self.frame.empty:
            return []
        others = {name: _middle(self.labels[name]) for name in self.axes if name != axis}
        found = []
        for label in self.labels[axis][:limit]:
            runs = self._at({**others, axis: label})
            if runs is not None:
                found.append(int(runs["run"].iloc[0]))
        return found


def _as_in(frame: pd.DataFrame, name: str, labels: Sequence[Any]) -> list[Any]:
    """Return the labels of an axis as its column has them: all as texts if one is a text."""
    texts = any(isinstance(label, str) for label in labels) and column(name) in frame
    return [str(label) for label in labels] if texts else list(labels)


def _middle(labels: Sequence[Any]) -> Any:
    return labels[len(labels) // 2]


def _products(axes: Sequence[tuple[str, Sequence[Any]]]) -> list[dict[str, Any]]:
    from itertools import product

    names = [name for name, _ in axes]
    return [dict(zip(names, row, strict=True)) for row in product(*(labels for _, labels in axes))]
