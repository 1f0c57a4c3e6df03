"""The figure of a search for a size or a load: each target over the values that were tried."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched import human
from simsched.report import palette
from simsched.report.figures.figures import matplotlib_figures, save_figure, stamp_of

if TYPE_CHECKING:
    from collections.abc import Sequence

#: from this ratio of the largest to the smallest value on, an axis is logarithmic
WIDE = 20.0
HEIGHT, WIDTH = 3.2, 8.0


@dataclass(frozen=True, slots=True)
class SizingPoint:
    """One value that was tried: the target's figure with each seed, the interval of its mean, the verdict."""

    number: float
    values: tuple[float, ...]
    mean: float
    low: float
    high: float
    meets: bool


@dataclass(frozen=True, slots=True)
class SizingPanel:
    """One target: its figure's name and unit, its bound, and the values that were tried."""

    name: str
    unit: str
    relation: str
    bound: float
    points: tuple[SizingPoint, ...]


@dataclass(frozen=True, slots=True)
class SizingFigure:
    """All targets over one axis; `refused` are the values at which some job can never run."""

    title: str
    axis: str
    panels: tuple[SizingPanel, ...]
    answer: float | None
    today: float
    refused: tuple[float, ...] = ()


def save(content: SizingFigure, target: str | Path, *, dpi: int = 144, dark: bool = False) -> None:
    """Draw into a .png, .svg or .pdf file; equal figures give equal bytes.

    Raises
    ------
    ConfigError
        For another ending, or without matplotlib.
    """
    path = Path(target)
    stamp = stamp_of(path, dpi)
    with matplotlib_figures(dark) as figure_class:
        figure = figure_class(figsize=(WIDTH, 0.6 + HEIGHT * len(content.panels)))
        rows = figure.subplots(len(content.panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, panel in zip(rows, content.panels, strict=True):
            _draw(axes, panel, content)
        rows[-1].set_xlabel(content.axis)
        numbers = [p.number for panel in content.panels for p in panel.points] + list(content.refused)
        if numbers and min(numbers) > 0 and max(numbers) > WIDE * min(numbers):
            rows[-1].set_xscale("log")
            _plain_ticks(rows[-1].xaxis)
        rows[0].set_title(content.title)
        save_figure(figure, path, dpi, stamp)


def _draw(axes: Any, panel: SizingPanel, content: SizingFigure) -> None:
    points = sorted(panel.points, key=lambda point: point.number)
    scale, unit = _scale(panel)
    floor = _value_axis(axes, panel, points, scale)
    for meets, colour, label in ((True, palette.BLUE, "meets"), (False, palette.VERMILION, "does not meet")):
        for mark, below in (("o", False), ("v", True)):
            seen = [
                (p.number, max(scale * v, floor))
                for p in points
                for v in p.values
                if p.meets == meets and np.isfinite(v) and (scale * v < floor) == below
            ]
            if seen:
                named = label if mark == "o" else "_nolegend_"
                axes.plot(*zip(*seen, strict=True), mark, color=colour, ms=4, alpha=0.6, mew=0, label=named)
        for p in points:
            if p.meets == meets and np.isfinite(p.low):
                low, high = (max(scale * end, floor) for end in (p.low, p.high))
                axes.vlines(p.number, low, high, color=colour, lw=2)
    if any(len(p.values) > 1 for p in points):
        means = [max(scale * p.mean, floor) for p in points]
        axes.plot([p.number for p in points], means, "-", color=palette.GREY, lw=1, zorder=1,
                  label="mean of the seeds")  # fmt: skip
    bound = {"<": "at most", ">": "at least"}[panel.relation[0]]
    axes.axhline(scale * panel.bound, color=palette.ORANGE, ls="--", lw=1.2,
                 label=f"target: {bound} {human.quantity(panel.bound, panel.unit)}")  # fmt: skip
    if content.answer is not None:
        axes.axvline(content.answer, color=palette.GREEN, ls=":", lw=1.5,
                     label=f"answer: {human.number(content.answer)} {content.axis}")  # fmt: skip
    for place, number in enumerate(content.refused):
        axes.axvline(number, color=palette.GREY, lw=1,
                     label="_nolegend_" if place else "some job never fits")  # fmt: skip
    axes.set_ylabel(f"{panel.name} ({unit})" if unit else panel.name)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)  # beside it, over no data


def _scale(panel: SizingPanel) -> tuple[float, str]:
    """Return the factor and the unit in which values are drawn: times in the unit of the bound."""
    if panel.unit == "share":
        return 100.0, "%"
    if panel.unit != "s":
        return 1.0, panel.unit if panel.unit != "ratio" else ""
    seconds, name = human.time_unit(3 * panel.bound)  # a bound of one hour reads best in hours
    return 1 / seconds, name


def _value_axis(axes: Any, panel: SizingPanel, points: Sequence[SizingPoint], scale: float) -> float:
    """Choose the scale of the values; return the least that it shows, at which smaller ones are drawn."""
    values = [scale * v for p in points for v in p.values if np.isfinite(v)]
    above = [value for value in [*values, scale * panel.bound] if value > 0]
    if panel.unit == "share" or not above or max(above) <= WIDE * min([scale * panel.bound, *values]):
        axes.set_ylim(0, 1.1 * max([*above, 1e-9]))
        return 0.0
    axes.set_yscale("log")
    _plain_ticks(axes.yaxis)
    floor = max(min(above), scale * panel.bound / 100)
    axes.set_ylim(floor / 1.2, 1.5 * max(above))
    return floor


def _plain_ticks(axis: Any) -> None:
    """Write the numbers of a logarithmic axis as numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_formatter(NullFormatter())
