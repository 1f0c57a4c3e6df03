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

if TYPE_CHECKING:
    from collections.abc import Callable

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
MAX_DEPTH = 100


def parse_query(text: str) -> Predicate:
    """Return the predicate of a query.

    Raises
    ------
    ConfigError
        With the place in the text, when it is no query.
    """
    parser = _Parser(_tokens(text), text)
    predicate = parser.either(0)
    if parser.place < len(parser.tokens):
        raise parser.fault("and, or, or the end")
    return predicate


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return (kind, text) of each token; kind is op, quoted or word."""
    found = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConfigError(f"cannot read {text[at:]!r}", where=f"query {text!r}")
        op, double, single, word = match.groups()
        quoted = double if double is not None else single
        found.append(("op", op) if op else ("quoted", quoted) if quoted is not None else ("word", word))
        at = match.end()
    return found


class _Parser:
    """Recursive descent over the tokens of one query."""

    def __init__(self, tokens: list[tuple[str, str]], text: str) -> None:
        self.tokens, self.text, self.place = tokens, text, 0

    def fault(self, expected: str) -> ConfigError:
        found = self.tokens[self.place][1] if self.place < len(self.tokens) else "the end"
        return ConfigError(f"found {found!r}", where=f"query {self.text!r}", expected=expected)

    def take(self, *wanted: str) -> str | None:
        """Take the next token when it is one of these words or signs."""
        if self.place < len(self.tokens):
            kind, text = self.tokens[self.place]
            if kind != "quoted" and text in wanted:
                self.place += 1
                return text
        return None

    def either(self, depth: int) -> Predicate:
        if depth > MAX_DEPTH:
            raise ConfigError("nested too deeply", where="query")
        parts = [self.both(depth)]
        while self.take("or"):
            parts.append(self.both(depth))
        return parts[0] if len(parts) == 1 else lambda job: any(part(job) for part in parts)

    def both(self, depth: int) -> Predicate:
        parts = [self.term(depth)]
        while self.take("and"):
            parts.append(self.term(depth))
        return parts[0] if len(parts) == 1 else lambda job: all(part(job) for part in parts)

    def term(self, depth: int) -> Predicate:
        negated = False
        while self.take("not"):
            negated = not negated
        if self.take("("):
            inner = self.either(depth + 1)
            if not self.take(")"):
                raise self.fault(")")
        else:
            inner = self.comparison()
        return (lambda job: not inner(job)) if negated else inner

    def comparison(self) -> Predicate:
        field = self.take(*FIELDS)
        if field is None:
            raise self.fault("one of the fields " + ", ".join(FIELDS))
        op = self.take(*_COMPARE)
        if op is None:
            raise self.fault(" ".join(_COMPARE))
        if self.place >= len(self.tokens) or self.tokens[self.place][0] == "op":
            raise self.fault("a value")
        value = _value(field, op, self.tokens[self.place][1], self.text)
        self.place += 1
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
            f"{text!r} is no value of {field}", where=f"query {query!r}", expected="a number"
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
