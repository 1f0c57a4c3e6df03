"""Clusters of jobs by k-means (Lloyd), with starting points that are not random."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

_ROUNDS = 50
_FEWEST = 20
"""A cluster has at least this many jobs, or it becomes part of the nearest one of its kind."""


def clusters(features: Floats, kind: Integers, number: int) -> Integers:
    """Return a cluster (from 0) per row: rows of different kinds are never in one cluster.

    Each kind gets clusters in proportion to its rows, and at least one.
    """
    import numpy as np

    found = np.zeros(len(features), dtype=np.int64)
    start = 0
    for one in np.unique(kind):
        rows = np.flatnonzero(kind == one)
        mine = kmeans(features[rows], max(1, round(number * len(rows) / len(kind))))
        found[rows] = start + mine
        start += int(mine.max()) + 1
    return found


def kmeans(points: Floats, number: int) -> Integers:
    """Return a cluster (from 0) per point; there are at most `number`, none of them empty."""
    import numpy as np

    centres = _far_points(points, number)
    found = _nearest(points, centres)
    for _ in range(_ROUNDS):
        centres = np.array([points[found == place].mean(axis=0) for place in np.unique(found)])
        again = _nearest(points, centres)
        if np.array_equal(again, found):
            break
        found = again
    counts = np.bincount(found, minlength=len(centres))
    large = np.flatnonzero(counts >= min(_FEWEST, counts.max()))
    found = _nearest(points, centres[large])
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def _far_points(points: Floats, number: int) -> Floats:
    """Return starting points: the mean, then points of a high quantile of the distance to those before.

    The farthest points would be outliers, which make clusters of a few jobs.
    """
    import numpy as np

    centres = [points.mean(axis=0)]
    distance = ((points - centres[0]) ** 2).sum(axis=1)
    while len(centres) < number and distance.max() > 0:
        order = np.argsort(distance, kind="stable")
        centres.append(points[order[int(0.95 * (len(order) - 1))]])
        distance = np.minimum(distance, ((points - centres[-1]) ** 2).sum(axis=1))
    return np.array(centres)


def _nearest(points: Floats, centres: Floats) -> Integers:
    import numpy as np

    distance = np.stack([((points - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
    found: Integers = distance.argmin(axis=1).astype(np.int64)
    return found
