"""The values that a search tried, and how far they support its answer.

Nothing is claimed of sizes and loads that were not tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.study.sizing.evaluation import Evaluation
    from simsched.study.sizing.search import Search


@dataclass(frozen=True, slots=True)
class SearchCoverage:
    """The values that were tried, and how far they support an answer.

    Attributes
    ----------
    tried, met : every value that was tried, and those that meet every target, in ascending order.
    better : values beyond the answer that meet every target: larger loads, or sizes above the limit that
        a target sets.
    worse : values on the safe side of the answer that miss a target: larger sizes, smaller loads.  Values
        that miss a target by necessity (the use of a larger machine is too low) are not among them.
    complete : whether every value was tried that could contradict the answer: every smaller size of
        the range, or every load between today's and the answer.
    """

    tried: tuple[int, ...]
    met: tuple[int, ...]
    better: tuple[int, ...] = ()
    worse: tuple[int, ...] = ()
    complete: bool = False

    @property
    def stable(self) -> bool:
        """Whether no value that was tried contradicts the answer."""
        return not self.better and not self.worse


def size_coverage(
    search: Search, trials: Mapping[int, Evaluation], value: int | None, limit: int | None
) -> SearchCoverage:
    """Return the coverage of a search for a size; `limit` is the largest size that meets every target."""
    tried, met = _tried_and_met(trials)
    if value is None:
        return SearchCoverage(tried, met, complete=_is_whole_range(tried, search))
    worse = tuple(n for n in tried if n > value and not trials[n].eased)
    better = () if limit is None else tuple(n for n in met if n > limit)
    return SearchCoverage(tried, met, better, worse, set(range(search.low, value)) <= set(tried))


def load_coverage(
    search: Search, trials: Mapping[int, Evaluation], value: int | None, today: int
) -> SearchCoverage:
    """Return the coverage of a search for a load."""
    tried, met = _tried_and_met(trials)
    if value is None:
        return SearchCoverage(tried, met, complete=_is_whole_range(tried, search))
    better = tuple(n for n in met if n > value)
    worse = tuple(n for n in tried if n < value and not trials[n].eased)
    between = range(min(value, today), max(value, today) + 1)
    return SearchCoverage(tried, met, better, worse, set(between) <= set(tried))


def _tried_and_met(trials: Mapping[int, Evaluation]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    tried = tuple(sorted(trials))
    return tried, tuple(value for value in tried if trials[value].met)


def _is_whole_range(tried: tuple[int, ...], search: Search) -> bool:
    return len(tried) == search.high - search.low + 1
