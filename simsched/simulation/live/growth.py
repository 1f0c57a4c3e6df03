"""`Growth`: adds a job to every column of a run while the run goes on.

A job gets its number when it arrives, so numbers are in submit order, as in a run whose jobs are all known
beforehand.  Equal requests are compiled once.  As long as every request is a number of units of one type,
counts decide, as in `simulate`; the first other request, and the first drain, hand over to the matcher.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from simsched.errors import ConfigError
from simsched.schedule.count_supply import is_of_units
from simsched.schedule.orders.priority_rules import NAME as MULTIFACTOR
from simsched.simulation.admission import Admission
from simsched.simulation.features import add_features_of_jobs
from simsched.simulation.jobs.prepare import UNLIMITED, Counted, Prepared
from simsched.simulation.jobs.priority_columns import refuse_job
from simsched.simulation.licences.licence_pools import with_requests
from simsched.simulation.reservations.reservation_rules import reservation_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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

    def __init__(self, engine: Engine, expected: Sequence[Job]) -> None:
        self._engine, self._config = engine, engine.config
        self.prepared = engine.prepared
        self.jobs = engine.prepared.jobs
        self.handed_in: list[Job] = []
        self.renewals: list[float] = []
        if self._config.queues is not None:
            no_limit = self._config.no_limit
            expected = Admission(self._config.queues, engine.plan.index, no_limit=no_limit).extend(expected)
        self._expected, _ = with_requests(expected, self._config.licenses)
        self.prepared.kinds.numbers(self._expected)
        if self._expected:
            self._recount()

    # -- jobs -------------------------------------------------------------------------------------

    def extend(self, jobs: Sequence[Job], refused: Mapping[int, tuple[int, str]] | None = None) -> int:
        """Add jobs that arrive now (or that another run `refused` in part); return the first number."""
        engine, prepared = self._engine, self.prepared
        accounts = prepared.table.accounts
        self.handed_in += jobs
        joined = prepared.extend(jobs, refused)
        if joined.counted is Counted.MORE:
            index, single = engine.plan.index, prepared.table.single or ""
            if not all(request is None or is_of_units(request, single, index) for request in joined.requests):
                assert engine.plan.available  # the first free units no longer serve each request
            engine.plan.forget_counts()
            for group in engine.queues:
                group.context.supply.forget_counts()
        if joined.moved or joined.counted >= Counted.AGAIN:
            self.renew(forget=joined.counted is Counted.SWITCHED)
        engine.queues.enroll(joined, accounts)
        engine.take_place(joined.first)
        add_features_of_jobs(engine, jobs)
        return joined.first

    def refuse(self, job: Job) -> None:
        """Raise a ConfigError for a job without an account or a priority, or with a wrong attribute."""
        if self._config.reservations:
            reservation_of(job)
        for hear in self._engine.on.offered:
            hear(job)
        if self._config.priority is not None and self.prepared.priority is not None:
            refuse_job(job, self._config.priority, self.prepared.priority.tree)

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
            not self.prepared.counts_decide,
            list(self.renewals),
            dict(self.prepared.judge.refused),
        )

    def repeat(self, record: GrowthRecord) -> None:
        """Add the jobs of another run of the same cluster and rules, as they are there now."""
        self.extend(record.handed_in, record.refused)
        for number, (runtime, duration, cancel_at) in record.changes.items():
            mine = self.jobs[number]
            if (mine.runtime, mine.duration) == (runtime, duration):
                self.jobs[number] = replace(mine, cancel_at=cancel_at)
            else:
                self.change(number, runtime=runtime, duration=duration, cancel_at=cancel_at)
        if record.on_graph:
            self.decide_on_graph()
        self.renewals = list(record.renewals)

    # -- jobs that change -------------------------------------------------------------------------

    def with_coming(self, coming: Sequence[Job], recorder: Recorder) -> Prepared:
        """Return the columns with jobs that are still to come, which a recorder of its own gets, too."""
        recorder.extend(coming)
        made = copy(self.prepared)
        made.table = copy(made.table)
        made.table.durations = [
            *made.table.durations,
            *(UNLIMITED if job.duration is None else job.duration for job in coming),
        ]
        return made

    def request_of(self, number: int) -> Request:
        """Return the compiled request of a job that has one."""
        request = self.prepared.table.requests[number]
        assert request is not None
        found: Request = request
        return found

    def note_cancel(self, number: int, now: float) -> None:
        """Note in the records that a job is cancelled at this time (seconds)."""
        self.jobs[number] = replace(self.jobs[number], cancel_at=now)

    def change(self, number: int, **fields: Any) -> None:
        """Change fields of a job that its times follow from."""
        self.prepared.change(number, **fields)
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
        self.change(number, duration=None if duration == UNLIMITED else duration)
        self.renew(forget=True)

    # -- what depends on the requests -------------------------------------------------------------

    def decide_on_graph(self) -> None:
        """Let the matcher decide from now on: counts do not know which targets are drained."""
        if self.prepared.counts_decide:
            self.prepared.counts_decide = False
            self._recount()

    def _recount(self) -> None:
        """Count all kinds again, and make what depends on the kinds anew."""
        self.renew(forget=self.prepared.count() is Counted.SWITCHED)

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
