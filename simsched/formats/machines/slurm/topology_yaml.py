"""topology.yaml (topology.yaml(5), Slurm 25.05): its default topology as lines of topology.conf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.machines.slurm.config_lines import ConfigLine
from simsched.formats.text.diagnostics import shown
from simsched.formats.text.documents import load_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.machines.shared.note_collector import NoteCollector

NAME = "topology.yaml"

#: Kind of topology → the key of its list, and key of an entry → key of topology.conf.
_KINDS = {
    "tree": ("switches", {"switch": "switchname", "nodes": "nodes", "children": "switches"}),
    "block": ("blocks", {"block": "blockname", "nodes": "nodes"}),
}


def topology_lines(text: str, where: str, notes: NoteCollector) -> list[ConfigLine]:
    """Return the switches or blocks of the topology that partitions use by default.

    where : the name of the file for messages.
    Other topologies, and rings and tori, are left out with a note.
    """
    try:
        document = load_yaml(text, where)
    except FormatError as error:
        notes.fault(error.message, error.where or where, error.expected)
        return []
    rows = document if isinstance(document, list) else []
    topologies = [(number, row) for number, row in enumerate(rows) if isinstance(row, dict)]
    if not topologies:
        notes.fault(f"found {shown(document)}", where, "a list of topologies")
        return []
    number, chosen = next(
        (pair for pair in topologies if pair[1].get("cluster_default") is True), topologies[0]
    )
    if len(topologies) > 1:
        others = ", ".join(str(row.get("topology")) for _, row in topologies if row is not chosen)
        notes.left_out(f"the topologies {others}: the network is that of {chosen.get('topology')}", where)
    for kind, (key, names) in _KINDS.items():
        if isinstance(chosen.get(kind), dict):
            return list(_lines(chosen[kind].get(key), names, f"{where}: [{number}].{kind}.{key}", notes))
    for kind in ("ring", "torus3d"):
        if kind in chosen:
            notes.left_out(f"a topology of the kind {kind}", where)
    return []


def _lines(rows: Any, names: dict[str, str], place: str, notes: NoteCollector) -> Iterator[ConfigLine]:
    """Yield one line for each entry; entries without a name, and other values, are faults."""
    first = next(iter(names))
    for number, row in enumerate(rows if isinstance(rows, list) else ()):
        where = f"{place}[{number}]"
        if not isinstance(row, dict) or row.get(first) is None:
            notes.fault(f"found {shown(row)}", where, f"an object with the key {first}", cause=place)
            continue
        values = {names[key]: _text(row[key]) for key in names if key in row}
        unknown = [str(key) for key in row if key not in names]
        if unknown:
            notes.fault(f"unknown key {unknown[0]!r}", where, ", ".join(names), cause=f"{place} keys")
        yield ConfigLine(values, where)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
