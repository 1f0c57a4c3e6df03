"""`SlurmRecords`: what the files of a site say about Slurm, joined before it is understood.

All readers of Slurm's files collect the same records, whose keys are those of slurm.conf in lower case.  The
partitions of one file may decide what the settings of another mean, so the records of files that are given
together are joined first: see `understanding`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.cluster.recipe import MAX_NODES
from simsched.formats.machines.description import NoteCollector
from simsched.formats.machines.slurm.node_records import GresTypes
from simsched.formats.machines.slurm.notation import (
    EVERY_NODE,
    Keys,
    Line,
    NameReader,
    comma_parts,
    stated,
    time_limit,
)
from simsched.formats.machines.slurm.reservation_lines import reservation_of
from simsched.formats.machines.slurm.settings import Settings
from simsched.formats.machines.slurm.topology import SwitchLines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INSIDE_KEYS = """
    boards corespeccount corespersocket cpuefctv cpus cpuspeclist gres memspeclimit procs realmemory sockets
    socketsperboard threadspercore tmpdisk
"""
INSIDE = frozenset(_INSIDE_KEYS.split())
"""The keys of the inside of a node."""
_KEPT = INSIDE | {"feature", "features", "partitions", "state", "weight"}
MAX_PARTITIONS = 10_000


@dataclass(slots=True)
class SlurmRecords:
    """The records of one reading, in their order.

    form : the name of the format.
    defaults : the keys of the lines ``NodeName=DEFAULT`` and ``PartitionName=DEFAULT``, which apply to
        the lines of further files as well.
    down : the lines ``DownNodes``.
    qos, associations : the records of the accounting database; their keys are those of sacctmgr.
    without_default : the file, if it lists partitions and does not state which is the default.
    """

    notes: NoteCollector
    form: str = ""
    settings: Settings = field(init=False)
    defaults: dict[str, dict[str, str]] = field(default_factory=lambda: {"nodename": {}, "partitionname": {}})
    nodes: dict[str, Line] = field(default_factory=dict)
    partitions: dict[str, Line] = field(default_factory=dict)
    node_sets: dict[str, Line] = field(default_factory=dict)
    reservations: dict[str, dict[str, Any]] = field(default_factory=dict)
    down: list[tuple[list[str], str, str]] = field(default_factory=list)
    qos: list[Line] = field(default_factory=list)
    associations: list[Line] = field(default_factory=list)
    without_default: str = ""
    reader: NameReader = field(init=False)
    gres: GresTypes = field(init=False)
    switches: SwitchLines = field(init=False)
    _known: dict[tuple[tuple[str, str], ...], dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = Settings(self.notes)
        self.reader = NameReader(self.notes)
        self.gres = GresTypes(self.notes)
        self.switches = SwitchLines(self.notes, self.reader)

    def add_nodes(
        self, hosts: Sequence[str], values: Mapping[str, str], where: str, *, again: bool = False
    ) -> None:
        """Add nodes that are alike.

        again : a node that is known already is in further partitions (sinfo lists nodes by partition);
            otherwise a second record of a node is a fault, and the first one counts.
        """
        if len(self.nodes) + len(hosts) > MAX_NODES:
            raise LimitError("too many nodes", where=where, expected=f"at most {MAX_NODES:,}")
        kept = {key: values[key] for key in sorted(_KEPT & values.keys())}
        kept = self._known.setdefault(tuple(kept.items()), kept)
        words = len(comma_parts(kept.get("features", ""))) + len(comma_parts(kept.get("partitions", "")))
        self.reader.count(len(hosts) * words, where)
        line = Line(kept, where)
        twice = []
        for host in hosts:
            known = self.nodes.get(host)
            if known is None:
                self.nodes[host] = line
            elif again:
                lists = (known.values.get("partitions"), kept.get("partitions"))
                both = {**known.values, "partitions": ",".join(filter(None, lists))}
                self.nodes[host] = Line(both, known.where)
            else:
                twice.append(host)
        if twice:
            text = f"the node {clip(twice[0])!r} occurs twice; that of {self.nodes[twice[0]].where} counts"
            if len(twice) > 1:
                text += f" (other nodes of this line too: {len(twice) - 1:,})"
            self.notes.fault(text, where, cause="a node twice")

    def add_partition(self, name: str, values: Mapping[str, str], where: str) -> None:
        """Add a partition; a second record of a name is a fault, and the first one counts."""
        if not name:
            self.notes.fault("a partition without a name", where)
            return
        if name in self.partitions:
            text = f"the partition {clip(name)!r} occurs twice; that of {self.partitions[name].where} counts"
            self.notes.fault(text, where, cause="a partition twice")
            return
        if len(self.partitions) >= MAX_PARTITIONS:
            raise LimitError("too many partitions", where=where, expected=f"at most {MAX_PARTITIONS:,}")
        self.partitions[name] = Line(dict(values), where)

    def add_reservation(self, name: str, values: Mapping[str, str], where: str) -> None:
        """Add an advance reservation; of a name twice, the first one counts."""
        if name in self.reservations:
            text = f"the reservation {clip(name)!r} occurs twice; the first one counts"
            self.notes.fault(text, where, cause="a reservation twice")
            return
        text = stated(values, "nodes")
        hosts = [] if text.lower() == EVERY_NODE else self.reader.names(text, where, "nodes")
        found = reservation_of(name, Keys(values, self.notes, where), hosts)
        if found is not None:
            self.reservations[name] = found


# --- joining ----------------------------------------------------------------------------------


def joined(parts: Sequence[SlurmRecords]) -> tuple[SlurmRecords, list[tuple[str, dict[str, Line]]]]:
    """Return the records of several files as those of one, which has a copy of their notes.

    Of a value that several files state, the first counts; a difference is noted.  The second result has the
    nodes of each file with its format.
    """
    whole = SlurmRecords(NoteCollector.joined(part.notes for part in parts))
    nodes: list[tuple[str, dict[str, Line]]] = []
    for part in parts:
        below = {kind: dict(values) for kind, values in whole.defaults.items()}
        for kind, values in part.defaults.items():
            whole.defaults[kind] |= values
        mine, more = whole.settings, part.settings
        if more.values:
            mine.lists_all = more.lists_all and (mine.lists_all or not mine.values)
        for key, value in more.values.items():
            if not stated(mine.values, key):
                mine.add({key: value}, more.where(key))
            elif stated(more.values, key) and _plain(value) != _plain(mine.values[key]):
                counts = f"{clip(mine.values[key])} of {mine.where(key)} counts"
                whole.notes.assumed(f"{key}={clip(value)} is not used: {counts}", more.where(key))
        defaults = below["nodename"]
        own = {
            host: line._replace(values={**defaults, **line.values}) if defaults else line
            for host, line in part.nodes.items()
        }
        nodes += [(part.form, own)] if own else []
        for name, line in part.partitions.items():
            own_line = Line({**below["partitionname"], **line.values}, line.where)
            known = whole.partitions.get(name)
            whole.partitions[name] = own_line if known is None else _both(name, known, own_line, whole)
        for name, line in part.node_sets.items():
            whole.node_sets.setdefault(name, line)
        for name, table in part.reservations.items():
            whole.reservations.setdefault(name, table)
        whole.down += part.down
        whole.without_default = whole.without_default or part.without_default
        whole.qos += part.qos
        whole.associations += part.associations
        for host, types in part.gres.gpus.items():
            whole.gres.gpus.setdefault(host, types)
        whole.switches.join(part.switches)
    whole.settings.values.asked.clear()
    return whole, nodes


def _both(name: str, first: Line, second: Line, whole: SlurmRecords) -> Line:
    """Return two records of one partition as one; of a key in both, the first counts."""
    values = dict(first.values)
    for key, value in second.values.items():
        if not stated(values, key):
            values[key] = value
        elif key != "nodes" and stated(second.values, key) and _plain(value) != _plain(values[key]):
            counts = f"{clip(values[key])} of {first.where} counts"
            text = f"partition {clip(name)}: {key}={clip(value)} is not used: {counts}"
            whole.notes.assumed(text, second.where, cause=f"partition {key} differs")
    return Line(values, first.where)


def _plain(value: str) -> object:
    """Return a value in a form that is equal where Slurm writes the same in two ways."""
    try:
        return time_limit(value)
    except FormatError:
        return value.lower().strip('"')
