"""The section of one run in a page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from simsched import human
from simsched.report import palette
from simsched.report.data.series import curve
from simsched.report.html import machine_section, markup, waits_section
from simsched.report.html.charts import Charts, cdf_chart, heat_chart
from simsched.report.html.time_section import MOST_JOBS, over_time
from simsched.report.metrics import metrics as m
from simsched.report.metrics.agreement import agreement
from simsched.report.metrics.classes import run_time_class, size_class, weekday_hour, weekdays
from simsched.report.metrics.summary import metric
from simsched.report.recorded_waits import replay_sentences, sentences
from simsched.report.text_report import beyond_the_machine, dates_of

if TYPE_CHECKING:
    from simsched.report.data.tables import RunTables
    from simsched.report.html.islands import Islands


def run_section(run: RunTables, prefix: str, charts: list[dict[str, Any]], islands: Islands) -> str:
    """Return the section of one run; append its charts, and their packed data to the islands."""
    done = m.measured(run.jobs)
    parts = [_title(run, prefix), markup.cards(run)]
    if len(done):
        drawn = Charts()
        parts += [
            _recorded(run, prefix),
            over_time(run, prefix, drawn, charts, islands),
            _distributions(run, done, prefix, drawn),
            waits_section.section(run, done, prefix),
            "" if len(run.jobs) > MOST_JOBS else machine_section.section(run, prefix, drawn),
            _groups(run, done, prefix),
        ]
        charts[-1].update(drawn.as_json(run.name))
    else:
        parts.append("<p>No job of this run started and ended, so there are no charts.</p>")
    if len(run.reasons):
        parts.append(_reasons(run.reasons, prefix))
    parts.append(_configuration(run, prefix))
    return f'<section class="run" id="run-{prefix}">{"".join(parts)}</section>'


def _title(run: RunTables, prefix: str) -> str:
    policy = [str(run.config[k]) for k in ("queue_policy", "match_policy") if run.config.get(k)]
    units, dates = ", ".join(human.units(run.totals)), dates_of(run, run.jobs)
    facts = [run.cluster_name, units, " and ".join(policy), dates]
    lead = escape(" · ".join(filter(None, facts)))
    beyond = "".join(f"<p>{escape(text)}</p>" for text in beyond_the_machine(run, run.jobs))
    return f'<h1 id="top-{prefix}">{escape(run.name)}</h1><p class="lead">{lead}</p>{beyond}'


def _recorded(run: RunTables, prefix: str) -> str:
    """Return the recorded beside the simulated waits of the same jobs; empty for a log without starts."""
    found = agreement(run.jobs)
    if found is None:
        return ""
    columns = (("mean", "s"), ("median", "s"), ("95 %", "s"), ("mean bounded slowdown", ""))
    sides = (("recorded", found.recorded), ("simulated", found.simulated))
    rows = [[name, side.mean, side.median, side.p95, side.slowdown] for name, side in sides]
    note = f"The {found.jobs:,} jobs whose start the log has: {'; '.join(sentences(found))}."
    replay = run.meta.get("replay")
    played = "" if not replay else f"{'. '.join(replay_sentences(replay, run.clock))}."
    note = f"{note} {played[:1].upper()}{played[1:]}".rstrip()
    title = "Recorded and simulated waits"
    return markup.table(f"{prefix}-recorded", title, (("wait", "text"), *columns), rows, note)


def _distributions(run: RunTables, done: pd.DataFrame, prefix: str, drawn: Charts) -> str:
    blue = [palette.BLUE]
    drawn.add(f"{prefix}-waits", cdf_chart({"wait": curve(done["wait"], 1.0)}, "wait", blue, "time"))
    slow = {"bounded slowdown": curve(done["bounded_slowdown"], 1.0)}
    drawn.add(f"{prefix}-slow", cdf_chart(slow, "bounded slowdown", blue))
    classes = done.assign(size_class=size_class(done), length_class=run_time_class(done))
    mean = classes.pivot_table(
        index="size_class", columns="length_class", values="wait", aggfunc="mean", observed=True
    )
    drawn.add(f"{prefix}-heat", heat_chart(mean, "run time", "cores", "mean wait", "s"))
    hours = weekday_hour(done["submit"], run.clock).assign(work=m.area(done) / 3600)
    load = hours.pivot_table(index="weekday", columns="hour", values="work", aggfunc="sum")
    load.index = pd.Index([weekdays(run.clock)[int(d)] for d in load.index])
    load = load.iloc[::-1]
    of = ", counted from the start of the trace" if run.clock is None else f" ({run.clock.zone})"
    hour_chart = heat_chart(load, f"hour of the day{of}", "", "core hours submitted", "core h")
    drawn.add(f"{prefix}-load", hour_chart)
    heat = "The mean wait is in each cell. Colours are logarithmic; waits below 1 s have that of 1 s."
    panels = (
        ("Waits", "waits", "Share of jobs that waited no longer; waits below 1 s count as 1 s."),
        ("Bounded slowdown", "slow", "turnaround / max(run time, 10 s), at least 1."),
        ("Mean wait by size and run time", "heat", heat),
        ("Work submitted by hour of the week", "load", "Core hours."),
    )
    made = "".join(markup.panel(title, f"{prefix}-{place}", note) for title, place, note in panels)
    return f'<div class="pair">{made}</div>'


def _groups(run: RunTables, done: pd.DataFrame, prefix: str) -> str:
    tables = []
    for name, title, key, frame in (
        ("queues", "By queue", "queue", run.queues),
        ("users", "By user", "user", run.users),
        ("sizes", "By cores", "cores", m.by(done, size_class(done))),
        ("lengths", "By run time", "run time", m.by(done, run_time_class(done))),
    ):
        more = (("recorded kWh", ""),) if m.RECORDED_KWH in frame else ()
        head = ((key, "text"), *markup.GROUP_HEAD, *more)
        tables.append(markup.table(f"{prefix}-{name}", title, head, markup.group_rows(frame)))
    return "".join(tables)


def _reasons(reasons: pd.DataFrame, prefix: str) -> str:
    head = (("reason", "text"), ("result", "text"), ("jobs", ""), ("for example", "text"))
    rows = reasons[["reason", "result", "jobs", "example"]].to_numpy(dtype=object).tolist()
    return markup.table(f"{prefix}-reasons", "Why jobs did not run or end well", head, rows)


def _configuration(run: RunTables, prefix: str) -> str:
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
    head = [(name, "text") for name in ("figure", "value", "meaning")]
    every = markup.table(f"{prefix}-figures", "All figures", head, figures)
    return every + markup.table(
        f"{prefix}-config", "Configuration", (("option", "text"), ("value", "text")), rows
    )
