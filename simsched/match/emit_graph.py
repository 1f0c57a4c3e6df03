"""Selection → resource graph: what the job gets, with all that contains it; as JGF or as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.graph.part import part_of
from simsched.graph.resource_graph import pool_of
from simsched.graph.view import tree_lines
from simsched.graph.write_jgf import to_jgf
from simsched.match.emit import ids_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.graph.index import Index
    from simsched.graph.kinds import PoolType
    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph
    from simsched.match.selection import Draw, Selection


def graph_of(selection: Selection, index: Index) -> ResourceGraph:
    """Return the containment graph of a selection.

    A pool has the size and the ids of the units that were drawn from it.  What is held
    exclusively says so (``exclusive`` in JGF), as Fluxion's allocations do.
    """
    found: dict[str, tuple[int, Pool]] = {}
    targets = index.vertex_types[index.target_type]
    for ordinal in selection.targets.tolist():
        key = targets.keys[ordinal]
        found[key] = (int(targets.pos[ordinal]), pool_of(index.graph, key))
    for hold in selection.holds:
        vertices = index.vertex_types[hold.type]
        for ordinal in hold.ordinals.tolist():
            key = vertices.keys[ordinal]
            found[key] = (int(vertices.pos[ordinal]), _held(pool_of(index.graph, key), hold.exclusive))
    for draw in selection.named:
        found.update(_drawn(draw, index))
    order = sorted(found, key=lambda key: found[key][0])
    return part_of(index.graph, {key: found[key][1] for key in order})


def jgf_of(selection: Selection, index: Index) -> dict[str, Any]:
    """Return the JGF document (RFC 40) of a selection."""
    from simsched.formats.jgf import to_object

    document: dict[str, Any] = to_object(to_jgf(graph_of(selection, index)))
    return document


def tree_of(selection: Selection, index: Index) -> Iterator[str]:
    """Yield the lines of a tree of what was selected, like subtrees folded into one."""
    return tree_lines(graph_of(selection, index))


def _held(pool: Pool, exclusive: bool) -> Pool:
    return pool.replace(extra={**pool.extra, "exclusive": True}) if exclusive else pool


def _drawn(draw: Draw, index: Index) -> Iterator[tuple[str, tuple[int, Pool]]]:
    """Yield the leaves that a draw takes units of: key, place, and the pool with these units."""
    pool = index.pool_types[draw.type]
    units = np.broadcast_to(draw.units, len(draw.banks)).tolist()
    for at, bank in enumerate(draw.banks.tolist()):
        mask = int(draw.masks[at]) if draw.masks is not None else (1 << units[at]) - 1
        place = int(pool.pos[bank])
        keys = pool.keys[bank]
        if len(keys) == 1:
            yield keys[0], (place, _shrunk(pool_of(index.graph, keys[0]), pool, bank, mask, units[at]))
            continue
        for unit, key in enumerate(keys):
            if mask >> unit & 1:
                yield key, (place, _held(pool_of(index.graph, key), exclusive=True))


def _shrunk(vertex: Pool, pool: PoolType, bank: int, mask: int, units: int) -> Pool:
    """Return a pool of the units drawn from it."""
    if units == pool.size[bank]:
        return vertex
    ids = ids_of(pool, bank, mask) if vertex.ids is not None else None
    return vertex.replace(size=max(1, units * vertex.size // int(pool.size[bank])), ids=ids)
