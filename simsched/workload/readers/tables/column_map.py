"""Column maps: which columns of a table of jobs mean what, and in which units.

docs/workloads.md describes the keys of the documents.  An expression in SQL is exactly one, of columns and
functions, without a query in it.  The maps of public data sets are YAML
files in the folder beside this module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from simsched.declare.kinds import (
    ValueKind,
    by_name,
    choice,
    listed,
    matching,
    quoted,
    scalar,
    sized,
    text,
    words,
)
from simsched.declare.table import Declared, read_keys, table_of
from simsched.errors import ConfigError, SimschedError, did_you_mean, first_line
from simsched.formats.text.diagnostics import Fault, located
from simsched.formats.text.documents import load_document, name_of, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from duckdb import DuckDBPyConnection


_REFUSED = {
    "SUBQUERY": "a query",
    "WINDOW": "a window function",
    "STAR": "a star",
    "PARAMETER": "a parameter",
}
"""Kinds of parts that an expression cannot have → their names in messages."""


FUNCTIONS = frozenset(
    """
    + - * / // % ** ^ & | << >> ~ ~~ !~~ ~~* !~~* ~~~ || ^@ @ -> ->> @> <@ &&
    abs add bit_count cbrt ceil ceiling divide even exp floor fmod gcd greatest isfinite isinf isnan lcm least
    ln log log10 log2 mod multiply pow power round round_even sign sqrt subtract trunc
    if ifnull nullif error typeof hash md5 sha256
    array_extract array_length array_slice cardinality contains element_at filter flatten len list_aggr
    list_aggregate list_any_value list_apply list_avg list_concat list_contains list_count list_distinct
    list_element list_extract list_filter list_first list_has list_has_all list_has_any list_indexof list_last
    list_max list_median list_min list_position list_reverse list_select list_slice list_sort list_sum
    list_transform list_unique list_value list_zip map map_contains map_extract map_extract_value map_keys
    map_values row struct_extract struct_extract_at struct_pack
    from_json json_array_length json_exists json_extract json_extract_path json_extract_path_text
    json_extract_string json_keys json_type json_value
    ascii char_length character_length chr concat concat_ws ends_with instr lcase left length like_escape
    lower ltrim nfc_normalize octet_length ord position prefix regexp_escape regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regexp_split_to_array replace reverse right rtrim split
    split_part starts_with str_split str_split_regex string_split string_split_regex string_to_array
    strip_accents strlen strpos substr substring suffix translate trim ucase unicode upper url_decode
    age century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day
    dayname dayofmonth dayofweek dayofyear decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear
    julian last_day
    make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz microsecond
    millennium millisecond minute month monthname nanosecond quarter second strftime strptime time_bucket
    timezone timezone_hour timezone_minute to_centuries to_days to_decades to_hours to_microseconds
    to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years
    try_strptime week weekday weekofyear year yearweek
    bin formatreadablesize from_binary from_hex hex parse_formatted_bytes to_base to_binary to_hex unbin unhex
    """.split()  # noqa: SIM905 (a list of names, read as text)
)
"""The functions of expressions: of one value each.  Others wait, draw, repeat, or ask the database."""


@cache
def columns_in(text: str, where: str = "expression") -> frozenset[str]:
    """Return the columns that an expression names, in lower case.

    Raises
    ------
    ConfigError
        for a text that is not one expression, and for a query or a function not in `FUNCTIONS` within it.

    >>> sorted(columns_in("ceil(cpu_milli / 1000) * [x.n for x in Pods][1]"))
    ['cpu_milli', 'pods']
    >>> columns_in("1) from passwords where (1")
    Traceback (most recent call last):
    simsched.errors.ConfigError: expression: '1) from passwords where (1' is not one expression in SQL
    """
    tree = _tree(text, where)
    found: set[str] = set()
    own: set[str] = set()
    for node in _nodes(tree):
        kind = str(node.get("class", ""))
        if kind in _REFUSED:
            raise ConfigError(f"{_REFUSED[kind]} is not allowed in {text!r}", where=where)
        if kind == "FUNCTION" and (name := str(node["function_name"]).lower()) not in FUNCTIONS:
            raise ConfigError(
                f"the function {name} is not allowed in {text!r}{did_you_mean(name, FUNCTIONS)}",
                where=where,
                expected="functions of numbers, texts, times and lists, such as ceil, substr, epoch",
            )
        if kind == "LAMBDA":
            own |= {
                str(part["column_names"][0]).lower() for part in _nodes(node["lhs"]) if "column_names" in part
            }
        elif kind == "COLUMN_REF":
            found.add(str(node["column_names"][0]).lower())
    return frozenset(found - own)


def check_columns(names: Iterable[str], have: Iterable[str], where: str, table: str) -> None:
    """Raise ConfigError for the first name that the table does not have; it names the nearest column."""
    known = list(have)
    lower = {name.lower() for name in known}
    for name in sorted(names):
        if name.lower() not in lower:
            listed = ", ".join(known)
            raise ConfigError(
                f"there is no column {name!r} in {table}{did_you_mean(name, known)}",
                where=where,
                expected=listed,
            )


def _tree(text: str, where: str) -> Any:
    import duckdb

    wrong = ConfigError(f"{text!r} is not one expression in SQL", where=where)
    try:
        answer = _parser().execute("select json_serialize_sql(?)", [f"select (\n{text}\n)"]).fetchone()
        tree: Any = json.loads(answer[0]) if answer else {"error": True}
    except (duckdb.Error, UnicodeError, RecursionError, ValueError) as error:
        raise ConfigError(f"{text!r} cannot be parsed: {first_line(error)}", where=where) from None
    if tree["error"]:
        raise ConfigError(f"{text!r} is not an expression in SQL: {tree.get('error_message')}", where=where)
    node = tree["statements"][0]["node"]
    is_one = len(tree["statements"]) == 1 and len(node.get("select_list", ())) == 1
    rest = ("where_clause", "having", "qualify", "sample", "modifiers", "group_expressions")
    if not is_one or node.get("from_table", {}).get("type") != "EMPTY" or any(node.get(key) for key in rest):
        raise wrong
    return node["select_list"][0]


@cache
def _parser() -> DuckDBPyConnection:
    """Return a connection that parses and cannot read anything."""
    import duckdb

    return duckdb.connect(config={"enable_external_access": False, "threads": 1})


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a syntax tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


TIMES = ("submit", "eligible", "start", "end")
DURATIONS = ("runtime", "limit")
COUNTS = ("nodes", "cores", "gpus")
NAMES = ("user", "group", "account", "queue", "name")
TEXTS = (*NAMES, "nodelist", "qos", "array_task", "depends")
"""Columns of texts that occur again; all of them but `NAMES` are optional facts of a job."""
ATTRIBUTES = ("licenses", "reservation", "checkpoint_interval")
"""Texts that become attributes (``attributes.system``) of the request."""
ROWS = ("cores", "nodes", "gpus")
"""Words for the request of a row."""


OUTCOMES = ("COMPLETED", "FAILED", "CANCELED", "TIMEOUT", "PENDING", "RUNNING")
"""The states of rows; the last two are not results."""


_FORMAT = matching(
    "^(iso|epoch(-[mun]s)?|.*%.*)$",
    "a format of times",
    "iso, epoch, epoch-ms, epoch-us, epoch-ns, or a format such as '%d/%m/%Y %H:%M'",
)


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """The source of one value of a job: a column or an expression in SQL, and how it is read.

    `format` and `zone` belong to times, `unit` to durations, memory and energy, `per` to memory, and
    `values` to states.  Values in `missing` are read as absent.
    """

    column: str = ""
    expression: str = ""
    missing: tuple[str | float, ...] = ()
    format: str = ""
    zone: str = ""
    unit: str = ""
    per: str = "job"
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The column or the expression, for messages."""
        return self.column or self.expression


_COLUMN, _SQL = words("the name of a column"), words("an expression in SQL")
_TEXTS = ("a list", "a list of texts")
_ZONE = words("a time zone, such as Europe/Rome")
_CELLS = listed(scalar("a text or a number"), "a list", "a list of texts and numbers", one_alone=False)
_OWN: dict[str, dict[str, ValueKind]] = {
    "id": {},
    **{name: {"format": _FORMAT, "zone": _ZONE} for name in TIMES},
    **{name: {"unit": choice("ns", "us", "ms", "s", "min", "h", "d")} for name in DURATIONS},
    "memory": {
        "unit": choice("B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"),
        "per": choice("job", "node", "core", "gpu"),
    },
    **{name: {} for name in (*COUNTS, *TEXTS, *ATTRIBUTES)},
    "state": {"values": by_name(choice(*OUTCOMES))},
    "energy": {"unit": choice("J", "kJ", "MJ", "Wh", "kWh")},
}
"""Value of a job → the keys that its entry of ``columns`` has beside the source."""


def _entry(own: Mapping[str, ValueKind]) -> ValueKind:
    """Return the kind of the entries of ``columns``; a text is the name of a column."""
    keys = {"column": _COLUMN, "expression": _SQL, "missing": _CELLS, **own}

    def read(value: Any, where: str) -> MappedColumn:
        if isinstance(value, str):
            return MappedColumn(column=_COLUMN.read(value, where))
        if not isinstance(value, Mapping):
            expected = "the name of a column, or a table"
            raise ConfigError(f"{quoted(value)} is not a column", where=where, expected=expected)
        given = read_keys(value, where, keys)
        if ("column" in given) == ("expression" in given):
            expected = "column or expression"
            raise ConfigError("the source of the value is not clear", where=where, expected=expected)
        if "expression" in given:
            columns_in(given["expression"], where)
        return MappedColumn(**given)

    one_source = {"oneOf": [{"required": ["column"]}, {"required": ["expression"]}]}
    return ValueKind(read, {"oneOf": [_COLUMN.schema, {**table_of(keys).schema, **one_source}]})


_TABLE = table_of({name: _entry(own) for name, own in _OWN.items()})


def _in_order(value: Any, where: str) -> dict[str, MappedColumn]:
    """Return the entries in the order of the document, by which the faults of a row are reported."""
    found = _TABLE.read(value, where)
    return {name: found[name] for name in value}


class ColumnMap(Declared, frozen=True, kw_only=True, rename=None):
    """A column map; the first texts are about the data set that it is for.

    columns : value of a job, such as submit, runtime and cores, with its column or expression.
    name, dataset, doi, cite, url, notes : what a preset is for.
    format : csv, json, parquet or swf.
    header : names of the columns of a table without a header line.
    delimiter : separator of the columns.
    filter : condition in SQL; other rows are left out.
    zone : zone of times without one, such as Europe/Rome.
    row : request of a row: cores, nodes, gpus or a template of a shape.
    rows : key of a JSON document that has the rows.

    >>> ColumnMap.read({"columns": {"submit": "t", "runtime": "seconds", "cores": "n"}}, "m").template()
    'slot={procs}/core'
    >>> ColumnMap.read({"columns": {"submit": "t", "cores": "n"}}, "m")
    Traceback (most recent call last):
    simsched.errors.ConfigError: m: columns: no run time (expected runtime, or start and end)
    """

    join = ": "

    columns: Annotated[
        Mapping[str, MappedColumn], ValueKind(_in_order, {**_TABLE.schema, "required": ["submit"]})
    ]
    name: Annotated[str, words("a name that is not blank")] = ""
    dataset: Annotated[str, text(empty=True)] = ""
    doi: Annotated[str, text(empty=True)] = ""
    cite: Annotated[str, text(empty=True)] = ""
    url: Annotated[str, text(empty=True)] = ""
    notes: Annotated[tuple[str, ...], listed(text(empty=True), *_TEXTS, one_alone=False)] = ()
    format: Annotated[str, choice("csv", "json", "parquet", "swf")] = ""
    header: Annotated[tuple[str, ...], sized(listed(_COLUMN, *_TEXTS, one_alone=False), different=True)] = ()
    delimiter: str = ""
    filter: Annotated[str, words("a condition in SQL")] = ""
    zone: Annotated[str, _ZONE] = ""
    row: Annotated[str, words("cores, nodes, gpus or a template of a shape")] = ""
    rows: Annotated[str, words("the key of a JSON document with the rows")] = ""
    where: str = "column map"

    def checked(self, where: str) -> Self:
        """Return the map; ConfigError where a time, a run time or a size is missing, and for a bad filter."""
        place, sizes = f"{where}: columns", (*COUNTS, "nodelist")
        if "submit" not in self.columns:
            raise ConfigError("the key 'submit' is missing", where=place)
        if "runtime" not in self.columns and not {"start", "end"} <= self.columns.keys():
            raise ConfigError("no run time", where=place, expected="runtime, or start and end")
        if self.columns.keys().isdisjoint(sizes):
            raise ConfigError("no size", where=place, expected=", ".join(sizes))
        if self.filter:
            columns_in(self.filter, f"{where}: filter")
        return self

    @property
    def needed(self) -> frozenset[str]:
        """The names of the columns that the map reads as they are, in lower case."""
        return frozenset(item.column.lower() for item in self.columns.values() if item.column)

    def template(self) -> str:
        """Return the template of a request without gpus."""
        if self.row and self.row not in ROWS:
            return self.row
        if self.row == "nodes" or (not self.row and "cores" not in self.columns and "nodes" in self.columns):
            return "slot={nodes}/node"
        if self.row == "gpus" or (not self.row and "cores" not in self.columns):
            return "slot={gpus}/gpu"
        return "slot={procs}/core"

    @property
    def splits_gpus(self) -> bool:
        """Whether rows with gpus have a template of their own, with the processors of each gpu."""
        return self.row in {"", "cores"} and {"cores", "gpus"} <= self.columns.keys()


@cache
def preset_names() -> tuple[str, ...]:
    """Return the names of the presets, sorted."""
    folder = files("simsched.workload.readers.tables") / "presets"
    return tuple(
        sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))
    )


@cache
def preset(name: str) -> ColumnMap:
    """Return the preset of a name; ConfigError names the nearest one."""
    document = load_document(preset_text(name), f"{name}.yaml")
    return ColumnMap.read({"name": name, **document}, name)


def preset_text(name: str) -> str:
    """Return the document of a preset; ConfigError names the nearest one."""
    if name not in preset_names():
        raise ConfigError(
            f"unknown preset {name!r}{did_you_mean(name, preset_names())}",
            expected=f"the file of a column map, or {', '.join(preset_names())}",
        )
    place = files("simsched.workload.readers.tables") / "presets" / f"{name}.yaml"
    return place.read_text(encoding="utf-8")


def presets() -> list[ColumnMap]:
    """Return all presets by name."""
    return [preset(name) for name in preset_names()]


def presets_for(columns: Iterable[str], format_: str) -> list[ColumnMap]:
    """Return the presets whose columns a table of this format has, those that read the most columns alone.

    A preset whose tables have no header line is not recognised.
    """
    have = {name.lower() for name in columns}
    reads: dict[str, set[str]] = {}  # without the energy
    for one in presets():
        named = {name for key, item in one.columns.items() if key != "energy" for name in _columns_of(item)}
        if not one.header and one.format in ("", format_) and named <= have:
            reads[one.name] = named
    most = max(map(len, reads.values()), default=0)
    return [preset(name) for name, named in reads.items() if len(named) == most]


def _columns_of(item: MappedColumn) -> frozenset[str]:
    """Return the columns that an entry reads, in lower case."""
    return columns_in(item.expression) if item.expression else frozenset((item.column.lower(),))


def without_absent_energy(one: ColumnMap, columns: Iterable[str]) -> ColumnMap:
    """Return a map without its energy if it is a preset and the table lacks the columns of the energy."""
    item = one.columns.get("energy")
    if item is None or not one.dataset or _columns_of(item) <= {name.lower() for name in columns}:
        return one
    return one.replace(columns={key: value for key, value in one.columns.items() if key != "energy"})


def given_map(value: object) -> ColumnMap | None:
    """Return the column map that a user means by a value; None where it is something else.

    A value is the map, its document, its file, or the name of a preset.

    Raises
    ------
    ConfigError, FormatError
        for a document or file that is not a column map.
    """
    if isinstance(value, ColumnMap):
        return value
    if isinstance(value, Mapping):
        return _read(value, "column map")
    if not isinstance(value, str | Path):
        return None
    if str(value) in preset_names():
        return preset(str(value))
    if not str(value).endswith((".yaml", ".yml", ".json")):
        return None
    content, where = read_text(value), name_of(value)
    return _read(load_document(content, where), where, content)


def _read(document: Any, where: str, content: str = "") -> ColumnMap:
    """Read a document; a fault has its line and column in the text."""
    plain = "column map"
    try:
        return ColumnMap.read(document, plain).replace(where=where)
    except SimschedError as error:
        faults = [Fault.of(one, plain) for one in (error, *error.others)]
        first, *others = [one.error() for one in (located(faults, content, where) if content else faults)]
        first.others = tuple(others)
        raise first from None
