"""The limits that count for a job, and the counters of their use.

A counter belongs to one quantity in one scope: a user, a user in a queue, all jobs.  Rules with the same
dimensions share it, and of their values that of the rule with the most names counts.  A job counts with its
allocation: before its start with the least that its request takes (`jobs.sizes`).
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.formats.rfc.constraint import gpu_type_of
from simsched.formats.rfc.duration import format_duration
from simsched.simulation.jobs.sizes import Extent, Sizes
from simsched.simulation.limits.limit_rules import (
    AHEAD,
    ANY,
    DIMENSIONS,
    DURATION,
    GPU_TYPE,
    NO_LIMIT,
    QUANTITIES,
    RUNNING,
    SPENT,
    SUBMITTED,
    UNITS,
    LimitRule,
    limits_on,
    memory_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Request
    from simsched.schedule.queue import WaitingQueue
    from simsched.workload.job import Job

MEASURES = (RUNNING, *UNITS, *SPENT, *AHEAD)
"""The quantities of which a job has an amount, by their places in its `Demand`."""

FIRST_SPENT, FIRST_AHEAD = MEASURES.index(SPENT[0]), MEASURES.index(AHEAD[0])
SLACK = 1e-6
"""Unit-seconds by which a limit in hours may be exceeded: hours need not be whole seconds."""

FEW = 4
"""Cohorts of a counter up to which it knows them all the time."""

NAMED = 3
"""Users that a reason names at most."""

Demand = tuple[float, ...]
"""The amounts of a job: 1 job, units, and unit-seconds by its requested duration."""

Scope = tuple[tuple[str, str], ...]
"""The (dimension, name) pairs of a counter."""


Place = tuple[Scope, str, int | None]
"""The scope, the quantity and the level of a limit: what has one counter."""


class Limit(NamedTuple):
    """The most of a quantity in a scope, and the rule that says so; hours are given in unit-seconds."""

    quantity: str
    most: float
    rule: LimitRule


class ScopeLimit(NamedTuple):
    """A limit in one scope; `per_job` if it is on its single jobs.

    A job for which it does not bind is counted, and not held.
    """

    scope: Scope
    limit: Limit
    per_job: bool
    binds: bool

    @property
    def at(self) -> int | None:
        """The place of its quantity in `MEASURES`; None if a job has no amount of it."""
        return MEASURES.index(self.limit.quantity) if self.limit.quantity in MEASURES else None

    @property
    def place(self) -> Place:
        """What has the same counter."""
        return self.scope, self.limit.quantity, self.limit.rule.level


class LimitBreach(NamedTuple):
    """A limit that a job exceeds by itself: its scope and the amount that the job asks for."""

    scope: Scope
    limit: Limit
    asked: float
    per_job: bool
    named: float = inf
    """The amount that the request names; an allocation may be larger, and have whole nodes."""

    @property
    def who(self) -> str:
        """The jobs that the limit is on: each by itself, or those of a scope together."""
        if not self.per_job:
            return scope_text(self.scope)
        return f"a job of {scope_text(self.scope)}" if self.scope else "a job"

    @property
    def may(self) -> str:
        """The limit as a sentence."""
        quantity, most, _ = self.limit
        who = self.who
        may = "may request" if quantity == DURATION else "may use"
        return f"{who} {may} at most {amount_text(quantity, most)}"

    @property
    def text(self) -> str:
        """A sentence with the names and numbers."""
        quantity = self.limit.quantity
        asked = "no limit" if self.asked == inf else amount_text(quantity, self.asked)
        asks = "asks for" if self.asked <= self.named else "takes at least"
        return f"{self.may}, the job {asks} {asked}"


class LimitTable:
    """The rules of a configuration, asked for the limits of a job by its names."""

    def __init__(
        self, rules: Sequence[LimitRule], index: Index, jobs: Sequence[Job] = (), *, whole: bool = False
    ) -> None:
        self.rules = rules
        self._index = index
        self.sizes = Sizes(index, whole=whole)
        self._by_array = any("array" in rule.scope for rule in rules)
        self._by_gpu_type = any(GPU_TYPE in rule.scope for rule in rules)
        tasks = [job.array_task for job in jobs if job.array_task is not None]
        self._arrays = {task.array: task.limit for task in tasks if task.limit is not None}
        self._known: dict[tuple[str | None, ...], tuple[ScopeLimit, ...]] = {}
        self._units: dict[int, tuple[Extent, ...]] = {}

    def names_of(self, job: Job) -> tuple[str | None, ...]:
        """Return the names of a job in `DIMENSIONS`; that of its array only if a limit is about arrays."""
        array = None if job.array_task is None else job.array_task.array
        if not self._by_array and array not in self._arrays:
            array = None
        kind = gpu_type_of(job.jobspec.constraint) if self._by_gpu_type else None
        return job.user, job.bank, job.queue, job.qos, array, kind

    def of(self, names: tuple[str | None, ...]) -> tuple[ScopeLimit, ...]:
        """Return the limits that count a job with these names in `DIMENSIONS`, the broadest scopes first.

        A rule that counts users apart is not about a job without a user.
        """
        found = self._known.get(names)
        if found is None:
            found = self._known[names] = tuple(self._limits(dict(zip(DIMENSIONS, names, strict=True))))
        return found

    def _limits(self, names: Mapping[str, str | None]) -> Iterator[ScopeLimit]:
        best: dict[tuple[bool, Place], ScopeLimit] = {}
        rules = (*self.rules, *self._own_rule(names["array"]))
        for rule, scope, quantity, value, binds in limits_on(rules, names):
            limit = Limit(quantity, self._amount(quantity, value, rule), rule)
            found = ScopeLimit(scope, limit, rule.is_single(quantity), binds)
            place = found.per_job, found.place
            if place not in best or limit.most < best[place].limit.most:
                best[place] = found
        order = [*QUANTITIES]

        def breadth(one: ScopeLimit) -> tuple[Any, ...]:
            return len(one.scope), one.per_job, one.scope, order.index(one.limit.quantity)

        for found in sorted(best.values(), key=breadth):
            if found.limit.most < inf and (found.binds or not found.per_job):
                yield found

    def _own_rule(self, array: str | None) -> tuple[LimitRule, ...]:
        """Return the rule for the limit of tasks at a time that an array states itself, if it does."""
        most = None if array is None else self._arrays.get(array)
        where = f"array {array}"
        return () if most is None else (LimitRule((), ("array",), ((RUNNING, most),), where=where),)

    def _amount(self, quantity: str, value: float | str, rule: LimitRule) -> float:
        if value == NO_LIMIT:
            return float("inf")
        if quantity == "memory":
            pool = self._index.pool_types.get("memory")
            return float("inf") if pool is None else memory_in(value, pool.unit or "", rule.where)
        assert not isinstance(value, str)
        return round(value * 3600, 3) if quantity in (*SPENT, *AHEAD) else value

    def demand(self, request: Request, duration: float) -> Demand:
        """Return the least amounts of a job with a request and a requested duration (seconds)."""
        return demand_of([extent.least for extent in self._extents(request)], duration)

    def varies(self, request: Request) -> frozenset[int]:
        """Return the places of the amounts that depend on the placement."""
        units = [at for at, extent in enumerate(self._extents(request), start=1) if not extent.fixed]
        hours = [base + at - 1 for base in (FIRST_SPENT, FIRST_AHEAD) for at in units if at <= len(SPENT)]
        return frozenset((*units, *hours))

    def _extents(self, request: Request) -> tuple[Extent, ...]:
        found = self._units.get(id(request))
        if found is None:
            found = self._units[id(request)] = self.sizes.allocated(request)
        return found

    def breaches(
        self, names: tuple[str | None, ...], request: Request, duration: float
    ) -> Iterator[LimitBreach]:
        """Yield the limits that a job can never meet, however little others use and wherever it is placed."""
        demand = self.demand(request, duration)
        units = (request.demand.get(type_, 0) for type_ in ("core", "gpu", "memory"))
        named = demand_of((self.sizes.named_nodes(request), *units), duration)
        for found in self.of(names):
            limit, at = found.limit, found.at
            asked = demand[at] if at is not None else 1 if limit.quantity == SUBMITTED else duration
            if found.binds and asked > limit.most + (SLACK if at is not None and at >= FIRST_SPENT else 0):
                yield LimitBreach(found.scope, limit, asked, found.per_job, named[at] if at else inf)


class LimitCounter:
    """The use of one limit in its scope.

    Attributes
    ----------
    at : the place of its quantity in `MEASURES`; None for a limit on jobs that wait or run.
    inside : how many jobs wait or run, for a limit on these.
    used : the amounts of running jobs, or the hours that were spent; not for a use that falls with time.
    running : running job → (amounts, start, expected end), for a use that falls; times in seconds.
    shown : the cohorts of waiting jobs in view that the limit binds.
    held : the cohorts of waiting jobs that are barred by it.
    cohorts : how many cohorts it binds.
    decays : whether the use falls while jobs run.
    free : the use up to which every cohort is below the limit, for a quick answer.
    """

    __slots__ = (
        *("at", "cohorts", "decays", "free", "held", "inside", "limit", "most", "number"),
        *("running", "scope", "shown", "used"),
    )

    def __init__(self, number: int, found: ScopeLimit) -> None:
        self.number = number
        self.scope = found.scope
        self.limit = found.limit
        self.at = found.at
        self.inside = 0
        self.most = found.limit.most + (SLACK if self.at is not None and self.at >= FIRST_SPENT else 0)
        self.cohorts = 0
        self.decays = self.at is not None and self.at >= FIRST_AHEAD
        self.free = self.most
        self.used: float = 0
        self.running: dict[int, tuple[Demand, float, float]] = {}
        self.shown: dict[Cohort, None] = {}
        self.held: dict[Cohort, None] = {}

    def asks(self, demand: Demand) -> float:
        """Return the amount of a job of what is limited while it runs."""
        assert self.at is not None
        return demand[self.at]

    def in_use(self, now: float) -> float:
        """Return the use at a time (seconds)."""
        if not self.decays:
            return self.used
        assert self.at is not None
        units = self.at - FIRST_AHEAD + 1
        return sum(demand[units] * max(0, end - now) for demand, _, end in self.running.values())

    def is_over(self, demand: Demand, now: float) -> bool:
        """Whether a job would exceed the limit now."""
        return self.in_use(now) + self.asks(demand) > self.most

    def falls_at(self, demand: Demand, now: float) -> float:
        """Return the first whole second at which a job is below the limit by the passage of time, or inf."""
        if not self.decays:
            return inf
        assert self.at is not None
        units = self.at - FIRST_AHEAD + 1
        room = self.most - self.asks(demand)
        left = [(amounts[units], end) for amounts, _, end in self.running.values() if now < end < inf]
        before = now
        for end in sorted({end for _, end in left}):
            if sum(amount * max(0, until - end) for amount, until in left) <= room:
                rate = sum(amount for amount, until in left if until > before)
                use = sum(amount * max(0, until - before) for amount, until in left)
                return ceil(before + max(0, use - room) / rate) if rate else end
            before = end
        return inf

    def reason(self, now: float, users: Sequence[str]) -> str:
        """Return a sentence on the limit when it is used up, and on the users who use it."""
        quantity = self.limit.quantity
        most, used = (amount_text(quantity, value) for value in (self.most, self.in_use(now)))
        verb, is_used = ("run", "run") if quantity == RUNNING else ("use", "are used")
        shares: dict[str, float] = {}
        for job, (demand, _, _) in self.running.items():
            shares[users[job]] = shares.get(users[job], 0) + self.asks(demand)
        ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        named = ", ".join(f"{user} {amount_text(quantity, amount)}" for user, amount in ranked[:NAMED])
        more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
        text = f"limit: {scope_text(self.scope)} may {verb} {most}, and {used} {is_used}"
        return f"{text} ({named}{more})" if named else text


class Cohort:
    """Jobs that are counted in the same counters with the same amounts, so a limit allows all or none.

    Attributes
    ----------
    counters : those that count the jobs.
    binding : those of them whose limits bind the jobs.
    jobs : those that wait, in view or barred.
    queue : the queue in which they wait.
    over : the counter of the limit that they wait for; None if they are in view.
    steps : (counter, place, amount) of each counter whose use a start raises.
    returns : the steps of limits on what is in use at a time.
    spends : (counter, place of the units, place of their hours) of each limit on hours in all.
    decaying : the counters whose use falls while jobs run.
    varies : places of the amounts that limits count and that depend on the placement.
    own : (scope, limit, place) of limits on single jobs whose amounts depend on the placement.
    entered : whether its counters know it.
    stays : whether they know it also while none of its jobs waits, since each has few cohorts.
    """

    __slots__ = (
        *("binding", "counters", "decaying", "demand", "entered", "jobs", "over", "own"),
        *("queue", "returns", "spends", "stays", "steps", "varies"),
    )

    def __init__(
        self,
        counters: tuple[LimitCounter, ...],
        binding: tuple[LimitCounter, ...],
        demand: Demand,
        varies: frozenset[int] = frozenset(),
        own: tuple[tuple[Scope, Limit, int], ...] = (),
    ) -> None:
        self.counters = counters
        self.binding = binding
        self.demand = demand
        self.varies = varies
        self.own = own
        self.jobs: set[int] = set()
        self.queue: WaitingQueue | None = None
        self.over: LimitCounter | None = None
        for counter in binding:
            counter.cohorts += 1
            counter.free = min(counter.free, counter.most - counter.asks(demand))
        self.decaying = tuple(counter for counter in counters if counter.decays)
        places = [(c, c.at) for c in counters if c.at is not None and not c.decays]
        self.steps = tuple((counter, at, demand[at]) for counter, at in places)
        self.returns = tuple(step for step in self.steps if step[1] < FIRST_SPENT)
        self.spends = tuple(
            (counter, at - FIRST_SPENT + 1, at) for counter, at in places if at >= FIRST_SPENT
        )
        self.entered = self.stays = False

    def prepare(self) -> None:
        """Find whether the counters always know the cohort, once all cohorts are known."""
        self.stays = not self.decaying and all(counter.cohorts <= FEW for counter in self.binding)

    def enter(self, queue: WaitingQueue, over: LimitCounter | None) -> None:
        """Note that a first job waits, in view or for a limit."""
        self.queue = queue
        self.over = over
        self.entered = True
        if over is None:
            for counter in self.binding:
                counter.shown[self] = None
        else:
            over.held[self] = None

    def wait_for(self, over: LimitCounter | None) -> None:
        """Note which limit the jobs wait for from now on; None: they are in view."""
        self.leave()
        assert self.queue is not None
        self.enter(self.queue, over)

    def remove(self, job: int) -> None:
        """Note that a job does not wait any more."""
        self.jobs.discard(job)
        if not self.jobs and not self.stays:
            self.leave()

    def leave(self) -> None:
        """Note that none of the jobs waits."""
        self.entered = False
        if self.over is None:
            for counter in self.binding:
                counter.shown.pop(self, None)
        else:
            self.over.held.pop(self, None)


def demand_of(units: Sequence[float], duration: float) -> Demand:
    """Return the amounts of a job from its nodes, cores, GPUs and memory, and its requested duration."""
    work = [number * duration if number else 0 for number in units[: len(SPENT)]]
    return (1, *units, *work, *work)


def scope_text(scope: Scope) -> str:
    """Return the name of a scope for people.

    >>> scope_text((("user", "alice"), ("queue", "debug"))), scope_text(()), scope_text((("user", ANY),))
    ('user alice in queue debug', 'the jobs together', 'each user')
    """
    parts = [f"each {dimension}" if name == ANY else f"{dimension} {name}" for dimension, name in scope]
    return " in ".join(parts) or "the jobs together"


def amount_text(quantity: str, amount: float) -> str:
    """Return an amount of a quantity with its unit.

    >>> amount_text("running-jobs", 1), amount_text("core-hours", 7200), amount_text("duration", 3600)
    ('1 job', '2 core-hours', '1h')
    """
    if quantity == DURATION:
        return format_duration(amount)
    if quantity == "memory":
        return f"{amount:g} units of memory"
    if quantity in (RUNNING, SUBMITTED):
        quantity = "jobs"
    elif quantity in (*SPENT, *AHEAD):
        quantity, amount = quantity.removeprefix("running-"), amount / 3600
    word = quantity.removesuffix("s")
    text = f"{amount:,.0f}" if float(amount).is_integer() else f"{amount:,.6g}"
    return f"{text} {word}{'' if text == '1' else 's'}"
