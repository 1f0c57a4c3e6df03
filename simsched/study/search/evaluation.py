"""One size or load that was tried, and when its results meet the targets of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from simsched.study.stats import interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.report.metrics.intervals import Interval
    from simsched.study.spec.target import SizingTarget

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
