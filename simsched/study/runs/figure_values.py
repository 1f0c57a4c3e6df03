"""Values of figures of a run, over all its jobs or over those that match a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.study.spec.target import OF_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.study.spec.target import Figure


def figures_of(
    figures: Iterable[Figure],
    run: Any,
    jobs: Iterable[Any],
    *,
    warm_up: float = 0.0,
    drain: float = 0.0,
    summary: dict[str, float] | None = None,
) -> dict[str, float]:
    """Return the value of each figure of a run, by its text.

    Parameters
    ----------
    run : a `simsched.report.data.tables.Run`.
    jobs : the jobs of the workload as it was run; queries select from them.
    warm_up, drain : seconds of submissions that are ignored (see `summarise`).
    summary : figures of the whole run, if they are known.

    Returns
    -------
    dict
        NaN for a figure that cannot be computed because no job ran or none matches its query.
    """
    from simsched.report.metrics.metrics import trim
    from simsched.report.metrics.summary import summarise

    whole = summary if summary is not None else summarise(run.jobs, run.timeline, run.totals,
                                                          warm_up=warm_up, drain=drain)  # fmt: skip
    kept = trim(run.jobs, warm_up, drain) if (warm_up or drain) and len(run.jobs) else run.jobs
    known = list(jobs)
    found: dict[str, float] = {}
    for figure in figures:
        frame = kept[kept["id"].astype(str).isin(_members(figure.query, known))] if figure.query else kept
        found[str(figure)] = _of_frame(figure, frame, whole)
    return found


def _of_frame(figure: Figure, frame: Any, whole: dict[str, float]) -> float:
    if not figure.query:
        name = figure.name
        if name == "utilisation":
            name = "utilisation_core" if "utilisation_core" in whole else "utilisation_node"
        if name in whole:
            return whole[name]
        if name.startswith("down_"):
            return 0.0  # a summary has such figures only for types that were down
    if figure.statistic is not None:
        return _statistic(*figure.statistic, frame)
    if figure.query and figure.name in OF_JOBS:
        return _of_jobs(figure.name, frame)
    return float("nan")


def _statistic(statistic: str, measure: str, frame: Any) -> float:
    from simsched.report.metrics import metrics

    done = metrics.ran(frame)
    values = getattr(metrics, measure)(done)
    if statistic.startswith("p"):
        level = float(statistic[1:])
        return metrics.describe(values, (level,))[f"p{level:g}"]
    described = metrics.describe(values, (50,))
    return described["p50" if statistic == "median" else statistic]


def _of_jobs(name: str, frame: Any) -> float:
    """Return a figure that depends on jobs only."""
    from simsched.report.metrics.summary import summarise

    timeline = frame.iloc[:0][["submit"]].rename(columns={"submit": "time"}).assign(queued_jobs=0.0)
    return summarise(frame, timeline, {}).get(name, float("nan"))


def _members(query: str, jobs: list[Any]) -> set[str]:
    from simsched.workload.transforms.query import parse_query

    holds = parse_query(query)
    return {str(job.id) for job in jobs if holds(job)}
