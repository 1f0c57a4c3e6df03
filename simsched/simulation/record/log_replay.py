"""How far a run that plays a log (queue policy ``recorded``) differs from the log: ``replay`` of run.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from simsched.arrays import Floats
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.jobs.recorded_starts import RecordedStarts
    from simsched.simulation.record.run_document import ReplayFigures, UseOfLog


#: seconds by which times may differ through rounding
ROUNDING = 1e-6
#: nodes that the machine does not have: those with most jobs are named
MOST_NAMES = 20


def replay_figures(
    recorded: RecordedStarts,
    prepared: Prepared,
    columns: Mapping[str, Any],
    totals: Mapping[str, int],
    elsewhere: Collection[int],
) -> ReplayFigures:
    """Return the differences between a run and the log that it played, as plain data; times are in seconds.

    ``late`` counts the jobs that started later than in the log, because their resources were in use
    (``mean_delay`` is the mean over them), or because they waited for something else of the run.
    ``elsewhere`` counts jobs that started on other nodes than the log names.  ``peak`` is the largest use
    in the log itself, and ``over`` the seconds for which it is larger than the machine.
    """
    starts = columns["start"][: len(recorded.starts)]
    delays = starts - recorded.starts
    late = np.flatnonzero(delays > ROUNDING)
    names = sorted(recorded.missing_nodes.items(), key=lambda item: (-item[1], item[0]))
    return {
        "jobs": int(np.isfinite(delays).sum()),
        "late": len(late),
        "mean_delay": float(delays[late].mean()) if len(late) else 0.0,
        "max_delay": float(delays[late].max()) if len(late) else 0.0,
        "latest": str(columns["id"][late[delays[late].argmax()]]) if len(late) else None,
        "without_start": len(recorded.unstarted),
        "before_submission": recorded.early,
        "named": len(recorded.places),
        "elsewhere": len(set(elsewhere)),
        "missing_nodes": dict(names[:MOST_NAMES]),
        "missing_node_count": len(names),
        **_use_of_log(recorded.starts, prepared, totals),
    }


def _use_of_log(starts: Floats, prepared: Prepared, totals: Mapping[str, int]) -> UseOfLog:
    """Return the largest use in the log, and the seconds for which it uses more than the machine has."""
    unit = "core" if totals.get("core") else "node"
    capacity = totals[unit]
    played = np.isfinite(starts)
    played[list(prepared.rejected)] = False
    begins, sizes = starts[played], np.array(prepared.sizes, dtype=np.int64)[played]
    ends = begins + np.array(prepared.runtimes, dtype=np.float64)[played]
    times, places = np.unique(np.concatenate((begins, ends)), return_inverse=True)
    # Bincount adds floats, which are exact for whole numbers of this size.
    changes = np.bincount(places, np.concatenate((sizes, -sizes)), minlength=len(times))
    use = np.cumsum(changes).round().astype(np.int64)
    at = int(use.argmax()) if len(use) else 0
    lengths = np.diff(times, append=times[-1:])
    return {
        "unit": unit,
        "capacity": capacity,
        "peak": int(use[at]) if len(use) else 0,
        "peak_time": float(times[at]) if len(use) else None,
        "over": float(lengths[use > capacity].sum()),
    }
