"""`LimitUse`: who used a limit of a run at a time, from the tables of the run."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.match.claims_from_r import ClaimsFromR
from simsched.match.named_targets import targets_of_ranks
from simsched.report.waiting.noted_limits import LIMIT
from simsched.simulation.limits.limit_counters import LimitCounter, LimitTable
from simsched.simulation.limits.limit_keeper import NAMELESS
from simsched.simulation.limits.limit_kinds import KINDS, Amounts
from simsched.simulation.limits.limit_rules import read_limits

if TYPE_CHECKING:
    from simsched.report.waiting.run_facts import RunFacts
    from simsched.simulation.limits.limit_counters import Place, ScopeLimit
    from simsched.workload.job import Job


class LimitState(NamedTuple):
    """A limit that a job is over: a sentence with the users, and the jobs that use it, the largest first."""

    text: str
    jobs: tuple[tuple[int, str], ...]


class LimitUse:
    """The use of the limits of a run."""

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        self._rules = read_limits(facts.config.get("limits", ()), "run.json: limits")
        self._table = LimitTable(self._rules, facts.index, whole=facts.whole)
        self._runs: dict[Place, list[tuple[int, float, float, float, Amounts]]] = {}

    def state_of(self, cause: str, job: Job, duration: float, time: float) -> LimitState | None:
        """Return the state of the limit that is the cause of a wait at a time."""
        counters = (
            self._counter_at(found, time)
            for found in self._table.of(self._table.names_of(job))
            if found.binds
            and not (found.per_job or found.limit.kind.while_submitted)
            and cause == f"{LIMIT} {found.name[0]}"
        )
        # a rule with a level and one without may limit the same
        counter = min(counters, key=lambda one: one.most - one.in_use(time), default=None)
        if counter is None:
            return None
        users = [user or NAMELESS for user in self._facts.table["user"]]
        kind = counter.kind
        using = [(row, kind.asks(amounts)) for row, (amounts, *_) in counter.running.items()]
        asked = kind.text(kind.asks(self._amounts(job, duration)))
        return LimitState(
            f"{counter.reason(time, users).removeprefix('limit: ')}; the job asks for {asked}",
            tuple((row, kind.text(amount)) for row, amount in sorted(using, key=lambda one: -one[1])),
        )

    def _counter_at(self, found: ScopeLimit, time: float) -> LimitCounter:
        """Return the counter of a limit with the jobs that run at a time, by row, and the use then."""
        counter = LimitCounter(0, found)
        kind = counter.kind
        for row, start, end, until, amounts in self._runs_of(found.place):
            if start <= time < end:
                counter.running[row] = (amounts, start, until)
                counter.used += kind.asks(amounts)
            elif end <= time:
                counter.used += kind.leaves(amounts, end - start)
        return counter

    def _runs_of(self, place: Place) -> list[tuple[int, float, float, float, Amounts]]:
        """Return row, start, end, expected end and amounts of each time that a job of a limit ran."""
        if place not in self._runs:
            facts, runs = self._facts, self._runs.setdefault(place, [])
            durations, ids = facts.table["duration"], facts.table["id"]
            for row, start, end in facts.attempts:
                job = facts.jobs.get(ids[row])
                limits = () if job is None else self._table.of(self._table.names_of(job))
                if job is not None and any(one.place == place and not one.per_job for one in limits):
                    seconds = float(durations[row])
                    runs.append((row, start, end, start + seconds, self._amounts(job, seconds)))
        return self._runs[place]

    def _amounts(self, job: Job, seconds: float) -> Amounts:
        """Return the amounts of a job: its allocation, or the least that it may get if it never started."""
        facts, name = self._facts, str(job.id)
        least = self._table.amounts(facts.request_of(name), seconds)
        row = facts.row_of.get(name)
        if row is None or not np.isfinite(facts.table["start"][row]):
            return least
        nodes, cores, gpus = (float(facts.table[unit][row]) for unit in ("nodes", "cores", "gpus"))
        return Amounts(nodes, cores, gpus, self._memory.get(name, least.memory), seconds)

    @cached_property
    def _memory(self) -> dict[str, float]:
        """Job → the memory that it got, where a limit counts it and it depends on the placement.

        The tables do not have it, so it is that of R.
        """
        found: dict[str, float] = {}
        if not any(KINDS[quantity].unit == "memory" for rule in self._rules for quantity, _ in rule.most):
            return found
        facts = self._facts
        claims = ClaimsFromR(facts.index)
        for record in facts.records:
            name = str(record.id)
            if record.event != "alloc" or name not in facts.jobs:
                continue
            request = facts.request_of(name)
            if "memory" in self._table.varies(request):
                granted = record.resources()
                claims.exact(name, granted, request, rest=True)
                found[name] = claims.by_name()[name].counts.get("memory", 0)
                claims.release(name, targets_of_ranks(facts.index, granted.ranks))
        return found
