"""`RoomChange`: for how many copies of each demand targets have room before and after some claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.schedule.lasting.window_minima import least_in_windows

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.graph.index.types import Ints
    from simsched.schedule.lasting.footprint import Footprint
    from simsched.schedule.lasting.gauges import Gauges

    Floats = npt.NDArray[np.float64]


class Claim(NamedTuple):
    """A footprint that is taken (-1) or freed (1) from one step until another."""

    footprint: Footprint
    begin: int
    stop: int
    sign: int


class RoomChange(NamedTuple):
    """The rooms on the targets of some claims, in all steps from their first until their last.

    `before` and `after` have the shape (demands, steps, targets).
    """

    targets: Ints
    begin: int
    stop: int
    before: Floats
    after: Floats

    def gain(self, may: Floats, gauges: Gauges) -> Floats:
        """Return for each gauge the copies that are added at most to a window of any steps."""
        most = np.maximum.reduce(self.after - self.before, axis=1, initial=0.0)
        most = most[gauges.demand]
        most *= may[:, self.targets]
        found: Floats = np.add.reduce(most, axis=1)
        return found

    def least(self, now: Floats, demand: int, low: int, begins: Ints, stops: Ints) -> Floats:
        """Return the least rooms of a demand before and after: shape (windows, 2, targets).

        The windows are from the steps `begins` until `stops`, and `now` are the present rooms from the step
        `low` on, as far as the windows reach.
        """
        steps, width = now.shape
        lines = np.empty((2, width, steps + 1))  # a window may end behind the last step
        lines[:, :, -1] = 0.0
        lines[:, :, :-1] = now.T
        first, last = max(low, self.begin), min(low + steps, self.stop)
        if first < last:
            before = self.before[demand, first - self.begin : last - self.begin]
            lines[0, :, first - low : last - low] = before.T
        return least_in_windows(lines, begins - low, stops - low).transpose(2, 0, 1)
