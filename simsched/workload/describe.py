"""The contents of a workload as plain data: the numbers behind ``workload show`` and its figure."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from simsched.formats.rfc.clock import Clock, ClockDocument
from simsched.workload.job import Workload, procs_of, seconds_of

if TYPE_CHECKING:
    from simsched.arrays import Floats


WEEK = 7 * 86400
TOP = 10
#: Edges of the run-time histogram, in seconds.
TIME_EDGES = (0, 1, 10, 60, 600, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400)


class SkippedRecords(TypedDict):
    """Records that were not read for one reason, and the places of the first."""

    reason: str
    count: int
    first: str


class QuantityInNumbers(TypedDict):
    """The distribution of a quantity."""

    min: float
    p5: float
    median: float
    mean: float
    p95: float
    max: float


class BeginOfWeek(TypedDict, total=False):
    """The local date of the beginning of a week, where dates are known."""

    begin: str


class WeekOfJobs(BeginOfWeek):
    """A week of submissions.

    week : number of the week, from 1.
    begin : local date of its beginning.
    load : work over the processors of the week; null if the processors are not known.
    """

    week: int
    jobs: int
    processor_hours: float
    load: float | None


JobsFromTo = TypedDict("JobsFromTo", {"from": int, "to": int | None, "jobs": int})


class PopularLimit(TypedDict):
    """A limit that many jobs request."""

    seconds: float
    jobs: int


class LimitAccuracy(TypedDict):
    """How near run times are to limits.

    jobs : number of jobs with a limit.
    mean_accuracy, median_accuracy : run time over limit, at most 1.
    over_limit : number of jobs that ran longer.
    distinct : number of different limits.
    top20_share : share of jobs that have one of the twenty most frequent limits.
    popular : the most frequent limits.
    accuracy_histogram : jobs by tenth of run time over limit.
    """

    jobs: int
    mean_accuracy: float
    median_accuracy: float
    over_limit: int
    distinct: int
    top20_share: float
    popular: list[PopularLimit]
    accuracy_histogram: list[int]


class RankedName(TypedDict):
    """A user or queue with its jobs."""

    name: str
    jobs: int
    processor_hours: float


class RankedNames(TypedDict):
    """The number of users or queues, and those with the most jobs."""

    number: int
    top: list[RankedName]


class NamedClock(ClockDocument):
    """The dates of a log.

    zone_text : the zone in words.
    """

    zone_text: str


class DatesOfLog(TypedDict, total=False):
    """The clock of a log, and the local dates of its first and last submission, if they are known."""

    clock: NamedClock
    first: str
    last: str


class WorkloadSummary(DatesOfLog):
    """A workload in numbers.

    kind : its format.
    source : its file.
    history : the transforms that made it.
    header : fields of the header of the log.
    records : number of records of the log.
    skipped : records that were not read.
    span_seconds : from the first to the last submission.
    capacity : processors of the machine; null if they are not known.
    shapes : number of different requests.
    size : processors per job.
    runtime : seconds.
    load : work over processors and time; null if it is not known.
    hours_of_day : jobs by hour, in local time where it is known.
    estimates : null if no job has a limit.
    statuses : status of jobs in the log: their number.
    unlimited : number of jobs without a limit.
    dependent : number of jobs that depend on others.
    """

    name: str
    kind: str
    source: str
    history: list[str]
    notes: list[str]
    header: dict[str, str]
    records: int
    jobs: int
    skipped: list[SkippedRecords]
    span_seconds: float
    capacity: int | None
    shapes: int
    size: QuantityInNumbers | None
    runtime: QuantityInNumbers | None
    work_processor_hours: float
    load: float | None
    weeks: list[WeekOfJobs]
    sizes: list[JobsFromTo]
    run_times: list[JobsFromTo]
    hours_of_day: list[int]
    estimates: LimitAccuracy | None
    users: RankedNames
    queues: RankedNames
    statuses: dict[str, int]
    unlimited: int
    dependent: int


def describe(workload: Workload, *, capacity: int | None = None) -> WorkloadSummary:
    """Return counts, load by week, distributions, accuracy of estimates, and users.

    `capacity` (processors) turns work into load; None takes ``MaxProcs`` of the header, and
    without it there is no load.  Everything is JSON: numbers, texts, lists.
    """
    jobs = workload.jobs
    submit = np.array([job.submit for job in jobs], dtype=float)
    procs = np.array([procs_of(job) for job in jobs], dtype=float)
    run = np.array([seconds_of(job) for job in jobs], dtype=float)
    limit = np.array([np.nan if job.duration is None else job.duration for job in jobs], dtype=float)
    work, span = procs * run, float(submit[-1] - submit[0]) if len(jobs) else 0.0
    capacity = capacity or workload.stated("MaxProcs") or None
    return {
        "name": workload.name,
        "kind": workload.kind,
        "source": workload.source,
        "history": list(workload.history),
        "notes": list(workload.notes),
        "header": dict(workload.header),
        "records": workload.total_records,
        "jobs": len(jobs),
        "skipped": [
            {"reason": reason, "count": count, "first": places}
            for reason, count, places in workload.skip_table()
        ],
        **_dates(workload),
        "span_seconds": span,
        "capacity": capacity,
        "shapes": len({id(job.jobspec) for job in jobs}),
        "size": _spread(procs),
        "runtime": _spread(run),
        "work_processor_hours": float(work.sum()) / 3600,
        "load": float(work.sum() / (capacity * span)) if capacity and span > 0 else None,
        "weeks": _weeks(submit, work, capacity, workload.clock),
        "sizes": _sizes(procs),
        "run_times": _times(run),
        "hours_of_day": _hours(submit, workload),
        "estimates": _estimates(run, limit),
        "users": _ranked([job.user for job in jobs], work),
        "queues": _ranked([job.queue for job in jobs], work),
        "statuses": dict(Counter(job.status or "unknown" for job in jobs).most_common()),
        "unlimited": int(np.isnan(limit).sum()),
        "dependent": sum(bool(job.dependencies) for job in jobs),
    }


def _spread(values: Floats) -> QuantityInNumbers | None:
    if not len(values):
        return None
    low, median, high = np.percentile(values, [5, 50, 95])
    return {
        "min": float(values.min()),
        "p5": float(low),
        "median": float(median),
        "mean": float(values.mean()),
        "p95": float(high),
        "max": float(values.max()),
    }


def _weeks(submit: Floats, work: Floats, capacity: int | None, clock: Clock | None) -> list[WeekOfJobs]:
    if not len(submit):
        return []
    week = ((submit - submit[0]) // WEEK).astype(np.int64)
    weeks, index = np.unique(week, return_inverse=True)
    counts, works = np.bincount(index), np.bincount(index, weights=work)
    begins: list[BeginOfWeek] = [
        {} if clock is None else {"begin": clock.text(float(submit[0] + number * WEEK))} for number in weeks
    ]
    return [
        {
            "week": int(number) + 1,
            **begin,
            "jobs": int(count),
            "processor_hours": float(done) / 3600,
            "load": float(done) / (capacity * WEEK) if capacity else None,
        }
        for number, begin, count, done in zip(weeks, begins, counts, works, strict=True)
    ]


def _sizes(procs: Floats) -> list[JobsFromTo]:
    """Jobs by size class: 1, 2, 3-4, 5-8 … (the class ends at a power of two)."""
    if not len(procs):
        return []
    classes = np.ceil(np.log2(np.maximum(procs, 1))).astype(np.int64)
    counts = np.bincount(classes)
    return [
        {"from": 2 ** (power - 1) + 1 if power else 1, "to": 2**power, "jobs": int(count)}
        for power, count in enumerate(counts)
    ]


def _times(run: Floats) -> list[JobsFromTo]:
    if not len(run):
        return []
    index = np.searchsorted(TIME_EDGES, run, side="right") - 1
    counts = np.bincount(index, minlength=len(TIME_EDGES))
    ends = (*TIME_EDGES[1:], None)
    return [
        {"from": begin, "to": end, "jobs": int(count)}
        for begin, end, count in zip(TIME_EDGES, ends, counts, strict=True)
    ]


def _dates(workload: Workload) -> DatesOfLog:
    """The clock of the workload and the dates of its first and last submission; {} if they are not known."""
    clock = workload.clock
    if clock is None or not len(workload):
        return {}
    first, last = map(clock.text, workload.span)
    return {"clock": {**clock.to_dict(), "zone_text": clock.zone_text}, "first": first, "last": last}


def _hours(submit: Floats, workload: Workload) -> list[int]:
    """Jobs by hour of the day, in local time if the header has the start and the time zone."""
    header, clock = workload.header, workload.clock
    words = [next(iter(header.get(key, "").split()), "") for key in ("UnixStartTime", "TimeZone")]
    offset = sum(int(word) for word in words if re.fullmatch("-?[0-9]{1,11}", word))
    local = submit + offset if clock is None else clock.local_seconds(submit)
    hours = (local // 3600 % 24).astype(np.int64)
    return [int(count) for count in np.bincount(hours, minlength=24)]


def _estimates(run: Floats, limit: Floats) -> LimitAccuracy | None:
    """The accuracy of the limits (run time over limit), and the popular limits."""
    known = ~np.isnan(limit) & (limit > 0)
    if not known.any():
        return None
    ratio = run[known] / limit[known]
    times, counts = np.unique(limit[known], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {
        "jobs": int(known.sum()),
        "mean_accuracy": float(np.minimum(ratio, 1).mean()),
        "median_accuracy": float(np.median(np.minimum(ratio, 1))),
        "over_limit": int((ratio > 1).sum()),
        "distinct": len(times),
        "top20_share": float(counts[order[:20]].sum() / counts.sum()),
        "popular": [
            {"seconds": float(times[index]), "jobs": int(counts[index])} for index in order[:TOP].tolist()
        ],
        "accuracy_histogram": [int(n) for n in np.histogram(np.minimum(ratio, 1), bins=10, range=(0, 1))[0]],
    }


def _ranked(names: list[str | None], work: Floats) -> RankedNames:
    """Their number, and the ones with the most jobs, with their work."""
    jobs: Counter[str] = Counter(name for name in names if name is not None)
    done: dict[str, float] = {}
    for name, seconds in zip(names, work.tolist(), strict=True):
        if name is not None:
            done[name] = done.get(name, 0.0) + seconds
    top: list[RankedName] = [
        {"name": name, "jobs": count, "processor_hours": done[name] / 3600}
        for name, count in jobs.most_common(TOP)
    ]
    return {"number": len(jobs), "top": top}
