"""Parquet files as frames of documented dtypes: DuckDB reads, pandas holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.report.columns import DTYPES
from simsched.report.data.column_arrays import open_parquet, quoted, refuse_types, select_item

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from duckdb import DuckDBPyConnection

    from simsched.report.columns import Column, Kind

#: a column with more distinct values than this stays text and does not become a category
MAX_CATEGORIES = 65_536


def read_frame(file: Path, columns: tuple[Column, ...], required: frozenset[str]) -> pd.DataFrame:
    """Read one Parquet file into a frame of documented dtypes, text columns as categories."""
    with open_parquet(file, required) as (con, have):
        known = {c.name: c for c in columns}
        refuse_types(have, {c.name: c.kind for c in columns}, file)
        items = [_item(con, name, kind, known.get(name)) for name, kind in have.items()]
        frame = con.execute(f"select {', '.join(items)} from t").df()  # noqa: S608 - quoted names
    return shaped(frame, columns)


def _item(con: DuckDBPyConnection, name: str, found: str, column: Column | None) -> str:
    """Return the select item that reads one column: numbers cast, texts as enums (categories)."""
    kind = column.kind if column else _kind_of(found)
    if kind != "category":
        return select_item(name, kind)
    column_name = quoted(name)
    count = f"select count(distinct {column_name}) from t"  # noqa: S608 - a quoted name
    distinct = con.execute(count).fetchall()[0][0]
    if not 0 < distinct <= MAX_CATEGORIES:
        return select_item(name, "text")
    # DuckDB hands an enum over as a pandas category without making a text per row
    enum = '"enum of ' + column_name[1:]
    values = f"select distinct {column_name}::varchar v from t where v is not null order by v"  # noqa: S608 - a quoted name
    con.execute(f"create type {enum} as enum ({values})")
    return f"{column_name}::varchar::{enum} as {column_name}"


def _kind_of(found: str) -> Kind:
    """Return the kind of a column that is not documented."""
    if found == "VARCHAR":
        return "category"
    return "bool" if found == "BOOLEAN" else "int" if "INT" in found else "float"


def shaped(frame: pd.DataFrame, columns: tuple[Column, ...]) -> pd.DataFrame:
    """Return the frame with the documented columns first, of their dtypes; missing ones are empty."""
    import pandas as pd

    known = {c.name for c in columns}
    shaped = {c.name: _typed(frame, c) for c in columns}
    rest = {str(name): _free(frame[name]) for name in frame.columns if name not in known}
    return pd.DataFrame({**shaped, **rest}, index=frame.index)


_BLANK: dict[Kind, Any] = {"int": 0, "bool": False, "float": np.nan, "list": ()}
"""Kind → the value of a missing column; a missing text is None."""


def _typed(frame: pd.DataFrame, column: Column) -> pd.Series[Any]:
    import pandas as pd

    kind, blank = column.kind, _BLANK.get(column.kind)
    dtype: Any = DTYPES[kind] if kind in ("int", "bool", "float") else "object"
    if column.name in frame:
        value = frame[column.name]
    else:
        value = pd.Series([blank] * len(frame), index=frame.index, dtype=dtype)
    if kind == "category":
        return _free(value) if isinstance(value.dtype, pd.CategoricalDtype) else _category(value)
    if kind == "list":
        return value.map(_names)
    if kind == "text":
        known, texts = value.notna(), value.astype("str")
        return texts if known.all() else texts.where(known)  # pandas 2 makes the text "None" of no text
    if value.dtype == dtype:
        return value
    numbers: Any = value if kind == "bool" else value.astype("float64")
    typed: pd.Series[Any] = numbers.fillna(blank).astype(dtype)
    return typed


def _free(value: pd.Series[Any]) -> pd.Series[Any]:
    """Return texts that no document describes as a category, without the order that DuckDB's enums have."""
    import pandas as pd

    if isinstance(value.dtype, pd.CategoricalDtype):
        return value.cat.as_unordered()
    return _category(value) if value.dtype.kind == "O" else value


def _names(value: Any) -> tuple[str, ...]:
    """Return a list of texts as a tuple, without unknown ones."""
    known = isinstance(value, list | tuple | np.ndarray)
    return tuple(str(item) for item in value if item is not None) if known else ()


def _category(value: pd.Series[Any]) -> pd.Series[Any]:
    """Return texts as a category, or unchanged if they have too many distinct values."""
    there = value.notna()
    # pandas 2 makes texts of unknown values, too
    texts = value.astype("str").where(there) if there.any() else value.astype("object")
    return texts.astype("category") if texts.nunique() <= MAX_CATEGORIES else texts
