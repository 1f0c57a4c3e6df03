"""The job-hours waited in each part of a run by cause: when jobs waited, and for which resource.

The causes are those of `wait_totals`, and the sums over time are its totals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from simsched.report.waiting.wait_totals import find_causes

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.report.data.tables import RunTables
    from simsched.report.waiting.wait_causes import WaitCauses

    Floats = npt.NDArray[np.float64]


def waits_over_time(run: RunTables, edges: Floats, causes: WaitCauses | None = None) -> pd.DataFrame:
    """Return one row per part of the time between `edges` (s, ascending): the job-hours waited by cause.

    The index is the beginning of each part.  `causes` are those that `find_causes` returns.

    Raises
    ------
    RunError
        as `find_causes`.
    """
    causes = find_causes(run)[0] if causes is None else causes
    nothing = [(0, np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))]
    columns = zip(*(causes.waits or nothing), strict=True)
    _, starts, ends, codes = (np.concatenate([np.atleast_1d(part) for part in parts]) for parts in columns)
    numbers = {cause: number for number, cause in enumerate(causes.names)}
    table = pd.DataFrame(index=edges[:-1])
    for cause in causes.causes:
        of = codes == numbers.get(cause, -1)
        table[cause] = np.diff(_waited(starts[of], ends[of], edges)) / 3600.0
    return table


def _waited(begin: Floats, end: Floats, at: Floats) -> Floats:
    """Return the seconds that intervals have lasted in all until each time `at`."""
    return _since(begin, at) - _since(end, at)


def _since(events: Floats, at: Floats) -> Floats:
    """Return the sum over the events before each time `at` of the seconds since then."""
    ordered = np.sort(events)
    number = np.searchsorted(ordered, at)
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    result: Floats = number * at - sums[number]
    return result
