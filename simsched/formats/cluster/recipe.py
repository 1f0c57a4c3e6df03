"""Cluster recipes: hardware in a few lines of YAML, as values, read and written.

The JSON Schema ``schemas/cluster-recipe.json`` defines the documents; a `Recipe` is the meaning of one.
The keys are described in docs/clusters.md.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import ClusterError, FormatError, RequestError
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_host, check_property
from simsched.formats.rfc.units import same_dimension, unit_of
from simsched.formats.text.schemas import first_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


MAX_NODES = 1_000_000
_AMOUNT = re.compile(r"(\d+) ?([A-Za-z/]*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount with its unit: ``512 GB``."""

    size: int
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the tree: `count` vertices of `type` in each vertex above."""

    type: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSpec:
    """`count` pools of one kind, in the node or in each domain of type `within`."""

    type: str
    name: str | None = None
    amount: Amount = Amount(1)
    count: int = 1
    within: str = "node"
    path: str | None = None
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes that are alike.  `cores` and `gpus` are a node's; they divide over its localities.

    `core_ids` and `gpu_ids` are the logical ids of these units, None for 0, 1, 2 …
    """

    name: str
    hosts: tuple[str, ...]
    locality: tuple[Level, ...] = ()
    cores: int = 0
    gpus: int = 0
    core_ids: Idset | None = None
    gpu_ids: Idset | None = None
    pools: tuple[PoolSpec, ...] = ()
    properties: tuple[str, ...] = ()
    status: str = "up"
    down: frozenset[str] = frozenset()
    drained: frozenset[str] = frozenset()
    levels: tuple[Level, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FatTree:
    """Leaf switches with their nodes, in pods or not, below spine switches or one fabric."""

    nodes_per_leaf: int
    leaves_per_pod: int | None = None
    spines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dragonfly:
    """Groups of routers; the nodes divide evenly over the routers."""

    groups: int
    routers_per_group: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A switch with the nodes and the switches below it, by name."""

    name: str
    type: str = "switch"
    hosts: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchTree:
    """A network whose switches are listed one by one, as in Slurm's topology.conf."""

    switches: tuple[Switch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power budgets of the cluster, of each vertex of one level, and of each node."""

    budget: Amount | None = None
    per_level: str | None = None
    per_level_budget: Amount | None = None
    node: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A whole machine."""

    name: str | None
    groups: tuple[NodeGroup, ...]
    levels: tuple[Level, ...] = ()
    pools: tuple[PoolSpec, ...] = ()
    network: FatTree | Dragonfly | SwitchTree | None = None
    power: Power | None = None


def parse_recipe(document: Any, *, where: str | None = None) -> Recipe:
    """Return the recipe that a YAML or JSON document (already read) describes.

    Raises
    ------
    FormatError
        with the path of a value that the schema does not allow, or of a property that RFC 20 forbids.
    ClusterError
        if counts contradict each other: hosts and count, cores that do not divide over sockets …

    >>> parse_recipe({"groups": [{"name": "n", "count": 2, "cores": 4}]}).groups[0].hosts
    ('n0', 'n1')
    """
    fault = first_fault("cluster-recipe", document, where or "")
    if fault is not None:
        raise fault.error()
    groups = tuple(
        _group(row, _join(where, f"groups[{number}]")) for number, row in enumerate(document["groups"])
    )
    total = sum(len(group.hosts) for group in groups)
    if total > MAX_NODES:
        raise ClusterError(f"{total:,} nodes are too many", where=where, expected=f"at most {MAX_NODES:,}")
    return Recipe(
        name=document.get("name"),
        groups=groups,
        levels=_levels(document, where),
        pools=tuple(_pool(row, where) for row in document.get("pools", ())),
        network=_network(document.get("network"), _join(where, "network")),
        power=_power(document.get("power"), _join(where, "power")),
    )


def is_recipe(document: Any) -> bool:
    """Return whether a document looks like a cluster recipe."""
    return isinstance(document, dict) and "groups" in document


def _join(where: str | None, place: str) -> str:
    return f"{where}: {place}" if where else place


def _group(row: Mapping[str, Any], where: str) -> NodeGroup:
    hosts = _hosts_of(row, where)
    locality = _locality(row, where)
    cores, core_ids = _units(row, "core", where)
    gpus, gpu_ids = _units(row, "gpu", where)
    domains = 1
    for level in locality:
        domains *= level.count
    for kind, count in (("cores", cores), ("gpus", gpus)):
        if kind == "cores" and count % domains:
            raise ClusterError(
                f"{count} {kind} do not divide over {domains} {locality[-1].type}s", where=f"{where}.{kind}"
            )
    for name in row.get("properties", ()):
        check_property(name, f"{where}.properties")
    return NodeGroup(
        name=row["name"],
        hosts=hosts,
        locality=locality,
        cores=cores,
        gpus=gpus,
        core_ids=core_ids,
        gpu_ids=gpu_ids,
        pools=_pools_of(row, locality, where),
        properties=tuple(row.get("properties", ())),
        status=row.get("status", "up"),
        down=_some_hosts(row, "down", hosts, where),
        drained=_some_hosts(row, "drained", hosts, where),
        levels=_levels(row, where),
    )


def _units(row: Mapping[str, Any], kind: str, where: str) -> tuple[int, Idset | None]:
    """Return the number of cores or gpus of a node, and their ids where the row names them."""
    count: int | None = row.get(f"{kind}s")
    if f"{kind}_ids" not in row:
        return count or 0, None
    place = f"{where}.{kind}_ids"
    ids = Idset.parse(row[f"{kind}_ids"], where=place)
    if count is not None and count != len(ids):
        raise ClusterError(f"there are {len(ids)} ids, but {count} {kind}s", where=place)
    if len(ids) > MAX_NODES:
        raise FormatError(f"{len(ids):,} {kind}s in a node", where=place, expected=f"at most {MAX_NODES:,}")
    return len(ids), ids


def _hosts_of(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the hosts of a group: as written, or its name and a number."""
    count = row.get("count")
    if "hosts" not in row:
        if count is None:
            raise FormatError("neither count nor hosts is given", where=where, expected="one of them")
        check_host(row["name"], f"{where}.name")
        return tuple(f"{row['name']}{number}" for number in range(count))
    hosts = tuple(Hostlist.parse(row["hosts"], where=f"{where}.hosts").expand(MAX_NODES))
    if count is not None and count != len(hosts):
        raise ClusterError(f"the count is {count}, but there are {len(hosts)} hosts", where=where)
    return hosts


def _some_hosts(row: Mapping[str, Any], key: str, hosts: tuple[str, ...], where: str) -> frozenset[str]:
    if key not in row:
        return frozenset()
    found = frozenset(Hostlist.parse(row[key], where=f"{where}.{key}").expand(MAX_NODES))
    strange = sorted(found.difference(hosts))
    if strange:
        raise ClusterError(f"{strange[0]!r} is not in this group", where=f"{where}.{key}")
    return found


def _locality(row: Mapping[str, Any], where: str) -> tuple[Level, ...]:
    short = [Level(kind, row[key]) for key, kind in (("sockets", "socket"), ("numa", "numa")) if key in row]
    if short and "locality" in row:
        raise FormatError("locality and sockets or numa are both given", where=where, expected="one of them")
    return tuple(short) or tuple(
        Level(_kind(level["type"], where), level["count"]) for level in row.get("locality", ())
    )


def _levels(row: Mapping[str, Any], where: str | None) -> tuple[Level, ...]:
    if "racks" in row and "levels" in row:
        raise FormatError("racks and levels are both given", where=where, expected="one of them")
    if "racks" in row:
        return (Level("rack", row["racks"]),)
    return tuple(Level(_kind(level["type"], where), level["count"]) for level in row.get("levels", ()))


def _pools_of(row: Mapping[str, Any], locality: tuple[Level, ...], where: str) -> tuple[PoolSpec, ...]:
    """Return memory, storage and other pools of a node, in this order."""
    found = (
        [PoolSpec(type="memory", amount=_memory(row["memory"], f"{where}.memory"))] if "memory" in row else []
    )
    found += [_pool(item, where) for item in row.get("storage", ())]
    found += [_pool(item, where) for item in row.get("pools", ())]
    places = {"node", *(level.type for level in locality)}
    for pool in found:
        if pool.within not in places:
            raise ClusterError(
                f"these nodes have no {pool.within!r}", where=where, expected=" or ".join(sorted(places))
            )
    return tuple(found)


def _pool(row: Mapping[str, Any], where: str | None) -> PoolSpec:
    for name in row.get("properties", ()):
        check_property(name, where)
    return PoolSpec(
        type=_kind(row["type"], where),
        name=row.get("name"),
        amount=_amount(row.get("size", 1), where),
        count=row.get("count", 1),
        within=row.get("in", "node"),
        path=row.get("path"),
        properties=tuple(row.get("properties", ())),
    )


def _amount(value: int | str, where: str | None) -> Amount:
    found = _AMOUNT.fullmatch(str(value))
    assert found is not None  # the schema has checked it
    if found[2]:
        try:
            unit_of(found[2])
        except RequestError as error:
            raise FormatError(error.message, where=where, expected=error.expected) from None
    return Amount(int(found[1]), found[2])


def _memory(value: int | str, where: str) -> Amount:
    amount = _amount(value, where)
    if amount.unit and not same_dimension(amount.unit, "B"):
        raise FormatError(f"{amount.unit} is not a unit of memory", where=where, expected="B, GB, GiB …")
    return amount


def _kind(name: str, where: str | None) -> str:
    """Return the type of a level or pool, which is not that of the nodes or of the whole."""
    if name in ("node", "cluster"):
        raise FormatError(
            f"a level or pool cannot have the type {name}", where=where, expected="another type"
        )
    return name


def _network(row: Mapping[str, Any] | None, where: str) -> FatTree | Dragonfly | SwitchTree | None:
    if row is None:
        return None
    if row["type"] == "tree":
        return SwitchTree(switches=tuple(_switch(item, where) for item in row["switches"]))
    words = {key: value for key, value in row.items() if key != "type"}
    return FatTree(**words) if row["type"] == "fat-tree" else Dragonfly(**words)


def _switch(row: Mapping[str, Any], where: str) -> Switch:
    hosts, switches = (
        tuple(Hostlist.parse(row.get(key, ""), where=f"{where}.{row['name']}.{key}").expand(MAX_NODES))
        for key in ("hosts", "switches")
    )
    kind = _kind(row.get("type", "switch"), where)
    return Switch(name=row["name"], type=kind, hosts=hosts, switches=switches)


def _power(row: Mapping[str, Any] | None, where: str) -> Power | None:
    if row is None:
        return None
    level, budget = next(iter(row.get("per", {}).items()), (None, None))
    return Power(
        budget=_amount(row["budget"], where) if "budget" in row else None,
        per_level=level,
        per_level_budget=None if budget is None else _amount(budget, where),
        node=_amount(row["node"], where) if "node" in row else None,
    )


def format_recipe(document: Mapping[str, Any]) -> str:
    """Return a recipe document as YAML text, keys in the order they have."""
    import yaml

    text: str = yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=100)
    return text


def recipe_document(recipe: Recipe) -> dict[str, Any]:
    """Return the document of a recipe; keys with their default values are left out.

    >>> from simsched.formats.cluster.recipe import parse_recipe
    >>> document = {"groups": [{"name": "n", "hosts": "n[1-2]", "sockets": 2, "cores": 4, "memory": "8 GB"}]}
    >>> recipe_document(parse_recipe(document)) == document
    True
    """
    document: dict[str, Any] = {} if recipe.name is None else {"name": recipe.name}
    document["groups"] = [_plain_group(group) for group in recipe.groups]
    document |= _arrangement(recipe.levels)
    if recipe.pools:
        document["pools"] = [_plain_pool(pool) for pool in recipe.pools]
    if recipe.network is not None:
        document["network"] = _plain_network(recipe.network)
    if recipe.power is not None:
        document["power"] = _plain_power(recipe.power)
    return document


def _plain_group(group: NodeGroup) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": group.name,
        "hosts": _hosts(group.hosts),
        **_plain_locality(group.locality),
    }
    row |= _plain_units("core", group.cores, group.core_ids) | _plain_units("gpu", group.gpus, group.gpu_ids)
    rest = list(group.pools)
    if rest and rest[0] == PoolSpec(type="memory", amount=rest[0].amount):
        row["memory"] = _plain_amount(rest.pop(0).amount)
    if rest:
        row["pools"] = [_plain_pool(pool) for pool in rest]
    if group.properties:
        row["properties"] = list(group.properties)
    if group.status != "up":
        row["status"] = group.status
    # in the order of the group's hosts: a frozenset has none
    row |= {
        key: _hosts(host for host in group.hosts if host in hosts)
        for key in ("down", "drained")
        if (hosts := getattr(group, key))
    }
    return row | _arrangement(group.levels)


def _plain_units(kind: str, count: int, ids: Idset | None) -> dict[str, Any]:
    if not count:
        return {}
    return {f"{kind}s": count} if ids is None else {f"{kind}_ids": str(ids)}


def _hosts(hosts: Iterable[str]) -> str:
    return str(Hostlist.from_hosts(hosts))


def _plain_locality(levels: tuple[Level, ...]) -> dict[str, Any]:
    kinds = tuple(level.type for level in levels)
    if kinds in {("socket",), ("numa",), ("socket", "numa")}:
        return {{"socket": "sockets", "numa": "numa"}[level.type]: level.count for level in levels}
    return {"locality": _plain_levels(levels)} if levels else {}


def _arrangement(levels: tuple[Level, ...]) -> dict[str, Any]:
    if len(levels) == 1 and levels[0].type == "rack":
        return {"racks": levels[0].count}
    return {"levels": _plain_levels(levels)} if levels else {}


def _plain_levels(levels: tuple[Level, ...]) -> list[dict[str, Any]]:
    return [{"type": level.type, "count": level.count} for level in levels]


def _plain_pool(pool: PoolSpec) -> dict[str, Any]:
    row: dict[str, Any] = {"type": pool.type}
    if pool.name is not None:
        row["name"] = pool.name
    if pool.amount != Amount(1):
        row["size"] = _plain_amount(pool.amount)
    if pool.count != 1:
        row["count"] = pool.count
    if pool.within != "node":
        row["in"] = pool.within
    if pool.path is not None:
        row["path"] = pool.path
    return row | ({"properties": list(pool.properties)} if pool.properties else {})


def _plain_network(network: FatTree | Dragonfly | SwitchTree) -> dict[str, Any]:
    if isinstance(network, SwitchTree):
        return {"type": "tree", "switches": [_plain_switch(switch) for switch in network.switches]}
    kind = "fat-tree" if isinstance(network, FatTree) else "dragonfly"
    return {"type": kind, **{key: value for key, value in asdict(network).items() if value}}


def _plain_switch(switch: Switch) -> dict[str, Any]:
    row: dict[str, Any] = {"name": switch.name}
    if switch.type != "switch":
        row["type"] = switch.type
    return row | {key: _hosts(names) for key in ("hosts", "switches") if (names := getattr(switch, key))}


def _plain_amount(amount: Amount) -> int | str:
    return f"{amount.size} {amount.unit}" if amount.unit else amount.size


def _plain_power(power: Power) -> dict[str, Any]:
    row: dict[str, Any] = {} if power.budget is None else {"budget": _plain_amount(power.budget)}
    if power.per_level is not None and power.per_level_budget is not None:
        row["per"] = {power.per_level: _plain_amount(power.per_level_budget)}
    return row if power.node is None else {**row, "node": _plain_amount(power.node)}
