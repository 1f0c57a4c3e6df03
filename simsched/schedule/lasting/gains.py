"""`Gains`: until when more may be free than reservations were tried with."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.graph.index.types import Bools

    Floats = npt.NDArray[np.float64]


class Gains:
    """The gains since the last compression, by the numbers of `Gauges.concerns`.

    Attributes
    ----------
    before : for each number, the time before which more may be free than at the last compression.
    number : how often anything was freed, or a step was inserted right behind the first.
    """

    def __init__(self, gauges: int) -> None:
        self.before = np.full(gauges + 2, NEVER)
        self._later = np.zeros(gauges + 2)
        """The same, but only for changes since the last compression began."""
        self._later[-1] = NEVER
        self.number = 0

    def copy(self) -> Gains:
        """Return the same gains, to be changed apart."""
        twin = copy(self)
        twin.before, twin._later = self.before.copy(), self._later.copy()
        return twin

    def note(self, gauges: Bools, end: float) -> None:
        """Note that more copies of some gauges may be free before a time."""
        self._note(np.concatenate([gauges, (True, False)]), end)

    def note_all(self, end: float) -> None:
        """Note that any request may fit better before a time."""
        self._note(np.ones(len(self.before), dtype=np.bool_), end)

    def _note(self, gained: Bools, end: float) -> None:
        for times in (self.before, self._later):
            times[gained] = np.maximum(times[gained], end)
        self.number += 1

    def begin(self) -> None:
        """Begin a compression: gains until now count in it."""
        self._later[:-1] = 0.0

    def end(self) -> None:
        """Note that all jobs were tried; gains since that began count at the next compression."""
        self.before, self._later = self._later, np.zeros_like(self._later)
        self._later[-1] = NEVER
