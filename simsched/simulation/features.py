"""`add_features`: gives an engine the features that its configuration and its jobs need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.match.policies.policy import find_policy
from simsched.simulation.jobs.conditions import Dependencies
from simsched.simulation.jobs.epilogs import Epilogs
from simsched.simulation.jobs.lifecycle import ENDED
from simsched.simulation.listeners import Listener
from simsched.simulation.outages.disruption import Disruption, refuse_endless_failures
from simsched.simulation.preemption.job_attempts import JobAttempts
from simsched.simulation.preemption.preemption import Preemption
from simsched.simulation.queue_hours import QueueHours
from simsched.simulation.reservations.reservation_book import ReservationBook
from simsched.workload.job import has_array_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.schedule.maintenance import Closure
    from simsched.simulation.engine import Engine
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.record.event_log import EventLog
    from simsched.workload.job import Job


def add_features(engine: Engine, closures: Sequence[Closure], *, open_: bool) -> None:
    """Give an engine its features; an `open_` engine may get jobs and outages later."""
    config, prepared = engine.config, engine.prepared
    if engine.recorder.events is not None:
        engine.add("eventlog", LoggedEvents(engine, engine.recorder.events))
    if config.epilog[1]:
        engine.add("epilogs", Epilogs(engine))
    add_features_of_jobs(engine, prepared.jobs)
    attempts = None
    if config.preemption is not None or config.job_checkpoints is not None:
        attempts = JobAttempts(engine)
        engine.add("attempts", attempts)
    disruption = _add_disruption(engine, open_=open_)
    of = [] if prepared.admission is None else prepared.admission.of
    if config.queues is not None:
        QueueHours(engine, config.queues).schedule()
        if config.preemption is None and any(queue.preempts for queue in config.queues.queues.values()):
            engine.add("preemption", Preemption(engine, of))
    book = None
    if config.reservations:
        book = ReservationBook(engine, config.reservations, closures)
        engine.add("reservations", book)
    if config.preemption is not None and attempts is not None:
        from simsched.simulation.preemption.suspension import Suspension
        from simsched.simulation.preemption.victims import Victims

        suspension = None
        if config.suspends:
            assert disruption is not None
            suspension = Suspension(engine, disruption, book)
        engine.add("victims", Victims(engine, attempts, config.preemption, of, suspension))


def add_features_of_jobs(engine: Engine, jobs: Sequence[Job]) -> None:
    """Give an engine the features that it needs since it has these jobs: dependencies and limits.

    Limits are those of its configuration, and those of job arrays on their tasks at a time.
    """
    config, prepared = engine.config, engine.prepared
    if prepared.conditions.conditional and "dependencies" not in engine.parts:
        recorder = engine.recorder
        prepared.conditions.catch_up(recorder.start, recorder.end, recorder.result)
        engine.add("dependencies", Dependencies(engine, prepared.conditions))
    if "limits" not in engine.parts and (config.limits or (not config.plays_log and has_array_limits(jobs))):
        from simsched.simulation.limits.limit_keeper import LimitedJobs, LimitKeeper

        groups = None if prepared.admission is None else prepared.admission.groups
        whole, index = find_policy(config.match_policy).whole_nodes, engine.plan.index
        engine.add(
            "limits", LimitKeeper(engine, LimitedJobs(config.limits, prepared, index, groups, whole=whole))
        )


def _add_disruption(engine: Engine, *, open_: bool) -> Disruption | None:
    """Give an engine outages and random failures, where there are any or may be any later."""
    config, submits, index = engine.config, engine.prepared.submits, engine.plan.index
    begin = submits[0] if submits else 0
    if config.failures is not None and submits:
        refuse_endless_failures(config.failures, len(index), begin, _horizon(engine.prepared, config))
    if not (config.outages or config.failures is not None or open_ or config.suspends):
        return None
    found = Disruption(engine, index, config.outages, config.failures, config.on_failure, config.seed)
    found.schedule(begin, later=open_)
    engine.add("disruption", found)
    return found


def _horizon(prepared: Prepared, config: RunConfig) -> float:
    """Return the last time (seconds) that is known beforehand, plus the longest job and epilog."""
    never = float("inf")
    windows = [
        window
        for queue in (config.queues.queues.values() if config.queues else ())
        for window in queue.windows
    ]
    fixed = [
        *prepared.submits[-1:],
        *(outage.end for outage in config.outages),
        *(start for _, start in windows),
    ]
    longest = max((seconds for seconds in prepared.runtimes if seconds < MAX_SECONDS), default=0)
    return max((time for time in fixed if time < never), default=0) + longest + config.epilog[1]


class LoggedEvents(Listener):
    """Writes the events of the jobs of a run into its log."""

    def __init__(self, engine: Engine, log: EventLog) -> None:
        self._engine = engine
        self._note, self._tell = log.note, log.tell

    def submitted(self, job: int, now: float) -> None:
        """Note that a job is taken in."""
        self._note(job, now, "submit", "validate")

    def eligible(self, job: int, now: float) -> None:
        """Note that a job waits for nothing but resources."""
        self._note(job, now, "depend", "priority")

    def runs(self, job: int, now: float) -> None:
        """Note a start."""
        self._note(job, now, "alloc", "start")

    def suspended(self, job: int, now: float, reason: str) -> None:
        """Note a suspension."""
        self._tell(job, now, "suspend", {"note": reason})

    def resumed(self, job: int, now: float) -> None:
        """Note that a suspended job goes on."""
        self._note(job, now, "resume")

    def requeued(self, job: int, now: float, reason: str) -> None:
        """Note that a job waits again."""
        self._tell(job, now, "requeue", {"note": reason})

    def ended(self, job: int, now: float, result: int, reason: str | None) -> None:
        """Note an end; a job whose targets clean up releases them later."""
        start = self._engine.recorder.start[job]
        if reason is None:
            self._note(job, now, "finish")
        else:
            self._tell(job, now, "exception", {"type": "fatal", "severity": 0, "note": reason})
        if start != start:  # noqa: PLR0124 (NaN: it never started)
            self._note(job, now, "clean")
        elif self._engine.progress.states[job] is ENDED:
            self._note(job, now, "release", "free", "clean")

    def cleaned(self, job: int, now: float, *, last: bool) -> None:
        """Note that targets of a job are free again."""
        self._note(job, now, "release", *(("free", "clean") if last else ()))
