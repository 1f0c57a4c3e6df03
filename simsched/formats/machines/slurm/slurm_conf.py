"""slurm.conf (slurm.conf(5)) with the files that it includes, gres.conf and the topology beside it.

A file is lines of keys, with comments, continuations, quotes and included files.
"""

from __future__ import annotations

import re
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING

from simsched.errors import FormatError, LimitError, SimschedError, clip
from simsched.formats.machines.slurm import config_keys, topology
from simsched.formats.machines.slurm.node_records import read_gres
from simsched.formats.machines.slurm.notation import Line, stated
from simsched.formats.machines.slurm.slurm_records import SlurmRecords
from simsched.formats.machines.slurm.topology import SwitchLines, read_switches
from simsched.formats.text.decompression import MAX_TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from simsched.formats.machines.description import NoteCollector
    from simsched.formats.text.documents import OpenFile


MAX_DEPTH = 8
"""Includes within includes."""
MAX_FILES = 200
"""The most files that one configuration may include."""

_COMMENT = re.compile(r"(?<!\\)#.*")
_UNQUOTED = re.compile(r'\A((?:[^"#\\]|\\.|"[^"]*")*+)#.*')
_PAIR = re.compile(r'\s*+([A-Za-z0-9_.]++)\s*+[-+*/]?=\s*(?:"([^"]*)"|(\S+))?(?=\s|\Z)')
_WORD = re.compile(r"\s*(\S+)")
_INCLUDE = re.compile(r"\s*include\s+(\S.*?)\s*\Z", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(.)")


class ConfigFiles:
    """The lines of a configuration with those of its included files at their places.

    first : the name of the first file for messages.
    open_file : returns the text of a file by its name relative to the first one; None: there are none.
    """

    def __init__(self, notes: NoteCollector, first: str, open_file: Callable[[str], str] | None) -> None:
        self._notes = notes
        self._open = open_file
        self._opened = 0
        self._characters = 0
        self._folder = PurePosixPath(first).parent
        self._cluster = ""

    def place(self, name: str) -> str:
        """Return the path of a file for messages; names are relative to the first file."""
        return str(self._folder / name)

    def neighbour(self, name: str) -> str | None:
        """Return the text of a file beside the first; None if there is none."""
        if self._open is None:
            return None
        try:
            return self._text(self._open(name))
        except LimitError as error:
            self._notes.fault(f"{name} was not read: {error.message}", self.place(name), error.expected)
        except (SimschedError, OSError, LookupError):
            return None
        return None

    def lines(self, text: str, where: str, above: tuple[str, ...] = ()) -> Iterator[Line]:
        """Yield the lines of a text; an Include is replaced by the lines of the file."""
        for number, line in _logical_lines(text):
            place = f"{where}:{number}"
            include = _INCLUDE.fullmatch(line)
            if include is not None and "=" not in line.split()[0]:
                name = include[1].strip('"').replace("%c", self._cluster)  # as Slurm does
                yield from self._included(name, place, above)
                continue
            values = self._pairs(line, place)
            if values:
                self._cluster = values.get("clustername", self._cluster).lower()
                yield Line(values, place)

    def _included(self, name: str, place: str, above: tuple[str, ...]) -> Iterator[Line]:
        """Yield the lines of an included file; a note says why it is not read."""
        if self._open is None:
            self._notes.left_out(f"the included file {clip(name)} was not read", place)
        elif any(mark in name for mark in "*?["):
            reason = "Slurm does not read patterns and skips this line"
            self._notes.fault(f"Include {clip(name)}: {reason}", place, "the name of a file")
        elif name in above:
            self._notes.fault(f"Include {clip(name)}: the file includes itself", place, "no cycle")
        elif len(above) >= MAX_DEPTH or self._opened >= MAX_FILES:
            expected = f"at most {MAX_DEPTH} levels and {MAX_FILES} files"
            self._notes.fault(f"Include {clip(name)}: too many includes", place, expected)
        else:
            self._opened += 1
            beside = name.rpartition("/")[2]
            text: str | None
            try:
                text = self._text(self._open(name))
            except (SimschedError, OSError, LookupError) as error:
                # A site's configuration is often read elsewhere, where /etc/slurm has other files or none:
                # then the file of the same name beside the first one counts.
                text = self.neighbour(beside) if beside != name else None
                if text is not None:
                    self._notes.assumed(f"Include {clip(name)}: the file {clip(beside)} here was read", place)
                else:
                    reason = error.message if isinstance(error, SimschedError) else "it cannot be opened"
                    self._notes.fault(f"Include {clip(name)}: {reason}", place, "a file beside this one")
            if text is not None:
                yield from self.lines(text, self.place(name), (*above, name))

    def _text(self, text: str) -> str:
        """Return a text of a file; LimitError for too large ones together."""
        self._characters += len(text)
        if self._characters > MAX_TEXT:
            raise LimitError("the files are too large together", expected=f"at most {MAX_TEXT:,} characters")
        return text

    def _pairs(self, line: str, place: str) -> dict[str, str]:
        """Return the keys of a line; a word that is not KEY=VALUE is a fault, and the rest is kept."""
        values: dict[str, str] = {}
        at = 0
        while at < len(line):
            pair = _PAIR.match(line, at)
            if pair is None:
                word = _WORD.match(line, at)
                assert word is not None  # the line has no blanks at its end
                self._notes.fault(f"{clip(word[1])!r} is not KEY=VALUE", place, cause="not KEY=VALUE")
                at = word.end()
                continue
            value = pair[2] if pair[2] is not None else pair[3] or ""
            values[pair[1].lower()] = _ESCAPE.sub(r"\1", value) if "\\" in value else value
            at = pair.end()
        return values


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number of the first line, text) without comments and blanks at the end, continuations joined.

    As in Slurm, a comment is removed before a backslash at the end of the line is looked for, and the next
    line follows without a space: a value may go on there.
    """
    kept, first = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if "#" in line:  # a comment begins with one that is neither escaped nor between quotation marks
            line = _UNQUOTED.sub(r"\1", line, count=1) if '"' in line else _COMMENT.sub("", line)  # noqa: PLW2901
        bare = line.rstrip()
        first = first or number
        if bare.endswith("\\"):
            kept += bare[:-1]
            continue
        whole = (kept + bare).strip()
        if whole:
            yield first, whole
        kept, first = "", 0
    if kept.strip():
        yield first, kept.strip()


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
    if not any(line.kind in config_keys.GLOBAL or line.kind in _KINDS for line in lines):
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
    known = _KINDS.get(line.kind, config_keys.GLOBAL)
    if known:
        config_keys.refuse_unknown(line, known, notes)
    name = line.values.get(line.kind, "")
    if line.kind in _KINDS and _TEMPLATE.search(name):
        notes.fault(f"the name {clip(name)!r} is that of a template", line.where, "the file that it makes")
    elif line.kind not in _KINDS:
        records.settings.add(line.values, line.where)
    elif line.kind in records.defaults:
        own = {_SAME.get(key, key): value for key, value in line.values.items() if key != line.kind}
        for key, meaning in _NODE_LEFT_OUT.items() if line.kind == "nodename" else ():
            if stated(line.values, key):
                text = f"{config_keys.NODE[key]}={clip(line.values[key])} ({meaning})"
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
_TEMPLATE = re.compile(r"\{[{%]|<%|\$\{")
"""Marks of Jinja, ERB and shells."""
_SAME = {"feature": "features", "shared": "oversubscribe"}
"""Keys with two names; a line may use the other name than the DEFAULT line before it."""

_KINDS: Mapping[str, Mapping[str, str]] = {
    "nodename": config_keys.NODE, "partitionname": config_keys.PARTITION,
    "nodeset": config_keys.NODE_SET, "downnodes": config_keys.DOWN_NODES,
    "frontendname": {}, "switchname": {}, "blockname": {},
}  # fmt: skip
"""The keys that begin a line of its own kind → the keys of these lines, if they are looked at here.

All other lines are settings of the whole cluster.
"""
