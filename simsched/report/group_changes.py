"""Two runs compared by queue, user or class of jobs: the mean wait of each group, and the difference."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from simsched import human
from simsched.report.compare import Interval, compare, noise_text, same_jobs
from simsched.report.groups import PARTS
from simsched.report.metrics.classes import GROUPS
from simsched.report.metrics.metrics import ran, wait
from simsched.text_table import PAGE_WIDTH, fitted_table, markdown_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.report.data.tables import RunTables

LEAST_JOBS = 10
"""Jobs of a group from which the interval of its difference is computed."""


def changes(first: RunTables, second: RunTables, key: str) -> pd.DataFrame:
    """Return one row per group of jobs: the mean waits (s) in two runs, and their difference.

    Columns: jobs_first, jobs_second (that ran), wait_first, wait_second, difference (second less first),
    and low and high, the 95 % interval of the difference job by job. A job is in the group that it has in
    its run. The interval is NaN for runs of different jobs and for groups of fewer than ten.
    """
    sides = [_by_group(run, key) for run in (first, second)]
    paired = same_jobs(first, second)
    names = list(dict.fromkeys(name for side in sides for name in side))
    rows = []
    for name in names:
        a, b = (side.get(name, first.jobs.iloc[:0]) for side in sides)
        low = high = math.nan
        if paired and min(len(a), len(b)) >= LEAST_JOBS:
            interval = compare(a, b).wait
            low, high = interval.low, interval.high
        means = [float(wait(jobs).mean()) if len(jobs) else math.nan for jobs in (a, b)]
        rows.append([len(a), len(b), *means, means[1] - means[0], low, high])
    columns = ["jobs_first", "jobs_second", "wait_first", "wait_second", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=columns, index=pd.Index(names, name=key))


def _by_group(run: RunTables, key: str) -> dict[str, pd.DataFrame]:
    jobs = ran(run.jobs)
    groups = GROUPS[key](jobs, run.clock)
    return {str(name): rows for name, rows in jobs.groupby(groups, observed=True)}


def change_texts(runs: Sequence[RunTables], key: str, *, markdown: bool = False) -> str:
    """Return a table of each further run against the first; empty for one run or parts of the machine."""
    if key in PARTS:
        return ""
    base, *others = runs
    made = []
    for run in others:
        head = [key, f"jobs, {base.name}", f"jobs, {run.name}", f"wait, {base.name}", f"wait, {run.name}"]
        head += ["difference", "95 % between", "verdict"]
        rows = [
            [name, f"{int(row['jobs_first']):,}", f"{int(row['jobs_second']):,}",
             human.seconds(row["wait_first"]), human.seconds(row["wait_second"]),
             human.signed_seconds(row["difference"]), between(row["low"], row["high"]), verdict(row)]
            for name, row in changes(base, run, key).iterrows()
        ]  # fmt: skip
        body = [[str(cell) for cell in row] for row in rows]
        table = markdown_table(head, body) if markdown else fitted_table(head, body, PAGE_WIDTH)
        gap = "\n" if markdown else ""  # Markdown has an empty line before a table
        made.append(f"\n{run.name} against {base.name}: mean waits\n{gap}{table}\n")
    return "".join(made)


def verdict(row: Any) -> str:
    """Return ``within noise`` for a row of `changes` whose interval contains zero."""
    return noise_text(Interval(row["difference"], row["low"], row["high"]))


def between(low: float, high: float) -> str:
    """Return the ends of an interval of times; a dash if it is unknown."""
    known = math.isfinite(low) and math.isfinite(high)
    return f"{human.signed_seconds(low)} and {human.signed_seconds(high)}" if known else human.MISSING
