"""Figures of runs: over time, of the machine, of its room, of waits by cause, and of jobs."""

from __future__ import annotations

import math
import textwrap
from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rcParams
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from simsched import human
from simsched.errors import RunError
from simsched.report import palette
from simsched.report.data.machine_room import room_of
from simsched.report.data.series import binned, busiest, types_in_use
from simsched.report.figures.date_axis import mark_dates, mark_weeks
from simsched.report.metrics import metrics as m
from simsched.report.metrics.classes import run_time_class, size_class, weekdays
from simsched.report.metrics.spread import node_seconds
from simsched.report.metrics.summary import metric
from simsched.report.waiting.job_answer import Cause, jobs_of
from simsched.report.waiting.noted_limits import LIMIT
from simsched.report.waiting.wait_totals import waits_over_time
from simsched.text_table import clip_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from simsched.arrays import Floats
    from simsched.formats.rfc.clock import Clock
    from simsched.report.data.machine_room import MachineRoom, RoomLevel
    from simsched.report.data.tables import RunTables
    from simsched.report.waiting.job_answer import JobWait

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


# --- waits by cause: of a whole run over time, and of one job from its submission to its start


WAIT_BINS = 120
"""Parts of the time of a run in the figure of its waits."""


def waits(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the number of jobs that wait over time, by the cause of the wait."""
    run = runs[0]
    low, high = run.window
    if not high > low:
        raise RunError("no job ran, so there is nothing to draw", where=run.name)
    edges = np.linspace(low, high, WAIT_BINS + 1)
    table = waits_over_time(run, edges)
    # a limit may have a cause for each user
    table = (
        table.T.groupby(lambda cause: LIMIT if cause.startswith(f"{LIMIT} ") else cause, sort=False).sum().T
    )
    table = table.loc[:, table.sum() > 0]
    axes = figure.add_subplot()
    seconds = time_axis(axes, runs[:1], 0.0, high - low)
    if table.empty:
        axes.text(0.5, 0.5, "No job waited.", ha="center", va="center", transform=axes.transAxes)
    else:
        below = np.zeros(WAIT_BINS)
        hours = (high - low) / WAIT_BINS / 3600
        for cause in table:
            above = below + table[cause].to_numpy() / hours
            label = f"{cause}: {round(table[cause].sum(), 6):,.1f} h"
            axes.stairs(above, (edges - low) / seconds, baseline=below, fill=True,
                        color=palette.of_cause(str(cause)), label=label)  # fmt: skip
            below = above
        legend_above(axes)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("waiting jobs (mean)")
    axes.yaxis.set_major_formatter("{x:,.4g}")
    total = float(table.to_numpy().sum())
    axes.set_title(f"{run.name}: {total:,.1f} hours waited, by cause")


def job_wait(figure: Figure, run: RunTables, answer: JobWait) -> None:
    """Draw the wait of one job: one row per cause, and one per job that held the short resources.

    Raises
    ------
    RunError
        if the job did not wait.
    """
    if not answer.wait > 0:
        raise RunError(f"job {answer.id} did not wait, so there is nothing to draw", where=run.name)
    axes = figure.add_subplot()
    seconds, unit = human.time_unit(answer.wait)
    causes = list(dict.fromkeys(period.cause for period in answer.periods))
    for row, cause in enumerate(causes):
        bars = [
            ((period.start - answer.submit) / seconds, period.length / seconds)
            for period in answer.periods
            if period.cause == cause
        ]
        axes.broken_barh(bars, (row - 0.38, 0.76), facecolors=_colour_of_job(cause, causes), linewidth=0)
    spent = answer.by_cause()
    labels = [f"{clip_end(cause, 34)}  {human.seconds(spent[cause])}" for cause in causes]
    starts = dict(zip(run.jobs["id"].astype(str), run.jobs["start"], strict=True))
    for row, holder in enumerate(answer.holders, start=len(causes)):
        begin = max(float(starts[holder.id]), answer.submit)
        end = min(holder.until, answer.submit + answer.wait)
        bar = ((begin - answer.submit) / seconds, (end - begin) / seconds)
        axes.broken_barh([bar], (row - 0.2, 0.4), facecolors=palette.GREY, linewidth=0)
        user = f" ({clip_end(holder.user, 14)})" if holder.user else ""
        labels.append(f"held: {holder.units:,} by job {clip_end(holder.id, 14)}{user}")
    if answer.holders:
        axes.axhline(len(causes) - 0.5, color=palette.GREY, linewidth=0.6, linestyle="--")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, answer.wait / seconds)
    if answer.clock is None:
        axes.xaxis.set_major_locator(MaxNLocator(7))
        axes.set_xlabel(f"time since the submission ({unit})")
    else:
        mark_dates(axes, answer.clock, answer.submit, (0.0, answer.wait), seconds)
    fate = "never started, waited" if answer.start is None else "waited"
    axes.set_title(f"{run.name}: job {answer.id} {fate} {human.seconds(answer.wait)}")


def _colour_of_job(cause: str, causes: Sequence[str]) -> str:
    """Return the colour of a cause in the figure of a job: shortages by type, others in their order."""
    if cause.startswith(Cause.SHORT):
        return palette.of_cause(cause)
    others = [one for one in causes if not one.startswith(Cause.SHORT)]
    left = (palette.PURPLE, palette.GREEN, palette.VERMILION)
    return left[others.index(cause) % len(left)]


# --- the machine room: racks, switches … over time, one small chart per fact and level


MOST_LEVELS = 3
"""Levels of a figure: those with the fewest groups."""
PANEL, LABEL = 1.35, 8.5
"""Inches of height of a chart, and points that the name of a group takes."""
STATE_TITLES = {"failure": "failed", "drain": "drained", "maintenance": "in maintenance",
                "down": "down from the start"}  # fmt: skip
SCALE = "cividis"
OUT = "outages"
"""The scale of outages: none has the colour of the paper."""


def room(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw use, outages and fragmentation over time: one row of charts per fact, one column per level."""
    run = runs[0]
    found = room_of(run)
    levels = found.levels[-MOST_LEVELS:]
    facts = [list(_facts(found, level)) for level in levels]
    figure.set_size_inches(figure.get_size_inches()[0], 0.9 + PANEL * len(facts[0]))
    grid = figure.subplots(len(facts[0]), len(levels), squeeze=False)
    for row, charts in enumerate(zip(*facts, strict=True)):
        # the scale of outages ends at their largest share, which is often small
        largest = max(float(np.nanmax(values)) for _, values, _ in charts)
        end = 100.0 if charts[0][2] == SCALE else max(largest, 1e-9)
        for axes, level, (title, values, scale) in zip(grid[row], levels, charts, strict=True):
            image = _draw(axes, run, found, level, values, scale, end)
            axes.set_title(title, fontsize="medium")
            if row + 1 < len(grid):
                axes.set_xlabel("")
                axes.tick_params(labelbottom=False)
        figure.colorbar(image, ax=list(grid[row]), label="%", fraction=0.03, pad=0.01)
    figure.suptitle(f"{run.name}: {human.number(len(found.nodes))} nodes of {run.cluster_name} over time",
                    x=0.01, ha="left", fontsize="large")  # fmt: skip


def _facts(found: MachineRoom, level: RoomLevel) -> Iterator[tuple[str, Floats, Any]]:
    """Yield title, values (%) of each group and bin, and the colours of each chart."""
    whole = human.plural(found.kind)
    yield f"{whole} in use", 100 * found.use(level), SCALE
    for state in found.out:
        colours = LinearSegmentedColormap.from_list(OUT, [rcParams["axes.facecolor"], palette.VERMILION])
        yield f"nodes {STATE_TITLES[state]}", 100 * found.unavailable(level, state), colours
    if found.broken.any():
        yield f"free {whole} on partly used nodes", 100 * found.fragmentation(level), SCALE


def _draw(
    axes: Axes, run: RunTables, found: MachineRoom, level: RoomLevel, values: Floats, scale: Any, end: float
) -> Any:
    low, high = found.edges[[0, -1]]
    seconds = time_axis(axes, [run], 0.0, float(high - low))
    count = len(level.groups)
    image = axes.imshow(
        np.ma.masked_invalid(values), aspect="auto", cmap=scale, vmin=0, vmax=end, interpolation="nearest",
        extent=(0, (high - low) / seconds, count - 0.5, -0.5),
    )  # fmt: skip
    step = max(1, -(-count * LABEL // (72 * PANEL * 0.72)))
    axes.set_yticks(range(0, count, int(step)), level.groups[:: int(step)], fontsize="small")
    axes.set_ylabel(level.name)
    axes.grid(visible=False)
    return image


# --- jobs: distributions, sizes against run times, users, reasons, runs compared


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


def wait_curves(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the share of jobs that waited no longer, over the wait; waits below 1 s are drawn at 1 s."""
    axes = _distribution(figure, runs, "wait", "wait, logarithmic; 1 s and less as one")
    ends = axes.get_xlim()
    times, names = zip(*human.TIME_MARKS, strict=True)
    axes.set_xticks(times, names)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(ends)
    axes.set_title("Share of jobs that waited no longer")


def slowdown_curves(figure: Figure, runs: Sequence[RunTables]) -> None:
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
