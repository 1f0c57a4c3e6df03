"""Trials: runs of the log under some settings, and how far their waits are from the recorded ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simsched.errors import RunError
from simsched.report.metrics.agreement import agreement
from simsched.study.calibration.time_blocks import WaitBlocks
from simsched.study.runs.dispatch import FinishedRun, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from simsched.report.metrics.agreement import Agreement
    from simsched.study.calibration.knobs import KnobSetting
    from simsched.study.calibration.time_blocks import TimeSplit
    from simsched.study.runs.workers import Workers
    from simsched.study.spec.run_task import RunTask

    Floats = npt.NDArray[np.float64]

#: Settings of knobs, by the name of the knob.
Choice = tuple[tuple[str, "KnobSetting"], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One run: the settings that differ from the baseline, and its waits against the recorded ones.

    Attributes
    ----------
    choice : knob → setting, in the order in which they were chosen; empty for the baseline.
    options : the options of the run.
    training, held_out : the error by blocks of time; None if the trial is refused.
    agreement : all figures of the held-out jobs.
    never_ran : number of jobs with a recorded start that never ran.
    refused : why the run cannot be compared, such as jobs that never ran; empty if it can.
    key : the name of the run directory.
    """

    choice: Choice
    options: Mapping[str, Any]
    training: WaitBlocks | None = None
    held_out: WaitBlocks | None = None
    agreement: Agreement | None = None
    never_ran: int = 0
    refused: str = ""
    key: str = ""

    @property
    def label(self) -> str:
        """The settings in words."""
        return ", ".join(f"{knob}: {setting.label}" for knob, setting in self.choice) or "as given"

    def error(self) -> float:
        """Return the training error; infinite if the trial is refused."""
        return float("inf") if self.training is None else self.training.error


@dataclass(slots=True)
class Trials:
    """Makes trials on workers, each set of options once.

    Attributes
    ----------
    base : the task of the baseline.
    split : training and held-out time.
    folder : folder of the run directories.
    progress : called with the number of runs that are done, and of those that are known to come.
    made : every trial, in the order in which they were asked for.
    """

    base: RunTask
    split: TimeSplit
    workers: Workers
    folder: Path
    progress: Callable[[int, int], None] | None = None
    made: list[Trial] = field(default_factory=list)
    _known: dict[str, Trial] = field(default_factory=dict)
    _ran: npt.NDArray[np.bool_] | None = None

    def make(self, choices: Sequence[Choice]) -> list[Trial]:
        """Return the trials of some choices, in their order.

        Raises
        ------
        RunError
            If a run fails for another reason than its settings.
        """
        tasks = [self._task(choice) for choice in choices]
        fresh = {task.key: task for task in tasks if task.key not in self._known}
        reasons: dict[str, str] = {}
        for outcome in run_tasks(fresh.values(), self.workers, folder=self.folder):
            finished = isinstance(outcome, FinishedRun)
            reasons[outcome.task.key] = "" if finished else getattr(outcome, "reason", "")
            if self.progress:
                self.progress(len(self.made) + len(reasons), len(self.made) + len(fresh))
        found = []
        # In the order of the choices and not of the ends of runs: results do not depend on the workers.
        for choice, task in zip(choices, tasks, strict=True):
            if task.key not in self._known:
                self._known[task.key] = self._trial(choice, task, reasons[task.key])
                self.made.append(self._known[task.key])
            found.append(self._known[task.key])
        return found

    def _task(self, choice: Choice) -> RunTask:
        options: Mapping[str, Any] = self.base.options
        for _, setting in choice:
            options = setting.applied(options)
        return self.base.changed(options=dict(options))

    def _trial(self, choice: Choice, task: RunTask, reason: str) -> Trial:
        if reason:
            if not choice:
                raise RunError(reason)
            return Trial(choice, task.options, refused=reason, key=task.key)
        from simsched.report.run_views import load_run

        jobs = load_run(self.folder / task.key).jobs
        recorded = jobs["recorded_wait"].notna().to_numpy()
        ran = (jobs["start"].notna() & jobs["end"].notna()).to_numpy() & recorded
        if self._ran is None:
            self._ran = ran
        lacking = int((self._ran & ~ran).sum())
        if lacking:
            never = f"{lacking:,} jobs never run"
            return Trial(choice, task.options, refused=never, key=task.key)
        jobs = jobs[self._ran]
        blocks = self.split.block_of(jobs["submit"].to_numpy(dtype=float))
        training = (blocks >= 0) & (blocks < self.split.training)
        held_out = (blocks >= self.split.training) & (blocks < self.split.training + self.split.held_out)
        return Trial(
            choice,
            task.options,
            _sums(jobs[training], blocks[training], self.split.training),
            _sums(jobs[held_out], blocks[held_out] - self.split.training, self.split.held_out),
            agreement(jobs[held_out]),
            never_ran=int((recorded & ~ran).sum()),
            key=task.key,
        )


def _sums(jobs: pd.DataFrame, blocks: Any, count: int) -> WaitBlocks:
    waits: Floats = (jobs["start"] - jobs["submit"]).to_numpy(dtype=float)
    return WaitBlocks.of(waits, jobs["recorded_wait"].to_numpy(dtype=float), blocks, count)
