"""The distance of two workloads by quantity: Kolmogorov and Smirnov's, and Wasserstein's of logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.workload.models.log_fit import LogColumns
from simsched.workload.models.log_model import DAY, HOUR, WEEK

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from simsched.workload.job import Workload

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two samples are apart: `ks` from 0 to 1, and `factor`.

    `ks` is the greatest difference of the distribution functions.  `factor` is exp(W), where W is
    Wasserstein's distance of the logarithms: the factor by which values of one rank differ on (geometric)
    average.
    `factor` is NaN for the hour of the week, which has no ratio.
    """

    ks: float
    factor: float


def quantities(workload: Workload) -> dict[str, Floats]:
    """Return the samples of each quantity of a workload, by name; a quantity that is not known is absent."""
    import numpy as np

    table = LogColumns.of(workload)
    memory = np.array([job.memory for job in table.jobs if job.memory], dtype=float)
    found = {
        "size": table.size,
        "run time": table.run,
        "limit": table.limit[~np.isnan(table.limit)],
        "run time / limit": (table.run / table.limit)[~np.isnan(table.limit)],
        "work of a job": table.size * table.run,
        "memory": memory,
        "gap": np.diff(table.submit),
        "hour of the week": (table.local // HOUR + 72) % 168,
        "jobs of a day": _by_day(table),
    }
    if (table.user >= 0).any():
        found["jobs of a user"] = np.unique(table.user[table.user >= 0], return_counts=True)[1].astype(float)
    return {name: values for name, values in found.items() if len(values)}


def _by_day(table: LogColumns) -> Floats:
    import numpy as np

    days = ((table.local - table.local[0]) // DAY).astype(np.int64)
    return np.bincount(days).astype(float)


def distances(one: Workload, two: Workload) -> dict[str, Distance]:
    """Return the distance of two workloads, for each quantity that both have."""
    first, second = quantities(one), quantities(two)
    return {name: distance(first[name], second[name], name) for name in first if name in second}


def distance(one: Floats, two: Floats, name: str = "") -> Distance:
    """Return the distance of two samples.

    >>> import numpy as np
    >>> distance(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    Distance(ks=0.5, factor=2.0)
    """
    import numpy as np

    grid = np.union1d(one, two)
    gaps = [np.searchsorted(np.sort(sample), grid, side="right") / len(sample) for sample in (one, two)]
    ks = float(np.abs(gaps[0] - gaps[1]).max())
    if name == "hour of the week":
        return Distance(ks, float("nan"))
    # From one second (or unit) up: below it, ratios mean nothing, but for shares of the limit.
    least = 0.001 if name == "run time / limit" else 1.0
    levels = (np.arange(4096) + 0.5) / 4096
    logs = [_quantiles(np.log(np.maximum(sample, least)), levels) for sample in (one, two)]
    return Distance(ks, round(float(np.exp(np.abs(logs[0] - logs[1]).mean())), 12))


def _quantiles(values: Floats, levels: Floats) -> Floats:
    """Return the values of the inverse of the empirical distribution function."""
    import numpy as np

    ordered = np.sort(values)
    places: Floats = ordered[np.minimum((levels * len(ordered)).astype(np.int64), len(ordered) - 1)]
    return places


#: Total of a workload → how it is computed, per week of its span.
TOTALS: dict[str, Callable[[LogColumns], float]] = {
    "jobs per week": lambda table: float(len(table.jobs)),
    "processor-hours per week": lambda table: float((table.size * table.run).sum()) / HOUR,
}


def totals(workload: Workload, span: float) -> dict[str, float]:
    """Return totals per week of a workload whose jobs are submitted within `span` seconds."""
    table = LogColumns.of(workload)
    return {name: total(table) * WEEK / span for name, total in TOTALS.items()}
