"""The Gantt figure: jobs on nodes over time, or the use of nodes where jobs are too many to be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba_array
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from simsched import human
from simsched.report import palette
from simsched.report.data.gantt import chart
from simsched.report.data.gantt_view import MAX_JOBS_SHOWN, GanttView, colours_of, part_of, use_of_cells
from simsched.report.figures.paper import luminance
from simsched.report.figures.run_figures import MAX_VECTORS, legend_above, time_axis
from simsched.report.metrics.metrics import span

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.report.data.gantt import Chart
    from simsched.report.data.gantt_view import GanttPart
    from simsched.report.data.tables import RunTables

Figure = Any
Axes = Any
NAMED = 150
"""Rectangles up to this number bear the ids of their jobs, unless the view decides."""
LABEL = 9.0
"""Points of height that the name of a row takes."""
MARGIN = 72.0
"""Points of height above and below the drawing area, without further lines of a legend."""
LEAST_LETTERS = 3.5
"""Points of the smallest ids that are written."""
DARK = 0.35
"""Colours of less luminance bear white letters."""
LEGEND = 7
"""Values with a colour of their own; all others are grey."""
CELLS = (240, 600)
"""Rows and columns of a chart of use, at most."""


def gantt(figure: Figure, runs: Sequence[RunTables], view: GanttView) -> None:
    """Draw one rectangle per job and range of nodes that it held; without allocations, pack jobs by cores."""
    run = runs[0]
    drawn = chart(run)
    part = part_of(run, drawn, view)
    axes = figure.add_subplot()
    seconds = time_axis(axes, runs[:1], *part.window)
    if view.colour is None and len(part.boxes) > MAX_JOBS_SHOWN:
        cells = 100 * use_of_cells(part, min(part.rows, CELLS[0]), CELLS[1])
        low, high = (time / seconds for time in part.window)
        image = axes.imshow(
            cells, origin="lower", aspect="auto", cmap="cividis", vmin=0, vmax=100, interpolation="nearest",
            extent=(low, high, 0, part.rows),
        )  # fmt: skip
        figure.colorbar(image, ax=axes, label="in use (%)", fraction=0.03)
        by = ", share in use"
    else:
        _draw_jobs(axes, run, part, view, seconds)
        by = f", by {view.colour}" if view.colour else ""
    axes.set_ylim(0, part.rows)
    _label_rows(axes, drawn, part)
    axes.grid(visible=False)
    axes.set_title(f"{run.name}: {part.boxes['job'].nunique():,} jobs on {run.cluster_name}{by}")


def _draw_jobs(axes: Axes, run: RunTables, part: GanttPart, view: GanttView, seconds: float) -> None:
    boxes = part.boxes
    left, right = (boxes[name].to_numpy() / seconds for name in ("start", "end"))
    below, above = boxes["low"].to_numpy(), boxes["high"].to_numpy()
    # arrays, not lists: matplotlib then makes its paths without a look at each corner
    corners: Any = np.stack(
        [np.stack(p, axis=1) for p in ((left, below), (left, above), (right, above), (right, below))], axis=1
    )
    colours, legend = _colours(run, boxes, view.colour or "job")
    large = len(boxes) > MAX_VECTORS
    drawn = PolyCollection(
        corners, facecolors=colours, edgecolors="none" if large else "white",
        linewidths=0.0 if large else 0.3, rasterized=large,
    )  # fmt: skip
    axes.add_collection(drawn, autolim=False)
    if view.waits:
        _draw_waits(axes, run, part, seconds)
    if view.names or (view.names is None and len(boxes) <= NAMED):
        _draw_names(axes, run, part, seconds, colours)
    if legend:
        legend_above(axes, legend, handlelength=1.0, columnspacing=1.0)


def _colours(run: RunTables, boxes: pd.DataFrame, by: str) -> tuple[npt.NDArray[np.float64], list[Patch]]:
    """Return the colour of each rectangle, and the legend: none for colours that only tell jobs apart."""
    job = boxes["job"].to_numpy(dtype=np.int64)
    if by == "job":
        number = (job * 7 + (job >> 3)) % len(palette.CYCLE)
        return to_rgba_array(palette.CYCLE)[number], []
    values = colours_of(run, by)
    area = (boxes["end"] - boxes["start"]) * (boxes["high"] - boxes["low"])
    of_box = values.iloc[job].set_axis(boxes.index)
    # the values with the largest area have the colours; equal areas are ordered by name
    heavy = area.groupby(of_box).sum().sort_index().sort_values(ascending=False, kind="stable").index
    names = heavy.tolist()
    named = names if by == "result" or len(names) <= LEGEND + 1 else names[:LEGEND]
    if by == "size":
        named = sorted(named, key=lambda name: int(name.split("-")[0]))
    plain = dict(zip(named, palette.CYCLE, strict=False))
    colour_of = {
        name: palette.RESULT.get(name, palette.GREY) if by == "result" else plain[name] for name in named
    }
    legend = [Patch(color=colour, label=name) for name, colour in colour_of.items()]
    if len(names) > len(named):
        legend.append(Patch(color=palette.GREY, label=f"{len(names) - len(named):,} others"))
    return to_rgba_array([colour_of.get(name, palette.GREY) for name in of_box]), legend


def _draw_waits(axes: Axes, run: RunTables, part: GanttPart, seconds: float) -> None:
    """Draw a line from the submission to the start of each job, in the lowest row that it gets."""
    boxes = part.boxes.sort_values(["job", "start", "low"]).drop_duplicates("job")
    jobs = run.jobs.iloc[boxes["job"].to_numpy(dtype=np.int64)]
    origin = span(run.jobs)[0]
    submit = (jobs["submit"].to_numpy() - origin).clip(min=part.window[0]) / seconds
    start = boxes["start"].to_numpy() / seconds
    at = boxes["low"].to_numpy() + 0.12
    waited = submit < start
    lines: Any = np.stack([np.stack([submit, at], axis=1), np.stack([start, at], axis=1)], axis=1)[waited]
    width = max(0.6, min(2.5, 60 / part.rows))
    drawn = LineCollection(
        lines, colors=palette.VERMILION, linewidths=width, alpha=0.8, rasterized=len(lines) > MAX_VECTORS
    )
    axes.add_collection(drawn, autolim=False)


def _draw_names(
    axes: Axes, run: RunTables, part: GanttPart, seconds: float, colours: npt.NDArray[np.float64]
) -> None:
    """Write the id of a job into its largest rectangle; an id that is cut off at its edges is left out."""
    boxes = part.boxes
    area = (boxes["end"] - boxes["start"]) * (boxes["high"] - boxes["low"])
    at = boxes.index.get_indexer(pd.Index(area.groupby(boxes["job"]).idxmax()))
    largest = boxes.iloc[at]
    inks = np.where(luminance(colours[at]) > DARK, "k", "w").tolist()
    wide, tall = _points(axes)
    view = part.window[1] - part.window[0]
    ids = run.jobs["id"].astype(str).iloc[largest["job"].to_numpy(dtype=np.int64)].tolist()
    rows = largest[["start", "end", "low", "high"]].to_numpy(dtype=np.float64).tolist()
    for text, ink, (start, end, low, high) in zip(ids, inks, rows, strict=True):
        width, height = (end - start) / view * wide, (high - low) / part.rows * tall
        size = min(8.0, 0.8 * height, width / (0.62 * len(text) + 0.5))
        if size >= LEAST_LETTERS:
            middle = (start + end) / 2 / seconds, (low + high) / 2
            axes.text(*middle, text, ha="center", va="center", fontsize=size, color=ink, clip_on=True)


def _points(axes: Axes) -> tuple[float, float]:
    """Return about the width and height of the drawing area in points; margins are not laid out yet."""
    inches = axes.figure.get_size_inches()
    return 72 * 0.88 * float(inches[0]), max(72 * float(inches[1]) - MARGIN, MARGIN)


def _label_rows(axes: Axes, drawn: Chart, part: GanttPart) -> None:
    if not part.labels or part.labels == tuple(map(str, range(part.rows))):
        axes.set_ylabel(drawn.label)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))  # there is no rank 2.5
        return
    step = -(-part.rows // max(2, int(_points(axes)[1] / LABEL)))
    axes.set_yticks([row + 0.5 for row in range(0, part.rows, step)], part.labels[::step], fontsize=7)
    axes.set_ylabel("node" if step == 1 else f"node, every {human.number(step)}th named")
