"""A run as the table of jobs of evalys and Batsim (``_jobs.csv``).

evalys counts processors.  The processors of a job are the numbers of its cores: core C of rank R is
R times the cores of a node plus C, and in a machine without cores a node is one processor.  In a run
without allocations jobs are packed, so the number of processors is right and their place is not.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np

from simsched.formats.rfc.idset import Idset
from simsched.report.data.gantt import chart, units_per_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.report.data.tables import RunTables

COLUMNS = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources",
    "requested_time", "success", "final_state", "starting_time", "execution_time", "finish_time",
    "waiting_time", "turnaround_time", "stretch", "allocated_resources",
)  # fmt: skip
STATES = {"COMPLETED": "COMPLETED_SUCCESSFULLY", "TIMEOUT": "COMPLETED_WALLTIME_REACHED"}
"""Result → Batsim's name of it; jobs with another result have COMPLETED_FAILED."""


def evalys_lines(run: RunTables) -> Iterator[str]:
    """Yield the lines, a head first; only jobs that have ended are written, as Batsim does."""
    yield _line(COLUMNS)
    held = _processors(run)
    jobs = run.jobs[run.jobs["start"].notna() & run.jobs["end"].notna()]
    columns = ["id", "shape", "submit", "duration", "result", "start", "end"]
    for number, *row in jobs[columns].itertuples(name=None):
        name, shape, submit, limit, result, start, end = row
        processors = held.get(number, Idset())
        ran = end - start
        yield _line(
            (
                name, run.name, shape, submit, len(processors),
                -1 if np.isinf(limit) else limit, int(result == "COMPLETED"),
                STATES.get(str(result), "COMPLETED_FAILED"), start, ran, end, start - submit, end - submit,
                (end - submit) / ran if ran > 0 else 1.0, str(processors).replace(",", " "),
            )
        )  # fmt: skip


def _line(values: tuple[object, ...]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(values)
    return out.getvalue()


def _processors(run: RunTables) -> dict[int, Idset]:
    """Return the processors of the last allocation of each job, by its row in ``run.jobs``."""
    drawn = chart(run)
    units = units_per_node(run, run.shards)["core"] if drawn.row == "rank" and run.totals.get("core") else 1
    boxes = drawn.boxes
    rows = boxes["job"].to_numpy(dtype=np.int64)
    last = boxes["start"].to_numpy() == run.jobs["start"].to_numpy()[rows]
    low = np.rint(boxes["low"].to_numpy() * units).astype(np.int64)
    high = np.rint(boxes["high"].to_numpy() * units).astype(np.int64)
    found: dict[int, list[tuple[int, int]]] = {}
    for row, first, beyond in zip(rows[last].tolist(), low[last].tolist(), high[last].tolist(), strict=True):
        found.setdefault(row, []).append((first, beyond - 1))
    return {row: Idset.from_ranges(spans) for row, spans in found.items()}
