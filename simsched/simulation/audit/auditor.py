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
R1, W1, V1, V2  reserved nodes; the work, preemption and suspension of interrupted jobs (`rules`)

The other modules hold the rules by subject.  This module follows which job holds which units.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import RunError, SimschedError
from simsched.formats.rfc.constraint import kinds_of_units
from simsched.formats.rfc.hostlist import Hostlist
from simsched.simulation.audit.audit_report import AuditReport
from simsched.simulation.audit.inventory import Inventory, ids_of, lowest, mask_of, touches
from simsched.simulation.audit.job_events import wrong_events
from simsched.simulation.audit.job_life import (
    DONE,
    INF,
    INTERRUPTED,
    AllocationSpan,
    JobStarts,
    arrays_of,
    before_log,
    miscounted,
    out_of_reach,
    survived,
    too_soon,
    was_interrupted,
    while_closed,
    wrong_eligible,
    wrong_interruptions,
)
from simsched.simulation.audit.job_rows import wrong_backfills, wrong_row, wrong_zeros
from simsched.simulation.audit.limit_use import check_limits
from simsched.simulation.audit.machine_tables import UseOverTime, wrong_nodes, wrong_totals
from simsched.simulation.audit.promises import check_promises
from simsched.simulation.audit.r_documents import (
    scheduler_of,
    without,
    wrong_envelope,
    wrong_properties,
    wrong_slots,
)
from simsched.simulation.audit.recorded_run import RecordedRun, check_digests, read_table, recorded_run
from simsched.simulation.audit.request_check import ClaimRules, misplaced, other_kind, shortfall
from simsched.simulation.audit.rules.interrupted_work import InterruptedWork
from simsched.simulation.audit.rules.unit_holders import UnitHolders
from simsched.simulation.audit.tolerance import SLACK, differs, later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Job, Workload

#: Columns without which a table of jobs cannot be audited.
REQUIRED = frozenset(("id", "start", "end", "result", "reason", "nodes", "cores", "gpus"))
#: Results of jobs that never held anything.
NEVER_RAN = ("INFEASIBLE", "DROPPED", "PENDING")


def audit_run(directory: str | Path, cluster: Cluster, workload: Workload) -> AuditReport:
    """Check a run directory against its cluster and its workload.

    Raises
    ------
    RunError
        If the directory lacks ``jobs.parquet`` or ``allocations.jsonl``, or a file cannot be read.
    """
    path = Path(directory)
    for name in ("jobs.parquet", "allocations.jsonl"):
        if not (path / name).is_file():
            raise RunError(f"there is no {name} to audit", where=str(path))
    table = read_jobs(path / "jobs.parquet")
    auditor = _Auditor(Inventory.of(cluster), workload.jobs, recorded_run(path))
    with (path / "allocations.jsonl").open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            auditor.check_line(number, line)
    auditor.check_table(table)
    auditor.check_other_files(path)
    check_digests(auditor.report, path)
    return auditor.report


def read_jobs(path: Path) -> list[dict[str, Any]]:
    """Read the table of jobs as one mapping per row; RunError for any other file."""
    table = read_table(path)
    lacking = sorted(REQUIRED - table[0].keys()) if table else []
    if lacking:
        raise RunError(f"there is no column {', '.join(map(repr, lacking))}", where=str(path))
    return table


def audit(
    inventory: Inventory,
    jobs: Sequence[Job],
    lines: Any,
    table: Sequence[Mapping[str, Any]],
    *,
    recorded: RecordedRun | None = None,
) -> AuditReport:
    """Check the lines of ``allocations.jsonl`` and the rows of the table of jobs.

    Without `recorded` (the content of ``run.json``) the audit knows less about the ends of jobs.
    """
    auditor = _Auditor(inventory, jobs, recorded or RecordedRun())
    for number, line in enumerate(lines, start=1):
        auditor.check_line(number, line)
    auditor.check_table(table)
    return auditor.report


@dataclass(slots=True)
class _Holding:
    """The units of a job, rank → type → mask: those in R, and all that no other job may use."""

    start: float
    text: Any
    units: dict[int, dict[str, int]]
    kept: dict[int, dict[str, int]]


class _Auditor:
    """One audit in progress."""

    def __init__(self, inventory: Inventory, jobs: Sequence[Job], recorded: RecordedRun) -> None:
        self.recorded = recorded
        self.inventory = inventory
        self.report = AuditReport(jobs=len(jobs))
        self.jobs = {str(job.id): job for job in jobs}
        self.held: dict[str, _Holding] = {}
        self.spans: dict[str, AllocationSpan] = {}
        self.sizes: dict[str, list[tuple[int, int, int]]] = {}
        """The nodes, cores and gpus of a job by R, or (under policies for whole targets) of whole targets."""
        self._rules: dict[int, ClaimRules] = {}
        self._ranks: dict[tuple[str, float], frozenset[int]] = {}
        """The ranks of each attempt, by job and start, if nodes fail."""
        self._preemptible = any("preemptible-after" in job.jobspec.system for job in jobs)
        self._holders = UnitHolders()
        self._taken: dict[str, int] = {}
        """The units in use of pools of which R states amounts, by path."""
        self._on: dict[int, set[str]] = {}
        self._alone: dict[int, str] = {}
        self._time = float("-inf")
        self._rows: Mapping[str, Mapping[str, Any]] = {}
        self._others = JobStarts({}, {}, {})
        self._timeline = UseOverTime()
        self._firsts: dict[str, float] = {}
        """The first start of each job; `spans` has the last."""
        self._stated: dict[str, tuple[Any, int]] = {}
        """The queue and the slots that the last R of each job states."""
        self._shapes: dict[int, str | None] = {}
        self._attempts = InterruptedWork(recorded)
        self._left: dict[str, frozenset[int]] = {}
        """The ranks that each job released last."""

    # -- the lines ----------------------------------------------------------------------------

    def check_line(self, number: int, line: bytes) -> None:
        """Check one line of ``allocations.jsonl``."""
        import msgspec

        try:
            record = msgspec.json.decode(line)
            name, event, time, document = str(record["id"]), record["event"], record["time"], record["R"]
            lite = document["execution"]
            time + 0.0  # TypeError unless it is a number
        except (msgspec.DecodeError, KeyError, TypeError):
            self.report.add("A1", f"(line {number})", "is not an alloc or release record")
            return
        if time < self._time:
            self.report.add("A1", name, f"line {number} goes back in time, from {self._time} to {time}")
        self._time = time
        job = self.jobs.get(name)
        if job is None:
            self.report.add("A1", name, f"line {number}: the workload has no such job")
        elif event not in ("alloc", "release"):
            self.report.add("A1", name, f"line {number}: unknown event {event!r}")
        else:
            for fault in wrong_envelope(self.recorded, document):
                self.report.add("A1", name, f"line {number}: {fault}")
            try:
                pools = document.get("scheduling", {}).get("pools", {})
                self._event(event, name, job, time, lite, pools)
                self._attempts.count_licences(event, name, job, document)
                if event == "alloc":
                    self._stated[name] = scheduler_of(document).get("queue"), lite["nslots"]
            except (SimschedError, KeyError, TypeError, AttributeError, ValueError) as error:
                self.report.add("A1", name, f"line {number}: its R cannot be read: {error}")

    def _event(
        self,
        event: str,
        name: str,
        job: Job,
        time: float,
        execution: Mapping[str, Any],
        pools: Mapping[str, Any],
    ) -> None:
        if event == "alloc":
            self.report.allocations += 1
            self._alloc(name, job, time, execution, pools)
        else:
            self.report.releases += 1
            self._release(name, time, execution, pools)

    def _take_amounts(
        self, name: str, rules: ClaimRules, pools: Mapping[str, Any], units: dict[int, dict[str, int]]
    ) -> None:
        """Add the units of which R states an amount: the lowest free ones, since any would do (A3)."""
        for path, amount in pools.items():
            if path not in self.inventory.pools:
                continue  # outside targets, such as licences
            rank, type_, all_ = self.inventory.pools[path]
            free = all_ if rules.may_share(type_) else all_ & ~self._taken.get(path, 0)
            if free.bit_count() < amount:
                text = f"rank {rank} has {free.bit_count()} free units of {type_}, R has {amount}"
                self.report.add("A3", name, text)
            mine = lowest(free, amount)
            if not rules.may_share(type_):
                self._taken[path] = self._taken.get(path, 0) | mine
            here = units[rank] = dict(units.get(rank, {}))  # ranks of one entry share theirs
            here[type_] = here.get(type_, 0) | mine

    def _give_amounts(
        self, held: _Holding, rules: ClaimRules, pools: Mapping[str, Any], shard: dict[int, dict[str, int]]
    ) -> None:
        """Add the units of which a shard states an amount, among those that the job holds."""
        for path, amount in pools.items():
            if path not in self.inventory.pools:
                continue
            rank, type_, all_ = self.inventory.pools[path]
            mine = lowest(held.units.get(rank, {}).get(type_, 0) & all_, amount)
            if not rules.may_share(type_):
                self._taken[path] = self._taken.get(path, 0) & ~mine
            here = shard[rank] = dict(shard.get(rank, {}))
            here[type_] = here.get(type_, 0) | mine

    def _units(self, name: str, execution: Mapping[str, Any]) -> dict[int, dict[str, int]]:
        """Return the units in R_lite, checked against the inventory (A2)."""
        units: dict[int, dict[str, int]] = {}
        targets = self.inventory.targets
        for group in execution["R_lite"]:
            children = {type_: mask_of(ids) for type_, ids in group.get("children", {}).items()}
            for rank in ids_of(str(group["rank"])):
                target = targets.get(rank)
                if target is None:
                    self.report.add("A2", name, f"rank {rank} does not exist")
                    continue
                for type_, mask in children.items():
                    if mask & ~target.usable.get(type_, 0):
                        why = "unknown ids" if mask & ~target.units.get(type_, 0) else "it is down"
                        self.report.add("A2", name, f"rank {rank} has no such {type_}: {why}")
                units[rank] = children
        hosts = list(Hostlist.parse(execution["nodelist"]))
        if hosts != [targets[rank].host for rank in sorted(units)]:
            self.report.add("A2", name, f"nodelist {execution['nodelist']} is not the hosts of its ranks")
        for fault in wrong_properties(self.inventory, execution, units):
            self.report.add("A2", name, fault)
        return units

    def _alloc(
        self,
        name: str,
        job: Job,
        time: float,
        execution: Mapping[str, Any],
        pools: Mapping[str, Any],
    ) -> None:
        if name in self.held:
            self.report.add("A3", name, "allocated while it holds resources")
        units = self._units(name, execution)
        rules = self._rules_of(job)
        self._take_amounts(name, rules, pools, units)
        kept = self._kept(rules, units)
        self._claim(name, rules, kept)
        self._check_request(name, rules, units)
        fault = wrong_slots(rules.spec.resources, execution, len(units))
        if fault is not None:
            self.report.add("A5", name, fault)
        start = self._start_of(name, time, execution)
        self._attempts.note(name, job, start, time, units)
        self._expiration(name, job, start, execution)
        self.held[name] = _Holding(start, execution, units, kept)
        self.sizes[name] = [
            self._holds(rules, units, whole=rules.alone),
            self._holds(rules, units, whole=True),
            self._holds(rules, kept, whole=rules.alone),
        ]
        at = 2 if rules.closed and not rules.vague else 0
        memory = self._totals(rules, kept if at else units, whole=rules.alone)["memory"]
        self._attempts.amounts[name, start] = (*self.sizes[name][at], memory)
        if self.recorded.disrupted:
            self._ranks[name, start] = frozenset(units)
        self.spans[name] = AllocationSpan(start)
        self._firsts.setdefault(name, time)
        self._timeline.add(time, 1, self.sizes[name])
        kept_on = self._left.get(name, frozenset()) if start < time else frozenset()
        for fault in out_of_reach(self.recorded, job, time, set(units) - kept_on):
            self.report.add("A8", name, fault)

    def _start_of(self, name: str, time: float, execution: Mapping[str, Any]) -> float:
        """Return the start of the job; if it got other resources at this instant, it started before."""
        span = self.spans.get(name)
        goes_on = span is not None and span.last == time and execution.get("starttime") == span.start
        goes_on = goes_on or self._attempts.goes_on(name, execution.get("starttime"))
        return span.start if span is not None and goes_on else time

    def _kept(self, rules: ClaimRules, units: dict[int, dict[str, int]]) -> dict[int, dict[str, int]]:
        """Return the units in R, with all units of the racks, sockets … that are held exclusively."""
        if not rules.closed or rules.vague:
            return units
        kept = {rank: dict(masks) for rank, masks in units.items()}
        for type_ in rules.closed:
            for region in self.inventory.regions[type_]:
                if touches(units, region):
                    for rank, masks in region.items():
                        mine = kept.setdefault(rank, {})
                        mine.update({kind: mine.get(kind, 0) | mask for kind, mask in masks.items()})
        return kept

    def _holds(
        self, rules: ClaimRules, units: Mapping[int, Mapping[str, int]], *, whole: bool
    ) -> tuple[int, int, int]:
        """Return the numbers of targets, cores and gpus that no other job may use; all of `whole` targets."""
        totals = self._totals(rules, units, whole=whole)
        return len(units), totals["core"], totals["gpu"]

    def _totals(
        self, rules: ClaimRules, units: Mapping[int, Mapping[str, int]], *, whole: bool
    ) -> Counter[str]:
        totals: Counter[str] = Counter()
        for rank, named in units.items():
            for type_, mask in (self.inventory.targets[rank].units if whole else named).items():
                if whole or type_ not in rules.shared:
                    totals[type_] += mask.bit_count()
        return totals

    def _rules_of(self, job: Job) -> ClaimRules:
        rules = self._rules.get(id(job.jobspec))  # jobs with equal requests share one jobspec object
        if rules is None:
            rules = self._rules[id(job.jobspec)] = ClaimRules(job.jobspec, self.inventory)
        return rules

    def _claim(self, name: str, rules: ClaimRules, units: dict[int, dict[str, int]]) -> None:
        """Take units and targets (A3)."""
        for rank in units:
            here = self._on.setdefault(rank, set())
            if rank in self._alone:
                self.report.add("A3", name, f"rank {rank} is held exclusively by job {self._alone[rank]}")
            elif rules.alone and here:
                self.report.add(
                    "A3", name, f"rank {rank} is requested exclusively, and is held by {sorted(here)}"
                )
            here.add(name)
            if rules.alone:
                self._alone[rank] = name
        for holder, fault in self._holders.take(name, rules, units):
            self.report.add("A3", holder, fault)

    def _check_request(self, name: str, rules: ClaimRules, units: dict[int, dict[str, int]]) -> None:
        """Check request and constraint (A5, A6)."""
        if rules.allowed is not None and not rules.allowed.issuperset(units):
            wrong = sorted(set(units) - rules.allowed)[:5]
            self.report.add("A6", name, f"ranks {wrong} do not satisfy {rules.spec.constraint}")
        if not (rules.alone or rules.partly or rules.apart or self.recorded.whole_targets):
            for type_ in {type_ for type_, _ in self.inventory.kinds}:
                rank = other_kind(type_, kinds_of_units(rules.spec.constraint, type_), units, self.inventory)
                if rank is not None:
                    text = f"rank {rank}: its {type_} units do not satisfy {rules.spec.constraint}"
                    self.report.add("A6", name, text)
        fault = shortfall(
            rules.spec.resources, units, self.inventory, whole_targets=self.recorded.whole_targets
        ) or misplaced(rules, units, self.inventory)
        if fault is not None:
            self.report.add("A5", name, fault)

    def _expiration(self, name: str, job: Job, time: float, execution: Mapping[str, Any]) -> None:
        limit = float("inf") if job.duration is None else job.duration
        expected = 0 if limit == float("inf") else time + max(limit, SLACK)  # RFC 20: later than the start
        expected += self._attempts.gaps.get(name, 0) if expected else 0
        if differs(execution.get("starttime", 0), time):
            self.report.add("A8", name, f"starttime {execution.get('starttime')} is not {time}")
        if differs(execution.get("expiration", 0), expected):
            self.report.add("A8", name, f"expiration {execution.get('expiration')} is not {expected}")

    def _release(
        self, name: str, time: float, execution: Mapping[str, Any], pools: Mapping[str, Any]
    ) -> None:
        held = self.held.get(name)
        if held is None:
            self.report.add("A4", name, "releases resources that it does not hold")
            return
        # most releases repeat the R of the alloc, which was checked already
        same = held.text == execution
        rules = self._rules_of(self.jobs[name])
        shard = {rank: dict(masks) for rank, masks in held.units.items()} if pools and same else held.units
        if not same:
            shard = self._units(name, execution)
        self._give_amounts(held, rules, pools, shard)
        ranks = frozenset(shard)
        for fault in survived(self.recorded, held.start, time, set(ranks)):
            self.report.add("A8", name, fault)
        for rank, masks in list(shard.items()):
            mine = held.units.get(rank)
            if mine is None or any(mask & ~mine.get(type_, 0) for type_, mask in masks.items()):
                self.report.add("A4", name, f"releases units of rank {rank} that it does not hold")
                continue
            rest = {t: m & ~masks.get(t, 0) for t, m in mine.items() if m & ~masks.get(t, 0)}
            self._holders.give_back(name, rules, rank, masks if rest else held.kept.pop(rank))
            if not rest:
                self._leave(name, rank)
        held.units = {} if same else without(held.units, shard)
        first = self.spans[name].first
        self._attempts.release(name, held.start, time)
        self.spans[name] = AllocationSpan(held.start, time if isnan(first) else first, time)
        if not held.units:
            for rank, masks in held.kept.items():  # units of a region that R does not list
                self._holders.give_back(name, rules, rank, masks)
                self._leave(name, rank)
            del self.held[name]
            self._left[name] = ranks
            self._timeline.add(time, -1, self.sizes[name])

    def _leave(self, name: str, rank: int) -> None:
        self._on[rank].discard(name)
        if self._alone.get(rank) == name:
            del self._alone[rank]

    # -- the table ----------------------------------------------------------------------------

    def check_table(self, table: Sequence[Mapping[str, Any]]) -> None:
        """Check the table of jobs against the lines, and that nothing is still held.

        A dropped record is not a job of the workload, even if it has the id of a job.  A job that the
        run itself dropped never held resources.
        """
        dropped = {str(row["id"]) for row in table if row["result"] == "DROPPED"} - self.spans.keys()
        for fault in miscounted(self.recorded, table):
            self.report.add("A7", "(all)", fault)
        table = [row for row in table if row["result"] != "DROPPED" or str(row["id"]) not in self.jobs]
        rows: Counter[str] = Counter(str(row["id"]) for row in table)
        for name in self.jobs:
            if rows[name] != 1 and (rows[name] or name not in dropped):
                self.report.add("A7", name, f"is in the table {rows[name]} times")
        self._rows = {str(row["id"]): row for row in table}
        self._others = JobStarts(self._rows, self._firsts, arrays_of(self.jobs))
        for name in self.held:
            if self._rows.get(name, {}).get("result") != "RUNNING" and not self._cleans_up(name):
                self.report.add("A4", name, "never released all its resources")
        for row in table:
            self._row(str(row["id"]), row)
        for rule, name, fault in self._attempts.faults:
            self.report.add(rule, name, fault)
        for name, fault in wrong_backfills(self.recorded, list(self.jobs.values()), self._rows, self._firsts):
            self.report.add("A7", name, fault)
        check_promises(self.report, self.recorded, table, self._attempts.until(self._rows))
        check_limits(self.report, self.recorded, self._attempts, self.jobs, self._rows, self.inventory)

    def _wrong_interruptions(
        self, name: str, row: Mapping[str, Any], attempts: Sequence[tuple[float, float]]
    ) -> Iterator[str]:
        """Yield the wrong interruptions of a job by failures, where only these interrupt jobs."""
        if len(attempts) == 1 and row["result"] != "FAILED":
            return
        recorded = self.recorded
        others = (
            bool(recorded.live or recorded.renewals)
            or recorded.preemption is not None
            or recorded.reservations
            or recorded.cut == -INF
        )
        if others or recorded.on_failure is None or (recorded.queues and self._preemptible):
            return
        ranks = {start: self._ranks.get((name, start), frozenset()) for start, _ in attempts}
        yield from wrong_interruptions(recorded, row, attempts, ranks)

    def check_other_files(self, path: Path) -> None:
        """Check the other files of the run directory (A9)."""
        faults = list(wrong_totals(self.recorded, self.inventory))
        if (path / "nodes.parquet").is_file():
            faults += wrong_nodes(self.inventory, read_table(path / "nodes.parquet"))
        if (path / "timeline.parquet").is_file():
            vague = any(rules.vague or rules.shared or rules.mixed for rules in self._rules.values())
            rows = read_table(path / "timeline.parquet")
            faults += self._timeline.wrong(self.recorded, self.inventory, rows, vague=vague)
        for fault in faults:
            self.report.add("A9", "(all)", fault)
        if (path / "eventlog.jsonl").is_file():
            with (path / "eventlog.jsonl").open("rb") as lines:
                for name, fault in wrong_events(lines, self._rows, cut=self.recorded.cut is not None):
                    self.report.add("A9", name, fault)

    def _cleans_up(self, name: str) -> bool:
        """Whether a job had ended when the run was cut short, but may still have held its targets."""
        cut, end, epilog = self.recorded.cut, self._rows.get(name, {}).get("end"), self.recorded.epilog
        return cut is not None and end is not None and epilog > 0 and end + epilog >= cut

    def _row(self, name: str, row: Mapping[str, Any]) -> None:
        job = self.jobs.get(name)
        span = self.spans.get(name)
        if job is not None and row["result"] != "DROPPED":
            for fault in wrong_row(self.recorded, job, row, self._shapes):
                self.report.add("A7", name, fault)
            for rule, fault in self._attempts.wrong_work(name, job, row, self._rows):
                self.report.add(rule, name, fault)
            job = self._attempts.as_ran(job, row)
        never = row["result"] in NEVER_RAN or (row["start"] is None and row["result"] in INTERRUPTED)
        if never:
            again = job is not None and span is not None and was_interrupted(self.recorded, job, span)
            again = again and row["result"] not in ("INFEASIBLE", "DROPPED") and name not in self.held
            if (span is not None and not again) or row["start"] is not None:
                self.report.add("A7", name, f"is {row['result']} and has an allocation")
            if not row["reason"] and row["result"] != "PENDING":
                self.report.add("A7", name, f"is {row['result']} without a reason")
            for fault in wrong_zeros(row):
                self.report.add("A7", name, fault)
            return
        if job is None or span is None or row["start"] is None:
            self.report.add("A7", name, f"is {row['result']} and has no allocation")
            return
        self._times(name, job, row, span)
        counts = (row["nodes"], row["cores"], row["gpus"])
        rules = self._rules_of(job)
        sizes = self.sizes[name]
        exact = rules.vague or counts in sizes or rules.may_count(counts, *sizes[:2])
        if row["result"] != "RUNNING" and not exact:
            self.report.add("A7", name, f"the table has nodes, cores, gpus {counts}, R has {sizes[0]}")
        self._same_as_stated(name, row)

    def _same_as_stated(self, name: str, row: Mapping[str, Any]) -> None:
        """Compare the queue and the slots of the table with those in R."""
        queue, slots = self._stated.get(name, (None, None))
        stated = queue is not None or self.recorded.match_policy is not None
        if stated and "queue" in row and (row["queue"] or "default") != queue:
            self.report.add("A7", name, f"the table has queue {row['queue']!r}, R has {queue!r}")
        if slots is not None and row.get("slots", slots) not in (slots, 0):
            self.report.add("A7", name, f"the table has {row['slots']} slots, R has {slots}")

    def _times(self, name: str, job: Job, row: Mapping[str, Any], span: AllocationSpan) -> None:
        done = row["result"] == "RUNNING" or (name in self.held and self._cleans_up(name))
        if not done and row["end"] is not None:
            done = row["end"] <= span.first and span.last <= row["end"] + self.recorded.epilog
        if row["start"] != span.start or not (done or self._attempts.released_late(name, row)):
            text = f"the table has {row['start']} to {row['end']}, R has {span.start} to {span.last}"
            self.report.add("A7", name, text)
        least = self.recorded.epilog_least if row["result"] in (*DONE, "CANCELED") else 0
        early = least and self.sizes[name][0][0] and later(row["end"] + least, span.first)
        if early and not self._attempts.released_late(name, row):
            text = f"releases its nodes at {span.first:g}, before its epilog of at least {least:g} s is over"
            self.report.add("A8", name, text)
        attempts = self._attempts.attempts_of(name, row)
        # A running job that a program changed has another allocation, and did not start again.
        starts = [] if self.recorded.renewals else [start for start, _ in attempts]
        faults = (
            *wrong_eligible(self.recorded, job, row, self._others),
            *while_closed(self.recorded, row, starts),
            *self._wrong_interruptions(name, row, attempts),
            *too_soon(job, row, self._others), *before_log(self.recorded, job, row),
            *self._attempts.wrong_ends(name, job, row),
        )  # fmt: skip
        for fault in faults:
            self.report.add("A8", name, fault)
