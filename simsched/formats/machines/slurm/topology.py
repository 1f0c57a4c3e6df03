"""topology.conf(5): switches, or blocks, as the network of a recipe; topology.yaml(5) as lines of it.

Of topology.yaml (Slurm 25.05), the default topology is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

from simsched.cycles import find_cycle
from simsched.errors import FormatError, clip
from simsched.formats.cluster.recipe import Switch, SwitchTree
from simsched.formats.machines.slurm.config_keys import BLOCK, SWITCH, refuse_unknown
from simsched.formats.machines.slurm.notation import Line, NameReader, stated, text_of
from simsched.formats.text.diagnostics import shown
from simsched.formats.text.yaml_text import load_yaml

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from simsched.formats.machines.description import NoteCollector


MAX_SWITCHES = 100_000


@dataclass(slots=True)
class SwitchLines:
    """The lines of switches and blocks; names are Slurm's own."""

    notes: NoteCollector
    reader: NameReader
    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    below: dict[str, tuple[str, ...]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    blocks: set[str] = field(default_factory=set)

    def add(self, line: Line) -> bool:
        """Add a line; return False if it is not that of a switch or block."""
        known = {"switchname": SWITCH, "blockname": BLOCK}.get(line.kind)
        if known is not None:
            refuse_unknown(line, known, self.notes)
            name, where = line.values[line.kind], line.where
            if line.kind == "blockname":
                self.blocks.add(name)
            if name in self.hosts:
                self.notes.fault(f"the switch {clip(name)!r} occurs twice", where, cause="a switch twice")
            elif not name or len(self.hosts) >= MAX_SWITCHES:
                text = "a switch without a name, or too many of them"
                self.notes.fault(text, where, f"at most {MAX_SWITCHES:,}")
            else:
                self.hosts[name] = self._names(stated(line.values, "nodes"), where)
                self.below[name] = self._names(stated(line.values, "switches"), where)
                self.places[name] = where
            return True
        if line.kind == "blocksizes":
            text = f"BlockSizes={line.values['blocksizes']}: the sizes in which blocks are allocated"
            self.notes.left_out(text, line.where)
            return True
        return False

    def _names(self, text: str, where: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.reader.names(text, where, "switch")))

    def join(self, other: SwitchLines) -> None:
        """Add the switches of another file, unless there are some: one file has the whole network."""
        if not self.hosts:
            self.hosts, self.below = dict(other.hosts), dict(other.below)
            self.places, self.blocks = dict(other.places), set(other.blocks)

    def tree(self, nodes: Mapping[str, object]) -> SwitchTree | None:
        """Return the network of the switches over `nodes`; None without switches, and for a cycle."""
        self._drop_unknown(nodes)
        cycle = find_cycle(self.below)
        if cycle:
            place = self.places[cycle[0]]
            self.notes.fault(f"the switches {clip(' > '.join(cycle))} are a cycle: no network", place)
            return None
        if not self.hosts:
            return None
        joined = {host for hosts in self.hosts.values() for host in hosts}
        apart = sum(host not in joined for host in nodes)
        if apart:
            self.notes.assumed(f"nodes that are on no switch: {apart:,}")
        kinds: dict[str, str] = {}  # switch for the leaves, switch-level-1 above them, and block
        levels: dict[str, int] = {}
        for name in TopologicalSorter(self.below).static_order():
            level = levels[name] = max((levels[switch] + 1 for switch in self.below[name]), default=0)
            kinds[name] = "block" if name in self.blocks else f"switch-level-{level}" if level else "switch"
        return SwitchTree(
            switches=tuple(
                Switch(name=name, type=kinds[name], hosts=hosts, switches=self.below[name])
                for name, hosts in self.hosts.items()
            )
        )

    def _drop_unknown(self, nodes: Container[str]) -> None:
        """Drop names that are not nodes or switches, and a node below a second switch, with notes."""
        taken: dict[str, str] = {}
        for name, hosts in self.hosts.items():
            place, kept = self.places[name], []
            for host in hosts:
                if host not in nodes:
                    text = f"switch {clip(name)}: there is no node {clip(host)}"
                    self.notes.fault(text, place, cause="switch of unknown nodes")
                elif host in taken:
                    text = f"the node {host!r} is on the switches {taken[host]} and {clip(name)}"
                    self.notes.fault(text, place, "one switch", cause="node on two switches")
                else:
                    taken[host] = name
                    kept.append(host)
            self.hosts[name] = tuple(kept)
        for name, switches in self.below.items():
            for switch in switches:
                if switch not in self.hosts:
                    text = f"switch {clip(name)}: there is no switch {clip(switch)}"
                    self.notes.fault(text, self.places[name], cause="unknown switch")
            self.below[name] = tuple(switch for switch in switches if switch in self.hosts)


def read_switches(lines: Iterable[Line], found: SwitchLines) -> None:
    """Add the switches of a topology.conf; other lines are faults."""
    for line in lines:
        if not found.add(line):
            found.notes.fault(f"unknown key {line.kind!r}", line.where, "SwitchName or BlockName")


NAME = "topology.yaml"

#: Kind of topology → the key of its list, and key of an entry → key of topology.conf.
_KINDS = {
    "tree": ("switches", {"switch": "switchname", "nodes": "nodes", "children": "switches"}),
    "block": ("blocks", {"block": "blockname", "nodes": "nodes"}),
}


def topology_lines(text: str, where: str, notes: NoteCollector) -> list[Line]:
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
    usual = (pair for pair in topologies if pair[1].get("cluster_default") is True)
    number, chosen = next(usual, topologies[0])
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


def _lines(rows: Any, names: dict[str, str], place: str, notes: NoteCollector) -> Iterator[Line]:
    """Yield one line for each entry; entries without a name, and other values, are faults."""
    first = next(iter(names))
    for number, row in enumerate(rows if isinstance(rows, list) else ()):
        where = f"{place}[{number}]"
        if not isinstance(row, dict) or row.get(first) is None:
            notes.fault(f"found {shown(row)}", where, f"an object with the key {first}", cause=place)
            continue
        values = {names[key]: text_of(row[key]) for key in names if key in row}
        unknown = [str(key) for key in row if key not in names]
        if unknown:
            notes.fault(f"unknown key {unknown[0]!r}", where, ", ".join(names), cause=f"{place} keys")
        yield Line(values, where)
