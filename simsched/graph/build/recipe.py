"""Recipe → resource graph: containment, then network and power over the same vertices."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, count, islice, repeat
from typing import TYPE_CHECKING

from simsched.cycles import find_cycle
from simsched.errors import ClusterError, LimitError, RequestError
from simsched.formats.cluster.recipe import Dragonfly, FatTree, SwitchTree
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.units import convert
from simsched.garbage import collector_paused
from simsched.graph.build.assemble import add_contained, add_edge, add_tree, add_vertices, finish, new_graph
from simsched.graph.build.rset import ROOT_KEY, suffix_properties
from simsched.graph.pool import DOWN, DRAINED, NOTHING, Pool, numbered, split_name
from simsched.graph.resource_graph import CONTAINS, ResourceGraph

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from simsched.formats.cluster.recipe import Amount, Level, NodeGroup, PoolSpec, Power, Recipe

NETWORK, POWER = "network", "power"
CONDUIT_OF, SUPPLIES_TO = "conduit-of", "supplies-to"
MAX_VERTICES = 10_000_000


def from_recipe(recipe: Recipe, *, name: str = "cluster") -> ResourceGraph:
    """Return the graph of a recipe; ranks run over the groups in order.

    Keys: hosts for nodes, ``host/socket0/core`` within them, names (``rack3``) above.

    Raises
    ------
    ClusterError
        if two groups name one host, if the power's level does not exist, or if a switch names a node or a
        switch that does not exist.
    LimitError
        if it would have more than 10,000,000 vertices.
    """
    with collector_paused():
        builder = _Builder(recipe, new_graph(recipe.name or name, source="recipe"))
        builder.build()
        return finish(builder.graph)


class _Builder:
    """The graph while it grows, and the running numbers of levels and ranks."""

    def __init__(self, recipe: Recipe, graph: ResourceGraph) -> None:
        self.recipe = recipe
        self.graph = graph
        self.nodes: list[str] = []
        self.level_nodes: dict[str, dict[str, list[str]]] = {}
        self._next: dict[str, count[int]] = defaultdict(count)

    def build(self) -> None:
        """Add everything."""
        _check_size(self.recipe)
        add_vertices(self.graph, [(ROOT_KEY, numbered("cluster", 0))])
        arranged = sum(len(group.hosts) for group in self.recipe.groups if not group.levels)
        places = self._levels(self.recipe.levels, arranged)
        for group in self.recipe.groups:
            own = self._levels(group.levels, len(group.hosts)) if group.levels else None
            rows = zip(group.hosts, own if own is not None else places, strict=False)
            self._group(group, [(host, *place) for host, place in rows])
        numbers: dict[str, count[int]] = defaultdict(count)
        for spec in self.recipe.pools:
            add_tree(self.graph, [(pool.name, pool, ROOT_KEY) for _, pool in _pools(spec, "", numbers)])
        network = self.recipe.network
        if network is not None:
            fabric = self._vertex(numbered("fabric", 0))
            if isinstance(network, Dragonfly):
                self._dragonfly(network, fabric)
            elif isinstance(network, SwitchTree):
                self._switch_tree(network, fabric)
            else:
                self._fat_tree(network, fabric)
        if self.recipe.power is not None:
            self._power(self.recipe.power)

    def _numbered(self, kind: str) -> Pool:
        """Return the pool of the next vertex of a kind."""
        return numbered(kind, next(self._next[kind]))

    # --- containment

    def _levels(
        self, levels: Sequence[Level], nodes: int, above: tuple[str, ...] = (ROOT_KEY,)
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield, for each node in turn, its parent and all its levels."""
        if not levels:
            yield from repeat((above[-1], above[1:]), nodes)
            return
        for share in _shares(nodes, levels[0].count):
            pool = self._numbered(levels[0].type)
            add_tree(self.graph, [(pool.name, pool, above[-1])])
            yield from self._levels(levels[1:], share, (*above, pool.name))

    def _group(self, group: NodeGroup, places: Sequence[tuple[str, str, tuple[str, ...]]]) -> None:
        inside = list(_inside(group))
        properties: Mapping[str, str] = dict.fromkeys(group.properties, "") or NOTHING
        for host, parent, levels in places:
            basename, number = split_name(host)
            status = DRAINED if host in group.drained else DOWN if host in group.down else group.status
            node = Pool(
                type="node",
                name=host,
                basename=basename,
                id=number,
                rank=len(self.nodes),
                status=status,
                properties=properties,
            )
            if host in self.graph:
                raise ClusterError(f"the host {host!r} occurs twice", where=f"group {group.name!r}")
            rows = [(host + suffix, pool, host + above) for suffix, above, pool in inside]
            add_tree(self.graph, [(host, node, parent), *rows])
            self.nodes.append(host)
            for level in levels:
                kind = self.graph.nodes[level]["pool"].type
                self.level_nodes.setdefault(kind, {}).setdefault(level, []).append(host)

    # --- other subsystems

    def _join(self, source: str, targets: Sequence[str], subsystem: str, relationship: str) -> None:
        for target in targets:
            add_edge(self.graph, source, target, subsystem, relationship)

    def _vertex(self, pool: Pool, key: str | None = None) -> str:
        add_vertices(self.graph, [(key or pool.name, pool)])
        return key or pool.name

    def _dragonfly(self, network: Dragonfly, fabric: str) -> None:
        nodes = iter(self.nodes)
        shares = iter(_shares(len(self.nodes), network.groups * network.routers_per_group))
        for number in range(network.groups):
            group = self._vertex(numbered("group", number))
            self._join(fabric, [group], NETWORK, CONTAINS)
            for _ in range(network.routers_per_group):
                router = self._vertex(self._numbered("router"))
                self._join(group, [router], NETWORK, CONTAINS)
                self._join(router, list(islice(nodes, next(shares))), NETWORK, CONDUIT_OF)

    def _fat_tree(self, network: FatTree, fabric: str) -> None:
        tops = [self._vertex(numbered("spine", number)) for number in range(network.spines)]
        self._join(fabric, tops, NETWORK, CONTAINS)
        leaves = []
        for start in range(0, len(self.nodes), network.nodes_per_leaf):
            leaf = self._vertex(self._numbered("switch"))
            self._join(leaf, self.nodes[start : start + network.nodes_per_leaf], NETWORK, CONDUIT_OF)
            leaves.append(leaf)
        below = leaves
        if network.leaves_per_pod is not None:
            below = []
            for start in range(0, len(leaves), network.leaves_per_pod):
                pod = self._vertex(self._numbered("pod"))
                self._join(pod, leaves[start : start + network.leaves_per_pod], NETWORK, CONTAINS)
                below.append(pod)
        for top in tops or [fabric]:
            self._join(top, below, NETWORK, CONDUIT_OF if tops else CONTAINS)

    def _switch_tree(self, network: SwitchTree, fabric: str) -> None:
        """Add the listed switches; those below no other switch are below the fabric."""
        keys: dict[str, str] = {}
        for switch in network.switches:
            if switch.name in keys:
                raise ClusterError(f"the switch {switch.name!r} occurs twice", where="network")
            basename, number = split_name(switch.name)
            pool = Pool(type=switch.type, name=switch.name, basename=basename, id=number)
            key = f"switch/{switch.name}" if switch.name in self.graph else switch.name
            keys[switch.name] = self._vertex(pool, key)
        cycle = find_cycle({switch.name: switch.switches for switch in network.switches})
        if cycle:
            raise ClusterError(f"the switches {' > '.join(cycle)} are a cycle", where="network")
        known, nodes = keys.keys(), frozenset(self.nodes)
        for switch in network.switches:
            for names, among, kind in ((switch.switches, known, "switch"), (switch.hosts, nodes, "node")):
                strange = next((name for name in names if name not in among), None)
                if strange is not None:
                    raise ClusterError(f"there is no {kind} {strange!r}", where=f"network: {switch.name}")
            self._join(keys[switch.name], [keys[name] for name in switch.switches], NETWORK, CONTAINS)
            self._join(keys[switch.name], switch.hosts, NETWORK, CONDUIT_OF)
        below = {name for switch in network.switches for name in switch.switches}
        self._join(fabric, [key for name, key in keys.items() if name not in below], NETWORK, CONTAINS)

    def _power(self, power: Power) -> None:
        panel = self._vertex(numbered("powerpanel", 0))
        self._budget(panel, power.budget)
        served = self._distribution(panel, power) if power.per else frozenset()
        self._join(panel, [node for node in self.nodes if node not in served], POWER, SUPPLIES_TO)
        for node in self.nodes if power.node is not None else ():
            self._budget(node, power.node)

    def _distribution(self, panel: str, power: Power) -> Set[str]:
        """Add one pdu for each vertex of a level; return the nodes in them, as others are below the panel."""
        level, budget = next(iter(power.per.items()))
        found = self.level_nodes.get(level)
        if found is None:
            known = " or ".join(self.level_nodes) or "a recipe with levels"
            raise ClusterError(f"no level {level!r}", where="power.per", expected=known)
        for number, (level, nodes) in enumerate(found.items()):
            pdu = self._vertex(numbered("pdu", number))
            add_contained(self.graph, [(level, pdu)])
            self._join(panel, [pdu], POWER, SUPPLIES_TO)
            self._budget(pdu, budget)
            self._join(pdu, nodes, POWER, SUPPLIES_TO)
        return set(chain.from_iterable(found.values()))

    def _budget(self, holder: str, amount: Amount | None) -> None:
        if amount is None:
            return
        try:
            watts = int(convert(amount.size, amount.unit or "W", "W"))
        except RequestError as error:
            raise ClusterError(error.message, where="power", expected="a unit of power, like kW") from None
        pool = numbered("power", size=watts, unit="W")
        self._join(holder, [self._vertex(pool, f"{holder}/power")], POWER, SUPPLIES_TO)


# --- the inside of a node ------------------------------------------------------------


def _inside(group: NodeGroup) -> Iterator[tuple[str, str, Pool]]:
    """Yield (suffix of the key, suffix of the parent's key, pool) of every vertex in a node."""
    names = frozenset(group.properties)
    places: list[tuple[str, str]] = [("", "node")]
    innermost = [""]
    for level in group.locality:
        found: list[str] = []
        for above in innermost:
            for _ in range(level.count):
                number = len(found)
                suffix = f"{above}/{level.type}{number}"
                yield suffix, above, numbered(level.type, number)
                found.append(suffix)
        innermost = found
        places += [(suffix, level.type) for suffix in found]
    for kind, number, named in (("core", group.cores, group.core_ids), ("gpu", group.gpus, group.gpu_ids)):
        # ids 0, 1, 2 … where the recipe names none, in the order of the localities, as evenly as possible
        rest = Idset.from_range(0, number - 1) if named is None else named
        for suffix, share in zip(innermost, _shares(len(rest), len(innermost)), strict=True):
            if share:
                ids = rest.take(share)
                rest -= ids
                pool = numbered(kind, size=share, ids=ids, properties=suffix_properties(names, kind))
                yield f"{suffix}/{kind}", suffix, pool
    numbers: dict[str, count[int]] = defaultdict(count)
    for spec in group.pools:
        for suffix, kind in places:
            if kind == spec.within:
                for key, pool in _pools(spec, suffix, numbers):
                    yield key, suffix, pool


def _pools(spec: PoolSpec, suffix: str, numbers: dict[str, count[int]]) -> Iterator[tuple[str, Pool]]:
    """Yield the pools of a specification in one place; several of a kind are numbered."""
    extra: Mapping[str, str] = NOTHING if spec.path is None else {"path": spec.path}
    properties: Mapping[str, str] = dict.fromkeys(spec.properties, "") or NOTHING
    for _ in range(spec.count):
        pool = numbered(
            spec.type,
            next(numbers[spec.type]),
            basename=spec.name,
            size=spec.amount.size,
            unit=spec.amount.unit,
            properties=properties,
            extra=extra,
        )
        if spec.name and spec.count == 1:
            basename, own = split_name(spec.name)
            pool = pool.replace(name=spec.name, basename=basename, id=own)
        yield f"{suffix}/{pool.name}", pool


def _shares(total: int, parts: int) -> list[int]:
    """Divide a number into whole parts that differ by one at most, larger ones first.

    >>> _shares(10, 4)
    [3, 3, 2, 2]
    """
    least, more = divmod(total, parts)
    return [least + 1] * more + [least] * (parts - more)


def _check_size(recipe: Recipe) -> None:
    """Count vertices before any is made."""
    total = 0
    for group in recipe.groups:
        domains, inner = 1, 0
        for level in group.locality:
            domains *= level.count
            inner += domains
        pools = sum(spec.count * (1 if spec.within == "node" else domains) for spec in group.pools)
        total += len(group.hosts) * (1 + inner + 2 * domains + pools)
    for levels in (recipe.levels, *(group.levels for group in recipe.groups)):
        width = 1
        for level in levels:
            width *= level.count
            total += width
    if total > MAX_VERTICES:
        raise LimitError(f"the recipe makes {total:,} vertices", expected=f"at most {MAX_VERTICES:,}")
