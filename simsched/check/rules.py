"""``simsched check``: the rules that find faults of the files of a site, and the table of them.

The rules on nodes hold that all descriptions of the machine name the same nodes, with the same ranks and
units; those on queues, that their nodes exist, their limits can be met, and every node is in a queue.  Those
on storage that nodes share, such as the rabbits of CORAL-2, hold that none of it is counted twice.  Storage
is counted in up to three places: in R_lite, as units of a node; in a graph, as vertices below a node, or
below the rack or chassis that the nodes are in; and in a storage map, as the capacity of a server.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np

from simsched.check.site_files import COUNTED, GRAPH, R, hosts_named, ranks_named, read_site_files
from simsched.declare.answers import Written, json_of
from simsched.errors import FormatError, SimschedError, clip, did_you_mean
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.duration import format_duration
from simsched.formats.rfc.hostlist import encode_hosts
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.units import is_unit, same_dimension, unit_of
from simsched.graph.pool import Pool, split_name
from simsched.graph.resource_graph import (
    children_map,
    execution_targets,
    inside,
    pool_of,
    subsystem_paths,
    walk,
)
from simsched.simulation.admission import groups_of_queues
from simsched.simulation.limits.limit_kinds import KINDS
from simsched.simulation.limits.limit_rules import LimitRule, read_limits
from simsched.simulation.queues import INF, SIZES, Queue, Queues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from simsched.arrays import Bools
    from simsched.check.site_files import SiteConfig, SiteFiles, StatedMachine, StatedNode
    from simsched.formats.cluster.storage_map import StorageMap, StorageServer
    from simsched.formats.rfc.constraint import Constraint
    from simsched.graph.index.index import Index
    from simsched.simulation.outages.outages import Outage
    from simsched.site.site import Site

    Faults = Iterator[tuple[str, str]]
    """What a rule finds: the places (a file and a path in it), each with a sentence."""
    Look = Callable[[SiteFiles], Faults]

Severity = Literal["error", "warning", "note"]
ERROR: Severity = "error"
WARNING: Severity = "warning"
NOTE: Severity = "note"
"""A remark and not a fault: a site with notes alone is sound."""


class SiteRule(NamedTuple):
    """One rule: how grave its findings are, its meaning as the manual has it, and where it is."""

    severity: Severity
    meaning: str
    look: Look


RULES: dict[str, SiteRule] = {}
"""Code → rule, in the order of the manual: those on nodes, on queues, and on storage."""


def rule(code: str, severity: Severity, meaning: str) -> Callable[[Look], Look]:
    """Return a decorator that adds a function to `RULES`."""

    def add(look: Look) -> Look:
        RULES[code] = SiteRule(severity, meaning, look)
        return look

    return add


# --- nodes -----------------------------------------------------------------------------------------


MOST_CHARACTERS = 120
"""The most characters of a hostlist in a text."""


@rule("machine-impossible", ERROR, "a description of the machine contradicts itself")
def impossible(site: SiteFiles) -> Faults:
    """Yield the descriptions that contradict themselves."""
    yield from site.faults


@rule("import-fault", WARNING, "the import of the site did not understand a line")
def not_understood(site: SiteFiles) -> Faults:
    """Yield the lines that an import of the site could not understand."""
    for note in site.notes:
        if note.kind == "fault":
            yield note.where or "the import", note.text


@rule("nodes-number", ERROR, "two descriptions have different numbers of nodes")
def numbers(site: SiteFiles) -> Faults:
    """Yield each description with another number of nodes than the first."""
    for first, other in _pairs(site):
        mine, theirs = len(_nodes(site, other)), len(_nodes(site, first))
        if mine != theirs:
            yield other.where, f"{mine} nodes, and {theirs} in {first.where}"


@rule("nodes-hosts", ERROR, "a host is in one description and not in another")
def hosts(site: SiteFiles) -> Faults:
    """Yield the hosts that one description has and another lacks."""
    for first, other in _pairs(site):
        mine, theirs = _hosts(site, other), _hosts(site, first)
        for names, has, lacks in ((theirs - mine, first, other), (mine - theirs, other, first)):
            if names:
                yield lacks.where, f"lacks {listed(names)}, which {has.where} has"


@rule("nodes-twice", ERROR, "a host occurs twice in one description")
def host_names_twice(site: SiteFiles) -> Faults:
    """Yield the hosts that occur twice in one graph (R may have several ranks on one host)."""
    for machine in site.machines:
        if machine.kind == R:
            continue
        twice = [host for host, count in Counter(node.host for node in machine.nodes).items() if count > 1]
        if twice:
            yield machine.where, f"has {listed(twice)} more than once"


@rule("nodes-ranks", ERROR, "a host has different ranks in two descriptions")
def ranks(site: SiteFiles) -> Faults:
    """Yield the hosts whose ranks differ; a description without ranks is not compared."""
    for first, other in _pairs(site):
        unranked = [all(node.rank is None for node in one.nodes) for one in (first, other)]
        if unranked[0] or (unranked[1] and other.kind != GRAPH):
            continue
        wrong = [(theirs, mine) for theirs, mine in _common(first, other) if theirs.rank != mine.rank]
        if wrong:
            theirs, mine = wrong[0]
            rank = "no rank" if mine.rank is None else f"rank {mine.rank}"
            more = f", and {len(wrong) - 1} more hosts differ" if len(wrong) > 1 else ""
            yield other.where, f"{mine.host} has {rank}, and {theirs.rank} in {first.where}{more}"


@rule("nodes-units", ERROR, "a host has different numbers of cores, GPUs or other units")
def units(site: SiteFiles) -> Faults:
    """Yield the types of which a host has different numbers."""
    for first, other in _pairs(site):
        wrong: dict[tuple[str, int, int], list[str]] = defaultdict(list)
        kinds = [kind for kind in COUNTED if kind in first.totals or kind in other.totals]
        if R not in (first.kind, other.kind):  # R has numbers of ids, and no units
            kinds += [kind for kind in first.totals if kind in other.totals and kind not in COUNTED]
        for kind in kinds:
            for theirs, mine in _common(first, other):
                here, there = mine.units.get(kind, 0), theirs.units.get(kind, 0)
                if here != there:
                    wrong[kind, here, there].append(mine.host)
        for (kind, here, there), names in wrong.items():
            total = f"{other.totals.get(kind, 0)} and {first.totals.get(kind, 0)} in total"
            yield other.where, f"{kind}={here} on {listed(names)}, and {there} in {first.where} ({total})"


@rule("properties-missing", ERROR, "a property of the first description is missing in another")
def properties_missing(site: SiteFiles) -> Faults:
    """Yield the properties of R that a graph lacks: jobs that require them are never scheduled."""
    yield from _properties(site, missing=True)


@rule("properties-extra", WARNING, "a property is not in the first description")
def properties_extra(site: SiteFiles) -> Faults:
    """Yield the properties that a graph has and R lacks."""
    yield from _properties(site, missing=False)


@rule("excluded-unknown", ERROR, "a host or rank that is excluded, drained or down does not exist")
def excluded(site: SiteFiles) -> Faults:
    """Yield the hosts and ranks that are excluded, drained or down and do not exist."""
    for machine in site.machines[:1]:
        for config in site.configs:
            place = config.place("resource.exclude")
            yield from _unknown_names(config.excluded, place, machine, config.withheld or ())
            yield from _unknown_in_outages(config.where, config.outages, machine)
        for where, outages in site.outages:
            yield from _unknown_in_outages(where, outages, machine)


def _pairs(site: SiteFiles) -> Iterator[tuple[StatedMachine, StatedMachine]]:
    """Yield the first description with each other one."""
    for other in site.machines[1:]:
        yield site.machines[0], other


def _nodes(site: SiteFiles, machine: StatedMachine) -> list[StatedNode]:
    """Return the nodes of a description but those that a configuration excludes: a graph may lack them."""
    without = site.excluded_hosts
    return [node for node in machine.nodes if node.host not in without]


def _hosts(site: SiteFiles, machine: StatedMachine) -> set[str]:
    return {node.host for node in _nodes(site, machine)}


def _common(first: StatedMachine, other: StatedMachine) -> Iterator[tuple[StatedNode, StatedNode]]:
    """Yield the nodes of each host that both descriptions have."""
    for node in other.by_host.values():
        if node.host in first.by_host:
            yield first.by_host[node.host], node


def _properties(site: SiteFiles, *, missing: bool) -> Faults:
    for first, other in _pairs(site):
        wrong: dict[str, list[str]] = defaultdict(list)
        for theirs, mine in _common(first, other):
            odd = theirs.properties - mine.properties if missing else mine.properties - theirs.properties
            for name in sorted(odd):
                wrong[name].append(mine.host)
        for name, names in wrong.items():
            verb, has = ("lacks", "has") if missing else ("has", "lacks")
            yield other.where, f"{verb} the property {name} on {listed(names)}, which {first.where} {has}"


def _unknown_names(text: str, place: str, machine: StatedMachine, withheld: tuple[str, ...] = ()) -> Faults:
    """Yield the hosts or ranks of a text that neither the machine has nor the hosts `withheld` from it."""
    try:
        ranks, names = ranks_named(text), hosts_named(text, machine)
    except FormatError as error:
        yield place, error.message
        return
    if withheld and ranks is not None:  # Flux counts ranks with them
        ranks -= Idset.from_range(0, len(machine.nodes) + len(withheld) - 1)
    if unknown := (ranks or Idset(())) - Idset.from_ids(machine.cluster.index.ranks.tolist()):
        yield place, f"{machine.where} has no rank {unknown}"
    if ranks is not None:
        return
    odd = [name for name in names if name not in machine.by_host and name not in withheld]
    if odd:
        yield place, f"{machine.where} has no {_strange(odd, machine.by_host)}"


def _unknown_in_outages(where: str, outages: Iterable[Outage], machine: StatedMachine) -> Faults:
    for number, outage in enumerate(outages):
        yield from _unknown_names(str(outage.ranks), f"{where}: outages[{number}].ranks", machine)
        yield from _unknown_names(outage.hosts, f"{where}: outages[{number}].hosts", machine)


def listed(names: Iterable[str]) -> str:
    """Return hosts, each once, as a hostlist in the order of their numbers; a long one is cut short."""
    return clip(encode_hosts(sorted(set(names), key=_by_number)), MOST_CHARACTERS)


def _strange(names: list[str], known: Iterable[str]) -> str:
    """Return hosts that are not known; one alone with the nearest that is."""
    return listed(names) + (did_you_mean(names[0], known, cutoff=0.8) if len(names) == 1 else "")


def _by_number(host: str) -> tuple[str, int]:
    name, number = split_name(host)
    return name, -1 if number is None else number


# --- queues ----------------------------------------------------------------------------------------


@rule("configuration-invalid", ERROR, "the configuration cannot be used")
def unreadable(site: SiteFiles) -> Faults:
    """Yield the configurations that the reader of queues refuses."""
    for config in site.configs:
        if config.fault is not None:
            yield config.where, str(config.fault).removeprefix(f"{config.where}: ")


@rule("queue-property", ERROR, "a queue requires a property that no node has")
def unknown_properties(site: SiteFiles) -> Faults:
    """Yield the properties that a queue requires and no node has."""
    for place, queue, index in _queues_and_machine(site):
        parts = [part for part in _parts(queue.constraint) if isinstance(part, rfc31.Properties)]
        for name in (name.removeprefix("^") for part in parts for name in part.names):
            if name not in index.property_rows:
                known = sorted(index.property_rows)
                text = f"no {index.target_type} has the property {name}{did_you_mean(name, known)}"
                yield place("requires"), text


@rule("queue-host", ERROR, "a queue names a host that does not exist")
def unknown_hosts(site: SiteFiles) -> Faults:
    """Yield the hosts of a queue that the machine does not have."""
    for place, queue, index in _queues_and_machine(site):
        parts = [part for part in _parts(queue.constraint) if isinstance(part, rfc31.Hosts)]
        named = (host for part in parts for host in part.hostlist.unique())
        odd = [host for host in named if host not in index.ordinal_of_host]
        if odd:
            yield place("hosts"), f"the machine has no {_strange(odd, index.ordinal_of_host)}"


@rule("queue-empty", ERROR, "a queue has no node")
def without_nodes(site: SiteFiles) -> Faults:
    """Yield the queues that have no node at all: their jobs would wait for ever."""
    for place, queue, index in _queues_and_machine(site):
        if not index.targets_matching(queue.constraint).any():
            yield place(""), f"no {index.target_type} satisfies {queue.constraint}"


@rule("limit-crossed", ERROR, "a least size is above the most")
def crossed_limits(site: SiteFiles) -> Faults:
    """Yield the limits whose least value is above the most."""
    for place, queue in _queues(site):
        for key, least in queue.least.items():
            most = queue.most.get(key, least)
            if least > most:
                where = place(f"policy.limits.job-size.min.{key}")
                yield where, f"min.{key} is {least}, and max.{key} is {most}: no job can meet both"


@rule("limit-unreachable", ERROR, "a least size is above what the nodes of the queue have")
def unreachable_limits(site: SiteFiles) -> Faults:
    """Yield the least sizes that are above all nodes of the queue together."""
    for place, queue, index in _queues_and_machine(site):
        there = _sizes(index, index.targets_matching(queue.constraint))
        for key, least in queue.least.items():
            if least > there[key]:
                text = f"min.{key} is {least}, and the nodes of the queue have {there[key]} {SIZES[key]}"
                yield place(f"policy.limits.job-size.min.{key}"), text


@rule("limit-zero", WARNING, "a limit of 0 allows none of the jobs that it is about")
def limits_of_zero(site: SiteFiles) -> Faults:
    """Yield the limits of 0 jobs or units: none of the jobs that they are about ever starts."""
    for config, limit in _limits(site):
        for quantity, most in limit.most.items():
            if most == 0 and KINDS[quantity].zero_bars:
                yield config.place(limit.where), f"{quantity} = 0 allows no job"


@rule("limit-unknown-queue", WARNING, "a limit is about a queue that does not exist")
def limits_of_unknown_queues(site: SiteFiles) -> Faults:
    """Yield the limits about queues that the configuration does not have."""
    for config, limit in _limits(site):
        known = config.queues.queues if config.queues is not None else {}
        for name in limit.names.get("queue", ()):
            if known and name not in known:
                yield config.place(limit.where), f"there is no queue {name!r}{did_you_mean(name, known)}"


def _limits(site: SiteFiles) -> Iterator[tuple[SiteConfig, LimitRule]]:
    """Yield the limits of all configurations."""
    for config in site.configs:
        try:
            rules = read_limits(config.document.get("limits", ()), "limits")
        except SimschedError:  # `unreadable` reports it
            continue
        for limit in rules:
            yield config, limit


@rule("default-above-limit", ERROR, "a default duration is above the limit of its queue")
def default_durations(site: SiteFiles) -> Faults:
    """Yield the default durations above the limit of their queue."""
    for place, queue in _queues(site):
        given = queue.default_duration
        if given is not None and given > queue.longest:
            default = "no limit" if given == INF else format_duration(given)
            text = f"the default duration is {default}, and the limit {format_duration(queue.longest)}"
            yield place("policy.limits.duration"), text


@rule("node-unqueued", WARNING, "a node is in no queue")
def nodes_in_no_queue(site: SiteFiles) -> Faults:
    """Yield the nodes that no queue uses."""
    for config, queues, index in _on_nodes(site):
        served = np.zeros(len(index), dtype=np.bool_)
        for queue in queues.queues.values():
            served |= index.targets_matching(queue.constraint)
        names = (index.hosts[at] for at in np.flatnonzero(~served).tolist())
        out = [host for host in names if host not in site.excluded_hosts]
        if out:
            text = f"{len(out)} of {len(index)} {index.target_type}s are in no queue: {listed(out)}"
            yield config.place("queues"), text


@rule("queues-overlap", NOTE, "queues have nodes in common")
def overlaps(site: SiteFiles) -> Faults:
    """Yield the queues that have nodes in common, directly or through a third."""
    for config, queues, index in _on_nodes(site):
        group_of, count = groups_of_queues(queues, index, anywhere=False)
        for number in range(count):
            names = [name for name in queues.queues if group_of[name] == number]
            if len(names) > 1:
                text = f"{', '.join(names)} have {index.target_type}s in common and are scheduled together"
                yield config.place("queues"), text


def _on_nodes(site: SiteFiles) -> Iterator[tuple[SiteConfig, Queues, Index]]:
    """Yield each configuration with queues, with the nodes that they are on; nothing without nodes."""
    for config in site.configs:
        if site.machine is not None and config.queues is not None:
            yield config, config.queues, site.machine.cluster.index


def _place(config: SiteConfig, name: str) -> Callable[[str], str]:
    """Return the function that returns the place of a key of a queue; that of the queue for no key."""
    return lambda key: config.place(f"queues.{name}.{key}".rstrip("."))


def _queues(site: SiteFiles) -> Iterator[tuple[Callable[[str], str], Queue]]:
    for config in site.configs:
        if config.queues is not None:
            for name, queue in config.queues.queues.items():
                yield _place(config, name), queue


def _queues_and_machine(site: SiteFiles) -> Iterator[tuple[Callable[[str], str], Queue, Index]]:
    """Yield each queue with its place and the machine; nothing without a machine."""
    if site.machine is not None:
        for place, queue in _queues(site):
            yield place, queue, site.machine.cluster.index


def _parts(constraint: Constraint | None) -> Iterator[Constraint]:
    """Yield the parts of a queue's constraint, which is properties, hosts or both."""
    if isinstance(constraint, rfc31.And):
        for part in constraint.args:
            yield from _parts(part)
    elif constraint is not None:
        yield constraint


def _sizes(index: Index, row: Bools) -> dict[str, int]:
    """Return the nodes, cores and GPUs of some targets, by the names of limits."""
    found = {"nnodes": int(row.sum())}
    for key, kind in (("ncores", "core"), ("ngpus", "gpu")):
        pool = index.pool_types.get(kind)
        inside = None if pool is None else pool.size[(pool.target >= 0) & row[pool.target]]
        found[key] = 0 if inside is None else int(inside.sum())
    return found


# --- storage ---------------------------------------------------------------------------------------


STORAGE = frozenset(
    {"ssd", "nvme", "hdd", "disk", "storage", "rabbit", "scratch", "bb", "burstbuffer", "burst_buffer"}
)
"""Types of vertices that are storage; any other type but memory is, if its unit is one of bytes."""

GIB = 2**30

MEMORY = frozenset({"memory", "mem", "ram", "hbm", "gpumem", "gpu_memory", "l3cache"})


@rule("storage-twice", ERROR, "the same storage is counted twice")
def counted_twice(site: SiteFiles) -> Faults:
    """Yield the storage that is counted in two places."""
    for machine, store in _graphs(site):
        for twice in _above_and_below(store):
            yield machine.where, f"{twice}: the same storage counts twice"
    yield from _nodes_and_above(site)
    for machine in site.machines:
        for where, map_ in site.maps:
            yield from _node_and_map(machine, where, map_)
    for machine, where, server, vertex, there, is_twice in _unlike_servers(site):
        if is_twice and there:
            twice = f"twice the capacity of {server.name} in {where}"
            yield machine.where, f"{_bytes(there)} below {vertex}, {twice}"


@rule("storage-capacity", ERROR, "the capacity of a server differs between map and graph")
def capacities(site: SiteFiles) -> Faults:
    """Yield the servers whose capacity differs between the map and the graph, beyond rounding."""
    for machine, where, server, vertex, there, is_twice in _unlike_servers(site):
        if not is_twice and server.capacity is not None:
            text = f"{_bytes(server.capacity)}, and {_bytes(there)} below {vertex} in {machine.where}"
            yield f"{where}: rabbits.{server.name}.capacity", text


@rule("storage-host", ERROR, "a storage map names a host that does not exist")
def unknown_hosts_of_map(site: SiteFiles) -> Faults:
    """Yield the hosts of a map that the machine does not have."""
    for where, map_ in site.maps:
        named = {host for server in map_.servers.values() for host in server.hosts} | set(map_.server_of)
        for machine in site.machines[:1]:
            odd = named - set(machine.by_host) - site.excluded_hosts
            if odd:
                yield where, f"{machine.where} has no {listed(odd)}"


@rule("storage-map", ERROR, "the two tables of a storage map disagree")
def contradictions_of_map(site: SiteFiles) -> Faults:
    """Yield the hosts that the two tables of a map give to different servers, or two servers name."""
    for where, map_ in site.maps:
        servers: dict[str, list[str]] = defaultdict(list)
        for server in map_.servers.values():
            for host in server.hosts:
                servers[host].append(server.name)
        for host in sorted(servers.keys() | map_.server_of.keys()):
            own = {map_.server_of[host]} if host in map_.server_of else set()
            names = own | set(servers[host])
            if len(names) > 1:
                yield f"{where}: computes.{host}", f"{host} is at {' and at '.join(sorted(names))}"
            elif not own or not servers[host]:
                table = "rabbits" if own else "computes"
                yield f"{where}: {table}", f"lacks {host}, which the other table has"


@rule("storage-place", ERROR, "the hosts of a server are in different parts of the graph")
def localities(site: SiteFiles) -> Faults:
    """Yield the servers whose hosts are in different parts of a graph, so that storage is not near them."""
    for machine, store, where, server, places in _placed_servers(site):
        if len(places) > 1:
            names = " and ".join(sorted(store.paths[vertex] for vertex in places))
            yield machine.where, f"the hosts of {server.name} ({where}) are in several places: {names}"


def is_storage(pool: Pool) -> bool:
    """Whether a vertex is storage: by its type, or by a unit of bytes."""
    if pool.type in STORAGE:
        return True
    return pool.type not in MEMORY and is_unit(pool.unit) and same_dimension(pool.unit, "B")


class _Store:
    """The storage in a graph.

    Attributes
    ----------
    targets : execution target → its host.
    direct : vertex → (type, whether in bytes) → the storage right below it: bytes, or units without a size.
    pieces : vertex → how many vertices of storage are right below it.
    place_of : host → the nearest vertex above it that has storage right below it.
    is_shared : whether there is storage above the targets.
    """

    def __init__(self, machine: StatedMachine) -> None:
        graph = machine.cluster.graph
        self._below = children_map(graph)
        self.paths = subsystem_paths(graph)
        self.targets = {key: pool_of(graph, key).name for key in execution_targets(graph, self._below)}
        self.direct: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
        self.pieces: Counter[str] = Counter()
        for vertex, children in self._below.items():
            for child in children:
                if child not in self._below and is_storage(pool := pool_of(graph, child)):
                    sized = is_unit(pool.unit)
                    factor = int(unit_of(pool.unit).factor) if sized else 1
                    self.direct[vertex][pool.type, sized] += pool.size * factor
                    self.pieces[vertex] += 1
        self.is_shared = bool(self.direct.keys() - self.targets)
        self.place_of: dict[str, str] = {}
        nearest: list[str | None] = []
        for vertex, depth in walk(graph):
            del nearest[depth:]
            above = nearest[-1] if nearest else None
            if vertex in self.targets and above is not None:
                self.place_of[self.targets[vertex]] = above
            nearest.append(vertex if vertex in self.direct and vertex not in self.targets else above)

    def deeper(self, vertex: str) -> Counter[tuple[str, bool]]:
        """Return the storage below the children of a vertex."""
        found: Counter[tuple[str, bool]] = Counter()
        for within in inside(self._below, vertex):
            found.update(self.direct.get(within, {}))
        return found

    def bytes_on(self, hosts: Iterable[str]) -> int:
        """Return the bytes of storage on these hosts."""
        wanted = set(hosts)
        targets = (vertex for vertex, host in self.targets.items() if host in wanted)
        found = (self.direct.get(vertex, Counter()) + self.deeper(vertex) for vertex in targets)
        return sum(amount for row in found for (_, sized), amount in row.items() if sized)


def _above_and_below(store: _Store) -> Iterator[str]:
    """Yield the storage of which there is as much right below a vertex as deeper: the same, twice.

    Bytes that are equal are the same storage under any name, numbers of pieces only of one type.
    """
    for vertex in [vertex for vertex in store.direct if vertex not in store.targets]:
        deeper = store.deeper(vertex)
        for (kind, sized), amount in store.direct[vertex].items():
            same = [
                other
                for (other, in_bytes), size in deeper.items()
                if size == amount > 0 and in_bytes == sized and (sized or other == kind)
            ]
            if same:
                yield f"{kind} below {store.paths[vertex]} and as much {same[0]} below its parts"


def _nodes_and_above(site: SiteFiles) -> Faults:
    """Yield R that counts storage on its ranks, where a graph has it above the nodes."""
    for machine in site.machines:
        kinds = [kind for kind in machine.totals if kind in STORAGE]
        for graph, store in _graphs(site) if machine.kind == R and kinds else ():
            if store.is_shared and not store.direct.keys() & store.targets:
                text = f"R_lite counts {', '.join(kinds)} on its ranks, and {graph.where} above the nodes"
                yield machine.where, f"{text}: the same storage counts twice"


def _node_and_map(machine: StatedMachine, where: str, map_: StorageMap) -> Faults:
    """Yield the storage of servers that the machine counts on the nodes which they serve.

    R has no sizes, and nodes with storage of any number are doubtful.  In a graph nodes may have disks of
    their own beside the servers, and only the capacity of the server is its storage.
    """
    found: list[str] = []
    if machine.kind == R:
        for host, node in machine.by_host.items():
            if host in map_.server_of and any(kind in STORAGE for kind in node.units):
                found.append(host)
    elif not (store := _Store(machine)).is_shared:
        for server in map_.servers.values():
            there = store.bytes_on(server.hosts)
            if there and server.capacity and abs(there - server.capacity) <= len(server.hosts) * GIB:
                found += server.hosts
    if found:
        text = f"counts storage on {listed(found)}, which {where} counts at their servers"
        yield machine.where, f"{text}: the same storage counts twice"


def _unlike_servers(site: SiteFiles) -> Iterator[tuple[StatedMachine, str, StorageServer, str, int, bool]]:
    """Yield the servers of which a map and a graph have different capacities; the last: the graph has twice.

    Sizes in a graph are rounded down.  Storage without a unit is not compared.
    """
    for machine, store, where, server, places in _placed_servers(site):
        if server.capacity is None or len(places) != 1:
            continue
        (vertex,) = places
        there, rounding = sum(store.direct[vertex].values()), store.pieces[vertex] * GIB
        is_twice = abs(there - 2 * server.capacity) <= rounding
        in_bytes = all(sized for _, sized in store.direct[vertex])
        if in_bytes and (is_twice or abs(there - server.capacity) > rounding):
            yield machine, where, server, store.paths[vertex], there, is_twice


def _placed_servers(site: SiteFiles) -> Iterator[tuple[StatedMachine, _Store, str, StorageServer, set[str]]]:
    """Yield each graph, its storage, and each server of each map (`where`) with its places in the graph."""
    for machine, store in _graphs(site):
        for where, map_ in site.maps:
            for server in map_.servers.values():
                places = {store.place_of[host] for host in server.hosts if host in store.place_of}
                yield machine, store, where, server, places


def _graphs(site: SiteFiles) -> Iterator[tuple[StatedMachine, _Store]]:
    return ((machine, _Store(machine)) for machine in site.machines if machine.kind != R)


def _bytes(number: int) -> str:
    """Return bytes in GiB for people.

    >>> _bytes(3 * 2**30)
    '3 GiB'
    """
    return f"{number / GIB:,.0f} GiB"


# --- all rules -------------------------------------------------------------------------------------


class Finding(Written, frozen=True):
    """One fault, with the code and severity of its rule.

    ``str()`` is a line for people.

    code : stable; docs/checks.md lists the meanings.
    where : the file, and the path in it.
    text : a sentence for people, which may change.
    """

    code: Annotated[str, json_of(enum=list(RULES))]
    severity: Severity
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.severity} {self.code}: {self.text}"


class CheckedFile(Written, frozen=True):
    """A file and its kind."""

    file: str
    kind: str


class CheckResult(Written, frozen=True, kw_only=True):
    """All findings on some files, and one line on their content; true if they are sound.

    sound : no errors and no warnings.
    """

    version: Literal[1]
    sound: bool
    summary: str
    files: tuple[CheckedFile, ...]
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return self.sound


def check_files(paths: Iterable[str | Path], site: Site | str | Path | None = None) -> CheckResult:
    """Check whether files agree: descriptions of one machine, configurations, outages, storage maps.

    `site` is the folder of a site, whose files come first.  The first description of the machine is the one
    that the others are compared with.

    Raises
    ------
    ConfigError
        if there is nothing to check, or the folder is not a site.
    FormatError
        for a file that is empty, not well formed, or of an unknown kind; with the place.
    """
    found = read_site_files(paths, site)
    findings = dict.fromkeys(
        Finding(code, rule.severity, where, text)
        for code, rule in RULES.items()
        for where, text in rule.look(found)
    )
    return CheckResult(
        version=1,
        sound=all(finding.severity == NOTE for finding in findings),
        summary=_summary(found),
        files=tuple(CheckedFile(*file) for file in found.files),
        findings=tuple(findings),
    )


def _summary(site: SiteFiles) -> str:
    """Return the content of the files in one line: the units of the machine, and its queues."""
    from simsched.human import units

    parts = []
    if site.machine is not None:
        machine = site.machine
        totals = {"node": len(machine.nodes)}
        totals |= {kind: machine.totals[kind] for kind in ("core", "gpu") if machine.totals.get(kind)}
        parts.append(", ".join(units(totals)))
    numbers = {
        "queue": len({name for config in site.configs if config.queues for name in config.queues.queues}),
        "storage server": sum(len(map_.servers) for _, map_ in site.maps),
        "file": len(site.files),
    }
    parts += [f"{count} {word}{'s' * (count > 1)}" for word, count in numbers.items() if count]
    return "; ".join(parts)
