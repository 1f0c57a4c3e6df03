"""The check of a model of a log: how far it is from the log, and from weeks that it did not see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any

from simsched.errors import SimschedError
from simsched.workload.models.log_distance import Distance, distances, totals
from simsched.workload.models.log_fit import CLASSES, fit_log
from simsched.workload.models.log_model import HOUR
from simsched.workload.transforms.transforms import time_slice

if TYPE_CHECKING:
    import numpy as np

    from simsched.workload.job import Workload
    from simsched.workload.models.log_model import LogModel

SEEN = 0.75
"""The share of the time of the log, from its beginning, from which the model that is checked is made."""


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
        """Return plain data for JSON."""
        parts = {"log": self.log, "unseen": self.unseen, "itself": self.itself}
        tables: dict[str, Any] = {
            part: {
                name: {"ks": one.ks, "factor": None if isnan(one.factor) else one.factor}
                for name, one in found.items()
            }
            for part, found in parts.items()
        }
        heads = ("log", "model", "unseen", "unseen_model")
        weeks = {name: dict(zip(heads, values, strict=False)) for name, values in self.per_week.items()}
        return {**tables, "per_week": weeks, **({"note": self.note} if self.note else {})}


def check_fit(
    workload: Workload, model: LogModel, rng: np.random.Generator, classes: int = CLASSES
) -> FitCheck:
    """Draw from the model, and from a model of three quarters of the log, and compare both with the log."""
    draws = rng.spawn(2)
    drawn = model.make(draws[0])
    span = workload.span[1] - workload.span[0]
    both = (totals(workload, span), totals(drawn, span))
    log = distances(workload, drawn)
    seen, unseen = time_slice(workload, 0, SEEN * span), time_slice(workload, SEEN * span)
    try:
        before = fit_log(seen, classes)
        later = _continued(before, SEEN * span, (1 - SEEN) * span)
        drawn = later.make(draws[1])
        rest = (totals(unseen, (1 - SEEN) * span), totals(drawn, (1 - SEEN) * span))
        held = distances(unseen, drawn), distances(unseen, seen)
    except SimschedError as error:
        weeks: dict[str, tuple[float, ...]]
        weeks = {name: (both[0][name], both[1][name]) for name in both[0]}
        return FitCheck(log, {}, {}, weeks, f"not checked on weeks that the model did not see: {error}")
    weeks = {name: (both[0][name], both[1][name], rest[0][name], rest[1][name]) for name in both[0]}
    return FitCheck(log, *held, weeks)


def _continued(model: LogModel, after: float, span: float) -> LogModel:
    """Return the model for the time after `after` seconds, with the growth until then."""
    from simsched.formats.rfc.clock import later_header
    from simsched.workload.models.log_model import MONTH

    # Whole hours, so that the hours of the model are those of the log.
    whole = after // HOUR * HOUR
    grown = model.growth ** (whole / MONTH)
    classes = tuple(replace(one, batches=one.batches * grown) for one in model.classes)
    header = later_header(model.header, whole)
    return replace(model, classes=classes, start=model.start + whole, span=span, header=header)


def tomorrow(model: LogModel) -> LogModel:
    """Return the model that begins where its log ends, with the growth until then."""
    return _continued(model, model.span, model.span)
