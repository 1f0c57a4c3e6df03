"""The interactive charts of a report, as Bokeh models on its canvas backend.

Charts over time are empty here.  The page fills them from packed columns for the part of time in
view (assets/page.js), so a million jobs zoom as fast as a thousand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.models import (
    BoxZoomTool,
    ColorMapper,
    ColumnDataSource,
    CrosshairTool,
    FixedTicker,
    HoverTool,
    LinearColorMapper,
    LogColorMapper,
    Model,
    NumeralTickFormatter,
    PanTool,
    Range1d,
    ResetTool,
    SaveTool,
    TapTool,
    Text,
    WheelZoomTool,
)
from bokeh.models.annotations import Whisker
from bokeh.models.annotations.legends import ColorBar
from bokeh.palettes import Cividis256
from bokeh.plotting import figure
from bokeh.resources import Resources

from simsched import human
from simsched.report import palette
from simsched.report.html import markup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.report.data.gantt import Chart


Figure = Any
QUEUE_LINES = {
    "queued": (palette.VERMILION, "queued (most at once)"),
    "running": (palette.GREEN, "running (mean)"),
}
"""The lines of the chart of the queue: their colours, and their names in its key."""
LETTERS = 56
"""Letters of the names below a heat map; more are turned."""
TRANSPARENT = {"background_fill_alpha": 0, "border_fill_alpha": 0, "outline_line_alpha": 0}


@dataclass
class Charts:
    """The charts of one run or of the comparison: a Bokeh document, and the place of each model."""

    document: Document = field(default_factory=Document)
    places: dict[str, str] = field(default_factory=dict)

    def add(self, place: str, chart: Figure) -> None:
        """Put a chart into the element whose id is `place`."""
        self.document.add_root(chart)
        self.places[place] = chart.id

    def as_json(self, title: str) -> dict[str, Any]:
        """Return the data from which the page draws them: document, places, and models to colour."""
        styled = [[model.id, _style(model)] for model in self.document.models if _style(model)]
        return {
            "doc": self.document.to_json(deferred=False),
            "title": title,
            "places": self.places,
            # by number (p999 before p1000), whatever other pages were made before
            "styled": sorted(styled, key=lambda row: (len(row[0]), row[0])),
        }


def _style(model: Model) -> str:
    name = type(model).__name__
    if name.endswith("Axis"):
        return "axis"
    if isinstance(model, Text) and model.text_color != "#444444":  # a chart that chose its colours
        return ""
    styles = {"Grid": "grid", "Legend": "legend", "Title": "title", "ColorBar": "bar", "Text": "text"}
    return styles.get(name, "")


def whole_page(title: str, links: str, body: str, charts: list[dict[str, Any]]) -> str:
    """Return a page around a body, with its charts and the core of BokehJS, which loads nothing."""
    content = {"charts": charts, "cycle": list(palette.CYCLE), "ramp": list(Cividis256[::4])}
    data = str(serialize_json(content)).replace("<", "\\u003c")  # safe inside a script element
    script = str(Resources(mode="inline", components=["bokeh"]).js_raw[0])
    return markup.frame(title, links, body, data, script)


def empty_chart(x: str, y: str, height: int = 260, **options: Any) -> Figure:
    """Return a chart with named axes and nothing in it."""
    chart = figure(
        height=height,
        sizing_mode="stretch_width",
        x_axis_label=x,
        y_axis_label=y,
        toolbar_location=None,
        tools="",
        output_backend="canvas",
        **options,
    )
    chart.update(**TRANSPARENT)
    for axis in chart.axis:
        axis.axis_label_text_font_style = "normal"
        axis.minor_tick_line_alpha = 0
    chart.grid.grid_line_alpha = 0.6
    return chart


def over_time_chart(x_range: Range1d, time: str, y: str, y_range: Range1d, height: int) -> Figure:
    """Return a chart over time that shares its range with the others: drag, wheel and box zoom along time."""
    chart = empty_chart(time, y, height, x_range=x_range, y_range=y_range)
    chart.xaxis.name = f"{x_range.name}-axis"  # the page sets the dates of its ticks
    pan = PanTool(dimensions="width")
    # without Ctrl the wheel scrolls the page
    wheel = WheelZoomTool(dimensions="width", modifiers={"ctrl": True})
    chart.add_tools(pan, wheel, BoxZoomTool(dimensions="width"))
    chart.add_tools(ResetTool(), SaveTool(), CrosshairTool(dimensions="height", line_alpha=0.4))
    chart.toolbar.active_drag = pan
    chart.toolbar.active_scroll = wheel
    chart.min_border_left = 72
    return chart


def time_charts(
    charts: Charts, prefix: str, end: float, time: str, gantt: Chart, kinds: list[str]
) -> Range1d:
    """Add the linked charts over time, Gantt, use of each type, queue, and return their range."""
    x_range = Range1d(start=0, end=end, bounds=(-0.02 * end, 1.02 * end), name=f"{prefix}-time")
    charts.add(f"{prefix}-gantt", _gantt(prefix, x_range, time, gantt))
    use = over_time_chart(x_range, time, "in use (% of all)", Range1d(start=0, end=102), 200)
    for kind in kinds:
        colour = palette.TYPE.get(kind, palette.GREY)
        _step(use, f"{prefix}-use-{kind}", colour, area=kind == kinds[0])
    charts.add(f"{prefix}-use", use)
    length = Range1d(start=0, end=1, name=f"{prefix}-queue-range")
    queue = over_time_chart(x_range, time, "jobs", length, 200)
    for name, (colour, _) in QUEUE_LINES.items():
        _step(queue, f"{prefix}-{name}", colour)
    charts.add(f"{prefix}-queue", queue)
    return x_range


def _step(chart: Figure, name: str, colour: str, *, area: bool = False) -> None:
    """Draw a line of steps, which the page fills by the name of its columns, and perhaps the area below."""
    source = ColumnDataSource({"x": [0, 0], "y": [0, 0]}, name=name)
    if area:
        chart.varea_step(x="x", y1=0, y2="y", source=source, color=colour, alpha=0.25, step_mode="after")
    chart.step(x="x", y="y", source=source, color=colour, mode="after")


def _gantt(prefix: str, x_range: Range1d, time: str, gantt: Chart) -> Figure:
    y_range = Range1d(start=0, end=gantt.rows, bounds=(0, gantt.rows))
    chart = over_time_chart(x_range, time, gantt.label, y_range, 460)
    image = ColumnDataSource(
        {"image": [np.zeros((1, 1), np.uint32)], "x": [0], "y": [0], "dw": [1], "dh": [1]},
        name=f"{prefix}-image",
    )
    chart.image_rgba("image", x="x", y="y", dw="dw", dh="dh", source=image)
    names = ["left", "right", "bottom", "top", "color", "id", "user", "what", "when"]
    boxes = ColumnDataSource({name: [] for name in names}, name=f"{prefix}-boxes")
    drawn = chart.quad(
        left="left", right="right", bottom="bottom", top="top", fill_color="color", source=boxes,
        line_color="#ffffff", line_alpha=0.6, line_width=0.5,
    )  # fmt: skip
    tooltips = [("job", "@id"), ("user", "@user"), ("holds", "@what"), ("time", "@when")]
    chart.add_tools(HoverTool(renderers=[drawn], tooltips=tooltips, point_policy="follow_mouse"))
    # a click chooses the job whose wait the page explains; a box that is not chosen stays as it is
    chart.add_tools(TapTool(renderers=[drawn], mode="replace"))
    drawn.nonselection_glyph = None
    chart.y_range.name = f"{prefix}-ranks"
    chart.grid.grid_line_alpha = 0
    return chart


def cdf_chart(curves: dict[str, pd.DataFrame], label: str, colours: list[str], scale: str = "log") -> Figure:
    """Return the share of jobs (%) up to each value, one line per run; the page names the colours.

    The axis of the values is ``log``, ``linear`` or ``time``: seconds on a logarithmic axis with human ticks.
    A curve has the columns ``value`` and ``share`` (0 to 1).
    """
    kind = "linear" if scale == "linear" else "log"
    chart = empty_chart(label, "share of jobs (%)", x_axis_type=kind, y_range=Range1d(start=0, end=101))
    if scale == "log":
        chart.xaxis.formatter = NumeralTickFormatter(format="0,0")
        chart.xaxis.ticker.num_minor_ticks = 0
    if scale == "time":
        chart.xaxis.ticker = FixedTicker(ticks=[at for at, _ in human.TIME_MARKS])
        chart.xaxis.major_label_overrides = dict(human.TIME_MARKS)
    for (name, curve), colour in zip(curves.items(), colours, strict=True):
        source = ColumnDataSource({"x": curve["value"], "y": 100 * curve["share"]})
        chart.line("x", "y", source=source, color=colour, line_width=2, name=name)
    unit = " s" if scale == "time" else ""
    chart.add_tools(
        HoverTool(tooltips=[("up to", f"@x{{0,0.[0]}}{unit}"), ("share", "@y{0.0} %")], mode="vline")
    )
    return chart


def heat_chart(table: pd.DataFrame, x: str, y: str, value: str, unit: str) -> Figure:
    """Return the cells of a table coloured by value: rows upwards, columns to the right, no cell for NaN.

    `unit` labels the colour bar.  The unit ``s`` has logarithmic colours, and the times are in the cells.
    """
    columns, rows = [str(c) for c in table.columns], [str(r) for r in table.index]
    cells = table.set_axis(columns, axis=1).set_axis(rows, axis=0).stack().reset_index()
    cells.columns = pd.Index(["y", "x", "v"])
    cells = cells[np.isfinite(cells["v"])]
    times = unit == "s"
    chart = empty_chart(x, y, x_range=columns, y_range=rows)
    low, high = (float(cells["v"].min()), float(cells["v"].max())) if len(cells) else (0.0, 1.0)
    if times:  # a logarithmic scale has no 0: waits below 1 s have the colour of 1 s
        low = max(low, 1.0)
        mapper: ColorMapper = LogColorMapper(palette="Cividis256", low=low, high=max(high, 2 * low))
    else:
        mapper = LinearColorMapper(palette="Cividis256", low=low, high=max(high, low + 1e-9))
    shown = cells["v"].map(human.seconds if times else human.number)
    source = ColumnDataSource({"x": cells["x"], "y": cells["y"], "v": cells["v"], "shown": shown})
    drawn = chart.rect(
        "x", "y", 1, 1, source=source, fill_color={"field": "v", "transform": mapper}, line_color=None
    )
    colour_bar(chart, drawn, "" if times else unit)
    if times:
        _mark_times(chart, cells, low, max(high, 2 * low))
    unit_after = "" if times else f" {unit}"
    chart.add_tools(
        HoverTool(renderers=[drawn], tooltips=[(y, "@y"), (x, "@x"), (value, f"@shown{unit_after}")])
    )
    longest = max(map(len, columns), default=0)
    crowded = longest > 4 and longest * len(columns) > LETTERS
    chart.xaxis.major_label_orientation = 0.9 if crowded else 1.57 if len(columns) > 12 else 0
    if len(columns) > 12:
        chart.xaxis.major_label_text_font_size = "9px"
    chart.grid.grid_line_alpha = 0
    return chart


def _mark_times(chart: Figure, cells: pd.DataFrame, low: float, high: float) -> None:
    """Write the time of each cell into it, and times at the scale of the colours."""
    # the light half of the scale bears dark letters
    ink = np.where(
        np.log(cells["v"].clip(lower=low)) > (np.log(low) + np.log(high)) / 2, "#000000", "#ffffff"
    )
    text = ColumnDataSource(
        {"x": cells["x"], "y": cells["y"], "text": cells["v"].map(human.seconds), "ink": ink}
    )
    chart.text(
        "x", "y", "text", source=text, text_color="ink", text_align="center", text_baseline="middle",
        text_font_size="9px",
    )  # fmt: skip
    bar = chart.select_one({"type": ColorBar})
    marks: list[tuple[float, str]] = [(at, name) for at, name in human.TIME_MARKS if low <= at <= high]
    marks = marks or [(low, human.seconds(low))]
    bar.ticker = FixedTicker(ticks=[at for at, _ in marks])
    bar.major_label_overrides = dict(marks)


def colour_bar(chart: Figure, drawn: Any, unit: str) -> None:
    """Add the scale of the colours of a renderer, with its unit."""
    bar = drawn.construct_color_bar(
        width=10, background_fill_alpha=0, title=unit, title_text_font_style="normal", title_standoff=6
    )
    bar.formatter = NumeralTickFormatter(format="0,0")
    chart.add_layout(bar, "right")


def map_chart(nodes: pd.DataFrame, width: int, value: str) -> Figure:
    """Return one cell per node, `width` in a row from the top left, coloured by ``share`` (%).

    0 is dark and 100 light; a node without a share is grey.  `nodes` has the columns rank, host, jobs
    and share.
    """
    at = np.arange(len(nodes))
    rows = -(-len(nodes) // width)
    chart = empty_chart(
        "", f"first rank of the row, {width} in each", max(160, min(460, 24 * rows + 40)),
        x_range=Range1d(start=-0.5, end=width - 0.5), y_range=Range1d(start=rows - 0.5, end=-0.5),
    )  # fmt: skip
    columns = {name: nodes[name].to_numpy() for name in ("rank", "host", "jobs", "share")}
    source = ColumnDataSource({"x": at % width, "y": at // width, **columns})
    mapper = LinearColorMapper(palette="Cividis256", low=0, high=100, nan_color=palette.GREY)
    colour = {"field": "share", "transform": mapper}
    drawn = chart.rect("x", "y", 0.92, 0.92, source=source, fill_color=colour, line_color=None)
    colour_bar(chart, drawn, "%")
    chart.add_tools(
        HoverTool(tooltips=[("node", "@host (rank @rank)"), (value, "@share{0.[0]} %"), ("jobs", "@jobs")])
    )
    chart.xaxis.visible = False
    step = max(1, rows // 8)
    chart.yaxis.ticker = FixedTicker(ticks=list(range(0, rows, step)))
    firsts = nodes["rank"].to_numpy()[::width].tolist()
    chart.yaxis.major_label_overrides = {row: f"{firsts[row]}" for row in range(0, rows, step)}
    chart.grid.grid_line_alpha = 0
    return chart


def bar_chart(names: list[str], values: list[float], label: str, colours: list[str]) -> Figure:
    """Return horizontal bars, the first on top, one colour each."""
    chart = empty_chart(label, "", max(120, 22 * len(names) + 60), y_range=list(reversed(names)))
    source = ColumnDataSource({"y": names, "x": values, "color": colours})
    chart.hbar(y="y", right="x", height=0.7, source=source, color="color")
    chart.x_range.start = 0
    chart.xaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    chart.grid.grid_line_alpha = 0
    chart.xgrid.grid_line_alpha = 0.6
    chart.add_tools(HoverTool(tooltips=[("", "@y"), (label, "@x{0,0.[00]}")]))
    return chart


# --- charts of a study: a figure over an axis, one line per setting of another axis, with intervals


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
