"""Charts of a study: a figure over an axis, one line per setting of another axis, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bokeh.models import ColumnDataSource, HoverTool, NumeralTickFormatter
from bokeh.models.annotations import Whisker

from simsched.report.html.charts import empty_chart

if TYPE_CHECKING:
    from collections.abc import Sequence

Figure = Any


BESIDE = 0.5
"""Share of the width of a name over which the dots of several lines are spread."""


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line of a chart: its name, and at each place the mean and the ends of its interval."""

    name: str
    at: tuple[Any, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def lines_chart(lines: Sequence[ChartLine], x: str, y: str, colours: Sequence[str]) -> Figure:
    """Return lines over numbers, or dots side by side over names in the given order.

    There are no values between two names, so no line joins them.  An interval is a whisker; an
    unknown one (NaN) is not drawn.
    """
    names = list(dict.fromkeys(at for line in lines for at in line.at))
    numbers = all(isinstance(at, int | float) for at in names)
    options: dict[str, Any] = {} if numbers else {"x_range": [str(name) for name in names]}
    chart = empty_chart(x, y, **options)
    for number, (line, colour) in enumerate(zip(lines, colours, strict=True)):
        aside = None if numbers else (number - (len(lines) - 1) / 2) * BESIDE / len(lines)
        chart.add_layout(_draw(chart, line, colour, aside))
    chart.yaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    if numbers:
        chart.xaxis.ticker = sorted(names) if len(names) <= 12 else chart.xaxis.ticker
        chart.xaxis.major_label_overrides = {}
    elif max(map(len, options["x_range"]), default=0) > 12:
        chart.xaxis.major_label_orientation = 0.6
    tips = [
        ("", "@name"),
        (x, "@label"),
        (y, "@mean{0,0.[00]}"),
        ("interval", "@low{0,0.[00]} to @high{0,0.[00]}"),
    ]
    chart.add_tools(HoverTool(tooltips=tips))
    values = (value for line in lines for value in (*line.mean, *line.low))
    chart.y_range.start = min([0.0, *filter(math.isfinite, values)])
    return chart


def _draw(chart: Figure, line: ChartLine, colour: str, aside: float | None) -> Any:
    """Draw one line over numbers, or its dots, shifted by `aside`, over names; return its whiskers."""
    at = list(line.at) if aside is None else [(str(name), aside) for name in line.at]
    known: dict[str, Any] = {"x": at, "mean": list(line.mean), "name": [line.name] * len(at)}
    labels = [str(name) for name in line.at]
    source = ColumnDataSource({**known, "label": labels, "low": list(line.low), "high": list(line.high)})
    if aside is None:
        chart.line("x", "mean", source=source, color=colour, line_width=2, name=line.name)
    chart.scatter("x", "mean", source=source, color=colour, size=6)
    whisker: Any = Whisker(base="x", lower="low", upper="high", source=source, line_color=colour)
    for head in (whisker.upper_head, whisker.lower_head):
        head.update(size=6, line_color=colour)
    return whisker
