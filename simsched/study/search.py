"""The smallest whole number that meets a condition: an exponential bracket, then halving.

Conditions of simulated machines are *nearly* monotone: more nodes help, but every backfilling
schedule is a different one, and a node more can by chance be worse.  So the search promises what
it can keep: the answer was probed and meets, the number below it was probed and does not (or is
out of range), and whatever else was probed and speaks against a clean threshold is in the trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

START, BRACKET, HALVING, CHECK = "start", "bracket", "halving", "check"
#: numbers on either side of the answer and its neighbour that are probed as well
CHECKS = 1


@dataclass(frozen=True, slots=True)
class Probe:
    """One number that was asked for, whether it meets, and which part of the search asked."""

    value: int
    met: bool
    why: str


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found.

    Attributes
    ----------
    low, high : the range that was searched, both ends in it.
    answer : the number that meets while the one below it does not; None if none that was probed meets.
    probes : every probe, in the order in which they were made; each number once.
    """

    low: int
    high: int
    answer: int | None
    probes: tuple[Probe, ...]

    @property
    def below_fails(self) -> bool:
        """Whether the number below the answer was probed and fails; false at the low end of the range."""
        return self.answer is not None and Probe(self.answer - 1, False, "") in self._plain

    @property
    def smaller_met(self) -> tuple[int, ...]:
        """Numbers below the answer that meet all the same: the condition is not monotone."""
        found = self.answer
        return (
            () if found is None else tuple(sorted(p.value for p in self.probes if p.met and p.value < found))
        )

    @property
    def larger_failed(self) -> tuple[int, ...]:
        """Numbers above the answer that fail all the same: the condition is not monotone."""
        found = self.answer
        return (
            ()
            if found is None
            else tuple(sorted(p.value for p in self.probes if not p.met and p.value > found))
        )

    @property
    def monotone(self) -> bool:
        """Whether nothing that was probed speaks against a clean threshold."""
        return not self.smaller_met and not self.larger_failed

    @property
    def _plain(self) -> set[Probe]:
        return {Probe(p.value, p.met, "") for p in self.probes}


def smallest(
    met: Callable[[int], bool],
    low: int,
    high: int,
    *,
    start: int | None = None,
    step: int | None = None,
    checks: int = CHECKS,
) -> Search:
    """Search for the smallest number from `low` to `high` that meets a condition.

    Parameters
    ----------
    met : the condition; asked at most once a number.
    start : where to begin, such as the size of today's machine; by default the middle.
    step : the first stride of the bracket, doubled with each further one (default: an eighth of
        the start, at least 1).  Downwards no stride goes below half: a machine of a tenth of the size
        that is needed takes long to simulate and says little.
    checks : how many numbers to probe beyond the answer and beyond the one below it, to see
        whether the condition is as monotone as it should be.

    Returns
    -------
    Search
        of at most ``2 · log2(high - low + 1) + 4 + 2 · checks`` probes.

    Raises
    ------
    ConfigError
        if there is no number from `low` to `high`.

    >>> found = smallest(lambda n: n * n >= 2000, 1, 1000, start=100, checks=0)
    >>> found.answer, found.below_fails, len(found.probes)
    (45, True, 9)
    """
    if low > high:
        raise ConfigError(f"a search from {low:,} to {high:,}", expected="the smaller number first")
    first = min(max((low + high) // 2 if start is None else start, low), high)
    return _Hunt(met, low, high).run(first, step or max(1, first // 8), checks)


class _Hunt:
    """The state of one search: every number that was asked."""

    def __init__(self, met: Callable[[int], bool], low: int, high: int) -> None:
        self.met, self.low, self.high = met, low, high
        self.asked: dict[int, Probe] = {}

    def ask(self, value: int, why: str) -> bool:
        if value not in self.asked:
            self.asked[value] = Probe(value, bool(self.met(value)), why)
        return self.asked[value].met

    def run(self, first: int, step: int, checks: int) -> Search:
        answer = self.halved(*self.bracket(first, step))
        if answer is not None:
            for turn in range(1, checks + 1):
                for value in (answer - 1 - turn, answer + turn):
                    if self.low <= value <= self.high:
                        self.ask(value, CHECK)
        return Search(self.low, self.high, answer, tuple(self.asked.values()))

    def bracket(self, first: int, step: int) -> tuple[int, int]:
        """Return a number that fails and one above it that meets; what is out of range is taken to do so."""
        at = first
        if self.ask(first, START):
            while at > self.low:
                above, at, step = at, max(self.low, at - step, at // 2 if at > 0 else self.low), 2 * step
                if not self.ask(at, BRACKET):
                    return at, above
            return self.low - 1, self.low
        while at < self.high:
            below, at, step = at, min(self.high, at + step), 2 * step
            if self.ask(at, BRACKET):
                return below, at
        return self.high, self.high + 1

    def halved(self, fails: int, meets: int) -> int | None:
        while meets - fails > 1:
            middle = (fails + meets) // 2
            if self.ask(middle, HALVING):
                meets = middle
            else:
                fails = middle
        return meets if meets <= self.high else None
