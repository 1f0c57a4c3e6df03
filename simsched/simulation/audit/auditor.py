"""The audit: an independent check of a run directory.

It knows the hardware (`Inventory`, read from the graph), the workload's jobspecs, and what
the run wrote: ``allocations.jsonl`` and ``jobs.parquet``.  It knows nothing of the matcher,
of policies or of the engine.  The laws it checks:

A1  lines are in order of time and name jobs of the workload
A2  what R names exists: ranks, their hosts, the ids of their units
A3  nothing is held twice at one time, and exclusive targets are held alone
A4  the release shards of a job add up to its alloc
A5  R satisfies the job's request
A6  R's targets satisfy the job's constraint
A7  every job of the workload is in the table once, and what the table says of it is what R says
A8  a job starts no sooner than it may (submission, begin-time, jobs that it waits for, hold), on
    nothing that is out, and runs as long as it should and no longer
A9  run.json, the timeline, the nodes and the eventlog say the same as the machine, R and the table
A10 every file, and every input that is still there, has the digest that was recorded
P1  no job starts after the start that it was promised, unless something explains it

`audit_documents`, `audit_table`, `audit_life`, `audit_machine`, `audit_events` and `audit_promises` hold
the rules by subject; what is held, by which job and where, is followed here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import RunError, SimschedError
from simsched.formats.rfc.hostlist import Hostlist
from simsched.simulation.audit.audit_report import AuditReport
from simsched.simulation.audit.comparing import SLACK, differs
from simsched.simulation.audit.inventory import Inventory, ids_of, mask_of
from simsched.simulation.audit.job_events import wrong_events
from simsched.simulation.audit.job_life import (
    INTERRUPTED,
    Span,
    Told,
    miscounted,
    out_of_reach,
    survived,
    told,
    too_soon,
    was_interrupted,
    wrong_end,
)
from simsched.simulation.audit.job_rows import wrong_backfills, wrong_row, wrong_zeros
from simsched.simulation.audit.laws import Law, without
from simsched.simulation.audit.machine_tables import Timeline, wrong_nodes, wrong_totals
from simsched.simulation.audit.promises import judge_promises
from simsched.simulation.audit.r_documents import (
    scheduler_of,
    wrong_envelope,
    wrong_properties,
    wrong_slots,
)
from simsched.simulation.audit.regions import touches
from simsched.simulation.audit.request_check import shortfall
from simsched.simulation.audit.run_files import check_digests, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Job, Workload

#: Columns without which a table of jobs cannot be audited.
REQUIRED = frozenset(("id", "start", "end", "result", "reason", "nodes", "cores", "gpus"))
#: Results of jobs that never held anything.
NEVER_RAN = ("INFEASIBLE", "DROPPED", "PENDING")


def audit_run(directory: str | Path, cluster: Cluster, workload: Workload) -> AuditReport:
    """Check a run directory against the cluster and the workload it was made of.

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
    auditor = _Auditor(Inventory.of(cluster), workload.jobs, told(path))
    with (path / "allocations.jsonl").open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            auditor.take(number, line)
    auditor.finish(table)
    auditor.look_around(path)
    check_digests(auditor.report, path)
    return auditor.report


def read_jobs(path: Path) -> list[dict[str, Any]]:
    """Read the table of jobs as one mapping per row; RunError for what is not one."""
    table = read_table(path)
    lacking = sorted(REQUIRED - table[0].keys()) if table else []
    if lacking:
        raise RunError(f"has no column {', '.join(lacking)}", where=str(path))
    return table


def audit(
    inventory: Inventory,
    jobs: Sequence[Job],
    lines: Any,
    table: Sequence[Mapping[str, Any]],
    *,
    told: Told | None = None,
) -> AuditReport:
    """Check the lines of ``allocations.jsonl`` and the rows of the table of jobs.

    Without what the run was `told` (``run.json``) less is known of how jobs should have ended.
    """
    auditor = _Auditor(inventory, jobs, told or Told())
    for number, line in enumerate(lines, start=1):
        auditor.take(number, line)
    auditor.finish(table)
    return auditor.report


@dataclass(slots=True)
class _Held:
    """What a job holds, rank → type → mask: what R names, and what is kept from others."""

    start: float
    text: Any
    units: dict[int, dict[str, int]]
    kept: dict[int, dict[str, int]]


class _Auditor:
    """One audit in progress."""

    def __init__(self, inventory: Inventory, jobs: Sequence[Job], told: Told) -> None:
        self.told = told
        self.inventory = inventory
        self.report = AuditReport(jobs=len(jobs))
        self.jobs = {str(job.id): job for job in jobs}
        self.held: dict[str, _Held] = {}
        self.spans: dict[str, Span] = {}
        self.sizes: dict[str, list[tuple[int, int, int]]] = {}
        """What a job holds as R says, or (under policies that give whole targets) of whole targets."""
        self._laws: dict[int, Law] = {}
        self._busy: dict[tuple[int, str], int] = {}
        self._shared: dict[tuple[int, str], dict[str, int]] = {}
        self._on: dict[int, set[str]] = {}
        self._alone: dict[int, str] = {}
        self._time = float("-inf")
        self._rows: Mapping[str, Mapping[str, Any]] = {}
        self._timeline = Timeline()
        self._firsts: dict[str, float] = {}
        """The first start of each job; `spans` has the last."""
        self._stated: dict[str, tuple[Any, int]] = {}
        """The queue and the slots that the last R of each job states."""
        self._shapes: dict[int, str | None] = {}

    # -- the lines ----------------------------------------------------------------------------

    def take(self, number: int, line: bytes) -> None:
        """Check one line of ``allocations.jsonl``."""
        import msgspec

        try:
            record = msgspec.json.decode(line)
            name, event, time, document = str(record["id"]), record["event"], record["time"], record["R"]
            lite = document["execution"]
            time + 0.0  # a number
        except (msgspec.DecodeError, KeyError, TypeError):
            self.report.add("A1", f"(line {number})", "no alloc or release record")
            return
        if time < self._time:
            self.report.add("A1", name, f"line {number} goes back in time, from {self._time} to {time}")
        self._time = time
        job = self.jobs.get(name)
        if job is None:
            self.report.add("A1", name, f"line {number} names no job of the workload")
        elif event not in ("alloc", "release"):
            self.report.add("A1", name, f"line {number}: unknown event {event!r}")
        else:
            for fault in wrong_envelope(self.told, document):
                self.report.add("A1", name, f"line {number}: {fault}")
            try:
                self._event(event, name, job, time, lite)
                if event == "alloc":
                    self._stated[name] = scheduler_of(document).get("queue"), lite["nslots"]
            except (SimschedError, KeyError, TypeError, AttributeError, ValueError) as error:
                self.report.add("A1", name, f"line {number}: its R cannot be read: {error}")

    def _event(self, event: str, name: str, job: Job, time: float, execution: Mapping[str, Any]) -> None:
        if event == "alloc":
            self.report.allocations += 1
            self._alloc(name, job, time, execution)
        else:
            self.report.releases += 1
            self._release(name, time, execution)

    def _units(self, name: str, execution: Mapping[str, Any]) -> dict[int, dict[str, int]]:
        """Return what R_lite names, checked against the inventory (A2)."""
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
                        why = "ids beyond its own" if mask & ~target.units.get(type_, 0) else "it is down"
                        self.report.add("A2", name, f"rank {rank} has no such {type_}: {why}")
                units[rank] = children
        hosts = list(Hostlist.parse(execution["nodelist"]))
        if hosts != [targets[rank].host for rank in sorted(units)]:
            self.report.add("A2", name, f"nodelist {execution['nodelist']} is not the hosts of its ranks")
        for fault in wrong_properties(self.inventory, execution, units):
            self.report.add("A2", name, fault)
        return units

    def _alloc(self, name: str, job: Job, time: float, execution: Mapping[str, Any]) -> None:
        if name in self.held:
            self.report.add("A3", name, "allocated while it holds something")
        units = self._units(name, execution)
        law = self._law(job)
        kept = self._kept(law, units)
        self._claim(name, law, kept)
        self._judge(name, law, units)
        fault = wrong_slots(law.spec.resources, execution, len(units))
        if fault is not None:
            self.report.add("A5", name, fault)
        self._expiration(name, job, time, execution)
        self.held[name] = _Held(time, execution, units, kept)
        self.sizes[name] = [
            self._holds(law, units, whole=law.alone),
            self._holds(law, units, whole=True),
            self._holds(law, kept, whole=law.alone),
        ]
        self.spans[name] = Span(time)
        self._firsts.setdefault(name, time)
        self._timeline.add(time, 1, self.sizes[name])
        for fault in out_of_reach(self.told, job, time, set(units)):
            self.report.add("A8", name, fault)

    def _kept(self, law: Law, units: dict[int, dict[str, int]]) -> dict[int, dict[str, int]]:
        """Return what R names, with all that lies in the racks, sockets … that are held exclusively."""
        if not law.closed or law.vague:
            return units
        kept = {rank: dict(masks) for rank, masks in units.items()}
        for type_ in law.closed:
            for region in self.inventory.regions[type_]:
                if touches(units, region):
                    for rank, masks in region.items():
                        mine = kept.setdefault(rank, {})
                        mine.update({kind: mine.get(kind, 0) | mask for kind, mask in masks.items()})
        return kept

    def _holds(
        self, law: Law, units: Mapping[int, Mapping[str, int]], *, whole: bool
    ) -> tuple[int, int, int]:
        """Return how many targets, cores and gpus are kept from others: of `whole` targets all."""
        totals: Counter[str] = Counter()
        for rank, named in units.items():
            for type_, mask in (self.inventory.targets[rank].units if whole else named).items():
                if whole or type_ not in law.shared:
                    totals[type_] += mask.bit_count()
        return len(units), totals["core"], totals["gpu"]

    def _law(self, job: Job) -> Law:
        law = self._laws.get(id(job.jobspec))
        if law is None:
            law = self._laws[id(job.jobspec)] = Law(job.jobspec, self.inventory)
        return law

    def _claim(self, name: str, law: Law, units: dict[int, dict[str, int]]) -> None:
        """Take units and targets (A3)."""
        for rank, masks in units.items():
            here = self._on.setdefault(rank, set())
            if rank in self._alone:
                self.report.add("A3", name, f"rank {rank} is held exclusively by job {self._alone[rank]}")
            elif law.alone and here:
                self.report.add(
                    "A3", name, f"rank {rank} is to be held exclusively, jobs are on it: {sorted(here)}"
                )
            here.add(name)
            if law.alone:
                self._alone[rank] = name
            for type_, mask in masks.items():
                self._take_units(name, (rank, type_), mask, shared=type_ in law.shared)

    def _take_units(self, name: str, place: tuple[int, str], mask: int, *, shared: bool) -> None:
        taken = self._busy.get(place, 0)
        sharers = self._shared.get(place)
        if sharers and not shared:
            for other in sharers.values():
                taken |= other
        if taken & mask:
            self.report.add("A3", name, f"{place[1]} of rank {place[0]} held twice: mask {taken & mask:#x}")
        if shared:
            self._shared.setdefault(place, {})[name] = mask
        else:
            self._busy[place] = self._busy.get(place, 0) | mask

    def _judge(self, name: str, law: Law, units: dict[int, dict[str, int]]) -> None:
        """Request and constraint (A5, A6)."""
        if law.allowed is not None and not law.allowed.issuperset(units):
            wrong = sorted(set(units) - law.allowed)[:5]
            self.report.add("A6", name, f"ranks {wrong} do not satisfy {law.spec.constraint}")
        fault = shortfall(law.spec.resources, units, self.inventory, whole_targets=self.told.whole_targets)
        if fault is not None:
            self.report.add("A5", name, fault)

    def _expiration(self, name: str, job: Job, time: float, execution: Mapping[str, Any]) -> None:
        limit = float("inf") if job.duration is None else job.duration
        expected = 0 if limit == float("inf") else time + max(limit, SLACK)  # RFC 20: later than the start
        if differs(execution.get("starttime", 0), time):
            self.report.add("A8", name, f"starttime {execution.get('starttime')} is not {time}")
        if differs(execution.get("expiration", 0), expected):
            self.report.add("A8", name, f"expiration {execution.get('expiration')} is not {expected}")

    def _release(self, name: str, time: float, execution: Mapping[str, Any]) -> None:
        held = self.held.get(name)
        if held is None:
            self.report.add("A4", name, "releases what it does not hold")
            return
        same = held.text == execution
        shard = held.units if same else self._units(name, execution)
        law = self._law(self.jobs[name])
        for fault in survived(self.told, held.start, time, set(shard)):
            self.report.add("A8", name, fault)
        for rank, masks in list(shard.items()):
            mine = held.units.get(rank)
            if mine is None or any(mask & ~mine.get(type_, 0) for type_, mask in masks.items()):
                self.report.add("A4", name, f"releases on rank {rank} what it does not hold")
                continue
            rest = {t: m & ~masks.get(t, 0) for t, m in mine.items() if m & ~masks.get(t, 0)}
            self._give_back(name, law, rank, masks if rest else held.kept.pop(rank))
            if not rest:
                self._leave(name, rank)
        held.units = {} if same else without(held.units, shard)
        first = self.spans[name].first
        self.spans[name] = Span(held.start, time if isnan(first) else first, time)
        if not held.units:
            for rank, masks in held.kept.items():  # of a rack, say, that R did not name whole
                self._give_back(name, law, rank, masks)
                self._leave(name, rank)
            del self.held[name]
            self._timeline.add(time, -1, self.sizes[name])

    def _leave(self, name: str, rank: int) -> None:
        self._on[rank].discard(name)
        if self._alone.get(rank) == name:
            del self._alone[rank]

    def _give_back(self, name: str, law: Law, rank: int, masks: Mapping[str, int]) -> None:
        for type_, mask in masks.items():
            if type_ in law.shared:
                sharers = self._shared[rank, type_]
                sharers[name] &= ~mask
                if not sharers[name]:
                    del sharers[name]
            else:
                self._busy[rank, type_] &= ~mask

    # -- the table ----------------------------------------------------------------------------

    def finish(self, table: Sequence[Mapping[str, Any]]) -> None:
        """Check the table of jobs against the lines, and that nothing is still held.

        A record that was left out of the workload (DROPPED) is no job of it, even if it bears
        the id of one; a job that was left out by the run itself never had anything.
        """
        dropped = {str(row["id"]) for row in table if row["result"] == "DROPPED"} - self.spans.keys()
        for fault in miscounted(self.told, table):
            self.report.add("A7", "(all)", fault)
        table = [row for row in table if row["result"] != "DROPPED" or str(row["id"]) not in self.jobs]
        rows: Counter[str] = Counter(str(row["id"]) for row in table)
        for name in self.jobs:
            if rows[name] != 1 and (rows[name] or name not in dropped):
                self.report.add("A7", name, f"is in the table {rows[name]} times")
        self._rows = {str(row["id"]): row for row in table}
        for name in self.held:
            if self._rows.get(name, {}).get("result") != "RUNNING" and not self._cleans_up(name):
                self.report.add("A4", name, "never gave back everything")
        for row in table:
            self._row(str(row["id"]), row)
        for name, fault in wrong_backfills(self.told, list(self.jobs.values()), self._rows, self._firsts):
            self.report.add("A7", name, fault)
        judge_promises(self.report, self.told, table)

    def look_around(self, path: Path) -> None:
        """Check the other files of the run directory (A9)."""
        faults = list(wrong_totals(self.told, self.inventory))
        if (path / "nodes.parquet").is_file():
            faults += wrong_nodes(self.inventory, read_table(path / "nodes.parquet"))
        if (path / "timeline.parquet").is_file():
            vague = any(law.vague or law.shared for law in self._laws.values())
            faults += self._timeline.wrong(self.told, read_table(path / "timeline.parquet"), vague=vague)
        for fault in faults:
            self.report.add("A9", "(all)", fault)
        if (path / "eventlog.jsonl").is_file():
            with (path / "eventlog.jsonl").open("rb") as lines:
                for name, fault in wrong_events(lines, self._rows, cut=self.told.cut is not None):
                    self.report.add("A9", name, fault)

    def _cleans_up(self, name: str) -> bool:
        """Whether a job had ended when the run was cut short, and may have held its targets still."""
        cut, row = self.told.cut, self._rows.get(name, {})
        end = row.get("end")
        return cut is not None and end is not None and end + self.told.epilog >= cut and self.told.epilog > 0

    def _row(self, name: str, row: Mapping[str, Any]) -> None:
        job = self.jobs.get(name)
        span = self.spans.get(name)
        if job is not None and row["result"] != "DROPPED":
            for fault in wrong_row(self.told, job, row, self._shapes):
                self.report.add("A7", name, fault)
        never = row["result"] in NEVER_RAN or (row["start"] is None and row["result"] in INTERRUPTED)
        if never:
            again = job is not None and span is not None and was_interrupted(self.told, job, span)
            again = again and row["result"] not in ("INFEASIBLE", "DROPPED") and name not in self.held
            if (span is not None and not again) or row["start"] is not None:
                self.report.add("A7", name, f"is {row['result']} and has an allocation")
            if not row["reason"] and row["result"] != "PENDING":
                self.report.add("A7", name, f"is {row['result']} without a reason")
            for fault in wrong_zeros(row):
                self.report.add("A7", name, fault)
            return
        if job is None or span is None or row["start"] is None:
            self.report.add("A7", name, f"is {row['result']} and was never allocated anything")
            return
        self._times(name, job, row, span)
        said = (row["nodes"], row["cores"], row["gpus"])
        vague = self._law(job).vague
        if row["result"] != "RUNNING" and not vague and said not in self.sizes[name]:
            self.report.add("A7", name, f"table says nodes, cores, gpus {said}, R says {self.sizes[name][0]}")
        self._same_as_stated(name, row)

    def _same_as_stated(self, name: str, row: Mapping[str, Any]) -> None:
        """Compare the queue and the slots of the table with those that R states."""
        queue, slots = self._stated.get(name, (None, None))
        stated = queue is not None or self.told.match_policy is not None
        if stated and "queue" in row and (row["queue"] or "default") != queue:
            self.report.add("A7", name, f"table says queue {row['queue']!r}, R says {queue!r}")
        if slots is not None and row.get("slots", slots) not in (slots, 0):
            self.report.add("A7", name, f"table says {row['slots']} slots, R says {slots}")

    def _times(self, name: str, job: Job, row: Mapping[str, Any], span: Span) -> None:
        done = row["result"] == "RUNNING" or (name in self.held and self._cleans_up(name))
        if not done and row["end"] is not None:
            done = row["end"] <= span.first and span.last <= row["end"] + self.told.epilog
        if row["start"] != span.start or not done:
            text = f"table says {row['start']} to {row['end']}, R says {span.start} to {span.last}"
            self.report.add("A7", name, text)
        for fault in (*too_soon(job, row, self._rows), *wrong_end(self.told, job, row)):
            self.report.add("A8", name, fault)
