"""The check of a model of a log: how far it is from the log, and from weeks that it did not see.

The distance of two workloads is by quantity: Kolmogorov and Smirnov's, and Wasserstein's of logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

import numpy as np

from simsched.declare.answers import OrNull, extended, row_of, written
from simsched.errors import SimschedError
from simsched.workload.models.log_fit import CLASSES, LogColumns, fit_log
from simsched.workload.models.log_model import DAY, HOUR, WEEK
from simsched.workload.transforms.transforms import time_slice

if TYPE_CHECKING:
    from collections.abc import Callable

    from simsched.arrays import Floats
    from simsched.workload.job import Workload
    from simsched.workload.models.log_model import LogModel


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two samples are apart: `ks` from 0 to 1, and `factor`.

    `ks` is the greatest difference of the distribution functions.  `factor` is exp(W), where W is
    Wasserstein's distance of the logarithms: the factor by which values of one rank differ on (geometric)
    average.
    `factor` is NaN for the hour of the week, which has no ratio.
    """

    ks: float
    factor: OrNull


def quantities(workload: Workload) -> dict[str, Floats]:
    """Return the samples of each quantity of a workload, by name; a quantity that is not known is absent."""
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
        "jobs of a day": np.bincount(((table.local - table.local[0]) // DAY).astype(np.int64)).astype(float),
    }
    if (table.user >= 0).any():
        found["jobs of a user"] = np.unique(table.user[table.user >= 0], return_counts=True)[1].astype(float)
    return {name: values for name, values in found.items() if len(values)}


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
    grid = np.union1d(one, two)
    gaps = [np.searchsorted(np.sort(sample), grid, side="right") / len(sample) for sample in (one, two)]
    ks = float(np.abs(gaps[0] - gaps[1]).max())
    if name == "hour of the week":
        return Distance(ks, float("nan"))
    # From one second (or unit) up: below it, ratios mean nothing, but for shares of the limit.
    least = 0.001 if name == "run time / limit" else 1.0
    levels = (np.arange(4096) + 0.5) / 4096
    logs: list[Floats] = []  # by the inverse of the empirical distribution functions
    for sample in (one, two):
        ordered = np.sort(np.log(np.maximum(sample, least)))
        logs.append(ordered[np.minimum((levels * len(ordered)).astype(np.int64), len(ordered) - 1)])
    return Distance(ks, round(float(np.exp(np.abs(logs[0] - logs[1]).mean())), 12))


#: Total of a workload → how it is computed, per week of its span.
TOTALS: dict[str, Callable[[LogColumns], float]] = {
    "jobs per week": lambda table: float(len(table.jobs)),
    "processor-hours per week": lambda table: float((table.size * table.run).sum()) / HOUR,
}


def totals(workload: Workload, span: float) -> dict[str, float]:
    """Return totals per week of a workload whose jobs are submitted within `span` seconds."""
    table = LogColumns.of(workload)
    return {name: total(table) * WEEK / span for name, total in TOTALS.items()}


SEEN = 0.75
"""The share of the time of the log, from its beginning, from which the model that is checked is made."""


WEEKS = ("log", "model", "unseen", "unseen_model")


@dataclass(frozen=True, slots=True)
class FitCheck:
    """Distances by quantity, and totals per week.

    `log` is between the log and a draw of its model.  `unseen` is between the last quarter of the log and a
    draw of a model of the first three quarters, for that quarter; `itself` is between that quarter and the
    time before it: how far the log changes.  Both are empty, with the reason in `note`, if the log is too
    short.  `per_week` has by total its value in the log, the draw, the last quarter and the draw for it.
    """

    log: dict[str, Distance]
    unseen: dict[str, Distance]
    itself: dict[str, Distance]
    per_week: dict[str, tuple[float, ...]]
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, as `FitAnswer` declares it."""
        weeks = {name: dict(zip(WEEKS, values, strict=False)) for name, values in self.per_week.items()}
        found = {**written(self), "per_week": weeks}
        return {key: value for key, value in found.items() if key != "note" or value}


FitAnswer = extended(
    "FitAnswer", FitCheck, per_week=dict[str, Annotated[dict[str, float], row_of(WEEKS[:2], WEEKS[2:])]],
    note=NotRequired[str],
)  # fmt: skip


def check_fit(
    workload: Workload, model: LogModel, rng: np.random.Generator, classes: int = CLASSES
) -> FitCheck:
    """Draw from the model, and from a model of three quarters of the log, and compare both with the log."""
    draws = rng.spawn(2)
    drawn = model.make(draws[0])
    span = workload.span[1] - workload.span[0]
    weeks = [totals(workload, span), totals(drawn, span)]
    log = distances(workload, drawn)
    seen, unseen = time_slice(workload, 0, SEEN * span), time_slice(workload, SEEN * span)
    try:
        before = fit_log(seen, classes)
        later = _continued(before, SEEN * span, (1 - SEEN) * span)
        drawn = later.make(draws[1])
        held = distances(unseen, drawn), distances(unseen, seen)
        weeks += [totals(unseen, (1 - SEEN) * span), totals(drawn, (1 - SEEN) * span)]
        note = ""
    except SimschedError as error:
        held, note = ({}, {}), f"not checked on weeks that the model did not see: {error}"
    return FitCheck(log, *held, {name: tuple(part[name] for part in weeks) for name in TOTALS}, note)


def _continued(model: LogModel, after: float, span: float) -> LogModel:
    """Return the model for the time after `after` seconds, with the growth until then."""
    from simsched.formats.rfc.clock import later_header
    from simsched.workload.models.log_model import MONTH

    # Whole hours, so that the hours of the model are those of the log.
    whole = after // HOUR * HOUR
    grown = model.growth ** (whole / MONTH)
    classes = tuple(one.replace(batches=one.batches * grown) for one in model.classes)
    header = later_header(model.header, whole)
    return replace(model, classes=classes, start=model.start + whole, span=span, header=header)


def tomorrow(model: LogModel) -> LogModel:
    """Return the model that begins where its log ends, with the growth until then."""
    return _continued(model, model.span, model.span)
