"""Runs of a log under some settings, and how far their waits are from the recorded ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched import human
from simsched.errors import ConfigError, RunError
from simsched.report.metrics.agreement import LEAST_WAIT, agreement, log_ratios, ranks_of
from simsched.report.metrics.intervals import DAY, Interval
from simsched.study.runs.dispatch import FinishedRun, run_tasks
from simsched.study.search.knobs import WEEK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt
    import pandas as pd

    from simsched.arrays import Floats, Integers
    from simsched.report.metrics.agreement import Agreement
    from simsched.study.runs.workers import Workers
    from simsched.study.search.knobs import KnobSetting
    from simsched.study.spec.run_task import RunTask

#: Settings of knobs, by the name of the knob.
Choice = tuple[tuple[str, "KnobSetting"], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One run: the settings that differ from the baseline, and its waits against the recorded ones.

    Attributes
    ----------
    choice : knob → setting, in the order in which they were chosen; empty for the baseline.
    options : the options of the run.
    training, held_out : the error by blocks of time; unknown if the trial is refused.
    agreement : all figures of the held-out jobs.
    never_ran : number of jobs with a recorded start that never ran.
    refused : why the run cannot be compared, such as jobs that never ran; empty if it can.
    key : the name of the run directory.
    """

    choice: Choice
    options: Mapping[str, Any]
    training: WaitBlocks
    held_out: WaitBlocks
    agreement: Agreement | None = None
    never_ran: int = 0
    refused: str = ""
    key: str = ""

    @property
    def settings(self) -> dict[str, str]:
        """Knob → setting."""
        return {knob: setting.label for knob, setting in self.choice}

    @property
    def label(self) -> str:
        """The settings in words."""
        return ", ".join(f"{knob}: {setting}" for knob, setting in self.settings.items()) or "as given"


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
        from simsched.report.run_views import load_run

        unknown = WaitBlocks(np.full((1, 9), np.nan))
        refused = Trial(choice, task.options, unknown, unknown, refused=reason, key=task.key)
        if reason and not choice:
            raise RunError(reason)
        if reason:
            return refused
        jobs = load_run(self.folder / task.key).jobs
        recorded = jobs["recorded_wait"].notna().to_numpy()
        ran = (jobs["start"].notna() & jobs["end"].notna()).to_numpy() & recorded
        if self._ran is None:
            self._ran = ran
        lacking = int((self._ran & ~ran).sum())
        if lacking:
            return replace(refused, refused=f"{lacking:,} jobs never run")
        jobs = jobs[self._ran]
        blocks = self.split.block_of(jobs["submit"].to_numpy(dtype=float))

        def part(first: int, count: int) -> tuple[pd.DataFrame, WaitBlocks]:
            inside = (blocks >= first) & (blocks < first + count)
            found = jobs[inside]
            waits = (found["start"] - found["submit"]).to_numpy(dtype=float)
            recorded = found["recorded_wait"].to_numpy(dtype=float)
            return found, WaitBlocks.of(waits, recorded, blocks[inside] - first, count)

        _, training = part(0, self.split.training)
        last, held_out = part(self.split.training, self.split.held_out)
        never = int((recorded & ~ran).sum())
        return Trial(choice, task.options, training, held_out, agreement(last), never, key=task.key)


# --- blocks of time of a log, weeks or days: those that choose settings and those that test, and their errors


#: least number of training and of held-out blocks
LEAST_TRAINING, LEAST_HELD_OUT = 4, 2
#: a log of fewer weeks is divided into days
FEWEST_WEEKS = 10
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Blocks of time from the first submission on.

    Attributes
    ----------
    begin : the first submission (s), and `length` of a block (s): a week or a day.
    warm_up, training, held_out : numbers of blocks, which follow each other in this order.  The machine of
        a simulation is empty at first and that of the log was not, so the first block is left out.
    """

    begin: float
    length: float
    warm_up: int
    training: int
    held_out: int

    @classmethod
    def of(cls, submits: Floats, held_out: float) -> TimeSplit:
        """Divide the time of submissions; `held_out` is the share of the blocks that test.

        Raises
        ------
        ConfigError
            If the log is too short to learn from, or the share leaves too few blocks.
        """
        begin, end = float(submits.min()), float(submits.max())
        length = WEEK if end - begin >= FEWEST_WEEKS * WEEK else DAY
        # A last block that is not whole would weigh like a whole one in the bootstrap.
        count = max(1, int((end - begin) // length)) - 1
        test = ceil(count * held_out)
        if test < LEAST_HELD_OUT or count - test < LEAST_TRAINING:
            need = LEAST_TRAINING + LEAST_HELD_OUT + 1
            raise ConfigError(
                f"{human.seconds(end - begin)} of submissions, with {human.share(held_out)} of them held "
                "out, are too short to learn from",
                where="calibrate",
                expected=f"at least {need} days, of which {LEAST_TRAINING} are for training and "
                f"{LEAST_HELD_OUT} are held out",
            )
        return cls(begin, length, 1, count - test, test)

    @property
    def unit(self) -> str:
        """The name of a block: ``week`` or ``day``."""
        return "week" if self.length == WEEK else "day"

    def block_of(self, submits: Floats) -> Integers:
        """Return the block of each submission, counted from the first training block; less is warm-up."""
        blocks: Integers = ((submits - self.begin) // self.length).astype(np.int64) - self.warm_up
        return blocks

    def training_end(self) -> float:
        """Return the time (s) at which the held-out blocks begin."""
        return self.begin + (self.warm_up + self.training) * self.length


@dataclass(frozen=True, slots=True, eq=False)
class WaitBlocks:
    """Sums over the jobs of each block, from which the error of any choice of blocks follows.

    Ranks are those among all jobs of the blocks, in resamples too, so that resamples cost no sorting.
    """

    sums: Floats

    @classmethod
    def of(cls, found: Floats, real: Floats, blocks: Integers, count: int) -> WaitBlocks:
        """Return the sums of jobs with simulated and recorded waits (s); `blocks` are below `count`."""
        a, b = ranks_of(found), ranks_of(real)
        columns = (np.ones(len(found)), log_ratios(found, real), found, real, a, b, a * a, b * b, a * b)
        return cls(np.stack([np.bincount(blocks, column, count) for column in columns], axis=1))

    @property
    def error(self) -> float:
        """The error of all jobs."""
        return float(self.errors(np.ones((1, len(self.sums))))[0])

    def errors(self, weights: Floats) -> Floats:
        """Return the error for each row of weights (resamples × blocks)."""
        n, logs, found, real, a, b, aa, bb, ab = (weights @ self.sums).T
        n = np.maximum(n, 1)
        means = np.abs(np.log(np.maximum(found / n, LEAST_WAIT) / np.maximum(real / n, LEAST_WAIT)))
        spread = np.maximum(aa / n - (a / n) ** 2, 0) * np.maximum(bb / n - (b / n) ** 2, 0)
        covariance = ab / n - (a / n) * (b / n)
        rank = np.divide(covariance, np.sqrt(spread), out=np.zeros_like(n), where=spread > 0)
        errors: Floats = (logs / n + (1 - rank) + means) / 3
        return errors


class Resampler:
    """Draws blocks with replacement, the same for every run."""

    def __init__(self, blocks: int, rng: np.random.Generator, confidence: float) -> None:
        draws = rng.integers(0, blocks, (RESAMPLES, blocks)) if blocks else np.zeros((RESAMPLES, 0), np.int64)
        self.weights = np.stack([np.bincount(row, minlength=blocks) for row in draws]).astype(np.float64)
        self._tail = 50 * (1 - confidence)

    def error(self, run: WaitBlocks, before: WaitBlocks | None = None) -> Interval:
        """Return the error of a run with its interval, or by how much it is smaller than `before`."""
        estimate, draws = run.error, run.errors(self.weights)
        if before is not None:
            estimate, draws = before.error - estimate, before.errors(self.weights) - draws
        low, high = np.percentile(draws, [self._tail, 100 - self._tail])
        return Interval(estimate, float(low), float(high))
