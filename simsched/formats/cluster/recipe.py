"""Cluster recipes: hardware in a few lines of YAML, as values, read and written.

`RecipeTable` declares the documents, which docs/clusters.md describes; a `Recipe` is the meaning of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from msgspec import field

from simsched.declare.kinds import (
    ANYTHING,
    ValueKind,
    by_name,
    choice,
    kind_of,
    listed,
    matching,
    number,
    quoted,
    sized,
    text,
    whole,
)
from simsched.declare.table import Declared, fields_of, read_keys
from simsched.errors import ClusterError, ConfigError, FormatError, RequestError, SimschedError
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import check_host, check_property
from simsched.formats.rfc.units import same_dimension, unit_of
from simsched.formats.text.diagnostics import Fault

MAX_NODES = 1_000_000
_AMOUNT = re.compile(r"([0-9]{1,15}) ?([A-Za-z/]+)")


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount with its unit: ``512 GB``."""

    size: int
    unit: str = ""


def _amount(value: Any, where: str) -> Amount:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Amount(value)
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        expected = f"a whole number or {_UNITS['description']}"
        raise FormatError(f"{quoted(value)} is not an amount", where=where, expected=expected)
    try:
        unit_of(found[2])
    except RequestError as error:
        raise FormatError(error.message, where=where, expected=error.expected) from None
    return Amount(int(found[1]), found[2])


def _plain_amount(amount: Amount) -> int | str:
    return f"{amount.size} {amount.unit}" if amount.unit else amount.size


def _kind(value: Any, where: str) -> str:
    """Return the type of a level or pool, which is not that of the nodes or of the whole."""
    name: str = _WORD.read(value, where)
    if name in ("node", "cluster"):
        raise FormatError(
            f"a level or pool cannot have the type {name}", where=where, expected="another type"
        )
    return name


def _hosts(hosts: Iterable[str]) -> str:
    return str(Hostlist.from_hosts(hosts))


def _expanded(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | str) or value == "":
        expected = "a hostlist, or a list of them"
        raise FormatError(f"{quoted(value)} is not a hostlist", where=where, expected=expected)
    return tuple(Hostlist.parse(value, where=where).expand(MAX_NODES))


def _ids(value: Any, where: str) -> Idset:
    return Idset.parse(text("an idset", _IDSET).read(value, where), where=where)


def _memory(value: Any, where: str) -> Amount:
    amount = _amount(value, where)
    if amount.unit and not same_dimension(amount.unit, "B"):
        raise FormatError(f"{amount.unit} is not a unit of memory", where=where, expected="B, GB, GiB …")
    return amount


_UNITS = {
    "description": "a whole number and a unit, like 512 GB",
    "type": "string",
    "pattern": "^[0-9]{1,15} ?[A-Za-z/]+$",
}
_AMOUNTS = ValueKind(
    _amount,
    {
        "description": "Units in a pool: a number, or a number and its unit",
        "oneOf": [{"type": "integer", "minimum": 0}, _UNITS],
    },
    _plain_amount,
)
_LISTED = {"oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}}]}
_HOSTS = ValueKind(_expanded, _LISTED, _hosts)
_WORD = matching("^[A-Za-z_][A-Za-z0-9_.-]*$", "a word", "a word of letters, digits, _ . and -")
_TYPE = replace(_WORD, read=_kind)
_IDSET = "an idset, like 0-3,8-11 (default: 0 and up)"
_IDS = ValueKind(_ids, {"description": _IDSET, "type": "string", "minLength": 1}, str)
_NAMES = sized(listed(text(), "a list of names", one_alone=False), 0, different=True)


def _properties(value: Any, where: str) -> tuple[str, ...]:
    names: tuple[str, ...] = _NAMES.read(value, where)
    for name in names:
        check_property(name, where)
    return names


_PROPERTIES = replace(_NAMES, read=_properties)
Count = Annotated[int, whole(1, MAX_NODES)]
MaybeCount = Annotated[int | None, whole(1, MAX_NODES)]
Units = Annotated[int | None, whole(0, MAX_NODES)]


class Table(Declared, frozen=True, kw_only=True, rename=None):
    """A table of a recipe: a key without a value is a fault."""

    nullable = False


class Level(Table, frozen=True, kw_only=False):
    """A level of the tree: `count` vertices of `type` in each vertex above."""

    type: Annotated[str, _TYPE]
    count: Count


class PoolSpec(Table, frozen=True, kw_only=True):
    """`count` pools of one kind, in the node or in each domain of type `within`.

    name : of the pool, or of its kind if there are several.
    within : node (default), or the type of a locality.
    """

    type: Annotated[str, _TYPE]
    name: str | None = None
    amount: Annotated[Amount, _AMOUNTS] = field(name="size", default=Amount(1))
    count: Count = 1
    within: Annotated[str, _WORD] = field(name="in", default="node")
    path: Annotated[str | None, text(empty=True)] = None
    properties: Annotated[tuple[str, ...], _PROPERTIES] = ()


def _tables(table: type[Table]) -> ValueKind:
    return listed(kind_of(table), expected="a list", one_alone=False)


Levels = Annotated[tuple[Level, ...] | None, _tables(Level)]
Pools = Annotated[tuple[PoolSpec, ...], _tables(PoolSpec)]


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


class FatTree(Table, frozen=True, kw_only=True):
    """Leaf switches with their nodes, in pods or not, below spine switches or one fabric."""

    type: Literal["fat-tree"] = "fat-tree"
    nodes_per_leaf: Count
    leaves_per_pod: MaybeCount = None
    spines: Count = 0


class Dragonfly(Table, frozen=True, kw_only=True):
    """Groups of routers; the nodes divide evenly over the routers."""

    type: Literal["dragonfly"] = "dragonfly"
    groups: Count
    routers_per_group: Count


class Switch(Table, frozen=True, kw_only=True):
    """A switch with the nodes and the switches below it, by name.

    hosts : the nodes that are joined to this switch.
    switches : the names of the switches below this one.
    """

    name: str
    type: Annotated[str, _TYPE] = "switch"
    hosts: Annotated[tuple[str, ...], _HOSTS] = ()
    switches: Annotated[tuple[str, ...], _HOSTS] = ()


class SwitchTree(Table, frozen=True, kw_only=True):
    """A network whose switches are listed one by one, as in Slurm's topology.conf."""

    type: Literal["tree"] = "tree"
    switches: Annotated[tuple[Switch, ...], sized(_tables(Switch))]


NETWORKS: dict[str, type[Table]] = {"fat-tree": FatTree, "dragonfly": Dragonfly, "tree": SwitchTree}


_KEYS_OF_NETWORKS = {key: ANYTHING for table in NETWORKS.values() for key in fields_of(table)}
_KEYS_OF_NETWORKS["type"] = choice(*NETWORKS)


def _network(value: Any, where: str) -> Table:
    given = read_keys(value, where, _KEYS_OF_NETWORKS)
    if "type" not in given:
        raise FormatError("the key 'type' is missing", where=where, expected=" or ".join(NETWORKS))
    return NETWORKS[given["type"]].read(value, where)


def _network_schema(kind: str, table: type[Table]) -> dict[str, Any]:
    own = table.schema()
    return {**own, "title": kind.replace("-", " "), "required": ["type", *own["required"]]}


_NETWORK = ValueKind(
    _network,
    lambda: {"oneOf": [_network_schema(*item) for item in NETWORKS.items()]},
    lambda network: {"type": network.type, **network.to_dict()},
)


class Power(Table, frozen=True, kw_only=True):
    """Power budgets of the cluster, of each vertex of one level (level → budget), and of each node.

    budget : of the whole cluster.
    per : one distribution unit for each vertex of a level, with its budget.
    node : the budget of each node.
    """

    budget: Annotated[Amount | None, _AMOUNTS] = None
    per: Annotated[Mapping[str, Amount], sized(by_name(_AMOUNTS), 1, 1)] = field(default_factory=dict)
    node: Annotated[Amount | None, _AMOUNTS] = None


class GroupTable(Table, frozen=True, kw_only=True):
    """A group of a recipe.

    numa : NUMA domains in each socket, or in the node.
    """

    name: str
    count: MaybeCount = None
    hosts: Annotated[tuple[str, ...] | None, _HOSTS] = None
    sockets: MaybeCount = None
    numa: MaybeCount = None
    locality: Levels = None
    cores: Units = None
    core_ids: Annotated[Idset | None, _IDS] = None
    gpus: Units = None
    gpu_ids: Annotated[Idset | None, _IDS] = None
    memory: Annotated[Amount | None, replace(_AMOUNTS, read=_memory)] = None
    storage: Pools = ()
    pools: Pools = ()
    properties: Annotated[tuple[str, ...], _PROPERTIES] = ()
    status: Annotated[str, choice("up", "down", "drained")] = "up"
    down: Annotated[tuple[str, ...], _HOSTS] = ()
    drained: Annotated[tuple[str, ...], _HOSTS] = ()
    racks: MaybeCount = None
    levels: Levels = None


_VERSION = ValueKind(number(1, 1, "the version of recipes", "1").read, {"const": 1})


class RecipeTable(Table, frozen=True, kw_only=True):
    """A cluster recipe: groups of like nodes, how they are arranged, network and power.

    racks : short for levels: [{type: rack, count: N}].
    levels : levels between the cluster and its nodes, outermost first; count is how many in each one above.
    pools : pools of the whole cluster.
    """

    join = ": "

    version: Annotated[int | None, _VERSION] = None
    name: str | None = None
    description: Annotated[str | None, text(empty=True)] = None
    groups: Annotated[tuple[GroupTable, ...], sized(_tables(GroupTable))]
    racks: MaybeCount = None
    levels: Levels = None
    pools: Pools = ()
    network: Annotated[FatTree | Dragonfly | SwitchTree | None, _NETWORK] = None
    power: Power | None = None


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
        with the path of a key or value that is not valid, or of a property that RFC 20 forbids.
    ClusterError
        if counts contradict each other: hosts and count, cores that do not divide over sockets …

    >>> parse_recipe({"groups": [{"name": "n", "count": 2, "cores": 4}]}).groups[0].hosts
    ('n0', 'n1')
    """
    try:
        table = RecipeTable.read(document, "")
    except SimschedError as error:
        found = error.retold(lambda one: Fault.of(one).error() if isinstance(one, ConfigError) else one)
        raise (found.at(where) if where else found) from None
    groups = tuple(_group(one, _join(where, f"groups[{at}]")) for at, one in enumerate(table.groups))
    total = sum(len(group.hosts) for group in groups)
    if total > MAX_NODES:
        raise ClusterError(f"{total:,} nodes are too many", where=where, expected=f"at most {MAX_NODES:,}")
    return Recipe(
        name=table.name,
        groups=groups,
        levels=_levels(table, where),
        pools=table.pools,
        network=table.network,
        power=table.power,
    )


def is_recipe(document: Any) -> bool:
    """Return whether a document looks like a cluster recipe."""
    return isinstance(document, dict) and "groups" in document


def _join(where: str | None, place: str) -> str:
    return f"{where}: {place}" if where else place


def _group(table: GroupTable, where: str) -> NodeGroup:
    hosts = _hosts_of(table, where)
    locality = _locality(table, where)
    cores, gpus = _units(table, "core", where), _units(table, "gpu", where)
    domains = 1
    for level in locality:
        domains *= level.count
    if cores % domains:
        raise ClusterError(
            f"{cores} cores do not divide over {domains} {locality[-1].type}s", where=f"{where}.cores"
        )
    for key in ("down", "drained"):
        strange = sorted(set(getattr(table, key)).difference(hosts))
        if strange:
            raise ClusterError(f"{strange[0]!r} is not in this group", where=f"{where}.{key}")
    return NodeGroup(
        name=table.name,
        hosts=hosts,
        locality=locality,
        cores=cores,
        gpus=gpus,
        core_ids=table.core_ids,
        gpu_ids=table.gpu_ids,
        pools=_pools_of(table, locality, where),
        properties=table.properties,
        status=table.status,
        down=frozenset(table.down),
        drained=frozenset(table.drained),
        levels=_levels(table, where),
    )


def _units(table: GroupTable, kind: str, where: str) -> int:
    """Return the number of cores or gpus of a node."""
    count: int | None = getattr(table, f"{kind}s")
    ids: Idset | None = getattr(table, f"{kind}_ids")
    if ids is None:
        return count or 0
    place = f"{where}.{kind}_ids"
    if count is not None and count != len(ids):
        raise ClusterError(f"there are {len(ids)} ids, but {count} {kind}s", where=place)
    if len(ids) > MAX_NODES:
        raise FormatError(f"{len(ids):,} {kind}s in a node", where=place, expected=f"at most {MAX_NODES:,}")
    return len(ids)


def _hosts_of(table: GroupTable, where: str) -> tuple[str, ...]:
    """Return the hosts of a group: as written, or its name and a number."""
    count, hosts = table.count, table.hosts
    if hosts is None:
        if count is None:
            raise FormatError("neither count nor hosts is given", where=where, expected="one of them")
        check_host(table.name, f"{where}.name")
        return tuple(f"{table.name}{number}" for number in range(count))
    if count is not None and count != len(hosts):
        raise ClusterError(f"the count is {count}, but there are {len(hosts)} hosts", where=where)
    return hosts


def _locality(table: GroupTable, where: str) -> tuple[Level, ...]:
    given = {"socket": table.sockets, "numa": table.numa}
    short = tuple(Level(kind, count) for kind, count in given.items() if count is not None)
    if short and table.locality is not None:
        raise FormatError("locality and sockets or numa are both given", where=where, expected="one of them")
    return short or table.locality or ()


def _levels(table: GroupTable | RecipeTable, where: str | None) -> tuple[Level, ...]:
    if table.racks is None:
        return table.levels or ()
    if table.levels is not None:
        raise FormatError("racks and levels are both given", where=where, expected="one of them")
    return (Level("rack", table.racks),)


def _pools_of(table: GroupTable, locality: tuple[Level, ...], where: str) -> tuple[PoolSpec, ...]:
    """Return memory, storage and other pools of a node, in this order."""
    memory = () if table.memory is None else (PoolSpec(type="memory", amount=table.memory),)
    found = (*memory, *table.storage, *table.pools)
    places = {"node", *(level.type for level in locality)}
    for pool in found:
        if pool.within not in places:
            raise ClusterError(
                f"these nodes have no {pool.within!r}", where=where, expected=" or ".join(sorted(places))
            )
    return found


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
    table = RecipeTable(
        name=recipe.name,
        groups=tuple(map(_table_of, recipe.groups)),
        pools=recipe.pools,
        network=recipe.network,
        power=recipe.power,
        **_arrangement(recipe.levels),
    )
    return table.to_dict()


def _table_of(group: NodeGroup) -> GroupTable:
    rest = group.pools
    is_memory = bool(rest) and rest[0] == PoolSpec(type="memory", amount=rest[0].amount)
    kinds = tuple(level.type for level in group.locality)
    locality: dict[str, Any] = {"locality": group.locality or None}
    if kinds in {("socket",), ("numa",), ("socket", "numa")}:
        locality = {{"socket": "sockets"}.get(level.type, "numa"): level.count for level in group.locality}
    return GroupTable(
        name=group.name,
        hosts=group.hosts,
        **locality,
        cores=group.cores if group.cores and group.core_ids is None else None,
        core_ids=group.core_ids if group.cores else None,
        gpus=group.gpus if group.gpus and group.gpu_ids is None else None,
        gpu_ids=group.gpu_ids if group.gpus else None,
        memory=rest[0].amount if is_memory else None,
        pools=rest[1:] if is_memory else rest,
        properties=group.properties,
        status=group.status,
        # in the order of the group's hosts: a frozenset has none
        down=tuple(host for host in group.hosts if host in group.down),
        drained=tuple(host for host in group.hosts if host in group.drained),
        **_arrangement(group.levels),
    )


def _arrangement(levels: tuple[Level, ...]) -> dict[str, Any]:
    if len(levels) == 1 and levels[0].type == "rack":
        return {"racks": levels[0].count}
    return {"levels": levels or None}
