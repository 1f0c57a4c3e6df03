"""The figure of the machine room: racks, switches … over time, one small chart per fact and level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rcParams
from matplotlib.colors import LinearSegmentedColormap

from simsched import human
from simsched.report import palette
from simsched.report.data.machine_room import room_of
from simsched.report.figures.over_time import time_axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.arrays import Floats
    from simsched.report.data.machine_room import MachineRoom, RoomLevel
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
