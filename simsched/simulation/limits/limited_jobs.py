"""`LimitedJobs`: the jobs of a workload with the counters that each of them is counted in.

It also finds the jobs that a limit can never allow, which are rejected or held at their submission.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.simulation.limits.limit_counters import (
    FIRST_AHEAD,
    FIRST_SPENT,
    Cohort,
    Demand,
    Limit,
    LimitCounter,
    LimitTable,
    Place,
    Scope,
    ScopeLimit,
)
from simsched.simulation.limits.limit_rules import RUNNING, SUBMITTED, UNITS
from simsched.simulation.record.recorder import FAILED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from simsched.graph.index.index import Index
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.workload.job import Job


NAMELESS = "jobs without a user"
NAMES, REQUEST, TIME = range(3)
"""What limits read of a job: its names alone, its request as well, or its requested duration, too."""


@dataclass(frozen=True, slots=True)
class LimitedJobs:
    """The jobs of a run under limits, by job number.

    Attributes
    ----------
    counters : all counters; the place of a counter is its number.
    of : the cohort of each job; None if no limit counts it while it runs.
    submitted : job → the counters of submitted jobs that count it, and whether each of them binds it.
    users : the name of each job's user, for messages.
    """

    counters: Sequence[LimitCounter]
    of: list[Cohort | None]
    submitted: dict[int, tuple[tuple[LimitCounter, bool], ...]]
    users: list[str]


def limit_jobs(
    jobs: Sequence[Job],
    prepared: Prepared,
    rules: Sequence[LimitRule],
    index: Index,
    groups: Sequence[int] | None = None,
    *,
    whole: bool = False,
) -> tuple[LimitedJobs, Prepared]:
    """Return the jobs under limits, and the prepared jobs with those that a limit rejects or holds.

    `groups` is the group of queues in which each job waits; None: there is one.  `whole` states that jobs get
    whole targets.

    Raises
    ------
    ConfigError
        for an amount of memory that the cluster has no unit for.
    """
    table = LimitTable(rules, index, jobs, whole=whole)
    finder = _Finder(table, prepared, groups)
    rejected: dict[int, tuple[int, str]] = {}
    submitted: dict[int, tuple[tuple[LimitCounter, bool], ...]] = {}
    held: dict[int, str] = {}
    of: list[Cohort | None] = []
    rejected_before, requests = prepared.rejected, prepared.table.requests
    for number, job in enumerate(jobs):
        if requests[number] is None or number in rejected_before:
            of.append(None)
            continue
        verdict = finder.verdict(number, table.names_of(job))
        of.append(verdict.cohort)
        if verdict.submitted:
            submitted[number] = verdict.submitted
        if verdict.rejected is not None:
            rejected[number] = (FAILED, f"rejected: {verdict.rejected}")
        elif verdict.held is not None:
            held[number] = verdict.held
    for cohort in finder.cohorts:
        cohort.prepare()
    users = [job.user or NAMELESS for job in jobs]
    return LimitedJobs(tuple(finder.counters), of, submitted, users), replace(
        prepared,
        rejected={**prepared.rejected, **rejected},
        holds={**prepared.holds, **held},
        special=prepared.special | rejected.keys() | held.keys() | set(submitted),
    )


class GrowingLimits:
    """The jobs of a run under limits, to which jobs are added while it goes on.

    Attributes
    ----------
    limited : the jobs so far; its counters are those of the scopes that a job was in.
    """

    def __init__(
        self,
        rules: Sequence[LimitRule],
        prepared: Prepared,
        index: Index,
        groups: Sequence[int] | None,
        *,
        whole: bool = False,
    ) -> None:
        self._finder = _Finder(LimitTable(rules, index, whole=whole), prepared, groups)
        self._prepared: Any = prepared
        self.limited = LimitedJobs(self._finder.counters, [], {}, [])

    def add(self, number: int, job: Job) -> None:
        """Add the next job, whose columns are prepared; note whether a limit rejects or holds it."""
        prepared, limited = self._prepared, self.limited
        limited.users.append(job.user or NAMELESS)
        if number in prepared.rejected:
            limited.of.append(None)
            return
        known = len(self._finder.cohorts)
        verdict = self._finder.verdict(number, self._finder.table.names_of(job))
        if len(self._finder.cohorts) > known and verdict.cohort is not None:
            self._prepare_beside(verdict.cohort)
        limited.of.append(verdict.cohort)
        if verdict.submitted:
            limited.submitted[number] = verdict.submitted
        if verdict.rejected is not None:
            prepared.rejected[number] = (FAILED, f"rejected: {verdict.rejected}")
        elif verdict.held is not None:
            prepared.holds[number] = verdict.held
        if verdict.submitted or verdict.rejected is not None or verdict.held is not None:
            prepared.special.add(number)

    def _prepare_beside(self, new: Cohort) -> None:
        """Prepare a new cohort, and again all cohorts that are counted with it."""
        shared = set(new.counters)
        for cohort in self._finder.cohorts:
            if not shared.isdisjoint(cohort.counters):
                cohort.prepare()


class _Verdict(NamedTuple):
    """The result for jobs with the same names, request and duration."""

    cohort: Cohort | None
    submitted: tuple[tuple[LimitCounter, bool], ...]
    held: str | None = None
    rejected: str | None = None


class _Finder:
    """Finds the cohort and the counters of one job after the other; jobs that are alike share them."""

    def __init__(self, table: LimitTable, prepared: Prepared, groups: Sequence[int] | None) -> None:
        self.table = table
        self.prepared = prepared
        self.groups = groups
        self.counters: list[LimitCounter] = []
        self._by_place: dict[Place, LimitCounter] = {}
        self._by_names: dict[tuple[str | None, ...], tuple[tuple[LimitCounter, bool], ...]] = {}
        """Names → the counters of a job, and whether each of them binds it."""
        self._counted: dict[tuple[int, ...], frozenset[int]] = {}
        """Numbers of counters → the places of the amounts that they count."""
        self._reads: dict[tuple[str | None, ...], int] = {}
        """Names → what their limits read of a job: `NAMES`, `REQUEST` or `TIME`."""
        self._cohorts: dict[tuple[object, ...], Cohort] = {}
        self._verdicts: dict[object, _Verdict] = {}

    @property
    def cohorts(self) -> Collection[Cohort]:
        """The cohorts that were found."""
        return self._cohorts.values()

    def verdict(self, number: int, names: tuple[str | None, ...]) -> _Verdict:
        """Return the cohort of a job, or why a limit can never allow it."""
        found = self._verdicts.get(names)
        if found is not None:
            return found
        reads = self._reads.get(names)
        if reads is None:
            reads = self._reads[names] = max((_reads(one) for one in self.table.of(names)), default=NAMES)
        key: object = names  # of the jobs of one queue of which only the names count
        if reads:
            table = self.prepared.table
            key = (names, table.kinds[number], table.durations[number] if reads == TIME else None)
        if self.groups is not None:
            key = (key, self.groups[number])
        found = self._verdicts.get(key)
        if found is None:
            group = 0 if self.groups is None else self.groups[number]
            found = self._verdicts[key] = self._judge(number, names, group)
        return found

    def _judge(self, number: int, names: tuple[str | None, ...], group: int) -> _Verdict:
        limits = self.table.of(names)
        if not limits:
            return _Verdict(None, ())
        mine = self._by_names.get(names)
        if mine is None:
            mine = self._by_names[names] = tuple(
                (self._counter(one), one.binds) for one in limits if not one.per_job
            )
        request, duration = self.prepared.table.requests[number], self.prepared.table.durations[number]
        assert request is not None
        breaches = list(self.table.breaches(names, request, duration))
        for breach in breaches:
            if breach.limit.rule.over == "reject":
                return _Verdict(None, (), rejected=breach.text)
        submitted = tuple(one for one in mine if one[0].at is None)
        if breaches:
            return _Verdict(None, submitted, held=f"held for ever: {breaches[0].text}")
        running = tuple(counter for counter, _ in mine if counter.at is not None)
        binding = tuple(counter for counter, binds in mine if binds and counter.at is not None)
        varies, demand = frozenset[int](), self.table.demand(request, duration)
        if max(map(_reads, limits)) > NAMES:
            varies = self.table.varies(request)
        own = tuple(
            (one.scope, one.limit, one.at)
            for one in limits
            if one.per_job and one.at is not None and one.at in varies
        )
        if not running and not own:
            return _Verdict(None, submitted)
        return _Verdict(self._cohort(running, binding, demand, varies, own, group), submitted)

    def _cohort(
        self,
        counters: tuple[LimitCounter, ...],
        binding: tuple[LimitCounter, ...],
        demand: Demand,
        varies: frozenset[int],
        own: tuple[tuple[Scope, Limit, int], ...],
        group: int,
    ) -> Cohort:
        """Return the cohort of jobs whose amounts are equal where a limit counts them."""
        numbers = tuple(counter.number for counter in counters)
        counted = self._counted.get(numbers)
        if counted is None:
            counted = self._counted[numbers] = _counted(counters)
        amounts = tuple(amount if at in counted else 0 for at, amount in enumerate(demand))
        varies &= counted.union(at for _, _, at in own)
        key = (numbers, tuple(counter.number for counter in binding), amounts, varies, own, group)
        cohort = self._cohorts.get(key)
        if cohort is None:
            cohort = self._cohorts[key] = Cohort(counters, binding, amounts, varies, own)
        return cohort

    def _counter(self, found: ScopeLimit) -> LimitCounter:
        counter = self._by_place.get(found.place)
        if counter is None:
            counter = self._by_place[found.place] = LimitCounter(len(self.counters), found)
            self.counters.append(counter)
        return counter


def _reads(found: ScopeLimit) -> int:
    """Return what a limit reads of a job: `NAMES`, `REQUEST` or `TIME`."""
    if found.limit.quantity in (RUNNING, SUBMITTED):
        return NAMES
    return REQUEST if found.limit.quantity in UNITS else TIME


def _counted(counters: Iterable[LimitCounter]) -> frozenset[int]:
    """Return the places of the amounts that counters read."""
    counted = {counter.at for counter in counters if counter.at is not None}
    ahead = {at - FIRST_AHEAD + 1 for at in counted if at >= FIRST_AHEAD}
    spent = {at - FIRST_SPENT + 1 for at in counted if FIRST_SPENT <= at < FIRST_AHEAD}
    return frozenset(counted | ahead | spent)
