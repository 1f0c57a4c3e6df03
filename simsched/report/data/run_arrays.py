"""The tables of a run as arrays: from its files, or from its frames if they have been read or cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.report.columns import JOBS, REQUIRED_JOBS, Column
from simsched.report.data.column_arrays import check_jobs, check_timeline, read_columns

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from simsched.report.data.column_arrays import Arrays
    from simsched.report.data.tables import RunTables


ENERGY = Column("recorded_energy", "float", "J", "energy in the trace; a run without energies lacks it")
GROUP = Column("limit_group", "float", "", "the group of `columns.LIMITS`; a run without such waits lacks it")


def job_arrays(run: RunTables, names: Collection[str]) -> Arrays:
    """Return columns of the jobs of a run as arrays; a missing text is None.

    The recorded energies and the groups under limits are NaN in a run without them.  RunError as for
    `RunTables.jobs`.
    """
    kinds = {column.name: column.kind for column in (*JOBS, ENERGY, GROUP) if column.name in names}
    if "jobs" in run.__dict__ or run.path is None:  # it may have been cut
        blank = np.full(len(run.jobs), np.nan)
        return {name: _of_frame(run.jobs[name]) if name in run.jobs else blank for name in kinds}
    file = run.path / "jobs.parquet"
    found = read_columns(file, kinds, REQUIRED_JOBS)
    check_jobs(found, found["result"] == "DROPPED", file)
    return found


def timeline_arrays(run: RunTables) -> Arrays:
    """Return the numbers of the timeline of a run as arrays; RunError as for `RunTables.timeline`."""
    if "timeline" in run.__dict__ or run.path is None:
        return {str(name): _of_frame(column) for name, column in run.timeline.items()}
    file = run.path / "timeline.parquet"
    found = read_columns(file, None, {"time"})
    check_timeline(found, file)
    return found


def _of_frame(column: Any) -> npt.NDArray[Any]:
    """Return a column of a frame; a missing text is None."""
    if column.dtype.kind in "ifb":
        return np.asarray(column)
    return np.array(column.astype(object).where(column.notna(), None), dtype=object)
