"""`read_table`: a table of jobs into a workload, whole columns at a time.

`Rows` reads the source once in DuckDB: the columns of the map, the reasons to leave rows out, and the
different requests.  Its table `JOBS` has one row per row of the source, in its order: numbers as jobs have
them, codes of the names (see `Rows.names`), and in `reason` the index of the first reason to leave the row
out.  Times become microseconds after 1970 (UTC), durations seconds, counts whole numbers rounded up.  A value
that cannot be read becomes null, and the first such value of a row is its `text`.

Jobs are then made in blocks of `BLOCK` rows, so that ten million of them fit into memory.
"""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import floor
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, FormatError, SimschedError, WorkloadError, did_you_mean
from simsched.formats.machines.slurm.notation import node_names
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.duration import parse_duration
from simsched.garbage import collector_paused
from simsched.workload.dependencies import log_dependencies, refuse_cycles, with_known_dependencies
from simsched.workload.job import FIRST_PLACES, ArrayTask, Job, Skip, Workload, in_submit_order
from simsched.workload.mapping import GPU_TEMPLATE, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather, hosts_of
from simsched.workload.readers.slurm import (
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
from simsched.workload.readers.tables.relation import VIEW, named, open_relation, quoted, rows_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from simsched.workload.readers.tables.column_map import ColumnMap, MappedColumn
    from simsched.workload.readers.tables.relation import Relation
    from simsched.workload.source import Source


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
    of its texts are left to `seconds_of_text` and its like.
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
        return Item(name, "duration", raw, _scaled(raw, UNITS[column.unit or "s"]), has_text=is_text)
    if name == "memory":
        return Item(name, "memory", raw, _scaled(raw, UNITS[column.unit or "MiB"] / 1024), has_text=is_text)
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
MOST_TEXTS = 5_000_000
"""The most different texts of one column that are read one by one."""


@dataclass(slots=True)
class Rows:
    """The rows of one table: `reasons` by index, and the `names` behind the codes of each column.

    `lookups` has the columns of ``given`` whose texts are read one by one, by the value that they give.
    """

    relation: Relation
    columns: ColumnMap
    items: dict[str, Item] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lookups: dict[str, str] = field(default_factory=dict)

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
        texts = (name for name in ("runtime", "limit", "memory") if name in self.items)
        self.lookups = {name: f"text_{name}" for name in texts if self.items[name].has_text}
        if self.sized_by_nodelist:
            self.lookups["nodelist"] = "nodelist"
        if "state" in self.items:
            self.lookups["state"] = "state"
        self._read_source(limit)
        self._refuse_unreadable()
        self._read_texts()
        self._make_jobs()
        self._mark_repeated()

    @property
    def sized_by_nodelist(self) -> bool:
        """Whether the number of nodes is that of the list of nodes."""
        return "nodelist" in self.items and "nodes" not in self.items

    # -- the source ----------------------------------------------------------------

    def _read_source(self, limit: int | None) -> None:
        """Read the columns of the map into the table ``given``; unreadable values become null."""
        parts = [f"{item.value} as {named(name)}" for name, item in self.items.items()]
        parts += [
            f"null::{kind} as {named(name)}" for name, kind in _ABSENT.items() if name not in self.items
        ]
        parts += [
            f"case when {item.value} is null then cast({item.raw} as varchar) end as {named('text_' + name)}"
            for name, item in self.items.items()
            if item.has_text
        ]
        typed = [item for item in self.items.values() if item.kind in _KINDS]
        tests = [
            (item, f"when {item.raw} is not null and {item.value} is null then")
            for item in typed
            if not item.has_text
        ]
        self.reasons = [FILTERED, *(item.reason for item in typed)]
        marks = " ".join(f"{test} {self.reasons.index(item.reason)}" for item, test in tests)
        texts = " ".join(f"{test} cast({item.raw} as varchar)" for item, test in tests)
        parts.append(f"cast({f'case {marks} end' if marks else 'null'} as utinyint) as broken")
        parts.append(f"cast({f'case {texts} end' if texts else 'null'} as varchar) as broken_text")
        parts.append(f"{self._filter()} as keep")
        try:
            self.relation.rows(
                f"create temp table given as select {', '.join(parts)} from {VIEW}"
                + (f" limit {limit}" if limit is not None else "")
            )
        except FormatError:
            self._refuse_failing()
            raise

    def _refuse_failing(self) -> None:
        """Raise FormatError for the first expression that fails on a row, such as a cast of a text."""
        for name, item in self.items.items():
            if self.columns.columns[name].expression:
                with named_fault(self.columns, f"columns.{name}"):
                    self.relation.rows(f"select count({item.value}) from {VIEW}")
        if self.columns.filter:
            with named_fault(self.columns, "filter"):
                self.relation.rows(f"select count({self._filter()}) from {VIEW}")

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
        for name in TIMES:
            if name not in self.items:
                continue
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

    # -- texts ---------------------------------------------------------------------

    def _read_texts(self) -> None:
        """Read the texts that SQL does not, each different one once, into tables ``text → value``."""
        words = self.columns.columns["state"].values if "state" in self.items else {}
        reads: dict[str, Callable[[str], Any]] = {
            "memory": kilobytes_of_text,
            "nodelist": nodes_of_text,
            "state": lambda text: state_of_text(text, words),
        }
        for name, column in self.lookups.items():
            self._lookup(name, column, reads.get(name, seconds_of_text))
        if "state" in self.items:
            unknown = self.relation.rows(
                f"select text from {named('of_state')} where value is null order by text"
            )
            if unknown:
                listed = ", ".join(repr(row[0]) for row in unknown[:5]) + (", …" if len(unknown) > 5 else "")
                self.notes.append(f"states without a meaning here: {listed} (columns.state.values names it)")

    def _lookup(self, name: str, column: str, read: Callable[[str], Any]) -> None:
        """Make the table ``of_NAME`` of the texts of a column of ``given``: text, value, and per."""
        found = self.relation.rows(
            f"select distinct {named(column)} from given where {named(column)} is not null "
            f"limit {MOST_TEXTS + 1}"
        )
        if len(found) > MOST_TEXTS:
            raise WorkloadError(
                f"the column of {name!r} has more than {MOST_TEXTS:,} different texts",
                where=self.relation.name,
            )
        texts = [row[0] for row in found]
        values = [read(text) for text in texts]
        pairs = [value if isinstance(value, tuple) else (value, None) for value in values]
        self.relation.rows(
            f"create temp table {named('of_' + name)} as select unnest(?::varchar[]) as text, "
            "unnest(?::double[]) as value, unnest(?::varchar[]) as per",
            [texts, [value for value, _ in pairs], [per for _, per in pairs]],
        )

    # -- jobs ----------------------------------------------------------------------

    def _make_jobs(self) -> None:
        """Make the table of jobs of ``given`` and the tables of texts."""
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
        joins = [
            f"left join {named('of_' + name)} on {named('of_' + name)}.text = given.{named(column)}"
            for name, column in self.lookups.items()
        ]
        unread = {
            name: f"when text_{name} is not null and {named('of_' + name)}.value is null then"
            for name, column in self.lookups.items()
            if column != name
        }
        broken = " ".join(
            f"{test} {self.reasons.index(self.items[name].reason)}" for name, test in unread.items()
        )
        texts = " ".join(f"{test} text_{name}" for name, test in unread.items())
        sizes = {name: f"case when {name} > 0 then {name} end" for name in COUNTS}
        if self.sized_by_nodelist:
            sizes["nodes"] = "cast(of_nodelist.value as integer)"
        sizes |= {name: f'"{name}"' for name in (*DURATIONS, "memory")}
        sizes |= {name: f'coalesce(given."{name}", of_{name}.value)' for name in sizes.keys() & self.lookups}
        memory_per = f"'{self.columns.columns['memory'].per}'" if "memory" in self.items else "null::varchar"
        if "memory" in self.lookups:
            memory_per = (
                f"(case when of_memory.per in ('core', 'node') then of_memory.per else {memory_per} end)"
            )
        first = f"""select given.rowid as row, keep,
            case when broken is not null then broken {broken} end as broken,
            case when broken is not null or not keep then broken_text {texts} end as text,
            {self._id()} as id, submit, start, "end", eligible, energy, {memory_per} as memory_per,
            {", ".join(f'{sql} as "{name}"' for name, sql in sizes.items())},
            {"of_state.value" if "state" in self.items else "null::double"} as state
            {"".join(f', enum_code(cast("{x}" as "enum_{x}")) as "{x}"' for x in self.names)}
            from given {" ".join(joins)}"""
        self.relation.rows(f"create temp table {JOBS} as {self._finished(first)}")
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
        run = '"end" is not null and start is not null and "end" < start'
        rules = [
            ("id is null", why.NO_ID),
            (f"submit is null or submit < 0 or submit >= {why.LATEST * 1_000_000}", why.NO_SUBMIT),
            (f"state = {OUTCOMES.index('PENDING')}", why.NEVER_STARTED),
            (f"state = {OUTCOMES.index('RUNNING')}", why.RUNNING),
            (run, why.BACKWARDS),
        ]
        unstarted = "seconds is null" + (" or start is null" if "start" in self.items else "")
        rules += [
            (f"({unstarted}) and state = {OUTCOMES.index('CANCELED')}", why.CANCELLED),
            (unstarted, why.NEVER_STARTED if "start" in self.items else why.NO_RUN_TIME),
            ("seconds < 0", NEGATIVE),
            (f"seconds >= {MOST_SECONDS!r}", ENDLESS),
            ("start < submit", why.EARLY),
            ("cores is null and nodes is null and gpus is null", why.NO_PROCESSORS),
        ]
        self.reasons = list(dict.fromkeys([*self.reasons, *(reason for _, reason in rules), REPEATED]))
        cases = [f"when {test} then {self.reasons.index(reason)}" for test, reason in rules]
        return f"case when not keep then 0 when broken is not null then broken {' '.join(cases)} end"

    def _finished(self, first: str) -> str:
        """Return the SQL of the table of jobs; columns that the map does not give are left out."""
        before = 'cast("end" - runtime * 1e6 as bigint)'
        begun = f"coalesce(start, case when {before} >= submit then {before} end)"
        per = (
            "case memory_per when 'core' then memory when 'node' then memory * coalesce(nodes, 1) / procs "
            "when 'gpu' then memory * coalesce(gpus, 1) / procs else memory / procs end"
        )
        size = f"memory > 0 and ({per}) < 1e15"
        optional = {
            "limit": 'case when "limit" > 0 and "limit" < 1e12 then cast(round("limit" * 1e6) as bigint) end',
            "eligible": "case when eligible > submit and coalesce(eligible <= begun, true) then eligible end",
            "cores": "cores",
            "nodes": "nodes",
            "gpus": "gpus",
            "memory": f"case when {size} then cast(ceil(round({per}, 6)) as bigint) end",
            "energy": f"case when energy > 0 and energy < {MOST_ENERGY} then cast(energy as bigint) end",
            "state": "cast(state as utinyint)",
            **{name: named(name) for name in self.names},
        }
        given = {*self.items, *self.names, *(["nodes"] if self.sized_by_nodelist else [])}
        parts = [f"{sql} as {named(name)}" for name, sql in optional.items() if name in given]
        return f"""with a as ({first}),
            b as (select *, coalesce(runtime, ("end" - start) / 1e6) as seconds, {begun} as begun,
                  cast(coalesce(cores, nodes, gpus, 1) as double) as procs from a)
            select cast(row as uinteger) as row, id, submit, begun - submit as wait,
                case when seconds < {MOST_SECONDS!r} then cast(round(seconds * 1e6) as bigint) end as runtime,
                {", ".join([*parts, "text"])}, cast({self._cases()} as utinyint) as reason
            from b"""

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
    columns, note = reading.table, ""
    if columns is None:
        columns = recognised(given, reading.source)
        note = f"read as {columns.name}: {columns.dataset}"
    if reading.time_zone is not None:
        columns = columns.replace(zone=reading.time_zone)
    with open_relation(given, reading.source, columns) as relation:
        columns = without_absent_energy(columns, relation.columns)
        rows = Rows(relation, columns)
        rows.prepare(reading.limit)
        with collector_paused():
            return _Jobs(rows, reading, [note] if note else []).workload()


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


class _Jobs:
    """Makes the jobs of the rows of one table."""

    def __init__(self, rows: Rows, reading: ReadOptions, notes: list[str]) -> None:
        columns = rows.columns
        self.rows = rows
        self.reading = reading
        with_gpus = GPU_TEMPLATE if columns.splits_gpus else None
        self.gather = Gather(reading, "table", columns.template(), with_gpus)
        self.notes = [*notes, *rows.notes]
        self.unread: dict[str, list[str]] = {}
        self.parsed: dict[str, dict[Any, Any]] = {}
        key = rows.relation.rows_key
        if key and not columns.rows:
            self.notes.append(f"the rows are those of the key {key!r}")

    def workload(self) -> Workload:
        """Return the workload; ``UnixStartTime`` of its header is the time that became second 0."""
        self._skip_rejects()
        self._skip_rows()
        ((first,),) = self.rows.relation.rows(f"select min(submit) from {JOBS} where reason is null")
        base = floor(first / 1_000_000) if first is not None else 0
        jobs = in_submit_order(self._jobs(base))
        if "depends" in self.rows.items:
            jobs, lost = with_known_dependencies(jobs)
            refuse_cycles(jobs)
            if lost:
                self.notes.append(f"dependencies on jobs that are not in the table: {lost:,}, left out")
        header = {"UnixStartTime": str(base)}
        if self.rows.columns.name:
            header["ColumnMap"] = self.rows.columns.name
        columns = self.rows.columns
        submit = columns.columns.get("submit")
        if zone := columns.zone or (submit.zone if submit is not None else None):
            header["TimeZoneString"] = zone
        for name, texts in self.unread.items():
            shown = ", ".join(map(repr, texts[:FIRST_PLACES])) + (", …" if len(texts) > FIRST_PLACES else "")
            self.notes.append(f"{name}: {len(texts):,} texts were not understood: {shown}")
        skips = self.gather.skips
        return Workload(
            jobs=jobs,
            name=self.reading.name,
            source=self.reading.source,
            header=header,
            skipped=tuple(skips.records),
            skipped_counts=dict(skips.counts),
            total_records=len(jobs) + sum(skips.counts.values()),
            kind="table",
            notes=(*self.notes, *self.gather.unused()),
        )

    # -- ignored rows --------------------------------------------------------------

    def _skip_rejects(self) -> None:
        """Ignore the lines of a CSV file that are not rows."""
        if self.rows.relation.form != "csv":
            return
        found = self.rows.relation.rows(
            "select line, max(error_type::varchar), min(csv_line) from reject_errors "
            "group by line order by line"
        )
        for line, kind, text in found:
            self.gather.skip(str(line), _REJECTED.get(kind, f"a line with {kind.lower()}"), str(text))

    def _skip_rows(self) -> None:
        """Ignore the rows that are not jobs: all are counted, the first of each reason listed."""
        skips = self.gather.skips
        found = self.rows.relation.rows(
            f"select reason, row, id, text from (select *, row_number() over "
            f"(partition by reason order by row) as nth from {JOBS} where reason is not null) "
            f"where nth <= {MOST_LISTED} order by row"
        )
        for reason, row, id_, text in found:
            known = self.rows.reasons[reason]
            skips.add(Skip(self._place(row), known, (text or "")[:200], id_), listed=known != FILTERED)
        counts = self.rows.relation.rows(
            f"select reason, count(*) from {JOBS} where reason is not null group by reason order by reason"
        )
        for reason, count in counts:
            skips.counts[self.rows.reasons[reason]] = count

    def _place(self, row: int) -> str:
        return f"{self.reading.source}: row {row + 1}"

    # -- jobs ----------------------------------------------------------------------

    def _jobs(self, base: int) -> Iterator[Job]:
        """Yield the jobs of the table, in the order of its rows."""
        import numpy as np

        ((count,),) = self.rows.relation.rows(f"select count(*) from {JOBS}")
        for begin in range(0, count, BLOCK):
            found: dict[str, Any] = self.rows.relation.con.execute(
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
        known = self.rows.names.get(name)
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
