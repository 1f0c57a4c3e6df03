"""slurm.conf (slurm.conf(5)) with the files that it includes, gres.conf and the topology beside it."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from simsched.errors import FormatError, clip
from simsched.formats.machines.slurm import config_lines, topology
from simsched.formats.machines.slurm.config_lines import ConfigFiles
from simsched.formats.machines.slurm.node_records import read_gres
from simsched.formats.machines.slurm.notation import Line, stated
from simsched.formats.machines.slurm.slurm_records import SlurmRecords
from simsched.formats.machines.slurm.topology import read_switches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.formats.machines.description import NoteCollector
    from simsched.formats.machines.slurm.topology import SwitchLines
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
    records = SlurmRecords(notes, FORMAT)
    records.settings.lists_all = True
    lines = list(files.lines(text, where, (PurePath(where).name,)))
    if not any(line.kind in config_lines.GLOBAL or line.kind in _KINDS for line in lines):
        expected = "NodeName=… and PartitionName=… lines"
        raise FormatError("this is not a slurm.conf", where=where, expected=expected)
    beside = files.lines(files.neighbour("gres.conf") or "", files.place("gres.conf"))
    read_gres(beside, records.gres, records.reader)
    for line in lines:
        _add(line, records, notes)
    if not records.switches.hosts:  # slurm.conf itself may have some
        _read_topology(files, records.switches, notes)
    return records


def _add(line: Line, records: SlurmRecords, notes: NoteCollector) -> None:
    """Add a line; the DEFAULT lines apply to the lines after them."""
    known = _KINDS.get(line.kind, config_lines.GLOBAL)
    if known:
        config_lines.refuse_unknown(line, known, notes)
    name = line.values.get(line.kind, "")
    if line.kind not in _KINDS:
        records.settings.add(line.values, line.where)
    elif line.kind in records.defaults:
        own = {_SAME.get(key, key): value for key, value in line.values.items() if key != line.kind}
        for key, meaning in _NODE_LEFT_OUT.items() if line.kind == "nodename" else ():
            if stated(line.values, key):
                text = f"{config_lines.NODE[key]}={clip(line.values[key])} ({meaning})"
                notes.left_out(text, line.where, cause=f"node {key}")
        values = records.defaults[line.kind] | own
        if name.upper() == "DEFAULT":
            records.defaults[line.kind] = values
        elif line.kind == "partitionname":
            for one in name.split(","):
                records.add_partition(one, values, line.where)
        elif name.upper() == "ALL":
            notes.fault("NodeName=ALL: the name is reserved", line.where, "the names of nodes")
        else:
            records.add_nodes(records.reader.names(name, line.where, "nodename"), values, line.where)
    elif line.kind == "nodeset":
        records.node_sets[name] = line
    elif line.kind == "downnodes":
        hosts = records.reader.names(name, line.where, "downnodes")
        records.down.append((hosts, stated(line.values, "state") or "DOWN", line.where))
    elif line.kind == "frontendname":
        notes.left_out("front-end nodes", line.where)
    else:
        records.switches.add(line)


def _read_topology(files: ConfigFiles, switches: SwitchLines, notes: NoteCollector) -> None:
    """Read the switches of topology.yaml or topology.conf beside slurm.conf."""
    for name in (topology.NAME, "topology.conf"):
        text, place = files.neighbour(name), files.place(name)
        if text is not None:
            is_yaml = name == topology.NAME
            lines = topology.topology_lines(text, place, notes) if is_yaml else files.lines(text, place)
            read_switches(lines, switches)
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
