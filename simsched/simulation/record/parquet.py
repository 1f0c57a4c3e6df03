"""NumPy columns as Parquet files, in a form that every version of DuckDB reads alike.

DuckDB guesses the type of an array of objects from a sample, if it may take one; without a sample all of
them are texts, and None is NULL.  A list is therefore handed over as one text.
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
_LISTS = ("properties",)
_WHOLE = ("procs", "group", "limit_group")
#: The first level takes a tenth less time than the default, and tables are as small.
_FORMAT = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"


def write_tables(folder: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Write ``NAME.parquet`` of each table, NumPy columns of one length.

    NaN and None become NULL, inf stays, the columns in `_LISTS`, and no others, are lists of texts.

    Raises
    ------
    OSError
        If the disk is full or the file cannot be written.
    """
    import duckdb

    with duckdb.connect(":memory:", config={"threads": 1, "pandas_analyze_sample": 0}) as connection:
        for name, columns in tables.items():
            joined = {key: _joined(columns[key]) for key in _LISTS if key in columns}
            connection.register("of_run", {**columns, **joined})
            target = str(folder / f"{name}.parquet").replace("'", "''")
            items = ", ".join(_item(key, column) for key, column in columns.items())
            copy = f"COPY (SELECT {items} FROM of_run) TO '{target}' ({_FORMAT})"  # noqa: S608 - quoted names
            try:
                connection.execute(copy)
            except duckdb.IOException as error:
                raise OSError(errno.EIO, first_line(error), target) from None
            connection.unregister("of_run")


def _item(name: str, column: Any) -> str:
    """Return the item of a SELECT that gives a column; floats in `_WHOLE` are whole numbers or missing.

    >>> _item("end", np.array([1.0]))
    'CASE WHEN isnan("end") THEN NULL ELSE "end" END AS "end"'
    """
    value = quoted = '"' + name.replace('"', '""') + '"'
    if column.dtype.kind == "f":
        value = f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END"
        value = f"CAST({value} AS BIGINT)" if name in _WHOLE else value
    elif name in _LISTS:
        value = f"string_split({quoted}, chr({ord(_ITEM)}))[2:]"
    return f"{value} AS {quoted}"


def _joined(column: Any) -> Any:
    """Return the lists of a column as texts, in which `_ITEM` precedes each item."""
    texts = np.empty(len(column), dtype=object)
    texts[:] = [None if row is None else "".join(f"{_ITEM}{item}" for item in row) for row in column]
    return texts
