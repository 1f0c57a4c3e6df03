"""Figures over time and over the machine: use, queue, calendar, map of nodes."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched import human
from simsched.errors import RunError
from simsched.report import palette
from simsched.report.data.series import binned, busiest, types_in_use
from simsched.report.figures.date_axis import mark_dates, mark_weeks
from simsched.report.metrics import metrics as m
from simsched.report.metrics.classes import weekdays
from simsched.report.metrics.spread import node_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.formats.rfc.clock import Clock
    from simsched.report.data.tables import RunTables


Figure = Any
Axes = Any
#: more rectangles than this are drawn as an image inside an SVG or PDF
MAX_VECTORS = 4000
WITHOUT = "this run was made without its allocations"
UNKNOWN_SIZE = "the run does not record the size of the cluster"
BINS = 600


def _window(run: RunTables) -> tuple[float, float]:
    low, high = m.span(run.jobs)
    if high <= low:
        raise RunError("no job ran, so there is nothing to draw", where=run.name)
    return low, high


def time_axis(axes: Axes, runs: Sequence[RunTables], low: float, high: float) -> float:
    """Label an axis of seconds since the first submission; return the seconds of its unit.

    A short view far from the beginning has a larger unit, so that its numbers stay short.  The ticks are
    dates if these are known, and equal in all runs.
    """
    seconds, unit = human.time_unit(max(high - low, low / 3))
    axes.set_xlim(low / seconds, high / seconds)
    begins = {(run.clock, m.span(run.jobs)[0]) for run in runs}
    clock, first = begins.pop()
    if clock is None or begins:
        axes.set_xlabel(f"time since the first submission ({unit})")
    else:
        mark_dates(axes, clock, first, (low, high), seconds)
    return seconds


def utilisation(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the mean use over bins of time: of each type for one run, of the main type for several."""
    axes = figure.add_subplot()
    alone = len(runs) == 1
    seconds = time_axis(axes, runs, 0, max(w[1] - w[0] for w in map(_window, runs)))
    for run, colour in zip(runs, palette.cycle(len(runs)), strict=True):
        kinds = types_in_use(run)
        for kind in kinds if alone else [k for k in ("core", *kinds) if k in kinds][:1]:
            edges, used = binned(run.timeline, f"used_{kind}", BINS, _window(run))
            label = human.plural(kind) if alone else f"{run.name} ({human.plural(kind)})"
            shown = palette.TYPE.get(kind, palette.GREY) if alone else colour
            _stairs(axes, 100 * used / run.totals[kind], edges, seconds, shown, label)
    if not axes.patches:
        raise RunError(UNKNOWN_SIZE, where=runs[0].name)
    axes.set_ylim(0, 102)
    axes.set_ylabel("in use (% of all)")
    axes.set_title("Use over time")
    legend_above(axes)


def queue(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the largest number of queued jobs in each bin of time and, for one run, of running jobs."""
    axes = figure.add_subplot()
    alone = len(runs) == 1
    seconds = time_axis(axes, runs, 0, max(w[1] - w[0] for w in map(_window, runs)))
    for run, colour in zip(runs, palette.cycle(len(runs)), strict=True):
        edges, running = binned(run.timeline, "running_jobs", BINS, _window(run))
        label = "queued (most at once)" if alone else f"{run.name}, queued"
        queued = busiest(run.timeline, "queued_jobs", edges)
        _stairs(axes, queued, edges, seconds, palette.VERMILION if alone else colour, label)
        if alone:
            _stairs(axes, running, edges, seconds, palette.GREEN, "running (mean)")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("jobs")
    legend_above(axes)
    axes.set_title("Queue over time")


def _stairs(axes: Axes, values: Any, edges: Any, seconds: float, colour: str, label: str) -> None:
    axes.stairs(values, (edges - edges[0]) / seconds, color=colour, baseline=None, label=label)


def calendar(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the mean use of each day: one column per week, one row per day of the week."""
    run = runs[0]
    low, high = _window(run)
    kind = next((k for k in ("core", *m.types(run.timeline)) if run.totals.get(k)), None)
    if kind is None:
        raise RunError(UNKNOWN_SIZE, where=run.name)
    first, midnights = _midnights(run.clock, low, high)
    days = len(midnights) - 1
    used = [binned(run.timeline, f"used_{kind}", 1, pair)[1][0] for pair in pairwise(midnights)]
    offset = first % 7
    cells = np.full(7 * -(-(offset + days) // 7), np.nan)
    cells[offset : offset + days] = 100 * np.array(used) / run.totals[kind]
    axes = figure.add_subplot()
    image = axes.imshow(cells.reshape(-1, 7).T, aspect="auto", cmap="cividis", vmin=0, vmax=100)
    axes.set_yticks(range(7), weekdays(run.clock))
    axes.set_xlabel("week")
    if run.clock is not None:
        mark_weeks(axes, first - offset, len(cells) // 7)
    axes.grid(visible=False)
    axes.set_title(f"{run.name}: {human.plural(kind)} in use by day")
    figure.colorbar(image, ax=axes, label="% of all", fraction=0.03)


def _midnights(clock: Clock | None, low: float, high: float) -> tuple[int, list[float]]:
    """Return the first day, as days since a Monday, and the second at which each day begins, to the last end.

    Days are those of the local calendar, some of which have 23 or 25 hours; without a clock they are
    those of the trace.
    """
    if clock is None:
        first = int(low // 86400)
        return first, [86400.0 * day for day in range(first, int(high // 86400) + 2)]
    begin = clock.local(low).date()
    days = (clock.local(high).date() - begin).days + 2
    midnights = [clock.at(datetime.combine(begin + timedelta(days=n), time())) for n in range(days)]
    return begin.toordinal() - 1, midnights  # day 1 of the calendar is a Monday


def cluster_map(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw one cell per node, by rank from the top left, coloured by its share of time in use."""
    run = runs[0]
    if not run.has_allocations:
        raise RunError(WITHOUT, where=run.name, expected="allocations.jsonl")
    low, high = _window(run)
    held = run.allocations
    kind = next((k for k in ("core", "gpu", "node") if (held["type"] == k).any()), "node")
    busy = node_seconds(held, kind)
    nodes = max(run.totals.get("node", 0), int(busy.index.max()) + 1 if len(busy) else 1)
    units = max(run.totals.get(kind, nodes) / nodes, 1.0)
    share = np.zeros(nodes)
    share[busy.index.to_numpy(dtype=np.int64)] = 100 * busy.to_numpy() / (units * (high - low))
    width = int(np.ceil(np.sqrt(2.2 * nodes)))
    cells = np.full(width * -(-nodes // width), np.nan)
    cells[:nodes] = share
    axes = figure.add_subplot()
    image = axes.imshow(cells.reshape(-1, width), cmap="cividis", vmin=0, vmax=100)
    axes.set_xticks([])
    rows = range(0, len(cells) // width, max(1, len(cells) // width // 8))
    axes.set_yticks(rows, [f"{row * width}" for row in rows])
    axes.set_ylabel("first rank of the row")
    axes.grid(visible=False)
    whole = human.seconds(high - low)
    axes.set_title(f"{run.name}: {human.plural(kind)} of each node in use, {whole} in all")
    figure.colorbar(image, ax=axes, label="% of the makespan", fraction=0.03, shrink=0.8)


# --- legends above the charts, where they cover no data


LETTER, KEY, LINE = 0.6, 4.0, 1.5
"""Width of a letter, and of a key with its margins, and height of a line, in sizes of the font."""


def legend_above(axes: Axes, handles: Sequence[Any] | None = None, **style: Any) -> None:
    """Draw the legend of a chart above it, in as many columns as fit the figure, which grows by more lines.

    `handles` are its entries (default: what has a label in the chart), `style` is for matplotlib.
    """
    entries = axes.get_legend_handles_labels()[0] if handles is None else list(handles)
    if not entries:
        return
    letters = max(len(str(one.get_label())) for one in entries)
    size = axes.xaxis.label.get_size() / 72
    width, height = axes.figure.get_size_inches()
    columns = max(1, min(len(entries), int(width / (size * (LETTER * letters + KEY)))))
    lines = -(-len(entries) // columns)
    axes.figure.set_size_inches(width, height + (lines - 1) * LINE * size)
    axes.figure.legend(handles=entries, loc="outside upper right", ncols=columns, **style)
