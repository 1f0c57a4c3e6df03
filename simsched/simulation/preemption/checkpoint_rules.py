"""`CheckpointRules`: the table ``[job-checkpoints]``, and how far a checkpointable job comes in a time.

A job writes a checkpoint after each `interval` of work, which takes `cost` seconds.  After a preemption or a
failure it goes on from its last complete checkpoint, once it has read it for `restart` seconds::

    [job-checkpoints]
    interval = "1h"
    cost = "30s"
    restart = "2m"

    [job-checkpoints.queues.debug]
    interval = "never"         # jobs of this queue write none

A job's own ``attributes.system.checkpoint`` has the same keys and goes before both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

from simsched.errors import ConfigError, did_you_mean
from simsched.formats.rfc.duration import parse_time

KEYS = ("interval", "cost", "restart")
ATTRIBUTE = "checkpoint"
"""The key in ``attributes.system`` of a jobspec."""
NEVER = "never"


@dataclass(frozen=True, slots=True)
class CheckpointTimes:
    """Seconds of work between checkpoints (inf: none), for writing one, and for reading one.

    >>> times = CheckpointTimes(10, 2, 3)
    >>> times.length(25), times.length(15, restarted=True)
    (29, 20)
    >>> [times.kept(seconds, 25) for seconds in (11, 12, 23, 24)]
    [0, 10, 10, 20]
    """

    interval: float = inf
    cost: float = 0
    restart: float = 0

    def number(self, work: float) -> int:
        """Return how many checkpoints are written during some seconds of work; none at its end."""
        return 0 if self.interval == inf or work <= 0 else ceil(work / self.interval) - 1

    def length(self, work: float, *, restarted: bool = False) -> float:
        """Return the seconds that an attempt at some seconds of work takes, all costs included."""
        return (self.restart if restarted else 0) + work + self.number(work) * self.cost

    def kept(self, seconds: float, work: float, *, restarted: bool = False) -> float:
        """Return the work in the complete checkpoints of an attempt that ends after `seconds`."""
        ran = seconds - (self.restart if restarted else 0)
        if self.interval == inf or ran <= 0:
            return 0
        return min(int(ran // (self.interval + self.cost)), self.number(work)) * self.interval

    def done(self, seconds: float, work: float, *, restarted: bool = False) -> float:
        """Return all work of an attempt after `seconds`, that after the last checkpoint included."""
        ran = seconds - (self.restart if restarted else 0)
        if ran <= 0:
            return 0
        if self.interval == inf:
            return min(ran, work)
        cycles = min(int(ran // (self.interval + self.cost)), self.number(work))
        rest = ran - cycles * (self.interval + self.cost)
        more = rest if cycles == self.number(work) else min(rest, self.interval)
        return min(cycles * self.interval + more, work)


@dataclass(frozen=True, slots=True)
class CheckpointRules:
    """The times of all jobs, and of those in some queues."""

    common: CheckpointTimes
    queues: tuple[tuple[str, CheckpointTimes], ...] = ()

    def times_of(self, queue: str | None, own: Any, where: str) -> CheckpointTimes | None:
        """Return the times of a job in a queue with its `own` attribute; None if it writes no checkpoints.

        Raises
        ------
        ConfigError, FormatError
            for an attribute of another form; `where` is its place.
        """
        times = dict(self.queues).get(queue or "", self.common)
        return times_of(own, times, where)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a document has it."""
        queues = {name: _plain(times) for name, times in self.queues}
        return _plain(self.common) | ({"queues": queues} if queues else {})


def times_of(own: Any, common: CheckpointTimes, where: str) -> CheckpointTimes | None:
    """Return the times of a job with its `own` attribute over the common ones; None for no checkpoints."""
    times = common if own is None else _times(_table(own, KEYS, where), common, where)
    return None if times.interval == inf else times


def _plain(times: CheckpointTimes) -> dict[str, Any]:
    interval = NEVER if times.interval == inf else times.interval
    return {"interval": interval, "cost": times.cost, "restart": times.restart}


def read_checkpoints(value: Any, where: str) -> CheckpointRules | None:
    """Read the table of a configuration, or rules.

    Raises
    ------
    ConfigError, FormatError
        for an unknown key, an interval of 0, and costs that never end.
    """
    if isinstance(value, CheckpointRules | None):
        return value
    table = _table(value, (*KEYS, "queues"), where)
    common = _times(table, CheckpointTimes(), where)
    queues = table.get("queues", {})
    if not isinstance(queues, Mapping):
        raise ConfigError("not a table", where=f"{where}.queues", expected="names of queues")
    named = []
    for name, item in queues.items():
        place = f"{where}.queues.{name}"
        named.append((str(name), _times(_table(item, KEYS, place), common, place)))
    return CheckpointRules(common, tuple(named))


def _table(value: Any, keys: tuple[str, ...], where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError("not a table", where=where, expected=", ".join(keys))
    for key in value:
        if key not in keys:
            hint = did_you_mean(str(key), keys)
            raise ConfigError(f"unknown key {key!r}{hint}", where=where, expected=", ".join(keys))
    return value


def _times(table: Mapping[str, Any], common: CheckpointTimes, where: str) -> CheckpointTimes:
    found = common
    if "interval" in table:
        value, place = table["interval"], f"{where}.interval"
        interval = inf if value == NEVER else parse_time(value, where=place)
        if interval <= 0:
            raise ConfigError("the interval is 0 s", where=place, expected=f"a time, or {NEVER!r}")
        found = replace(found, interval=interval)
    for key in ("cost", "restart"):
        if key in table:
            seconds = parse_time(table[key], where=f"{where}.{key}")
            if seconds == inf:
                raise ConfigError(
                    "the time has no end", where=f"{where}.{key}", expected="a time such as 30s"
                )
            found = replace(found, **{key: seconds})
    return found
