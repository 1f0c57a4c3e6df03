"""Several descriptions of one site as one: nodes from one file, partitions from another."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.cluster.recipe import MAX_NODES, NodeGroup, Recipe
from simsched.formats.machines.description import MachineDescription
from simsched.formats.machines.shared.node_groups import (
    DOWN,
    DRAINED,
    UP,
    differences,
    in_order,
    property_for,
)
from simsched.formats.machines.shared.note_collector import NoteCollector
from simsched.formats.machines.slurm.node_records import property_name
from simsched.formats.machines.slurm.notation import EVERY_NODE
from simsched.formats.machines.slurm.reservation_lines import joined
from simsched.formats.machines.slurm.understanding import describe
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def merge(
    descriptions: Iterable[MachineDescription], notes: NoteCollector | None = None
) -> MachineDescription:
    """Return the machine and the queues of several files of one site.

    The first description with cores counts for the nodes; a file of the same format adds nodes.  Any other
    adds the properties and states of nodes that are known: a list may leave out nodes, or name more than
    the machine has.  A node has the properties of all, and is down or drained if one says so.  Of a value
    of the configuration, the first counts.  Queues with ``hosts`` become queues of a property, as those of
    one file are.

    notes : receives the amounts in which descriptions of a node differ, and nodes that are left aside; its
        notes are the last of the result.

    Raises `FormatError` without a description, and under strict `notes` where descriptions differ.
    """
    given = list(descriptions)
    notes = NoteCollector() if notes is None else notes
    slurm = [records for part in given for records in part.records]
    if len(slurm) > 1:  # Slurm's files are joined first and understood together
        first = next(number for number, part in enumerate(given) if part.records)
        others = [part for part in given[first + 1 :] if not part.records]
        given = [*given[:first], describe(slurm, strict=notes.strict), *others]
    if not given:
        raise FormatError("there is no description to merge", expected="at least one file")
    if len(given) == 1:
        more = notes.notes()
        return replace(given[0], notes=(*given[0].notes, *more)) if more else given[0]
    parts = sorted(given, key=lambda part: not any(group.cores for group in part.recipe.groups))
    config: dict[str, Any] = {}
    for part in parts:
        config = _joined(config, part.config)
    reserved = joined(parts)
    if reserved:
        config["reservations"] = reserved
    limits = [table for part in parts for table in part.config.get("limits", ())]
    if limits:
        config["limits"] = limits
    if any(part.recipe.levels or any(group.levels for group in part.recipe.groups) for part in parts):
        groups = _as_they_are(parts)  # groups that are divided would change the places in their levels
    else:
        nodes = _joined_nodes(parts, notes)
        if nodes:
            config = deepcopy(config)  # its queues are those of the parts
            _name_properties(config.get("queues", {}), nodes, notes)
        groups = in_order((host, *node) for host, node in nodes.items())
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
        notes=tuple(dict.fromkeys((*(note for part in given for note in part.notes), *notes.notes()))),
        format=", ".join(dict.fromkeys(part.format for part in parts if part.format)),
        cpus_per_core=described[0].cpus_per_core,
        records=tuple(slurm),
    )


_Node = tuple[NodeGroup, tuple[str, ...], str]
"""The kind of a node, its properties and its status, as in `NodeOfKind`."""


def _joined(first: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return two configurations as one, key by key; of a value in both, the first counts."""
    both = dict(more)
    for key, value in first.items():
        inner = both.get(key)
        both[key] = _joined(value, inner) if isinstance(value, dict) and isinstance(inner, dict) else value
    return both


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


def _joined_nodes(parts: Sequence[MachineDescription], notes: NoteCollector) -> dict[str, _Node]:
    """Return the nodes of the first description, with those that others of its format add."""
    kinds: dict[NodeGroup, NodeGroup] = {}
    found: dict[str, _Node] = {}
    first = parts[0].format
    for part in parts:
        adds = part is parts[0] or part.format == first
        unknown: list[str] = []
        unlike: dict[str, list[str]] = {}
        for group in part.recipe.groups:
            bare = replace(
                group, name="", hosts=(), properties=(), status=UP, down=frozenset(), drained=frozenset()
            )
            kind = kinds.setdefault(bare, bare)
            for host in group.hosts:
                status = DRAINED if host in group.drained else DOWN if host in group.down else group.status
                before = found.get(host)
                if before is not None:
                    found[host] = _added(before, group.properties, status)
                    for difference in differences(before[0], kind):
                        unlike.setdefault(difference, []).append(host)
                elif adds:
                    found[host] = (kind, group.properties, status)
                elif status == UP:  # a list leaves out nodes that are excluded
                    unknown.append(host)
        if unknown:
            shown = clip(encode_hosts(unknown))
            notes.fault(f"nodes of {part.format} that {first} does not have: {shown}")
        for difference, hosts in unlike.items():
            notes.fault(f"{encode_hosts(hosts)}: {difference} in {first}, which counts", part.format)
    return found


def _added(before: _Node, properties: tuple[str, ...], status: str) -> _Node:
    """Return a node with more properties, and with a status that only counts if the node is up."""
    kind, known, earlier = before
    if properties != known:
        known = tuple(dict.fromkeys((*known, *properties)))
    return kind, known, status if earlier == UP else earlier


def _name_properties(
    queues: dict[str, dict[str, Any]], nodes: dict[str, _Node], notes: NoteCollector
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
            notes.fault(text)
        own = {host for host in hosts if host in nodes}
        word = property_for(property_name(name), own, known)
        if word != name:
            notes.assumed(f"the property of partition {clip(name)} is {word}")
        known[word] = own
        queue["requires"] = [word]
        for host in own:
            kind, properties, status = nodes[host]
            if word not in properties:
                nodes[host] = (kind, (*properties, word), status)
