"""The charts of a page over time: Gantt, use and queue, with one common range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simsched import human
from simsched.report import palette
from simsched.report.columns import COLOURS, HELD, RESULTS
from simsched.report.data.gantt import Chart, chart
from simsched.report.data.gantt_view import MAX_JOBS_SHOWN
from simsched.report.data.series import binned, busiest, types_in_use
from simsched.report.html import job_section, markup, room_section
from simsched.report.html.charts import QUEUE_LINES, Charts, time_charts
from simsched.report.html.islands import Packed, pack, tick_of, ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.report.data.tables import RunTables
    from simsched.report.html.islands import Islands

#: most jobs of which a page has each by itself; of more jobs, those that held most for longest
MOST_JOBS = 100_000
#: most boxes of a Gantt chart; of more boxes, those with the largest area are kept
MAX_BOXES = 300_000
#: most rows of the timeline; of more rows, the means of as many equal parts of time
MOST_ROWS = 60_000


def over_time(
    run: RunTables, prefix: str, drawn: Charts, charts: list[dict[str, Any]], islands: Islands
) -> str:
    """Return the panels of a run over time; append their charts, and their packed data to the islands."""
    shown, left_out = largest_jobs(run)
    gantt = chart(shown)
    submits = _submits(run)
    origin = float(np.nanmin(np.append(submits, run.timeline["time"].min())))
    busy = run.timeline["time"][run.timeline["running_jobs"] > 0]  # nodes may be repaired long after
    last = float(np.nanmax([run.jobs["end"].max(), busy.max(), origin + 1]))
    times = run.jobs[["start", "end"]].assign(submit=submits).to_numpy() - origin
    # all columns of a run share one tick, so that the page compares times as integers
    line = thinned(run.timeline)
    tick = tick_of(np.concatenate([times.ravel(), line["time"].to_numpy() - origin]))
    seconds, unit = human.time_unit(last - origin)
    kinds = types_in_use(run)
    clock = run.clock
    label = f"time since the first submission ({unit})" if clock is None else f"local time ({clock.zone})"
    x_range = time_charts(drawn, prefix, (last - origin) / seconds, label, gantt, kinds)
    room, room_spec = (
        ("", None) if left_out else room_section.section(run, prefix, drawn, x_range, label, islands)
    )
    spec = {
        "prefix": prefix,
        "unit": unit,
        "unit_seconds": seconds,
        "tick": tick,
        "end": (last - origin) / seconds,
        "rows": gantt.rows,
        "row": gantt.row,
        "kinds": [[k, run.totals[k]] for k in kinds],
        **_names(shown),
    }
    if clock is not None:
        changes = [[clock.origin + at, ahead] for at, ahead in clock.offsets(origin, last)]
        spec["clock"] = {"origin": clock.origin + origin, "offsets": changes}
    codes = {result: code for code, result in enumerate(RESULTS)}
    results = shown.jobs["result"].astype("object").map(codes).fillna(0)
    spec["islands"] = {
        "line": islands.add(_packed_line(line, kinds, origin, tick)),
        "boxes": islands.add(_packed_rects(gantt.boxes, origin, tick)),
        "jobs": islands.add(_packed_jobs(shown, origin, tick)),
        "results": islands.add(pack({"result": results.to_numpy(dtype=np.int64)})),
        "ids": islands.add_json([] if spec["ids_count"] else shown.jobs["id"].astype(str).tolist()),
    }
    if room_spec is not None:
        spec["room"] = room_spec
        for end in ("from", "until"):
            room_spec[end] = (room_spec[end] - origin) / seconds
    spec["waits"] = None if left_out else job_section.packed_waits(run, tick, islands)
    charts.append({"time": spec})
    asked = "" if left_out else job_section.panel(prefix, run)
    means = ""
    if len(line) < len(run.timeline):
        means = f" Means of {len(line):,} equal parts of the time; the queue is the longest in each."
    return _gantt_panel(prefix, gantt, left_out) + asked + _time_panels(prefix, kinds, means) + room


def largest_jobs(run: RunTables) -> tuple[RunTables, str]:
    """Return the run with the `MOST_JOBS` jobs that held most for longest, and a sentence on the others.

    The sentence is empty for a run with fewer jobs, which is returned as it is.
    """
    count = len(run.jobs)
    if count <= MOST_JOBS:
        return run, ""
    jobs = run.jobs
    kind = next((kind for kind in ("core", "node") if (jobs[HELD[kind]] > 0).any()), "node")
    end = jobs["end"].fillna(float(run.timeline["time"].iloc[-1])).to_numpy(dtype=np.float64)
    held = np.nan_to_num(jobs[HELD[kind]].to_numpy() * (end - jobs["start"].to_numpy(dtype=np.float64)))
    rows = np.sort(np.argsort(-held, kind="stable")[:MOST_JOBS])
    share = human.share(held[rows].sum() / held.sum()) if held.sum() > 0 else human.share(0.0)
    sentence = (
        f"This run has {count:,} jobs. The chart of the nodes has the {MOST_JOBS:,} that held most {kind}s"
        f" for longest, which is {share} of all {kind} hours, so that it shows less use than there was; the"
        " charts and tables below are of all jobs. The machine room, the tables of the"
        " machine and the waits of single jobs are left out:"
        " see <code>simsched plot room RUN</code> and <code>simsched why RUN JOB</code>."
    )
    return run.of_jobs(rows), sentence


def thinned(timeline: pd.DataFrame) -> pd.DataFrame:
    """Return a timeline of at most `MOST_ROWS` rows: means over equal parts of time, and longest queues."""
    if len(timeline) <= MOST_ROWS:
        return timeline
    edges = np.linspace(timeline["time"].iloc[0], timeline["time"].iloc[-1], MOST_ROWS)
    made = {"time": edges}
    for name in map(str, timeline.columns.drop("time")):
        queue = name.startswith("queued")
        parts = busiest(timeline, name, edges) if queue else binned(timeline, name, MOST_ROWS - 1)[1]
        made[name] = np.append(parts, timeline[name].iloc[-1])
    return pd.DataFrame(made)


def _gantt_panel(prefix: str, gantt: Chart, left_out: str) -> str:
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
    if left_out:
        note = f"{left_out} {note}"
    title = f"{gantt.title} (Gantt)"
    return markup.panel(title, f"{prefix}-gantt", note, markup.zoom_tools(choose), keys=True)


def _time_panels(prefix: str, kinds: Sequence[str], means: str) -> str:
    zoom = markup.zoom_tools()
    types = markup.colour_key((palette.TYPE.get(k, palette.GREY), human.plural(k)) for k in kinds)
    use = markup.panel("In use over time", f"{prefix}-use", types + means, zoom, keys=True)
    lines = markup.colour_key(QUEUE_LINES.values())
    return use + markup.panel("Queue over time", f"{prefix}-queue", lines + means, zoom, keys=True)


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
        "users": _coded(run.jobs["user"])[1],
        "queues": _coded(run.jobs["queue"])[1],
        "results": list(RESULTS),
        "result_colours": [palette.RESULT[r] for r in RESULTS],
    }


def _coded(values: pd.Series[Any]) -> tuple[np.ndarray, list[str]]:
    """Return category codes and the names of the categories; unknown values have the code after the last."""
    coded = (values if isinstance(values.dtype, pd.CategoricalDtype) else values.astype("category")).cat
    codes = np.where(coded.codes < 0, len(coded.categories), coded.codes).astype(np.int64)
    return codes, [str(name) for name in coded.categories]


def _packed_line(frame: pd.DataFrame, kinds: Sequence[str], origin: float, tick: float) -> Packed:
    columns = {"time": ticks(frame["time"].to_numpy() - origin, tick)}
    for name in (*(f"used_{k}" for k in kinds), "queued_jobs", "queued_cores", "running_jobs"):
        columns[name] = frame[name].to_numpy()
    return pack(columns, frozenset({"time"}))


def _packed_rects(rects: pd.DataFrame, origin: float, tick: float) -> Packed:
    """Pack the rectangles, of too many those with the largest area."""
    if len(rects) > MAX_BOXES:
        areas = ((rects["end"] - rects["start"]) * (rects["high"] - rects["low"])).to_numpy()
        kept = np.argpartition(areas, -MAX_BOXES)[-MAX_BOXES:]
        rects = rects.iloc[np.sort(kept)]
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
            "user": _coded(jobs["user"])[0],
            "queue": _coded(jobs["queue"])[0],
            "nodes": jobs["nodes"].to_numpy(),
            "cores": jobs["cores"].to_numpy(),
        }
    )
