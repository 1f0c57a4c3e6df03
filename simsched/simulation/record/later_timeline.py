"""`LaterTimeline`: the timeline of a run in which it follows from the times and units of the jobs.

Where every unit is a whole target and jobs are only submitted, started and ended, the counts after each
instant are sums over the jobs.  To add them up after the run takes a few operations; a row after each pass
took a twentieth of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.simulation.record.recorder import PENDING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from simsched.match.state.run_selection import UnitKind
    from simsched.simulation.record.recorder import Recorder

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]


class LaterTimeline:
    """Computes the rows of the timeline from the columns of the recorder.

    Parameters
    ----------
    submits, sizes : the submit time (seconds) and the cores of each job.
    kind : what one unit is: a target, which is all that a job takes of a machine.
    targets : how many targets there are, all of them idle before the run.
    total : pool type → its units.
    """

    def __init__(
        self,
        submits: Sequence[float],
        sizes: Sequence[int],
        kind: UnitKind,
        targets: int,
        total: Mapping[str, int],
    ) -> None:
        self._submits = submits
        self._sizes = sizes
        self._content = kind.content
        self._targets = targets
        self._total = dict(total)

    def rows(self, recorder: Recorder) -> tuple[Floats, Integers]:
        """Return the times at which something happened, and the counts after each, as `tick` notes them."""
        submits = np.array(self._submits, dtype=np.float64)
        sizes = np.array(self._sizes, dtype=np.float64)
        eligible, start, end = (
            np.array(column, dtype=np.float64) for column in (recorder.eligible, recorder.start, recorder.end)
        )
        units = np.array(recorder.counts[0], dtype=np.float64)
        came = ~np.isnan(eligible)
        # a job that is rejected never waits, but a pass follows its submission
        known = came | (np.array(recorder.result, dtype=np.int64) != PENDING)
        began, ended = ~np.isnan(start), ~np.isnan(end)
        times = np.unique(np.concatenate((submits[known], end[ended])))
        places = times.searchsorted(eligible[came]), times.searchsorted(start[began])
        ends = times.searchsorted(end[ended])

        def after(more: Any, of_more: Any, less: Any, of_less: Any) -> Integers:
            """Return the sums of what was added and taken off up to each time; whole numbers stay exact."""
            changes = np.bincount(more, of_more, len(times)) - np.bincount(less, of_less, len(times))
            sums: Integers = changes.astype(np.int64).cumsum()
            return sums

        queued = after(places[0], None, places[1], None)
        demand = after(places[0], sizes[came], places[1], sizes[began])
        running = after(places[1], None, ends, None)
        used = after(places[1], units[began], ends, units[ended])
        pools = [self._total[name] - self._content.get(name, 0) * used for name in recorder.pools]
        return times, np.column_stack((queued, demand, running, self._targets - used, *pools))
