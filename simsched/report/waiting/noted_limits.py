"""The limits that kept the jobs of a run waiting.

`NotedLimits` has when they did, as ``limits.parquet`` tells it, and `LimitUse` who used them at a time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.report.columns import LIMITS
from simsched.report.data.column_arrays import read_columns
from simsched.simulation.limits.limit_counters import LimitCounter, LimitTable
from simsched.simulation.limits.limit_keeper import NAMELESS
from simsched.simulation.limits.limit_kinds import Amounts
from simsched.simulation.limits.limit_rules import read_limits
from simsched.simulation.limits.limit_spells import FOR_EVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.arrays import Bools, Floats, Integers
    from simsched.report.waiting.machine_replay import MachineReplay
    from simsched.report.waiting.run_facts import RunFacts
    from simsched.simulation.limits.limit_counters import Place, ScopeLimit
    from simsched.workload.job import Job


LIMIT = "limit"
"""Begins the cause of a wait for a limit: ``limit running-jobs of user alice``."""


class LimitTimes(NamedTuple):
    """The starts and ends (s) of the times in which limits kept a job or a group waiting, ascending.

    `codes` are those of the limits as facts, `blocks` tells which of them block the jobs behind, and
    `reasons` are the sentences on them, if there are any.
    """

    starts: Floats
    ends: Floats
    codes: Integers
    blocks: Bools
    reasons: Sequence[str | None]

    def at(self, times: Floats) -> Integers:
        """Return the place of the limit at each time, or -1."""
        found = np.searchsorted(self.starts, times, side="right") - 1
        return np.where((found >= 0) & (times < np.append(self.ends, 0)[found]), found, -1)

    def fill(self, codes: Integers, starts: Floats, only: npt.NDArray[np.bool_] | None = None) -> None:
        """Enter the limits into the codes of pieces of the time, of some `only`."""
        found = self.at(starts)
        kept = found >= 0 if only is None else (found >= 0) & only
        codes[kept] = self.codes[found[kept]]


NOTHING = LimitTimes(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_), ())


class NotedLimits:
    """The table of a run.

    Attributes
    ----------
    group_of : row → the number of the job's group, or -1.
    blocks : whether any of the limits blocks the jobs behind.
    """

    def __init__(self, facts: RunFacts) -> None:
        self._ids = facts.table["id"]
        self.group_of: Integers = np.nan_to_num(facts.table["limit_group"], nan=-1).astype(np.int64)
        self.blocks = False
        self._times: dict[float | str, LimitTimes] = {}  # by group, or by the id of a job
        file = None if facts.run.folder is None else facts.run.folder / "limits.parquet"
        if file is None or not file.is_file():
            return
        table = read_columns(file, {column.name: column.kind for column in LIMITS})
        codes = np.array([facts.code(f"{LIMIT} {limit}") for limit in table["limit"]], dtype=np.int64)
        self.blocks = bool(table["blocks"].any())
        places: dict[float | str, list[int]] = {}
        for at, (group, job) in enumerate(zip(table["group"].tolist(), table["job"].tolist(), strict=True)):
            places.setdefault(group if job is None else job, []).append(at)
        starts, ends = table["start"], np.nan_to_num(table["end"], nan=np.inf)
        for holder, of in places.items():
            reasons = table["reason"][of].tolist()
            self._times[holder] = LimitTimes(starts[of], ends[of], codes[of], table["blocks"][of], reasons)

    def of_group(self, row: int) -> LimitTimes:
        """Return the times of the group of a job."""
        return self._times.get(int(self.group_of[row]), NOTHING)

    def of_job(self, row: int) -> LimitTimes:
        """Return the times of a single job."""
        return self._times.get(self._ids[row], NOTHING)

    def holds(self, row: int, time: float) -> bool:
        """Whether a limit keeps a waiting job out of view at a time."""
        return any(one.at(np.array([time]))[0] >= 0 for one in (self.of_group(row), self.of_job(row)))

    def holds_for_ever(self, row: int) -> bool:
        """Whether a job is above a limit whatever others use."""
        return any(reason and reason.startswith(FOR_EVER) for reason in self.of_job(row).reasons)

    def reason(self, row: int, time: float) -> str | None:
        """Return the sentence on the limit that kept this very job waiting at a time, if it was one."""
        own = self.of_job(row)
        at = int(own.at(np.array([time]))[0])
        return own.reasons[at] if at >= 0 else None


class LimitState(NamedTuple):
    """A limit that a job is over: a sentence with the users, and the jobs that use it, the largest first."""

    text: str
    jobs: tuple[tuple[int, str], ...]


class LimitUse:
    """The use of the limits of a run, asked for one time after another."""

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        rules = read_limits(facts.config.get("limits", ()), "run.json: limits")
        self._table = LimitTable(rules, facts.index, whole=facts.whole)
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
        users = [user or NAMELESS for user in self._facts.table["user"]]
        kind = counter.kind
        running = [(row, amounts) for row, (amounts, *_) in counter.running.items()]
        using = [(row, kind.asks(amounts)) for row, amounts in running]
        asked = kind.text(kind.asks(self._table.amounts(self._facts.request_of(str(job.id)), duration)))
        reason = counter.reason(time, users.__getitem__, running).removeprefix("limit: ")
        return LimitState(
            f"{reason}; the job asks for {asked}",
            tuple((row, kind.text(amount)) for row, amount in sorted(using, key=lambda one: -one[1])),
        )

    def _counter_at(self, found: ScopeLimit, time: float) -> LimitCounter:
        """Return the counter of a limit with the jobs that run at a time, by row, and the use then."""
        counter, table, memory = LimitCounter(0, found), self._facts.table, {}
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
        return self._facts.replay()

    def _runs_of(self, place: Place) -> list[tuple[int, float, float]]:
        """Return row, start and end of each time that a job ran that a limit counts."""
        if place not in self._runs:
            facts, table = self._facts, self._table
            self._runs[place] = [
                attempt
                for attempt in facts.attempts
                if any(
                    one.place == place and not one.per_job
                    for one in table.of(table.names_of(facts.job(attempt[0])))
                )
            ]
        return self._runs[place]
