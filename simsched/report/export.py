"""The figures of a report for other programs: JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

from pandas.api.types import is_numeric_dtype

from simsched import human
from simsched.report.compare import Interval, compare_runs, side_by_side
from simsched.report.metrics.classes import day, run_time_class, size_class
from simsched.report.metrics.metrics import by, ran
from simsched.report.metrics.summary import metric
from simsched.text_table import PAGE_WIDTH, fitted_table, markdown_table
from simsched.visible import cell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from simsched.report.data.tables import RunTables


#: classes by which JSON groups the jobs
CLASSES: dict[str, Callable[[pd.DataFrame], pd.Series[Any]]] = {
    "sizes": size_class,
    "run_times": run_time_class,
    "days": day,
}


def as_json(runs: Sequence[RunTables]) -> str:
    """Return ``{"figures": {name: {unit, meaning}}, "runs": […], "comparisons": […]}``.

    A run has its name, version, date, seed, inputs, cluster, config, summary (the figures), reasons, and the
    jobs by queue, user, size, run time and day.  A figure that could not be computed is null.
    """
    names = dict.fromkeys(name for run in runs for name in run.summary)
    document = {
        "figures": {n: {"unit": metric(n).unit, "meaning": metric(n).meaning} for n in names},
        "runs": [_record(run) for run in runs],
        "comparisons": [_comparison(runs[0], run) for run in runs[1:]],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(runs: Sequence[RunTables]) -> str:
    """Return the figures as CSV: metric, unit, one column per run; empty if not computed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["metric", "unit", *(cell(r.name) for r in runs)])
    for name, row in _figures(runs).iterrows():
        writer.writerow([name, metric(str(name)).unit, *("" if math.isnan(v) else f"{v:.12g}" for v in row)])
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
        "json": lambda runs, key: (
            json.dumps(_rows(frame(runs, key)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        ),
        "csv": lambda runs, key: csv_text(frame(runs, key)),
        "markdown": lambda runs, key: markdown_table(*cells(runs, key)) + "\n",
    }


def as_markdown(runs: Sequence[RunTables]) -> str:
    """Return the figures as a Markdown table, then the reasons and the paired comparisons."""
    rows = [
        [str(name).replace("_", " "), *(human.quantity(v, metric(str(name)).unit) for v in row)]
        for name, row in _figures(runs).iterrows()
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


def _figures(runs: Sequence[RunTables]) -> pd.DataFrame:
    table = side_by_side({str(i): r.summary for i, r in enumerate(runs)})
    return table.set_axis([r.name for r in runs], axis="columns")


def _record(run: RunTables) -> dict[str, Any]:
    return {
        "name": run.name,
        **{key: _deep(run.meta.get(key)) for key in ("simsched", "created", "seed", "inputs")},
        "cluster": {"name": run.cluster_name, "totals": run.totals},
        "config": _deep(run.config),
        "summary": {name: _plain(value) for name, value in run.summary.items()},
        "queues": _rows(run.queues.reset_index()),
        "users": _rows(run.users.reset_index()),
        **{name: _rows(by(run.jobs, of(ran(run.jobs))).reset_index()) for name, of in CLASSES.items()},
        "reasons": _rows(run.reasons),
    }


def _deep(value: Any) -> Any:
    """Return a part of ``run.json`` with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {str(key): _deep(item) for key, item in value.items()}
    return [_deep(item) for item in value] if isinstance(value, list) else _plain(value)


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): _plain(v) for k, v in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    """Return a value for JSON: NumPy numbers become Python's, and numbers that are not finite null."""
    item = value.item() if hasattr(value, "item") else value
    return None if isinstance(item, float) and not math.isfinite(item) else item


def _comparison(first: RunTables, run: RunTables) -> dict[str, Any]:
    found = compare_runs(first, run)
    intervals = {"wait": found.wait, "turnaround": found.turnaround, "bounded_slowdown": found.slowdown}
    return {
        "base": first.name,
        "run": run.name,
        "jobs": found.jobs,
        "verdict": found.verdict,
        "differences": {name: _interval(i) for name, i in intervals.items()},
        "periods": found.periods,
        "sooner": _plain(found.sooner),
        "same": _plain(found.same),
        "later": _plain(found.later),
    }


def _interval(interval: Interval) -> dict[str, Any]:
    return {
        k: _plain(v) for k, v in (("mean", interval.estimate), ("low", interval.low), ("high", interval.high))
    }
