"""The runs of a study by their settings, as text and as ``report.html``: means and intervals over seeds.

`best_setting` is the answer of a study: the settings of an axis in the order of a figure, and all pairs of
them compared.  A figure of a setting is averaged over the combinations of the other axes that all settings
have, seed by seed.  Differences are those of equal seeds, so that chance which the settings share cancels.
`plan_table` and `summary` are a study as text.  On the page runs are not drawn one by one, and only a few of
them are compared job by job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.errors import ConfigError, RunError
from simsched.extras import needs
from simsched.files import write_file
from simsched.report import palette
from simsched.report.html import markup
from simsched.report.metrics.summary import metric
from simsched.study.spec.study import SEED, column
from simsched.study.stats import interval, paired_difference
from simsched.text_table import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from simsched.report.data.tables import RunTables
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


# ------------------------------------------------------------ the best setting


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


# ------------------------------------------------------------ a study as text


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


#: figures in charts and tables, if the study has them
FIGURES = ("mean_wait", "p95_wait", "mean_bounded_slowdown", "utilisation_core", "utilisation_gpu")
#: number of charts per figure at most: one for each combination of the axes that it does not show
MAX_FACETS = 4
#: number of runs that are compared job by job
MAX_RUNS = 4


def write_page(result: StudyResult) -> bool:
    """Write ``report.html``; return false if Bokeh (the extra ``plot``) is not installed."""
    try:
        text = page(result)
    except ConfigError:
        return False
    write_file(result.path / "report.html", text)
    return True


def page(result: StudyResult) -> str:
    """Return the page.

    Raises
    ------
    ConfigError
        if Bokeh is not installed.
    """
    try:
        from simsched.report.html import charts as plot_bokeh
        from simsched.report.html import compare_section as plot_compare
    except ModuleNotFoundError as error:
        raise needs("an HTML page", error, extra="plot") from None
    grid = Grid(result)
    charts: list[dict[str, Any]] = []
    few = _few(result, grid)
    parts = [
        _lead(result),
        _answer(grid),
        _in_words(grid),
        _charts(grid, charts),
        _table(grid),
        _failures(result),
    ]
    body = f'<section class="run" id="study">{"".join(parts)}</section>'
    links = '<a href="#study">Study</a>'
    if len(few) > 1:
        named = "; ".join(f"{run.name}: {settings}" for run, settings in few)
        which = f"{len(few)} of the {result.record['counts']['runs']:,} runs of the study: {named}."
        body += plot_compare.comparison([run for run, _ in few], charts, which)
        links += '<a href="#comparison">Job by job</a>'
    return plot_bokeh.whole_page(result.name, links, body, charts)


def _lead(result: StudyResult) -> str:
    counts, seeds = result.record["counts"], len(result.record["seeds"])
    facts = [f"{counts['done']:,} of {counts['runs']:,} runs"]
    facts += [f"{seeds} seeds"] if seeds > 1 else []
    facts += [
        f"{axis}: {', '.join(map(str, labels))}" for axis, labels in result.axes.items() if len(labels) < 10
    ]
    text = f"<p>{escape(result.record['description'])}</p>" if result.record["description"] else ""
    text += "".join(f"<p class='note'>{escape(line)}</p>" for line in reality_notes(result.record))
    return f"<h1>{escape(result.name)}</h1><p class='lead'>{escape(' · '.join(facts))}</p>{text}"


def _answer(grid: Grid) -> str:
    """Return the best setting by the first figure, all settings, and all pairs of them compared."""
    name = next((name for name in FIGURES if grid.has(name)), None)
    best = best_setting(grid, name) if name else None
    if best is None:
        return ""
    unit = metric(best.figure).unit
    title = best.figure.replace("_", " ")
    over = f"Means over {best.combinations:,} combinations of the other axes" if best.combinations > 1 else ""
    seeds = f"Differences are computed seed by seed, over {best.seeds} seeds; " if best.seeds > 1 else ""
    noise = f"each interval is that of one pair of settings. {best.noise.capitalize()}: it contains 0."
    note = ". ".join(filter(None, (over, f"{seeds}{noise}" if seeds else "")))
    head = [(best.axis, "text"), (title, unit), ("95 % from", unit), ("95 % to", unit)]
    rows = [[label, found.estimate, found.low, found.high] for label, found in best.means.items()]
    pairs = [
        [one.better, one.worse, one.difference.interval.estimate, one.difference.interval.low,
         one.difference.interval.high, _verdict(one, best)]
        for one in best.pairs
    ]  # fmt: skip
    columns = [("setting", "text"), ("against", "text"), ("difference", unit), ("95 % from", unit),
               ("95 % to", unit), ("verdict", "text")]  # fmt: skip
    if best.seeds < 2:  # there are no intervals
        del head[2:], columns[3:5]
        rows, pairs = [row[:2] for row in rows], [[*row[:3], row[-1]] for row in pairs]
    return (
        f'<section class="panel"><h2>Answer</h2><p><strong>{escape(best.sentence)}.</strong></p></section>'
        '<div class="pair uneven">'
        + markup.table("settings", f"Settings by {title}", head, rows)
        + markup.table("pairs", "All pairs of settings", columns, pairs, note)
        + "</div>"
    )


def _verdict(pair: SettingPair, best: BestSetting) -> str:
    """Return whether the first setting of a pair is better, or the difference may be chance."""
    if best.seeds < 2:
        return "chance is unknown"
    verdict = pair.difference.verdict
    return {"same": "the same", NOISE: best.noise}.get(verdict, f"{pair.better} is better")


def _in_words(grid: Grid) -> str:
    """Return the comparison of each setting of the series with the first one."""
    lines = [
        f"<li><strong>{escape(one.label)}</strong> against {escape(one.base)}: the mean wait is "
        f"{escape(one.counted)}.</li>"
        for one in grid.verdicts("mean_wait")
    ]
    if not lines:
        return ""
    note = f"{grid.one_seed}: the effect of chance is unknown, and any of these may be noise."
    if grid.several:
        note = f"Seed by seed, so that shared chance cancels; {grid.noise}: the 95 % interval contains 0."
    return (
        f'<section class="panel"><h2>In words</h2><p class="note">{note}</p>'
        f'<ul class="verdicts">{"".join(lines)}</ul></section>'
    )


def _charts(grid: Grid, charts: list[dict[str, Any]]) -> str:
    from simsched.report.html.charts import Charts, lines_chart

    if grid.x is None:
        return ""
    drawn, panels = Charts(), []
    names = [name for name in FIGURES if grid.has(name)]
    for number, name in enumerate(names):
        unit = metric(name).unit
        for place, (title, lines, scale) in enumerate(grid.facets(name)[:MAX_FACETS]):
            colours = palette.cycle(len(lines))
            shown = "%" if unit == "share" else "" if unit == "ratio" else scale
            label = name.replace("_", " ") + (f" ({shown})" if shown else "")
            spot = f"study-{number}-{place}"
            drawn.add(spot, lines_chart(lines, grid.x, label, colours))
            keys = markup.colour_key((colour, line.name) for line, colour in zip(lines, colours, strict=True))
            heading = name.replace("_", " ").capitalize() + (f" — {title}" if title else "")
            panels.append(markup.panel(heading, spot, keys if len(lines) > 1 else ""))
    charts.append(drawn.as_json("study"))
    left = len(grid.facets(names[0])) - MAX_FACETS if names else 0
    more = f'<p class="note">{left} more combinations are in the table.</p>' if left > 0 else ""
    return f'<div class="pair">{"".join(panels)}</div>{more}'


def _table(grid: Grid) -> str:
    names = [name for name in FIGURES if grid.has(name)]
    head: list[tuple[str, str]] = [(axis, "text") for axis in grid.axes] + [("runs", "")]
    for name in names:
        head.append((name.replace("_", " "), metric(name).unit))
        head += [("±", metric(name).unit)] if grid.several else []
    note = "Means over the seeds; ± is half the 95 % interval of the mean." if grid.several else ""
    return markup.table("grid", "All combinations", head, grid.rows(names, markup.MAX_ROWS), note)


def _failures(result: StudyResult) -> str:
    failed = result.failures
    if not failed:
        return ""
    head = (("run", ""), ("settings", "text"), ("reason", "text"))
    rows = [
        [f["run"], ", ".join(f"{axis} {label}" for axis, label in f["settings"].items()), f["reason"]]
        for f in failed
    ]
    return markup.table("failures", "Runs without a result", head, rows)


def _few(result: StudyResult, grid: Grid) -> list[tuple[RunTables, str]]:
    """Return the runs that are compared job by job, one per setting of the series, and their settings."""
    found = []
    for number in grid.handful(MAX_RUNS):
        try:
            run = result.run(number)
            settings = result.record["plan"][number]["settings"]
            run.name = str(settings.get(grid.series, run.name)) if grid.series else run.name
            len(run.jobs)
        except RunError:  # its tables were not kept
            continue
        found.append(
            (run, f"run {number}, " + ", ".join(f"{axis} {label}" for axis, label in settings.items()))
        )
    return found
