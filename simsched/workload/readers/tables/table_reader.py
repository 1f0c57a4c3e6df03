"""`read_table`: a table of jobs into a workload, whole columns at a time.

`Rows` reads the source once in DuckDB: the columns of the map, the reasons to leave rows out, and the
different requests.  Its table `JOBS` has one row per row of the source, in its order: numbers as jobs have
them, codes of the names (see `Rows.names`), and in `reason` the index of the first reason to leave the row
out.  Times become microseconds after 1970 (UTC), durations seconds, counts whole numbers rounded up.  A value
that cannot be read becomes null, and the first such value of a row is its `text`.

Jobs are then made in blocks of `BLOCK` rows, so that ten million of them fit into memory.

A file or data frame is first one DuckDB view, in a connection that can read nothing else (`Relation`).
"""

from __future__ import annotations

import math
import re
import secrets
import shutil
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from math import floor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from simsched.errors import ConfigError, FormatError, SimschedError, WorkloadError, did_you_mean, first_line
from simsched.files import glob_free, undone
from simsched.formats.machines.slurm.notation import node_names
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.duration import parse_duration
from simsched.formats.text.decompression import opened
from simsched.garbage import collector_paused
from simsched.workload.dependencies import log_dependencies, refuse_cycles, with_known_dependencies
from simsched.workload.job import FIRST_PLACES, ArrayTask, Job, Skip, Workload, in_submit_order
from simsched.workload.mapping import GPU_TEMPLATE, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather, hosts_of
from simsched.workload.readers.slurm_values import (
    MOST_ENERGY,
    NO_LIMIT,
    RESULTS,
    UNFINISHED,
    clock,
    kilobytes,
)
from simsched.workload.readers.tables.column_map import (
    ATTRIBUTES,
    COUNTS,
    DURATIONS,
    OUTCOMES,
    TEXTS,
    TIMES,
    check_columns,
    columns_in,
    presets_for,
    without_absent_energy,
)
from simsched.workload.source import Source, is_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from simsched.workload.readers.tables.column_map import ColumnMap, MappedColumn


VIEW = "source"
_NULLS = ("", "NULL", "null", "NA", "N/A", "NaN", "nan", "None", "NaT", "<NA>", "\\N")
"""Cells of a CSV file that are absent values."""
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""The first bytes of a compressed file → DuckDB's name of the compression."""
MEMORY = "3GB"
"""The most memory that DuckDB takes; it uses files in a temporary folder beyond that."""


@dataclass(frozen=True, slots=True)
class Relation:
    """An open connection with the view `VIEW`: its columns (name → type), and its form.

    `form` is ``csv``, ``json``, ``parquet`` or ``frame``, `name` the name of the source in messages.
    `rows_key` is the key of a JSON document with the rows, if they are inside one.
    """

    con: DuckDBPyConnection
    columns: dict[str, str]
    form: str
    name: str
    rows_key: str = ""

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of a query; FormatError for DuckDB's errors."""
        import duckdb

        try:
            found: list[tuple[Any, ...]] = self.con.execute(query).fetchall()
        except (duckdb.Error, RuntimeError, ValueError) as error:  # text that is not UTF-8
            raise FormatError(first_line(error), where=self.name) from None
        return found

    def know(self, name: str, read: Callable[[str], Any]) -> None:
        """Give the connection a function from texts to numbers, None for texts that are none."""
        found = cache(lambda text: None if text is None else read(text))
        create: Any = self.con.create_function  # its annotations do not have the words for null_handling
        create(name, found, ["VARCHAR"], "DOUBLE", null_handling="special")


@contextmanager
def open_relation(given: Source | Any, name: str, columns: ColumnMap | None = None) -> Iterator[Relation]:
    """Open a file, a folder of Parquet files, or a data frame as a view.

    With a column map, columns of a CSV file that no expression names are read as text, and the rows may be
    inside a key of a JSON document (`rows_within`).

    Raises
    ------
    FormatError
        for content that DuckDB cannot read as a table.
    ConfigError
        for a key of rows that is not in the document, or is not a list of objects.
    """
    import duckdb

    # DuckDB makes the folder once it needs it, so that a kill before leaves nothing behind.
    folder = Path(tempfile.gettempdir(), f"simsched-{secrets.token_hex(8)}")

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    config: dict[str, Any] = {"memory_limit": MEMORY, "temp_directory": str(folder)}
    with undone(remove), tempfile.TemporaryFile() as copy:
        try:
            with duckdb.connect(config=config) as con:
                try:
                    con.execute("set TimeZone = 'UTC'")
                    form, places = _create(con, given, columns, _Copy(copy, folder))
                    _confine(con, places)
                    found = con.execute(f"describe {VIEW}").fetchall()
                except (duckdb.Error, RuntimeError, ValueError) as error:
                    raise FormatError(f"cannot be read as a table: {first_line(error)}", where=name) from None
                relation = Relation(con, {str(row[0]): str(row[1]) for row in found}, form, name)
                if columns is not None and columns.rows:
                    relation = _inside(relation, columns.rows, f"{columns.where}: rows")
                elif columns is not None and columns.needed.isdisjoint(map(str.lower, relation.columns)):
                    relation = rows_within(relation)
                yield relation
        finally:
            remove()


# -- rows inside a key of a JSON document ----------------------------------------------------


def rows_within(relation: Relation) -> Relation:
    """Return the rows inside the only key with a list of objects, for a document such as ``{"jobs": […]}``.

    Any other relation is returned as it is.
    """
    keys = [name for name, type_ in relation.columns.items() if _is_list_of_objects(type_)]
    if relation.form != "json" or len(keys) != 1:
        return relation
    ((count,),) = relation.rows(f"select count(*) from (from {VIEW} limit 2)")
    return _inside(relation, keys[0], relation.name) if count == 1 else relation


def _inside(relation: Relation, key: str, where: str) -> Relation:
    """Return the rows in a key, such as ``jobs`` or ``data.jobs``; errors as `open_relation`."""
    from simsched.workload.readers.tables.column_map import check_columns

    first, *rest = key.split(".")
    check_columns([first], relation.columns, where, relation.name)
    path = ".".join(map(named, (first, *rest)))
    expected = "a key with a list of objects"
    try:
        ((_, type_, *_),) = relation.rows(f"describe select {path} from {VIEW}")
    except FormatError:
        raise ConfigError(
            f"there is no key {key!r} in {relation.name}", where=where, expected=expected
        ) from None
    if not _is_list_of_objects(str(type_)):
        raise ConfigError(f"the key {key!r} has the type {str(type_)[:80]}", where=where, expected=expected)
    relation.rows(f"alter view {VIEW} rename to document")
    relation.rows(f"create view {VIEW} as select unnest({path}, max_depth := 2) from document")
    described = relation.rows(f"describe {VIEW}")
    return replace(relation, columns={str(row[0]): str(row[1]) for row in described}, rows_key=key)


def _is_list_of_objects(type_: str) -> bool:
    return type_.startswith("STRUCT(") and type_.endswith(")[]")


def table_form(source: Source) -> str:
    """Return the form of a source as a table: ``parquet``, ``json`` or ``csv``."""
    if source.content is None and source.path.is_dir():
        return "parquet"
    if is_parquet(source):
        return "parquet"
    with suppress(SimschedError):  # zstd without the package that decompresses it; DuckDB has its own
        return "json" if source.head().lstrip()[:1] in ("{", "[") else "csv"
    return "json" if ".json" in source.name or ".ndjson" in source.name else "csv"


def _create(
    con: DuckDBPyConnection, given: Source | Any, columns: ColumnMap | None, copy: _Copy
) -> tuple[str, list[Path]]:
    """Create the view; return the form of the table and the files that it reads."""
    if not isinstance(given, Source):
        con.register("frame", given)
        con.execute(f"create view {VIEW} as from frame")
        return "frame", []
    form = table_form(given)
    if given.content is None and given.path.is_dir():
        places = [place.resolve() for place in sorted(given.path.rglob("*.parquet"))]
    else:
        places = [_plain_file(given, copy, is_parquet=form == "parquet")]
    if form != "parquet" and Source.of(places[0]).first_bytes(2) in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError("the text is UTF-16", where=given.name, expected="UTF-8")
    if not any(place.stat().st_size for place in places):
        raise FormatError("the table is empty", where=given.name, expected="a header line and rows")
    _create_view(con, form, places, columns)
    return form, places


class _Copy(NamedTuple):
    """A file without a name for a decompressed copy, and the folder where it is made if that has no path."""

    file: IO[bytes]
    folder: Path

    def path(self) -> Path:
        """Return a path under which this process can open the file again."""
        place = Path(f"/proc/self/fd/{self.file.fileno()}")
        if place.exists():
            return place
        self.folder.mkdir(mode=0o700)  # where there is no /proc
        place = self.folder / "table"
        self.file.seek(0)
        with place.open("wb") as named_file:
            shutil.copyfileobj(self.file, named_file)
        return place


def _plain_file(source: Source, copy: _Copy, *, is_parquet: bool) -> Path:
    """Return a file that DuckDB can read: the source itself, or a copy of its decompressed content."""
    head = source.first_bytes(4)
    is_packed = head[:3] in (b"BZh", b"\xfd7z") or head == b"PK\x03\x04"
    if source.content is None and (is_parquet or not is_packed):
        return source.path.resolve()
    given = source.path if source.content is None else source.content
    if is_parquet:
        copy.file.write(source.content or b"")
    else:
        with opened(given, where=source.name) as stream:
            shutil.copyfileobj(stream, copy.file)
    copy.file.flush()
    return copy.path()


def _create_view(con: DuckDBPyConnection, form: str, places: list[Path], columns: ColumnMap | None) -> None:
    paths = "[" + ", ".join(quoted(glob_free(place)) for place in places) + "]"
    if form == "parquet":
        several = ", union_by_name = true, hive_partitioning = true" if len(places) > 1 else ""
        con.execute(f"create view {VIEW} as from read_parquet({paths}{several})")
        return
    head = Source.of(places[0]).first_bytes(4)
    # "none" is not a word of DuckDB 1.2 for JSON
    packed = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "uncompressed")
    if form == "json":
        options = f"compression = '{packed}', maximum_object_size = 268435456, sample_size = 100000"
        con.execute(f"create view {VIEW} as from read_json({paths}, {options})")
        return
    nulls = f"[{', '.join(map(quoted, _NULLS))}]"
    # Older versions of DuckDB may detect a backslash as escape and then refuse \N as an absent value.
    options = f"compression = '{packed}', escape = '\"', nullstr = {nulls}, sample_size = 100000"
    if columns is not None and columns.header:
        options += f", header = false, names = [{', '.join(map(quoted, columns.header))}]"
    else:
        options += ", header = true"
    if columns is not None and columns.delimiter:
        options += f", delim = {quoted(columns.delimiter)}"
    reader = f"read_csv({paths}, {options})"
    con.execute(f"create view sniffed as from {reader}")
    names = [str(row[0]) for row in con.execute("describe sniffed").fetchall()]
    con.execute("drop view sniffed")
    texts = ""
    if columns is not None:  # all columns that no expression names are texts
        given = [columns.filter, *(item.expression for item in columns.columns.values())]
        inner = {name for text in filter(None, given) for name in columns_in(text)}
        texts = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in names if name.lower() not in inner)
    types = f", types = {{{texts}}}" if texts else ""
    con.execute(f"create view {VIEW} as from {reader[:-1]}, store_rejects = true{types})")


def _confine(con: DuckDBPyConnection, places: list[Path]) -> None:
    """Let the connection read these files only; expressions of a column map run in it."""
    spellings = sorted({text for place in places for text in (str(place), glob_free(place))})
    con.execute(f"set allowed_paths = [{', '.join(map(quoted, spellings))}]")
    con.execute("set enable_external_access = false")
    con.execute("set python_enable_replacements = false")
    con.execute("set lock_configuration = true")


def quoted(text: str) -> str:
    """Return a text as a literal in SQL.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """Return the name of a column as SQL has it.

    >>> named("exit state")
    '"exit state"'
    """
    return '"' + name.replace('"', '""') + '"'


# -- the way from rows to jobs


_DAYS = re.compile(r"(\d{1,7}) days?,? (?:\+)?(\d{1,7}:\d\d:\d\d)(?:\.(\d{1,9}))?")
_ENDLESS = frozenset(word.lower() for word in NO_LIMIT) | {"infinite", "inf", "infinity", "-1"}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGTP]?)(i?)B", re.IGNORECASE)
_POWERS = " KMGTP"


def seconds_of_text(text: str) -> float | None:
    """Return the seconds of ``1-02:00:00``, ``90:00``, ``1 days 02:00:00`` or ``1.5h``; inf for no limit.

    >>> seconds_of_text("1-02:00:00"), seconds_of_text("0 days 00:10:00"), seconds_of_text("1.5h")
    (93600, 600.0, 5400.0)
    >>> seconds_of_text("UNLIMITED"), seconds_of_text("soon")
    (inf, None)
    """
    bare = text.strip()
    if bare.lower() in _ENDLESS:
        return math.inf
    found = clock(bare)
    if found is not None:
        return found
    days = _DAYS.fullmatch(bare)
    if days is not None:
        return int(days[1]) * 86400 + (clock(days[2]) or 0) + float(f"0.{days[3] or 0}")
    try:
        return parse_duration(bare)
    except SimschedError:
        return None


def kilobytes_of_text(text: str) -> tuple[float, str] | None:
    """Return (KB, per) of a size such as ``16Gn`` or ``16 GiB``; `per` is ``core``, ``node`` or ``job``.

    Without a B the powers are those of 1024, as Slurm counts.

    >>> kilobytes_of_text("4000Mc"), kilobytes_of_text("2 KiB"), kilobytes_of_text("much")
    ((4096000, 'core'), (2.0, 'job'), None)
    """
    size = _SIZE.fullmatch(text.strip())
    if size is not None:
        base = 1024 if size[3] else 1000
        return float(size[1]) * base ** _POWERS.index(size[2].upper() or " ") / 1024, "job"
    found = kilobytes(text.strip())
    if found is None:
        return (0.0, "job") if text.strip().strip("0.") == "" else None
    return found[0], {"c": "core", "n": "node"}.get(found[1], "job")


def nodes_of_text(text: str) -> int | None:
    """Return the number of nodes in a list of nodes (RFC 29, as Slurm and Flux write them).

    >>> nodes_of_text("n[1-4,7]"), nodes_of_text("r[0-1]n[1-2]"), nodes_of_text("a,b"), nodes_of_text("n[1-")
    (5, 4, 2, None)
    """
    hosts = hosts_of(text)
    try:
        return None if hosts is None else len(node_names(hosts))
    except SimschedError:
        return None


def state_of_text(text: str, values: Mapping[str, str]) -> int | None:
    """Return the number of a job's state in `OUTCOMES`; `values` first, then Slurm's words.

    >>> state_of_text("Pass", {"Pass": "COMPLETED"}), state_of_text("cancelled by 7", {})
    (0, 2)
    >>> state_of_text("SUSPENDED", {}), state_of_text("sleepy", {})
    (5, None)
    """
    lower = {key.lower(): value for key, value in values.items()}
    word = text.strip().upper().split(" ")[0].rstrip("+")
    unfinished = dict.fromkeys(UNFINISHED, "RUNNING") | {"PENDING": "PENDING"}
    slurm = {**RESULTS, "CANCELED": "CANCELED", **unfinished}
    found = values.get(text) or lower.get(text.strip().lower()) or slurm.get(word)
    return None if found is None else OUTCOMES.index(found)


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
    of its texts are left to `seconds_of_text` and its like, `per` is the SQL of what memory is counted by.
    """

    name: str
    kind: str
    raw: str
    value: str
    has_text: bool = False
    per: str = "null"

    @property
    def reason(self) -> str:
        """The reason for which a row with an unreadable value is ignored."""
        return f"{self.name} is not {_KINDS[self.kind]}"


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
    places = {name: f"{columns.where}: columns.{name}" for name in columns.columns}
    raws = {name: _raw(column, relation, places[name]) for name, column in columns.columns.items()}
    made = {}
    for (name, column), type_ in zip(columns.columns.items(), _types(raws, columns, relation), strict=True):
        if is_nested(type_):
            raise ConfigError(
                f"the column {column.text!r} is nested ({type_[:80]})",
                where=places[name],
                expected="a column of single values, or an expression such as x.field, x[1] or len(x)",
            )
        raw = _without_missing(raws[name], column, type_)
        if name in TIMES:
            zone = _zone(column.zone or columns.zone or "UTC", relation, places[name])
            made[name] = Item(name, "time", raw, _time(raw, type_, column, zone, places[name]))
        else:
            made[name] = _item(name, column, raw, type_)
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


def _item(name: str, column: MappedColumn, raw: str, type_: str) -> Item:
    """Return the item of a value that is not a time."""
    is_text = type_.startswith(("VARCHAR", "ENUM"))
    if name in COUNTS:
        count = f"try_cast(ceil(round(try_cast({raw} as double), 6)) as integer)"
        return Item(name, "count", raw, count)
    if name == "energy":  # of kind text: a job without a readable energy is the same job
        return Item(name, "text", raw, f"round({_scaled(raw, UNITS[column.unit or 'J'])})")
    if name in DURATIONS:
        if type_ == "INTERVAL" or (type_.startswith("TIME") and not type_.startswith("TIMESTAMP")):
            return Item(name, "duration", raw, f"cast(epoch({raw}) as double)")
        value, text = _scaled(raw, UNITS[column.unit or "s"]), f"seconds_of(cast({raw} as varchar))"
        return Item(name, "duration", raw, f"coalesce({value}, {text})" if is_text else value, is_text)
    if name == "memory":
        value, per = _scaled(raw, UNITS[column.unit or "MiB"] / 1024), quoted(column.per)
        if is_text:
            text = f"cast({raw} as varchar)"
            own = f"regexp_extract({text}, '([cn])\\s*$', 1)"
            per = (
                f"case when {value} is not null then {per} else "
                f"case {own} when 'c' then 'core' when 'n' then 'node' else {per} end end"
            )
            value = f"coalesce({value}, kilobytes_of({text}))"
        return Item(name, "memory", raw, value, is_text, per)
    if name == "id" and is_number(type_):
        return Item(name, "id", raw, f"try_cast({raw} as bigint)")
    return Item(name, "id" if name == "id" else "text", raw, f"nullif(trim(cast({raw} as varchar)), '')")


def _scaled(raw: str, factor: float) -> str:
    return f"try_cast({raw} as double) * {factor!r}"


def _time(raw: str, type_: str, column: MappedColumn, zone: str, where: str) -> str:
    """Return the SQL of a time in microseconds after 1970."""
    format_, text = column.format, f"trim(cast({raw} as varchar))"
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


_ABSENT = {
    **dict.fromkeys(("start", "end", "eligible", "energy"), "bigint"),
    **dict.fromkeys((*DURATIONS, "memory"), "double"),
    **dict.fromkeys(COUNTS, "integer"),
}
"""Values that a table need not have → their types."""

JOBS = "jobs"
FILTERED = "left out by the filter of the column map"
NEGATIVE = "a negative run time"
MOST_SECONDS = 1e12
ENDLESS = "a run time of more than 30,000 years"
REPEATED = "job id occurs twice"
BLOCK = 500_000
MOST_LISTED = 1000
"""The most rows of one reason that are listed; the others are counted."""


def read_table(given: Source | Any, reading: ReadOptions) -> Workload:
    """Read a file, a folder of Parquet files, or a data frame by the column map of `reading`.

    Without a map, a preset is used if its columns are those of the table.

    Raises
    ------
    ConfigError
        without a map and a preset, and for a map that does not fit the table.
    FormatError, WorkloadError
        for content that cannot be read, and at the first ignored row under `strict`.
    """
    columns, notes = reading.table, list[str]()
    if columns is None:
        columns = recognised(given, reading.source)
        notes.append(f"read as {columns.name}: {columns.dataset}")
    if reading.time_zone is not None:
        columns = columns.replace(zone=reading.time_zone)
    with open_relation(given, reading.source, columns) as relation:
        rows = Rows(relation, without_absent_energy(columns, relation.columns), reading, notes)
        rows.prepare(reading.limit)
        with collector_paused():
            return rows.workload()


def recognised(given: Source | Any, name: str) -> ColumnMap:
    """Return the preset whose columns a table has; ConfigError if there is none, or several."""
    with open_relation(given, name) as relation:
        found = presets_for(relation.columns, relation.form) or presets_for(
            rows_within(relation).columns, relation.form
        )
        if len(found) == 1:
            return found[0]
        columns = ", ".join(relation.columns)
    fault = f"no preset fits the columns {columns}"
    expected = "--columns MAP.yaml; 'simsched workload columns FILE' proposes a map"
    if found:
        names = ", ".join(one.name for one in found)
        fault, expected = f"several presets fit these columns: {names}", "one, by --columns NAME"
    raise ConfigError(fault, where=name, expected=expected)


class Rows:
    """The rows of one table: `reasons` by index, and the `names` behind the codes of each column."""

    items: dict[str, Item]
    reasons: list[str]
    gather: Gather

    def __init__(
        self, relation: Relation, columns: ColumnMap, reading: ReadOptions, notes: list[str]
    ) -> None:
        self.relation, self.columns, self.reading, self.notes = relation, columns, reading, notes
        self.names: dict[str, list[str]] = {}
        self.parsed: dict[str, dict[Any, Any]] = {}
        self.unread: dict[str, list[str]] = {}

    def prepare(self, limit: int | None) -> None:
        """Read the source once into the table of jobs.

        Raises
        ------
        ConfigError, FormatError
            for a column that the table lacks or that has a wrong type, and for content that cannot be read.
        WorkloadError
            for a column of times in which no value is a time.
        """
        self.items = items_of(self.columns, self.relation)
        self.relation.know("seconds_of", seconds_of_text)
        self.relation.know("kilobytes_of", lambda text: (kilobytes_of_text(text) or (None,))[0])
        self._read_source(limit)
        self._refuse_unreadable()
        self._make_jobs()
        self._mark_repeated()

    # -- the source ----------------------------------------------------------------

    def _read_source(self, limit: int | None) -> None:
        """Read the columns of the map into the table ``given``; unreadable values become null."""
        values = [f"{item.value} as {named(name)}" for name, item in self.items.items()]
        values.append(f"{self.items['memory'].per if 'memory' in self.items else 'null'} as memory_per")
        typed = [item for item in self.items.values() if item.kind in _KINDS]
        self.reasons = [FILTERED, *(item.reason for item in typed)]
        raws = [f"{item.raw} as {named('raw_' + item.name)}" for item in typed]
        broken = {
            item: f"when {named('raw_' + item.name)} is not null and {named(item.name)} is null then"
            for item in sorted(typed, key=lambda item: item.has_text)  # texts are looked at last
        }
        codes = " ".join(f"{test} {self.reasons.index(item.reason)}" for item, test in broken.items())
        texts = " ".join(
            f"{test} cast({named('raw_' + item.name)} as varchar)" for item, test in broken.items()
        )
        unknown = [
            f"null::{kind} as {named(name)}" for name, kind in _ABSENT.items() if name not in self.items
        ]
        own = [
            *map(named, (*self.items, "memory_per")),
            *unknown,
            f"cast({f'case {codes} end' if codes else 'null'} as utinyint) as broken",
            f"cast({f'case {texts} end' if texts else 'null'} as varchar) as broken_text",
        ]
        try:
            self.relation.rows(
                f"create temp table given as select {', '.join(own)}, keep from "
                f"(select {', '.join([*values, *raws])}, {self._filter()} as keep from {VIEW}"
                + (f" limit {limit})" if limit is not None else ")")
            )
        except FormatError:
            self._refuse_failing()
            raise

    def _refuse_failing(self) -> None:
        """Raise FormatError for the first expression that fails on a row, such as a cast of a text."""
        tests = {
            f"columns.{name}": item.value
            for name, item in self.items.items()
            if self.columns.columns[name].expression
        }
        if self.columns.filter:
            tests["filter"] = self._filter()
        for key, sql in tests.items():
            with named_fault(self.columns, key):
                self.relation.rows(f"select count({sql}) from {VIEW}")

    def _filter(self) -> str:
        text = self.columns.filter
        if not text:
            return "true"
        where = f"{self.columns.where}: filter"
        check_columns(columns_in(text, where), self.relation.columns, where, self.relation.name)
        with named_fault(self.columns, "filter"):
            kind = str(self.relation.rows(f"describe select (\n{text}\n) from {VIEW}")[0][1])
        if kind != "BOOLEAN":
            raise ConfigError(
                f"{text!r} is not a condition", where=where, expected="such as state != 'PENDING'"
            )
        return f"coalesce((\n{text}\n), false)"

    def _refuse_unreadable(self) -> None:
        """Raise WorkloadError for a column of times in which no value is a time."""
        for name in (name for name in TIMES if name in self.items):
            index = self.reasons.index(self.items[name].reason)
            ((good, bad, text),) = self.relation.rows(
                f"select count({named(name)}), count(*) filter (broken = {index}), "
                f"min_by(broken_text, rowid) filter (broken = {index}) from given"
            )
            if bad and not good:
                raise WorkloadError(
                    f"no value of the column {self.columns.columns[name].text!r} is a time, such as {text!r}",
                    where=self.relation.name,
                    expected=f"times, or a format for columns.{name} such as '%d/%m/%Y %H:%M'",
                )

    # -- the table of jobs ---------------------------------------------------------

    def _looked_up(self, name: str, column: str, read: Callable[[str], Any]) -> str:
        """Return the SQL of the join with the table ``of_NAME`` of what the texts of a column mean."""
        self.relation.know(f"read_{name}", read)
        self.relation.rows(
            f"create temp table of_{name} as select text, read_{name}(text) as value "
            f"from (select distinct {column} as text from given where {column} is not null)"
        )
        return f"left join of_{name} on of_{name}.text = given.{column}"

    def _make_jobs(self) -> None:
        """Make the table of jobs of ``given``; columns that the map does not give are left out."""
        for name in (*TEXTS, *ATTRIBUTES):  # the different values are numbered by an enumeration
            if name in self.items:
                type_ = named("enum_" + name)
                self.relation.rows(
                    f"create type {type_} as enum "
                    f"(select distinct {named(name)} as x from given where x is not null order by x)"
                )
                self.names[name] = [
                    row[0] for row in self.relation.rows(f"select unnest(enum_range(null::{type_}))")
                ]
        joins = []
        sizes = {name: f"case when {name} > 0 then {name} end" for name in COUNTS}
        if "nodelist" in self.items and "nodes" not in self.items:
            joins.append(self._looked_up("nodes", "nodelist", nodes_of_text))
            sizes["nodes"] = "cast(of_nodes.value as integer)"
        if "state" in self.items:
            words = self.columns.columns["state"].values
            joins.append(self._looked_up("state", "state", lambda text: state_of_text(text, words)))
            unknown = self.relation.rows("select text from of_state where value is null order by text")
            if unknown:
                listed = ", ".join(repr(row[0]) for row in unknown[:5]) + (", …" if len(unknown) > 5 else "")
                self.notes.append(f"states without a meaning here: {listed} (columns.state.values names it)")
        names = "".join(f', enum_code(cast("{x}" as "enum_{x}")) as "{x}"' for x in self.names)
        before = 'try_cast("end" - runtime * 1e6 as bigint)'  # a run time may be infinite
        begun = f"coalesce(start, case when {before} >= submit then {before} end)"
        share = (
            "case memory_per when 'core' then memory when 'node' then memory * coalesce(nodes, 1) / procs "
            "when 'gpu' then memory * coalesce(gpus, 1) / procs else memory / procs end"
        )
        optional = {
            "limit": 'case when "limit" > 0 and "limit" < 1e12 then cast(round("limit" * 1e6) as bigint) end',
            "eligible": "case when eligible > submit and coalesce(eligible <= begun, true) then eligible end",
            "cores": "cores",
            "nodes": "nodes",
            "gpus": "gpus",
            "memory": f"case when memory > 0 and ({share}) < 1e15 "
            f"then cast(ceil(round({share}, 6)) as bigint) end",
            "energy": f"case when energy > 0 and energy < {MOST_ENERGY} then cast(energy as bigint) end",
            "state": "cast(state as utinyint)",
            **{name: named(name) for name in self.names},
        }
        given = {*self.items, *(["nodes"] if "of_nodes.value" in sizes["nodes"] else [])}
        parts = [f"{sql} as {named(name)}" for name, sql in optional.items() if name in given]
        self.relation.rows(
            f"""create temp table {JOBS} as with a as (
                select given.rowid as row, keep, broken, broken_text as text, {self._id()} as id, submit,
                    start, "end", eligible, runtime, "limit", memory, memory_per, energy,
                    {", ".join(f'{sql} as "{name}"' for name, sql in sizes.items())},
                    {"of_state.value" if "state" in self.items else "null::double"} as state {names}
                from given {" ".join(joins)}),
            b as (select *, coalesce(runtime, ("end" - start) / 1e6) as seconds, {begun} as begun,
                  cast(coalesce(cores, nodes, gpus, 1) as double) as procs from a)
            select cast(row as uinteger) as row, id, submit, begun - submit as wait,
                case when seconds between 0 and {MOST_SECONDS!r} then cast(round(seconds * 1e6) as bigint) end
                    as runtime,
                {", ".join([*parts, "text"])}, cast({self._cases()} as utinyint) as reason
            from b"""
        )
        self.relation.rows("drop table given")

    def _id(self) -> str:
        """Return the SQL of ids; texts become numbers where all of them are plain numbers."""
        if "id" not in self.items:
            return "given.rowid + 1"
        kind = str(self.relation.rows("describe select id from given")[0][1])
        if kind != "VARCHAR":
            return "id"
        ((odd,),) = self.relation.rows(
            "select count(*) from given where id is not null "
            "and (try_cast(id as bigint) is null or cast(try_cast(id as bigint) as varchar) != id)"
        )
        return "id" if odd else "try_cast(id as bigint)"

    def _cases(self) -> str:
        """Return the SQL of the index of the first reason to leave a row out; `reasons` grows."""
        has_start = "start" in self.items
        unstarted = "(seconds is null" + (" or start is null)" if has_start else ")")
        rules = [
            ("id is null", why.NO_ID),
            (f"submit is null or submit < 0 or submit >= {why.LATEST * 1_000_000}", why.NO_SUBMIT),
            (f"state = {OUTCOMES.index('PENDING')}", why.NEVER_STARTED),
            (f"state = {OUTCOMES.index('RUNNING')}", why.RUNNING),
            ('"end" is not null and start is not null and "end" < start', why.BACKWARDS),
            (f"{unstarted} and state = {OUTCOMES.index('CANCELED')}", why.CANCELLED),
            (unstarted, why.NEVER_STARTED if has_start else why.NO_RUN_TIME),
            ("seconds < 0", NEGATIVE),
            (f"seconds >= {MOST_SECONDS!r}", ENDLESS),
            ("start < submit", why.EARLY),
            ("cores is null and nodes is null and gpus is null", why.NO_PROCESSORS),
        ]
        self.reasons = list(dict.fromkeys([*self.reasons, *(reason for _, reason in rules), REPEATED]))
        cases = [f"when {test} then {self.reasons.index(reason)}" for test, reason in rules]
        return f"case when not keep then 0 when broken is not null then broken {' '.join(cases)} end"

    def _mark_repeated(self) -> None:
        """Mark the later ones of rows with one id."""
        ((extra,),) = self.relation.rows(
            f"select count(id) - count(distinct id) from {JOBS} where reason is null"
        )
        if extra:
            self.relation.rows(
                f"update {JOBS} set reason = {self.reasons.index(REPEATED)} where row in (select row from "
                f"(select row, row_number() over (partition by id order by submit, row) as nth from {JOBS} "
                "where reason is null) where nth > 1)"
            )

    # -- the workload --------------------------------------------------------------

    def workload(self) -> Workload:
        """Return the workload; ``UnixStartTime`` of its header is the time that became second 0."""
        columns, relation = self.columns, self.relation
        with_gpus = GPU_TEMPLATE if columns.splits_gpus else None
        self.gather = Gather(self.reading, "table", columns.template(), with_gpus)
        if relation.rows_key and not columns.rows:
            self.notes.append(f"the rows are those of the key {relation.rows_key!r}")
        self._skip_rows()
        ((first,),) = relation.rows(f"select min(submit) from {JOBS} where reason is null")
        base = floor(first / 1_000_000) if first is not None else 0
        jobs = in_submit_order(self._jobs(base))
        if "depends" in self.items:
            jobs, lost = with_known_dependencies(jobs)
            refuse_cycles(jobs)
            if lost:
                self.notes.append(f"dependencies on jobs that are not in the table: {lost:,}, left out")
        submit = columns.columns.get("submit")
        zone = columns.zone or (submit.zone if submit is not None else None)
        stated = {"UnixStartTime": str(base), "ColumnMap": columns.name, "TimeZoneString": zone}
        for name, texts in self.unread.items():
            shown = ", ".join(map(repr, texts[:FIRST_PLACES])) + (", …" if len(texts) > FIRST_PLACES else "")
            self.notes.append(f"{name}: {len(texts):,} texts were not understood: {shown}")
        skips = self.gather.skips
        return Workload(
            jobs=jobs,
            name=self.reading.name,
            source=self.reading.source,
            header={key: value for key, value in stated.items() if value},
            skipped=tuple(skips.records),
            skipped_counts=dict(skips.counts),
            total_records=len(jobs) + sum(skips.counts.values()),
            kind="table",
            notes=(*self.notes, *self.gather.unused()),
        )

    def _skip_rows(self) -> None:
        """Ignore the lines that are not rows, and the rows that are not jobs.

        All are counted; of rows the first of each reason are listed.
        """
        skips, rows = self.gather.skips, self.relation.rows
        if self.relation.form == "csv":
            for line, kind, text in rows(
                "select line, max(error_type::varchar), min(csv_line) from reject_errors "
                "group by line order by line"
            ):
                self.gather.skip(str(line), _REJECTED.get(kind, f"a line with {kind.lower()}"), str(text))
        for reason, row, id_, text in rows(
            f"select reason, row, id, text from (select *, row_number() over "
            f"(partition by reason order by row) as nth from {JOBS} where reason is not null) "
            f"where nth <= {MOST_LISTED} order by row"
        ):
            known = self.reasons[reason]
            skips.add(Skip(self._place(row), known, (text or "")[:200], id_), listed=known != FILTERED)
        for reason, count in rows(
            f"select reason, count(*) from {JOBS} where reason is not null group by reason order by reason"
        ):
            skips.counts[self.reasons[reason]] = count

    def _place(self, row: int) -> str:
        return f"{self.reading.source}: row {row + 1}"

    def _jobs(self, base: int) -> Iterator[Job]:
        """Yield the jobs of the table, in the order of its rows."""
        import numpy as np

        ((count,),) = self.relation.rows(f"select count(*) from {JOBS}")
        for begin in range(0, count, BLOCK):
            found: dict[str, Any] = self.relation.con.execute(
                f"select * from {JOBS} where rowid >= {begin} and rowid < {begin + BLOCK} and reason is null"
            ).fetchnumpy()
            order = np.argsort(found["row"], kind="stable")  # an order in SQL takes six times as long
            if bool((order[1:] < order[:-1]).any()):
                found = {name: values[order] for name, values in found.items()}
            values = partial(self._values, found)
            skip = partial(self._skip, found["row"].tolist(), values("id"))
            columns = self._columns(found, base)
            yield from self.gather.of_columns(columns, skip, values("gpus"), *map(values, ATTRIBUTES))

    def _skip(self, rows: Sequence[int], ids: Sequence[Any], at: int, reason: str) -> None:
        listed = self.gather.skips.counts.get(reason, 0) < MOST_LISTED or self.reading.strict
        self.gather.skips.add(Skip(self._place(rows[at]), reason, "", ids[at]), listed=listed)

    def _columns(self, found: dict[str, Any], base: int) -> dict[str, Sequence[Any]]:
        """Return the columns of jobs, by field, one entry per row."""
        values = partial(self._values, found)
        shared: dict[Any, Any] = {}
        limits = _seconds(found["limit"]) if "limit" in found else values("limit")
        queue = values("queue")
        return {
            **{name: values(name) for name in ("id", "user", "group", "name", "nodes", "energy", "qos")},
            "submit": _seconds(found["submit"] - base * 1_000_000),
            "runtime": _seconds(found["runtime"]),
            "duration": [shared.setdefault(value, value) for value in limits],
            "queue": queue,
            "partition": queue,
            "bank": values("account"),
            "procs": values("cores"),
            "memory": [shared.setdefault(value, value) for value in values("memory")],
            "wait": _seconds(found["wait"]),
            "status": [_RESULT.get(code) for code in values("state")],
            "dependencies": self._dependencies(found, base),
            "nodelist": list(map(hosts_of, values("nodelist"))),
            "array_task": self._parsed("array_task", values("array_task"), _task, None),
        }

    def _values(self, found: dict[str, Any], name: str) -> list[Any]:
        """Return the values of a column, with texts in the place of their codes; None where it is absent."""
        if name not in found:
            return [None] * len(found["row"])
        values: list[Any] = found[name].tolist()
        known = self.names.get(name)
        return values if known is None else [None if code is None else known[code] for code in values]

    def _dependencies(self, found: dict[str, Any], base: int) -> list[tuple[Dependency, ...]]:
        """Return the dependencies, after those on an eligible time later than the submission."""
        given = self._parsed("depends", self._values(found, "depends"), log_dependencies, ())
        if "eligible" not in found:
            return given
        times = _seconds(found["eligible"] - base * 1_000_000)
        return [
            own if at is None else (Dependency("begin-time", f"{at:.15g}"), *own)
            for at, own in zip(times, given, strict=True)
        ]

    def _parsed(self, name: str, texts: list[str | None], read: Callable[[str], Any], none: Any) -> list[Any]:
        """Return the values of a column of texts; each text is read once, and noted if it is not one."""
        known = self.parsed.setdefault(name, {None: none})
        for text in dict.fromkeys(texts):
            if text is not None and text not in known:
                known[text] = read(text)
                if not known[text]:
                    self.unread.setdefault(name, []).append(text)
        return [known[text] for text in texts]


def _task(text: str) -> ArrayTask | None:
    try:
        return ArrayTask.parse(text)
    except WorkloadError:
        return None


_RESULT = dict(enumerate(OUTCOMES[:4]))
_REJECTED = {
    "CAST": "a value that is not of the type of its column",
    "MISSING COLUMNS": "fewer cells than the header has",
    "TOO MANY COLUMNS": "more cells than the header has",
}
"""DuckDB's kinds of lines that are not rows → our reasons."""


def _seconds(microseconds: Any) -> list[Any]:
    """Return microseconds as seconds; whole ones as int, absent ones as None."""
    if not len(microseconds) or not (microseconds % 1_000_000).any():
        whole_ones: list[Any] = (microseconds // 1_000_000).tolist()
        return whole_ones
    return [
        None if value is None else value // 1_000_000 if value % 1_000_000 == 0 else round(value / 1e6, 6)
        for value in microseconds.tolist()
    ]
