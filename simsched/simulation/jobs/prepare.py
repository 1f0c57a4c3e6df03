"""The jobs of a workload as the columns of a run: compiled requests, durations, feasibility.

Checks of jobs that Python callers made; readers refuse such jobs with their place.

Like the kernel this file is plain Python, and is compiled where there is a compiler.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from simsched.errors import SimschedError, WorkloadError
from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.match.policies.policy import find_policy
from simsched.match.requests.compile import compile_request
from simsched.match.requests.request import SLOT
from simsched.match.search.exact import SearchLimitError
from simsched.match.search.select import select
from simsched.match.state.availability import Availability
from simsched.schedule.job_table import Counting, JobTable
from simsched.schedule.orders.priority_rules import NAME as MULTIFACTOR
from simsched.simulation.admission import partition_targets, size_fault
from simsched.simulation.jobs.conditions import Conditions
from simsched.simulation.jobs.priority_columns import priority_columns
from simsched.simulation.jobs.recorded_starts import NO_START, recorded_starts
from simsched.simulation.jobs.sizes import Sizes, plain_units
from simsched.simulation.licences.licence_pools import with_requests
from simsched.simulation.outages.outages import FAILURE
from simsched.simulation.record.recorder import DROPPED, FAILED, INFEASIBLE
from simsched.workload.job import note_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.arrays import Integers
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.index.index import Index
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Request
    from simsched.schedule.orders.multifactor import PriorityColumns
    from simsched.simulation.admission import Admission
    from simsched.simulation.jobs.recorded_starts import RecordedStarts
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.queues import Queue
    from simsched.workload.job import Job, KnownTasks


INF = float("inf")


TIMES = ("submit", "duration", "runtime", "cancel_at", "deadline", "think_time")
"""The times of a job, in the order in which odd ones are reported."""

FINITE = ("submit", "think_time")
"""Those that cannot be unlimited."""


def refuse_odd_jobs(jobs: Sequence[Job]) -> None:
    """Raise a `WorkloadError` for invalid times, jobs out of order, ids that occur twice, and odd arrays."""
    odd: dict[str, Job] = {}
    tasks: list[Job] = []
    ids: set[int | str] = set()
    before, most = 0.0, MAX_SECONDS
    for job in jobs:  # once: most of the time is that of fetching the jobs from memory
        submit, at = job.submit, -1
        # in the order of `TIMES`
        for time in (submit, job.duration, job.runtime, job.cancel_at, job.deadline, job.think_time):
            at += 1
            if time is None:
                continue
            seconds = time
            if 0 <= seconds <= most or (seconds == INF and TIMES[at] not in FINITE):
                continue
            # SWF writes an unknown time as -1
            if TIMES[at] != "think_time" or (seconds != -1 and job.preceding is not None):
                odd.setdefault(TIMES[at], job)
        if submit < before:
            odd.setdefault("order", job)
        before = submit
        ids.add(job.id)
        if job.array_task is not None:
            tasks.append(job)
    for name in TIMES:
        if name in odd:
            what, expected = f"{name} is {getattr(odd[name], name)!r}", f"seconds from 0 to {MAX_SECONDS:g}"
            raise WorkloadError(what, where=_name(odd[name]), expected=expected)
    if "order" in odd:
        expected = "jobs in submit order, as simsched.workload.job.in_submit_order gives them"
        raise WorkloadError(
            "it is submitted before the previous job", where=_name(odd["order"]), expected=expected
        )
    if len(ids) < len(jobs):
        ((twice, _),) = Counter([job.id for job in jobs]).most_common(1)
        raise WorkloadError("its id occurs twice", where=f"job {twice}")
    known: KnownTasks = {}
    for job in tasks:
        note_task(job, known)


def _name(job: Job) -> str:
    return f"job {job.id}"


UNLIMITED = float("inf")
HELD = "held: its urgency is 0 or it was submitted on hold"
NO_END = "neither a run time nor a duration is known"


class Counted(IntEnum):
    """What became of the counts when jobs were added."""

    SAME = 0
    """Every request was known."""
    MORE = 1
    """There are more kinds of requests, which are numbers of units of the one type, too."""
    AGAIN = 2
    """All kinds were counted again."""
    SWITCHED = 3
    """And units of another type count, or none."""


SAME = Counted.SAME


class Joined:
    """Jobs that were added to a run: the number of the first, and what else is new since.

    Attributes
    ----------
    first : the number of the first job.
    moved : whether the arrays of the table were replaced.
    counted : what became of the counts; `requests` are the new kinds of requests.
    priority : the columns of the order ``multifactor`` for these jobs; None under any other order.
    """

    def __init__(
        self,
        first: int,
        moved: bool,
        counted: Counted,
        requests: Sequence[Request | None],
        priority: PriorityColumns | None,
    ) -> None:
        self.first, self.moved, self.counted = first, moved, counted
        self.requests, self.priority = requests, priority


class Prepared:
    """The jobs of a run as columns by job number (the place in submit order).

    `extend` is the one way in which jobs come into a run, all at its beginning or those that arrive.

    Attributes
    ----------
    jobs : the jobs, in their queues and with the defaults of these.
    table : the columns that queue policies see.
    submits : submit times, as the workload has them (whole numbers stay whole).
    runtimes : seconds that the job will run, at most its duration where that ends it.
    timeouts : 1 where the job is ended at its duration.
    rejected : job → (result, reason) for those that can never run.
    sizes : cores that the job takes (or units, or nodes, where it takes none).
    holds : jobs that are held and never released → why.
    cancels : job → the time at which it is cancelled.
    special : jobs that may not be queued at once: rejected, held, to be cancelled, or dependent.
    admission : the jobs as queues and reservations admit them; None without any.
    limits_arrays : whether a job array limits its tasks at a time.
    conditions : what jobs wait for besides resources.
    kinds : the distinct requests.
    judge : finds the jobs that can never run.
    counts_decide : whether counts may decide matches; otherwise the matcher decides each of them.
    recorded : the starts of the log, if the run plays them.
    priority : the columns of the order ``multifactor`` for the first jobs; None under any other order.
    """

    def __init__(
        self, index: Index, config: RunConfig, admission: Admission | None, *, counts_decide: bool = True
    ) -> None:
        self._index, self._config, self._plays_log = index, config, config.plays_log
        self._grace = UNLIMITED if config.overrun == "allow" else config.kill_grace
        self.admission = admission
        self.conditions = Conditions(honour_think_times=config.think_times == "honour")
        self.kinds = Kinds(index, find_policy(config.match_policy), by_target=config.schedules_as_slurm)
        self.judge = Judge(self.kinds, admission)
        self.counts_decide = counts_decide and _counts_suffice(config)
        by_queue = admission is not None and config.schedules_as_slurm
        self.table = JobTable(
            judged_apart=config.candidates == "actual",
            in_queues=admission is not None,
            partition_targets=partition_targets(config.queues, index) if by_queue else (),
        )
        self.jobs: list[Job] = []
        self._requested: list[Job] = []  # with their licences as resources; kinds know requests by identity
        self.submits: list[float] = []
        self.runtimes: list[float] = []
        self.timeouts = bytearray()
        self.rejected: dict[int, tuple[int, str]] = {}
        self.sizes: list[int] = []
        self.holds: dict[int, str] = {}
        self.cancels: dict[int, float] = {}
        self.special: set[int] = set()
        self.limits_arrays = False
        self.recorded: RecordedStarts | None = None
        self.priority: PriorityColumns | None = None

    @property
    def takes_whole_targets(self) -> bool:
        """Whether every job takes only whole execution targets, whichever they are."""
        return self.kinds.has_one_on_each_target(self.table.single)

    def extend(self, jobs: Sequence[Job], refused: Mapping[int, tuple[int, str]] | None = None) -> Joined:
        """Add the next jobs: compile their requests, and find those that can never run on this cluster.

        These are not looked for if another run has `refused` them: job → (result, reason).
        """
        config, table, kinds, first = self._config, self.table, self.kinds, len(self.jobs)
        if self.admission is not None:
            jobs = self.admission.extend(jobs)
        self.jobs += jobs
        requested, never = with_requests(jobs, config.licenses)
        if requested is not jobs:
            self._requested += requested
        numbers, known = kinds.numbers(requested), len(table.by_kind)
        if self._plays_log:
            self.recorded = recorded = recorded_starts(jobs, self._index)
            self.judge.unstarted = frozenset(recorded.unstarted)
            table.starts, table.places = recorded.starts, recorded.places
            self.counts_decide = self.counts_decide and not recorded.places  # counts do not know targets
        counted = self._count_new() if len(kinds.requests) > known else SAME
        requests, judge, conditions, admission = kinds.requests, self.judge, self.conditions, self.admission
        moved, sizes = table.make_place(len(jobs)), table.kind_sizes
        # Most runs have no reasons of queues, logs and licences, and then most jobs need no verdict.
        each = admission is not None or self.recorded is not None or never or judge.rest is not None
        tier = partition = 0
        entered = self.jobs
        linked: list[tuple[int, Job]] = []
        for at, kind in enumerate(numbers, first):
            job = entered[at]
            submit, duration = job.submit, UNLIMITED if job.duration is None else job.duration
            runtime, ended = self._times(job, duration)
            self.submits.append(submit)
            self.runtimes.append(runtime)
            self.timeouts.append(ended)
            self.sizes.append(sizes[kind])
            if admission is not None:
                tier, partition = admission.tiers[at], admission.partitions[at]
            judged, urgency, user = min(duration, runtime), int(job.urgency), job.user
            table.add(kind, submit, duration, judged, urgency, user, job.bank, tier, partition, job.deadline)
            verdict = None
            if refused is not None:
                verdict = refused.get(at)
            elif each or requests[kind] is None or runtime == UNLIMITED:
                verdict = judge.refusal(at, kind, runtime, never.get(at - first))
            if verdict is not None:
                judge.refused[at] = self.rejected[at] = verdict
                self.special.add(at)
            if job.hold or urgency == 0:
                self.holds[at] = HELD
                self.special.add(at)
            if job.cancel_at is not None:
                self.cancels[at] = job.cancel_at
                self.special.add(at)
            if job.array_task is not None and job.array_task.limit is not None:
                self.limits_arrays = True
            if job.dependencies or job.preceding is not None:  # the others wait for resources alone
                linked.append((at, job))
        concerned = conditions.concerned(linked) if linked else []
        if concerned or conditions.conditional:
            self.special.update(concerned)
            conditions.extend(self.jobs[len(conditions) :])
        own = None
        if config.order == MULTIFACTOR and config.priority is not None:
            tree = None if self.priority is None else self.priority.tree
            own = priority_columns(
                config.priority, jobs, table, self._index, kinds.sizes, config.queues, first, tree
            )
            self.priority = self.priority or own
        return Joined(first, moved, counted, kinds.requests[known:] if counted else (), own)

    def _times(self, job: Job, duration: float) -> tuple[float, int]:
        """Return how long a job will run, and 1 if it is ended after its duration and the grace."""
        runtime, grace = job.runtime, self._grace
        if runtime is None:
            return duration, 0
        return (duration + grace, 1) if runtime > duration + grace else (runtime, 0)

    def change(self, number: int, **fields: Any) -> None:
        """Change fields of a job; its times follow."""
        job = self.jobs[number] = replace(self.jobs[number], **fields)
        duration = UNLIMITED if job.duration is None else job.duration
        self.runtimes[number], self.timeouts[number] = runtime, _ = self._times(job, duration)
        table = self.table
        judged = duration if table.judged is table.durations else min(runtime, duration)
        table.change_duration(number, duration, judged)

    def _count_new(self) -> Counted:
        """Count the kinds of requests that no job had before."""
        kinds, table = self.kinds, self.table
        new = kinds.requests[len(table.by_kind) :]
        if table.single is not None and table.content is None:
            whole = kinds.policy.whole_nodes
            plain = [None if r is None else plain_units(r, whole=whole) for r in new]
            if all(r is None or (one and one[0] == table.single) for r, one in zip(new, plain, strict=True)):
                for kind, one in enumerate(plain, len(table.by_kind)):
                    table.add_kind(kinds.requests[kind], kinds.size_of(kind), one[1] if one else 0)
                return Counted.MORE
        return self.count()

    def count(self) -> Counted:
        """Count all kinds of requests again."""
        kinds, table = self.kinds, self.table
        counting = counting_of(kinds, counts_decide=self.counts_decide)
        switched = counting.single != table.single
        if counting.single is None and any(request is not None for request in kinds.requests):
            self.counts_decide = False
        table.by_kind[:] = kinds.requests
        table.kind_sizes[:] = map(kinds.size_of, range(len(kinds.requests)))
        table.recount(counting)
        return Counted.SWITCHED if switched else Counted.AGAIN


def _counts_suffice(config: RunConfig) -> bool:
    """Whether counts may decide matches: no target is closed at known times or for some jobs."""
    only_failures = all(outage.kind == FAILURE for outage in config.outages)
    return only_failures and not (config.epilog[1] or config.reservations or config.suspends)


class Judge:
    """Finds the jobs of a run that can never run.

    Attributes
    ----------
    refused : the jobs that it found, with result and reason.
    unstarted : the jobs that a log which is played does not start.
    rest : the idle cluster, if targets of it are removed; otherwise None.
    """

    def __init__(self, kinds: Kinds, admission: Admission | None) -> None:
        self._kinds, self._admission = kinds, admission
        self.refused: dict[int, tuple[int, str]] = {}
        self.unstarted: frozenset[int] = frozenset()
        self.rest: Availability | None = None
        self._lacking: dict[int, str] = {}
        self._faults: dict[tuple[int, str], str | None] = {}

    def leave_out(self, index: Index, targets: Integers) -> None:
        """Refuse jobs that come from now on and fit only on these targets, which are removed."""
        self._lacking.clear()
        self.rest = None
        if len(targets):
            self.rest = Availability(index)
            self.rest.set_status(targets, up=False)

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
        if job in self.unstarted:
            return DROPPED, NO_START
        if never is None and self.rest is not None:
            if kind not in self._lacking:
                self._lacking[kind] = self._kinds.why_never(request, self.rest)
            never = self._lacking[kind] or None
        return None if never is None else (INFEASIBLE, never)

    def _size_fault(self, queue: Queue, kind: int, request: Request) -> str | None:
        key = kind, queue.name
        if key not in self._faults:
            self._faults[key] = size_fault(queue, self._kinds.sizes.counts(request))
        return self._faults[key]


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
        try:
            return [known[id(job.jobspec)] for job in jobs]
        except KeyError:
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
            draws = None if self.policy.is_steady else np.random.default_rng(0)
            if select(request, idle, self.policy, draws) is not None:
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


def counting_of(kinds: Kinds, *, counts_decide: bool) -> Counting:
    """Return whether counts alone decide for all these kinds of requests, and what each kind needs."""
    whole = kinds.policy.whole_nodes
    plain = [None if request is None else plain_units(request, whole=whole) for request in kinds.requests]
    # every request may be a plain number of units of one type, or of copies of one slot of plain units
    requests = [request for request in kinds.requests if request is not None]
    types_of = {one and one[0] for one, r in zip(plain, kinds.requests, strict=True) if r is not None}
    single = types_of.pop() if counts_decide and len(types_of) == 1 else None
    if kinds.by_target and not kinds.has_one_on_each_target(single):
        counts_decide, single = False, None
    contents = {request.plain for request in requests}
    content = contents.pop() if counts_decide and not single and not whole and len(contents) == 1 else None
    if content is not None:
        single, plain = SLOT, [None if r is None else (SLOT, r.slots) for r in kinds.requests]
    types = (single,) if single else tuple(dict.fromkeys(type_ for r in requests for type_ in r.demand))
    table = np.zeros((len(types), len(kinds.requests)), dtype=np.int64)
    for number, request in enumerate(kinds.requests):
        counted = plain[number]
        for at, type_ in enumerate(types):
            if single and counted:
                table[at, number] = counted[1]
            elif request is not None:
                table[at, number] = request.demand.get(type_, 0)
    return Counting(single, content, types, table)
