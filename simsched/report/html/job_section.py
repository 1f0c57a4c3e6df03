"""The wait of one job in a page: its causes over time, and the jobs that held the short resources.

The page has the periods of all jobs in packed columns (`assets/job.js`), as `wait_causes` finds them.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import RunError
from simsched.report import palette
from simsched.report.html.islands import NEVER, pack, ticks
from simsched.report.waiting.job_answer import Cause
from simsched.report.waiting.wait_totals import find_causes

if TYPE_CHECKING:
    from simsched.report.data.tables import RunTables
    from simsched.report.html.islands import Islands


MOST_CHANGES = 2_000_000
"""Periods of all waits that a page has at most; under FCFS each end of a job may begin one in each wait."""


def changes(run: RunTables) -> int | None:
    """Return the number of periods of all waits; None if the timeline does not have the free units."""
    try:
        causes, _ = find_causes(run)
    except RunError:
        return None
    return sum(len(wait.codes) for wait in causes.waits)


def has_waits(run: RunTables) -> bool:
    """Whether a page explains the waits of single jobs: it knows them, and there is room."""
    found = changes(run)
    return found is not None and found <= MOST_CHANGES


def packed_waits(run: RunTables, tick: float, islands: Islands) -> dict[str, Any] | None:
    """Return the data by which the page explains waits: names, colours, and the packed columns of all jobs.

    `first` is the place of the first period of each job, and that behind the last one; `until` are the ends
    of the periods since the submission, and `cause` their causes.  None if it has none (`has_waits`).
    """
    if not has_waits(run):
        return None
    causes, reason = find_causes(run)
    count, rows = len(run.jobs), causes.waiting
    columns = {"wait": np.full(count, NEVER, dtype=np.int64)}
    columns["wait"][rows] = ticks((causes.end - causes.submit)[rows], tick)
    length = (run.jobs["end"].fillna(np.inf) - run.jobs["start"]).to_numpy(dtype=np.float64)
    # a job that still runs holds its units for ever; one that did not start holds none
    columns["run"] = np.where(run.jobs["start"].isna(), 0, ticks(length, tick))
    waits = sorted(causes.waits, key=lambda wait: wait.row)
    number = np.zeros(count + 1, dtype=np.int64)
    number[[wait.row + 1 for wait in waits]] = [len(wait.codes) for wait in waits]
    columns["first"] = np.cumsum(number)
    ends = [ticks(wait.ends - causes.submit[wait.row], tick) for wait in waits]
    columns["until"] = np.concatenate([np.empty(0, dtype=np.int64), *ends])
    columns["cause"] = np.concatenate([np.empty(0, dtype=np.int64), *(wait.codes for wait in waits)])
    known = not reason and run.path is not None
    return {
        "types": [[t, f"{Cause.SHORT} of {t}"] for t in causes.types],
        "causes": [[cause, palette.of_cause(cause)] for cause in causes.names],
        "command": shlex.join(("simsched", "why", run.path.name)) if known and run.path else "",
        "data": islands.add(pack(columns, frozenset({"first"}))),
    }


def panel(prefix: str, run: RunTables) -> str:
    """Return the panel that explains one job, which the reader chooses, or says where it is explained."""
    found = changes(run)
    if found is None:
        return ""
    if found > MOST_CHANGES:
        return (
            '<section class="panel"><h2>Why one job waited</h2><p class="note">The causes of all waits have '
            f"{found:,} periods, and a page has room for {MOST_CHANGES:,}: see "
            "<code>simsched why RUN JOB</code>.</p></section>"
        )
    return (
        f'<section class="panel" id="{prefix}-job" tabindex="-1"><div class="head">'
        "<h2>Why one job waited</h2>"
        f'<form class="tools ask" id="{prefix}-ask"><label>Job <input id="{prefix}-id" size="10" '
        'autocomplete="off"></label><button>Show</button></form></div>'
        '<p class="note">Enter the id of a job, choose one in the table of the longest waits, or click a job'
        f' in the chart of the nodes.</p><div id="{prefix}-answer" aria-live="polite"></div></section>'
    )
