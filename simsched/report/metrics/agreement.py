"""How near the waits of a run are to those that the log recorded, for the jobs that have both.

Waits are compared on a logarithmic scale, on which "twice as long" weighs the same for a minute and for a
day. Waits below `LEAST_WAIT` count as that long: a difference of seconds is the clock of the scheduler.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.declare.answers import OrNull  # noqa: TC001 (of the JSON Schema)
from simsched.report.metrics.classes import group_of
from simsched.report.metrics.intervals import DAY, Interval, mean_interval, periods_of
from simsched.report.metrics.metrics import TAU, measured
from simsched.report.metrics.plain_columns import floats

if TYPE_CHECKING:
    import pandas as pd

    from simsched.arrays import Floats
    from simsched.formats.rfc.clock import Clock
    from simsched.report.metrics.plain_columns import Table


#: seconds that shorter waits count as, where waits are compared by their ratio
LEAST_WAIT = 60.0
#: seconds within which two waits count as equal
NEAR = 600.0


@dataclass(frozen=True, slots=True)
class WaitFigures:
    """The figures of one side: waits in seconds, bounded slowdown, and processor-seconds over time."""

    mean: OrNull
    median: OrNull
    p95: OrNull
    slowdown: OrNull
    work_rate: OrNull


@dataclass(frozen=True, slots=True)
class Agreement:
    """The recorded beside the simulated waits of the same jobs.

    Attributes
    ----------
    jobs : number of jobs that have both.
    recorded, simulated : the figures of the two; the work rate is the mean number of processors in use
        from the first submission to the last end.
    difference : mean of simulated less recorded waits (s), with its interval.
    rank : Spearman's rank correlation of the waits; unknown if all waits of a side are equal.
    near : share of jobs whose waits differ by at most ten minutes.
    twofold : share of jobs whose waits differ by at most a factor of two.
    factor : the typical factor between the waits: exp of the mean of ``|ln(simulated / recorded)|``.
    days : number of days with submissions.
    day_difference : mean over days of the absolute difference of the mean waits of a day's jobs (s).
    day_rank : rank correlation of the mean waits of days.
    error : how far the waits are from each other (`wait_error`); 0 is a perfect run.
    """

    jobs: int
    recorded: WaitFigures
    simulated: WaitFigures
    difference: Interval
    rank: OrNull
    near: OrNull
    twofold: OrNull
    factor: OrNull
    days: int
    day_difference: OrNull
    day_rank: OrNull
    error: OrNull

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        return asdict(self)


def compared(jobs: Table) -> Any:
    """Return the jobs that ran and have a recorded wait, with the columns of `measured`."""
    done = measured(jobs)
    known = ~np.isnan(floats(done, "recorded_wait")) if "recorded_wait" in done else np.zeros(len(done), bool)
    return done[known]


def agreement(jobs: Table) -> Agreement | None:
    """Return how near the waits of a run are to the recorded ones; None without recorded waits."""
    both = compared(jobs)
    if not len(both):
        return None
    found, real, submits = (floats(both, name) for name in ("wait", "recorded_wait", "submit"))
    days = np.unique((submits - submits.min()) // DAY, return_inverse=True)[1].ravel()
    daily, recorded_daily = (np.bincount(days, waits) / np.bincount(days) for waits in (found, real))
    return Agreement(
        len(both),
        _figures(both, real),
        _figures(both, found),
        mean_interval(found - real, periods_of(submits)),
        spearman(found, real),
        *_shares_near(found, real),
        math.exp(float(log_ratios(found, real).mean())),
        len(daily),
        float(np.abs(daily - recorded_daily).mean()),
        spearman(daily, recorded_daily),
        wait_error(found, real),
    )


def _figures(both: Table, waits: Floats) -> WaitFigures:
    run, submits = floats(both, "run_time"), floats(both, "submit")
    slowdown = np.maximum((waits + run) / np.maximum(run, TAU), 1)
    span = float((submits + waits + run).max() - submits.min())
    work = float((floats(both, "size") * run).sum())
    median, p95 = np.percentile(waits, [50, 95])
    return WaitFigures(
        float(waits.mean()),
        float(median),
        float(p95),
        float(slowdown.mean()),
        work / span if span else math.nan,
    )


def _shares_near(found: Floats, real: Floats) -> tuple[float, float]:
    """Return the shares of waits that differ by at most `NEAR`, and by at most a factor of two."""
    within_twofold = log_ratios(found, real) <= math.log(2) + 1e-12
    return float((np.abs(found - real) <= NEAR).mean()), float(within_twofold.mean())


def log_ratios(found: Floats, real: Floats) -> Floats:
    """Return ``|ln(found / real)|`` of waits, those below `LEAST_WAIT` taken as that long."""
    ratios: Floats = np.abs(np.log(np.maximum(found, LEAST_WAIT) / np.maximum(real, LEAST_WAIT)))
    return ratios


def spearman(a: Floats, b: Floats) -> float:
    """Return the correlation of the ranks of two columns, equal values at their mean rank; NaN if undefined.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0, 70.0]))
    1.0
    """
    ranks = [ranks_of(x) for x in (a, b)]
    spread = [float(((x - x.mean()) ** 2).sum()) for x in ranks]
    if not len(a) or not all(spread):
        return math.nan
    covariance = float(((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())).sum())
    return covariance / math.sqrt(spread[0] * spread[1])


def ranks_of(x: Floats) -> Floats:
    """Return the ranks of values from 1; equal values have their mean rank."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: Floats = (last - (count - 1) / 2)[place.ravel()]
    return ranks


def wait_error(found: Floats, real: Floats) -> float:
    """Return one number for how far simulated waits are from recorded ones; 0 is a perfect run.

    It is the mean of three parts, each 0 for a perfect run and without unit: the mean of ``|ln(found /
    real)|`` over jobs, so that the typical job counts; one less Spearman's rank correlation, so that the
    order of jobs counts; and ``|ln|`` of the ratio of the mean waits, so that the sum of all waiting counts.
    Each alone can be met by a run that is wrong otherwise: shuffled waits have the right mean, waits that
    are all ten times too long the right order, and in a log where most jobs start at once a typical job is
    right in a run without any queue.
    """
    rank = spearman(found, real)
    means = float(log_ratios(found.mean(keepdims=True), real.mean(keepdims=True))[0])
    order = 1 - (0.0 if math.isnan(rank) else rank)
    return (float(log_ratios(found, real).mean()) + order + means) / 3


def agreement_by(jobs: pd.DataFrame, key: str, clock: Clock | None = None) -> pd.DataFrame:
    """Return one row per group of jobs (`classes.GROUPS`): the figures of both sides, and how near they are.

    ``recorded_use`` and ``simulated_use`` are the mean processors in use by the group's jobs, from the
    first submission to the last end of all jobs that are compared.
    """
    import pandas as pd

    both = compared(jobs)
    if both.empty:
        return pd.DataFrame(columns=OF_A_GROUP)
    submit, run = both["submit"], both["run_time"]
    spans = [float((submit + both[of] + run).max() - submit.min()) for of in ("recorded_wait", "wait")]
    groups = both.groupby(group_of(both, key, clock), observed=True, sort=True)
    rows = {group: _row(part, spans) for group, part in groups}
    return pd.DataFrame.from_dict(rows, orient="index", columns=OF_A_GROUP).rename_axis(key)


_OF_A_SIDE = ("mean_wait", "median_wait", "p95_wait", "mean_bounded_slowdown", "use")
OF_A_GROUP = ["jobs", *(f"{side}_{figure}" for side in ("recorded", "simulated") for figure in _OF_A_SIDE),
              "rank_correlation", "within_ten_minutes", "within_twofold"]  # fmt: skip
"""The columns of `agreement_by`."""


def _row(part: pd.DataFrame, spans: list[float]) -> list[float]:
    """Return the figures of a group, as `OF_A_GROUP` names them; `spans` are the times of both sides (s)."""
    found, real = floats(part, "wait"), floats(part, "recorded_wait")
    work = float((part["size"] * part["run_time"]).sum())
    sides: list[float] = []
    for waits, span in zip((real, found), spans, strict=True):
        side, use = _figures(part, waits), work / span if span else math.nan
        sides += [side.mean, side.median, side.p95, side.slowdown, use]
    return [float(len(part)), *sides, spearman(found, real), *_shares_near(found, real)]
