"""PBS Professional, OpenPBS and Torque: nodes, queues and limits.

Nodes are the text or JSON of ``pbsnodes -a``, or ``print node @default`` of qmgr.  A cpu of PBS (``ncpus``,
``np``) is a core.  Vnodes of one host are one node: PBS places a chunk on one host and may take it from
several of its vnodes.  Units of memory are powers of 1024.

Queues are what ``qmgr -c "print server"`` or ``qstat -Qf -F json`` prints; one file may have nodes as well.
The limits ``max_run``, ``max_queued`` and ``max_run_res`` of a queue or the server are lists such as
``[u:PBS_GENERIC=5],[u:alice=10],[o:PBS_ALL=100]``: each user, one user, all jobs.  The older attributes
``max_user_run``, ``max_running``, ``max_user_queuable`` and ``max_queuable`` have one number.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from simsched.errors import LimitError, clip
from simsched.formats.cluster.recipe import MAX_NODES, Amount, Level, PoolSpec
from simsched.formats.machines.limit_tables import HOLD, REJECT, LimitTables, policy_of
from simsched.formats.machines.site_facts import (
    MAX_UNITS,
    Node,
    SiteFacts,
    node_of,
    usable_host,
    usable_properties,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.formats.machines.description import Content, NoteCollector, Table


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
    "state", "np", "pcpus", "gpus", "properties", "queue", "status", "total_sockets", "jobs", "comment",
    "note",
)  # fmt: skip
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
_NOT_POOLS = ("node", "cluster", "core", "gpu", "memory")
_SIZE = re.compile(r"(\d{1,18})(b|kb|mb|gb|tb|pb|bw?|kw|mw|gw|tw|pw|w)?", re.IGNORECASE)
_BINARY = {"b": "B", "k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB", "p": "PiB", "w": "B"}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

Attributes = dict[str, tuple[str, str]]
"""Attribute → its value and its place."""
Rows = dict[str, Attributes]
"""The nodes or queues by name."""


def read_pbsnodes(content: Content, where: str, notes: NoteCollector) -> SiteFacts:
    """Return the machine that ``pbsnodes -a`` prints, as text or as JSON.

    Raises
    ------
    FormatError
        if no node has cores; under strict `notes` for the first line that is not understood.
    """
    if isinstance(content, str):
        nodes = _nodes(content, where, notes)
    else:
        nodes = _objects(content, "nodes", where, notes)
    return _described(nodes, where, notes, "pbsnodes")


def _objects(document: Mapping[str, Any], key: str, where: str, notes: NoteCollector) -> Rows:
    """Return the attributes of each object under a key of a JSON document of PBS, by name."""
    found: Rows = {}
    for name, row in document[key].items():
        place = f"{where}: {key}.{name}"
        if not isinstance(row, dict):
            notes.fault(f"this {key.lower().removesuffix('s')} is not an object", place)
            continue
        own = found[name] = {}
        for word, value in row.items():  # the attributes of an inner object are outer.inner
            for sub, item in value.items() if isinstance(value, dict) else [("", value)]:
                text = ",".join(map(str, item)) if isinstance(item, list) else str(item)
                own[f"{word}.{sub}" if sub else word] = (text, f"{place}.{word}")
    return found


def _nodes(text: str, where: str, notes: NoteCollector) -> Rows:
    """Return the attributes of each node; lines of a node are indented, its name is not."""
    nodes: Rows = {}
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


def _described(nodes: Rows, where: str, notes: NoteCollector, form: str, config: Any = None) -> SiteFacts:
    """Return the facts of these nodes; without a configuration, with that of the queues of the nodes."""
    parts: dict[str, dict[str, Node]] = {}
    bound: dict[str, Any] = {}  # the queues to which nodes belong
    for name, attributes in nodes.items():
        plain = re.sub(r"\[(\d+)\]$", r"-\1", name)  # a hostlist cannot hold the brackets of a vnode
        node = _node(plain, attributes, notes)
        if node is not None:
            bound |= {queue: {"requires": [queue]} for queue in _words(_value(attributes, "queue"))}
            parts.setdefault(_value(attributes, f"{AVAILABLE}host") or plain, {})[plain] = node
    hosts = dict(_one(host, vnodes, where, notes) for host, vnodes in parts.items())
    if not any(node.kind.cores for node in hosts.values()):
        notes.refuse("no node has cores", where, "the output of pbsnodes -a")
    if len(hosts) > MAX_NODES:
        raise LimitError(f"{len(hosts):,} nodes", where=where, expected=f"at most {MAX_NODES:,}")
    notes.assumed("a cpu of PBS (ncpus, np) is a core", where)
    own: dict[str, Any] = {"queues": bound} if bound else {}
    # whether a node is given to one job at a time, whatever the job requests
    exclusive = [_value(row, "sharing").lower().endswith("_exclhost") for row in nodes.values()]
    if nodes and all(exclusive):
        own["match-policy"] = "firstnodex"
        notes.assumed("sharing = …_exclhost gives whole nodes: match-policy = firstnodex", where)
    elif any(exclusive):
        notes.left_out("sharing = …_exclhost: some nodes are given to one job at a time", where)
    if bound:
        notes.left_out("nodes that belong to a queue may still be used by other queues", where)
    return SiteFacts(form=form, notes=notes, nodes=hosts, config=own if config is None else config)


def _value(attributes: Attributes, key: str, usual: str = "") -> str:
    return attributes.get(key, (usual, ""))[0]


def _one(host: str, vnodes: Mapping[str, Node], where: str, notes: NoteCollector) -> tuple[str, Node]:
    """Return the host and the node that the vnodes of one host are together."""
    if len(vnodes) == 1:
        return next(iter(vnodes.items()))
    notes.assumed("vnodes of one host are one node")
    kinds = [node.kind for node in vnodes.values()]
    named = [kind for kind in kinds if kind.cores]
    alike = len(named) > 1 and len({(kind.cores, kind.gpus) for kind in named}) == 1
    pools: Counter[tuple[str, str]] = Counter()
    for pool in (pool for kind in kinds for pool in kind.pools):
        pools[pool.type, pool.amount.unit] += pool.amount.size
    states = {node.status for node in vnodes.values()}
    worst = next((status for status in ("down", "drained") if status in states), "up")
    if worst != "up" and "up" in states:
        notes.assumed(f"a host is {worst} if one of its vnodes is")
    name = host if usable_host(host, where, notes) else next(iter(vnodes))
    return name, node_of(
        dict.fromkeys(name for node in vnodes.values() for name in node.properties),
        worst,
        cores=sum(kind.cores for kind in kinds),
        gpus=sum(kind.gpus for kind in kinds),
        locality=(Level("numa", len(named)),) if alike else (),
        pools=tuple(PoolSpec(type=kind, amount=Amount(size, unit)) for (kind, unit), size in pools.items()),
    )


def _node(name: str, attributes: Attributes, notes: NoteCollector) -> Node | None:
    """Return one node or vnode; None for one without a usable name or without cpus."""
    first = next(iter(attributes.values()), ("", ""))[1]
    if not usable_host(name, first, notes):
        return None
    for key, (_, place) in attributes.items():
        if "." not in key and key not in _USED:
            if key not in _UNUSED:
                notes.unknown(key, (*_USED, *_UNUSED), place)
        elif key == "jobs":
            notes.left_out("jobs that run on nodes", place)
    cores = _first(attributes, notes, f"{AVAILABLE}ncpus", "np", "pcpus")
    if cores is None:
        notes.left_out("nodes that state neither ncpus nor np", first)
        return None
    sockets = _first(attributes, notes, "total_sockets") or 0
    gpus = _first(attributes, notes, f"{AVAILABLE}ngpus", "gpus", f"{AVAILABLE}naccelerators") or 0
    pools = [*_memory(attributes, notes)]
    for kind, value in _others(attributes):  # what is a number of units or an amount
        amount = _amount(value)
        if amount is not None and amount.size and kind not in _NOT_POOLS and _WORD.fullmatch(kind):
            pools.append(PoolSpec(type=kind, amount=amount))
    properties, status = _properties(attributes, first, notes), _status(attributes, notes)
    locality = (Level("socket", sockets),) if sockets > 1 and cores % sockets == 0 else ()
    return node_of(properties, status, cores=cores, gpus=gpus, locality=locality, pools=tuple(pools))


def _first(attributes: Attributes, notes: NoteCollector, *keys: str) -> int | None:
    """Return the whole number of the first of these attributes that is given."""
    for key in keys:
        if key in attributes:
            value, place = attributes[key]
            expected = f"a whole number, at most {MAX_UNITS:,}"
            found = notes.whole(value, key, place, most=MAX_UNITS, expected=expected)
            if found is not None:
                return found
    return None


def _memory(attributes: Attributes, notes: NoteCollector) -> Iterator[PoolSpec]:
    value, place = attributes.get(f"{AVAILABLE}mem", ("", ""))
    if not value and "status" in attributes:  # Torque: status = …,physmem=131939556kb,…
        text, place = attributes["status"]
        found = re.search(r"(?:^|,)physmem=([^,]*)", text)
        value = found[1] if found else ""
    if value:
        amount = _amount(value)
        if amount is None:
            notes.fault(f"{clip(value)!r} is not an amount of memory", place, "such as 131072mb")
        elif amount.size:
            yield PoolSpec(type="memory", amount=amount)


def _properties(attributes: Attributes, where: str, notes: NoteCollector) -> tuple[str, ...]:
    """Return properties of Torque, queues, resources that are true, and NAME=TEXT of the others."""
    queues = _words(_value(attributes, "queue"))
    listed = _words(_value(attributes, f"{AVAILABLE}Qlist"))
    names = [*_words(_value(attributes, "properties")), *listed, *queues]
    for name, value in _others(attributes):
        if value.lower() == "true":
            names.append(name)
        elif value.lower() != "false" and _amount(value) is None:
            names += [f"{name}={word}" for word in _words(value)]
    return usable_properties(names, where, notes)


def _status(attributes: Attributes, notes: NoteCollector) -> str:
    value, place = attributes.get("state", ("free", ""))
    states = _words(value.lower())
    for state in states:
        if state not in DOWN | DRAINED | UP:
            notes.fault(f"unknown state {clip(state)!r}; the node counts as up", place)
    return "down" if DOWN & set(states) else "drained" if DRAINED & set(states) else "up"


def _others(attributes: Attributes) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each resource without a meaning of its own."""
    for key, (value, _) in attributes.items():
        name = key.removeprefix(AVAILABLE)
        if key.startswith(AVAILABLE) and name not in _KNOWN_RESOURCES:
            yield name, value


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


_JOBS = {"max_run": ("running-jobs", HOLD), "max_queued": ("submitted-jobs", REJECT)}
_OLD: Mapping[str, tuple[str, str, dict[str, str]]] = {
    "max_user_run": ("running-jobs", HOLD, {"each": "user"}),
    "max_running": ("running-jobs", HOLD, {}),
    "max_user_queuable": ("submitted-jobs", REJECT, {"each": "user"}),
    "max_queuable": ("submitted-jobs", REJECT, {}),
}
_UNITS = {"ncpus": "cores", "procct": "cores", "nodect": "nodes", "ngpus": "gpus"}
_OWNERS = {"g": "groups", "p": "projects"}
_ENTRY = re.compile(r"\[\s*([ugpo]):([^=\]]+?)\s*=\s*(\d{1,12})\s*\]")


def take_limit(limits: LimitTables, queue: str | None, key: str, value: str, where: str) -> bool:
    """Add the limits of an attribute of a queue (None: the server); return whether it is one."""
    table, _, unit = key.lower().partition(".")
    base: dict[str, Any] = {} if queue is None else {"queue": queue}
    if table in _OLD and not unit:
        quantity, over, each = _OLD[table]
        limits.number({**base, **each}, quantity, value, where, over)
        return True
    if table in _JOBS and not unit:
        quantity, over = _JOBS[table]
    elif table == "max_run_res" and unit in _UNITS:
        quantity, over = _UNITS[unit], HOLD
    else:
        return False
    entries = _ENTRY.findall(value)
    if not entries:
        limits.notes.fault(f"{clip(value)!r} is not a limit", where, "such as [u:PBS_GENERIC=5]")
    for kind, text, number in entries:
        name = text.strip().strip('"')
        if kind in _OWNERS:
            what = f"{table} of {_OWNERS[kind]}"
            limits.notes.left_out(what, where, cause=what)
        else:
            of_user = {"each": "user"} if name == "PBS_GENERIC" else {"user": name}
            limits.number(base if kind == "o" else {**base, **of_user}, quantity, number, where, over)
    return True


_SET = re.compile(r"set\s+(queue|server|node)\s+(?:(\S+)\s+)?([\w.]+)\s*(\+?=|-=)\s*(.*)", re.IGNORECASE)
_CREATE = re.compile(r"create\s+(queue|node|hook|resource|resv|sched|pbshook)\s+(\S+)(.*)", re.IGNORECASE)
_SIZES = {
    "ncpus": "ncores", "procs": "ncores", "procct": "ncores", "nodect": "nnodes", "nodes": "nnodes",
    "ngpus": "ngpus", "gpus": "ngpus",
}  # fmt: skip
_READ = ("queue_type", "enabled", "started", "priority", "from_route_only", "default_queue")
_CHUNK = "default_chunk."
_TRUE = {"true", "t", "1", "y", "yes"}
MOST = 2**31


def read_pbs_queues(content: Content, where: str, notes: NoteCollector) -> SiteFacts:
    """Return the queues, and the nodes if there are any, of commands of qmgr or of the JSON of qstat -Qf.

    Raises
    ------
    FormatError
        if there is neither a queue nor a node; under strict `notes` for the first line that is not
        understood.
    """
    found: dict[str, Rows] = {"queue": {}, "node": {}, "server": {"": {}}}
    if isinstance(content, str):
        _take_commands(content, found, where, notes)
    else:
        found["queue"] = _objects(content, "Queue", where, notes)
    config, nodes = _config(found["queue"], found["server"][""], notes), found["node"]
    if nodes:
        return _described(nodes, where, notes, "qmgr", config)
    if not config:
        expected = 'qmgr -c "print server"' if isinstance(content, str) else "qstat -Qf -F json"
        notes.refuse("there are no queues that run jobs", where, expected)
    return SiteFacts(form="queues of PBS", notes=notes, config=config)


def _take_commands(text: str, found: dict[str, Rows], where: str, notes: NoteCollector) -> None:
    """Add the attributes that commands of qmgr set, by kind and name; the server has none."""
    for number, raw in enumerate(text.splitlines(), 1):
        line, place = raw.strip(), f"{where}:{number}"
        if not line or line.startswith("#"):
            continue
        created = _CREATE.fullmatch(line)
        if created is not None:
            found.get(created[1].lower(), {}).setdefault(created[2], {})
            continue
        command = _SET.fullmatch(line)
        if command is None:
            if not re.match(r"(?:set|active|unset|import|delete)\s", line, re.IGNORECASE):
                notes.fault(f"not a command of qmgr: {clip(line)!r}", place, "create or set")
            continue
        kind, name, key, sign, value = command.groups()
        home = found[kind.lower()]
        name = "" if kind.lower() == "server" else name
        if name is None:
            notes.fault(f"a {kind} without a name", place)
            continue
        if name not in home:
            notes.fault(f"the {kind} {clip(name)!r} is not created before this line", place)
        owner = home.setdefault(name, {})
        before = _value(owner, key) if sign == "+=" else ""
        owner[key] = (f"{before},{value}" if before else value.strip().strip('"'), place)


def _config(queues: Rows, server: Attributes, notes: NoteCollector) -> dict[str, Any]:
    found: dict[str, Any] = {}
    limits = LimitTables(notes)
    server, *rest = (
        {key: pair for key, pair in row.items() if not take_limit(limits, queue, key, *pair)}
        for queue, row in ((None, server), *queues.items())
    )
    queues = dict(zip(queues, rest, strict=True))
    for name, attributes in queues.items():
        kind = attributes.get("queue_type", ("Execution", ""))
        if kind[0].lower().startswith("r"):
            notes.left_out(f"the routing queue {name}", kind[1])
        elif any(_value(attributes, key, "true").lower() not in _TRUE for key in ("enabled", "started")):
            place = attributes.get("enabled", attributes.get("started", ("", "")))[1]
            notes.left_out(f"the queue {name}, which is not enabled or not started", place)
        else:
            found[name] = _rules(attributes, notes, {}, of_queue=True)
    if not found:
        return {}
    default, place = server.get("default_queue", ("", ""))
    policy = _rules(server, notes, {"queue": default} if default in found else {}, of_queue=False)
    if default and default not in queues:
        notes.fault(f"the default queue {clip(default)!r} does not exist", place, ", ".join(found))
    elif default and default not in found:
        notes.left_out(f"the default queue {default}, which runs no jobs", place)
    tables = [table for table in limits.tables() if table.get("queue", next(iter(found))) in found]
    more = {"limits": tables} if tables else {}
    return {"queues": found, **policy, **more}


def _required(key: str, value: str) -> list[str]:
    """Return the properties that an attribute of a queue requires of the nodes of its jobs."""
    name = key.removeprefix(_CHUNK)
    if name == "Qlist" or key == "resources_default.neednodes":
        return [word.strip() for word in value.split(",")]
    if name == key or value.lower() == "false" or re.fullmatch(r"\d+\w*", value):
        return []
    return [name if value.lower() in _TRUE else f"{name}={value}"]


def _rules(attributes: Attributes, notes: NoteCollector, system: Table, *, of_queue: bool) -> Table:
    """Return the priority, the required properties and the policy of a queue; of the server, its policy."""
    found: dict[str, Any] = {}
    requires: list[str] = []
    sizes: dict[str, dict[str, int]] = {}
    times: dict[str, float | None] = {}
    for key, (value, place) in attributes.items():
        table, _, name = key.partition(".")
        side = {"resources_max": "max", "resources_min": "min"}.get(table)
        words = _required(key, value) if of_queue else []
        requires += words
        if name == "walltime" and (side == "max" or table == "resources_default"):
            times[table] = _seconds(value, place, notes)
        elif side is not None and name in _SIZES:
            size = notes.whole(value, key, place)
            if size is not None:
                own, narrower = sizes.setdefault(side, {}), min if side == "max" else max
                own[_SIZES[name]] = narrower(size, own.get(_SIZES[name], size))
        elif of_queue and key.lower() == "priority":
            if re.fullmatch(r"[+-]?\d{1,9}", value):
                found["priority"] = int(value)
            else:
                notes.fault(f"{clip(value)!r} is not a priority", place, "a whole number")
        elif not words and key.lower() not in _READ and (key, value) != (f"{_CHUNK}ncpus", "1"):  # PBS's own
            notes.left_out(f"{key} of queues or the server", place)
    properties = usable_properties(requires, next(iter(attributes.values()), ("", ""))[1], notes)
    policy = policy_of(times.get("resources_max"), sizes, times.get("resources_default"), **system)
    made = {"requires": list(properties), "policy": policy}
    return found | {key: value for key, value in made.items() if value}


def _seconds(value: str, where: str, notes: NoteCollector) -> float | None:
    """Return a time of PBS: seconds, or ``[[[days:]hours:]minutes:]seconds``."""
    parts = value.split(":")
    if len(parts) > 4 or not all(re.fullmatch(r"\d{1,9}(?:\.\d+)?", part) for part in parts):
        notes.fault(f"{clip(value)!r} is not a time", where, "such as 24:00:00")
        return None
    scales = (86400, 3600, 60, 1)[-len(parts) :]
    seconds: float = sum(float(part) * scale for part, scale in zip(parts, scales, strict=True))
    return int(seconds) if seconds % 1 == 0 else seconds
