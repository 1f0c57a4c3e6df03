"""The contents of a workload as plain data: the numbers behind ``workload show`` and its figure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from simsched.workload.flat_counts import procs_of
from simsched.workload.transforms.transforms import seconds_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from simsched.formats.rfc.clock import Clock
    from simsched.workload.job import Workload

    Floats = npt.NDArray[np.float64]

WEEK = 7 * 86400
TOP = 10
#: Edges of the run-time histogram, in seconds.
TIME_EDGES = (0, 1, 10, 60, 600, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400)


def describe(workload: Workload, *, capacity: int | None = None) -> dict[str, Any]:
    """Return counts, load by week, distributions, accuracy of estimates, and users.

    `capacity` (processors) turns work into load; None takes ``MaxProcs`` of the header, and
    without it there is no load.  Everything is JSON: numbers, texts, lists.
    """
    import numpy as np

    jobs = workload.jobs
    submit = np.array([job.submit for job in jobs], dtype=float)
    procs = np.array([procs_of(job.procs, job.jobspec) for job in jobs], dtype=float)
    run = np.array([seconds_of(job) for job in jobs], dtype=float)
    limit = np.array([np.nan if job.duration is None else job.duration for job in jobs], dtype=float)
    capacity = capacity or _capacity(workload)
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
        "span_seconds": float(submit[-1] - submit[0]) if len(jobs) else 0.0,
        "capacity": capacity,
        "shapes": len({id(job.jobspec) for job in jobs}),
        "size": _spread(procs),
        "runtime": _spread(run),
        "work_processor_hours": float((procs * run).sum()) / 3600,
        "load": _load(submit, procs * run, capacity),
        "weeks": _weeks(submit, procs * run, capacity, workload.clock),
        "sizes": _sizes(procs),
        "run_times": _times(run),
        "hours_of_day": _hours(submit, workload),
        "estimates": _estimates(run, limit),
        "users": _ranked([job.user for job in jobs], procs * run),
        "queues": _ranked([job.queue for job in jobs], procs * run),
        "statuses": dict(Counter(job.status or "unknown" for job in jobs).most_common()),
        "unlimited": int(np.isnan(limit).sum()),
        "dependent": sum(bool(job.dependencies) for job in jobs),
    }


def _capacity(workload: Workload) -> int | None:
    text = workload.header.get("MaxProcs", "").split()
    return int(text[0]) if text and text[0].isdigit() and len(text[0]) < 10 and int(text[0]) > 0 else None


def _spread(values: Floats) -> dict[str, float] | None:
    import numpy as np

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


def _load(submit: Floats, work: Floats, capacity: int | None) -> float | None:
    """Offered load: work over capacity times the span of submissions."""
    if capacity is None or len(submit) < 2 or submit[-1] <= submit[0]:
        return None
    return float(work.sum() / (capacity * (submit[-1] - submit[0])))


def _weeks(submit: Floats, work: Floats, capacity: int | None, clock: Clock | None) -> list[dict[str, Any]]:
    import numpy as np

    if not len(submit):
        return []
    week = ((submit - submit[0]) // WEEK).astype(np.int64)
    weeks, index = np.unique(week, return_inverse=True)
    counts, works = np.bincount(index), np.bincount(index, weights=work)
    return [
        {
            "week": int(number) + 1,
            **({} if clock is None else {"begin": clock.text(float(submit[0] + number * WEEK))}),
            "jobs": int(count),
            "processor_hours": float(done) / 3600,
            "load": float(done) / (capacity * WEEK) if capacity else None,
        }
        for number, count, done in zip(weeks, counts, works, strict=True)
    ]


def _sizes(procs: Floats) -> list[dict[str, int]]:
    """Jobs by size class: 1, 2, 3-4, 5-8 … (the class ends at a power of two)."""
    import numpy as np

    if not len(procs):
        return []
    classes = np.ceil(np.log2(np.maximum(procs, 1))).astype(np.int64)
    counts = np.bincount(classes)
    return [
        {"from": 2 ** (power - 1) + 1 if power else 1, "to": 2**power, "jobs": int(count)}
        for power, count in enumerate(counts)
    ]


def _times(run: Floats) -> list[dict[str, Any]]:
    import numpy as np

    if not len(run):
        return []
    index = np.searchsorted(TIME_EDGES, run, side="right") - 1
    counts = np.bincount(index, minlength=len(TIME_EDGES))
    ends = (*TIME_EDGES[1:], None)
    return [
        {"from": begin, "to": end, "jobs": int(count)}
        for begin, end, count in zip(TIME_EDGES, ends, counts, strict=True)
    ]


def _dates(workload: Workload) -> dict[str, Any]:
    """The clock of the workload and the dates of its first and last submission; {} if they are not known."""
    clock = workload.clock
    if clock is None or not len(workload):
        return {}
    first, last = map(clock.text, workload.span)
    return {"clock": {**clock.to_dict(), "zone_text": clock.zone_text}, "first": first, "last": last}


def _hours(submit: Floats, workload: Workload) -> list[int]:
    """Jobs by hour of the day, in local time if the header has the start and the time zone."""
    import numpy as np

    header, clock = workload.header, workload.clock
    offset = sum(_integer(header.get(key, "")) for key in ("UnixStartTime", "TimeZone"))
    local = submit + offset if clock is None else clock.local_seconds(submit)
    hours = (local // 3600 % 24).astype(np.int64)
    return [int(count) for count in np.bincount(hours, minlength=24)]


def _integer(text: str) -> int:
    word = next(iter(text.split()), "")
    return int(word) if word.lstrip("-").isdigit() and len(word) < 12 else 0


def _estimates(run: Floats, limit: Floats) -> dict[str, Any] | None:
    """The accuracy of the limits (run time over limit), and the popular limits."""
    import numpy as np

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


def _ranked(names: list[str | None], work: Floats) -> dict[str, Any]:
    """Their number, and the ones with the most jobs, with their work."""
    jobs: Counter[str] = Counter(name for name in names if name is not None)
    done: dict[str, float] = {}
    for name, seconds in zip(names, work.tolist(), strict=True):
        if name is not None:
            done[name] = done.get(name, 0.0) + seconds
    top = [
        {"name": name, "jobs": count, "processor_hours": done[name] / 3600}
        for name, count in jobs.most_common(TOP)
    ]
    return {"number": len(jobs), "top": top}
