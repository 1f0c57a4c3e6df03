"""The figure of a search for a size or a load: each target over the values that were tried."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched import human
from simsched.report import palette
from simsched.report.figures.figures import matplotlib_figures, plain_log_axis, save_figure, stamp_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from simsched.study.search.evaluation import AcceptanceRule, Evaluation
    from simsched.study.search.size_axis import LoadAxis, SizeAxis
    from simsched.study.spec.target import SizingTarget

#: from this ratio of the largest to the smallest value on, an axis is logarithmic
WIDE = 20.0
HEIGHT, WIDTH = 3.2, 8.0


def save(
    title: str,
    axis: SizeAxis | LoadAxis,
    rule: AcceptanceRule,
    trials: Iterable[Evaluation],
    answer: float | None,
    target: str | Path,
    *,
    dpi: int = 144,
    dark: bool = False,
) -> None:
    """Draw the targets of a rule into a .png, .svg or .pdf file; equal trials give equal bytes.

    `answer` is the number of the axis that is the answer, if there is one.

    Raises
    ------
    ConfigError
        For another ending, or without matplotlib.
    """
    path = Path(target)
    stamp = stamp_of(path, dpi)
    targets = rule.targets
    tried = sorted(trials, key=lambda trial: trial.value)
    drawn = [trial for trial in tried if trial.figures]
    refused = [axis.number(trial.value) for trial in tried if trial.refused]
    with matplotlib_figures(dark) as figure_class:
        figure = figure_class(figsize=(WIDTH, 0.6 + HEIGHT * len(targets)))
        rows = figure.subplots(len(targets), 1, sharex=True, squeeze=False)[:, 0]
        for axes, one in zip(rows, targets, strict=True):
            _draw(axes, one, rule, axis, drawn)
            if answer is not None:
                axes.axvline(answer, color=palette.GREEN, ls=":", lw=1.5,
                             label=f"answer: {human.number(answer)} {axis.noun}")  # fmt: skip
            for place, number in enumerate(refused):
                axes.axvline(number, color=palette.GREY, lw=1,
                             label="_nolegend_" if place else "some job never fits")  # fmt: skip
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)  # beside it, over no data
        rows[-1].set_xlabel(axis.noun)
        numbers = [*(axis.number(trial.value) for trial in drawn), *refused]
        if numbers and min(numbers) > 0 and max(numbers) > WIDE * min(numbers):
            rows[-1].set_xscale("log")
            plain_log_axis(rows[-1].xaxis)
        rows[0].set_title(title)
        save_figure(figure, path, dpi, stamp)


def _draw(
    axes: Any,
    target: SizingTarget,
    rule: AcceptanceRule,
    axis: SizeAxis | LoadAxis,
    trials: Sequence[Evaluation],
) -> None:
    """Draw a target: the values and the interval of each trial, their means, and the bound."""
    figure, unit = target.figure, target.figure.unit
    scale, shown = 1.0, "" if unit == "ratio" else unit
    if unit == "share":
        scale, shown = 100.0, "%"
    elif unit == "s":
        seconds, shown = human.time_unit(3 * target.bound)  # a bound of one hour reads best in hours
        scale = 1 / seconds
    floor = _value_axis(axes, scale * target.bound, [scale * v for t in trials for v in t.figures[target]],
                        wide=unit != "share")  # fmt: skip
    means = [rule.interval(trial.figures[target]) for trial in trials]
    numbers = [axis.number(trial.value) for trial in trials]
    for meets, colour, label in ((True, palette.BLUE, "meets"), (False, palette.VERMILION, "does not meet")):
        some = [at for at, trial in enumerate(trials) if (target not in trial.fails) == meets]
        values = [(numbers[at], scale * v) for at in some for v in trials[at].figures[target]]
        for mark, below in (("o", False), ("v", True)):
            seen = [(x, max(y, floor)) for x, y in values if np.isfinite(y) and (y < floor) == below]
            if seen:
                named = label if mark == "o" else "_nolegend_"
                axes.plot(*zip(*seen, strict=True), mark, color=colour, ms=4, alpha=0.6, mew=0, label=named)
        for at in some:
            if np.isfinite(means[at].low):
                low, high = (max(scale * end, floor) for end in (means[at].low, means[at].high))
                axes.vlines(numbers[at], low, high, color=colour, lw=2)
    if any(len(trial.figures[target]) > 1 for trial in trials):
        line = [max(scale * mean.estimate, floor) for mean in means]
        axes.plot(numbers, line, "-", color=palette.GREY, lw=1, zorder=1, label="mean of the seeds")
    bound = {"<": "at most", ">": "at least"}[target.relation[0]]
    axes.axhline(scale * target.bound, color=palette.ORANGE, ls="--", lw=1.2,
                 label=f"target: {bound} {human.quantity(target.bound, unit)}")  # fmt: skip
    axes.set_ylabel(f"{figure} ({shown})" if shown else str(figure))


def _value_axis(axes: Any, bound: float, values: Sequence[float], *, wide: bool) -> float:
    """Choose the scale of the values; return the least that it shows, at which smaller ones are drawn.

    It may be logarithmic if `wide`.
    """
    known = [value for value in values if np.isfinite(value)]
    above = [value for value in [*known, bound] if value > 0]
    if not wide or not above or max(above) <= WIDE * min([bound, *known]):
        axes.set_ylim(0, 1.1 * max([*above, 1e-9]))
        return 0.0
    axes.set_yscale("log")
    plain_log_axis(axes.yaxis)
    floor = max(min(above), bound / 100)
    axes.set_ylim(floor / 1.2, 1.5 * max(above))
    return floor
