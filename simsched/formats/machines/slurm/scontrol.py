"""Slurm's nodes, partitions, reservations, licences and settings, as ``scontrol show`` prints them.

The text, also ``--oneliner``, has records that begin with ``NodeName=``, ``PartitionName=``,
``ReservationName=`` or ``LicenseName=``.  Several of them, of all kinds, may be in one text, so the outputs
of several commands can be put together.

The JSON of ``scontrol show … --json``, sinfo and slurmrestd has lists ``nodes``, ``partitions``,
``reservations``, ``licenses`` or ``sinfo``, which may be empty.  Numbers are plain, or, from data_parser
v0.0.39 on, ``{"set": …, "infinite": …, "number": …}``.  States and features are texts or lists of texts.  The
partitions of v0.0.38 and before are flat; later ones have sections such as ``maximums``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.cluster.recipe import MAX_NODES
from simsched.formats.machines.slurm.config_keys import GLOBAL
from simsched.formats.machines.slurm.notation import at_path, stated, text_of, texts_at
from simsched.formats.machines.slurm.reservation_lines import CORE_LINE
from simsched.formats.machines.slurm.slurm_records import SlurmRecords
from simsched.formats.text.diagnostics import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from simsched.formats.machines.description import NoteCollector

    Record = tuple[str, dict[str, str], str]
    """The key of the name, the values, and the place."""


_RECORD = re.compile(r"\s*(NodeName|PartitionName|ReservationName|LicenseName)=(\S+)", re.IGNORECASE)
_CORES = re.compile(r"NodeName=(\S+)\s+CoreIDs=(\S*)", re.IGNORECASE)
_KEY = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_/]*)=")
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9_]*)(?:\[\d+\])?\s+=\s?(.*)")
_NOTHING = re.compile(r"(?mi)^No (?:\w+ )?(?:reservation|node|partition|license|job)s? in the system")
_QUIET = re.compile(
    r"Configuration data as of|Slurmctld\(|\S+ is (?:UP|DOWN)|No .* in the system|#|.*:\s*\Z", re.IGNORECASE
)
#: Key of scontrol in lower case → key of slurm.conf.
_RENAMED = {"cputot": "cpus", "availablefeatures": "features"}


def read_scontrol(text: str, where: str, notes: NoteCollector) -> SlurmRecords:
    """Return the machine and the queues that the output of scontrol describes.

    A text without partitions gives the partitions that its nodes name; a text without nodes gives queues
    with ``hosts``.  `read.understood` joins both.

    Raises
    ------
    FormatError
        if the text has no record of a node, of a partition, of a reservation or of the configuration, and for
        the first fault if `notes` are strict.
    """
    records = SlurmRecords(notes, "scontrol")
    _add(records, _records(text, where, records.notes))
    found = records.nodes or records.partitions or records.reservations or records.settings.are_stated
    if not found and _NOTHING.search(text) is None:
        expected = "NodeName=…, PartitionName=… or ReservationName=… records"
        raise FormatError("this is not the output of scontrol", where=where, expected=expected)
    return records


def _add(records: SlurmRecords, found: Iterable[Record]) -> None:
    """Add records (key of the name, values, place), the same of text and JSON."""
    licences: list[tuple[str, str]] = []
    for kind, values, place in found:
        if kind == "setting":
            records.settings.add(values, place)
        elif kind in ("nodename", "name"):  # the features are those of slurm.conf, or else the active ones
            values["features"] = stated(values, "features", "activefeatures")
            records.add_nodes(records.reader.names(values.pop(kind), place, kind), values, place)
        elif kind == "sinfo":
            hosts = records.reader.names(values["nodes"], place, "nodes")
            records.add_nodes(hosts, values, place, again=True)
        elif kind == "reservationname":
            records.add_reservation(values.pop(kind), values, place)
        elif kind == "licensename":
            licences.append((f"{values[kind]}:{values.get('total', '')}", place))
        else:
            records.add_partition(values.pop("partitionname"), values, place)
    if licences and not records.settings.get("licenses"):
        records.settings.add({"licenses": ",".join(text for text, _ in licences)}, licences[0][1])


def _records(text: str, where: str, notes: NoteCollector) -> Iterator[Record]:
    """Yield (kind, values, place) of each record and setting, in the order of the text.

    A record goes on until the next one begins: its lines are indented, but they are not in texts that
    were copied from web pages and mails.
    """
    kind, values, place = "", dict[str, str](), ""
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        begin = _RECORD.match(line)
        if _CORES.fullmatch(bare) is not None:
            if values and kind == "reservationname":
                _add_cores(values, bare)
            else:
                message = f"{clip(bare)!r} belongs to a reservation, and there is none before it"
                notes.fault(message, f"{where}:{number}", cause="cores without a reservation")
            continue
        if begin is not None or not bare:
            if values:
                yield kind, values, place
            kind, values = "", {}
        if not bare:
            continue
        setting = None if begin else _SETTING.fullmatch(bare)
        if begin is not None:
            kind, place = begin[1].lower(), f"{where}:{number}"
            if kind == "reservationname":  # with --oneliner the cores are in the same line
                _add_cores(values, bare)
                bare = _CORES.sub("", bare)
            _add_pairs(bare, values)
        elif setting is not None and setting[1].lower() in GLOBAL:
            text = setting[2].strip()
            count, _, unit = text.partition(" ")  # slurm.conf has 30 for ``30 sec``
            text = count if unit in ("sec", "min", "percent", "bytes", "usec") else text
            yield "setting", {setting[1].lower(): text}, f"{where}:{number}"
        elif values and _KEY.match(bare):
            _add_pairs(bare, values)
        elif not values and setting is None and _QUIET.match(bare) is None:
            message = f"{clip(bare)!r} is not part of a record"
            notes.fault(message, f"{where}:{number}", cause="not part of a record")
    if values:
        yield kind, values, place


def _add_pairs(line: str, values: dict[str, str]) -> None:
    """Add the keys of a line; values with blanks, such as that of OS, end where a key begins."""
    found = list(_KEY.finditer(line))
    for number, pair in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(line)
        key = pair[1].lower()
        value = line[pair.end() : end].strip()
        values.setdefault(_RENAMED.get(key, key), value)


def _add_cores(values: dict[str, str], line: str) -> None:
    """Add the cores of nodes that a line of a reservation states."""
    for nodes, ids in _CORES.findall(line):
        known = [values["coreids"]] if "coreids" in values else []
        values["coreids"] = ";".join([*known, CORE_LINE.format(nodes, ids)])


LISTS = ("nodes", "partitions", "sinfo", "reservations", "licenses")
_AROUND = frozenset(("meta", "errors", "warnings", "last_update", "last_backfill"))
"""Keys of every answer of Slurm, which describe nothing."""

#: Key of slurm.conf → paths of its value in a node, the newest first, between bars.
NODE_PATHS: Mapping[str, str] = {
    "boards": "boards", "corespersocket": "cores", "cpus": "cpus", "cpuefctv": "effective_cpus",
    "features": "features", "gres": "gres", "memspeclimit": "specialized_memory",
    "partitions": "partitions", "realmemory": "real_memory", "sockets": "sockets", "state": "state",
    "threadspercore": "threads", "tmpdisk": "temporary_disk", "weight": "weight",
}  # fmt: skip
#: The same for one entry of sinfo, which stands for several nodes.
SINFO_PATHS: Mapping[str, str] = {
    "corespersocket": "cores/minimum", "cpus": "cpus/minimum", "features": "features/total",
    "gres": "gres/total", "realmemory": "memory/minimum", "sockets": "sockets/minimum",
    "state": "node/state", "threadspercore": "threads/minimum", "tmpdisk": "disk/minimum",
    "weight": "weight/minimum",
}  # fmt: skip
PARTITION_PATHS: Mapping[str, str] = {
    "allowaccounts": "accounts/allowed|allowed_accounts", "allowgroups": "groups/allowed|allowed_groups",
    "allowqos": "qos/allowed|allowed_qos", "alternate": "alternate|alternative",
    "defaulttime": "defaults/time|default/time|default_time_limit",
    "defmempercpu": "defaults/partition_memory_per_cpu",
    "defmempernode": "defaults/partition_memory_per_node", "denyaccounts": "accounts/deny|denied_accounts",
    "denyqos": "qos/deny|denied_qos", "gracetime": "grace_time|preemption_grace_time",
    "maxcpuspernode": "maximums/cpus_per_node|maximum_cpus_per_node",
    "maxcpuspersocket": "maximums/cpus_per_socket", "maxmempercpu": "maximums/partition_memory_per_cpu",
    "maxmempernode": "maximums/partition_memory_per_node",
    "maxnodes": "maximums/nodes|maximum_nodes_per_job", "maxtime": "maximums/time|max_time_limit",
    "minnodes": "minimums/nodes|min nodes per job|minimum_nodes_per_job", "nodes": "nodes/configured|nodes",
    "overtimelimit": "maximums/over_time_limit|over_time_limit",
    "priorityjobfactor": "priority/job_factor|priority_job_factor",
    "prioritytier": "priority/tier|priority_tier", "qos": "qos/assigned|qos",
    "state": "partition/state|state",
}  # fmt: skip
RESERVATION_PATHS: Mapping[str, str] = {
    "accounts": "accounts", "allowedpartitions": "allowed_partitions", "burstbuffer": "burst_buffer",
    "endtime": "end_time", "features": "features", "flags": "flags", "groups": "groups",
    "licenses": "licenses", "maxstartdelay": "max_start_delay", "nodecnt": "node_count",
    "nodes": "node_list", "qos": "qos", "starttime": "start_time", "users": "users", "watts": "watts",
}  # fmt: skip
_PLURALS = ("sockets", "cores", "cpus", "threads", "memory")
_FORCED = 0x8000


def read_slurm_document(document: Any, where: str, notes: NoteCollector) -> SlurmRecords:
    """Return the machine and the queues that a JSON document of Slurm describes.

    Raises
    ------
    FormatError
        if the document has none of the lists, and for the first fault if `notes` are strict.
    LimitError
        for a list of more than a million entries.
    """
    given = {key: document.get(key) for key in LISTS} if isinstance(document, dict) else {}
    # v0.0.39 has a list in an object of the same name
    lists = {key: value.get(key) if isinstance(value, dict) else value for key, value in given.items()}
    rows = {key: value for key, value in lists.items() if isinstance(value, list)}
    if not rows:
        expected = "an object with a list nodes, partitions, reservations, licenses or sinfo"
        raise FormatError("this is not a document of Slurm", where=where, expected=expected)
    records = SlurmRecords(notes, "Slurm's JSON")
    for key, items in rows.items():
        if len(items) > MAX_NODES:
            place = f"{where}: {key}"
            raise LimitError(f"{len(items):,} {key}", where=place, expected=f"at most {MAX_NODES:,}")
    _add(records, _objects(rows, where, notes))
    for key in document:
        if key not in LISTS and key not in _AROUND:
            notes.left_out(f"the key {clip(str(key))!r} is not used", where, cause=str(key))
    if records.partitions and not any("default" in line.values for line in records.partitions.values()):
        records.without_default = where
    cluster = text_of(at_path(document, "meta/slurm/cluster"))  # from data_parser v0.0.40 on
    if cluster:
        records.settings.add({"clustername": cluster}, where)
    return records


def _objects(rows: Mapping[str, list[Any]], where: str, notes: NoteCollector) -> Iterator[Record]:
    """Yield the objects of lists as `_records` yields records of text."""
    listed: set[str] = set()  # partitions that sinfo has shown
    for key, items in rows.items():
        for number, row in enumerate(items):
            place = f"{where}: {key}[{number}]"
            if not isinstance(row, dict):
                notes.fault(f"found {shown(row)}", place, "an object")
            elif key == "sinfo":
                yield from _of_sinfo(row, place, notes, listed)
            elif key == "licenses":
                name, total = text_of(row.get("LicenseName")), text_of(row.get("Total"))
                if name and total.isdecimal():
                    yield "licensename", {"licensename": name, "total": total}, place
                else:
                    notes.fault("a licence without a name and a number", place, "LicenseName and Total")
            elif not (name := text_of(row.get("name"))):
                notes.fault(f"a {key.removesuffix('s')} without a name", place)
            elif key == "partitions":
                listed.add(name)
                yield "partitionname", {**_partition_values(row), "partitionname": name}, place
            elif key == "nodes":
                values = texts_at(row, NODE_PATHS)
                flags = row.get("state_flags")  # apart from the state until v0.0.38
                states = (values.get("state"), *(map(text_of, flags) if isinstance(flags, list) else ()))
                yield "name", {**values, "state": "+".join(filter(None, states)), "name": name}, place
            else:
                values = texts_at(row, RESERVATION_PATHS)
                given = row.get("core_specializations")
                cores = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
                if cores:
                    values["coreids"] = ";".join(
                        CORE_LINE.format(text_of(one.get("node")), text_of(one.get("core"))) for one in cores
                    )
                if values.get("endtime") == "UNLIMITED":
                    values["duration"] = values.pop("endtime")
                yield "reservationname", {**values, "reservationname": name}, place


def _partition_values(row: Mapping[str, Any]) -> dict[str, str]:
    values = texts_at(row, PARTITION_PATHS)
    flags = row.get("flags")
    if isinstance(flags, list) and "default" in {text_of(flag).lower() for flag in flags}:
        values["default"] = "YES"
    shares = at_path(row, "maximums/shares")
    if shares is not None:  # the number of jobs that may share resources (slurm.h, max_share)
        text = text_of(shares)
        jobs = int(text[:9]) if text.isdecimal() else None
        few = {None: "", 0: "EXCLUSIVE", 1: "NO"}
        many = f"FORCE:{jobs & ~_FORCED}" if jobs and jobs & _FORCED else f"YES:{jobs}"
        values["oversubscribe"] = few.get(jobs, many)
    return values


def _of_sinfo(row: Mapping[str, Any], place: str, notes: NoteCollector, listed: set[str]) -> Iterator[Record]:
    """Yield the partition and the nodes of one line of sinfo, which have one state and one partition."""
    partition = row.get("partition")
    name = text_of(partition.get("name")) if isinstance(partition, dict) else text_of(partition)
    name = name.rstrip("*")
    if isinstance(partition, dict) and name and name not in listed:
        listed.add(name)
        yield "partitionname", {**_partition_values(partition), "partitionname": name}, place
    nodes = text_of(at_path(row, "nodes/nodes"))
    if not nodes:
        return  # a partition without nodes has a line as well
    unlike = [kind for kind in _PLURALS if at_path(row, f"{kind}/minimum") != at_path(row, f"{kind}/maximum")]
    if unlike:
        kinds = ", ".join(unlike)
        message = f"sinfo joins nodes with different {kinds}: the smallest is taken for all of them"
        notes.assumed(message, place, cause="sinfo joins nodes")
    yield "sinfo", {**texts_at(row, SINFO_PATHS), "partitions": name, "nodes": nodes}, place
