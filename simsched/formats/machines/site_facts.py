"""`SiteFacts`, which the readers of all tools fill, and its nodes: joined, grouped, with named queues."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from simsched.errors import ClusterError, FormatError, clip
from simsched.formats.cluster.recipe import MAX_NODES, NodeGroup, PoolSpec, SwitchTree
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts, split_name
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.names import FORBIDDEN, check_host, check_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from simsched.formats.machines.description import NoteCollector


UP, DOWN, DRAINED = "up", "down", "drained"
_FORBIDDEN = re.compile(f"[{re.escape(FORBIDDEN)}\\s]")


@dataclass(slots=True)
class Node:
    """One node of a site.

    kind : its inside, a group without hosts and properties; equal nodes may share it.
    weight : nodes of a lower one come first.
    queues : the queues that its own record names.
    cpus_per_core : the CPUs that the site's scheduler counts for one core.
    """

    kind: NodeGroup
    properties: tuple[str, ...] = ()
    status: str = UP
    weight: int = 1
    queues: tuple[str, ...] = ()
    cpus_per_core: int = 1


@dataclass(slots=True, kw_only=True)
class SiteFacts:
    """The facts in one file of a site, or in all files of one tool, before those of others are joined.

    Attributes
    ----------
    form : the name of the format.
    notes : what was assumed, left out or not understood so far.
    nodes : host → node, in the order of ranks.
    config : a part of a configuration document; a queue may have ``hosts`` in place of ``requires``.
    excluded : hosts of `nodes`, and perhaps others, that are withheld from scheduling.
    cpus_per_core : as in `MachineDescription`.
    name, pools, network : those of the recipe.
    """

    form: str
    notes: NoteCollector
    nodes: Mapping[str, Node] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    excluded: Sequence[str] = ()
    cpus_per_core: int = 1
    name: str | None = None
    pools: tuple[PoolSpec, ...] = ()
    network: SwitchTree | None = None


def node_of(properties: Iterable[str] = (), status: str = UP, **inside: Any) -> Node:
    """Return a node whose inside has these fields of a `NodeGroup`."""
    return Node(NodeGroup(name="", hosts=(), **inside), tuple(properties), status)


def grouped(nodes: Mapping[str, Node]) -> tuple[NodeGroup, ...]:
    """Return the nodes as groups in their order, which is that of ranks: neighbours that are alike are one.

    Each group has a name of its own, and a status that all of its nodes have is that of the group.

    >>> nodes = {f"n{at}": node_of(cores=4, status="down" if at == 1 else "up") for at in range(3)}
    >>> [(group.name, group.hosts, sorted(group.down)) for group in grouped(nodes)]
    [('n', ('n0', 'n1', 'n2'), ['n1'])]
    >>> unlike = {"n-2-1": node_of(), "n1": node_of(cores=1), "n2": node_of(cores=2)}
    >>> [group.name for group in grouped(unlike)]
    ['n-2', 'n', 'n-3']
    """
    kinds: dict[NodeGroup, int] = {}
    places: dict[int, int] = {}  # most nodes share their kind, so that its identity is enough

    def alike(item: tuple[str, Node]) -> tuple[int, tuple[str, ...]]:
        kind = item[1].kind
        if id(kind) not in places:
            places[id(kind)] = kinds.setdefault(kind, len(kinds))
        return places[id(kind)], item[1].properties

    names: Counter[str] = Counter()
    return tuple(_group(dict(run), names) for _, run in groupby(nodes.items(), key=alike))


def _group(nodes: Mapping[str, Node], names: Counter[str]) -> NodeGroup:
    first = next(iter(nodes))
    name = stem = split_name(first).prefix.rstrip("-_.") or first
    while names[name]:  # gpu for gpu[01-08], then gpu-2
        names[stem] += 1
        name = f"{stem}-{names[stem]}"
    names[name] += 1
    states: dict[str, list[str]] = {}
    for host, node in nodes.items():
        states.setdefault(node.status, []).append(host)
    status = next(iter(states)) if len(states) == 1 else UP
    down, drained = (frozenset(states.get(one, ()) if len(states) > 1 else ()) for one in (DOWN, DRAINED))
    return replace(
        nodes[first].kind,
        name=name,
        hosts=tuple(nodes),
        properties=nodes[first].properties,
        status=status,
        down=down,
        drained=drained,
    )


def joined(lists: Iterable[tuple[str, Mapping[str, Node]]], notes: NoteCollector) -> dict[str, Node]:
    """Return the nodes of several lists (format, nodes): those of the first, and of others of its format.

    A list of another format may leave out nodes, or name more than the machine has.  A node has the
    properties of all, and of two states the first that is not up counts.  Amounts that differ are noted.
    """
    found: dict[str, Node] = {}
    first = None
    for form, nodes in lists:
        first = form if first is None else first
        unknown: list[str] = []
        unlike: dict[str, list[str]] = {}
        for host, node in nodes.items():
            known = found.get(host)
            if known is not None:
                known.properties = tuple(dict.fromkeys((*known.properties, *node.properties)))
                known.queues = tuple(dict.fromkeys((*known.queues, *node.queues)))
                known.status = node.status if known.status == UP else known.status
                for difference in differences(known.kind, node.kind):
                    unlike.setdefault(difference, []).append(host)
            elif form == first:
                found[host] = replace(node)
            elif node.status == UP:  # a list leaves out nodes that are excluded
                unknown.append(host)
        if unknown:
            notes.fault(f"nodes of {form} that {first} does not have: {clip(encode_hosts(unknown))}")
        for difference, hosts in unlike.items():
            notes.fault(f"{encode_hosts(hosts)}: {difference} in {first}, which counts", form)
    return found


def property_name(text: str) -> str:
    """Return a name as a property after RFC 20: characters that it forbids become ``_``.

    >>> property_name("bigmem|ib")
    'bigmem_ib'
    """
    return _FORBIDDEN.sub("_", text)


def name_queues(
    members: Mapping[str, tuple[Sequence[str], str]], nodes: Mapping[str, Node], notes: NoteCollector
) -> dict[str, str]:
    """Give the nodes of each queue a property, and return queue → property.

    It is the name of the queue, unless other nodes have a property of this name; another name is noted.

    members : queue → its nodes, and its place.

    >>> from simsched.formats.machines.description import NoteCollector
    >>> nodes = {"n1": node_of(["gpu"]), "n2": node_of(["gpu"])}
    >>> name_queues({"gpu": (["n1"], "")}, nodes, NoteCollector()), nodes["n1"].properties
    ({'gpu': 'partition-gpu'}, ('partition-gpu', 'gpu'))
    """
    known: dict[str, set[str]] = {}
    for host, node in nodes.items():
        for name in node.properties:
            known.setdefault(name, set()).add(host)
    found: dict[str, str] = {}
    own: dict[str, list[str]] = {}
    for queue, (hosts, where) in members.items():
        plain = word = property_name(queue)
        number = 1
        while word in known and known[word] != set(hosts):
            word = f"partition-{plain}" if number == 1 else f"partition-{plain}-{number}"
            number += 1
        known[word], found[queue] = set(hosts), word
        if word != queue:
            notes.assumed(f"the property of partition {clip(queue)} is {word}", where)
        for host in hosts:
            own.setdefault(host, []).append(word)
    for host, words in own.items():
        if host in nodes:
            nodes[host].properties = tuple(dict.fromkeys((*words, *nodes[host].properties)))
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
