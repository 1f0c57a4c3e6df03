"""The text of ``scontrol show`` of nodes, partitions, reservations, licences and config, also ``--oneliner``.

Records begin with ``NodeName=``, ``PartitionName=``, ``ReservationName=`` or ``LicenseName=``.  Several of
them, of all kinds, may be in one text, so the outputs of several commands can be put together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.machines.shared.note_collector import NoteCollector
from simsched.formats.machines.slurm.keys import GLOBAL
from simsched.formats.machines.slurm.notation import stated
from simsched.formats.machines.slurm.reservation_lines import CORE_LINE
from simsched.formats.machines.slurm.slurm_records import SlurmRecords
from simsched.formats.machines.slurm.understanding import describe
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.machines.description import MachineDescription

FORMAT = "scontrol"

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


def read_scontrol(text: str, where: str, *, strict: bool = False) -> MachineDescription:
    """Return the machine and the queues that the output of scontrol describes.

    A text without partitions gives the partitions that its nodes name; a text without nodes gives queues
    with ``hosts``.  `merging.merge` joins both.

    Raises
    ------
    FormatError
        if the text has no record of a node, of a partition, of a reservation or of the configuration, and for
        the first fault if `strict`.
    """
    notes = NoteCollector(strict=strict)
    records = SlurmRecords(notes, FORMAT)
    licences: list[tuple[str, str]] = []
    for kind, values, place in _records(text, where, notes):
        if kind == "setting":
            records.settings.add(values, place)
        elif kind == "nodename":
            _add_node(records, values, place)
        elif kind == "reservationname":
            records.add_reservation(values.pop(kind), values, place)
        elif kind == "licensename":
            licences.append((f"{values[kind]}:{values.get('total', '')}", place))
        else:
            records.add_partition(values.pop(kind), values, place)
    if licences and not records.settings.get("licenses"):
        records.settings.add({"licenses": ",".join(text for text, _ in licences)}, licences[0][1])
    if records.is_empty and _NOTHING.search(text) is None:
        expected = "NodeName=…, PartitionName=… or ReservationName=… records"
        raise FormatError("this is not the output of scontrol", where=where, expected=expected)
    return describe([records])


def _add_node(records: SlurmRecords, values: dict[str, str], place: str) -> None:
    """Add a node; its features are the available ones, as in slurm.conf, or else the active ones."""
    hosts = records.hosts(values.pop("nodename"), place, "nodename")
    if not stated(values, "features"):
        values["features"] = values.get("activefeatures", "")
    records.add_nodes(hosts, values, place)


def _records(text: str, where: str, notes: NoteCollector) -> Iterator[tuple[str, dict[str, str], str]]:
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
            yield "setting", {setting[1].lower(): _setting(setting[2])}, f"{where}:{number}"
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


def _setting(text: str) -> str:
    """Return a value of ``scontrol show config`` as slurm.conf has it: ``7-00:00:00``, ``30 sec`` → 30."""
    number, _, unit = text.strip().partition(" ")
    return number if unit in ("sec", "min", "percent", "bytes", "usec") else text.strip()
