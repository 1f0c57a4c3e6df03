"""`Multifactor`: jobs by a weighted sum of factors, the greatest first.

Most factors of a job never change, so their sum is one column.  Only its age and its fair share change,
and with a `period` only at multiples of it, as in Slurm (PriorityCalcPeriod).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import floor, inf
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.schedule.orders.fair_share_rules import fair_share_rule
from simsched.schedule.orders.priority_rules import EXPEDITED, NAME, WEEK
from simsched.schedule.orders.ranking import by_keys
from simsched.schedule.orders.usage_ledger import UsageLedger

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.schedule.job_table import JobTable
    from simsched.schedule.orders.account_tree import AccountTree
    from simsched.schedule.orders.fair_share_rules import Shares
    from simsched.schedule.orders.priority_rules import Factor, PriorityRules

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

#: A sum that is this little below a whole number is that number: its terms were added in some order.
SLACK = 1e-6


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
        rules = columns.rules
        self._rules = rules
        self._columns = columns
        self._since = np.array(table.submits[: len(table)], dtype=np.float64)
        self._moved: dict[int, float] = {}
        """The jobs whose age counts from another time than their submission."""
        ages = [factor for factor in rules.factors if factor.kind == "age" and factor.weight]
        self._share_factors = [f for f in rules.factors if f.kind == "fair-share" and f.weight]
        self._ages = [_age_line(factor) for factor in ages]
        self._running: dict[int, float] = {}
        self.lasting = self.epoch if rules.period else None
        """Time → the time as of which keys count; None if they change at any time."""
        self._is_bounded = _is_bounded(rules)
        self._rounds = rules.rounding != "none"
        self._slack = {"none": 0.0, "down": SLACK, "nearest": 0.5 + SLACK}[rules.rounding]
        self._fixed = columns.fixed + self._slack
        changing = [factor.weight for factor in (*ages, *self._share_factors)]
        highest = self._fixed.max(initial=0.0) + sum(weight for weight in changing if weight > 0)
        lowest = self._fixed.min(initial=inf) + sum(weight for weight in changing if weight < 0)
        self._may_exceed = not highest < rules.most
        self._may_fall_short = not lowest > rules.least
        self._epoch: float | None = None
        self._turn = 0
        self._stamps = np.zeros(len(table) if rules.period else 0, dtype=np.int64)
        self._known = np.zeros(len(self._stamps))
        """The priorities of the jobs whose stamp is the number of the present period."""
        self._shares: Shares | None = None
        self._shared_at = 0.0
        self._ledger: UsageLedger | None = None
        self._nodes: list[int] = columns.nodes.tolist()
        self._rates: list[float] = columns.rates.tolist()
        if columns.tree is not None:
            fair = rules.fair_share
            at_end = fair.charged == "at-end"
            self._ledger = UsageLedger(columns.tree.usage, fair.half_life, reset=fair.reset, at_end=at_end)
            self._rule = fair_share_rule(fair.method, columns.tree, fair.dampening)

    # -- what an order does ---------------------------------------------------------------------

    def ranked(self, table: JobTable, jobs: Integers, now: float) -> Integers:
        """Return the jobs by (priority, urgency, submit time, workload order)."""
        return by_keys(table, jobs, self.keys(table, jobs, now))

    def keys(self, table: JobTable, jobs: Integers, now: float) -> Floats:
        """Return the priority of each job with its sign changed."""
        return -self.priorities(table, jobs, now)

    def priorities(self, table: JobTable, jobs: Integers, now: float) -> Floats:
        """Return the priority of each job; within a period, each is computed once."""
        at = self.epoch(now)
        if not self._rules.period:
            return self._computed(table, jobs, at)
        if at != self._epoch:
            self._turn += 1
            self._epoch = at
        else:
            stale = jobs[self._stamps[jobs] != self._turn]
            if len(stale) == 1:  # most often a job that was just submitted
                self._known[stale] = self._single(table, int(stale[0]), at)
                self._stamps[stale] = self._turn
            elif len(stale):
                self._store(table, stale, at)
            return self._known[jobs]
        return self._store(table, jobs, at)

    def _store(self, table: JobTable, jobs: Integers, at: float) -> Floats:
        found = self._known[jobs] = self._computed(table, jobs, at)
        self._stamps[jobs] = self._turn
        return found

    def _computed(self, table: JobTable, jobs: Integers, at: float) -> Floats:
        total = self._fixed[jobs]
        for slope, lowest, highest in self._ages:
            waited = at - self._since[jobs]
            waited *= slope
            np.minimum(waited, highest, out=waited)
            np.maximum(waited, lowest, out=waited)
            total += waited
        if self._share_factors:
            share = self.fair_shares(at)(self._columns.nodes[jobs])
            for factor in self._share_factors:
                if _is_clipped(factor):
                    share = np.clip(share, factor.least, factor.most)
                total += factor.weight * share
        if self._is_bounded:
            self._bound(total, table, jobs)
        return total

    def _single(self, table: JobTable, job: int, at: float) -> float:
        """Return what `_computed` does for one job, by the same steps on plain numbers."""
        total = float(self._fixed[job])
        for slope, lowest, highest in self._ages:
            total += max(min((at - float(self._since[job])) * slope, highest), lowest)
        if self._share_factors:
            share = float(self.fair_shares(at)(self._columns.nodes[job : job + 1])[0])
            for factor in self._share_factors:
                total += factor.weight * min(max(share, factor.least), factor.most)
        rules = self._rules
        if rules.expedite and table.priorities[job] >= EXPEDITED:
            return rules.most
        return min(max(float(floor(total)) if self._rounds else total, rules.least), rules.most)

    def epoch(self, now: float) -> float:
        """Return the time as of which priorities count."""
        period = self._rules.period
        return now if not period else floor(now / period) * period

    def fair_shares(self, at: float) -> Shares:
        """Return the factors of users at a time that `epoch` has returned."""
        if self._shares is None or at != self._shared_at:
            assert self._ledger is not None
            self._shares = self._rule.shares(self._ledger.magnified(at))
            self._shared_at = at
        return self._shares

    def _bound(self, total: Floats, table: JobTable, jobs: Integers) -> None:
        """Round sums, and keep them within their bounds, in place."""
        rules = self._rules
        if self._rounds:
            np.floor(total, out=total)
        if self._may_fall_short:
            np.maximum(total, rules.least, out=total)
        if self._may_exceed:
            np.minimum(total, rules.most, out=total)
        if rules.expedite:
            total[table.priorities[jobs] >= EXPEDITED] = rules.most

    # -- reports of the engine ------------------------------------------------------------------------

    def enroll(self, job: int, submit: float, own: PriorityColumns) -> None:
        """Take in a job of a run that grows: the next one, with columns of its own."""
        if job >= len(self._since):
            self._double()
        self._since[job] = submit
        self._fixed[job] = own.fixed[0] + self._slack
        if own.tree is not None:
            self._columns.nodes[job] = own.nodes[0]
        self._nodes.append(int(own.nodes[0]) if len(own.nodes) else 0)
        self._rates.append(float(own.rates[0]))
        # No bound of the sums of jobs to come is known.
        self._may_exceed, self._may_fall_short = self._rules.most < inf, self._rules.least > -inf

    def _double(self) -> None:
        """Double the room in the columns."""
        room = max(len(self._since), 256)
        longer = np.zeros(room)
        self._since, self._fixed = (np.concatenate([old, longer]) for old in (self._since, self._fixed))
        if self._columns.tree is not None:
            nodes = np.concatenate([self._columns.nodes, np.zeros(room, dtype=np.int64)])
            self._columns = replace(self._columns, nodes=nodes)
        if self._rules.period:
            self._known = np.concatenate([self._known, longer])
            self._stamps = np.concatenate([self._stamps, np.zeros(room, dtype=np.int64)])

    @property
    def charges(self) -> bool:
        """Whether jobs are charged for their use."""
        return self._ledger is not None

    def eligible(self, job: int, now: float) -> None:
        """Note that a job became eligible after its submission."""
        if self._rules.age_from == "eligible":
            self._since[job] = self._moved[job] = now
            if len(self._stamps):
                self._stamps[job] = 0

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
                self._shares = None

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
        self._shares = self._epoch = None
        if self._ledger is not None and state.get("ledger") is not None:
            self._ledger.restore(state["ledger"])


def _is_bounded(rules: PriorityRules) -> bool:
    plain = rules.rounding == "none" and not rules.expedite
    return not (plain and rules.least == -inf and rules.most == inf)


def _age_line(factor: Factor) -> tuple[float, float, float]:
    """Return what a second of waiting counts, and the least and the greatest term of a factor of age."""
    ends = factor.weight * min(1.0, factor.most), factor.weight * max(0.0, factor.least)
    return factor.weight / factor.option("max", WEEK), min(ends), max(ends)


def _is_clipped(factor: Factor) -> bool:
    return factor.least > 0.0 or factor.most < 1.0
