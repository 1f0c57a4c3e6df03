"""Who held which node when, as rectangles: what every Gantt chart draws.

Time runs to the right; one row a rank upwards.  A job on whole nodes is one rectangle a
range of ranks; a job on part of a node covers that part of the row, by its core ids.  Of a
run without allocations the chart has one row a core (`lanes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from simsched.errors import RunError
from simsched.report.data.allocations import attempts, idset_of
from simsched.report.data.columns import HELD
from simsched.report.data.lanes import packed

if TYPE_CHECKING:
    from simsched.report.data.tables import Run

Floats = npt.NDArray[np.float64]
Bands = tuple[tuple[float, float], ...]

#: types whose ids place a job within its nodes, the first that a record has
PLACING = ("core", "gpu", "node")
#: bands of one job on one release at most; a job that holds a core on each of 10,000 nodes has 10,000
MAX_BANDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Chart:
    """What a Gantt chart draws: rectangles (as `rectangles` returns them), how many rows, what a row is.

    A row is a ``rank`` where the run says what lay where, else a unit of the type that it names.
    """

    boxes: pd.DataFrame
    rows: int
    row: str

    @property
    def label(self) -> str:
        """What is written at the axis of the rows."""
        return "execution target (rank)" if self.row == "rank" else f"{self.row}s in use, packed"

    @property
    def title(self) -> str:
        """What the chart shows."""
        return "Who held which node when" if self.row == "rank" else f"Who held how many {self.row}s when"


def chart(run: Run) -> Chart:
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


def rectangles(run: Run) -> pd.DataFrame:
    """Return one row a rectangle: job (row of ``run.jobs``), start, end (s), low, high (ranks, half open).

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
    return _drawn(held, _units_per_node(run, shards)).sort_values("start", kind="stable", ignore_index=True)


def _nothing() -> pd.DataFrame:
    return pd.DataFrame({c: np.zeros(0) for c in ("job", "start", "end", "low", "high")})


def _last_time(run: Run) -> float:
    times = [run.jobs["end"].max(), run.jobs["start"].max()]
    times += [run.shards["time"].max()] if len(run.shards) else []
    times += [run.timeline["time"].max()] if len(run.timeline) else []
    return max((float(t) for t in times if np.isfinite(t)), default=0.0)


def _held(shards: pd.DataFrame, last: float) -> pd.DataFrame:
    """Return id, ranks, ids, start and end of each shard that was released, or never was."""
    placed = shards.assign(attempt=attempts(shards))
    order = placed["type"].map({t: i for i, t in enumerate(PLACING)}).astype("float64").fillna(len(PLACING))
    best = order.groupby(placed["record"]).transform("min")
    placed = placed[order == best]
    is_alloc = placed["event"] == "alloc"
    keys = ["id", "attempt"]
    start = placed[is_alloc].drop_duplicates(keys).set_index(keys)["time"].rename("start")
    back = placed[~is_alloc].join(start, on=keys).rename(columns={"time": "end"})
    released = pd.MultiIndex.from_frame(back[keys].drop_duplicates())
    given = placed[is_alloc].set_index(keys, drop=False)
    still = given[~given.index.isin(released)].assign(start=lambda f: f["time"], end=last)
    columns = ["id", "ranks", "ids", "type", "start", "end"]
    return pd.concat([back[columns], still[columns]], ignore_index=True)


def _units_per_node(run: Run, shards: pd.DataFrame) -> dict[str, int]:
    """Return how many units of each placing type a node has: from the totals, else the highest id seen."""
    nodes, units = run.totals.get("node", 0), {}
    for kind in PLACING[:2]:
        total = run.totals.get(kind, 0)
        texts = shards.loc[shards["type"] == kind, "ids"].unique()
        seen = max((_highest(t) for t in texts), default=-1) + 1
        units[kind] = max(total // nodes if nodes and total % nodes == 0 else 0, seen, 1)
    return units


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    return idset_of(text).ranges


def _highest(text: str) -> int:
    ranges = _ranges(text)
    return ranges[-1][1] if ranges else -1


def bands(ranks: str, ids: str, units: int) -> Bands:
    """Return the bands of rows that ids on ranks cover, `units` ids making up a whole row.

    >>> bands("0-3,7", "0-3", 4)
    ((0.0, 4.0), (7.0, 8.0))
    >>> bands("1-2", "2-3", 4)
    ((1.5, 2.0), (2.5, 3.0))
    """
    parts = _ranges(ids)
    held = sum(high - low + 1 for low, high in parts)
    if not parts or held >= units:
        return tuple((float(low), high + 1.0) for low, high in _ranges(ranks))
    wide = sum(high - low + 1 for low, high in _ranges(ranks))
    if wide * len(parts) > MAX_BANDS:
        raise RunError(f"a job holds more than {MAX_BANDS:,} parts of nodes")
    return tuple(
        (rank + low / units, rank + min((high + 1) / units, 1.0))
        for first, last in _ranges(ranks)
        for rank in range(first, last + 1)
        for low, high in parts
    )


def _drawn(held: pd.DataFrame, units: dict[str, int]) -> pd.DataFrame:
    """Repeat each row for each of its bands."""
    kinds = held["ranks"].astype(str) + "\n" + held["ids"].astype(str) + "\n" + held["type"].astype(str)
    codes, texts = pd.factorize(kinds)
    placed = []
    for text in texts:
        ranks, ids, kind = text.split("\n")
        placed.append(bands(ranks, ids if kind in units else "", units.get(kind, 1)))
    counts = np.asarray([len(p) for p in placed], dtype=np.int64)[codes]
    rows = np.repeat(np.arange(len(held)), counts)
    flat = np.asarray([b for p in placed for b in p], dtype=np.float64).reshape(-1, 2)
    first = np.concatenate(([0], np.cumsum([len(p) for p in placed])))[:-1][codes]
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = flat[np.repeat(first, counts) + within]
    return pd.DataFrame(
        {
            "job": held["job"].to_numpy(dtype=np.int64)[rows],
            "start": held["start"].to_numpy(dtype=np.float64)[rows],
            "end": held["end"].to_numpy(dtype=np.float64)[rows],
            "low": at[:, 0],
            "high": at[:, 1],
        }
    )


def rows_of(run: Run, rects: pd.DataFrame) -> int:
    """Return how many rows the chart has: the cluster's targets, or as many as were used."""
    used = int(np.ceil(rects["high"].max())) if len(rects) else 0
    return max(run.totals.get("node", 0), int(run.meta.get("cluster", {}).get("targets") or 0), used, 1)


def idle_share(rects: pd.DataFrame, rows: int, window: tuple[float, float]) -> float:
    """Share of row-seconds in the window that no rectangle covers; rectangles never overlap."""
    low, high = window
    inside = (rects["end"].clip(upper=high) - rects["start"].clip(lower=low)).clip(lower=0)
    whole = rows * (high - low)
    return 1 - float((inside * (rects["high"] - rects["low"])).sum()) / whole if whole else float("nan")
