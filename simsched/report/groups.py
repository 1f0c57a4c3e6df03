"""Tables of the jobs by queue, user, size class, run-time class or day, for any number of runs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from simsched.report import human
from simsched.report.classes import day, run_time_class, size_class
from simsched.report.export import markdown_table
from simsched.report.metrics import by, ran
from simsched.report.text import table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simsched.report.tables import Run

#: keys that are computed; others are columns of the jobs
CLASSES: dict[str, Callable[[pd.DataFrame], pd.Series[Any]]] = {
    "size": size_class,
    "runtime": run_time_class,
    "day": day,
}
#: columns of the tables and the units they are shown in
COLUMNS = (
    ("jobs", ""),
    ("mean_wait", "s"),
    ("median_wait", "s"),
    ("p95_wait", "s"),
    ("mean_bounded_slowdown", ""),
    ("core_hours", ""),
    ("share", "share"),
)


def grouped(runs: Sequence[Run], key: str) -> pd.DataFrame:
    """Return one row a run and group: run, the key, then the columns of `metrics.by`."""
    tables = []
    for run in runs:
        jobs = ran(run.jobs)
        found = by(jobs, CLASSES[key](jobs) if key in CLASSES else key)
        found.index.name = key
        tables.append(found.reset_index().astype({key: "str"}).assign(run=run.name))
    whole = pd.concat(tables, ignore_index=True)
    return whole[["run", key, *(name for name, _ in COLUMNS)]]


def as_text(runs: Sequence[Run], key: str) -> str:
    """Return the groups as a table for a terminal; a run's name only where there are several."""
    return table(*_cells(runs, key)) + "\n"


def as_markdown(runs: Sequence[Run], key: str) -> str:
    """Return the groups as a Markdown table."""
    return markdown_table(*_cells(runs, key)) + "\n"


def _cells(runs: Sequence[Run], key: str) -> tuple[list[str], list[list[str]]]:
    several = len(runs) > 1
    head = [*(["run"] if several else []), key, *(name.replace("_", " ") for name, _ in COLUMNS)]
    rows = []
    for row in grouped(runs, key).to_dict("records"):
        shown = [human.quantity(float(row[name]), unit) for name, unit in COLUMNS]
        rows.append([*([str(row["run"])] if several else []), str(row[key]), *shown])
    return head, rows


def as_csv(runs: Sequence[Run], key: str) -> str:
    """Return the groups as CSV, times in seconds, shares from 0 to 1."""
    return str(grouped(runs, key).to_csv(index=False, float_format="%.12g", lineterminator="\n"))


def as_json(runs: Sequence[Run], key: str) -> str:
    """Return the groups as a JSON list of objects; what is not known is null."""
    rows = [
        {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        for row in grouped(runs, key).to_dict("records")
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Sequence[Run], str], str]] = {
    "text": as_text,
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
}
