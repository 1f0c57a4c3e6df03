"""Metrics of a run as pure functions on its tables; each names the source of its formula.

Times are seconds.  A job *ran* when it has a start and an end.  `jobs` and `timeline` are
the frames of `tables.Run`, or plain columns; the figures of each job of a frame are a series.  A
timeline row holds from its time until the next row's.

References
----------
.. [Feitelson97] D. Feitelson et al., "Theory and practice in parallel job scheduling", JSSPP 1997.
.. [Feitelson01] D. Feitelson, "Metrics for parallel job scheduling and their convergence", JSSPP 2001.
.. [Zotkin99] D. Zotkin, P. Keleher, "Job-length estimation and performance in backfilling
   schedulers", HPDC 1999.
.. [Zhang00] Y. Zhang et al., "Improving parallel job scheduling by combining gang scheduling and
   backfilling techniques", IPDPS 2000.
.. [Tang11] W. Tang et al., "Reducing fragmentation on torus-connected supercomputers", IPDPS 2011.
.. [Tsafrir07] D. Tsafrir, Y. Etsion, D. Feitelson, "Backfilling using system-generated predictions
   rather than user runtime estimates", TPDS 18(6), 2007.
.. [Mualem01] A. Mu'alem, D. Feitelson, "Utilization, predictability, workloads, and user runtime
   estimates in scheduling the IBM SP2 with backfilling", TPDS 12(6), 2001.
.. [Jackson01] D. Jackson, Q. Snell, M. Clement, "Core algorithms of the Maui scheduler", JSSPP 2001.
.. [Basney99] J. Basney, M. Livny, "Improving goodput by co-scheduling CPU and network capacity",
   Int. J. of High Performance Computing Applications 13(3), 1999.
.. [Schroeder06] B. Schroeder, G. Gibson, "A large-scale study of failures in high-performance
   computing systems", DSN 2006.
.. [Little61] J. Little, "A proof for the queuing formula L = λW", Operations Research 9(3), 1961.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.report.columns import HELD
from simsched.report.metrics.causes import by_cause
from simsched.report.metrics.plain_columns import column, floats, known, objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pandas as pd

    from simsched.arrays import Floats
    from simsched.report.metrics.plain_columns import Table

GROUP_FIGURES = ("mean_wait", "median_wait", "p95_wait", "mean_bounded_slowdown", "core_hours", "share")
"""The figures of groups, besides their number of jobs."""
RECORDED_KWH = "recorded_kwh"
"""The figure with the recorded energies; groups have it only if the workload has energies."""
Window = tuple[float, float]
"""(from, until) in seconds."""

#: the run time below which slowdown is bounded, seconds [Feitelson97]
TAU = 10.0
#: percentiles that `describe` gives
PERCENTILES = (5, 25, 50, 75, 90, 95, 99)

#: results of jobs that were never queued
NEVER_QUEUED = ("INFEASIBLE", "DROPPED")

# ---- one figure per job -----------------------------------------------------------------


def ran(jobs: Table) -> Any:
    """Return the jobs that have a start and an end, whatever their result."""
    return jobs[~(np.isnan(floats(jobs, "start")) | np.isnan(floats(jobs, "end")))]


def wait(jobs: Table) -> Any:
    """Return the seconds from submission to start [Feitelson97]; NaN for a job that did not start."""
    return column(floats(jobs, "start") - floats(jobs, "submit"), jobs, "wait")


def run_time(jobs: Table) -> Any:
    """Return the seconds from start to end, as simulated."""
    return column(floats(jobs, "end") - floats(jobs, "start"), jobs, "run_time")


def turnaround(jobs: Table) -> Any:
    """Return the seconds from submission to end, also called response time [Feitelson97]."""
    return column(floats(jobs, "end") - floats(jobs, "submit"), jobs, "turnaround")


def slowdown(jobs: Table) -> Any:
    """Return turnaround / run time [Feitelson97]; without run time inf for a job that waited, else 1."""
    response, length = np.asarray(turnaround(jobs)), np.asarray(run_time(jobs))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = response / length
    values[(length == 0) & (response == 0)] = 1.0
    return column(values, jobs, "slowdown")


def bounded_slowdown(jobs: Table, tau: float = TAU) -> Any:
    """Return max(1, turnaround / max(run time, tau)) [Feitelson97]: short jobs no longer dominate."""
    values = np.maximum(np.asarray(turnaround(jobs)) / np.maximum(np.asarray(run_time(jobs)), tau), 1)
    return column(values, jobs, "bounded_slowdown")


def per_processor_bounded_slowdown(jobs: Table, tau: float = TAU) -> Any:
    """Return max(1, turnaround / (q · max(run time, tau))), q processors [Zotkin99]: wide jobs weigh less."""
    weighted = np.maximum(np.asarray(size(jobs)), 1) * np.maximum(np.asarray(run_time(jobs)), tau)
    values = np.maximum(np.asarray(turnaround(jobs)) / weighted, 1)
    return column(values, jobs, "per_processor_bounded_slowdown")


def size(jobs: Table) -> Any:
    """Return the processors of each job: its cores, else its nodes, else its request (`procs`).

    A job that never ran has only its request.
    """
    cores, nodes = floats(jobs, "cores"), floats(jobs, "nodes")
    held = np.where(cores > 0, cores, nodes)
    found = np.where(held > 0, held, floats(jobs, "procs"))
    return column(np.where(np.isnan(found), 0.0, found), jobs, "size")


def _requested(jobs: Table) -> Floats:
    """Return the requested durations; NaN where they are unlimited or 0."""
    duration = floats(jobs, "duration")
    return np.where(np.isfinite(duration) & (duration > 0), duration, np.nan)


def estimate_accuracy(jobs: Table) -> Any:
    """Return run time / requested duration, 0 to 1 [Mualem01]; NaN if the duration is unlimited or 0."""
    values = np.minimum(np.asarray(run_time(jobs)) / _requested(jobs), 1)
    return column(values, jobs, "estimate_accuracy")


def expansion_factor(jobs: Table) -> Any:
    """Return (wait + requested duration) / requested duration, Maui's XFactor [Jackson01]."""
    requested = _requested(jobs)
    return column((np.asarray(wait(jobs)) + requested) / requested, jobs, "expansion_factor")


def measured(jobs: Table) -> Any:
    """Return the jobs that ran with `wait`, `turnaround`, `bounded_slowdown` … as further columns."""
    done = ran(jobs)
    more = [wait, run_time, turnaround, slowdown, bounded_slowdown, per_processor_bounded_slowdown, size]
    return done.assign(**{f.__name__: f(done) for f in more})


def demand(jobs: Table, capacity: float) -> float:
    """Return the load of jobs: their core-seconds / (capacity · span of the submissions) [Feitelson97].

    NaN for a burst, whose submissions span no longer than its longest job: it has no steady load.
    """
    done, submits = ran(jobs), floats(jobs, "submit")
    window = float(np.ptp(submits)) if len(submits) else 0.0
    if not len(done) or not capacity or window <= float(np.max(np.asarray(run_time(done)))):
        return float("nan")
    return float(np.nansum(np.asarray(area(done)))) / (capacity * window)


# ---- figures of a whole run ----------------------------------------------------------


def span(jobs: Table) -> tuple[float, float]:
    """Return the first submission and the last end of the jobs that ran; (0, 0) without any."""
    done = ran(jobs)
    if not len(done):
        return 0.0, 0.0
    return float(np.nanmin(floats(done, "submit"))), float(np.nanmax(floats(done, "end")))


def makespan(jobs: Table) -> float:
    """Return last end - first submission, seconds [Feitelson97]."""
    first, last = span(jobs)
    return last - first


def throughput(jobs: Table) -> float:
    """Return the number of jobs that ran per hour of makespan [Feitelson97]."""
    return _share(len(ran(jobs)) * 3600.0, makespan(jobs))


def area(jobs: Table, kind: str | None = None) -> Any:
    """Return run time * units held: core-seconds (or the type `kind`'s) of each job [Feitelson97]."""
    held = np.asarray(size(jobs)) if kind is None else floats(jobs, HELD[kind])
    return column(np.asarray(run_time(jobs)) * held, jobs, "area")


def utilisation(jobs: Table, capacity: float, kind: str | None = None, window: Window | None = None) -> float:
    """Return sum(run time · q) / (capacity · span) [Feitelson97], of the part of each job in `window`.

    `window` is (from, until) in seconds, the makespan by default; `kind` is node, core or
    gpu, by default a job's `size`.  A node that jobs share
    counts once per job here: `utilisation_over_time` is exact.
    """
    done = ran(jobs)
    low, high = window or span(done)
    inside = np.minimum(floats(done, "end"), high) - np.maximum(floats(done, "start"), low)
    inside = np.maximum(inside, 0)
    held = np.asarray(size(done)) if kind is None else floats(done, HELD[kind])
    if "suspended" in done:  # spread over the time of the job: the table has only their sum
        length = np.asarray(run_time(done))
        shares = (length - floats(done, "suspended")) / np.where(length > 0, length, np.nan)
        inside *= np.where(np.isnan(shares), 1.0, shares)
    return _share(float(np.nansum(inside * held)), capacity * (high - low))


def time_average(timeline: Table, column: str, window: Window | None = None) -> float:
    """Return the mean over time of a column of the timeline: ∫ value dt / span; NaN for an empty span."""
    values = floats(timeline, column)
    lengths = holding(timeline, window)
    return _share(float((values * lengths).sum()), float(lengths.sum()))


def holding(timeline: Table, window: Window | None = None) -> Floats:
    """Return the seconds for which each row of the timeline holds, cut to `window` = (from, until).

    The last row holds until the window's end, and not at all without a window.
    """
    time = floats(timeline, "time")
    if not len(time):
        return np.zeros(0)
    low, high = window or (time[0], time[-1])
    # rows outside the window get the same two edges, hence length 0
    edges = np.clip(np.append(time, max(high, time[-1])), low, high)
    return np.diff(edges)


def utilisation_over_time(timeline: Table, kind: str, total: float, window: Window | None = None) -> float:
    """Return the time average of the used units of a type over `total` units [Feitelson97]."""
    return _share(time_average(timeline, f"used_{kind}", window), total)


def types(timeline: Table) -> list[str]:
    """Return the resource types of the timeline, in its order."""
    return [str(c).removeprefix("used_") for c in timeline.columns if str(c).startswith("used_")]


def worth(jobs: Table) -> Any:
    """Return whether the work of each job is ``good``, ``bad`` or ``cut`` [Basney99].

    Work is good if the job completed, in the run and, if the trace recorded a state, in the
    trace.  It is cut if the run ended the job at its limit and the trace recorded that it
    completed: the work was useful, and the rest is unknown.  All other work is bad.
    """
    result = objects(jobs, "result")
    completed, stated = np.zeros(len(jobs), dtype=bool), np.zeros(len(jobs), dtype=bool)
    if "recorded_state" in jobs:  # tables of runs that did not keep the state lack it
        recorded = objects(jobs, "recorded_state")
        completed, stated = (recorded == "COMPLETED").astype(bool), known(recorded)
    good = (result == "COMPLETED").astype(bool) & (completed | ~stated)
    cut = (result == "TIMEOUT").astype(bool) & completed
    return column(np.select([good, cut], ["good", "cut"], "bad"), jobs, "worth")


def goodput(jobs: Table, capacity: float, window: Window | None = None) -> float:
    """Return the utilisation by the jobs whose work is good (see `worth`) [Basney99].

    The work that checkpoints kept of earlier attempts is good as well, with the job; the time in which
    checkpoints are written and read is not.
    """
    return goodput_and_cut_share(jobs, capacity, window)[0]


def cut_share(jobs: Table, capacity: float, window: Window | None = None) -> float:
    """Return the utilisation by jobs that the run ended at their limit and the trace completed (`worth`)."""
    return goodput_and_cut_share(jobs, capacity, window)[1]


def goodput_and_cut_share(jobs: Table, capacity: float, window: Window | None = None) -> tuple[float, float]:
    """Return `goodput` and `cut_share`; the worth of each job is found once."""
    low, high = window or span(jobs)
    of = np.asarray(worth(jobs))
    good, cut = jobs[of == "good"], jobs[of == "cut"]
    found, cut_found = (utilisation(part, capacity, window=(low, high)) for part in (good, cut))
    if "saved" not in good:
        return found, cut_found
    done = ran(good)
    end = floats(done, "end")
    inside = (end > low) & (end <= high)
    more = (floats(done, "saved") - floats(done, "overhead"))[inside] * np.asarray(size(done))[inside]
    return found + _share(float(np.nansum(more)), capacity * (high - low)), cut_found


def badput(jobs: Table, capacity: float, window: Window | None = None) -> float:
    """Return the utilisation by the jobs whose work is bad (see `worth`): lost work [Basney99].

    The frame has the last attempt of each job only.  Earlier attempts of requeued jobs are the rest
    of the timeline's utilisation, and ``badput`` of a summary includes them.
    """
    return utilisation(jobs[worth(jobs) == "bad"], capacity, window=window or span(jobs))


def area_weighted_response(jobs: Table) -> float:
    """Return sum(area · turnaround) / sum(area), seconds: the turnaround of a core-second [Feitelson01]."""
    done = ran(jobs)
    weights, responses = np.asarray(area(done)), np.asarray(turnaround(done))
    return _share(float(np.nansum(weights * responses)), float(np.nansum(weights)))


def backfill_share(jobs: Table) -> float:
    """Return the share of the jobs that ran and were backfilled, 0 to 1 [Mualem01]."""
    done = ran(jobs)
    return _share(float(done["backfilled"].sum()), len(done))


def queue_length(jobs: Table) -> float:
    """Return the mean number of waiting jobs, sum(wait) / makespan by Little's law [Little61]."""
    return _share(float(np.nansum(np.asarray(wait(ran(jobs))))), makespan(jobs))


def loss_of_capacity(
    jobs: Table, timeline: Table, capacity: float, kind: str = "core", window: Window | None = None
) -> float:
    """Return the share of capacity * time that idles while a queued job needs no more units [Tang11].

    It is the capacity that the scheduler could have used and did not.  Only counts are compared, so
    units are lost as well if a job fits by number but not by place.  `kind` is the type that is counted.
    """
    return losses_of_capacity(jobs, timeline, capacity, kind, window)[0]


def loss_of_capacity_any(
    jobs: Table, timeline: Table, capacity: float, kind: str = "core", window: Window | None = None
) -> float:
    """Return the share of capacity * time that idles while any job is queued, of any size [Zhang00].

    It is never less than `loss_of_capacity`, which does not count the times at which every queued job
    is larger than the idle units.
    """
    return losses_of_capacity(jobs, timeline, capacity, kind, window)[1]


def losses_of_capacity(
    jobs: Table, timeline: Table, capacity: float, kind: str = "core", window: Window | None = None
) -> tuple[float, float]:
    """Return `loss_of_capacity` and `loss_of_capacity_any`; the smallest queued jobs are found once."""
    free = f"free_{kind}"
    if free not in timeline or not len(timeline):
        return float("nan"), float("nan")
    # the queue and the idle units change at the rows of the timeline only
    smallest = smallest_queued(jobs, floats(timeline, "time"), kind)
    idle, lengths = floats(timeline, free), holding(timeline, window)
    whole = capacity * float(lengths.sum())
    lost = (idle * (smallest <= idle), idle * np.isfinite(smallest))
    of_size, any_size = (_share(float((units * lengths).sum()), whole) for units in lost)
    return of_size, any_size


def smallest_queued(jobs: Table, time: Floats, kind: str = "core") -> Floats:
    """Return the size of the smallest waiting job from each of the ascending times on; inf without one."""
    result = objects(jobs, "result")
    waiting = jobs[np.logical_and.reduce([(result != never).astype(bool) for never in NEVER_QUEUED])]
    sizes = np.asarray(size(waiting)) if kind == "core" else floats(waiting, HELD[kind])
    eligible, submit, start, end = (floats(waiting, n) for n in ("eligible", "submit", "start", "end"))
    begin = np.searchsorted(time, np.where(np.isnan(eligible), submit, eligible), side="left")
    stop = np.searchsorted(time, np.where(np.isnan(start), end, start), side="left")  # NaN sorts last
    smallest = np.full(len(time), np.inf)
    used = np.flatnonzero((begin < stop) & (sizes > 0))
    used = used[np.lexsort((begin[used], -sizes[used]))]  # largest first: a smaller size replaces it
    sizes, begin, stop = sizes[used], begin[used], stop[used]
    # Waits of one size are joined where they overlap; each size has a range of numbers of its own.
    apart = np.cumsum(np.diff(sizes, prepend=sizes[:1]) != 0) * (len(time) + 1)
    upto = np.maximum.accumulate(stop + apart)
    opens = np.append(True, (begin + apart)[1:] > upto[:-1])[: len(used)]
    lows, highs = begin[opens], (upto - apart)[np.append(opens[1:], True)[: len(used)]]
    for low, high, value in zip(lows.tolist(), highs.tolist(), sizes[opens].tolist(), strict=True):
        smallest[low:high] = value
    return smallest


def fragmentation(
    timeline: Table, totals: Mapping[str, int], kind: str = "core", window: Window | None = None
) -> float:
    """Return the share of the free units that are on partly used nodes, averaged over time.

    Defined here: external fragmentation for jobs that need whole nodes.  0 if all free units are on
    idle nodes, 1 if no node is idle.  Exact if all nodes have one size; otherwise a node counts with
    the mean units of a node.  Times without free units do not count.  NaN without nodes or without
    units of the type.
    """
    needed = {f"free_{kind}", "free_node"}
    if not needed <= set(timeline.columns) or not totals.get("node") or not totals.get(kind):
        return float("nan")
    free = floats(timeline, f"free_{kind}")
    whole = floats(timeline, "free_node") * totals[kind] / totals["node"]
    lengths = holding(timeline, window) * (free > 0)
    # with nodes of several sizes the estimate of whole nodes can exceed the free units
    broken = np.clip(1 - whole / np.where(free > 0, free, 1), 0, 1)
    return _share(float((broken * lengths).sum()), float(lengths.sum()))


def down_share(timeline: Table, kind: str, total: float, window: Window | None = None) -> float:
    """Return the time average of down or drained units over `total` [Schroeder06]: 1 - availability."""
    down = f"down_{kind}"
    return _share(time_average(timeline, down, window), total) if down in timeline else float("nan")


# ---- tables ---------------------------------------------------------------------------


def describe(values: Any, percentiles: Sequence[float] = PERCENTILES) -> dict[str, float]:
    """Return count, mean, standard deviation, min, percentiles (interpolated), max of the finite values."""
    finite: Floats = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    names = [f"p{p:g}" for p in percentiles]
    if not len(finite):
        return {"count": 0.0, **dict.fromkeys(["mean", "std", "min", *names, "max"], float("nan"))}
    places = np.asarray(percentiles) / 100 * (len(finite) - 1)
    quantiles = np.interp(places, np.arange(len(finite)), np.sort(finite))
    spread = float(finite.std(ddof=1)) if len(finite) > 1 else 0.0
    shown = dict(zip(names, map(float, quantiles), strict=True))
    low, mean, high = float(finite.min()), float(finite.mean()), float(finite.max())
    return {"count": float(len(finite)), "mean": mean, "std": spread, "min": low, **shown, "max": high}


NO_KEY = "-"
"""The group of the jobs without a key."""


def by(jobs: pd.DataFrame, key: str | pd.Series[Any]) -> pd.DataFrame:
    """Return one row per value of `key` (a column's name, or a series such as `classes.size_class`).

    Columns: jobs, mean_wait, median_wait, p95_wait (s), mean_bounded_slowdown,
    core_hours, share (of all core-seconds) and, if the workload has energies, recorded_kwh.  Jobs without
    a key are under ``-``.
    """
    import pandas as pd

    done = ran(jobs)
    keys = done[key] if isinstance(key, str) else key.loc[done.index]
    in_order = isinstance(keys.dtype, pd.CategoricalDtype) and keys.cat.ordered
    if not in_order or keys.hasnans:
        keys = keys.astype("object").where(keys.notna(), NO_KEY)
    codes, labels = pd.factorize(keys, sort=True)
    found = groups(done, range(len(labels)), codes)
    figures = {**found.figures, "jobs": found.figures["jobs"].astype(np.int64)}
    index = labels.take(found.labels) if found.labels else labels[:0]
    return pd.DataFrame(figures, index=pd.Index(index, name=key if isinstance(key, str) else key.name))


def by_text(jobs: Table, name: str) -> JobGroups:
    """Return what `by` does, for a column of texts of a frame or of plain columns."""
    texts = objects(ran(jobs), name)
    labels, codes = np.unique(np.where(known(texts), texts, NO_KEY).astype(str), return_inverse=True)
    return groups(jobs, labels.tolist(), codes)


class JobGroups(NamedTuple):
    """The figures of each group that has jobs, in the order of `labels`."""

    labels: Sequence[Any]
    figures: dict[str, Floats]


def groups(jobs: Table, labels: Sequence[Any], codes: npt.NDArray[np.intp]) -> JobGroups:
    """Return the figures of groups of the jobs that ran; `codes` has the place of each one's in `labels`."""
    done = measured(jobs)
    waits, slowdowns, areas = (np.asarray(of) for of in (done["wait"], done["bounded_slowdown"], area(done)))
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
    energies = floats(done, "recorded_energy") if "recorded_energy" in jobs else np.full(1, np.nan)
    if not np.isnan(energies).all():
        figures[RECORDED_KWH] = np.bincount(codes, np.nan_to_num(energies), len(labels)) / 3.6e6
    there = np.flatnonzero(counts)
    kept = [labels[place] for place in there.tolist()]
    return JobGroups(kept, {name: values[there] for name, values in figures.items()})


def _means(codes: npt.NDArray[np.intp], values: Floats, counts: npt.NDArray[np.intp]) -> Floats:
    means: Floats = np.bincount(codes, values, len(counts)) / np.maximum(counts, 1)
    return means


def _quantiles(
    codes: npt.NDArray[np.intp], values: Floats, counts: npt.NDArray[np.intp], share: float
) -> Floats:
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


def cause_rows(jobs: Table) -> list[tuple[str, str, int, Any]]:
    """Return (result, reason, jobs, id of one of them) of each cause, the most frequent first."""
    reasons, results, ids = (objects(jobs, name) for name in ("reason", "result", "id"))
    stated = np.flatnonzero(known(reasons) & (reasons != "").astype(bool)).tolist()
    by_result: dict[str, list[int]] = {}
    for row in sorted(stated, key=lambda row: (results[row], reasons[row])):
        by_result.setdefault(results[row], []).append(row)
    rows = [
        (result, cause, len(places), ids[of[min(places)]])
        for result, of in by_result.items()
        for cause, places in by_cause([reasons[row] for row in of])
    ]
    return sorted(rows, key=lambda row: -row[2])


def reasons(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return result, reason, jobs and the id of one example for each cause, the most frequent first."""
    import pandas as pd

    columns = ["result", "reason", "jobs", "example"]
    return pd.DataFrame(cause_rows(jobs), columns=columns) if len(jobs) else pd.DataFrame(columns=columns)


def trim(jobs: Table, warm_up: float = 0.0, drain: float = 0.0) -> Any:
    """Return the jobs without those submitted in the first `warm_up` or last `drain` seconds of submissions.

    The start and the end of a simulation are not in steady state [Feitelson01].
    """
    submits = floats(jobs, "submit")
    first, last = first_and_last(submits)
    return jobs[(submits >= first + warm_up) & (submits <= last - drain)]


def first_and_last(times: Floats) -> tuple[float, float]:
    """Return the least and the greatest known time; NaN without any."""
    found = times[~np.isnan(times)]
    return (float(found.min()), float(found.max())) if len(found) else (float("nan"), float("nan"))


def _share(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else float("nan")
