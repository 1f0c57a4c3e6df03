"""`LimitedJobs`: the jobs of a run with the counters that each of them is counted in.

It also finds the jobs that a limit can never allow, which are rejected or held at their submission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.simulation.limits.limit_counters import Cohort, LimitCounter, LimitTable, Place, ScopeLimit
from simsched.simulation.limits.limit_kinds import NAMES, TIME
from simsched.simulation.record.recorder import FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.graph.index.index import Index
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.workload.job import Job


NAMELESS = "jobs without a user"


class _Verdict(NamedTuple):
    """The result for jobs with the same names, request and duration."""

    cohort: Cohort | None = None
    submitted: tuple[tuple[LimitCounter, bool], ...] = ()
    held: str | None = None
    rejected: str | None = None


class LimitedJobs:
    """The jobs of a run under limits, by job number; jobs that are alike share a cohort.

    Attributes
    ----------
    counters : all counters; the place of a counter is its number.
    of : the cohort of each job; None if no limit counts it while it runs.
    submitted : job → the counters of submitted jobs that count it, and whether each of them binds it.
    users : the name of each job's user, for messages.
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
        """Begin without jobs.

        `groups` is the group of queues in which each job waits; None: there is one.  `whole` states that jobs
        get whole targets.  ConfigError for an amount of memory that the cluster has no unit for.
        """
        self._limits = LimitTable(rules, index, whole=whole)
        self._prepared, self._groups = prepared, groups
        self.counters: list[LimitCounter] = []
        self.of: list[Cohort | None] = []
        self.submitted: dict[int, tuple[tuple[LimitCounter, bool], ...]] = {}
        self.users: list[str] = []
        self._by_place: dict[Place, LimitCounter] = {}
        self._by_names: dict[tuple[str | None, ...], tuple[tuple[LimitCounter, bool], ...]] = {}
        """Names → the counters of a job, and whether each of them binds it."""
        self._reads: dict[tuple[str | None, ...], int] = {}
        """Names → what their limits read of a job: `NAMES`, `REQUEST` or `TIME`."""
        self._cohorts: dict[tuple[object, ...], Cohort] = {}
        self._verdicts: dict[object, _Verdict] = {}

    def add(self, job: Job) -> None:
        """Add the next job, whose columns are prepared; note whether a limit rejects or holds it."""
        prepared, number = self._prepared, len(self.of)
        self.users.append(job.user or NAMELESS)
        if number in prepared.rejected:
            self.of.append(None)
            return
        names = self._limits.names_of(job)
        verdict = self._verdicts.get(names) or self._verdict(number, names)
        self.of.append(verdict.cohort)
        if verdict.submitted:
            self.submitted[number] = verdict.submitted
            prepared.special.add(number)
        if verdict.rejected is not None:
            prepared.rejected[number] = (FAILED, f"rejected: {verdict.rejected}")
            prepared.special.add(number)
        elif verdict.held is not None:
            prepared.holds[number] = verdict.held
            prepared.special.add(number)

    def _verdict(self, number: int, names: tuple[str | None, ...]) -> _Verdict:
        """Return the cohort of a job, or why a limit can never allow it."""
        reads = self._reads.get(names)
        if reads is None:
            kinds = (one.limit.kind.reads for one in self._limits.of(names))
            reads = self._reads[names] = max(kinds, default=NAMES)
        key: object = names  # of the jobs of one queue of which only the names count
        if reads:
            table = self._prepared.table
            key = (names, table.kinds[number], table.durations[number] if reads == TIME else None)
        if self._groups is not None:
            key = (key, self._groups[number])
        found = self._verdicts.get(key)
        if found is None:
            group = 0 if self._groups is None else self._groups[number]
            found = self._verdicts[key] = self._judge(number, names, group)
        return found

    def _judge(self, number: int, names: tuple[str | None, ...], group: int) -> _Verdict:
        limits, table = self._limits.of(names), self._prepared.table
        if not limits:
            return _Verdict()
        mine = self._by_names.get(names)
        if mine is None:
            mine = self._by_names[names] = tuple(
                (self._counter(one), one.binds) for one in limits if not one.per_job
            )
        request: Any = table.requests[number]
        breaches = list(self._limits.breaches(names, request, table.durations[number]))
        for breach in breaches:
            if breach.limit.rule.over == "reject":
                return _Verdict(rejected=breach.text)
        submitted = tuple(one for one in mine if one[0].kind.while_submitted)
        if breaches:
            return _Verdict(submitted=submitted, held=f"held for ever: {breaches[0].text}")
        running = tuple(one for one in mine if not one[0].kind.while_submitted)
        varies = frozenset[str]()
        if self._reads[names] > NAMES:
            varies = self._limits.varies(request)
        own = tuple((one.scope, one.limit) for one in limits if one.per_job and one.limit.kind.unit in varies)
        if not running and not own:
            return _Verdict(submitted=submitted)
        counters = tuple(counter for counter, _ in running)
        binding = tuple(counter for counter, binds in running if binds)
        amounts = self._limits.amounts(request, table.durations[number])
        counted = {*(counter.kind.unit for counter in counters), *(limit.kind.unit for _, limit in own)}
        varies &= counted
        asks = tuple((one.kind.asks(amounts), one.kind.rate(amounts)) for one in counters)
        key = (counters, binding, asks, varies, own, group)
        cohort = self._cohorts.get(key)
        if cohort is None:
            cohort = self._cohorts[key] = Cohort(counters, binding, amounts, varies, own)
        return _Verdict(cohort, submitted)

    def _counter(self, found: ScopeLimit) -> LimitCounter:
        counter = self._by_place.get(found.place)
        if counter is None:
            counter = self._by_place[found.place] = LimitCounter(len(self.counters), found)
            self.counters.append(counter)
        return counter
