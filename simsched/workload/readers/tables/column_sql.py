"""The SQL of each column of a column map: from a column of any type to the numbers that jobs have.

Times become microseconds after 1970 (UTC), durations seconds, counts whole numbers rounded up.
A value that cannot be read becomes null; `Item.broken` finds such rows.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.errors import ConfigError, FormatError, did_you_mean
from simsched.workload.readers.tables.column_expressions import check_columns, columns_in
from simsched.workload.readers.tables.column_map import COUNTS, DURATIONS, TIMES
from simsched.workload.readers.tables.relation import VIEW, named, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.workload.readers.tables.column_map import ColumnMap, MappedColumn
    from simsched.workload.readers.tables.relation import Relation

UNITS = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400,
    "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "J": 1, "kJ": 1e3, "MJ": 1e6, "Wh": 3600, "kWh": 3.6e6,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
"""Seconds, bytes or joules of each unit."""
_PER_SECOND = {"epoch": 1, "epoch-ms": 1e3, "epoch-us": 1e6, "epoch-ns": 1e9}
_NUMBER = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)|BIGNUM")
_NESTED = re.compile(r"STRUCT\(|MAP\(|UNION\(|JSON\b|VARIANT\b|.*\[\d*\]$")
_ZONED = r"\d:\d\d(:\d\d)?([.,]\d+)?\s*(Z|UTC|[+-]\d\d(:?\d\d)?)$"
_KINDS = {"time": "a time", "duration": "a duration", "count": "a number", "memory": "a size"}


@dataclass(frozen=True, slots=True)
class Item:
    """One column of the map in SQL: its `raw` value, the `value` that is read, and its type and kind.

    `kind` is ``time``, ``duration``, ``count``, ``memory``, ``id`` or ``text``.  `has_text` says that some
    of its texts are left to `text_values`.
    """

    name: str
    kind: str
    raw: str
    value: str
    has_text: bool = False

    @property
    def reason(self) -> str:
        """The reason for which a row with an unreadable value is ignored."""
        return f"{self.name} is not {_KINDS[self.kind]}"

    @property
    def is_typed(self) -> bool:
        """Whether a value of this item can be unreadable."""
        return self.kind in _KINDS


def is_nested(type_: str) -> bool:
    """Whether the values of a type of DuckDB have parts."""
    return _NESTED.match(type_) is not None


def is_number(type_: str) -> bool:
    """Whether a type of DuckDB is a number.

    >>> is_number("UBIGINT"), is_number("DECIMAL(18,3)"), is_number("VARCHAR"), is_nested("BIGINT[]")
    (True, True, False, True)
    """
    return _NUMBER.fullmatch(type_) is not None


def items_of(columns: ColumnMap, relation: Relation) -> dict[str, Item]:
    """Return the item of each column of the map.

    Raises
    ------
    ConfigError
        for a column that the table lacks, a nested column, a column of another type, and a zone that does
        not exist.
    FormatError
        for an expression that does not fit the types of its columns.
    """
    raws = {name: _raw(column, relation, _place(columns, name)) for name, column in columns.columns.items()}
    types = dict(zip(raws, _types(raws, columns, relation), strict=True))
    made = {}
    for name, column in columns.columns.items():
        where = _place(columns, name)
        if is_nested(types[name]):
            raise ConfigError(
                f"the column {column.text!r} is nested ({types[name][:80]})",
                where=where,
                expected="a column of single values, or an expression such as x.field, x[1] or len(x)",
            )
        raw = _without_missing(raws[name], column, types[name])
        made[name] = _item(name, column, raw, types[name], columns, relation)
    return made


def _types(raws: Mapping[str, str], columns: ColumnMap, relation: Relation) -> list[str]:
    """Return the types of values in SQL; all at once, since DuckDB samples a text file for each query."""
    try:
        described = relation.rows(f"describe select {', '.join(raws.values())} from {VIEW}")
    except FormatError:
        for name, raw in raws.items():
            with named_fault(columns, f"columns.{name}"):
                relation.rows(f"describe select {raw} from {VIEW}")
        raise
    return [str(row[1]) for row in described]


@contextmanager
def named_fault(columns: ColumnMap, key: str) -> Iterator[None]:
    """Give an error of DuckDB the key of the map with the expression in place of the table."""
    try:
        yield
    except FormatError as error:
        text = columns.filter if key == "filter" else columns.columns[key.removeprefix("columns.")].text
        raise FormatError(f"{text!r}: {error.message}", where=f"{columns.where}: {key}") from None


def _place(columns: ColumnMap, name: str) -> str:
    return f"{columns.where}: columns.{name}"


def _raw(column: MappedColumn, relation: Relation, where: str) -> str:
    """Return the SQL of a value as the table has it; a dotted name is a field of a nested column."""
    if column.expression:
        check_columns(columns_in(column.expression, where), relation.columns, where, relation.name)
        return f"(\n{column.expression}\n)"
    have = {name.lower(): name for name in relation.columns}
    if column.column.lower() in have:
        return named(have[column.column.lower()])
    first, *rest = column.column.split(".")
    if rest and relation.columns.get(have.get(first.lower(), ""), "").startswith("STRUCT"):
        return ".".join(named(part) for part in (have[first.lower()], *rest))
    check_columns([column.column], relation.columns, where, relation.name)
    raise AssertionError(column.column)  # check_columns refuses it


def _without_missing(raw: str, column: MappedColumn, kind: str) -> str:
    """Return the SQL of a value without the values that mean none."""
    if not column.missing:
        return raw
    texts = [quoted(str(value)) for value in column.missing]
    test = f"cast({raw} as varchar) in ({', '.join(texts)})"
    numbers = [repr(value) for value in column.missing if not isinstance(value, str)]
    if numbers and is_number(kind):
        test = f"({test} or {raw} in ({', '.join(numbers)}))"
    return f"(case when {test} then null else {raw} end)"


def _item(
    name: str, column: MappedColumn, raw: str, type_: str, columns: ColumnMap, relation: Relation
) -> Item:
    is_text = type_.startswith(("VARCHAR", "ENUM"))
    text = f"trim(cast({raw} as varchar))"
    if name in TIMES:
        zone = _zone(column.zone or columns.zone or "UTC", relation, _place(columns, name))
        return Item(name, "time", raw, _time(raw, text, type_, column, zone, _place(columns, name)))
    if name in COUNTS:
        return Item(name, "count", raw, _count(raw))
    if name == "energy":  # of kind text: a job without a readable energy is the same job
        return Item(name, "text", raw, f"round({_scaled(raw, UNITS[column.unit or 'J'])})")
    if name in DURATIONS:
        if type_ == "INTERVAL" or (type_.startswith("TIME") and not type_.startswith("TIMESTAMP")):
            return Item(name, "duration", raw, f"cast(epoch({raw}) as double)")
        return Item(name, "duration", raw, _scaled(raw, UNITS[column.unit or "s"]), has_text=is_text)
    if name == "memory":
        return Item(name, "memory", raw, _scaled(raw, UNITS[column.unit or "MiB"] / 1024), has_text=is_text)
    if name == "id" and is_number(type_):
        return Item(name, "id", raw, f"try_cast({raw} as bigint)")
    return Item(name, "id" if name == "id" else "text", raw, f"nullif({text}, '')")


def _scaled(raw: str, factor: float) -> str:
    return f"try_cast({raw} as double) * {factor!r}"


def _count(raw: str) -> str:
    return f"try_cast(ceil(round(try_cast({raw} as double), 6)) as integer)"


def _time(raw: str, text: str, type_: str, column: MappedColumn, zone: str, where: str) -> str:
    """Return the SQL of a time in microseconds after 1970."""
    format_ = column.format
    if type_.startswith("TIMESTAMP WITH TIME ZONE"):
        return f"epoch_us({raw})"
    if type_.startswith("TIMESTAMP") or type_ == "DATE":
        return _local(f"cast({raw} as timestamp)", zone)
    if not is_number(type_) and not type_.startswith(("VARCHAR", "ENUM")):
        raise ConfigError(f"{column.text!r} has the type {type_}", where=where, expected="times")
    if "%" in format_:
        parsed = f"try_strptime({text}, {quoted(format_)})"
        has_zone = "%z" in format_ or "%Z" in format_
        return f"epoch_us({parsed})" if has_zone else _local(f"cast({parsed} as timestamp)", zone)
    per = _PER_SECOND.get(format_, 1)
    number = f"try_cast(round(try_cast({raw} as double) * {1e6 / per!r}) as bigint)"
    if is_number(type_) or format_ in _PER_SECOND:
        return number
    zoned = f"epoch_us(try_cast({text} as timestamptz))"
    iso = (
        f"case when regexp_matches({text}, {quoted(_ZONED)}) then {zoned} "
        f"else {_local(f'try_cast({text} as timestamp)', zone)} end"
    )
    return iso if format_ == "iso" else f"coalesce({iso}, {number})"


def _local(timestamp: str, zone: str) -> str:
    """Return the SQL of the microseconds of a time without a zone, on the clock of this zone."""
    return f"epoch_us({timestamp})" if zone == "UTC" else f"epoch_us(timezone({quoted(zone)}, {timestamp}))"


def _zone(name: str, relation: Relation, where: str) -> str:
    """Return the name of a time zone; ConfigError names the nearest one."""
    if name == "UTC":
        return name
    known = {
        str(row[0]).lower(): str(row[0]) for row in relation.rows("select name from pg_timezone_names()")
    }
    if name.lower() not in known:
        near = did_you_mean(name, known.values())
        raise ConfigError(
            f"there is no time zone {name!r}{near}", where=where, expected="such as Europe/Rome"
        )
    return known[name.lower()]
