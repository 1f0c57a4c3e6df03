"""What the audit holds against promised starts: no job starts after the first start it was promised.

Failures, drains, jobs that held their resources beyond their requested end, preemptions and
queues that stopped may break a promise.  A promise that was broken while something of that kind went
on is explained by it, and named; any other is a fault.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.simulation.audit.audit_report import AuditReport, Late

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.simulation.audit.job_life import Told


#: Queue policies under which no start is promised; queues may have policies of their own.
PROMISES_NOTHING = ("fcfs", "easy")


class _Held(NamedTuple):
    """When a job held resources that were not foreseen, and why."""

    begin: float
    end: float
    cause: str


def late_starts(said: Told, table: Sequence[Mapping[str, Any]]) -> list[Late]:
    """Return the jobs that started after their promise; under ``compress=replan`` there is none."""
    late = [row for row in table if _is_late(row)]
    if not late or said.replans:
        return []
    causes = [*_outages(said), *_unforeseen(said, table)]
    return [_explained(row, causes, said.chance) for row in late]


def judge_promises(report: AuditReport, said: Told, table: Sequence[Mapping[str, Any]]) -> None:
    """Add the promises that were broken, or that nobody made, to a report."""
    silent = said.replans or (said.queue_policy in PROMISES_NOTHING and not said.queues)
    for row in table:
        promised = row.get("promised")
        if promised is None or isnan(promised):
            continue
        if silent:
            report.add("P1", str(row["id"]), f"was promised {promised:g} by a policy that promises nothing")
        elif promised < row["eligible"]:
            report.add("P1", str(row["id"]), f"was promised {promised:g} before it was eligible")
    for late in late_starts(said, table):
        if late.cause is None:
            report.add("P1", late.job, str(late))
        else:
            report.explained.append(late)


def _is_late(row: Mapping[str, Any]) -> bool:
    promised, start = row.get("promised"), row["start"]
    return promised is not None and start is not None and not isnan(promised) and start > promised


def _explained(row: Mapping[str, Any], causes: list[_Held], chance: str | None) -> Late:
    name, begin, start = str(row["id"]), row["eligible"], row["start"]
    found = (c.cause for c in causes if c.begin < start and begin <= c.end)
    return Late(name, row["promised"], start, next(found, chance))


def _outages(said: Told) -> Iterator[_Held]:
    for out in said.out:
        if out.kind != "maintenance":
            yield _Held(out.start, out.end, str(out))
    for name, windows in said.stops.items():
        for stop, start in windows:
            yield _Held(stop, start, f"queue {name} stopped from {stop:g} until {start:g}")


def _unforeseen(said: Told, table: Sequence[Mapping[str, Any]]) -> Iterator[_Held]:
    """Yield the jobs that held resources beyond their requested end, and those that were preempted."""
    for row in table:
        if row["start"] is None:
            continue
        limit = row["start"] + row["duration"]
        end = float("inf") if row["end"] is None else row["end"]
        if end > limit:
            yield _Held(limit, end + said.epilog, f"job {row['id']} ran beyond its limit at {limit:g}")
        elif end + said.epilog > limit:
            yield _Held(limit, end + said.epilog, f"job {row['id']} was cleaned up after its end at {end:g}")
        if "preempted by" in (row["reason"] or ""):
            yield _Held(row["submit"], row["start"], f"job {row['id']} was {row['reason']}")
