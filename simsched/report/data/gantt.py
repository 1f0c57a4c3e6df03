"""The rectangles of a Gantt chart: which job held which node when.

Time runs to the right, ranks upwards, one row each.  A job on whole nodes is one rectangle per
range of ranks.  A job on part of a node covers that part of the row, by its core ids.  For a run
without allocations the chart has one row per core, and jobs are packed (`packed`).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from simsched.errors import RunError
from simsched.report.columns import HELD
from simsched.report.data.allocations import idset_of

if TYPE_CHECKING:
    from simsched.report.data.tables import RunTables

Bands = tuple[tuple[float, float], ...]

#: types whose ids place a job within its nodes; the first one that a record has counts
PLACING = ("core", "gpu", "node")
#: most bands of one record; a job that holds one core on each of 10,000 nodes has 10,000
MAX_BANDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Chart:
    """The content of a Gantt chart: rectangles (see `rectangles`), the number of rows, and their type.

    A row is a ``rank`` if the run has its allocations, otherwise one unit of the type `row`.
    """

    boxes: pd.DataFrame
    rows: int
    row: str

    @property
    def label(self) -> str:
        """The label of the axis of the rows."""
        return "execution target (rank)" if self.row == "rank" else f"{self.row}s in use, packed"

    @property
    def title(self) -> str:
        """The title of the chart."""
        return "Nodes of each job" if self.row == "rank" else f"Number of {self.row}s of each job"


def chart(run: RunTables) -> Chart:
    """Return the Gantt chart of a run: by rank, or packed if it was made without its allocations."""
    if run.has_allocations:
        boxes = rectangles(run)
        return Chart(boxes, rows_of(run, boxes), "rank")
    jobs = run.jobs[run.jobs["start"].notna()]
    row = next((kind for kind in ("core", "node") if (jobs[HELD[kind]] > 0).any()), "node")
    end = jobs["end"].fillna(_last_time(run)).to_numpy(dtype=np.float64)
    units = jobs[HELD[row]].to_numpy(dtype=np.int64)
    boxes = packed(jobs["start"].to_numpy(dtype=np.float64), end, units)
    boxes["job"] = jobs.index.to_numpy()[boxes["job"].astype("int64")]
    used = int(boxes["high"].max()) if len(boxes) else 0
    return Chart(boxes, max(run.totals.get(row, 0), used, 1), row)


def rectangles(run: RunTables) -> pd.DataFrame:
    """Return one row per rectangle: job (row of ``run.jobs``), start, end (s), low, high (ranks, half open).

    Ordered by start.  Jobs that still hold something last until the end of the timeline.
    Empty for a run without allocations.
    """
    shards = run.shards
    if shards.empty:
        return _nothing()
    held = _held(shards, _last_time(run))
    rows = pd.Series(np.arange(len(run.jobs)), index=run.jobs["id"].to_numpy())
    jobs = held["id"].map(rows[~rows.index.duplicated()])
    held = held.assign(job=jobs)[jobs.notna()]
    if held.empty:
        return _nothing()
    return _drawn(held, units_per_node(run, shards)).sort_values("start", kind="stable", ignore_index=True)


def _nothing() -> pd.DataFrame:
    return pd.DataFrame({c: np.zeros(0) for c in ("job", "start", "end", "low", "high")})


def _last_time(run: RunTables) -> float:
    times = [run.jobs["end"].max(), run.jobs["start"].max()]
    times += [run.shards["time"].max()] if len(run.shards) else []
    times += [run.timeline["time"].max()] if len(run.timeline) else []
    return max((float(t) for t in times if np.isfinite(t)), default=0.0)


def _held(shards: pd.DataFrame, last: float) -> pd.DataFrame:
    """Return id, ranks, ids, start and end of each shard, released or not."""
    order = shards["type"].map({t: i for i, t in enumerate(PLACING)}).astype("float64").fillna(len(PLACING))
    # one type places a job: cores before gpus before whole nodes, so that no box is drawn twice
    placed = shards[order == order.groupby(shards["record"]).transform("min")]
    is_alloc = placed["event"] == "alloc"
    keys = ["id", "attempt"]
    start = placed[is_alloc].drop_duplicates(keys).set_index(keys)["time"].rename("start")
    back = placed[~is_alloc].join(start, on=keys).rename(columns={"time": "end"})
    # a job that was not released at all still holds its units at the end of the record
    released = pd.MultiIndex.from_frame(back[keys].drop_duplicates())
    given = placed[is_alloc].set_index(keys, drop=False)
    still = given[~given.index.isin(released)].assign(start=lambda f: f["time"], end=last)
    columns = ["id", "ranks", "ids", "type", "start", "end"]
    return pd.concat([back[columns], still[columns]], ignore_index=True)


def units_per_node(run: RunTables, shards: pd.DataFrame) -> dict[str, int]:
    """Return the units of each placing type on a node: from the totals, else the highest id seen."""
    nodes, units = run.totals.get("node", 0), {}
    for kind in PLACING[:2]:
        total = run.totals.get(kind, 0)
        texts = shards.loc[shards["type"] == kind, "ids"].unique()
        seen = max((high + 1 for text in texts for _, high in idset_of(text).ranges), default=0)
        units[kind] = max(total // nodes if nodes and total % nodes == 0 else 0, seen, 1)
    return units


def bands(ranks: str, ids: str, units: int) -> Bands:
    """Return the bands of rows that ids on ranks cover, where `units` ids make a whole row.

    >>> bands("0-3,7", "0-3", 4)
    ((0.0, 4.0), (7.0, 8.0))
    >>> bands("1-2", "2-3", 4)
    ((1.5, 2.0), (2.5, 3.0))
    """
    parts, rows = idset_of(ids).ranges, idset_of(ranks).ranges
    if not parts or len(idset_of(ids)) >= units:
        return tuple((float(low), high + 1.0) for low, high in rows)
    if len(idset_of(ranks)) * len(parts) > MAX_BANDS:
        raise RunError(f"a job holds more than {MAX_BANDS:,} parts of nodes")
    return tuple(
        (rank + low / units, rank + min((high + 1) / units, 1.0))
        for first, last in rows
        for rank in range(first, last + 1)
        for low, high in parts
    )


def _drawn(held: pd.DataFrame, units: dict[str, int]) -> pd.DataFrame:
    """Repeat each row for each of its bands."""
    kinds = held["ranks"].astype(str) + "\n" + held["ids"].astype(str) + "\n" + held["type"].astype(str)
    # texts repeat often: each distinct combination is parsed once
    codes, texts = pd.factorize(kinds)
    rows: list[tuple[int, float, float]] = []
    for code, text in enumerate(texts):
        ranks, ids, kind = text.split("\n")
        rows += [(code, *band) for band in bands(ranks, ids if kind in units else "", units.get(kind, 1))]
    at = pd.DataFrame(np.array(rows, dtype=np.float64).reshape(-1, 3), columns=["code", "low", "high"])
    drawn = held.assign(code=codes.astype(np.float64)).merge(at, on="code")
    return drawn[["job", "start", "end", "low", "high"]].astype({"job": np.int64})


def rows_of(run: RunTables, rects: pd.DataFrame) -> int:
    """Return the number of rows: the cluster's targets, or the used ones if they are more."""
    used = int(np.ceil(rects["high"].max())) if len(rects) else 0
    return max(run.totals.get("node", 0), int(run.meta.get("cluster", {}).get("targets") or 0), used, 1)


# --- without allocations -------------------------------------------------------------

Ranges = list[tuple[int, int]]


class FreeRows:
    """The rows 0, 1, 2 … that are free: disjoint ascending half-open ranges, the last one without end.

    >>> rows = FreeRows()
    >>> a, b = rows.take(2), rows.take(3)
    >>> rows.give(a)
    >>> rows.take(4)
    [(0, 2), (5, 7)]
    """

    ENDLESS = 2**62

    def __init__(self) -> None:
        self._free: Ranges = [(0, self.ENDLESS)]

    def take(self, count: int) -> Ranges:
        """Take the lowest `count` free rows; O(ranges taken)."""
        free, taken, at = self._free, [], 0
        while count:
            low, high = free[at]
            until = min(high, low + count)
            taken.append((low, until))
            count -= until - low
            at += 1
        low, high = taken[-1][1], free[at - 1][1]
        free[:at] = [(low, high)] if low < high else []
        return taken

    def give(self, ranges: Ranges) -> None:
        """Return rows; O(log n) per range, and the shift of a list."""
        free = self._free
        for low, high in ranges:
            at = bisect_left(free, (low, high))
            begin, end = at, at
            if at and free[at - 1][1] == low:
                low, begin = free[at - 1][0], at - 1  # noqa: PLW2901 - the range grows
            if at < len(free) and free[at][0] == high:
                high, end = free[at][1], at + 1  # noqa: PLW2901 - the range grows
            free[begin:end] = [(low, high)]

    def _check(self) -> None:
        """Assert that the ranges ascend, do not touch, and that the last one has no end."""
        assert all(low < high for low, high in self._free)
        assert all(a[1] < b[0] for a, b in zip(self._free, self._free[1:], strict=False))
        assert self._free[-1][1] == self.ENDLESS


def packed(
    start: npt.NDArray[np.float64], end: npt.NDArray[np.float64], units: npt.NDArray[np.int64]
) -> pd.DataFrame:
    """Return one row per rectangle: job (its position), start, end (s), low, high (rows, half open).

    Each job takes the lowest free rows, in the order of starts; rows that a job leaves at an instant are
    free at that instant.  The number of rows of a job is exact, but their position is not that of its units.
    Jobs without units have no rectangle.  Ordered by start.
    """
    free, rows = FreeRows(), []
    ends: list[tuple[float, int, Ranges]] = []
    order = np.flatnonzero(units > 0)[np.argsort(start[units > 0], kind="stable")]
    for job, begin, until, count in zip(
        order.tolist(), start[order].tolist(), end[order].tolist(), units[order].tolist(), strict=True
    ):
        while ends and ends[0][0] <= begin:
            free.give(heappop(ends)[2])
        taken = free.take(count)
        heappush(ends, (until, job, taken))
        rows += [(job, begin, until, low, high) for low, high in taken]
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return pd.DataFrame(table, columns=["job", "start", "end", "low", "high"])
