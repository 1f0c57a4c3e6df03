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
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count, islice
from math import inf
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, did_you_mean
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.clock import DateText, parse_when, seconds_on
from simsched.formats.rfc.duration import MAX_SECONDS, parse_time
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.rfc.idset import Idset
from simsched.simulation.licences.licence_pools import read_licences

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.formats.rfc.clock import Clock, When
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
SWITCHES = {"ignore-jobs": "ignore_jobs", "overlaps": "overlaps", "flex": "flex", "magnetic": "magnetic"}
"""Key → field of those that are true or false."""
MATCHES = ("any", "all")
KEYS = (
    *("name", *TIMES, "duration", *PLACES, "cores", "requires", "licenses"),
    *(*WHO, "match", "repeat", "times", *SWITCHES),
)


MEANINGS = {
    "start": "when it begins: a time or date, flexible, or now+1h, which moves (scontrol(1), TIME_FLOAT)",
    "nodes": "the number of its nodes; or their names (hosts), or those that a request takes (shape)",
    "cores": "cores of its nodes, not whole nodes (scontrol(1), CoreCnt and CoreIDs)",
    "licenses": "its licences, also without nodes (scontrol(1), Licenses and ANY_NODES)",
    "users": "whose jobs may use it; also accounts and queues (scontrol(1), Users and Accounts)",
    "repeat": f"its windows: {', '.join(REPEATS)} (scontrol(1), HOURLY, DAILY, WEEKLY, WEEKDAY, WEEKEND)",
    "ignore-jobs": "jobs that run on its nodes do not prevent it (scontrol(1), IGNORE_JOBS)",
    "overlaps": "its nodes may be those of other reservations (scontrol(1), MAINT and OVERLAP)",
    "flex": "its jobs may also run around it and on other nodes (scontrol(1), FLEX)",
    "magnetic": "jobs that may use it need not name it (scontrol(1), MAGNETIC)",
}
"""Key → what it does, and the word of Slurm."""


@dataclass(frozen=True, slots=True)
class AdvanceReservation:
    """One reservation as it is requested; times are seconds of the run once `on_clock` has been called.

    Attributes
    ----------
    start : the time at which it begins; None: as soon as possible from `earliest` on, until `latest`.
    announced : the time from which it is made and the scheduler knows it.
    duration : its seconds.
    ahead : of a start that moves with the time: seconds from now; None for other starts.
    nodes, hosts, shape : its execution targets: their number, their names, or those that a request takes.
    cores : the number of its cores on each target, or those of each host as an idset; None: whole targets.
    licenses : its licences and their numbers.
    requires : properties of the targets.
    users, accounts, queues : whose jobs may use it; all empty: every job that names it.
    match : whether a job needs one of ``all`` of these that are given, or of ``any`` of them.
    ignore_jobs : whether its nodes may have running jobs, which run on.
    overlaps : whether its nodes may be those of other reservations; the jobs of these end before it begins.
    flex : whether its jobs may also run before and after its windows, and on other nodes.
    magnetic : whether jobs that may use it need not name it.
    repeat : seconds between its windows.
    days : `weekdays` or `weekends`: its windows, from the second one on, begin on such days.
    times : the number of its windows.
    clock : the clock of the run, to know the days.
    """

    name: str
    start: When | None
    duration: float
    announced: When = 0
    earliest: When = 0
    latest: When = inf
    nodes: int | None = None
    hosts: str | None = None
    shape: str | None = None
    cores: int | tuple[tuple[str, str], ...] | None = None
    licenses: tuple[tuple[str, int], ...] = ()
    ahead: float | None = None
    requires: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    repeat: float = 0
    days: str | None = None
    times: int = 1
    match: str = MATCHES[0]
    ignore_jobs: bool = False
    overlaps: bool = False
    flex: bool = False
    magnetic: bool = False
    clock: Clock | None = None
    where: str = "reservations"

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
        begins = (start + turn * self.repeat for turn in turns)
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
        found = replace(self, **made)
        announced, start = found.seconds("announced"), found.start
        if found.days is not None:
            if clock is None:
                text = f"the workload has no dates, so {found.days} are not known"
                raise ConfigError(text, where=f"{self.where}.repeat", expected="--start-date DATE")
            found = replace(found, clock=clock)
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
        found: dict[str, Any] = {"name": self.name, "duration": self.duration, "times": self.times}
        found["start"] = FLEXIBLE if self.start is None else _plain(self.start)
        if self.ahead is not None:
            found = {"name": self.name, "start": f"{FLOATING}{self.ahead:g}"}
        found |= {key: _plain(getattr(self, key)) for key in ("announced", "earliest")}
        found |= {} if self.latest == inf else {"latest": _plain(self.latest)}
        found |= {key: getattr(self, key) for key in PLACES if getattr(self, key) is not None}
        if self.cores is not None:
            found["cores"] = self.cores if isinstance(self.cores, int) else dict(self.cores)
        found |= {"licenses": dict(self.licenses)} if self.licenses else {}
        found |= {key: list(getattr(self, key)) for key in ("requires", *WHO) if getattr(self, key)}
        found |= {key: True for key, field in SWITCHES.items() if getattr(self, field)}
        found |= {} if self.match == MATCHES[0] else {"match": self.match}
        word = self.days or next((word for word, seconds in REPEATS.items() if seconds == self.repeat), None)
        return found | ({} if word is None else {"repeat": word})


def _plain(when: When) -> Any:
    return str(when) if isinstance(when, DateText) else when


def read_reservations(value: Any, where: str) -> tuple[AdvanceReservation, ...]:
    """Read the tables of a configuration, or reservations.

    Raises
    ------
    ConfigError, FormatError
        for an unknown key, a value of a wrong type, a name that occurs twice, and times that overlap.
    """
    given = [value] if isinstance(value, Mapping | AdvanceReservation) else value
    if not isinstance(given, list | tuple):
        raise ConfigError("not a list of tables", where=where, expected="[[reservations]]")
    found = tuple(
        item if isinstance(item, AdvanceReservation) else _reservation(item, f"{where}[{at}]")
        for at, item in enumerate(given)
    )
    names = [one.name for one in found]
    for one in found:
        if names.count(one.name) > 1:
            raise ConfigError(f"the name {one.name!r} occurs twice", where=one.where, expected="another name")
    return found


def _reservation(item: Any, where: str) -> AdvanceReservation:
    if not isinstance(item, Mapping):
        raise ConfigError("a reservation is a table", where=where, expected=", ".join(KEYS))
    for key in item:
        if key not in KEYS:
            hint = did_you_mean(str(key), KEYS)
            raise ConfigError(f"unknown key {key!r}{hint}", where=where, expected=", ".join(KEYS))
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError("the reservation has no name", where=where, expected="name = a text")
    ahead = _ahead(item, where)
    duration = parse_time(item.get("duration", inf if ahead is None else 0), where=f"{where}.duration")
    if ahead is None and not 0 < duration <= MAX_SECONDS:
        raise ConfigError("the reservation has no duration", where=f"{where}.duration", expected="such as 4h")
    texts = {key: _texts(item[key], f"{where}.{key}") for key in ("requires", *WHO) if key in item}
    repetition = _repetition(item, duration, where)
    fields: dict[str, Any] = {
        "start": None,
        **_whens(item, ahead, where),
        **_places(item, where),
        **texts,
        **_switches(item, where),
    }
    found = AdvanceReservation(name=name, duration=duration, ahead=ahead, where=where, **repetition, **fields)
    _refuse_together(found)
    return found


def _ahead(item: Mapping[str, Any], where: str) -> float | None:
    """Return the seconds after now of a start that moves with the time; None for other starts."""
    start = item.get("start")
    if not isinstance(start, str) or not start.replace(" ", "").startswith(FLOATING):
        return None
    text = start.partition("+")[2].strip()
    found = parse_time(int(text) if text.isdecimal() else text, where=f"{where}.start")
    if not 0 < found <= MAX_SECONDS:
        raise ConfigError(f"{start!r} is not a time", where=f"{where}.start", expected="such as now+1h")
    return found


def _whens(item: Mapping[str, Any], ahead: float | None, where: str) -> dict[str, Any]:
    """Return its times as they are given."""
    fixed = ahead is None and item.get("start", FLEXIBLE) != FLEXIBLE
    keys = [key for key in TIMES if key in item and (key != "start" or fixed)]
    found = {key: _when(item[key], f"{where}.{key}") for key in keys}
    odd = [key for key in ("earliest", "latest") if item.get(key) and fixed]
    odd += ["earliest"] if ahead is not None and item.get("earliest") else []
    if odd:
        text = f"{odd[0]} of a fixed start" if fixed else f"{odd[0]} of a start that moves with the time"
        raise ConfigError(text, where=f"{where}.{odd[0]}", expected=f'start = "{FLEXIBLE}"')
    return found


def _refuse_together(one: AdvanceReservation) -> None:
    """Raise a `ConfigError` for keys that contradict each other, or that no run could follow together."""
    partial = one.cores is not None or bool(one.licenses)
    wrong = (
        ("cores", one.cores is not None and (one.shape is not None or not one.has_nodes), "nodes or hosts"),
        ("cores", one.cores is not None and one.overlaps, "whole nodes with overlaps = true"),
        ("requires", bool(one.requires) and not one.has_nodes, "nodes, hosts or shape"),
        ("start", one.ahead is not None and (partial or bool(one.repeat)), "whole nodes, and no repeat"),
        ("magnetic", one.magnetic and one.ahead is not None, "a start that does not move"),
        ("magnetic", one.magnetic and not one.has_nodes, "nodes, hosts or shape"),
    )
    for key, is_wrong, expected in wrong:
        if is_wrong:
            text = f"{key} of such a reservation" if key != "start" else "a start that moves with the time"
            raise ConfigError(text, where=f"{one.where}.{key}", expected=expected)


def _when(value: Any, where: str) -> When:
    found = parse_when(value, where)
    if not isinstance(found, DateText) and not 0 <= found <= MAX_SECONDS:
        raise ConfigError(f"{value!r} is not a time of a run", where=where, expected="0 or more seconds")
    return found


def _texts(value: Any, where: str) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) and one for one in given):
        raise ConfigError(f"{value!r} is not a list of names", where=where, expected='["alice"]')
    return tuple(dict.fromkeys(given))


def _places(item: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the one key that says which targets are reserved, its cores there, and its licences."""
    given = read_licences(item.get("licenses"), f"{where}.licenses") if item.get("licenses") else None
    cores = _cores(item["cores"], f"{where}.cores") if "cores" in item else None
    more: dict[str, Any] = {} if cores is None else {"cores": cores}
    more |= {} if given is None else {"licenses": tuple(pair for pair in given.counts if pair[1])}
    found = [key for key in PLACES if key in item]
    named = None if isinstance(cores, int | None) else [host for host, _ in cores]
    if named is not None:
        more |= {"hosts": encode_hosts(named)}
        if "nodes" in item:
            raise ConfigError("cores by host of a number of nodes", where=f"{where}.cores", expected="hosts")
        hosts = Hostlist.parse(str(item.get("hosts", more["hosts"])), where=f"{where}.hosts")
        if sorted(hosts.expand()) != sorted(named):
            text = f"cores of {more['hosts']}, the reservation has {item['hosts']}"
            raise ConfigError(text, where=f"{where}.cores", expected="the cores of each of its hosts")
    if not found and (more.get("licenses") or named):
        return more
    if len(found) != 1:
        text = "the reservation has no nodes" if not found else f"{' and '.join(found)} of one reservation"
        raise ConfigError(text, where=where, expected="one of nodes, hosts, shape")
    key, value, place = found[0], item[found[0]], f"{where}.{found[0]}"
    if key == "nodes":
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"{value!r} is not a number of nodes", where=place, expected="1 or more")
    elif not isinstance(value, str):
        raise ConfigError(f"{value!r} is not a text", where=place)
    elif key == "hosts":
        Hostlist.parse(value, where=place)
    else:
        Jobspec.from_shape(value)
    return {key: value, **more}


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


def _switches(item: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the fields that are true or false, and `match`."""
    found: dict[str, Any] = {}
    for key, field in SWITCHES.items():
        found[field] = value = item.get(key, False)
        if not isinstance(value, bool):
            raise ConfigError(
                f"{value!r} is not true or false", where=f"{where}.{key}", expected="true or false"
            )
    found["match"] = match = item.get("match", MATCHES[0])
    if match not in MATCHES:
        raise ConfigError(f"unknown value {match!r}", where=f"{where}.match", expected=" or ".join(MATCHES))
    return found


def _repetition(item: Mapping[str, Any], duration: float, where: str) -> dict[str, Any]:
    """Return the seconds between windows, the days of the week, and the number of windows."""
    word, times = item.get("repeat"), item.get("times", 1)
    if word is not None and (not isinstance(word, str) or word not in REPEATS):
        raise ConfigError(f"unknown value {word!r}", where=f"{where}.repeat", expected=" or ".join(REPEATS))
    if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= MOST_TIMES:
        expected = f"1 to {MOST_TIMES:,}"
        raise ConfigError(f"{times!r} is not a number of times", where=f"{where}.times", expected=expected)
    if times > 1 and word is None:
        raise ConfigError("times without repeat", where=f"{where}.times", expected='repeat = "daily"')
    repeat = 0 if word is None else REPEATS[word]
    if word is not None and duration > repeat:
        text = f"a {word} reservation of {duration:g} s overlaps itself"
        raise ConfigError(text, where=f"{where}.duration", expected=f"at most {repeat} s")
    return {"repeat": repeat, "times": times, "days": word if word in DAYS else None}


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
