"""Named queues after RFC 33: their targets, limits, defaults and priorities.

A queue names the targets that it may use (``requires``: properties, or ``hosts``), limits and
defaults.  A virtual queue has a ``parent``, whose targets and limits it has unless it has its
own.  A queue's constraint is and-ed to the job's.  Queues whose targets overlap are scheduled
as one, those of higher priority first; queues on disjoint targets are scheduled each by itself.

`WeeklyHours`: days of the week with hours, in the time zone of a log; and the forms of windows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from simsched.declare.kinds import ANYTHING, SWITCH, ValueKind, by_name, text, whole
from simsched.declare.table import table_of
from simsched.errors import ConfigError
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.clock import DateText, When, parse_when, seconds_on
from simsched.formats.rfc.declared import seconds
from simsched.formats.rfc.hostlist import Hostlist

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.formats.rfc.clock import Clock
    from simsched.formats.rfc.constraint import Constraint


DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EXPECTED = '["8h", "18h"], ["2024-03-01T08:00", "2024-03-02"] or "Mon-Fri 08:00-18:00"'
"""The forms of a window, for messages."""

_TEXT = re.compile(
    r"(?:([A-Za-z]+(?:\s*[-,]\s*[A-Za-z]+)*)\s*)?(?:(\d?\d:\d\d)\s*-\s*(\d?\d:\d\d))?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class WeeklyHours:
    """Hours at days of the week; 0 is Monday.  Hours that end before they begin end on the next day.

    `begin` and `end` are minutes of the local day; `clock` is that of the log, once it is read.
    """

    text: str
    days: tuple[int, ...]
    begin: int = 0
    end: int = 1440
    clock: Clock | None = None

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str, where: str | None = None) -> WeeklyHours:
        """Read ``Mon-Fri 08:00-18:00``, ``Sat,Sun`` (the whole days) or ``22:00-06:00`` (every day).

        Raises
        ------
        ConfigError
            For any other text.
        """
        found = _TEXT.fullmatch(text.strip())
        if found is None or not text.strip():
            raise ConfigError(f"{text!r} is not a window", where=where, expected=EXPECTED)
        days, begin, end = found.groups()
        hours = (0, 1440) if begin is None else (_minutes(begin, where), _minutes(end, where))
        if hours[0] == hours[1] or hours[0] == 1440:
            raise ConfigError(f"{text!r} has no hours", where=where, expected="a begin before the end")
        return cls(text.strip(), _days(days, where), *hours)

    def on_clock(self, clock: Clock | None, where: str | None = None) -> WeeklyHours:
        """Return the hours in the zone of a clock; ConfigError without a clock."""
        if clock is None:
            raise ConfigError(
                f"the workload has no dates, so {self.text!r} is not a time of it",
                where=where,
                expected="windows in seconds or durations; --start-date DATE gives second 0 its date",
            )
        return replace(self, clock=clock)

    def windows(self, after: float) -> Iterator[tuple[float, float]]:
        """Yield (stop, start) in seconds of the run in order, from the first that ends after `after` on."""
        assert self.clock is not None, "the hours are not on a clock yet"
        overnight = self.end <= self.begin
        first = self.clock.local(after).date() - timedelta(days=1)
        try:
            for number in count():
                day = first + timedelta(days=number)
                if day.weekday() not in self.days:
                    continue
                midnight = datetime.combine(day, time())
                stop = self.clock.at(midnight + timedelta(minutes=self.begin))
                start = self.clock.at(midnight + timedelta(days=int(overnight), minutes=self.end))
                if after < start and stop < start:
                    yield stop, start
        except OverflowError:  # the end of the calendar
            return


Window: TypeAlias = tuple[When, When] | WeeklyHours


def _minutes(text: str, where: str | None) -> int:
    """Return the minutes of ``08:30``, up to ``24:00``."""
    hours, minutes = map(int, text.split(":"))
    if minutes > 59 or 60 * hours + minutes > 1440:
        raise ConfigError(f"{text!r} is not a time of the day", where=where, expected="00:00 to 24:00")
    return 60 * hours + minutes


def _days(text: str | None, where: str | None) -> tuple[int, ...]:
    """Return the days of ``Mon-Fri,Sun``; all without a text."""
    if text is None or text.lower() == "daily":
        return tuple(range(7))
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        begin = _day(first, where)
        length = (_day(last, where) - begin) % 7 if dash else 0
        found.update((begin + after) % 7 for after in range(length + 1))
    return tuple(sorted(found))


def _day(word: str, where: str | None) -> int:
    """Return the number of ``Mon`` or ``Monday``."""
    known = [at for at, name in enumerate(DAYS) if word[:3].lower() == name]
    full = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    if not known or not full[known[0]].startswith(word.lower()):
        raise ConfigError(f"{word!r} is not a day of the week", where=where, expected="Mon, Tue … Sun")
    return known[0]


INF = float("inf")
MOST = 2**31
"""Whole numbers in a configuration are less than this."""

NO_LIMIT = -1
"""The value of a limit on a size that does not limit."""

STOPPED = ((0, INF),)
"""The closed times of a queue that is stopped."""

SIZES = {"nnodes": "nodes", "ncores": "cores", "ngpus": "gpus"}
"""The keys of limits on the size of a job → the word in messages and in codes of reasons."""


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue.

    Attributes
    ----------
    constraint : the targets it may use; None: all.
    priority : between queues; greater goes first, whatever the job order.
    longest : most seconds that a job may request; those without one may get it (`admission.duration_in`).
    most, least : resource type → most and least units that a job may request.
    default_duration : seconds for jobs without a duration.
    closed : times (stop, start) between which nothing of the queue starts, and weekly hours.
    enabled : whether it accepts jobs; a queue that is not `started` is closed for ever.
    preempts : whether its jobs may preempt running jobs that are preemptible.
    """

    name: str
    constraint: Constraint | None = None
    priority: int = 0
    longest: float = INF
    most: Mapping[str, int] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    default_duration: float | None = None
    closed: tuple[Window, ...] = ()
    preempts: bool = False
    enabled: bool = True

    @property
    def started(self) -> bool:
        """Whether jobs of the queue ever start: it is not closed from the beginning without an end."""
        return self.closed != STOPPED

    @property
    def windows(self) -> list[tuple[float, float]]:
        """The times (stop, start) without weekly hours, in seconds of the run."""
        pairs = [window for window in self.closed if isinstance(window, tuple)]
        found = [(a, b) for a, b in pairs if not isinstance(a, DateText) and not isinstance(b, DateText)]
        assert len(found) == len(pairs), "the dates of the queue are not on a clock yet"
        return found

    @property
    def weekly(self) -> list[WeeklyHours]:
        """The weekly hours."""
        return [window for window in self.closed if isinstance(window, WeeklyHours)]

    def on_clock(self, clock: Clock | None) -> Queue:
        """Return the queue with its dates as seconds of the run."""
        if all(isinstance(window, tuple) and not _is_dated(window) for window in self.closed):
            return self
        where = f"queues.{self.name}.closed"
        found: list[tuple[float, float]] = []
        weekly: list[Window] = []
        for window in self.closed:
            if isinstance(window, WeeklyHours):
                weekly.append(window.on_clock(clock, where))
                continue
            stop, start = (seconds_on(time, clock, where) for time in window)
            _refuse_backwards(stop, start, window, where)
            if start > 0:
                found.append((max(stop, 0), start))
        return replace(self, closed=(*_merged(sorted(found)), *weekly))


@dataclass(frozen=True, slots=True)
class Queues:
    """All queues of a cluster by name, and the one for jobs that name none."""

    queues: Mapping[str, Queue]
    default: str | None = None

    def on_clock(self, clock: Clock | None) -> Queues:
        """Return the queues with their dates as seconds of the run.

        Raises
        ------
        ConfigError
            For dates without a clock, and windows that end before they begin.
        """
        made = {name: queue.on_clock(clock) for name, queue in self.queues.items()}
        return (
            self
            if all(made[name] is queue for name, queue in self.queues.items())
            else replace(self, queues=made)
        )

    @classmethod
    def from_dict(
        cls,
        document: Mapping[str, Any],
        *,
        default: str | None = None,
        policy: Mapping[str, Any] | None = None,
        where: str = "queues",
    ) -> Queues:
        """Read ``queues.NAME`` of a configuration (RFC 33); `policy` is that of queues without their own.

        Raises
        ------
        ConfigError, FormatError
            For unknown keys, a parent or a default queue that does not exist, and values of a wrong type.
        """
        if not isinstance(document, dict) or not document:
            raise ConfigError("no queues", where=where, expected="queues.NAME = {requires, hosts, policy …}")
        common = POLICY.read(policy or {}, "policy")
        tables: dict[str, dict[str, Any]] = by_name(QUEUE).read(document, where)
        made: dict[str, Queue] = {}
        for name in tables:
            _make(name, tables, made, (), where, _with_policy(Queue(""), common))
        default = default or _of_jobs(common).get("queue")
        if default is not None and default not in made:
            raise ConfigError(
                f"the default queue {default!r} does not exist", where=where, expected=", ".join(made)
            )
        return cls(made, default)


def _make(
    name: str,
    tables: Mapping[str, dict[str, Any]],
    made: dict[str, Queue],
    above: tuple[str, ...],
    where: str,
    common: Queue,
) -> Queue:
    if name in made:
        return made[name]
    entry, base = tables[name], common
    if (parent := entry.get("parent")) is not None:
        if not isinstance(parent, str) or parent not in tables or parent in (*above, name):
            text = f"the parent {parent!r} is not another queue"
            raise ConfigError(text, where=f"{where}.{name}", expected="another queue's name")
        base = _make(parent, tables, made, (*above, name), where, common)
    own: dict[str, Any] = {key: entry[key] for key in ("priority", "preempts", "enabled") if key in entry}
    places = [entry[key] for key in ("requires", "hosts") if entry.get(key) is not None]
    if "requires" in entry or "hosts" in entry:
        own["constraint"] = rfc31.And(tuple(places)) if len(places) > 1 else next(iter(places), None)
    queue = replace(base, name=name, closed=_closed(entry, base.closed), **own)
    made[name] = _with_policy(queue, entry.get("policy", {}))
    return made[name]


def _requires(value: Any, where: str) -> Constraint | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ConfigError("requires is a list of properties", where=where)
    return rfc31.from_json({"properties": value}, where)


def _hosts(value: Any, where: str) -> Constraint | None:
    return None if value in (None, "all") else rfc31.Hosts(Hostlist.parse(str(value), where=where))


def _closed(entry: Mapping[str, Any], above: tuple[Window, ...]) -> tuple[Window, ...]:
    """Return the times at which nothing of a queue starts; `above` are those of its parent."""
    windows: tuple[Window, ...] = entry.get("closed", above)
    if "started" not in entry:
        return windows
    if not entry["started"]:
        return STOPPED
    return () if windows == STOPPED else windows


def _windows(value: Any, place: str) -> tuple[Window, ...]:
    found: list[tuple[float, float]] = []
    dated: list[Window] = []
    if not isinstance(value, list | tuple):
        raise ConfigError("not a list of windows", where=place, expected=f"[{EXPECTED}, …]")
    for item in value:
        if isinstance(item, str):
            dated.append(WeeklyHours.parse(item, place))
            continue
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise ConfigError("not a window", where=place, expected=EXPECTED)
        stop, start = (parse_when(time, place) for time in item)
        if isinstance(stop, DateText) or isinstance(start, DateText):
            dated.append((stop, start))
            continue
        _refuse_backwards(stop, start, item, place)
        found.append((stop, start))
    return (*_merged(sorted(found)), *dated)


def _is_dated(window: tuple[Any, ...]) -> bool:
    return any(isinstance(time, DateText) for time in window)


def _refuse_backwards(stop: float, start: float, window: Any, place: str) -> None:
    if not stop < start:
        shown = [str(time) for time in window] if _is_dated(tuple(window)) else window
        raise ConfigError(f"the window {shown} ends before it begins", where=place)


def _merged(windows: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return windows, given in order, joined where they overlap or touch."""
    apart: list[tuple[float, float]] = []
    for stop, start in windows:
        if apart and stop <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(start, apart[-1][1]))
        else:
            apart.append((stop, start))
    return apart


def _with_policy(queue: Queue, policy: Mapping[str, Any]) -> Queue:
    """Return a queue with the limits of a policy, and its defaults for jobs."""
    limits, system = policy.get("limits", {}), _of_jobs(policy)
    size = limits.get("job-size", {})
    found: dict[str, Any] = {"most": size.get("max", {}), "least": size.get("min", {})}
    for key, own in found.items():  # with -1 a queue has no limit, whatever is above
        found[key] = {k: number for k, number in {**getattr(queue, key), **own}.items() if number != NO_LIMIT}
    # 0 means no limit: with it a queue lifts the limit for all queues
    found |= {"longest": limits["duration"] or INF} if "duration" in limits else {}
    found |= {"default_duration": system["duration"] or INF} if "duration" in system else {}
    return replace(queue, **found)


def _of_jobs(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that a policy sets for jobs that do not set them."""
    found: dict[str, Any] = policy.get("jobspec", {}).get("defaults", {}).get("system", {})
    return found


_NUMBER = whole(1 - MOST, MOST - 1)
_SIZE = table_of(dict.fromkeys(SIZES, _NUMBER))
_SYSTEM = table_of({"duration": seconds(), "queue": text()})
POLICY = table_of(
    {
        "limits": table_of({"duration": seconds(), "job-size": table_of({"max": _SIZE, "min": _SIZE})}),
        "jobspec": table_of({"defaults": table_of({"system": _SYSTEM})}),
        "access": ANYTHING,
        "scheduler": ANYTHING,
    }
)
"""The table ``policy`` of a queue, or of all queues (RFC 33)."""
QUEUE = table_of(
    {
        "requires": ValueKind(_requires, {"type": "array", "items": {"type": "string"}}),
        "hosts": ValueKind(_hosts, {"type": "string"}),
        "parent": ValueKind(ANYTHING.read, {"type": "string"}),
        "priority": _NUMBER,
        "policy": POLICY,
        "closed": ValueKind(_windows, {"type": "array", "items": {"type": ["string", "array"]}}),
        "preempts": SWITCH,
        "enabled": SWITCH,
        "started": SWITCH,
    }
)
"""The table of one queue (RFC 33)."""
