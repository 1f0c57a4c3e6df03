"""`calibrate`: the settings under which simulated waits are nearest to those of a log.

Each setting is tried by itself. Then the one that helps most is kept, and the others are tried beside it,
until none helps. A rule of a site holds all the time, so a setting has to help in each third of the training
time; without this condition a setting is chosen that fits one part of the log and harms the rest. A setting
that does much harm by itself is not tried beside others. Two rules may help only together, so a step of some
size need not be beyond chance, and an earlier setting may be replaced; all steps together must be beyond
chance, or the last ones are undone. If none is left, the search begins again with steps that are beyond
chance by themselves. Only the error of training blocks chooses; that of the held-out blocks, which come
later, is measured for every run and decides nothing.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched import human
from simsched.arguments import options_of
from simsched.errors import ConfigError, RunError
from simsched.files import scratch_folder
from simsched.report.metrics.agreement import LEAST_WAIT, agreement, log_ratios, ranks_of
from simsched.report.metrics.intervals import DAY, Interval
from simsched.simulation.options.run_config import RunConfig, in_use
from simsched.simulation.options.run_rules import PolicyRules
from simsched.study.runs.dispatch import FinishedRun, run_tasks
from simsched.study.runs.input_cache import INPUTS
from simsched.study.runs.sweep_plan import warn_of_rules
from simsched.study.search.calibration import LEAST_GAIN, PARTS, Calibration, Effect
from simsched.study.search.knobs import KNOBS, LEFT_OUT, WEEK, LogFacts, knobs_named
from simsched.study.search.search_answer import about_of
from simsched.study.search.search_request import CalibrationRequest, opened
from simsched.study.spec.run_task import MODEL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt
    import pandas as pd

    from simsched.arrays import Floats, Integers
    from simsched.graph.cluster import ClusterLike
    from simsched.report.metrics.agreement import Agreement
    from simsched.study.runs.workers import Workers
    from simsched.study.search.knobs import Knob, KnobSetting
    from simsched.study.spec.run_task import RunTask
    from simsched.workload.load import WorkloadLike

#: a setting that takes this share of the error away may be kept without being beyond chance
LARGE_GAIN = 0.05


@options_of(CalibrationRequest, PolicyRules, declared=RunConfig)
def calibrate(cluster: ClusterLike, workload: WorkloadLike, **options: Any) -> Calibration:
    """Search for the settings under which simulated waits are nearest to the recorded ones.

    Parameters
    ----------
    cluster, workload : as for `simulate`; the workload is a log with start times.  A site brings its queues
        and rules.
    options : the fields of `CalibrationRequest`, and the rules of the baseline, as for `simulate`.

    Returns
    -------
    Calibration
        true if the held-out error is smaller than that of the baseline beyond chance; ``.config`` is the
        configuration to use.

    Raises
    ------
    SimschedError
        for an option or an input that is not valid, and for a log without starts or too short to learn from.
    """
    request = CalibrationRequest.of(cluster, workload, options)
    knobs = knobs_named(request.knobs)
    given = request.base()
    rules = {key: rule for key, rule in given.options.items() if key != "calibration"}
    base = given.changed(options=in_use(rules))
    if base.options.get("queue-policy") == "recorded":
        raise ConfigError(
            "the queue policy 'recorded' plays the log and leaves nothing to calibrate",
            where="--queue-policy",
            expected="the policy of a scheduler",
        )
    jobs = () if base.workload.kind == MODEL else INPUTS.workload(base).jobs
    if all(job.wait is None for job in jobs):
        raise ConfigError(
            "the workload has no recorded starts to compare with",
            where=base.workload.name,
            expected="a log with start times, such as SWF or sacct with Start",
        )
    warn_of_rules([base])
    split = TimeSplit.of(np.array([job.submit for job in jobs], dtype=float), request.held_out)
    training = [job for job in jobs if job.wait is not None and job.submit < split.training_end()]
    facts = LogFacts.of(INPUTS.cluster(base.cluster), jobs, training)
    kept = scratch_folder("simsched-calibrate-") if request.runs is None else nullcontext(request.runs)
    with kept as folder, opened(request, base) as workers:
        trials = Trials(base, split, workers, folder, request.progress)
        return _Search(trials, split, facts, knobs, request).run(about_of(base, **request.use_of(base)))


class _Search:
    """The state of one calibration."""

    def __init__(
        self,
        trials: Trials,
        split: TimeSplit,
        facts: LogFacts,
        knobs: Sequence[Knob],
        request: CalibrationRequest,
    ) -> None:
        self.trials, self.split, self.request = trials, split, request
        self.settings: dict[str, Sequence[KnobSetting]] = {}
        self.untried: dict[str, str] = {knob.name: LEFT_OUT for knob in KNOBS if knob not in knobs}
        for knob in knobs:
            found = knob.settings(facts, trials.base.options)
            if isinstance(found, str):
                self.untried[knob.name] = found
            else:
                self.settings[knob.name] = found
        rng = np.random.default_rng([request.seed, 19])
        self.training = Resampler(split.training, rng, request.confidence)
        self.held_out = Resampler(split.held_out, rng, request.confidence)

    def run(self, about: Any) -> Calibration:
        (base,) = self.trials.make([()])
        singles = self.trials.make(self._beside(()))
        alone = tuple(self.effect(trial, base) for trial in singles if not trial.refused)
        self._keep_promising(alone, base)
        steps = self._together(base) or self._together(base, certain=True)
        final = steps[-1].trial if steps else base
        return Calibration(
            self.split,
            self.request.confidence,
            base,
            final,
            self.effect(base),
            self.effect(final),
            self.effect(final, base),
            alone,
            tuple(steps),
            self._left_out(final),
            self.untried,
            tuple(trial for trial in self.trials.made if trial.refused),
            len(self.trials.made),
            about,
        )

    def _beside(self, choice: Choice) -> list[Choice]:
        """Return the choice with each setting of each knob that it does not have."""
        chosen = {knob for knob, _ in choice}
        return [
            (*choice, (knob, setting))
            for knob, settings in self.settings.items()
            if knob not in chosen
            for setting in settings
        ]

    def _instead(self, choice: Choice) -> list[Choice]:
        """Return the choice with another setting of each knob in it but the last, which was just chosen."""
        return [
            (*(part for part in choice if part[0] != knob), (knob, other))
            for knob, setting in choice[:-1]
            for other in self.settings[knob]
            if other is not setting
        ]

    def _keep_promising(self, alone: Sequence[Effect], base: Trial) -> None:
        """Keep the settings that are worth a try beside others: those that do little harm by themselves.

        Rounds would be twice as long with the others, and a queue that one setting makes too long is slow.
        """
        least = -LARGE_GAIN * base.training.error
        best = sorted(alone, key=lambda effect: -effect.training.estimate)  # stable: ties keep their order
        good = [effect.trial.choice[0] for effect in best if effect.training.estimate >= least]
        for knob, settings in self.settings.items():
            kept = [setting for name, setting in good if name == knob][: self.request.beside]
            self.settings[knob] = [setting for setting in settings if setting in kept]

    def _together(self, base: Trial, *, certain: bool = False) -> list[Effect]:
        """Keep the setting that helps most in training, and go on beside it until none helps enough.

        If `certain`, each step has to be beyond chance.
        """
        steps: list[Effect] = []
        now = base
        while True:
            tried = self.trials.make([*self._beside(now.choice), *self._instead(now.choice)])
            helping = [self.effect(trial, now) for trial in tried if self._helps_throughout(now, trial)]
            if certain:
                helping = [effect for effect in helping if effect.training.low > 0]
            if not helping:
                break
            effect = max(helping, key=lambda effect: effect.training.estimate)
            share = effect.training.estimate / max(now.training.error, 1e-12)
            if share < LEAST_GAIN or (share < LARGE_GAIN and effect.training.low <= 0):
                break
            steps.append(effect)
            now = effect.trial
        while steps and self.effect(steps[-1].trial, base).training.low <= 0:
            steps.pop()
        return steps

    def _helps_throughout(self, before: Trial, after: Trial) -> bool:
        """Whether the error of each part of the training time is smaller after than before."""
        if after.refused:
            return False
        number = np.arange(self.split.training)
        parts = [number * PARTS // self.split.training == part for part in range(PARTS)]
        weights = np.stack(parts).astype(np.float64)
        return bool((before.training.errors(weights) > after.training.errors(weights)).all())

    def _left_out(self, final: Trial) -> dict[str, Effect]:
        """Return what leaving out each knob of the final choice does to its error."""
        if len(final.choice) < 2:
            return {}
        less = [tuple(part for part in final.choice if part is not gone) for gone in final.choice]
        found = zip(final.choice, self.trials.make(less), strict=True)
        return {gone[0]: self.effect(trial, final) for gone, trial in found if not trial.refused}

    def effect(self, after: Trial, before: Trial | None = None) -> Effect:
        """Return the error of a trial, or by how much it is smaller than `before`."""
        less = (None, None) if before is None else (before.training, before.held_out)
        return Effect(
            after, self.training.error(after.training, less[0]), self.held_out.error(after.held_out, less[1])
        )


# --- trials: runs of the log under some settings, and how far their waits are from the recorded ones


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
