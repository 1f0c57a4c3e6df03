"""Parquet files of a run by DuckDB: as arrays, one per column, and as frames of documented dtypes.

Answers about one job need no frames: pandas takes longer to import than such an answer takes to compute.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from simsched.errors import RunError, first_line
from simsched.files import glob_free
from simsched.report.columns import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt
    import pandas as pd
    from duckdb import DuckDBPyConnection

    from simsched.report.columns import Column, Kind


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


class Rule(NamedTuple):
    """What no run writes: a column, the condition in SQL under which it is odd, and what is expected."""

    column: str
    odd: str
    expected: str
    kind: Kind = "float"


Rules: TypeAlias = "Callable[[Collection[str]], list[Rule]]"
MOST = 2.0**53
"""The largest number of a table."""
_READ = "result::varchar is distinct from 'DROPPED'"
"""Dropped records may lack values."""


def _number(name: str) -> str:
    return f"nullif({quoted(name)}::double, 'nan'::double)"


_JOB_RULES = (
    Rule("submit", f"({_number('submit')} is null and {_READ}) or abs({_number('submit')}) > {MOST}",
         "a time in seconds"),
    Rule("eligible", f"isfinite({_number('eligible')}) and abs({_number('eligible')}) > {MOST}",
         "a time in seconds"),  # a job may never become eligible
    *(Rule(name, f"abs({_number(name)}) > {MOST}", "a time in seconds") for name in ("start", "end")),
    *(Rule(name, f"{_number(name)} not between 0 and {MOST}", "a count of 0 or more",
           "float" if name == "procs" else "int") for name in ("nodes", "cores", "gpus", "procs")),
    Rule("end", f"{_number('end')} < {_number('start')}", "a time at or after the start"),
    *(Rule(name, f"{name} is null and {_READ}", "a text", "text") for name in ("id", "result")),
)  # fmt: skip


def job_rules(names: Collection[str]) -> list[Rule]:
    """Return the rules for these columns of jobs."""
    return [rule for rule in _JOB_RULES if rule.column in names]


def timeline_rules(names: Collection[str]) -> list[Rule]:
    """Return the rules for a timeline: times that are finite and ascend, and numbers that are finite."""
    in_order = "time is null or not isfinite(time::double) or time < earlier"
    others = [Rule(name, f"{_number(name)} not between 0 and {MOST}", "a number of 0 or more")
              for name in names if name != "time"]  # fmt: skip
    return [Rule("time", in_order, "finite times, ascending"), *others]


def refuse_rows(con: DuckDBPyConnection, rules: Sequence[Rule], file: Path) -> None:
    """Raise RunError for the first row of a table that breaks one of the rules."""
    earlier = "lag(time) over ()" if any(rule.column == "time" for rule in rules) else "null"
    rows = f"(select *, row_number() over () as row, {earlier} as earlier from t)"  # noqa: S608 - constants
    firsts = ", ".join(f"min(row) filter (where {rule.odd})" for rule in rules)
    found = con.execute(f"select {firsts} from {rows}").fetchone() if rules else None  # noqa: S608 - quoted names
    for rule, row in zip(rules, found or (), strict=True):
        if row is not None:
            item = select_item(rule.column, rule.kind)
            told = con.execute(f"select {item} from {rows} where row = {row}").fetchone()  # noqa: S608 - quoted names
            value = told[0] if told and told[0] is not None else np.nan
            raise RunError(
                f"column {rule.column!r}, row {row}: {value!r}", where=str(file), expected=rule.expected
            )


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
    file: Path,
    kinds: Mapping[str, Kind] | None,
    required: Collection[str] | None = None,
    rules: Rules = lambda _: [],
) -> Arrays:
    """Read columns of these kinds, or all columns as numbers.

    RunError if one that is required is missing, without `required` any, or if a row breaks a rule.
    """
    required = kinds or () if required is None else required
    with open_parquet(file, required) as (con, have):
        wanted: Mapping[str, Kind] = dict.fromkeys(have, "float") if kinds is None else kinds
        refuse_types(have, wanted, file)
        refuse_rows(con, rules([name for name in wanted if name in have]), file)
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


# --- frames


#: a column with more distinct values than this stays text and does not become a category
MAX_CATEGORIES = 65_536


def read_frame(
    file: Path, columns: tuple[Column, ...], required: frozenset[str], rules: Rules = lambda _: []
) -> pd.DataFrame:
    """Read one Parquet file into a frame of documented dtypes, text columns as categories."""
    with open_parquet(file, required) as (con, have):
        known, odd = {c.name: c for c in columns}, rules(have)
        kinds: dict[str, Kind] = {rule.column: "float" for rule in odd}
        kinds |= {c.name: c.kind for c in columns}
        refuse_types(have, kinds, file)
        refuse_rows(con, odd, file)
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


def _typed(frame: pd.DataFrame, column: Column) -> pd.Series[Any]:
    import pandas as pd

    kind, blank = column.kind, () if column.kind == "list" else _BLANK.get(column.kind)
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
