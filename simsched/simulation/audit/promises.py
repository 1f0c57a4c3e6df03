"""Rules of the audit for promised starts: no job starts after the first start that it was promised (P1).

Failures, drains, jobs that hold resources beyond their requested end, preemptions and stopped queues
may break a promise.  A broken promise that such an event overlaps is explained by it; any other
broken promise is a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.simulation.audit.audit_report import LateStart
from simsched.simulation.audit.audit_tables import define, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from simsched.simulation.audit.audit_tables import AuditTables
    from simsched.simulation.audit.recorded_run import RecordedRun

#: Queue policies that promise no start; queues may have policies of their own.
PROMISES_NOTHING = ("fcfs", "easy", "easy+", "easy++", "slurm", "recorded")


def late_starts(con: duckdb.DuckDBPyConnection, recorded: RecordedRun, chance: str | None) -> list[LateStart]:
    """Return the jobs that started after their promised start; ``compress=replan`` promises nothing.

    The connection has the tables `jobs` and `attempts`; `chance` may break a promise at any time.
    """
    con.execute("CREATE TABLE planned_causes (n INTEGER, since DOUBLE, until DOUBLE, cause VARCHAR)")
    for n, cause in enumerate(_planned(recorded)):
        con.execute("INSERT INTO planned_causes VALUES (?, ?, ?, ?)", (n, *cause))
    con.execute(statements("late_starts")[0].format(replans=recorded.replans, epilog=recorded.epilog))
    return [
        LateStart(
            name, promised, start, cause or chance or ("the limit of its job array" if of_array else None)
        )
        for name, promised, start, cause, of_array in con.execute("FROM late_starts").fetchall()
    ]


def _planned(recorded: RecordedRun) -> Iterator[tuple[float, float, str]]:
    for outage in recorded.outages:
        if outage.kind != "maintenance":
            yield outage.start, outage.end, str(outage)
    for time in recorded.renewals:
        yield time, time, f"requests or running jobs changed at {time:g}"
    for name, windows in recorded.stops.items():
        for stop, start in windows:
            yield stop, start, f"queue {name} stopped from {stop:g} until {start:g}"


def check_promises(tables: AuditTables) -> None:
    """Report the promises that were broken, or could not be made."""
    recorded, con = tables.recorded, tables.con
    # A job that preempts starts before the policy, which may have promised its resources to others.
    chance = recorded.chance or ("a preemption" if tables.preempts else None)
    if "promised" not in tables.columns:
        return
    silent = recorded.replans or (recorded.queue_policy in PROMISES_NOTHING and not recorded.queues)
    # Under conservative backfilling each job is promised a start when it is first considered.
    rebuilt = recorded.live or recorded.renewals or tables.preempts or recorded.checkpoints is not None
    unforeseen = recorded.outages or chance or recorded.epilog
    define(con, {
        "silent": silent,
        "each": recorded.queue_policy == "conservative" and not silent and not rebuilt,
        "plain": recorded.considers_all and not unforeseen,
        "magnetic": any(table.get("magnetic") for table in recorded.reservations),
    })  # fmt: skip
    tables.run("promises")
    ready = "SELECT eligible, ended, planned FROM ready"
    tables.largest("idle", ready, "SELECT id, eligible FROM ready", at_once=True)
    tables.rule("P1", "promises that could be judged", """
        SELECT id, later(promised, greatest(eligible, value, beside)), 'was promised ' || t(promised)
            || ', and all jobs of its time were to end by ' || t(greatest(eligible, value, beside))
        FROM ready JOIN idle USING (id)""")  # fmt: skip
    for late in late_starts(con, recorded, chance):
        if late.cause is None:
            tables.report.add("P1", late.job, str(late))
        else:
            tables.report.explained.append(late)
