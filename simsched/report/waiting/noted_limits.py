"""`NotedLimits`: the limits that kept the jobs of a run waiting, as ``limits.parquet`` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.report.columns import LIMITS
from simsched.report.data.column_arrays import read_columns
from simsched.simulation.limits.limit_spells import FOR_EVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.arrays import Bools, Floats, Integers
    from simsched.report.waiting.run_facts import RunFacts


LIMIT = "limit"
"""Begins the cause of a wait for a limit: ``limit running-jobs of user alice``."""


class LimitTimes(NamedTuple):
    """The starts and ends (s) of the times in which limits kept a job or a group waiting, ascending.

    `codes` are those of the limits as causes, `blocks` tells which of them block the jobs behind, and
    `reasons` are the sentences on them, if there are any.
    """

    starts: Floats
    ends: Floats
    codes: Integers
    blocks: Bools
    reasons: Sequence[str | None]

    def at(self, times: Floats) -> Integers:
        """Return the place of the limit at each time, or -1."""
        found = np.searchsorted(self.starts, times, side="right") - 1
        return np.where((found >= 0) & (times < np.append(self.ends, 0)[found]), found, -1)

    def fill(self, codes: Integers, starts: Floats, only: npt.NDArray[np.bool_] | None = None) -> None:
        """Enter the limits into the codes of pieces of the time, of some `only`."""
        found = self.at(starts)
        kept = found >= 0 if only is None else (found >= 0) & only
        codes[kept] = self.codes[found[kept]]


NOTHING = LimitTimes(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_), ())


class NotedLimits:
    """The table of a run.

    Attributes
    ----------
    group_of : row → the number of the job's group, or -1.
    blocks : whether any of the limits blocks the jobs behind.
    """

    def __init__(self, facts: RunFacts) -> None:
        self._ids = facts.table["id"]
        self.group_of: Integers = np.nan_to_num(facts.table["limit_group"], nan=-1).astype(np.int64)
        self.blocks = False
        self._times: dict[float | str, LimitTimes] = {}  # by group, or by the id of a job
        file = None if facts.run.folder is None else facts.run.folder / "limits.parquet"
        if file is None or not file.is_file():
            return
        table = read_columns(file, {column.name: column.kind for column in LIMITS})
        codes = np.array([facts.code(f"{LIMIT} {limit}") for limit in table["limit"]], dtype=np.int64)
        self.blocks = bool(table["blocks"].any())
        places: dict[float | str, list[int]] = {}
        for at, (group, job) in enumerate(zip(table["group"].tolist(), table["job"].tolist(), strict=True)):
            places.setdefault(group if job is None else job, []).append(at)
        starts, ends = table["start"], np.nan_to_num(table["end"], nan=np.inf)
        for holder, of in places.items():
            reasons = table["reason"][of].tolist()
            self._times[holder] = LimitTimes(starts[of], ends[of], codes[of], table["blocks"][of], reasons)

    def of_group(self, row: int) -> LimitTimes:
        """Return the times of the group of a job."""
        return self._times.get(int(self.group_of[row]), NOTHING)

    def of_job(self, row: int) -> LimitTimes:
        """Return the times of a single job."""
        return self._times.get(self._ids[row], NOTHING)

    def holds(self, row: int, time: float) -> bool:
        """Whether a limit keeps a waiting job out of view at a time."""
        return any(one.at(np.array([time]))[0] >= 0 for one in (self.of_group(row), self.of_job(row)))

    def holds_for_ever(self, row: int) -> bool:
        """Whether a job is above a limit whatever others use."""
        return any(reason and reason.startswith(FOR_EVER) for reason in self.of_job(row).reasons)

    def reason(self, row: int, time: float) -> str | None:
        """Return the sentence on the limit that kept this very job waiting at a time, if it was one."""
        own = self.of_job(row)
        at = int(own.at(np.array([time]))[0])
        return own.reasons[at] if at >= 0 else None
