"""Classes of equal execution targets: they host the same number of copies, so one is counted for all.

On the idle cluster the state of a target is its hardware, and most clusters have few kinds of
nodes.  A request that no kind of node can host is refused without a count of every node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Content


WIDEST = 64
"""Targets with more vertices or leaf pools of one type than this are not compared."""


class Classes(NamedTuple):
    """The classes of a cluster's targets: the first target of each, their sizes, the class of each target."""

    first: Integers
    sizes: Integers
    of: Integers

    def spread(self, counts: Integers) -> Integers:
        """Return for each target the count of its class; do not write to it."""
        if len(counts) > 1:
            return counts[self.of]
        return np.ndarray(len(self.of), np.int64, counts.astype(np.int64), 0, (0,))  # stride 0: one number


def target_classes(index: Index, content: Content) -> Classes | None:
    """Return classes of targets; all members of a class host the same number of copies of a content.

    They are distinguished by the types that the content needs.  None if there are too many of them or
    they are too irregular, if the content names vertices or units within a target, or if a constraint
    is applied to vertices within it: then members of a class may differ.
    """
    needs = [part for need in content.needs for part in need.walk()]
    if any(need.is_particular for need in needs):
        return None
    if content.flat is None and not all(need.every for need in needs):
        return None
    known: dict[frozenset[str], Classes | None] = index.memo.setdefault("classes", {})
    types = frozenset(need.type for need in needs)
    if types not in known:
        known[types] = _classes(index, sorted(types & index.types_beneath(index.target_type)))
    return known[types]


def _classes(index: Index, types: list[str]) -> Classes | None:
    number = np.zeros(len(index), dtype=np.int64)
    for column in _columns(index, types):
        if column is None:
            return None
        if len(column) and (column != column[0]).any():
            values, place = np.unique(column, return_inverse=True)
            number = np.unique(number * len(values) + place, return_inverse=True)[1]
    _, first, sizes = np.unique(number, return_index=True, return_counts=True)
    return Classes(first, sizes, number) if len(first) <= len(index) // 4 + 1 else None


def _columns(index: Index, types: list[str]) -> Iterator[Integers | None]:
    """Yield the facts that distinguish targets, one entry per target: their parts, sizes and places.

    None if a few columns do not suffice.
    """
    nested = [name for name in types if name in index.vertex_types]
    for name in types:
        pool = index.pool_types.get(name)
        if pool is None:
            vertices = index.vertex_types[name]
            if any(index.beneath(name, other).ordinals is not None for other in types):
                yield None  # it reaches something over another subsystem
            yield from _in_columns(index, name, [vertices.end - vertices.pos])
        elif pool.aligned and not nested:
            yield pool.size
        else:
            yield from _in_columns(index, name, [pool.size])


def _in_columns(index: Index, name: str, facts: list[Integers]) -> Iterator[Integers | None]:
    """Yield how many vertices or leaf pools of a type each target has, and where each is and its facts."""
    view = index.beneath(index.target_type, name)
    counts = view.high - view.low
    width = int(counts.max(initial=0))
    if width > WIDEST:
        yield None
        return
    yield counts
    places, homes = index.positions(name)[0], index.positions(index.target_type)[0]
    for number in range(width):
        here = counts > number
        chosen = view.low[here] + number
        chosen = chosen if view.ordinals is None else view.ordinals[chosen]
        for fact in (places[chosen] - homes[here], *(fact[chosen] for fact in facts)):
            column = np.full(len(index), -1)
            column[here] = fact
            yield column
