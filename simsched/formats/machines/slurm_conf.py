"""slurm.conf (slurm.conf(5)) with the files that it includes, gres.conf and the topology beside it."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.machines.shared.note_collector import NoteCollector
from simsched.formats.machines.slurm import keys, topology_yaml
from simsched.formats.machines.slurm.config_lines import ConfigFiles
from simsched.formats.machines.slurm.gres_file import GresTypes, read_gres
from simsched.formats.machines.slurm.notation import stated
from simsched.formats.machines.slurm.settings import Settings
from simsched.formats.machines.slurm.slurm_records import PartitionFacts, SlurmRecords
from simsched.formats.machines.slurm.switches import SwitchLines, read_switches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from simsched.formats.machines.description import MachineDescription
    from simsched.formats.machines.slurm.config_lines import ConfigLine

FORMAT = "slurm.conf"


def read_slurm_conf(
    text: str, where: str, *, open_file: Callable[[str], str] | None = None, strict: bool = False
) -> MachineDescription:
    """Return the machine and the queues that a slurm.conf describes.

    Parameters
    ----------
    where : the name of the file for messages.
    open_file : returns the text of another file by its name relative to this one; it raises an error if
        there is none.  None: included files are only noted.
    strict : the first line that cannot be understood is an error; otherwise it is a note.

    Raises
    ------
    FormatError
        if nothing of the text is that of a slurm.conf, and for the first fault if `strict`.
    LimitError
        for more than a million nodes.
    """
    notes = NoteCollector(strict=strict)
    files = ConfigFiles(notes, where, open_file)
    reading = _Reading(SlurmRecords(notes, Settings(notes)), files)
    lines = list(files.lines(text, where, (PurePath(where).name,)))
    if not any(reading.is_known(line) for line in lines):
        raise FormatError(
            "this is not a slurm.conf", where=where, expected="NodeName=… and PartitionName=… lines"
        )
    reading.read(lines)
    return reading.records.describe(FORMAT)


class _Reading:
    """One reading: the records, and the DEFAULT lines that apply to the lines after them."""

    def __init__(self, records: SlurmRecords, files: ConfigFiles) -> None:
        self.records = records
        self._files = files
        self._notes = records.notes
        self._defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
        self._switches = SwitchLines(records.notes, records.reader)

    def is_known(self, line: ConfigLine) -> bool:
        """Whether a line begins with a key of Slurm."""
        return line.kind in keys.GLOBAL or line.kind in _KINDS

    def read(self, lines: Iterable[ConfigLine]) -> None:
        """Read all lines: settings first, since nodes depend on them."""
        later = []
        for line in lines:
            if line.kind in _KINDS:
                later.append(line)
            else:
                keys.refuse_unknown(line.values, keys.GLOBAL, self._notes, line.where)
                self.records.settings.add(line.values, line.where)
        self._gres = self._gres_types()
        for line in later:
            if line.kind == "nodename":
                self._nodes(line)
            elif line.kind == "partitionname":
                self._partition(line)
            elif line.kind == "nodeset":
                keys.refuse_unknown(line.values, keys.NODE_SET, self._notes, line.where)
                self.records.node_sets[line.values["nodeset"]] = PartitionFacts(line.values, line.where)
            elif line.kind == "frontendname":
                self._notes.left_out("front-end nodes", line.where)
            else:
                self._switches.add(line)
        self._nodes_down(line for line in later if line.kind == "downnodes")
        self.records.switches = self._topology().tree(self.records.nodes)

    def _with_defaults(self, line: ConfigLine) -> dict[str, str] | None:
        """Return the keys of a line with those of the DEFAULT lines before it; None for a DEFAULT line."""
        name = line.values[line.kind]
        own = {_SAME.get(key, key): value for key, value in line.values.items() if key != line.kind}
        if name.upper() == "DEFAULT":
            self._defaults[line.kind] |= own
            return None
        return self._defaults[line.kind] | own

    def _nodes(self, line: ConfigLine) -> None:
        keys.refuse_unknown(line.values, keys.NODE, self._notes, line.where)
        values = self._with_defaults(line)
        if values is None:
            return
        name = line.values["nodename"]
        if name.upper() == "ALL":
            self._notes.fault("NodeName=ALL: the name is reserved", line.where, "the names of nodes")
            return
        hosts = self.records.hosts(name, line.where, "nodename")
        for some, gres in self._gres.split(hosts, stated(values, "gres"), line.where):
            self.records.add_nodes(some, {**values, "gres": gres}, line.where)

    def _partition(self, line: ConfigLine) -> None:
        keys.refuse_unknown(line.values, keys.PARTITION, self._notes, line.where)
        values = self._with_defaults(line)
        if values is not None:
            for name in line.values["partitionname"].split(","):
                self.records.add_partition(name, values, line.where)

    def _nodes_down(self, lines: Iterable[ConfigLine]) -> None:
        for line in lines:
            keys.refuse_unknown(line.values, keys.DOWN_NODES, self._notes, line.where)
            state = stated(line.values, "state") or "DOWN"
            self.records.set_states(line.values["downnodes"], state, line.where)

    def _gres_types(self) -> GresTypes:
        text = self._files.neighbour("gres.conf") or ""
        lines = self._files.lines(text, self._files.place("gres.conf"))
        return read_gres(lines, self._notes, self.records.reader)

    def _topology(self) -> SwitchLines:
        """Return the switches of slurm.conf itself, or of topology.yaml, or of topology.conf beside it."""
        if self._switches.hosts:
            return self._switches
        text = self._files.neighbour(topology_yaml.NAME)
        if text is not None:
            entries = topology_yaml.topology_lines(text, self._files.place(topology_yaml.NAME), self._notes)
            return read_switches(entries, self._notes, self.records.reader)
        text = self._files.neighbour("topology.conf")
        if text is not None:
            lines = self._files.lines(text, self._files.place("topology.conf"))
            return read_switches(lines, self._notes, self.records.reader)
        plugin = self.records.settings.get("topologyplugin")
        if plugin not in ("", "topology/default", "topology/flat", "topology/none"):
            where = self.records.settings.where("topologyplugin")
            self._notes.left_out(f"TopologyPlugin={plugin}: no topology.conf was read", where)
        return self._switches


_SAME = {"feature": "features", "shared": "oversubscribe"}
"""Keys with two names; a line may use the other name than the DEFAULT line before it."""

_KINDS: Mapping[str, None] = dict.fromkeys(
    ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname", "blockname")
)
"""The keys that begin a line of its own kind; all others are settings of the whole cluster."""
