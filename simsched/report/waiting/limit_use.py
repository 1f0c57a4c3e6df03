"""`LimitUse`: who used a limit of a run at a time, from the tables of the run."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from simsched.report.waiting.noted_limits import LIMIT
from simsched.simulation.limits.limit_counters import LimitCounter, LimitTable
from simsched.simulation.limits.limit_keeper import NAMELESS
from simsched.simulation.limits.limit_kinds import Amounts
from simsched.simulation.limits.limit_rules import read_limits

if TYPE_CHECKING:
    from simsched.report.waiting.machine_replay import MachineReplay
    from simsched.report.waiting.wait_causes import WaitCauses
    from simsched.simulation.limits.limit_counters import Place, ScopeLimit
    from simsched.workload.job import Job


class LimitState(NamedTuple):
    """A limit that a job is over: a sentence with the users, and the jobs that use it, the largest first."""

    text: str
    jobs: tuple[tuple[int, str], ...]


class LimitUse:
    """The use of the limits of a run, asked for one time after another."""

    def __init__(self, causes: WaitCauses) -> None:
        self._causes = causes
        rules = read_limits(causes.config.get("limits", ()), "run.json: limits")
        self._table = LimitTable(rules, causes.index, whole=causes.whole)
        self._runs: dict[Place, list[tuple[int, float, float]]] = {}

    def state_of(self, cause: str, time: float, *, job: Job, duration: float) -> LimitState | None:
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
        users = [user or NAMELESS for user in self._causes.table["user"]]
        kind = counter.kind
        running = [(row, amounts) for row, (amounts, *_) in counter.running.items()]
        using = [(row, kind.asks(amounts)) for row, amounts in running]
        asked = kind.text(kind.asks(self._table.amounts(self._causes.request_of(str(job.id)), duration)))
        reason = counter.reason(time, users.__getitem__, running).removeprefix("limit: ")
        return LimitState(
            f"{reason}; the job asks for {asked}",
            tuple((row, kind.text(amount)) for row, amount in sorted(using, key=lambda one: -one[1])),
        )

    def _counter_at(self, found: ScopeLimit, time: float) -> LimitCounter:
        """Return the counter of a limit with the jobs that run at a time, by row, and the use then."""
        counter, table, memory = LimitCounter(0, found), self._causes.table, {}
        kind = counter.kind
        if kind.unit == "memory":  # the tables do not have it
            self._replay.state_at(time)
            memory = {job: of.counts.get("memory", 0) for job, of in self._replay.claims().items()}
        for row, start, end in self._runs_of(found.place):
            seconds = float(table["duration"][row])
            nodes, cores, gpus = (float(table[unit][row]) for unit in ("nodes", "cores", "gpus"))
            amounts = Amounts(nodes, cores, gpus, memory.get(table["id"][row], 0), seconds)
            if start <= time < end:
                counter.running[row] = (amounts, start, start + seconds)
                counter.used += kind.asks(amounts)
            elif end <= time:
                counter.used += kind.leaves(amounts, end - start)
        return counter

    @cached_property
    def _replay(self) -> MachineReplay:
        return self._causes.replay()

    def _runs_of(self, place: Place) -> list[tuple[int, float, float]]:
        """Return row, start and end of each time that a job ran that a limit counts."""
        if place not in self._runs:
            causes, table = self._causes, self._table
            self._runs[place] = [
                attempt
                for attempt in causes.attempts
                if any(
                    one.place == place and not one.per_job
                    for one in table.of(table.names_of(causes.job(attempt[0])))
                )
            ]
        return self._runs[place]
