"""The smallest whole number that meets a condition: an exponential bracket, halving, and a scan.

Conditions of simulated machines are *nearly* monotone: more nodes help, but every backfilling
schedule is a different one, and a node more can by chance be worse.  Halving alone finds some
threshold.  So the numbers around it are tried one by one, until enough of them in a row agree
with it beyond doubt; a smaller number that meets becomes the answer.  Nothing is known of numbers
that were not tried: `Search` lists those that were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

START, BRACKET, HALVING, SCAN = "start", "bracket", "halving", "scan"
#: numbers in a row that have to agree clearly with the threshold, on either side of it
CALM = 3
#: the most numbers that are tried on either side
MOST = 10
#: from this distance on the scan leaves numbers out: its stride is the distance over this
WIDENING = 3


def _always(_: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Scan:
    """How far the neighbourhood of a threshold is tried, on either side.

    Attributes
    ----------
    calm : the scan ends after so many numbers in a row that agree clearly with the threshold.
    most : it also ends after so many, whatever they come to.
    clear : whether a number that was tried agrees beyond doubt; by default each does.
    widening : whether strides grow with the distance, so that a wide neighbourhood is seen, too.
    """

    calm: int = CALM
    most: int = MOST
    clear: Callable[[int], bool] = _always
    widening: bool = True

    @classmethod
    def of(cls, checks: int | None, clear: Callable[[int], bool]) -> Scan:
        """Return the scan of exactly `checks` numbers on either side, or of as many as `clear` needs."""
        return cls(clear=clear) if checks is None else cls(checks, checks, widening=False)

    def stride(self, distance: int) -> int:
        """Return how far it is from a number at this distance from the threshold to the next one."""
        return max(1, distance // WIDENING) if self.widening else 1


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
    answer : the smallest number that was probed and meets (of those from `floor` on); None if none does.
        The number below it was probed and fails, unless it is out of range.
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
    scan: Scan | None = None,
    floor: int | None = None,
    expect: Callable[[int | None], None] | None = None,
) -> Search:
    """Search for the smallest number from `low` to `high` that meets a condition.

    Parameters
    ----------
    met : the condition; asked at most once a number.
    start : where to begin, such as the size of today's machine; by default the middle.
    step : the first stride of the bracket, doubled with each further one (default: an eighth of
        the start, at least 1).  Downwards no stride goes below half: a machine of a tenth of the size
        that is needed takes long to simulate and says little.
    scan : how far to try the neighbourhood of the threshold; by default `Scan()`.
    floor : smaller numbers are tried, but are not answers (default `low`).
    expect : called before each probe with the number of probes that are expected after it at
        least, or None while the bracket is open.

    Returns
    -------
    Search
        of at most ``2 · log2(high - low + 1) + 4`` probes, and those of the scan.

    Raises
    ------
    ConfigError
        if there is no number from `low` to `high`.

    >>> found = smallest(lambda n: n * n >= 2000, 1, 1000, start=100, scan=Scan(0, 0))
    >>> found.answer, found.below_fails, len(found.probes)
    (45, True, 9)
    >>> found = smallest(lambda n: n >= 50 or n == 48, 1, 100, start=40)
    >>> found.answer, found.larger_failed
    (48, (49,))
    """
    if low > high:
        raise ConfigError(f"a search from {low:,} to {high:,}", expected="the smaller number first")
    first = min(max((low + high) // 2 if start is None else start, low), high)
    hunt = _Hunt(met, (low, high), scan or Scan(), low if floor is None else floor, expect)
    return hunt.run(first, step or max(1, first // 8))


class _Hunt:
    """The state of one search: every number that was asked."""

    def __init__(
        self,
        met: Callable[[int], bool],
        ends: tuple[int, int],
        scan: Scan,
        floor: int,
        expect: Callable[[int | None], None] | None,
    ) -> None:
        self.met, self.scan, self.floor, self.expect = met, scan, floor, expect
        self.low, self.high = ends
        self.asked: dict[int, Probe] = {}

    def ask(self, value: int, why: str, left: int | None = None) -> bool:
        if value not in self.asked:
            if self.expect:
                self.expect(left)
            self.asked[value] = Probe(value, bool(self.met(value)), why)
        return self.asked[value].met

    def run(self, first: int, step: int) -> Search:
        threshold = self.halved(*self.bracket(first, step))
        answer = threshold
        if self.scan.most:
            answer = self.scanned_down(self.high + 1 if threshold is None else threshold)
            if answer is not None:
                self.scan_up(answer)
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
            left = (meets - fails - 1).bit_length() - 1 + 2 * self.scan.calm
            if self.ask(middle, HALVING, left):
                meets = middle
            else:
                fails = middle
        return meets if meets <= self.high else None

    def scanned_down(self, threshold: int) -> int | None:
        """Try numbers below a threshold; return the smallest that meets, the threshold included.

        One that meets is where halving begins again, and what it comes to is the next threshold.
        """
        answer = threshold if threshold <= self.high else None
        distance, calm, tried = 1, 0, 0
        while calm < self.scan.calm and tried < self.scan.most and threshold - distance >= self.low:
            at = threshold - distance
            if not self.ask(at, SCAN, 2 * self.scan.calm - calm - 1):
                calm = calm + 1 if self.scan.clear(at) else 0
                distance += self.scan.stride(distance)
                tried += 1
                continue
            threshold = self.threshold_from(at)
            answer = threshold if threshold >= self.floor else answer
            distance, calm, tried = 1, 0, 0
        return answer

    def threshold_from(self, meets: int) -> int:
        """Return a number that meets, above one that fails, from a number that meets downwards."""
        failing = [n for n, probe in self.asked.items() if n < meets and not probe.met]
        found = self.halved(max(failing, default=self.low - 1), meets)
        assert found is not None  # it is at most `meets`
        return found

    def scan_up(self, threshold: int) -> None:
        """Try numbers above a threshold, to see whether one fails."""
        distance = 1
        calm = tried = 0
        while calm < self.scan.calm and tried < self.scan.most and threshold + distance <= self.high:
            at = threshold + distance
            tried += 1
            agrees = self.ask(at, SCAN, self.scan.calm - calm - 1)
            calm = calm + 1 if agrees and self.scan.clear(at) else 0
            distance += self.scan.stride(distance)
