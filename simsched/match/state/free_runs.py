"""`FreeRuns`: the free units of a whole machine as runs of consecutive ones.

It serves runs in which every request is a number of units of one pool type, or of whole targets, anywhere, and
the first in graph order are taken.  Then an allocation is the lowest free units, a handful of runs, and the
arrays of `Availability` are not needed until something else asks for them.

Unit ``n`` is unit ``n % each`` of target ``n // each``.  Runs are one ascending list of numbers: the first unit
of a run, the unit behind its last one, the first unit of the next run, and so on.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from simsched.match.state.selection import Draw, Hold, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


class RunSelection(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The lowest free units for a request; its other attributes are those of `Selection`, made when asked for.

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
        for low in runs:
            first, skipped = divmod(low, each)
            last, more = divmod(next(runs), each)
            if part >= 0 and first != part:
                yield part, part, mask
                part, mask = -1, 0
            if first == last:
                part, mask = first, mask | (1 << more) - (1 << skipped)
                continue
            if skipped:
                yield first, first, mask | full - (1 << skipped) + 1
                first += 1
            if first < last:
                yield first, last - 1, full
            part, mask = (last, (1 << more) - 1) if more else (-1, 0)
        if part >= 0:
            yield part, part, mask

    def full(self) -> Selection:
        """Return the same as a selection with arrays, as the matcher would make it."""
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


class FreeRuns:
    """The free units; nothing on the machine is down, shared or claimed in any other way.

    Attributes
    ----------
    kind : what one unit is.
    idle : targets of which every unit is free.
    """

    __slots__ = ("_each", "_runs", "idle", "kind")

    def __init__(self, kind: UnitKind, targets: int) -> None:
        self.kind = kind
        self.idle = targets
        self._each = kind.each
        self._runs = [0, targets * kind.each] if targets else []

    def lowest(self, request: Request, units: int) -> RunSelection:
        """Return the lowest free units for a request; there must be as many."""
        runs = self._runs
        low = runs[0]
        if runs[1] - low >= units:
            return RunSelection(self.kind, request, [low, low + units], units)
        at, left = 0, units
        while (size := runs[at + 1] - runs[at]) < left:
            left -= size
            at += 2
        found = runs[: at + 2]
        found[-1] = found[-2] + left
        return RunSelection(self.kind, request, found, units)

    def claim(self, selection: RunSelection) -> None:
        """Claim the units that `lowest` returned on this very state."""
        runs, found = self._runs, selection.runs
        last = len(found) - 1
        if self._each != 1:
            self.idle -= self._whole(found, runs[last])
        if runs[last] == found[last]:
            del runs[: last + 1]
        else:
            runs[last - 1] = found[last]
            del runs[: last - 1]
        if self._each == 1:
            self.idle -= selection.units

    def _whole(self, found: list[int], end: int) -> int:
        """Return how many targets are idle no more if these runs, the last of which ends at `end`, are claimed."""
        each = self._each
        lost = 0
        for low, high in zip(found[::2], [*found[1:-1:2], end], strict=True):
            lost += max(0, high // each + -low // each)
        return lost - max(0, end // each + -found[-1] // each)

    def release(self, selection: RunSelection) -> None:
        """Release the units of a claim."""
        runs, each = self._runs, self._each
        found = iter(selection.runs)
        for low in found:
            high = next(found)
            at = bisect_left(runs, low)
            # at an odd place is the end of a free run, which is this unit
            before, after = at & 1, at + (at & 1)
            behind = after < len(runs) and runs[after] == high
            if each != 1:
                start = runs[at - 1] if before else low
                end = runs[after + 1] if behind else high
                self.idle += max(0, end // each + -start // each)
                if before:
                    self.idle -= max(0, low // each + -start // each)
                if behind:
                    self.idle -= max(0, end // each + -high // each)
            if before and behind:
                del runs[at : at + 2]
            elif before:
                runs[at] = high
            elif behind:
                runs[at] = low
            else:
                runs[at:at] = (low, high)
        if each == 1:
            self.idle += selection.units


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
