"""The runs of a study by their settings: means and intervals over seeds, differences seed by seed.

`best_setting` is the answer of a study: the settings of an axis in the order of a figure, and all pairs of
them compared.  A figure of a setting is averaged over the combinations of the other axes that all settings
have, seed by seed.  Differences are those of equal seeds, so that chance which the settings share cancels.
`plan_table` and `summary` are a study as text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.report.metrics.summary import metric
from simsched.study.spec.study import SEED, column
from simsched.study.stats import interval, paired_difference
from simsched.text_table import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from simsched.report.html.charts import ChartLine
    from simsched.report.metrics.intervals import Interval
    from simsched.study.spec.study import Study
    from simsched.study.stats import PairedDifference
    from simsched.study.study_folder import StudyResult


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
        self._compared = None if self.x in numeric else self.x
        others = [name for name in self.axes if name != self.x]
        words = [name for name in others if name not in numeric]
        self.series: str | None = next(iter(words or others), None)
        self.rest = [name for name in others if name != self.series]
        self.labels = labels
        self._means: dict[tuple[tuple[Any, ...], str], Interval] = {}
        seeds = len(result.record["seeds"])
        # a missing figure counts as a value
        differ = (runs["mean_wait"].nunique(dropna=False) > 1 for runs in self._groups.values())
        self.several = seeds > 1 and ("mean_wait" not in self.frame or self.frame.empty or any(differ))
        self.one_seed = "Every seed gave the same result" if seeds > 1 else "One seed"
        self.noise = "within the effect of shaking" if result.record.get("shaken") else NOISE

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
        for row in product(*(self.labels[axis] for axis in self.rest)):
            rest = dict(zip(self.rest, row, strict=True))
            title = ", ".join(f"{axis} {label}" for axis, label in rest.items())
            series = self.labels[self.series] if self.series else [None]
            lines = [self._line(name, rest, label, factor) for label in series]
            made.append((title, [line for line in lines if line.at], scale))
        return [facet for facet in made if facet[1]]

    def _line(self, name: str, rest: dict[str, Any], label: Any, factor: float) -> ChartLine:
        from simsched.report.html.charts import ChartLine

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
        axis = self.series or self._compared
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
        others = {name: self.labels[name][len(self.labels[name]) // 2] for name in self.axes if name != axis}
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


#: figures of the summary on a terminal
SHOWN = ("mean_wait", "p95_wait", "mean_bounded_slowdown", "utilisation_core")
MAX_GROUPS = 40


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of texts with aligned columns: numbers to the right, words to the left.

    >>> print(aligned(["policy", "wait"], [["easy", "7"], ["fcfs", "12"]]), end="")
    policy  wait
    easy       7
    fcfs      12
    """
    columns = enumerate(zip(*rows, strict=True))
    right = [at for at, cells in columns if all(text[:1].isdigit() or text[:1] in "-+±–" for text in cells)]
    return "".join(f"{line}\n" for line in table_lines([head, *rows], right))


def plan_table(study: Study, limit: int) -> str:
    """Return the runs of a study, one per line; above `limit` the runs in the middle are omitted."""
    names = study.axis_names
    tasks = study.tasks
    numbers = list(range(len(tasks)))
    shown = numbers if len(numbers) <= limit else numbers[: limit - 10] + numbers[-10:]
    rows = [[str(n), tasks[n].key, *(str(tasks[n].settings.get(name, "")) for name in names)] for n in shown]
    text = aligned(["run", "key", *names], rows)
    if len(shown) == len(numbers):
        return text
    lines = text.splitlines(keepends=True)
    gap = f"… {len(numbers) - len(shown):,} more runs …\n"
    return "".join([*lines[: limit - 9], gap, *lines[limit - 9 :]])


def _mean(values: Any, unit: str) -> str:
    """Return the mean of a figure over the seeds, with half its 95 % interval if there are several."""
    found = interval(values)
    half = (found.high - found.low) / 2
    mean = human.quantity(found.estimate, unit)
    return f"{mean} ± {human.quantity(half, unit)}" if half > 0 else mean


def summary(result: StudyResult) -> str:
    """Return the means of a few figures over the seeds, one line per combination of the axes."""
    frame = result.runs
    counts = result.record["counts"]
    if frame.empty:
        return f"{result.name}: none of {counts['runs']} runs has a result\n"
    axes = [column(name) for name in result.axes]
    shown = [name for name in SHOWN if name in frame]
    rows: list[list[str]] = []
    groups: Any = frame.groupby(axes, sort=False) if axes else [((), frame)]
    for key, group in groups:
        labels = list(key) if isinstance(key, tuple) else [key]
        figures = [_mean(group[name].to_numpy(dtype=float), metric(name).unit) for name in shown]
        rows.append([*map(str, labels), *figures])
    more = len(rows) - MAX_GROUPS
    head = [*result.axes, *(name.replace("_", " ") for name in shown)]
    text = aligned(head, rows[:MAX_GROUPS])
    text += f"… {more} more combinations are in the report\n" if more > 0 else ""
    seeds = len(result.record["seeds"])
    over = f", means of {seeds} seeds (± half the 95 % interval)" if seeds > 1 and SEED in frame else ""
    failed = f", {counts['failed']} failed" if counts["failed"] else ""
    text += "".join(f"{line}\n" for line in _shaken(result))
    text += "".join(f"{line}\n" for line in reality_notes(result.record))
    return f"{text}{result.name}: {len(frame):,} of {counts['runs']:,} runs{failed}{over}\n"


def reality_notes(record: Mapping[str, Any]) -> list[str]:
    """Return how near the first setting is to the log of a study, and whether its rules are calibrated."""
    from simsched.study.reality import notes_of

    return [line[0].upper() + line[1:] + "." for line in notes_of(record)]


def _shaken(result: StudyResult) -> list[str]:
    """Compare each setting of shaken runs with the first one."""
    if not result.record.get("shaken") or len(result.record["seeds"]) < 2:
        return []
    return [
        f"{one.label} against {one.base}: the mean wait is {one.counted}"
        for one in Grid(result).verdicts("mean_wait")
    ]
