"""Nodes as groups of a recipe: checked values of nodes, and the properties that stand for queues."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from simsched.errors import ClusterError, FormatError, clip
from simsched.formats.cluster.recipe import MAX_NODES, NodeGroup, Recipe
from simsched.formats.machines.description import MachineDescription
from simsched.formats.rfc.hostlist import Hostlist, split_name
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import FORBIDDEN, check_host, check_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from simsched.formats.cluster.recipe import Level, PoolSpec
    from simsched.formats.machines.description import NoteCollector


UP, DOWN, DRAINED = "up", "down", "drained"
_FORBIDDEN = re.compile(f"[{re.escape(FORBIDDEN)}\\s]")

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


def description_of(
    rows: Iterable[NodeRow],
    notes: NoteCollector,
    form: str,
    config: Mapping[str, Any] | None = None,
    excluded: tuple[str, ...] = (),
) -> MachineDescription:
    """Return the description of these nodes, which may be none, and of a configuration."""
    recipe = Recipe(name=None, groups=groups_of(rows))
    return MachineDescription(
        recipe=recipe, config=config or {}, notes=notes.notes(), format=form, excluded=excluded
    )


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


def property_name(text: str) -> str:
    """Return a name as a property after RFC 20: characters that it forbids become ``_``.

    >>> property_name("bigmem|ib")
    'bigmem_ib'
    """
    return _FORBIDDEN.sub("_", text)


def property_for(
    queue: str, hosts: set[str], known: dict[str, set[str]], notes: NoteCollector, where: str = ""
) -> str:
    """Return the property of a queue: its name, unless other nodes have a property of this name.

    known : property → its nodes, to which those of the queue are added.  Another name than its own is noted.

    >>> from simsched.formats.machines.description import NoteCollector
    >>> property_for("gpu", {"n1"}, {"gpu": {"n1", "n2"}}, NoteCollector())
    'partition-gpu'
    """
    name = property_name(queue)
    found, number = name, 1
    while found in known and known[found] != hosts:
        found = f"partition-{name}" if number == 1 else f"partition-{name}-{number}"
        number += 1
    known[found] = hosts
    if found != queue:
        notes.assumed(f"the property of partition {clip(queue)} is {found}", where)
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


MAX_UNITS = 1_000_000
"""The most cores or gpus of a node, as in a recipe."""


def hosts_in(text: str, where: str, notes: NoteCollector) -> list[str]:
    """Return the names of a hostlist; an expression that is not one is a fault, and is ignored."""
    return notes.tried(lambda: Hostlist.parse(text, where=where).expand(MAX_NODES), [], where)


def idset_in(value: object, where: str, notes: NoteCollector) -> Idset:
    """Return the ids of an idset; a value that is not one is a fault, and means no ids."""
    if isinstance(value, str):
        return notes.tried(lambda: Idset.parse(value, where=where), Idset(()))
    notes.fault(f"{clip(repr(value))} is not an idset", where, 'a text such as "0-47"')
    return Idset(())


def usable_host(name: str, where: str, notes: NoteCollector) -> bool:
    """Return whether a hostlist can hold this name; a name that it cannot hold is a fault."""
    return _passes(check_host, name, where, notes)


def usable_properties(names: Iterable[str], where: str, notes: NoteCollector) -> tuple[str, ...]:
    """Return the names, each once, that can be properties of nodes (RFC 20); others are faults."""
    return tuple(name for name in dict.fromkeys(names) if _passes(check_property, name, where, notes))


def _passes(check: Callable[[str, str], object], name: str, where: str, notes: NoteCollector) -> bool:
    try:
        check(name, where)
    except (ClusterError, FormatError) as error:
        notes.error(error)
        return False
    return True


def named_ids(ids: Idset) -> Idset | None:
    """Return ids, or None where they are 0, 1, 2 … as a recipe counts them.

    >>> named_ids(Idset.parse("0-3")), str(named_ids(Idset.parse("2-3")))
    (None, '2-3')
    """
    return None if ids == Idset.from_range(0, len(ids) - 1) else ids
