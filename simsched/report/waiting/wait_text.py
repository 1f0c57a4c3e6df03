"""The hours waited in a run as text for a terminal and as JSON data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, cast

from simsched import human
from simsched.report.waiting.job_answer import jobs_of
from simsched.report.waiting.wait_totals import GROUPS, binding, totals_by
from simsched.text_table import fitted_table, table_lines

if TYPE_CHECKING:
    import pandas as pd

    from simsched.report.data.tables import RunTables

MOST_ROWS, MOST_CAUSES = 8, 12
"""Queues or users, and causes, that are printed."""


def run_text(run: RunTables, table: pd.DataFrame, width: int) -> str:
    """Return the hours waited in a run by cause, queue and user, and the types that were short."""
    total = float(table.to_numpy().sum())
    lines = [f"{run.name}: {jobs_of(len(table))} waited {total / 3600:,.1f} hours in all"]
    if not total:
        return lines[0]
    sums = table.sum().sort_values(ascending=False, kind="stable")
    rows = [
        (f"{value / 3600:,.1f} h", human.share(value / total), str(cause))
        for cause, value in sums.items()
        if value
    ]
    rest = len(rows) - MOST_CAUSES
    if rest > 0:
        rows[MOST_CAUSES:] = [("", "", f"{rest:,} more cause{'s' * (rest > 1)} (--format json lists them)")]
    lines += ["", *table_lines(rows, right=(0, 1), indent="  ")]
    causes = [str(cause) for cause, value in sums.items() if value][:MOST_CAUSES]
    for name in GROUPS:
        groups = totals_by(run, table, name).head(MOST_ROWS)
        if len(groups) > 1:
            lines += ["", fitted_table([f"hours by {name}", *causes], _cells(groups, causes), width)]
    needed = binding(table)
    needed = needed[needed["job_hours"] > 0]
    if len(needed):
        body = [
            (str(type_), f"{row['job_hours']:,.1f}", f"{int(row['jobs']):,}", human.share(row["share"]))
            for type_, row in needed.iterrows()
        ]
        lines += ["", fitted_table(["short type", "job hours", "jobs", "share of waits"], body, width)]
    return "\n".join(lines)


def _cells(groups: pd.DataFrame, causes: list[str]) -> list[tuple[str, ...]]:
    return [(str(name), *(f"{row[cause]:,.1f}" for cause in causes)) for name, row in groups.iterrows()]


class ShortType(TypedDict):
    """A type of resource that was short.

    job_hours : hours that jobs waited for it.
    jobs : number of these jobs.
    share : share of all waited hours.
    """

    type: str
    job_hours: float
    jobs: int
    share: float


class WaitedHours(TypedDict):
    """The hours waited in a run.

    jobs : number of jobs.
    hours : hours by cause.
    by_queue, by_user : queue or user: hours by cause.
    short : the types that were short, the one for which jobs waited longest first.
    """

    run: str
    jobs: int
    hours: dict[str, float]
    by_queue: dict[str, dict[str, float]]
    by_user: dict[str, dict[str, float]]
    short: list[ShortType]


def run_document(run: RunTables, table: pd.DataFrame) -> WaitedHours:
    """Return the hours waited in a run as JSON data."""
    hours: Any = totals_by(run, table).loc["all"].to_dict()
    queues: Any
    users: Any
    queues, users = (totals_by(run, table, name).to_dict(orient="index") for name in GROUPS)
    return {
        "run": run.name,
        "jobs": len(table),
        "hours": hours,
        "by_queue": queues,
        "by_user": users,
        "short": cast("list[ShortType]", binding(table).reset_index().to_dict(orient="records")),
    }
