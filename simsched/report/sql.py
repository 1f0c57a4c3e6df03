"""SQL over the tables of many runs at once, by DuckDB on their Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd

from simsched.errors import ConfigError, RunError
from simsched.report.frames import glob_free

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.report.tables import Run


def query(text: str, runs: Sequence[Run]) -> pd.DataFrame:
    """Answer a SQL query over the runs' tables.

    Views: ``jobs``, ``timeline`` and ``nodes``, the rows of all runs with the run's name in the column
    ``run``; ``summary``, one row a run and figure (``run``, ``metric``, ``value``); ``runs``, one row a
    run (``run``, ``cluster``, ``seed`` and the options it was made with).

    Raises
    ------
    ConfigError : the query is wrong; the message is DuckDB's.
    RunError : a run was never saved, or its tables cannot be read.
    """
    if not runs:
        raise ConfigError("no runs to query", expected="at least one run")
    with duckdb.connect() as con:
        for table in ("jobs", "timeline", "nodes"):
            _create_view(con, table, runs)
        figures = [(run.name, name, value) for run in runs for name, value in run.summary.items()]
        con.register("summary", pd.DataFrame(figures, columns=["run", "metric", "value"]))
        con.register("runs", pd.DataFrame([_facts(run) for run in runs]))
        return answer(con, text)


def answer(con: duckdb.DuckDBPyConnection, text: str) -> pd.DataFrame:
    """Return what a query gives; ConfigError if it is wrong, or none at all."""
    if not text.strip(" \t\r\n;"):
        raise ConfigError("an empty query", where="SQL", expected="select … from jobs")
    try:
        found: pd.DataFrame = con.execute(text).df()
    except (duckdb.Error, RuntimeError, ValueError, AttributeError) as error:
        # beside DuckDB's own: text that is not UTF-8, and what is no query but a comment
        raise ConfigError(str(error), where="SQL") from None
    return found


def _create_view(con: duckdb.DuckDBPyConnection, table: str, runs: Sequence[Run]) -> None:
    """Put the runs' files of one table together, columns by name; runs may lack ``nodes``."""
    parts = []
    for run in runs:
        if run.path is None:
            raise RunError("this run was never saved", where=run.name, expected="a run directory")
        file = run.path / f"{table}.parquet"
        if file.is_file():
            rows = f"read_parquet({_quoted(glob_free(file))})"
            parts.append(f"select {_quoted(run.name)} as run, * from {rows}")  # noqa: S608 - quoted
        elif table != "nodes":
            raise RunError(f"{file.name} is missing", where=str(run.path))
    try:
        if parts:
            con.execute(f"create view {table} as {' union all by name '.join(parts)}")
    except duckdb.Error as error:
        raise RunError(f"cannot be read: {str(error).splitlines()[0]}", where=f"{table}.parquet") from None


def _facts(run: Run) -> dict[str, Any]:
    options = {k: v for k, v in run.config.items() if isinstance(v, str | int | float | bool)}
    return {"run": run.name, "cluster": run.cluster_name, "seed": run.meta.get("seed"), **options}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
