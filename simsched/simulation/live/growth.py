"""The jobs of an open simulation: `Arrivals` are those to come, `Growth` adds those that arrive to the run.

A job gets its number when it arrives, so numbers are in submit order, as in a run whose jobs are all known
beforehand.  Equal requests are compiled once.  As long as every request is a number of units of one type,
counts decide, as in `simulate`; the first other request, and the first drain, hand over to the matcher.
"""

from __future__ import annotations

import dataclasses
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from simsched.errors import ConfigError, FormatError
from simsched.formats.jobspec.jobspec import Jobspec, Task, build_resources
from simsched.formats.text.immutable import freeze
from simsched.schedule.count_supply import is_of_units
from simsched.schedule.orders.priority_rules import NAME as MULTIFACTOR
from simsched.simulation.admission import Admission
from simsched.simulation.checkpoint.checkpoint import DAMAGE, Codec, read_checkpoint
from simsched.simulation.environment import SUBMISSION
from simsched.simulation.features import add_features_of_jobs
from simsched.simulation.jobs.conditions import names_of
from simsched.simulation.jobs.prepare import UNLIMITED, Counted
from simsched.simulation.jobs.priority_columns import refuse_job
from simsched.simulation.licences.licence_pools import with_requests
from simsched.simulation.listeners import Listener
from simsched.simulation.reservations.reservation_rules import reservation_of
from simsched.workload.job import Job, Skip, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from simsched.graph.cluster import Cluster
    from simsched.match.requests.request import Request
    from simsched.simulation.engine import Engine
    from simsched.simulation.jobs.prepare import Joined
    from simsched.simulation.live.submission import SubmissionReader
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.outages.disruption import Disruption


NEVER = float("inf")


class Arrivals(Listener):
    """Jobs by submit time; jobs of one time come in the order in which they were handed in.

    Attributes
    ----------
    ids : the names of the jobs that are to come (`conditions.names_of`), each so often.
    endless : whether more jobs may be handed in for all that is known, so that failures go on.
    """

    def __init__(self, engine: Engine, growth: Growth, disruption: Disruption) -> None:
        self._engine, self._growth, self._disruption = engine, growth, disruption
        self._heap: list[tuple[float, int, Job, list[str]]] = []
        """Submit time, ticket, job, and its names."""
        self._counted = 0
        self._withdrawn: set[int] = set()
        self.ids: dict[str, int] = {}
        self.endless = False
        self._coming = NEVER
        """The earliest time for which an event for submissions is entered."""
        growth.prepared.conditions.coming = self.ids
        engine.future.handle("submission", self._on_submission)

    def goes_on(self) -> bool:
        """Whether more jobs come, or may come."""
        return self.endless or len(self) > 0

    def hand_in(self, job: Job) -> int:
        """Let a job arrive at its submit time, and return its ticket, by which it can be withdrawn."""
        self._counted = ticket = self._counted + 1
        names = names_of(job)
        heappush(self._heap, (job.submit, ticket, job, names))
        self._expect(names)
        if self._heap[0][1] == ticket:
            self._enter(job.submit)
        return ticket

    def go_on(self) -> None:
        """Go on from a restored state, whose events may have one for the next arrival."""
        events = (one.time for one in self._engine.future.pending() if one.kind == "submission")
        self._coming = min(events, default=NEVER)
        self.expect()

    def expect(self) -> None:
        """Enter an event for the next arrival, unless one is entered."""
        heap, withdrawn = self._heap, self._withdrawn
        while heap and heap[0][1] in withdrawn:
            withdrawn.discard(heappop(heap)[1])
        if heap:
            self._enter(heap[0][0])

    def _enter(self, time: float) -> None:
        if time < self._coming:
            self._coming = time
            self._engine.future.at(time, SUBMISSION, "submission")

    def _on_submission(self, _: Any) -> None:
        """Take in every job that arrives now."""
        engine, heap, withdrawn = self._engine, self._heap, self._withdrawn
        now = engine.future.now
        if self._coming <= now:
            self._coming = NEVER
        if self._disruption.asleep:
            self._disruption.wake(now)
        tickets: list[int] = []
        jobs: list[Job] = []
        while heap and heap[0][0] <= now:
            _, ticket, job, names = heappop(heap)
            if ticket in withdrawn:
                withdrawn.discard(ticket)
            else:
                self._forget(names)
                tickets.append(ticket)
                jobs.append(job)
        if jobs:  # else the jobs of this instant were taken in or withdrawn
            first = self._growth.extend(jobs)
            for hear in engine.on.numbered:
                hear(tickets, first)
            engine.take_in()
        self.expect()

    def __len__(self) -> int:
        return len(self._heap) - len(self._withdrawn)

    def __iter__(self) -> Iterator[Job]:
        """Yield the jobs in the order in which they will come."""
        return (job for _, at, job, _ in sorted(self._heap, key=_when) if at not in self._withdrawn)

    def _expect(self, names: list[str]) -> None:
        for name in names:
            self.ids[name] = self.ids.get(name, 0) + 1

    def withdraw(self, ticket: int, job: Job) -> None:
        """Take out a job whose time has not come."""
        self._withdrawn.add(ticket)
        self._forget(names_of(job))

    def _forget(self, names: list[str]) -> None:
        for name in names:
            others = self.ids.pop(name) - 1
            if others:
                self.ids[name] = others

    def exchange(self, ticket: int, job: Job) -> None:
        """Put another job of the same time in the place of one whose time has not come."""
        self._heap = [(time, at, job if at == ticket else old, names) for time, at, old, names in self._heap]

    def state(self) -> dict[str, Any]:
        """Return the jobs to come, and the tickets."""
        coming = sorted(self._heap, key=_when)
        tickets, jobs = [ticket for _, ticket, _, _ in coming], [job for _, _, job, _ in coming]
        return {"coming": tickets, "jobs": jobs, "counted": self._counted, "withdrawn": self._withdrawn}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the state of an equal part; tickets stay valid."""
        coming = zip(state["coming"], state["jobs"], strict=True)
        # in order, hence a heap
        self._heap = [(job.submit, ticket, job, names_of(job)) for ticket, job in coming]
        self._counted, self._withdrawn = state["counted"], set(state["withdrawn"])
        for _, job in self.tickets:
            self._expect(names_of(job))

    @property
    def tickets(self) -> Iterator[tuple[int, Job]]:
        """(Ticket, job) of the jobs that are to come."""
        return ((ticket, job) for _, ticket, job, _ in self._heap if ticket not in self._withdrawn)


def _when(entry: tuple[float, int, Job, list[str]]) -> tuple[float, int]:
    return entry[:2]


class OpenCheckpoint:
    """A checkpoint of an open simulation that was read from a file.

    Attributes
    ----------
    head : the checkpoint.
    specs : the jobspecs of its jobs.
    expected : the jobs that the simulation expected, and the facts of their log.
    grown : the cluster, if nodes joined since the beginning.

    Raises
    ------
    FormatError
        If it is not a checkpoint of an open simulation, has another format, or was changed since.
    """

    def __init__(self, path: str | Path) -> None:
        self.head = read_checkpoint(path, of_open=True)
        try:
            found = msgspec.json.decode(self.head.open)
            self.specs = [_spec(document) for document in found["specs"]]
            # no value of these is of one machine
            self._body = body = Codec(cast("Any", None), (), self.specs).value(found["jobs"])
            jobs = tuple(Job(id=0, submit=0, jobspec=spec) for spec in body["expected"])
            log = {**body["log"], "skipped": tuple(Skip(**one) for one in body["log"]["skipped"])}
            self.expected = Workload(**{**log, "jobs": jobs})
            self.grown: Cluster | None = body["grown"]
        except DAMAGE as error:
            raise FormatError(f"this checkpoint is damaged: {error!r}", where=str(path)) from None

    def put_into(self, growth: Growth, reader: SubmissionReader) -> None:
        """Bring the jobs into a fresh simulation of the same origin, and into the reader of submissions."""
        growth.repeat(GrowthRecord(*self._body["record"]))
        reader.restore(self._body["reader"])


def jobs_of(
    growth: Growth, expected: Workload, reader: SubmissionReader, grown: Cluster | None
) -> dict[str, Any]:
    """Return the jobs of a simulation for its checkpoint; `grown` is its cluster, if nodes joined."""
    return {
        "log": to_builtins(dataclasses.replace(expected, jobs=())),
        "expected": [job.jobspec for job in expected],
        "record": growth.record(),
        "reader": reader.state(),
        "grown": grown,
    }


def _spec(document: Mapping[str, Any]) -> Jobspec:
    """Return a jobspec of a file of ours; one of a shape without a slot has no task, unlike RFC 14."""
    tasks = tuple(map(Task.from_dict, document["tasks"]))
    attributes = freeze(document["attributes"])
    return Jobspec(build_resources(document["resources"]), tasks, attributes, document["version"])


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
        self.handed_in += jobs
        joined = prepared.extend(jobs, refused)
        if joined.counted or joined.moved:
            self._follow(joined)
        engine.queues.enroll(joined)
        engine.take_place(joined.first)
        if prepared.conditions.conditional or prepared.limits_arrays:
            add_features_of_jobs(engine)
        return joined.first

    def _follow(self, joined: Joined) -> None:
        """Bring to date what knows the kinds of requests, or the arrays of the table."""
        plan = self._engine.plan
        if joined.counted is Counted.MORE:
            index, single = plan.index, self.prepared.table.single or ""
            if not all(request is None or is_of_units(request, single, index) for request in joined.requests):
                assert plan.available  # the first free units no longer serve each request
            plan.forget_counts()
        if joined.moved or joined.counted >= Counted.AGAIN:
            self.renew(forget=joined.counted is Counted.SWITCHED)

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
        predictions = self._engine.predictions
        if predictions is not None:
            predictions.change_limit(number, runs=number in self._engine.progress.ends)

    def planned_seconds(self, number: int) -> float:
        """Return the seconds that plans give a job: its requested ones, or a prediction."""
        found: float = self._engine.queues.groups[0].context.table.durations[number]
        return found

    def change_duration(self, number: int, duration: float) -> None:
        """Change the requested seconds of a job; its run time follows, and all reservations are renewed."""
        found, given = None if duration == UNLIMITED else duration, self.handed_in[number].duration
        # 5 for 5.0 is no change for a copy, and the R of both has the same spelling
        self.change(number, duration=given if found == given else found)
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
        if len(self.jobs) > 1 and (not self.renewals or self.renewals[len(self.renewals) - 1] < now):
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
