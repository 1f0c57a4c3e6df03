"""The limits that count for a job, and the counters of their use.

A counter belongs to one kind in one scope: a user, a user in a queue, all jobs.  Rules with the same
dimensions share it, and of their values that of the rule with the most names counts.  A job counts with its
allocation: before its start with the least that its request takes (`jobs.sizes`).
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.formats.rfc.constraint import gpu_type_of
from simsched.simulation.jobs.sizes import Sizes
from simsched.simulation.limits.limit_kinds import KINDS, RUNNING, UNITS, Amounts, LimitKind
from simsched.simulation.limits.limit_rules import ANY, DIMENSIONS, LimitRule, limits_on

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Request
    from simsched.schedule.queue import WaitingQueue
    from simsched.simulation.limits.limit_spells import LimitName
    from simsched.workload.job import Job

NAMED = 3
"""Users that a reason names at most."""

Scope = tuple[tuple[str, str], ...]
"""The (dimension, name) pairs of a counter."""

Place = tuple[Scope, str, int | None]
"""The scope, the kind and the level of a limit: what has one counter."""


class Limit(NamedTuple):
    """The most of a kind in a scope, and the rule that says so; hours are given in unit-seconds."""

    kind: LimitKind
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
    def name(self) -> LimitName:
        """The limit in the record of a run."""
        return f"{self.limit.kind.name} of {scope_text(self.scope)}", self.limit.rule.blocks

    @property
    def place(self) -> Place:
        """What has the same counter."""
        return self.scope, self.limit.kind.name, self.limit.rule.level


class LimitBreach(NamedTuple):
    """A limit that a job exceeds by itself: its scope and the amount that the job asks for."""

    scope: Scope
    limit: Limit
    asked: float
    per_job: bool
    named: float = inf
    """The amount that the request names; an allocation may be larger, and have whole nodes."""

    @property
    def kind(self) -> LimitKind:
        """The kind of the limit."""
        return self.limit.kind

    @property
    def who(self) -> str:
        """The jobs that the limit is on: each by itself, or those of a scope together."""
        if not self.per_job:
            return scope_text(self.scope)
        return f"a job of {scope_text(self.scope)}" if self.scope else "a job"

    @property
    def name(self) -> LimitName:
        """The limit in the record of a run."""
        return f"{self.kind.name} of {self.who}", False

    @property
    def may(self) -> str:
        """The limit as a sentence."""
        return self.limit.kind.bound(self.who, self.limit.most)

    @property
    def text(self) -> str:
        """A sentence with the names and numbers."""
        asked = "no limit" if self.asked == inf else self.limit.kind.text(self.asked)
        asks = "asks for" if self.asked <= self.named else "takes at least"
        return f"{self.may}, the job {asks} {asked}"


class LimitTable:
    """The rules of a configuration, asked for the limits of a job by its names."""

    def __init__(self, rules: Sequence[LimitRule], index: Index, *, whole: bool = False) -> None:
        self.rules = rules
        self._index = index
        self.sizes = Sizes(index, whole=whole)
        about = (any(name in rule.scope for rule in rules) for name in DIMENSIONS)
        self._by_user, self._by_account, self._by_queue, self._by_qos, self._by_array, self._by_gpu_type = (
            about
        )
        self._arrays: dict[str, int] = {}
        """Array → the limit of tasks at a time that its tasks state."""
        self._known: dict[tuple[str | None, ...], tuple[ScopeLimit, ...]] = {}
        self._units: dict[int, tuple[tuple[int, int, int, int], frozenset[str]]] = {}
        """Request → its least amounts, and the units whose number depends on the placement."""

    def names_of(self, job: Job) -> tuple[str | None, ...]:
        """Return the names of a job in `DIMENSIONS`, None in those that no limit is about."""
        task, array = job.array_task, None
        if task is not None:
            if task.limit is not None:
                self._arrays[task.array] = task.limit
            if self._by_array or task.array in self._arrays:
                array = task.array
        return (
            job.user if self._by_user else None,
            job.bank if self._by_account else None,
            job.queue if self._by_queue else None,
            job.qos if self._by_qos else None,
            array,
            gpu_type_of(job.jobspec.constraint) if self._by_gpu_type else None,
        )

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
            kind = KINDS[quantity]
            limit = Limit(kind, kind.most(value, self._index, rule.where), rule)
            found = ScopeLimit(scope, limit, rule.is_single(quantity), binds)
            place = found.per_job, found.place
            if place not in best or limit.most < best[place].limit.most:
                best[place] = found
        order = [*KINDS]

        def breadth(one: ScopeLimit) -> tuple[Any, ...]:
            return len(one.scope), one.per_job, one.scope, order.index(one.limit.kind.name)

        for found in sorted(best.values(), key=breadth):
            if found.limit.most < inf and (found.binds or not found.per_job):
                yield found

    def _own_rule(self, array: str | None) -> tuple[LimitRule, ...]:
        """Return the rule for the limit of tasks at a time that an array states itself, if it does."""
        most = None if array is None else self._arrays.get(array)
        where = f"array {array}"
        return () if most is None else (LimitRule.read({"each": "array", RUNNING: most}, where),)

    def amounts(self, request: Request, duration: float) -> Amounts:
        """Return the least amounts of a job with a request and a requested duration (seconds)."""
        return Amounts(*self._units_of(request)[0], duration)

    def varies(self, request: Request) -> frozenset[str]:
        """Return the units whose number depends on the placement."""
        return self._units_of(request)[1]

    def _units_of(self, request: Request) -> tuple[tuple[int, int, int, int], frozenset[str]]:
        found = self._units.get(id(request))
        if found is None:
            extents = [self.sizes.extent(request, unit) for unit in UNITS]
            varies = frozenset(unit for unit, extent in zip(UNITS, extents, strict=True) if not extent.fixed)
            nodes, cores, gpus, memory = (extent.least for extent in extents)
            found = self._units[id(request)] = (nodes, cores, gpus, memory), varies
        return found

    def _named(self, request: Request, seconds: float) -> Amounts:
        """Return the amounts that a request names."""
        cores, gpus, memory = (request.demand.get(type_, 0) for type_ in ("core", "gpu", "memory"))
        return Amounts(self.sizes.named_nodes(request), cores, gpus, memory, seconds)

    def breaches(
        self, limits: Iterable[ScopeLimit], request: Request, least: Amounts
    ) -> Iterator[LimitBreach]:
        """Yield those of a job's limits that it can never meet, however little others use, at any place.

        `least` are the least amounts of the job.
        """
        for found in limits:
            kind, most, _ = found.limit
            asked = kind.asks(least)
            if found.binds and asked > most + kind.slack:
                named = kind.asks(self._named(request, least.seconds))
                yield LimitBreach(found.scope, found.limit, asked, found.per_job, named)


class LimitCounter:
    """The use of one limit in its scope.

    Attributes
    ----------
    name : the limit in the record of a run.
    most : the limit, and the slack of its kind.
    used : the jobs that wait or run, the amounts of running jobs, or the hours that were spent; of a use that
        falls with time a bound, what the running jobs requested.
    running : running job → (amounts, start, expected end), for a use that falls; times in seconds.
    shown : the cohorts of waiting jobs in view that the limit binds.
    held : the cohorts of waiting jobs that are barred by it.
    free : the use up to which every cohort is below the limit, for a quick answer; -inf: it has to be asked.
    endless : how many of the running jobs have requested an amount without a bound, which `used` leaves out.
    """

    def __init__(self, number: int, found: ScopeLimit) -> None:
        self.number, self.scope, self.limit = number, found.scope, found.limit
        self.kind = kind = found.limit.kind
        self.falls, self.lasts = kind.falls, kind.lasts
        self.name: LimitName = found.name
        self.free = self.most = found.limit.most + kind.slack
        self.used: float = 0
        self.endless = 0
        self.running: dict[int, tuple[Amounts, float, float]] = {}
        self.shown: dict[Cohort, None] = {}
        self.held: dict[Cohort, None] = {}

    def in_use(self, now: float, gone: Collection[int] = ()) -> float:
        """Return the use at a time (seconds); jobs that are `gone` by then leave a use that falls alone."""
        if not self.falls:
            return inf if self.endless else self.used
        rate, jobs = self.kind.rate, self.running.items()
        return sum(rate(one) * max(0, end - now) for job, (one, _, end) in jobs if job not in gone)

    def is_over(self, asked: float, now: float, gone: Collection[int] = ()) -> bool:
        """Whether a job that asks for an amount would exceed the limit at a time (s)."""
        return self.in_use(now, gone) + asked > self.most

    def falls_at(self, asked: float, now: float, gone: Collection[int] = ()) -> float:
        """Return the first whole second at which a job is below the limit by the passage of time, or inf."""
        if not self.falls:
            return inf
        room, rate_of = self.most - asked, self.kind.rate
        left = [
            (rate_of(amounts), end)
            for job, (amounts, _, end) in self.running.items()
            if now < end < inf and job not in gone
        ]
        before = now
        for end in sorted({end for _, end in left}):
            if sum(amount * max(0, until - end) for amount, until in left) <= room:
                rate = sum(amount for amount, until in left if until > before)
                use = sum(amount * max(0, until - before) for amount, until in left)
                return ceil(before + max(0, use - room) / rate) if rate else end
            before = end
        return inf

    def reason(
        self, now: float, user_of: Callable[[int], str], running: Iterable[tuple[int, Amounts]]
    ) -> str:
        """Return a sentence on the limit when it is used up, and on the users of the running jobs in it."""
        shares: dict[str, float] = {}
        for job, amounts in running:
            user = user_of(job)
            shares[user] = shares.get(user, 0) + self.kind.asks(amounts)
        ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        named = ", ".join(f"{user} {self.kind.text(amount)}" for user, amount in ranked[:NAMED])
        more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
        text = f"limit: {self.kind.used_up(scope_text(self.scope), self.most, self.in_use(now))}"
        return f"{text} ({named}{more})" if named else text


class Cohort:
    """Jobs that are counted in the same counters with the same amounts, so a limit allows all or none.

    Attributes
    ----------
    number : that of the group in the record of a run.
    asks : counter of running jobs that counts the jobs → how much a start raises its use.
    binding : those counters whose limits bind the jobs.
    jobs : those that wait, in view or barred.
    queue : the queue in which they wait.
    over : the counter of the limit that they wait for; None if they are in view.
    counted : the pairs of `asks`, first those whose use falls: of several limits a job waits for the first.
    varies : the units that limits count and that depend on the placement.
    own : (scope, limit) of limits on single jobs whose amounts depend on the placement.
    entered : whether its counters know it.
    """

    def __init__(
        self,
        number: int,
        asks: dict[LimitCounter, float],
        binding: tuple[LimitCounter, ...],
        amounts: Amounts,
        varies: frozenset[str] = frozenset(),
        own: tuple[tuple[Scope, Limit], ...] = (),
    ) -> None:
        self.number, self.amounts, self.varies, self.own = number, amounts, varies, own
        self.asks, self.binding = asks, binding
        self.jobs: set[int] = set()
        self.queue: WaitingQueue | None = None
        self.over: LimitCounter | None = None
        for counter in binding:
            counter.free = min(counter.free, counter.most - asks[counter])
        self.counted = sorted(asks.items(), key=lambda pair: not pair[0].falls)
        self.entered = False

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
        # In view it stays known, and need not be entered again: it is not over a limit until a counter's use
        # rises, which looks at all cohorts in view.
        if not self.jobs and self.over is not None:
            self.leave()

    def leave(self) -> None:
        """Let the counters forget it."""
        self.entered = False
        if self.over is None:
            for counter in self.binding:
                counter.shown.pop(self, None)
        else:
            self.over.held.pop(self, None)


def scope_text(scope: Scope) -> str:
    """Return the name of a scope for people.

    >>> scope_text((("user", "alice"), ("queue", "debug"))), scope_text(()), scope_text((("user", ANY),))
    ('user alice in queue debug', 'the jobs together', 'each user')
    """
    parts = [f"each {dimension}" if name == ANY else f"{dimension} {name}" for dimension, name in scope]
    return " in ".join(parts) or "the jobs together"
