"""`FlatKinds`: the requests of a run, each a number of units of one type, in a `Kernel` of one target.

Units are nodes, cores, or copies of a slot that all jobs have in common (`JobTable.single`). Whether a
request fits does not depend on where its units are. So the machine is one target with one leaf pool, and a
copy of the demand is one unit. What the first job leaves to others are the "extra nodes" of the papers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from simsched.match.kernel import UP, Kernel
from simsched.match.kernel_kinds import KernelKinds
from simsched.match.requests.request import SLOT
from simsched.match.search.counts import MANY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simsched.arrays import Bools, Integers
    from simsched.match.state.selection import Selection


class FlatKinds(KernelKinds):
    """The kinds of requests of a run, by number.

    Parameters
    ----------
    single, target_type : the type of the units, and that of the execution targets.
    units : the units of each kind.
    free : returns the free units, after something else than a claim or a release has changed them.
    selection : kind that the kernel has just placed, and job → free units.
    """

    on_targets = False

    def __init__(
        self,
        single: str,
        target_type: str,
        units: Sequence[int],
        free: Callable[[], int],
        selection: Callable[[int, int], Selection],
    ) -> None:
        one = np.zeros(1, dtype=np.int64)
        kernel = Kernel(
            one.reshape(1, 1),
            [0, 1],
            [(UP, MANY, False)],
            [[(0, 1)]],
            np.ones(1, dtype=np.uint8),
            one,
            [(0, each) for each in units],
            (
                # `recount` takes over the free units, after the claims of running jobs were noted
                *(np.array([MANY]), np.zeros(1, np.int64), np.zeros(1, np.uint8)),
                *(np.zeros(0, np.uint64), np.zeros(2, np.int64)),
            ),
            last=False,
            written=partial(_written, single, target_type),
            owned=True,
        )
        all_ = [True] * len(units)
        super().__init__(kernel, all_, all_, all_counted=True, all_placed=True)
        self._units = np.array(units, dtype=np.int64)
        self._free, self._selection = free, selection

    def selection(self, kind: int, job: int) -> Selection:
        """Return free units for the job, which become the kernel's draft."""
        self.kernel.draft = made = self._selection(kind, job)
        return made

    def recount(self) -> None:
        """Take over how many units are free."""
        self.kernel.set_free(0, 0, self._free())

    def check(self) -> None:
        """Assert that as many units are free as the state has."""
        assert self.kernel.totals[0] == self._free()

    def fitting(self) -> Bools:
        """Return for each kind whether it fits now."""
        fits: Bools = self._units <= self.kernel.totals[0]
        return fits


def _written(single: str, target_type: str, selection: Selection) -> Integers:
    """Return the claim of a selection as the kernel has it: units of its one leaf pool."""
    if single == SLOT:
        units = selection.slots
    else:
        units = len(selection.targets) if single == target_type else selection.counts[single]
    return np.array([7, 1, 0, 1, 0, 0, units], dtype=np.int64)
