"""The figures of a report for other programs: JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast

from pandas.api.types import is_numeric_dtype

from simsched import human
from simsched.declare.answers import Row, json_text, row_of
from simsched.report.compare import compare_runs, figures_of
from simsched.report.metrics.classes import day, run_time_class, size_class
from simsched.report.metrics.metrics import GROUP_FIGURES, by, ran
from simsched.report.metrics.summary import metric
from simsched.text_table import PAGE_WIDTH, fitted_table, markdown_table
from simsched.visible import cell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from simsched.report.data.tables import RunTables
    from simsched.report.metrics.intervals import Interval


class FigureAnswer(TypedDict):
    """The unit and the meaning of a figure."""

    unit: str
    meaning: str


class ClusterOfRun(TypedDict):
    """The cluster of a run.

    totals : type of resource: units.
    """

    name: str
    totals: dict[str, int]


class CauseRow(TypedDict):
    """Jobs that did not run or did not end well.

    reason : why.
    jobs : their number.
    example : the id of one of them.
    """

    result: str
    reason: str
    jobs: int
    example: str


GroupRow = Annotated[dict[str, str | float | None], row_of(["jobs", *GROUP_FIGURES], None)]


class RunRecord(TypedDict):
    """One run.

    simsched : version that made it.
    inputs : role, name and digest of each input.
    config : its configuration.
    summary : the figures; one that could not be computed is null.
    queues, users, sizes, run_times, days : figures of groups of jobs, which the first key names.
    reasons : causes, the most frequent first.
    """

    name: str
    simsched: str | None
    created: str | None
    seed: int | None
    inputs: list[dict[str, str | None]] | None
    cluster: ClusterOfRun
    config: dict[str, Any]
    summary: dict[str, float | None]
    queues: list[GroupRow]
    users: list[GroupRow]
    sizes: list[GroupRow]
    run_times: list[GroupRow]
    days: list[GroupRow]
    reasons: list[CauseRow]


class DifferenceAnswer(TypedDict):
    """A mean difference and the ends of its interval; null if they are not known."""

    mean: float | None
    low: float | None
    high: float | None


class PairedDifferences(TypedDict):
    """Differences of the jobs of both runs."""

    wait: DifferenceAnswer
    turnaround: DifferenceAnswer
    bounded_slowdown: DifferenceAnswer


class ComparisonAnswer(TypedDict):
    """A run against the first one.

    jobs : number of jobs that ran in both.
    verdict : the result in words.
    periods : number of periods of which the intervals are made.
    sooner, same, later : shares of jobs that start sooner, at the same time, later.
    """

    base: str
    run: str
    jobs: int
    verdict: str
    differences: PairedDifferences
    periods: int
    sooner: float | None
    same: float | None
    later: float | None


class ReportAnswer(TypedDict):
    """Runs in figures.

    figures : figure: its unit and meaning.
    comparisons : each further run against the first.
    """

    figures: dict[str, FigureAnswer]
    runs: list[RunRecord]
    comparisons: list[ComparisonAnswer]


def as_json(runs: Sequence[RunTables]) -> str:
    """Return the figures of runs, the runs and their comparisons as JSON, as `ReportAnswer` declares it."""
    names = [name for name, _ in figures_of(runs)]
    document: ReportAnswer = {
        "figures": {n: {"unit": metric(n).unit, "meaning": metric(n).meaning} for n in names},
        "runs": [_record(run) for run in runs],
        "comparisons": [_comparison(runs[0], run) for run in runs[1:]],
    }
    return json_text(document, ensure_ascii=False) + "\n"


TableRows = list[Annotated[Row, row_of(["run"], None)]]


def as_csv(runs: Sequence[RunTables]) -> str:
    """Return the figures as CSV: metric, unit, one column per run; empty if not computed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["metric", "unit", *(cell(r.name) for r in runs)])
    for name, row in figures_of(runs):
        writer.writerow([name, metric(name).unit, *("" if math.isnan(v) else f"{v:.12g}" for v in row)])
    return out.getvalue()


def csv_text(frame: pd.DataFrame) -> str:
    """Return a frame as CSV without its index; no text is a formula (see `visible.cell`)."""
    texts = {
        name: [cell(value) for value in column]
        for name, column in frame.items()
        if not is_numeric_dtype(column.dtype)
    }
    shown = frame.assign(**texts)  # type: ignore[arg-type]
    return str(shown.to_csv(index=False, float_format="%.12g", lineterminator="\n"))


def table_formats(
    frame: Callable[[Sequence[RunTables], str], pd.DataFrame],
    cells: Callable[[Sequence[RunTables], str], tuple[list[str], list[list[str]]]],
    spare: Sequence[str] = (),
) -> dict[str, Callable[[Sequence[RunTables], str], str]]:
    """Return the functions that write a table of groups, by format.

    Parameters
    ----------
    frame : returns the values of runs and a key, times in seconds, shares from 0 to 1.
    cells : returns the heads and rows for people.
    spare : heads of columns that a narrow terminal can do without, the least important first.
    """
    return {
        "text": lambda runs, key: fitted_table(*cells(runs, key), PAGE_WIDTH, spare) + "\n",
        "json": lambda runs, key: json_text(_rows(frame(runs, key)), ensure_ascii=False) + "\n",
        "csv": lambda runs, key: csv_text(frame(runs, key)),
        "markdown": lambda runs, key: markdown_table(*cells(runs, key)) + "\n",
    }


def as_markdown(runs: Sequence[RunTables]) -> str:
    """Return the figures as a Markdown table, then the reasons and the paired comparisons."""
    rows = [
        [name.replace("_", " "), *(human.quantity(v, metric(name).unit) for v in row)]
        for name, row in figures_of(runs)
        if any(math.isfinite(v) for v in row)
    ]
    parts = [markdown_table(["", *(r.name for r in runs)], rows)]
    for run in runs[1:]:
        found = compare_runs(runs[0], run)
        parts.append(
            f"**{run.name}** against **{runs[0].name}** over {found.jobs:,} paired jobs: {found.verdict}; "
            f"mean wait {human.seconds(found.wait.estimate)} different ({found.certainty(human.seconds)})."
        )
    for run in runs:
        if len(run.reasons):
            head = ["result", "reason", "jobs"]
            reasons = [[str(r.result), str(r.reason), f"{r.jobs:,}"] for r in run.reasons.itertuples()]
            parts += [
                f"Why jobs of {run.name} did not run or did not end well:",
                markdown_table(head, reasons),
            ]
    return "\n\n".join(parts) + "\n"


def _record(run: RunTables) -> RunRecord:
    def classed(of: Callable[[pd.DataFrame], pd.Series[Any]]) -> list[GroupRow]:
        return _rows(by(run.jobs, of(ran(run.jobs))).reset_index())

    return {
        "name": run.name,
        "simsched": run.meta.get("simsched"),
        "created": run.meta.get("created"),
        "seed": run.meta.get("seed"),
        "inputs": run.meta.get("inputs"),
        "cluster": {"name": run.cluster_name, "totals": run.totals},
        "config": run.config,
        "summary": dict(run.summary),
        "queues": _rows(run.queues.reset_index()),
        "users": _rows(run.users.reset_index()),
        "sizes": classed(size_class),
        "run_times": classed(run_time_class),
        "days": classed(day),
        "reasons": cast("list[CauseRow]", _rows(run.reasons)),
    }


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", frame.to_dict("records"))


def _comparison(first: RunTables, run: RunTables) -> ComparisonAnswer:
    found = compare_runs(first, run)
    return {
        "base": first.name,
        "run": run.name,
        "jobs": found.jobs,
        "verdict": found.verdict,
        "differences": {
            "wait": _interval(found.wait),
            "turnaround": _interval(found.turnaround),
            "bounded_slowdown": _interval(found.slowdown),
        },
        "periods": found.periods,
        "sooner": found.sooner,
        "same": found.same,
        "later": found.later,
    }


def _interval(interval: Interval) -> DifferenceAnswer:
    return {"mean": interval.estimate, "low": interval.low, "high": interval.high}
