"""Rules of the audit for limits (L1): their use is summed up again from the tables at each start.

Use rises only when a job starts or is submitted, so these instants are enough.  A job counts with its
allocation: the nodes, cores and GPUs of the table, and those of R for attempts that the table does not have.
Jobs of zero seconds, and jobs whose time of submission or end is not known, are not counted.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.errors import SimschedError
from simsched.formats.rfc.constraint import gpu_type_of
from simsched.formats.rfc.units import convert_up
from simsched.simulation.audit.allocation_pass import column
from simsched.workload.job import has_array_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.simulation.audit.audit_tables import AuditTables
    from simsched.simulation.audit.inventory import Inventory
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.workload.job import Job

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
