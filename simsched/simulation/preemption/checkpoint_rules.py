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
from math import ceil, inf
from typing import Annotated, Any, Self

from simsched.declare.kinds import ValueKind
from simsched.declare.table import Declared, inherited
from simsched.errors import ConfigError
from simsched.formats.rfc.declared import DURATION, seconds
from simsched.formats.rfc.duration import parse_time

ATTRIBUTE = "checkpoint"
"""The key in ``attributes.system`` of a jobspec."""
NEVER = "never"


def _interval(value: Any, where: str) -> float:
    found = inf if value == NEVER else parse_time(value, where=where)
    if found <= 0:
        raise ConfigError("the interval is 0 s", where=where, expected=f"a time, or {NEVER!r}")
    return found


Interval = Annotated[float, ValueKind(_interval, DURATION, lambda value: NEVER if value == inf else value)]
Seconds = Annotated[float, seconds("a time such as 30s")]


class CheckpointTimes(Declared, frozen=True):
    """How a job writes checkpoints.

    interval : seconds of work between checkpoints; inf: none.
    cost : seconds for writing one.
    restart : seconds for reading one.

    >>> times = CheckpointTimes(10, 2, 3)
    >>> times.length(25), times.length(15, restarted=True)
    (29, 20)
    >>> [times.kept(seconds, 25) for seconds in (11, 12, 23, 24)]
    [0, 10, 10, 20]
    """

    complete = True

    interval: Interval = inf
    cost: Seconds = 0
    restart: Seconds = 0

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


class CheckpointRules(CheckpointTimes, frozen=True):
    """The times of all jobs, and of those in some queues.

    queues : queue → the times of its jobs.
    """

    queues: Mapping[str, CheckpointTimes] = {}

    @classmethod
    def read(cls, value: Any, where: str, base: Self | None = None) -> Self:
        """Read the table of a configuration, or rules; errors as `Declared.read`."""
        given = inherited(value, CheckpointTimes, "queues") if isinstance(value, Mapping) else value
        return super().read(given, where, base)

    def times_of(self, queue: str | None, own: Any, where: str) -> CheckpointTimes | None:
        """Return the times of a job in a queue with its `own` attribute; None if it writes no checkpoints.

        Raises
        ------
        ConfigError, FormatError
            for an attribute of another form; `where` is its place.
        """
        common = self.queues.get(queue or "", self)
        times = common if own is None else CheckpointTimes.read(own, where, common)
        return None if times.interval == inf else times


def read_checkpoints(value: Any, where: str) -> CheckpointRules | None:
    """Read the table of a configuration, or rules; errors as `Declared.read`."""
    return None if value is None else CheckpointRules.read(value, where)
