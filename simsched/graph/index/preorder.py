"""Containment in preorder, as arrays: the first step from a resource graph to its index."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from simsched.graph import resource_graph as rg
from simsched.graph.pool import UP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.arrays import Bools, Integers
    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Containment in preorder, followed by the vertices that only other subsystems have.

    One entry per vertex: `keys` and `pools`; `parent` (-1: none); `end`, the place after its
    subtree; `target`, the ordinal of the execution target that it is or is in (-1: none);
    `up`, whether it and all that contains it is up; `sound`, the same without regard to
    its target and the containers of that.  `inner` are the places of vertices that
    contain others, `targets` those of execution targets.
    """

    keys: list[str]
    pools: list[Pool]
    inner: Integers
    parent: Integers
    end: Integers
    target: Integers
    targets: Integers
    up: Bools
    sound: Bools


def preorder(graph: ResourceGraph) -> Tree:
    """Return containment in preorder.  O(vertices), with a few steps per vertex outside NumPy."""
    below = rg.children_map(graph)
    keys = _keys(graph, below)
    nodes = rg.tables(graph)[0]
    if keys == list(nodes):  # the order of most graphs; memory is read in sequence
        pools: list[Pool] = [data["pool"] for data in nodes.values()]
        above = list(below)
    else:
        pools = [nodes[key]["pool"] for key in keys]
        above = [key for key in keys if key in below]
    place = dict(zip(keys, range(len(keys)), strict=True))
    inner, parent, end = _spans(above, below, place)
    targets = _ints([place[key] for key in rg.execution_targets(graph, below)])
    target = _owners(targets, end)
    up, sound = _status(pools, end, target, targets)
    return Tree(keys, pools, inner, parent, end, target, targets, up, sound)


def _keys(graph: ResourceGraph, below: Mapping[str, list[str]]) -> list[str]:
    """Return the vertices of the tree in preorder, and then those outside it in graph order."""
    keys: list[str] = []
    stack = [rg.containment_root(graph)]
    while stack:
        key = stack.pop()
        keys.append(key)
        if key in below:
            stack += below[key][::-1]
    if len(keys) < len(graph):
        seen = set(keys)
        keys += [key for key in graph if key not in seen]
    return keys


def _spans(
    inner: Sequence[str], below: Mapping[str, list[str]], place: Mapping[str, int]
) -> tuple[Integers, Integers, Integers]:
    """Return the places of inner vertices, and the parent and end of every vertex."""
    rows = [below[key] for key in inner]
    counts = _ints([len(row) for row in rows])
    children = np.fromiter(
        map(place.__getitem__, chain.from_iterable(rows)), dtype=np.int64, count=int(counts.sum())
    )
    above = _ints([place[key] for key in inner])
    parent = np.full(len(place), -1, dtype=np.int64)
    parent[children] = np.repeat(above, counts)
    last = children[np.cumsum(counts) - 1]
    # A subtree ends with that of its last child.  Vertices are visited from the last place to the first,
    # so that the end of a child is known before its parent needs it; a leaf ends right after itself.
    end = list(range(1, len(place) + 1))
    for vertex, child in zip(above[::-1].tolist(), last[::-1].tolist(), strict=True):
        end[vertex] = end[child]
    return above, parent, _ints(end)


def _owners(targets: Integers, end: Integers) -> Integers:
    """Return for each place the ordinal of the target that spans it, or -1: targets do not nest."""
    # Targets do not nest, so a place can only be in the last target that begins at or before it.  Before
    # the first target the owner is -1, which indexes the last target; no such place is beyond its end.
    begun = np.zeros(len(end), dtype=np.int64)
    begun[targets] = 1
    owner = np.cumsum(begun) - 1
    owner[np.arange(len(end)) >= end[targets][owner]] = -1
    return owner


def _status(pools: Sequence[Pool], end: Integers, target: Integers, targets: Integers) -> tuple[Bools, Bools]:
    """Return `up` and `sound` of every vertex."""
    down = _ints([place for place, pool in enumerate(pools) if pool.status != UP])
    up = ~_covered(down, end)
    is_target = np.zeros(len(end), dtype=np.bool_)
    is_target[targets] = True
    # `sound` leaves out the target's own status and that of its containers: those change while the
    # cluster is in use (`Availability.set_status`), and the status of parts within a target does not.
    within = down[(target[down] >= 0) & ~is_target[down]]
    sound = np.where(target >= 0, ~_covered(within, end), up)
    return up, sound


def _covered(places: Integers, end: Integers) -> Bools:
    """Return which places are in the subtree of any of `places`."""
    # +1 where a subtree begins, -1 where it ends; several may end at one place, hence subtract.at
    steps = np.zeros(len(end) + 1, dtype=np.int64)
    steps[places] = 1
    np.subtract.at(steps, end[places], 1)
    return np.cumsum(steps[:-1]) > 0


def _ints(values: Sequence[int]) -> Integers:
    return np.array(values, dtype=np.int64)
