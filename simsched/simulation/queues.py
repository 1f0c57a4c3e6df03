"""Named queues after RFC 33: their targets, limits, defaults and priorities.

A queue names the targets that it may use (``requires``: properties, or ``hosts``), limits and
defaults.  A virtual queue has a ``parent``, whose targets and limits it has unless it has its
own.  A queue's constraint is and-ed to the job's.  Queues whose targets overlap are scheduled
as one, those of higher priority first; queues on disjoint targets are scheduled each by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.clock import DateText, parse_when, seconds_on
from simsched.formats.rfc.duration import parse_time
from simsched.formats.rfc.hostlist import Hostlist
from simsched.simulation.weekly_hours import EXPECTED, WeeklyHours

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.rfc.clock import Clock
    from simsched.formats.rfc.constraint import Constraint
    from simsched.simulation.weekly_hours import Window

KEYS = ("requires", "hosts", "parent", "priority", "policy", "closed", "preempts", "enabled", "started")
WHERE = ("requires", "hosts")
DEFAULTS = ("duration", "queue")
"""Attributes that a queue, or all queues, may set for jobs that do not set them."""

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
    longest : most seconds that a job may request; jobs without a duration may get it (`admission.admit`).
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
        made: dict[str, Queue] = {}
        common = _with_policy(Queue(""), policy or {}, "policy")
        for name in document:
            _make(name, document, made, (), where, common)
        if default is not None and default not in made:
            raise ConfigError(
                f"the default queue {default!r} does not exist", where=where, expected=", ".join(made)
            )
        return cls(made, default)


def _make(
    name: str,
    document: Mapping[str, Any],
    made: dict[str, Queue],
    above: tuple[str, ...],
    where: str,
    common: Queue,
) -> Queue:
    if name in made:
        return made[name]
    place = f"{where}.{name}"
    entry = document[name]
    if not isinstance(entry, dict):
        raise ConfigError("a queue is a table", where=place, expected=", ".join(KEYS))
    _refuse_unknown(entry, KEYS, place)
    base = replace(common, name=name)
    parent = entry.get("parent")
    if parent is not None:
        if not isinstance(parent, str) or parent not in document or parent in (*above, name):
            raise ConfigError(
                f"the parent {parent!r} is not another queue", where=place, expected="another queue's name"
            )
        base = replace(_make(parent, document, made, (*above, name), where, common), name=name)
    made[name] = _with_policy(
        replace(
            base,
            constraint=base.constraint if entry.keys().isdisjoint(WHERE) else _constraint(entry, place),
            priority=_integer(entry.get("priority", base.priority), f"{place}.priority"),
            preempts=_flag(entry.get("preempts", base.preempts), f"{place}.preempts"),
            closed=_closed(entry, base.closed, place),
            enabled=_flag(entry.get("enabled", base.enabled), f"{place}.enabled"),
        ),
        entry.get("policy", {}),
        f"{place}.policy",
    )
    return made[name]


def _refuse_unknown(entry: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    if not isinstance(entry, dict):
        raise ConfigError("not a table", where=place, expected=", ".join(known))
    odd = next((key for key in entry if key not in known), None)
    if odd is not None:
        raise ConfigError(f"unknown key {odd!r}", where=place, expected=", ".join(known))


def _constraint(entry: Mapping[str, Any], place: str) -> Constraint | None:
    requires, hosts = entry.get("requires"), entry.get("hosts")
    parts: list[Constraint] = []
    if requires is not None:
        if not isinstance(requires, list) or not all(isinstance(name, str) for name in requires):
            raise ConfigError("requires is a list of properties", where=f"{place}.requires")
        parts.append(rfc31.from_json({"properties": requires}, f"{place}.requires"))
    if hosts is not None and hosts != "all":
        parts.append(rfc31.Hosts(Hostlist.parse(str(hosts), where=f"{place}.hosts")))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else rfc31.And(tuple(parts))


def _integer(value: Any, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{value!r} is not a whole number", where=place)
    if abs(value) >= MOST:
        raise ConfigError("the number is too large", where=place, expected=f"less than {MOST}")
    return value


def _flag(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{value!r} is not true or false", where=place)
    return value


def _closed(entry: Mapping[str, Any], above: tuple[Window, ...], place: str) -> tuple[Window, ...]:
    """Return the times at which nothing of a queue starts; `above` are those of its parent."""
    windows = _windows(entry["closed"], f"{place}.closed") if "closed" in entry else above
    if "started" not in entry:
        return windows
    started = _flag(entry["started"], f"{place}.started")
    if not started:
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


def _with_policy(queue: Queue, policy: Mapping[str, Any], place: str) -> Queue:
    """Read limits and defaults: ``limits.duration``, ``limits.job-size.max.nnodes`` and the like."""
    _refuse_unknown(policy, ("limits", "jobspec", "access", "scheduler"), place)
    limits = policy.get("limits", {})
    _refuse_unknown(limits, ("duration", "job-size"), f"{place}.limits")
    if "duration" in limits:
        # 0 means no limit: with it a queue lifts the limit for all queues
        longest = parse_time(limits["duration"], where=f"{place}.limits.duration") or INF
        queue = replace(queue, longest=longest)
    size = limits.get("job-size", {})
    _refuse_unknown(size, ("max", "min"), f"{place}.limits.job-size")
    most = _sizes(size.get("max", {}), queue.most, f"{place}.limits.job-size.max")
    least = _sizes(size.get("min", {}), queue.least, f"{place}.limits.job-size.min")
    queue = replace(queue, most=most, least=least)
    system = policy
    for key, known in (("jobspec", ("defaults",)), ("defaults", ("system",)), ("system", DEFAULTS)):
        system = system.get(key, {})
        place = f"{place}.{key}"
        _refuse_unknown(system, known, place)
    if "duration" in system:
        seconds = parse_time(system["duration"], where=f"{place}.duration") or INF
        queue = replace(queue, default_duration=seconds)
    return queue


def _sizes(value: Mapping[str, Any], above: Mapping[str, int], place: str) -> dict[str, int]:
    """Return limits on sizes over those `above`; with -1 a queue has no limit, whatever is above."""
    _refuse_unknown(value, tuple(SIZES), place)
    given = {key: _integer(number, f"{place}.{key}") for key, number in value.items()}
    return {key: number for key, number in {**above, **given}.items() if number != NO_LIMIT}
