"""`Multifactor`: jobs by a weighted sum of factors, the greatest first.

Most factors of a job never change, so their sum is one column.  Only its age and its fair share change,
and with a `period` only at multiples of it, as in Slurm (PriorityCalcPeriod).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.match.kernel import view
from simsched.schedule.orders.fair_share import UsageLedger, fair_share_rule
from simsched.schedule.orders.priority_rules import EXPEDITED, NAME, AgeFactor
from simsched.schedule.orders.ranking import by_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.arrays import Floats, Integers
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.orders.fair_share import AccountTree
    from simsched.schedule.orders.priority_rules import PriorityRules


#: A sum that is this little below a whole number is that number: its terms were added in some order.
SLACK = 1e-6
UNKNOWN = float("nan")
"""A time that equals no time."""


@dataclass(frozen=True, slots=True, eq=False)
class PriorityColumns:
    """The jobs of a run as the order needs them, by job number.

    Attributes
    ----------
    rules : the configuration.
    fixed : the sum of all factors that never change.
    tree : the accounts; None if fair share has no weight.
    nodes : the node of `tree` that each job is charged to.
    rates : what each job uses per second.
    """

    rules: PriorityRules
    fixed: Floats
    tree: AccountTree | None = None
    nodes: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rates: Floats = field(default_factory=lambda: np.zeros(0))


class Multifactor:
    """The job order ``multifactor`` of one run; all its queues share it, and with it the usage."""

    name = NAME
    static = False

    def __init__(self, columns: PriorityColumns, table: JobTable) -> None:
        rules, tree = columns.rules, columns.tree
        self._rules = rules
        self._since: Any = view(np.zeros(0))
        self._fixed: Any = self._since
        self._rates: Any = self._since
        self._nodes = view(np.zeros(0, dtype=np.int64))
        self._moved: dict[int, float] = {}
        """The jobs whose age counts from another time than their submission."""
        self._ages = [
            _age_line(factor) for factor in rules.factors if isinstance(factor, AgeFactor) and factor.weight
        ]
        self._share_factors = [
            (factor.weight, factor.least, factor.most)
            for factor in rules.factors
            if factor.kind == "fair-share" and factor.weight
        ]
        self._rounds = rules.rounding != "none"
        self._slack = {"none": 0.0, "down": SLACK, "nearest": 0.5 + SLACK}[rules.rounding]
        self._least, self._most = rules.least, rules.most
        self.enroll(0, table.submits[: len(columns.fixed)], columns)
        self._running: dict[int, float] = {}
        self.period = rules.period
        """Priorities count until the next multiple of these seconds; 0: they change at any time."""
        self._shares: Any = None
        self._shared_at = UNKNOWN
        """The time as of which `_shares` are known."""
        self._ledger: UsageLedger | None = None
        if tree is not None:
            fair = rules.fair_share
            at_end = fair.charged == "at-end"
            self._ledger = UsageLedger(tree.usage, fair.half_life, reset=fair.reset, at_end=at_end)
            self._rule = fair_share_rule(fair.method, tree, fair.dampening)

    # -- what an order does ---------------------------------------------------------------------

    def ranked(self, table: JobTable, jobs: Integers, now: float) -> Integers:
        """Return the jobs by (priority, urgency, submit time, workload order)."""
        return by_keys(table, jobs, self.keys(table, jobs, now))

    def keys(self, table: JobTable, jobs: Integers, now: float) -> Floats:
        """Return the priority of each job with its sign changed."""
        found = np.zeros(len(self._since))
        self.enter(table, view(jobs), view(found), now)
        return found[jobs]

    def enter(self, table: JobTable, jobs: memoryview[int], keys: Any, now: float) -> None:
        """Enter the priority of each job with its sign changed into `keys`, by job number."""
        at, fixed, since, nodes = self.epoch(now), self._fixed, self._since, self._nodes
        for place in range(len(jobs)):
            keys[jobs[place]] = fixed[jobs[place]]
        for slope, lowest, highest in self._ages:
            for place in range(len(jobs)):
                job = jobs[place]
                keys[job] += max(min((at - since[job]) * slope, highest), lowest)
        if self._share_factors:
            shares = self.fair_shares(at)
            for weight, least, most in self._share_factors:
                for place in range(len(jobs)):
                    job = jobs[place]
                    keys[job] += weight * min(max(shares[nodes[job]], least), most)
        least, most = self._least, self._most
        for place in range(len(jobs)):
            job = jobs[place]
            if self._rounds:
                keys[job] = math.floor(keys[job])
            keys[job] = -min(max(keys[job], least), most)
        if self._rules.expedite:
            urgencies = view(table.priorities)
            for place in range(len(jobs)):
                if urgencies[jobs[place]] >= EXPEDITED:
                    keys[jobs[place]] = -most

    def epoch(self, now: float) -> float:
        """Return the time as of which priorities count."""
        return math.floor(now / self.period) * self.period if self.period else now

    def fair_shares(self, at: float) -> Any:
        """Return the factors of users, by node, at a time that `epoch` has returned."""
        if at != self._shared_at:
            assert self._ledger is not None
            self._shares = self._rule.factors(self._ledger.magnified(at))
            self._shared_at = at
        return self._shares

    # -- reports of the engine ------------------------------------------------------------------------

    def enroll(self, first: int, submits: Sequence[float] | Floats, own: PriorityColumns) -> None:
        """Take in the next jobs of the run, with columns of their own; `first` is the number of the first."""
        rows, there = slice(first, first + len(submits)), len(self._since)
        columns = [np.asarray(self._since), np.asarray(self._fixed)]
        columns += [np.asarray(self._rates), np.asarray(self._nodes)]
        if rows.stop > there:
            more = max(rows.stop - there, there)
            columns = [np.concatenate([column, np.zeros(more, dtype=column.dtype)]) for column in columns]
            self._since, self._fixed = view(columns[0]), view(columns[1])
            self._rates, self._nodes = view(columns[2]), view(columns[3])
        values = (submits, own.fixed + self._slack, own.rates, 0 if own.tree is None else own.nodes)
        for column, value in zip(columns, values, strict=True):
            column[rows] = value

    @property
    def charges(self) -> bool:
        """Whether jobs are charged for their use."""
        return self._ledger is not None

    def eligible(self, job: int, now: float) -> None:
        """Note that a job became eligible after its submission."""
        if self._rules.age_from == "eligible":
            self._since[job] = self._moved[job] = now

    def begin(self, job: int, now: float) -> None:
        """Charge a job that starts now."""
        assert self._ledger is not None
        self._running[job] = now
        self._ledger.begin(self._nodes[job], self._rates[job], now)

    def charge(self, table: JobTable, job: int, seconds: float, now: float) -> None:  # noqa: ARG002
        """Stop charging a job that ends or is requeued now."""
        begin = self._running.pop(job, None)
        if begin is not None and self._ledger is not None:
            self._ledger.end(self._nodes[job], self._rates[job], begin, now)
            if self._ledger.at_end:  # otherwise no end changes the usage of this instant
                self._shared_at = UNKNOWN

    # -- its memory -----------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return all that changes, as plain values: the columns can be made again."""
        return {
            "moved": dict(self._moved),
            "running": dict(self._running),
            "ledger": None if self._ledger is None else self._ledger.state(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the state of an order of the same run."""
        for job, time in state.get("moved", {}).items():
            self._since[job] = self._moved[job] = time
        self._running = dict(state.get("running", {}))
        self._shared_at = UNKNOWN
        if self._ledger is not None and state.get("ledger") is not None:
            self._ledger.restore(state["ledger"])


def _age_line(factor: AgeFactor) -> tuple[float, float, float]:
    """Return what a second of waiting counts, and the least and the greatest term of a factor of age."""
    ends = factor.weight * min(1.0, factor.most), factor.weight * max(0.0, factor.least)
    return factor.weight / factor.max, min(ends), max(ends)
