"""Nodes as groups of a recipe, and the properties that stand for queues."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from simsched.formats.rfc.host_ranges import split_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from simsched.formats.cluster.recipe import NodeGroup

UP, DOWN, DRAINED = "up", "down", "drained"


def grouped(nodes: Iterable[tuple[str, NodeGroup, tuple[str, ...], str]]) -> tuple[NodeGroup, ...]:
    """Return the groups of (host, group without hosts, its properties, status), equal nodes in one group.

    Groups are in the order of their first host, and hosts in the order of the nodes.  A group is named
    after its first host.
    """
    members: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    kinds: dict[int, NodeGroup] = {}
    states: dict[str, str] = {}
    for host, kind, properties, status in nodes:
        # Kinds are shared between nodes, so that their identity is enough and costs nothing to compare.
        kinds[id(kind)] = kind
        members.setdefault((id(kind), properties), []).append(host)
        if status != UP:
            states[host] = status
    names: Counter[str] = Counter()
    found = []
    for (number, properties), hosts in members.items():
        kind = replace(kinds[number], hosts=tuple(hosts), properties=properties)
        found.append(_with_states(replace(kind, name=_name(hosts[0], names)), states))
    return tuple(found)


def _name(host: str, names: Counter[str]) -> str:
    """Return a name for a group that no other has: ``gpu`` for gpu[01-08], then ``gpu-2``."""
    stem = split_name(host).prefix.rstrip("-_.") or host
    names[stem] += 1
    return stem if names[stem] == 1 else f"{stem}-{names[stem]}"


def _with_states(group: NodeGroup, states: Mapping[str, str]) -> NodeGroup:
    """Return a group with the status of its hosts; a status that all of them have is that of the group."""
    down, drained = (
        frozenset(host for host in group.hosts if states.get(host) == status) for status in (DOWN, DRAINED)
    )
    for status, hosts in ((DOWN, down), (DRAINED, drained)):
        if len(hosts) == len(group.hosts):
            return replace(group, status=status, down=frozenset(), drained=frozenset())
    return replace(group, status=UP, down=down, drained=drained)


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
