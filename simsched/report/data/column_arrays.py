"""Parquet files of a run as arrays, one per column, for answers that need no frames.

pandas takes longer to import than an answer about one job takes to compute.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from simsched.errors import RunError, first_line
from simsched.files import glob_free

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    import numpy.typing as npt
    from duckdb import DuckDBPyConnection

    from simsched.report.columns import Kind

Arrays: TypeAlias = "dict[str, npt.NDArray[Any]]"

_BLANK: dict[Kind, Any] = {"int": 0, "bool": False, "float": np.nan}
"""Kind → the value of a missing column; a missing text is None."""


@contextmanager
def open_parquet(
    file: Path, required: Collection[str]
) -> Iterator[tuple[DuckDBPyConnection, dict[str, str]]]:
    """Open a Parquet file as the view ``t``; yield the connection and the columns with their SQL types.

    RunError if it cannot be read, or lacks a required column.
    """
    import duckdb

    with duckdb.connect() as con:
        try:
            con.read_parquet(glob_free(file)).create_view("t")
            have = {str(name): str(kind) for name, kind, *_ in con.execute("describe t").fetchall()}
            lacking = sorted(set(required) - have.keys())
            if lacking:
                raise RunError(f"there is no column {', '.join(map(repr, lacking))}", where=str(file))
            yield con, have
        except (duckdb.Error, ValueError) as error:  # ValueError: a message that is not UTF-8
            reason = first_line(error)
            raise RunError(f"cannot be read: {reason}", where=str(file), expected="a Parquet file") from None


def quoted(name: str) -> str:
    """Return the name of a column as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def select_item(name: str, kind: Kind) -> str:
    """Return the select item that reads a column of a kind; a missing number counts as 0 or NaN."""
    column = quoted(name)
    sql = {
        "int": f"coalesce({column}::bigint, 0)",
        "bool": f"coalesce({column}::boolean, false)",
        "float": f"{column}::double",
        "list": f"{column}::varchar[]",
    }
    return f"{sql.get(kind, f'{column}::varchar')} as {column}"


def check_jobs(jobs: Any, dropped: Any, file: Path) -> None:
    """Refuse jobs (columns by name) with values that no run writes; `dropped` records may lack some.

    RunError names the column and the first row.
    """
    dropped = np.asarray(dropped, dtype=bool)
    for name in _TIMES:
        if name in jobs:
            values = np.asarray(jobs[name], dtype=np.float64)
            infinite = np.isinf(values) & (name != "eligible")  # a job may never become eligible
            odd = infinite | (np.abs(np.nan_to_num(values, posinf=0, neginf=0)) > MOST)
            if name == "submit":
                odd |= np.isnan(values) & ~dropped
            _refuse(odd, name, values, file, "a time in seconds")
    for name in _COUNTS:
        if name in jobs:
            values = np.asarray(jobs[name])
            _refuse((values < 0) | (values > MOST), name, values, file, "a count of 0 or more")
    if "start" in jobs and "end" in jobs:
        start, end = (np.asarray(jobs[name], dtype=np.float64) for name in ("start", "end"))
        _refuse(end < start, "end", end, file, "a time at or after the start")
    for name in _TEXTS:
        if name in jobs:
            values = jobs[name]
            lacking = values.isna() if hasattr(values, "isna") else np.equal(values, _UNKNOWN)
            _refuse(np.asarray(lacking, dtype=bool) & ~dropped, name, values, file, "a text")


_UNKNOWN = np.array(None, dtype=object)
_TIMES = ("submit", "eligible", "start", "end")
_COUNTS = ("nodes", "cores", "gpus", "procs")
_TEXTS = ("id", "result")
"""Columns of the jobs that always have a value."""
MOST = 2.0**53
"""The largest number of a table."""


def _refuse(odd: npt.NDArray[np.bool_], name: str, values: Any, file: Path, expected: str) -> None:
    """Raise RunError for the first row whose value is odd."""
    if odd.any():
        row = int(np.argmax(odd))
        value = list(values)[row] if not hasattr(values, "iloc") else values.iloc[row]
        value = value.item() if hasattr(value, "item") else value
        raise RunError(f"column {name!r}, row {row + 1}: {value!r}", where=str(file), expected=expected)


def check_timeline(timeline: Any, file: Path) -> None:
    """Refuse times that are not finite and ascending, and numbers that are not finite or below 0."""
    time = np.asarray(timeline["time"], dtype=np.float64)
    odd = ~np.isfinite(time) | np.append(False, np.diff(time) < 0)
    _refuse(odd, "time", time, file, "finite times, ascending")
    for name in timeline:
        try:
            values = np.asarray(timeline[name], dtype=np.float64)
        except (TypeError, ValueError):
            fault = f"column {name!r} does not hold numbers"
            raise RunError(fault, where=str(file), expected="numbers") from None
        odd = np.isinf(values) | (np.nan_to_num(values) < 0) | (np.nan_to_num(values) > MOST)
        if name != "time":
            _refuse(odd, str(name), values, file, "a number of 0 or more")


def refuse_types(have: Mapping[str, str], kinds: Mapping[str, Kind], file: Path) -> None:
    """Raise RunError for a column of another type than its kind."""
    for name, found in have.items():
        kind = kinds.get(name)
        if kind is None:
            continue
        is_list, is_text = found.endswith("]"), found in {"VARCHAR", "BLOB"}
        fits = is_list if kind == "list" else not (is_list or found.startswith(("STRUCT", "MAP")))
        if not fits or (is_text and kind in {"int", "float", "bool"}):
            words = {"list": "a list of texts", "category": "texts", "text": "texts"}
            expected = words.get(kind, "numbers")
            raise RunError(f"column {name!r} is of the type {found}", where=str(file), expected=expected)


def read_columns(
    file: Path, kinds: Mapping[str, Kind] | None, required: Collection[str] | None = None
) -> Arrays:
    """Read columns of these kinds, or all columns as numbers; RunError if one that is required is missing.

    Without `required`, all columns of `kinds` are.
    """
    required = kinds or () if required is None else required
    with open_parquet(file, required) as (con, have):
        wanted: Mapping[str, Kind] = dict.fromkeys(have, "float") if kinds is None else kinds
        refuse_types(have, wanted, file)
        items = [select_item(name, kind) for name, kind in wanted.items() if name in have]
        read: Mapping[str, Any] = con.execute(f"select {', '.join(items)} from t").fetchnumpy()  # noqa: S608 - quoted names
    rows = len(next(iter(read.values())))
    return {name: _plain(read.get(name), kind, rows) for name, kind in wanted.items()}


def _plain(found: npt.NDArray[Any] | None, kind: Kind, rows: int) -> npt.NDArray[Any]:
    """Return a column without a mask; `found` is None for a missing one."""
    if found is None:
        return np.full(rows, _BLANK.get(kind), dtype=None if kind in _BLANK else object)
    if not isinstance(found, np.ma.MaskedArray):
        return found
    absent: Any = np.nan if kind == "float" else None
    return np.where(np.ma.getmaskarray(found), absent, found.data)
