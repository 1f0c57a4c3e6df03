"""Data frames with the columns of our own tables of jobs, such as ``run.jobs``: they need no column map."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from simsched.declare.table import fields_of
from simsched.errors import WorkloadError
from simsched.workload.readers.job_lines import read_jsonl
from simsched.workload.readers.jobs_yaml import JobEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.workload.job import Workload
    from simsched.workload.mapping import ReadOptions

REQUESTS = ("shape", "jobspec")
"""The columns of which one has the request of each job."""
OTHERS = ("nodes", "count", "every", "file", "parts")
"""Keys of an entry that are not read from a frame: ``nodes`` of a run are those that a job held."""


def is_own_frame(frame: Any) -> bool:
    """Whether a frame has the requests of jobs and their submit times under our names."""
    names = {str(name) for name in frame.columns}
    return "submit" in names and not names.isdisjoint(REQUESTS)


def read_own_frame(frame: Any, reading: ReadOptions) -> Workload:
    """Read a frame, pandas or polars; columns that are not keys of a job are ignored.

    Raises
    ------
    FormatError, WorkloadError
        As `read_jsonl`, with the number of the row, from 1 on.
    """
    names = [name for name in frame.columns if name in fields_of(JobEntry) and name not in OTHERS]
    if "shape" in names and "jobspec" in names:
        names.remove("shape")
    return read_jsonl(_lines(frame, names), reading)


def _lines(frame: Any, names: list[str]) -> Iterator[str]:
    columns: list[list[Any]] = [frame[name].to_list() for name in names]
    for number, row in enumerate(zip(*columns, strict=True), 1):
        if not _is_given(row[names.index("submit")]):
            raise WorkloadError("there is no submit time", where=f"data frame:{number}", expected="seconds")
        entry = {name: _plain(value) for name, value in zip(names, row, strict=True) if _is_given(value)}
        if isinstance(entry.get("depends"), str):
            entry["depends"] = entry["depends"].split(",")  # as the table of jobs of a run has them
        yield json.dumps(entry)


def _is_given(value: Any) -> bool:
    """Whether a cell has a value: not None or NaN, and not an infinite time, which means no limit."""
    if value is None or value in ("", float("inf")):
        return False
    return bool(value == value)  # noqa: PLR0124 (NaN)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; whole numbers are ints, as in a workload."""
    value = value.item() if hasattr(value, "item") else value
    return int(value) if isinstance(value, float) and value.is_integer() else value
