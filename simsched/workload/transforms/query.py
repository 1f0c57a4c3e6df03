"""Queries over jobs: ``procs >= 64 and (user == alice or queue ~ gpu*) and not runtime < 1h``.

::

    query   = part ("or" part)*            part = term ("and" term)*
    term    = "not" term | "(" query ")" | FIELD op VALUE
    op      = "==" | "=" | "!=" | "<=" | ">=" | "<" | ">" | "~"

``=`` is ``==``; ``~`` compares with a glob pattern.  Fields are those of a `Job`, and ``cores``, ``gpus``,
``slots`` (the least that its request takes).  Times may be written as RFC 23 durations.  A field that a job
does not have makes its comparison false (``!=`` true).  Figures, targets and the conditions of a study
compare with the same signs.
"""

from __future__ import annotations

import operator
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from simsched.errors import SimschedError
from simsched.formats.rfc.predicates import PredicateParser, Token
from simsched.formats.text.diagnostics import CaretError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from simsched.workload.job import Job

    Predicate = Callable[[Job], bool]

_TIMES = ("submit", "runtime", "duration", "wait", "think_time", "cancel_at", "deadline")
_NUMBERS = ("procs", "nodes", "memory", "urgency", "cores", "gpus", "slots")
_TEXTS = ("id", "user", "group", "queue", "bank", "name", "partition", "status", "shape")
FIELDS = (*_TIMES, *_NUMBERS, *_TEXTS)

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "~": fnmatchcase,
}
_SIGN = "==|!=|<=|>=|[=<>~]"
_TOKEN = re.compile(rf"""\s*(?:({_SIGN}|[()])|"([^"]*)"|'([^']*)'|([^\s()<>=!~"']+))""")
_INSIDE = re.compile(_TOKEN.pattern.replace("[()]", "[()\\]]").replace("!~", "!~\\]"))
"""The tokens of a query in brackets, which its first bracket outside quotes ends."""
_BLANKS = re.compile(rf"""("[^"]*"|'[^']*')|\s*({_SIGN})\s*|\s+""")
_WORDS = ("and", "or", "not")


def parse_query(text: str) -> Predicate:
    """Return the predicate of a query.

    Raises
    ------
    CaretError
        With the place in the text, if it is not a query.
    """
    return _Parser(text, _tokens(text)).whole("and, or, or the end")


def query_in(text: str, at: int) -> tuple[str, int]:
    """Return the query in the brackets that open at a position, in one spelling, and the position after them.

    >>> query_in("mean_wait[user=ada and  procs>4]<=1h", 9)
    ('user == ada and procs > 4', 32)
    """
    tokens = _tokens(text, at)
    _Parser(text, tokens).whole("and, or, or the end")
    end = tokens[-1].at

    def spaced(found: re.Match[str]) -> str:
        return found[1] or (f" {'==' if found[2] == '=' else found[2]} " if found[2] else " ")

    return _BLANKS.sub(spaced, text[at + 1 : end]).strip(), end + 1


def _tokens(text: str, opened: int | None = None) -> list[Token]:
    """Return the tokens: words that the grammar knows, operators (both by their own kind), and values."""
    found: list[Token] = []
    pattern, at = (_TOKEN, 0) if opened is None else (_INSIDE, opened + 1)
    end = len(text.rstrip())
    while at < end:
        match = pattern.match(text, at)
        if match is None:
            raise CaretError(f"cannot read {text[at:end]!r}", text=text, position=at)
        op, double, single, word = match.groups()
        quoted = double if double is not None else single
        start = match.start(match.lastindex or 0)
        if op == "]":
            return [*found, Token("end", start, operand="the end")]
        op = "==" if op == "=" else op
        kind = op or ("quoted" if quoted is not None else word if word in _WORDS else "word")
        found.append(Token(kind, start, operand=quoted if quoted is not None else op or word))
        at = match.end()
    if opened is not None:
        raise CaretError("unclosed '['", text=text, position=opened, expected="']'")
    return [*found, Token("end", end, operand="the end")]


class _Parser(PredicateParser["Predicate"]):
    """Comparisons of the fields of jobs over the shared grammar; a node is a function of a job."""

    def fail(self, message: str, expected: str | None, at: int) -> CaretError:
        return CaretError(message, expected=expected, text=self.text, position=at)

    def unexpected(self, expected: str) -> CaretError:
        return self.fail(f"found {self.token.operand!r}", expected, self.token.at)

    def too_deep(self) -> CaretError:
        return self.fail("nested too deeply", f"at most {self.max_levels} levels", self.token.at)

    def all_of(self, parts: list[Predicate]) -> Predicate:
        return lambda job: all(part(job) for part in parts)

    def any_of(self, parts: list[Predicate]) -> Predicate:
        return lambda job: any(part(job) for part in parts)

    def negated(self, part: Predicate) -> Predicate:
        return lambda job: not part(job)

    def take(self, wanted: Collection[str], expected: str) -> str:
        """Take the next token if it is one of these words or signs; raise the fault if not."""
        token = self.token
        if token.kind == "quoted" or token.operand not in wanted:
            raise self.unexpected(expected)
        self.next += 1
        return token.operand

    def term(self) -> Predicate:
        """Read term : FIELD op VALUE."""
        field = self.take(FIELDS, "one of the fields " + ", ".join(FIELDS))
        op = self.take(COMPARE, " ".join(COMPARE))
        if self.token.kind not in ("quoted", "word", *_WORDS):
            raise self.unexpected("a value")
        value = self.value(field, op)
        self.next += 1
        get, compare = _getter(field, as_text=op == "~"), COMPARE[op]

        def holds(job: Job) -> bool:
            found = get(job)
            return op == "!=" if found is None else compare(found, value)

        return holds

    def value(self, field: str, op: str) -> Any:
        """Return the value of the current token."""
        text = self.token.operand
        if field in _TEXTS or op == "~":
            return text
        try:
            if field in _TIMES:
                from simsched.formats.rfc.duration import parse_duration

                return parse_duration(text)
            return float(text)
        except (ValueError, SimschedError):
            raise self.fail(f"{text!r} is not a value of {field}", "a number", self.token.at) from None


def _getter(field: str, *, as_text: bool) -> Callable[[Job], Any]:
    from simsched.workload.job import demand, procs_of

    own: dict[str, Callable[[Job], Any]] = {
        "procs": procs_of,
        "shape": lambda job: job.jobspec.to_shape(),
        "id": lambda job: str(job.id),
        "duration": lambda job: float("inf") if job.duration is None else job.duration,
        **dict.fromkeys(("cores", "gpus", "slots"), lambda job: getattr(demand(job.jobspec), field)),
    }
    get = own.get(field, operator.attrgetter(field))
    return (lambda job: None if get(job) is None else str(get(job))) if as_text else get
