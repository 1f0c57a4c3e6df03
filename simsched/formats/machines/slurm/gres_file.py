"""gres.conf (gres.conf(5)): the types of gpus that slurm.conf only counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.machines.slurm.keys import GRES, refuse_unknown
from simsched.formats.machines.slurm.notation import (
    NameReader,
    comma_parts,
    gres_of,
    node_names,
    stated,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from simsched.formats.machines.shared.note_collector import NoteCollector
    from simsched.formats.machines.slurm.config_lines import ConfigLine

_FOR_ALL = ""


@dataclass(slots=True)
class GresTypes:
    """The gpus of each type by host; the entry of the empty name is for all hosts without their own."""

    notes: NoteCollector
    gpus: dict[str, dict[str, int]] = field(default_factory=dict)

    def typed(self, host: str, gres: str, where: str) -> str:
        """Return the ``Gres`` of a host: as slurm.conf states it, with the types of this file.

        slurm.conf decides how many gpus there are.
        """
        if host in self.gpus and "gpu" not in gres.lower():
            text = f"gres.conf lists gpus of {host}, and slurm.conf no Gres: they are not in the machine"
            self.notes.assumed(text, where, cause="gres.conf alone")
        untyped = self._untyped(gres) if self.gpus else 0
        typed = self._typed(host, untyped, where) if untyped else ""
        return self._replaced(gres, typed) if typed else gres

    def _untyped(self, gres: str) -> int:
        """Return the number of gpus if slurm.conf states no type for them; 0 otherwise."""
        if "gpu" not in gres.lower():
            return 0
        try:
            entries = [entry for entry in gres_of(gres) if entry.name.lower() == "gpu"]
        except FormatError:  # noted where the node is read
            return 0
        return 0 if any(entry.type for entry in entries) else sum(entry.count for entry in entries)

    def _typed(self, host: str, number: int, where: str) -> str:
        types = self.gpus.get(host) or self.gpus.get(_FOR_ALL) or {}
        if not any(types):
            return ""
        if sum(types.values()) != number:
            text = f"gres.conf lists {sum(types.values())} gpus of {host}; the {number} of slurm.conf count"
            self.notes.assumed(text, where, cause="gres.conf differs")
            return ""
        self.notes.assumed("the types of gpus are those of gres.conf", where, cause="gres.conf types")
        return ",".join(f"gpu:{kind}:{count}" if kind else f"gpu:{count}" for kind, count in types.items())

    def _replaced(self, gres: str, typed: str) -> str:
        others = [part for part in comma_parts(gres) if part.split(":")[0].split("(")[0].lower() != "gpu"]
        return ",".join((typed, *others))


def read_gres(lines: Iterable[ConfigLine], found: GresTypes, reader: NameReader) -> None:
    """Add the gpus that a gres.conf lists."""
    notes = found.notes
    for line in lines:
        refuse_unknown(line.values, GRES, notes, line.where)
        if "autodetect" in line.values and "name" not in line.values:
            notes.left_out("AutoDetect: the types of gpus that nodes report are not in the files", line.where)
        if stated(line.values, "name").lower() != "gpu":
            continue
        number, kind = _count(line.values, notes, line.where), stated(line.values, "type")
        text = stated(line.values, "nodename")
        for host in reader.names(text, line.where, "nodename") if text else (_FOR_ALL,):
            types = found.gpus.setdefault(host, {})
            types[kind] = types.get(kind, 0) + number


def _count(values: Mapping[str, str], notes: NoteCollector, where: str) -> int:
    """Return the number of units of a line: Count, or one per file."""
    text, files = stated(values, "count"), stated(values, "file", "multiplefiles")
    if text:
        return notes.attempt(whole_number, text, where, "count") or 0
    return len(notes.attempt(node_names, files, where, "file") or ()) if files else 1
