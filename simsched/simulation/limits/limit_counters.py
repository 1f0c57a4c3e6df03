"""The limits that count for a job, and the counters of their use.

A counter belongs to one scope: a user, a user in a queue, all jobs.  Rules with the same dimensions share
it, and of several values for one quantity that of the rule with the most names counts.  A job counts with its
allocation: before its start with the least that its request takes (`jobs.sizes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

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
    RUNNING,
    SPENT,
    SUBMITTED,
    UNITS,
    LimitRule,
    limits_in_force,
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


class Limit(NamedTuple):
    """The most of a quantity in a scope, and the rule that says so; hours are given in unit-seconds."""

    quantity: str
    most: float
    rule: LimitRule


@dataclass(frozen=True, slots=True)
class ScopeLimits:
    """The limits of one scope; `per_job` if they are on its single jobs."""

    scope: Scope
    limits: tuple[Limit, ...]
    per_job: bool


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
        self._known: dict[tuple[str | None, ...], tuple[ScopeLimits, ...]] = {}
        self._units: dict[int, tuple[Extent, ...]] = {}

    def names_of(self, job: Job) -> tuple[str | None, ...]:
        """Return the names of a job in `DIMENSIONS`; that of its array only if a limit is about arrays."""
        array = None if job.array_task is None else job.array_task.array
        if not self._by_array and array not in self._arrays:
            array = None
        kind = gpu_type_of(job.jobspec.constraint) if self._by_gpu_type else None
        return job.user, job.bank, job.queue, job.qos, array, kind

    def of(self, names: tuple[str | None, ...]) -> tuple[ScopeLimits, ...]:
        """Return the limits for a job with these names in `DIMENSIONS`, the broadest scopes first.

        A rule that counts users apart is not about a job without a user.
        """
        found = self._known.get(names)
        if found is None:
            found = self._known[names] = tuple(self._limits(dict(zip(DIMENSIONS, names, strict=True))))
        return found

    def _limits(self, names: Mapping[str, str | None]) -> Iterator[ScopeLimits]:
        best: dict[tuple[bool, Scope], dict[str, tuple[float, LimitRule]]] = {}
        rules = (*self.rules, *self._own_rule(names["array"]))
        for rule, scope, quantity, value in limits_in_force(rules, names):
            mine = best.setdefault((rule.is_single(quantity), scope), {})
            most = self._amount(quantity, value, rule)
            if quantity not in mine or most < mine[quantity][0]:
                mine[quantity] = (most, rule)
        for (per_job, scope), chosen in sorted(best.items(), key=lambda item: (len(item[0][1]), item[0])):
            limits = [Limit(key, most, rule) for key, (most, rule) in chosen.items() if most < float("inf")]
            if limits:
                yield ScopeLimits(scope, tuple(limits), per_job)

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
        for scope, limits, per_job in (
            (found.scope, found.limits, found.per_job) for found in self.of(names)
        ):
            for limit in limits:
                quantity = limit.quantity
                if quantity == SUBMITTED:
                    asked = 1.0
                elif quantity == DURATION:
                    asked = duration
                else:
                    asked = demand[MEASURES.index(quantity)]
                if asked > limit.most + (SLACK if quantity in (*SPENT, *AHEAD) else 0):
                    at = MEASURES.index(quantity) if quantity in MEASURES else 0
                    yield LimitBreach(scope, limit, asked, per_job, named[at] if at else inf)


class LimitCounter:
    """The use of the limits of one scope.

    Attributes
    ----------
    limits : (place in `MEASURES`, most) of the limits on running jobs.
    rules : place in `MEASURES` → rule.
    submitted : the limit on jobs that wait or run, or None; `inside` is how many do.
    used : the amounts of running jobs and of hours that were spent, by their places in `MEASURES`.
    running : running job → (amounts, start, expected end); times in seconds.
    shown : the cohorts of waiting jobs in view that are counted here.
    held : the cohorts of waiting jobs that are barred by a limit of this scope.
    cohorts : how many cohorts are counted here.
    decays : whether the use of a limit falls while jobs run.
    free_until : (place, use up to which every cohort is below the limit), for a quick answer.
    """

    __slots__ = (
        *("cohorts", "decays", "free_until", "held", "inside", "limits", "number", "rules"),
        *("running", "scope", "shown", "submitted", "used"),
    )

    def __init__(self, number: int, found: ScopeLimits) -> None:
        self.number = number
        self.scope = found.scope
        self.submitted = next((limit for limit in found.limits if limit.quantity == SUBMITTED), None)
        self.inside = 0
        chosen = [limit for limit in found.limits if limit.quantity in MEASURES]
        self.rules = {MEASURES.index(limit.quantity): limit.rule for limit in chosen}
        self.limits = tuple(
            (at, most + SLACK if at >= FIRST_SPENT else most)
            for at, most in sorted((MEASURES.index(limit.quantity), limit.most) for limit in chosen)
        )
        self.cohorts = 0
        self.decays = any(at >= FIRST_AHEAD for at, _ in self.limits)
        self.free_until: list[tuple[int, float]] = list(self.limits)
        self.used: list[float] = [0] * len(MEASURES)
        self.running: dict[int, tuple[Demand, float, float]] = {}
        self.shown: dict[Cohort, None] = {}
        self.held: dict[Cohort, None] = {}

    def note_demand(self, demand: Demand) -> None:
        """Note the amounts of a cohort that is counted here."""
        self.cohorts += 1
        most = dict(self.limits)
        self.free_until = [(at, min(use, most[at] - demand[at])) for at, use in self.free_until]

    def in_use(self, at: int, now: float) -> float:
        """Return the use of a quantity at a time (seconds)."""
        if at < FIRST_AHEAD:
            return self.used[at]
        units = at - FIRST_AHEAD + 1
        return sum(demand[units] * max(0, end - now) for demand, _, end in self.running.values())

    def first_over(self, demand: Demand, now: float) -> int | None:
        """Return the place of the first limit that a job would exceed now, or None."""
        used = self.used
        for at, most in self.limits:
            if (self.in_use(at, now) if at >= FIRST_AHEAD else used[at]) + demand[at] > most:
                return at
        return None

    def falls_at(self, demand: Demand, at: int, now: float) -> float:
        """Return the first whole second at which a job is below a limit by the passage of time, or inf."""
        units = at - FIRST_AHEAD + 1
        room = dict(self.limits)[at] - demand[at]
        left = [(amounts[units], end) for amounts, _, end in self.running.values() if now < end < inf]
        before = now
        for end in sorted({end for _, end in left}):
            if sum(amount * max(0, until - end) for amount, until in left) <= room:
                rate = sum(amount for amount, until in left if until > before)
                use = sum(amount * max(0, until - before) for amount, until in left)
                return ceil(before + max(0, use - room) / rate) if rate else end
            before = end
        return inf

    def reason(self, at: int, now: float, users: Sequence[str]) -> str:
        """Return a sentence on a limit that is used up, and on the users who use it."""
        quantity = MEASURES[at]
        most, used = (amount_text(quantity, value) for value in (dict(self.limits)[at], self.in_use(at, now)))
        verb, is_used = ("run", "run") if quantity == RUNNING else ("use", "are used")
        shares: dict[str, float] = {}
        for job, (demand, _, _) in self.running.items():
            shares[users[job]] = shares.get(users[job], 0) + demand[at]
        ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        named = ", ".join(f"{user} {amount_text(quantity, amount)}" for user, amount in ranked[:NAMED])
        more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
        text = f"limit: {scope_text(self.scope)} may {verb} {most}, and {used} {is_used}"
        return f"{text} ({named}{more})" if named else text


class Cohort:
    """Jobs that are counted in the same counters with the same amounts, so a limit allows all or none.

    Attributes
    ----------
    jobs : those that wait, in view or barred.
    queue : the queue in which they wait.
    over : the counter and the place of the limit that they wait for; None if they are in view.
    steps : (use of a counter, place, amount, use up to which no cohort is over the limit, counter) of each
        limit that counts a job while it runs; `prepare` finds them.
    returns : (use, place, amount) of each limit on what is in use at a time.
    spends : (use, place, units, requested unit-seconds) of each limit on hours in all.
    decaying : the counters whose use falls while jobs run.
    varies : places of the amounts that limits count and that depend on the placement.
    own : (scope, limit, place) of limits on single jobs whose amounts depend on the placement.
    entered : whether its counters know it.
    stays : whether they know it also while none of its jobs waits, since each has few cohorts.
    """

    __slots__ = (
        *("counters", "decaying", "demand", "entered", "jobs", "over", "own"),
        *("queue", "returns", "spends", "stays", "steps", "varies"),
    )

    def __init__(
        self,
        counters: tuple[LimitCounter, ...],
        demand: Demand,
        varies: frozenset[int] = frozenset(),
        own: tuple[tuple[Scope, Limit, int], ...] = (),
    ) -> None:
        self.counters = counters
        self.demand = demand
        self.varies = varies
        self.own = own
        self.jobs: set[int] = set()
        self.queue: WaitingQueue | None = None
        self.over: tuple[LimitCounter, int] | None = None
        self.steps: tuple[tuple[list[float], int, float, float, LimitCounter], ...] = ()
        self.returns: tuple[tuple[list[float], int, float], ...] = ()
        self.spends: tuple[tuple[list[float], int, float, float], ...] = ()
        self.decaying = tuple(counter for counter in counters if counter.decays)
        self.entered = self.stays = False

    def prepare(self) -> None:
        """Find the steps by which a start and an end change the use, once all cohorts are known."""
        demand = self.demand
        self.stays = not self.decaying and all(counter.cohorts <= FEW for counter in self.counters)
        places = [(c, at, free) for c in self.counters for at, free in c.free_until if at < FIRST_AHEAD]
        self.steps = tuple((c.used, at, demand[at], free, c) for c, at, free in places)
        self.returns = tuple((used, at, amount) for used, at, amount, *_ in self.steps if at < FIRST_SPENT)
        self.spends = tuple(
            (c.used, at, demand[at - FIRST_SPENT + 1], demand[at]) for c, at, _ in places if at >= FIRST_SPENT
        )

    def enter(self, queue: WaitingQueue, over: tuple[LimitCounter, int] | None) -> None:
        """Note that a first job waits, in view or for a limit."""
        self.queue = queue
        self.over = over
        self.entered = True
        if over is None:
            for counter in self.counters:
                counter.shown[self] = None
        else:
            over[0].held[self] = None

    def wait_for(self, over: tuple[LimitCounter, int] | None) -> None:
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
            for counter in self.counters:
                counter.shown.pop(self, None)
        else:
            self.over[0].held.pop(self, None)


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
