"""The result of a search for a size or a load, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simsched.study.sizing.search_coverage import SearchCoverage, load_coverage, size_coverage
from simsched.study.stats import paired_difference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.study.sizing.evaluation import AcceptanceRule, Evaluation
    from simsched.study.sizing.search import Search
    from simsched.study.sizing.search_axis import SearchAxis
    from simsched.study.sizing.target import SizingTarget
    from simsched.study.stats import PairedDifference

SIZE, HEADROOM = "size", "headroom"


@dataclass(frozen=True, slots=True)
class SearchSeeds:
    """The seeds of a search: their number, the first, and the length of the blocks of resampled traces.

    `block` (seconds) is None where nothing is resampled: with one seed, a model, a burst (all jobs are
    submitted at one instant, so that there is nothing to resample), or shaken copies, whose submissions
    are moved by up to `shake` seconds.  `unit` is ``users`` or ``sessions`` where these are resampled in
    place of blocks.
    """

    count: int
    first: int
    block: float | None = None
    burst: bool = False
    shake: float | None = None
    unit: str | None = None


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    Attributes
    ----------
    question : ``size`` or ``headroom``.
    value : the place of the answer on the axis; None if there is no answer in the range.
    beyond : the neighbour of the answer that was tried and misses a target: one size smaller, or one step
        more load.
    limit : the largest size that meets all targets, if some target sets one; else None.
    search : the range and every probe of the search.
    trials : value → its evaluation, in the order in which they were made.
    today : the place of today's size or load on the axis.
    about : names and digests of the inputs, and how they were run.
    """

    question: str
    axis: SearchAxis
    rule: AcceptanceRule
    seeds: SearchSeeds
    value: int | None
    beyond: int | None
    limit: int | None
    search: Search
    trials: Mapping[int, Evaluation]
    today: int
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def number(self) -> float | None:
        """The answer in units of the axis (nodes, multiples of the load); None without an answer."""
        return None if self.value is None else self.axis.number(self.value)

    @property
    def found(self) -> bool:
        """Whether there is an answer; for `headroom`, whether today's load meets every target."""
        return self.value is not None and (self.question == SIZE or self.trials[self.today].met)

    def __bool__(self) -> bool:
        return self.found

    @cached_property
    def coverage(self) -> SearchCoverage:
        """The values that were tried, and how far they support the answer."""
        if self.question == SIZE:
            return size_coverage(self.search, self.trials, self.value, self.limit)
        return load_coverage(self.search, self.trials, self.value, self.today)

    @property
    def chosen(self) -> Evaluation | None:
        """The evaluation of the answer."""
        return None if self.value is None else self.trials[self.value]

    @property
    def differences(self) -> dict[SizingTarget, PairedDifference]:
        """Target → its figure at the answer less that of the neighbour, paired by seed."""
        here = self.chosen
        there = None if self.beyond is None else self.trials.get(self.beyond)
        if here is None or there is None:
            return {}
        return {
            target: paired_difference(there.figures[target], values, self.rule.confidence)
            for target, values in here.figures.items()
            if target in there.figures
        }
