"""`RunSelection`: an allocation of a flat machine as runs of consecutive units.

Unit ``n`` is unit ``n % each`` of target ``n // each``. Runs are one ascending list of numbers: the first
unit of a run, the unit behind its last one, the first unit of the next run, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.match.state.selection import Draw, Hold, LazySelection, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.arrays import Integers
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


class RunSelection(LazySelection):
    """The lowest free units for a request.

    Attributes
    ----------
    kind : what one unit is.
    request : the request that it was selected for.
    runs : the units.
    units : how many there are.
    """

    __slots__ = ("_made", "kind", "request", "runs", "units")
    counted = False

    def __init__(self, kind: UnitKind, request: Request, runs: list[int], units: int) -> None:
        self.kind, self.request, self.runs, self.units = kind, request, runs, units
        self._made: Selection | None = None

    def sizes(self) -> tuple[int, int, int, int]:
        """Return how many nodes, cores, gpus and slots there are."""
        _, each, content, _ = self.kind
        runs, units = self.runs, self.units
        nodes = units if each == 1 else touched(runs, each)
        return nodes, content.get("core", 0) * units, content.get("gpu", 0) * units, self.request.slots

    def full(self) -> Selection:
        """See `LazySelection`."""
        if self._made is None:
            self._made = self._full()
        return self._made

    def _full(self) -> Selection:
        type_, each, content, whole = self.kind
        runs, wanted, slots = self.runs, self.units, self.request.slots
        if each == 1:
            targets = _joined([np.arange(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)])
            draws = tuple(Draw(name, targets, units, units * wanted) for name, units in content.items())
            holds = (Hold(type_, targets, exclusive=True),) if whole else ()
            return Selection(self.request, targets, draws, draws, holds, (), slots)
        ordinals = _joined([np.arange(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)])
        targets, begins = np.unique(ordinals // each, return_index=True)
        numbers = np.diff(begins, append=wanted)
        words = np.bitwise_or.reduceat(np.uint64(1) << (ordinals % each).astype(np.uint64), begins)
        one = len(targets) == wanted
        masks = None if wanted == each * len(targets) else words.reshape(-1, 1)
        held = (Draw(type_, targets, 1 if one else numbers, wanted, masks),)
        return Selection(self.request, targets, held, held, (), (), slots)

    @property
    def targets(self) -> Integers:
        """Ordinals of the targets, ascending."""
        return self.full().targets

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


def touched(runs: list[int], each: int) -> int:
    """Return how many targets have at least one unit of some runs."""
    found, before = 0, -1
    for at in range(0, len(runs), 2):
        first, last = runs[at] // each, (runs[at + 1] - 1) // each
        found += last - first
        if first != before:
            found += 1
        before = last
    return found


def _joined(parts: list[Integers]) -> Integers:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
