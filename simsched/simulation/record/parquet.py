"""NumPy columns as Parquet files, in a form that every version of DuckDB reads alike.

DuckDB guesses the type of an array of objects from a sample.  DuckDB 1 fails if the sample
holds only None.  DuckDB 2 takes a column of lists for lists of NULL if the sample holds only
empty ones.  Texts are therefore handed over without None, beside a mask, and a list as one text.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import first_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: Precedes each item of a list.  No property name, host or label holds a control character.
_ITEM = "\x1f"
_WHOLE = ("procs", "group", "limit_group")


def write_tables(folder: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Write ``NAME.parquet`` of each table, NumPy columns of one length.

    NaN and None become NULL, inf stays, a column of lists becomes lists of texts.

    Raises
    ------
    OSError
        If the disk is full or the file cannot be written.
    """
    import duckdb

    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        for name, columns in tables.items():
            arrays, items = _readable(columns)
            connection.register("of_run", arrays)
            target = str(folder / f"{name}.parquet").replace("'", "''")
            select = f"SELECT {', '.join(items)} FROM of_run"  # noqa: S608 - quoted names
            copy = f"COPY ({select}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
            try:
                connection.execute(copy)
            except duckdb.IOException as error:
                raise OSError(errno.EIO, first_line(error), target) from None
            connection.unregister("of_run")


def _readable(columns: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the arrays to register with DuckDB, and the item of a SELECT that gives each column.

    NaN becomes NULL, inf stays, None becomes NULL; an array of lists becomes a column of lists of texts.

    >>> arrays, items = _readable({"user": np.array(["ann", None], dtype=object)})
    >>> arrays["user"].tolist(), items
    (['ann', ''], ['CASE WHEN "missing user" THEN NULL ELSE CAST("user" AS VARCHAR) END AS "user"'])
    """
    arrays: dict[str, Any] = {}
    items = []
    for name, column in columns.items():
        quoted = '"' + name.replace('"', '""') + '"'
        if column.dtype.kind == "f":
            arrays[name] = column
            items.append(f"{_number(name, quoted)} AS {quoted}")
            continue
        if column.dtype.kind != "O":
            arrays[name] = column
            items.append(quoted)
            continue
        kinds = set(map(type, column))  # one pass over a column that may have a million rows
        if kinds == {type(None)} and arrays:  # another column gives the number of rows
            items.append(f"CAST(NULL AS VARCHAR) AS {quoted}")
            continue
        missing = column == None if type(None) in kinds else None  # noqa: E711 - element by element
        arrays[name] = _texts(column, kinds, missing)
        value = f"CAST({quoted} AS VARCHAR)"  # without rows DuckDB would choose another type
        if list in kinds:
            value = f"string_split({value}, chr({ord(_ITEM)}))[2:]"
        if missing is not None:
            arrays[f"missing {name}"] = missing.astype(bool)
            value = f'CASE WHEN "missing {quoted[1:]} THEN NULL ELSE {value} END'
        items.append(f"{value} AS {quoted}")
    return arrays, items


def _number(name: str, quoted: str) -> str:
    """Return the value of a column of floats; those in `_WHOLE` are whole numbers or missing."""
    value = f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END"
    return f"CAST({value} AS BIGINT)" if name in _WHOLE else value


def _texts(column: Any, kinds: set[type], missing: Any) -> Any:
    """Return an array of objects that are all texts: lists joined, None empty."""
    if not kinds - {str, type(None)}:
        return column if missing is None else np.where(missing, "", column)
    made = np.empty(len(column), dtype=object)
    made[:] = [_text(value) for value in column]
    return made


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(f"{_ITEM}{item}" for item in value)
    return "" if value is None else str(value)
