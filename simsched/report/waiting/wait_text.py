"""Answers about waits as text for a terminal and as JSON data."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.report.waiting.job_wait import CAUSES, DEPENDENCY, ORDER, RESERVATION, SHORT
from simsched.report.waiting.limit_replay import LIMIT
from simsched.report.waiting.wait_totals import GROUPS, binding, totals_by
from simsched.text_table import fitted_table, table_lines

if TYPE_CHECKING:
    import pandas as pd

    from simsched.report.data.tables import Run
    from simsched.report.waiting.job_wait import JobWait, WaitPeriod

MOST_PERIODS = 25
"""Periods that are printed; a longer list is cut in the middle."""
MOST_ROWS = 8
"""Queues or users that are printed."""
_WITH_A_JOB = {
    DEPENDENCY: "waited for job {}",
    RESERVATION: "fitted, but might have delayed job {}, which had the reservation",
    ORDER: "fitted, but job {} was before it in the queue",
}


def job_text(answer: JobWait) -> str:
    """Return the answer about one job."""
    lines = [_head(answer), _life(answer)]
    if answer.wait > 0:
        lines += ["", *_causes(answer)]
        lines += ["", *table_lines([("from", "for", "cause"), *_periods(answer.periods)], indent="  ")]
    if answer.holders:
        lines += ["", "resources that were short were held by", *_holders(answer)]
    lines += ["", *_others(answer)]
    if answer.sooner:
        lines += ["it would have fitted sooner", *(f"  {change}" for change in answer.sooner)]
    return "\n".join(lines)


def _head(answer: JobWait) -> str:
    facts = [f"user {answer.user}" * bool(answer.user), f"queue {answer.queue}" * bool(answer.queue)]
    who = ", ".join(filter(None, facts))
    limit = "no limit" if answer.limit == float("inf") else f"limit {human.seconds(answer.limit)}"
    return f"job {answer.id}{f' ({who})' if who else ''}: {answer.shape or 'request unknown'}, {limit}"


def _life(answer: JobWait) -> str:
    submitted = f"submitted at {human.moment(answer.submit)}"
    if answer.start is None:
        return (
            f"{submitted}, never started, waited {human.seconds(answer.wait)} to its end or that of the run"
        )
    if answer.wait == 0:
        return f"{submitted}, started at once"
    return f"{submitted}, started at {human.moment(answer.start)}, waited {human.seconds(answer.wait)}"


def _causes(answer: JobWait) -> list[str]:
    rows = [
        (human.seconds(seconds), human.share(seconds / answer.wait), cause, meaning_of(cause))
        for cause, seconds in answer.by_cause().items()
    ]
    return table_lines(rows, right=(0, 1))


def meaning_of(cause: str) -> str:
    """Return the sentence of a cause."""
    return CAUSES.get(cause, CAUSES[LIMIT if cause.startswith(f"{LIMIT} ") else SHORT])


def _periods(periods: tuple[WaitPeriod, ...]) -> list[tuple[str, str, str]]:
    rows = [(human.moment(p.start), human.seconds(p.length), _sentence(p)) for p in periods]
    if len(rows) <= MOST_PERIODS:
        return rows
    half = MOST_PERIODS // 2
    between = f"{len(rows) - 2 * half:,} more periods (--format json lists them)"
    return [*rows[:half], ("…", "", between), *rows[-half:]]


def _sentence(period: WaitPeriod) -> str:
    if period.job is not None and period.cause in _WITH_A_JOB:
        return _WITH_A_JOB[period.cause].format(period.job)
    return period.cause


def _holders(answer: JobWait) -> list[str]:
    rows = [("job", "user", "units", "unit hours", "until")]
    rows += [
        (
            holder.id,
            holder.user,
            f"{holder.units:,}",
            f"{holder.unit_seconds / 3600:,.1f}",
            human.moment(holder.until),
        )
        for holder in answer.holders
    ]
    return table_lines(rows, right=(2, 3), indent="  ")


def _others(answer: JobWait) -> list[str]:
    (waiting, theirs), (running, left) = answer.ahead, answer.running
    lines = [
        f"at its submission {_jobs(waiting)} waited before it, requesting {theirs / 3600:,.1f} node hours",
        f"{_jobs(running)} ran, with {left / 3600:,.1f} node hours left by their limits",
    ]
    later, backfilled = answer.passed
    if later:
        by = f", {backfilled:,} of them by backfill" if backfilled else ""
        lines.append(f"{_jobs(later)} submitted later started before it{by}")
    return lines


def _jobs(number: int) -> str:
    return f"{number:,} job{'' if number == 1 else 's'}"


def job_document(answer: JobWait) -> dict[str, Any]:
    """Return the answer about one job as JSON data; an unlimited time is null."""
    found = asdict(answer)
    found["wait"], found["by_cause"] = answer.wait, answer.by_cause()
    found["limit"] = None if answer.limit == float("inf") else answer.limit
    for holder in found["holders"]:
        holder["until"] = None if holder["until"] == float("inf") else holder["until"]
    return found


def run_text(run: Run, table: pd.DataFrame, width: int) -> str:
    """Return the hours waited in a run by cause, queue and user, and the types that were short."""
    total = float(table.to_numpy().sum())
    lines = [f"{run.name}: {_jobs(len(table))} waited {total / 3600:,.1f} hours in all"]
    if not total:
        return lines[0]
    sums = table.sum().sort_values(ascending=False, kind="stable")
    rows = [
        (f"{value / 3600:,.1f} h", human.share(value / total), str(cause))
        for cause, value in sums.items()
        if value
    ]
    lines += ["", *table_lines(rows, right=(0, 1), indent="  ")]
    causes = [str(cause) for cause, value in sums.items() if value]
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


def run_document(run: Run, table: pd.DataFrame) -> dict[str, Any]:
    """Return the hours waited in a run as JSON data."""
    found: dict[str, Any] = {
        "run": run.name,
        "jobs": len(table),
        "hours": totals_by(run, table).loc["all"].to_dict(),
    }
    for name in GROUPS:
        found[f"by_{name}"] = totals_by(run, table, name).to_dict(orient="index")
    found["short"] = binding(table).reset_index().to_dict(orient="records")
    return found
