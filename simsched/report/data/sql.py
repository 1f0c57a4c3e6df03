"""SQL over the tables of many runs at once, by DuckDB on their Parquet files.

A query may come from a file or a page of unknown origin.  It therefore reads the tables of the runs
and nothing else: no other file, no extension, no setting.  It writes nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd

from simsched.errors import ConfigError, RunError, first_line
from simsched.files import glob_free

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from simsched.report.data.tables import RunTables

#: Statements that read.  `pivot` is a CREATE and a SELECT in DuckDB 1, a MULTI in DuckDB 2.
_READS = frozenset({"SELECT", "EXPLAIN", "CREATE", "MULTI", "PRAGMA", "CALL"})

#: EXPLAIN ANALYZE and MULTI perform the statement in them, which may be a COPY over a run's own table.
_WRITES_WITHIN = re.compile(r"\b(copy|export)\b", re.IGNORECASE)


def query(text: str, runs: Sequence[RunTables], *, outside: bool = False) -> pd.DataFrame:
    """Answer a SQL query over the runs' tables.

    Views: ``jobs``, ``timeline`` and ``nodes``, the rows of all runs with the run's name in the column
    ``run``; ``summary``, one row per run and figure (``run``, ``metric``, ``value``); ``runs``, one row per
    run (``run``, ``cluster``, ``seed`` and its options).

    The query may only read, and only these tables; `outside` lets it read and write other files,
    attach databases and load extensions, as DuckDB's own command line does.

    Raises
    ------
    ConfigError : the query is wrong; the message is DuckDB's.
    RunError : a run was made of tables alone, or its tables cannot be read.
    """
    if not runs:
        raise ConfigError("no runs to query", expected="at least one run")
    with duckdb.connect() as con:
        for table in ("jobs", "timeline", "nodes"):
            _create_view(con, table, runs)
        figures = [(run.name, name, value) for run in runs for name, value in run.summary.items()]
        con.register("summary", pd.DataFrame(figures, columns=["run", "metric", "value"]))
        con.register("runs", pd.DataFrame([_facts(run) for run in runs]))
        return answer(con, text, within=None if outside else [run.folder for run in runs if run.folder])


def answer(
    con: duckdb.DuckDBPyConnection, text: str, *, within: Iterable[Path] | None = None
) -> pd.DataFrame:
    """Return the result of a query; with `within`, it may only read, and only in these directories.

    Raises
    ------
    ConfigError : the query is empty, wrong, or would do more than read.
    """
    if not text.strip(" \t\r\n;"):
        raise ConfigError("an empty query", where="SQL", expected="select … from jobs")
    try:
        text.encode()  # DuckDB's parser has an error of its own for half a surrogate pair
        if within is not None:
            _confine(con, text, within)
        found: pd.DataFrame = con.execute(text).df()
    except (duckdb.Error, RuntimeError, ValueError, AttributeError) as error:
        # besides DuckDB's own errors: text that is not UTF-8, and a text without a statement
        raise ConfigError(str(error).strip() or type(error).__name__, where="SQL") from None
    return found


def _confine(con: duckdb.DuckDBPyConnection, text: str, within: Iterable[Path]) -> None:
    """Refuse a query that would write, and let the connection read below `within` only.

    The views are read when the query runs, so their directories stay open.  The configuration is
    locked afterwards, so that the query cannot open others.
    """
    for statement in con.extract_statements(text):
        kind = statement.type.name
        nested = kind in {"EXPLAIN", "MULTI"} and _WRITES_WITHIN.search(text)
        if kind not in _READS or nested:
            raise ConfigError(f"{kind} is not a query", where="SQL", expected="a query that only reads")
    # DuckDB compares the pattern with the directories first, and the file that it found afterwards.
    places = [path.resolve() for path in within]
    spellings = {f"{text}/" for path in places for text in (path, glob_free(path))}
    con.execute(f"set allowed_directories = [{', '.join(map(_quoted, sorted(spellings)))}]")
    con.execute("set enable_external_access = false")
    con.execute("set python_enable_replacements = false")
    con.execute("set lock_configuration = true")


def _create_view(con: duckdb.DuckDBPyConnection, table: str, runs: Sequence[RunTables]) -> None:
    """Create a view of one table of all runs, columns by name; runs may lack ``nodes``."""
    parts = []
    for run in runs:
        if run.folder is None:
            raise RunError("these tables are not those of a run", where=run.name, expected="a run")
        file = run.folder / f"{table}.parquet"
        if file.is_file():
            rows = f"read_parquet({_quoted(glob_free(file.resolve()))})"
            parts.append(f"select {_quoted(run.name)} as run, * from {rows}")  # noqa: S608 - quoted
        elif table != "nodes":
            raise RunError(f"{file.name} is missing", where=str(run.folder))
    try:
        if parts:
            con.execute(f"create view {table} as {' union all by name '.join(parts)}")
    except duckdb.Error as error:
        raise RunError(f"cannot be read: {first_line(error)}", where=f"{table}.parquet") from None


def _facts(run: RunTables) -> dict[str, Any]:
    options = {k: v for k, v in run.config.items() if isinstance(v, str | int | float | bool)}
    return {"run": run.name, "cluster": run.cluster_name, "seed": run.meta.get("seed"), **options}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
