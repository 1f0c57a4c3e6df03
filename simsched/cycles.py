"""Cycles of a directed graph: one of them as a path, or all groups of nodes on cycles."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

Node = TypeVar("Node", bound="Hashable")


def find_cycle(links: Mapping[Node, Collection[Node]]) -> list[Node]:
    """Return a cycle, each node linked to the next and the first again at the end; [] without a cycle.

    Nodes without a link to them are taken away until none is left (Kahn 1962).  Every node that
    remains has a link from another, so a walk against the links ends in a cycle.

    >>> find_cycle({"a": ["b"], "b": ["c"], "c": ["b"]}), find_cycle({"a": ["b"]})
    (['b', 'c', 'b'], [])
    """
    above = Counter(chain.from_iterable(links.values()))
    left = dict(links)
    free = [node for node in links if node not in above]
    while free:
        for child in left.pop(free.pop(), ()):
            above[child] -= 1
            if not above[child]:
                free.append(child)
    if not left:
        return []
    parent = {child: node for node, row in left.items() for child in row}
    node: Node = next(iter(left))
    walked: dict[Node, None] = {}
    while node not in walked:
        walked[node] = None
        node = parent[node]
    path: list[Node] = list(walked)
    return [*path[path.index(node) :], node][::-1]


def cyclic_groups(links: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the groups in which each node reaches every other, or a single node itself.

    >>> cyclic_groups({1: [2], 2: [3], 3: [2], 4: [4], 5: [1]})
    [[2, 3], [4]]
    """
    import networkx as nx  # few runs have such links

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from((node, other) for node, row in links.items() for other in row)
    found = map(sorted, nx.strongly_connected_components(graph))
    return sorted(group for group in found if len(group) > 1 or group[0] in links.get(group[0], ()))
