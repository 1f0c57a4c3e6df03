"""One reservation of ``scontrol show reservation`` as a table ``[[reservations]]`` of a configuration.

The nodes and cores that Slurm chose, licences, the times, and who may use it are kept (scontrol(1),
"RESERVATIONS").
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, clip
from simsched.formats.machines.site_facts import property_name
from simsched.formats.machines.slurm.notation import (
    ABSENT,
    EVERY_NODE,
    UNLIMITED,
    Keys,
    comma_parts,
    time_limit,
    whole_number,
)
from simsched.formats.rfc.clock import EARLIEST_DATE, LATEST_DATE, parse_date
from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.machines.description import MachineDescription, NoteCollector

KEY = "reservations"
"""The key of the tables in a configuration."""
CORE_LINE = "{} {}"
"""How a reader gives the cores of nodes: host list and idset, several of them with semicolons."""
YEAR = 365 * 86400
_ENDLESS = frozenset({"4294967295", "4294967294", *UNLIMITED})
_REPEATS = {
    "HOURLY": ("hourly", 3600, 31 * 24),
    "DAILY": ("daily", 86400, 366),
    "WEEKLY": ("weekly", 7 * 86400, 53),
    "WEEKDAY": ("weekdays", 86400, 261),
    "WEEKEND": ("weekends", 86400, 105),
}
"""Flag → `repeat`, its seconds, and the number of windows of an import; Slurm repeats without an end."""
_SWITCHES = {
    "MAINT": "overlaps",
    "OVERLAP": "overlaps",
    "IGNORE_JOBS": "ignore-jobs",
    "FLEX": "flex",
    "MAGNETIC": "magnetic",
}
_NO_EFFECT = frozenset({
    "LICENSE_ONLY", "SPEC_NODES", "ALL_NODES", "ANY_NODES", "PART_NODES", "STATIC", "STATIC_ALLOC",
    "USER_DELETE", "FULL_NODE",
})  # fmt: skip
"""Flags on how the nodes were chosen, which are listed, and on who may delete the reservation."""
_FLAGS_LEFT_OUT = {
    "FIRST_CORES": "the first cores of its nodes",
    "FORCE_START": "it starts although a repeated one is in the past",
    "NO_HOLD_JOBS": "its jobs may run elsewhere once it has ended",
    "NO_HOLD_JOBS_AFTER_END": "its jobs may run elsewhere once it has ended",
    "PURGE_COMP": "it ends once its last job has ended; here it lasts to its end",
    "REPLACE": "nodes that are in use are replaced by idle ones",
    "REPLACE_DOWN": "nodes that are down are replaced",
}
_KEYS_LEFT_OUT = ("BurstBuffer", "Groups", "MaxStartDelay", "QOS", "Watts")
_WHO = {"users": "users", "accounts": "accounts", "allowedpartitions": "queues"}


def reservation_of(name: str, keys: Keys, hosts: Sequence[str]) -> dict[str, Any] | None:
    """Return the table of a reservation, or None if it cannot be kept, which is noted.

    `keys` are those of scontrol, `hosts` the names in its ``Nodes``.
    """
    what = f"reservation {clip(name)}"
    keys = replace(keys, what=f"{what}: ")
    flags = [flag.partition("=")[0].upper() for flag in comma_parts(keys.stated("flags"))]
    if "TIME_FLOAT" in flags:
        text = 'its start moves with the time, by how much is not stated; write start = "now+1h" for an hour'
        keys.left_out(f"TIME_FLOAT ({text})")
        return None
    places = _places(keys, hosts)
    if places is None:
        return None
    start, stated_time = keys.read(date_text, "starttime", name="StartTime"), keys.stated("duration")
    seconds = keys.notes.attempt(lambda text: _seconds(text, keys), stated_time, keys.where, what)
    if start is None or seconds is None:
        return None
    if seconds >= YEAR and stated_time.lower() in _ENDLESS:
        keys.assumed("it lasts a year, as Slurm counts a duration without an end")
    found = {"name": name, "start": start, "duration": seconds, **places}
    for key, word in _WHO.items():  # whose jobs may use it: of each of the lists, as in Slurm
        names = comma_parts(keys.stated(key))
        excluded = [name for name in names if name.startswith("-")]
        if excluded:
            keys.left_out(f"{word} that may not use it ({clip(', '.join(excluded))})")
        elif names:
            found[word] = names
    if len(found.keys() & _WHO.values()) > 1:
        found["match"] = "all"
    found |= _of_flags(flags, seconds, keys)
    found |= _cores(found, keys)
    if found.get("magnetic") and "licenses" in found and len(places) == 1:
        del found["magnetic"]
        keys.left_out("MAGNETIC of licences alone")
    for word in _KEYS_LEFT_OUT:
        value = keys.stated(word.lower())
        if value and value != "0":
            keys.left_out(f"{word}={clip(value)}")
    return found


def date_text(text: str) -> str:
    """Return a time of Slurm as a date of a configuration; seconds since 1970 become one with ``Z``.

    Raises `FormatError`.

    >>> date_text("2026-03-02T08:00:00"), date_text("1772438400")
    ('2026-03-02T08:00:00', '2026-03-02T08:00:00Z')
    """
    if text.isascii() and text.isdigit() and len(text) < 13 and EARLIEST_DATE <= int(text) < LATEST_DATE:
        return f"{datetime.fromtimestamp(int(text), UTC):%Y-%m-%dT%H:%M:%S}Z"
    return str(parse_date(text))


def _seconds(text: str, keys: Keys) -> float:
    """Return the duration: as stated, or from the start to the end; a year without an end."""
    if text.lower() in _ENDLESS:
        return YEAR
    if text.lower() not in ABSENT:
        found = time_limit(text)
    else:
        begin, end = (parse_date(date_text(keys.stated(key))).time for key in ("starttime", "endtime"))
        found = (end - begin).total_seconds()
    if not 0 < found <= MAX_SECONDS:
        raise FormatError(f"it lasts {found:g} s", expected="an end after its start")
    return int(found)


def _places(keys: Keys, hosts: Sequence[str]) -> dict[str, Any] | None:
    """Return the licences, and the nodes: their names, or their number and features without names."""
    text = keys.stated("nodes")
    licences: dict[str, int] = {}
    for part in comma_parts(keys.stated("licenses").replace(";", ",")):
        name, _, number = part.replace("*", ":").partition(":")
        count = keys.read(whole_number, "licenses", number or "1", "Licenses")
        licences |= {name.partition("@")[0]: count} if count else {}
    found: dict[str, Any] = {"licenses": licences} if licences else {}
    if text.lower() == EVERY_NODE:
        return {"hosts": EVERY_NODE, **found}
    if hosts:
        return {"hosts": encode_hosts(hosts), **found}
    count = keys.read(whole_number, "nodecnt", keys.stated("nodecnt") or "0", "NodeCnt")
    if text or not count:
        if not text and not found:
            keys.left_out("it has no nodes")
        return None if text else found or None
    features = keys.stated("features")
    if any(mark in features for mark in "|*[("):
        keys.left_out(f"Features={clip(features)}")
        features = ""
    parts = [property_name(part) for part in features.replace("&", ",").split(",") if part]
    return {"nodes": count, **found} | ({"requires": parts} if features else {})


def _cores(table: Mapping[str, Any], keys: Keys) -> dict[str, dict[str, str]]:
    """Return the cores of each node, from ``n1 0-1;n2 4`` (see `CORE_LINE`)."""
    text = keys.values.get("coreids", "")
    if not text:
        return {}
    found: dict[str, str] = {}
    for part in text.split(";"):
        nodes, _, ids = part.strip().partition(" ")
        cores = keys.notes.attempt(Idset.parse, ids, keys.where, f"{keys.what}CoreIDs")
        names = keys.notes.attempt(_expanded, nodes, keys.where, f"{keys.what}NodeName")
        found |= {host: str(cores) for host in names or ()} if cores else {}
    hosts = table.get("hosts", "")
    if not found or hosts == EVERY_NODE or found.keys() != set(_expanded(hosts)):
        keys.left_out("cores of some of its nodes; whole nodes are reserved")
    elif table.get("overlaps"):
        keys.left_out("cores of a node with MAINT or OVERLAP; whole nodes are reserved")
    else:
        return {"cores": found}
    return {}


def _expanded(text: str) -> list[str]:
    return Hostlist.parse(text).expand()


def _of_flags(flags: Sequence[str], seconds: float, keys: Keys) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for flag in flags:
        if flag in _SWITCHES:
            found[_SWITCHES[flag]] = True
            if flag == "MAINT":
                keys.assumed("MAINT; reports count its nodes as available")
        elif flag in _REPEATS:
            word, every, times = _REPEATS[flag]
            if seconds > every:
                keys.fault(f"it is {word} and lasts {seconds:g} s", "windows that do not overlap")
                continue
            found |= {"repeat": word, "times": times}
            keys.assumed(f"{word} from its start on, {times} times")
        elif flag not in _NO_EFFECT:
            meaning = f" ({_FLAGS_LEFT_OUT[flag]})" if flag in _FLAGS_LEFT_OUT else ""
            keys.left_out(f"{clip(flag)}{meaning}")
    return found


def on_known_nodes(description: MachineDescription, notes: NoteCollector) -> MachineDescription:
    """Return a description whose reservations have only nodes that it has; the others are noted as faults."""
    tables = description.config.get(KEY)
    if not tables:
        return description
    known = {host: group for group in description.recipe.groups for host in group.hosts}
    kept = []
    for table in tables:
        if table.get("hosts", EVERY_NODE) == EVERY_NODE:
            kept.append(table)
            continue
        what, hosts = f"reservation {clip(table['name'])}", _expanded(table["hosts"])
        found = [host for host in hosts if host in known]
        if len(found) < len(hosts):
            unknown = clip(encode_hosts([host for host in hosts if host not in known]))
            notes.fault(f"{what}: there is no node {unknown}", cause="reserved nodes")
        cores = {host: ids for host, ids in table.get("cores", {}).items() if host in known}
        lacking = [
            host
            for host, ids in cores.items()
            if Idset.parse(ids) - (known[host].core_ids or Idset.from_range(0, known[host].cores - 1))
        ]
        if lacking:
            text = f"{clip(encode_hosts(lacking))} has no core {cores[lacking[0]]}; whole nodes are reserved"
            notes.fault(f"{what}: {text}", cause="reserved cores")
        if found:
            row = {**table, "hosts": encode_hosts(found), "cores": {} if lacking else cores}
            kept.append({key: value for key, value in row.items() if value != {}})
    config = {key: value for key, value in description.config.items() if key != KEY}
    if kept:
        config[KEY] = kept
        notes.assumed("reservations are known from second 0 on; a job that names another one is rejected")
    return replace(description, config=config, notes=(*description.notes, *notes.notes()))
