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

from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb

from simsched.errors import RunError, SimschedError, first_line
from simsched.formats.rfc.constraint import gpu_type_of
from simsched.formats.rfc.units import convert_up
from simsched.garbage import seldom_collected
from simsched.simulation.audit.allocation_pass import AllocationPass, column
from simsched.simulation.audit.audit_report import AuditReport
from simsched.simulation.audit.audit_tables import AuditTables
from simsched.simulation.audit.inventory import Inventory
from simsched.simulation.audit.promises import check_promises
from simsched.simulation.audit.recorded_run import check_digests, recorded_run
from simsched.simulation.audit.reserved_nodes import ReservedNodes, reservation_named
from simsched.simulation.audit.tolerance import differs, later
from simsched.workload.job import has_array_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from simsched.graph.cluster import Cluster
    from simsched.simulation.audit.recorded_run import RecordedRun
    from simsched.simulation.limits.limit_rules import LimitRule
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
    targets = list(inventory.targets.values())
    machine = {
        "rank": column(list(inventory.targets), int),
        "m_host": column([target.host for target in targets]),
        "m_properties": column([sorted(target.properties) for target in targets]),
        "usable": column([bool(target.usable) for target in targets], bool),
        **{
            type_: column([target.units.get(type_, 0).bit_count() for target in targets], int)
            for type_ in UNITS
        },
    }
    tables.add("machine", machine, m_host="VARCHAR", m_properties="VARCHAR[]")
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
    # A job that was suspended in the instant of its start has the lines of R of one that started twice.
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


_KINDS = {"node-hours": "nodes", "core-hours": "cores", "gpu-hours": "gpus"}
_DIMENSIONS = ("user", "account", "queue", "qos", "array", "gpu-type")


class _Bound(NamedTuple):
    """The most of a quantity for the jobs of one `key`; a job that it does not bind counts, too."""

    key: tuple[Any, ...]
    quantity: str
    most: float
    whose: str
    binds: bool
    single: bool


def check_limits(tables: AuditTables, jobs: Sequence[Job], inventory: Inventory) -> None:
    """Report the limits that were exceeded."""
    recorded = tables.recorded
    arrays = recorded.queue_policy != "recorded" and has_array_limits(jobs)
    if not (recorded.limits or arrays):
        return
    kinds: dict[tuple[Any, ...], int] = {}
    of = [kinds.setdefault(_names(job, arrays=arrays), len(kinds)) for job in jobs]
    keys: dict[Any, int] = {}
    rows: list[tuple[Any, ...]] = []
    for values, kind in kinds.items():
        names = dict(zip((*_DIMENSIONS, "tasks"), values, strict=True))
        for bound in _bounds(recorded.limits, names, inventory.memory):
            unit = bound.quantity.removeprefix("running-")
            rows.append((kind, keys.setdefault(bound.key, len(keys)), *bound[1:], _KINDS.get(unit, unit)))
    tables.report.checked["L1", "scopes"] = len({row[1] for row in rows})
    if not rows:
        return
    tables.fill("bounds (kind BIGINT, key BIGINT, quantity VARCHAR, most DOUBLE, whose VARCHAR, "
                "binds BOOLEAN, single BOOLEAN, unit VARCHAR)", rows)  # fmt: skip
    holds = [
        any(rule.over == "hold" and "submitted-jobs" in dict(rule.most)
            and all(names[_DIMENSIONS.index(name)] in given for name, given in rule.names)
            for rule in recorded.limits)
        for names in kinds
    ]  # fmt: skip
    tables.add("job_kinds", {"job": column(range(len(jobs)), int), "kind": column(of, int),
                             "holds": column([holds[kind] for kind in of], bool)})  # fmt: skip
    tables.run("limits")


def _names(job: Job, *, arrays: bool) -> tuple[Any, ...]:
    """Return the properties of a job by which limits distinguish it, and the most tasks of its array."""
    task = job.array_task
    array, most = (None, None) if task is None else (task.array, task.limit if arrays else None)
    return job.user, job.bank, job.queue, job.qos, array, gpu_type_of(job.jobspec.constraint), most


def _bounds(rules: Sequence[LimitRule], names: Mapping[str, Any], memory: str | None) -> Iterator[_Bound]:
    """Yield the limits that count jobs with these names; on single jobs only those that bind them."""
    chosen: dict[tuple[Any, ...], tuple[float, bool]] = {}
    about = [(rule, scope) for rule in rules if (scope := _scope(rule, names)) is not None]
    for rule, scope in about:
        for quantity, value in rule.most:
            single = _is_single(rule, quantity)
            instead = [
                other for other, place in about if _replaces(other, rule, quantity, same=place == scope)
            ]
            if any(other.level == rule.level for other in instead) or (
                quantity == "memory" and memory is None
            ):
                continue
            if instead and single:
                continue
            most = inf if value == -1 else _in_unit(value, memory or "")
            place = scope, quantity, rule.level, single
            chosen[place] = min(chosen.get(place, (inf, not instead)), (most, not instead))
    if names["tasks"] is not None:
        place = (("array", names["array"]),), "running-jobs", None, False
        chosen[place] = min(chosen.get(place, (inf, True)), (names["tasks"], True))
    for place, (most, binds) in chosen.items():
        if most < inf:
            whose = ", ".join(f"{name} {value}" for name, value in place[0]) or "all jobs"
            yield _Bound(place, place[1], most, whose, binds, place[3])


def _scope(rule: LimitRule, names: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | None:
    """Return the names with which a rule counts a job together; None if it is not about the job."""
    given, found = dict(rule.names), []
    for dimension in _DIMENSIONS:
        if dimension in given or dimension in rule.each:
            name = names[dimension]
            if name is None or name not in given.get(dimension, (name,)):
                return None
            found.append((dimension, ", ".join(given.get(dimension, (name,)))))
    return tuple(found)


def _is_single(rule: LimitRule, quantity: str) -> bool:
    return rule.each == ("job",) or quantity == "duration"


def _replaces(rule: LimitRule, other: LimitRule, quantity: str, *, same: bool) -> bool:
    """Whether a rule about a job takes the place of another: it is more special, or of a lower level."""
    single = _is_single(rule, quantity)
    if quantity not in dict(rule.most) or single != _is_single(other, quantity):
        return False
    mine, theirs = ({*dict(one.names), *one.each} - {"job"} for one in (rule, other))
    if rule.level is not None and other.level is not None and rule.level != other.level:
        return rule.level < other.level and (single or bool(mine & theirs & {"user", "account"}))
    alike = mine == theirs and rule.level == other.level
    return alike and same and len(rule.names) > len(other.names)


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
