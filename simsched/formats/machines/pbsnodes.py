"""Nodes of PBS Professional, OpenPBS and Torque: ``pbsnodes -a`` as text or JSON, and ``print node`` of qmgr.

A cpu of PBS (``ncpus``, ``np``) is a core.  Vnodes of one host are one node: PBS places a chunk on one host
and may take it from several of its vnodes.  Units of memory are powers of 1024.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simsched.errors import LimitError
from simsched.formats.cluster.recipe import MAX_NODES, Amount, Level, PoolSpec, Recipe
from simsched.formats.machines.description import MachineDescription
from simsched.formats.machines.shared.node_groups import NodeRow, groups_of
from simsched.formats.machines.shared.node_values import MAX_UNITS, usable_host, usable_properties
from simsched.formats.machines.shared.note_collector import NoteCollector
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FORMAT = "pbsnodes"
AVAILABLE = "resources_available."
DOWN = {
    "down", "stale", "state-unknown", "unknown", "unresolvable-hostname", "unresolvable", "provisioning",
    "wait-provisioning", "sleep", "initializing",
}  # fmt: skip
DRAINED = {"offline", "maintenance"}
UP = {
    "free", "job-exclusive", "job-busy", "job-sharing", "busy", "resv-exclusive", "reserve", "time-shared",
    "resv", "<various>", "active",
}  # fmt: skip
_USED = (
    "state",
    "np",
    "pcpus",
    "gpus",
    "properties",
    "queue",
    "status",
    "total_sockets",
    "jobs",
    "comment",
    "note",
)
_UNUSED = (
    "Mom", "Port", "pbs_version", "ntype", "resv", "resv_enable", "sharing", "license", "lictype",
    "last_state_change_time", "last_used_time", "in_multivnode_host", "topology_info", "Priority",
    "partition",
    "power_state", "power_provisioning", "provision_enable", "current_aoe", "current_eoe", "maintenance_jobs",
    "no_multinode_jobs", "server_instance", "mom_service_port", "mom_manager_port", "total_numa_nodes",
    "total_cores", "total_threads", "dedicated_sockets", "dedicated_numa_nodes", "dedicated_cores",
    "dedicated_threads", "gpu_status", "mics", "mic_status", "ttl", "acl", "requestid", "poweroff_eligible",
    "max_running", "max_user_run", "max_group_run", "max_run", "hpcbp_enable", "name", "slot_limit",
)  # fmt: skip
_KNOWN_RESOURCES = {
    "ncpus", "ngpus", "mem", "host", "vnode", "arch", "vmem", "hbmem", "mpiprocs", "ompthreads", "netwins",
    "naccelerators", "accelerator_memory", "accelerator_model", "accelerator", "Qlist", "nodect", "file",
    "walltime", "cput", "pmem", "pvmem", "pcput",
}  # fmt: skip
"""Resources with a meaning of their own; the others become properties and pools."""
_SIZE = re.compile(r"(\d{1,18})(b|kb|mb|gb|tb|pb|bw?|kw|mw|gw|tw|pw|w)?", re.IGNORECASE)
_BINARY = {"b": "B", "k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB", "p": "PiB", "w": "B"}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

_NOUNS = {"nodes": "node", "Queue": "queue"}
"""Key of a JSON document of PBS → the name of one object under it."""

Attributes = dict[str, tuple[str, str]]
"""Attribute → its value and its place."""


def read_pbsnodes(text: str, where: str, *, strict: bool = False) -> MachineDescription:
    """Return the machine that ``pbsnodes -a`` prints.

    Raises
    ------
    FormatError
        if no node has cores; under `strict` for the first line that is not understood.
    """
    notes = NoteCollector(strict=strict)
    return describe_nodes(_nodes(text, where, notes), where, notes)


def read_pbsnodes_document(
    document: Mapping[str, Any], where: str, *, strict: bool = False
) -> MachineDescription:
    """Return the machine of the JSON that ``pbsnodes -a -F json`` prints; errors as `read_pbsnodes`."""
    notes = NoteCollector(strict=strict)
    return describe_nodes(objects_of(document, "nodes", where, notes), where, notes)


def objects_of(
    document: Mapping[str, Any], key: str, where: str, notes: NoteCollector
) -> dict[str, Attributes]:
    """Return the attributes of each object under a key of a JSON document of PBS, by name."""
    found: dict[str, Attributes] = {}
    for name, row in document[key].items():
        place = f"{where}: {key}.{name}"
        if isinstance(row, dict):
            found[name] = _attributes(row, place)
        else:
            notes.fault(f"this {_NOUNS[key]} is not an object", place)
    return found


def _attributes(row: Mapping[str, Any], place: str) -> Attributes:
    """Return the attributes of a JSON object of PBS; those of an inner object are ``outer.inner``."""
    found: Attributes = {}
    for key, value in row.items():
        for sub, item in value.items() if isinstance(value, dict) else [("", value)]:
            text = ",".join(map(str, item)) if isinstance(item, list) else str(item)
            found[f"{key}.{sub}" if sub else key] = (text, f"{place}.{key}")
    return found


def _nodes(text: str, where: str, notes: NoteCollector) -> dict[str, Attributes]:
    """Return the attributes of each node; lines of a node are indented, its name is not."""
    nodes: dict[str, Attributes] = {}
    current: Attributes | None = None
    last = ""
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{where}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        if not line[0].isspace():
            name, current = line.strip(), {}
            if name in nodes:
                notes.fault(f"the node {clip(name)!r} occurs twice; the first counts", place)
            else:
                nodes[name] = current
        elif current is None:
            notes.fault(f"an attribute before the first node: {clip(line.strip())}", place)
        else:
            key, equals, value = line.strip().partition(" = ")
            if equals or line.strip().endswith(" ="):
                last = key.removesuffix(" =")
                current[last] = (value.strip(), place)
            elif last in current:  # a value that goes on in the next line
                current[last] = (current[last][0] + line.strip(), current[last][1])
            else:
                notes.fault(f"neither a node nor an attribute: {clip(line.strip())!r}", place, "NAME = VALUE")
    return nodes


def describe_nodes(nodes: Mapping[str, Attributes], where: str, notes: NoteCollector) -> MachineDescription:
    """Return the description of these nodes."""
    reader = _Reader(notes)
    parts: dict[str, list[NodeRow]] = {}
    for name, attributes in nodes.items():
        row = reader.row(name, attributes)
        if row is not None:
            host = attributes.get(f"{AVAILABLE}host", ("", ""))[0]
            parts.setdefault(host or row.host, []).append(row)
    rows = [_one(host, vnodes, where, notes) for host, vnodes in parts.items()]
    if not any(row.cores for row in rows):
        notes.refuse("no node has cores", where, "the output of pbsnodes -a")
    if len(rows) > MAX_NODES:
        raise LimitError(f"{len(rows):,} nodes", where=where, expected=f"at most {MAX_NODES:,}")
    notes.assumed("a cpu of PBS (ncpus, np) is a core", where)
    bound = dict.fromkeys(queue for queues in reader.bound for queue in queues)
    config: dict[str, Any] = {"queues": {queue: {"requires": [queue]} for queue in bound}} if bound else {}
    if nodes and all(map(_is_exclusive, nodes.values())):
        config["match-policy"] = "firstnodex"
        notes.assumed("sharing = …_exclhost gives whole nodes: match-policy = firstnodex", where)
    elif any(map(_is_exclusive, nodes.values())):
        notes.left_out("sharing = …_exclhost: some nodes are given to one job at a time", where)
    if bound:
        notes.left_out("nodes that belong to a queue may still be used by other queues", where)
    return MachineDescription(
        recipe=Recipe(name=None, groups=groups_of(rows)), config=config, notes=notes.notes(), format=FORMAT
    )


def _is_exclusive(attributes: Attributes) -> bool:
    """Whether a node is given to one job at a time, whatever the job requests."""
    return attributes.get("sharing", ("", ""))[0].lower().endswith("_exclhost")


def _one(host: str, vnodes: list[NodeRow], where: str, notes: NoteCollector) -> NodeRow:
    """Return the node that the vnodes of one host are together."""
    if len(vnodes) == 1:
        return vnodes[0]
    notes.assumed("vnodes of one host are one node")
    named = [row for row in vnodes if row.cores]
    alike = len(named) > 1 and len({(row.cores, row.gpus) for row in named}) == 1
    pools: dict[tuple[str, str], int] = {}
    for row in vnodes:
        for pool in row.pools:
            kind = (pool.type, pool.amount.unit)
            pools[kind] = pools.get(kind, 0) + pool.amount.size
    worst = next((status for status in ("down", "drained") if any(r.status == status for r in vnodes)), "up")
    if worst != "up" and any(row.status == "up" for row in vnodes):
        notes.assumed(f"a host is {worst} if one of its vnodes is")
    return NodeRow(
        host=host if usable_host(host, where, notes) else vnodes[0].host,
        cores=sum(row.cores for row in vnodes),
        gpus=sum(row.gpus for row in vnodes),
        locality=(Level("numa", len(named)),) if alike else (),
        pools=tuple(PoolSpec(type=kind, amount=Amount(size, unit)) for (kind, unit), size in pools.items()),
        properties=tuple(dict.fromkeys(name for row in vnodes for name in row.properties)),
        status=worst,
    )


class _Reader:
    """Reads the attributes of nodes; collects the queues to which nodes belong."""

    def __init__(self, notes: NoteCollector) -> None:
        self.notes = notes
        self.bound: list[list[str]] = []

    def row(self, name: str, attributes: Attributes) -> NodeRow | None:
        """Return the row of one node or vnode; None for one without a usable name or without cpus."""
        first = next(iter(attributes.values()), ("", ""))[1]
        plain = re.sub(r"\[(\d+)\]$", r"-\1", name)  # a hostlist cannot hold the brackets of a vnode
        if not usable_host(plain, first, self.notes):
            return None
        for key, (_, place) in attributes.items():
            if "." not in key and key not in _USED:
                if key not in _UNUSED:
                    self.notes.unknown(key, (*_USED, *_UNUSED), place)
            elif key == "jobs":
                self.notes.left_out("jobs that run on nodes", place)
        cores = self._first(attributes, f"{AVAILABLE}ncpus", "np", "pcpus")
        if cores is None:
            self.notes.left_out("nodes that state neither ncpus nor np", first)
            return None
        sockets = self._first(attributes, "total_sockets") or 0
        return NodeRow(
            host=plain,
            cores=cores,
            gpus=self._first(attributes, f"{AVAILABLE}ngpus", "gpus", f"{AVAILABLE}naccelerators") or 0,
            locality=(Level("socket", sockets),) if sockets > 1 and cores % sockets == 0 else (),
            pools=(*self._memory(attributes), *self._pools(attributes)),
            properties=self._properties(attributes, first),
            status=self._status(attributes),
        )

    def _first(self, attributes: Attributes, *keys: str) -> int | None:
        """Return the whole number of the first of these attributes that is given."""
        for key in keys:
            if key in attributes:
                value, place = attributes[key]
                if re.fullmatch(r"[0-9]{1,9}", value) and int(value) <= MAX_UNITS:
                    return int(value)
                expected = f"a whole number, at most {MAX_UNITS:,}"
                self.notes.fault(f"{clip(value)!r} is not a value of {key}", place, expected)
        return None

    def _memory(self, attributes: Attributes) -> Iterator[PoolSpec]:
        value, place = attributes.get(f"{AVAILABLE}mem", ("", ""))
        if not value and "status" in attributes:  # Torque: status = …,physmem=131939556kb,…
            text, place = attributes["status"]
            found = re.search(r"(?:^|,)physmem=([^,]*)", text)
            value = found[1] if found else ""
        if value:
            amount = _amount(value)
            if amount is None:
                self.notes.fault(f"{clip(value)!r} is not an amount of memory", place, "such as 131072mb")
            elif amount.size:
                yield PoolSpec(type="memory", amount=amount)

    def _pools(self, attributes: Attributes) -> Iterator[PoolSpec]:
        """Yield a pool for each other resource that is a number of units or an amount."""
        for key, (value, _) in attributes.items():
            name = key.removeprefix(AVAILABLE)
            if not key.startswith(AVAILABLE) or name in _KNOWN_RESOURCES or not _WORD.fullmatch(name):
                continue
            amount = _amount(value)
            if (
                amount is not None
                and amount.size
                and name not in ("node", "cluster", "core", "gpu", "memory")
            ):
                yield PoolSpec(type=name, amount=amount)

    def _properties(self, attributes: Attributes, where: str) -> tuple[str, ...]:
        """Return properties of Torque, queues, resources that are true, and NAME=TEXT of the others."""
        names = _words(attributes.get("properties", ("", ""))[0])
        queues = _words(attributes.get("queue", ("", ""))[0])
        self.bound.append(queues)
        names += [*_words(attributes.get(f"{AVAILABLE}Qlist", ("", ""))[0]), *queues]
        for key, (value, _) in attributes.items():
            name = key.removeprefix(AVAILABLE)
            if not key.startswith(AVAILABLE) or name in _KNOWN_RESOURCES or _amount(value) is not None:
                continue
            if value.lower() in ("true", "false"):
                names += [name] if value.lower() == "true" else []
            else:
                names += [f"{name}={word}" for word in _words(value)]
        return usable_properties(names, where, self.notes)

    def _status(self, attributes: Attributes) -> str:
        value, place = attributes.get("state", ("free", ""))
        states = _words(value.lower())
        for state in states:
            if state not in DOWN | DRAINED | UP:
                self.notes.fault(f"unknown state {clip(state)!r}; the node counts as up", place)
        return "down" if DOWN & set(states) else "drained" if DRAINED & set(states) else "up"


def _words(text: str) -> list[str]:
    return [word for part in text.strip('"').split(",") if (word := part.strip().strip('"'))]


def _amount(text: str) -> Amount | None:
    """Return a number of units or an amount of memory; None for other texts.

    >>> _amount("131072mb"), _amount("4"), _amount("2gw"), _amount("fdr")
    (Amount(size=131072, unit='MiB'), Amount(size=4, unit=''), Amount(size=16, unit='GiB'), None)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    unit = (found[2] or "").lower()
    words = 8 if unit.endswith("w") else 1  # a word of PBS has the size of the server's, today 8 bytes
    return Amount(int(found[1]) * words, _BINARY[unit[0]] if unit else "")
