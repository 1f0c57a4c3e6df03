"""The figures of groups of jobs on arrays: counts, waits, slowdowns and work of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Codes = npt.NDArray[np.intp]

FIGURES = ("mean_wait", "median_wait", "p95_wait", "mean_bounded_slowdown", "core_hours", "share")
"""The figures of groups, besides their number of jobs."""
RECORDED_KWH = "recorded_kwh"
"""The figure with the recorded energies; groups have it only if the workload has energies."""


class JobGroups(NamedTuple):
    """The figures of each group that has jobs, in the order of `labels`."""

    labels: Sequence[Any]
    figures: dict[str, Floats]

    @classmethod
    def of(
        cls, labels: Sequence[Any], codes: Codes, jobs: tuple[Floats, Floats, Floats], energies: Floats | None
    ) -> JobGroups:
        """Return the groups of jobs.

        Parameters
        ----------
        labels, codes : the names of all groups, and the place of each job's group in them.
        jobs : wait (s), bounded slowdown, and core-seconds of each job.
        energies : recorded energies (J), NaN where a job has none, or None.
        """
        waits, slowdowns, areas = jobs
        counts = np.bincount(codes, minlength=len(labels))
        hours = np.bincount(codes, np.nan_to_num(areas), len(labels)) / 3600
        figures: dict[str, Floats] = {
            "jobs": counts.astype(np.float64),
            "mean_wait": _means(codes, waits, counts),
            "median_wait": _quantiles(codes, waits, counts, 0.5),
            "p95_wait": _quantiles(codes, waits, counts, 0.95),
            "mean_bounded_slowdown": _means(codes, slowdowns, counts),
            "core_hours": hours,
            "share": hours / max(float(hours.sum()), 1e-300),  # 0 and not NaN if no job did any work
        }
        if energies is not None and not np.isnan(energies).all():
            figures[RECORDED_KWH] = np.bincount(codes, np.nan_to_num(energies), len(labels)) / 3.6e6
        there = np.flatnonzero(counts)
        kept = [labels[place] for place in there.tolist()]
        return cls(kept, {name: values[there] for name, values in figures.items()})


def _means(codes: Codes, values: Floats, counts: Codes) -> Floats:
    means: Floats = np.bincount(codes, values, len(counts)) / np.maximum(counts, 1)
    return means


def _quantiles(codes: Codes, values: Floats, counts: Codes, share: float) -> Floats:
    """Return a quantile of each group, interpolated between two values; any number for an empty group."""
    if not len(values):
        return np.zeros(len(counts))
    ordered = values[np.lexsort((values, codes))]
    last = np.maximum(np.cumsum(counts) - 1, 0)
    after = np.maximum(counts - 1, 0)
    place = last - after + after * share
    low = place.astype(np.intp)
    found: Floats = ordered[low] + (ordered[np.minimum(low + 1, last)] - ordered[low]) * (place - low)
    return found
