"""The section of one run in a page: its distributions, waits, groups, machine and configuration."""

from __future__ import annotations

import math
import shlex
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simsched import human
from simsched.errors import RunError
from simsched.report import palette
from simsched.report.columns import HELD
from simsched.report.data.series import curve
from simsched.report.groups import heading
from simsched.report.html import markup
from simsched.report.html.charts import Charts, cdf_chart, heat_chart, map_chart
from simsched.report.html.job_section import has_waits
from simsched.report.html.time_section import MOST_JOBS, over_time
from simsched.report.metrics import machine_use
from simsched.report.metrics import metrics as m
from simsched.report.metrics.agreement import agreement
from simsched.report.metrics.classes import run_time_class, size_class, weekday_hour, weekdays
from simsched.report.metrics.summary import metric
from simsched.report.recorded_waits import replay_sentences, sentences
from simsched.report.text_report import beyond_the_machine, dates_of
from simsched.report.waiting.job_answer import jobs_of
from simsched.report.waiting.wait_totals import GROUPS, binding, totals_by, wait_table

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
            waits_tables(run, done, prefix),
            "" if len(run.jobs) > MOST_JOBS else _machine(run, prefix, drawn),
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


# --- waits: hours by cause, queue and user, the short types, the longest waits


MOST = 100
"""Jobs in the table of the longest waits."""


def waits_tables(run: RunTables, done: pd.DataFrame, prefix: str) -> str:
    """Return the tables of the waits of a run; `done` has the jobs that ran, with their waits."""
    try:
        table: pd.DataFrame | None = wait_table(run)
    except RunError:  # the timeline of the run does not tell which types were short
        table = None
    if table is None or not table.to_numpy().sum() > 0:
        return _longest(run, done, None, prefix)
    return _causes(run, table, prefix) + _short(table, prefix) + _longest(run, done, table, prefix)


def _causes(run: RunTables, table: pd.DataFrame, prefix: str) -> str:
    """Return the hours waited by cause, of all jobs and by queue and user."""
    total = table.sum().sort_values(ascending=False, kind="stable")
    causes = [str(cause) for cause in total.index if total[cause] > 0]
    whole = float(total.sum())
    rows = [
        [cause, total[cause] / 3600, total[cause] / whole, int((table[cause] > 0).sum())] for cause in causes
    ]
    note = f"{jobs_of(len(table))} waited {whole / 3600:,.1f} hours in all."
    head = (("cause", "text"), ("waited", "h"), ("share of waits", "share"), ("jobs", ""))
    made = [markup.table(f"{prefix}-causes", "Waits by cause", head, rows, note)]
    for name in GROUPS:
        groups = totals_by(run, table, name)[causes]
        if len(groups) > 1:
            columns = [(name, "text"), ("waited", "h"), *((cause, "h") for cause in causes)]
            lines = [[key, sum(row), *row] for key, *row in markup.group_rows(groups)]
            made.append(markup.table(f"{prefix}-causes-{name}", f"Waits by cause and {name}", columns, lines))
    return "".join(made)


def _short(table: pd.DataFrame, prefix: str) -> str:
    """Return the types that were short: the table of what to buy."""
    needed = binding(table)
    needed = needed[needed["job_hours"] > 0]
    if needed.empty:
        return ""
    head = (("short type", "text"), ("job hours", "h"), ("jobs", ""), ("share of waits", "share"))
    note = "More units of the first type would have helped for the most hours."
    rows = markup.group_rows(needed)
    return markup.table(f"{prefix}-short", "Resources that were short", head, rows, note)


def _longest(run: RunTables, done: pd.DataFrame, table: pd.DataFrame | None, prefix: str) -> str:
    rows = done.nlargest(MOST, "wait")
    head = [("job", "text"), ("user", "text"), ("queue", "text"), ("wait", "s"), ("run time", "s"),
            ("requested", "s"), ("nodes", ""), ("cores", ""), ("result", "text")]  # fmt: skip
    columns = ["id", "user", "queue", "wait", "run_time", "duration", "nodes", "cores", "result"]
    texts = rows[columns].astype({"user": "object", "queue": "object"}).fillna({"user": "-", "queue": "-"})
    lines = texts.to_numpy(dtype=object).tolist()
    linked = table is not None and len(run.jobs) <= MOST_JOBS and has_waits(run)
    if linked:
        head[0] = ("job", "link")
        for line in lines:
            line[0] = (f"{prefix}-job={line[0]}".replace("%", "%25"), str(line[0]))
    if run.clock is not None:
        head.append((f"submitted ({run.clock.zone})", "text"))
        dates = map(run.clock.text, rows["submit"].tolist())
        lines = [[*line, date] for line, date in zip(lines, dates, strict=True)]
    note = f"{len(rows)} jobs." + " Choose a job to see its wait." * linked
    if table is not None:
        head.insert(4, ("causes", "text"))
        causes = table.reindex(rows.index)
        for line, row in zip(lines, causes.to_dict("records"), strict=True):
            line.insert(4, _shares({str(cause): seconds for cause, seconds in row.items()}))
    if run.path is not None and run.has_allocations:
        head.append(("explained by", "text"))
        folder = run.path.name
        lines = [[*line, shlex.join(("simsched", "why", folder, name))]
                 for line, name in zip(lines, rows["id"].astype(str), strict=True)]  # fmt: skip
        note += " The command in the last column names the jobs in the way."
    return markup.table(f"{prefix}-longest", "The longest waits", head, lines, note)


def _shares(seconds: dict[str, float]) -> str:
    """Return the causes of a wait with their shares, the largest first."""
    whole = sum(seconds.values())
    ordered = sorted(seconds.items(), key=lambda item: -item[1])
    parts = [f"{cause} {human.share(value / whole)}" for cause, value in ordered if value > 0]
    return ", ".join(parts) or human.MISSING


# --- the machine: its map, the use of its parts, the locality of jobs


#: most nodes of a map
MAX_NODES = 20_000


def _machine(run: RunTables, prefix: str, drawn: Charts) -> str:
    """Return the tables of the machine and add its map; empty without nodes or allocations."""
    if run.nodes.empty or not run.has_allocations:
        return ""
    try:
        held = run.allocations
    except RunError as error:  # for example more rows than memory should hold
        return f'<p class="note">No tables of the machine: {error.message}.</p>'
    parts = [_map(run, held, prefix, drawn)]
    if run.nodes["properties"].map(len).any():
        parts.append(_use(run, held, "property", prefix))
    places = machine_use.distinct_places(run.nodes)
    parts += [_use(run, held, place, prefix) for place in places]
    if places:
        parts.append(_locality(run, held, prefix))
    return "".join(parts)


def _map(run: RunTables, held: pd.DataFrame, prefix: str, drawn: Charts) -> str:
    """Return one cell per node, and a note about the balance of their use."""
    if len(run.nodes) > MAX_NODES:
        return ""
    kind = machine_use.main_kind(run.nodes)
    table = machine_use.node_use(run.nodes, held, run.window)
    found = machine_use.use_balance(run.nodes, held, run.window, kind)
    shares = table.assign(share=100 * table[machine_use.USE + kind]).reset_index()
    width = min(math.ceil(math.sqrt(2.6 * len(shares))), len(shares))
    drawn.add(f"{prefix}-map", map_chart(shares, width, f"{human.plural(kind)} in use"))
    idle = f"{found.unused:,} were never used" if found.unused else "every node was used at least once"
    note = (
        f"Share of each node's {human.plural(kind)} in use over the makespan, by rank."
        f" The Jain index of the nodes is {human.number(found.jain)} (1 is even); {idle}."
    )
    return markup.panel("The nodes by use", f"{prefix}-map", note)


def _use(run: RunTables, held: pd.DataFrame, key: str, prefix: str) -> str:
    table = machine_use.use_by(run.nodes, held, run.window, key)
    uses = [c for c in map(str, table) if c.startswith(machine_use.USE)]
    unused = {c for c in uses if c.removeprefix(machine_use.USE) not in HELD and not np.nansum(table[c]) > 0}
    shown = [c for c in map(str, table) if c not in unused]
    head = [(key, "text"), *((heading(c), "share" if c in uses else "") for c in shown)]
    note = "Groups may overlap. Capacity is that of the nodes that were up when the run began."
    rows = markup.group_rows(table[shown])
    return markup.table(f"{prefix}-by-{key}", f"Use by {key}", head, rows, note if key == "property" else "")


def _locality(run: RunTables, held: pd.DataFrame, prefix: str) -> str:
    table = machine_use.locality(run.nodes, held)
    head = (("type", "text"), ("number", ""), ("jobs on several nodes", ""), ("spanned, mean", ""),
            ("spanned / fewest possible, mean", "ratio"), ("in the fewest possible", "share"))  # fmt: skip
    note = "Racks, switches … that contain the nodes of a job, against the fewest that its nodes need."
    return markup.table(f"{prefix}-locality", "Locality of jobs", head, markup.group_rows(table), note)
