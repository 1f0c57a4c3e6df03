"""Selection → R (RFC 20).

R names units on execution targets rank by rank (M5).  Units of pools outside the targets
(a licence pool, storage of a rack) have no place in R_lite; they are listed under
``scheduling.pools`` as {path: units}.  On a cluster that was read with a TreePool topology,
``scheduling`` has the topology of the ranks of R (RFC 49).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.rfc.hostlist import encode_hosts
from simsched.formats.rfc.idset import Idset, encode_ids
from simsched.graph.resource_graph import parents, pool_of
from simsched.match.state.masks import listed, mask_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.arrays import Integers
    from simsched.formats.cluster.rset import RExecution, RLite, WrittenR
    from simsched.formats.cluster.treepool import TreePool
    from simsched.graph.index.index import Index
    from simsched.graph.index.types import PoolType
    from simsched.match.state.selection import Draw, Selection

Seconds = float | int


def document(
    selection: Selection,
    index: Index,
    *,
    starttime: Seconds | None = None,
    expiration: Seconds | None = None,
    scheduler: Mapping[str, Any] | None = None,
) -> WrittenR:
    """Return the R document of a selection, ready to be written as JSON.

    `starttime` and `expiration` are seconds since the epoch; `scheduler` becomes
    ``attributes.system.scheduler`` (queue, policy).
    """
    targets = np.sort(selection.targets)
    if selection.unlisted is not None:
        targets = np.setdiff1d(targets, selection.unlisted)
    ranks = index.ranks[targets]
    if not index.ranks_ascend:
        order = np.argsort(ranks, kind="stable")
        targets, ranks = targets[order], ranks[order]
    entries = _entries(selection, index, targets, ranks)
    execution: RExecution = {
        "R_lite": entries,
        "nodelist": [_hosts(index, targets, entries)] if len(targets) else [],
        "nslots": selection.slots or len(targets),
    }
    if starttime is not None:
        execution["starttime"] = starttime
    if expiration is not None:
        execution["expiration"] = expiration
    properties = _properties(index, targets, ranks)
    if properties:
        execution["properties"] = properties
    found: WrittenR = {"version": 1, "execution": execution}
    scheduling = _scheduling(selection, index, ranks)
    if scheduling:
        found["scheduling"] = scheduling
    if scheduler:
        found["attributes"] = {"system": {"scheduler": dict(scheduler)}}
    return found


def to_rset(selection: Selection, index: Index, **rest: Any) -> ResourceSet:
    """Return the R of a selection as a value; keywords as for `document`."""
    return ResourceSet.from_dict(document(selection, index, **rest))


def _hosts(index: Index, targets: Integers, entries: list[RLite]) -> str:
    """Return the hosts as a hostlist, in the order of their ranks (R10).

    Hosts that are numbered by rank, in one entry, are the prefix and the entry's ranks.
    """
    if len(entries) == 1 and index.host_prefix is not None:
        text = entries[0]["rank"]
        return f"{index.host_prefix}{text}" if len(targets) == 1 else f"{index.host_prefix}[{text}]"
    if index.ranks_ascend:
        return index.host_encoder.encode(targets.tolist())
    return encode_hosts([index.hosts[i] for i in targets.tolist()])


def _entries(selection: Selection, index: Index, targets: Integers, ranks: Integers) -> list[RLite]:
    """Return R_lite: targets with equal children share one entry; empty if no target is touched."""
    if not len(targets):
        return []
    # The fast path writes the same entry as the general one: if every target has the same ids of each
    # type, the general path would put all of them into one group.
    named = [d for d in selection.named if index.pool_types[d.type].named]
    uniform = _one_entry(named, selection, index)
    if uniform is not None:
        return [{"rank": encode_ids(ranks.tolist()), "children": uniform}]
    children: dict[int, list[tuple[str, str]]] = {target: [] for target in targets.tolist()}
    for draw in sorted(named, key=lambda d: d.type):
        for target, text in _ids_by_target(draw, index.pool_types[draw.type]).items():
            children[target].append((draw.type, text))
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for rank, pairs in zip(ranks.tolist(), children.values(), strict=True):
        groups.setdefault(tuple(pairs), []).append(rank)
    return [{"rank": encode_ids(members), "children": dict(key)} for key, members in groups.items()]


def _one_entry(named: list[Draw], selection: Selection, index: Index) -> dict[str, str] | None:
    """Return the children that all targets share if each draw takes whole equal leaf pools; else None."""
    children = {}
    for draw in named if len(named) == 1 else sorted(named, key=lambda d: d.type):
        pool = index.pool_types[draw.type]
        if not pool.aligned and not pool.on_targets:
            continue
        # `is`: the very array of the targets, so nothing needs to be compared; a selection read from a
        # file has another array and takes the general path.
        whole = draw.masks is None and pool.aligned and draw.pools is selection.targets
        if not whole or pool.uniform_ids is None:
            return None
        children[draw.type] = pool.texts.get(-1) or pool.texts.setdefault(-1, str(pool.uniform_ids))
    return children


def _ids_by_target(draw: Draw, pool: PoolType) -> dict[int, str]:
    """Return target → ids of the units drawn there, for the leaf pools on targets."""
    pools = draw.pools.tolist()
    masks = [-1] * len(pools) if draw.masks is None else listed(draw.masks)
    if pool.aligned and pool.uniform_ids is not None:
        texts = pool.texts
        return {
            leaf: texts.get(mask) or texts.setdefault(mask, str(ids_of(pool, leaf, mask)))
            for leaf, mask in zip(pools, masks, strict=True)
        }
    found: dict[int, Idset] = {}
    for leaf, target, mask in zip(pools, pool.target[draw.pools].tolist(), masks, strict=True):
        if target >= 0:
            ids = ids_of(pool, leaf, mask)
            found[target] = found[target] | ids if target in found else ids
    return {target: str(ids) for target, ids in found.items()}


def ids_of(pool: PoolType, leaf: int, mask: int = -1) -> Idset:
    """Return the ids of the units in a mask over the unit ordinals of a leaf pool (-1: all)."""
    ids = pool.ids[leaf]
    if mask < 0:
        return ids
    if len(ids.ranges) == 1:
        return Idset.from_mask(mask << ids.ranges[0][0])
    units = ids.expand()
    return Idset.from_ids(units[i] for i in range(mask.bit_length()) if mask >> i & 1)


def _properties(index: Index, targets: Integers, ranks: Integers) -> dict[str, str]:
    """Return the properties of the targets that R lists, each with its ranks."""
    found = {}
    for name, row in index.written_properties.items():
        has = row[targets]
        if has.any():
            found[name] = encode_ids(ranks[has].tolist())
    return found


def _scheduling(selection: Selection, index: Index, ranks: Integers) -> dict[str, Any]:
    """Return ``scheduling``: the topology of the ranks, and the pools that R_lite cannot name."""
    loose = _loose(selection, index)
    carried = carried_topology(index)
    found: dict[str, Any] = {"writer": "simsched"} if loose else {}
    if carried is not None:
        from simsched.formats.cluster.treepool import to_scheduling

        found = to_scheduling(carried.trimmed(Idset.from_ids(ranks.tolist())))
    return {**found, "pools": loose} if loose else found


def carried_topology(index: Index) -> TreePool | None:
    """Return the topology for the R of every allocation; None if the cluster was read without one."""
    if index.graph.graph.get("source") != "TreePool":
        return None
    found: TreePool | None = index.memo.get("topology")
    if found is None:
        from simsched.graph.write.treepool import topology

        found = index.memo["topology"] = topology(index.graph)
    return found


def _loose(selection: Selection, index: Index) -> dict[str, str | int]:
    """Return the units outside targets: path of the pool → ids of its units, or their number."""
    found: dict[str, str | int] = {}
    for draw in selection.named:
        pool = index.pool_types[draw.type]
        if pool.aligned and pool.named:
            continue
        units = np.broadcast_to(draw.units, len(draw.pools)).tolist()
        for i, leaf in enumerate(draw.pools.tolist()):
            if pool.target[leaf] < 0 or not pool.named:
                mask = mask_of(draw.masks, i) if draw.masks is not None else -1
                path = path_of(index, pool.keys[leaf][0])
                found[path] = str(ids_of(pool, leaf, mask)) if pool.named else units[i]
    return found


def path_of(index: Index, key: str) -> str:
    """Return the containment path of a vertex; its key if nothing contains it."""
    names, here = [pool_of(index.graph, key).name], parents(index.graph, key)
    if not here:
        return key
    while here:
        names.append(pool_of(index.graph, here[0]).name)
        here = parents(index.graph, here[0])
    return "/" + "/".join(reversed(names))
