"""Execution targets that are alike: they host equally much, so one of them is counted for all.

On the idle machine the state of a target is its hardware, and most machines have few kinds of
nodes; what no kind of node can host is refused without a look at every node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.graph.index import Index
    from simsched.graph.kinds import Ints
    from simsched.match.request import Content


class Classes(NamedTuple):
    """The kinds of targets of a cluster: the first of each, how many of each, the kind of each target."""

    first: Ints
    sizes: Ints
    of: Ints

    def spread(self, counts: Ints) -> Ints:
        """Return for each target the count of its kind."""
        return np.broadcast_to(counts[0], len(self.of)) if len(counts) == 1 else counts[self.of]


def target_classes(index: Index) -> Classes | None:
    """Return the kinds of targets, or None where they are too many or too irregular to tell apart soon."""
    if "classes" not in index.memo:
        index.memo["classes"] = _classes(index)
    found: Classes | None = index.memo["classes"]
    return found


def is_alike_within_classes(content: Content) -> bool:
    """Say whether all targets of a kind that the constraint lets pass host equally much of a content.

    Not so where vertices or units within them are named, or a constraint is looked at beneath them.
    """
    needs = [need for top in content.needs for need in top.walk()]
    named = any(need.ids is not None or need.names is not None for need in needs)
    return not named and (content.flat is not None or all(need.every for need in needs))


def _classes(index: Index) -> Classes | None:
    columns = list(_columns(index))
    if any(column is None for column in columns):
        return None
    number = np.zeros(len(index), dtype=np.int64)
    for column in columns:
        if column is not None and len(column) and (column != column[0]).any():
            values, place = np.unique(column, return_inverse=True)
            number = np.unique(number * len(values) + place, return_inverse=True)[1]
    _, first, sizes = np.unique(number, return_index=True, return_counts=True)
    return Classes(first, sizes, number) if len(first) <= len(index) // 4 + 1 else None


def _columns(index: Index) -> Iterator[Ints | None]:
    """Yield what tells targets apart, an entry a target; None where one has more parts than another."""
    kind = index.target_type
    within = index.types_beneath(kind)
    for name in sorted(within):
        pool = index.pool_types.get(name)
        if pool is not None and pool.aligned:
            yield pool.size
            continue
        fan = _fan(index, kind, name)
        if fan is None or (pool is None and any(_fan(index, name, n) is None for n in within)):
            yield None
        elif pool is not None:
            rows = pool.size[index.beneath(kind, name, np.arange(len(index))).ordinals].reshape(-1, fan)
            yield from rows.T


def _fan(index: Index, above: str, below: str) -> int | None:
    """Return how many of one type each of another contains, if that is one number; else None."""
    view = index.beneath(above, below, np.arange(len(index.positions(above)[0])))
    if view.fan is not None:
        return view.fan
    return None if (view.high > view.low).any() else 0
