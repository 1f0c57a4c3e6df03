"""A model of a log: jobs in classes by k-means, and the empirical distributions of each class; and its check.

The classes are of jobs with and without gpus and limits; k-means on the binary logarithms of size, run time,
limit and activity of the user divides each of them further.  Nothing is random: the same log gives the
same model.

The check says how far a model is from the log, and from weeks that it did not see.  The distance of two
workloads is by quantity: Kolmogorov and Smirnov's, and Wasserstein's of logarithms.

References
----------
.. [Feitelson15] D. Feitelson, "Workload modeling for computer systems performance evaluation", 2015
   (locality of sampling: users repeat jobs; sections 6.2 and 8.4).
.. [Calzarossa85] M. Calzarossa, G. Serazzi, "A characterization of the variation in time of workload arrival
   patterns", IEEE Transactions on Computers 34(2), 1985 (arrivals by the hour; clusters of jobs).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

import numpy as np

from simsched.declare.answers import OrNull, extended, row_of, written
from simsched.errors import SimschedError, WorkloadError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.workload.job import Job, Workload, demand
from simsched.workload.models.model_files import (
    DAY,
    HOUR,
    MONTH,
    WEEK,
    Distribution,
    JobClass,
    LogModel,
    Shares,
    frequent,
)
from simsched.workload.transforms.transforms import time_slice

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from simsched.arrays import Floats, Integers

    Flags = npt.NDArray[np.bool_]


_ROUNDS = 50
_FEWEST = 20
"""A cluster has at least this many jobs, or it becomes part of the nearest one of its kind."""


def clusters(features: Floats, kind: Integers, number: int) -> Integers:
    """Return a cluster (from 0) per row: rows of different kinds are never in one cluster.

    Each kind gets clusters in proportion to its rows, and at least one.
    """
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
    centres = [points.mean(axis=0)]
    distance = ((points - centres[0]) ** 2).sum(axis=1)
    while len(centres) < number and distance.max() > 0:
        order = np.argsort(distance, kind="stable")
        centres.append(points[order[int(0.95 * (len(order) - 1))]])
        distance = np.minimum(distance, ((points - centres[-1]) ** 2).sum(axis=1))
    return np.array(centres)


def _nearest(points: Floats, centres: Floats) -> Integers:
    distance = np.stack([((points - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
    found: Integers = distance.argmin(axis=1).astype(np.int64)
    return found


CLASSES = 8
"""Classes of jobs, by default."""
THINK = 20 * 60
"""Jobs of one user and class that follow each other within this time (s) are one batch."""
FEWEST_JOBS = 100
SHORTEST = 2 * WEEK
"""A log needs this many jobs and this length (s): hours of the week are learnt from it."""
_QUANTILES = 41
_MOST_REQUESTS, _MOST_LIMITS, _MOST_COUNTS = 60, 40, 30
_MOST_SKEW = 5.0
_WEEKS_OF_TREND = 26


@dataclass(frozen=True, slots=True)
class LogColumns:
    """The jobs of a log as columns; a limit that is not given is NaN, an unknown user -1."""

    jobs: tuple[Job, ...]
    submit: Floats
    local: Floats
    size: Floats
    gpus: Floats
    run: Floats
    limit: Floats
    user: Integers

    @classmethod
    def of(cls, workload: Workload) -> LogColumns:
        """Return the columns of the jobs whose run time is known.

        Raises
        ------
        WorkloadError
            if the workload has no jobs, or none with a run time.
        """
        jobs = tuple(job for job in workload.jobs if job.runtime is not None)
        if not jobs:
            fault = "no job has a run time" if workload.jobs else "the workload has no jobs"
            raise WorkloadError(fault, where=workload.source, expected="a log of jobs that ran")
        submit, clock = np.array([job.submit for job in jobs], dtype=float), workload.clock
        numbers: dict[str, int] = {}
        users = [-1 if job.user is None else numbers.setdefault(job.user, len(numbers)) for job in jobs]
        needs = [demand(job.jobspec) for job in jobs]
        limits = [np.nan if job.duration is None or job.duration <= 0 else job.duration for job in jobs]
        return cls(
            jobs,
            submit,
            # second 0 of a log without dates is a Monday at midnight
            submit + 4 * DAY if clock is None else clock.local_seconds(submit),
            np.array([need.procs for need in needs], dtype=float),
            np.array([need.gpus for need in needs], dtype=float),
            np.array([job.runtime for job in jobs], dtype=float),
            np.array(limits, dtype=float),
            np.array(users, dtype=np.int64),
        )


def fit_log(workload: Workload, classes: int = CLASSES) -> LogModel:
    """Return the model of a log.

    Raises
    ------
    WorkloadError
        if the log is too short, or no job has a run time.
    """
    table = LogColumns.of(workload)
    begin, end = workload.span
    if len(table.jobs) < FEWEST_JOBS or end - begin < SHORTEST:
        raise WorkloadError(
            f"a log of {len(table.jobs):,} jobs and {(end - begin) / DAY:.1f} days is too short for a model",
            where=workload.source,
            expected=f"at least {FEWEST_JOBS} jobs in {SHORTEST // DAY} days",
        )
    activity = np.bincount(table.user + 1)[table.user + 1]
    kind = (table.gpus > 0) * 2 + np.isnan(table.limit)
    features = [table.size, table.run + 1, np.nan_to_num(table.limit, nan=1.0), np.sqrt(activity)]
    group = clusters(np.log2(np.stack(features, axis=1)), kind, classes)
    span = end - begin
    growth = _growth(table.submit - begin, span)
    names: dict[str, int] = {}
    found = [
        _class(table, group == number, span, growth, begin, names) for number in range(int(group.max()) + 1)
    ]
    order = sorted(found, key=lambda one: (one.requests.values[0].to_shape().count("gpu"), one.name))
    known = sum(1 for user in set(table.user.tolist()) if user >= 0)
    clock = workload.clock
    return LogModel(
        name=f"{workload.name}-model",
        start=begin + 4.0 * DAY if clock is None else round(clock.origin + begin),
        zone=None if clock is None else clock.zone,
        span=float(span),
        growth=growth,
        users=known or None,
        processors=workload.stated("MaxProcs") or None,
        classes=tuple(order),
    )


def _growth(submit: Floats, span: float) -> float:
    """Return the factor in 30 days of the trend of weekly jobs; 1 where it is not significant.

    A line through the logarithms of the weekly numbers has to have a slope of more than two standard errors,
    in at least half a year.
    """
    weeks = int(span // WEEK)
    if weeks < _WEEKS_OF_TREND:
        return 1.0
    counts = np.bincount((submit[submit < weeks * WEEK] // WEEK).astype(np.int64), minlength=weeks)
    time, logs = np.arange(weeks) - (weeks - 1) / 2, np.log(counts + 1.0)
    slope = float((time * logs).sum() / (time**2).sum())
    rest = logs - logs.mean() - slope * time
    error = float(np.sqrt((rest**2).sum() / (weeks - 2) / (time**2).sum()))
    # Neighbouring weeks are alike: they count as fewer weeks (effective sample size of an AR(1) series).
    total = float((rest**2).sum())
    alike = max(0.0, float((rest[:-1] * rest[1:]).sum()) / total) if total > 0 else 0.0
    error *= ((1 + alike) / max(1 - alike, 1e-9)) ** 0.5
    return float(np.exp(slope * MONTH / WEEK)) if abs(slope) > 2 * error else 1.0


def _class(
    table: LogColumns, here: Flags, span: float, growth: float, begin: float, names: dict[str, int]
) -> JobClass:
    place = np.flatnonzero(here)
    batches = _batches(table, place)
    limit, run, size = table.limit[place], table.run[place], table.size[place]
    limited = not np.isnan(limit).any()
    share = run / limit if limited else run
    users = table.user[place][batches.first]
    known = users[users >= 0]
    starts = batches.start - begin
    numbers = _shares(frequent(batches.counts.astype(float), _MOST_COUNTS))
    jobs = Shares(tuple(map(int, numbers.values)), numbers.weights)
    # The weights of the numbers of jobs are rounded to frequent ones; the rate keeps the number of jobs.
    mean = float(np.average(jobs.values, weights=jobs.weights))
    # The weeks of the span are weighted by the growth of the rate since its beginning.
    rate = log(growth) / MONTH
    weeks = (span if rate == 0 else (growth ** (span / MONTH) - 1) / rate) / WEEK
    level = len(place) / mean / weeks
    return JobClass(
        name=_name(table, place, names),
        batches=level,
        users=len(set(known.tolist())),
        skew=_skew(known),
        hours=_profile(table.local[place][batches.first] // HOUR % 24, 24),
        weekdays=_profile((table.local[place][batches.first] // DAY + 3) % 7, 7),
        variation=_variation(starts, span),
        jobs=jobs,
        gap=_quantiles(batches.gaps) if len(batches.gaps) else Distribution("constant", (0.0,)),
        repeat=batches.repeat,
        alike=batches.alike,
        requests=_requests([table.jobs[index].jobspec for index in place.tolist()]),
        limits=_shares(frequent(limit, _MOST_LIMITS)) if limited else None,
        runtime=_quantiles(share, size * (limit if limited else 1.0)),
        correlation=(
            rank_correlation(size, limit) if limited else 0.0,
            rank_correlation(size, share),
            rank_correlation(limit, share) if limited else 0.0,
        ),
        memory=_memory([table.jobs[index].memory for index in place.tolist()]),
        queues=_queues([table.jobs[index].queue for index in place.tolist()]),
    )


@dataclass(frozen=True, slots=True)
class _Batches:
    """The batches of a class: first jobs, starts, numbers of jobs, gaps, and how alike their jobs are."""

    first: Integers
    start: Floats
    counts: Integers
    gaps: Floats
    repeat: float
    alike: float


def _batches(table: LogColumns, place: Integers) -> _Batches:
    user, submit = table.user[place], table.submit[place]
    order = np.lexsort((submit, user))
    gap = np.diff(submit[order])
    together = (np.diff(user[order]) == 0) & (user[order][1:] >= 0) & (gap <= THINK)
    begins = np.flatnonzero(np.append(True, ~together))
    counts = np.diff(np.append(begins, len(order)))
    size, limit = table.size[place][order], np.nan_to_num(table.limit[place][order], nan=0.0)
    same = together & (np.diff(size) == 0) & (np.diff(limit) == 0)
    run = table.run[place][order]
    return _Batches(
        first=order[begins],
        start=submit[order][begins],
        counts=counts.astype(np.int64),
        gaps=gap[together],
        repeat=float(same.sum() / together.sum()) if together.any() else 0.0,
        alike=max(0.0, rank_correlation(run[:-1][same], run[1:][same])),
    )


def _quantiles(values: Floats, weights: Floats | None = None) -> Distribution:
    """Return the `_ascending` quantiles of values, with six digits."""
    return Distribution("quantiles", tuple(float(f"{value:.6g}") for value in _ascending(values, weights)))


def _ascending(values: Floats, weights: Floats | None) -> Floats:
    """Return the quantiles of values; the last one keeps the (weighted) mean of the tail, not the extreme.

    A few jobs ran many times their limit.  Spread over the tail, they would be much of the work.
    """
    found = np.maximum.accumulate(np.quantile(values, np.linspace(0, 1, _QUANTILES)))
    tail = values >= found[-2]
    if found[-1] > found[-2] > 0:
        mean = float(np.average(values[tail], weights=None if weights is None else weights[tail]))
        found[-1] = min(found[-1], _end_of_tail(float(found[-2]), mean))
    return found


def _end_of_tail(begin: float, mean: float) -> float:
    """Return the b for which (b - a) / ln(b / a), the mean of a log-uniform value, is this mean."""
    low, high = begin * (1 + 1e-9), begin * 1e9
    for _ in range(80):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if (middle - begin) / log(middle / begin) < mean else (low, middle)
    return low


def _shares(found: tuple[Floats, Integers]) -> Shares[float]:
    return Shares(*(tuple(values.astype(float).tolist()) for values in found))


def _requests(specs: list[Jobspec]) -> Shares[Jobspec]:
    """Return the most frequent requests, ascending by size; each rare one counts as the nearest in size."""
    texts = {id(spec): spec.to_shape() for spec in {id(spec): spec for spec in specs}.values()}
    counts = Counter(texts[id(spec)] for spec in specs)
    sizes = {text: demand(Jobspec.from_shape(text)).procs for text in counts}
    ranked = sorted(counts, key=lambda text: (-counts[text], sizes[text], text))
    kept = ranked[: _MOST_REQUESTS - 1]
    rest = ranked[len(kept) :]
    if rest:
        largest = max(rest, key=lambda text: sizes[text])
        kept.append(largest)
        kept_sizes = np.log([sizes[text] for text in kept])
        for text in rest:
            if text != largest:
                nearest = kept[int(np.argmin(np.abs(kept_sizes - np.log(sizes[text]))))]
                counts[nearest] += counts[text]
    kept.sort(key=lambda text: (sizes[text], text))
    return Shares(tuple(map(Jobspec.from_shape, kept)), tuple(float(counts[text]) for text in kept))


def _memory(values: list[int | None]) -> Distribution | None:
    """Return the memory per processor if at least half of the jobs have it."""
    known = [value for value in values if value is not None and value > 0]
    if len(known) * 2 < len(values) or not known:
        return None
    # Whole KB: few amounts are frequent, and a draw that is not quite one of them is another amount.
    return Distribution(
        "quantiles", tuple(float(round(value)) for value in _ascending(np.array(known, dtype=float), None))
    )


def _queues(values: list[str | None]) -> Shares[str] | None:
    counts = Counter(value for value in values if value is not None)
    if counts.total() < len(values):
        return None
    return Shares(tuple(sorted(counts)), tuple(float(counts[name]) for name in sorted(counts)))


def _profile(numbers: Floats, length: int) -> tuple[float, ...]:
    """Return relative rates with mean 1."""
    counts = np.bincount(numbers.astype(np.int64), minlength=length)
    return tuple((counts / counts.mean()).tolist())


def _variation(starts: Floats, span: float) -> float:
    """Return the coefficient of variation of weekly batches beyond that of a Poisson process."""
    weeks = int(span // WEEK)
    counts = np.bincount((starts[starts < weeks * WEEK] // WEEK).astype(np.int64), minlength=weeks)
    mean = counts.mean()
    return float(np.sqrt(max(0.0, counts.var() - mean)) / mean) if weeks > 1 and mean > 0 else 0.0


def _skew(users: Integers) -> float:
    """Return the exponent of the Zipf law with the concentration (sum of squared shares) of the batches."""
    if not len(users):
        return 1.0
    counts = np.unique(users, return_counts=True)[1]
    aim = float(((counts / counts.sum()) ** 2).sum())
    low, high, rank = 0.0, _MOST_SKEW, np.arange(1.0, len(counts) + 1)
    for _ in range(40):
        middle = (low + high) / 2
        weight = rank**-middle
        low, high = (middle, high) if ((weight / weight.sum()) ** 2).sum() < aim else (low, middle)
    return low


def rank_correlation(one: Floats, two: Floats) -> float:
    """Return Spearman's rank correlation; 0 where one of the values is constant."""
    if len(one) < 3:
        return 0.0
    ranks: list[Floats] = []
    for values in (one, two):
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        ranks.append((((ends - counts) + ends - 1) / 2)[inverse])
    if ranks[0].std() == 0 or ranks[1].std() == 0:
        return 0.0
    return float(np.clip(np.corrcoef(ranks[0], ranks[1])[0, 1], -1, 1))


def _name(table: LogColumns, place: Integers, names: dict[str, int]) -> str:
    """Return a name such as ``8p-2h``, the median size and run time; ``gpu-`` is put before it for gpus."""
    size, run = (float(np.median(values[place])) for values in (table.size, table.run))
    units = ((DAY, "d"), (HOUR, "h"), (60, "m"), (1, "s"))
    length, unit = next(((length, unit) for length, unit in units if run >= length), (1, "s"))
    name = f"{'gpu-' if table.gpus[place[0]] > 0 else ''}{size:.0f}p-{run / length:.0f}{unit}"
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}-{names[name]}"


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
    # Whole hours, so that the hours of the model are those of the log.
    whole = after // HOUR * HOUR
    grown = model.growth ** (whole / MONTH)
    classes = tuple(one.replace(batches=one.batches * grown) for one in model.classes)
    return model.replace(classes=classes, start=model.start + whole, span=span)


def tomorrow(model: LogModel) -> LogModel:
    """Return the model that begins where its log ends, with the growth until then."""
    return _continued(model, model.span, model.span)
