"""Numbers as points of charts: a timeline in equal bins, a distribution as a curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.report.columns import HELD
from simsched.report.metrics.metrics import types
from simsched.report.metrics.plain_columns import floats

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from simsched.arrays import Floats
    from simsched.report.data.tables import RunTables
    from simsched.report.metrics.plain_columns import Table

#: points of a curve of a distribution
POINTS = 400


def binned(
    timeline: Table, column: str, bins: int, window: tuple[float, float] | None = None
) -> tuple[Floats, Floats]:
    """Return the edges (bins + 1, seconds) and the time average of a step function in each bin.

    Exact: the integral is interpolated at the edges, so nothing shorter than a bin
    is lost.  NaN before the first row.
    """
    time = floats(timeline, "time")
    low, high = window or ((time[0], time[-1]) if len(time) else (0.0, 0.0))
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    if not len(time):
        return edges, np.full(bins, np.nan)
    values = floats(timeline, column)
    # the last row holds until the end of the window
    knots = np.append(time, max(edges[-1], time[-1]))
    integral = np.concatenate(([0.0], np.cumsum(values * np.diff(knots))))
    at = np.interp(edges, knots, integral)
    means = np.diff(at) / np.diff(edges)
    means[edges[1:] <= time[0]] = np.nan
    return edges, means


def busiest(timeline: Table, column: str, edges: Floats) -> Floats:
    """Return the maximum of a step function in each bin; NaN before the first row."""
    time = floats(timeline, "time")
    first = np.maximum(np.searchsorted(time, edges[:-1], side="right") - 1, 0)
    last = np.searchsorted(time, edges[1:], side="left")
    values = np.append(floats(timeline, column), np.nan)  # a bin may end behind the last row
    tops = np.maximum.reduceat(values, np.stack([first, last], axis=1).ravel())[::2]
    return np.where(first < last, tops, np.nan)


def types_in_use(run: RunTables) -> list[str]:
    """Return the types that have a curve: cores, gpus, nodes, and others that were used."""
    known = [kind for kind in types(run.timeline) if run.totals.get(kind)]
    return in_order(k for k in known if k in HELD or (run.timeline[f"used_{k}"] > 0).any())


def in_order(kinds: Iterable[str]) -> list[str]:
    """Return resource types in the order of the reports: cores, gpus, nodes, the others.

    >>> in_order(["node", "storage", "gpu", "core", "memory"])
    ['core', 'gpu', 'node', 'storage', 'memory']
    """
    first = ("core", "gpu", "node")
    return sorted(kinds, key=lambda k: first.index(k) if k in first else len(first))


def curve(values: pd.Series[float], least: float | None) -> pd.DataFrame:
    """Return the distribution of values as points: value and share of values up to it.

    Values below `least` are drawn at it, for a logarithmic axis.
    """
    import pandas as pd

    known = np.sort(values[np.isfinite(values)].to_numpy(dtype=np.float64))
    if not len(known):
        return pd.DataFrame({"value": [], "share": []})
    shares = np.unique(np.concatenate([np.linspace(0, 1, POINTS), 1 - np.geomspace(1 / len(known), 1, 40)]))
    at = known[np.clip(np.ceil(shares * len(known)).astype(int) - 1, 0, len(known) - 1)]
    share = np.searchsorted(known, at, side="right") / len(known)
    value = at if least is None else np.maximum(at, least)
    return pd.DataFrame({"value": value, "share": share}).drop_duplicates("value", keep="last")
