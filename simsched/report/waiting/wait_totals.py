"""The waits of all jobs of a run by cause, by queue, by user, over time: sums of the answers on single jobs.

`wait_causes` finds the causes of all jobs as it does those of one.  `run_text` and `run_document` are the
hours as text for a terminal and as JSON data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np
import pandas as pd

from simsched import human
from simsched.errors import SimschedError
from simsched.report.metrics.metrics import NO_KEY
from simsched.report.waiting.job_answer import Cause, jobs_of
from simsched.report.waiting.wait_causes import WaitCauses
from simsched.text_table import fitted_table, table_lines

if TYPE_CHECKING:
    from simsched.arrays import Floats
    from simsched.graph.cluster import Cluster
    from simsched.report.data.tables import RunTables
    from simsched.workload.job import Workload


GROUPS = ("queue", "user")


def find_causes(
    run: RunTables, cluster: Cluster | None = None, workload: Workload | None = None
) -> tuple[WaitCauses, str]:
    """Return the causes of the waits of a run, and why only its tables could be asked ("" if all could).

    `cluster` and `workload` are the inputs of the run; without them they are read again.

    Raises
    ------
    RunError
        if only the tables can be asked, and they do not have the free units of the types of the cluster.
    """
    given = cluster is not None and workload is not None
    known: tuple[WaitCauses, str] | None = None if given else run.__dict__.get("wait_causes")
    if known is not None and known[0].run is run:  # and not a run of which this one is a part
        return known
    found, reason = None, ""
    if run.folder is None or not run.has_allocations:
        reason = "the run was made without its allocations"
    else:
        try:
            read = (cluster, workload) if cluster is not None and workload is not None else run.inputs()
            found = WaitCauses(run, (cluster or read[0], workload or read[1]))
        except SimschedError as error:
            reason = str(error)
    answer = WaitCauses(run, None) if found is None else found, reason
    if not given:
        run.__dict__["wait_causes"] = answer
    return answer


def wait_table(run: RunTables, causes: WaitCauses | None = None) -> pd.DataFrame:
    """Return one row per job that was submitted, and one column per cause: seconds.

    The columns of a row add up to the wait of the job, from submission to start; a job that did
    not start waits until its end or the end of the run.  `causes` are those that `find_causes` returns.

    Raises
    ------
    RunError
        as `find_causes`.
    """
    causes = find_causes(run)[0] if causes is None else causes
    place = {row: at for at, row in enumerate(causes.waiting.tolist())}
    sums = {cause: np.zeros(len(place)) for cause in causes.causes}
    for wait in causes.waits:
        at = place[wait.row]
        for code, seconds in zip(wait.codes.tolist(), (wait.ends - wait.starts).tolist(), strict=True):
            sums[causes.names[code]][at] += seconds
    return pd.DataFrame(sums, index=run.jobs.index[causes.waiting])


def totals_by(run: RunTables, table: pd.DataFrame, key: str | None = None) -> pd.DataFrame:
    """Return hours waited by cause: one row per group of `key` (``queue``, ``user``), the longest wait first.

    Jobs without a queue or user are in the group ``-``.  Without a key there is one row, ``all``.
    """
    hours = table / 3600.0
    if key is None:
        return hours.sum().to_frame("all").T
    names = run.jobs.loc[table.index, key].astype("object").fillna(NO_KEY)
    grouped: pd.DataFrame = hours.groupby(names).sum()
    return grouped.loc[grouped.sum(axis=1).sort_values(ascending=False, kind="stable").index]


def binding(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per type that was short: job-hours, jobs, and the share of all waited hours.

    This is the answer to "what to buy": more units of the type in the first row would have helped
    for the most hours.
    """
    short = table[[column for column in table if str(column).startswith(Cause.SHORT)]]
    hours = short.sum() / 3600.0
    share = short.sum() / (float(table.to_numpy().sum()) or 1.0)
    frame = pd.DataFrame({"job_hours": hours, "jobs": (short > 0).sum(), "share": share})
    frame.index = pd.Index([str(one).removeprefix(f"{Cause.SHORT} of ") for one in short], name="type")
    return frame.sort_values("job_hours", ascending=False, kind="stable")


def waits_over_time(run: RunTables, edges: Floats) -> pd.DataFrame:
    """Return one row per part of the time between `edges` (s, ascending): the job-hours waited by cause.

    The index is the beginning of each part.

    Raises
    ------
    RunError
        as `find_causes`.
    """
    causes = find_causes(run)[0]
    nothing = [(0, np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))]
    columns = zip(*(causes.waits or nothing), strict=True)
    _, starts, ends, codes = (np.concatenate([np.atleast_1d(part) for part in parts]) for parts in columns)
    numbers = {cause: number for number, cause in enumerate(causes.names)}
    table = pd.DataFrame(index=edges[:-1])
    for cause in causes.causes:
        of = codes == numbers.get(cause, -1)
        table[cause] = np.diff(_since(starts[of], edges) - _since(ends[of], edges)) / 3600.0
    return table


def _since(events: Floats, at: Floats) -> Floats:
    """Return the sum over the events before each time `at` of the seconds since then."""
    ordered = np.sort(events)
    number = np.searchsorted(ordered, at)
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    result: Floats = number * at - sums[number]
    return result


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
        body = [(str(of), *(f"{row[cause]:,.1f}" for cause in causes)) for of, row in groups.iterrows()]
        if len(groups) > 1:
            lines += ["", fitted_table([f"hours by {name}", *causes], body, width)]
    needed = binding(table)
    needed = needed[needed["job_hours"] > 0]
    if len(needed):
        body = [
            (str(type_), f"{row['job_hours']:,.1f}", f"{int(row['jobs']):,}", human.share(row["share"]))
            for type_, row in needed.iterrows()
        ]
        lines += ["", fitted_table(["short type", "job hours", "jobs", "share of waits"], body, width)]
    return "\n".join(lines)


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
    found: dict[str, Any] = {
        "run": run.name,
        "jobs": len(table),
        "hours": totals_by(run, table).loc["all"].to_dict(),
        **{f"by_{name}": totals_by(run, table, name).to_dict(orient="index") for name in GROUPS},
        "short": binding(table).reset_index().to_dict(orient="records"),
    }
    return cast("WaitedHours", found)
