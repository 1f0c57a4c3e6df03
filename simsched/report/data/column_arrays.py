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
                raise RunError(f"has no column {', '.join(lacking)}", where=str(file))
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
    """Refuse jobs (columns by name) without a submit time, unless they were `dropped`, and infinite times."""
    unknown = np.isnan(jobs["submit"]) & ~dropped  # a bad record may lack it
    if unknown.any() or any(np.isinf(jobs[name]).any() for name in ("submit", "start", "end")):
        raise RunError("a job has no submit time, or an infinite time", where=str(file))


def check_times(time: npt.NDArray[np.float64], file: Path) -> None:
    """Refuse times that are not finite and ascending."""
    if not np.isfinite(time).all() or (np.diff(time) < 0).any():
        raise RunError("times are not finite and ascending", where=str(file))


def read_columns(
    file: Path, kinds: Mapping[str, Kind] | None, required: Collection[str] | None = None
) -> Arrays:
    """Read columns of these kinds, or all columns as numbers; RunError if one that is required is missing.

    Without `required`, all columns of `kinds` are.
    """
    required = kinds or () if required is None else required
    with open_parquet(file, required) as (con, have):
        wanted: Mapping[str, Kind] = dict.fromkeys(have, "float") if kinds is None else kinds
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
