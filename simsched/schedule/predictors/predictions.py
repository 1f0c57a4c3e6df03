"""`Predictions`: the predicted run times of a run, and their correction when they were too short.

Plans use predictions; limits end jobs (Tsafrir, Etsion & Feitelson 2007). A running job that is still
there at its predicted end gets a longer prediction, by the rule of the predictor. No prediction exceeds the
job's limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.schedule.predictors.predictor import CORRECTIONS, find_predictor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.schedule.job_table import JobTable
    from simsched.schedule.predictors.predictor import Perfect, RecentRuns


class Predictions:
    """The table of jobs that plans use, with predictions in the place of requested durations.

    Attributes
    ----------
    table : `JobTable` whose `durations` are predictions; its `limits` are the requested durations.
    """

    def __init__(self, predictor: RecentRuns | Perfect, table: JobTable) -> None:
        durations = list(table.durations)
        array = table.durations_array.copy()
        # The rows of both are the same lists, so a table with candidates=actual has no predictions.
        self.table = replace(
            table, durations=durations, judged=durations, judged_array=array, limits=table.limits
        )
        object.__setattr__(self.table, "durations_array", array)
        self._predictor = predictor
        self._predicted: dict[int, float] = {}
        """Job that waits or runs → its prediction, in seconds."""
        self._corrections: dict[int, int] = {}
        """Running job → how often its prediction was corrected."""

    def _user(self, job: int) -> int:
        users = self.table.users
        return 0 if users is None else int(users[job])

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
        longer = min(CORRECTIONS[self._predictor.correction](seconds, times), limit)
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


def predictions_of(name: str, table: JobTable, runtimes: Sequence[float]) -> Predictions | None:
    """Return the predictions of a run by the predictor of this name; None for ``limit``.

    `runtimes` are the actual seconds of all jobs, for the predictor ``perfect``.
    """
    maker = find_predictor(name)
    return None if maker is None else Predictions(maker(runtimes), table)
