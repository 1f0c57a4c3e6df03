"""Eventlogs (RFC 18) and the job events in them (RFC 21): JSON Lines of timestamp, name, context.

This module reads and writes the text; the state of a job after its events is not its concern.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.errors import FormatError, clip
from simsched.formats.rfc.idset import Idset
from simsched.formats.text.json_text import load_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_KEYS = frozenset(("timestamp", "name", "context"))
_FORM = '{"timestamp": seconds, "name": event, "context": {…}}'


@dataclass(frozen=True, slots=True)
class Event:
    """One event: seconds since the epoch, a name, and the context of the name.

    >>> print(Event(1.5, "finish", {"status": 0}))
    {"timestamp":1.5,"name":"finish","context":{"status":0}}
    """

    timestamp: float
    name: str
    context: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON knows it; no context if there is nothing in it."""
        event: dict[str, Any] = {"timestamp": self.timestamp, "name": self.name}
        if self.context:
            event["context"] = dict(self.context)
        return event

    def __str__(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    def __hash__(self) -> int:
        return hash((self.timestamp, self.name))


def parse_event(text: str, where: str | None = None) -> Event:
    """Read one line of an eventlog.  Raises `FormatError` for a line that RFC 18 does not allow.

    >>> parse_event('{"timestamp": 2, "name": "free"}')
    Event(timestamp=2, name='free', context={})
    """
    doc = load_json(text, where)
    if not isinstance(doc, dict):
        raise FormatError("not an event", where=where, expected=_FORM)
    for key in ("timestamp", "name"):
        if key not in doc:
            raise FormatError(f"the event has no {key}", where=where, expected=_FORM)
    if odd := next((key for key in doc if key not in _KEYS), None):
        raise FormatError(f"unknown key {clip(odd)!r}", where=where, expected=_FORM)
    timestamp, name, context = doc["timestamp"], doc["name"], doc.get("context", {})
    if isinstance(timestamp, bool) or not isinstance(timestamp, (int, float)) or timestamp < 0:
        raise FormatError(
            f"{clip(repr(timestamp))} is not a timestamp", where=where, expected="seconds since the epoch"
        )
    if not isinstance(name, str) or not name:
        raise FormatError(f"{clip(repr(name))} is not a name", where=where, expected="the name of an event")
    if not isinstance(context, dict):
        raise FormatError(f"{clip(repr(context))} is not a context", where=where, expected="an object")
    return Event(timestamp, name, context)


def iter_eventlog(lines: Iterable[str], where: str | None = None) -> Iterator[Event]:
    """Read lines one by one; a fault names its line.  Empty lines are ignored."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            place = f"{where}:{number}" if where else f"line {number}"
            yield parse_event(line, place)


def parse_eventlog(text: str, where: str | None = None) -> tuple[Event, ...]:
    r"""Read a whole eventlog; its last line may lack the newline.

    >>> [event.name for event in parse_eventlog('{"timestamp":1,"name":"submit"}\n')]
    ['submit']
    """
    return tuple(iter_eventlog(text.split("\n"), where))


def format_eventlog(events: Iterable[Event]) -> str:
    """Write events, one per line, each ended by a newline (RFC 18)."""
    return "".join([f"{event}\n" for event in events])


# -- the events of a job (RFC 21) -----------------------------------------


def check_job_events(events: Iterable[Event], where: str | None = None) -> list[FormatError]:
    """List the faults of the events of one job: times that decrease, contexts that RFC 21 forbids.

    Names that RFC 21 does not define are allowed, as RFC 21 demands.

    >>> [fault.message for fault in check_job_events([Event(5, "submit", {"urgency": 40})])]
    ['event submit: urgency is 40']
    """
    faults = []
    last = -math.inf
    for number, event in enumerate(events, 1):
        place = f"{where}:{number}" if where else f"line {number}"
        if event.timestamp < last:
            message = f"event {clip(event.name)} at {event.timestamp} comes after one at {last}"
            faults.append(FormatError(message, where=place, expected="times that do not decrease"))
        last = max(last, event.timestamp)
        required, optional = JOB_EVENTS.get(event.name, ((), {}))
        for key in required:
            if key not in event.context:
                message = f"event {event.name}: {key} is missing"
                faults.append(FormatError(message, where=place, expected=optional[key].words))
        for key, rule in optional.items():
            if key in event.context and not rule.holds(event.context[key]):
                message = f"event {event.name}: {key} is {clip(repr(event.context[key]))}"
                faults.append(FormatError(message, where=place, expected=rule.words))
    return faults


class _Rule(NamedTuple):
    """What a value of a context is, in words, and whether a value is that."""

    words: str
    holds: Callable[[Any], bool]


def _is_whole(value: Any, least: float = -math.inf, most: float = math.inf) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _are_ranks(value: Any) -> bool:
    try:
        return value == "all" or bool(Idset.parse(value))
    except FormatError:
        return False


_WHOLE = _Rule("a whole number", _is_whole)
_NATURAL = _Rule("a whole number, 0 or more", lambda value: _is_whole(value, 0))
_URGENCY = _Rule("0 to 31", lambda value: _is_whole(value, 0, 31))
_SEVERITY = _Rule("0 to 7", lambda value: _is_whole(value, 0, 7))
_TEXT = _Rule("a string", lambda value: isinstance(value, str))
_BOOLEAN = _Rule("true or false", lambda value: isinstance(value, bool))
_RANKS = _Rule("an idset of ranks", _are_ranks)

JOB_EVENTS: Mapping[str, tuple[tuple[str, ...], Mapping[str, _Rule]]] = {
    "submit": (
        ("urgency",),
        {"userid": _NATURAL, "urgency": _URGENCY, "flags": _NATURAL, "version": _NATURAL},
    ),
    "validate": ((), {}),
    "dependency-add": (("description",), {"description": _TEXT}),
    "dependency-remove": (("description",), {"description": _TEXT}),
    "depend": ((), {}),
    "priority": (("priority",), {"priority": _NATURAL}),
    "urgency": (("urgency",), {"urgency": _URGENCY, "userid": _NATURAL}),
    "alloc": ((), {}),
    "start": ((), {}),
    "finish": (("status",), {"status": _WHOLE}),
    "release": (("ranks", "final"), {"ranks": _RANKS, "final": _BOOLEAN}),
    "free": ((), {}),
    "clean": ((), {}),
    "exception": (
        ("type", "severity"),
        {"type": _TEXT, "severity": _SEVERITY, "note": _TEXT, "userid": _NATURAL},
    ),
}
"""RFC 21's events: name → required keys of the context, and the rule of each allowed key."""
