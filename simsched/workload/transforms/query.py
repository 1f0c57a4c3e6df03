"""Queries over jobs: ``procs >= 64 and (user == alice or queue ~ gpu*) and not runtime < 1h``.

::

    query   = part ("or" part)*            part = term ("and" term)*
    term    = "not" term | "(" query ")" | FIELD op VALUE
    op      = "==" | "!=" | "<=" | ">=" | "<" | ">" | "~"      ("~" compares with a glob pattern)

Fields are those of a `Job`, and ``cores``, ``gpus``, ``slots`` (what its request takes at
least).  Times may be written as RFC 23 durations.  A field that a job does not have makes
its comparison false (``!=`` true).
"""

from __future__ import annotations

import operator
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, SimschedError
from simsched.formats.rfc.predicates import PredicateParser, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from simsched.workload.job import Job

    Predicate = Callable[[Job], bool]

_TIMES = ("submit", "runtime", "duration", "wait", "think_time", "cancel_at", "deadline")
_NUMBERS = ("procs", "nodes", "memory", "urgency", "cores", "gpus", "slots")
_TEXTS = ("id", "user", "group", "queue", "bank", "name", "partition", "status", "shape")
FIELDS = (*_TIMES, *_NUMBERS, *_TEXTS)

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "~": fnmatchcase,
}
_TOKEN = re.compile(r"\s*(?:(==|!=|<=|>=|[<>~()])|\"([^\"]*)\"|'([^']*)'|([^\s()<>=!~\"']+))")
_WORDS = ("and", "or", "not")


def parse_query(text: str) -> Predicate:
    """Return the predicate of a query.

    Raises
    ------
    ConfigError
        With the place in the text, if it is not a query.
    """
    return _Parser(text, _tokens(text)).whole("and, or, or the end")


def _tokens(text: str) -> list[Token]:
    """Return the tokens: words that the grammar knows, operators (both by their own kind), and values."""
    found = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConfigError(f"cannot read {text[at:end]!r}", where=f"query {text!r}")
        op, double, single, word = match.groups()
        quoted = double if double is not None else single
        kind = op or ("quoted" if quoted is not None else word if word in _WORDS else "word")
        start = match.start(match.lastindex or 0)
        found.append(Token(kind, start, operand=quoted if quoted is not None else op or word))
        at = match.end()
    return [*found, Token("end", end, operand="the end")]


class _Parser(PredicateParser["Predicate"]):
    """Comparisons of the fields of jobs over the shared grammar; a node is a function of a job."""

    def fail(self, message: str, expected: str | None, at: int) -> ConfigError:
        return ConfigError(message, where=f"query {self.text!r}, character {at + 1}", expected=expected)

    def unexpected(self, expected: str) -> ConfigError:
        return self.fail(f"found {self.token.operand!r}", expected, self.token.at)

    def too_deep(self) -> ConfigError:
        return ConfigError("nested too deeply", where="query", expected=f"at most {self.max_levels} levels")

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
        op = self.take(_COMPARE, " ".join(_COMPARE))
        if self.token.kind not in ("quoted", "word", *_WORDS):
            raise self.unexpected("a value")
        value = _value(field, op, self.token.operand, self.text)
        self.next += 1
        get, compare = _getter(field, as_text=op == "~"), _COMPARE[op]

        def holds(job: Job) -> bool:
            found = get(job)
            return op == "!=" if found is None else compare(found, value)

        return holds


def _value(field: str, op: str, text: str, query: str) -> Any:
    if field in _TEXTS or op == "~":
        return text
    try:
        if field in _TIMES:
            from simsched.formats.rfc.duration import parse_duration

            return parse_duration(text)
        return float(text)
    except (ValueError, SimschedError):
        raise ConfigError(
            f"{text!r} is not a value of {field}", where=f"query {query!r}", expected="a number"
        ) from None


def _getter(field: str, *, as_text: bool) -> Callable[[Job], Any]:
    if field in {"cores", "gpus", "slots", "procs"}:
        from simsched.workload.flat_counts import demand, procs_of

        if field == "procs":
            get: Callable[[Job], Any] = lambda job: procs_of(job.procs, job.jobspec)  # noqa: E731
        else:
            get = lambda job: getattr(demand(job.jobspec), field)  # noqa: E731
    elif field == "shape":
        get = lambda job: job.jobspec.to_shape()  # noqa: E731
    elif field == "id":
        get = lambda job: str(job.id)  # noqa: E731
    elif field == "duration":
        get = lambda job: float("inf") if job.duration is None else job.duration  # noqa: E731
    else:
        get = operator.attrgetter(field)
    return (lambda job: None if get(job) is None else str(get(job))) if as_text else get
