"""The part of a page about waits: hours by cause, queue and user, the short types, the longest waits."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from simsched import human
from simsched.errors import RunError
from simsched.report.html import markup
from simsched.report.html.job_section import has_waits
from simsched.report.html.time_section import MOST_JOBS
from simsched.report.waiting.job_answer import jobs_of
from simsched.report.waiting.wait_totals import GROUPS, binding, totals_by, wait_table

if TYPE_CHECKING:
    import pandas as pd

    from simsched.report.data.tables import RunTables

MOST = 100
"""Jobs in the table of the longest waits."""


def section(run: RunTables, done: pd.DataFrame, prefix: str) -> str:
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
