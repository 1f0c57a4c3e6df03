"""The audit: an independent check of a run directory.

It reads the hardware (`Inventory`, from the graph), the workload's jobspecs and the files of the run.
It uses neither the matcher nor the policies nor the engine.  The laws it checks:

A1  lines are in order of time and name jobs of the workload
A2  the ranks, hosts and unit ids in R exist
A3  no unit is held twice at one time, and exclusive targets are held alone
A4  the release shards of a job add up to its alloc
A5  R satisfies the job's request
A6  R's targets satisfy the job's constraint
A7  every job of the workload is in the table once, and its row agrees with its R
A8  a job starts no sooner than it may (submission, begin-time, dependencies, hold), on no target
    that is out of service, and runs for its time and no longer
A9  run.json, the timeline, the nodes and the eventlog agree with the machine, R and the table
A10 every file, and every input that still exists, has the recorded digest
L1  no limit of a user, an account, a queue, a QoS or of all jobs is exceeded at any time
L2  no more licences are in use than there are, and each job has those that it requested
P1  no job starts after its promised start, unless an outage or the like explains it
R1, R2, W1, V1, V2  reserved nodes and licences; the work, preemption and suspension of interrupted jobs

`allocation_pass` follows line by line which job holds which units.  It leaves tables of times and numbers,
and all other rules are queries over them and the tables of the run (`audit_tables`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from simsched.errors import RunError, first_line
from simsched.garbage import seldom_collected
from simsched.simulation.audit.allocation_pass import AllocationPass
from simsched.simulation.audit.audit_report import AuditReport
from simsched.simulation.audit.audit_tables import AuditTables
from simsched.simulation.audit.interrupted_work import check_interrupted
from simsched.simulation.audit.inventory import Inventory
from simsched.simulation.audit.limit_use import check_limits
from simsched.simulation.audit.machine_tables import check_machine
from simsched.simulation.audit.promises import check_promises
from simsched.simulation.audit.recorded_run import check_digests, recorded_run
from simsched.workload.job import has_array_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Job, Workload

#: Queue policies that mark every job that starts before an earlier one as ``backfilled``.
TELL_BACKFILLS = (
    *("fcfs", "easy", "easy+", "easy++", "conservative", "hybrid", "selective", "slack", "slurm"),
)


def audit_run(directory: str | Path, cluster: Cluster, workload: Workload) -> AuditReport:
    """Check a run directory against its cluster and its workload.

    Raises
    ------
    RunError
        If the directory lacks ``jobs.parquet`` or ``allocations.jsonl``, or a file cannot be compared.
    """
    path = Path(directory)
    for name in ("jobs.parquet", "allocations.jsonl"):
        if not (path / name).is_file():
            raise RunError(f"there is no {name} to audit", where=str(path))
    jobs = workload.jobs
    report, recorded, inventory = AuditReport(jobs=len(jobs)), recorded_run(path), Inventory.of(cluster)
    allocations = AllocationPass(report, recorded, inventory, jobs)
    with (path / "allocations.jsonl").open("rb") as lines, seldom_collected():
        allocations.read(lines)
    try:
        tables = AuditTables(report, recorded, path, jobs, allocations.tables())
        tables.vague = allocations.is_vague
        del allocations
        with tables.con:
            tables.check_columns()
            tables.run("jobs")
            _check_order(tables, jobs)
            check_interrupted(tables, jobs)
            check_promises(tables)
            check_limits(tables, jobs, inventory)
            check_machine(tables, inventory)
            _check_events(tables)
    except duckdb.Error as error:  # a column of another type, an event that is not JSON
        text = f"a table cannot be compared: {first_line(error)}"
        raise RunError(text, where=str(path), expected="the tables that a run writes") from None
    if recorded.overrun is None:
        report.notes.append("run.json does not state how overruns end, so run times were not compared")
    check_digests(report, path)
    return report


def _check_order(tables: AuditTables, jobs: Sequence[Job]) -> None:
    """Check that jobs that passed a waiting one are backfilled (A7), if the queue has one constant order."""
    recorded = tables.recorded
    others = (
        recorded.each_event
        or recorded.queues
        or recorded.reservations  # each has a queue of its own
        or recorded.limits  # a job that waits for a limit is passed by others
        or has_array_limits(jobs)
        or recorded.preemption  # the job that took its nodes has not passed it
    )
    if others or recorded.order != "fifo" or recorded.queue_policy not in TELL_BACKFILLS:
        return
    # a held job never starts, and others may pass it; a job of this instant may come after the pass
    waits = "SELECT eligible, first_until, -place FROM waiting WHERE eligible IS NOT NULL AND NOT w_held"
    tables.largest("earliest", waits, "SELECT id, until FROM waiting WHERE started", at_once=False)
    tables.rule(
        "A7",
        "starts in order",
        """
        SELECT w.id, -e.value < w.place AND w.backfilled IS NOT TRUE,
            'started at ' || t(w.until) || ' before job ' || o.id || ', but is not backfilled'
        FROM waiting w JOIN earliest e USING (id) LEFT JOIN waiting o ON o.place = -e.value""",
    )


def _check_events(tables: AuditTables) -> None:
    """Check the eventlog of a run, if it has one (A9)."""
    path = tables.path / "eventlog.jsonl"
    if not path.is_file():
        return
    try:
        tables.con.execute(
            """CREATE TABLE events AS
            SELECT row_number() OVER () AS line, id, timestamp AS time, name FROM read_ndjson(
                ?, columns = {id: 'VARCHAR', timestamp: 'DOUBLE', name: 'VARCHAR'})""",
            [str(path)],
        )
    except duckdb.Error as error:
        text = f"the eventlog cannot be followed: {first_line(error)}"
        tables.report.add("A9", "(all)", text)
        return
    tables.run("events")
