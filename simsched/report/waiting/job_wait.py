"""The wait of one job by cause: `why`.

`wait_causes` finds the causes.  Here they get the names of the jobs, reservations and limits in the way, and
the changes with which the job would have fitted sooner.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched import human
from simsched.errors import ConfigError, RunError, did_you_mean
from simsched.formats.jobspec.validation_rules import KEY
from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.match.explain.explanation import explain_later
from simsched.match.explain.occupancy import Occupancy
from simsched.match.search.counts import beneath
from simsched.match.search.select import can_match
from simsched.report.columns import HELD
from simsched.report.metrics.causes import NEVER
from simsched.report.waiting.job_answer import (
    Cause,
    IdleNode,
    JobWait,
    LimitUser,
    NodeOutage,
    ReservedHours,
    UnitHolder,
    WaitPeriod,
)
from simsched.report.waiting.noted_limits import LIMIT, LimitUse
from simsched.report.waiting.wait_causes import WaitCauses
from simsched.simulation.forecast.start_times import started_at
from simsched.simulation.options.run_config import from_document
from simsched.workload.job import change

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from simsched.arrays import Bools
    from simsched.graph.cluster import Cluster
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.report.data.tables import RunTables
    from simsched.workload.job import Workload

ONE_HEAD = ("fcfs", "easy", "easy+", "easy++")
"""Policies in which only the first job of the queue can be in the way."""
MOST = 5
"""Jobs that an answer names at most."""
MOST_LETTERS = 60
"""Letters of a constraint that is printed."""
MOST_LOOKS = 1_000_000
"""Looks at jobs, one per instant and job that waits then, for which a run is simulated again to find a limit
with which a job would start: at most about ten seconds, and the same on every machine."""


def why(run: RunTables, job: int | str, cluster: Cluster, workload: Workload) -> JobWait:
    """Return why a job of a run waited as long as it did.

    `cluster` and `workload` are the inputs of the run.

    Raises
    ------
    ConfigError
        if the run or the workload has no such job.
    RunError
        if the run was made without its allocations, or they do not belong to the cluster.
    """
    if not run.has_allocations:
        raise RunError("this run was made without its allocations", where=run.name,
                       expected="a run without --no-allocations")  # fmt: skip
    return _Inquiry(run, str(job), cluster, workload).answer()


class _Inquiry:
    """One question, and the tables that it takes."""

    def __init__(self, run: RunTables, name: str, cluster: Cluster, workload: Workload) -> None:
        self.run, self.name, self.inputs = run, name, (cluster, workload)
        self.causes = causes = WaitCauses(run, (cluster, workload))
        self.table = causes.table
        self.row = self._row()
        self.job = causes.jobs[name]
        self.submit, self.end = float(causes.submit[self.row]), float(causes.end[self.row])
        self.eligible = float(causes.eligible[self.row])
        self.duration = float(self.table["duration"][self.row])
        self.request = causes.request_of(name)
        use = LimitUse(causes)
        self._limit_state = cache(partial(use.state_of, job=self.job, duration=self.duration))

    def _row(self) -> int:
        ids = self.table["id"]
        row = self.causes.row_of.get(self.name)
        if row is None:
            raise ConfigError(
                f"the run has no job {self.name!r}{did_you_mean(self.name, ids.tolist())}",
                where=self.run.name,
            )
        if row not in self.causes.waiting:
            raise ConfigError(
                f"job {self.name} never waited: {self.table['reason'][row]}", where=self.run.name
            )
        if self.name not in self.causes.jobs:
            raise ConfigError(f"the workload of the run has no job {self.name!r}", where=self.run.name)
        return row

    def answer(self) -> JobWait:
        """Put the answer together."""
        periods = _joined(self._periods())
        columns = {name: self.table[name][self.row] for name in ("user", "queue", "shape", "start")}
        return JobWait(
            id=self.name,
            user=columns["user"] or "",
            queue=columns["queue"] or "",
            shape=columns["shape"] or "",
            submit=self.submit,
            start=float(columns["start"]) if np.isfinite(columns["start"]) else None,
            limit=self.duration,
            periods=tuple(periods),
            holders=self._holders(periods),
            ahead=self._ahead(),
            running=self._running(),
            passed=self._passed(),
            sooner=tuple(self._sooner(periods)),
            outages=self._met(periods),
            reservations=self._reserved(periods),
            idle=self._idle(periods),
            limit_users=tuple(self._limit_users(periods)),
            clock=self.run.clock,
        )

    # --- the parts of the wait ----------------------------------------------------------------------

    def _periods(self) -> Iterator[WaitPeriod]:
        """Yield the pieces of the wait, each with the job in the way and with a sentence on a limit."""
        causes = self.causes
        for found in causes.pieces([self.row]):
            for start, end, code in zip(*(column.tolist() for column in found[1:]), strict=True):
                cause, job, detail = causes.names[code], None, ""
                if causes.is_held(self.row):
                    detail = causes.limits.reason(self.row, start) or ""
                elif cause.startswith(f"{LIMIT} "):
                    state = self._limit_state(cause, start)
                    if state is not None:
                        job = self.table["id"][state.jobs[0][0]] if state.jobs else None
                        detail = state.text
                    detail = causes.limits.reason(self.row, start) or detail
                elif start < self.eligible:
                    job = causes.before(self.row)[1]
                elif cause.startswith(f"{Cause.SHORT} of ") and not self.request.every:
                    detail = f"{cause} ({self._allowed})"
                elif cause == Cause.ADVANCE:
                    windows = causes.reserved_for(self.job).in_the_way((start + end) / 2, self.duration)
                    names = " and ".join(dict.fromkeys(name for name, _, _ in windows))
                    detail = f"fitted, but the advance reservation {names} is in the way" if names else ""
                elif cause == Cause.BLOCKED:
                    other = causes.blocker(self.row, start)
                    job = None if other is None else self.table["id"][other]
                elif cause in (Cause.RESERVATION, Cause.ORDER):
                    job = self._head_at(start)
                yield WaitPeriod(start, end, cause, job, detail)

    @cached_property
    def _allowed(self) -> str:
        """The nodes that may serve the job, in words."""
        constraint, queue = str(self.job.jobspec.constraint), self.table["queue"][self.row]
        if KEY not in self.job.jobspec.system and len(constraint) <= MOST_LETTERS:
            return f"with {constraint}"
        return f"on the nodes that its constraint{f' or the queue {queue}' if queue else ''} allows"

    def _head_at(self, time: float) -> str | None:
        """Return the first job of the queue if only it can be in the way and submissions decide the order."""
        config = self.run.config
        if (
            config.get("order") != "fifo"
            or config.get("queues")
            or config.get("queue_policy") not in ONE_HEAD
        ):
            return None
        submit, urgency = self.table["submit"], self.table["urgency"]
        waiting = np.flatnonzero(self._waiting_at(time) & (submit <= self.submit))
        for row in waiting[np.lexsort((-urgency[waiting], submit[waiting]))].tolist():
            if row == self.row:
                return None
            if not self.causes.limits.holds(row, time):
                return str(self.table["id"][row])
        return None

    def _waiting_at(self, time: float) -> Bools:
        """Return which jobs are eligible and have not started at a time, without those that are held."""
        table = self.table
        starts = np.nan_to_num(table["start"], nan=np.inf)
        never = np.isin(table["result"], NEVER) | (table["until"] <= time)
        found: Bools = (table["eligible"] <= time) & (starts > time) & ~never
        for row in np.flatnonzero(found & ~np.isfinite(table["start"])).tolist():
            found[row] = row == self.row or not self.causes.is_held(row)
        return found

    # --- the other jobs ---------------------------------------------------------------------------

    def _ahead(self) -> tuple[int, float]:
        others = (self.table["submit"] <= self.submit) & (self.table["id"] != self.name)
        return self._node_seconds(self._waiting_at(self.submit) & others, self.table["duration"])

    def _running(self) -> tuple[int, float]:
        start, until = self.table["start"], self.table["until"]
        running = (start <= self.submit) & (until > self.submit) & (self.table["id"] != self.name)
        return self._node_seconds(running, start + self.table["duration"] - self.submit)

    def _node_seconds(self, jobs: Bools, seconds: npt.NDArray[np.float64]) -> tuple[int, float]:
        """Return the number of some jobs, and their node-seconds; those without a limit do not count."""
        found = self.table["nodes"][jobs] * seconds[jobs].clip(min=0)
        return int(jobs.sum()), float(found[np.isfinite(found)].sum())

    def _passed(self) -> tuple[int, int]:
        start = self.table["start"]
        later = (self.table["submit"] > self.submit) & (start < self.end) & (start >= self.eligible)
        return int(later.sum()), int(self.table["backfilled"][later].sum())

    def _holders(self, periods: list[WaitPeriod]) -> tuple[UnitHolder, ...]:
        """Return the jobs that held most of the types that were short, in the time that they were.

        Only units on nodes that may serve the job count.
        """
        table, found = self.table, []
        start, end = table["start"], table["until"]
        for type_ in dict.fromkeys(
            p.cause.removeprefix(f"{Cause.SHORT} of ") for p in periods if p.cause.startswith(Cause.SHORT)
        ):
            if type_ not in HELD:
                continue
            overlap = np.zeros(len(start))
            for period in periods:
                if period.cause == f"{Cause.SHORT} of {type_}":
                    overlap += np.clip(np.minimum(end, period.end) - np.maximum(start, period.start), 0, None)
            overlap = np.nan_to_num(overlap)
            overlap[self.row] = 0
            units = self._useful(type_, np.flatnonzero(overlap > 0))
            area = overlap * units
            found += [
                UnitHolder(
                    table["id"][row],
                    table["user"][row] or "",
                    int(units[row]),
                    float(area[row]),
                    float(end[row]),
                )
                for row in np.argsort(-area, kind="stable")[:MOST].tolist()
                if area[row] > 0
            ]
        return tuple(sorted(found, key=lambda holder: -holder.unit_seconds)[:MOST])

    def _useful(self, type_: str, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return the units of a type that each job held on the nodes that may serve this one."""
        units = np.where(np.isin(np.arange(len(self.table["id"])), rows), self.table[HELD[type_]], 0)
        if self.request.every:
            return units
        index = self.causes.index
        ranks = set(index.ranks[self.request.eligible].tolist())
        granted = {str(record.id): record for record in self.causes.records if record.event == "alloc"}
        for row in rows.tolist():
            record = granted.get(self.table["id"][row])
            if record is not None:
                units[row] = sum(
                    len(here) * (1 if type_ == index.target_type else len(group.children.get(type_, ())))
                    for group in record.resources().groups
                    if (here := [rank for rank in group.ranks if rank in ranks])
                )
        return units

    def _idle(self, periods: list[WaitPeriod]) -> tuple[IdleNode, ...]:
        """Return the nodes with most free units when these were first not arranged as the job requests."""
        first = next((p for p in periods if p.cause == Cause.PLACEMENT), None)
        if first is None:
            return ()
        causes, index = self.causes, self.causes.index
        replay = causes.replay()
        state = replay.state_at(first.start)
        claims: dict[int | str, Selection] = dict(replay.claims().items())
        occupancy = Occupancy(state, claims, {})
        each = self._each()
        free = {
            type_: beneath(index.target_type, type_, None, index).sum(state.free[type_]) for type_ in each
        }
        share = sum(
            (units / max(index.totals[type_], 1) for type_, units in free.items()), np.zeros(len(index))
        )
        share[~(self.request.eligible & state.up)] = 0
        found = []
        for target in np.argsort(-share, kind="stable")[:MOST].tolist():
            if not share[target]:
                break
            only = np.arange(len(index)) == target
            held = [
                (str(holder.id), type_, holder.units)
                for type_, units in each.items()
                if free[type_][target] < units
                for holder in occupancy.holders_of_targets(only, type_)[:2]
                if holder.units
            ]
            idle = {type_: int(units[target]) for type_, units in free.items()}
            found.append(IdleNode(index.hosts[target], idle, tuple(held)))
        return tuple(found)

    def _each(self) -> dict[str, int]:
        """Return the units of each pool type that one copy of the request takes on a node."""
        found: dict[str, int] = {}
        pools = self.causes.index.pool_types
        for part in self.causes.parts(self.request):
            if part.type in pools and (pools[part.type].target >= 0).all():
                found[part.type] = max(found.get(part.type, 0), part.need.amount)
        return found

    def _limit_users(self, periods: list[WaitPeriod]) -> Iterator[LimitUser]:
        """Yield the jobs that used most of each limit when the job first waited for it."""
        table = self.table
        for cause in dict.fromkeys(p.cause for p in periods if p.cause.startswith(f"{LIMIT} ") and p.job):
            start = next(p.start for p in periods if p.cause == cause)
            state = self._limit_state(cause, start)
            for row, text in () if state is None else state.jobs[:MOST]:
                name, user = str(table["id"][row]), table["user"][row] or ""
                yield LimitUser(cause, name, user, text, float(table["until"][row]))

    def _met(self, periods: list[WaitPeriod]) -> tuple[NodeOutage, ...]:
        """Return the outages in the way: nodes that were missing, and maintenance that was to begin."""
        found = []
        for one in self.causes.outages:
            ahead = self.duration if one.kind == "maintenance" else 0.0
            if any(
                (one.start < p.end and p.start < one.end)
                if p.cause == Cause.UNAVAILABLE
                else p.cause == Cause.MAINTENANCE
                and ahead
                and one.start < p.end + ahead
                and p.start < one.end
                for p in periods
            ):
                found.append(NodeOutage(str(one.ranks), one.kind, one.start, one.end))
        return tuple(found[:MOST])

    def _reserved(self, periods: list[WaitPeriod]) -> tuple[ReservedHours, ...]:
        """Return the windows of advance reservations in the way."""
        times = [(p.start + p.end) / 2 for p in periods if p.cause == Cause.ADVANCE]
        reserved = self.causes.reserved_for(self.job)
        found = dict.fromkeys(one for time in times for one in reserved.in_the_way(time, self.duration))
        return tuple(ReservedHours(*one) for one in found)[:MOST]

    # --- changes --------------------------------------------------------------------------------------

    def _sooner(self, periods: list[WaitPeriod]) -> Iterator[str]:
        """Yield changes of the request with which the job would have fitted sooner, each tried.

        A smaller or another request is tried when the job was first refused, a shorter limit when it
        was first held back by a reservation, by maintenance or by an advance reservation.
        """
        replay = self.causes.replay()
        refused = next((p for p in periods if p.cause.startswith((Cause.SHORT, Cause.PLACEMENT))), None)
        held_back = next((p for p in periods if p.cause in (Cause.RESERVATION, Cause.UNDECIDED)), None)
        closed = next((p for p in periods if p.cause in (Cause.MAINTENANCE, Cause.ADVANCE)), None)
        for period in sorted(filter(None, (refused, held_back, closed)), key=lambda period: period.start):
            state, clock = replay.state_at(period.start), self.run.clock
            time = human.moment(period.start) if clock is None else clock.text(period.start)
            if period is refused:
                reasons = explain_later(self.request, partial(Occupancy, state.copy(), {}, {}))
                yield from (f"at {time}: {change.text}" for change in reasons.changes[:2])
                continue
            limit: float | None
            if period is closed:
                limit = self._until_closed(period.start, state)
            else:
                limit = self._startable(period.start)
                if limit is None and period.job is not None:
                    limit = self._gap(period, state, replay.claims())
            if limit is None:
                continue
            if 0 < limit < self.duration:
                yield f"at {time}: with a limit of at most {human.seconds(limit)}"

    def _until_closed(self, time: float, state: Availability) -> float:
        """Return the longest limit with which the job would have fitted before nodes are closed, or 0."""
        reserved = self.causes.reserved_for(self.job)
        for limit in reserved.shorter(time, self.duration):
            at = time + min(limit, 1.0) / 1e6  # within the piece that begins now
            if reserved.fits(self.request, state, at, limit - (at - time)):
                return limit
        return 0.0

    def _startable(self, time: float) -> float | None:
        """Return the longest limit (s) with which the run starts the job at a time, or 0 for none.

        The run is simulated again up to this time with one limit after another.  None if that takes too
        many looks at jobs, or the run is not one that can be repeated.
        """
        command = self.run.meta.get("command")
        longest = int(min(self.duration, MAX_SECONDS)) - 1
        instants = self.causes.times[self.causes.times <= time]
        looks = longest.bit_length() * (len(instants) + int(self.causes.in_queue(instants).sum()))
        if command is None or longest < 1 or looks > MOST_LOOKS:
            return None
        options = from_document(command["rules"], self.run.name)
        jobs, at = self.inputs[1].jobs, 0
        at = next(at for at, job in enumerate(jobs) if str(job.id) == self.name)

        def starts(limit: float) -> bool:
            changed = (*jobs[:at], change(jobs[at], duration=limit), *jobs[at + 1 :])
            workload = replace(self.inputs[1], jobs=changed)
            return started_at(self.inputs[0], workload, at, time, **options) == time

        if not starts(1):
            return 0.0
        low, high = 1, longest + 1  # with its own limit it did not start
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if starts(middle) else (low, middle)
        return float(low)

    def _gap(self, period: WaitPeriod, state: Availability, claims: Mapping[str, Selection]) -> float:
        """Return the seconds until the job with the reservation was expected to start."""
        assert period.job is not None
        until = self.table["start"] + self.table["duration"]
        ends = dict(zip(self.table["id"], until.tolist(), strict=True))
        known: dict[int | str, float] = {name: ends[name] for name in claims if name in ends}
        head, held = self.causes.request_of(period.job), Occupancy(state, dict(claims.items()), known)
        ended = held.to_wait_for(lambda later: can_match(head, later))
        return ends[str(ended[-1])] - period.start if ended else 0.0


def _joined(parts: Iterable[WaitPeriod]) -> list[WaitPeriod]:
    """Return the parts with neighbours of one cause as one period."""
    found: list[WaitPeriod] = []
    for part in parts:
        last = found[-1] if found else None
        # the use of a limit, which its sentence states, may change within a period
        if (
            last is not None
            and (last.cause, last.job) == (part.cause, part.job)
            and (last.detail == part.detail or last.cause.startswith(f"{LIMIT} "))
        ):
            found[-1] = replace(last, end=part.end)
        else:
            found.append(part)
    return found
