"""The jobs of a workload as the columns of a run: compiled requests, durations, feasibility."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import SimschedError
from simsched.match.policies.policy import find_policy
from simsched.match.requests.compile import compile_request
from simsched.match.requests.request import SLOT
from simsched.match.search.exact import SearchLimitError
from simsched.match.search.select import select
from simsched.match.state.availability import Availability
from simsched.schedule.job_table import Counting, JobTable
from simsched.schedule.orders.priority_rules import NAME as MULTIFACTOR
from simsched.simulation.admission import partition_targets, size_fault
from simsched.simulation.jobs.recorded_starts import NO_START, recorded_starts
from simsched.simulation.jobs.sizes import Sizes, plain_units
from simsched.simulation.outages.outages import FAILURE
from simsched.simulation.record.recorder import DROPPED, FAILED, INFEASIBLE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.index.index import Index
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Content, Request
    from simsched.schedule.orders.multifactor import PriorityColumns
    from simsched.simulation.admission import Admission
    from simsched.simulation.jobs.recorded_starts import RecordedStarts
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.queues import Queue
    from simsched.workload.job import Job

UNLIMITED = float("inf")
HELD = "held: its urgency is 0 or it was submitted on hold"
NO_END = "neither a run time nor a duration is known"


@dataclass(frozen=True, slots=True)
class Prepared:
    """The jobs of a run as columns by job number (the place in submit order).

    Attributes
    ----------
    table : the columns that queue policies see.
    submits : submit times, as the workload has them (whole numbers stay whole).
    runtimes : seconds that the job will run, at most its duration where that ends it.
    timeouts : 1 where the job is ended at its duration.
    rejected : job → (result, reason) for those that can never run.
    sizes : cores that the job takes (or units, or nodes, where it takes none).
    holds : jobs that are held and never released → why.
    cancels : job → the time at which it is cancelled.
    special : jobs that may not be queued at once: rejected, held, to be cancelled, or dependent.
    takes_whole_targets : whether every job takes only whole execution targets, whichever they are.
    kinds : the distinct requests.
    judge : finds the jobs that can never run.
    recorded : the starts of the log, if the run plays them.
    priority : the columns of the order ``multifactor``; None under any other order.
    """

    table: JobTable
    submits: list[float]
    runtimes: list[float]
    timeouts: bytearray
    rejected: dict[int, tuple[int, str]]
    sizes: list[int]
    takes_whole_targets: bool
    kinds: Kinds
    judge: Judge
    recorded: RecordedStarts | None
    priority: PriorityColumns | None
    holds: dict[int, str] = field(default_factory=dict)
    cancels: dict[int, float] = field(default_factory=dict)
    special: set[int] = field(default_factory=set)

    def note(self, jobs: Sequence[Job], first: int, dependent: Collection[int]) -> None:
        """Note which jobs are held, are cancelled, or may not be queued at once for another reason.

        The first of them has the number `first`.
        """
        rejected = self.rejected
        for at, job in enumerate(jobs, first):
            if job.hold or job.urgency == 0:
                self.holds[at] = HELD
                self.special.add(at)
            if job.cancel_at is not None:
                self.cancels[at] = job.cancel_at
                self.special.add(at)
            if at in rejected or at in dependent:
                self.special.add(at)


def prepare(
    jobs: Sequence[Job],
    index: Index,
    config: RunConfig,
    *,
    admission: Admission | None = None,
    dependent: Collection[int] = (),
    counts_decide: bool = True,
    never: Mapping[int, str] | None = None,
) -> Prepared:
    """Compile every job's request, and find the jobs that can never run on this cluster.

    `admission` is the jobs as their queues admit them; `dependent` are the jobs that wait for
    more than resources, `never` the reasons of further jobs that can never run.  Unless
    `counts_decide`, the matcher decides every match, because counts do not know which targets are
    closed or drained.
    """
    kinds = Kinds(index, find_policy(config.match_policy), by_target=config.schedules_as_slurm)
    numbers = kinds.numbers(jobs)
    durations: list[float] = [UNLIMITED if job.duration is None else job.duration for job in jobs]
    grace = UNLIMITED if config.overrun == "allow" else config.kill_grace
    times = [times_of(job.runtime, duration, grace) for job, duration in zip(jobs, durations, strict=True)]
    runtimes, timeouts = [runtime for runtime, _ in times], bytearray([timeout for _, timeout in times])
    recorded = recorded_starts(jobs, index) if config.plays_log else None
    judge = Judge(kinds, admission, recorded)
    never = never or {}
    # Most runs have no reasons of queues, logs and licences, and then most jobs need no verdict.
    each = admission is not None or recorded is not None or bool(never)
    odd = [each or request is None for request in kinds.requests]
    rejected = {
        at: found
        for at, (kind, runtime) in enumerate(zip(numbers, runtimes, strict=True))
        if (odd[kind] or runtime == UNLIMITED)
        and (found := judge.refusal(at, kind, runtime, never.get(at))) is not None
    }
    # Counts do not know which targets the log names.
    counts_decide = counts_decide and not (recorded is not None and recorded.places)
    judged = durations
    if config.candidates == "actual":
        judged = [min(a, b) for a, b in zip(runtimes, durations, strict=True)]
    more: dict[str, Any] = {}
    if recorded is not None:
        more = {"starts": recorded.starts, "places": recorded.places}
    if admission is not None:
        more["partitions"] = np.array(admission.partitions, dtype=np.int64)
        more["tiers"] = np.array(admission.tiers, dtype=np.int64)
        if config.schedules_as_slurm:
            more["partition_targets"] = partition_targets(config.queues, index)
    submits = [job.submit for job in jobs]
    table = _table(jobs, kinds, numbers, submits, durations, judged, counts_decide=counts_decide, **more)
    whole = _takes_whole_targets(table.single, index)
    sizes = table.sizes.tolist()
    priority = _priority(config, jobs, table, index, kinds)
    made = Prepared(
        table, submits, runtimes, timeouts, rejected, sizes, whole, kinds, judge, recorded, priority
    )
    made.note(jobs, 0, dependent)
    return made


def _priority(
    config: RunConfig, jobs: Sequence[Job], table: JobTable, index: Index, kinds: Kinds
) -> PriorityColumns | None:
    """Return the columns of the order ``multifactor``; None under any other order."""
    if config.order != MULTIFACTOR or config.priority is None:
        return None
    from simsched.simulation.jobs.priority_columns import priority_columns

    return priority_columns(config.priority, jobs, table, index, kinds.sizes, config.queues)


def counts_suffice(config: RunConfig) -> bool:
    """Whether counts may decide matches: no target is closed at known times or for some jobs."""
    only_failures = all(outage.kind == FAILURE for outage in config.outages)
    return only_failures and not (config.epilog[1] or config.reservations or config.suspends)


class Judge:
    """Finds the jobs of a run that can never run."""

    def __init__(
        self, kinds: Kinds, admission: Admission | None, recorded: RecordedStarts | None = None
    ) -> None:
        self._kinds, self._admission = kinds, admission
        self._unstarted = frozenset(() if recorded is None else recorded.unstarted)
        self._faults: dict[tuple[int, str], str | None] = {}

    def refusal(
        self, job: int, kind: int, runtime: float, never: str | None = None
    ) -> tuple[int, str] | None:
        """Return the result of a job that never runs and the first reason that applies; None if it may run.

        `never` is a further reason against it.
        """
        request = self._kinds.requests[kind]
        if self._admission is not None:
            reason = self._admission.rejected.get(job)
            queue = self._admission.of[job]
            if reason is None and queue is not None and request is not None:
                reason = self._size_fault(queue, kind, request)
            if reason is not None:
                return FAILED, reason
        if request is None:
            return INFEASIBLE, self._kinds.reasons[kind]
        if runtime == UNLIMITED:
            return DROPPED, NO_END
        if job in self._unstarted:
            return DROPPED, NO_START
        return None if never is None else (INFEASIBLE, never)

    def _size_fault(self, queue: Queue, kind: int, request: Request) -> str | None:
        key = kind, queue.name
        if key not in self._faults:
            self._faults[key] = size_fault(queue, self._kinds.sizes.counts(request))
        return self._faults[key]


def _takes_whole_targets(single: str | None, index: Index) -> bool:
    """Whether every unit of the single type is an execution target, or the only unit on one."""
    if single in (None, SLOT) or single == index.target_type:
        return single == index.target_type
    pool = index.pool_types[single]
    return pool.aligned and pool.uniform == 1


class Kinds:
    """The distinct requests of a workload, compiled and tried on the idle cluster once each.

    Attributes
    ----------
    requests : kind → its request; None if it can never be met.
    reasons : kind → why it can never be met, or an empty text.
    by_target : whether reservations are for whole targets, so that units count only if each target has one.
    """

    def __init__(self, index: Index, policy: MatchPolicy, *, by_target: bool = False) -> None:
        self.policy = policy
        self.by_target = by_target
        self._index = index
        self._idle = Availability(index)
        self.sizes = Sizes(index, whole=policy.whole_nodes)
        self._by_spec: dict[int, int] = {}
        self._by_request: dict[int, int] = {}
        self._compiled: list[Request] = []
        """Every compiled request: they are distinguished by their ids, so none may be freed."""
        self.requests: list[Request | None] = []
        self.reasons: list[str] = []

    def has_one_on_each_target(self, type_: str | None) -> bool:
        """Whether no target has more than one unit of a type; a target is one of its own type."""
        if type_ == self._index.target_type:
            return True
        pool = None if type_ is None else self._index.pool_types.get(type_)
        return pool is not None and pool.uniform == 1 and pool.aligned

    def numbers(self, jobs: Sequence[Job]) -> list[int]:
        """Return the number of each job's request; equal requests have one number."""
        known = self._by_spec
        for spec in {id(job.jobspec): job.jobspec for job in jobs}.values():
            self.number(spec)
        return [known[id(job.jobspec)] for job in jobs]

    def number(self, jobspec: Jobspec) -> int:
        """Return the number of a request that is kept, so that no other has its id."""
        found = self._by_spec.get(id(jobspec))
        if found is None:
            found = self._by_spec[id(jobspec)] = self._compile(jobspec)
        return found

    def _compile(self, jobspec: Jobspec) -> int:
        try:
            request = compile_request(jobspec, self._index)
        except SimschedError as error:
            return self._add(None, str(error))
        known = self._by_request.get(id(request))
        if known is not None:
            return known
        self._compiled.append(request)
        reason = self.why_never(request, self._idle)
        number = self._by_request[id(request)] = self._add(None if reason else request, reason)
        return number

    def why_never(self, request: Request, idle: Availability) -> str:
        """Return why a request is not matched even on the idle cluster; an empty text if it is matched."""
        try:
            if select(request, idle, self.policy, np.random.default_rng(0)) is not None:
                return ""
        except SearchLimitError as error:
            return f"undecided: {error}"
        from simsched.match.explain.explanation import explain

        return explain(request, idle).short()

    def size_of(self, kind: int) -> int:
        """Return the size of the jobs of a kind."""
        request = self.requests[kind]
        return 1 if request is None else self.sizes.size(request)

    def _add(self, request: Request | None, reason: str) -> int:
        self.requests.append(request)
        self.reasons.append(reason)
        return len(self.requests) - 1


def times_of(runtime: float | None, duration: float, grace: float) -> tuple[float, int]:
    """Return how long a job will run, and 1 if it is ended `grace` seconds after its duration."""
    if runtime is None:
        return duration, 0
    return (duration + grace, 1) if runtime > duration + grace else (runtime, 0)


def counting_of(kinds: Kinds, *, counts_decide: bool) -> Counting:
    """Return whether counts alone decide for all these kinds of requests, and what each kind needs."""
    whole = kinds.policy.whole_nodes
    plain = [None if request is None else plain_units(request, whole=whole) for request in kinds.requests]
    single = _single(kinds.requests, plain) if counts_decide else None
    if kinds.by_target and not kinds.has_one_on_each_target(single):
        counts_decide, single = False, None
    content = _one_slot(kinds.requests) if counts_decide and not single and not whole else None
    if content is not None:
        single, plain = SLOT, [None if r is None else (SLOT, r.slots) for r in kinds.requests]
    types = (single,) if single else _types(kinds.requests)
    table = np.zeros((len(types), len(kinds.requests)), dtype=np.int64)
    for number, request in enumerate(kinds.requests):
        counted = plain[number]
        for at, type_ in enumerate(types):
            if single and counted:
                table[at, number] = counted[1]
            elif request is not None:
                table[at, number] = request.demand.get(type_, 0)
    return Counting(single, content, types, table)


def _table(
    jobs: Sequence[Job],
    kinds: Kinds,
    numbers: list[int],
    submits: list[float],
    durations: list[float],
    judged: list[float],
    *,
    counts_decide: bool,
    **more: Any,
) -> JobTable:
    return JobTable(
        by_kind=list(kinds.requests),
        kind_sizes=[kinds.size_of(kind) for kind in range(len(kinds.requests))],
        counting=counting_of(kinds, counts_decide=counts_decide),
        kinds=numbers,
        submits=np.array(submits, dtype=np.float64),
        durations=durations,
        judged=judged,
        priorities=np.fromiter((job.urgency for job in jobs), np.int64, len(jobs)),
        deadlines=_deadlines(jobs),
        users=[job.user for job in jobs],
        banks=[job.bank for job in jobs],
        **more,
    )


def _deadlines(jobs: Sequence[Job]) -> npt.NDArray[np.float64] | None:
    """Return the deadline of each job, inf where it has none; None if no job has one."""
    deadlines = [job.deadline for job in jobs]
    if deadlines.count(None) == len(jobs):
        return None
    return np.array([np.inf if one is None else one for one in deadlines], dtype=np.float64)


def _types(requests: Sequence[Request | None]) -> tuple[str, ...]:
    """Return the requested pool types, in order of first appearance."""
    types: dict[str, None] = {}
    for request in requests:
        if request is not None:
            types.update(dict.fromkeys(request.demand))
    return tuple(types)


def _single(requests: Sequence[Request | None], plain: Sequence[tuple[str, int] | None]) -> str | None:
    """Return the one type in which every request is a plain number of units, if there is one."""
    kinds = {
        counted and counted[0]
        for request, counted in zip(requests, plain, strict=True)
        if request is not None
    }
    return kinds.pop() if len(kinds) == 1 else None


def _one_slot(requests: Sequence[Request | None]) -> Content | None:
    """Return the content of one slot if every request is copies of the same slot of plain units."""
    contents = {request.plain for request in requests if request is not None}
    return contents.pop() if len(contents) == 1 else None
