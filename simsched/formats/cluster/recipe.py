"""Cluster recipes: hardware in a few lines of YAML, as values, read and written.

The JSON Schema ``schemas/cluster-recipe.json`` defines the documents; a `Recipe` is the meaning of one.
The keys are described in docs/clusters.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from simsched.declare.kinds import ValueKind, by_name, kind_of, listed, text
from simsched.declare.table import Declared
from simsched.errors import ClusterError, FormatError, RequestError
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_host, check_property
from simsched.formats.rfc.units import same_dimension, unit_of
from simsched.formats.text.schemas import first_fault

if TYPE_CHECKING:
    from collections.abc import Iterable


MAX_NODES = 1_000_000
_AMOUNT = re.compile(r"(\d+) ?([A-Za-z/]*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount with its unit: ``512 GB``."""

    size: int
    unit: str = ""


def _amount(value: int | str, where: str | None) -> Amount:
    found = _AMOUNT.fullmatch(str(value))
    assert found is not None  # the schema has checked it
    if found[2]:
        try:
            unit_of(found[2])
        except RequestError as error:
            raise FormatError(error.message, where=where, expected=error.expected) from None
    return Amount(int(found[1]), found[2])


def _plain_amount(amount: Amount) -> int | str:
    return f"{amount.size} {amount.unit}" if amount.unit else amount.size


def _kind(name: str, where: str | None) -> str:
    """Return the type of a level or pool, which is not that of the nodes or of the whole."""
    if name in ("node", "cluster"):
        raise FormatError(
            f"a level or pool cannot have the type {name}", where=where, expected="another type"
        )
    return name


def _hosts(hosts: Iterable[str]) -> str:
    return str(Hostlist.from_hosts(hosts))


def _properties(value: Any, where: str) -> tuple[str, ...]:
    for name in value:
        check_property(name, where)
    return tuple(value)


def _expanded(value: Any, where: str) -> tuple[str, ...]:
    return tuple(Hostlist.parse(value, where=where).expand(MAX_NODES))


_AMOUNTS = ValueKind(_amount, write=_plain_amount)
_HOSTS = ValueKind(_expanded, write=_hosts)
_WORD = ValueKind(_kind)


class Level(Declared, frozen=True):
    """A level of the tree: `count` vertices of `type` in each vertex above."""

    type: Annotated[str, _WORD]
    count: int


class PoolSpec(Declared, frozen=True, kw_only=True):
    """`count` pools of one kind, in the node or in each domain of type `within`."""

    type: Annotated[str, _WORD]
    name: str | None = None
    amount: Annotated[Amount, _AMOUNTS] = msgspec.field(name="size", default=Amount(1))
    count: int = 1
    within: str = msgspec.field(name="in", default="node")
    path: Annotated[str | None, text(empty=True)] = None
    properties: Annotated[tuple[str, ...], ValueKind(_properties, write=list)] = ()


_LEVELS, _POOLS = listed(kind_of(Level)), listed(kind_of(PoolSpec))


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


class FatTree(Declared, frozen=True, kw_only=True, rename=None):
    """Leaf switches with their nodes, in pods or not, below spine switches or one fabric."""

    nodes_per_leaf: int
    leaves_per_pod: int | None = None
    spines: int = 0


class Dragonfly(Declared, frozen=True, kw_only=True, rename=None):
    """Groups of routers; the nodes divide evenly over the routers."""

    groups: int
    routers_per_group: int


class Switch(Declared, frozen=True, kw_only=True):
    """A switch with the nodes and the switches below it, by name."""

    name: str
    type: Annotated[str, _WORD] = "switch"
    hosts: Annotated[tuple[str, ...], _HOSTS] = ()
    switches: Annotated[tuple[str, ...], _HOSTS] = ()


class SwitchTree(Declared, frozen=True, kw_only=True):
    """A network whose switches are listed one by one, as in Slurm's topology.conf."""

    switches: tuple[Switch, ...]


NETWORKS: dict[str, Any] = {"fat-tree": FatTree, "dragonfly": Dragonfly, "tree": SwitchTree}


class Power(Declared, frozen=True, kw_only=True):
    """Power budgets of the cluster, of each vertex of one level (level → budget), and of each node."""

    budget: Annotated[Amount | None, _AMOUNTS] = None
    per: Annotated[Mapping[str, Amount], by_name(_AMOUNTS)] = msgspec.field(default_factory=dict)
    node: Annotated[Amount | None, _AMOUNTS] = None


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
    network: Any = dict(document.get("network", {}))
    power = document.get("power")
    return Recipe(
        name=document.get("name"),
        groups=groups,
        levels=_levels(document, where),
        pools=_POOLS.read(document.get("pools", []), _join(where, "pools")),
        network=NETWORKS[network.pop("type")].read(network, _join(where, "network")) if network else None,
        power=None if power is None else Power.read(power, _join(where, "power")),
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
    return NodeGroup(
        name=row["name"],
        hosts=hosts,
        locality=locality,
        cores=cores,
        gpus=gpus,
        core_ids=core_ids,
        gpu_ids=gpu_ids,
        pools=_pools_of(row, locality, where),
        properties=_properties(row.get("properties", ()), f"{where}.properties"),
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
    hosts = _expanded(row["hosts"], f"{where}.hosts")
    if count is not None and count != len(hosts):
        raise ClusterError(f"the count is {count}, but there are {len(hosts)} hosts", where=where)
    return hosts


def _some_hosts(row: Mapping[str, Any], key: str, hosts: tuple[str, ...], where: str) -> frozenset[str]:
    if key not in row:
        return frozenset()
    found = frozenset(_expanded(row[key], f"{where}.{key}"))
    strange = sorted(found.difference(hosts))
    if strange:
        raise ClusterError(f"{strange[0]!r} is not in this group", where=f"{where}.{key}")
    return found


def _locality(row: Mapping[str, Any], where: str) -> tuple[Level, ...]:
    short = [Level(kind, row[key]) for key, kind in (("sockets", "socket"), ("numa", "numa")) if key in row]
    if short and "locality" in row:
        raise FormatError("locality and sockets or numa are both given", where=where, expected="one of them")
    return tuple(short) or _LEVELS.read(row.get("locality", []), f"{where}.locality")


def _levels(row: Mapping[str, Any], where: str | None) -> tuple[Level, ...]:
    if "racks" in row and "levels" in row:
        raise FormatError("racks and levels are both given", where=where, expected="one of them")
    if "racks" in row:
        return (Level("rack", row["racks"]),)
    found: tuple[Level, ...] = _LEVELS.read(row.get("levels", []), _join(where, "levels"))
    return found


def _pools_of(row: Mapping[str, Any], locality: tuple[Level, ...], where: str) -> tuple[PoolSpec, ...]:
    """Return memory, storage and other pools of a node, in this order."""
    found = (
        [PoolSpec(type="memory", amount=_memory(row["memory"], f"{where}.memory"))] if "memory" in row else []
    )
    for key in ("storage", "pools"):
        found += _POOLS.read(row.get(key, []), f"{where}.{key}")
    places = {"node", *(level.type for level in locality)}
    for pool in found:
        if pool.within not in places:
            raise ClusterError(
                f"these nodes have no {pool.within!r}", where=where, expected=" or ".join(sorted(places))
            )
    return tuple(found)


def _memory(value: int | str, where: str) -> Amount:
    amount = _amount(value, where)
    if amount.unit and not same_dimension(amount.unit, "B"):
        raise FormatError(f"{amount.unit} is not a unit of memory", where=where, expected="B, GB, GiB …")
    return amount


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
        document["pools"] = _POOLS.write(recipe.pools)
    if recipe.network is not None:
        kind = next(kind for kind, network in NETWORKS.items() if isinstance(recipe.network, network))
        document["network"] = {"type": kind, **recipe.network.to_dict()}
    if recipe.power is not None:
        document["power"] = recipe.power.to_dict()
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
        row["pools"] = _POOLS.write(rest)
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


def _plain_locality(levels: tuple[Level, ...]) -> dict[str, Any]:
    kinds = tuple(level.type for level in levels)
    if kinds in {("socket",), ("numa",), ("socket", "numa")}:
        return {{"socket": "sockets", "numa": "numa"}[level.type]: level.count for level in levels}
    return {"locality": _LEVELS.write(levels)} if levels else {}


def _arrangement(levels: tuple[Level, ...]) -> dict[str, Any]:
    if len(levels) == 1 and levels[0].type == "rack":
        return {"racks": levels[0].count}
    return {"levels": _LEVELS.write(levels)} if levels else {}
