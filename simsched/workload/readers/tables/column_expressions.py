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


@cache
def columns_in(text: str, where: str = "expression") -> frozenset[str]:
    """Return the columns that an expression names, in lower case.

    Raises
    ------
    ConfigError
        for a text that is not one expression, and for a query within it.

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
