"""`Written`: the base of typed structs that are written as JSON, and the JSON Schemas of written types."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar, get_args, get_type_hints, is_typeddict

import msgspec
from msgspec import UNSET as UNSET  # noqa: PLC0414 (for those that declare)
from msgspec import UnsetType as UnsetType  # noqa: PLC0414

from simsched.declare.table import ENTRY, meanings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


T = TypeVar("T")


class Written(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of an answer.  A key that has its default is not written.

    >>> class Box(Written, frozen=True):
    ...     '''A box.
    ...
    ...     weight : kilograms.
    ...     '''
    ...     weight: float
    ...     colour: str | None = None
    >>> Box(weight=3).to_dict()
    {'weight': 3}
    """

    def replace(self, **changes: Any) -> Self:
        """Return the answer with other values of some fields."""
        return msgspec.structs.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON data."""
        found: dict[str, Any] = written(self)
        return found


def written(value: Any) -> Any:
    """Return a value as JSON has it: classes are objects, and numbers that are not finite are null."""
    return _finite(msgspec.to_builtins(value, enc_hook=lambda scalar: scalar.item()))  # of NumPy


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def rounded(value: Any, digits: int = 9, *, whole: bool = False) -> Any:
    """Return data for JSON: numbers of so many digits, and None (null) for those that are not finite.

    If `whole`, numbers without a fraction are whole, and have all of their digits.
    """
    if isinstance(value, dict):
        return {key: rounded(item, digits, whole=whole) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits, whole=whole) for item in value]
    if not isinstance(value, float):
        return value
    if not isfinite(value):
        return None
    short = value if whole and value.is_integer() else float(f"{value:.{digits}g}")
    return int(short) if whole and short.is_integer() else short


def json_text(value: Any, indent: int | None = 2, *, ensure_ascii: bool = True) -> str:
    """Return `written` of a value as text."""
    data = written(value)
    text = json.dumps(data, ensure_ascii=ensure_ascii)
    try:
        return text if indent is None else msgspec.json.format(text, indent=indent)
    except (msgspec.DecodeError, UnicodeEncodeError):  # half of a surrogate pair, from the name of a file
        return json.dumps(data, indent=indent, ensure_ascii=ensure_ascii)


def json_of(**schema: Any) -> msgspec.Meta:
    """Return the annotation of values with more rules than those of their type."""
    return msgspec.Meta(extra_json_schema=schema)


def meaning(text: str) -> msgspec.Meta:
    """Return the annotation of a key that several answers inherit, whose docstrings lack its meaning."""
    return msgspec.Meta(description=text)


if TYPE_CHECKING:
    OrNull = float
else:
    OrNull = float | None
"""A number that is written as null if it is not finite."""


Row = dict[str, str | float | bool | None]
"""A row of a table whose columns depend on the question; numbers that are not known are null."""


def row_of(columns: Sequence[str], more: Sequence[str] | None = ()) -> msgspec.Meta:
    """Return the annotation of rows with these columns, and perhaps with `more` (None: any)."""
    names = {} if more is None else {"propertyNames": {"enum": [*columns, *more]}}
    return json_of(required=list(columns), **names)


def extended(name: str, kind: type, without: Sequence[str] = (), **keys: Any) -> Any:
    """Return the type of objects that have the fields of a class, and other keys or keys of another type."""
    hints = get_type_hints(kind, include_extras=True)
    made: Any = TypedDict(name, {key: hint for key, hint in {**hints, **keys}.items() if key not in without})  # type: ignore[misc]
    made.__doc__ = kind.__doc__
    return made


class WrittenKeys(TypedDict):
    """An object with the keys that a subclass declares."""


def taken(kind: type[T], source: object, /, **others: Any) -> T:
    """Return an object of a typed dictionary: its keys from `others`, or else attributes of a value.

    A key whose value is `UNSET` is left out.

    >>> class Ends(TypedDict):
    ...     first: int
    ...     numerator: int
    >>> taken(Ends, 7, first=3)
    {'first': 3, 'numerator': 7}
    """
    values = {key: others[key] if key in others else getattr(source, key) for key in kind.__annotations__}
    found: Any = {key: value for key, value in values.items() if value is not UNSET}
    return found  # type: ignore[no-any-return]


def answer_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of the values of a type: classes, typed dictionaries and lists of them.

    An object has no keys but the declared ones.  The meaning of a key is its entry in the docstring.
    """
    (found,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    structs = (one for one in _classes(kind, {}) if issubclass(one, msgspec.Struct))
    omitting = {one.__name__ for one in structs if one.__struct_config__.omit_defaults}
    for name, part in parts.items():
        if "properties" in part:
            _close(part, omits=name in omitting)
    return {**found, "$defs": parts} if parts else found


def _close(part: dict[str, Any], *, omits: bool) -> None:
    """Complete the schema of an object; `omits`: keys with their defaults are not written."""
    about = part.pop("description", "").replace("`", "")
    keys, texts = part["properties"], meanings(about)
    if about and not ENTRY.match(first := " ".join(about.split("\n\n")[0].split())):
        part["description"] = first
    for key, value in keys.items():
        if "default" not in value:
            continue
        if value.pop("default") is None and omits:
            alone = [one for one in value["anyOf"] if one != {"type": "null"}]
            keys[key] = {**value, "anyOf": alone} if len(alone) > 1 else alone[0]
        if not omits:
            part["required"] = [name for name in keys if name == key or name in part.get("required", ())]
    for key, text in texts.items():
        if key in keys:
            keys[key] = {**keys[key], "description": text}
    part["additionalProperties"] = False


def _classes(kind: Any, seen: dict[Any, None]) -> Mapping[Any, None]:
    """Add the classes of a type to `seen`, also those of their fields."""
    ours = isinstance(kind, type) and (is_typeddict(kind) or hasattr(kind, "__match_args__"))
    if ours and kind not in seen:
        seen[kind] = None
        for hint in get_type_hints(kind, include_extras=True).values():
            _classes(hint, seen)
    for inside in get_args(kind):
        _classes(inside, seen)
    return seen
