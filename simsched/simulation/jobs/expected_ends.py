"""`ExpectedEnds`: the predicted ends of running jobs as events, where short predictions are corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from simsched.schedule.predictors.predictions import Predictions, predictions_of
from simsched.simulation.environment import EARLY_END
from simsched.simulation.listeners import Listener, Way

if TYPE_CHECKING:
    from simsched.schedule.profiles.plan import Plan
    from simsched.simulation.engine_state import RunProgress
    from simsched.simulation.environment import FutureEvents
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.queue_groups import QueueGroups
    from simsched.simulation.record.recorder import Recorder


class RunsJobs(Protocol):
    """The part of an engine that follows running jobs."""

    prepared: Prepared
    config: RunConfig
    plan: Plan
    future: FutureEvents
    progress: RunProgress
    queues: QueueGroups
    recorder: Recorder

    @property
    def now(self) -> float:
        """The simulated time, in seconds."""

    def began(self, job: int) -> float:
        """Return the start of a running job, later by the seconds for which it was suspended."""

    def settle(self) -> None:
        """See that a pass follows."""


class ExpectedEnds(Listener):
    """Follows the jobs of a run for its predictor.

    Attributes
    ----------
    predictions : the predicted run times, and the table of jobs by which plans are made.
    """

    def __init__(self, engine: RunsJobs, predictions: Predictions) -> None:
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


def expected_ends(engine: RunsJobs) -> ExpectedEnds | None:
    """Return the predicted ends of a run; None if plans go by the limits of jobs."""
    prepared = engine.prepared
    found = predictions_of(engine.config.predictor, prepared.table, prepared.runtimes)
    return None if found is None else ExpectedEnds(engine, found)
