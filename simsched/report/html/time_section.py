"""The charts of a page over time: Gantt, use and queue, with one common range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simsched import human
from simsched.report import palette
from simsched.report.columns import COLOURS, RESULTS
from simsched.report.data.gantt import Chart, chart
from simsched.report.data.gantt_view import MAX_JOBS_SHOWN
from simsched.report.data.series import types_in_use
from simsched.report.html import job_section, markup, room_section
from simsched.report.html.charts import QUEUE_LINES, Charts, time_charts
from simsched.report.html.islands import Packed, pack, tick_of, ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.report.data.tables import RunTables
    from simsched.report.html.islands import Islands

#: most boxes of a Gantt chart; of more boxes, those with the largest area are kept
MAX_BOXES = 1_500_000


def over_time(
    run: RunTables, prefix: str, drawn: Charts, charts: list[dict[str, Any]], islands: Islands
) -> str:
    """Return the panels of a run over time; append their charts, and their packed data to the islands."""
    gantt = chart(run)
    submits = _submits(run)
    origin = float(np.nanmin(np.append(submits, run.timeline["time"].min())))
    busy = run.timeline["time"][run.timeline["running_jobs"] > 0]  # nodes may be repaired long after
    last = float(np.nanmax([run.jobs["end"].max(), busy.max(), origin + 1]))
    times = run.jobs[["start", "end"]].assign(submit=submits).to_numpy() - origin
    # all columns of a run share one tick, so that the page compares times as integers
    tick = tick_of(np.concatenate([times.ravel(), run.timeline["time"].to_numpy() - origin]))
    seconds, unit = human.time_unit(last - origin)
    kinds = types_in_use(run)
    clock = run.clock
    label = f"time since the first submission ({unit})" if clock is None else f"local time ({clock.zone})"
    x_range = time_charts(drawn, prefix, (last - origin) / seconds, label, gantt, kinds)
    room, room_spec = room_section.section(run, prefix, drawn, x_range, label, islands)
    spec = {
        "prefix": prefix,
        "unit": unit,
        "unit_seconds": seconds,
        "tick": tick,
        "end": (last - origin) / seconds,
        "rows": gantt.rows,
        "row": gantt.row,
        "kinds": [[k, run.totals[k]] for k in kinds],
        **_names(run),
    }
    if clock is not None:
        changes = [[clock.origin + at, ahead] for at, ahead in clock.offsets(origin, last)]
        spec["clock"] = {"origin": clock.origin + origin, "offsets": changes}
    spec["islands"] = {
        "line": islands.add(_packed_line(run, kinds, origin, tick)),
        "boxes": islands.add(_packed_rects(_largest(gantt.boxes), origin, tick)),
        "jobs": islands.add(_packed_jobs(run, origin, tick)),
        "results": islands.add(_packed_results(run)),
        "ids": islands.add_json([] if spec["ids_count"] else run.jobs["id"].astype(str).tolist()),
    }
    if room_spec is not None:
        spec["room"] = room_spec
        for end in ("from", "until"):
            room_spec[end] = (room_spec[end] - origin) / seconds
    spec["waits"] = job_section.packed_waits(run, tick, islands)
    charts.append({"time": spec})
    asked = job_section.panel(prefix) if spec["waits"] else ""
    return _gantt_panel(prefix, gantt) + asked + _time_panels(prefix, kinds) + room


def _gantt_panel(prefix: str, gantt: Chart) -> str:
    many = len(gantt.boxes) > MAX_JOBS_SHOWN
    names = {"use": "use of nodes" if gantt.row == "rank" else f"use of {gantt.row}s"}
    options = "".join(
        f'<option value="{k}"{" selected" * (k == ("use" if many else "job"))}>{names.get(k, k)}</option>'
        for k in ("use", *COLOURS)
    )
    choose = f'<label>Colour by <select id="{prefix}-colour">{options}</select></label>'
    boxes = len(gantt.boxes)
    note = f'<span id="{prefix}-view" aria-live="polite">{boxes:,} boxes</span>'
    if boxes > MAX_BOXES:
        note += f"; the {MAX_BOXES:,} largest of {boxes:,} are drawn"
    note += ". Drag to move; buttons, keys or Ctrl and the wheel zoom; the charts below follow."
    if gantt.row != "rank":
        note += (
            " This run was made without its allocations: jobs are packed from the bottom. The number of"
            f" {gantt.row}s of a job is true; its nodes are not known."
        )
    note += f' <span id="{prefix}-key"></span>'
    title = f"{gantt.title} (Gantt)"
    return markup.panel(title, f"{prefix}-gantt", note, markup.zoom_tools(choose), keys=True)


def _time_panels(prefix: str, kinds: Sequence[str]) -> str:
    zoom = markup.zoom_tools()
    types = markup.colour_key((palette.TYPE.get(k, palette.GREY), human.plural(k)) for k in kinds)
    use = markup.panel("In use over time", f"{prefix}-use", types, zoom, keys=True)
    lines = markup.colour_key(QUEUE_LINES.values())
    return use + markup.panel("Queue over time", f"{prefix}-queue", lines, zoom, keys=True)


def _names(run: RunTables) -> dict[str, Any]:
    """Return the names behind the codes of users, queues and results, and the numbering of ids."""
    ids = run.jobs["id"]
    first, counted = 0, False
    if len(ids) and str(ids.iloc[0]).isdigit():
        first = int(ids.iloc[0])
        counted = first < 2**31 and ids.tolist() == [str(first + i) for i in range(len(ids))]
    return {
        "ids_first": first,
        "ids_count": len(ids) if counted else 0,
        "users": _categories(run.jobs["user"]),
        "queues": _categories(run.jobs["queue"]),
        "results": list(RESULTS),
        "result_colours": [palette.RESULT[r] for r in RESULTS],
    }


def _coded(values: pd.Series[Any]) -> pd.Series[Any]:
    return values if isinstance(values.dtype, pd.CategoricalDtype) else values.astype("category")


def _categories(values: pd.Series[Any]) -> list[str]:
    return [str(c) for c in _coded(values).cat.categories]


def _codes(values: pd.Series[Any]) -> np.ndarray:
    """Return category codes; unknown values have the code after the last."""
    coded = _coded(values).cat
    return np.where(coded.codes < 0, len(coded.categories), coded.codes).astype(np.int64)


def _packed_line(run: RunTables, kinds: Sequence[str], origin: float, tick: float) -> Packed:
    frame = run.timeline
    columns = {"time": ticks(frame["time"].to_numpy() - origin, tick)}
    for name in (*(f"used_{k}" for k in kinds), "queued_jobs", "queued_cores", "running_jobs"):
        columns[name] = frame[name].to_numpy()
    return pack(columns, frozenset({"time"}))


def _largest(rects: pd.DataFrame) -> pd.DataFrame:
    if len(rects) <= MAX_BOXES:
        return rects
    areas = ((rects["end"] - rects["start"]) * (rects["high"] - rects["low"])).to_numpy()
    kept = np.argpartition(areas, -MAX_BOXES)[-MAX_BOXES:]
    return rects.iloc[np.sort(kept)].reset_index(drop=True)


def _packed_rects(rects: pd.DataFrame, origin: float, tick: float) -> Packed:
    start = ticks(rects["start"].to_numpy() - origin, tick)
    columns = {
        "start": start,
        "length": ticks(rects["end"].to_numpy() - origin, tick) - start,
        "low": rects["low"].to_numpy(),
        "tall": (rects["high"] - rects["low"]).to_numpy(),
        "job": rects["job"].to_numpy(),
    }
    return pack(columns, frozenset({"start"}))


def _submits(run: RunTables) -> npt.NDArray[np.float64]:
    """Return the submit times of the jobs; those of ignored records count as unknown.

    A slice of a log has the ignored records of the whole log, which may be far from its jobs.
    """
    return np.where(run.jobs["result"] == "DROPPED", np.nan, run.jobs["submit"])


def _packed_jobs(run: RunTables, origin: float, tick: float) -> Packed:
    """Pack the columns of the workload, which are equal in all its runs."""
    jobs = run.jobs
    return pack(
        {
            "submit": ticks(_submits(run) - origin, tick),
            "user": _codes(jobs["user"]),
            "queue": _codes(jobs["queue"]),
            "nodes": jobs["nodes"].to_numpy(),
            "cores": jobs["cores"].to_numpy(),
        }
    )


def _packed_results(run: RunTables) -> Packed:
    codes = {r: i for i, r in enumerate(RESULTS)}
    found = run.jobs["result"].astype("object").map(codes).fillna(0)
    return pack({"result": found.to_numpy(dtype=np.int64)})
