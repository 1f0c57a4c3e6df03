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

    `before` and what there is `more` afterwards have the shape (demands, steps, targets).
    """

    targets: Ints
    begin: int
    stop: int
    before: Floats
    more: Floats

    def gain(self, may: Floats, gauges: Gauges) -> Floats:
        """Return for each gauge the copies that are added at most to a window of any steps."""
        most = np.maximum.reduce(self.more, axis=1, initial=0.0)
        most = most[gauges.demand]
        most *= may[:, self.targets]
        found: Floats = np.add.reduce(most, axis=1)
        return found

    def least(self, now: Floats, demands: Ints, low: int, windows: tuple[Ints, Ints, Ints]) -> Floats:
        """Return the least rooms in some windows before and after: shape (windows, 2, targets).

        `now` are the present rooms of some `demands` (demands, steps, targets) from the step `low` on, as far
        as the windows reach. Of each window the place of its demand is given, its first step and its stop.
        """
        which, begins, stops = windows
        rooms = np.stack([now, now], axis=2)
        first, last = max(low, self.begin), min(low + now.shape[1], self.stop)
        if first < last:
            changed = slice(first - self.begin, last - self.begin)
            rooms[:, first - low : last - low, 0] = self.before[demands, changed]
        return least_in_windows(rooms, which, begins - low, stops - low)
