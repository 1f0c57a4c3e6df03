"""Rules of the audit for promised starts: no job starts after the first start that it was promised.

Failures, drains, jobs that hold resources beyond their requested end, preemptions and stopped queues
may break a promise.  A broken promise that such an event overlaps is explained by it; any other
broken promise is a fault.
"""

from __future__ import annotations

from heapq import heappop, heappush, nlargest
from itertools import groupby
from math import inf, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.simulation.audit.audit_report import AuditReport, LateStart
from simsched.simulation.audit.limit_use import Attempt
from simsched.simulation.audit.tolerance import known, later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.simulation.audit.recorded_run import RecordedRun


#: Queue policies that promise no start; queues may have policies of their own.
PROMISES_NOTHING = ("fcfs", "easy", "easy+", "easy++", "slurm", "recorded")


class _Cause(NamedTuple):
    """A time in which resources were unexpectedly unavailable, and the reason."""

    begin: float
    end: float
    cause: str


def late_starts(
    recorded: RecordedRun, table: Sequence[Mapping[str, Any]], attempts: Sequence[Attempt] = ()
) -> list[LateStart]:
    """Return the jobs that started after their promised start; ``compress=replan`` promises nothing.

    `attempts` are those of all jobs; without them the last attempts are known, from the table.
    """
    late = [row for row in table if _is_late(row)]
    if not late or recorded.replans:
        return []
    causes = [*_outages(recorded), *_unforeseen(recorded, table, attempts)]
    return [_explained(row, causes, recorded.chance) for row in late]


def check_promises(
    report: AuditReport,
    recorded: RecordedRun,
    table: Sequence[Mapping[str, Any]],
    attempts: Sequence[Attempt],
) -> None:
    """Add the promises that were broken, or could not be made, to a report."""
    silent = recorded.replans or (recorded.queue_policy in PROMISES_NOTHING and not recorded.queues)
    # Under conservative backfilling each job is promised a start when it is first considered.
    rebuilt = (
        recorded.live
        or recorded.renewals
        or recorded.preemption is not None
        or recorded.checkpoints is not None
    )
    each = recorded.queue_policy == "conservative" and not silent and not rebuilt
    at_once = each and not recorded.each_event and not any(row["start"] == row["end"] for row in table)
    for row in table:
        promised = row.get("promised")
        if promised is None or isnan(promised):
            if each and "promised" in row and row["start"] is not None:
                report.add("P1", str(row["id"]), "started without a promised start")
            continue
        if at_once and row["start"] == row["eligible"] != promised:
            report.add("P1", str(row["id"]), f"was promised {promised:g}, and started when it was eligible")
        if silent:
            report.add("P1", str(row["id"]), f"was promised {promised:g} by a policy that promises no start")
        elif promised < row["eligible"]:
            report.add("P1", str(row["id"]), f"was promised {promised:g} before it was eligible")
    foreseen = not (recorded.outages or recorded.chance or recorded.epilog)
    if each and recorded.considers_all and foreseen:
        for name, promised, idle in _too_distant(table):
            text = f"was promised {promised:g}, and all jobs of its time were to end by {idle:g}"
            report.add("P1", name, text)
    for late in late_starts(recorded, table, attempts):
        if late.cause is None:
            report.add("P1", late.job, str(late))
        else:
            report.explained.append(late)


def _too_distant(table: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float, float]]:
    """Yield (job, promise, time) for each promise later than all jobs of its time were to end by.

    When a job is promised its start, the plan has the running and the waiting jobs alone: once these have
    ended by their requested durations, the machine is idle.
    """
    ran = [row for row in table if row["start"] is not None and row["end"] is not None]
    if any(later(row["end"], row["start"] + row["duration"]) for row in ran):
        return  # the plan does not know how long an overrun lasts
    if any("%" in str(row.get("array_task") or "") for row in table):
        return  # a task that the limit of its array holds is planned once it may start
    ready = sorted((row for row in table if known(row.get("promised")) is not None), key=_eligible)
    planned: list[tuple[float, float]] = []  # (- planned end, end) of the jobs that are or were there
    for _, alike in groupby(ready, _eligible):
        rows = list(alike)
        now = rows[0]["eligible"]
        while planned and planned[0][1] < now:
            heappop(planned)
        idle = max(now, -planned[0][0]) if planned else now
        ends = [row["promised"] + row["duration"] for row in rows]
        first, second = (*nlargest(2, ends), now)[:2]
        for row, own in zip(rows, ends, strict=True):
            # of jobs that become eligible together, any may be before the others
            until = max(idle, second if own == first else first)
            if later(row["promised"], until):
                yield str(row["id"]), row["promised"], until
            heappush(planned, (-own, inf if row["end"] is None else row["end"]))


def _eligible(row: Mapping[str, Any]) -> float:
    found: float = row["eligible"]
    return found


def _is_late(row: Mapping[str, Any]) -> bool:
    promised, start = row.get("promised"), row["start"]
    return promised is not None and start is not None and not isnan(promised) and start > promised


def _explained(row: Mapping[str, Any], causes: list[_Cause], chance: str | None) -> LateStart:
    name, begin, start = str(row["id"]), row["eligible"], row["start"]
    # a cause counts if it overlaps the wait of the job
    found = (c.cause for c in causes if c.begin < start and begin <= c.end)
    if chance is None and "%" in str(row.get("array_task") or ""):
        chance = "the limit of its job array"
    return LateStart(name, row["promised"], start, next(found, chance))


def _outages(recorded: RecordedRun) -> Iterator[_Cause]:
    for outage in recorded.outages:
        if outage.kind != "maintenance":
            yield _Cause(outage.start, outage.end, str(outage))
    for time in recorded.renewals:
        yield _Cause(time, time, f"requests or running jobs changed at {time:g}")
    for name, windows in recorded.stops.items():
        for stop, start in windows:
            yield _Cause(stop, start, f"queue {name} stopped from {stop:g} until {start:g}")


def _unforeseen(
    recorded: RecordedRun, table: Sequence[Mapping[str, Any]], attempts: Sequence[Attempt]
) -> Iterator[_Cause]:
    """Yield the times of jobs that held resources beyond their requested end or were preempted."""
    rows = {str(row["id"]): row for row in table}
    last = [Attempt(name, row["start"], row["end"]) for name, row in rows.items() if row["start"] is not None]
    for name, start, until in dict.fromkeys([*last, *attempts]):
        row = rows.get(name)
        if row is None:
            continue
        limit, end = start + row["duration"], float("inf") if until is None else until
        if end > limit:
            yield _Cause(limit, end + recorded.epilog, f"job {name} ran beyond its limit at {limit:g}")
        elif end + recorded.epilog > limit:
            yield _Cause(limit, end + recorded.epilog, f"job {name} was cleaned up after its end at {end:g}")
    for name, row in rows.items():
        if row["start"] is not None and "preempted by" in (row["reason"] or ""):
            yield _Cause(row["submit"], row["start"], f"job {name} was {row['reason']}")
