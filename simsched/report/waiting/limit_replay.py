"""The use of limits at any time of a run, from its tables: which limit a job was over, and who used it."""

from __future__ import annotations

from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.match.claims_from_r import ClaimsFromR
from simsched.match.named_targets import targets_of_ranks
from simsched.simulation.limits.limit_counters import LimitCounter, LimitTable, scope_text
from simsched.simulation.limits.limit_keeper import NAMELESS
from simsched.simulation.limits.limit_kinds import KINDS, TIME, Amounts
from simsched.simulation.limits.limit_rules import read_limits
from simsched.simulation.options.run_config import RECORDED
from simsched.workload.job import has_array_limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from simsched.report.waiting.run_facts import RunFacts
    from simsched.simulation.limits.limit_counters import LimitBreach, Place, ScopeLimit
    from simsched.workload.job import Job

    Floats = npt.NDArray[np.float64]

LIMIT = "limit"
"""Begins the cause of a wait for a limit: ``limit running-jobs of user alice``."""
ROUNDING = 1e-3
"""Unit-seconds that the sum of the hours ahead may be off: it is a difference of large sums."""


class LimitState(NamedTuple):
    """A limit that a job is over: a sentence with the users, and the jobs that use it, the largest first.

    `room` is how much is left.
    """

    text: str
    room: float
    jobs: tuple[tuple[int, str], ...]


class _Steps(NamedTuple):
    """A sum that changes at `times`; `values` and `infinite` have one entry more, for the time before."""

    times: Floats
    values: Floats
    infinite: Floats

    @classmethod
    def of(cls, times: Floats, amounts: Floats) -> _Steps:
        order = np.argsort(times, kind="stable")
        amounts = amounts[order]
        known = np.isfinite(amounts)
        values = np.concatenate(([0.0], np.cumsum(np.where(known, amounts, 0.0))))
        infinite = np.concatenate(([0.0], np.cumsum(np.where(known, 0.0, np.sign(amounts)))))
        return cls(times[order], values, infinite)

    def at(self, times: Any) -> Floats:
        places = np.searchsorted(self.times, times, side="right")
        return np.where(self.infinite[places] > 0, np.inf, self.values[places])


class LimitReplay:
    """The limits of a run."""

    def __init__(self, causes: RunFacts) -> None:
        self._causes = causes
        self.rules = read_limits(causes.config.get("limits", ()), "run.json: limits")
        self._table = LimitTable(self.rules, causes.index, whole=causes.whole)
        plays_log = causes.config.get("queue_policy") == RECORDED
        self._any = bool(self.rules) or (not plays_log and has_array_limits(causes.jobs.values()))
        kinds = [KINDS[quantity] for rule in self.rules for quantity, _ in rule.most]
        self.timed = any(kind.reads == TIME for kind in kinds)
        self._ahead = any(kind.falls for kind in kinds)
        self.blocking: set[int] = set()
        """Codes of the limits that block the jobs behind one that waits for them."""
        self._steps: dict[Place, Any] = {}
        self._breaches: dict[object, LimitBreach | None] = {}

    def key(self, job: Job) -> object:
        """Return what limits read of a job besides its request and duration."""
        return self._table.names_of(job) if self._any else None

    def breach(self, job: Job, duration: float) -> LimitBreach | None:
        """Return the limit that a job can never meet, however little others use."""
        request = self._causes.request_of(str(job.id))
        names = self._table.names_of(job)
        key = names, id(request), duration
        if key not in self._breaches:
            least = self._table.amounts(request, duration)
            self._breaches[key] = next(self._table.breaches(self._table.of(names), request, least), None)
        return self._breaches[key]

    def fill(self, codes: Any, starts: Floats, job: Job | None, duration: float) -> None:
        """Enter the limit that a job is over into those of its pieces that have no cause (-1) yet."""
        if not self._any or job is None:
            return
        amounts = self._amounts(job, duration)
        for found, most in self._limits_of(job):
            over = (codes < 0) & (self._use(found, starts) + found.limit.kind.asks(amounts) > most)
            if over.any():
                code = self._causes.code(_cause(found))
                codes[over] = code
                if found.limit.rule.blocks:
                    self.blocking.add(code)

    def is_over(self, job: Job, duration: float, time: float) -> bool:
        """Whether a job is over a limit at a time."""
        codes = np.array([-1])
        self.fill(codes, np.array([time]), job, duration)
        return bool(codes[0] >= 0)

    def falls(self, job: Job, duration: float, begin: float, end: float) -> list[float]:
        """Return the whole seconds at which a job gets below a limit because running jobs have less ahead."""
        falls: list[float] = []
        if not self._ahead:
            return falls
        amounts = self._amounts(job, duration)
        for found, most in self._limits_of(job):
            if not found.limit.kind.falls:
                continue
            product, rate = self._steps_of(found)
            asked = found.limit.kind.asks(amounts)
            times = np.union1d(np.concatenate((product.times, rate.times)), [begin, end])
            for low, high in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
                used, slope = float(product.at(low)), float(rate.at(low))
                if begin <= low < end and slope > 0 and used < np.inf:
                    time = ceil((used + asked - most) / slope)
                    if low < time < high:
                        falls.append(float(time))
        return falls

    def state_of(self, cause: str, job: Job, duration: float, time: float) -> LimitState | None:
        """Return the state of the limit that is the cause of a wait at a time."""
        counters = (
            self._counter_at(found, time) for found, _ in self._limits_of(job) if cause == _cause(found)
        )
        # a rule with a level and one without may limit the same
        counter = min(counters, key=lambda one: one.most - one.in_use(time), default=None)
        if counter is None:
            return None
        users = [user or NAMELESS for user in self._causes.table["user"]]
        kind = counter.kind
        using = [(row, kind.asks(amounts)) for row, (amounts, *_) in counter.running.items()]
        asked = kind.text(kind.asks(self._amounts(job, duration)))
        return LimitState(
            f"{counter.reason(time, users.__getitem__).removeprefix('limit: ')}; the job asks for {asked}",
            counter.most - counter.in_use(time),
            tuple((row, kind.text(amount)) for row, amount in sorted(using, key=lambda one: -one[1])),
        )

    def submitted_text(self, job: Job) -> str:
        """Return the limits on the submitted jobs of which this is one."""
        return " and ".join(
            found.limit.kind.used_up(scope_text(found.scope), found.limit.most, 0)
            for found in self._table.of(self._table.names_of(job))
            if found.limit.kind.while_submitted and found.binds
        )

    # --- sums over the jobs that ran ----------------------------------------------------------------

    def _limits_of(self, job: Job) -> Iterator[tuple[ScopeLimit, float]]:
        """Yield each limit on running jobs that binds a job, and its most."""
        for found in self._table.of(self._table.names_of(job)):
            kind = found.limit.kind
            if found.binds and not found.per_job and not kind.while_submitted:
                yield found, found.limit.most + kind.slack + (ROUNDING if kind.falls else 0)

    def _amounts(self, job: Job, seconds: float) -> Amounts:
        """Return the amounts of a job: its allocation, or the least that it may get if it never started."""
        causes, name = self._causes, str(job.id)
        least = self._table.amounts(causes.request_of(name), seconds)
        row = causes.row_of.get(name)
        if row is None or not np.isfinite(causes.table["start"][row]):
            return least
        nodes, cores, gpus = (float(causes.table[unit][row]) for unit in ("nodes", "cores", "gpus"))
        return Amounts(nodes, cores, gpus, self._memory.get(name, least.memory), seconds)

    @cached_property
    def _memory(self) -> dict[str, float]:
        """Job → the memory that it got, where a limit counts it and it depends on the placement.

        The tables do not have it, so it is that of R.
        """
        found: dict[str, float] = {}
        if not any(KINDS[quantity].unit == "memory" for rule in self.rules for quantity, _ in rule.most):
            return found
        causes = self._causes
        claims = ClaimsFromR(causes.index)
        for record in causes.records:
            name = str(record.id)
            if record.event != "alloc" or name not in causes.jobs:
                continue
            request = causes.request_of(name)
            if "memory" in self._table.varies(request):
                granted = record.resources()
                claims.exact(name, granted, request, rest=True)
                found[name] = claims.by_name()[name].counts.get("memory", 0)
                claims.release(name, targets_of_ranks(causes.index, granted.ranks))
        return found

    @cached_property
    def _runs(self) -> tuple[dict[Place, list[int]], list[tuple[int, float, float, float]], list[Amounts]]:
        """Limit → places in the times that jobs ran (row, start, end, requested end), and their amounts."""
        causes = self._causes
        by_limit: dict[Place, list[int]] = {}
        known: dict[object, list[Place]] = {}
        runs: list[tuple[int, float, float, float]] = []
        amounts: list[Amounts] = []
        durations, ids = causes.table["duration"], causes.table["id"]
        for row, start, end in causes.attempts:
            job = causes.jobs.get(ids[row])
            if job is None:
                continue
            names = self._table.names_of(job)
            if names not in known:
                known[names] = [found.place for found in self._table.of(names) if not found.per_job]
            for place in known[names]:
                by_limit.setdefault(place, []).append(len(runs))
            runs.append((row, start, end, start + float(durations[row])))
            amounts.append(self._amounts(job, float(durations[row])))
        return by_limit, runs, amounts

    def _use(self, limit: ScopeLimit, times: Floats) -> Floats:
        steps = self._steps_of(limit)
        if isinstance(steps, _Steps):
            return steps.at(times)
        product, rate = steps
        left: Floats = product.at(times) - rate.at(times) * times
        return left

    def _steps_of(self, limit: ScopeLimit) -> Any:
        """Return the use of a limit as steps.

        A use that falls as time passes is the first of two sums less time × the second.
        """
        found = self._steps.get(limit.place)
        if found is None:
            by_limit, runs, amounts = self._runs
            places, kind = by_limit.get(limit.place, []), limit.limit.kind
            counted = [
                (start, end, until, kind.asks(of), kind.rate(of), kind.leaves(of, end - start))
                for (_, start, end, until), of in ((runs[place], amounts[place]) for place in places)
            ]
            columns = np.array(counted, dtype=np.float64).reshape(len(counted), 6).T
            start, end, asked, asks, rate, leaves = columns
            if kind.falls:
                until = np.minimum(asked, end)
                stops = np.isfinite(until)
                product = np.where(rate > 0, rate, 0) * np.where(rate > 0, asked, 0)
                found = tuple(
                    _Steps.of(np.concatenate((start, until[stops])), np.concatenate((sums, -sums[stops])))
                    for sums in (product, rate)
                )
            else:
                ends = np.isfinite(end)
                times = np.concatenate((start, end[ends], end[ends]))
                found = _Steps.of(times, np.concatenate((asks, -asks[ends], leaves[ends])))
            self._steps[limit.place] = found
        return found

    def _counter_at(self, found: ScopeLimit, time: float) -> LimitCounter:
        """Return the counter of a limit with the running jobs, by row, and the use of a time."""
        counter = LimitCounter(0, found)
        by_limit, runs, amounts = self._runs
        for place in by_limit.get(found.place, ()):
            row, start, end, asked = runs[place]
            if start <= time < end:
                counter.running[row] = (amounts[place], start, asked)
        if not counter.kind.falls:
            counter.used = float(self._use(found, np.array([time]))[0])
        return counter


def _cause(found: ScopeLimit) -> str:
    return f"{LIMIT} {found.limit.kind.name} of {scope_text(found.scope)}"
