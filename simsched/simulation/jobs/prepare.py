"""The jobs of a workload as the columns of a run: compiled requests, durations, feasibility."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
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
from simsched.simulation.admission import partition_numbers, partition_targets, size_fault
from simsched.simulation.jobs.recorded_starts import NO_START, recorded_starts
from simsched.simulation.jobs.sizes import Sizes, plain_units
from simsched.simulation.record.recorder import DROPPED, FAILED, INFEASIBLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence, Set

    import numpy.typing as npt

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.index.index import Index
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Content, Request
    from simsched.schedule.orders.multifactor import PriorityColumns
    from simsched.simulation.admission import Admission
    from simsched.simulation.jobs.recorded_starts import RecordedStarts
    from simsched.simulation.options.run_config import RunConfig
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
    holds: dict[int, str]
    cancels: dict[int, float]
    special: Set[int]
    recorded: RecordedStarts | None = None
    priority: PriorityColumns | None = None


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
    runtimes, timeouts = _runtimes(jobs, durations, grace)
    recorded = recorded_starts(jobs, index) if config.plays_log else None
    rejected = _refused(kinds, numbers, runtimes, admission, recorded)
    for at, reason in (never or {}).items():
        rejected.setdefault(at, (INFEASIBLE, reason))
    # Counts do not know which targets the log names.
    counts_decide = counts_decide and not (recorded is not None and recorded.places)
    judged = durations
    if config.candidates == "actual":
        judged = [min(a, b) for a, b in zip(runtimes, durations, strict=True)]
    more: dict[str, Any] = {}
    if recorded is not None:
        more = {"starts": recorded.starts, "places": recorded.places}
    if admission is not None:
        numbers_of = partition_numbers(config.queues)
        partitions = [numbers_of[None if queue is None else queue.name] for queue in admission.of]
        more["partitions"] = np.array(partitions, dtype=np.int64)
        more["tiers"] = np.array(admission.tiers, dtype=np.int64)
        if config.schedules_as_slurm:
            more["partition_targets"] = partition_targets(config.queues, index)
    table = _table(jobs, kinds, numbers, durations, judged, counts_decide=counts_decide, **more)
    submits = list(map(attrgetter("submit"), jobs))
    whole = _takes_whole_targets(table.single, index)
    held = np.fromiter(map(attrgetter("hold"), jobs), np.bool_, len(jobs)) | (table.priorities == 0)
    holds = dict.fromkeys(held.nonzero()[0].tolist(), HELD)
    cancels = {at: time for at, time in enumerate(map(attrgetter("cancel_at"), jobs)) if time is not None}
    special = {*holds, *cancels, *rejected, *dependent}
    sizes = table.sizes.tolist()
    return Prepared(
        table,
        submits,
        runtimes,
        timeouts,
        rejected,
        sizes,
        whole,
        holds,
        cancels,
        special,
        recorded,
        _priority(config, jobs, table, index, kinds),
    )


def _priority(
    config: RunConfig, jobs: Sequence[Job], table: JobTable, index: Index, kinds: Kinds
) -> PriorityColumns | None:
    """Return the columns of the order ``multifactor``; None under any other order."""
    if config.order != MULTIFACTOR or config.priority is None:
        return None
    from simsched.simulation.jobs.priority_columns import priority_columns

    return priority_columns(config.priority, jobs, table, index, kinds.sizes, config.queues)


def _refused(
    kinds: Kinds,
    numbers: Sequence[int],
    runtimes: Sequence[float],
    admission: Admission | None,
    recorded: RecordedStarts | None,
) -> dict[int, tuple[int, str]]:
    """Return the jobs that never run, with the result and the reason: the first that applies counts."""
    rejected: dict[int, tuple[int, str]] = {}
    if None in kinds.requests:
        never = [request is None for request in kinds.requests]
        rejected = {at: (INFEASIBLE, kinds.reasons[kind]) for at, kind in enumerate(numbers) if never[kind]}
    if admission is not None:
        rejected.update(rejections(admission, [kinds.requests[number] for number in numbers], kinds.sizes))
    for at, runtime in enumerate(runtimes) if UNLIMITED in runtimes else ():
        if runtime == UNLIMITED:
            rejected.setdefault(at, (DROPPED, NO_END))
    for at in () if recorded is None else recorded.unstarted:
        rejected.setdefault(at, (DROPPED, NO_START))
    return rejected


def rejections(
    admission: Admission, requests: Sequence[Request | None], sizes: Sizes
) -> Iterator[tuple[int, tuple[int, str]]]:
    """Yield the jobs that their queue rejects: for its name, their duration or their size."""
    for at, reason in admission.rejected.items():
        yield at, (FAILED, reason)
    for at, (queue, request) in enumerate(zip(admission.of, requests, strict=True)):
        if queue is not None and request is not None and at not in admission.rejected:
            fault = size_fault(queue, sizes.counts(request))
            if fault is not None:
                yield at, (FAILED, fault)


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
        specs = list(map(attrgetter("jobspec"), jobs))
        ids = list(map(id, specs))
        for key, spec in dict(zip(ids, specs, strict=True)).items():
            if key not in known:
                known[key] = self._compile(spec)
        return list(map(known.__getitem__, ids))

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


def _runtimes(jobs: Sequence[Job], durations: Sequence[float], grace: float) -> tuple[list[float], bytearray]:
    """Return how long each job will run, and which of them are ended `grace` seconds after their duration."""
    recorded = list(map(attrgetter("runtime"), jobs))
    runtimes = [
        duration if runtime is None else runtime
        for runtime, duration in zip(recorded, durations, strict=True)
    ]
    timeouts = bytearray(len(jobs))
    over = np.fromiter(runtimes, np.float64) > np.fromiter(durations, np.float64) + grace
    for at in over.nonzero()[0].tolist():
        runtimes[at] = durations[at] + grace
        timeouts[at] = 1
    return runtimes, timeouts


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
    durations: list[float],
    judged: list[float],
    *,
    counts_decide: bool,
    **more: Any,
) -> JobTable:
    return JobTable(
        by_kind=kinds.requests,
        kind_sizes=[kinds.size_of(kind) for kind in range(len(kinds.requests))],
        counting=counting_of(kinds, counts_decide=counts_decide),
        kinds=numbers,
        submits=np.fromiter(map(attrgetter("submit"), jobs), np.float64, len(jobs)),
        durations=durations,
        judged=judged,
        priorities=np.fromiter(map(attrgetter("urgency"), jobs), np.int64, len(jobs)),
        deadlines=_deadlines(jobs),
        users=list(map(attrgetter("user"), jobs)),
        banks=list(map(attrgetter("bank"), jobs)),
        **more,
    )


def table_apart(jobs: Sequence[Job], kinds: Kinds) -> JobTable:
    """Return a table of some jobs by themselves, for what depends on each job alone."""
    durations: list[float] = [UNLIMITED if job.duration is None else job.duration for job in jobs]
    return _table(jobs, kinds, kinds.numbers(jobs), durations, durations, counts_decide=False)


def _deadlines(jobs: Sequence[Job]) -> npt.NDArray[np.float64] | None:
    """Return the deadline of each job, inf where it has none; None if no job has one."""
    deadlines = list(map(attrgetter("deadline"), jobs))
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
