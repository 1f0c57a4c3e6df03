"""Evaluations: one machine and load simulated with every seed and compared with the targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import ConfigError
from simsched.study.runs.dispatch import finished_runs
from simsched.study.runs.input_cache import INPUTS
from simsched.study.runs.single_run import options_of
from simsched.study.search.seeds import seeded
from simsched.study.search.threshold import Scan, smallest
from simsched.study.spec.target import Figure
from simsched.study.stats import interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.report.metrics.intervals import Interval
    from simsched.study.runs.workers import Workers
    from simsched.study.search.search_request import SizingRequest
    from simsched.study.search.seeds import Seeds
    from simsched.study.search.threshold import Search
    from simsched.study.spec.run_task import RunTask
    from simsched.study.spec.target import SizingTarget

Vary = Callable[[int], tuple[tuple[str, ...], dict[str, Any]]]
#: the noise that is assumed with one seed, as a share of the target's bound
ASSUMED_NOISE = 0.1
EVERY, MEAN, CONFIDENT = "every", "mean", "confident"
#: criterion by which a target is met → the same in words
CRITERIA = {
    EVERY: "with every seed",
    MEAN: "on average over the seeds",
    CONFIDENT: "with the whole confidence interval of the mean",
}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One size (or load) and its results.

    Attributes
    ----------
    value : the number on the axis of the search.
    figures : target → the value of its figure with each seed, in the order of the seeds; NaN if it
        cannot be computed, infinite if no job of that seed matches the target's query.
    fails : the targets that it misses.
    infeasible : number of jobs that can never run there (of the first seed that has some); with any,
        there are no figures unless such jobs are allowed.
    example : one of these jobs, with the reason.
    refused : whether the evaluation ended because of such jobs.
    offered : offered load of the first seed: processor-seconds of the jobs that can run over those of the
        machine while jobs are submitted; above 1 the queue grows for that long.
    keys : names of the run directories, one per seed.
    seconds : seconds that all runs took together.
    left : least number of further evaluations that the search expected at this one; None if unknown.
    """

    value: int
    figures: Mapping[SizingTarget, tuple[float, ...]]
    fails: tuple[SizingTarget, ...]
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
        """Whether the targets that a larger machine or less load helps are met, as the search requires."""
        return not self.refused and not any(target.eases for target in self.fails)


@dataclass(frozen=True, slots=True)
class AcceptanceRule:
    """How targets are met: the targets, the criterion, the confidence of intervals."""

    targets: tuple[SizingTarget, ...]
    criterion: str = EVERY
    confidence: float = 0.95

    def met(self, target: SizingTarget, values: tuple[float, ...]) -> bool:
        """Whether the values of all seeds keep a target's bound."""
        if all(map(math.isinf, values)):  # no seed has a job that matches the query
            return True
        if self.criterion != EVERY and any(map(math.isnan, values)):
            return False
        if self.criterion == CONFIDENT and not math.isfinite(self.interval(values).low):
            return False
        return target.met_by(self.deciding(target, values))

    def interval(self, values: tuple[float, ...]) -> Interval:
        """Return the mean over the seeds with its interval."""
        return interval(values, self.confidence)

    def clear(self, trial: Evaluation) -> bool:
        """Whether the verdict on the targets that size helps is clearer than noise.

        If all are met, each of them is clear of its bound; else one of those missed is.
        """
        verdicts = {t: self._is_clear(t, values) for t, values in trial.figures.items() if t.eases}
        if trial.eased:
            return all(verdicts.values())
        return trial.refused or any(clear for target, clear in verdicts.items() if target in trial.fails)

    def _is_clear(self, target: SizingTarget, values: tuple[float, ...]) -> bool:
        """Whether the deciding value is a standard deviation of the seeds away from the bound.

        With one seed the deviation is unknown and assumed to be `ASSUMED_NOISE` of the bound.
        """
        if not all(map(math.isfinite, values)):
            return True
        noise = float(np.std(values, ddof=1)) if len(values) > 1 else ASSUMED_NOISE * target.bound
        return abs(self.deciding(target, values) - target.bound) >= noise

    def deciding(self, target: SizingTarget, values: tuple[float, ...]) -> float:
        """Return the value that is compared with the bound: the worst, the mean, or an interval's end."""
        if self.criterion == EVERY:
            return self.worst(target, values)
        found = self.interval(values)
        if self.criterion == MEAN or not math.isfinite(found.low):
            return found.estimate
        return self.worst(target, (found.low, found.high))

    def worst(self, target: SizingTarget, values: tuple[float, ...]) -> float:
        """Return the value that is nearest to the bound, or misses it most."""
        return float(np.max(values) if target.relation[0] == "<" else np.min(values))


class Evaluator:
    """Evaluates the values of a request: makes their tasks and performs them on workers, each value once.

    Parameters
    ----------
    base : the task of today's machine and load.
    seeds : the seeds with which each value is simulated.
    vary : value → the last steps of the workload, and changes of the task.

    Attributes
    ----------
    trials : value → its evaluation, in the order in which they were made.
    left : number of evaluations that the search expects after the next one; None if unknown.
    """

    def __init__(
        self,
        request: SizingRequest,
        base: RunTask,
        seeds: Seeds,
        workers: Workers,
        vary: Vary,
    ) -> None:
        self.request, self.base, self.seeds, self.workers, self.vary = request, base, seeds, workers, vary
        self.rule = AcceptanceRule(request.targets, request.meet, request.confidence)
        self.trials: dict[int, Evaluation] = {}
        self.left: int | None = None

    def smallest(self, condition: Callable[[Evaluation], bool], low: int, high: int, **more: Any) -> Search:
        """Search for the smallest value whose evaluation meets a condition, as `threshold.smallest`.

        Its neighbourhood is tried as far as the request says, or as the noise requires.
        """

        def expect(left: int | None) -> None:
            self.left = left

        scan = Scan.of(self.request.checks, lambda value: self.rule.clear(self.evaluate(value)))
        given = {"scan": scan, "expect": expect, **more}
        return smallest(lambda value: condition(self.evaluate(value)), low, high, **given)

    def evaluate(self, value: int) -> Evaluation:
        """Return the evaluation of a value; it is made at the first call.

        Raises
        ------
        SimschedError
            for an error of a run: an edit that is not possible, an option that does not exist …
        """
        if value not in self.trials:
            self.trials[value] = replace(self._tried(value), left=self.left)
            if self.request.progress:
                self.request.progress(self.trials[value])
        return self.trials[value]

    def _tried(self, value: int) -> Evaluation:
        steps, changes = self.vary(value)
        tasks = [
            seeded(self.base, seed, self.seeds.step, *steps).changed(**changes)
            for seed in range(self.seeds.count)
        ]
        # Jobs that can never run are found without a simulation, so look for them first.
        count, example, offered = feasibility_of(tasks[0])
        if count and not self.request.allow_infeasible:
            return Evaluation(value, {}, (), count, example, refused=True, offered=offered)
        done = finished_runs(tasks, self.workers, self.request.runs)
        unfit = next((task for task in tasks[1:] if done[task.key].row.counts["infeasible"]), None)
        if unfit is not None and not self.request.allow_infeasible:  # each draw of a model has other jobs
            count, example, offered = feasibility_of(unfit)
            return Evaluation(value, {}, (), count, example, refused=True, offered=offered)
        metrics = [done[task.key].row.metrics for task in tasks]
        figures = {
            target: tuple(_value(target, of_run) for of_run in metrics) for target in self.rule.targets
        }
        fails = tuple(target for target, values in figures.items() if not self.rule.met(target, values))
        seconds = sum(run.seconds for run in done.values())
        keys = tuple(task.key for task in tasks)
        return Evaluation(value, figures, fails, count, example, offered=offered, keys=keys, seconds=seconds)


def _value(target: SizingTarget, metrics: Mapping[str, float]) -> float:
    """Return the figure of a target; if no job matches its query, the infinity that meets any bound."""
    value = metrics[str(target.figure)]
    if target.figure.query and math.isnan(value) and not metrics[str(count_of(target))]:
        return -math.inf if target.relation[0] == "<" else math.inf
    return value


def count_of(target: SizingTarget) -> Figure:
    """Return the figure that counts the jobs that match a target's query."""
    return Figure("jobs", "jobs", target.figure.query)


def wanted(targets: tuple[SizingTarget, ...]) -> tuple[str, ...]:
    """Return the names of the figures that a run has to measure for these targets."""
    found = [str(target.figure) for target in targets]
    found += [str(count_of(target)) for target in targets if target.figure.query]
    return tuple(dict.fromkeys(found))


def feasibility_of(task: RunTask) -> tuple[int, str, float]:
    """Return the number of jobs that can never run, one of them with the reason, and the offered load.

    The offered load is the processor-seconds of the jobs that can run over those of the machine
    while jobs are submitted; NaN if all jobs are submitted at once.

    Raises
    ------
    SimschedError
        for inputs that cannot be simulated.
    """
    from simsched.simulation.options.run_config import make_config
    from simsched.simulation.record.recorder import INFEASIBLE
    from simsched.simulation.simulate import engine_of, totals_of
    from simsched.workload.transforms.transforms import offered_work

    config = make_config(**options_of(task))
    with INPUTS.lock:
        cluster, workload = INPUTS.cluster(task.cluster, task.edits), INPUTS.workload(task)
        if not len(workload):
            raise ConfigError(
                "the workload has no jobs", where=task.workload.name, expected="at least one job"
            )
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
