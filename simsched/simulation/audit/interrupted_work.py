"""Rules of the audit for jobs that were interrupted: suspended, queued again, or gone on from a checkpoint.

The times of all attempts come from the lines of the allocations.  The work that a job keeps is worked out
again from the rules in ``run.json`` and the job:

W1  a job loses and keeps as much work as its interrupted attempts allow, and its last attempt does the rest
V1  a preempted job has a rule that allows it: its mode, its exempt time, and the QoS of the other job; in its
    reservation only jobs that are in it, too, preempt it

(V2, a suspended job goes on with the resources that it had, is in `allocation_pass`.)
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING, Any

from simsched.simulation.audit.reserved_nodes import ReservedNodes, reservation_named
from simsched.simulation.audit.tolerance import differs, later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.simulation.audit.audit_tables import AuditTables
    from simsched.simulation.audit.recorded_run import RecordedRun
    from simsched.workload.job import Job

_PREEMPTED = "preempted by "
_CHECKPOINT = ", with a checkpoint"


def check_interrupted(tables: AuditTables, jobs: Sequence[Job]) -> None:
    """Check the work and the preemptions of all jobs, in runs that record them."""
    recorded, report = tables.recorded, tables.report
    reserved = ReservedNodes(recorded.reservations, recorded.windows)
    tables.run("interrupted")
    for row in tables.rows("FROM interrupted"):
        job, spans = jobs[row["w_at"]], row["spans"]
        before = spans[:-1] if row["start"] is not None else spans
        report.checked["W1", "jobs"] += 1
        for fault in _wrong_work(recorded, job, row, before):
            report.add("W1", row["id"], fault)
        if recorded.preemption is not None and _PREEMPTED in row["reason"]:
            report.checked["V1", "preempted jobs"] += 1
            for fault in _wrong_preemption(recorded, job, row, before, jobs, reserved):
                report.add("V1", row["id"], fault)


def _wrong_work(
    recorded: RecordedRun, job: Job, row: Mapping[str, Any], before: Sequence[float]
) -> Iterator[str]:
    """Yield the faults in the work that a job kept and lost, and in its suspensions and checkpoints."""
    # Of a job that was suspended in the instant of its start, the lines of R are those of one that started twice.
    instants = before.count(0) if "suspend" in recorded.modes else 0
    if not len(before) - instants <= row["interruptions"] <= len(before):
        yield f"was interrupted {len(before)} times, the table has {row['interruptions']}"
    times, saved = recorded.checkpoint_times(job), row["saved"]
    writes = "checkpoint" in recorded.modes
    least = most = 0.0
    for seconds in before if times is not None else ():
        kept = _kept(times, seconds, row["w_work"] - least, again=least > 0)  # type: ignore[arg-type]
        least += kept
        most += max(seconds, kept) if writes else kept
    least, most = (min(least, saved) if saved and most > least else least), min(most, row["w_work"])
    if later(least, saved) or later(saved, most):
        yield f"kept {saved} s of work, possible are {least} to {most} s"
    if differs(sum(before) - saved, row["lost"]):
        yield f"lost {row['lost']} s of work instead of {sum(before) - saved} s"
    if row["start"] is not None and differs(row["suspended"], row["gap"]) and not row["released_before"]:
        yield f"was suspended for {row['gap']} s, the table has {row['suspended']} s"
    overhead, spans = row["overhead"], row["spans"]
    low, high = 0.0, spans[-1] if times is not None and spans and row["ended"] is not None else 0.0
    if high and row["result"] == "COMPLETED":
        low = high = max(0, high - (row["w_work"] - saved))
    if later(low, overhead) or later(overhead, high):
        yield f"read and wrote checkpoints for {overhead} s, possible are {low} to {high} s"


def _kept(times: tuple[float, float, float], seconds: float, work: float, *, again: bool) -> float:
    """Return the work in the checkpoints that are complete after some seconds of an attempt."""
    interval, cost, restart = times
    complete = max(0, seconds - (restart if again else 0)) // (interval + cost)
    return min(complete, max(0, ceil(work / interval) - 1)) * interval if work < inf else complete * interval


def _wrong_preemption(
    recorded: RecordedRun,
    job: Job,
    row: Mapping[str, Any],
    before: Sequence[float],
    jobs: Sequence[Job],
    reserved: ReservedNodes,
) -> Iterator[str]:
    rules = recorded.preemption
    assert rules is not None
    how, _, other = row["reason"].partition(_PREEMPTED)
    rule = rules.tables.get((job.qos if rules.by == "qos" else job.queue) or "", rules)
    mode = "requeue" if how else "cancel"
    if other.endswith(_CHECKPOINT):
        mode = "checkpoint"
    elif how.startswith("suspended"):
        mode = "suspend"
    if mode not in ((rule.mode, "requeue") if rule.mode == "checkpoint" else (rule.mode,)):
        yield f"was preempted with {mode}, its rule is {rule.mode}"
    own, taker = reservation_named(job), None if row["taker"] is None else jobs[row["taker"]]
    if own and taker is not None and reserved.is_kept(own, reservation_named(taker)):
        yield f"was preempted in its reservation {own!r} by {taker.id}, which is not in it"
    if mode == "suspend":
        return
    after = job.jobspec.system.get("preemptible-after")
    least = (rule.exempt if after is None else float(after)) + rule.grace
    last = before[-1] if how and before else row["spans"][-1] if row["spans"] else inf
    if later(least, last):
        yield f"was preempted after {last} s, and may be only after {least} s"
    ends, came = row["ends"], row["came"]
    went = ends[-2:][0] if how and row["start"] is not None else ends[-1] if ends else inf
    if came is not None and later(came + rule.grace, went):
        yield f"went at {went:g}, without {rule.grace:g} s of grace after {came:g}, when {other} came"
