"""Tables of single jobs, of jobs by queue, user …, and of the machine by property, place or node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from simsched import human
from simsched.errors import RunError
from simsched.report.export import table_formats
from simsched.report.metrics import machine_use
from simsched.report.metrics.classes import GROUPS
from simsched.report.metrics.group_figures import RECORDED_KWH
from simsched.report.metrics.metrics import by, ran

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from simsched.report.data.tables import RunTables

#: columns of the tables of jobs and their units
COLUMNS = {
    "jobs": "",
    "mean_wait": "s",
    "median_wait": "s",
    "p95_wait": "s",
    "mean_bounded_slowdown": "",
    "core_hours": "",
    "share": "share",
}
#: columns of the tables of the machine that are texts or counts; the others are shares in use
PLAIN = {"host": "text", "nodes": "", "jobs": ""}
#: columns of the table of single jobs that fit a page, and their units; CSV and JSON have all of them
OF_A_JOB = {
    "user": "text",
    "queue": "text",
    "submit": "s",
    "wait": "s",
    "end": "s",
    "nodes": "",
    "result": "text",
}


def grouped(runs: Sequence[RunTables], key: str) -> pd.DataFrame:
    """Return one row per run and group: run, the key, then the columns of `metrics.by` or `machine_use`.

    Raises
    ------
    RunError : the key is a part of the machine, and a run has no allocations or no nodes.
    """
    tables = []
    for run in runs:
        found = PARTS[key](run) if key in PARTS else _groups_of_jobs(run, key)
        column = "id" if key == "job" else key
        found.index.name = column
        tables.append(found.reset_index().astype({column: "str"}).assign(run=run.name))
    whole = pd.concat(tables, ignore_index=True)
    return whole[["run", column, *(name for name in whole.columns if name not in {"run", column})]]


def _groups_of_jobs(run: RunTables, key: str) -> pd.DataFrame:
    jobs = ran(run.jobs)
    table = by(jobs, GROUPS[key](jobs, run.clock))
    return table[[*COLUMNS, *(name for name in (RECORDED_KWH,) if name in table)]]


def of_jobs(run: RunTables) -> pd.DataFrame:
    """Return all jobs by id, even those that never ran.

    Where dates are known, the last columns are the local dates of submission, start and end.
    """
    jobs = run.jobs.set_index("id")
    if run.clock is not None:
        for name in ("submit", "start", "end"):
            jobs[f"{name}_date"] = run.clock.texts(jobs[name].to_numpy(dtype="float64"))
    return jobs


def of_properties(run: RunTables) -> pd.DataFrame:
    """Return `machine_use.use_by` of the properties."""
    return machine_use.use_by(*_machine(run), "property")


def of_places(run: RunTables) -> pd.DataFrame:
    """Return `machine_use.use_by` of the racks, then of the switches …, with the type before each name."""
    nodes, allocations, window = _machine(run)
    tables: list[pd.DataFrame] = []
    for place in machine_use.places(nodes):
        table = machine_use.use_by(nodes, allocations, window, place)
        names = [n if n == machine_use.ALL or n.startswith(place) else f"{place} {n}" for n in table.index]
        tables.append(table.set_axis(pd.Index(names)).iloc[1 if tables else 0 :])
    return (
        pd.concat(tables) if tables else machine_use.use_by(nodes, allocations, window, "property").iloc[:1]
    )


def of_nodes(run: RunTables) -> pd.DataFrame:
    """Return `machine_use.node_use`, by rank."""
    return machine_use.node_use(*_machine(run))


#: keys that do not group jobs: single jobs and the parts of the machine
PARTS: dict[str, Callable[[RunTables], pd.DataFrame]] = {
    "job": of_jobs,
    "property": of_properties,
    "place": of_places,
    "node": of_nodes,
}


def _machine(run: RunTables) -> tuple[pd.DataFrame, pd.DataFrame, machine_use.Window]:
    for name, known in (("nodes.parquet", len(run.nodes) > 0), ("allocations.jsonl", run.has_allocations)):
        if not known:
            raise RunError("this run does not record where its jobs ran", where=run.name, expected=name)
    return run.nodes, run.allocations, run.window


def _cells(runs: Sequence[RunTables], key: str) -> tuple[list[str], list[list[str]]]:
    several = len(runs) > 1
    frame = grouped(runs, key)
    names = list(OF_A_JOB if key == "job" else frame.columns[2:])
    units = OF_A_JOB if key == "job" else COLUMNS | PLAIN
    if key == "job" and all(run.clock is not None for run in runs):
        names = [f"{name}_date" if name in ("submit", "end") else name for name in names]
        units = {**OF_A_JOB, "submit_date": "text", "end_date": "text"}
    zones = {run.clock.zone for run in runs if run.clock is not None}
    zone = f" ({zones.pop()})" if len(zones) == 1 else ""
    titles = [heading(name).replace(" date", zone) for name in names]
    head = [*(["run"] if several else []), key, *titles]
    rows = []
    for row in frame.to_dict("records"):
        shown = [_shown(row[name], str(name), units) for name in names]
        rows.append([*([str(row["run"])] if several else []), str(row[frame.columns[1]]), *shown])
    return head, rows


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
