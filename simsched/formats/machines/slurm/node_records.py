"""One kind of node from the keys of a NodeName line (slurm.conf(5)): cores, memory, resources, status.

A core of the recipe is a physical core; Slurm's CPUs may be its hardware threads.  gres.conf(5) has the types
of gpus that slurm.conf only counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.cluster.recipe import Amount, Level, NodeGroup, PoolSpec
from simsched.formats.machines.site_facts import property_name
from simsched.formats.machines.slurm.config_keys import GRES, refuse_unknown
from simsched.formats.machines.slurm.notation import (
    Gres,
    Keys,
    NameReader,
    comma_parts,
    gres_of,
    node_names,
    whole_number,
)
from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from simsched.formats.machines.description import NoteCollector
    from simsched.formats.machines.slurm.notation import Line


MAX_MEMORY = 10**12
"""The most MiB of memory or disk that a node may have."""
NOT_POOLS = frozenset({"node", "cluster", "core", "memory", "socket", "storage", "slot", "gpu", "switch"})
"""Names of generic resources that have another meaning in a recipe."""

SLICES = "mig-"
"""Begins the type of resource that slices of gpus of one profile are: ``mig-1g.5gb``."""
_PROFILE = re.compile(r"(?:.*[_-])?\d+g\.\d+gb(?:[+.].*)?", re.IGNORECASE)

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_STATE_MARKS = "*~#!%$@^-+"


def status_of(state: str) -> str | None:
    """Return the status of a node in a state of Slurm; None for a node that is only planned (FUTURE).

    >>> status_of("IDLE+DRAIN"), status_of("DOWN*"), status_of("CLOUD"), status_of("FUTURE")
    ('drained', 'down', 'up', None)
    """
    flags = set(re.split(r"[+,\s]+", state.upper().replace("*", "+NOT_RESPONDING")))
    words = {flag.strip(_STATE_MARKS) for flag in flags}
    if words & {"FUTURE", "DYNAMIC_FUTURE"}:
        return None
    asleep = "~" in state or words & {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_UP", "CLOUD"}
    if words & {"DOWN", "ERROR"} or ("NOT_RESPONDING" in words and not asleep):
        return "down"
    drained = {"DRAIN", "DRAINED", "DRAINING", "DRNG", "FAIL", "FAILING", "INVAL", "INVALID_REG"}
    return "drained" if words & drained else "up"


def node_kind(keys: Keys, tmp_path: str) -> tuple[NodeGroup, int]:
    """Return the kind of node that these keys describe, and the CPUs that Slurm counts for one core of it.

    The kind is a group without hosts, whose properties are the types of the gpus (``a100@gpu``).

    tmp_path : the directory whose size is ``TmpDisk`` (``TmpFS``).
    """
    sockets, cores, cpus_per_core = _layout(keys)
    memory, disk = _memory(keys), keys.number("tmpdisk", most=MAX_MEMORY)
    pools = [PoolSpec(type="memory", amount=Amount(memory, "MiB"))] if memory else []
    if disk:
        pools.append(PoolSpec(type="storage", amount=Amount(disk, "MiB"), path=tmp_path))
        keys.assumed(f"TmpDisk is a pool of type storage at {tmp_path}, which jobs share", cause="disk")
    gpus, types, more = _resources(keys, sockets)
    group = NodeGroup(
        name="",
        hosts=(),
        locality=(Level("socket", sockets),) if sockets else (),
        cores=cores,
        gpus=gpus,
        pools=(*pools, *more),
        properties=types,
    )
    return group, cpus_per_core


# --- cores ---------------------------------------------------------------------------


def _layout(keys: Keys) -> tuple[int, int, int]:
    """Return the sockets (0: they are not vertices), physical cores that jobs may use, and CPUs in each.

    They are completed as slurmctld completes them (read_config.c, ``NodeName``).
    """

    def number(key: str) -> int | None:
        return keys.number(key, least=1)

    per_socket, threads = number("corespersocket") or 1, number("threadspercore") or 1
    boards, on_board = number("boards") or 1, number("socketsperboard")
    sockets = boards * on_board if on_board else number("sockets")
    cpus = number("cpus") or number("procs")
    is_stated = sockets is not None
    if sockets is None:
        whole = cpus is not None and cpus % (per_socket * threads) == 0
        sockets = cpus // (per_socket * threads) if cpus is not None and whole else boards
    cores = sockets * per_socket
    cpus_per_core = threads
    if cpus is None:
        if not is_stated and per_socket == 1:
            keys.assumed("neither CPUs nor Sockets is stated: one core per socket", cause="cores")
    elif cpus == cores:
        cpus_per_core = 1
    elif cpus == sockets:
        keys.assumed("CPUs is the number of sockets: each of them is one core", cause="cpus=sockets")
        per_socket, cores, cpus_per_core = 1, cpus, 1
    elif cpus != cores * threads:
        expected = f"{cores} or {cores * threads}, as Sockets, CoresPerSocket and ThreadsPerCore say"
        keys.fault(f"CPUs={cpus} does not fit the sockets", expected, cause="CPUs do not fit")
    if cpus_per_core > 1:
        counted = f"{cpus_per_core} CPUs (ThreadsPerCore)"
        keys.assumed(f"a core is a physical core, for which Slurm counts {counted}")
    left = cores - _reserved_cores(keys, cores, cpus_per_core)
    if per_socket == 1:
        return 0, left, cpus_per_core
    if left % sockets:  # a recipe divides the cores of a node evenly
        keys.assumed("sockets are not vertices, because the reserved cores are not the same number in each")
        sockets = 0
    return sockets, left, cpus_per_core


def _reserved_cores(keys: Keys, cores: int, cpus_per_core: int) -> int:
    """Return the cores that are kept from jobs: CoreSpecCount, CPUSpecList, or CPUEfctv of scontrol."""
    reserved, effective = keys.number("corespeccount") or 0, keys.number("cpuefctv")
    if effective:  # 0 for a node that has never been seen
        reserved = max(0, cores - effective // cpus_per_core)
    elif keys.stated("cpuspeclist") and not reserved:
        reserved = -(-len(keys.read(Idset.parse, "cpuspeclist") or ()) // cpus_per_core)
    if reserved >= cores:
        keys.fault(f"{reserved} reserved cores of {cores}", "fewer than the node has")
        return 0
    if reserved:
        cores_are = "cores of a node are" if reserved > 1 else "core of a node is"
        keys.assumed(f"{reserved} {cores_are} reserved for the system and not in the graph")
    return reserved


def _memory(keys: Keys) -> int:
    """Return the MiB of memory that jobs may use; 0 if it is not stated."""
    memory = keys.number("realmemory", most=MAX_MEMORY)
    if memory is None or memory <= 1:  # 1 is Slurm's own value for nodes without RealMemory
        keys.assumed("RealMemory is not stated: these nodes have no memory to request", cause="memory")
        return 0
    reserved = keys.number("memspeclimit", most=MAX_MEMORY) or 0
    if reserved >= memory:
        keys.fault(f"MemSpecLimit={reserved} of {memory} MB", "less than RealMemory")
        return memory
    if reserved:
        keys.assumed(f"{reserved} MB of a node are reserved for the system and not in the graph")
    return memory - reserved


# --- generic resources ----------------------------------------------------------------


def _resources(keys: Keys, sockets: int) -> tuple[int, tuple[str, ...], tuple[PoolSpec, ...]]:
    """Return the gpus, the properties for their types, and the pools of other generic resources.

    Gpus of one type are one pool per socket, as everywhere in recipes.  Gpus of several types are single
    vertices in the node, each with the property of its type.
    """
    entries = (keys.read(gres_of, "gres") or []) if keys.stated("gres") else []
    every = [entry for entry in entries if entry.name.lower() == "gpu"]
    listed = [entry for entry in every if _PROFILE.fullmatch(entry.type) is None]
    gpus = _by_type(listed, keys)
    more = []
    for entry in (entry for entry in entries if entry.name.lower() != "gpu"):
        name = entry.name
        if name.lower() in ("mps", "shard"):
            keys.left_out(f"{name}: parts of gpus; whole gpus can be requested", cause=name)
        elif not entry.consumed:
            keys.left_out(f"{name}: a resource that jobs do not consume (no_consume)", cause=name)
        elif name in NOT_POOLS or _WORD.fullmatch(name) is None:
            keys.left_out(f"{name}: the name is not a type that a request can have", cause=name)
        elif entry.count:
            kinds = (property_name(entry.type),) if entry.type else ()
            more.append(PoolSpec(type=name, amount=Amount(entry.count), properties=kinds))
    for profile, count in _by_type([entry for entry in every if entry not in listed], keys).items():
        kind = SLICES + re.sub(r"[^A-Za-z0-9_.-]", "_", profile)
        more.append(PoolSpec(type=kind, amount=Amount(count)))
        text = f"slices of gpus are resources of their own ({kind}), which a request for gpu does not count"
        keys.assumed(text, cause=f"slices {kind}")
    types = tuple(f"{property_name(kind)}@gpu" for kind in gpus if kind)
    if len(gpus) > 1:
        single = (
            PoolSpec(type="gpu", count=count, properties=(property_name(kind),) if kind else ())
            for kind, count in gpus.items()
        )
        return 0, types, (*single, *more)
    number = sum(gpus.values())
    if number and sockets > 1 and not any(_spans(entry, sockets) for entry in listed):
        keys.assumed("the gpus of a node are divided evenly over its sockets")
    return number, types, tuple(more)


def _spans(entry: Gres, sockets: int) -> bool:
    """Return whether the units are near to every socket (``S:0-1``)."""
    try:
        return len(Idset.parse(entry.places.removeprefix("S:"))) == sockets
    except FormatError:  # a form of other versions, such as the numbers of cores
        return False


def _by_type(entries: Sequence[Gres], keys: Keys) -> dict[str, int]:
    """Return the gpus of each type; too many are a fault."""
    found: dict[str, int] = {}
    for entry in entries:
        if entry.count > 65_535:
            keys.fault(f"gres: {entry.count:,} gpus in a node", "at most 65,535")
        elif entry.count:
            found[entry.type] = found.get(entry.type, 0) + entry.count
    return found


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
        types = self.gpus.get(host) or self.gpus.get(_FOR_ALL) or {}
        try:
            listed = [entry for entry in gres_of(gres) if entry.name.lower() == "gpu"] if any(types) else []
        except FormatError:  # noted where the node is read
            return gres
        number = sum(entry.count for entry in listed)
        if not number or any(entry.type for entry in listed):
            return gres
        if sum(types.values()) != number:
            text = f"gres.conf lists {sum(types.values())} gpus of {host}; the {number} of slurm.conf count"
            self.notes.assumed(text, where, cause="gres.conf differs")
            return gres
        self.notes.assumed("the types of gpus are those of gres.conf", where, cause="gres.conf types")
        typed = (f"gpu:{kind}:{count}" if kind else f"gpu:{count}" for kind, count in types.items())
        others = [part for part in comma_parts(gres) if part.split(":")[0].split("(")[0].lower() != "gpu"]
        return ",".join((*typed, *others))


def read_gres(lines: Iterable[Line], found: GresTypes, reader: NameReader) -> None:
    """Add the gpus that a gres.conf lists."""
    for line in lines:
        keys = Keys(line.values, found.notes, line.where)
        refuse_unknown(line, GRES, found.notes)
        if "autodetect" in line.values and "name" not in line.values:
            keys.left_out("AutoDetect: the types of gpus that nodes report are not in the files")
        if keys.stated("name").lower() != "gpu":
            continue
        number = keys.read(whole_number, "count") or 0 if keys.stated("count") else 1
        files = "" if keys.stated("count") else keys.stated("file", "multiplefiles")
        if files:
            number = len(keys.read(node_names, "file", files) or ())
        kind, text = keys.stated("type"), keys.stated("nodename")
        for host in reader.names(text, line.where, "nodename") if text else (_FOR_ALL,):
            types = found.gpus.setdefault(host, {})
            types[kind] = types.get(kind, 0) + number
