"""The machine room in a page: racks, switches … over time, and the nodes at one time, by a slider.

The states of the nodes and groups are packed; `assets/room.js` draws them for the chosen level, fact
and time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, LinearColorMapper, Range1d
from bokeh.models.annotations.geometry import Span

from simsched import human
from simsched.errors import RunError
from simsched.report import palette
from simsched.report.data.machine_room import BLOCK, STATES, room_of
from simsched.report.html import markup
from simsched.report.html.charts import colour_bar, empty_chart, over_time_chart
from simsched.report.html.islands import pack

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from simsched.arrays import Floats
    from simsched.report.data.machine_room import MachineRoom
    from simsched.report.data.tables import RunTables
    from simsched.report.html.charts import Charts, Figure
    from simsched.report.html.islands import Islands

UNKNOWN = 255
"""The packed value of a share that is not defined."""
NO_GROUP = 65535
WORDS = {"failure": "failed", "drain": "drained", "maintenance": "in maintenance", "down": "down"}
MARKS = {"failure": "x", "drain": "dash", "maintenance": "square", "down": "cross"}
SIGNS = {"failure": "✕", "drain": "–", "maintenance": "□", "down": "+"}


def section(
    run: RunTables, prefix: str, drawn: Charts, x_range: Range1d, time: str, islands: Islands
) -> tuple[str, dict[str, Any] | None]:
    """Return the panels of the room and their data for the page; add the charts.

    Both are empty for a run without its nodes or allocations.
    """
    if run.nodes.empty or not run.has_allocations:
        return "", None
    try:
        room = room_of(run)
    except RunError:  # for example more rows than memory should hold; the tables of the machine say so
        return "", None
    drawn.add(f"{prefix}-roomtime", _time_chart(prefix, x_range, time))
    drawn.add(f"{prefix}-room", _room_chart(prefix, room))
    names = {"hosts": room.nodes["host"].astype(str).tolist(),
             "groups": [list(level.groups) for level in room.levels]}  # fmt: skip
    spec = {
        "bins": len(room.edges) - 1,
        "from": float(room.edges[0]),
        "until": float(room.edges[-1]),
        "levels": [level.name for level in room.levels],
        "blocks": room.levels[0].name == BLOCK,
        "kind": human.plural(room.kind),
        "states": [[WORDS[state], MARKS[state]] for state in STATES],
        "data": islands.add(pack(_columns(room))),
        "names": islands.add_json(names),
    }
    return _panels(prefix, room), spec


def _columns(room: MachineRoom) -> dict[str, npt.NDArray[Any]]:
    columns = {"use": _percent(room.use()), "state": _states(room)}
    for number, level in enumerate(room.levels):
        out = np.clip(sum((room.unavailable(level, s) for s in room.out), np.zeros((1, 1))), 0, 1)
        shape = (len(level.groups), len(room.edges) - 1)
        columns |= {
            f"of_{number}": np.where(level.of_node < 0, NO_GROUP, level.of_node),
            f"use_{number}": _percent(room.use(level)),
            f"out_{number}": _percent(np.broadcast_to(out, shape)),
            f"broken_{number}": _percent(room.fragmentation(level)),
        }
    return columns


def _percent(shares: Floats) -> npt.NDArray[np.int64]:
    """Return shares as whole per cent, row after row."""
    known = np.isfinite(shares)
    return np.where(known, np.rint(100 * np.where(known, shares, 0)), UNKNOWN).astype(np.int64).ravel()


def _states(room: MachineRoom) -> npt.NDArray[np.int64]:
    """Return 0, or 1 + the position of the state that takes most of a bin of a node."""
    shares = np.stack([room.out.get(state, np.zeros_like(room.used)) for state in STATES])
    most = shares.argmax(axis=0) + 1
    return np.where(shares.max(axis=0) > 0, most, 0).astype(np.int64).ravel()


def _time_chart(prefix: str, x_range: Range1d, time: str) -> Figure:
    rows = Range1d(start=0, end=1, name=f"{prefix}-roomtime-rows")
    chart = over_time_chart(x_range, time, "", rows, 280)
    source = ColumnDataSource(
        {"image": [np.zeros((1, 1), np.float32)], "x": [0], "y": [0], "dw": [1], "dh": [1]},
        name=f"{prefix}-roomtime-image",
    )
    mapper = LinearColorMapper(palette="Cividis256", low=0, high=100, nan_color="rgba(0, 0, 0, 0)")
    drawn = chart.image("image", x="x", y="y", dw="dw", dh="dh", source=source, color_mapper=mapper)
    colour_bar(chart, drawn, "%")
    chart.add_layout(
        Span(dimension="height", location=0, line_color=palette.VERMILION, line_width=2,
             name=f"{prefix}-room-now")
    )  # fmt: skip
    chart.yaxis.name = f"{prefix}-roomtime-names"
    chart.yaxis.ticker = FixedTicker(ticks=[])
    chart.add_tools(HoverTool(renderers=[drawn], tooltips=[("", "@image{0} %")]))
    chart.grid.grid_line_alpha = 0
    return chart


def _room_chart(prefix: str, room: MachineRoom) -> Figure:
    chart = empty_chart(
        "", "", 320, x_range=Range1d(start=0, end=1, name=f"{prefix}-room-x"),
        y_range=Range1d(start=1, end=0, name=f"{prefix}-room-y"), name=f"{prefix}-room-chart",
    )  # fmt: skip

    def source(name: str, *columns: str) -> ColumnDataSource:
        return ColumnDataSource({column: [] for column in columns}, name=f"{prefix}-room-{name}")

    mapper = LinearColorMapper(palette="Cividis256", low=0, high=100, nan_color=palette.GREY)
    nodes = source("nodes", "x", "y", "use", "host", "group", "told", "state")
    cells = chart.rect("x", "y", 0.9, 0.9, source=nodes, line_color=None,
                       fill_color={"field": "use", "transform": mapper})  # fmt: skip
    chart.scatter("x", "y", marker="mark", size="size", source=source("marks", "x", "y", "mark", "size"),
                  line_color=palette.VERMILION, fill_color=None, line_width=2)  # fmt: skip
    chart.text("x", "y", "text", source=source("labels", "x", "y", "text"), text_font_size="11px")
    colour_bar(chart, cells, "%")
    told = [("node", "@host"), ("in", "@group"), (f"{human.plural(room.kind)} in use", "@told"),
            ("state", "@state")]  # fmt: skip
    chart.add_tools(HoverTool(renderers=[cells], tooltips=told))
    chart.axis.visible = False
    chart.grid.grid_line_alpha = 0
    return chart


def _panels(prefix: str, room: MachineRoom) -> str:
    names = ((str(number), level.name) for number, level in enumerate(room.levels))
    levels = _select(f"{prefix}-room-level", "Group by", names)
    known = {"use": f"{human.plural(room.kind)} in use"}
    known |= {"out": "unavailable"} if room.out else {}
    known |= {"broken": "fragmentation"} if room.broken.any() else {}
    facts = _select(f"{prefix}-room-fact", "Show", known.items())
    over = (
        "Means of parts of the time, per group. Unavailable: failed, drained, in maintenance or down."
        " Fragmentation: share of the free units that are on partly used nodes; blank if none is free."
    )
    slider = (
        f'<p class="slide"><button id="{prefix}-room-play" aria-pressed="false">Play</button>'
        f'<label for="{prefix}-room-at">Time</label>'
        f'<input type="range" id="{prefix}-room-at" min="0" max="{len(room.edges) - 2}" value="0">'
        f'<output id="{prefix}-room-when" for="{prefix}-room-at"></output></p>'
    )
    keys = "".join(f'<span class="key"><b>{SIGNS[s]}</b>{WORDS[s]}</span>' for s in room.out)
    at = f"One cell per node, by its use at the time of the slider. {keys}"
    return markup.panel(
        "The machine room over time", f"{prefix}-roomtime", over, markup.zoom_tools(levels + facts), keys=True
    ) + markup.panel("The machine room at one time", f"{prefix}-room", at, above=slider)


def _select(place: str, label: str, options: Iterable[tuple[str, str]]) -> str:
    made = "".join(f'<option value="{value}">{text}</option>' for value, text in options)
    return f'<label>{label} <select id="{place}">{made}</select></label>'
