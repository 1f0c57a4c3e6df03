"""Kinds of declared values: how a value of a document is read, written and described by a JSON Schema.

A field of a declared struct has the kind of its annotation (``bool``, ``Literal["queue", "qos"]`` …), or the
one that ``Annotated[type, kind]`` names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from math import inf
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from simsched.errors import ConfigError, SimschedError, clip, did_you_mean, path_step

T = TypeVar("T")

MOST = 2**53
"""Numbers of a document are less than this, unless their kind states another bound."""


@dataclass(frozen=True, eq=False)
class ValueKind:
    """The values that a field accepts.

    read : value of a document and its place → value; raises a `SimschedError` for one that is not valid.
    described : the JSON Schema of the values of a document, or a function that makes it when it is asked for.
    write : value → value of a document.
    optional : whether null in a table means that the key is not given.
    flag : how the value is given on the command line: its ``metavar``, short names, keywords of argparse.
    """

    read: Callable[[Any, str], Any]
    described: Mapping[str, Any] | Callable[[], Mapping[str, Any]] = field(default_factory=dict)
    write: Callable[[Any], Any] = lambda value: value
    optional: bool = False
    flag: Mapping[str, Any] = field(default_factory=dict)

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of the values of a document."""
        return self.described() if callable(self.described) else self.described

    @property
    def choices(self) -> tuple[str, ...]:
        """The accepted words, if there is a fixed number of them."""
        return tuple(self.schema.get("enum", ()))


ANYTHING = ValueKind(lambda value, _: value)
"""The kind of keys that others read."""

HIDDEN = ValueKind(lambda value, _: value)
"""The kind of a field that no document has, such as the place of a table."""


def unread(**schema: Any) -> ValueKind:
    """Return the kind of keys that others read, with the JSON Schema of their values."""
    return replace(ANYTHING, described=schema)


def quoted(value: object) -> str:
    """Return a value as a message quotes it.

    >>> quoted("yes"), quoted(None), quoted({}), quoted(True)
    ("'yes'", 'null', 'an object', 'true')
    """
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and abs(value) > MOST:
        return "a huge number"
    return clip(str(value) if isinstance(value, date) else repr(value))


def _is_not(value: object, what: str, where: str, expected: str | None) -> ConfigError:
    """Return the fault of a value that is not `what`, with the expectation where that says more."""
    return ConfigError(
        f"{quoted(value)} is not {what}", where=where, expected=expected if expected != what else None
    )


MOST_FAULTS = 20
"""The most faults of one document that are looked for."""


def in_turn(reads: Iterable[Callable[[], T]]) -> list[T]:
    """Return the results of functions; raise the first of their errors, which has the others with it.

    Raises
    ------
    SimschedError
        with the different errors of the other functions as its `others`, up to `MOST_FAULTS`.
    """
    found: list[T] = []
    faults: list[SimschedError] = []
    for read in reads:
        try:
            found.append(read())
        except SimschedError as error:
            faults += [error, *error.others]
            if len(faults) >= MOST_FAULTS:  # a fault of each line of a long file says no more
                break
    raise_all(faults)
    return found


def raise_all(faults: Iterable[SimschedError]) -> None:
    """Raise the first of some errors, if there is one, with the other ones that differ as its `others`."""
    if different := {str(one): one for one in faults}:
        first, *others = different.values()
        first.others = tuple(others)
        raise first


def _bound(value: float) -> str:
    return f"{int(value) if value % 1 == 0 else value:,}"


def number(
    least: float = -inf,
    most: float = MOST,
    what: str = "",
    expected: str | None = None,
    *,
    whole: bool = False,
) -> ValueKind:
    """Return the kind of numbers from `least` up to and including `most`; `what` is their name."""
    name = what or ("a whole number" if whole else "a number")
    low, high = _bound(least), _bound(most)
    if most != MOST:
        span = f"from {low} to {high}" if least > -inf else f"up to {high}"
    else:
        span = f"of {low} or more" if least > -inf else ""

    def read(value: Any, where: str) -> Any:
        known = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
        if not known or not least <= value <= most:
            wanted = expected or f"{name} {span}".rstrip()
            if what or not known:
                raise _is_not(value, name, where, wanted)
            raise ConfigError(f"{quoted(value)} is out of range", where=where, expected=wanted)
        return int(value) if whole else value

    bounds = {"minimum": least, "maximum": most}
    schema = {"type": "integer" if whole else "number"}
    return ValueKind(
        read, schema | {key: bound for key, bound in bounds.items() if abs(bound) not in (MOST, inf)}
    )


def whole(least: int = 0, most: int = MOST, what: str = "", expected: str | None = None) -> ValueKind:
    """Return the kind of whole numbers from `least` up to and including `most`."""
    return number(least, most, what, expected, whole=True)


def choice(*words: str) -> ValueKind:
    """Return the kind of one of some words."""

    def read(value: Any, where: str) -> str:
        if not isinstance(value, str) or value not in words:
            expected = " or ".join(words) if len(words) == 2 else ", ".join(words)
            hint = did_you_mean(value, words) if isinstance(value, str) else ""
            raise ConfigError(f"unknown value {quoted(value)}{hint}", where=where, expected=expected)
        return value

    return ValueKind(read, {"enum": list(words)})


def _switch(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _is_not(value, "true or false", where, None)
    return value


SWITCH = ValueKind(_switch, {"type": "boolean"})


def text(what: str = "", expected: str = "a text", *, empty: bool = False) -> ValueKind:
    """Return the kind of texts, by default names of at least one character."""
    noun = what or ("a text" if empty else "a name")

    def read(value: Any, where: str) -> str:
        if not isinstance(value, str) or not (value or empty):
            raise _is_not(value, noun, where, expected)
        return value

    return ValueKind(read, {"type": "string"} if empty else {"type": "string", "minLength": 1})


_NAME = text()


def matching(pattern: str, what: str, expected: str = "") -> ValueKind:
    """Return the kind of texts in which a pattern occurs."""
    # in Python, $ is also before a line end at the end of the text
    form = re.compile(f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern)

    def read(value: Any, where: str) -> str:
        if not isinstance(value, str) or not form.search(value):
            raise _is_not(value, what, where, expected)
        return value

    return ValueKind(read, {"type": "string", "pattern": pattern, "description": expected or what})


def words(what: str) -> ValueKind:
    """Return the kind of texts that are not blank."""
    return matching("\\S", what)


_TYPES = {str: "string", int: "integer", float: "number", dict: "object"}


def typed(
    what: str,
    *types: type,
    expected: str | None = None,
    empty: bool = True,
    make: Callable[[Any], Any] = lambda value: value,
) -> ValueKind:
    """Return the kind of values of some types, of which `make` makes others; no boolean is a number."""

    def read(value: Any, where: str) -> Any:
        if not isinstance(value, types) or isinstance(value, bool) or (value == "" and not empty):
            raise _is_not(value, what, where, expected)
        return make(value)

    return ValueKind(read, {"type": [_TYPES[one] for one in types]} | ({} if empty else {"minLength": 1}))


def scalar(what: str) -> ValueKind:
    """Return the kind of texts and numbers."""
    return typed(what, str, float, int, expected="a text or a number")


def names(
    what: str = "a name", expected: str = "a text, or a list of texts", *, empty: bool = False
) -> ValueKind:
    """Return the kind of a name or a list of different names, which are read as a tuple."""

    def read(value: Any, where: str) -> tuple[str, ...]:
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, list | tuple) or not (given or empty):
            raise _is_not(value, what, where, expected)
        if given is not value:
            return (_NAME.read(value, where),)
        each = [partial(_NAME.read, one, f"{where}[{at}]") for at, one in enumerate(given)]
        return tuple(dict.fromkeys(in_turn(each)))

    one = {"type": "string", "minLength": 1}
    many = {"type": "array", "items": one} | ({} if empty else {"minItems": 1})
    return ValueKind(read, {"oneOf": [one, many]}, list)


def listed(
    item: ValueKind, what: str = "a list of tables", expected: str | None = None, *, one_alone: bool = True
) -> ValueKind:
    """Return the kind of a list of values of one kind, or of `one_alone` that is a table."""

    def read(value: Any, where: str) -> tuple[Any, ...]:
        given = value if isinstance(value, list | tuple) else [value]
        if given is not value and (not one_alone or isinstance(value, str | int | float | None)):
            raise _is_not(value, what, where, expected)
        each = [partial(item.read, one, f"{where}[{at}]") for at, one in enumerate(given)]
        return tuple(in_turn(each))

    def write(values: Any) -> list[Any]:
        return [item.write(one) for one in values]

    return ValueKind(read, lambda: {"type": "array", "items": item.schema}, write)


def by_name(item: ValueKind, expected: str = "a table of names") -> ValueKind:
    """Return the kind of a table from names to values of one kind."""

    def read(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _is_not(value, "a table", where, expected)
        each = [partial(item.read, one, f"{where}{path_step(str(name))}") for name, one in value.items()]
        return dict(zip(map(str, value), in_turn(each), strict=True))

    def write(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: item.write(one) for name, one in values.items()}

    return ValueKind(read, lambda: {"type": "object", "additionalProperties": item.schema}, write)


def sized(kind: ValueKind, least: int = 1, most: int = MOST, *, different: bool = False) -> ValueKind:
    """Return the kind of the lists or tables of a kind that have `least` to `most` items.

    different : whether no item may occur twice.
    """

    def read(value: Any, where: str) -> Any:
        found = kind.read(value, where)
        word = "key" if isinstance(found, Mapping) else "item"
        if not least <= len(found) <= most:
            bound = f"at least {least:,}" if len(found) < least else f"at most {most:,}"
            text = f"the number of {word}s is {len(found):,}"
            raise ConfigError(text, where=where, expected=f"{bound} {word}{'s' * (bound[-2:] != ' 1')}")
        if different and len(set(found)) < len(found):
            raise ConfigError("an item of the list occurs twice", where=where, expected="each item once")
        return found

    def described() -> dict[str, Any]:
        noun = "Properties" if kind.schema["type"] == "object" else "Items"
        rules = {f"min{noun}": least, f"max{noun}": most, "uniqueItems": different}
        return {**kind.schema, **{key: bound for key, bound in rules.items() if 0 < bound < MOST}}

    return replace(kind, read=read, described=described)


def or_null(kind: ValueKind, null: Any = None) -> ValueKind:
    """Return the kind of the same values or null, which means the value `null`."""
    return replace(
        kind,
        read=lambda value, where: null if value is None else kind.read(value, where),
        write=lambda value: None if value is None else kind.write(value),
        described=lambda: {"anyOf": [kind.schema, {"type": "null"}]} if kind.schema else {},
    )


_PLAIN = {bool: SWITCH, int: whole(), float: number(), str: text(), Any: ANYTHING}


def kind_of(hint: Any) -> ValueKind:
    """Return the kind of an annotation; TypeError for one that has none.

    >>> kind_of(Literal["up", "down"]).choices
    ('up', 'down')
    """
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind = next((kind for kind in inside[1:] if isinstance(kind, ValueKind)), None)
        if kind is not None and (not kind.flag or kind.schema):
            return kind
        return replace(kind_of(inside[0]), flag=kind.flag if kind else {})
    if origin is Literal:
        return choice(*inside)
    if origin in (Union, UnionType):
        return kind_of(next(one for one in inside if one is not NoneType))
    if origin is tuple and inside[1:] == (...,):
        return names() if inside[0] is str else listed(kind_of(inside[0]))
    if origin in (dict, Mapping):
        return by_name(kind_of(inside[1]))
    if hasattr(hint, "read") and hasattr(hint, "schema"):  # a declared struct
        return ValueKind(hint.read, hint.schema, lambda value: value.to_dict())
    found = _PLAIN.get(hint)
    if found is None:
        raise TypeError(f"{hint!r} has no kind; use Annotated[…, kind]")
    return found
