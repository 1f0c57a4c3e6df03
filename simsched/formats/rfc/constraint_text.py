"""RFC 35: constraints as people write them.

    expr : expr expr | expr and expr | expr or expr | not expr | '(' expr ')' | '-' term | term
    and  : '&' | '&&' | 'and'          or : '|' | '||' | 'or'
    term : operator ':' operand | operand

`not` binds closest, then `and` (a blank between two terms is one), then `or`.  The default
operator is `properties`; `host`, `hosts` and `hostlist` are one operator, and so are `rank` and
`ranks`, `property` and `properties`.  Quotes of either kind keep an operand together, a doubled
quote stands for itself.  Beyond RFC 35, ``()`` is the constraint that matches everything.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from simsched.errors import FormatError
from simsched.formats.rfc.constraint import (
    ANY,
    MAX_LEVELS,
    And,
    Constraint,
    Not,
    Or,
    from_json,
)
from simsched.formats.text.diagnostics import CaretError, CaretLimitError, refuse_broken_text

MAX_LENGTH = 100_000
"""Characters that a constraint text may have."""

ALIASES = {
    "properties": "properties",
    "property": "properties",
    "host": "hostlist",
    "hosts": "hostlist",
    "hostlist": "hostlist",
    "rank": "ranks",
    "ranks": "ranks",
}
"""What may stand before the colon of a term, and the RFC 31 operator that it means."""

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


class _Token(NamedTuple):
    """One word of a constraint: kind is ( ) and or not - term end."""

    kind: str
    at: int
    operator: str | None = None
    operand: str = ""


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
    return _Parser(text).whole()


def _tokens(text: str) -> list[_Token]:
    tokens = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _stray(text, at)
        tokens.append(_token(found))
        at = found.end()
    return [*tokens, _Token("end", end)]


def _token(found: re.Match[str]) -> _Token:
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
        return _Token("term", at, operator, operand)
    at = found.start(kind)
    return _Token(found[kind] if kind in {"sign", "word"} else {"minus": "-"}.get(kind, kind), at)


def _stray(text: str, at: int) -> CaretError:
    blank = re.match(r"\s*", text[at:])
    at += blank.end() if blank else 0
    for quote in "'\"":
        opened = text.find(quote, at)
        if opened >= 0 and text.count(quote, opened) % 2:
            return CaretError("unclosed quote", text=text, position=opened, expected=quote)
    return CaretError(f"{text[at]!r} cannot stand here", text=text, position=at, expected=_EXPECTED)


class _Parser:
    """A recursive descent over the tokens of one constraint."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.next = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.next]

    def fail(self, message: str, expected: str, at: int | None = None) -> CaretError:
        place = self.token.at if at is None else at
        return CaretError(message, text=self.text, position=place, expected=expected)

    def whole(self) -> Constraint:
        if self.token.kind == "end":
            raise self.fail("the constraint is empty", _EXPECTED, 0)
        constraint = self.either(1)
        if self.token.kind != "end":
            raise self.fail(f"unexpected {self.token.kind!r}", "the end of the constraint")
        return constraint

    def either(self, level: int) -> Constraint:
        """Read either : both (or both)*."""
        args = [self.both(level)]
        while self.token.kind == "or":
            self.next += 1
            args.append(self.both(level))
        return args[0] if len(args) == 1 else Or(tuple(args))

    def both(self, level: int) -> Constraint:
        """Read both : one (and? one)*."""
        args = [self.one(level)]
        while self.token.kind not in {"or", ")", "end"}:
            if self.token.kind == "and":
                self.next += 1
            args.append(self.one(level))
        return args[0] if len(args) == 1 else And(tuple(args))

    def one(self, level: int) -> Constraint:
        """Read one : 'not' one | '(' either? ')' | '-' term | term."""
        if level > MAX_LEVELS:
            raise CaretLimitError(
                f"constraints are nested deeper than {MAX_LEVELS} levels",
                text=self.text,
                position=self.token.at,
            )
        token = self.token
        self.next += 1
        if token.kind == "not":
            return Not(self.one(level + 1))
        if token.kind == "(":
            return self.group(token, level)
        if token.kind == "-":
            term = self.token
            self.next += 1
            if term.kind != "term" or term.at != token.at + 1:
                raise self.fail("'-' stands right before a term only", "not (…)", token.at)
            return Not(self.term(term))
        if token.kind != "term":
            got = "the constraint ends" if token.kind == "end" else f"unexpected {token.kind!r}"
            raise self.fail(got, _EXPECTED, token.at)
        return self.term(token)

    def group(self, opened: _Token, level: int) -> Constraint:
        if self.token.kind == ")":
            self.next += 1
            return ANY
        inner = self.either(level + 1)
        if self.token.kind != ")":
            raise self.fail("unclosed '('", "')'", opened.at)
        self.next += 1
        return inner

    def term(self, token: _Token) -> Constraint:
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
