"""The figure of a workload: the statistics of `simsched.workload.describe` in six small charts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.report import palette
from simsched.report.figures.figures import matplotlib_figures, save_figure, stamp_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SIZE = (12.0, 7.0)
DPI = 144
NUMBERS = "{x:,.10g}"


def draw_workload(data: Mapping[str, Any], *, dark: bool = False) -> Any:
    """Draw the statistics of a workload into a matplotlib Figure; ConfigError without matplotlib."""
    with matplotlib_figures(dark) as figure_class:
        figure = figure_class(figsize=SIZE)
        axes = figure.subplots(2, 3).flat
        _weeks(next(axes), data)
        sizes = [(str(row["to"]), row["jobs"]) for row in data["sizes"]]
        _bars(next(axes), "jobs by processors", sizes)
        lengths = [(f"≥ {human.seconds(row['from'])}", row["jobs"]) for row in data["run_times"]]
        _bars(next(axes), "jobs by run time", lengths)
        # as many names as there is room for
        hours = [("" if hour % 3 else str(hour), jobs) for hour, jobs in enumerate(data["hours_of_day"])]
        _bars(next(axes), "jobs by hour of day", hours)
        _accuracy(next(axes), data["estimates"])
        users = [(row["name"], row["processor_hours"]) for row in data["users"]["top"]]
        _bars(next(axes), "processor hours of the users with most jobs", users)
        figure.suptitle(f"{data['name'] or data['source']}: {data['jobs']:,} jobs", x=0.01, ha="left")
    return figure


def save_workload_figure(data: Mapping[str, Any], target: str | Path, *, dark: bool = False) -> None:
    """Draw the statistics of a workload into a .png, .svg or .pdf file; the same data give the same bytes."""
    path = Path(target)
    stamp = stamp_of(path, DPI)
    save_figure(draw_workload(data, dark=dark), path, DPI, stamp)


def _weeks(axes: Any, data: Mapping[str, Any]) -> None:
    weeks = data["weeks"]
    known = data["load"] is not None
    values = [row["load"] * 100 if known else row["processor_hours"] for row in weeks]
    axes.bar([row["week"] for row in weeks], values, width=0.9, color=palette.BLUE)
    if known:
        axes.axhline(100, color=palette.VERMILION, linewidth=1)
    axes.set_title("offered load by week, %" if known else "processor hours by week")
    axes.set_xlabel("week")
    axes.yaxis.set_major_formatter(NUMBERS)


def _bars(axes: Any, title: str, bars: Sequence[tuple[str, float]]) -> None:
    """Draw one bar per label; long or many labels are turned."""
    labels = [label for label, _ in bars]
    axes.bar(range(len(bars)), [value for _, value in bars], width=0.9, color=palette.BLUE)
    axes.set_title(title)
    axes.yaxis.set_major_formatter(NUMBERS)
    turned = {"rotation": 60, "ha": "right"} if sum(map(len, labels)) > 40 else {}
    axes.set_xticks(range(len(labels)), labels, **turned)
    axes.grid(visible=False, axis="x")


def _accuracy(axes: Any, estimates: Mapping[str, Any] | None) -> None:
    if estimates is None:
        axes.set_title("no job states a limit")
        axes.set_axis_off()
        return
    counts = estimates["accuracy_histogram"]
    axes.bar([0.05 + index / 10 for index in range(len(counts))], counts, width=0.09, color=palette.ORANGE)
    axes.yaxis.set_major_formatter(NUMBERS)
    axes.set_title("jobs by run time / limit")
