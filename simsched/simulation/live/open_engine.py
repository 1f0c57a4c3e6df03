"""`OpenEngine`: an engine whose jobs arrive while it runs, and that reports its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from simsched.simulation.engine import Engine
from simsched.simulation.environment import LAST, SUBMISSION
from simsched.simulation.limits.limited_engine import LimitedEngine
from simsched.simulation.live.arrivals import NEVER, Arrivals
from simsched.simulation.outages.disruption import Disruption
from simsched.simulation.preemption.job_attempts import attempts_of
from simsched.simulation.preemption.preemptive_engine import PreemptiveEngine, PreemptiveLimitedEngine
from simsched.simulation.reservations.reservation_book import ReservationBook

if TYPE_CHECKING:
    from simpy import Event

    from simsched.graph.index.index import Index
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import Start
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.live.growth import Growth
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.record.recorder import Recorder
    from simsched.workload.job import Job


class Listener(Protocol):
    """The reports of events of jobs; jobs are numbers."""

    def arrived(self, ticket: int, job: int) -> None:
        """A job that was handed in got its number."""

    def submitted(self, job: int) -> None:
        """A job is taken in."""

    def changed(self, job: int) -> None:
        """The state of a job changed otherwise."""

    def started(self, job: int, selection: Selection) -> None:
        """A job started."""

    def requeued(self, job: int) -> None:
        """A job lost its resources and waits again."""

    def ended(self, job: int) -> None:
        """A job ended, started or not."""

    def resized(self, job: int, selection: Selection) -> None:
        """A running job has other resources."""

    def passed(self) -> None:
        """A scheduling pass is over."""


class OpenEngine(Engine):
    """The engine of an open simulation.

    Attributes
    ----------
    arrivals : the jobs whose time is to come.
    growth : adds a job that arrives.
    listener : is told of each event.
    endless : whether more jobs may be handed in for all that is known, so that failures go on.
    """

    growth: Growth
    listener: Listener
    may_wake = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.arrivals = Arrivals()
        self.endless = False
        self._coming = NEVER
        """The earliest time for which an event for submissions is entered."""
        self.future.handle("pause", self._on_pause)

    @property
    def is_over(self) -> bool:
        """Whether no job runs, waits for resources, waits for a time, or is still to come."""
        return not self.endless and not len(self.arrivals) and super().is_over

    def hand_in(self, job: Job) -> int:
        """Let a job arrive at its submit time, and return its ticket."""
        ticket = self.arrivals.add(job)
        self.expect()
        return ticket

    def expect(self) -> None:
        """Enter an event for the next arrival, unless one is entered."""
        time = self.arrivals.next_time
        if time < self._coming:
            self._coming = time
            self.future.at(time, SUBMISSION, "submission")

    def move_end(self, job: int) -> None:
        """Let a running job end when its run time, which has changed, is over; now at the earliest."""
        end = max(self.now, self.recorder.start[job] + self.prepared.runtimes[job])
        if self.progress.ends[job] != end:
            self._enter_end(job, end)

    def pause_at(self, time: float, event: Event) -> None:
        """Let an event succeed at a time, once all that happens then has happened."""
        self.future.come_to_present()
        self.future.at(time, LAST, "pause", event)

    def _on_pause(self, event: Event) -> None:
        event.succeed()

    # -- reports ----------------------------------------------------------------------------------

    def _on_submission(self, _: None) -> None:
        """Take in every job that arrives now."""
        now = self.future.now
        if self._coming <= now:
            self._coming = NEVER
        before = len(self.growth.jobs)
        disruption = self.parts.get("disruption")
        if isinstance(disruption, Disruption):
            disruption.wake(now)
        for ticket, job in self.arrivals.take(now):
            self.listener.arrived(ticket, self.growth.add(job))
        if len(self.growth.jobs) > before:  # else the jobs of this instant were taken in or withdrawn
            super()._on_submission(None)
        self.expect()

    def submit(self, job: int, now: float) -> None:
        """Take in a job that is submitted now."""
        self.listener.submitted(job)
        super().submit(job, now)
        self.listener.changed(job)

    def _become_eligible(self, job: int, now: float) -> None:
        super()._become_eligible(job, now)
        self.listener.changed(job)

    def _start(self, started: list[Start], now: float) -> None:
        super()._start(started, now)
        for job, selection, _ in started:
            self.listener.started(job, selection)

    def _finish(self, job: int, now: float, result: int, reason: str | None = None) -> None:
        super()._finish(job, now, result, reason)
        self.listener.ended(job)

    def _give_up(self, job: int, now: float, result: int, reason: str) -> None:
        super()._give_up(job, now, result, reason)
        self.listener.ended(job)

    def requeue(self, job: int, now: float, reason: str) -> None:
        """Release the resources of a running job and queue it again, to run from its start."""
        super().requeue(job, now, reason)
        self.listener.requeued(job)

    def _on_clean(self, done: tuple[int, Any]) -> None:
        super()._on_clean(done)
        self.listener.changed(done[0])

    def _pass(self, now: float) -> None:
        super()._pass(now)
        self.listener.passed()


class LimitedOpenEngine(OpenEngine, LimitedEngine):
    """The engine of an open simulation with limits: each method goes on to the next class."""


class PreemptiveOpenEngine(OpenEngine, PreemptiveEngine):
    """The same with the attempts of jobs, and preemption by the rules of a run."""


class PreemptiveLimitedOpenEngine(OpenEngine, PreemptiveLimitedEngine):
    """The same with both."""


def open_engine(
    prepared: Prepared, index: Index, config: RunConfig, recorder: Recorder, more: dict[str, Any]
) -> OpenEngine:
    """Return the engine of an open simulation, with limits (in `more`) and attempts if there are any."""
    attempts = attempts_of(config, (), prepared)
    if attempts is None:
        kind: type[OpenEngine] = LimitedOpenEngine if "limited" in more else OpenEngine
        return kind(prepared, index, config, recorder, **more)
    kind = PreemptiveLimitedOpenEngine if "limited" in more else PreemptiveOpenEngine
    return kind(prepared, index, config, recorder, attempts=attempts, **more)


def waiting_reasons(engine: OpenEngine) -> dict[int, str]:
    """Return for each job that waits for a limit or for an advance reservation why it waits."""
    book, limits = engine.parts.get("reservations"), engine.queues.limits
    found = {} if limits is None else limits.reasons()
    return found | (book.reasons() if isinstance(book, ReservationBook) else {})
