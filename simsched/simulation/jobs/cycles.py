"""Jobs that wait for each other in a circle: the strongly connected parts of a graph (Tarjan 1972)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def circles(links: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the groups in which each waits, directly or not, for every other, or for itself.

    `links` is job → jobs that it waits for; a job that is no key waits for none.  No recursion:
    chains of dependencies are as long as people make them.

    >>> circles({1: [2], 2: [3], 3: [2], 4: [4], 5: [1]})
    [[2, 3], [4]]
    """
    search = _Search(links)
    for job in links:
        search.visit(job)
    found = [
        sorted(group) for group in search.groups if len(group) > 1 or group[0] in links.get(group[0], ())
    ]
    return sorted(found)


class _Search:
    """One depth-first search; `low` is the earliest job on the path that can be come back to."""

    def __init__(self, links: Mapping[int, Sequence[int]]) -> None:
        self.groups: list[list[int]] = []
        self._links = links
        self._seen: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._open: list[int] = []
        self._is_open: set[int] = set()

    def visit(self, root: int) -> None:
        """Walk all that can be reached from a job and was not reached before."""
        if root in self._seen:
            return
        path = [(root, self._enter(root))]
        while path:
            job, rest = path[-1]
            after = next(rest, None)
            if after is None:
                path.pop()
                self._leave(job)
                if path:
                    self._reach(path[-1][0], self._low[job])
            elif after not in self._seen:
                path.append((after, self._enter(after)))
            elif after in self._is_open:
                self._reach(job, self._seen[after])

    def _enter(self, job: int) -> Iterator[int]:
        self._seen[job] = self._low[job] = len(self._seen)
        self._open.append(job)
        self._is_open.add(job)
        return iter(self._links.get(job, ()))

    def _reach(self, job: int, place: int) -> None:
        self._low[job] = min(self._low[job], place)

    def _leave(self, job: int) -> None:
        if self._low[job] != self._seen[job]:
            return
        group: list[int] = []
        while not group or group[-1] != job:
            group.append(self._open.pop())
        self._is_open.difference_update(group)
        self.groups.append(group)
