"""The grammar that all predicates share: and, or, not and parentheses over terms.

::

    either : both ("or" both)*          both : one ("and" one)*
    one    : "not" one | "(" either ")" | term

A domain subclasses `PredicateParser`: it cuts its text into tokens, reads its own terms and builds its own
nodes.  RFC 35's constraints and the queries over jobs do so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from simsched.errors import SimschedError

Node = TypeVar("Node")

_NO_OPERAND = frozenset({"or", ")", "end"})


class Token(NamedTuple):
    """One word of a predicate.

    `kind` is ``(``, ``)``, ``and``, ``or``, ``not``, ``end`` or a kind of the domain's own; `at` is its
    first character.  `operator` and `operand` are the parts of a term.
    """

    kind: str
    at: int
    operator: str | None = None
    operand: str = ""


class PredicateParser(Generic[Node]):
    """A recursive descent over the tokens of one text, the last of which is of the kind ``end``."""

    adjacent_means_and: ClassVar[bool] = False
    """Whether two terms side by side are joined by "and", as RFC 35 has it."""

    max_levels: ClassVar[int] = 100
    """The most levels of parentheses and negations; Python's stack allows several times more."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text, self.tokens = text, tokens
        self.next = 0

    # -- a domain's own part -------------------------------------------------------------

    def term(self) -> Node:
        """Read a term, which begins at the current token."""
        raise NotImplementedError

    def all_of(self, parts: list[Node]) -> Node:
        """Return the node that holds where all of two or more parts hold."""
        raise NotImplementedError

    def any_of(self, parts: list[Node]) -> Node:
        """Return the node that holds where one of two or more parts holds."""
        raise NotImplementedError

    def negated(self, part: Node) -> Node:
        """Return the node that holds where the part does not."""
        raise NotImplementedError

    def fail(self, message: str, expected: str | None, at: int) -> SimschedError:
        """Return the error for a fault at a character of the text."""
        raise NotImplementedError

    def unexpected(self, expected: str) -> SimschedError:
        """Return the error for the current token, which cannot be here."""
        raise NotImplementedError

    def too_deep(self) -> SimschedError:
        """Return the error for nesting beyond `max_levels`."""
        raise NotImplementedError

    # -- the grammar ---------------------------------------------------------------------

    @property
    def token(self) -> Token:
        """The current token."""
        return self.tokens[self.next]

    def whole(self, expected: str) -> Node:
        """Read the text to its end; `expected` names the words that may follow a complete predicate."""
        node = self.either(1)
        if self.token.kind != "end":
            raise self.unexpected(expected)
        return node

    def either(self, level: int) -> Node:
        """Read one alternative or several."""
        parts = [self.both(level)]
        while self.token.kind == "or":
            self.next += 1
            parts.append(self.both(level))
        return parts[0] if len(parts) == 1 else self.any_of(parts)

    def both(self, level: int) -> Node:
        """Read one conjunct or several."""
        parts = [self.one(level)]
        while True:
            kind = self.token.kind
            if kind == "and":
                self.next += 1
            elif not self.adjacent_means_and or kind in _NO_OPERAND:
                break
            parts.append(self.one(level))
        return parts[0] if len(parts) == 1 else self.all_of(parts)

    def one(self, level: int) -> Node:
        """Read a negation, a group or a term."""
        if level > self.max_levels:
            raise self.too_deep()
        kind = self.token.kind
        if kind == "not":
            self.next += 1
            return self.negated(self.one(level + 1))
        return self.group(level) if kind == "(" else self.term()

    def group(self, level: int) -> Node:
        """Read a predicate in parentheses."""
        opened = self.token.at
        self.next += 1
        inner = self.either(level + 1)
        if self.token.kind != ")":
            raise self.fail("unclosed '('", "')'", opened)
        self.next += 1
        return inner
