"""RFC 35: the text of constraints.

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
from simsched.formats.rfc.predicates import PredicateParser, Token
from simsched.formats.text.diagnostics import CaretError, CaretLimitError, refuse_broken_text

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
