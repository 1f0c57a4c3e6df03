"""Checks that containment is a tree and that other subsystems have no cycle, over vertex → children."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from simsched.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set


def check_tree(below: Mapping[str, list[str]], contained: Set[str], roots: Sequence[str]) -> None:
    """Check that one root contains every contained vertex once.

    Raises
    ------
    ClusterError
        for a vertex with two parents, for no root or several, and for a cycle.
    """
    # More edges than contained vertices: one of them has two parents.  After that, every contained
    # vertex has one parent, so those that the root does not reach lie on a cycle or below one.
    if len(contained) < sum(map(len, below.values())):
        _parents_by_child(below)
    if not roots:
        parent = _parents_by_child(below)
        cycle = _cycle_from(next(iter(parent), None), parent)
        raise ClusterError(f"containment has no root: {cycle}", expected="one root above all others")
    if len(roots) > 1:
        named = ", ".join(repr(root) for root in roots[:3]) + (", …" if len(roots) > 3 else "")
        raise ClusterError(
            f"containment has {len(roots)} roots: {named}", expected="one root above all others"
        )
    if _count_below(roots[0], below) < len(contained):
        parent = _parents_by_child(below)
        seen = _all_below(roots[0], below)
        lost = next(vertex for vertex in parent if vertex not in seen)
        raise ClusterError(f"a cycle in containment: {_cycle_from(lost, parent)}")


def check_acyclic(below: dict[str, list[str]], subsystem: str) -> None:
    """Remove vertices that nothing dominates until none is left; if some remain, they have a cycle.

    Empties `below`.

    Raises
    ------
    ClusterError
        with the cycle.
    """
    above = Counter(child for row in below.values() for child in row)
    free = [vertex for vertex in below if vertex not in above]
    while free:
        for child in below.pop(free.pop(), ()):
            above[child] -= 1
            if not above[child]:
                free.append(child)
    if below:
        parent = {child: vertex for vertex, row in below.items() for child in row}
        raise ClusterError(f"a cycle in subsystem {subsystem!r}: {_cycle_from(next(iter(below)), parent)}")


def _parents_by_child(below: Mapping[str, list[str]]) -> dict[str, str]:
    parent: dict[str, str] = {}
    for above, row in below.items():
        for child in row:
            if child in parent:
                raise ClusterError(
                    f"two parents in containment: {parent[child]!r} and {above!r}", where=f"vertex {child!r}"
                )
            parent[child] = above
    return parent


def _cycle_from(vertex: str | None, parent: Mapping[str, str]) -> str:
    """Return the cycle above a vertex as text."""
    climbed: dict[str, None] = {}
    while vertex is not None and vertex not in climbed:
        climbed[vertex] = None
        vertex = parent.get(vertex)
    if vertex is None:
        return "no containment edges"
    ring = list(climbed)
    ring = [*ring[ring.index(vertex) :], vertex][::-1]
    shown = ring if len(ring) <= 8 else [*ring[:4], "…", *ring[-2:]]
    return " -> ".join(shown)


def _count_below(root: str, below: Mapping[str, list[str]]) -> int:
    """Return how many vertices the root contains, if none has two parents."""
    count = 0
    layer = [root] if root in below else []
    while layer:
        rows = [below[vertex] for vertex in layer]
        count += sum(map(len, rows))
        layer = [child for child in chain.from_iterable(rows) if child in below]
    return count


def _all_below(root: str, below: Mapping[str, list[str]]) -> set[str]:
    seen = {root}
    layer = [root]
    while layer:
        layer = [child for vertex in layer if vertex in below for child in below[vertex]]
        seen.update(layer)
    return seen
