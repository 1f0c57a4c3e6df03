"""Tables of single jobs, of jobs by queue, user …, and of the machine by property, place or node."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from simsched import human
from simsched.errors import RunError
from simsched.report.export import table_formats
from simsched.report.metrics import machine_use
from simsched.report.metrics.agreement import agreement_by
from simsched.report.metrics.classes import GROUPS
from simsched.report.metrics.metrics import by, ran

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from simsched.report.data.tables import RunTables
    from simsched.report.metrics.metrics import Window

#: columns of the tables of jobs that have a unit
COLUMNS = {"mean_wait": "s", "median_wait": "s", "p95_wait": "s", "share": "share"}
#: columns of the table of single jobs that fit a page, and their units; CSV and JSON have all of them
OF_A_JOB = {"user": "text", "queue": "text", "submit": "s", "wait": "s", "end": "s", "nodes": "",
            "result": "text"}  # fmt: skip


def grouped(runs: Sequence[RunTables], key: str) -> pd.DataFrame:
    """Return one row per run and group: run, the key, then the columns of `metrics.by` or `machine_use`.

    Raises
    ------
    RunError : the key is a part of the machine, and a run has no allocations or no nodes.
    """
    column = "id" if key == "job" else key
    return of_runs([(run, PARTS[key](run) if key in PARTS else _jobs_by(run, key)) for run in runs], column)


def of_runs(tables: Iterable[tuple[RunTables, pd.DataFrame]], key: str) -> pd.DataFrame:
    """Return the tables of several runs as one: the columns ``run`` and `key`, the index, and all others."""
    named = [t.rename_axis(key).reset_index().astype({key: "str"}).assign(run=run.name) for run, t in tables]
    whole = pd.concat(named, ignore_index=True)
    return whole[["run", key, *(name for name in whole.columns if name not in {"run", key})]]


def _jobs_by(run: RunTables, key: str) -> pd.DataFrame:
    jobs = ran(run.jobs)
    return by(jobs, GROUPS[key](jobs, run.clock))


def of_jobs(run: RunTables) -> pd.DataFrame:
    """Return all jobs by id, even those that never ran.

    Where dates are known, the last columns are the local dates of submission, start and end.
    """
    jobs = run.jobs.set_index("id")
    if run.clock is not None:
        for name in ("submit", "start", "end"):
            jobs[f"{name}_date"] = run.clock.texts(jobs[name].to_numpy(dtype="float64"))
    return jobs


def of_places(run: RunTables) -> pd.DataFrame:
    """Return `machine_use.use_by` of the racks, then of the switches …, with the type before each name."""
    nodes, allocations, window = _machine(run)
    tables: list[pd.DataFrame] = []
    for place in machine_use.places(nodes):
        table = machine_use.use_by(nodes, allocations, window, place)
        names = [n if n == machine_use.ALL or n.startswith(place) else f"{place} {n}" for n in table.index]
        tables.append(table.set_axis(pd.Index(names)).iloc[1 if tables else 0 :])
    return pd.concat(tables or [machine_use.use_by(nodes, allocations, window, "property").iloc[:1]])


#: keys that do not group jobs: single jobs and the parts of the machine
PARTS: dict[str, Callable[[RunTables], pd.DataFrame]] = {
    "job": of_jobs,
    "property": lambda run: machine_use.use_by(*_machine(run), "property"),
    "place": of_places,
    "node": lambda run: machine_use.node_use(*_machine(run)),
}


def _machine(run: RunTables) -> tuple[pd.DataFrame, pd.DataFrame, Window]:
    for name, known in (("nodes.parquet", len(run.nodes) > 0), ("allocations.jsonl", run.has_allocations)):
        if not known:
            raise RunError("this run does not record where its jobs ran", where=run.name, expected=name)
    return run.nodes, run.allocations, run.window


def _cells(runs: Sequence[RunTables], key: str) -> tuple[list[str], list[list[str]]]:
    frame = grouped(runs, key)
    names = list(OF_A_JOB if key == "job" else frame.columns[2:])
    units = OF_A_JOB if key == "job" else COLUMNS | {"host": "text"}
    if key == "job" and all(run.clock is not None for run in runs):
        names = [f"{name}_date" if name in ("submit", "end") else name for name in names]
        units = {**OF_A_JOB, "submit_date": "text", "end_date": "text"}
    zones = {run.clock.zone for run in runs if run.clock is not None}
    zone = f" ({zones.pop()})" if len(zones) == 1 else ""
    titles = [heading(name).replace(" date", zone) for name in names]
    shown = [frame[name].astype(object).map(partial(_shown, name=name, units=units)) for name in names]
    return cells_of(runs, frame, [key, *titles], shown)


def cells_of(
    runs: Sequence[RunTables], frame: pd.DataFrame, head: list[str], shown: list[pd.Series[str]]
) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of a table by `of_runs`: the run if there are several, the key, and texts."""
    first = [frame["run"], frame.iloc[:, 1]] if len(runs) > 1 else [frame.iloc[:, 1]]
    rows = zip(*(column.astype(str) for column in (*first, *shown)), strict=True)
    return [*(["run"] if len(runs) > 1 else []), *head], [list(row) for row in rows]


def heading(name: str) -> str:
    """Return a column's heading: ``utilisation_core`` becomes ``cores in use``."""
    use = name.startswith(machine_use.USE)
    return f"{human.plural(name.removeprefix(machine_use.USE))} in use" if use else name.replace("_", " ")


def _shown(value: Any, name: str, units: Mapping[str, str]) -> str:
    unit = units.get(name) or ("share" if name.startswith(machine_use.USE) else "")
    if unit == "text":
        return human.MISSING if pd.isna(value) else str(value)
    return human.quantity(float(value), unit)


FORMATS = table_formats(grouped, _cells)
"""Format → function of runs and a key that returns the table."""

# --- recorded beside simulated waits --------------------------------------------------

#: words in the names of columns → words in their heads, and ends of names → unit
_WORDS = {
    "recorded": "rec.",
    "simulated": "sim.",
    "bounded": "",
    "slowdown": "bsld",
    "wait": "",
    "correlation": "corr.",
    "within": "≤",
    "ten": "10",
    "minutes": "min",
    "twofold": "2 ×",
}
_UNITS = {"_wait": "s", "_use": "share", "_minutes": "share", "_twofold": "share"}


def recorded(runs: Sequence[RunTables], key: str) -> pd.DataFrame:
    """Return one row per run and group (`GROUPS`): ``run``, the key, then the columns of `agreement_by`."""
    tables = []
    for run in runs:
        capacity = run.totals.get("core") or run.totals.get("node") or math.nan
        table = agreement_by(run.jobs, key, run.clock)
        for name in ("recorded_use", "simulated_use"):
            table[name] = table[name] / capacity
        tables.append((run, table))
    return of_runs(tables, key)


def _recorded_cells(runs: Sequence[RunTables], key: str) -> tuple[list[str], list[list[str]]]:
    frame = recorded(runs, key)
    names = list(map(str, frame.columns[2:]))
    shown = []
    for name in names:
        unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
        shown.append(frame[name].map(lambda value, unit=unit: human.quantity(round(float(value), 6), unit)))
    return cells_of(runs, frame, [key, *map(_short_heading, names)], shown)


def _short_heading(name: str) -> str:
    return " ".join(filter(None, (_WORDS.get(word, word) for word in name.split("_"))))


_SPARE = [_short_heading(f"{side}_{figure}") for figure in ("use", "mean_bounded_slowdown", "median_wait")
          for side in ("recorded", "simulated")]  # fmt: skip
RECORDED_FORMATS = table_formats(recorded, _recorded_cells, _SPARE)
"""Format → function of runs and a key that returns the table."""
