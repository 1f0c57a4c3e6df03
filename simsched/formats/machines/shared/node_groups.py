"""Nodes as groups of a recipe, and the properties that stand for queues."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from simsched.formats.cluster.recipe import NodeGroup
from simsched.formats.rfc.hostlist import split_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from simsched.formats.cluster.recipe import Level, PoolSpec
    from simsched.formats.rfc.idset import Idset

UP, DOWN, DRAINED = "up", "down", "drained"

NodeOfKind: TypeAlias = "tuple[str, NodeGroup, tuple[str, ...], str]"
"""A host, the group of its kind without hosts and properties, its properties, and its status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node, as most files of sites list them; the fields are those of a `NodeGroup`."""

    host: str
    cores: int = 0
    gpus: int = 0
    core_ids: Idset | None = None
    gpu_ids: Idset | None = None
    locality: tuple[Level, ...] = ()
    pools: tuple[PoolSpec, ...] = ()
    properties: tuple[str, ...] = ()
    status: str = UP


def groups_of(rows: Iterable[NodeRow]) -> tuple[NodeGroup, ...]:
    """Return the nodes as groups, in their order: neighbours that are alike are one group.

    >>> rows = [NodeRow(host=f"n{at}", cores=4, status="down" if at == 1 else "up") for at in range(3)]
    >>> [(group.hosts, sorted(group.down)) for group in groups_of(rows)]
    [(('n0', 'n1', 'n2'), ['n1'])]
    """
    return in_order(_kinds(rows))


def _kinds(rows: Iterable[NodeRow]) -> Iterator[NodeOfKind]:
    """Yield the nodes with their kinds; rows that are alike share one."""
    found: dict[tuple[object, ...], NodeGroup] = {}
    for row in rows:
        key = (row.cores, row.gpus, row.core_ids, row.gpu_ids, row.locality, row.pools)
        kind = found.get(key)
        if kind is None:
            kind = found[key] = NodeGroup(
                name="",
                hosts=(),
                locality=row.locality,
                cores=row.cores,
                gpus=row.gpus,
                core_ids=row.core_ids,
                gpu_ids=row.gpu_ids,
                pools=row.pools,
            )
        yield row.host, kind, row.properties, row.status


def in_order(nodes: Iterable[NodeOfKind]) -> tuple[NodeGroup, ...]:
    """Return the groups of nodes that keep their order, and so their ranks: only neighbours are joined.

    The name of a group is the word before the number of its first host, which several groups may have.
    """
    # Kinds are shared between nodes, so that their identity is enough and costs nothing to compare.
    runs = (list(run) for _, run in groupby(nodes, key=lambda node: (id(node[1]), node[2])))
    return tuple(_group(run, split_name(run[0][0]).prefix or run[0][0]) for run in runs)


def by_kind(nodes: Iterable[NodeOfKind]) -> tuple[NodeGroup, ...]:
    """Return the groups of all nodes that are alike, in the order of the first host of each.

    Each group has a name of its own, and a status that all of its nodes have is that of the group.
    """
    members: dict[tuple[int, tuple[str, ...]], list[NodeOfKind]] = {}
    for node in nodes:
        members.setdefault((id(node[1]), node[2]), []).append(node)
    names: Counter[str] = Counter()
    return tuple(_with_status(_group(alike, _name(alike[0][0], names))) for alike in members.values())


def _group(nodes: Sequence[NodeOfKind], name: str) -> NodeGroup:
    """Return the group of nodes that are alike."""
    _, kind, properties, _ = nodes[0]
    down, drained = (
        frozenset(host for host, _, _, own in nodes if own == status) for status in (DOWN, DRAINED)
    )
    hosts = tuple(node[0] for node in nodes)
    return replace(kind, name=name, hosts=hosts, properties=properties, down=down, drained=drained)


def _name(host: str, names: Counter[str]) -> str:
    """Return a name for a group that no other has: ``gpu`` for gpu[01-08], then ``gpu-2``."""
    stem = split_name(host).prefix.rstrip("-_.") or host
    names[stem] += 1
    return stem if names[stem] == 1 else f"{stem}-{names[stem]}"


def _with_status(group: NodeGroup) -> NodeGroup:
    """Return a group whose status is the one that all of its hosts have."""
    for status, hosts in ((DOWN, group.down), (DRAINED, group.drained)):
        if len(hosts) == len(group.hosts):
            return replace(group, status=status, down=frozenset(), drained=frozenset())
    return group


def property_for(name: str, hosts: Set[str], known: Mapping[str, Set[str]]) -> str:
    """Return the property of a queue: its name, unless other nodes have a property of this name.

    known : property → its nodes.

    >>> property_for("gpu", {"n1"}, {"gpu": {"n1", "n2"}}), property_for("gpu", {"n1"}, {})
    ('partition-gpu', 'gpu')
    """
    found, number = name, 1
    while found in known and known[found] != hosts:
        found = f"partition-{name}" if number == 1 else f"partition-{name}-{number}"
        number += 1
    return found


def differences(known: NodeGroup, other: NodeGroup) -> Iterator[str]:
    """Yield the amounts in which two descriptions of a node differ; an amount that is missing is none."""
    if known is other:
        return
    for kind, first, second in (
        ("cores", known.cores, other.cores),
        ("gpus", known.gpus, other.gpus),
        ("memory", _memory(known), _memory(other)),
    ):
        if first and second and first != second:
            yield f"{second} {kind}, but {first}"


def _memory(group: NodeGroup) -> str:
    return next((f"{p.amount.size} {p.amount.unit}" for p in group.pools if p.type == "memory"), "")
