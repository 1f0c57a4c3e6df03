"""Rules on storage that nodes share, such as the rabbits of CORAL-2: none of it is counted twice.

Storage is counted in up to three places: in R_lite, as units of a node; in a graph, as vertices below a
node, or below the rack or chassis that the nodes are in; and in a storage map, as the capacity of a server.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from simsched.check.findings import ERROR, rule
from simsched.check.node_rules import listed
from simsched.check.site_files import R, SiteFault
from simsched.formats.rfc.units import is_unit, same_dimension, unit_of
from simsched.graph.resource_graph import children_map, execution_targets, pool_of, subsystem_paths, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.check.site_files import SiteFiles, StatedMachine
    from simsched.formats.cluster.storage_map import StorageMap, StorageServer
    from simsched.graph.pool import Pool

STORAGE = frozenset(
    {"ssd", "nvme", "hdd", "disk", "storage", "rabbit", "scratch", "bb", "burstbuffer", "burst_buffer"}
)
"""Types of vertices that are storage; any other type but memory is, if its unit is one of bytes."""

GIB = 2**30

MEMORY = frozenset({"memory", "mem", "ram", "hbm", "gpumem", "gpu_memory", "l3cache"})


@rule("storage-twice", ERROR, "the same storage is counted twice")
def counted_twice(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the storage that is counted in two places."""
    for machine in site.machines:
        if machine.kind != R:
            yield from _above_and_below(_Store(machine), machine.where)
    yield from _nodes_and_above(site)
    for machine in site.machines:
        for where, map_ in site.maps:
            yield from _node_and_map(machine, where, map_)
    for server in _compared_servers(site):
        if server.there and abs(server.there - 2 * server.capacity) <= server.rounding:
            twice = f"twice the capacity of {server.name} in {server.map_where}"
            yield SiteFault(server.where, f"{_bytes(server.there)} below {server.vertex}, {twice}")


@rule("storage-capacity", ERROR, "the capacity of a server differs between map and graph")
def capacities(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the servers whose capacity differs between the map and the graph, beyond rounding."""
    for server in _compared_servers(site):
        twice = abs(server.there - 2 * server.capacity) <= server.rounding
        if not twice and abs(server.there - server.capacity) > server.rounding:
            there = f"{_bytes(server.there)} below {server.vertex} in {server.where}"
            place = f"{server.map_where}: rabbits.{server.name}.capacity"
            yield SiteFault(place, f"{_bytes(server.capacity)}, and {there}")


@rule("storage-host", ERROR, "a storage map names a host that does not exist")
def unknown_hosts_of_map(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the hosts of a map that the machine does not have."""
    for where, map_ in site.maps:
        named = {host for server in map_.servers.values() for host in server.hosts} | set(map_.server_of)
        for machine in site.machines[:1]:
            odd = named - set(machine.by_host) - site.excluded_hosts
            if odd:
                yield SiteFault(where, f"{machine.where} has no {listed(odd)}")


@rule("storage-map", ERROR, "the two tables of a storage map disagree")
def contradictions_of_map(site: SiteFiles) -> Iterator[SiteFault]:
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
                yield SiteFault(f"{where}: computes.{host}", f"{host} is at {' and at '.join(sorted(names))}")
            elif not own or not servers[host]:
                table = "rabbits" if own else "computes"
                yield SiteFault(f"{where}: {table}", f"lacks {host}, which the other table has")


@rule("storage-place", ERROR, "the hosts of a server are in different parts of the graph")
def localities(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield the servers whose hosts are in different parts of a graph, so that storage is not near them."""
    for machine in _graphs(site):
        store = _Store(machine)
        for where, map_ in site.maps:
            for server in map_.servers.values():
                places = store.places_of(server)
                if len(places) > 1:
                    names = " and ".join(sorted(store.paths[vertex] for vertex in places))
                    text = f"the hosts of {server.name} ({where}) are in several places: {names}"
                    yield SiteFault(machine.where, text)


# --- the storage of a graph -----------------------------------------------------------------------


def is_storage(pool: Pool) -> bool:
    """Whether a vertex is storage: by its type, or by a unit of bytes."""
    if pool.type in STORAGE:
        return True
    return pool.type not in MEMORY and is_unit(pool.unit) and same_dimension(pool.unit, "B")


class _Store:
    """The storage in a graph.

    Attributes
    ----------
    direct : vertex → (type, whether in bytes) → the storage right below it: bytes, or units without a size.
    place_of : host → the nearest vertex above it that has storage right below it.
    pieces : vertex → how many vertices of storage are right below it.
    """

    def __init__(self, machine: StatedMachine) -> None:
        graph = machine.cluster.graph
        self._below = children_map(graph)
        self._graph = graph
        self.paths = subsystem_paths(graph)
        self.targets = set(execution_targets(graph, self._below))
        self.direct: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
        self.pieces: Counter[str] = Counter()
        for vertex, children in self._below.items():
            for child in children:
                if child not in self._below and is_storage(pool := pool_of(graph, child)):
                    sized = is_unit(pool.unit)
                    factor = int(unit_of(pool.unit).factor) if sized else 1
                    self.direct[vertex][pool.type, sized] += pool.size * factor
                    self.pieces[vertex] += 1
        self.place_of: dict[str, str] = {}
        nearest: list[str | None] = []
        for vertex, depth in walk(graph):
            del nearest[depth:]
            above = nearest[-1] if nearest else None
            if vertex in self.targets and above is not None:
                self.place_of[pool_of(graph, vertex).name] = above
            nearest.append(vertex if vertex in self.direct and vertex not in self.targets else above)

    def places_of(self, server: StorageServer) -> set[str]:
        """Return the places of the hosts of a server."""
        return {self.place_of[host] for host in server.hosts if host in self.place_of}

    def bytes_below(self, vertex: str) -> int | None:
        """Return the bytes right below a vertex; None if some of its storage has no unit."""
        amounts = self.direct[vertex]
        return sum(amounts.values()) if all(sized for _, sized in amounts) else None

    def deeper(self, vertex: str) -> Counter[tuple[str, bool]]:
        """Return the storage below the children of a vertex."""
        found: Counter[tuple[str, bool]] = Counter()
        stack = list(self._below.get(vertex, ()))
        while stack:
            inner = stack.pop()
            found.update(self.direct.get(inner, {}))
            stack.extend(self._below.get(inner, ()))
        return found

    def is_shared(self) -> bool:
        """Whether there is storage above the targets."""
        return any(vertex not in self.targets for vertex in self.direct)

    def on_targets(self) -> bool:
        """Whether the targets have storage of their own."""
        return any(vertex in self.targets for vertex in self.direct)

    def bytes_on(self, hosts: Iterable[str]) -> int:
        """Return the bytes of storage on these hosts."""
        wanted = set(hosts)
        targets = [vertex for vertex in self.targets if pool_of(self._graph, vertex).name in wanted]
        found = (self.direct.get(vertex, Counter()) + self.deeper(vertex) for vertex in targets)
        return sum(amount for row in found for (_, sized), amount in row.items() if sized)


def _above_and_below(store: _Store, where: str) -> Iterator[SiteFault]:
    """Yield the vertices that have as much storage right below them as deeper: the same, twice.

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
                text = f"{kind} below {store.paths[vertex]} and as much {same[0]} below its parts"
                yield SiteFault(where, f"{text}: the same storage counts twice")


def _nodes_and_above(site: SiteFiles) -> Iterator[SiteFault]:
    """Yield R that counts storage on its ranks, where a graph has it above the nodes."""
    for machine in site.machines:
        kinds = [kind for kind in machine.totals if kind in STORAGE]
        if machine.kind != R or not kinds:
            continue
        for graph in _graphs(site):
            store = _Store(graph)
            if store.is_shared() and not store.on_targets():
                text = f"R_lite counts {', '.join(kinds)} on its ranks, and {graph.where} above the nodes"
                yield SiteFault(machine.where, f"{text}: the same storage counts twice")


def _node_and_map(machine: StatedMachine, where: str, map_: StorageMap) -> Iterator[SiteFault]:
    """Yield the storage of servers that the machine counts on the nodes which they serve.

    R has no sizes, and nodes with storage of any number are doubtful.  In a graph nodes may have disks of
    their own beside the servers, and only the capacity of the server is its storage.
    """
    found: list[str] = []
    if machine.kind == R:
        found = [
            host
            for host, node in machine.by_host.items()
            if host in map_.server_of and any(kind in STORAGE for kind in node.units)
        ]
    elif not (store := _Store(machine)).is_shared():
        for server in map_.servers.values():
            there = store.bytes_on(server.hosts)
            if there and server.capacity and abs(there - server.capacity) <= len(server.hosts) * GIB:
                found += server.hosts
    if found:
        text = f"counts storage on {listed(found)}, which {where} counts at their servers"
        yield SiteFault(machine.where, f"{text}: the same storage counts twice")


class _ComparedServer(NamedTuple):
    """A server of a map and its storage in a graph, both in bytes; sizes in a graph are rounded down."""

    name: str
    map_where: str
    where: str
    vertex: str
    capacity: int
    there: int
    rounding: int


def _compared_servers(site: SiteFiles) -> Iterator[_ComparedServer]:
    for machine in _graphs(site):
        store = _Store(machine)
        for map_where, map_ in site.maps:
            for server in map_.servers.values():
                places = store.places_of(server)
                there = store.bytes_below(*places) if len(places) == 1 else None
                if there is not None and server.capacity is not None:
                    (vertex,) = places
                    path, rounding = store.paths[vertex], store.pieces[vertex] * GIB
                    sizes = server.capacity, there, rounding
                    yield _ComparedServer(server.name, map_where, machine.where, path, *sizes)


def _graphs(site: SiteFiles) -> Iterator[StatedMachine]:
    return (machine for machine in site.machines if machine.kind != R)


def _bytes(number: int) -> str:
    """Return bytes in GiB for people.

    >>> _bytes(3 * 2**30)
    '3 GiB'
    """
    return f"{number / GIB:,.0f} GiB"
