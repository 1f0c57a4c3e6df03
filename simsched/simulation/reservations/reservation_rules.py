"""`AdvanceReservation`: one table ``[[reservations]]`` of a configuration.

::

    [[reservations]]
    name = "course"
    start = "2d"               # seconds, a duration or a date; or "flexible": as soon as possible;
                               # or "now+1h": it moves, and no job of more than 1h may start on its nodes
    duration = "4h"
    nodes = 8                  # or hosts = "n[0-7]", or shape = "node=4/slot=2/core=8"
    cores = 2                  # of each node, not the whole node; or {n0 = "0-1", n1 = "4-7"}: by ids
    licenses = "matlab:2"      # also without nodes
    requires = ["gpu"]         # properties of the nodes
    users = ["alice"]          # who may use it: users, accounts, queues; without any, every job that names it
    match = "all"              # its jobs have one of each of these; "any": of one of them
    announced = "1d"           # when it is made and known to the scheduler; from the beginning by default
    earliest = "2d"            # of a flexible start: not before, and at most until
    latest = "3d"
    repeat = "daily"           # or "hourly", "weekly", "weekdays", "weekends"
    times = 5
    ignore-jobs = true         # jobs that run on its nodes do not prevent it, and run on
    overlaps = true            # it may have nodes of other reservations, whose jobs end before it begins
    flex = true                # its jobs may also run before and after it, and on other nodes
    magnetic = true            # jobs that may use it need not name it

A job names its reservation in ``attributes.system.reservation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import count, islice
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from simsched.declare.kinds import HIDDEN, ValueKind, choice, listed, names, text, whole
from simsched.declare.table import Declared
from simsched.errors import ConfigError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.clock import Clock, DateText, When, seconds_on
from simsched.formats.rfc.declared import TIME_OF_RUN, WHEN, seconds
from simsched.formats.rfc.duration import MAX_SECONDS, parse_time
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.rfc.idset import Idset
from simsched.simulation.licences.licence_pools import LICENCES, read_licences

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.workload.job import Job

ATTRIBUTE = "reservation"
"""The key in ``attributes.system`` of a jobspec."""
FLEXIBLE = "flexible"
FLOATING = "now+"
"""The begin of a start that moves with the time."""
DAY = 86400
REPEATS = {"hourly": 3600, "daily": DAY, "weekly": 7 * DAY, "weekdays": DAY, "weekends": DAY}
"""Word → the seconds between windows, at least."""
DAYS = {"weekdays": frozenset(range(5)), "weekends": frozenset({5, 6})}
"""Word → the days of the week of all windows but the first; Monday is 0."""
MOST_TIMES = 10_000
WHO = ("users", "accounts", "queues")
PLACES = ("nodes", "hosts", "shape")
TIMES = ("start", "announced", "earliest", "latest")
SWITCHES = ("ignore-jobs", "overlaps", "flex", "magnetic")
"""Keys of those that are true or false."""


class Ahead(float):
    """Seconds from now: a start that moves with the time."""


def _start(value: Any, where: str) -> When | None:
    """Return a time or a date, None for as soon as possible, or seconds from now."""
    if value == FLEXIBLE:
        return None
    if not isinstance(value, str) or not value.replace(" ", "").startswith(FLOATING):
        found: When = TIME_OF_RUN.read(value, where)
        return found
    ahead = value.partition("+")[2].strip()
    seconds_ahead = parse_time(int(ahead) if ahead.isdecimal() else ahead, where=where)
    if not 0 < seconds_ahead <= MAX_SECONDS:
        raise ConfigError(f"{value!r} is not a time", where=where, expected="such as now+1h")
    return Ahead(seconds_ahead)


def _hosts(value: Any, where: str) -> str:
    hosts = str(text("a hostlist", "such as n[0-3]").read(value, where))
    Hostlist.parse(hosts, where=where)
    return hosts


def _shape(value: Any, where: str) -> str:
    shape = str(text("a shape", "such as node=4").read(value, where))
    Jobspec.from_shape(shape)
    return shape


def _cores(value: Any, where: str) -> int | tuple[tuple[str, str], ...]:
    """Return the number of cores on each node, or (host, idset) of each host."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if not isinstance(value, Mapping) or not value:
        expected = 'a number from 1 on, or {n0 = "0-1"}'
        raise ConfigError(f"{value!r} is not a number of cores", where=where, expected=expected)
    found = []
    for host, ids in value.items():
        parsed = Idset.parse(str(ids), where=f"{where}.{host}")
        if not parsed:
            raise ConfigError("no core", where=f"{where}.{host}", expected="such as 0-1")
        if Hostlist.parse(str(host), where=where).expand() != [str(host)]:
            expected = 'each by itself: {n0 = "0-1"}'
            raise ConfigError(f"{host!r} is not one host", where=where, expected=expected)
        found.append((str(host), str(parsed)))
    return tuple(found)


def _licences(value: Any, where: str) -> tuple[tuple[str, int], ...]:
    found = read_licences(value, where) if value else None
    return tuple(pair for pair in (found or {}).items() if pair[1])


Names = Annotated[tuple[str, ...], names("a list of names", '["alice"]', empty=True)]
Seconds = Annotated[float, seconds()]
Time = Annotated[When, TIME_OF_RUN]
Cores = ValueKind(
    _cores, {"type": ["integer", "object"]}, lambda cores: cores if isinstance(cores, int) else dict(cores)
)


class AdvanceReservation(Declared, frozen=True, kw_only=True):
    """One reservation as it is requested; times are seconds of the run once `on_clock` has been called.

    Attributes
    ----------
    name : the name by which jobs request it in ``attributes.system.reservation``.
    start : when it begins: a time or date, ``flexible`` (as soon as possible, from `earliest` until
        `latest`), or ``now+1h``, which moves (scontrol(1), TIME_FLOAT).
    duration : its seconds.
    announced : the time from which it is made and the scheduler knows it.
    earliest, latest : bounds of a flexible start.
    nodes : the number of its nodes; or their names (hosts), or those that a request takes (shape).
    hosts : the names of its nodes.
    shape : a request, whose nodes it takes.
    cores : cores of its nodes, not whole nodes: a number, or the ids of each host (scontrol(1), CoreCnt and
        CoreIDs).
    licenses : its licences, also without nodes (scontrol(1), Licenses and ANY_NODES).
    requires : properties of the nodes.
    users, accounts, queues : whose jobs may use it; all empty: every job that names it (scontrol(1), Users
        and Accounts).
    match : whether a job needs one of ``all`` of these that are given, or of ``any`` of them.
    repeat : its windows: hourly, daily, weekly, weekdays, weekends (scontrol(1), HOURLY, DAILY, WEEKLY,
        WEEKDAY, WEEKEND).
    times : the number of its windows.
    ignore_jobs : jobs that run on its nodes do not prevent it, and run on (scontrol(1), IGNORE_JOBS).
    overlaps : its nodes may be those of other reservations, whose jobs end before it begins (scontrol(1),
        MAINT and OVERLAP).
    flex : its jobs may also run around its windows and on other nodes (scontrol(1), FLEX).
    magnetic : jobs that may use it need not name it (scontrol(1), MAGNETIC).
    ahead : of a start that moves with the time: seconds from now; None for other starts.
    clock : the clock of the run, to know the days.
    """

    name: str
    start: Annotated[When | None, ValueKind(_start, WHEN, TIME_OF_RUN.write)] = None
    duration: Seconds = inf
    announced: Time = 0
    earliest: Time = 0
    latest: Time = inf
    nodes: Annotated[int | None, whole(1, what="a number of nodes", expected="1 or more")] = None
    hosts: Annotated[str | None, ValueKind(_hosts, {"type": "string"})] = None
    shape: Annotated[str | None, ValueKind(_shape, {"type": "string"})] = None
    cores: Annotated[int | tuple[tuple[str, str], ...] | None, Cores] = None
    licenses: Annotated[tuple[tuple[str, int], ...], ValueKind(_licences, LICENCES.described, dict)] = ()
    requires: Names = ()
    users: Names = ()
    accounts: Names = ()
    queues: Names = ()
    match: Literal["any", "all"] = "any"
    repeat: Annotated[str | None, choice(*REPEATS)] = None
    times: Annotated[int, whole(1, MOST_TIMES, "a number of times", f"1 to {MOST_TIMES:,}")] = 1
    ignore_jobs: bool = False
    overlaps: bool = False
    flex: bool = False
    magnetic: bool = False
    ahead: Annotated[float | None, HIDDEN] = None
    clock: Annotated[Clock | None, HIDDEN] = None
    where: str = "reservations"

    @property
    def days(self) -> str | None:
        """`weekdays` or `weekends`: its windows, from the second one on, begin on such days."""
        return self.repeat if self.repeat in DAYS else None

    @property
    def has_nodes(self) -> bool:
        """Whether it has nodes, and not licences alone."""
        return any(getattr(self, key) is not None for key in PLACES)

    def spans(self, start: float) -> list[tuple[float, float]]:
        """Return the begins and ends (s) of its windows if the first one begins at a time."""
        if self.ahead is not None:
            return [(start + self.ahead, self.seconds("latest"))]
        turns: Iterable[int] = range(self.times)
        if self.days is not None:
            assert self.clock is not None, "it is not on a clock yet"
            first = self.clock.local(start)
            wanted = (
                turn for turn in count(1) if (first + timedelta(turn)).weekday() in DAYS[self.days or ""]
            )
            turns = (0, *islice(wanted, self.times - 1))
        period = 0 if self.repeat is None else REPEATS[self.repeat]
        begins = (start + turn * period for turn in turns)
        return [(begin, begin + self.duration) for begin in begins]

    def on_clock(self, clock: Clock | None) -> AdvanceReservation | None:
        """Return the reservation with its dates as seconds of the run; None if it ends before second 0.

        One with a date that began before second 0 keeps its start, so that its windows remain where they are.

        Raises
        ------
        ConfigError
            for dates without a clock, and times that are in the wrong order.
        """
        made: dict[str, Any] = {
            key: seconds_on(value, clock, f"{self.where}.{key}")
            for key in TIMES
            if (value := getattr(self, key)) is not None
        }
        found = self.replace(**made)
        announced, start = found.seconds("announced"), found.start
        if found.days is not None:
            if clock is None:
                text = f"the workload has no dates, so {found.days} are not known"
                raise ConfigError(text, where=f"{self.where}.repeat", expected="--start-date DATE")
            found = found.replace(clock=clock)
        began = found.seconds("start") if start is not None else 0
        if began < 0 and found.spans(began)[-1][1] <= 0:
            return None
        if start is not None and max(began, 0) < announced:
            text = f"it starts at {start} and is announced at {found.announced}"
            raise ConfigError(text, where=self.where, expected="an announcement before the start")
        if start is None and found.seconds("latest") < max(announced, found.seconds("earliest")):
            expected = "a latest start after the announcement and the earliest start"
            raise ConfigError(f"its latest start is {found.latest}", where=self.where, expected=expected)
        if found.ahead is not None and found.seconds("latest") <= announced + found.ahead:
            text = f"{FLOATING}{found.ahead:g} never begins before its latest start, {self.latest}"
            expected = f"a latest start more than {found.ahead:g} s after the announcement"
            raise ConfigError(text, where=f"{self.where}.latest", expected=expected)
        return found

    def seconds(self, key: str) -> float:
        """Return one of its times, which must be on a clock."""
        value = getattr(self, key)
        assert not isinstance(value, DateText)
        return float(value) if isinstance(value, float) else int(value)

    def fault_of(self, job: Job) -> str | None:
        """Return why a job may not use it, or None."""
        mine = ((self.users, job.user), (self.accounts, job.bank), (self.queues, job.queue))
        if self.ahead is not None:
            return f"the reservation {self.name!r} moves with the time, so no job can use it"
        known = [one in names for names, one in mine if names]
        if known and not (all(known) if self.match == "all" else any(known)):
            allowed = [f"{key} {', '.join(getattr(self, key))}" for key in WHO if getattr(self, key)]
            return f"the reservation {self.name!r} is for {' and '.join(allowed)}"
        if not self.flex and (job.duration is None or job.duration > self.duration):
            return f"the reservation {self.name!r} lasts {self.duration:g} s, and the job may run longer"
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a document has it, for ``run.json``."""
        found = {"announced": 0, "earliest": 0, **super().to_dict()}
        if self.ahead is not None:
            del found["duration"]
            return found | {"start": f"{FLOATING}{self.ahead:g}"}
        return {"start": FLEXIBLE, "times": self.times, **found}

    def checked(self, where: str) -> Self:
        """Return the reservation; ConfigError for keys that contradict each other, or that no run follows."""
        one = self
        if isinstance(self.start, Ahead):
            fixed = 0 if self.duration == inf else self.duration
            one = self.replace(start=None, ahead=self.start, duration=fixed)
        elif not 0 < self.duration <= MAX_SECONDS:
            place = f"{where}.duration"
            raise ConfigError("the reservation has no duration", where=place, expected="such as 4h")
        one = one._with_hosts(where)
        given = [key for key in PLACES if getattr(one, key) is not None]
        if len(given) > 1 or not (given or one.licenses):
            fault = f"{' and '.join(given)} of one reservation" if given else "the reservation has no nodes"
            raise ConfigError(fault, where=where, expected="one of nodes, hosts, shape")
        partial, moves = one.cores is not None, one.ahead is not None
        which = "a fixed start" if one.start is not None else "a start that moves with the time"
        late = {key for key in ("earliest", "latest") if getattr(self, key) not in (0, inf)}
        period = REPEATS.get(one.repeat or "", inf)
        such = "{} of such a reservation"
        overlapping = f"a {one.repeat} reservation of {one.duration:g} s overlaps itself"
        wrong = (
            ("times", one.times > 1 and one.repeat is None, "{} without repeat", 'repeat = "daily"'),
            ("duration", one.duration > period, overlapping, f"at most {period} s"),
            ("earliest", "earliest" in late and (one.start is not None or moves), f"{{}} of {which}", _FREE),
            ("latest", "latest" in late and one.start is not None, f"{{}} of {which}", _FREE),
            ("cores", partial and (one.shape is not None or not given), such, "nodes or hosts"),
            ("cores", partial and one.overlaps, such, "whole nodes with overlaps = true"),
            ("requires", bool(one.requires) and not given, such, "nodes, hosts or shape"),
            ("start", moves and (partial or bool(one.licenses or one.repeat)), which, _WHOLE),
            ("magnetic", one.magnetic and moves, such, "a start that does not move"),
            ("magnetic", one.magnetic and not given, such, "nodes, hosts or shape"),
        )
        for key, is_wrong, fault, expected in wrong:
            if is_wrong:
                raise ConfigError(fault.format(key), where=f"{where}.{key}", expected=expected)
        return one

    def _with_hosts(self, where: str) -> Self:
        """Return the reservation with the hosts of its cores, if these are given by host."""
        if not isinstance(self.cores, tuple):
            return self
        named = [host for host, _ in self.cores]
        if self.nodes is not None:
            raise ConfigError("cores by host of a number of nodes", where=f"{where}.cores", expected="hosts")
        if self.hosts is not None and sorted(Hostlist.parse(self.hosts).expand()) != sorted(named):
            fault = f"cores of {encode_hosts(named)}, the reservation has {self.hosts}"
            raise ConfigError(fault, where=f"{where}.cores", expected="the cores of each of its hosts")
        return self.replace(hosts=self.hosts or encode_hosts(named))


_FREE = f'start = "{FLEXIBLE}"'
_WHOLE = "whole nodes, and no repeat"


def read_reservations(value: Any, where: str) -> tuple[AdvanceReservation, ...]:
    """Read the tables of a configuration, or reservations; errors as `Declared.read`."""
    tables = listed(ValueKind(AdvanceReservation.read), expected="[[reservations]]")
    found: tuple[AdvanceReservation, ...] = tables.read(value, where)
    known = [one.name for one in found]
    for one in found:
        if known.count(one.name) > 1:
            raise ConfigError(f"the name {one.name!r} occurs twice", where=one.where, expected="another name")
    return found


def constraint_of(reservation: AdvanceReservation) -> rfc31.Constraint | None:
    """Return the constraint on its targets: hosts and properties; None for all targets."""
    parts: list[rfc31.Constraint] = []
    if reservation.requires:
        place = f"{reservation.where}.requires"
        parts.append(rfc31.from_json({"properties": list(reservation.requires)}, place))
    if reservation.hosts is not None and reservation.hosts != "all":
        parts.append(rfc31.Hosts(Hostlist.parse(reservation.hosts)))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else rfc31.And(tuple(parts))


def reservation_of(job: Job) -> str | None:
    """Return the name of the reservation that a job names."""
    value = job.jobspec.system.get(ATTRIBUTE)
    if value is not None and not isinstance(value, str):
        place = f"job {job.id}: attributes.system.{ATTRIBUTE}"
        raise ConfigError(f"{value!r} is not a name", where=place, expected="a text")
    return value
