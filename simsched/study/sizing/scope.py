"""What a search looked at, and what it may claim: nothing of sizes and loads that were not tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.study.sizing.answer import Answer, Axis


@dataclass(frozen=True, slots=True)
class Scope:
    """The values that were tried, and how far they bear an answer out.

    Attributes
    ----------
    tried, met : every value that was tried, and those that meet every target, in ascending order.
    better : beyond the answer and met all the same: larger loads, or sizes above the limit that a
        target sets.
    worse : on the answer's safe side and failing all the same: larger sizes, smaller loads.  Values
        that fail a target as they have to (too small a use of a larger machine) are not among them.
    complete : whether each value was tried that could contradict the answer: every smaller size of
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


def size_scope(answer: Answer) -> Scope:
    """Return what a search for a size looked at."""
    tried, met = _seen(answer)
    value, low, high = answer.value, answer.search.low, answer.search.high
    if value is None:
        return Scope(tried, met, complete=len(tried) == high - low + 1)
    worse = [n for n in tried if n > value and not answer.trials[n].eased]
    again = [] if answer.limit is None else [n for n in met if n > answer.limit]
    return Scope(tried, met, tuple(again), tuple(worse), set(range(low, value)) <= set(tried))


def load_scope(answer: Answer) -> Scope:
    """Return what a search for a load looked at."""
    tried, met = _seen(answer)
    value, today = answer.value, answer.today
    if value is None:
        return Scope(tried, met, complete=len(tried) == answer.search.high - answer.search.low + 1)
    better = [n for n in met if n > value]
    worse = [n for n in tried if n < value and not answer.trials[n].eased]
    between = range(min(value, today), max(value, today) + 1)
    return Scope(tried, met, tuple(better), tuple(worse), set(between) <= set(tried))


def _seen(answer: Answer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    tried = tuple(sorted(answer.trials))
    return tried, tuple(value for value in tried if answer.trials[value].met)


def listed(axis: Axis, values: Iterable[int]) -> str:
    """Return values as text, neighbours as ranges; they are given in ascending order.

    >>> from simsched.study.sizing.growth import Growth
    >>> listed(Growth("nodes", "nodes", 4, ()), [100, 112, 117, 118, 119, 1340])
    '100, 112, 117 to 119 and 1,340'
    """
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    parts = [part for run in runs for part in _run(axis, run)]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def _run(axis: Axis, run: list[int]) -> list[str]:
    ends = [f"{axis.number(value):,.9g}" for value in run]
    return ends if len(run) < 3 else [f"{ends[0]} to {ends[-1]}"]
