"""The reach of a vertex: its descendants in containment and over any other subsystem (M1).

In containment the descendants are one interval of preorder.  A switch or a power feed
dominates vertices over its own subsystem; it reaches them and all that they contain, a set
of intervals (*spans*).  Spans are kept merged, so that a switch over a thousand neighbouring
nodes has one.
"""

from __future__ import annotations

from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from simsched.errors import ClusterError
from simsched.graph import resource_graph as rg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.arrays import Integers
    from simsched.graph.resource_graph import ResourceGraph


Spans: TypeAlias = "tuple[tuple[int, int], ...]"
"""Disjoint intervals [first, last) of preorder, ascending."""


SMALL = 256
"""A scope of fewer vertices is small: its intermediate results are kept."""


class View(NamedTuple):
    """The ordinals under each vertex of a scope: ``ordinals[low[i]:high[i]]`` (None: all, in order).

    `fan` is their number under each vertex, if that is the same for all and the ordinals are
    listed one vertex after the other; then sums do not need prefix sums.
    """

    ordinals: Integers | None
    low: Integers
    high: Integers
    fan: int | None = None

    def sum(self, values: Integers) -> Integers:
        """Return the sum of `values` (one entry per ordinal of the view) for each vertex of the scope."""
        if self.fan is not None:
            rows = values.reshape(-1, self.fan)
            total: Integers = rows[:, 0] if self.fan == 1 else rows.sum(axis=1)
            return total
        sums = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=sums[1:])
        found: Integers = sums[self.high] - sums[self.low]
        return found


def interval_view(low: Integers, high: Integers) -> View:
    """Return the view of a scope whose vertices have the intervals [low, high)."""
    counts = high - low
    ends = np.cumsum(counts)
    starts = ends - counts
    ordinals = np.repeat(low - starts, counts) + np.arange(int(ends[-1]) if len(ends) else 0)
    return View(ordinals, starts, ends)


def fan_view(low: Integers, fan: int) -> View:
    """Return the view of a scope whose vertices have `fan` vertices each under them, from `low` on."""
    count = len(low)
    edges = _edges(fan) if count < SMALL else np.arange(0, (count + 1) * fan, fan)
    ordinals = low if fan == 1 else (low[:, None] + np.arange(fan)).reshape(-1)
    return View(ordinals, edges[:count], edges[1 : count + 1], fan)


@lru_cache(maxsize=64)
def _edges(fan: int) -> Integers:
    """Return the borders between the ordinals of one vertex and the next, for small scopes."""
    edges: Integers = np.arange(0, (SMALL + 1) * fan, fan)
    edges.flags.writeable = False
    return edges


def listed_view(rows: Sequence[Integers]) -> View:
    """Return the view of a scope whose vertices have these ordinals under them."""
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if len(ends) else ends
    return View(np.concatenate([np.empty(0, np.int64), *rows]), starts, ends)


def ordinals_within(spans: Spans, places: Integers) -> Integers:
    """Return the ordinals of the ascending `places` that are in the spans."""
    edges = np.searchsorted(places, np.array(spans, dtype=np.int64).reshape(-1, 2))
    parts = [np.arange(low, high) for low, high in edges.tolist()]
    return np.concatenate([np.empty(0, np.int64), *parts])


def merged(spans: list[tuple[int, int]]) -> Spans:
    """Return the union of intervals, merged where they touch.

    >>> merged([(4, 6), (0, 2), (2, 4), (9, 10)])
    ((0, 6), (9, 10))
    """
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        elif last > first:
            found.append((first, last))
    return tuple(found)


def dominated_spans(
    graph: ResourceGraph, place: Mapping[str, tuple[int, int]], others: list[str]
) -> dict[str, Spans]:
    """Return the reach of each vertex that dominates others outside containment.

    `place` gives every vertex its interval of preorder; `others` names the subsystems.

    Raises
    ------
    ClusterError
        if a subsystem has a cycle.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for subsystem in others:
        below = rg.children_map(graph, subsystem)
        known: dict[str, Spans] = {}
        for vertex in _children_first(below, subsystem):
            spans = [place[child] for child in below[vertex]]
            spans += [span for child in below[vertex] for span in known.get(child, ())]
            known[vertex] = merged(spans)
            found.setdefault(vertex, []).extend(known[vertex])
    inner = {vertex: (place[vertex][0] + 1, place[vertex][1]) for vertex in found}
    return {vertex: merged([inner[vertex], *spans]) for vertex, spans in found.items()}


def _children_first(below: Mapping[str, list[str]], subsystem: str) -> list[str]:
    """Return the vertices that have children, each after those of its children that have some."""
    links = {vertex: [child for child in children if child in below] for vertex, children in below.items()}
    try:
        return list(TopologicalSorter(links).static_order())
    except CycleError as error:
        place = f"vertex {error.args[1][0]!r}"
        raise ClusterError(f"a cycle in subsystem {subsystem!r}", where=place) from None
