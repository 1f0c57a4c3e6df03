"""The figure of the machine room: racks, switches … over time, one small chart per fact and level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator

from simsched import human
from simsched.report.data.room import room_of
from simsched.report.figures.over_time import time_axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.report.data.room import Floats, Room, RoomLevel
    from simsched.report.data.tables import RunTables

Figure = Any
Axes = Any
MOST_LEVELS = 3
"""Levels of a figure: those with the fewest groups."""
MOST_NAMES = 16
"""Groups up to this number are named one by one."""
STATE_TITLES = {"failure": "failed", "drain": "drained", "maintenance": "in maintenance",
                "down": "down from the start"}  # fmt: skip
SCALE = "cividis"


def room(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw use, outages and fragmentation over time: one row of charts per fact, one column per level."""
    run = runs[0]
    found = room_of(run)
    levels = found.levels[-MOST_LEVELS:] if len(found.levels) > MOST_LEVELS else found.levels
    facts = list(_facts(found, levels[0]))
    wide, tall = figure.get_size_inches()
    figure.set_size_inches(wide, tall * (0.28 + 0.24 * len(facts)))
    grid = figure.subplots(len(facts), len(levels), squeeze=False)
    for column, level in enumerate(levels):
        for row, (title, values, most) in enumerate(_facts(found, level)):
            axes = grid[row, column]
            image = _draw(axes, run, found, level, values, most)
            axes.set_title(title, fontsize="medium")
            if row + 1 < len(facts):
                axes.set_xlabel("")
                axes.tick_params(labelbottom=False)
            if column + 1 == len(levels):
                figure.colorbar(image, ax=list(grid[row]), label="%", fraction=0.03, pad=0.01)
    figure.suptitle(f"{run.name}: {human.number(len(found.nodes))} nodes of {run.cluster_name} over time",
                    x=0.01, ha="left", fontsize="large")  # fmt: skip


def _facts(found: Room, level: RoomLevel) -> Iterator[tuple[str, Floats, float]]:
    """Yield title, values (%) of each group and bin, and the end of the scale of each chart."""
    whole = "nodes" if found.kind == "node" else human.plural(found.kind)
    yield f"{whole} in use", 100 * found.use(level), 100.0
    for state in found.out:
        yield f"nodes {STATE_TITLES[state]}", 100 * found.unavailable(level, state), 100.0
    if found.broken.any():
        yield f"free {whole} on partly used nodes", 100 * found.fragmentation(level), 100.0


def _draw(axes: Axes, run: RunTables, found: Room, level: RoomLevel, values: Floats, most: float) -> Any:
    low, high = found.edges[[0, -1]]
    seconds = time_axis(axes, [run], 0.0, float(high - low))
    count = len(level.groups)
    image = axes.imshow(
        np.ma.masked_invalid(values), aspect="auto", cmap=SCALE, vmin=0, vmax=most, interpolation="nearest",
        extent=(0, (high - low) / seconds, count - 0.5, -0.5),
    )  # fmt: skip
    step = -(-count // MOST_NAMES)
    rows = range(0, count, step)
    axes.yaxis.set_major_locator(FixedLocator(list(rows)))
    axes.set_yticklabels([level.groups[row] for row in rows], fontsize="small")
    axes.set_ylabel(level.name)
    axes.grid(visible=False)
    return image
