"""Flux's machine and queues: its configuration, the views of ``flux resource``, and R.

The configuration is TOML or the JSON of ``flux config get``.  flux-config-resource(5): each entry of
``resource.config`` updates its hosts, and a host may occur in several; ranks are in the order in which hosts
first occur.  Excluded hosts are not scheduled.  Queues, limits and scheduler options become the document of
``--config``.  ``flux resource list`` and ``status`` print tables or JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.cluster.recipe import MAX_NODES, Amount, PoolSpec
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.machines.site_facts import (
    MAX_UNITS,
    Node,
    SiteFacts,
    hosts_in,
    idset_in,
    named_ids,
    node_of,
    usable_properties,
)
from simsched.formats.rfc.duration import parse_time
from simsched.formats.rfc.hostlist import encode_hosts
from simsched.formats.rfc.idset import Idset
from simsched.formats.text.json_text import load_json
from simsched.formats.text.toml_text import load_toml, toml_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.formats.machines.description import Content, NoteCollector, Table
    from simsched.formats.text.documents import OpenFile


SIZES = ("nnodes", "ncores", "ngpus")
QMANAGER_KEYS = (
    "queue-policy", "queue-params", "policy-params", "queues", "queue-policy-per-queue",
    "queue-params-per-queue", "policy-params-per-queue", "feasibility-timeout",
)  # fmt: skip
FLUXION_KEYS = (
    "match-policy", "match-format", "load-allowlist", "load-file", "load-format", "reserve-vtx-vec",
    "prune-filters", "update-interval", "traverser", "queue-policy",
)  # fmt: skip
QUEUE_POLICIES = ("fcfs", "easy", "conservative", "hybrid")
MATCH_POLICIES = ("first", "low", "high", "lonode", "hinode", "firstnodex", "lonodex", "hinodex")
QUEUE_DEPTH, RESERVATION_DEPTH = 32, 64
"""Fluxion's defaults of queue-depth and reservation-depth (flux-config-sched-fluxion-qmanager(5))."""
MOST = 2**31
"""Sizes are below this number."""
PARAMETERS = {
    "queue-params": ("queue-depth", "max-queue-depth"),
    "policy-params": ("reservation-depth", "max-reservation-depth"),
}
"""The parameters of Fluxion by their table."""


LIST, STATUS = "flux resource list", "flux resource status"
LIST_STATES = {"free": "up", "allocated": "up", "up": "up", "all": "up", "down": "down"}
STATUS_STATES = {
    "avail": "up", "allocated": "up", "housekeeping": "up", "online": "up", "offline": "down",
    "torpid": "down", "drain": "drained", "drained": "drained", "draining": "drained",
}  # fmt: skip
_RIGHT = ("STATE", "UP", "STATUS", "NNODES", "NCORES", "NGPUS")
"""Columns that are aligned right; the others begin below their heading."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


# -- the views of flux resource ----------------------------------------------------------


def read_flux_list(content: Content, where: str, notes: NoteCollector) -> SiteFacts:
    """Return the machine that ``flux resource list`` shows, as a table or as the scheduler's answer in JSON.

    A line of the table gives the cores and gpus of all its nodes together; they divide evenly, and ids count
    from 0.  A queue is a property of its nodes.  The answer has ``all`` and ``down``, each R or null.

    Raises
    ------
    FormatError
        if there is no line with nodes; under strict `notes` for the first line that is not understood.
    """
    if not isinstance(content, str):
        nodes = nodes_of_r(content["all"], f"{where}: all")
        for host in nodes_of_r(content["down"], f"{where}: down") if content.get("down") else ():
            if host in nodes:
                nodes[host].status = "down"
            else:
                notes.fault(f"{host} is down, but is not in all", f"{where}: down")
        return _facts(nodes, where, notes, LIST)
    nodes = {}
    for line, place in _lines(content, where):
        state = line["STATE"].rstrip("*").lower()
        if state not in LIST_STATES:
            notes.fault(f"unknown state {clip(line['STATE'])!r}", place, ", ".join(LIST_STATES))
            continue
        hosts = hosts_in(line["NODELIST"], place, notes)
        given = {key: line.get(key, "0") for key in ("NCORES", "NGPUS")}
        cores, gpus = (_per_node(text, len(hosts), key, place, notes) for key, text in given.items())
        names = [name for key in ("QUEUE", "PROPERTIES") for name in line.get(key, "").split(",") if name]
        if any(name.endswith("+") for name in names):
            notes.fault("a property is cut off, which ends in +", place, "flux R, or a wider format")
        properties = usable_properties((name for name in names if not name.endswith("+")), place, notes)
        for host in hosts:  # a second line of a node adds its queue and is the same node
            node = node_of(properties, LIST_STATES[state], cores=cores, gpus=gpus)
            known = nodes.setdefault(host, node)
            if known.kind != node.kind:
                text = f"the node {host} occurs twice with other numbers; the first ones count"
                notes.fault(text, place)
            known.properties = tuple(dict.fromkeys((*known.properties, *properties)))
    notes.assumed("ids of cores and gpus count from 0, and the nodes of a line are alike", where)
    return _facts(nodes, where, notes, LIST)


def read_flux_status(content: Content, where: str, notes: NoteCollector) -> SiteFacts:
    """Return the states of nodes that ``flux resource status`` shows; excluded nodes are left out.

    The table has no cores, and a state with an asterisk is offline.  The answer of the resource service in
    JSON has R, and ranks that are offline, drained or excluded.  Errors as `read_flux_list`.
    """
    nodes: dict[str, Node] = {}
    excluded: list[str] = []
    if isinstance(content, str):
        for line, place in _lines(content, where):
            state, given = line["STATE"].lower(), line.get("NODELIST", "")
            if state.rstrip("*") == "exclude":
                excluded += hosts_in(given, place, notes)
                notes.left_out(f"excluded from scheduling: {clip(given)}", place)
                continue
            status = STATUS_STATES.get(state.rstrip("*"))
            if status is None:
                notes.fault(f"unknown state {clip(state)!r}", place, ", ".join((*STATUS_STATES, "exclude")))
                continue
            status = "down" if state.endswith("*") and status == "up" else status
            nodes |= {host: node_of(status=status) for host in hosts_in(given, place, notes)}
        return _facts(nodes, where, notes, STATUS, excluded)
    drain, states = content.get("drain"), ("drain", "offline", "torpid", "exclude")
    stated = {**content, "drain": ",".join(map(str, drain)) if isinstance(drain, dict) else ""}
    ranks = {key: idset_in(stated.get(key) or "", f"{where}: {key}", notes) for key in states}
    nodes = nodes_of_r(content["R"], f"{where}: R")
    for rank, node in enumerate(nodes.values()):
        state = next((key for key in states[:3] if rank in ranks[key]), "avail")
        node.status = STATUS_STATES[state]
    excluded = [host for rank, host in enumerate(nodes) if rank in ranks["exclude"]]
    if excluded:
        place = f"{where}: exclude"
        notes.left_out(f"excluded from scheduling: {clip(encode_hosts(excluded))}", place)
    return _facts(nodes, where, notes, STATUS, excluded)


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
    total = notes.whole(text, key, where, most=10**12 - 1) or 0
    units, rest = divmod(total, nodes or 1)
    if rest:
        notes.assumed(f"{total:,} {key[1:].lower()} do not divide over {nodes:,} nodes: {units} each", where)
    if units > MAX_UNITS:
        notes.fault(f"{units:,} {key[1:].lower()} in each node", where, f"at most {MAX_UNITS:,}")
        return 0
    return units


def _facts(
    nodes: Mapping[str, Node], where: str, notes: NoteCollector, form: str, excluded: Sequence[str] = ()
) -> SiteFacts:
    if not nodes and not excluded:
        notes.refuse("the table lists no nodes", where, f"the output of {form}")
    return SiteFacts(form=form, notes=notes, nodes=nodes, excluded=excluded)


# -- R -----------------------------------------------------------------------------------


def read_r(document: Mapping[str, Any], where: str, notes: NoteCollector) -> SiteFacts:
    """Return the nodes of R, to be described together with other files; errors as `nodes_of_r`.

    R alone is read as a graph of its own, which also keeps ranks, times and a graph in it.
    """
    if document.get("scheduling"):
        notes.left_out("the graph or topology of R", f"{where}: scheduling")
    return _facts(nodes_of_r(document, where), where, notes, "R")


def nodes_of_r(document: Any, where: str) -> dict[str, Node]:
    """Return the nodes of R by host, in the order of their ranks; errors as `ResourceSet.from_dict`.

    Units other than cores and gpus become pools; their ids are not kept.
    """
    rset = ResourceSet.from_dict(document, where)
    hosts = list(rset.hosts)
    groups = {rank: group for group in rset.groups for rank in group.ranks}
    labels: dict[int, list[str]] = {}
    for name, ranks in rset.properties.items():
        for rank in ranks & rset.ranks:
            labels.setdefault(rank, []).append(name)
    nodes = {}
    for position, rank in enumerate(sorted(groups)):
        children = dict(groups[rank].children)
        units = _units(*(children.pop(kind, Idset(())) for kind in ("core", "gpu")))
        pools = tuple(PoolSpec(type=kind, amount=Amount(len(ids))) for kind, ids in children.items() if ids)
        host = hosts[position] if position < len(hosts) else f"node{rank}"
        nodes[host] = node_of(labels.get(rank, ()), pools=pools, **units)
    return nodes


def _units(cores: Idset, gpus: Idset) -> dict[str, Any]:
    ids = {"core_ids": named_ids(cores), "gpu_ids": named_ids(gpus)}
    return {"cores": len(cores), "gpus": len(gpus), **ids}


FORMAT = "Flux configuration"
RESOURCE_KEYS = (
    "path", "config", "scheduling", "exclude", "norestrict", "noverify", "verify", "rediscover", "reserve",
    "journal-max", "no-update-watch",
)  # fmt: skip
OTHER_TABLES = (
    "access", "accounting", "archive", "bootstrap", "broker", "content", "content-files", "content-s3",
    "content-sqlite", "cron", "exec", "fop", "heartbeat", "ingest", "job-exec", "job-ingest", "job-info",
    "job-list", "job-manager", "job-shell", "kvs", "module", "modules", "overlay", "sched-simple", "systemd",
    "sdexec", "tbon", "tbon-stats", "rabbit", "dws", "flux-accounting", "flux-coral2", "hooks",
)  # fmt: skip
"""Tables that describe neither the machine nor its queues."""
TABLES = ("resource", "queues", "policy", "sched-fluxion-qmanager", "sched-fluxion-resource", *OTHER_TABLES)
_CHECKS = ("norestrict", "noverify", "verify", "rediscover", "journal-max", "no-update-watch")
"""Keys of ``resource`` on how Flux finds and checks its hardware."""


def read_flux_config(
    content: Content, where: str, notes: NoteCollector, open_file: OpenFile | None
) -> SiteFacts:
    """Return the machine and queues of one TOML file, or of the JSON that ``flux config get`` prints.

    Errors as `read_flux_configs`.
    """
    if isinstance(content, str):
        return read_flux_configs([(where, content, open_file)], notes)
    return _Reader(where, {}, open_file, notes).facts(content)


def read_flux_configs(files: Sequence[tuple[str, str, OpenFile | None]], notes: NoteCollector) -> SiteFacts:
    """Return the machine and queues of the files (name, text, `open_file`) of a configuration folder.

    Tables are merged as Flux merges them: of a key that several files give, the last one counts.

    Raises
    ------
    FormatError
        if a file is not TOML; under strict `notes` for the first part that is not understood.
    """
    merged, places = merged_tables([(where, text) for where, text, _ in files], notes)
    names = ", ".join(where for where, _, _ in files)
    return _Reader(names, places, files[-1][2] if files else None, notes).facts(merged)


def merged_tables(files: Sequence[tuple[str, str]], notes: NoteCollector) -> tuple[Table, dict[str, str]]:
    """Return the tables of the files (name, text) as one document, and the file and line of each path in it.

    Raises
    ------
    FormatError
        if a file is not TOML.
    """
    merged: dict[str, Any] = {}
    places: dict[str, str] = {}
    for where, text in files:
        _merge(merged, load_toml(text, where), where, "", notes)
        places |= {path: f"{where}:{line}" for path, line in toml_lines(text).items()}
    return merged, places


def _merge(into: dict[str, Any], more: dict[str, Any], where: str, path: str, notes: NoteCollector) -> None:
    for key, value in more.items():
        place = f"{path}.{key}" if path else key
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value, where, place, notes)
            continue
        if key in into and into[key] != value:
            notes.assumed(f"{place} is given by several files; this one counts", where)
        into[key] = value


@dataclass(slots=True)
class _Host:
    """The units of a host while entries are added."""

    cores: Idset = field(default_factory=lambda: Idset(()))
    gpus: Idset = field(default_factory=lambda: Idset(()))
    properties: dict[str, None] = field(default_factory=dict)


class _Reader:
    """Reads a merged configuration; `places` has the file and line of each path in it."""

    def __init__(
        self, where: str, places: dict[str, str], open_file: OpenFile | None, notes: NoteCollector
    ) -> None:
        self.where, self.places, self.open_file, self.notes = where, places, open_file, notes

    def at(self, path: str) -> str:
        """Return a path with its file and line, or those of the nearest table around it."""
        steps = path
        while steps and steps not in self.places:
            steps = steps[: max(steps.rfind("."), steps.rfind("["), 0)]
        spot = self.places.get(steps, self.where)
        return f"{spot}: {path}" if spot else path

    def facts(self, document: Mapping[str, Any]) -> SiteFacts:
        """Return the facts of the whole configuration."""
        self.notes.unknown_keys(document, TABLES, self.at)
        resource = self._table(document, "resource", RESOURCE_KEYS) or {}
        nodes = self._nodes(resource)
        excluded = self._excluded(nodes, resource)
        if resource.get("reserve"):
            text = f"cores that are reserved for the system ({clip(str(resource['reserve']))})"
            self.notes.left_out(text, self.at("resource.reserve"))
        config = {
            **self._qmanager(document),
            **self._match_policy(document),
            **self._queues(document.get("queues"), document.get("policy")),
        }
        if not nodes and not config:
            expected = "[[resource.config]] with hosts and cores, or [queues]"
            self.notes.refuse("the configuration describes neither nodes nor queues", self.where, expected)
        return SiteFacts(form=FORMAT, notes=self.notes, nodes=nodes, config=config, excluded=[*excluded])

    def _table(self, document: Mapping[str, Any], key: str, known: Sequence[str]) -> dict[str, Any] | None:
        """Return a table, whose unknown keys are noted; None without one."""
        found = document.get(key)
        if found is None or not isinstance(found, dict):
            if found is not None:
                self.notes.fault("this is not a table", self.at(key))
            return None
        self.notes.unknown_keys(found, known, lambda inner: self.at(f"{key}.{inner}"))
        return found

    def _kept(self, value: Any, path: str, keys: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a table that are valid; the others are noted.

        keys : key → the keys of the inner table, or the function that reads (value, place).
        """
        if not isinstance(value, dict):
            name = path.rpartition(".")[2]
            self.notes.fault(f"{name} is not a table", self.at(path), ", ".join(keys))
            return {}
        self.notes.unknown_keys(value, list(keys), lambda key: self.at(f"{path}.{key}"))
        found: dict[str, Any] = {}
        for key, read in keys.items():
            place = f"{path}.{key}"
            if key in value and isinstance(read, dict):
                found[key] = self._kept(value[key], place, read)
            elif key in value:
                found[key] = self.notes.tried(partial(read, value[key], self.at(place)), None)
        return {key: one for key, one in found.items() if one is not None and one != {}}

    def _nodes(self, resource: dict[str, Any]) -> dict[str, Node]:
        for key in resource:
            if key in _CHECKS:
                text = f"how Flux finds and checks its hardware ({key})"
                self.notes.left_out(text, self.at(f"resource.{key}"))
        entries = resource.get("config")
        if entries is None:
            return self._nodes_of_path(resource)
        if "path" in resource:
            self.notes.left_out("path, because resource.config is given", self.at("resource.path"))
        self._scheduling(resource)
        if not isinstance(entries, list):
            text = "resource.config is not an array of tables"
            self.notes.fault(text, self.at("resource"), "[[resource.config]]")
            return {}
        keys = {"hosts": partial(hosts_in, notes=self.notes), "cores": self._ids, "gpus": self._ids}
        hosts: dict[str, _Host] = {}
        for path, entry in ((f"resource.config[{at}]", entry) for at, entry in enumerate(entries)):
            if not isinstance(entry, dict) or not isinstance(entry.get("hosts"), str):
                self.notes.fault("an entry without hosts", self.at(path), 'hosts = "node[0-15]"')
                continue
            given = self._kept(entry, path, {**keys, "properties": self._properties})
            cores, gpus = (given.get(key, Idset(())) for key in ("cores", "gpus"))
            for name in given.get("hosts", ()):
                host = hosts.setdefault(name, _Host())
                # The same object where nothing is added: a million hosts share the ids of their entry.
                host.cores = host.cores | cores if host.cores and cores else host.cores or cores
                host.gpus = host.gpus | gpus if host.gpus and gpus else host.gpus or gpus
                host.properties.update(dict.fromkeys(given.get("properties", ())))
            if len(hosts) > MAX_NODES:
                raise LimitError("too many hosts", where=self.at(path), expected=f"at most {MAX_NODES:,}")
        empty = [name for name, host in hosts.items() if not host.cores and not host.gpus]
        if empty:
            text = f"hosts without cores and gpus: {clip(encode_hosts(empty))}"
            self.notes.fault(text, self.at("resource"))
        return {
            name: node_of(host.properties, **_units(host.cores, host.gpus))
            for name, host in hosts.items()
            if host.cores or host.gpus
        }

    def _properties(self, value: Any, where: str) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            name = where.rpartition(".")[2]
            raise FormatError(f"{name} is not a list of properties", where=where, expected='["batch"]')
        return list(usable_properties(value, where, self.notes))

    def _ids(self, value: Any, where: str) -> Idset:
        """Return the ids of ``cores`` or ``gpus``; a number without quotes is a frequent fault."""
        ids = idset_in(value, where, self.notes)
        if len(ids) > MAX_UNITS:
            key = where.rpartition(".")[2]
            raise LimitError(f"{len(ids):,} {key} of one host", where=where, expected=f"{MAX_UNITS:,}")
        return ids

    def _nodes_of_path(self, resource: dict[str, Any]) -> dict[str, Node]:
        path = resource.get("path")
        where = self.at("resource.path")
        if path is None:
            if resource:
                self.notes.left_out("nodes, which Flux discovers when it starts", self.at("resource"))
            return {}
        open_file = self.open_file
        if not isinstance(path, str):
            self.notes.fault(f"{clip(repr(path))} is not the name of a file", where)
            return {}
        if open_file is None:
            self.notes.left_out(f"the file {path}, which cannot be opened from here", where)
            return {}
        document = self.notes.tried(lambda: load_json(open_file(path), path), None)
        if document is None:
            return {}
        nodes = self.notes.tried(lambda: nodes_of_r(document, path), None)
        if nodes is None:
            return {}
        if document.get("scheduling"):
            self.notes.left_out(f"the graph or topology in {path}; as a cluster itself it is kept", where)
        self._scheduling(resource)
        return nodes

    def _scheduling(self, resource: dict[str, Any]) -> None:
        if "scheduling" in resource:
            text = "the graph of resource.scheduling; `flux R encode` and simsched read it as R with a graph"
            self.notes.left_out(text, self.at("resource.scheduling"))

    def _excluded(self, hosts: Mapping[str, Node], resource: dict[str, Any]) -> dict[str, None]:
        """Return the hosts that ``exclude`` withholds from scheduling: an idset of ranks, or a hostlist."""
        given = resource.get("exclude")
        if not given:
            return {}
        where = self.at("resource.exclude")
        if not isinstance(given, str):
            self.notes.fault("exclude is not a text", where, "a hostlist or an idset of ranks")
            return {}
        try:
            ranks = Idset.parse(given)
            named = [host for rank, host in enumerate(hosts) if rank in ranks]
            strange = str(ranks - Idset.from_range(0, len(hosts) - 1))
        except FormatError:
            named = hosts_in(given, where, self.notes)
            strange = next((host for host in named if host not in hosts), "")
        if strange and hosts:
            self.notes.fault(f"excluded nodes that are not configured, such as {strange}", where)
        excluded = dict.fromkeys(host for host in named if host in hosts)
        if excluded:
            self.notes.left_out(f"excluded from scheduling: {clip(encode_hosts(list(excluded)))}", where)
        return excluded

    # -- queues and limits

    def _queues(self, queues: Any, policy: Any) -> dict[str, Any]:
        """Return the keys ``queues`` and ``policy``; values that ``--config`` would refuse are faults."""
        common = {} if policy is None else self._kept(policy, "policy", self._policy_keys(whole=True))
        if queues is not None and not isinstance(queues, dict):
            self.notes.fault("queues is not a table of queues", self.at("queues"), "[queues.batch]")
        if not isinstance(queues, dict) or not queues:
            if not common:
                return {}
            # Flux's one queue has no name, and simsched needs one for its limits
            text = "the limits and defaults are those of a queue named default"
            self.notes.assumed(text, self.at("policy"))
            queues = {"default": {}}
            system = {**_system(common), "queue": "default"}
            common["jobspec"] = {"defaults": {"system": system}}
        keys = {"requires": self._properties, "parent": _text, "policy": self._policy_keys()}
        rows = {name: self._kept(row, f"queues.{name}", keys) for name, row in queues.items()}
        found = {name: row for name, row in rows.items() if isinstance(queues[name], dict)}
        for name, row in found.items():
            if row.get("parent") is not None and (row["parent"] not in found or row["parent"] == name):
                self.notes.fault("the parent is not another queue", self.at(f"queues.{name}.parent"))
                del row["parent"]
        default = _system(common).get("queue")
        if default is not None and default not in found:
            place = self.at("policy.jobspec.defaults.system.queue")
            self.notes.fault(f"the default queue {clip(default)!r} does not exist", place, ", ".join(found))
            del _system(common)["queue"]
        if not found:
            return {}
        strict: dict[str, Any] = {}
        for name, row in found.items():
            policies = (row.get("policy", {}), common)  # of both, the first one that states a value counts
            limits = [one["limits"]["duration"] for one in policies if "duration" in one.get("limits", {})]
            usual = [_system(one)["duration"] for one in policies if "duration" in _system(one)]
            if limits:  # Flux refuses a job that has neither a duration nor a default where there is a limit
                strict = {"no-limit": "reject"}
            if limits and usual and (parse_time(usual[0]) or inf) > parse_time(limits[0]):
                above = f"the default duration {usual[0]} is above the limit {limits[0]}"
                text = f"queue {clip(name)}: {above}: jobs without a duration are rejected"
                self.notes.assumed(text, self.at(f"queues.{name}"))
        return {**strict, "queues": found, **({"policy": common} if common else {})}

    def _policy_keys(self, *, whole: bool = False) -> dict[str, Any]:
        """Return how the keys of a policy are read; that of the `whole` has a default queue."""
        sizes = dict.fromkeys(SIZES, _limiting if whole else _size)
        return {
            "access": self._leave_out,
            "scheduler": self._leave_out,
            "limits": {"duration": _longest, "job-size": {"max": sizes, "min": sizes}},
            "jobspec": {
                "defaults": {"system": {"duration": _usual} | ({"queue": _text} if whole else {})},
            },
        }

    def _leave_out(self, _: Any, where: str) -> None:
        self.notes.left_out(f"{where.rpartition('.')[2]} of a policy", where)

    # -- Fluxion

    def _qmanager(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the queue policy with its options."""
        table = "sched-fluxion-qmanager"
        found = self._table(document, table, QMANAGER_KEYS)
        if found is None:
            return {}
        policy = self._policy_name(found, self.at(table))
        queue = self._parameters(found.get("queue-params"), self.at(f"{table}.queue-params"))
        plan = self._parameters(found.get("policy-params"), self.at(f"{table}.policy-params"))
        for key, given in (("queue-params", queue), ("policy-params", plan)):
            for name in [name for name in given if name not in PARAMETERS[key]]:
                other = next((one for one, names in PARAMETERS.items() if name in names), "")
                belongs = f", which belongs to {other}" if other else ""
                self.notes.left_out(f"the parameter {name}{belongs}", self.at(f"{table}.{key}"))
        if "max-reservation-depth" in plan and policy != "hybrid":
            text = "max-reservation-depth: every job that waits may have a reservation"
            self.notes.left_out(text, self.at(table))
        for key in ("queue-params-per-queue", "policy-params-per-queue"):
            if key in found:
                self.notes.left_out(f"{key}: all queues have the same parameters", self.at(table))
        options: dict[str, Any] = {}
        if policy != "fcfs" or "queue-depth" in queue:
            options["queue-depth"] = max(1, self._depth("queue-depth", queue, QUEUE_DEPTH, table))
        if policy == "hybrid":
            depth = self._depth("reservation-depth", plan, RESERVATION_DEPTH, table)
            options["hybrid"] = {"depth": depth}
        return {"queue-policy": policy, **({"policy-options": options} if options else {})}

    def _depth(self, name: str, given: Mapping[str, int], usual: int, table: str) -> int:
        """Return a depth, which another parameter may bound."""
        if name not in given:
            self.notes.assumed(f"{name} = {usual}, the default of Fluxion", self.at(table))
        depth = given.get(name, usual)
        return min(depth, given.get(f"max-{name}", depth))

    def _policy_name(self, found: dict[str, Any], where: str) -> str:
        name = found.get("queue-policy")
        each = [item.rpartition(":") for item in str(found.get("queue-policy-per-queue", "")).split()]
        names = list(dict.fromkeys(policy for _, _, policy in each))
        if name is None and len(names) == 1:
            name = names[0]
        elif names:
            text = f"queue-policy-per-queue ({', '.join(names)}): all queues have one policy"
            self.notes.left_out(text, where)
        if name is None:
            self.notes.assumed("queue-policy = fcfs, the default of Fluxion", where)
            return "fcfs"
        if name not in QUEUE_POLICIES:
            self.notes.fault(f"unknown queue policy {clip(str(name))!r}", where, ", ".join(QUEUE_POLICIES))
            return "fcfs"
        return str(name)

    def _parameters(self, value: Any, where: str) -> dict[str, int]:
        """Return parameters of Fluxion: a table, or ``name=number`` with commas between."""
        items = value.items() if isinstance(value, dict) else ()
        pairs = [(str(name), str(number)) for name, number in items]
        if value is not None and not isinstance(value, dict):
            parts = (item.partition("=") for item in str(value).split(",") if item.strip())
            pairs = [(name.strip(), number.strip()) for name, _, number in parts]
        found = {}
        for name, text in pairs:
            number = self.notes.whole(text, clip(name), where)
            if number is not None:
                found[name] = number
        return found

    def _match_policy(self, document: Mapping[str, Any]) -> dict[str, Any]:
        table = "sched-fluxion-resource"
        found = self._table(document, table, FLUXION_KEYS)
        if found is None:
            return {}
        where = self.at(f"{table}.match-policy")
        name = found.get("match-policy", "first")
        if name in MATCH_POLICIES:
            return {"match-policy": name}
        custom = _custom(str(name))
        if custom is None:
            self.notes.fault(f"unknown match policy {clip(str(name))!r}", where, ", ".join(MATCH_POLICIES))
            return {}
        self.notes.assumed(f"match-policy = {custom} for {clip(str(name))!r}", where)
        return {"match-policy": custom}


def _text(value: Any, _: str) -> str | None:
    return value if isinstance(value, str) else None


def _usual(value: Any, where: str) -> Any:
    parse_time(value, where)
    return value


def _longest(value: Any, where: str) -> Any:
    """Return a limit on durations, which Flux writes as 0 if there is none."""
    return value if parse_time(value, where) else "inf"


def _size(value: Any, where: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and -1 <= value < MOST):
        return value
    text = f"{clip(repr(value))} is not a number of units"
    raise FormatError(text, where=where, expected="-1 (unlimited) or more")


def _limiting(value: Any, where: str) -> int | None:
    """Return a size that is a limit: -1 is none, and lifts one only in a queue."""
    return None if value == -1 else _size(value, where)


def _system(policy: Any) -> dict[str, Any]:
    """Return ``jobspec.defaults.system`` of a policy; empty where it is not a table."""
    found = policy
    for key in ("jobspec", "defaults", "system"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _custom(text: str) -> str | None:
    """Return the policy nearest to one that is put together from attributes; None if it is not one.

    >>> _custom("policy=high node_exclusive=true set_stop_on_1_matches=true")
    'hinodex'
    """
    given = dict(part.partition("=")[::2] for part in text.split())
    if not given or not given.keys() <= {"policy", "node_centric", "node_exclusive", "set_stop_on_1_matches"}:
        return None
    order = given.get("policy", "low")
    if order not in ("low", "high"):
        return None
    whole = given.get("node_exclusive") == "true"
    if given.get("set_stop_on_1_matches") == "true" and order == "low":
        return "firstnodex" if whole else "first"
    if not whole and given.get("node_centric") != "true":
        return order
    return f"{order.removesuffix('w').removesuffix('gh')}node{'x' if whole else ''}"
