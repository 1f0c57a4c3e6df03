"""One reservation of ``scontrol show reservation`` as a table ``[[reservations]]`` of a configuration.

The nodes that Slurm chose, the times, and who may use it are kept (scontrol(1), "RESERVATIONS").  Nodes are
reserved as a whole.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.machines.slurm.node_records import property_name
from simsched.formats.machines.slurm.notation import (
    ABSENT,
    EVERY_NODE,
    UNLIMITED,
    comma_parts,
    stated,
    time_limit,
    whole_number,
)
from simsched.formats.rfc.clock import EARLIEST_DATE, LATEST_DATE, parse_date
from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.machines.description import MachineDescription
    from simsched.formats.machines.shared.note_collector import NoteCollector

KEY = "reservations"
"""The key of the tables in a configuration."""
YEAR = 365 * 86400
_ENDLESS = frozenset({"4294967295", "4294967294", *UNLIMITED})
_REPEATS = {
    "HOURLY": ("hourly", 3600, 31 * 24),
    "DAILY": ("daily", 86400, 366),
    "WEEKLY": ("weekly", 7 * 86400, 53),
}
"""Flag → `repeat`, its seconds, and the number of windows of an import; Slurm repeats without an end."""
_SWITCHES = {"MAINT": "overlaps", "OVERLAP": "overlaps", "IGNORE_JOBS": "ignore-jobs", "FLEX": "flex"}
_NO_EFFECT = frozenset(
    [
        "SPEC_NODES",
        "ALL_NODES",
        "ANY_NODES",
        "PART_NODES",
        "STATIC",
        "STATIC_ALLOC",
        "USER_DELETE",
        "FULL_NODE",
    ]
)
"""Flags on how the nodes were chosen, which are listed, and on who may delete the reservation."""
_FLAGS_LEFT_OUT = {
    "FIRST_CORES": "the first cores of its nodes",
    "FORCE_START": "it starts although a repeated one is in the past",
    "MAGNETIC": "jobs that do not name it may use it, too",
    "NO_HOLD_JOBS": "its jobs may run elsewhere once it has ended",
    "NO_HOLD_JOBS_AFTER_END": "its jobs may run elsewhere once it has ended",
    "PURGE_COMP": "it ends once its last job has ended",
    "REPLACE": "nodes that are in use are replaced by idle ones",
    "REPLACE_DOWN": "nodes that are down are replaced",
    "WEEKDAY": "it repeats from Monday to Friday; only its next window is kept",
    "WEEKEND": "it repeats on Saturday and Sunday; only its next window is kept",
}
_KEYS_LEFT_OUT = {
    "burstbuffer": "BurstBuffer",
    "groups": "Groups",
    "licenses": "Licenses",
    "maxstartdelay": "MaxStartDelay",
    "qos": "QOS",
    "watts": "Watts",
}
_WHO = {"users": "users", "accounts": "accounts", "allowedpartitions": "queues"}


def reservation_of(
    name: str, values: Mapping[str, str], notes: NoteCollector, where: str, hosts: Sequence[str]
) -> dict[str, Any] | None:
    """Return the table of a reservation, or None if it cannot be kept, which is noted.

    `values` has the keys of scontrol in lower case, `hosts` the names in its ``Nodes``.
    """
    what = f"reservation {clip(name)}"
    flags = [flag.partition("=")[0].upper() for flag in comma_parts(stated(values, "flags"))]
    if "TIME_FLOAT" in flags:
        notes.left_out(f"{what}: TIME_FLOAT (its start moves with the time)", where)
        return None
    places = _places(values, hosts, notes, where, what)
    if places is None:
        return None
    start = notes.attempt(date_text, stated(values, "starttime"), where, f"{what}: StartTime")
    seconds = notes.attempt(lambda text: _seconds(text, values), stated(values, "duration"), where, what)
    if start is None or seconds is None:
        return None
    if seconds >= YEAR and stated(values, "duration").lower() in _ENDLESS:
        notes.assumed(f"{what}: it lasts a year, as Slurm counts a duration without an end", where)
    found = {"name": name, "start": start, "duration": seconds, **places, **_who(values, notes, where, what)}
    found |= _of_flags(flags, seconds, notes, where, what)
    for key, word in _KEYS_LEFT_OUT.items():
        value = stated(values, key)
        if value and value != "0":
            notes.left_out(f"{what}: {word}={clip(value)}", where)
    if "coreids" in values:
        notes.left_out(f"{what}: cores of a node; whole nodes are reserved", where)
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


def _seconds(text: str, values: Mapping[str, str]) -> float:
    """Return the duration: as stated, or from the start to the end; a year without an end."""
    if text.lower() in _ENDLESS:
        return YEAR
    if text.lower() not in ABSENT:
        found = time_limit(text)
    else:
        begin, end = (parse_date(date_text(stated(values, key))).time for key in ("starttime", "endtime"))
        found = (end - begin).total_seconds()
    if not 0 < found <= MAX_SECONDS:
        raise FormatError(f"it lasts {found:g} s", expected="an end after its start")
    return int(found)


def _places(
    values: Mapping[str, str], hosts: Sequence[str], notes: NoteCollector, where: str, what: str
) -> dict[str, Any] | None:
    """Return the nodes: their names, or their number and features if no names are stated."""
    text = stated(values, "nodes")
    if text.lower() == EVERY_NODE:
        return {"hosts": EVERY_NODE}
    if hosts:
        return {"hosts": encode_hosts(hosts)}
    count = notes.attempt(whole_number, stated(values, "nodecnt") or "0", where, f"{what}: NodeCnt")
    if text or not count:
        if not text:
            notes.left_out(f"{what}: it has no nodes", where)
        return None
    features = stated(values, "features")
    if any(mark in features for mark in "|*[("):
        notes.left_out(f"{what}: Features={clip(features)}", where)
        features = ""
    parts = features.replace("&", ",").split(",")
    found: dict[str, Any] = {"nodes": count}
    return found | ({"requires": [property_name(part) for part in parts if part]} if features else {})


def _who(values: Mapping[str, str], notes: NoteCollector, where: str, what: str) -> dict[str, Any]:
    """Return whose jobs may use it: of each of the lists, as in Slurm."""
    found: dict[str, Any] = {}
    for key, word in _WHO.items():
        names = comma_parts(stated(values, key))
        excluded = [name for name in names if name.startswith("-")]
        if excluded:
            notes.left_out(f"{what}: {word} that may not use it ({clip(', '.join(excluded))})", where)
        elif names:
            found[word] = names
    return found | ({"match": "all"} if len(found) > 1 else {})


def _of_flags(
    flags: Sequence[str], seconds: float, notes: NoteCollector, where: str, what: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for flag in flags:
        if flag in _SWITCHES:
            found[_SWITCHES[flag]] = True
            if flag == "MAINT":
                notes.assumed(f"{what}: MAINT; reports count its nodes as available", where)
        elif flag in _REPEATS:
            word, every, times = _REPEATS[flag]
            if seconds > every:
                expected = "windows that do not overlap"
                notes.fault(f"{what}: it is {word} and lasts {seconds:g} s", where, expected)
                continue
            found |= {"repeat": word, "times": times}
            notes.assumed(f"{what}: {word} from its start on, {times} times", where)
        elif flag not in _NO_EFFECT:
            meaning = f" ({_FLAGS_LEFT_OUT[flag]})" if flag in _FLAGS_LEFT_OUT else ""
            notes.left_out(f"{what}: {clip(flag)}{meaning}", where)
    return found


def joined(parts: Sequence[MachineDescription]) -> list[dict[str, Any]]:
    """Return the reservations of several descriptions; of a name in several of them, the first counts."""
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        for table in part.config.get(KEY, ()):
            found.setdefault(table["name"], table)
    return list(found.values())


def on_known_nodes(description: MachineDescription, notes: NoteCollector) -> MachineDescription:
    """Return a description whose reservations have only nodes that it has; the others are noted as faults."""
    tables = description.config.get(KEY)
    if not tables:
        return description
    known = {host for group in description.recipe.groups for host in group.hosts}
    kept = [found for table in tables if (found := _on_known(table, known, notes)) is not None]
    config = {key: value for key, value in description.config.items() if key != KEY}
    if kept:
        config[KEY] = kept
        notes.assumed("reservations are known from second 0 on; a job that names another one is rejected")
    return replace(description, config=config, notes=(*description.notes, *notes.notes()))


def _on_known(table: dict[str, Any], known: set[str], notes: NoteCollector) -> dict[str, Any] | None:
    """Return a reservation on the nodes that the site has; None if it has none of them."""
    if table.get("hosts", EVERY_NODE) == EVERY_NODE:
        return table
    hosts = Hostlist.parse(table["hosts"]).expand()
    unknown = [host for host in hosts if host not in known]
    if unknown:
        text = f"reservation {clip(table['name'])}: there is no node {clip(encode_hosts(unknown))}"
        notes.fault(text, cause="reserved nodes")
    found = [host for host in hosts if host in known]
    return {**table, "hosts": encode_hosts(found)} if found else None
