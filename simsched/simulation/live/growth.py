"""`Growth`: adds a job to every column of a run while the run goes on.

A job gets its number when it arrives, so numbers are in submit order, as in a run whose jobs are all known
beforehand.  Equal requests are compiled once.  As long as every request is a number of units of one type,
counts decide, as in `simulate`; the first other request, and the first drain, hand over to the matcher.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from simsched.errors import ConfigError
from simsched.match.state.availability import Availability
from simsched.schedule.count_supply import is_of_units
from simsched.schedule.job_table import NewJob
from simsched.schedule.orders.priority_rules import NAME as MULTIFACTOR
from simsched.simulation.admission import Admission
from simsched.simulation.features import add_limits
from simsched.simulation.jobs.conditions import Conditions, Dependencies
from simsched.simulation.jobs.lifecycle import JobState
from simsched.simulation.jobs.prepare import (
    UNLIMITED,
    Kinds,
    Prepared,
    counting_of,
    counts_suffice,
    times_of,
)
from simsched.simulation.jobs.priority_columns import priority_columns, refuse_job
from simsched.simulation.jobs.sizes import plain_units
from simsched.simulation.licences.licence_pools import with_requests
from simsched.simulation.reservations.reservation_rules import reservation_of
from simsched.workload.job import has_array_limits

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Ints
    from simsched.match.requests.request import Request
    from simsched.simulation.engine import Engine
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.record.recorder import Recorder
    from simsched.workload.job import Job


def refuse_closed(config: RunConfig) -> None:
    """Raise a ConfigError for an option that needs all jobs of a run at its beginning."""
    if config.plays_log:
        text = "an open simulation does not have the option queue-policy recorded: it plays known starts"
        raise ConfigError(text, expected="simulate")
    rules = config.priority if config.order == MULTIFACTOR else None
    shares = rules is not None and rules.uses("fair-share")
    if rules is not None and shares and (rules.accounts is None or rules.fair_share.unknown == "add"):
        raise ConfigError(
            "an open simulation does not make the accounts of fair share from its jobs",
            where="priority", expected="accounts, and unknown-users = refuse",
        )  # fmt: skip


class GrowthRecord(NamedTuple):
    """The jobs of a run as they are at present, for another run of the same cluster and rules.

    handed_in : the jobs as they were submitted, in the order of their numbers.
    changes : number → (runtime, duration, cancel_at) of those that are different by now.
    on_graph : whether the matcher decides every match.
    renewals : times (seconds) at which reservations were made again or running jobs changed.
    refused : number → (result, reason) of those that could never run when they were submitted.
    """

    handed_in: list[Job]
    changes: dict[int, tuple[Any, Any, Any]]
    on_graph: bool
    renewals: list[float]
    refused: dict[int, tuple[int, str]]


class Growth:
    """The jobs that have arrived, and how another is added.

    Attributes
    ----------
    jobs : the jobs, in their queues and with the defaults of these.
    handed_in : the jobs as they were submitted.
    renewals : times (seconds) at which reservations were made again or running jobs changed.
    """

    def __init__(self, engine: Engine, index: Index, jobs: list[Job], expected: Sequence[Job]) -> None:
        self._engine, self._index = engine, index
        self._config = engine.config
        self._admission = engine.queues.admission
        self._prepared: Any = engine.prepared
        self._table: Any = engine.prepared.table
        self._kinds: Kinds = engine.prepared.kinds
        self._grace = UNLIMITED if self._config.overrun == "allow" else self._config.kill_grace
        self._judged_by_runtime = self._config.candidates == "actual"
        self._counts_decide = counts_suffice(self._config)
        self._conditional = Conditions([], honour_think_times=self._config.think_times == "honour")
        self.jobs = jobs
        self._requested: list[Job] = []  # with their licences as resources; kinds know requests by identity
        self.handed_in: list[Job] = []
        self.renewals: list[float] = []
        self._refused: dict[int, tuple[int, str]] = {}
        self._rest: Availability | None = None  # the idle cluster, if targets of it are removed
        self._lacking: dict[int, str] = {}
        self._repeats = 0  # the jobs of another run, which were judged there
        self._expected = expected if self._config.queues is None else self._placed(expected)
        self._expected, _ = with_requests(self._expected, self._config.licenses)
        self._kinds.numbers(self._expected)
        if self._expected:
            self._recount()

    def _placed(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Return jobs to expect as their queues will have them."""
        assert self._config.queues is not None
        return Admission(jobs, self._config.queues, self._index, no_limit=self._config.no_limit).jobs

    # -- jobs -------------------------------------------------------------------------------------

    def foresee(self, coming: Collection[str]) -> None:
        """Let jobs depend on those that will arrive later; `coming` are the ids of these."""
        self._conditional.coming = coming

    def add(self, job: Job) -> int:
        """Add a job that arrives now, and return its number."""
        engine, prepared, admission = self._engine, self._prepared, self._admission
        number = len(self.jobs)
        self.handed_in.append(job)
        queue, tier, partition = None, 0, 0
        if admission is not None:
            job = admission.add(job)
            queue, tier = admission.of[number], admission.tiers[number]
            partition = admission.partitions[number]
            if admission.calls_for_merger(number):
                engine.queues.merge()
        self.jobs.append(job)
        requested, never = with_requests((job,), self._config.licenses)
        self._requested += requested
        kind = self._kinds.number(requested[0].jobspec)
        if kind >= len(self._table.kind_sizes):
            self._add_kind(kind)
        duration = UNLIMITED if job.duration is None else job.duration
        runtime, timeout = times_of(job.runtime, duration, self._grace)
        prepared.submits.append(job.submit)
        prepared.runtimes.append(runtime)
        prepared.timeouts.append(timeout)
        prepared.sizes.append(self._table.kind_sizes[kind])
        if number >= self._repeats:  # a job is not judged again when the cluster grows
            refusal = prepared.judge.refusal(number, kind, runtime, never.get(0) or self._why_never(kind))
            if refusal is not None:
                self._refused[number] = refusal
        if number in self._refused:
            prepared.rejected[number] = self._refused[number]
        prepared.note((job,), number, (number,) if self._concerns(job) else ())
        judged = min(runtime, duration) if self._judged_by_runtime else duration
        self._enter(job, NewJob(
            kind, job.submit, duration, judged, job.urgency, job.user, job.bank, tier, partition, job.deadline
        ))  # fmt: skip
        if "limits" not in engine.parts and has_array_limits((job,)):
            add_limits(engine, self._index, self.jobs[:-1], admission)
        for hear in engine.on.joined:
            hear(number, job, queue)
        engine.progress.states.append(JobState.NEW)
        return number

    def refuse(self, job: Job) -> None:
        """Raise a ConfigError for a job without an account or a priority, or with a wrong attribute."""
        if self._config.reservations:
            reservation_of(job)
        for hear in self._engine.on.offered:
            hear(job)
        if self._config.priority is not None and self._prepared.priority is not None:
            refuse_job(job, self._config.priority, self._prepared.priority.tree)

    def record(self) -> GrowthRecord:
        """Return what another run needs to have the same jobs."""
        changes = {}
        for number, (job, before) in enumerate(zip(self.jobs, self.handed_in, strict=True)):
            mine = (job.runtime, job.duration, job.cancel_at)
            if mine != (before.runtime, before.duration, before.cancel_at):
                changes[number] = mine
        return GrowthRecord(
            list(self.handed_in),
            changes,
            not self._counts_decide,
            list(self.renewals),
            dict(self._refused),
        )

    def repeat(self, record: GrowthRecord) -> None:
        """Add the jobs of another run of the same cluster and rules, as they are there now."""
        self._refused, self._repeats = dict(record.refused), len(record.handed_in)
        for job in record.handed_in:
            self.add(job)
        for number, (runtime, duration, cancel_at) in record.changes.items():
            mine = self.jobs[number]
            self.jobs[number] = replace(mine, runtime=runtime, duration=duration, cancel_at=cancel_at)
            if (mine.runtime, mine.duration) != (runtime, duration):
                self._set_times(number)
        if record.on_graph:
            self.decide_on_graph()
        self.renewals = list(record.renewals)

    def _enter(self, job: Job, new: NewJob) -> None:
        """Add a job to the table, the queues, the records and the dependencies."""
        engine, table = self._engine, self._table
        accounts = table.accounts
        if table.add(new):
            self.renew(forget=False)
        number, order, known = len(self.jobs) - 1, engine.queues.priority, self._prepared.priority
        if order is not None:
            queues, sizes = self._config.queues, self._kinds.sizes
            own = priority_columns(known.rules, (job,), table, self._index, sizes, queues, number, known.tree)
            order.enroll(number, [job.submit], own)
        engine.queues.enroll(number, table, accounts)
        engine.recorder.add(job.id, job.queue or "default")
        if "dependencies" in engine.parts:
            self._conditional.add(job)

    def _concerns(self, job: Job) -> bool:
        """Whether a job waits for more than resources, from the first of which on the engine sees to it."""
        dependent = self._conditional.concern(job)
        if dependent and "dependencies" not in self._engine.parts:
            recorder = self._engine.recorder
            for other in self.jobs[:-1]:
                self._conditional.add(other)
            self._conditional.catch_up(recorder.start, recorder.end, recorder.result)
            self._engine.add("dependencies", Dependencies(self._engine, self._conditional))
        return dependent

    def leave_out(self, targets: Ints) -> None:
        """Refuse jobs that come from now on and fit only on these targets, which are removed."""
        self._lacking.clear()
        self._rest = None
        if len(targets):
            self._rest = Availability(self._index)
            self._rest.set_status(targets, up=False)

    def _why_never(self, kind: int) -> str | None:
        """Return why a request does not fit on the targets that are not removed; None if it does."""
        request = self._kinds.requests[kind]
        if self._rest is None or request is None:
            return None
        if kind not in self._lacking:
            self._lacking[kind] = self._kinds.why_never(request, self._rest)
        return self._lacking[kind] or None

    # -- jobs that change -------------------------------------------------------------------------

    @property
    def prepared(self) -> Prepared:
        """The columns of the run."""
        found: Prepared = self._prepared
        return found

    def with_coming(self, coming: Sequence[Job], recorder: Recorder) -> Prepared:
        """Return the columns with jobs that are still to come, which a recorder of its own gets, too."""
        for job in coming:
            recorder.add(job.id, job.queue or "default")
        table = copy(self._table)
        more = [UNLIMITED if job.duration is None else job.duration for job in coming]
        table.durations = table.durations + more
        return changed(self.prepared, table=table)

    def request_of(self, number: int) -> Request:
        """Return the compiled request of a job that has one."""
        request = self._table.requests[number]
        assert request is not None
        found: Request = request
        return found

    def note_cancel(self, number: int, now: float) -> None:
        """Note in the records that a job is cancelled at this time (seconds)."""
        self.jobs[number] = replace(self.jobs[number], cancel_at=now)

    def change_runtime(self, number: int, runtime: float) -> None:
        """Change the seconds that a job runs for."""
        self.jobs[number] = replace(self.jobs[number], runtime=runtime)
        self._set_times(number)

    def _set_times(self, number: int) -> None:
        job = self.jobs[number]
        duration = UNLIMITED if job.duration is None else job.duration
        runtime, timeout = times_of(job.runtime, duration, self._grace)
        self._prepared.runtimes[number], self._prepared.timeouts[number] = runtime, timeout
        judged = min(runtime, duration) if self._judged_by_runtime else duration
        self._table.change_duration(number, duration, judged)
        for group in self._engine.queues:
            group.queue.rerank(number)
        expected = self._engine.expected
        if expected is not None:
            expected.predictions.change_limit(number, runs=number in self._engine.progress.ends)

    def planned_seconds(self, number: int) -> float:
        """Return the seconds that plans give a job: its requested ones, or a prediction."""
        found: float = self._engine.queues.groups[0].context.table.durations[number]
        return found

    def change_duration(self, number: int, duration: float) -> None:
        """Change the requested seconds of a job; its run time follows, and all reservations are renewed."""
        requested = None if duration == UNLIMITED else duration
        self.jobs[number] = replace(self.jobs[number], duration=requested)
        self._set_times(number)
        self.renew(forget=True)

    # -- kinds of requests ------------------------------------------------------------------------

    def _add_kind(self, kind: int) -> None:
        """Take in a kind of request that no job had before."""
        table, request = self._table, self._kinds.requests[kind]
        if table.single is not None and table.content is None:
            counted = None if request is None else plain_units(request, whole=self._kinds.policy.whole_nodes)
            if request is None or (counted is not None and counted[0] == table.single):
                # the fast path of flat requests: nothing else changes but what is counted
                table.add_kind(request, self._kinds.size_of(kind), 0 if counted is None else counted[1])
                if request is not None and not is_of_units(request, table.single, self._index):
                    assert self._engine.plan.available  # the first free units no longer serve each request
                self._engine.plan.forget_counts()
                for group in self._engine.queues:
                    group.context.supply.forget_counts()
                return
        self._recount()

    def decide_on_graph(self) -> None:
        """Let the matcher decide from now on: counts do not know which targets are drained."""
        if self._counts_decide:
            self._counts_decide = False
            self._recount()

    def _recount(self) -> None:
        """Count all kinds again, and make what depends on the kinds anew."""
        kinds, table = self._kinds, self._table
        counting = counting_of(kinds, counts_decide=self._counts_decide)
        switched = counting.single != table.single
        if counting.single is None and any(request is not None for request in kinds.requests):
            self._counts_decide = False
        table.by_kind[:] = kinds.requests
        table.kind_sizes[:] = map(kinds.size_of, range(len(kinds.requests)))
        table.recount(counting)
        self.renew(forget=switched)

    def note_renewal(self) -> None:
        """Note that reservations may move at this instant, because requests or running jobs change."""
        now = self._engine.future.now
        if len(self.jobs) > 1 and (not self.renewals or self.renewals[-1] < now):
            self.renewals.append(now)

    def renew(self, *, forget: bool) -> None:
        """Make the supplies of all queues again; with `forget` reservations are made again, too."""
        if forget:
            self.note_renewal()
        self._engine.plan.forget_counts()
        for group in self._engine.queues:
            group.context.renew()
            renew = getattr(group.policy, "renew", None)
            if renew is not None:
                renew(forget=forget)
