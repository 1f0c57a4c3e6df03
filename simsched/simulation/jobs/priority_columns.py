"""The columns of the order ``multifactor``: for each job of a run, the factors that never change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import ConfigError
from simsched.formats.machines.accounts import AccountRow
from simsched.schedule.orders.fair_share import AccountTree, tree_of
from simsched.schedule.orders.multifactor import PriorityColumns
from simsched.schedule.orders.priority_rules import EXPEDITED, HELD, AttributeFactor, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from simsched.arrays import Floats, Integers
    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Request
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.orders.priority_rules import (
        DurationFactor,
        NamedNumbers,
        PriorityRules,
        SizeFactor,
        UnitFactor,
        UrgencyFactor,
    )
    from simsched.simulation.jobs.sizes import Sizes
    from simsched.simulation.queues import Queues
    from simsched.workload.job import Job


UNITS = {"nodes": "node", "cores": "core", "gpus": "gpu", "memory": "memory"}
"""Factor → the type of the resource; nodes are execution targets."""
NOBODY = "(none)"
"""The user or account of jobs that name none, among accounts that are made from the jobs."""


def priority_columns(
    rules: PriorityRules,
    jobs: Sequence[Job],
    table: JobTable,
    index: Index,
    sizes: Sizes,
    queues: Queues | None,
    first: int = 0,
    accounts: AccountTree | None = None,
) -> PriorityColumns:
    """Return the columns of jobs, the first of which has the number `first` in the table.

    `accounts` are those of a run to which the jobs are added.

    Raises
    ------
    ConfigError
        For a job whose user has no account, or an attribute that is not a number.
    """
    facts = _JobFacts(jobs, table, first, index, sizes, queues)
    tree, nodes = None, np.zeros(0, dtype=np.int64)
    if rules.uses("fair-share"):
        tree = _tree(rules, jobs) if accounts is None else accounts
        nodes = _nodes(tree, rules, jobs)
    fixed = np.zeros(len(jobs))
    for factor in rules.factors:
        if factor.weight and factor.kind not in ("age", "fair-share"):
            if factor.compute is not None:
                found = values_of(factor.compute, jobs, factor.kind)
            else:
                found = _VALUES[factor.kind](factor, facts, rules)
            values = np.clip(found, factor.least, factor.most)
            fixed += factor.weight * values
    return PriorityColumns(rules, fixed, tree, nodes, _rates(rules, facts))


def refuse_job(job: Job, rules: PriorityRules, accounts: AccountTree | None) -> None:
    """Raise the ConfigError that `priority_columns` raises for a job by itself."""
    if accounts is not None:
        _nodes(accounts, rules, (job,))
    for factor in rules.factors:
        if isinstance(factor, AttributeFactor) and factor.weight:
            _attribute(factor, (job,))


class _JobFacts:
    """The jobs of a run, and the sizes of their requests, each counted once."""

    def __init__(
        self,
        jobs: Sequence[Job],
        table: JobTable,
        first: int,
        index: Index,
        sizes: Sizes,
        queues: Queues | None,
    ) -> None:
        rows = slice(first, first + len(jobs))
        self.jobs = jobs
        self.durations, self.urgencies = table.durations_array[rows], table.priorities[rows]
        self._kinds, self._by_kind = table.kinds_array[rows], table.by_kind
        self._index = index
        self._sizes = sizes
        self._queues = queues
        self._units: dict[str, Floats] = {}

    def units(self, name: str) -> Floats:
        """Return the units of `UNITS` that each job requests at least."""
        if name not in self._units:
            counts = np.zeros(len(self._by_kind))
            for kind in set(self._kinds.tolist()):
                request = self._by_kind[kind]
                if request is not None:
                    counts[kind] = self._count(request, name)
            self._units[name] = counts[self._kinds]
        return self._units[name]

    def _count(self, request: Request, name: str) -> int:
        if name == "nodes":
            return self._sizes.counts(request)["nnodes"]
        if name == "cores":
            return self._sizes.size(request)
        return self._sizes.units(request, UNITS[name]).least

    def total(self, name: str, queue: str | None = None) -> float:
        """Return the units of the machine, or of the targets of a queue."""
        index = self._index
        targets = np.ones(len(index), dtype=np.bool_)
        if queue is not None and self._queues is not None and queue in self._queues.queues:
            targets = index.targets_matching(self._queues.queues[queue].constraint)
        if name == "nodes":
            return float(targets.sum())
        pool = index.pool_types.get(UNITS[name])
        if pool is None:
            return float(targets.sum()) if name == "cores" else 0.0
        return float(pool.size[(pool.target >= 0) & targets[pool.target]].sum())

    def totals(self, name: str, by: str) -> Floats:
        """Return the divisors of the units of each job: those of its queue, the machine, or 1."""
        if by == "nothing":
            return np.ones(len(self.jobs))
        if by == "machine":
            return np.full(len(self.jobs), self.total(name))
        known = {queue: self.total(name, queue) for queue in {job.queue for job in self.jobs}}
        return np.array([known[job.queue] for job in self.jobs], dtype=np.float64)


# -- the values of factors ------------------------------------------------------------------------


def _size(factor: SizeFactor, facts: _JobFacts, _: PriorityRules) -> Floats:
    """Return Slurm's job size factor (`set_priority_factors` of priority/multifactor)."""
    nodes, cores = np.maximum(facts.units("nodes"), 1.0), facts.units("cores")
    all_nodes, all_cores = max(facts.total("nodes"), 1.0), max(facts.total("cores"), 1.0)
    small = factor.favour == "small"
    if factor.relative_to_time:
        asked = np.maximum(nodes * all_cores / all_nodes, cores)
        part = asked / (facts.durations / 60.0) / all_cores
        found = 1.0 - part if small else part
    elif small:
        found = ((all_nodes - nodes) / all_nodes + (all_cores - cores) / all_cores) / 2
    else:
        found = (nodes / all_nodes + cores / all_cores) / 2
    bounded: Floats = np.clip(found, 0.0, 1.0)
    return bounded


def _units(factor: UnitFactor, facts: _JobFacts, _: PriorityRules) -> Floats:
    totals = facts.totals(factor.kind, factor.of)
    asked = facts.units(factor.kind)
    found: Floats = np.divide(asked, totals, out=np.zeros(len(asked)), where=totals > 0)
    return found


def _duration(factor: DurationFactor, facts: _JobFacts, _: PriorityRules) -> Floats:
    part = np.minimum(facts.durations / factor.max, 1.0)
    found: Floats = 1.0 - part if factor.favour == "short" else part
    return found


def _urgency(factor: UrgencyFactor, facts: _JobFacts, rules: PriorityRules) -> Floats:
    urgencies = facts.urgencies.astype(np.float64)
    if rules.expedite:  # these two stand for the least and the greatest priority, not for a term
        urgencies = np.where((urgencies <= HELD) | (urgencies >= EXPEDITED), 16.0, urgencies)
    found: Floats = urgencies - factor.origin
    return found


def _named(
    names: Sequence[str | None], factor: NamedNumbers, values: Mapping[str, float] | None = None
) -> Floats:
    """Return the number of each name, over the greatest number if they are normalised."""
    known: dict[Any, float] = dict(factor.values or {} if values is None else values)
    usual = factor.default
    greatest = max((abs(number) for number in known.values()), default=0.0)
    scale = greatest if factor.normalise and greatest else 1.0
    return np.array([known.get(name, usual) for name in names], dtype=np.float64) / scale


def _account(factor: NamedNumbers, facts: _JobFacts, rules: PriorityRules) -> Floats:
    """Return the numbers of the configuration, else the priorities of the rows of the accounts."""
    if factor.values is not None or rules.accounts is None:
        return _named([job.bank for job in facts.jobs], factor)
    tree = tree_of(rules.accounts)
    numbers: dict[str, float] = {}
    for node, priority in enumerate(tree.priorities.tolist()):
        numbers[str(node)] = 0.0 if np.isnan(priority) else priority
    for node in range(len(tree)):  # a user without a priority has that of the account
        if tree.is_user[node] and np.isnan(tree.priorities[node]):
            numbers[str(node)] = numbers[str(int(tree.charged[node]))]
    nodes = [tree.node(job.user, job.bank) for job in facts.jobs]
    return _named([None if node is None else str(node) for node in nodes], factor, numbers)


def _attribute(factor: AttributeFactor, jobs: Sequence[Job]) -> Floats:
    """Return a field of the job, or an attribute of its jobspec (``system.…``, ``user.…``)."""
    key, values = factor.key, factor.values
    found = [_attribute_of(job, key) for job in jobs]
    if values is not None:
        return _named([None if value is None else str(value) for value in found], factor)
    usual = factor.default
    numbers = np.full(len(found), usual)
    for at, value in enumerate(found):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            text = f"the attribute {key} of job {jobs[at].id} is {value!r}"
            raise ConfigError(
                text, where=f"priority.factors.{factor.name}", expected="a number, or values for names"
            )
        numbers[at] = value
    return numbers


def _attribute_of(job: Job, key: str) -> Any:
    if key in job.__struct_fields__:
        return getattr(job, key)
    value: Any = job.jobspec.to_dict().get("attributes", {})
    for part in key.removeprefix("attributes.").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


_VALUES: dict[str, Callable[[Any, _JobFacts, Any], Floats]] = {
    "size": _size,
    "queue": lambda factor, facts, _: _named(
        [job.jobspec.queue if job.queue is None else job.queue for job in facts.jobs], factor
    ),
    "qos": lambda factor, facts, _: _named([job.qos for job in facts.jobs], factor),
    "account": _account,
    "user": lambda factor, facts, _: _named([job.user for job in facts.jobs], factor),
    "urgency": _urgency,
    **dict.fromkeys(UNITS, _units),
    "duration": _duration,
    "attribute": lambda factor, facts, _: _attribute(factor, facts.jobs),
    "constant": lambda _, facts, __: np.ones(len(facts.jobs)),
}


# -- accounts -------------------------------------------------------------------------------------


def _tree(rules: PriorityRules, jobs: Sequence[Job]) -> AccountTree:
    """Return the given accounts, or those of the jobs with one share each."""
    pairs = dict.fromkeys((job.user, job.bank) for job in jobs)
    if rules.accounts is None:
        rows = {bank: AccountRow(bank) for _, bank in pairs if bank is not None}
        users = [AccountRow(bank or NOBODY, user=user or NOBODY) for user, bank in pairs]
        if any(bank is None for _, bank in pairs):
            rows[NOBODY] = AccountRow(NOBODY)
        return tree_of([*rows.values(), *_once(users)])
    tree = tree_of(rules.accounts)
    if rules.fair_share.unknown == "add":
        strangers = [(user, bank) for user, bank in pairs if user is None or tree.node(user, bank) is None]
        known = {name for name in tree.names if isinstance(name, str)}
        more = [AccountRow(bank or NOBODY, user=user or NOBODY) for user, bank in strangers]
        accounts = dict.fromkeys(row.account for row in more if row.account not in known)
        return tree_of([*rules.accounts, *map(AccountRow, accounts), *_once(more)])
    return tree


def _once(rows: Sequence[AccountRow]) -> list[AccountRow]:
    return list({(row.account, row.user): row for row in rows}.values())


def _nodes(tree: AccountTree, rules: PriorityRules, jobs: Sequence[Job]) -> Integers:
    """Return the node of each job; ConfigError for a job whose user has no account."""
    own = rules.accounts is None
    known: dict[tuple[str | None, str | None], int] = {}
    nodes = np.zeros(len(jobs), dtype=np.int64)
    for at, job in enumerate(jobs):
        pair = (job.user, job.bank)
        if pair not in known:
            node = None if own else tree.node(*pair) if job.user is not None else None
            if node is None and (own or rules.fair_share.unknown == "add"):
                node = tree.node(job.user or NOBODY, job.bank or NOBODY)
            if node is None:
                raise _no_account(tree, job)
            known[pair] = node
        nodes[at] = known[pair]
    return nodes


def _no_account(tree: AccountTree, job: Job) -> ConfigError:
    others = tree.accounts_of(job.user) if job.user is not None else []
    if job.user is None:
        text = f"job {job.id} has no user"
    elif job.bank is not None:
        text = f"the user {job.user!r} of job {job.id} is not in the account {job.bank!r}"
    elif others:
        text = f"job {job.id} names no account, and its user {job.user!r} has no default"
    else:
        text = f"the user {job.user!r} of job {job.id} is in no account"
    listed = f"one of {', '.join(others)}; or " if others else ""
    expected = f"{listed}a row for the user, or fair-share.unknown-users = add"
    return ConfigError(text, where="priority.accounts", expected=expected)


def _rates(rules: PriorityRules, facts: _JobFacts) -> Floats:
    """Return what each job uses per second."""
    found = np.zeros(len(facts.jobs))
    if not rules.uses("fair-share"):
        return found
    for name, weight in rules.fair_share.usage.items():
        units = facts.units(name)
        found += weight * (np.maximum(units, 1.0) if name == "nodes" else units)
    times = rules.fair_share.qos_usage
    if times:
        found *= np.array([times.get(job.qos or "", 1.0) for job in facts.jobs])
    return found
