"""Checks that containment is a tree and that other subsystems have no cycle, over vertex → children."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from simsched.cycles import find_cycle
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
    # vertex has one parent, so those that the root does not reach are on a cycle or below one.
    if len(contained) < sum(map(len, below.values())):
        _parents_by_child(below)
    if not roots:
        _parents_by_child(below)
        cycle = _text_of(find_cycle(below)) or "no containment edges"
        raise ClusterError(f"containment has no root: {cycle}", expected="one root above all others")
    if len(roots) > 1:
        named = ", ".join(repr(root) for root in roots[:3]) + (", …" if len(roots) > 3 else "")
        raise ClusterError(
            f"containment has {len(roots)} roots: {named}", expected="one root above all others"
        )
    if _count_below(roots[0], below) < len(contained):
        _parents_by_child(below)
        raise ClusterError(f"a cycle in containment: {_text_of(find_cycle(below))}")


def check_acyclic(below: Mapping[str, list[str]], subsystem: str) -> None:
    """Check that no vertex of a subsystem is below itself.

    Raises
    ------
    ClusterError
        with the cycle.
    """
    cycle = find_cycle(below)
    if cycle:
        raise ClusterError(f"a cycle in subsystem {subsystem!r}: {_text_of(cycle)}")


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


def _text_of(cycle: list[str]) -> str:
    """Return a cycle as text, a long one without its middle."""
    return " -> ".join(cycle if len(cycle) <= 8 else [*cycle[:4], "…", *cycle[-2:]])


def _count_below(root: str, below: Mapping[str, list[str]]) -> int:
    """Return how many vertices the root contains, if none has two parents."""
    count = 0
    layer = [root] if root in below else []
    while layer:
        rows = [below[vertex] for vertex in layer]
        count += sum(map(len, rows))
        layer = [child for child in chain.from_iterable(rows) if child in below]
    return count
