"""RFC 31 job constraints: the values, their JSON, and the RFC 35 text that they are shown as.

A constraint is a tree of immutable values.  The points that RFC 31 leaves open (readings R4, R5) are settled
when the tree is built: empty forms become `ANY` or `NONE`, a ``^property`` becomes `Not` of it, and `not` of
several values is `not` of all of them.  An evaluation therefore has no such cases.
An empty hostlist or idset as a *value* is refused: it most likely comes from a variable that was not set.
The text of RFC 35 is read by `constraint_text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_property

MAX_LEVELS = 100
"""The most levels of nested operators."""


class _TextForm:
    """Gives a constraint its RFC 35 text as its string."""

    __slots__ = ()

    def __str__(self) -> str:
        return format_constraint(self)  # type: ignore[arg-type]  # every one of these is a Constraint


@dataclass(frozen=True, slots=True)
class Properties(_TextForm):
    """The target has every one of these properties; names carry no ``^``."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hosts(_TextForm):
    """The target's host is one of these."""

    hostlist: Hostlist


@dataclass(frozen=True, slots=True)
class Ranks(_TextForm):
    """The target's rank is one of these."""

    idset: Idset


@dataclass(frozen=True, slots=True)
class And(_TextForm):
    """Every argument holds."""

    args: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Or(_TextForm):
    """At least one argument holds; without arguments it matches everything, as `And` does (R4)."""

    args: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Not(_TextForm):
    """The argument does not hold."""

    arg: Constraint


@dataclass(frozen=True, slots=True)
class Always(_TextForm):
    """Matches everything (`value` true: `ANY`) or nothing (`NONE`)."""

    value: bool


Constraint: TypeAlias = Properties | Hosts | Ranks | And | Or | Not | Always

ANY = Always(True)
NONE = Always(False)


def kinds_of_units(constraint: Constraint | None, type_: str) -> frozenset[str]:
    """Return the kinds of units of a type that a constraint restricts a request to; empty: any.

    A property ``a100@gpu`` selects targets with gpus of the kind ``a100``, and of these gpus only.

    >>> from simsched.formats.rfc.constraint_text import parse_constraint
    >>> sorted(kinds_of_units(parse_constraint("ib & (a100@gpu | v100@gpu)"), "gpu"))
    ['a100', 'v100']
    >>> kinds_of_units(parse_constraint("-a100@gpu"), "gpu"), kinds_of_units(None, "gpu")
    (frozenset(), frozenset())
    """
    match constraint:
        case Properties():
            return frozenset(
                name.removesuffix(f"@{type_}") for name in constraint.names if name.endswith(f"@{type_}")
            )
        case And():
            return frozenset().union(*(kinds_of_units(part, type_) for part in constraint.args))
        case Or():
            parts = [kinds_of_units(part, type_) for part in constraint.args]
            return frozenset().union(*parts) if all(parts) else frozenset()
    return frozenset()


def gpu_type_of(constraint: Constraint | None) -> str | None:
    """Return the one type of gpu that a constraint requires; None for any, and for several."""
    kinds = kinds_of_units(constraint, "gpu")
    return next(iter(kinds)) if len(kinds) == 1 else None


# ---------------------------------------------------------------- JSON, RFC 31


def from_json(value: Any, where: str | None = None) -> Constraint:
    """Return the constraint of an RFC 31 object.

    Raises `FormatError` for an unknown operator or a value of the wrong kind, with its JSON path.

    >>> from_json({"properties": ["ssd", "^slow"]})
    And(args=(Properties(names=('ssd',)), Not(arg=Properties(names=('slow',)))))
    >>> from_json({"not": []}) is NONE, from_json({}) is ANY
    (True, True)
    """
    return _from_json(value, where or "constraint", 1)


def _from_json(value: Any, where: str, level: int) -> Constraint:
    if level > MAX_LEVELS:
        raise LimitError(f"constraints are nested deeper than {MAX_LEVELS} levels", where=where)
    if not isinstance(value, Mapping):
        raise FormatError(
            f"{_kind(value)} is not a constraint", where=where, expected='an object {"operator": [values]}'
        )
    if not value:
        return ANY
    if len(value) > 1:
        raise FormatError(
            f"one object has {len(value)} operators", where=where, expected='one; join several with "and"'
        )
    ((operator, values),) = value.items()
    read = OPERATORS.get(operator)
    if read is None:
        raise FormatError(
            f"unknown operator {operator!r}", where=where, expected="one of " + ", ".join(OPERATORS)
        )
    if not isinstance(values, (list, tuple)):
        raise FormatError(f"{_kind(values)} is not a list", where=f"{where}.{operator}", expected="a list")
    return read(values, f"{where}.{operator}", level)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null", bool: "a boolean"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else repr(value))


def _strings(values: Any, where: str) -> Iterator[tuple[str, str]]:
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise FormatError(f"{_kind(value)} is not a string", where=f"{where}[{i}]", expected="a string")
        yield value, f"{where}[{i}]"


def _properties(values: Any, where: str, _level: int) -> Constraint:
    wanted: list[str] = []
    refused: list[Constraint] = []
    for name, place in _strings(values, where):
        if name in {"", "^"} or name.startswith("^^"):
            raise FormatError(f"{name!r} is not a property", where=place, expected="NAME or ^NAME")
        check_property(name.removeprefix("^"), place)
        if name[0] == "^":
            refused.append(Not(Properties((name[1:],))))
        else:
            wanted.append(name)
    parts = ([Properties(tuple(wanted))] if wanted else []) + refused
    return _joined(And, parts)


def _joined(join: Callable[[tuple[Constraint, ...]], Constraint], parts: list[Any]) -> Constraint:
    if not parts:
        return ANY
    return parts[0] if len(parts) == 1 else join(tuple(parts))


def _hosts(values: Any, where: str, _level: int) -> Constraint:
    if not values:
        return ANY
    parts = []
    for text, place in _strings(values, where):
        parts.append(Hostlist.parse(text, where=place))
        if not parts[-1]:
            raise FormatError("the hostlist is empty", where=place, expected="at least one host")
    if len(parts) == 1:
        return Hosts(parts[0])
    return Hosts(Hostlist.parse([str(part) for part in parts], where=where))


def _ranks(values: Any, where: str, _level: int) -> Constraint:
    if not values:
        return ANY
    ids = Idset()
    for i, value in enumerate(values):
        place = f"{where}[{i}]"
        text = str(value) if type(value) is int else value
        if not isinstance(text, str):
            raise FormatError(f"{_kind(value)} is not an idset", where=place, expected="an idset")
        more = Idset.parse(text, where=place)
        if not more:
            raise FormatError("the idset is empty", where=place, expected="at least one rank")
        ids |= more
    return Ranks(ids)


def _arguments(values: Any, where: str, level: int) -> list[Constraint]:
    return [_from_json(value, f"{where}[{i}]", level + 1) for i, value in enumerate(values)]


def _and(values: Any, where: str, level: int) -> Constraint:
    return _joined(And, _arguments(values, where, level))


def _or(values: Any, where: str, level: int) -> Constraint:
    return _joined(Or, _arguments(values, where, level))


def _not(values: Any, where: str, level: int) -> Constraint:
    if not values:
        return NONE
    return Not(_joined(And, _arguments(values, where, level)))


OPERATORS: dict[str, Callable[[Any, str, int], Constraint]] = {
    "properties": _properties,
    "hostlist": _hosts,
    "ranks": _ranks,
    "and": _and,
    "or": _or,
    "not": _not,
}
"""The operators of RFC 31 and the functions that read their values."""


def to_json(constraint: Constraint) -> dict[str, Any]:
    """Return the constraint as an RFC 31 object.

    >>> to_json(from_json({"properties": ["a", "^b"]}))
    {'and': [{'properties': ['a']}, {'not': [{'properties': ['b']}]}]}
    """
    match constraint:
        case Properties(names):
            return {"properties": list(names)}
        case Hosts(hostlist):
            return {"hostlist": [str(hostlist)]}
        case Ranks(idset):
            return {"ranks": [str(idset)]}
        case And(args):
            return {"and": [to_json(arg) for arg in args]}
        case Or(args):
            return {"or": [to_json(arg) for arg in args]}
        case Not(arg):
            return {"not": [to_json(arg)]}
    return {} if constraint.value else {"not": []}


# ---------------------------------------------------------------- text, RFC 35

_OR, _AND, _NOT, _TERM = range(4)
_PLAIN = re.compile(r"(?![-^])[^\s()&|'\":]+\Z")


def format_constraint(constraint: Constraint) -> str:
    """Return the RFC 35 text of a constraint with no more parentheses than it needs.

    >>> format_constraint(from_json({"and": [{"properties": ["ssd"]}, {"not": [{"ranks": ["0-3"]}]}]}))
    'ssd and not rank:0-3'
    """
    return _format(constraint)[0]


def _format(constraint: Constraint) -> tuple[str, int]:
    """Return the text and the precedence of its outermost operator."""
    match constraint:
        case Properties(names):
            return _chain([(_operand("properties", name), _TERM) for name in names], " and ", _AND)
        case Hosts(hostlist):
            return f"host:{_quote(str(hostlist))}", _TERM
        case Ranks(idset):
            return f"rank:{_quote(str(idset))}", _TERM
        case And(args):
            flat = [part for arg in args for part in _names_apart(arg)]
            return _chain([_format(arg) for arg in flat], " and ", _AND)
        case Or(args):
            return _chain([_format(arg) for arg in args], " or ", _OR)
        case Not(arg):
            return f"not {_wrapped(_format(arg), _NOT)}", _NOT
    return ("()", _TERM) if constraint.value else ("not ()", _NOT)


def _names_apart(constraint: Constraint) -> list[Constraint]:
    if isinstance(constraint, Properties):
        return [Properties((name,)) for name in constraint.names] or [ANY]
    return [constraint]


def _chain(parts: list[tuple[str, int]], joint: str, binding: int) -> tuple[str, int]:
    if not parts:
        return "()", _TERM
    if len(parts) == 1:
        return parts[0]
    return joint.join(_wrapped(part, binding + 1) for part in parts), binding


def _wrapped(part: tuple[str, int], binding: int) -> str:
    return part[0] if part[1] >= binding else f"({part[0]})"


def _operand(operator: str, name: str) -> str:
    if _PLAIN.match(name) and name not in {"and", "or", "not"}:
        return name
    return f"{operator}:{_quote(name)}"


def _quote(text: str) -> str:
    if re.fullmatch(r"[^\s()&|'\"]+", text):
        return text
    quote = "'" if "'" not in text else '"'
    return f"{quote}{text.replace(quote, quote * 2)}{quote}"
