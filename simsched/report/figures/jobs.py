"""Figures of jobs: distributions, sizes against run times, users, reasons, runs compared."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from simsched import human
from simsched.errors import RunError
from simsched.report import palette
from simsched.report.metrics import metrics as m
from simsched.report.metrics.classes import run_time_class, size_class
from simsched.report.metrics.summary import metric
from simsched.report.waiting.job_answer import jobs_of
from simsched.text_table import clip_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from simsched.report.data.tables import RunTables

Figure = Any
Axes = Any
#: users and reasons that a figure names
MOST = 15
#: an axis that ends before this has round numbers instead of powers of ten
TWO_DECADES = 100
#: letters of a reason in one line, for each inch of the figure
LETTERS = 6.2
#: letters below a bar, for each inch that it has; longer names are turned
LETTERS_OF_BAR = 11
#: inches of the height of a figure with a single bar
LEAST_HEIGHT = 1.7
#: the figures by which runs are compared
FIGURES = ("mean_wait", "p95_wait", "mean_bounded_slowdown", "utilisation_core", "loss_of_capacity",
           "makespan")  # fmt: skip


def _done(run: RunTables) -> pd.DataFrame:
    done: pd.DataFrame = m.measured(run.jobs)
    if done.empty:
        raise RunError("no job ran, so there is nothing to draw", where=run.name)
    return done


def _distribution(figure: Figure, runs: Sequence[RunTables], column: str, label: str) -> Axes:
    """Draw the share of jobs up to each value of a column; values below 1 are drawn at 1."""
    axes = figure.add_subplot()
    for run, colour in zip(runs, palette.cycle(len(runs)), strict=True):
        values = np.sort(_done(run)[column].to_numpy(dtype=np.float64))
        share = 100 * np.arange(1, len(values) + 1) / len(values)
        x = np.maximum(values, 1.0)
        kept = np.flatnonzero(np.append(np.diff(x) > 0, True))
        many = len(kept) > 20_000
        axes.step(x[kept], share[kept], where="post", color=colour, label=run.name, rasterized=many)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    if axes.get_xlim()[1] < TWO_DECADES:
        axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_ylim(0, 101)
    axes.set_xlabel(label)
    axes.set_ylabel("share of jobs (%)")
    if len(runs) > 1:
        axes.legend(loc="best")
    return axes


def waits(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the share of jobs that waited no longer, over the wait; waits below 1 s are drawn at 1 s."""
    axes = _distribution(figure, runs, "wait", "wait, logarithmic; 1 s and less as one")
    ends = axes.get_xlim()
    times, names = zip(*human.TIME_MARKS, strict=True)
    axes.set_xticks(times, names)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(ends)
    axes.set_title("Share of jobs that waited no longer")


def slowdowns(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the share of jobs up to each bounded slowdown."""
    axes = _distribution(figure, runs, "bounded_slowdown", "bounded slowdown (10 s), logarithmic")
    axes.set_title("Share of jobs up to each bounded slowdown")


def heatmap(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the mean wait (s) of each class of size and run time, with the number of jobs."""
    run = runs[0]
    done = _done(run)
    frame = done.assign(cores_=size_class(done), length=run_time_class(done))
    grouped = frame.groupby(["cores_", "length"], observed=False)["wait"]
    mean, counts = grouped.mean().unstack(), grouped.size().unstack().to_numpy()
    axes = figure.add_subplot()
    waited = mean.to_numpy(dtype=np.float64)
    shown = np.maximum(waited, 1.0)
    low = float(np.nanmin(shown))
    top = max(float(np.nanmax(shown)), 2 * low)
    image = axes.imshow(shown, aspect="auto", origin="lower", cmap="cividis", norm=LogNorm(low, top))
    axes.set_xticks(range(len(mean.columns)), [str(c) for c in mean.columns])
    axes.set_yticks(range(len(mean.index)), [str(i) for i in mean.index])
    axes.set_xlabel("run time")
    axes.set_ylabel("cores")
    axes.grid(visible=False)
    for y, x in zip(*np.nonzero(counts), strict=True):
        dark = shown[y, x] < math.sqrt(low * top)
        label = f"{human.seconds(waited[y, x])}\n{jobs_of(int(counts[y, x]))}"
        axes.text(x, y, label, ha="center", va="center", fontsize=6, color="w" if dark else "k")
    axes.set_title(f"{run.name}: mean wait of the jobs of each size and run time")
    ticks: list[float] = [at for at, _ in human.TIME_MARKS if low <= at <= top]
    # given to the bar and not to its axis, which would forget them when the colours change
    bar = figure.colorbar(image, ax=axes, label="mean wait", fraction=0.04, ticks=ticks or [low, top],
                          format=FuncFormatter(lambda value, _: human.seconds(value)))  # fmt: skip
    bar.minorticks_off()


def users(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw core hours and mean bounded slowdown of the heaviest users."""
    run = runs[0]
    _done(run)
    table = run.users.head(MOST).iloc[::-1]
    left, right = figure.subplots(1, 2, sharey=True)
    names = [str(u) for u in table.index]
    left.barh(names, table["core_hours"], color=palette.BLUE)
    left.set_xlabel("core hours")
    right.barh(names, table["mean_bounded_slowdown"], color=palette.ORANGE)
    right.set_xlabel("mean bounded slowdown")
    for axes in (left, right):
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter("{x:,.4g}" if axes is right else "{x:,.0f}")
    left.set_title(f"{run.name}: the {len(table)} heaviest of {len(run.users)} users")


def reasons(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the number of jobs that did not run, or did not end well, for each reason."""
    run = runs[0]
    table = run.reasons
    axes = figure.add_subplot()
    if table.empty:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "Every job ran.", ha="center", va="center", fontsize=13)
        return
    shown = table.head(MOST).iloc[::-1]
    pairs = shown[["result", "reason"]].astype(str).to_numpy().tolist()
    wide = figure.get_size_inches()[0]
    names = [
        "\n".join(
            textwrap.wrap(f"{result.lower()}: {reason}", int(LETTERS * wide), max_lines=3, placeholder=" …")
        )
        for result, reason in pairs
    ]
    lines = sum(name.count("\n") + 1.6 for name in names)
    figure.set_size_inches(wide, max(LEAST_HEIGHT, 0.9 + 0.16 * lines))
    colours = [palette.RESULT.get(str(r), palette.GREY) for r in shown["result"]]
    bars = axes.barh(range(len(names)), shown["jobs"], color=colours)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.bar_label(bars, fmt="{:,.0f}", padding=3)
    axes.xaxis.set_major_locator(MaxNLocator(max(2, int(0.66 * wide)), integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("jobs")
    axes.grid(visible=False, axis="y")
    axes.set_title(f"{run.name}: why jobs did not run or not end well")


def comparison(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the main figures of the runs as bars, one small chart per figure."""
    names = [f for f in FIGURES if any(math.isfinite(r.summary.get(f, math.nan)) for r in runs)]
    for run in runs:
        _done(run)
    columns = min(3, len(names))
    grid = np.atleast_1d(figure.subplots(-(-len(names) // columns), columns)).ravel()
    for axes, name in zip(grid, names, strict=False):
        known = metric(name)
        values = [run.summary.get(name, math.nan) for run in runs]
        scale, unit = {"s": (1 / 3600, "h"), "share": (100.0, "%")}.get(known.unit, (1.0, ""))
        heights = [0.0 if math.isnan(v) else v * scale for v in values]
        bars = axes.bar(range(len(runs)), heights, color=palette.cycle(len(runs)))
        room = figure.get_size_inches()[0] / columns / len(runs)
        axes.bar_label(bars, [human.quantity(v, known.unit) for v in values], fontsize=8 if room > 1 else 6.5)
        labels = [clip_end(r.name, 14) for r in runs]
        turned = {"rotation": 20, "ha": "right"} if max(map(len, labels)) > LETTERS_OF_BAR * room else {}
        axes.set_xticks(range(len(runs)), labels, **turned)
        axes.margins(y=0.15)
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.grid(visible=False, axis="x")
        axes.set_title(name.replace("_", " ") + (f" ({unit})" if unit else ""))
    for axes in grid[len(names) :]:
        axes.set_axis_off()
