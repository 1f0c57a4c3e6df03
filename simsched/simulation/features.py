"""`add_features`: gives an engine the features that its configuration and its jobs need.

`Epilogs`: the targets of a job that ended clean up before they are free again.

`ExpectedEnds`: the predicted ends of running jobs as events, where short predictions are corrected.
"""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.match.policies.policy import find_policy
from simsched.simulation.environment import EARLY_END, END, SUBMISSION
from simsched.simulation.jobs.lifecycle import ENDED, JobState, step
from simsched.simulation.listeners import Listener, Way
from simsched.simulation.outages.disruption import Disruption, refuse_endless_failures
from simsched.simulation.preemption.job_attempts import JobAttempts
from simsched.simulation.preemption.preemption import Preemption
from simsched.simulation.queue_hours import QueueHours
from simsched.simulation.record.recorder import CANCELED, FAILED
from simsched.simulation.reservations.reservation_book import ReservationBook

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from simsched.schedule.maintenance import Closure
    from simsched.schedule.predictors.predictions import Predictions
    from simsched.simulation.engine import Engine
    from simsched.simulation.jobs.conditions import Conditions, Met
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.record.event_log import EventLog


class ExpectedEnds(Listener):
    """Follows the jobs of a run for its predictor.

    Attributes
    ----------
    predictions : the predicted run times, and the table of jobs by which plans are made.
    """

    def __init__(self, engine: Engine, predictions: Predictions) -> None:
        self.predictions = predictions
        self._engine = engine
        engine.future.handle("overrun", self._on_overrun)

    def runs(self, job: int, now: float) -> None:
        """Enter the predicted end of a job that runs now as an event, if the job will run beyond it."""
        self.enter(job)

    def resumed(self, job: int, now: float) -> None:
        """Enter the predicted end of a job that goes on."""
        self.enter(job)

    def enter(self, job: int) -> None:
        """Enter the predicted end of a running job as an event, if the job will run beyond it."""
        engine = self._engine
        expected = engine.plan.expected_end(job)
        if expected < engine.progress.ends[job]:
            # After the ends of this instant, so that a job that ends as predicted is not corrected.
            engine.future.at(expected, EARLY_END, "overrun", job)

    def released(self, job: int, now: float, way: Way) -> None:
        """Note that a job does not run any more; learn from it if it ended by itself or at its limit."""
        if way is Way.END:
            self.predictions.learn(job, now - self._engine.began(job))
        else:
            self.predictions.forget(job)

    def state(self) -> Any:
        """Return the state of the predictions."""
        return self.predictions.state()

    def restore(self, state: Any) -> None:
        """Take over the state of equal predictions."""
        self.predictions.restore(state)

    def _on_overrun(self, job: int) -> None:
        """Correct the prediction of a job that is still running, and plan again."""
        engine = self._engine
        # An event of a job that was interrupted, suspended or requeued stays in the list.
        if job not in engine.progress.ends or engine.plan.until.get(job) != engine.now:
            return
        seconds = self.predictions.correct(job)
        if seconds is None:
            return  # it runs beyond its limit
        engine.plan.move_end(job, engine.began(job) + seconds)
        engine.queues.expect_later()
        self.enter(job)
        engine.settle()


class Epilogs(Listener):
    """Each target takes its time; a job keeps those that are not done yet."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rng = engine.generators["epilogs"] = np.random.default_rng([engine.config.seed, 2])
        engine.future.handle("clean", self._on_clean)

    def keeps(self, job: int, now: float, result: int) -> bool:
        """Let each target of a job that ended clean up, unless the job failed or has none."""
        engine = self._engine
        listed = engine.plan.held[job].listed
        if result == FAILED or not len(listed):
            return False
        states = engine.progress.states
        states[job] = step(states[job], "finish")
        targets = np.sort(listed)
        seconds = draw_epilogs(self._rng, engine.config.epilog, len(targets))
        for wait in np.unique(seconds).tolist():
            engine.future.at(now + wait, END, "clean", (job, targets[seconds == wait]))
        return True

    def _on_clean(self, done: tuple[int, Any]) -> None:
        """Release the shard of the targets that are done."""
        engine, (job, targets) = self._engine, done
        now = engine.now
        shard = engine.plan.release_part(job, targets)
        engine.queues.touch(released=True)
        last = job not in engine.plan.held
        engine.recorder.shard(job, now, shard, last=last)
        if last:
            engine.progress.states[job] = ENDED
        for hear in engine.on.cleaned:
            hear(job, now, last=last)
        engine.settle()
        for hear in engine.on.changed:
            hear(job)


def draw_epilogs(rng: np.random.Generator, bounds: tuple[float, float], count: int) -> npt.NDArray[Any]:
    """Return the seconds that each of `count` targets takes: one time for all, or whole seconds drawn."""
    least, most = bounds
    if least == most:
        return np.full(count, int(least) if least == int(least) else least)
    return rng.integers(ceil(least), floor(most), size=count, endpoint=True)


REPORT_EVERY = 512
"""Passes between two reports of progress."""


def add_features(engine: Engine, closures: Sequence[Closure], *, open_: bool) -> None:
    """Give an engine its features; an `open_` engine may get jobs and outages later."""
    config, prepared = engine.config, engine.prepared
    if engine.recorder.events is not None:
        engine.add("eventlog", LoggedEvents(engine, engine.recorder.events))
    if config.epilog[1]:
        engine.add("epilogs", Epilogs(engine))
    if engine.predictions is not None:
        engine.add("expected", ExpectedEnds(engine, engine.predictions))
    add_features_of_jobs(engine)
    attempts = None
    if config.preemption is not None or config.job_checkpoints is not None:
        attempts = JobAttempts(engine)
        engine.add("attempts", attempts)
    disruption = _add_disruption(engine, open_=open_)
    of = [] if prepared.admission is None else prepared.admission.of
    if config.queues is not None:
        QueueHours(engine, config.queues)
    book = None
    if config.reservations:
        book = ReservationBook(engine, config.reservations, closures)
        engine.add("reservations", book)
    if config.preempts:
        suspension = None
        if config.suspends:
            from simsched.simulation.preemption.suspension import Suspension

            assert disruption is not None
            suspension = Suspension(engine, disruption, book)
        engine.add("preemption", Preemption(engine, attempts, of, suspension))


def add_features_of_jobs(engine: Engine) -> None:
    """Give an engine the features that it needs since it has its jobs: dependencies and limits.

    Limits are those of its configuration, and those of job arrays on their tasks at a time.
    """
    config, prepared = engine.config, engine.prepared
    if prepared.conditions.conditional and "dependencies" not in engine.parts:
        recorder = engine.recorder
        prepared.conditions.catch_up(recorder.start, recorder.end, recorder.result)
        engine.add("dependencies", Dependencies(engine, prepared.conditions))
    limited = config.limits or (prepared.limits_arrays and not config.plays_log)
    if limited and "limits" not in engine.parts:
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


class Dependencies(Listener):
    """The conditions of the jobs of a run; they are asked when jobs are submitted, start and end."""

    def __init__(self, engine: Engine, conditions: Conditions) -> None:
        self._engine, self._conditions = engine, conditions
        handle = engine.future.handle
        handle("started", lambda job: self._settle(conditions.started(job, engine.now)))
        handle("withdrawn", lambda names: self._settle(conditions.withdrawn(names, engine.now)))
        handle("timer", self._on_timer)

    def may_queue(self, job: int, now: float) -> bool:
        """Whether a job waits for nothing but resources; otherwise it waits, or is given up."""
        self._meet(self._conditions.take_broken(), now)
        met = self._conditions.arrive(job, now)
        self._enter_timers()
        if met is None or met.reason is None:
            return met is not None
        self._meet((met,), now)
        return False

    def runs(self, job: int, now: float) -> None:
        """Enter an event if others wait for this start: they do not start in the pass of it."""
        if self._conditions.start(job, now):
            self._engine.future.at(now, SUBMISSION, "started", job)

    def occupied(self, job: int, end: float | None) -> None:
        """Note that a job runs from the beginning."""
        self._conditions.start(job, self._engine.now)

    def ended(self, job: int, now: float, result: int, reason: str | None) -> None:
        """Release the jobs that waited for this end."""
        if result == CANCELED:
            self._conditions.forget(job)
        self._meet(self._conditions.ended(job, now, result), now)
        self._enter_timers()

    def _on_timer(self, job: int) -> None:
        self._engine.progress.timers -= 1
        self._settle(self._conditions.elapsed(job))

    def _settle(self, met: Iterable[Met]) -> None:
        """Let jobs be queued or end, and make a pass."""
        self._meet(met, self._engine.now)
        self._enter_timers()
        self._engine.settle()

    def _meet(self, met: Iterable[Met], now: float) -> None:
        """Queue jobs whose dependencies are met, and end those whose dependencies never will be."""
        engine = self._engine
        for job, reason in met:
            if engine.progress.states[job] is not JobState.DEPEND:
                continue
            if reason is None:
                engine.make_eligible(job, now)
            else:
                engine.give_up(job, now, FAILED, reason)

    def _enter_timers(self) -> None:
        for time, job in self._conditions.take_timers():
            self._engine.progress.timers += 1
            self._engine.future.at(time, SUBMISSION, "timer", job)

    def state(self) -> dict[str, Any]:
        """Return the jobs that started or ended, and the open conditions."""
        return self._conditions.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of equal conditions."""
        self._conditions.restore(state)


class Reports(Listener):
    """Reports the progress of a run every few hundred passes, and ends it once it is to stop."""

    def __init__(
        self, engine: Engine, report: Callable[[Engine], None] | None, stop: threading.Event | None = None
    ) -> None:
        self._engine, self.report, self._stop = engine, report, stop

    def passed(self, now: float) -> None:
        """Report, and end the run after this pass if it is to stop."""
        engine, stop = self._engine, self._stop
        if self.report is not None and engine.progress.passes % REPORT_EVERY == 1:
            self.report(engine)
        if stop is not None and stop.is_set():  # the report may have asked for it
            engine.end_early()
