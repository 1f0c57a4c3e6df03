"""The use of limits at any time of a run, from its tables: which limit a waiting job was over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import SimschedError
from simsched.match.requests.compile import compile_request
from simsched.simulation.limits.limit_counters import (
    FIRST_AHEAD,
    FIRST_SPENT,
    MEASURES,
    LimitCounter,
    LimitTable,
    demand_of,
    scope_text,
)
from simsched.simulation.limits.limit_rules import read_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.graph.cluster import Cluster
    from simsched.report.data.column_arrays import Arrays
    from simsched.simulation.limits.limit_counters import Demand, ScopeLimits
    from simsched.workload.job import Job

LIMIT = "limit"
"""Begins the cause of a wait for a limit: ``limit running-jobs of user alice``."""


class LimitReplay:
    """The limits of a run for one of its jobs; jobs that were queued again count with their last attempt."""

    def __init__(
        self,
        config: Mapping[str, Any],
        table: Arrays,
        job: Job,
        jobs: Mapping[str, Job],
        cluster: Cluster,
        *,
        whole: bool,
    ) -> None:
        rules = read_limits(config.get("limits", ()), "run.json")
        self._table = LimitTable(rules, cluster.index, tuple(jobs.values()), whole=whole)
        self._cluster, self._jobs = cluster, jobs
        self._demands: dict[tuple[int, float], Demand | None] = {}
        self._own = job
        self._scopes = [found for found in self._table.of(self._table.names_of(job)) if not found.per_job]
        self._rows = self._rows_of(table) if self._scopes else []

    def _rows_of(self, table: Arrays) -> list[tuple[Job, float, float, float, tuple[float, ...]]]:
        """Return the jobs that ran, with start, end, requested seconds, and nodes, cores and GPUs."""
        ran = np.isfinite(table["start"])
        columns = (
            table[name][ran] for name in ("id", "start", "until", "duration", "nodes", "cores", "gpus")
        )
        return [
            (self._jobs[name], start, end, seconds, tuple(units))
            for name, start, end, seconds, *units in zip(
                *(column.tolist() for column in columns), strict=True
            )
            if name in self._jobs
        ]

    def cause_at(self, time: float, duration: float) -> tuple[str, str | None] | None:
        """Return the limit that the job (requested seconds) was over, and a job that used it; None: none."""
        demand = self._demand(self._own, duration)
        if demand is None:
            return None
        # Its allocation may be larger than the least that it may get: what it got is the best that is known.
        got = [units for job, _, _, _, units in self._rows if job is self._own]
        for number, found in enumerate(self._scopes):
            counter = self._counter_at(number, found, time)
            at = counter.first_over(demand, time)
            if at is None and got:
                actual = demand_of((*got[0], demand[MEASURES.index("memory")]), duration)
                at = counter.first_over(actual, time)
            if at is not None:
                using = sorted(counter.running, key=lambda row: -counter.running[row][0][at])
                culprit = str(self._rows[using[0]][0].id) if using else None
                return f"{LIMIT} {MEASURES[at]} of {scope_text(found.scope)}", culprit
        return None

    def _counter_at(self, number: int, found: ScopeLimits, time: float) -> LimitCounter:
        """Return the counter of a scope with the use of a time."""
        counter = LimitCounter(number, found)
        for row, (job, start, end, seconds, units) in enumerate(self._rows):
            if start > time or found.scope not in self._scopes_of(job):
                continue
            demand = self._demand(job, seconds)
            if demand is None:
                continue
            demand = demand_of((*units, demand[MEASURES.index("memory")]), seconds)
            runs = time < end
            if runs:
                counter.running[row] = (demand, start, start + seconds)
            for at, _ in counter.limits:
                if at < FIRST_SPENT:
                    counter.used[at] += demand[at] * runs
                elif at < FIRST_AHEAD:
                    counter.used[at] += demand[at] if runs else demand[at - FIRST_SPENT + 1] * (end - start)
        return counter

    def _scopes_of(self, job: Job) -> set[tuple[tuple[str, str], ...]]:
        return {found.scope for found in self._table.of(self._table.names_of(job)) if not found.per_job}

    def _demand(self, job: Job, seconds: float) -> Demand | None:
        """Return the amounts of a job, or None for a request that the cluster does not have."""
        key = (id(job.jobspec), seconds)
        if key not in self._demands:
            try:
                request = compile_request(job.jobspec, self._cluster.index)
                self._demands[key] = self._table.demand(request, seconds)
            except SimschedError:
                self._demands[key] = None
        return self._demands[key]
