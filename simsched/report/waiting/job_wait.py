"""The wait of one job by cause: `why`.

The time from submission to start is cut at every record of the run.  In each part the state of the
machine is known, so the cause is known: the job was not eligible yet, its queue was stopped, a
type of resource was short, the free resources were not arranged as it requests, or it would have fitted
and the queue policy held it back.  The parts add up to the wait.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched import human
from simsched.errors import ConfigError, RunError, did_you_mean
from simsched.graph.index.types import TARGET
from simsched.match.explain.explanation import explain_later
from simsched.match.explain.occupancy import Occupancy
from simsched.match.named_targets import targets_of_ranks
from simsched.match.requests.compile import compile_request
from simsched.match.requests.request import POOL, VERTEX
from simsched.match.search.select import can_match
from simsched.report.columns import HELD
from simsched.report.data.run_arrays import job_arrays, timeline_arrays
from simsched.report.data.run_outages import outages_within
from simsched.report.metrics.causes import NEVER, REJECTED
from simsched.report.waiting.job_answer import (
    ADVANCE,
    BEGIN,
    DEPENDENCY,
    HELD_BACK,
    IN_LOG,
    MAINTENANCE,
    ORDER,
    PLACEMENT,
    RESERVATION,
    SHORT,
    STOPPED,
    UNAVAILABLE,
    JobWait,
    NodeOutage,
    UnitHolder,
    WaitPeriod,
)
from simsched.report.waiting.limit_replay import LIMIT, LimitReplay
from simsched.report.waiting.machine_replay import MachineReplay
from simsched.report.waiting.reserved_times import ReservedTimes
from simsched.schedule.kept_units import KeptIds, masks_by_leaf, set_units_aside
from simsched.simulation.licences.licence_pools import read_licences, with_licences, with_requests
from simsched.simulation.options.run_config import RECORDED
from simsched.simulation.record.allocation_reader import read_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from simsched.graph.cluster import Cluster
    from simsched.graph.index.types import Bools
    from simsched.match.requests.request import Need, Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.report.data.tables import RunTables
    from simsched.workload.job import Job, Workload

WITHOUT_BACKFILL, ONE_HEAD = ("fcfs",), ("fcfs", "easy", "easy+", "easy++")
"""Policies without backfill, and those in which only the first job of the queue can be in the way."""
MOST = 5
"""Jobs that an answer names at most."""
COLUMNS = ("id", "user", "queue", "shape", "result", "reason", "urgency", "submit", "eligible", "start",
           "end", "duration", "backfilled", *HELD.values())  # fmt: skip
"""Columns of the jobs that an answer is made of."""


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
        assert run.folder is not None
        licences = read_licences(run.config.get("licenses"), "run.json")
        cluster = with_licences(cluster, licences)
        requested, _ = with_requests(workload.jobs, licences)
        jobs: Mapping[str, Job] = {str(job.id): job for job in requested}
        self.run, self.cluster, self.name = run, cluster, name
        self.table = job_arrays(run, COLUMNS)
        self.table["until"] = np.nan_to_num(self.table["end"], nan=np.inf)
        self.row = self._row(jobs)
        self.jobs = jobs
        self.whole = bool(run.meta.get("whole_nodes", False))
        self.submit = float(self.row["submit"])
        self.request = self._request(name)
        ranks = cluster.index.ranks.tolist()
        self.reserved = ReservedTimes(run.meta.get("reservations", ()), jobs[name], ranks)
        self.records = read_records(run.folder / "allocations.jsonl")
        self.limits = LimitReplay(run.config, self.table, jobs[name], jobs, cluster, whole=self.whole)
        self.timeline = timeline_arrays(run)
        self.times = self.timeline["time"]
        self._totals = run.totals
        self._recorded: dict[str, tuple[npt.NDArray[Any] | None, npt.NDArray[Any]]] = {}
        eligible = float(self.row["eligible"])
        self.end = self._end()
        self.outages = outages_within(run.folder, run.config, self.submit, self.end)
        self.replay = self._replay()
        self.eligible = min(max(eligible, self.submit), self.end) if np.isfinite(eligible) else self.end

    def _row(self, jobs: Mapping[str, Job]) -> dict[str, Any]:
        """Return the row of the job; a record that was ignored may have the id of another job."""
        ids, results = self.table["id"], self.table["result"]
        found = np.flatnonzero(ids == self.name)
        if not len(found):
            raise ConfigError(
                f"the run has no job {self.name!r}{did_you_mean(self.name, ids.tolist())}",
                where=self.run.name,
            )
        read = found[results[found] != "DROPPED"]
        row = self._at(read[-1] if len(read) else found[-1])
        rejected = not np.isfinite(row["start"]) and str(row["reason"]).startswith(REJECTED)
        if rejected or row["result"] in NEVER:
            raise ConfigError(f"job {self.name} never waited: {row['reason']}", where=self.run.name)
        if self.name not in jobs:
            raise ConfigError(f"the workload of the run has no job {self.name!r}", where=self.run.name)
        return row

    def _at(self, row: int) -> dict[str, Any]:
        return {name: column[row] for name, column in self.table.items()}

    def _request(self, name: str) -> Request:
        return compile_request(self.jobs[name].jobspec, self.cluster.index, alone=self.whole)

    def _replay(self) -> MachineReplay:
        return MachineReplay(self.cluster, self.records, self._request, self.outages)

    def _end(self) -> float:
        start, end = float(self.row["start"]), float(self.row["end"])
        last = float(self.times[-1]) if len(self.times) else self.submit
        return next(time for time in (start, end, max(last, self.submit)) if np.isfinite(time))

    def answer(self) -> JobWait:
        """Put the answer together."""
        before = self._not_eligible()
        periods = _joined([*before, *self._eligible_parts()])
        row = self.row
        return JobWait(
            id=self.name,
            user=row["user"] or "",
            queue=row["queue"] or "",
            shape=row["shape"] or "",
            submit=self.submit,
            start=float(row["start"]) if np.isfinite(row["start"]) else None,
            limit=float(row["duration"]),
            periods=tuple(periods),
            holders=self._holders(periods),
            ahead=self._ahead(),
            running=self._running(),
            passed=self._passed(),
            sooner=tuple(self._sooner(periods)),
            outages=self._met(periods),
            clock=self.run.clock,
        )

    # --- before the job was eligible ---------------------------------------------------------

    def _not_eligible(self) -> Iterator[WaitPeriod]:
        if self.eligible <= self.submit:
            return
        job = self.jobs[self.name]
        schemes = {dependency.scheme for dependency in job.dependencies}
        ended = (self.table["end"] == self.eligible) | (self.table["start"] == self.eligible)
        named = {str(dependency.value) for dependency in job.dependencies} | {str(job.preceding)}
        culprit = next((id_ for id_ in self.table["id"][ended] if id_ in named), None)
        if culprit is not None or schemes - {"begin-time"}:
            cause = DEPENDENCY
        elif "begin-time" in schemes:
            cause = BEGIN
        else:
            waits = schemes or job.preceding is not None or not self.run.config.get("limits")
            cause = HELD_BACK if job.urgency == 0 else DEPENDENCY if waits else f"{LIMIT} submitted-jobs"
        yield WaitPeriod(self.submit, self.eligible, cause, culprit)

    # --- while it was eligible -----------------------------------------------------------------

    def _eligible_parts(self) -> Iterator[WaitPeriod]:
        """Yield the parts between the instants at which the machine, a queue or an outage changed."""
        if self.end <= self.eligible:
            return
        stops = self._stops()
        instants = {self.eligible, self.end, *(time for stop in stops for time in stop)}
        instants |= {time for outage in self.outages for time in (outage.start, outage.end)}
        instants |= self.reserved.times
        low, high = bisect_right(self.replay.times, self.eligible), bisect_left(self.replay.times, self.end)
        instants |= set(self.replay.times[low:high])
        chosen = sorted(time for time in instants if self.eligible <= time <= self.end)
        for start, end in pairwise(chosen):
            stopped = any(low <= start < high for low, high in stops)
            cause, job = (STOPPED, None) if stopped else self._cause_at(start)
            yield WaitPeriod(start, end, cause, job)

    def _stops(self) -> list[tuple[float, float]]:
        windows = self.run.meta.get("queue_stops", {}).get(self.row["queue"] or "", ())
        return [(stop, np.inf if start is None else start) for stop, start in windows]

    def _cause_at(self, time: float) -> tuple[str, str | None]:
        """Return the cause after all changes of an instant, and the job in the way."""
        over = self.limits.cause_at(time, float(self.row["duration"]))
        if over is not None:
            return over
        short = self._short_at(time)
        if short is not None:
            return short, None
        state = self.replay.state_at(time)
        if not can_match(self.request, state):
            return self._cause_in(state), None
        if not self._fits_before_maintenance(time, state):
            return MAINTENANCE, None
        closed = self.reserved.closed(time, float(self.row["duration"]))
        cores = self.reserved.closed_cores(time, float(self.row["duration"]))
        if cores:
            set_units_aside(state, KeptIds("core", masks_by_leaf(self.cluster.index, cores)), time)
        if (closed or cores) and not self._fits_without(closed, state):
            return ADVANCE, None
        if self.run.config.get("queue_policy") == RECORDED:
            return IN_LOG, None
        head = self._head_at(time)
        policy = str(self.run.config.get("queue_policy", ""))
        return (ORDER if policy in WITHOUT_BACKFILL else RESERVATION), head

    def _short_at(self, time: float) -> str | None:
        """Return the cause if sums alone show it: units of a type that are free by the timeline."""
        at = max(int(np.searchsorted(self.times, time, side="right")) - 1, 0)
        lacking = {}
        for type_, units in self._needed.items():
            free, down = self._units_over_time(type_)
            if free is None or free[at] >= units:
                continue
            lacking[type_] = (
                (units - free[at]) / max(self._totals.get(type_, 1), 1),
                free[at] + down[at] >= units,
            )
        if not lacking:
            return None
        worst = max(lacking, key=lambda type_: (round(lacking[type_][0], 9), type_ == "node"))
        return UNAVAILABLE if all(up for _, up in lacking.values()) else f"{SHORT} of {worst}"

    @cached_property
    def _needed(self) -> dict[str, int]:
        """The units that the request names, and the nodes that it takes whole.

        All units of a whole node are taken with it; they are short because nodes are, so they do not count.
        """
        found: dict[str, int] = {}
        for need, number in _multiplied(self.request.needs, 1):
            whole = need.kind == VERTEX and need.level == TARGET
            if need.exclusive and (whole or need.kind == POOL):
                type_ = "node" if whole else need.type
                found[type_] = found.get(type_, 0) + number
        return found

    def _units_over_time(self, type_: str) -> tuple[npt.NDArray[Any] | None, npt.NDArray[Any]]:
        """Return the free units (None: not recorded) and the unavailable units, by row of the timeline."""
        found = self._recorded.get(type_)
        if found is None:
            free, down = self.timeline.get(f"free_{type_}"), self.timeline.get(f"down_{type_}")
            found = self._recorded[type_] = free, self.times * 0 if down is None else down
        return found

    def _cause_in(self, state: Availability) -> str:
        """Return why the job does not fit although the sums of the machine suffice."""
        down = np.flatnonzero(~state.up)
        if len(down):
            state.set_status(down, up=True)
            if can_match(self.request, state):
                return UNAVAILABLE
        if not self.request.every:  # the sums of the nodes that its constraint lets pass
            for type_, units in self._needed.items():
                pool = self.cluster.index.pool_types.get(type_)
                if (
                    pool is not None
                    and int(state.free[type_][self.request.eligible[pool.target]].sum()) < units
                ):
                    return f"{SHORT} of {type_}"
        return PLACEMENT

    def _fits_before_maintenance(self, time: float, state: Availability) -> bool:
        limit = float(self.row["duration"])
        closed = [
            o for o in self.outages if o.kind == "maintenance" and o.start < time + limit and time < o.end
        ]
        if not closed:
            return True
        return self._fits_without({rank for outage in closed for rank in outage.ranks}, state)

    def _fits_without(self, ranks: Iterable[int], state: Availability) -> bool:
        """Whether the request fits in a state without some ranks, which are taken out of it."""
        targets = set(targets_of_ranks(self.cluster.index, ranks))
        state.set_status(np.array(sorted(targets), dtype=np.int64), up=False)
        return can_match(self.request, state)

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
        order = waiting[np.lexsort((-urgency[waiting], submit[waiting]))]
        first = self.table["id"][order[0]] if len(order) else self.name
        return None if first == self.name else first

    def _waiting_at(self, time: float) -> Bools:
        """Return which jobs are eligible and have not started at a time."""
        table = self.table
        starts = np.nan_to_num(table["start"], nan=np.inf)
        never = np.isin(table["result"], NEVER) | (table["until"] <= time)
        return (table["eligible"] <= time) & (starts > time) & ~never

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
        """Return the jobs that held most of the types that were short, in the time that they were."""
        table, found = self.table, []
        start, end = table["start"], table["until"]
        for type_ in dict.fromkeys(
            p.cause.removeprefix(f"{SHORT} of ") for p in periods if p.cause.startswith(SHORT)
        ):
            if type_ not in HELD:
                continue
            units = table[HELD[type_]]
            overlap = np.zeros(len(units))
            for period in periods:
                if period.cause == f"{SHORT} of {type_}":
                    overlap += np.clip(np.minimum(end, period.end) - np.maximum(start, period.start), 0, None)
            area = np.nan_to_num(overlap) * units
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

    def _met(self, periods: list[WaitPeriod]) -> tuple[NodeOutage, ...]:
        """Return the outages of the periods in which the job would have fitted if all nodes were up."""
        missing = [period for period in periods if period.cause == UNAVAILABLE]
        met = [one for one in self.outages if any(one.start < p.end and p.start < one.end for p in missing)]
        return tuple(NodeOutage(str(one.ranks), one.kind, one.start, one.end) for one in met[:MOST])

    # --- changes --------------------------------------------------------------------------------------

    def _sooner(self, periods: list[WaitPeriod]) -> Iterator[str]:
        """Yield changes of the request with which the job would have fitted sooner, each tried.

        A smaller or another request is tried when the job was first refused, a shorter limit when it
        was first held back by a reservation.
        """
        replay = self._replay()  # the other one has passed these times
        refused = next((p for p in periods if p.cause.startswith((SHORT, PLACEMENT))), None)
        held_back = next((p for p in periods if p.cause == RESERVATION and p.job is not None), None)
        for period in sorted(filter(None, (refused, held_back)), key=lambda period: period.start):
            state, clock = replay.state_at(period.start), self.run.clock
            time = human.moment(period.start) if clock is None else clock.text(period.start)
            if period is refused:
                reasons = explain_later(self.request, partial(Occupancy, state.copy(), {}, {}))
                yield from (f"at {time}: {change.text}" for change in reasons.changes[:2])
            elif (limit := self._gap(period, state, replay.claims())) > 0:
                yield f"at {time}: with a limit of at most {human.seconds(limit)}"

    def _gap(self, period: WaitPeriod, state: Availability, claims: Mapping[str, Selection]) -> float:
        """Return the seconds until the job with the reservation was expected to start."""
        assert period.job is not None
        until = self.table["start"] + self.table["duration"]
        ends = dict(zip(self.table["id"], until.tolist(), strict=True))
        known: dict[int | str, float] = {name: ends[name] for name in claims if name in ends}
        head, held = self._request(period.job), Occupancy(state, dict(claims.items()), known)
        ended = held.to_wait_for(lambda later: can_match(head, later))
        return ends[str(ended[-1])] - period.start if ended else 0.0


def _multiplied(needs: Iterable[Need], times: int) -> Iterator[tuple[Need, int]]:
    """Yield each need of a request with the number of it in all copies of its parents."""
    for need in needs:
        number = times * need.amount
        yield need, number
        yield from _multiplied(need.children, number)


def _joined(parts: list[WaitPeriod]) -> list[WaitPeriod]:
    """Return the parts with neighbours of one cause as one period."""
    found: list[WaitPeriod] = []
    for part in parts:
        if found and (found[-1].cause, found[-1].job) == (part.cause, part.job):
            found[-1] = WaitPeriod(found[-1].start, part.end, part.cause, part.job)
        else:
            found.append(part)
    return found
