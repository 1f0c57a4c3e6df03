"""RFC 31 job constraints: the values, their JSON, and their text (RFC 35).

A constraint is a tree of immutable values.  The points that RFC 31 leaves open (readings R4, R5) are settled
when the tree is built: empty forms become `ANY` or `NONE`, a ``^property`` becomes `Not` of it, and `not` of
several values is `not` of all of them.  An evaluation therefore has no such cases.
An empty hostlist or idset as a *value* is refused: it most likely comes from a variable that was not set.

The text of RFC 35::

    expr : expr expr | expr and expr | expr or expr | not expr | '(' expr ')' | '-' term | term
    and  : '&' | '&&' | 'and'          or : '|' | '||' | 'or'
    term : operator ':' operand | operand

`not` binds closest, then `and` (a blank between two terms is one), then `or`.  The default
operator is `properties`; `host`, `hosts` and `hostlist` are one operator, and so are `rank` and
`ranks`, `property` and `properties`.  Quotes of either kind keep an operand together, a doubled
quote is one quote.  Beyond RFC 35, ``()`` is the constraint that matches everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_property
from simsched.formats.rfc.predicates import PredicateParser, Token
from simsched.formats.text.diagnostics import CaretError, CaretLimitError, refuse_broken_text

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

    >>> from simsched.formats.rfc.constraint import parse_constraint
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


MAX_LENGTH = 100_000
"""The most characters of a constraint."""

ALIASES = {
    "properties": "properties",
    "property": "properties",
    "host": "hostlist",
    "hosts": "hostlist",
    "hostlist": "hostlist",
    "rank": "ranks",
    "ranks": "ranks",
}
"""The words before the colon of a term → the operator of RFC 31."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<sign>[()])
    | (?P<and>&&?)
    | (?P<or>\|\|?)
    | (?P<word>(?:and|or|not)(?=[\s()&|]|\Z))
    | (?P<minus>-)
    | (?P<term>(?:(?P<operator>[A-Za-z_][A-Za-z_0-9]*):)?
        (?:'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"]|"")*)"|(?P<bare>[^\s()&|'"]+))
        (?=[\s()&|]|\Z))
    )""",
    re.VERBOSE,
)
_EXPECTED = "a term such as ssd, host:node[0-3], rank:0-7 or not (…)"


def parse_constraint(text: str, where: str | None = None) -> Constraint:
    """Return the constraint of an RFC 35 text.  Raises `FormatError` with a caret under the fault.

    >>> parse_constraint("ssd and not rank:0-3")
    And(args=(Properties(names=('ssd',)), Not(arg=Ranks(idset=Idset('0-3')))))
    """
    try:
        return _parse(text)
    except CaretError as error:
        raise (error.at(where) if where else error) from None


@lru_cache(maxsize=256)
def _parse(text: str) -> Constraint:
    if len(text) > MAX_LENGTH:
        raise CaretLimitError(f"the constraint has {len(text)} characters", expected=f"at most {MAX_LENGTH}")
    refuse_broken_text(text)
    return _Parser(text, _tokens(text)).constraint()


def _tokens(text: str) -> list[Token]:
    tokens = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _stray(text, at)
        tokens.append(_token(found))
        at = found.end()
    return [*tokens, Token("end", end)]


def _token(found: re.Match[str]) -> Token:
    kind = found.lastgroup or "term"
    if found["term"] is not None:
        at = found.start("term")
        operand, operator = found["bare"], found["operator"]
        if found["single"] is not None:
            operand = found["single"].replace("''", "'")
        elif found["double"] is not None:
            operand = found["double"].replace('""', '"')
        elif operator is None and ":" in operand:
            operator, _, operand = operand.partition(":")
        return Token("term", at, operator, operand)
    at = found.start(kind)
    return Token(found[kind] if kind in {"sign", "word"} else {"minus": "-"}.get(kind, kind), at)


def _stray(text: str, at: int) -> CaretError:
    blank = re.match(r"\s*", text[at:])
    at += blank.end() if blank else 0
    for quote in "'\"":
        opened = text.find(quote, at)
        if opened >= 0 and text.count(quote, opened) % 2:
            return CaretError("unclosed quote", text=text, position=opened, expected=quote)
    return CaretError(f"{text[at]!r} is not allowed here", text=text, position=at, expected=_EXPECTED)


class _Parser(PredicateParser[Constraint]):
    """RFC 35's terms over the shared grammar, and its own rules: ``a b``, ``-term`` and ``()``."""

    adjacent_means_and = True
    max_levels = MAX_LEVELS

    def fail(self, message: str, expected: str | None, at: int) -> CaretError:
        return CaretError(message, text=self.text, position=at, expected=expected)

    def unexpected(self, expected: str) -> CaretError:
        token = self.token
        message = "the constraint ends" if token.kind == "end" else f"unexpected {token.kind!r}"
        return self.fail(message, expected, token.at)

    def too_deep(self) -> CaretError:
        message = f"constraints are nested deeper than {MAX_LEVELS} levels"
        return CaretLimitError(message, text=self.text, position=self.token.at)

    def constraint(self) -> Constraint:
        """Read the whole text."""
        if self.token.kind == "end":
            raise self.fail("the constraint is empty", _EXPECTED, 0)
        return self.whole("the end of the constraint")

    def all_of(self, parts: list[Constraint]) -> Constraint:
        return And(tuple(parts))

    def any_of(self, parts: list[Constraint]) -> Constraint:
        return Or(tuple(parts))

    def negated(self, part: Constraint) -> Constraint:
        return Not(part)

    def group(self, level: int) -> Constraint:
        if self.tokens[self.next + 1].kind == ")":
            self.next += 2
            return ANY
        return super().group(level)

    def term(self) -> Constraint:
        """Read term : '-' operand | operator ':' operand | operand."""
        token = self.token
        if token.kind == "-":
            after = self.tokens[self.next + 1]
            if after.kind != "term" or after.at != token.at + 1:
                raise self.fail("'-' is not directly before a term", "-NAME, or not (…)", token.at)
            self.next += 2
            return Not(self.leaf(after))
        if token.kind != "term":
            raise self.unexpected(_EXPECTED)
        self.next += 1
        return self.leaf(token)

    def leaf(self, token: Token) -> Constraint:
        """Return the constraint of one term."""
        operator = ALIASES.get("properties" if token.operator is None else token.operator)
        if operator is None:
            known = "properties, host or rank; a name with a colon is written properties:NAME"
            raise self.fail(f"unknown operator {token.operator!r}", known, token.at)
        after = token.at + len(token.operator or "") + 1
        if not token.operand and not self.text.startswith(("'", '"'), after):
            raise self.fail(f"nothing follows {token.operator}:", _EXPECTED, token.at)
        try:
            return from_json({operator: [token.operand]})
        except FormatError as error:
            raise self.fail(error.message, error.expected or _EXPECTED, token.at) from None
