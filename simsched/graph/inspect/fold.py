"""Folding: vertices that look the same from above and below become one class.

Two vertices are of one class if they are equal themselves (type, size, unit, status,
properties), have equal subtrees, and are below vertices of one class.  A cluster of ten
thousand nodes folds to a dozen classes, which people can read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.graph.resource_graph import CONTAINMENT, children_map, containment_root, pool_of, roots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.graph.resource_graph import ResourceGraph

ALIKE, SIBLINGS, APART = "alike", "siblings", "apart"
"""How much is folded: all equal vertices; only leaves below the same vertices; nothing."""


@dataclass(frozen=True, slots=True)
class Fold:
    """One class: its vertices in graph order, and (how many in each, which class) below it.

    `below` holds positions in the list that `fold` returns.
    """

    vertices: tuple[str, ...]
    below: tuple[tuple[int, int], ...]
    depth: int


def fold(graph: ResourceGraph, subsystem: str = CONTAINMENT, *, how: str = ALIKE) -> list[Fold]:
    """Return the classes of a subsystem, each before those below it; roots come first.

    O(vertices + edges).
    """
    below = children_map(graph, subsystem)
    order = _topological([containment_root(graph)] if subsystem == CONTAINMENT else roots(below), below)
    looks = {} if how == APART else _looks(graph, order, below)
    if how == SIBLINGS:
        looks = {vertex: look for vertex, look in looks.items() if vertex not in below}
    classes = _classes(order, below, looks)
    return _folds(order, below, classes)


def _topological(tops: Sequence[str], below: Mapping[str, list[str]]) -> list[str]:
    """Return vertices so that each comes after all that dominate it; edges that close a cycle are ignored."""
    seen: set[str] = set()
    backwards: list[str] = []
    stack = [(top, False) for top in tops]
    while stack:
        vertex, done = stack.pop()
        if done:
            backwards.append(vertex)
        elif vertex not in seen:
            seen.add(vertex)
            stack.append((vertex, True))
            stack.extend((child, False) for child in below.get(vertex, ()) if child not in seen)
    return backwards[::-1]


def _looks(graph: ResourceGraph, order: Sequence[str], below: Mapping[str, list[str]]) -> dict[str, int]:
    """Return a number for each vertex, equal for vertices with equal subtrees."""
    numbers: dict[object, int] = {}
    looks: dict[str, int] = {}
    for vertex in reversed(order):
        pool = pool_of(graph, vertex)
        inside = Counter(looks[child] for child in below.get(vertex, ()) if child in looks)
        mark = (
            pool.type,
            pool.size,
            pool.unit,
            pool.status,
            frozenset(pool.properties.items()),
            frozenset(inside.items()),
        )
        looks[vertex] = numbers.setdefault(mark, len(numbers))
    return looks


def _classes(
    order: Sequence[str], below: Mapping[str, list[str]], looks: Mapping[str, int]
) -> dict[str, int]:
    """Return the class of each vertex: by its number of `_looks` and the classes above it, or its own."""
    above: dict[str, set[int]] = {vertex: set() for vertex in order}
    numbers: dict[object, int] = {}
    classes: dict[str, int] = {}
    for vertex in order:
        mark = (looks[vertex], frozenset(above[vertex])) if vertex in looks else vertex
        classes[vertex] = numbers.setdefault(mark, len(numbers))
        for child in below.get(vertex, ()):
            above[child].add(classes[vertex])
    return classes


def _folds(order: Sequence[str], below: Mapping[str, list[str]], classes: Mapping[str, int]) -> list[Fold]:
    members: dict[int, list[str]] = {}
    for vertex in order:
        members.setdefault(classes[vertex], []).append(vertex)
    depths = dict.fromkeys(members, 0)
    found = []
    for number, vertices in members.items():
        inside = Counter(classes[child] for child in below.get(vertices[0], ()))
        for child in inside:
            depths[child] = max(depths[child], depths[number] + 1)
        found.append((vertices, tuple((count, child) for child, count in inside.items()), number))
    return [Fold(tuple(vertices), inside, depths[number]) for vertices, inside, number in found]
