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
R1, R2  nodes and licences that are reserved are used only by jobs of the reservation
W1  a job loses and keeps as much work as its interrupted attempts allow, and its last attempt does the rest
V1  a preempted job has a rule that allows it: its mode, its exempt time, and the QoS of the other job; in its
    reservation only jobs that are in it, too, preempt it
V2  a suspended job goes on with the resources that it had

`allocation_pass` follows line by line which job holds which units.  It leaves tables of times and numbers,
and all other rules are queries over them and the tables of the run (`audit_tables`).

The use of limits (L1) is summed up again at each start and submission; it rises at no other time.  A job
counts with its allocation: the nodes, cores and GPUs of the table, and those of R for attempts that the table
does not have.  Jobs of zero seconds, and jobs whose time of submission or end is not known, are not counted.

The times of all attempts of an interrupted job (W1, V1) come from the lines of the allocations, and the work
that it keeps from the rules in ``run.json`` and the job.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from simsched.errors import RunError, SimschedError, first_line
from simsched.formats.rfc.units import convert_up
from simsched.garbage import seldom_collected
from simsched.simulation.audit.allocation_pass import AllocationPass
from simsched.simulation.audit.audit_report import AuditReport
from simsched.simulation.audit.audit_tables import AuditTables, define
from simsched.simulation.audit.inventory import Inventory
from simsched.simulation.audit.promises import check_promises
from simsched.simulation.audit.recorded_run import check_digests, recorded_run
from simsched.workload.job import has_array_limits

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Job, Workload


UNITS = ("core", "gpu")
"""Types whose units R lists by id."""


def check_machine(tables: AuditTables, inventory: Inventory) -> None:
    """Check the tables of the machine and over time."""
    report = tables.report
    totals, targets = tables.recorded.totals, len(inventory.targets)
    expected = {"node": targets} | {
        type_: sum(target.usable.get(type_, 0).bit_count() for target in inventory.targets.values())
        for type_ in UNITS
        if type_ in inventory.unit_types
    }
    for type_, number in expected.items():
        if totals is not None and totals.get(type_) != number:
            text = f"run.json has {totals.get(type_)} of type {type_}, the cluster has {number}"
            report.add("A9", "(all)", text)
    if tables.recorded.targets not in (None, targets):
        text = f"run.json has {tables.recorded.targets} targets, the cluster has {targets}"
        report.add("A9", "(all)", text)
    report.checked["A9", "totals of run.json"] = len(totals or ())
    for name, check in (("nodes", _check_nodes), ("timeline", _check_timeline)):
        path = tables.path / f"{name}.parquet"
        if path.is_file():
            check(tables, inventory, tables.load(name, path).keys())
        else:
            report.notes.append(f"there is no {name}.parquet, so it was not compared")


def _check_nodes(tables: AuditTables, inventory: Inventory, columns: Set[str]) -> None:
    machine = [
        (rank, target.host, sorted(target.properties), bool(target.usable),
         *(target.units.get(type_, 0).bit_count() for type_ in UNITS))
        for rank, target in inventory.targets.items()
    ]  # fmt: skip
    tables.add(
        "machine (rank BIGINT, m_host VARCHAR, m_properties VARCHAR[], usable BOOLEAN, core BIGINT, "
        "gpu BIGINT)",
        machine,
    )
    tables.run("nodes")
    for type_ in UNITS:
        if f"total_{type_}" in columns:
            tables.rule("A9", "nodes", f"""
                SELECT '(all)', total_{type_} <> {type_}, 'rank ' || rank || ' has ' || total_{type_}
                    || ' of type {type_} instead of ' || {type_} FROM sides""")  # fmt: skip


def _check_timeline(tables: AuditTables, inventory: Inventory, columns: Set[str]) -> None:
    """Check the timeline.  Targets that are down in the cluster need no outage, and are in no total."""
    recorded = tables.recorded
    tables.run("timeline")
    down = {"node": sum(not target.up for target in inventory.targets.values())}
    for type_, total in (recorded.totals or {}).items():
        names = [f"{state}_{type_}" for state in ("free", "used", "down")]
        if columns >= set(names):
            free, used, out = (f'"{name}"' for name in names)
            lost = f"NOT disrupted() AND {out} <> {down.get(type_, 0)}"
            tables.rule("A9", "rows of the timeline", f"""
                SELECT '(all)', adds OR ({lost}), if(adds, 'units of type {type_} at ' || t(time)
                    || ' do not add up to {total}', {out} || ' of type {type_} are down at ' || t(time)
                    || ' without an outage')
                FROM (SELECT *, {free} + {used} + {out} <> {total} OR least({free}, {used}, {out}) < 0 AS adds
                    FROM timeline)""")  # fmt: skip
    if not recorded.complete:
        tables.report.notes.append("the run was interrupted, so its timeline was not compared with R")
    elif recorded.epilog:  # units are in use by jobs that have ended: the sums of R do not show them
        tables.report.notes.append("units in use were not compared: in an epilog they are those of no job")
    elif tables.vague:
        tables.report.notes.append(
            "units in use were not compared: requests share units, and R does not tell which"
        )
    else:
        for type_ in UNITS:
            if f"used_{type_}" in columns:
                tables.rule("A9", "rows of the timeline", f"""
                    SELECT '(all)',
                        used_{type_} NOT BETWEEN coalesce(least_{type_}, 0) AND coalesce(most_{type_}, 0),
                        used_{type_} || ' of type {type_} in use at ' || t(l.time) || ', '
                        || t(coalesce(most_{type_}, 0)) || ' by R'
                    FROM timeline l ASOF LEFT JOIN use ON l.time >= use.time""")  # fmt: skip


def check_interrupted(tables: AuditTables, jobs: Sequence[Job]) -> None:
    """Check the work and the preemptions of all jobs, in runs that record them."""
    recorded = tables.recorded
    if "saved" not in tables.columns:
        return
    victims: list[tuple[Any, ...]] = []
    rules = recorded.preemption
    if rules is not None:
        found = {name or "": rules.rule_of(name)
                 for name in {job.qos if rules.by == "qos" else job.queue for job in jobs}}  # fmt: skip
        victims = [(name, rule.mode, rule.grace, rule.exempt) for name, rule in found.items()]
    tables.add("victims (name VARCHAR, mode VARCHAR, grace DOUBLE, exempt DOUBLE)", victims)
    given = [(one["name"], bool(one.get("flex")), bool(one.get("overlaps"))) for one in recorded.reservations]
    tables.add("reservations (name VARCHAR, flex BOOLEAN, overlapping BOOLEAN)", given)
    define(tables.con, {"preempted_by": None if rules is None else rules.by})
    tables.run("interrupted")


_KINDS = {"node-hours": "nodes", "core-hours": "cores", "gpu-hours": "gpus"}
_DIMENSIONS = ("user", "account", "queue", "qos", "array", "gpu-type")


def check_limits(tables: AuditTables, jobs: Sequence[Job], inventory: Inventory) -> None:
    """Report the limits that were exceeded."""
    rules = tables.recorded.limits
    if not (rules or (tables.recorded.queue_policy != "recorded" and has_array_limits(jobs))):
        return
    memory = inventory.memory
    heads = ((at, rule.level, rule.over == "hold" and "submitted-jobs" in rule.most, len(rule.names))
             for at, rule in enumerate(rules))  # fmt: skip
    tables.add("rules (rule BIGINT, level DOUBLE, holds BOOLEAN, named BIGINT)", heads)
    scopes = ((at, place, name, rule.names.get(name)) for at, rule in enumerate(rules)
              for place, name in enumerate(_DIMENSIONS) if name in {*rule.names, *rule.each})  # fmt: skip
    tables.add("rule_scopes (rule BIGINT, place BIGINT, dimension VARCHAR, given VARCHAR[])", scopes)
    limits = ((at, quantity, inf if value == -1 else _in_unit(value, memory or ""),
               rule.each == ("job",) or quantity == "duration")
              for at, rule in enumerate(rules) for quantity, value in rule.most.items()
              if quantity != "memory" or memory is not None)  # fmt: skip
    tables.add("rule_limits (rule BIGINT, quantity VARCHAR, most DOUBLE, single BOOLEAN)",
               limits)  # fmt: skip
    tables.add("hours (kind_of_hours VARCHAR, unit VARCHAR)", _KINDS.items())
    tables.run("limits")
    found = tables.con.execute("SELECT count(DISTINCT key) FROM bounds").fetchone() or (0,)
    tables.report.checked["L1", "scopes"] = found[0]


def _in_unit(value: float | str, unit: str) -> float:
    """Return an amount of memory in the unit of the cluster, and any other number as it is."""
    if not isinstance(value, str):
        return value
    number, given = value.split()
    try:
        return convert_up(int(number), given, unit)
    except SimschedError:
        return inf


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
        tables = AuditTables(report, recorded, path, jobs, allocations)
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
