"""The pass over ``allocations.jsonl``: it follows which job holds which units, line by line.

What R and the requests tell is checked here (A1 to A6, and of A8 what concerns targets).  What the lines tell
of each job in time and numbers becomes two tables for the queries of the other modules:

held : one row per line that allocates, in order of `k`.  `job` is the place of the job in the workload,
    `attempt` the number of its start, `kind` whether it starts (0), has other units than before (1) or goes
    on after a suspension (2), `start` the start of the job (s), `first` and `last` the first and the last
    release (s), `open` whether it still holds units, `gap` the seconds of suspension before it, `size` its
    row of `sizes`, `failures` the times (s) until its release at which one of its ranks failed; `newest`
    marks the last row of each job.
sizes : the numbers of nodes, cores and GPUs that the table of jobs may have, as bounds, for each `size`.  R
    does not tell which units are shared, nor which targets some part of a request holds alone.  `own` marks
    the number that no other job may use (1, else 0).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.errors import SimschedError
from simsched.formats.rfc.constraint import kinds_of_units
from simsched.simulation.audit.claim_rules import ClaimRules, other_kind
from simsched.simulation.audit.inventory import touches
from simsched.simulation.audit.recorded_r import (
    placement_reader,
    read_document,
    read_line,
    wrong_envelope,
)
from simsched.simulation.audit.request_check import RequestCheck
from simsched.simulation.audit.reserved_nodes import ReservedNodes
from simsched.simulation.audit.tolerance import SLACK, differs, later
from simsched.simulation.audit.unit_holders import LicenceUse, UnitHolders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from simsched.simulation.audit.audit_report import AuditReport
    from simsched.simulation.audit.inventory import Inventory
    from simsched.simulation.audit.recorded_r import AllocationLine, Execution, RDocument, RPlacement
    from simsched.simulation.audit.recorded_run import RecordedRun
    from simsched.workload.job import Job

    Units = Mapping[int, Mapping[str, int]]


STARTS, CHANGES, GOES_ON = range(3)
HELD = """held (k BIGINT, job BIGINT, attempt BIGINT, kind BIGINT, size BIGINT, time DOUBLE, start DOUBLE,
    gap DOUBLE, queue VARCHAR, slots BIGINT, first DOUBLE, last DOUBLE, open BOOLEAN, newest BOOLEAN,
    failures DOUBLE[])"""
SIZES = """sizes (size BIGINT, own BIGINT, nodes DOUBLE, least_cores DOUBLE, most_cores DOUBLE,
    least_gpus DOUBLE, most_gpus DOUBLE, memory DOUBLE)"""


class _Row(msgspec.Struct, gc=False):
    """A row of the table `held`; before it its attempt `ran` and was suspended (`gaps`) for some seconds."""

    k: int
    job: int
    attempt: int
    kind: int
    size: int
    time: float
    start: float
    gap: float
    queue: Any
    slots: int
    first: float = nan
    last: float = nan
    open: bool = True
    newest: bool = True
    failures: list[float] | None = None
    ran: float = 0
    gaps: float = 0


@dataclass(slots=True)
class _Holding:
    """The units of a job: those in R that it still holds, and all that no other job may use."""

    row: _Row
    R: bytes
    rules: ClaimRules
    placement: RPlacement
    units: dict[int, dict[str, int]]
    amounts: dict[str, int]
    kept: dict[int, dict[str, int]]
    kept_amounts: dict[str, int]
    in_part: bool = False
    """Whether it released some of its units."""


class AllocationPass:
    """The check of all lines."""

    def __init__(
        self, report: AuditReport, recorded: RecordedRun, inventory: Inventory, jobs: Sequence[Job]
    ) -> None:
        self._report, self._recorded, self._inventory, self._jobs = report, recorded, inventory, jobs
        self._places = {str(job.id): at for at, job in enumerate(jobs)}
        self._held: dict[str, _Holding] = {}
        self.rows: list[_Row] = []
        self._newest: dict[int, _Row] = {}
        self.sizes: list[tuple[float, ...]] = []
        self._size_of: dict[Any, int] = {}
        """Request and `RPlacement.alike` that are right → size."""
        self._rules: dict[int, ClaimRules] = {}
        self._placement = placement_reader(inventory)
        self._holders = UnitHolders(inventory)
        self._check = RequestCheck(inventory, whole_targets=recorded.whole_targets)
        self._licences = LicenceUse(recorded.licences)
        self._reserved = ReservedNodes(recorded.reservations, recorded.windows)
        limited = recorded.licences or recorded.reservations or recorded.outages or recorded.suspends
        self._in_time_too = bool(limited)
        self._had: dict[str, RPlacement] = {}
        """What each job had that may be suspended."""
        self._left: dict[str, frozenset[int]] = {}
        """The ranks that each job released last."""
        self._wrong_ends: dict[str, tuple[_Row, str]] = {}
        """The newest allocation of a job, and what is wrong about its expiration."""
        self._vague = 0

    def read(self, lines: Iterable[bytes]) -> None:
        """Check all lines."""
        number, before, report = 0, -inf, self._report
        for number, text in enumerate(lines, start=1):
            try:
                line = read_line(text)
            except ValueError:
                report.add("A1", f"(line {number})", "is not an alloc or release record")
                continue
            name, now = str(line.id), line.time
            if now < before:
                report.add("A1", name, f"line {number} goes back in time, from {before} to {now}")
            before, at = now, self._places.get(name)
            if at is None:
                report.add("A1", name, f"line {number}: the workload has no such job")
            elif line.event not in ("alloc", "release"):
                report.add("A1", name, f"line {number}: unknown event {line.event!r}")
            else:
                try:
                    self._line(line, name, at, number)
                except (SimschedError, LookupError, TypeError, AttributeError, ValueError) as error:
                    report.add("A1", name, f"line {number}: its R cannot be read: {error}")
        for name, (_, fault) in self._wrong_ends.items():
            report.add("A8", name, fault)
        report.checked["A1", "lines"] = number
        for law, of in (("A2", "R documents"), ("A3", "R documents"), ("A5", "requests")):
            report.checked[law, of] = report.allocations
        report.checked["A4", "releases"] = report.releases
        report.checked["L2", "allocations"] = self._licences.checked
        for law, count in self._reserved.checked.items():
            report.checked[law, "allocations"] = count
        for count, note in (
            (self._check.undecided, "requests have too many possible counts to be compared with their R"),
            (self._vague, "allocations hold racks, sockets … of which R does not name all units or numbers"),
        ):
            report.notes += [f"{count} {note}"] if count else []

    @property
    def is_vague(self) -> bool:
        """Whether R does not determine how many units are in use."""
        return any(rules.unclear for rules in self._rules.values())

    def _line(self, line: AllocationLine, name: str, at: int, number: int) -> None:
        held, text = self._held.get(name), bytes(line.R)
        alloc = line.event == "alloc"
        if alloc:
            self._report.allocations += 1
        else:
            self._report.releases += 1
        if held is not None and not alloc and text == held.R:  # most releases repeat the R of the alloc
            self._release(name, held, line.time, held.placement, whole=not held.in_part)
            return
        document = read_document(text)
        for fault in wrong_envelope(self._recorded, document):
            self._report.add("A1", name, f"line {number}: {fault}")
        execution = document.execution
        placement = self._placement(
            *(bytes(execution.R_lite), bytes(execution.nodelist), bytes(execution.properties)),
            bytes(document.scheduling),
        )
        for fault in placement.faults:
            self._report.add("A2", name, fault)
        if alloc:
            self._alloc(name, at, line.time, text, document, placement)
        elif held is None:
            self._report.add("A4", name, "releases resources that it does not hold")
        else:
            self._release(name, held, line.time, placement, whole=False)

    # -- allocations --------------------------------------------------------------------------

    def _alloc(
        self, name: str, at: int, now: float, text: bytes, document: RDocument, placement: RPlacement
    ) -> None:
        job, report = self._jobs[at], self._report
        if name in self._held:
            report.add("A3", name, "allocated while it holds resources")
        rules = self._rules.get(id(job.jobspec))  # jobs with equal requests share one jobspec object
        if rules is None:
            rules = self._rules[id(job.jobspec)] = ClaimRules(job.jobspec, self._inventory)
        kept = self._kept(rules, placement)
        for holder, fault in self._holders.take(name, rules, *kept):
            report.add("A3", holder, fault)
        size = self._size(name, rules, placement, *kept)
        least, most = rules.slots if rules.slots[1] else [len(placement.all)] * 2
        slots = document.execution.nslots
        if not isinstance(slots, int) or isinstance(slots, bool) or not least <= slots <= most:
            wanted = least if least == most else f"{least} to {most}"
            report.add("A5", name, f"its R has {slots!r} slots, the request {wanted}")
            slots = -1
        row = self._note(at, now, document, size, slots)
        self._held[name] = _Holding(row, text, rules, placement, placement.units, placement.amounts, *kept)
        if self._in_time_too:
            self._in_time(name, job, row, placement)
        self._expiration(name, job, row, document.execution)

    def _kept(
        self, rules: ClaimRules, placement: RPlacement
    ) -> tuple[dict[int, dict[str, int]], dict[str, int]]:
        """Return units and amounts that no other job may use: R's, and all in racks … held exclusively."""
        self._vague += rules.vague
        if not rules.closed or rules.vague:
            return placement.units, placement.amounts
        units, amounts = {rank: dict(masks) for rank, masks in placement.units.items()}, {**placement.amounts}
        pools = self._inventory.pools
        wide = {type_ for _, type_, _ in pools.values()}
        for region in (one for kind in rules.closed for one in self._inventory.regions[kind]):
            if touches(placement.all, region):
                for rank, masks in region.items():
                    mine = units.setdefault(rank, {})
                    mine.update({t: mine.get(t, 0) | mask for t, mask in masks.items() if t not in wide})
                amounts |= {
                    path: all_.bit_count()
                    for path, (rank, type_, all_) in pools.items()
                    if all_ & region.get(rank, {}).get(type_, 0)
                }
        return units, amounts

    def _size(
        self, name: str, rules: ClaimRules, placement: RPlacement, kept: Units, amounts: Mapping[str, int]
    ) -> int:
        """Compare units with a request and its constraint (A5, A6); return the place of their numbers."""
        spec, inventory, units = rules.spec, self._inventory, placement.all
        if rules.allowed is not None:
            self._report.checked["A6", "constraints"] += 1
            if not rules.allowed.issuperset(units):
                wrong = sorted(set(units) - rules.allowed)[:5]
                self._report.add("A6", name, f"ranks {wrong} do not satisfy {spec.constraint}")
        key = id(spec), placement.alike
        if rules.by_number and key in self._size_of:
            return self._size_of[key]
        if not (rules.alone or rules.partly or rules.apart or self._recorded.whole_targets):
            for type_ in {type_ for type_, _ in inventory.kinds}:
                rank = other_kind(type_, kinds_of_units(spec.constraint, type_), units, inventory)
                if rank is not None:
                    text = f"rank {rank}: its {type_} units do not satisfy {spec.constraint}"
                    self._report.add("A6", name, text)
        fault = self._check.fault(spec.resources, units) or self._check.misplaced(rules.apart, units)
        if fault is not None:
            self._report.add("A5", name, fault)
        size = self.sizes[-1][0] + 1 if self.sizes else 0
        pools = inventory.pools
        named, own = (
            _totals(rules, masks, [(pools[path][1], number) for path, number in some.items()])
            for masks, some in ((placement.units, placement.amounts), (kept, amounts))
        )
        targets = inventory.targets
        whole, all_kept = (_totals(None, {r: targets[r].usable for r in each}) for each in (units, kept))
        if rules.alone:
            named, own = whole, all_kept
        mixed, most = rules.mixed, whole if rules.partly else named
        self.sizes += [
            (size, 1, *_numbers(own, own)),
            (size, 0, *_numbers(named, named)),
            (size, 0, *_numbers(named | {t: mixed[t] for t in mixed}, most)),
        ]
        if rules.vague:
            self.sizes.append((size, 0, nan, 0, inf, 0, inf, 0))
        if self._recorded.whole_targets:
            self.sizes.append((size, 0, *_numbers(whole, whole)))
        if fault is None:
            self._size_of[key] = int(size)
        return int(size)

    def _note(self, at: int, now: float, document: RDocument, size: int, slots: int) -> _Row:
        """Add a row of an allocation."""
        queue, before = document.attributes.system.scheduler.queue, self._newest.get(at)
        row = self._newest[at] = _Row(len(self.rows), at, 0, STARTS, size, now, now, 0, queue, slots)
        self.rows.append(row)
        if before is not None:
            before.newest, row.attempt = False, before.attempt + 1
            suspends = self._recorded.suspends
            if before.start == document.execution.starttime and before.start < now:
                if suspends or before.last == now:
                    row.attempt, row.start, row.kind = before.attempt, before.start, CHANGES
                if suspends:
                    first = now if isnan(before.first) else before.first
                    row.kind, row.gap = GOES_ON, now - first
                    row.ran, row.gaps = before.ran + first - before.time, before.gaps + row.gap
        return row

    def _in_time(self, name: str, job: Job, row: _Row, placement: RPlacement) -> None:
        """Check the units of an allocation against outages, reservations, licences and suspensions."""
        report, units, now = self._report, placement.all, row.time
        if row.kind == GOES_ON:
            report.checked["V2", "resumed jobs"] += 1
            before = self._had.get(name)
            if before is not None and (before.all, before.amounts) != (units, placement.amounts):
                report.add("V2", name, f"goes on at {now:g} with other resources than it had")
        if row.kind != CHANGES:
            for fault in self._reserved.wrong(job, now, units, row.ran if row.kind == GOES_ON else None):
                report.add("R1", name, fault)
        licences = self._licences
        for fault in licences.take(job, placement.outside):
            report.add("L2", name, fault)
        for fault in self._reserved.wrong_licences(job, now, units, licences.taken, licences.free):
            report.add("R2", name, fault)
        kept_on = self._left.get(name, frozenset()) if row.kind != STARTS else frozenset()
        for fault in out_of_reach(self._recorded, job, now, units.keys() - kept_on):
            report.add("A8", name, fault)

    def _expiration(self, name: str, job: Job, row: _Row, execution: Execution) -> None:
        limit = inf if job.duration is None else job.duration
        expected = 0 if limit == inf else row.start + max(limit, SLACK) + row.gaps  # RFC 20: after the start
        if differs(execution.starttime, row.start):
            self._report.add("A8", name, f"starttime {execution.starttime} is not {row.start}")
        before, fault = self._wrong_ends.pop(name, (row, ""))
        # An R that another one replaces may have had the limit of before.
        if fault and not (before.last == row.time and before.start == row.start):
            self._report.add("A8", name, fault)
        if differs(execution.expiration, expected):
            self._wrong_ends[name] = row, f"expiration {execution.expiration} is not {expected}"

    # -- releases -----------------------------------------------------------------------------

    def _release(self, name: str, held: _Holding, now: float, shard: RPlacement, *, whole: bool) -> None:
        row = held.row
        if isnan(row.first):
            row.first = now
            if self._recorded.suspends:
                self._had[name] = held.placement
        row.last = now
        self._licences.give_back(shard.outside)
        self._reserved.release(name)
        if self._recorded.failures:
            self._failures(name, row, now, shard.all.keys())
        if whole:
            held.units, held.amounts = {}, {}
        else:
            if not held.in_part:
                held.units, held.kept, held.amounts = dict(held.units), dict(held.kept), dict(held.amounts)
            held.in_part = True
            self._release_part(name, held, shard)
        if held.units or held.amounts:
            return
        self._holders.give_back(name, held.rules, held.kept, held.kept_amounts, leaves=True)
        row.open = False
        del self._held[name]
        if self._recorded.outages:
            self._left[name] = frozenset(shard.all)

    def _release_part(self, name: str, held: _Holding, shard: RPlacement) -> None:
        for rank, masks in shard.units.items():
            mine = held.units.get(rank)
            if mine is None or any(mask & ~mine.get(type_, 0) for type_, mask in masks.items()):
                self._report.add("A4", name, f"releases units of rank {rank} that it does not hold")
                continue
            rest = {type_: mask & ~masks.get(type_, 0) for type_, mask in mine.items()}
            rest = {type_: mask for type_, mask in rest.items() if mask}
            if rest:
                held.units[rank] = rest
                self._holders.give_back(name, held.rules, {rank: masks}, {}, leaves=False)
                kept = held.kept[rank]
                held.kept[rank] = {type_: mask & ~masks.get(type_, 0) for type_, mask in kept.items()}
            else:
                del held.units[rank]
                here = {p: n for p, n in held.kept_amounts.items() if self._inventory.pools[p][0] == rank}
                self._holders.give_back(name, held.rules, {rank: held.kept.pop(rank)}, here, leaves=True)
                held.kept_amounts = {p: n for p, n in held.kept_amounts.items() if p not in here}
        for path, amount in shard.amounts.items():
            if amount > held.amounts.get(path, 0):
                self._report.add("A4", name, f"releases units of {path} that it does not hold")
            left = held.amounts.pop(path, 0) - amount
            if left > 0:
                held.amounts[path] = left

    def _failures(self, name: str, row: _Row, now: float, ranks: Iterable[int]) -> None:
        """Note the failures of ranks that a job had until now; it does not run through them."""
        start, row.failures = row.start, row.failures or []
        for rank in sorted(ranks):
            times = [at for at in self._recorded.failures.get(rank, ()) if start <= at and not later(at, now)]
            through = [at for at in times if start < at < now]
            # a job that is in cleanup when its target fails continues
            if through and not self._recorded.epilog:
                self._report.add("A8", name, f"ran through the failure of rank {rank} at {through[0]:g}")
            row.failures += times


def _totals(rules: ClaimRules | None, units: Units, amounts: Iterable[tuple[str, int]] = ()) -> Counter[str]:
    """Return the numbers of targets and of units by type, without those that a request shares."""
    totals: Counter[str] = Counter(node=len(units))
    counted = ((type_, mask.bit_count()) for masks in units.values() for type_, mask in masks.items())
    for type_, number in (*counted, *amounts):
        if rules is None or type_ not in rules.shared:
            totals[type_] += number
    return totals


def _numbers(least: Mapping[str, int], most: Mapping[str, int]) -> tuple[float, ...]:
    core, gpu = ((least.get(type_, 0), most.get(type_, 0)) for type_ in ("core", "gpu"))
    return least["node"], *core, *gpu, least.get("memory", 0)


def out_of_reach(recorded: RecordedRun, job: Job, time: float, ranks: Set[int]) -> Iterator[str]:
    """Yield the outages during which a job was allocated targets, or into which it would run."""
    limit = inf if job.duration is None else job.duration
    for outage in recorded.outages:
        until = time + limit if outage.kind == "maintenance" else time
        # a pass may precede it at its instant: one after each event, or before a program drains a target
        begun = outage.start == time and not (recorded.each_event or recorded.live)
        inside = time < outage.end and (later(until, outage.start) or begun)
        if inside and not outage.ranks.isdisjoint(ranks):
            yield f"is allocated rank {min(outage.ranks & ranks)} despite its {outage}"
