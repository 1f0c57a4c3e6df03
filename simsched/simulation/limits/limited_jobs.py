"""`LimitedJobs`: the jobs of a workload with the counters that each of them is counted in.

It also finds the jobs that a limit can never allow, which are rejected or held at their submission.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from simsched.simulation.limits.limit_counters import (
    Demand,
    LimitCounter,
    LimitTable,
    ScopeLimits,
)
from simsched.simulation.record.recorder import FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.graph.index.index import Index
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.workload.job import Job


@dataclass(frozen=True, slots=True)
class LimitedJobs:
    """The jobs of a run under limits, by job number.

    Attributes
    ----------
    counters : all counters; the place of a counter is its number.
    of : the counters with limits on running jobs that a job is counted in; () for most jobs.
    submitted : job → the counters with a limit on submitted jobs.
    demands : the amounts of the jobs that are counted, None for the others.
    held : job → why no limit can ever allow it, for those that wait for ever.
    users : the name of each job's user, for messages.
    """

    counters: tuple[LimitCounter, ...]
    of: list[tuple[LimitCounter, ...]]
    submitted: dict[int, tuple[LimitCounter, ...]]
    demands: list[Demand | None]
    held: dict[int, str]
    users: list[str]


def names_of(job: Job) -> tuple[str | None, ...]:
    """Return the names of a job in `DIMENSIONS`."""
    return job.user, job.bank, job.queue, job.qos


def limit_jobs(
    jobs: Sequence[Job], prepared: Prepared, rules: Sequence[LimitRule], index: Index
) -> tuple[LimitedJobs, Prepared]:
    """Return the jobs under limits, and the prepared jobs with those that a limit rejects or holds.

    Raises
    ------
    ConfigError
        for an amount of memory that the cluster has no unit for.
    """
    table = LimitTable(rules, index)
    finder = _Finder(table, prepared)
    rejected: dict[int, tuple[int, str]] = {}
    for number, job in enumerate(jobs):
        if number in prepared.rejected or prepared.table.requests[number] is None:
            finder.skip()
            continue
        never = finder.enter(number, names_of(job))
        if never is not None:
            rejected[number] = (FAILED, f"rejected: {never}")
    found = LimitedJobs(
        tuple(finder.counters),
        finder.of,
        finder.submitted,
        finder.demands,
        finder.held,
        [job.user or "jobs without a user" for job in jobs],
    )
    return found, replace(
        prepared,
        rejected={**prepared.rejected, **rejected},
        holds=prepared.holds | finder.held.keys(),
        special=prepared.special.union(rejected, finder.held, finder.submitted),
    )


class _Finder:
    """Finds the counters of one job after the other."""

    def __init__(self, table: LimitTable, prepared: Prepared) -> None:
        self.table = table
        self.prepared = prepared
        self.counters: list[LimitCounter] = []
        self.of: list[tuple[LimitCounter, ...]] = []
        self.submitted: dict[int, tuple[LimitCounter, ...]] = {}
        self.demands: list[Demand | None] = []
        self.held: dict[int, str] = {}
        self._by_scope: dict[tuple[tuple[str, str], ...], LimitCounter] = {}
        self._by_names: dict[tuple[str | None, ...], tuple[LimitCounter, ...]] = {}
        self._amounts: dict[tuple[int, float], Demand] = {}

    def skip(self) -> None:
        """Enter a job that is rejected anyway."""
        self.of.append(())
        self.demands.append(None)

    def enter(self, number: int, names: tuple[str | None, ...]) -> str | None:
        """Enter a job, and return why it is rejected, if it is."""
        table = self.prepared.table
        mine = self._by_names.get(names)
        if mine is None:
            found = [limits for limits in self.table.of(names) if not limits.per_job]
            mine = self._by_names[names] = tuple(map(self._counter, found))
        if not self.table.of(names):
            self.skip()
            return None
        request, duration = table.requests[number], table.durations[number]
        assert request is not None
        key = (table.kinds[number], duration)
        demand = self._amounts.get(key)
        if demand is None:
            demand = self._amounts[key] = self.table.demand(request, duration)
        breaches = list(self.table.breaches(names, demand, duration))
        rejecting = next((breach for breach in breaches if breach.limit.rule.over == "reject"), None)
        if rejecting is not None:
            self.skip()
            return rejecting.text
        submitted = tuple(counter for counter in mine if counter.submitted is not None)
        if submitted:
            self.submitted[number] = submitted
        if breaches:
            self.held[number] = f"held for ever: {breaches[0].text}"
            self.skip()
            return None
        running = tuple(counter for counter in mine if counter.limits)
        self.of.append(running)
        self.demands.append(demand if running else None)
        for counter in running:
            counter.largest = list(map(max, counter.largest, demand))
        return None

    def _counter(self, limits: ScopeLimits) -> LimitCounter:
        counter = self._by_scope.get(limits.scope)
        if counter is None:
            counter = self._by_scope[limits.scope] = LimitCounter(len(self.counters), limits)
            self.counters.append(counter)
        return counter
