"""slurm.conf (slurm.conf(5)) with the files that it includes, gres.conf and the topology beside it."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from simsched.errors import FormatError, clip
from simsched.formats.machines.slurm import config_lines, topology
from simsched.formats.machines.slurm.config_lines import ConfigFiles
from simsched.formats.machines.slurm.node_records import read_gres
from simsched.formats.machines.slurm.notation import stated
from simsched.formats.machines.slurm.slurm_records import Line, SlurmRecords
from simsched.formats.machines.slurm.topology import read_switches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from simsched.formats.machines.description import NoteCollector
    from simsched.formats.machines.slurm.config_lines import ConfigLine
    from simsched.formats.text.documents import OpenFile


FORMAT = "slurm.conf"


def read_slurm_conf(text: str, where: str, notes: NoteCollector, open_file: OpenFile | None) -> SlurmRecords:
    """Return the machine and the queues that a slurm.conf describes.

    open_file : returns the text of another file by its name relative to this one; it raises an error if
        there is none.  None: included files are only noted.

    Raises
    ------
    FormatError
        if nothing of the text is that of a slurm.conf, and for the first fault if `notes` are strict.
    LimitError
        for more than a million nodes.
    """
    files = ConfigFiles(notes, where, open_file)
    reading = _Reading(SlurmRecords(notes, FORMAT), files)
    reading.records.settings.lists_all = True
    lines = list(files.lines(text, where, (PurePath(where).name,)))
    if not any(line.kind in config_lines.GLOBAL or line.kind in _KINDS for line in lines):
        raise FormatError(
            "this is not a slurm.conf", where=where, expected="NodeName=… and PartitionName=… lines"
        )
    reading.read(lines)
    return reading.records


class _Reading:
    """One reading: the records, and the DEFAULT lines that apply to the lines after them."""

    def __init__(self, records: SlurmRecords, files: ConfigFiles) -> None:
        self.records = records
        self._files = files
        self._notes = records.notes

    def read(self, lines: Iterable[ConfigLine]) -> None:
        """Read all lines, and the files beside the first."""
        self._read_gres()
        for line in lines:
            known = _KINDS.get(line.kind, config_lines.GLOBAL)
            if known:
                config_lines.refuse_unknown(line.values, known, self._notes, line.where)
            if line.kind not in _KINDS:
                self.records.settings.add(line.values, line.where)
            elif line.kind == "nodename":
                self._nodes(line)
            elif line.kind == "partitionname":
                values = self._with_defaults(line)
                for name in line.values["partitionname"].split(",") if values is not None else ():
                    self.records.add_partition(name, values or {}, line.where)
            elif line.kind == "nodeset":
                self.records.node_sets[line.values["nodeset"]] = Line(line.values, line.where)
            elif line.kind == "downnodes":
                state = stated(line.values, "state") or "DOWN"
                hosts = self.records.reader.names(line.values["downnodes"], line.where, "downnodes")
                self.records.down.append((hosts, state, line.where))
            elif line.kind == "frontendname":
                self._notes.left_out("front-end nodes", line.where)
            else:
                self.records.switches.add(line)
        self._read_topology()

    def _with_defaults(self, line: ConfigLine) -> dict[str, str] | None:
        """Return the keys of a line with those of the DEFAULT lines before it; None for a DEFAULT line."""
        name = line.values[line.kind]
        own = {_SAME.get(key, key): value for key, value in line.values.items() if key != line.kind}
        if name.upper() == "DEFAULT":
            self.records.defaults[line.kind] |= own
            return None
        return self.records.defaults[line.kind] | own

    def _nodes(self, line: ConfigLine) -> None:
        for key, meaning in _NODE_LEFT_OUT.items():
            if stated(line.values, key):
                text = f"{config_lines.NODE[key]}={clip(line.values[key])} ({meaning})"
                self._notes.left_out(text, line.where, cause=f"node {key}")
        values = self._with_defaults(line)
        if values is None:
            return
        name = line.values["nodename"]
        if name.upper() == "ALL":
            self._notes.fault("NodeName=ALL: the name is reserved", line.where, "the names of nodes")
            return
        hosts = self.records.reader.names(name, line.where, "nodename")
        self.records.add_nodes(hosts, values, line.where)

    def _read_gres(self) -> None:
        text = self._files.neighbour("gres.conf") or ""
        lines = self._files.lines(text, self._files.place("gres.conf"))
        read_gres(lines, self.records.gres, self.records.reader)

    def _read_topology(self) -> None:
        """Read the switches of topology.yaml or topology.conf, unless slurm.conf itself has some."""
        switches = self.records.switches
        if switches.hosts:
            return
        for name in (topology.NAME, "topology.conf"):
            text = self._files.neighbour(name)
            if text is not None:
                place = self._files.place(name)
                is_yaml = name == topology.NAME
                read_switches(
                    topology.topology_lines(text, place, self._notes)
                    if is_yaml
                    else self._files.lines(text, place),
                    switches,
                )
                return


_NODE_LEFT_OUT = {
    "cpubind": "how tasks are bound to CPUs",
    "restrictedcorespergpu": "the cores that only jobs with gpus may use",
    "suspendtime": "the time after which idle nodes are switched off",
    "topology": "the places of nodes in a topology",
    "tresweights": "the weights of resources in usage",
}
"""Keys of nodes that are not held → what they state."""
_SAME = {"feature": "features", "shared": "oversubscribe"}
"""Keys with two names; a line may use the other name than the DEFAULT line before it."""

_KINDS: Mapping[str, Mapping[str, str]] = {
    "nodename": config_lines.NODE, "partitionname": config_lines.PARTITION,
    "nodeset": config_lines.NODE_SET, "downnodes": config_lines.DOWN_NODES,
    "frontendname": {}, "switchname": {}, "blockname": {},
}  # fmt: skip
"""The keys that begin a line of its own kind → the keys of these lines, if they are looked at here.

All other lines are settings of the whole cluster.
"""
