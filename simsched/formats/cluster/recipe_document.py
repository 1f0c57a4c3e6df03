"""A `Recipe` as a document: the inverse of `recipe.parse_recipe`, for machines that were read elsewhere."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from simsched.formats.cluster.recipe import Amount, FatTree, PoolSpec, SwitchTree
from simsched.formats.rfc.hostlist import Hostlist

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.formats.cluster.recipe import Dragonfly, Level, NodeGroup, Power, Recipe, Switch
    from simsched.formats.rfc.idset import Idset


def recipe_document(recipe: Recipe) -> dict[str, Any]:
    """Return the document of a recipe; keys with their default values are left out.

    >>> from simsched.formats.cluster.recipe import parse_recipe
    >>> document = {"groups": [{"name": "n", "hosts": "n[1-2]", "sockets": 2, "cores": 4, "memory": "8 GB"}]}
    >>> recipe_document(parse_recipe(document)) == document
    True
    """
    document: dict[str, Any] = {} if recipe.name is None else {"name": recipe.name}
    document["groups"] = [_group(group) for group in recipe.groups]
    document |= _arrangement(recipe.levels)
    if recipe.pools:
        document["pools"] = [_pool(pool) for pool in recipe.pools]
    if recipe.network is not None:
        document["network"] = _network(recipe.network)
    if recipe.power is not None:
        document["power"] = _power(recipe.power)
    return document


def _group(group: NodeGroup) -> dict[str, Any]:
    row: dict[str, Any] = {"name": group.name, "hosts": _hosts(group.hosts), **_locality(group.locality)}
    row |= _units("core", group.cores, group.core_ids) | _units("gpu", group.gpus, group.gpu_ids)
    rest = list(group.pools)
    if rest and rest[0] == PoolSpec(type="memory", amount=rest[0].amount):
        row["memory"] = _amount(rest.pop(0).amount)
    if rest:
        row["pools"] = [_pool(pool) for pool in rest]
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


def _units(kind: str, count: int, ids: Idset | None) -> dict[str, Any]:
    if not count:
        return {}
    return {f"{kind}s": count} if ids is None else {f"{kind}_ids": str(ids)}


def _hosts(hosts: Iterable[str]) -> str:
    return str(Hostlist.from_hosts(hosts))


def _locality(levels: tuple[Level, ...]) -> dict[str, Any]:
    kinds = tuple(level.type for level in levels)
    if kinds in {("socket",), ("numa",), ("socket", "numa")}:
        return {{"socket": "sockets", "numa": "numa"}[level.type]: level.count for level in levels}
    return {"locality": _levels(levels)} if levels else {}


def _arrangement(levels: tuple[Level, ...]) -> dict[str, Any]:
    if len(levels) == 1 and levels[0].type == "rack":
        return {"racks": levels[0].count}
    return {"levels": _levels(levels)} if levels else {}


def _levels(levels: tuple[Level, ...]) -> list[dict[str, Any]]:
    return [{"type": level.type, "count": level.count} for level in levels]


def _pool(pool: PoolSpec) -> dict[str, Any]:
    row: dict[str, Any] = {"type": pool.type}
    if pool.name is not None:
        row["name"] = pool.name
    if pool.amount != Amount(1):
        row["size"] = _amount(pool.amount)
    if pool.count != 1:
        row["count"] = pool.count
    if pool.within != "node":
        row["in"] = pool.within
    if pool.path is not None:
        row["path"] = pool.path
    return row | ({"properties": list(pool.properties)} if pool.properties else {})


def _network(network: FatTree | Dragonfly | SwitchTree) -> dict[str, Any]:
    if isinstance(network, SwitchTree):
        return {"type": "tree", "switches": [_switch(switch) for switch in network.switches]}
    kind = "fat-tree" if isinstance(network, FatTree) else "dragonfly"
    return {"type": kind, **{key: value for key, value in asdict(network).items() if value}}


def _switch(switch: Switch) -> dict[str, Any]:
    row: dict[str, Any] = {"name": switch.name}
    if switch.type != "switch":
        row["type"] = switch.type
    return row | {key: _hosts(names) for key in ("hosts", "switches") if (names := getattr(switch, key))}


def _amount(amount: Amount) -> int | str:
    return f"{amount.size} {amount.unit}" if amount.unit else amount.size


def _power(power: Power) -> dict[str, Any]:
    row: dict[str, Any] = {} if power.budget is None else {"budget": _amount(power.budget)}
    if power.per_level is not None and power.per_level_budget is not None:
        row["per"] = {power.per_level: _amount(power.per_level_budget)}
    return row if power.node is None else {**row, "node": _amount(power.node)}
