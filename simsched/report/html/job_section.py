"""The wait of one job in a page: its causes over time, and the jobs that held the short resources.

The page works it out for any job from packed columns, by the rule of `wait_totals`: at each time the
scarcest type that was short, and otherwise the queue policy or the placement (`assets/job.js`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import RunError
from simsched.report import palette
from simsched.report.html.islands import NEVER, pack, ticks
from simsched.report.waiting.job_answer import SHORT
from simsched.report.waiting.wait_totals import NOT_ELIGIBLE, POLICY, needed_units, waiting_jobs

if TYPE_CHECKING:
    from simsched.report.data.tables import RunTables
    from simsched.report.html.islands import Islands


def packed_waits(run: RunTables, tick: float, islands: Islands) -> dict[str, Any] | None:
    """Return the data by which the page explains waits: names, colours, and the packed columns of all jobs.

    None if the timeline does not have the free units.
    """
    try:
        jobs, types, submit, eligible, end = waiting_jobs(run)
    except RunError:
        return None
    count, rows = len(run.jobs), jobs.index.to_numpy()
    columns = {name: np.full(count, NEVER, dtype=np.int64) for name in ("wait", "run")}
    columns |= {name: np.zeros(count, dtype=np.int64) for name in ("held", *(f"need_{t}" for t in types))}
    columns["wait"][rows] = ticks(end - submit, tick)
    columns["held"][rows] = ticks(eligible - submit, tick)
    length = (run.jobs["end"].fillna(np.inf) - run.jobs["start"]).to_numpy(dtype=np.float64)
    # a job that still runs holds its units for ever; one that did not start holds none
    columns["run"] = np.where(run.jobs["start"].isna(), 0, ticks(length, tick))
    for at, needs in enumerate(needed_units(run, types, jobs).T):
        columns[f"need_{types[at]}"][rows] = needs.astype(np.int64)
    down = {f"down_{t}": run.timeline[f"down_{t}"].to_numpy() for t in types if f"down_{t}" in run.timeline}
    columns |= {name: units for name, units in down.items() if units.any()}
    known = run.path is not None and run.has_allocations
    return {
        "types": [[t, run.totals[t], f"{SHORT} of {t}", _colour(t)] for t in types],
        "eligible": [NOT_ELIGIBLE, palette.GREY],
        "policy": [POLICY, palette.PURPLE],
        "command": shlex.join(("simsched", "why", run.path.name)) if known and run.path else "",
        "data": islands.add(pack(columns)),
    }


def _colour(type_: str) -> str:
    return palette.TYPE.get(type_, palette.VERMILION)


def panel(prefix: str) -> str:
    """Return the panel that explains one job, which the reader chooses."""
    return (
        f'<section class="panel" id="{prefix}-job" tabindex="-1"><div class="head">'
        "<h2>Why one job waited</h2>"
        f'<form class="tools ask" id="{prefix}-ask"><label>Job <input id="{prefix}-id" size="10" '
        'autocomplete="off"></label><button>Show</button></form></div>'
        '<p class="note">Enter the id of a job, choose one in the table of the longest waits, or click a job'
        f' in the chart of the nodes.</p><div id="{prefix}-answer" aria-live="polite"></div></section>'
    )
