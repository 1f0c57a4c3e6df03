"""`Declared`: the base of typed structs that are tables of documents.

A field is a key of the table (``kill_grace`` is ``kill-grace``).  Its annotation has its kind, and the entry
``kill_grace : …`` of the docstring of the class its meaning, with the source in parentheses at the end.  From
the declaration follow the reader, the writer, the JSON Schema, options of the command line and rows of lists.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from types import NoneType
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeGuard, get_args, get_origin

import msgspec
from msgspec import field as field  # noqa: PLC0414 (for those that declare)

from simsched.declare.kinds import HIDDEN, ValueKind, kind_of, or_null, quoted, raise_all
from simsched.errors import ConfigError, SimschedError, did_you_mean


class DeclaredField(NamedTuple):
    """One declared field: its name in Python and in documents, its kind, its default and its meaning."""

    name: str
    key: str
    kind: ValueKind
    default: Any
    text: str

    @property
    def required(self) -> bool:
        """Whether a table must have the key."""
        return self.default is msgspec.NODEFAULT


class Declared(msgspec.Struct, frozen=True, rename="kebab"):
    """A table of a document.

    >>> class Box(Declared, frozen=True):
    ...     '''A box.
    ...
    ...     most_weight : kilograms that it holds.
    ...     '''
    ...     most_weight: int = 1
    >>> Box.read({"most-weight": 3}, "box").to_dict()
    {'most-weight': 3}
    >>> Box.read({"most_wieght": 3}, "box")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    simsched.errors.ConfigError: box: unknown key 'most_wieght'; did you mean most-weight? (expected ...
    """

    complete: ClassVar[bool] = False
    """Whether `to_dict` has keys that have their defaults, but for empty ones."""

    join: ClassVar[str] = "."
    """What is between the place of the table and a key: ``": "`` in the table of a whole file."""

    nullable: ClassVar[bool] = True
    """Whether null for a key whose default is None means that it is not given."""

    @classmethod
    def read(cls, value: Any, where: str, base: Self | None = None) -> Self:
        """Return a table of a document as a value; a value is returned as it is.

        `base` has the values of keys that the table does not have, in place of the defaults.

        Raises
        ------
        ConfigError, FormatError
            for the first fault, which has the other faults of the table as its `others`.
        """
        if isinstance(value, cls):
            return value
        known = fields_of(cls)
        found = cls.given(value, where, complete=base is None)
        given = {known[key].name: item for key, item in found.items()}
        if "where" in cls.__struct_fields__:
            given["where"] = where
        made = cls(**given) if base is None else msgspec.structs.replace(base, **given)
        return made.checked(where)

    @classmethod
    def given(cls, value: Any, where: str, *, complete: bool = True) -> dict[str, Any]:
        """Return key → value of the keys that a table of a document has; errors as `read`.

        complete : whether the keys without a default have to be there.
        """
        found = read_keys(value, where, kinds_of(cls), cls.join)
        for one in _required(cls) if complete else ():
            if one.key not in found:
                raise ConfigError(f"the key {one.key!r} is missing", where=where, expected=_meaning(one))
        return found

    def checked(self, where: str) -> Self:  # noqa: ARG002 (subclasses use it)
        """Return the value; ConfigError for keys that contradict each other; `where`: its place."""
        return self

    def replace(self, **changes: Any) -> Self:
        """Return the value with other values of some fields."""
        return msgspec.structs.replace(self, **changes)

    def asdict(self) -> dict[str, Any]:
        """Return name → value of all fields, also of hidden ones."""
        return msgspec.structs.asdict(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a document has it, without the keys that have their defaults."""
        values = [(one, getattr(self, one.name)) for one in fields_of(type(self)).values()]
        return {
            one.key: one.kind.write(value)
            for one, value in values
            if value != one.default or (self.complete and value not in (None, (), {}))
        }

    @classmethod
    def entries(cls) -> dict[str, tuple[Any, str]]:
        """Return name → type and meaning of the fields that have a meaning, also of hidden ones."""
        types = types_of(cls)
        return {name: (types[name], text) for name, text in texts_of(cls).items() if name in types}

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the table."""
        required = [key for key, one in fields_of(cls).items() if one.required]
        keys = {key: (one.kind, one.text) for key, one in fields_of(cls).items()}
        return schema_of(keys) | {"required": required}  # an unknown key is reported before a missing one


def inherited(value: Mapping[str, Any], common: type[Declared], *tables: str) -> dict[str, Any]:
    """Return a table whose inner `tables` have its keys of `common`, unless they have their own."""
    given = {key: item for key, item in value.items() if key in fields_of(common)}
    return {
        key: {name: {**given, **own} if isinstance(own, Mapping) else own for name, own in item.items()}
        if key in tables and isinstance(item, Mapping)
        else item
        for key, item in value.items()
    }


def schema_of(keys: Mapping[str, tuple[ValueKind, str]]) -> dict[str, Any]:
    """Return the JSON Schema of a table of keys with their kinds and meanings."""
    kinds = {key: or_null(kind) if kind.optional else kind for key, (kind, _) in keys.items()}
    texts = {key: {"description": text} if text else {} for key, (_, text) in keys.items()}
    found = {key: {**kind.schema, **texts[key]} for key, kind in kinds.items()}
    return {"type": "object", "additionalProperties": False, "properties": found}


def table_of(keys: Mapping[str, ValueKind]) -> ValueKind:
    """Return the kind of tables with these keys, which are read as a dictionary."""
    return ValueKind(
        partial(read_keys, kinds=keys), lambda: schema_of({key: (kind, "") for key, kind in keys.items()})
    )


def read_keys(value: Any, where: str, kinds: Mapping[str, ValueKind], join: str = ".") -> dict[str, Any]:
    """Return the values of a table by their keys, which may be spelt with ``_``.

    `join` is between the place of the table and a key.

    Raises
    ------
    ConfigError, FormatError
        for the first fault, which has the others as its `others`: unknown keys, then values.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(f"{quoted(value)} is not a table", where=where, expected=", ".join(kinds))
    given: dict[str, str] = {}
    faults: list[SimschedError] = []
    for key, item in value.items():
        name = key if key in kinds else _key(key, kinds)
        kind = kinds.get(name)
        if item is None and kind is not None and kind.optional:
            continue
        if kind is None:
            homes = [repr(name) for name, kind in kinds.items() if key in kind.schema.get("properties", {})]
            hint = f"; it belongs under {' or '.join(homes)}" if homes else did_you_mean(str(key), kinds)
            error = ConfigError(f"unknown key {key!r}{hint}", where=where, expected=", ".join(kinds))
        elif name in given:
            error = ConfigError(
                f"the key {name!r} is given twice", where=where, expected="one spelling of it"
            )
        else:
            given[name] = key
            continue
        error.key = str(key)
        faults.append(error)
    place = f"{where}{join}" if where else ""
    found = {}
    for name in kinds:
        if name in given:
            key = given[name]
            try:
                found[name] = kinds[name].read(value[key], f"{place}{key}")
            except SimschedError as error:
                faults += [error, *error.others]
    raise_all(faults)
    return found


def _meaning(one: DeclaredField) -> str | None:
    """Return the meaning of a key, if it is more than the key."""
    return one.text if one.text not in ("", f"the {one.key}") else None


def _key(key: object, kinds: Iterable[str]) -> str:
    name = str(key).replace("_", "-")
    return name if name in kinds else str(key)


def is_declared(maker: object) -> TypeGuard[type[Declared]]:
    """Whether something is a class of declared tables."""
    return isinstance(maker, type) and issubclass(maker, Declared)


@cache
def fields_of(cls: type[Declared]) -> dict[str, DeclaredField]:
    """Return key → field of a declared struct, without the hidden fields."""
    texts = texts_of(cls)
    found = {}
    for one in msgspec.structs.fields(cls):
        kind = kind_of(one.type) if one.name != "where" else HIDDEN
        if kind is not HIDDEN:
            default = one.default
            if one.default_factory is not msgspec.NODEFAULT:
                default = one.default_factory()
            kind = replace(kind, optional=default is None and cls.nullable)
            if default is not None and NoneType in get_args(_type_of(one.type)):
                kind = or_null(kind)
            found[one.encode_name] = DeclaredField(
                one.name, one.encode_name, kind, default, texts.get(one.name, "")
            )
    return found


@cache
def kinds_of(cls: type[Declared]) -> dict[str, ValueKind]:
    """Return key → kind of the fields of a declared struct, without the hidden fields."""
    return {key: one.kind for key, one in fields_of(cls).items()}


@cache
def _required(cls: type[Declared]) -> tuple[DeclaredField, ...]:
    return tuple(one for one in fields_of(cls).values() if one.required)


def given_in(cls: type[Declared]) -> ValueKind:
    """Return the kind of tables of a declared struct that are read as a dictionary of their keys."""
    return ValueKind(cls.given, cls.schema)


@cache
def types_of(cls: type[msgspec.Struct]) -> dict[str, Any]:
    """Return name → type of the fields of a struct, without their kinds."""
    return {one.name: _type_of(one.type) for one in msgspec.structs.fields(cls)}


def _type_of(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


ENTRY = re.compile(r"^(\w+(?:, \w+)*) : (.*(?:\n +.*)*)", re.MULTILINE)


def texts_of(cls: type) -> dict[str, str]:
    """Return name → meaning of the entries ``name, name : meaning`` of the docstrings of a class."""
    return meanings("\n".join(inspect.cleandoc(base.__doc__ or "") for base in reversed(cls.__mro__)))


def meanings(text: str) -> dict[str, str]:
    """Return name → meaning of the entries ``name, name : meaning`` of a docstring."""
    return {
        name: " ".join(meaning.replace("``", "").split()).removesuffix(".")
        for names, meaning in ENTRY.findall(inspect.cleandoc(text))
        for name in names.split(", ")
    }
