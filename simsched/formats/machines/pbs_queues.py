"""Queues of PBS and Torque, as ``qmgr -c "print server"`` or ``qstat -Qf -F json`` prints them.

``qmgr -c "print node @default"`` describes nodes; one file may have both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simsched.formats.cluster.recipe import Recipe
from simsched.formats.machines.description import MachineDescription
from simsched.formats.machines.limits.limit_tables import LimitTables
from simsched.formats.machines.limits.pbs_limits import take_limit
from simsched.formats.machines.pbsnodes import Attributes, describe_nodes, objects_of
from simsched.formats.machines.shared.node_values import usable_properties
from simsched.formats.machines.shared.note_collector import NoteCollector
from simsched.formats.rfc.duration import format_duration
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = "queues of PBS"
_SET = re.compile(r"set\s+(queue|server|node)\s+(?:(\S+)\s+)?([\w.]+)\s*(\+?=|-=)\s*(.*)", re.IGNORECASE)
_CREATE = re.compile(r"create\s+(queue|node|hook|resource|resv|sched|pbshook)\s+(\S+)(.*)", re.IGNORECASE)
_SIZES = {
    "ncpus": "ncores", "procs": "ncores", "procct": "ncores", "nodect": "nnodes", "nodes": "nnodes",
    "ngpus": "ngpus", "gpus": "ngpus",
}  # fmt: skip
_READ = ("queue_type", "enabled", "started", "priority", "from_route_only", "default_queue")
_TRUE = {"true", "t", "1", "y", "yes"}
MOST = 2**31


def read_pbs_queues(text: str, where: str, *, strict: bool = False) -> MachineDescription:
    """Return the queues, and the nodes if there are any, of commands of qmgr.

    Raises
    ------
    FormatError
        if there is neither a queue nor a node; under `strict` for the first line that is not understood.
    """
    notes = NoteCollector(strict=strict)
    queues: dict[str, Attributes] = {}
    nodes: dict[str, Attributes] = {}
    server: Attributes = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line, place = raw.strip(), f"{where}:{number}"
        if not line or line.startswith("#"):
            continue
        created = _CREATE.fullmatch(line)
        if created is not None:
            home = {"queue": queues, "node": nodes}.get(created[1].lower())
            if home is not None:
                home.setdefault(created[2], {})
            continue
        found = _SET.fullmatch(line)
        if found is None:
            if not re.match(r"(?:set|active|unset|import|delete)\s", line, re.IGNORECASE):
                notes.fault(f"not a command of qmgr: {clip(line)!r}", place, "create or set")
            continue
        kind, name, key, sign, value = found.groups()
        owner = server if kind.lower() == "server" else _owner(kind, name, queues, nodes, place, notes)
        before = owner.get(key, ("", ""))[0] if sign == "+=" else ""
        owner[key] = (f"{before},{value}" if before else value.strip().strip('"'), place)
    config = _config(queues, server, notes)
    if nodes:
        described = describe_nodes(nodes, where, notes)
        return MachineDescription(recipe=described.recipe, config=config, notes=notes.notes(), format="qmgr")
    if not config:
        notes.refuse("there are no queues that run jobs", where, 'qmgr -c "print server"')
    recipe = Recipe(name=None, groups=())
    return MachineDescription(recipe=recipe, config=config, notes=notes.notes(), format=FORMAT)


def _owner(
    kind: str,
    name: str | None,
    queues: dict[str, Attributes],
    nodes: dict[str, Attributes],
    where: str,
    notes: NoteCollector,
) -> Attributes:
    """Return the attributes of the queue or node that a line sets."""
    home = queues if kind.lower() == "queue" else nodes
    if name is None:
        notes.fault(f"a {kind} without a name", where)
        return {}
    if name not in home:
        notes.fault(f"the {kind} {clip(name)!r} is not created before this line", where)
    return home.setdefault(name, {})


def read_pbs_queues_document(
    document: Mapping[str, Any], where: str, *, strict: bool = False
) -> MachineDescription:
    """Return the queues of the JSON that ``qstat -Qf -F json`` prints; errors as `read_pbs_queues`."""
    notes = NoteCollector(strict=strict)
    config = _config(objects_of(document, "Queue", where, notes), {}, notes)
    if not config:
        notes.refuse("there are no queues that run jobs", where, "qstat -Qf -F json")
    recipe = Recipe(name=None, groups=())
    return MachineDescription(recipe=recipe, config=config, notes=notes.notes(), format=FORMAT)


def _config(queues: Mapping[str, Attributes], server: Attributes, notes: NoteCollector) -> dict[str, Any]:
    """Return the configuration of queues that run jobs."""
    found: dict[str, Any] = {}
    limits = LimitTables(notes)
    server = _without_limits(limits, None, server)
    queues = {name: _without_limits(limits, name, attributes) for name, attributes in queues.items()}
    for name, attributes in queues.items():
        kind = attributes.get("queue_type", ("Execution", ""))
        if kind[0].lower().startswith("r"):
            notes.left_out(f"the routing queue {name}", kind[1])
        elif not _is_true(attributes, "enabled") or not _is_true(attributes, "started"):
            place = attributes.get("enabled", attributes.get("started", ("", "")))[1]
            notes.left_out(f"the queue {name}, which is not enabled or not started", place)
        else:
            found[name] = _queue(attributes, notes)
    if not found:
        return {}
    policy = _policy(server, notes)
    default, place = server.get("default_queue", ("", ""))
    if default in found:
        system = policy.setdefault("jobspec", {}).setdefault("defaults", {}).setdefault("system", {})
        system["queue"] = default
    elif default and default not in queues:
        notes.fault(f"the default queue {clip(default)!r} does not exist", place, ", ".join(found))
    elif default:
        notes.left_out(f"the default queue {default}, which runs no jobs", place)
    tables = [table for table in limits.tables() if table.get("queue", next(iter(found))) in found]
    more = {"limits": tables} if tables else {}
    return {"queues": found, **({"policy": policy} if policy else {}), **more}


def _without_limits(limits: LimitTables, queue: str | None, attributes: Attributes) -> Attributes:
    """Return the attributes of a queue (None: the server) but those that are limits, which are collected."""
    return {
        key: (value, place)
        for key, (value, place) in attributes.items()
        if not take_limit(limits, queue, key, value, place)
    }


def _is_true(attributes: Attributes, key: str) -> bool:
    return attributes.get(key, ("true", ""))[0].lower() in _TRUE


def _queue(attributes: Attributes, notes: NoteCollector) -> dict[str, Any]:
    found: dict[str, Any] = {}
    requires: list[str] = []
    for key, (value, place) in attributes.items():
        if key in ("default_chunk.Qlist", "resources_default.neednodes"):
            requires += [word.strip() for word in value.split(",")]
        elif key.startswith("default_chunk.") and not re.fullmatch(r"\d+\w*", value):
            name = key.removeprefix("default_chunk.")
            requires.append(name if value.lower() == "true" else f"{name}={value}")
        elif key.lower() == "priority":
            if re.fullmatch(r"[+-]?\d{1,9}", value):
                found["priority"] = int(value)
            else:
                notes.fault(f"{clip(value)!r} is not a priority", place, "a whole number")
    names = usable_properties(requires, next(iter(attributes.values()), ("", ""))[1], notes)
    if names:
        found["requires"] = list(names)
    policy = _policy(attributes, notes)
    return {**found, "policy": policy} if policy else found


def _policy(attributes: Attributes, notes: NoteCollector) -> dict[str, Any]:
    """Return limits and defaults of a queue or of the server."""
    limits: dict[str, Any] = {}
    sizes: dict[str, dict[str, int]] = {}
    system: dict[str, Any] = {}
    for key, (value, place) in attributes.items():
        table, _, name = key.partition(".")
        side = {"resources_max": "max", "resources_min": "min"}.get(table)
        if side == "max" and name == "walltime":
            _set_time(limits, value, place, notes)
        elif table == "resources_default" and name == "walltime":
            _set_time(system, value, place, notes)
        elif side is not None and name in _SIZES:
            if re.fullmatch(r"\d{1,9}", value):
                sizes.setdefault(side, {})[_SIZES[name]] = int(value)
            else:
                notes.fault(f"{clip(value)!r} is not a value of {key}", place, "a whole number")
        elif key.lower() not in _READ and not key.startswith(
            ("default_chunk.", "resources_default.neednodes")
        ):
            notes.left_out(f"{key} of queues or the server", place)
    if sizes:
        limits["job-size"] = sizes
    policy: dict[str, Any] = {"limits": limits} if limits else {}
    return {**policy, "jobspec": {"defaults": {"system": system}}} if system else policy


def _set_time(table: dict[str, Any], value: str, where: str, notes: NoteCollector) -> None:
    """Set ``duration`` from a time of PBS: seconds, or ``[[[days:]hours:]minutes:]seconds``."""
    parts = value.split(":")
    if len(parts) > 4 or not all(re.fullmatch(r"\d{1,9}(?:\.\d+)?", part) for part in parts):
        notes.fault(f"{clip(value)!r} is not a time", where, "such as 24:00:00")
        return
    scales = (86400, 3600, 60, 1)[-len(parts) :]
    seconds: float = sum(float(part) * scale for part, scale in zip(parts, scales, strict=True))
    table["duration"] = format_duration(int(seconds) if seconds % 1 == 0 else seconds)
