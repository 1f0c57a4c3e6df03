"""Several descriptions of one site as one: nodes from one file, partitions from another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.cluster.recipe import MAX_NODES, NodeGroup, Recipe
from simsched.formats.machines.description import MachineDescription, Note
from simsched.formats.machines.slurm.node_groups import DOWN, DRAINED, UP, grouped, property_for
from simsched.formats.machines.slurm.node_records import property_name
from simsched.formats.machines.slurm.slurm_records import EVERY_NODE, UNSTATED_LIMITS
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


def merge(descriptions: Iterable[MachineDescription]) -> MachineDescription:
    """Return the machine and the queues of several files of one site.

    The first description of a node that has cores counts for its inside; the node has the properties of
    all, and is down or drained if one says so.  Options of the configuration, and keys of a queue, are
    those of the first that has them.  Queues with ``hosts`` become queues of a property, as those of one
    file are.

    Raises `FormatError` without a description.
    """
    parts = list(descriptions)
    if not parts:
        raise FormatError("there is no description to merge", expected="at least one file")
    if len(parts) == 1:
        return parts[0]
    parts.sort(key=lambda part: not any(group.cores for group in part.recipe.groups))
    notes = [note for part in parts for note in lasting_notes(part, parts)]
    config = _joined_config([part.config for part in parts])
    if any(part.recipe.levels or any(group.levels for group in part.recipe.groups) for part in parts):
        groups = _as_they_are(parts)  # another order of the nodes would change their places in the levels
    else:
        nodes = _joined_nodes(parts, notes)
        if nodes:
            name_properties(config.get("queues", {}), nodes, notes)
        groups = grouped((host, *row) for host, row in nodes.items())
    recipe = Recipe(
        name=next((part.recipe.name for part in parts if part.recipe.name), None),
        groups=groups,
        levels=next((part.recipe.levels for part in parts if part.recipe.levels), ()),
        pools=next((part.recipe.pools for part in parts if part.recipe.pools), ()),
        network=next((part.recipe.network for part in parts if part.recipe.network), None),
        power=next((part.recipe.power for part in parts if part.recipe.power), None),
    )
    described = [part for part in parts if part.recipe.groups] or parts
    return MachineDescription(
        recipe=recipe,
        config=config,
        notes=tuple(dict.fromkeys(notes)),
        format=" + ".join(dict.fromkeys(part.format for part in parts if part.format)),
        cpus_per_core=described[0].cpus_per_core,
    )


NodeOfGroup = tuple[NodeGroup, tuple[str, ...], str]
"""The group of a node without hosts, the properties of the node, and its status."""


def lasting_notes(part: MachineDescription, parts: Sequence[MachineDescription]) -> Iterator[Note]:
    """Yield the notes of a description that are still true beside the others, which may state limits."""
    others = {name for other in parts if other is not part for name in other.config.get("queues", {})}
    stated = others.issuperset(part.config.get("queues", {}))
    for note in part.notes:
        if not (stated and note.text.startswith(UNSTATED_LIMITS)):
            yield note


def _joined_config(configs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the keys of all configurations; queues of one name are joined key by key."""
    found: dict[str, Any] = {}
    queues: dict[str, dict[str, Any]] = {}
    for config in configs:
        for key, value in config.items():
            found.setdefault(key, value)
        for name, queue in config.get("queues", {}).items():
            queues[name] = {**queue, **queues.get(name, {})}
    if queues:
        found["queues"] = queues
    return found


def _as_they_are(parts: Sequence[MachineDescription]) -> tuple[NodeGroup, ...]:
    """Return all groups, without the nodes that an earlier group has."""
    seen: set[str] = set()
    found = []
    for part in parts:
        for group in part.recipe.groups:
            hosts = tuple(host for host in group.hosts if host not in seen)
            if hosts:
                down, drained = group.down.intersection(hosts), group.drained.intersection(hosts)
                found.append(replace(group, hosts=hosts, down=down, drained=drained))
        seen.update(host for group in part.recipe.groups for host in group.hosts)
    return tuple(found)


def _joined_nodes(parts: Sequence[MachineDescription], notes: list[Note]) -> dict[str, NodeOfGroup]:
    """Return the nodes of all descriptions, in the order of their first occurrence."""
    kinds: dict[NodeGroup, NodeGroup] = {}
    found: dict[str, NodeOfGroup] = {}
    for part in parts:
        added = len(found)
        for group in part.recipe.groups:
            bare = replace(
                group, name="", hosts=(), properties=(), status=UP, down=frozenset(), drained=frozenset()
            )
            kind = kinds.setdefault(bare, bare)
            for host in group.hosts:
                status = DRAINED if host in group.drained else DOWN if host in group.down else group.status
                before = found.get(host)
                if before is None:
                    found[host] = (kind, group.properties, status)
                    continue
                properties = before[1]
                if properties != group.properties:
                    properties = tuple(dict.fromkeys((*properties, *group.properties)))
                found[host] = (before[0], properties, status if before[2] == UP else before[2])
        if 0 < added < len(found) and part.format != parts[0].format:
            more = len(found) - added
            text = f"nodes of {part.format} that {parts[0].format} does not have are added: {more:,}"
            notes.append(Note("assumed", text))
    return found


def name_properties(
    queues: dict[str, dict[str, Any]], nodes: dict[str, NodeOfGroup], notes: list[Note]
) -> None:
    """Give the nodes of each queue with ``hosts`` a property, which the queue requires instead."""
    known: dict[str, set[str]] = {}
    for host, (_, properties, _) in nodes.items():
        for name in properties:
            known.setdefault(name, set()).add(host)
    for name, queue in queues.items():
        listed = queue.pop("hosts", None)
        if listed is None:
            continue
        hosts = list(nodes) if listed == EVERY_NODE else Hostlist.parse(listed).expand(MAX_NODES)
        unknown = [host for host in hosts if host not in nodes]
        if unknown:
            text = f"partition {clip(name)}: there is no node {clip(encode_hosts(unknown))}"
            notes.append(Note("fault", text))
        own = {host for host in hosts if host in nodes}
        word = property_for(property_name(name), own, known)
        if word != name:
            notes.append(Note("assumed", f"the property of partition {clip(name)} is {word}"))
        known[word] = own
        queue["requires"] = [word]
        for host in own:
            kind, properties, status = nodes[host]
            if word not in properties:
                nodes[host] = (kind, (*properties, word), status)
