"""The figures of one run by name, and the text of ``summary.json``."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.declare.answers import rounded
from simsched.report.columns import RESULTS
from simsched.report.metrics import metrics as m
from simsched.report.metrics.fairness import jain_of_users
from simsched.report.metrics.metric_plugins import (
    Metric,
    installed_figures,
    installed_metric,
    installed_metrics,
)
from simsched.report.metrics.plain_columns import PlainColumns, floats, objects
from simsched.text_table import html_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.report.metrics.plain_columns import Table

#: figures that do not depend on the cluster, in the order of the reports
METRICS: tuple[Metric, ...] = (
    Metric("jobs", "jobs", "jobs in the workload"),
    Metric("jobs_run", "jobs", "jobs that started and ended"),
    *(Metric(f"jobs_{r.lower()}", "jobs", f"jobs with result {r}") for r in RESULTS),
    Metric("makespan", "s", "last end less first submission", -1),
    Metric("throughput", "jobs/h", "jobs that ran per hour of makespan", +1),
    Metric("mean_wait", "s", "mean time from submission to start", -1),
    Metric("median_wait", "s", "median time from submission to start", -1),
    Metric("p90_wait", "s", "90th percentile of the wait", -1),
    Metric("p95_wait", "s", "95th percentile of the wait", -1),
    Metric("p99_wait", "s", "99th percentile of the wait", -1),
    Metric("max_wait", "s", "longest wait", -1),
    Metric("share_waited", "share", "share of jobs that waited at all", -1),
    Metric("mean_turnaround", "s", "mean time from submission to end", -1),
    Metric("median_turnaround", "s", "median time from submission to end", -1),
    Metric("mean_bounded_slowdown", "ratio", "mean of max(1, turnaround / max(run time, 10 s))", -1),
    Metric("median_bounded_slowdown", "ratio", "median of the bounded slowdown", -1),
    Metric("p95_bounded_slowdown", "ratio", "95th percentile of the bounded slowdown", -1),
    Metric("mean_per_processor_bounded_slowdown", "ratio", "mean bounded slowdown per processor", -1),
    Metric("area_weighted_response", "s", "turnaround weighted by core-seconds", -1),
    Metric("goodput", "share", "share of capacity used by jobs that completed, in the trace as well", +1),
    Metric(
        "badput",
        "share",
        "share of capacity used by jobs that did not complete, and by repeated attempts",
        -1,
    ),
    Metric(
        "cut_share", "share", "share of capacity used by jobs ended at their limit that the trace completed"
    ),
    Metric(
        "loss_of_capacity", "share", "share of capacity idle while a queued job was no larger than it", -1
    ),
    Metric("loss_of_capacity_any", "share", "share of capacity idle while any job was queued", -1),
    Metric("fragmentation_core", "share", "share of free cores on partly used nodes", -1),
    Metric("fragmentation_gpu", "share", "share of free gpus on partly used nodes", -1),
    Metric("backfill_share", "share", "share of the jobs that ran and were backfilled"),
    Metric("estimate_accuracy", "ratio", "mean of run time / requested duration"),
    Metric("mean_queue_length", "jobs", "jobs waiting, averaged over time", -1),
    Metric("max_queue_length", "jobs", "most jobs waiting at once", -1),
    Metric("jain_users", "ratio", "Jain index of the users' mean bounded slowdowns; 1 is even", +1),
)


#: a difference of shares below this is rounding
ROUNDING = 1e-12


def known_metrics() -> tuple[Metric, ...]:
    """Return our metrics and those of installed packages, whose names ours precede."""
    ours = {known.name for known in METRICS}
    return (*METRICS, *(known for known in installed_metrics() if known.name not in ours))


def metric(name: str) -> Metric:
    """Return the description of a figure; that of a resource type follows from its prefix."""
    for known in METRICS:
        if known.name == name:
            return known
    installed = installed_metric(name)
    if installed is not None:
        return installed
    kind, _, of = name.partition("_")
    if kind == "utilisation":
        return Metric(name, "share", f"share of {of} capacity in use, averaged over the makespan", +1)
    if kind == "down":
        return Metric(name, "share", f"share of {of} capacity down or drained, averaged over time", -1)
    return Metric(name, "", name.replace("_", " "))


def summarise(
    jobs: Table, timeline: Table, totals: Mapping[str, int], *, warm_up: float = 0.0, drain: float = 0.0
) -> dict[str, float]:
    """Return every figure of `METRICS` plus ``utilisation_T`` and ``down_T`` of each resource type T.

    Those of metrics of installed packages follow.

    Jobs that were submitted in the first `warm_up` or last `drain` seconds of submissions do not
    count, and use is averaged over the time between; without either it is averaged over the
    makespan.  A figure that cannot be computed (no job ran, no such
    resource) is NaN.
    """
    steady = bool(warm_up or drain) and len(jobs) > 0
    kept = m.trim(jobs, warm_up, drain) if steady else jobs
    first, last = m.first_and_last(floats(jobs, "submit"))
    window = (first + warm_up, last - drain) if steady else m.span(jobs)
    figures = {**_counts(kept), **_times(kept), **_use(jobs, timeline, totals, window)}
    figures["jain_users"] = jain_of_users(kept)
    known = {k.name: figures[k.name] for k in METRICS if k.name in figures}
    figures = {**known, **figures}
    others = {}
    if not (isinstance(kept, PlainColumns) or isinstance(timeline, PlainColumns)):
        others = installed_figures(kept, timeline, totals)
    figures.update((name, value) for name, value in others.items() if name not in figures)
    return {name: float(value) for name, value in figures.items()}


def summary_of_columns(
    jobs: Mapping[str, Any], timeline: Mapping[str, Any], meta: Mapping[str, Any]
) -> dict[str, float]:
    """Return every figure of a run in memory; those of metrics of installed packages need frames.

    `jobs`, `timeline` and `meta` are those of a `RunResult`. With ``meta["from"]`` the figures are those of
    the time from then on.
    """
    first, _ = m.first_and_last(jobs["submit"])
    begin, totals = meta.get("from"), meta["cluster"]["totals"]
    warm_up = 0.0 if begin is None or math.isnan(first) else max(0.0, float(begin) - first)
    return summarise(PlainColumns(jobs), PlainColumns(timeline), totals, warm_up=warm_up)


def _counts(jobs: Table) -> dict[str, float]:
    found = Counter(objects(jobs, "result").tolist())
    each = {f"jobs_{r.lower()}": float(found[r]) for r in RESULTS}
    return {"jobs": float(len(jobs)), "jobs_run": float(len(m.ran(jobs))), **each}


_OF_JOBS = {
    "wait": ("mean", "median", "p90", "p95", "p99", "max"),
    "turnaround": ("mean", "median"),
    "bounded_slowdown": ("mean", "median", "p95"),
    "per_processor_bounded_slowdown": ("mean",),
}
"""Function of `metrics` → its figures, as in ``p95_wait``."""
_SHOWN = {"median": 50, "p90": 90, "p95": 95, "p99": 99}
"""Figure → percentile."""


def _times(jobs: Table) -> dict[str, float]:
    done = m.ran(jobs)
    figures = {
        "makespan": m.makespan(done),
        "throughput": m.throughput(done),
        "share_waited": float((m.wait(done) > 0).mean()) if len(done) else math.nan,
        "area_weighted_response": m.area_weighted_response(done),
        "backfill_share": m.backfill_share(done),
        "estimate_accuracy": m.describe(m.estimate_accuracy(done), ())["mean"],
        "mean_queue_length": m.queue_length(done),
    }
    for of, names in _OF_JOBS.items():
        shown = {name: _SHOWN[name] for name in names if name in _SHOWN}
        found = m.describe(getattr(m, of)(done), [*shown.values()])
        found |= {name: found[f"p{percentile}"] for name, percentile in shown.items()}
        figures |= {f"{name}_{of}": found[name] for name in names}
    return figures


def _use(
    jobs: Table, timeline: Table, totals: Mapping[str, int], window: tuple[float, float]
) -> dict[str, float]:
    unit = "core" if totals.get("core") else "node"
    capacity = float(totals.get(unit, 0))
    kinds = [t for t in m.types(timeline) if totals.get(t)]
    used = {f"utilisation_{t}": m.utilisation_over_time(timeline, t, totals[t], window) for t in kinds}
    down = {f"down_{t}": m.down_share(timeline, t, totals[t], window) for t in kinds}
    inside = timeline[m.holding(timeline, window) > 0]
    lost, lost_any = m.losses_of_capacity(jobs, timeline, capacity, unit, window)
    good, cut = m.goodput_and_cut_share(jobs, capacity, window)
    return {
        "goodput": good,
        "badput": _rest(used.get(f"utilisation_{unit}", math.nan), good + cut),
        "cut_share": cut,
        "loss_of_capacity": lost,
        "loss_of_capacity_any": lost_any,
        "fragmentation_core": m.fragmentation(timeline, totals, "core", window),
        "fragmentation_gpu": m.fragmentation(timeline, totals, "gpu", window),
        "max_queue_length": float(inside["queued_jobs"].max()) if len(inside) else math.nan,
        **used,
        **{name: share for name, share in down.items() if share},
    }


def _rest(whole: float, part: float) -> float:
    """Return the difference of two shares; a remainder of rounding is 0."""
    left = whole - part
    return 0.0 if left < ROUNDING else left


class RunFigures(dict[str, float]):
    """Figures by name, which a notebook shows as a table with units."""

    def _repr_html_(self) -> str:
        """Return one row per figure: its name, its value, its meaning."""
        rows = [
            (name.replace("_", " "), human.quantity(value, metric(name).unit), metric(name).meaning)
            for name, value in self.items()
        ]
        return html_table("figures", rows, ("figure", "value", "meaning"))


def summary_text(figures: Mapping[str, float]) -> str:
    """Return the text of ``summary.json``; a figure that is not finite is null."""
    return json.dumps(rounded(dict(figures), 12, whole=True), indent=1) + "\n"
