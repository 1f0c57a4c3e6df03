"""Selection → resource graph: the allocated vertices and their containers; as JGF or as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.graph.build.assemble import part_of
from simsched.graph.inspect.view import tree_lines
from simsched.graph.resource_graph import ResourceGraph, pool_of
from simsched.graph.write.jgf import to_jgf
from simsched.match.emit import ids_of
from simsched.match.state.masks import mask_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import PoolType
    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph
    from simsched.match.state.selection import Draw, Selection


def graph_of(selection: Selection, index: Index) -> ResourceGraph:
    """Return the containment graph of a selection.

    A pool has the size and the ids of the units that were drawn from it.  Every vertex that is
    claimed exclusively is marked (``exclusive`` in JGF), as in Fluxion's allocations.
    """
    found: dict[str, tuple[int, Pool]] = {}
    targets = index.vertex_types[index.target_type]
    whole = selection.request.alone
    for ordinal in selection.targets.tolist():
        key = targets.keys[ordinal]
        found[key] = (int(targets.pos[ordinal]), _held(pool_of(index.graph, key), whole))
    for hold in selection.holds:
        vertices = index.vertex_types[hold.type]
        exclusive = hold.exclusive or (whole and hold.type == index.target_type)
        for ordinal in hold.ordinals.tolist():
            key = vertices.keys[ordinal]
            found[key] = (int(vertices.pos[ordinal]), _held(pool_of(index.graph, key), exclusive))
    # (pool type, leaf pool) → the units that are claimed exclusively, as a mask
    taken = {(draw.type, leaf): mask for draw in selection.held for leaf, mask, _ in _rows(draw, index)}
    for draw in selection.named:
        found.update(_drawn(draw, index, taken))
    order = sorted(found, key=lambda key: found[key][0])
    return part_of(index.graph, {key: found[key][1] for key in order})


def jgf_of(selection: Selection, index: Index) -> dict[str, Any]:
    """Return the JGF document (RFC 40) of a selection."""
    from simsched.formats.cluster.jgf import to_object

    document: dict[str, Any] = to_object(to_jgf(graph_of(selection, index)))
    return document


def tree_of(selection: Selection, index: Index) -> Iterator[str]:
    """Yield the lines of a tree of the selected vertices; equal subtrees are folded into one."""
    return tree_lines(graph_of(selection, index))


def _held(pool: Pool, exclusive: bool) -> Pool:
    return pool.replace(extra={**pool.extra, "exclusive": True}) if exclusive else pool


def _rows(draw: Draw, index: Index) -> Iterator[tuple[int, int, int]]:
    """Yield leaf pool, mask and number of the units of a draw; the mask is 0 if units have no ids."""
    pool = index.pool_types[draw.type]
    units = np.broadcast_to(draw.units, len(draw.pools)).tolist()
    for at, leaf in enumerate(draw.pools.tolist()):
        if draw.masks is not None:
            mask = mask_of(draw.masks, at)
        elif pool.named:
            mask = pool.full[leaf]
        else:
            mask = (1 << units[at]) - 1 if len(pool.keys[leaf]) > 1 else 0
        yield leaf, mask, units[at]


def _drawn(
    draw: Draw, index: Index, taken: dict[tuple[str, int], int]
) -> Iterator[tuple[str, tuple[int, Pool]]]:
    """Yield the leaf vertices of a draw: key, place, and the pool with the drawn units."""
    pool = index.pool_types[draw.type]
    for leaf, mask, units in _rows(draw, index):
        held = taken.get((draw.type, leaf))
        place, keys = int(pool.pos[leaf]), pool.keys[leaf]
        if len(keys) == 1:
            vertex = _shrunk(pool_of(index.graph, keys[0]), pool, leaf, mask, units)
            yield keys[0], (place, _held(vertex, held is not None and not mask & ~held))
            continue
        for unit, key in enumerate(keys):
            if mask >> unit & 1:
                yield key, (place, _held(pool_of(index.graph, key), bool(held and held >> unit & 1)))


def _shrunk(vertex: Pool, pool: PoolType, leaf: int, mask: int, units: int) -> Pool:
    """Return a pool of the units drawn from it."""
    if units == pool.size[leaf]:
        return vertex
    ids = ids_of(pool, leaf, mask) if vertex.ids is not None and mask else None
    return vertex.replace(size=max(1, units * vertex.size // int(pool.size[leaf])), ids=ids)
