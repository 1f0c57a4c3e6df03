"""`Predictions`: the predicted run times of a run, and their correction when they were too short.

Plans use predictions; limits end jobs (Tsafrir, Etsion & Feitelson 2007). A running job that is still
there at its predicted end gets a longer prediction, by the rule of the predictor. No prediction exceeds the
job's limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.schedule.predictors.predictor import CORRECTIONS, STEPS_RULE, CheckedPredictor, find_predictor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.schedule.job_table import JobTable
    from simsched.schedule.predictors.predictor import RunTimePredictor


class Predictions:
    """The table of jobs that plans use, with predictions in the place of requested durations.

    Attributes
    ----------
    table : `JobTable` whose `durations` are predictions; its `limits` are the requested durations.
    """

    def __init__(self, predictor: RunTimePredictor, table: JobTable) -> None:
        self.table = table.with_predictions()
        self._predictor = predictor
        self._longer = CORRECTIONS[getattr(predictor, "correction", STEPS_RULE)]
        if isinstance(predictor, CheckedPredictor):
            predictor.begin(self.table)
        self._predicted: dict[int, float] = {}
        """Job that waits or runs → its prediction, in seconds."""
        self._corrections: dict[int, int] = {}
        """Running job → how often its prediction was corrected."""

    def _user(self, job: int) -> int:
        return int(self.table.users[job])

    def change_limit(self, job: int, *, runs: bool) -> None:
        """Note that a job has another limit: one that waits is predicted again, one that runs ends by it."""
        limit = self.table.limits[job]
        if job not in self._predicted:
            self._enter(job, limit)
        elif runs:
            self._predicted[job] = seconds = min(self._predicted[job], limit)
            self._enter(job, seconds)
        else:
            self.expect(job)

    def expect(self, job: int) -> None:
        """Predict the run time of a job that begins to wait."""
        found, limit = self._predictor.predict(job, self._user(job)), self.table.limits[job]
        seconds = limit if found is None else min(max(found, 1), limit)
        self._predicted[job] = seconds
        self._enter(job, seconds)

    def _enter(self, job: int, seconds: float) -> None:
        self.table.durations[job] = self.table.durations_array[job] = seconds

    def learn(self, job: int, seconds: float) -> None:
        """Note that a job ended by itself, or at its limit, after some seconds."""
        self._predictor.learn(self._user(job), seconds)
        self.forget(job)

    def forget(self, job: int) -> None:
        """Forget the prediction of a job that does not run any more."""
        self._predicted.pop(job, None)
        self._corrections.pop(job, None)

    def correct(self, job: int) -> float | None:
        """Return a longer prediction (seconds) for a job that runs beyond the last one; None at its limit."""
        limit, seconds = self.table.limits[job], self._predicted[job]
        if seconds >= limit:
            return None
        times = self._corrections.get(job, 0)
        self._corrections[job] = times + 1
        longer = min(self._longer(seconds, times), limit)
        self._predicted[job] = longer
        return longer

    def state(self) -> dict[str, Any]:
        """Return what has changed since the beginning of the run."""
        return {
            "predictor": self._predictor.state(),
            "predicted": self._predicted,
            "first": {job: self.table.durations[job] for job in self._predicted},
            "corrections": self._corrections,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal run."""
        self._predictor.restore(state["predictor"])
        self._predicted = dict(state["predicted"])
        self._corrections = dict(state["corrections"])
        for job, seconds in state["first"].items():
            self._enter(job, seconds)


def predictions_of(
    name: str | RunTimePredictor, table: JobTable, runtimes: Sequence[float]
) -> Predictions | None:
    """Return the predictions of a run by a predictor, by name or as an object; None for ``limit``.

    `runtimes` are the actual seconds of all jobs, for the predictor ``perfect``.
    """
    maker = find_predictor(name)
    return None if maker is None else Predictions(maker(runtimes), table)
