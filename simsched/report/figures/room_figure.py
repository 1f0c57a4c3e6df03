"""The figure of the machine room: racks, switches … over time, one small chart per fact and level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rcParams
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import FixedLocator

from simsched import human
from simsched.report import palette
from simsched.report.data.machine_room import room_of
from simsched.report.figures.over_time import time_axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.report.data.machine_room import Floats, MachineRoom, RoomLevel
    from simsched.report.data.tables import RunTables

Figure = Any
Axes = Any
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
    levels = found.levels[-MOST_LEVELS:] if len(found.levels) > MOST_LEVELS else found.levels
    facts = list(_facts(found, levels[0]))
    figure.set_size_inches(figure.get_size_inches()[0], 0.9 + PANEL * len(facts))
    grid = figure.subplots(len(facts), len(levels), squeeze=False)
    ends = np.array([[_end(fact) for fact in _facts(found, level)] for level in levels]).max(axis=0)
    for column, level in enumerate(levels):
        for row, (title, values, scale) in enumerate(_facts(found, level)):
            axes = grid[row, column]
            image = _draw(axes, run, found, level, values, scale, ends[row])
            axes.set_title(title, fontsize="medium")
            if row + 1 < len(facts):
                axes.set_xlabel("")
                axes.tick_params(labelbottom=False)
            if column + 1 == len(levels):
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


def _end(fact: tuple[str, Floats, Any]) -> float:
    """Return the end of the scale (%): that of outages is their largest share, which is often small."""
    _, values, scale = fact
    return 100.0 if scale == SCALE else max(float(np.nanmax(values)), 1e-9)


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
    rows = range(0, count, int(step))
    axes.yaxis.set_major_locator(FixedLocator(list(rows)))
    axes.set_yticklabels([level.groups[row] for row in rows], fontsize="small")
    axes.set_ylabel(level.name)
    axes.grid(visible=False)
    return image
