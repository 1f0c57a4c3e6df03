"""SQL over the tables of many runs at once, by DuckDB on their Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pandas as pd

from simsched.errors import ConfigError, RunError
from simsched.report.tables import glob_free

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.report.tables import Run


def query(text: str, runs: Sequence[Run]) -> pd.DataFrame:
    """Answer a SQL query over the runs' tables.

    Views: ``jobs`` and ``timeline``, the rows of all runs with the run's name in the column
    ``run``, and ``summary``, one row a run and figure (``run``, ``metric``, ``value``).

    Raises
    ------
    ConfigError : the query is wrong; the message is DuckDB's.
    RunError : a run was never saved, or its tables cannot be read.
    """
    with duckdb.connect() as con:
        for table in ("jobs", "timeline"):
            con.execute(f"create view {table} as {_union(table, runs)}")
        figures = [(run.name, name, value) for run in runs for name, value in run.summary.items()]
        frame = pd.DataFrame(figures, columns=["run", "metric", "value"])
        con.register("summary", frame)
        try:
            return con.execute(text).df()
        except duckdb.Error as error:
            raise ConfigError(str(error), where="SQL") from None


def _union(table: str, runs: Sequence[Run]) -> str:
    """Return the query that puts the runs' files of one table together, columns by name."""
    parts = []
    for run in runs:
        if run.path is None:
            raise RunError("this run was never saved", where=run.name, expected="a run directory")
        file = run.path / f"{table}.parquet"
        if not file.is_file():
            raise RunError(f"{file.name} is missing", where=str(run.path))
        parts.append(f"select {_quoted(run.name)} as run, * from read_parquet({_quoted(glob_free(file))})")  # noqa: S608
    if not parts:
        raise ConfigError("no runs to query", expected="at least one run")
    return " union all by name ".join(parts)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
