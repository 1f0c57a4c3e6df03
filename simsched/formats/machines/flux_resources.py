"""Flux's views of its resources: the tables of ``flux resource list`` and ``status``, and their JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.cluster.recipe import Amount, PoolSpec, Recipe
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.machines.description import MachineDescription
from simsched.formats.machines.shared.node_groups import NodeRow, groups_of
from simsched.formats.machines.shared.node_values import (
    MAX_UNITS,
    hosts_in,
    idset_in,
    named_ids,
    usable_properties,
)
from simsched.formats.machines.shared.note_collector import NoteCollector
from simsched.formats.rfc.hostlist import encode_hosts
from simsched.formats.rfc.idset import Idset
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterator

LIST, STATUS = "flux resource list", "flux resource status"
LIST_STATES = {"free": "up", "allocated": "up", "up": "up", "all": "up", "down": "down"}
STATUS_STATES = {
    "avail": "up", "allocated": "up", "housekeeping": "up", "online": "up", "offline": "down",
    "torpid": "down", "exclude": "down", "drain": "drained", "drained": "drained", "draining": "drained",
}  # fmt: skip
_RIGHT = ("STATE", "UP", "STATUS", "NNODES", "NCORES", "NGPUS")
"""Columns that are aligned right; the others begin below their heading."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


# -- tables ------------------------------------------------------------------------------


def read_flux_list(text: str, where: str, *, strict: bool = False) -> MachineDescription:
    """Return the machine that the table of ``flux resource list`` shows.

    A line gives the cores and gpus of all its nodes together; they divide evenly, and ids count from 0.
    A queue is a property of its nodes.

    Raises
    ------
    FormatError
        if there is no line with nodes; under `strict` for the first line that is not understood.
    """
    notes = NoteCollector(strict=strict)
    rows: dict[str, NodeRow] = {}
    for line, place in _lines(text, where):
        state = line["STATE"].rstrip("*").lower()
        if state not in LIST_STATES:
            notes.fault(f"unknown state {clip(line['STATE'])!r}", place, ", ".join(LIST_STATES))
            continue
        hosts = hosts_in(line["NODELIST"], place, notes)
        cores, gpus = (
            _per_node(line.get(key, "0"), len(hosts), key, place, notes) for key in ("NCORES", "NGPUS")
        )
        names = [name for key in ("QUEUE", "PROPERTIES") for name in line.get(key, "").split(",") if name]
        if any(name.endswith("+") for name in names):
            notes.fault("a property is cut off, which ends in +", place, "flux R, or a wider format")
        properties = usable_properties((name for name in names if not name.endswith("+")), place, notes)
        for host in hosts:
            _add(rows, NodeRow(host=host, cores=cores, gpus=gpus, properties=properties,
                               status=LIST_STATES[state]), place, notes)  # fmt: skip
    notes.assumed("ids of cores and gpus count from 0, and the nodes of a line are alike", where)
    return _described(rows, where, notes, LIST)


def read_flux_status(text: str, where: str, *, strict: bool = False) -> MachineDescription:
    """Return the states of nodes that the table of ``flux resource status`` shows; it has no cores.

    A state with an asterisk is offline; an excluded node is down.  Errors as `read_flux_list`.
    """
    notes = NoteCollector(strict=strict)
    rows: dict[str, NodeRow] = {}
    for line, place in _lines(text, where):
        state = line["STATE"].lower()
        status = STATUS_STATES.get(state.rstrip("*"))
        if status is None:
            notes.fault(f"unknown state {clip(state)!r}", place, ", ".join(STATUS_STATES))
            continue
        if state.startswith("exclude"):
            notes.assumed("nodes that are excluded from scheduling are down", place)
        offline = state.endswith("*") and status == "up"
        for host in hosts_in(line.get("NODELIST", ""), place, notes):
            rows[host] = NodeRow(host=host, status="down" if offline else status)
    return _described(rows, where, notes, STATUS)


def _lines(text: str, where: str) -> Iterator[tuple[dict[str, str], str]]:
    """Yield (column → cell, place) of each line with nodes; cells lie below the names of their columns."""
    columns: list[tuple[str, int, int]] = []
    for number, raw in enumerate(_COLOUR.sub("", text).splitlines(), 1):
        line = raw.rstrip()
        if re.match(r"\s*(?:[A-Z]+\s+)*STATE\b", line):
            columns = [(found[0], found.start(), found.end()) for found in re.finditer(r"\S+", line)]
            if "NODELIST" not in line:
                where = f"{where}:{number}"
                raise FormatError("the table has no NODELIST", where=where, expected="the default format")
        elif line.strip() and columns:
            cells = _cells(line, columns)
            if cells.get("NODELIST"):
                yield cells, f"{where}:{number}"


def _cells(line: str, columns: list[tuple[str, int, int]]) -> dict[str, str]:
    """Return the cells of a line by the names of their columns.

    As many words as columns are the cells in their order.  Otherwise a cell is empty or has blanks: a word
    belongs to the heading that it overlaps, a word below none to the text column on its left, because a
    text may be longer than its heading, and otherwise to the nearest column.
    """
    words = line.split()
    if len(words) == len(columns):
        return {"STATE": ""} | {name: word for (name, _, _), word in zip(columns, words, strict=True)}
    found: dict[str, list[str]] = {}
    for word in re.finditer(r"\S+", line):
        apart = [max(start - word.end() + 1, word.start() - end + 1, 0) for _, start, end in columns]
        at = apart.index(min(apart))
        left = max((n for n, column in enumerate(columns) if column[1] <= word.start()), default=0)
        if apart[at] and columns[left][0] not in _RIGHT:
            at = left
        found.setdefault(columns[at][0], []).append(word[0])
    return {"STATE": "", **{name: " ".join(parts) for name, parts in found.items()}}


def _per_node(text: str, nodes: int, key: str, where: str, notes: NoteCollector) -> int:
    """Return the units of each node of a line."""
    if not re.fullmatch(r"[0-9]{1,12}", text):
        notes.fault(f"{clip(text)!r} is not a value of {key}", where, "a whole number")
        return 0
    units, rest = divmod(int(text), nodes or 1)
    if rest:
        notes.assumed(
            f"{int(text):,} {key[1:].lower()} do not divide over {nodes:,} nodes: {units} each", where
        )
    if units > MAX_UNITS:
        notes.fault(f"{units:,} {key[1:].lower()} in each node", where, f"at most {MAX_UNITS:,}")
        return 0
    return units


def _add(rows: dict[str, NodeRow], row: NodeRow, where: str, notes: NoteCollector) -> None:
    """Add a node; a second line of a node adds its queue and is the same node."""
    known = rows.get(row.host)
    if known is None:
        rows[row.host] = row
        return
    if (known.cores, known.gpus) != (row.cores, row.gpus):
        notes.fault(f"the node {row.host} occurs twice with other numbers; the first ones count", where)
    both = tuple(dict.fromkeys((*known.properties, *row.properties)))
    rows[row.host] = replace(known, properties=both)


def _described(rows: dict[str, NodeRow], where: str, notes: NoteCollector, form: str) -> MachineDescription:
    if not rows:
        notes.refuse("the table lists no nodes", where, f"the output of {form}")
    groups = groups_of(rows.values())
    return MachineDescription(recipe=Recipe(name=None, groups=groups), notes=notes.notes(), format=form)


# -- JSON --------------------------------------------------------------------------------


def read_flux_list_document(
    document: dict[str, Any], where: str, *, strict: bool = False
) -> MachineDescription:
    """Return the machine of the scheduler's answer: ``all`` and ``down``, each R or null."""
    notes = NoteCollector(strict=strict)
    rows = {row.host: row for row in rows_of_r(document["all"], f"{where}: all")}
    if document.get("down"):
        for row in rows_of_r(document["down"], f"{where}: down"):
            if row.host in rows:
                rows[row.host] = replace(rows[row.host], status="down")
            else:
                notes.fault(f"{row.host} is down, but is not in all", f"{where}: down")
    return _described(rows, where, notes, LIST)


def read_flux_status_document(
    document: dict[str, Any], where: str, *, strict: bool = False
) -> MachineDescription:
    """Return the machine of the resource service's answer: R, ranks that are offline, drained or excluded."""
    notes = NoteCollector(strict=strict)
    rows = rows_of_r(document["R"], f"{where}: R")
    drained: Any = document.get("drain")
    ranks = drained if isinstance(drained, dict) else {}
    states = [
        ("drained", _ranks(",".join(map(str, ranks)), f"{where}: drain", notes)),
        ("down", _ranks(document.get("offline"), f"{where}: offline", notes)),
        ("down", _ranks(document.get("torpid"), f"{where}: torpid", notes)),
    ]
    of_rank = dict(enumerate(rows))
    for status, ids in reversed(states):
        for rank in ids & Idset.from_range(0, len(rows) - 1):
            of_rank[rank] = replace(of_rank[rank], status=status)
    excluded = _ranks(document.get("exclude"), f"{where}: exclude", notes)
    gone = [row.host for rank, row in of_rank.items() if rank in excluded]
    if gone:
        notes.left_out(f"excluded from scheduling: {clip(encode_hosts(gone))}", f"{where}: exclude")
    kept = {row.host: row for rank, row in of_rank.items() if rank not in excluded}
    return _described(kept, where, notes, STATUS)


def _ranks(value: Any, where: str, notes: NoteCollector) -> Idset:
    return idset_in(value or "", where, notes)


def read_r(document: dict[str, Any], where: str, *, strict: bool = False) -> MachineDescription:
    """Return the nodes of R, to be described together with other files; errors as `rows_of_r`.

    R alone is read as a graph of its own, which also keeps ranks, times and a graph in it.
    """
    notes = NoteCollector(strict=strict)
    if document.get("scheduling"):
        notes.left_out("the graph or topology of R", f"{where}: scheduling")
    return _described({row.host: row for row in rows_of_r(document, where)}, where, notes, "R")


def rows_of_r(document: Any, where: str) -> list[NodeRow]:
    """Return the nodes of R in the order of their ranks; errors as `ResourceSet.from_dict`.

    Units other than cores and gpus become pools; their ids are not kept.
    """
    rset = ResourceSet.from_dict(document, where)
    hosts = list(rset.hosts)
    groups = {rank: group for group in rset.groups for rank in group.ranks}
    labels: dict[int, list[str]] = {rank: [] for rank in groups} if rset.properties else {}
    for name, ranks in rset.properties.items():
        for rank in ranks & rset.ranks:
            labels[rank].append(name)
    rows = []
    for position, rank in enumerate(sorted(groups)):
        children = dict(groups[rank].children)
        cores, gpus = (children.get(kind, Idset(())) for kind in ("core", "gpu"))
        rows.append(
            NodeRow(
                host=hosts[position] if position < len(hosts) else f"node{rank}",
                cores=len(cores),
                gpus=len(gpus),
                core_ids=named_ids(cores),
                gpu_ids=named_ids(gpus),
                pools=tuple(
                    PoolSpec(type=kind, amount=Amount(len(ids)))
                    for kind, ids in children.items()
                    if kind not in ("core", "gpu") and ids
                ),
                properties=tuple(labels.get(rank, ())),
            )
        )
    return rows
