"""`FreeRuns`: the free units of a whole machine as runs of consecutive ones.

It serves simulations in which every request is a number of units of one pool type, or of whole targets,
anywhere, and the first in graph order are taken.  Then an allocation is the lowest free units, a handful of
runs, and the arrays of `Availability` are not needed until something else asks for them.

Unit ``n`` is unit ``n % each`` of target ``n // each``.  Runs are one ascending list of numbers: the first
unit of a run, the unit behind its last one, the first unit of the next run, and so on.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from sys import maxsize
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from simsched.match.state.selection import Draw, Hold, Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from simsched.graph.index.types import Ints
    from simsched.match.requests.request import Request


class UnitKind(NamedTuple):
    """What one unit is.

    Attributes
    ----------
    type : the pool type, or the type of the targets.
    each : units on a target; 1 where units are whole targets.
    content : pool type → units of it in one unit.
    whole : whether a unit is a whole target, which is claimed with all that it has.
    """

    type: str
    each: int
    content: Mapping[str, int]
    whole: bool


class RunSelection(msgspec.Struct, eq=False, gc=False):
    """The lowest free units for a request; the arrays of a `Selection` are made when they are asked for.

    Attributes
    ----------
    kind : what one unit is.
    request : the request that it was selected for.
    runs : the units.
    units : how many there are.
    """

    kind: UnitKind
    request: Request
    runs: list[int]
    units: int
    made: Selection | None = None

    def sizes(self) -> tuple[int, int, int, int]:
        """Return how many nodes, cores, gpus and slots there are."""
        _, each, content, _ = self.kind
        runs, units = self.runs, self.units
        nodes = units if each == 1 else _touched(runs, each)
        return nodes, content.get("core", 0) * units, content.get("gpu", 0) * units, self.request.slots

    def pieces(self) -> Iterator[tuple[int, int, int]]:
        """Yield first and last target of each stretch of targets, and the mask of the units on each of them.

        There is one stretch for a target of which only some units are selected.
        """
        each = self.kind.each
        full = (1 << each) - 1
        part, mask = -1, 0  # the target whose units are being collected
        runs = iter(self.runs)
        for low, high in zip(runs, runs, strict=True):
            first, last = low // each, high // each
            skipped, more = low - first * each, high - last * each
            if part >= 0 and first != part:
                yield part, part, mask
                part, mask = -1, 0
            if first == last:
                part, mask = first, mask | ((1 << more) - (1 << skipped))
                continue
            if skipped:
                yield first, first, mask | (full + 1 - (1 << skipped))
                first += 1
            if first < last:
                yield first, last - 1, full
            part, mask = (last, (1 << more) - 1) if more else (-1, 0)
        if part >= 0:
            yield part, part, mask

    def full(self) -> Selection:
        """Return the same as a selection with arrays, as the matcher would make it."""
        if self.made is None:
            self.made = self._full()
        return self.made

    def _full(self) -> Selection:
        type_, each, content, whole = self.kind
        runs, wanted, slots = self.runs, self.units, self.request.slots
        if each == 1:
            targets = _joined([np.arange(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)])
            draws = tuple(Draw(name, targets, units, units * wanted) for name, units in content.items())
            holds = (Hold(type_, targets, exclusive=True),) if whole else ()
            return Selection(self.request, targets, draws, draws, holds, (), slots)
        stretches = list(self.pieces())
        targets = _joined([np.arange(first, last + 1) for first, last, _ in stretches])
        lengths = [last - first + 1 for first, last, _ in stretches]
        words = np.array([mask for *_, mask in stretches], dtype=np.uint64).repeat(lengths)
        numbers = np.array([mask.bit_count() for *_, mask in stretches]).repeat(lengths)
        one = len(targets) == wanted
        masks = None if wanted == each * len(targets) else words
        held = (Draw(type_, targets, 1 if one else numbers, wanted, masks),)
        return Selection(self.request, targets, held, held, (), (), slots)

    # The attributes of a selection, for policies that look at what they were given.

    @property
    def targets(self) -> Ints:
        """Ordinals of the targets, ascending."""
        return self.full().targets

    @property
    def held(self) -> tuple[Draw, ...]:
        """The units, all claimed exclusively."""
        return self.full().held

    @property
    def holds(self) -> tuple[Hold, ...]:
        """The targets that are claimed whole."""
        return self.full().holds

    @property
    def counts(self) -> dict[str, int]:
        """Units claimed of each pool type."""
        return self.full().counts

    @property
    def slots(self) -> int:
        """Copies of slots."""
        return self.request.slots

    named = held
    listed = targets
    shared = ()
    unlisted = None
    counted = False


def with_arrays(selection: Selection | RunSelection) -> Selection:
    """Return a selection with arrays."""
    return selection.full() if isinstance(selection, RunSelection) else selection


class FreeRuns:
    """The free units; nothing on the machine is down, shared or claimed in any other way.

    Attributes
    ----------
    kind : what one unit is.
    total : pool type → free units; other types stay as they are.
    """

    __slots__ = ("_content", "_each", "_runs", "kind", "total")

    def __init__(self, kind: UnitKind, targets: int, total: dict[str, int]) -> None:
        self.kind = kind
        self.total = total
        self._each = kind.each
        self._content = tuple(kind.content.items())
        # The last number is larger than any run: there is always a next one to compare with.
        self._runs = [0, targets * kind.each, maxsize]

    def lowest(self, request: Request, units: int) -> RunSelection:
        """Return the lowest free units for a request; at least that number must be free."""
        runs = self._runs
        low = runs[0]
        high = low + units
        if runs[1] >= high:
            return RunSelection(self.kind, request, [low, high], units)
        at, left = 0, units
        while (size := runs[at + 1] - runs[at]) < left:
            left -= size
            at += 2
        found = runs[: at + 2]
        found[-1] = found[-2] + left
        return RunSelection(self.kind, request, found, units)

    def claim(self, selection: RunSelection, *, alone: bool = False) -> int:  # noqa: ARG002
        """Claim what `lowest` returned on this very state; return how many idle targets it touches."""
        runs, found, units = self._runs, selection.runs, selection.units
        last = len(found) - 1
        end = found[last]
        lost = units if self._each == 1 else self._lost(found, runs[last])
        if runs[last] == end:
            del runs[: last + 1]
        elif last == 1:
            runs[0] = end
        else:
            runs[last - 1] = end
            del runs[: last - 1]
        for type_, number in self._content:
            self.total[type_] -= number * units
        return lost

    def release(self, selection: RunSelection, *, alone: bool = False) -> int:  # noqa: ARG002
        """Release the units of a claim; return how many targets are idle thereby."""
        runs, units, each = self._runs, selection.units, self._each
        gained = units if each == 1 else 0
        found = iter(selection.runs)
        for low, high in zip(found, found, strict=True):
            at = bisect_left(runs, low)
            if each != 1:
                gained += self._gained(low, high, at)
            _insert(runs, at, low, high)
        for type_, number in self._content:
            self.total[type_] += number * units
        return gained

    def _lost(self, found: list[int], end: int) -> int:
        """Return how many targets a claim of runs takes from the idle ones; the last run is free to `end`."""
        each, last = self._each, len(found) - 1
        lost = -_whole(found[last], end, each)
        for at in range(0, last, 2):
            # as `_whole`, without the call: a claim may have hundreds of runs
            targets = (found[at + 1] if at + 1 < last else end) // each + -found[at] // each
            if targets > 0:
                lost += targets
        return lost

    def _gained(self, low: int, high: int, at: int) -> int:
        """Return how many more targets are idle once a run is free, whose place among the others is `at`."""
        runs, each = self._runs, self._each
        after = at + (at & 1)
        start = runs[at - 1] if at & 1 else low
        end = runs[after + 1] if runs[after] == high else high
        # Those of the joined run, less those of the runs before and behind it (see `_whole`).
        first = -start // each
        gained = end // each + first
        if gained <= 0:
            return 0
        if start != low:
            before = low // each + first
            if before > 0:
                gained -= before
        if end != high:
            behind = end // each + -high // each
            if behind > 0:
                gained -= behind
        return gained

    def check(self, claims: Iterable[RunSelection], targets: int) -> int:
        """Assert that each unit of the machine is free or claimed once; return how many targets are idle."""
        runs = self._runs[:-1]
        assert all(low < high for low, high in pairwise(self._runs))
        each = self._each
        free = np.zeros(targets * each, dtype=np.bool_)
        for low, high in zip(runs[::2], runs[1::2], strict=True):
            free[low:high] = True
        idle = int(free.reshape(targets, each).all(axis=1).sum())
        for selection in claims:
            for low, high in zip(selection.runs[::2], selection.runs[1::2], strict=True):
                assert not free[low:high].any()
                free[low:high] = True
        assert free.all()
        return idle


def _insert(runs: list[int], at: int, low: int, high: int) -> None:
    """Put a run among others and join neighbours; `at` is the place of the first number not below it."""
    if at & 1:  # there is the end of a free run, which is this unit
        if runs[at + 1] == high:
            del runs[at : at + 2]
        else:
            runs[at] = high
    elif runs[at] == high:
        runs[at] = low
    else:
        runs[at:at] = (low, high)


def _whole(low: int, high: int, each: int) -> int:
    """Return how many targets have all their units in a run."""
    return max(0, high // each + -low // each)


def _touched(runs: list[int], each: int) -> int:
    """Return how many targets have at least one unit of some runs."""
    found, before = 0, -1
    numbers = iter(runs)
    for low in numbers:
        first, last = low // each, (next(numbers) - 1) // each
        found += last - first + (first != before)
        before = last
    return found


def _joined(parts: list[Ints]) -> Ints:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
