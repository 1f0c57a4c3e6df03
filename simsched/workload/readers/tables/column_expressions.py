"""Expressions in SQL within column maps: exactly one, of columns and functions, without a query in it."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, did_you_mean, first_line

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
    """Return the syntax tree of one expression."""
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
