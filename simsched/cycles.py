"""Cycles of a directed graph: one of them as a path, or all groups of nodes on cycles."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

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

    These are the strongly connected components (Tarjan 1972).  The search does not recurse, because
    chains may be as long as the graph.

    >>> cyclic_groups({1: [2], 2: [3], 3: [2], 4: [4], 5: [1]})
    [[2, 3], [4]]
    """
    search = _Search(links)
    for node in links:
        search.visit(node)
    found = [
        sorted(group) for group in search.groups if len(group) > 1 or group[0] in links.get(group[0], ())
    ]
    return sorted(found)


class _Search:
    """One depth-first search; `low` is the earliest node on the path that can be reached again."""

    def __init__(self, links: Mapping[int, Sequence[int]]) -> None:
        self.groups: list[list[int]] = []
        self._links = links
        self._seen: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._open: list[int] = []
        self._is_open: set[int] = set()

    def visit(self, root: int) -> None:
        """Walk all nodes that can be reached from one and were not reached before."""
        if root in self._seen:
            return
        path = [(root, self._enter(root))]
        while path:
            node, rest = path[-1]
            after = next(rest, None)
            if after is None:
                path.pop()
                self._leave(node)
                if path:
                    self._reach(path[-1][0], self._low[node])
            elif after not in self._seen:
                path.append((after, self._enter(after)))
            elif after in self._is_open:
                self._reach(node, self._seen[after])

    def _enter(self, node: int) -> Iterator[int]:
        self._seen[node] = self._low[node] = len(self._seen)
        self._open.append(node)
        self._is_open.add(node)
        return iter(self._links.get(node, ()))

    def _reach(self, node: int, place: int) -> None:
        self._low[node] = min(self._low[node], place)

    def _leave(self, node: int) -> None:
        if self._low[node] != self._seen[node]:
            return
        group: list[int] = []
        while not group or group[-1] != node:
            group.append(self._open.pop())
        self._is_open.difference_update(group)
        self.groups.append(group)
