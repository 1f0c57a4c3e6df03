"""Trials: one machine and load simulated with every seed, and held against the targets.

Seed 0 of a trace is the trace as it is; further seeds are resamples of it (`workload.resample`), or
shaken copies, and of a model each seed is a draw of its own.  Seed *s* is the same demand for every trial
(common random numbers): what is drawn never depends on the machine or on the load.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError, RunError
from simsched.study.runs.cache import INPUTS
from simsched.study.runs.execute import Done, run_tasks
from simsched.study.runs.run_task import options_of
from simsched.study.runs.task import MODEL
from simsched.study.sizing.target import Figure
from simsched.study.stats import interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from simsched.report.metrics.compare import Interval
    from simsched.study.runs.task import Row, Task
    from simsched.study.runs.workers import Workers
    from simsched.study.sizing.target import Target

MAX_SEEDS = 1000
#: the noise of a figure of which there is one value, as a share of the target's bound
GUESS = 0.1
EVERY, MEAN, CONFIDENT = "every", "mean", "confident"
#: what it is to meet a target → in words
CRITERIA = {
    EVERY: "with every seed",
    MEAN: "on average over the seeds",
    CONFIDENT: "with the whole confidence interval of the mean",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One size (or load) and what came of it.

    Attributes
    ----------
    value : the number that was tried.
    figures : target → the value of its figure with each seed, in the order of the seeds; NaN if it
        cannot be computed, infinite if no job of that seed is of the target's query.
    fails : the targets that it does not meet.
    infeasible : jobs that can never run there (of the first seed that has some); with any, there are
        no figures unless that is allowed.
    example : one of them, and why.
    offered : what the jobs (of the first seed) that can run take, in processors times seconds, over
        what the machine has while they are submitted; above 1 the queue grows as long as jobs come.
    keys : the run directories' names, a seed each.
    seconds : CPU or wall seconds that the runs took in all.
    left : further trials that the search expected at least when it made this one; None if not known.
    """

    value: int
    figures: Mapping[Target, tuple[float, ...]]
    fails: tuple[Target, ...]
    infeasible: int = 0
    example: str = ""
    refused: bool = False
    offered: float = math.nan
    keys: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    left: int | None = field(default=None, compare=False)

    @property
    def met(self) -> bool:
        """Whether every target is met and every job can run."""
        return not self.fails and not self.refused

    @property
    def eased(self) -> bool:
        """Whether what a larger machine or less load helps with is met: the condition of the search."""
        return not self.refused and not any(target.eases for target in self.fails)


@dataclass(frozen=True, slots=True)
class Rule:
    """What meeting a target means: the targets, the criterion, the confidence of intervals."""

    targets: tuple[Target, ...]
    criterion: str = EVERY
    confidence: float = 0.95

    def met(self, target: Target, values: tuple[float, ...]) -> bool:
        """Whether the values of all seeds keep a target's bound."""
        if self.criterion == EVERY:
            return all(map(target.met_by, values))
        if any(math.isnan(value) for value in values):
            return False
        found = self.interval(values)
        if self.criterion == MEAN:
            return target.met_by(found.estimate)
        return all(target.met_by(end) for end in (found.low, found.high))

    def interval(self, values: tuple[float, ...]) -> Interval:
        """Return the mean over the seeds with its interval."""
        return interval(values, self.confidence)

    def clear(self, trial: Trial) -> bool:
        """Whether noise is too small to explain the verdict of a trial on the targets that size eases.

        If they are met, each is clear of its bound; else some target that is missed is.
        """
        easing = [target for target in trial.figures if target.eases]
        if trial.eased:
            return all(self._is_clear(target, trial.figures[target]) for target in easing)
        return trial.refused or any(
            self._is_clear(target, trial.figures[target]) for target in easing if target in trial.fails
        )

    def _is_clear(self, target: Target, values: tuple[float, ...]) -> bool:
        """Whether what decides is as far from the bound as the noise, which is the seeds' standard deviation.

        With one seed the noise is not known, and taken as `GUESS` of the bound.
        """
        if not all(map(math.isfinite, values)):
            return True
        noise = float(np.std(values, ddof=1)) if len(values) > 1 else GUESS * target.bound
        return abs(self.deciding(target, values) - target.bound) >= noise

    def deciding(self, target: Target, values: tuple[float, ...]) -> float:
        """Return the value that is held against the bound: the worst, the mean, or an end of its interval."""
        if self.criterion == EVERY:
            return self.worst(target, values)
        found = self.interval(values)
        if self.criterion == MEAN or not math.isfinite(found.low):
            return found.estimate
        return self.worst(target, (found.low, found.high))

    def worst(self, target: Target, values: tuple[float, ...]) -> float:
        """Return the value that is nearest to breaking the bound, or breaks it most."""
        return float(np.max(values) if target.relation[0] == "<" else np.min(values))


class Bench:
    """Where trials are made: tasks from a value, workers to perform them; each value is tried once.

    Parameters
    ----------
    make : value and seed number → task.
    seeds : how many.
    allow_infeasible : whether jobs that can never run are left out instead of failing the trial.
    folder : takes the run directories; None keeps none.
    progress : called after each trial.

    Attributes
    ----------
    left : further trials that the search expects at least, see `Trial`; set by the search.
    """

    def __init__(
        self,
        make: Callable[[int, int], Task],
        rule: Rule,
        seeds: int,
        workers: Workers,
        *,
        allow_infeasible: bool = False,
        folder: Path | None = None,
        progress: Callable[[Trial], None] | None = None,
    ) -> None:
        self.make, self.rule, self.seeds, self.workers = make, rule, seeds, workers
        self.allow_infeasible, self.folder, self.progress = allow_infeasible, folder, progress
        self.trials: dict[int, Trial] = {}
        self.left: int | None = None

    def expect(self, left: int | None) -> None:
        """Note how many further trials the search expects after the next one."""
        self.left = left

    def trial(self, value: int) -> Trial:
        """Return the trial of a value, made now unless it was made before.

        Raises
        ------
        SimschedError
            for what a run raises: an edit that is not possible, an option that does not exist …
        """
        if value not in self.trials:
            self.trials[value] = replace(self._tried(value), left=self.left)
            if self.progress:
                self.progress(self.trials[value])
        return self.trials[value]

    def _tried(self, value: int) -> Trial:
        tasks = [self.make(value, seed) for seed in range(self.seeds)]
        count, example, offered = look(tasks[0])
        if count and not self.allow_infeasible:
            return Trial(value, {}, (), count, example, refused=True, offered=offered)
        rows = self._rows(tasks)
        unfit = next((task for task in tasks[1:] if rows[task.key].counts["infeasible"]), None)
        if unfit is not None and not self.allow_infeasible:  # other draws of a model have other jobs
            count, example, offered = look(unfit)
            return Trial(value, {}, (), count, example, refused=True, offered=offered)
        figures = {t: tuple(_value(t, rows[task.key]) for task in tasks) for t in self.rule.targets}
        fails = tuple(target for target, values in figures.items() if not self.rule.met(target, values))
        seconds = sum(row.seconds for row in rows.values())
        keys = tuple(task.key for task in tasks)
        return Trial(value, figures, fails, count, example, offered=offered, keys=keys, seconds=seconds)

    def _rows(self, tasks: list[Task]) -> dict[str, Row]:
        """Perform the tasks; equal ones once."""
        found: dict[str, Row] = {}
        unique = {task.key: task for task in tasks}
        for outcome in run_tasks(unique.values(), self.workers, folder=self.folder):
            if not isinstance(outcome, Done):
                raise RunError(outcome.reason)
            found[outcome.task.key] = outcome.row
        return found


def _value(target: Target, row: Row) -> float:
    """Return the figure of a target; where no job is of its query, the infinity that breaks no bound."""
    value = row.metrics[str(target.figure)]
    if target.figure.query and math.isnan(value) and not row.metrics[str(count_of(target))]:
        return -math.inf if target.relation[0] == "<" else math.inf
    return value


def count_of(target: Target) -> Figure:
    """Return the figure that counts the jobs of a target's query."""
    return Figure("jobs", "jobs", target.figure.query)


def wanted(targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Return the figures that a run has to give for these targets."""
    found = [str(target.figure) for target in targets]
    found += [str(count_of(target)) for target in targets if target.figure.query]
    return tuple(dict.fromkeys(found))


def look(task: Task) -> tuple[int, str, float]:
    """Return how many jobs of a task can never run on its cluster, one and why, and the offered load.

    The load is processor-seconds of work, that of jobs which can run, over processors times the
    time in which jobs are submitted; NaN where all are submitted at once.

    Raises
    ------
    SimschedError
        for inputs that make no run.
    """
    from simsched.simulation.options.run_config import make_config
    from simsched.simulation.record.recorder import INFEASIBLE
    from simsched.simulation.simulate import engine_of, totals_of
    from simsched.workload.transforms.transforms import offered_work

    config = make_config(**options_of(task))
    with INPUTS.lock:
        cluster, workload = INPUTS.cluster(task.cluster, task.edits), INPUTS.workload(task)
        if not len(workload):
            raise ConfigError("the workload has no job", where=task.workload.name, expected="some jobs")
        _, prepared, workload = engine_of(cluster, workload, config, allocations=False)
    found = {job: why for job, (result, why) in prepared.rejected.items() if result == INFEASIBLE}
    totals = totals_of(cluster)
    room = (totals.get("core") or totals["node"]) * (workload.span[1] - workload.span[0])
    work = offered_work(job for number, job in enumerate(workload.jobs) if number not in found)
    offered = work / room if room else math.nan
    if not found:
        return 0, "", offered
    first = min(found)
    return len(found), f"job {workload.jobs[first].id}: {found[first]}", offered


def seeded(
    base: Task, number: int, block: str | None, steps: tuple[str, ...] = (), *, shake: str | None = None
) -> Task:
    """Return the task of one seed.

    The resampling (in blocks of `block`, or of what suits the workload), or the shaking by up to
    `shake`, comes after the steps that the task has, and `steps` come last: what is drawn does not
    depend on them.
    """
    drawn: tuple[str, ...] = ()
    if number and shake:
        drawn = (f"shake({shake})",)
    elif number and base.workload.kind != MODEL:
        drawn = (f"resample({block})" if block else "resample",)
    return base.changed(seed=base.seed + number, transforms=(*base.transforms, *drawn, *steps))


def check_seeds(seeds: int) -> None:
    """Refuse a number of seeds that is none; ConfigError."""
    if not 1 <= seeds <= MAX_SEEDS:
        raise ConfigError(f"{seeds} seeds", expected=f"1 to {MAX_SEEDS:,}")
