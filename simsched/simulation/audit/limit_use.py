"""Rules of the audit for limits: their use is summed up again from the tables at each start.

Use rises only when a job starts or is submitted, so these instants are enough.  A job counts with its
allocation: the nodes, cores and GPUs of the table, and those of R for attempts that the table does not have.
Jobs of zero seconds, and jobs whose time of submission or end is not known, are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.formats.rfc.constraint import gpu_type_of
from simsched.simulation.limits.limit_kinds import memory_in
from simsched.simulation.limits.limit_rules import GPU_TYPE, limits_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from simsched.simulation.audit.audit_report import AuditReport
    from simsched.simulation.audit.inventory import Inventory
    from simsched.simulation.audit.recorded_run import RecordedRun
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.workload.job import Job

_NAMES: Mapping[str, Callable[[Job], str | None]] = {
    "user": lambda job: job.user,
    "account": lambda job: job.bank,
    "queue": lambda job: job.queue,
    "qos": lambda job: job.qos,
    "array": lambda job: None if job.array_task is None else job.array_task.array,
    GPU_TYPE: lambda job: gpu_type_of(job.jobspec.constraint),
}
_KINDS = {"node-hours": "nodes", "core-hours": "cores", "gpu-hours": "gpus"}
_SLACK = 1e-3
_UNITS = ("nodes", "cores", "gpus", "memory")
_ONE = ("running-jobs", *_UNITS)


class Attempt(NamedTuple):
    """A time (s) in which a job ran; jobs that are queued again have several. `end` is inf at the end."""

    name: str
    start: float
    end: float


class Attempts:
    """The times of all attempts of all jobs, from the lines of the allocations."""

    def __init__(self) -> None:
        self._released: dict[tuple[str, float], float] = {}
        self._starts: dict[str, list[float]] = {}
        self.amounts: dict[tuple[str, float], tuple[int, ...]] = {}
        """Job and start → the nodes, cores, GPUs and memory of the attempt by R."""

    def start(self, name: str, time: float) -> None:
        """Note that a job got resources."""
        self._released[name, time] = inf
        self._starts.setdefault(name, []).append(time)

    def release(self, name: str, start: float, time: float) -> None:
        """Note that the attempt that began at `start` released resources; the first release is its end."""
        key = name, start
        self._released[key] = min(self._released.get(key, inf), time)

    def attempts_of(self, name: str, row: Mapping[str, Any]) -> list[tuple[float, float]]:
        """Return start and end of each attempt of a job, in order; its row has the end of the last one."""
        found = [(start, self._released[name, start]) for start in dict.fromkeys(self._starts.get(name, ()))]
        if found and found[-1][0] == row.get("start") and row.get("end") is not None:
            found[-1] = found[-1][0], float(row["end"])
        return found

    def until(self, rows: Mapping[str, Mapping[str, Any]]) -> list[Attempt]:
        """Return the attempts; the last one of a job ends at the end in the table."""
        return [
            Attempt(name, start, end)
            for name in self._starts
            for start, end in self.attempts_of(name, rows.get(name, {}))
        ]


def check_limits(
    report: AuditReport,
    recorded: RecordedRun,
    attempts: Attempts,
    jobs: Mapping[str, Job],
    rows: Mapping[str, Mapping[str, Any]],
    inventory: Inventory,
) -> None:
    """Add the limits that were exceeded to a report (L1)."""
    rules = recorded.limits
    arrays = recorded.queue_policy != "recorded" and any(
        job.array_task is not None and job.array_task.limit is not None for job in jobs.values()
    )
    if not rules and not arrays:
        return
    cut = inf if recorded.cut is None else recorded.cut
    audit = LimitAudit(rules, jobs, inventory, attempts, arrays=arrays)
    for name, fault in audit.faults(rows, cut):
        report.add("L1", name, fault)


class _Bound(NamedTuple):
    """The most of a quantity for the jobs with one `key`; a job that it does not bind counts, too."""

    key: tuple[Any, ...]
    quantity: str
    most: float
    names: str
    binds: bool


@dataclass(slots=True)
class _Use:
    """The jobs that count at present: name → (requested end, amounts), and the work of jobs that ended."""

    running: dict[str, tuple[float, float, Mapping[str, float]]] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)

    def total(self, quantity: str, now: float) -> float:
        if quantity == "running-jobs":
            return len(self.running)
        if quantity.startswith("running-"):
            kind = _KINDS[quantity.removeprefix("running-")]
            return sum(units[kind] * max(0, end - now) for end, _, units in self.running.values()) / 3600
        if quantity in _KINDS:
            kind = _KINDS[quantity]
            asked = sum(units[kind] * seconds for _, seconds, units in self.running.values())
            return (asked + self.spent.get(kind, 0)) / 3600
        return sum(units[quantity] for _, _, units in self.running.values())


class LimitAudit:
    """The limits of a run, and the jobs of its workload with their amounts."""

    def __init__(
        self,
        rules: Sequence[LimitRule],
        jobs: Mapping[str, Job],
        inventory: Inventory,
        attempts: Attempts,
        *,
        arrays: bool = False,
    ) -> None:
        self._rules = rules
        self._arrays = arrays
        self._jobs = jobs
        self._memory = inventory.memory
        self._attempts = attempts
        self._bounds = {name: list(self._bounds_of(job)) for name, job in jobs.items()}

    def faults(self, rows: Mapping[str, Mapping[str, Any]], cut: float = inf) -> Iterator[tuple[str, str]]:
        """Yield (job, fault) for each start and submission until `cut` (s) that exceeds a limit."""
        attempts = self._attempts.until(rows)
        yield from self._too_large(attempts, rows)
        yield from self._too_many_submitted(rows, cut)
        events = sorted(
            event
            for at, (name, start, end) in enumerate(attempts)
            if end > start and self._bounds.get(name)
            for event in ((start, 1, at), (end, 0, at))
        )
        uses: dict[tuple[Any, ...], _Use] = {}
        for time, starts, at in events:
            name, start, _ = attempts[at]
            if time == inf:
                break
            seconds = _seconds(rows.get(name, {}))
            units = self._amounts(name, start, rows)
            for key, *_ in self._bounds[name]:
                use = uses.setdefault(key, _Use())
                if starts:
                    use.running[name] = (start + seconds, seconds, units)
                else:
                    use.running.pop(name, None)
                    for kind in _KINDS.values():
                        use.spent[kind] = use.spent.get(kind, 0) + units[kind] * (time - start)
            if starts:
                yield from self._exceeded(name, time, uses)

    def _exceeded(
        self, name: str, time: float, uses: Mapping[tuple[Any, ...], _Use]
    ) -> Iterator[tuple[str, str]]:
        for key, quantity, most, names, binds in self._bounds[name]:
            if key[0] == "job" or not binds or quantity == "submitted-jobs":
                continue
            total = uses[key].total(quantity, time)
            if total > most + (0 if quantity in _ONE else _SLACK + 1e-9 * most):
                yield name, f"starts at {time:g}, and {quantity} of {names} is {total:g}, of {most:g} allowed"

    def _too_large(
        self, attempts: Sequence[Attempt], rows: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[str, str]]:
        """Yield the jobs that started although they exceed a limit on single jobs."""
        for name, start, _ in attempts:
            for key, quantity, most, names, _ in self._bounds.get(name, ()):
                if key[0] != "job":
                    continue
                seconds = _seconds(rows.get(name, {}))
                units = self._amounts(name, start, rows)
                if quantity == "duration":
                    asked = seconds
                elif quantity in _KINDS:
                    asked = units[_KINDS[quantity]] * seconds / 3600
                else:
                    asked = units.get(quantity, 0)
                if asked > most + (0 if quantity in units else _SLACK):
                    yield name, f"takes {asked:g}, and {quantity} of a job of {names} is at most {most:g}"

    def _too_many_submitted(
        self, rows: Mapping[str, Mapping[str, Any]], cut: float
    ) -> Iterator[tuple[str, str]]:
        events: list[tuple[float, int, str]] = []
        for name, job in self._jobs.items():
            row = rows.get(name)
            if row is None or not any(bound.quantity == "submitted-jobs" for bound in self._bounds[name]):
                continue
            begin, end = _present(row, job, cut, held=self._holds(job))
            if begin is not None and end > begin:
                events += [(begin, 1, name), (end, 0, name)]
        present: dict[tuple[Any, ...], int] = {}
        for time, comes, name in sorted(events):
            for key, quantity, most, names, binds in self._bounds[name]:
                if quantity != "submitted-jobs":
                    continue
                present[key] = present.get(key, 0) + (1 if comes else -1)
                if comes and binds and present[key] > most and time < inf:
                    yield name, f"is job {present[key]} of {names}, of {most:g} that may be submitted"

    def _holds(self, job: Job) -> bool:
        about = [rule for rule in self._rules if "submitted-jobs" in dict(rule.most) and _about(rule, job)]
        return any(rule.over == "hold" for rule in about)

    def _bounds_of(self, job: Job) -> Iterator[_Bound]:
        """Yield the limits that count a job; on single jobs only those that bind it."""
        chosen: dict[tuple[Any, ...], tuple[float, bool]] = {}
        names = {dimension: name_of(job) for dimension, name_of in _NAMES.items()}
        for rule, scope, quantity, value, binds in limits_on(self._rules, names):
            if quantity == "memory" and self._memory is None:
                continue
            most = inf if value == -1 else memory_in(value, self._memory or "", rule.where)
            kind = "job" if rule.is_single(quantity) else "together"
            if binds or kind == "together":
                place = kind, scope, quantity, rule.level
                chosen[place] = min(chosen.get(place, (inf, binds)), (most, binds))
        task = job.array_task
        if self._arrays and task is not None and task.limit is not None:
            place = "together", (("array", task.array),), "running-jobs", None
            chosen[place] = min(chosen.get(place, (inf, True)), (task.limit, True))
        for key, (most, binds) in chosen.items():
            whose = ", ".join(f"{name} {value}" for name, value in key[1]) or "all jobs"
            if most < inf:
                yield _Bound(key, key[2], most, whose, binds)

    def _amounts(self, name: str, start: float, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        found: dict[str, float] = dict(
            zip(_UNITS, self._attempts.amounts.get((name, start), (0, 0, 0, 0)), strict=True)
        )
        row = rows.get(name, {})
        if row.get("start") == start:  # R does not tell whether a unit is shared
            found |= {unit: row[unit] for unit in _UNITS[:3]}
        return found


def _about(rule: LimitRule, job: Job) -> bool:
    return all(_NAMES[name](job) in given for name, given in rule.names)


def _seconds(row: Mapping[str, Any]) -> float:
    value = row.get("duration")
    return inf if value is None or isnan(value) else float(value)


def _present(row: Mapping[str, Any], job: Job, cut: float, *, held: bool) -> tuple[float | None, float]:
    """Return from when until when a job counted as submitted; None if that is not known."""
    reason = str(row.get("reason") or "")
    begin = row.get("eligible") if held else row["submit"]
    if reason.startswith("rejected") or row["result"] in ("INFEASIBLE", "DROPPED"):
        return None, inf
    if begin is None or isnan(begin) or begin > cut:  # the run was cut short before it came
        return None, inf
    end = row.get("end")
    if end is not None and not isnan(end):
        return float(begin), float(end)
    if row["result"] in ("PENDING", "RUNNING"):
        return float(begin), inf
    return (None, inf) if job.cancel_at is None else (float(begin), float(job.cancel_at))
