"""The smallest whole number that meets a condition: an exponential bracket, halving, and a scan.

Conditions on simulated machines are *nearly* monotone: more nodes help, but each size gives another
backfilling schedule, and one more node can be worse by chance.  Halving alone finds some threshold.
Therefore the numbers around it are tried one by one until enough of them in a row agree with it
clearly.  If a smaller number meets the condition, it becomes the answer.  Nothing is known of numbers
that were not tried; `Search` lists those that were.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

START, BRACKET, HALVING, SCAN = "start", "bracket", "halving", "scan"
#: numbers in a row that have to agree clearly with the threshold, on each side of it
CALM = 3
#: the most numbers that are tried on either side
MOST = 10
#: larger numbers that are tried after the scan, as shares of the answer: a wide dip need not begin beside it
FAR = (0.02, 0.04, 0.06, 0.08)
#: the stride of the scan is the distance to the threshold divided by this number
WIDENING = 3


@dataclass(frozen=True, slots=True)
class Scan:
    """How far the neighbourhood of a threshold is tried on each side.

    Attributes
    ----------
    calm : number of values in a row that have to agree clearly with the threshold; then the scan ends.
    most : number of values after which it ends in any case.
    clear : whether the verdict on a number that was tried is clear; by default it always is.
    far : larger numbers that are tried after the scan, as shares of the threshold.
    widening : whether strides grow with the distance, so that a wide neighbourhood is covered.
    """

    calm: int = CALM
    most: int = MOST
    clear: Callable[[int], bool] = lambda _: True
    widening: bool = True
    far: tuple[float, ...] = ()

    @classmethod
    def of(cls, checks: int | None, clear: Callable[[int], bool]) -> Scan:
        """Return the scan of exactly `checks` numbers on each side; None: until `clear` is satisfied."""
        return cls(clear=clear, far=FAR) if checks is None else cls(checks, checks, widening=False)

    def stride(self, distance: int) -> int:
        """Return the step to the next number from one at this distance from the threshold."""
        return max(1, distance // WIDENING) if self.widening else 1


@dataclass(frozen=True, slots=True)
class Probe:
    """One number that was tried, whether it meets the condition, and which part of the search tried it."""

    value: int
    met: bool
    why: str


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search.

    Attributes
    ----------
    low, high : the range that was searched, both ends included.
    answer : the smallest number tried that meets the condition (from `floor` on); None if none does.
        The number below it was tried and fails, unless it is out of range.
    probes : every probe, in the order in which they were made; each number once.
    """

    low: int
    high: int
    answer: int | None
    probes: tuple[Probe, ...]

    @property
    def monotone(self) -> bool:
        """Whether every number from the answer on meets the condition, and none below it, of those tried."""
        return self.answer is None or all(p.met == (p.value >= self.answer) for p in self.probes)


def smallest(
    met: Callable[[int], bool],
    low: int,
    high: int,
    *,
    start: int | None = None,
    step: int | None = None,
    scan: Scan | None = None,
    floor: int | None = None,
    expect: Callable[[int | None], None] | None = None,
) -> Search:
    """Search for the smallest number from `low` to `high` that meets a condition.

    Parameters
    ----------
    met : the condition; called at most once per number.
    start : the first number, such as the size of today's machine; by default the middle.
    step : the first stride of the bracket, which doubles each time (default: an eighth of the start,
        at least 1).  A stride downwards at most halves the number: a machine of a tenth of the required
        size takes long to simulate and gives little information.
    scan : how far to try the neighbourhood of the threshold; by default `Scan()`.
    floor : numbers below it are tried but are not answers (default `low`).
    expect : called before each probe with the least number of probes that follow it, or with None
        while the bracket is open.

    Returns
    -------
    Search
        with at most ``2 · log2(high - low + 1) + 4`` probes besides those of the scan.

    Raises
    ------
    ConfigError
        if `low` is above `high`.

    >>> found = smallest(lambda n: n * n >= 2000, 1, 1000, start=100, scan=Scan(0, 0))
    >>> found.answer, len(found.probes)
    (45, 9)
    >>> found = smallest(lambda n: n >= 50 or n == 48, 1, 100, start=40)
    >>> found.answer, found.monotone
    (48, False)
    """
    if low > high:
        raise ConfigError(f"the range {low:,} to {high:,} is empty", expected="the smaller number first")
    state = _SearchState(met, low, high, scan or Scan(), low if floor is None else floor, expect)
    first = min(max((low + high) // 2 if start is None else start, low), high)
    return state.run(first, step or max(1, first // 8))


@dataclass(slots=True)
class _SearchState:
    """A search that goes on: the condition, and every number that was tried, in order."""

    met: Callable[[int], bool]
    low: int
    high: int
    scan: Scan
    floor: int
    expect: Callable[[int | None], None] | None
    tried: dict[int, Probe] = field(default_factory=dict)

    def _probe(self, value: int, why: str, left: int | None = None) -> bool:
        if value not in self.tried:
            if self.expect:
                self.expect(left)
            self.tried[value] = Probe(value, bool(self.met(value)), why)
        return self.tried[value].met

    def run(self, first: int, step: int) -> Search:
        """Search from a number with a first stride."""
        threshold = answer = self._halved(*self._bracket(first, step))
        if self.scan.most:
            answer = self._scanned_down(self.high + 1 if threshold is None else threshold)
            if answer is not None:
                self._scan_up(answer)
        return Search(self.low, self.high, answer, tuple(self.tried.values()))

    def _bracket(self, first: int, step: int) -> tuple[int, int]:
        """Return a number that fails and a larger one that meets; beyond the range both are assumed."""
        at = first
        if self._probe(first, START):
            while at > self.low:
                # Half at most: a much too small machine takes long to simulate and gives little information.
                above, at, step = at, max(self.low, at - step, at // 2 if at > 0 else self.low), 2 * step
                if not self._probe(at, BRACKET):
                    return at, above
            return self.low - 1, self.low
        while at < self.high:
            below, at, step = at, min(self.high, at + step), 2 * step
            if self._probe(at, BRACKET):
                return below, at
        return self.high, self.high + 1

    def _halved(self, fails: int, meets: int) -> int | None:
        while meets - fails > 1:
            middle = (fails + meets) // 2
            left = (meets - fails - 1).bit_length() - 1 + 2 * self.scan.calm
            if self._probe(middle, HALVING, left):
                meets = middle
            else:
                fails = middle
        return meets if meets <= self.high else None

    def _scanned_down(self, threshold: int) -> int | None:
        """Try numbers below a threshold; return the smallest that meets, the threshold included.

        If one meets, halving begins again from there and gives the next threshold.
        """
        answer = threshold if threshold <= self.high else None
        distance, calm, tried = 1, 0, 0
        while calm < self.scan.calm and tried < self.scan.most and threshold - distance >= self.low:
            at = threshold - distance
            if not self._probe(at, SCAN, 2 * self.scan.calm - calm - 1):
                calm = calm + 1 if self.scan.clear(at) else 0
                distance += self.scan.stride(distance)
                tried += 1
                continue
            threshold = self._threshold_from(at)
            answer = threshold if threshold >= self.floor else answer
            distance, calm, tried = 1, 0, 0
        return answer

    def _threshold_from(self, meets: int) -> int:
        """Return a number that meets and whose lower neighbour fails, from one that meets downwards."""
        failing = [n for n, probe in self.tried.items() if n < meets and not probe.met]
        found = self._halved(max(failing, default=self.low - 1), meets)
        assert found is not None  # it is at most `meets`
        return found

    def _scan_up(self, threshold: int) -> None:
        """Try numbers above a threshold to see whether one fails."""
        distance = 1
        calm = tried = 0
        while calm < self.scan.calm and tried < self.scan.most and threshold + distance <= self.high:
            at = threshold + distance
            tried += 1
            agrees = self._probe(at, SCAN, self.scan.calm - calm - 1)
            calm = calm + 1 if agrees and self.scan.clear(at) else 0
            distance += self.scan.stride(distance)
        for share in self.scan.far:
            at = threshold + int(share * threshold)
            if threshold + distance <= at <= self.high:  # it is beyond the scan
                self._probe(at, SCAN)
