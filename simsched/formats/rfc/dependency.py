"""RFC 26 job dependencies, as objects of a jobspec and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simsched.errors import FormatError
from simsched.formats.rfc.duration import MAX_SECONDS, parse_duration
from simsched.formats.text.immutable import EMPTY, FrozenDict, freeze, thaw

AFTERCORR = "aftercorr"
"""Slurm's dependency of each task of a job array on the task of another array with the same index."""

DELAY = "delay"
"""Key of ``after``: the time (RFC 23) after the start of the antecedent, as Slurm's ``after:ID+MINUTES``."""

JOB_SCHEMES = frozenset(("after", "afterany", "afterok", "afternotok", "afterexcept", AFTERCORR))
"""Schemes whose value is the antecedent's job id."""

SINGLETON = "singleton"
"""Slurm's dependency on earlier jobs of the same user and name; its value is ``name``, and may be omitted."""

SYMBOLIC_SCHEMES = ("string", "fluid")
"""Schemes with `type` in, out or inout and `scope` user or global.

RFC 26 calls both keys required and omits them in its own examples (``string:foo?type=out``, ``fluid:…``).
Keys that are present are therefore checked, and absent ones are accepted."""

TYPES = ("in", "out", "inout")
SCOPES = ("user", "global")

_TEXT = "scheme:value[?key=val[&key=val…]]"


@dataclass(frozen=True, slots=True)
class Dependency:
    """One dependency: its scheme, its value, and the other keys of the scheme.

    Unknown schemes are kept as they are: RFC 26 lets an instance add its own.

    >>> Dependency.parse("string:foo?type=out&scope=user").to_json()
    {'scheme': 'string', 'value': 'foo', 'type': 'out', 'scope': 'user'}
    """

    scheme: str
    value: str
    params: FrozenDict = EMPTY

    @staticmethod
    def from_json(value: Any, where: str | None = None) -> Dependency:
        """Return the dependency of a jobspec's object.  Raises `FormatError` with its JSON path."""
        for path, message, expected in faults(value):
            raise FormatError(message, where=".".join(p for p in (where, path) if p), expected=expected)
        params = {k: v for k, v in value.items() if k not in {"scheme", "value"}}
        return Dependency(value["scheme"], value["value"], freeze(params))

    @staticmethod
    def parse(text: str, where: str | None = None) -> Dependency:
        """Return the dependency of the command-line form ``scheme:value[?key=val[&key=val…]]``.

        Raises `FormatError`.

        >>> Dependency.parse("afterok:1234")
        Dependency(scheme='afterok', value='1234', params={})
        """
        head, question, query = text.partition("?")
        scheme, colon, value = head.partition(":")
        if head.strip() == SINGLETON:
            colon, value = ":", "name"
        if not colon:
            raise FormatError(f"{text[:80]!r} is not a dependency", where=where, expected=_TEXT)
        document: dict[str, Any] = {"scheme": scheme.strip(), "value": value.strip()}
        for pair in query.replace(";", "&").split("&") if question else ():
            key, equals, word = pair.partition("=")
            if not key or not equals or key in document:
                raise FormatError(f"{pair[:80]!r} is not a new key with a value", where=where, expected=_TEXT)
            document[key] = word
        return Dependency.from_json(document, where)

    @property
    def delay(self) -> float:
        """The seconds that pass after the start of the antecedent; 0 without a delay."""
        return parse_duration(self.params[DELAY]) if DELAY in self.params else 0

    def to_json(self) -> dict[str, Any]:
        """Return the object that a jobspec holds."""
        return {"scheme": self.scheme, "value": self.value, **thaw(self.params)}

    def __str__(self) -> str:
        query = "&".join(f"{key}={value}" for key, value in self.params.items())
        return f"{self.scheme}:{self.value}" + (f"?{query}" if query else "")


def faults(value: Any) -> list[tuple[str, str, str]]:
    """Return (path, message, expected) for every fault of a dependency object."""
    if not isinstance(value, dict):
        return [("", "a dependency is an object", "an object with scheme and value")]
    found = []
    scheme = value.get("scheme")
    if not isinstance(scheme, str) or not scheme:
        found.append(("scheme", "the scheme is missing or not a string", "a string such as afterok"))
    found += _value_faults(scheme, value.get("value"))
    if DELAY in value and scheme in JOB_SCHEMES:
        found += _delay_faults(scheme, value[DELAY])
    if scheme in SYMBOLIC_SCHEMES:
        for key, words in (("type", TYPES), ("scope", SCOPES)):
            if key in value and value[key] not in words:
                found.append((key, f"{str(value[key])[:40]!r} is not a {key}", "one of " + ", ".join(words)))
    return found


def _delay_faults(scheme: str, value: Any) -> list[tuple[str, str, str]]:
    """Return the faults of the time after the start of the antecedent."""
    if scheme != "after":
        return [(DELAY, f"{scheme} has no delay", "a delay of after")]
    try:
        good = not isinstance(value, bool) and parse_duration(value) < MAX_SECONDS
    except FormatError:
        good = False
    return [] if good else [(DELAY, f"{str(value)[:40]!r} is not a time", "a duration such as 300 or 5m")]


def _value_faults(scheme: Any, value: Any) -> list[tuple[str, str, str]]:
    if not isinstance(value, str) or not value:
        return [("value", "the value is missing or not a string", "a string: write it in quotes")]
    if scheme == "begin-time":
        try:
            good = 0 <= float(value) < 1e12
        except (ValueError, OverflowError):
            good = False
        if not good:
            return [("value", f"{str(value)[:40]!r} is not a time", "seconds since the epoch")]
    return []
