"""The kinds of limits: what each counts of a job, while when, and its words.

A kind is one entry of `KINDS`.  The reader of ``[[limits]]``, the run, `feasible`, `why`, ``simsched check``
and ``simsched policies`` go by it, and know nothing else of a kind.
"""

from __future__ import annotations

import re
from math import inf, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.errors import ConfigError, SimschedError
from simsched.formats.rfc.duration import format_duration, parse_time
from simsched.formats.rfc.units import convert_up, unit_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.graph.index.index import Index

RUNNING, SUBMITTED = "running-jobs", "submitted-jobs"
NO_LIMIT = -1
MOST = 2**53
SLACK = 1e-6
"""Unit-seconds by which a limit in hours may be exceeded: hours need not be whole seconds."""

NAMES, REQUEST, TIME = range(3)
"""What a kind reads of a job: its names alone, its request as well, or its requested duration, too."""

_AMOUNT = re.compile(r"\s*(\d{1,15})\s*([A-Za-z]+)\s*")
_AT_LEAST = "0 or more, or -1 for no limit"


class Amounts(NamedTuple):
    """What a job takes: units, and the seconds that it requests."""

    nodes: float
    cores: float
    gpus: float
    memory: float
    seconds: float


UNITS = Amounts._fields[:-1]


class LimitKind:
    """A kind of limit: this class is for jobs that run at a time, which count 1 each.

    Attributes
    ----------
    name : its key in ``[[limits]]``.
    meaning, source : for ``simsched policies``: what it limits, and the options of schedulers that are alike.
    unit : the field of `Amounts` that it counts; None: it counts jobs or seconds.
    reads : what it reads of a job.
    slack : by how much a sum may exceed a limit.
    falls : whether its use falls while jobs run.
    lasts : whether jobs count for ever, by what they used, once they have ended.
    while_submitted : whether a job counts from its submission, and not from its start.
    of_one_job, of_several : whether it may limit single jobs, and jobs together.
    zero_bars : whether a limit of 0 allows no job at all.
    """

    reads = NAMES
    slack = 0.0
    falls = lasts = while_submitted = False
    of_one_job, of_several = False, True
    zero_bars = True

    def __init__(self, name: str, meaning: str, source: str, unit: str | None = None) -> None:
        self.name, self.meaning, self.source, self.unit = name, meaning, source, unit
        self.noun = "job" if unit is None else unit.removesuffix("s")

    # -- what it counts ---------------------------------------------------------------------------

    def asks(self, amounts: Amounts) -> float:
        """Return how much a job counts from its start, or its submission, on."""
        return 1

    def rate(self, amounts: Amounts) -> float:
        """Return the units that a job uses at any time while it runs; 0 unless the kind counts hours."""
        return 0

    def leaves(self, amounts: Amounts, seconds: float) -> float:
        """Return how much a job counts for ever once it has run for these seconds."""
        return 0

    # -- its values -------------------------------------------------------------------------------

    def read(self, value: Any, where: str) -> float | str:
        """Return the value of a configuration; ConfigError or FormatError for one that is not valid."""
        if value == NO_LIMIT and not isinstance(value, bool):
            return NO_LIMIT
        return self._read(value, where)

    def _read(self, value: Any, where: str) -> float | str:
        return _number(value, where, int, "a whole number")

    def written(self, value: float | str) -> float | str:
        """Return a value as the tables of a site show it."""
        return value

    def most(self, value: float | str, index: Index, where: str) -> float:
        """Return the most that a value allows, in the units that are counted; inf: any amount."""
        assert not isinstance(value, str)
        return inf if value == NO_LIMIT else value

    # -- its words --------------------------------------------------------------------------------

    def text(self, amount: float) -> str:
        """Return an amount with its unit, such as ``1 job``."""
        text = f"{amount:,.0f}" if float(amount).is_integer() else f"{amount:,.6g}"
        return f"{text} {self.noun}{'' if text == '1' else 's'}"

    def bound(self, who: str, most: float) -> str:
        """Return a limit as a sentence on each of the jobs."""
        return f"{who} may use at most {self.text(most)}"

    def used_up(self, who: str, most: float, used: float) -> str:
        """Return a sentence on a limit that leaves no room for a job."""
        return f"{who} may run {self.text(most)}, and {self.text(used)} {'runs' if used == 1 else 'run'}"


class SubmittedJobs(LimitKind):
    """Jobs that wait or run at a time."""

    while_submitted = True

    def used_up(self, who: str, most: float, used: float) -> str:
        """Return a sentence on a limit that leaves no room for a job."""
        return f"{who} may have {self.text(most)} submitted at a time"


class Units(LimitKind):
    """Units in use at a time."""

    reads = REQUEST
    of_one_job = True

    def __init__(self, name: str, meaning: str, source: str) -> None:
        super().__init__(name, meaning, source, name)
        self._at = Amounts._fields.index(name)
        self.zero_bars = name == "nodes"

    def asks(self, amounts: Amounts) -> float:
        """Return the units of a job."""
        return amounts[self._at]

    def used_up(self, who: str, most: float, used: float) -> str:
        """Return a sentence on a limit that leaves no room for a job."""
        return f"{who} may use {self.text(most)}, and {self.text(used)} {'is' if used == 1 else 'are'} used"


class Memory(Units):
    """Memory in use at a time, in the unit of the cluster or in one that is given."""

    def _read(self, value: Any, where: str) -> float | str:
        if not isinstance(value, str):
            return super()._read(value, where)
        found = _AMOUNT.fullmatch(value)
        if found is None:
            raise ConfigError(f"{value!r} is not an amount of memory", where=where, expected="such as 512 GB")
        if unit_of(found[2], where).dimension != "memory":
            raise ConfigError(
                f"{found[2]} is not a unit of memory", where=where, expected="such as GB or GiB"
            )
        return f"{found[1]} {found[2]}"

    def most(self, value: float | str, index: Index, where: str) -> float:
        """Return the most units of memory; inf on a cluster without memory."""
        pool = index.pool_types.get("memory")
        return inf if value == NO_LIMIT or pool is None else memory_in(value, pool.unit or "", where)

    def text(self, amount: float) -> str:
        """Return an amount of memory."""
        return f"{amount:g} unit{'' if amount == 1 else 's'} of memory"


class HoursInAll(Units):
    """Hours of units: those that ended jobs used, and those that running jobs request."""

    reads = TIME
    slack = SLACK
    lasts = True

    def __init__(self, name: str, meaning: str, source: str, unit: str) -> None:
        super().__init__(unit, meaning, source)
        self.name, self.noun, self.zero_bars = name, f"{self.noun}-hour", False

    def _read(self, value: Any, where: str) -> float | str:
        return _number(value, where, int | float, "a number of hours")

    def most(self, value: float | str, index: Index, where: str) -> float:
        """Return the most unit-seconds."""
        most = super().most(value, index, where)
        return most if most == inf else round(most * 3600, 3)

    def asks(self, amounts: Amounts) -> float:
        """Return the unit-seconds that a job requests."""
        units = amounts[self._at]
        return units * amounts.seconds if units else 0

    def rate(self, amounts: Amounts) -> float:
        """Return the units of a job."""
        return amounts[self._at]

    def leaves(self, amounts: Amounts, seconds: float) -> float:
        """Return the unit-seconds that a job has used."""
        return amounts[self._at] * seconds

    def text(self, amount: float) -> str:
        """Return unit-seconds as hours."""
        return super().text(amount / 3600)


class HoursAhead(HoursInAll):
    """Hours of units that running jobs may still use."""

    falls, lasts = True, False
    of_one_job = False

    def leaves(self, amounts: Amounts, seconds: float) -> float:
        """Return 0: a job that ended has nothing ahead."""
        return 0


class Duration(LimitKind):
    """The duration that each job may request."""

    reads = TIME
    of_one_job, of_several = True, False

    def asks(self, amounts: Amounts) -> float:
        """Return the requested seconds."""
        return amounts.seconds

    def _read(self, value: Any, where: str) -> float | str:
        return parse_time(value, where=where)

    def written(self, value: float | str) -> float | str:
        """Return a duration as text."""
        return format_duration(value) if isinstance(value, int | float) else value

    def text(self, amount: float) -> str:
        """Return a duration as text."""
        return format_duration(amount)

    def bound(self, who: str, most: float) -> str:
        """Return a limit as a sentence on each of the jobs."""
        return f"{who} may request at most {self.text(most)}"


def _number(value: Any, where: str, kinds: Any, what: str) -> float:
    if not isinstance(value, kinds) or isinstance(value, bool) or (isinstance(value, float) and isnan(value)):
        raise ConfigError(f"{value!r} is not {what}", where=where, expected=_AT_LEAST)
    if not 0 <= value < MOST:
        raise ConfigError(f"the limit is {value}", where=where, expected=_AT_LEAST)
    number: float = value
    return number


def memory_in(amount: float | str, unit: str, where: str) -> float:
    """Return an amount of memory in the unit of a cluster; ConfigError if it has none to convert to."""
    if not isinstance(amount, str):
        return amount
    number, given = amount.split()
    try:
        return convert_up(int(number), given, unit, where)
    except SimschedError:
        raise ConfigError(
            f"the memory of the cluster is not in a unit to which {amount} could be converted",
            where=where,
            expected="a number without a unit",
        ) from None


_AT_A_TIME, _IN_ALL, _AHEAD = (
    "Slurm GrpTRES and MaxTRES; PBS max_run_res",
    "Slurm GrpTRESMins",
    "Slurm GrpTRESRunMins",
)

KINDS: Mapping[str, LimitKind] = {
    kind.name: kind
    for kind in (
        LimitKind(
            RUNNING,
            "jobs that run at a time",
            "Slurm MaxJobs and GrpJobs; flux-accounting max_running_jobs; PBS max_run",
        ),
        SubmittedJobs(
            SUBMITTED,
            "jobs that wait or run at a time",
            "Slurm MaxSubmitJobs; flux-accounting max_active_jobs; PBS max_queued",
        ),
        Units("nodes", "nodes in use at a time", _AT_A_TIME),
        Units("cores", "cores in use at a time", _AT_A_TIME),
        Units("gpus", "GPUs in use at a time", _AT_A_TIME),
        Memory(
            "memory",
            "memory in use at a time, such as 512 GB; a number is in the unit of the cluster",
            _AT_A_TIME,
        ),
        HoursInAll(
            "node-hours",
            "node-hours in all: used by jobs that ended, and requested by those that run",
            _IN_ALL,
            "nodes",
        ),
        HoursInAll("core-hours", "core-hours in all, in the same way", _IN_ALL, "cores"),
        HoursInAll("gpu-hours", "GPU-hours in all, in the same way", _IN_ALL, "gpus"),
        HoursAhead(
            "running-node-hours",
            "node-hours that running jobs may still use, by their requested durations",
            _AHEAD,
            "nodes",
        ),
        HoursAhead("running-core-hours", "core-hours that running jobs may still use", _AHEAD, "cores"),
        HoursAhead("running-gpu-hours", "GPU-hours that running jobs may still use", _AHEAD, "gpus"),
        Duration("duration", "the duration that each of the jobs may request", "Slurm MaxWall; RFC 33"),
    )
}
"""Key of a limit → its kind."""
