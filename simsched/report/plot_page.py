"""The sections of an HTML report: what is charted of a run, and of several against each other."""

from __future__ import annotations

import json
import math
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simsched.report import html, human, palette, plot_bokeh, plot_machine
from simsched.report import metrics as m
from simsched.report.classes import has_dates, run_time_class, size_class, weekday_hour, weekdays
from simsched.report.columns import RESULTS
from simsched.report.compare import Comparison, compare_runs, paired, same_jobs
from simsched.report.gantt import Chart, chart
from simsched.report.packed import Packed, pack, tick_of, ticks
from simsched.report.series import types_in_use
from simsched.report.summary import metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.report.tables import Run

#: boxes of a Gantt chart at most; of more, those with the largest area are kept
MAX_BOXES = 1_500_000
#: points of a curve of a distribution
POINTS = 400


def run_section(run: Run, prefix: str, charts: list[dict[str, Any]]) -> str:
    """Return the section of one run and append its charts."""
    done = m.measured(run.jobs)
    parts = [_title(run, prefix), html.cards(run)]
    if len(done):
        drawn = plot_bokeh.Charts()
        parts += [_over_time(run, prefix, drawn, charts), _distributions(done, prefix, drawn)]
        parts += [
            plot_machine.section(run, prefix, drawn),
            _groups(run, done, prefix),
            _longest(done, prefix),
        ]
        charts[-1].update(drawn.as_json(run.name))
    else:
        parts.append("<p>No job of this run started and ended, so there is nothing to chart.</p>")
    if len(run.reasons):
        parts.append(_reasons(run.reasons, prefix))
    parts.append(_configuration(run, prefix))
    return f'<section class="run" id="run-{prefix}">{"".join(parts)}</section>'


def _title(run: Run, prefix: str) -> str:
    policy = [str(run.config[k]) for k in ("queue_policy", "match_policy") if run.config.get(k)]
    told = [run.cluster_name, ", ".join(human.units(run.totals)), " and ".join(policy)]
    lead = escape(" · ".join(filter(None, told)))
    return f'<h1 id="top-{prefix}">{escape(run.name)}</h1><p class="lead">{lead}</p>'


# ---- charts over time -------------------------------------------------------------------


def _over_time(run: Run, prefix: str, drawn: plot_bokeh.Charts, charts: list[dict[str, Any]]) -> str:
    gantt = chart(run)
    origin = float(np.nanmin([run.jobs["submit"].min(), run.timeline["time"].min()]))
    last = float(np.nanmax([run.jobs["end"].max(), run.timeline["time"].max(), origin + 1]))
    times = run.jobs[["submit", "start", "end"]].to_numpy() - origin
    tick = tick_of(np.concatenate([times.ravel(), run.timeline["time"].to_numpy() - origin]))
    seconds, unit = human.time_unit(last - origin)
    kinds = types_in_use(run)
    plot_bokeh.time_charts(drawn, prefix, (last - origin) / seconds, unit, gantt, kinds)
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
    charts.append({"time": spec})
    islands = [_island(f"{prefix}-line", _packed_line(run, kinds, origin, tick))]
    kept = _largest(gantt.boxes)
    islands.append(_island(f"{prefix}-rects", _packed_rects(kept, origin, tick)))
    islands.append(_island(f"{prefix}-jobs", _packed_jobs(run, origin, tick)))
    ids = [] if spec["ids_count"] else run.jobs["id"].astype(str).tolist()
    text = plot_bokeh.dump(ids)
    islands.append(f'<script type="application/json" id="{prefix}-ids">{text}</script>')
    return _time_panels(prefix, gantt) + "".join(islands)


def _time_panels(prefix: str, gantt: Chart) -> str:
    options = "".join(f'<option value="{k}">{k}</option>' for k in ("job", "user", "queue", "result", "size"))
    choose = f'<label>Colour by <select id="{prefix}-colour">{options}</select></label>'
    boxes = len(gantt.boxes)
    note = f'<span id="{prefix}-view" aria-live="polite">{boxes:,} boxes</span>'
    if boxes > MAX_BOXES:
        note += f"; the {MAX_BOXES:,} largest of {boxes:,} are drawn"
    note += ". Drag to move; buttons, keys or Ctrl and the wheel zoom; the charts below follow."
    if gantt.row != "rank":
        note += (
            " This run was made without its allocations: jobs are packed from the bottom. How many"
            f" {gantt.row}s they held is true; on which nodes is not known."
        )
    note += f' <span id="{prefix}-key"></span>'
    zoom, title = html.zoom_tools(), f"{gantt.title} (Gantt)"
    return (
        html.panel(title, f"{prefix}-gantt", note, html.zoom_tools(choose), keys=True)
        + html.panel("In use over time", f"{prefix}-use", "", zoom, keys=True)
        + html.panel("Queue over time", f"{prefix}-queue", "", zoom, keys=True)
    )


def _names(run: Run) -> dict[str, Any]:
    """Return what codes of users, queues and results stand for, and how ids are counted."""
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
    """Return category codes; what is unknown has the code after the last."""
    coded = _coded(values).cat
    return np.where(coded.codes < 0, len(coded.categories), coded.codes).astype(np.int64)


def _packed_line(run: Run, kinds: Sequence[str], origin: float, tick: float) -> Packed:
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


def _packed_jobs(run: Run, origin: float, tick: float) -> Packed:
    jobs = run.jobs
    results = {r: i for i, r in enumerate(RESULTS)}
    return pack(
        {
            "submit": ticks(jobs["submit"].to_numpy() - origin, tick),
            "user": _codes(jobs["user"]),
            "queue": _codes(jobs["queue"]),
            "result": jobs["result"].astype("object").map(results).fillna(0).to_numpy(dtype=np.int64),
            "nodes": jobs["nodes"].to_numpy(),
            "cores": jobs["cores"].to_numpy(),
        }
    )


def _island(name: str, packed: Packed) -> str:
    return html.island(name, json.dumps(packed.fields), packed.text)


# ---- distributions and groups -----------------------------------------------------------


def curve(values: pd.Series[float], least: float | None) -> pd.DataFrame:
    """Return the distribution of values as points: value and share of values up to it.

    Values below `least` are drawn at it, for a logarithmic axis.
    """
    known = np.sort(values[np.isfinite(values)].to_numpy(dtype=np.float64))
    if not len(known):
        return pd.DataFrame({"value": [], "share": []})
    shares = np.unique(np.concatenate([np.linspace(0, 1, POINTS), 1 - np.geomspace(1 / len(known), 1, 40)]))
    at = known[np.clip(np.ceil(shares * len(known)).astype(int) - 1, 0, len(known) - 1)]
    share = np.searchsorted(known, at, side="right") / len(known)
    value = at if least is None else np.maximum(at, least)
    return pd.DataFrame({"value": value, "share": share}).drop_duplicates("value", keep="last")


def _distributions(done: pd.DataFrame, prefix: str, drawn: plot_bokeh.Charts) -> str:
    blue = [palette.BLUE]
    drawn.add(
        f"{prefix}-waits", plot_bokeh.cdf_chart({"wait": curve(done["wait"], 1.0)}, "wait", blue, "time")
    )
    slow = {"bounded slowdown": curve(done["bounded_slowdown"], 1.0)}
    drawn.add(f"{prefix}-slow", plot_bokeh.cdf_chart(slow, "bounded slowdown", blue))
    classes = done.assign(size_class=size_class(done), length_class=run_time_class(done))
    mean = classes.pivot_table(
        index="size_class", columns="length_class", values="wait", aggfunc="mean", observed=True
    )
    heat = plot_bokeh.heat_chart(mean, "run time", "cores", "mean wait (s)", "s", log=True)
    drawn.add(f"{prefix}-heat", heat)
    hours = weekday_hour(done["submit"]).assign(work=m.area(done) / 3600)
    load = hours.pivot_table(index="weekday", columns="hour", values="work", aggfunc="sum")
    first = float(done["submit"].min())
    load.index = pd.Index([weekdays(first)[int(d)] for d in load.index])
    load = load.iloc[::-1]
    hour = "hour of the day (UTC)" if has_dates(first) else "hour of the day, by the trace's clock"
    drawn.add(f"{prefix}-load", plot_bokeh.heat_chart(load, hour, "", "core hours submitted", "core h"))
    panels = (
        html.panel("Waits", f"{prefix}-waits", "Share of jobs that waited no longer; 1 s and less are one."),
        html.panel("Bounded slowdown", f"{prefix}-slow", "turnaround / max(run time, 10 s), at least 1."),
        html.panel("Mean wait by size and run time", f"{prefix}-heat", "Seconds, logarithmic colours."),
        html.panel("Work submitted by hour of the week", f"{prefix}-load", "Core hours."),
    )
    return f'<div class="pair">{"".join(panels)}</div>'


def _groups(run: Run, done: pd.DataFrame, prefix: str) -> str:
    tables = []
    for name, title, key, frame in (
        ("queues", "By queue", "queue", run.queues),
        ("users", "By user", "user", run.users),
        ("sizes", "By cores", "cores", m.by(done, size_class(done))),
        ("lengths", "By run time", "run time", m.by(done, run_time_class(done))),
    ):
        head = ((key, "text"), *html.GROUP_HEAD)
        tables.append(html.table(f"{prefix}-{name}", title, head, html.group_rows(frame)))
    return "".join(tables)


def _longest(done: pd.DataFrame, prefix: str) -> str:
    rows = done.nlargest(100, "wait")
    head = (("job", "text"), ("user", "text"), ("queue", "text"), ("wait", "s"), ("run time", "s"),
            ("requested", "s"), ("nodes", ""), ("cores", ""), ("result", "text"))  # fmt: skip
    columns = ["id", "user", "queue", "wait", "run_time", "duration", "nodes", "cores", "result"]
    texts = rows[columns].astype({"user": "object", "queue": "object"}).fillna({"user": "-", "queue": "-"})
    lines = texts.to_numpy(dtype=object).tolist()
    return html.table(f"{prefix}-longest", "The longest waits", head, lines, f"{len(rows)} jobs.")


def _reasons(reasons: pd.DataFrame, prefix: str) -> str:
    head = (("reason", "text"), ("result", "text"), ("jobs", ""), ("for example", "text"))
    rows = reasons[["reason", "result", "jobs", "example"]].to_numpy(dtype=object).tolist()
    return html.table(f"{prefix}-reasons", "Why jobs did not run, or not end well", head, rows)


def _configuration(run: Run, prefix: str) -> str:
    keep = ("simsched", "created", "seed", "wall_seconds", "jobs_per_second")
    rows = [[k, run.meta[k]] for k in keep if k in run.meta]
    rows += [[k, v] for k, v in run.config.items() if not isinstance(v, dict | list)]
    rows += [
        [f"{i.get('role')} sha256", f"{i.get('name')} {i.get('sha256')}"] for i in run.meta.get("inputs", [])
    ]
    figures = [
        [n.replace("_", " "), human.quantity(v, metric(n).unit), metric(n).meaning]
        for n, v in run.summary.items()
    ]
    told = html.table(
        f"{prefix}-figures",
        "All figures",
        (("figure", "text"), ("value", "text"), ("meaning", "text")),
        figures,
    )
    return told + html.table(
        f"{prefix}-config", "How it was made", (("what", "text"), ("value", "text")), rows
    )


# ---- comparison -------------------------------------------------------------------------


def comparison(runs: Sequence[Run], charts: list[dict[str, Any]]) -> str:
    """Return the section that sets the runs side by side and append its charts."""
    colours = palette.cycle(len(runs))
    pairs = [compare_runs(runs[0], run) for run in runs[1:]]
    drawn = plot_bokeh.Charts()
    done = {name: m.measured(run.jobs) for name, run in zip(distinct(runs), runs, strict=True)}
    waits = {name: curve(frame["wait"], 1.0) for name, frame in done.items()}
    drawn.add("cmp-waits", plot_bokeh.cdf_chart(waits, "wait", colours, "time"))
    slow = {name: curve(frame["bounded_slowdown"], 1.0) for name, frame in done.items()}
    drawn.add("cmp-slow", plot_bokeh.cdf_chart(slow, "bounded slowdown", colours))
    means = [m.describe(frame["wait"])["mean"] for frame in done.values()]
    known = [0.0 if math.isnan(v) else v / 3600 for v in means]
    drawn.add("cmp-means", plot_bokeh.bar_chart(list(done), known, "mean wait (h)", colours))
    moved = _moved(runs)
    drawn.add(
        "cmp-moved", plot_bokeh.cdf_chart(moved, "wait less the first run's (h)", colours[1:], "linear")
    )
    charts.append(drawn.as_json("comparison"))
    note = "Left of 0: the job waits less than in the first run. 1 % at either end is left out."
    key = _key(runs, colours)
    panels = (
        html.panel("Waits", "cmp-waits", f"Share of jobs that waited no longer. {key}"),
        html.panel("Bounded slowdown", "cmp-slow", f"turnaround / max(run time, 10 s), at least 1. {key}"),
        html.panel("Mean wait", "cmp-means", "Hours."),
        html.panel(
            f"Job by job against {runs[0].name}", "cmp-moved", f"{note} {_key(runs[1:], colours[1:])}"
        ),
    )
    return (
        f'<section class="run" id="comparison"><h1>{len(runs)} runs compared</h1><p class="lead">{key}</p>'
        f"{_verdicts(runs, pairs)}{_figures(runs)}"
        f'<div class="pair">{"".join(panels)}</div></section>'
    )


def _key(runs: Sequence[Run], colours: Sequence[str]) -> str:
    """Return which colour is which run."""
    return "".join(
        f'<span class="key"><i style="background:{c}"></i>{escape(r.name)}</span>'
        for r, c in zip(runs, colours, strict=True)
    )


def distinct(runs: Sequence[Run]) -> list[str]:
    """Return the runs' names, those that repeat an earlier one numbered."""
    names: list[str] = []
    for run in runs:
        again = sum(r.name == run.name for r in runs[: len(names)])
        names.append(f"{run.name} ({again + 1})" if again else run.name)
    return names


def _moved(runs: Sequence[Run]) -> dict[str, pd.DataFrame]:
    found = {}
    for name, run in list(zip(distinct(runs), runs, strict=True))[1:]:
        jobs = run.jobs if same_jobs(runs[0], run) else run.jobs.iloc[:0]
        hours = paired(runs[0].jobs, jobs)["wait_difference"] / 3600
        low, high = (hours.quantile(0.01), hours.quantile(0.99)) if len(hours) else (0.0, 0.0)
        all_ = curve(hours, None)
        found[name] = all_[all_["value"].between(low, high)]
    return found


def _verdicts(runs: Sequence[Run], pairs: Sequence[Comparison]) -> str:
    lines = []
    for run, found in zip(runs[1:], pairs, strict=True):
        if not found.jobs:
            lines.append(f"<li>{escape(run.name)} has no job in common with {escape(runs[0].name)}.</li>")
            continue
        low, high = human.seconds(found.wait.low), human.seconds(found.wait.high)
        lines.append(
            f"<li><strong>{escape(run.name)}</strong> against {escape(runs[0].name)}: {found.verdict}."
            f" Over {found.jobs:,} jobs the mean wait differs by {human.seconds(found.wait.estimate)}"
            f" (95 % interval {low} to {high}, bootstrap over days); {human.share(found.sooner)} of the jobs"
            f" start sooner, {human.share(found.later)} later.</li>"
        )
    return f'<section class="panel"><h2>In words</h2><ul class="verdicts">{"".join(lines)}</ul></section>'


def _figures(runs: Sequence[Run]) -> str:
    """Return the table of all figures, a column a run, the better and the worse ones marked."""
    names = list(dict.fromkeys(name for run in runs for name in run.summary))
    lines = []
    for name in names:
        values = [run.summary.get(name, math.nan) for run in runs]
        if not any(math.isfinite(v) and v for v in values):
            continue
        known = metric(name)
        cells = "".join(
            _figure(v, values[0], known.unit, known.better, first=i == 0) for i, v in enumerate(values)
        )
        title = escape(known.meaning)
        lines.append(
            f'<tr><td class="text" title="{title}">{escape(name.replace("_", " "))}</td>{cells}</tr>'
        )
    heads = "".join(
        f'<th scope="col" aria-sort="none"><button>{escape(n)}</button></th>'
        for n in ["figure", *(r.name for r in runs)]
    )
    return (
        '<section class="panel"><div class="head"><h2>All figures</h2><div class="tools">'
        '<button data-save-table="cmp-figures" title="Download this table">CSV</button></div></div>'
        f'<p class="note">Per cent: against {escape(runs[0].name)}; in colour where better or worse.</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="All figures"><table id="cmp-figures">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table></div></section>"
    )


def _figure(value: float, base: float, unit: str, better: int, *, first: bool) -> str:
    shown = escape(human.quantity(value, unit))
    change = ""
    if not first and math.isfinite(value) and math.isfinite(base) and base and value != base:
        moved = value / base - 1
        kind = "" if not better else "better" if moved * better > 0 else "worse"
        change = f' <small class="{kind}">{"+" if moved > 0 else "-"}{human.share(abs(moved))}</small>'
    plain = f"{value:.10g}" if math.isfinite(value) else ""
    return f'<td data-v="{plain}">{shown}{change}</td>'
