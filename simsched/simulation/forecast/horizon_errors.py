"""The errors of past forecasts by horizon, as a table: bias and error of predicted waits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from simsched import human
from simsched.declare.answers import OrNull, Written, json_text
from simsched.simulation.forecast.forecast_quantiles import HORIZONS
from simsched.text_table import PAGE_WIDTH, fitted_table

if TYPE_CHECKING:
    from simsched.simulation.forecast.forecast_quantiles import StartQuantiles
    from simsched.simulation.forecast.past_forecasts import PastForecasts


@dataclass(frozen=True, slots=True)
class HorizonError:
    """The errors of past forecasts with horizons of `least` to `most` seconds; real less predicted.

    forecasts : their number.
    predicted, real : mean predicted and real wait (s).
    bias, absolute, median : mean error, mean absolute error and median error (s).
    earlier : share of jobs that started before the predicted time.
    within_twofold : share of real waits of half to twice the predicted one.
    """

    least: float
    most: OrNull
    forecasts: int
    predicted: float
    real: float
    bias: float
    absolute: float
    median: float
    earlier: float
    within_twofold: float


class CheckAnswer(Written, frozen=True, kw_only=True):
    """How often quantiles held, on weeks or days that had no part in them.

    levels : the levels of the quantiles.
    coverage : by level: the mean over weeks or days of the share of starts that were not later.
    pooled : by level: the share of all starts that were not later.
    weeks, days : number of weeks or days.
    """

    levels: tuple[float, ...]
    coverage: tuple[OrNull, ...]
    pooled: tuple[OrNull, ...]
    weeks: int | None = None
    days: int | None = None


class HorizonErrors(Written, frozen=True, kw_only=True):
    """The errors of past forecasts, and the check of quantiles learnt from them.

    errors : one class of horizons each.
    unknown : number of forecasts of jobs that have not started.
    """

    errors: list[HorizonError]
    unknown: int
    check: CheckAnswer


def horizon_errors(past: PastForecasts) -> list[HorizonError]:
    """Return the errors by horizon, of the forecasts whose jobs have started; empty classes are left out."""
    done = past.kept(past.started)
    rows = []
    for least, most in pairwise((0.0, *HORIZONS, float("inf"))):
        inside = (done.horizons >= least) & (done.horizons < most)
        if not inside.any():
            continue
        ahead, waits = done.horizons[inside], done.waits[inside]
        errors = waits - ahead
        rows.append(
            HorizonError(
                least,
                most,
                len(errors),
                float(ahead.mean()),
                float(waits.mean()),
                float(errors.mean()),
                float(np.abs(errors).mean()),
                float(np.median(errors)),
                float((errors < 0).mean()),
                float(((waits >= ahead / 2) & (waits <= ahead * 2)).mean()),
            )
        )
    return rows


def errors_text(learnt: StartQuantiles) -> str:
    """Return the table of the errors, and the check of quantiles learnt from them."""
    rows = [
        [
            _range(row.least, row.most),
            f"{row.forecasts:,}",
            *(human.seconds(round(value)) for value in (row.predicted, row.real)),
            *(_signed(value) for value in (row.bias, row.median)),
            human.seconds(round(row.absolute)),
            human.share(row.earlier),
            human.share(row.within_twofold),
        ]
        for row in horizon_errors(learnt.past)
    ]
    head = ["predicted", "forecasts", "mean", "real", "bias", "median", "abs. error", "earlier", "≤ 2 ×"]
    unknown = int((~learnt.past.started).sum())
    lines = [fitted_table(head, rows, PAGE_WIDTH, ["mean", "median"])]
    if unknown:
        lines.append(f"{unknown:,} forecasts of jobs that have not started are left out")
    return "\n".join([*lines, learnt.text]) + "\n"


def errors_json(learnt: StartQuantiles) -> str:
    """Return the errors and the check as JSON text; times are in seconds."""
    check = learnt.check
    found = HorizonErrors(
        errors=horizon_errors(learnt.past),
        unknown=int((~learnt.past.started).sum()),
        check=CheckAnswer(
            levels=check.levels,
            coverage=check.coverage.tolist(),
            pooled=check.pooled.tolist(),
            **{f"{check.unit}s": len(check.counts)},
        ),
    )
    return json_text(found, 1) + "\n"


def _range(least: float, most: float) -> str:
    if most == float("inf"):
        return f"from {human.seconds(least)}"
    return f"to {human.seconds(most)}"


def _signed(value: float) -> str:
    shown = human.seconds(round(value))
    return f"+{shown}" if value > 0 else shown
